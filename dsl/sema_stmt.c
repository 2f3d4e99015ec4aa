/* sema_stmt.c - entries and blocks: assignments, loops, branches, outputs.
 *
 * Values re-bind, so a name's history is kept on a trail: a branch is evaluated, undone, and joined
 * with the other one; a loop body is evaluated once and must leave the shapes it found. */
#include "dsl/bind.h"

#include "runtime/base/intmath.h"

/* ---- the trail ---- */

static uint32_t next_stamp(sema *s)
{
    return ++s->stamp;
}

static void touch(sema *s, sym *y)
{
    VEC_PUSH(&s->trail, ((trail_step){y, *y}));
}

static void undo(sema *s, size_t mark)
{
    while (s->trail.n > mark) {
        const trail_step *step = &s->trail.at[--s->trail.n];
        step->at->live = step->was.live;
        step->at->class = step->was.class;
        step->at->v = step->was.v;
        step->at->loc = step->was.loc;
        step->at->conflict = step->was.conflict;
        step->at->other = step->was.other;
        step->at->use = step->was.use;
        step->at->role = step->was.role;
    }
}

/* Set a name of the frame, live from here on. */
static void put(sema *s, scope *sc, str name, sym_class class, val v, weft_loc loc)
{
    sym *y = scope_find_here(sc, name);
    if (!y) {
        y = scope_add(sc, name, class, v, loc);
        y->live = false;
    }
    touch(s, y);
    y->class = class;
    y->v = v;
    y->loc = loc;
    y->conflict = NULL;
    y->use = NULL;
    y->role = ROLE_OPEN;
    y->live = true;
}

static use *use_create(sema *s, str name, weft_loc loc)
{
    use *u = ARENA_NEW(s->a, use);
    *u = (use){.name = name, .loc = loc, .next = s->top->uses};
    s->top->uses = u;
    return u;
}

/* A value that nothing reads is a slip of the pen more often than not. */
static void check_uses(sema *s, const frame *f, size_t errors)
{
    if (diag_errors(s->dg) > errors || s->bind)
        return;        /* an error may well be the reason */
    use *first = NULL; /* in the order of the text */
    for (use *u = f->uses, *next; u; u = next) {
        next = u->next;
        u->next = first;
        first = u;
    }
    for (const use *u = first; u; u = u->next)
        if (!u->read && u->loc.src)
            weft_fail(s->dg, W0211, u->loc, "the %s " STR_FMT " is never used",
                      u->formal ? "argument" : "value", STR_ARG(u->name));
}

/* ---- binding ---- */

static bool may_bind(sema *s, str name, weft_loc loc, bool let)
{
    val ignored;
    sym *y = sema_find(s, name, &ignored);
    if (!y || y->class == SYM_BLOCK || y->class == SYM_FRAGMENT || y->class == SYM_MODULE)
        return true;
    if (!let && (y->class == SYM_VALUE || y->class == SYM_FORMAL))
        return true;
    weft_fail(s->dg, W0202, loc, "`" STR_FMT "` is already %s", STR_ARG(name),
              sym_class_name(y->class));
    if (y->loc.src)
        weft_note_at(s->dg, y->loc, "declared here");
    return false;
}

static void bind_target(sema *s, const ast *target, val v, use *u)
{
    const ast *type = target->kid[TARGET_TYPE];
    if (v.kind == VAL_GROUP || v.kind == VAL_SCOPE || v.kind == VAL_SERIES || v.kind == VAL_BLOCK ||
        v.kind == VAL_WORD) {
        weft_fail(s->dg, W0207, target->loc, "%s cannot be bound to a name", val_text(s, v));
        v = val_unknown();
    }
    if (type && !sema_fits(s, type, &v)) {
        str spelt = {type->loc.src->text.p + type->loc.begin, type->loc.end - type->loc.begin};
        weft_fail(s->dg, W0307, type->loc, STR_FMT " is declared " STR_FMT ", but the value is %s",
                  STR_ARG(target->name), STR_ARG(spelt), val_text(s, v));
        v = val_unknown();
    }
    if (may_bind(s, target->name, target->name_loc, false)) {
        put(s, s->top->names, target->name, SYM_VALUE, v, target->name_loc);
        scope_find_here(s->top->names, target->name)->use = u;
    }
}

static void stmt_assign(sema *s, const ast *n)
{
    const ast *targets = n->kid[ASSIGN_TARGETS], *e = n->kid[ASSIGN_VALUE];
    results out = {.n = 1};
    bool known = true;
    if (e->kind == AST_CALL)
        known = sema_step(s, e->loc, 1) && sema_call(s, e, &out);
    else
        out.v[0] = sema_eval(s, e);
    bool all_unknown = true;
    for (int i = 0; i < out.n; i++)
        all_unknown &= out.v[i].kind == VAL_UNKNOWN;
    bool fits = known && out.n == (int)targets->n_kid;
    if (known && !fits && !(all_unknown && out.n == 1)) {
        weft_fail(s->dg, W0306, e->loc, "this gives %d result%s, but there %s %u target%s", out.n,
                  out.n == 1 ? "" : "s", targets->n_kid == 1 ? "is" : "are",
                  (unsigned)targets->n_kid, targets->n_kid == 1 ? "" : "s");
    }
    use *u = use_create(s, targets->kid[0]->name, n->loc);
    for (uint32_t i = 0; i < targets->n_kid; i++) /* one use for all: a part may be left alone */
        bind_target(s, targets->kid[i], fits ? out.v[i] : val_unknown(), u);
}

/* In a section or a body. A tensor is reported, and then is the value that was meant. */
void sema_let(sema *s, const ast *n)
{
    s->stating = true;
    val v = sema_eval(s, n->kid[LET_VALUE]);
    s->stating = false;
    bool constant = v.kind != VAL_TENSOR && v.kind != VAL_CELL;
    if (!constant) {
        weft_fail(s->dg, W0204, n->kid[LET_VALUE]->loc, "let names a constant, but this is %s",
                  val_text(s, v));
        weft_note(s->dg, "bind a tensor without let: " STR_FMT " = ..", STR_ARG(n->name));
    }
    if (!s->top)
        sema_declare(s, s->names, n->name, SYM_LET, constant ? v : val_unknown(), n->name_loc);
    else if (may_bind(s, n->name, n->name_loc, constant))
        put(s, s->top->names, n->name, constant ? SYM_LET : SYM_VALUE, v, n->name_loc);
}

/* ---- branches ---- */

typedef VEC(trail_step) changes;

/* What the names touched since mark are now; then everything is as it was at mark. */
static void take_changes(sema *s, size_t mark, changes *out)
{
    uint32_t stamp = next_stamp(s);
    for (size_t i = mark; i < s->trail.n; i++) {
        sym *y = s->trail.at[i].at;
        if (y->stamp != stamp)
            VEC_PUSH(out, ((trail_step){y, *y}));
        y->stamp = stamp;
    }
    undo(s, mark);
}

/* A cell's versions differ between arms; a handle is stale only if its own arm went on. */
typedef struct {
    cell_slot *slot;
    uint32_t version;
} slot_version;
typedef VEC(slot_version) versions;

static void versions_take(sema *s, versions *out)
{
    for (size_t i = 0; i < s->cells.n; i++)
        for (cell_slot *slot = s->cells.at[i]->slots; slot; slot = slot->next)
            VEC_PUSH(out, ((slot_version){slot, slot->version}));
    s->n_scan += 4 * (s->cells.n + out->n); /* taken, restored, joined */
}

static void versions_restore(sema *s, const versions *v)
{
    for (size_t i = 0; i < s->cells.n; i++)
        for (cell_slot *slot = s->cells.at[i]->slots; slot; slot = slot->next)
            slot->version = 0;
    for (size_t i = 0; i < v->n; i++)
        v->at[i].slot->version = v->at[i].version;
}

static void versions_join(const versions *v)
{
    for (size_t i = 0; i < v->n; i++)
        if (v->at[i].slot->version < v->at[i].version)
            v->at[i].slot->version = v->at[i].version;
}

static const sym *changed_to(const changes *c, const sym *y)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->at[i].at == y)
            return &c->at[i].was;
    return y;
}

/* Arms may use a name each in its own way; only who reads it afterwards is owed one type. */
static void join_name(sema *s, const cond *c, sym *y, const sym *a, const sym *b)
{
    bool b_later = b->loc.begin > a->loc.begin;
    weft_loc later = b_later ? b->loc : a->loc;
    touch(s, y);
    if (a->use != b->use) {
        use *both = use_create(s, y->name, WEFT_NOWHERE);
        both->a = a->use;
        both->b = b->use;
        y->use = both; /* y may be a or b itself */
    }
    y->conflict = a->conflict ? a->conflict : b->conflict;
    y->other = a->conflict ? a->other : b->other;
    if (a->live && b->live && !y->conflict) {
        y->conflict = sema_disagree(s, a->v, b->v);
        y->other = b_later ? a->loc : b->loc;
    }
    if (y->conflict) {
        y->v = val_unknown();
        y->class = a->class;
    } else if (a->live && b->live) {
        val v = a->v.kind == VAL_CELL && b->v.kind == VAL_CELL && a->v.cell == b->v.cell &&
                        a->v.index == b->v.index
                    ? (a->v.version > b->v.version ? a->v : b->v)
                    : sema_join(s, c, a->v, b->v, later);
        y->v = v;
        y->class = a->class;
    }
    y->live = a->live && b->live;
    y->loc = later;
}

static void stmt_if(sema *s, const ast *n)
{
    const cond *c = sema_truth(s, n->kid[IF_CONDITION], "the condition");
    int known = sema_known(s, c);
    if (known >= 0) {
        const ast *arm = n->kid[known ? IF_THEN : IF_ELSE];
        if (arm)
            sema_stmts(s, arm);
        return;
    }
    if (s->bind) {
        weft_fail(s->dg, W0207, n->kid[IF_CONDITION]->loc,
                  "this condition cannot be decided from this checkpoint");
        return;
    }
    changes a = {0}, b = {0};
    versions before = {0}, after = {0};
    size_t mark = s->trail.n;
    versions_take(s, &before);
    size_t forget = sema_assume(s, c, true);
    sema_stmts(s, n->kid[IF_THEN]);
    sema_forget(s, forget);
    take_changes(s, mark, &a);
    versions_take(s, &after);
    versions_restore(s, &before);
    if (n->kid[IF_ELSE]) {
        sema_assume(s, c, false);
        sema_stmts(s, n->kid[IF_ELSE]);
        sema_forget(s, forget);
        take_changes(s, mark, &b);
    }
    versions_join(&after);
    s->n_scan += a.n * b.n;
    for (size_t i = 0; i < a.n; i++)
        join_name(s, c, a.at[i].at, &a.at[i].was, changed_to(&b, a.at[i].at));
    for (size_t i = 0; i < b.n; i++)
        if (changed_to(&a, b.at[i].at) == b.at[i].at)
            join_name(s, c, b.at[i].at, b.at[i].at, &b.at[i].was);
    VEC_FREE(&a);
    VEC_FREE(&b);
    VEC_FREE(&before);
    VEC_FREE(&after);
}

/* ---- loops ---- */

/* The body was evaluated once: what it re-bound must look as it did before. */
static void close_loop(sema *s, size_t mark)
{
    uint32_t stamp = next_stamp(s);
    size_t n = s->trail.n;
    for (size_t i = mark; i < n; i++) {
        trail_step first = s->trail.at[i];
        sym *y = first.at;
        if (y->stamp == stamp)
            continue;
        y->stamp = stamp;
        if (!first.was.live) {
            y->live = false;
            continue;
        }
        val a = first.was.v, b = y->v, ignored;
        if (y->live) /* the next turn may read it */
            sema_lookup(s, y->name, &ignored);
        if (a.kind == VAL_UNKNOWN || b.kind == VAL_UNKNOWN || !y->live)
            continue;
        bool same =
            a.kind == b.kind && (a.kind != VAL_TENSOR || types_equal(s, a.tensor, b.tensor));
        if (!same) {
            weft_fail(s->dg, W0308, y->loc,
                      STR_FMT " is %s before the loop and %s after a turn of it", STR_ARG(y->name),
                      val_text(s, a), val_text(s, b));
            y->v = val_unknown();
        } else if (a.kind == VAL_TENSOR) {
            tensor_type *t = ARENA_NEW(s->a, tensor_type);
            *t = *b.tensor;
            pairs_join(s, t, a.tensor);
            y->v.tensor = t;
        }
    }
}

typedef struct {
    val index;                 /* a symbol, or with a checkpoint one number after the other */
    val layer;                 /* the group to open, or unknown */
    const poly *first, *limit; /* NULL: reported */
} loop;

static loop loop_over(sema *s, const ast *n)
{
    const ast *over = n->kid[REPEAT_OVER];
    loop lp = {.layer = val_unknown(), .first = poly_int(s->pp, 0)};
    lp.index = (val){
        .kind = VAL_INT, .known = true, .size = poly_symbol(s->pp, arena_alloc(s->a, 1), n->name)};
    if (over->kind == AST_RANGE) {
        lp.first = sema_int(s, over->kid[RANGE_FROM], "the start of a range");
        lp.limit = sema_int(s, over->kid[RANGE_TO], "the end of a range");
        return lp;
    }
    val v = sema_eval(s, over);
    if (v.kind == VAL_GROUP && !v.index) {
        lp.layer = v;
        lp.layer.index = lp.index.size = v.group->index;
        lp.limit = v.group->limit;
    } else if (v.kind == VAL_INT) {
        lp.limit = v.size;
    } else if (v.kind != VAL_UNKNOWN) {
        weft_fail(s->dg, W0207, over->loc,
                  "repeat goes over a group, a count or a range, not over %s", val_text(s, v));
    }
    return lp;
}

/* One turn of the body; its names that are new in it end with it. */
static void turn(sema *s, const ast *n, const loop *lp)
{
    size_t mark = s->trail.n;
    if (may_bind(s, n->name, n->name_loc, true))
        put(s, s->top->names, n->name, SYM_INDEX, lp->index, n->name_loc);
    if (lp->layer.kind == VAL_GROUP)
        s->top->layer[s->top->n_layer++] = lp->layer;
    sema_stmts(s, n->kid[REPEAT_BODY]);
    s->top->n_layer -= lp->layer.kind == VAL_GROUP;
    close_loop(s, mark);
}

static void stmt_repeat(sema *s, const ast *n)
{
    loop lp = loop_over(s, n);
    int64_t first, limit;
    if (s->top->n_layer == FRAME_LAYERS_MAX) {
        weft_fail(s->dg, W1102, n->loc, "loops over groups nest deeper than %d", FRAME_LAYERS_MAX);
        return;
    }
    if (!s->bind) {
        bool lost = !lp.limit && n->kid[REPEAT_OVER]->kind != AST_RANGE;
        s->top->n_lost += lost;
        turn(s, n, &lp);
        s->top->n_lost -= lost;
        return;
    }
    if (!lp.first || !lp.limit || !poly_value(lp.first, &first) || !poly_value(lp.limit, &limit)) {
        weft_fail(s->dg, W0207, n->kid[REPEAT_OVER]->loc,
                  "how often this repeats cannot be decided from this checkpoint");
        return;
    }
    int64_t turns;
    if (limit > first && (!i64_sub(limit, first, &turns) || turns > DSL_COUNT_MAX)) {
        weft_fail(s->dg, W1106, n->kid[REPEAT_OVER]->loc,
                  "this goes from %lld to before %lld, but a loop has at most %d turns",
                  (long long)first, (long long)limit, DSL_COUNT_MAX);
        return;
    }
    int outer = s->layer;
    for (int64_t i = first; i < limit && sema_step(s, n->loc, 1); i++) {
        lp.index.size = poly_int(s->pp, i);
        if (lp.layer.kind == VAL_GROUP) {
            lp.layer.index = lp.index.size;
            s->layer = (int)i;
        }
        turn(s, n, &lp);
    }
    s->layer = outer;
}

/* ---- outputs ---- */

static void stmt_output(sema *s, const ast *n)
{
    const ast *indices = n->kid[OUTPUT_INDICES];
    val v = sema_eval(s, n->kid[OUTPUT_VALUE]);
    const poly *rows = NULL;
    int64_t index = -1;
    for (uint32_t i = 0; i < indices->n_kid; i++) {
        rows = sema_int(s, indices->kid[i], "an output's index");
        if (i + 1 >= indices->n_kid || !rows || !poly_value(rows, &index))
            continue;
        if (index < 0 || index >= DSL_COUNT_MAX) { /* it would be no index, or another one */
            weft_fail(s->dg, W0412, indices->kid[i]->loc,
                      "index %lld of the output " STR_FMT " is outside 0 .. %d", (long long)index,
                      STR_ARG(n->name), DSL_COUNT_MAX);
            return;
        }
    }
    if (s->top->body->kind != AST_ENTRY) {
        weft_fail(s->dg, W0210, n->loc, "an output belongs in an entry, not in a block");
        return;
    }
    s->n_output++;
    sym *y = scope_find_here(s->outputs, n->name);
    if (s->bind) {
        /* proven without numbers already */
    } else if (y && y->live) {
        weft_fail(s->dg, W0202, n->name_loc, "the output `" STR_FMT "` stands twice",
                  STR_ARG(n->name));
        weft_note_at(s->dg, y->loc, "first here");
    } else {
        put(s, s->outputs, n->name, SYM_VALUE, val_unknown(), n->name_loc);
    }
    if (indices->n_kid == 0 || (rows && rows != s->T && rows != s->R && rows != s->S)) {
        weft_fail(s->dg, W0206, n->name_loc,
                  "an output says last which rows it has: [T], [R] or [S]");
        return;
    }
    if (v.kind == VAL_UNKNOWN || !rows)
        return;
    if (v.kind != VAL_TENSOR) {
        weft_fail(s->dg, W0207, n->kid[OUTPUT_VALUE]->loc, "an output is a tensor, not %s",
                  val_text(s, v));
        return;
    }
    const poly *wanted =
        rows == s->R ? s->T : rows; /* the rows asked for are taken from all of them */
    if (v.tensor->rank < 1 || !dims_equal(s, v.tensor->dim[0], wanted))
        weft_fail(s->dg, W0301, n->kid[OUTPUT_VALUE]->loc,
                  "this output needs %s rows, but the value is %s", poly_text(s, wanted),
                  type_text(s, v.tensor));
    else
        emit_output(s->bind, n, v, rows, (int)index);
}

/* ---- bodies ---- */

void sema_stmts(sema *s, const ast *list)
{
    static void (*const by_kind[AST_KIND_COUNT])(sema *, const ast *) = {
        [AST_ASSIGN] = stmt_assign, [AST_REPEAT] = stmt_repeat, [AST_IF] = stmt_if,
        [AST_OUTPUT] = stmt_output, [AST_LET] = sema_let,       [AST_REQUIRE] = sema_require,
    };
    for (uint32_t i = 0; i < list->n_kid && !s->stopped; i++) {
        if (!sema_step(s, list->kid[i]->loc, 1))
            return;
        s->depth++;
        by_kind[list->kid[i]->kind](s, list->kid[i]);
        s->depth--;
    }
}

static void frame_enter(sema *s, frame *f, const ast *body, scope *home)
{
    *f = (frame){.caller = s->top, .body = body, .names = scope_create(s->a, home)};
    s->top = f;
}

static void frame_leave(sema *s, frame *f, size_t mark)
{
    s->top = f->caller;
    s->trail.n = mark; /* the frame's names are gone; nobody else's were touched */
}

void sema_entry(sema *s, const ast *n)
{
    static const char *const fed = "tokens pos h";
    const ast *formals = n->kid[ENTRY_FORMALS];
    frame f;
    size_t mark = s->trail.n, errors = diag_errors(s->dg);
    frame_enter(s, &f, n, s->names);
    s->outputs = scope_create(s->a, NULL);
    s->n_output = 0;
    for (size_t i = 0; i < s->cells.n; i++)
        cell_forget(s->cells.at[i]);
    for (uint32_t i = 0; i < formals->n_kid; i++) {
        const ast *formal = formals->kid[i], *type = formal->kid[FORMAL_TYPE];
        if (word_find(fed, formal->name) < 0)
            weft_fail(s->dg, W0201, formal->name_loc,
                      "an entry is fed tokens, pos and h; there is no `" STR_FMT "`",
                      STR_ARG(formal->name));
        if (!type)
            weft_fail(s->dg, W0208, formal->loc,
                      "an entry's argument needs a type, such as i32[T]");
        val v = type ? sema_typed(s, type, formal, formal->name) : val_unknown();
        if (v.kind == VAL_TENSOR)
            v.ref = emit_input(s->bind, formal->name, v.tensor);
        if (may_bind(s, formal->name, formal->name_loc, false))
            put(s, f.names, formal->name, SYM_FORMAL, v, formal->name_loc);
    }
    sema_stmts(s, n->kid[ENTRY_BODY]);
    if (s->n_output == 0 && !s->stopped)
        weft_fail(s->dg, W0210, n->name_loc, "the entry " STR_FMT " has no output",
                  STR_ARG(n->name));
    check_uses(s, &f, errors);
    frame_leave(s, &f, mark);
}

/* ---- blocks ---- */

static void return_results(sema *s, const ast *block, results *out)
{
    const ast *list = block->kid[BLOCK_RESULTS];
    out->n = 0;
    for (uint32_t i = 0; list && i < list->n_kid && i < SEMA_RESULTS_MAX; i++)
        out->v[out->n++] = sema_eval(s, list->kid[i]);
}

typedef struct {
    val v;
    const ast *at;
} argument;

static void no_argument(sema *s, const ast *block, const ast *arg)
{
    const ast *formals = block->kid[BLOCK_FORMALS];
    str_guess best = {0};
    for (uint32_t f = 0; f < formals->n_kid; f++)
        str_guess_try(&best, arg->name, formals->kid[f]->name);
    s->n_scan += formals->n_kid;
    weft_fail(s->dg, W0205, arg->name_loc, STR_FMT " has no argument `" STR_FMT "`",
              STR_ARG(block->name), STR_ARG(arg->name));
    weft_suggest(s->dg, &best);
}

/* The call's arguments, in the order of the formals; at is NULL where the default serves. */
static bool match_arguments(sema *s, const ast *block, const ast *site, const ast *args,
                            argument *out)
{
    const ast *formals = block->kid[BLOCK_FORMALS];
    uint32_t n_positional = 0;
    bool fine = true;
    for (uint32_t i = 0; i < args->n_kid && !s->stopped; i++) {
        const ast *arg = args->kid[i];
        uint32_t f = n_positional;
        s->n_scan += arg->name.n ? formals->n_kid : 1;
        if (arg->name.n)
            for (f = 0; f < formals->n_kid && !str_eq(formals->kid[f]->name, arg->name); f++)
                continue;
        else
            n_positional++;
        const ast *type = f < formals->n_kid ? formals->kid[f]->kid[FORMAL_TYPE] : NULL;
        val v = sema_argument(s, type, arg->kid[ARG_VALUE]);
        if (f < formals->n_kid && !out[f].at) {
            out[f] = (argument){v, arg->kid[ARG_VALUE]};
            continue;
        }
        fine = false;
        if (f < formals->n_kid)
            weft_fail(s->dg, W0205, arg->loc, STR_FMT " is given twice",
                      STR_ARG(formals->kid[f]->name));
        else if (arg->name.n)
            no_argument(s, block, arg);
        else
            weft_fail(s->dg, W0206, site->loc, STR_FMT " takes %u argument%s, not %u",
                      STR_ARG(block->name), (unsigned)formals->n_kid,
                      formals->n_kid == 1 ? "" : "s", (unsigned)args->n_kid);
    }
    for (uint32_t f = 0; fine && !s->stopped && f < formals->n_kid; f++) {
        if (out[f].at || formals->kid[f]->kid[FORMAL_DEFAULT])
            continue;
        weft_fail(s->dg, W0206, site->loc, STR_FMT " needs the argument `" STR_FMT "`",
                  STR_ARG(block->name), STR_ARG(formals->kid[f]->name));
        fine = false;
    }
    return fine && !s->stopped;
}

/* How a mistake inside a block was reached: the nearest calls, and the one in the entry. */
static void note_call(sema *s, const ast *block, const ast *site)
{
    enum { NEAREST = 3 };
    if (s->traced != diag_errors(s->dg))
        s->n_trace = 0;
    s->traced = diag_errors(s->dg);
    if (s->n_trace++ < NEAREST || (s->top && s->top->body->kind == AST_ENTRY))
        weft_note_at(s->dg, site->loc, "in this call of " STR_FMT, STR_ARG(block->name));
}

bool sema_inline(sema *s, val block, const ast *site, const ast *args, results *out)
{
    const ast *n = block.block, *formals = n->kid[BLOCK_FORMALS];
    out->n = 1;
    out->v[0] = val_unknown();
    argument *given = ARENA_ARRAY(s->a, argument, formals->n_kid);
    if (!match_arguments(s, n, site, args, given))
        return false;
    for (const frame *f = s->top; f; f = f->caller) {
        if (f->body != n)
            continue;
        weft_fail(s->dg, W0209, site->loc, STR_FMT " calls itself", STR_ARG(n->name));
        return false;
    }
    if (s->n_call == DSL_CALLS_MAX) {
        weft_fail(s->dg, W1102, site->loc, "blocks call each other deeper than %d", DSL_CALLS_MAX);
        s->stopped = true;
        return false;
    }
    frame f;
    size_t mark = s->trail.n, errors;
    s->n_call++;
    frame_enter(s, &f, n, block.home);
    for (uint32_t i = 0; i < formals->n_kid; i++) {
        const ast *formal = formals->kid[i], *type = formal->kid[FORMAL_TYPE];
        val v = given[i].at ? given[i].v : sema_argument(s, type, formal->kid[FORMAL_DEFAULT]);
        if (type && !sema_fits(s, type, &v)) {
            str spelt = {type->loc.src->text.p + type->loc.begin, type->loc.end - type->loc.begin};
            weft_fail(s->dg, W0307, given[i].at ? given[i].at->loc : formal->loc,
                      STR_FMT " of " STR_FMT " must be " STR_FMT ", not %s", STR_ARG(formal->name),
                      STR_ARG(n->name), STR_ARG(spelt), val_text(s, v));
            v = val_unknown();
        }
        put(s, f.names, formal->name, SYM_FORMAL, v, formal->name_loc);
    }
    errors = diag_errors(s->dg);
    sema_stmts(s, n->kid[BLOCK_BODY]);
    return_results(s, n, out);
    frame_leave(s, &f, mark);
    s->n_call--;
    if (diag_errors(s->dg) > errors)
        note_call(s, n, site);
    return true;
}

/* A block on its own: formals without a type may be anything, the rest must hold. */
void sema_block_alone(sema *s, const ast *n, scope *home)
{
    const ast *formals = n->kid[BLOCK_FORMALS];
    frame f;
    results out;
    size_t mark = s->trail.n, errors = diag_errors(s->dg);
    frame_enter(s, &f, n, home);
    f.alone = true;
    f.errors = errors;
    for (uint32_t i = 0; i < formals->n_kid; i++) {
        const ast *formal = formals->kid[i], *type = formal->kid[FORMAL_TYPE];
        val v = type ? sema_typed(s, type, formal, formal->name) : val_unknown();
        if (formal->kid[FORMAL_DEFAULT])
            sema_argument(s, type, formal->kid[FORMAL_DEFAULT]);
        sym *y = scope_find_here(f.names, formal->name);
        if (y)
            weft_fail(s->dg, W0202, formal->name_loc, "the argument `" STR_FMT "` stands twice",
                      STR_ARG(formal->name));
        else if (may_bind(s, formal->name, formal->name_loc, false))
            put(s, f.names, formal->name, SYM_FORMAL, v, formal->name_loc);
        y = scope_find_here(f.names, formal->name);
        if (y && !y->use) {
            y->use = use_create(s, formal->name, formal->name_loc);
            y->use->formal = true;
        }
    }
    sema_stmts(s, n->kid[BLOCK_BODY]);
    return_results(s, n, &out);
    check_uses(s, &f, errors);
    frame_leave(s, &f, mark);
}
