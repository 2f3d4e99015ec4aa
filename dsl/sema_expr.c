/* sema_expr.c - expressions: names, literals, choices, operators. */
#include "dsl/bind.h"

#include "runtime/base/utf8.h"

/* ---- names ---- */

/* A cell's bare name means its newest version so far. */
static val newest(sema *s, val v)
{
    const cell_slot *slot = cell_slot_of(s, v.cell, v.index);
    v.version = slot->version;
    v.ref = slot->ref;
    return v;
}

static val eval_name(sema *s, const ast *e)
{
    val v;
    if (s->it && str_eq(e->name, STR("it")))
        return *s->it;
    const sym *y = sema_lookup(s, e->name, &v);
    if (y && y->class == SYM_CELL && v.kind == VAL_CELL && !v.cell->symbol && s->top)
        return newest(s, v);
    if (y && !s->top && y->class == SYM_BASE && v.kind == VAL_INT) {
        weft_fail(s->dg, W0204, e->loc,
                  "what stands outside entries and blocks cannot depend on " STR_FMT,
                  STR_ARG(e->name));
        weft_note(s->dg, "T, R and S are sizes of one call; a model is opened before any");
        return val_unknown();
    }
    if (y)
        return v;
    sema_unknown(s, e, W0201, "name");
    return val_unknown();
}

/* ---- literals ---- */

static val eval_int(sema *s, const ast *e)
{
    return (val){.kind = VAL_INT, .known = true, .size = poly_int(s->pp, e->integer)};
}

static val eval_float(sema *s, const ast *e)
{
    (void)s;
    return (val){.kind = VAL_FLOAT, .known = true, .number = e->number};
}

static val eval_bool(sema *s, const ast *e)
{
    return (val){.kind = VAL_BOOL, .known = true, .truth = cond_bool(s->cp, e->flag)};
}

static val eval_none(sema *s, const ast *e)
{
    (void)s;
    (void)e;
    return (val){.kind = VAL_NONE, .known = true};
}

static val eval_list(sema *s, const ast *e)
{
    val *item = ARENA_ARRAY(s->a, val, e->n_kid);
    for (uint32_t i = 0; i < e->n_kid; i++)
        item[i] = sema_eval(s, e->kid[i]);
    return (val){.kind = VAL_LIST, .known = true, .item = item, .n = e->n_kid};
}

/* Text with its escapes resolved and every {name} replaced where its value is known. */
void sema_string(sema *s, const ast *n, val *out)
{
    strbuf b = {0};
    bool known = true;
    const char *p = n->name.p, *end = p + n->name.n;
    for (; p < end; p++) {
        if (*p == '\\' && p + 1 < end) {
            p++;
            strbuf_putc(&b, *p == 'n' ? '\n' : *p);
            continue;
        }
        if (*p != '{') {
            strbuf_putc(&b, *p);
            continue;
        }
        const char *stop = memchr(p, '}', (size_t)(end - p));
        str name = {p + 1, stop ? (size_t)(stop - p - 1) : (size_t)(end - p - 1)};
        uint32_t at = (uint32_t)(name.p - n->loc.src->text.p);
        weft_loc loc = {n->loc.src, at, at + (uint32_t)name.n};
        val v;
        int64_t number;
        if (!stop || !sema_lookup(s, name, &v)) {
            ast word = {.kind = AST_NAME, .loc = loc, .name_loc = loc, .name = name};
            if (stop)
                sema_unknown(s, &word, W0003, "name");
            else
                weft_fail(s->dg, W0003, loc, "this brace is not closed");
            known = false;
        } else if (v.kind == VAL_INT && poly_value(v.size, &number)) {
            strbuf_add(&b, "%lld", (long long)number);
        } else if (v.kind == VAL_STR && v.known) {
            strbuf_put(&b, v.text);
        } else {
            known = false;
            if (v.kind != VAL_INT && v.kind != VAL_STR && v.kind != VAL_UNKNOWN)
                weft_fail(s->dg, W0003, loc,
                          "{" STR_FMT "} is %s; only an integer or a string can stand here",
                          STR_ARG(name), val_text(s, v));
        }
        p = stop ? stop : end - 1;
    }
    if (b.n > DSL_SOURCE_MAX) {
        weft_fail(s->dg, W1103, n->loc, "this text grows past %d bytes", DSL_SOURCE_MAX);
        known = false;
        strbuf_reset(&b);
    }
    if (!sema_step(s, n->loc, (int64_t)b.n / 16))
        known = false;
    if (out)
        *out = (val){
            .kind = VAL_STR, .known = known, .text = arena_str(s->a, strbuf_view(&b)), .who = n};
    strbuf_free(&b);
}

static val eval_string(sema *s, const ast *e)
{
    val v;
    sema_string(s, e, &v);
    return v;
}

/* ---- choices ---- */

static val join_sizes(sema *s, const cond *c, const poly *a, const poly *b)
{
    const poly *arg[3] = {poly_symbol(s->pp, c, STR("..")), a, b};
    return (val){
        .kind = VAL_INT, .known = true, .size = a == b ? a : poly_call(s->pp, "choose", arg, 3)};
}

const char *sema_disagree(sema *s, val a, val b)
{
    if (a.kind == VAL_UNKNOWN || b.kind == VAL_UNKNOWN || a.kind == VAL_NONE || b.kind == VAL_NONE)
        return NULL;
    bool lengths = a.kind == VAL_VEC || a.kind == VAL_TABLE;
    if (a.kind != b.kind ? !val_is_number(a) || !val_is_number(b)
                         : a.kind == VAL_TENSOR && !types_equal(s, a.tensor, b.tensor))
        return arena_printf(s->a, "%s in one, %s in the other", val_text(s, a), val_text(s, b)).p;
    if (a.kind == b.kind && lengths && !dims_equal(s, a.size, b.size))
        return arena_printf(s->a, "%s elements in one, %s in the other", poly_text(s, a.size),
                            poly_text(s, b.size))
            .p;
    return NULL;
}

/* The type both arms have; a pair order only where they agree on it. */
static const tensor_type *join_types(sema *s, const tensor_type *a, const tensor_type *b)
{
    tensor_type *t = ARENA_NEW(s->a, tensor_type);
    *t = *a;
    pairs_join(s, t, b);
    return t;
}

/* What `c ? a : b` is while c is open. */
val sema_join(sema *s, const cond *c, val a, val b, weft_loc loc)
{
    val out = a;
    const char *conflict = sema_disagree(s, a, b);
    if (conflict) {
        weft_fail(s->dg, W0309, loc, "the branches disagree: %s", conflict);
        return val_unknown();
    }
    if (a.kind == VAL_UNKNOWN || b.kind == VAL_UNKNOWN)
        return val_unknown();
    if (a.kind == VAL_NONE || b.kind == VAL_NONE) {
        out = a.kind == VAL_NONE ? b : a;
        if (out.kind != VAL_NONE) {
            out.maybe = true;
            out.who = arena_alloc(s->a, 1);
        }
        return out;
    }
    if (a.kind == VAL_INT && b.kind == VAL_INT) {
        out = join_sizes(s, c, a.size, b.size);
    } else if (val_is_number(a) && val_is_number(b)) {
        out = (val){.kind = VAL_FLOAT};
    } else if (a.kind == VAL_BOOL && b.kind == VAL_BOOL) {
        out.truth = cond_or(s->cp, cond_and(s->cp, c, a.truth),
                            cond_and(s->cp, cond_not(s->cp, c), b.truth));
    } else if (a.kind == VAL_TENSOR) {
        out.tensor = join_types(s, a.tensor, b.tensor);
        out.from = a.from == b.from ? a.from : NULL;
    } else if (a.kind == VAL_STR || a.kind == VAL_LIST) {
        out.known = false;
    }
    out.maybe = a.maybe || b.maybe;
    out.who = arena_alloc(s->a, 1);
    return out;
}

/* Where a join failed: the names on both sides. */
static void note_sides(sema *s, const ast *e, val a, val b, val joined)
{
    bool failed = a.kind != VAL_UNKNOWN && b.kind != VAL_UNKNOWN && joined.kind == VAL_UNKNOWN;
    for (uint32_t i = e->n_kid - 2; failed && i < e->n_kid; i++)
        sema_note_name(s, e->kid[i], e->loc);
}

static val eval_choice(sema *s, const ast *e)
{
    const cond *c = sema_truth(s, e->kid[CHOICE_CONDITION], "the condition");
    int known = sema_known(s, c);
    if (known >= 0)
        return sema_eval(s, e->kid[known ? CHOICE_THEN : CHOICE_ELSE]);
    size_t mark = sema_assume(s, c, true);
    val a = sema_eval(s, e->kid[CHOICE_THEN]);
    sema_forget(s, mark);
    sema_assume(s, c, false);
    val b = sema_eval(s, e->kid[CHOICE_ELSE]);
    sema_forget(s, mark);
    val v = sema_join(s, c, a, b, e->loc);
    note_sides(s, e, a, b, v);
    return v;
}

/* A `tensor` weight outside a graph is a constant vector. */
val sema_constant(sema *s, val v)
{
    if (v.kind != VAL_WEIGHT || v.weight->kind->code != KIND_tensor || s->top)
        return v;
    tensor_type t = weight_stored(s, v.weight, v.index);
    *v.weight->used = true;
    if (t.rank != 1)
        return v;
    if (s->bind)
        return bind_constant(s->bind, v.weight);
    return (val){.kind = VAL_VEC, .maybe = v.maybe, .who = v.who, .size = t.dim[0]};
}

static val eval_coalesce(sema *s, const ast *e)
{
    val a = sema_constant(s, sema_eval(s, e->kid[BINARY_LEFT]));
    const cond *none = val_is_none(s, a);
    int known = sema_known(s, none);
    if (a.kind != VAL_UNKNOWN && known == 0)
        return a;
    size_t mark = sema_assume(s, none, true);
    val b = sema_constant(s, sema_eval(s, e->kid[BINARY_RIGHT]));
    sema_forget(s, mark);
    if (a.kind == VAL_UNKNOWN || a.kind == VAL_NONE)
        return a.kind == VAL_NONE ? b : val_unknown();
    a.maybe = false;
    if (a.kind == VAL_INT && b.kind == VAL_INT && a.size == poly_symbol(s->pp, a.who, STR(""))) {
        val out = {.kind = VAL_INT, .known = true, .size = poly_coalesce(s->pp, a.size, b.size)};
        out.maybe = b.maybe;
        out.who = b.maybe ? arena_alloc(s->a, 1) : NULL;
        return sema_size(s, e, out.size).kind == VAL_UNKNOWN ? val_unknown() : out;
    }
    val v = sema_join(s, cond_not(s->cp, none), a, b, e->loc);
    note_sides(s, e, a, b, v);
    return v;
}

/* ---- operators ---- */

static val eval_logic(sema *s, const ast *e)
{
    bool is_and = e->name.p[0] == '&';
    const cond *a = sema_truth(s, e->kid[BINARY_LEFT], "an operand of && or ||");
    int known = sema_known(s, a);
    if (known == !is_and)
        return (val){.kind = VAL_BOOL, .known = true, .truth = cond_bool(s->cp, !is_and)};
    size_t mark = sema_assume(s, a, is_and);
    const cond *b = sema_truth(s, e->kid[BINARY_RIGHT], "an operand of && or ||");
    sema_forget(s, mark);
    return (val){.kind = VAL_BOOL,
                 .known = true,
                 .truth = is_and ? cond_and(s->cp, a, b) : cond_or(s->cp, a, b)};
}

static val eval_binary(sema *s, const ast *e)
{
    if (str_eq(e->name, STR("??")))
        return eval_coalesce(s, e);
    if (str_eq(e->name, STR("&&")) || str_eq(e->name, STR("||")))
        return eval_logic(s, e);
    val a = sema_constant(s, sema_eval(s, e->kid[BINARY_LEFT]));
    val b = sema_constant(s, sema_eval(s, e->kid[BINARY_RIGHT]));
    bool tensor = a.kind == VAL_TENSOR || b.kind == VAL_TENSOR || a.kind == VAL_WEIGHT ||
                  b.kind == VAL_WEIGHT;
    bool none = a.kind == VAL_NONE || b.kind == VAL_NONE;
    if (!tensor || none)
        return const_binary(s, e, a, b);
    static const struct {
        char sign;
        op_code op;
    } arithmetic[] = {{'+', OP_add}, {'-', OP_sub}, {'*', OP_mul}, {'/', OP_div}};
    for (size_t i = 0; i < sizeof arithmetic / sizeof *arithmetic; i++)
        if (e->name.n == 1 && e->name.p[0] == arithmetic[i].sign)
            return sema_op2(s, e, arithmetic[i].op, a, b);
    weft_fail(s->dg, W0204, e->loc, "`" STR_FMT "` works on constants; an operand is %s",
              STR_ARG(e->name), val_text(s, a.kind == VAL_TENSOR || a.kind == VAL_WEIGHT ? a : b));
    return val_unknown();
}

static val eval_unary(sema *s, const ast *e)
{
    if (e->name.p[0] == '!') {
        const cond *c = sema_truth(s, e->kid[UNARY_OPERAND], "the operand of !");
        return (val){.kind = VAL_BOOL, .known = true, .truth = cond_not(s->cp, c)};
    }
    val a = sema_constant(s, sema_eval(s, e->kid[UNARY_OPERAND]));
    return a.kind == VAL_TENSOR || a.kind == VAL_WEIGHT ? sema_op1(s, e, OP_neg, a)
                                                        : const_unary(s, e, a);
}

static val eval_call(sema *s, const ast *e)
{
    results out;
    if (!sema_call(s, e, &out))
        return val_unknown();
    if (out.n == 1)
        return out.v[0];
    weft_fail(s->dg, W0306, e->loc, "this gives %d results, but one is used", out.n);
    return val_unknown();
}

static val subscript_cell(sema *s, const ast *e, val v, const poly *index)
{
    if (!v.cell->symbol) {
        weft_fail(s->dg, W0207, e->loc, STR_FMT " is one cell; it takes no index",
                  STR_ARG(v.cell->name));
        return val_unknown();
    }
    if (!sema_in_range(s, v.cell->decl, index, v.cell->limit, e->loc))
        return val_unknown();
    v.index = index;
    return newest(s, v);
}

/* One character of a text, as a text. */
static val subscript_text(sema *s, const ast *e, val v, const poly *index)
{
    int64_t i, n = 0;
    if (!v.known || !poly_value(index, &i))
        return (val){.kind = VAL_STR, .who = arena_alloc(s->a, 1)};
    if (!sema_step(s, e->loc, (int64_t)v.text.n / 16))
        return val_unknown();
    for (size_t at = 0, len; at < v.text.n; at += len, n++) {
        uint32_t point;
        len = utf8_decode((str){v.text.p + at, v.text.n - at}, &point);
        len = len ? len : 1;
        if (n == i)
            return (val){.kind = VAL_STR, .known = true, .text = {v.text.p + at, len}, .who = e};
    }
    weft_fail(s->dg, W0412, e->loc, "index %lld is outside a text of %lld characters", (long long)i,
              (long long)n);
    return val_unknown();
}

static val eval_subscript(sema *s, const ast *e)
{
    val v = sema_eval(s, e->kid[SUBSCRIPT_BASE]);
    const ast *indices = e->kid[SUBSCRIPT_INDICES];
    const poly *index = sema_int(s, indices->kid[0], "an index");
    if (v.kind == VAL_UNKNOWN || !index)
        return val_unknown();
    if (indices->n_kid != 1) {
        weft_fail(s->dg, W0206, e->loc, "one index is expected, not %u", (unsigned)indices->n_kid);
        return val_unknown();
    }
    int64_t i;
    bool known = poly_value(index, &i);
    if (v.kind == VAL_SERIES)
        return sema_series_at(s, v.series, index, e->loc);
    if (v.kind == VAL_CELL && !v.index)
        return subscript_cell(s, e, v, index);
    if (v.kind == VAL_GROUP && !v.index) {
        if (!sema_in_range(s, v.group->decl, index, v.group->limit, e->loc))
            return val_unknown();
        v.index = index;
        return v;
    }
    if (v.kind == VAL_LIST && v.known && known) {
        if (i >= 0 && i < v.n && v.item)
            return v.item[i];
        if (v.n > 0 && !v.item) {
            weft_fail(s->dg, W0207, e->loc, "a list of %u items is too long to be indexed",
                      (unsigned)v.n);
            return val_unknown();
        }
        weft_fail(s->dg, W0412, e->loc, "index %lld is outside a list of %u", (long long)i,
                  (unsigned)v.n);
        return val_unknown();
    }
    if (v.kind == VAL_LIST)
        return val_unknown();
    if (v.kind == VAL_STR)
        return subscript_text(s, e, v, index);
    if (v.kind == VAL_VEC) {
        int64_t n;
        if (!known || !v.data || v.truths || !poly_value(v.size, &n))
            return (val){.kind = VAL_FLOAT};
        if (i >= 0 && i < n)
            return (val){.kind = VAL_FLOAT, .known = true, .number = v.data[i]};
        weft_fail(s->dg, W0412, e->loc, "index %lld is outside a vector of %lld", (long long)i,
                  (long long)n);
        return val_unknown();
    }
    weft_fail(s->dg, W0207, e->loc, "%s cannot be indexed", val_text(s, v));
    return val_unknown();
}

static val eval_member(sema *s, const ast *e)
{
    val v = sema_eval(s, e->kid[MEMBER_BASE]);
    if (v.kind == VAL_UNKNOWN)
        return v;
    if (v.kind != VAL_SCOPE && !(v.kind == VAL_GROUP && v.index)) {
        weft_fail(s->dg, W0207, e->loc, "%s has no members%s", val_text(s, v),
                  v.kind == VAL_GROUP ? "; index it first" : "");
        return val_unknown();
    }
    const scope *sc = v.kind == VAL_SCOPE ? v.scope : group_names(v.group, v.index);
    sym *y = scope_find_here(sc, e->name);
    if (y && y->live) {
        val out = y->v;
        bind_context_asked(s->bind, y);
        if (v.kind == VAL_GROUP && out.kind == VAL_WEIGHT)
            out.index = v.index;
        return val_settle(s, out);
    }
    sema_unknown_member(s, e, sc);
    return val_unknown();
}

/* ---- the evaluator ---- */

val sema_eval(sema *s, const ast *e)
{
    static val (*const by_kind[AST_KIND_COUNT])(sema *, const ast *) = {
        [AST_NAME] = eval_name,     [AST_INT] = eval_int,     [AST_FLOAT] = eval_float,
        [AST_STRING] = eval_string, [AST_BOOL] = eval_bool,   [AST_NONE] = eval_none,
        [AST_LIST] = eval_list,     [AST_UNARY] = eval_unary, [AST_BINARY] = eval_binary,
        [AST_CHOICE] = eval_choice, [AST_CALL] = eval_call,   [AST_SUBSCRIPT] = eval_subscript,
        [AST_MEMBER] = eval_member,
    };
    if (!sema_step(s, e->loc, 1))
        return val_unknown();
    s->depth++;
    val v = by_kind[e->kind](s, e);
    s->depth--;
    return v;
}

const poly *sema_int(sema *s, const ast *e, const char *what)
{
    val v = sema_eval(s, e);
    sema_warn_none(s, e, v);
    if (v.kind == VAL_INT)
        return v.size;
    if (v.kind == VAL_TENSOR || v.kind == VAL_WEIGHT)
        weft_fail(s->dg, W0204, e->loc, "%s must be a constant integer, not %s", what,
                  val_text(s, v));
    else if (v.kind != VAL_UNKNOWN)
        weft_fail(s->dg, W0207, e->loc, "%s must be an integer, not %s", what, val_text(s, v));
    return NULL;
}

const cond *sema_truth(sema *s, const ast *e, const char *what)
{
    val v = sema_eval(s, e);
    if (v.kind == VAL_BOOL)
        return v.truth;
    if (v.kind == VAL_TENSOR || v.kind == VAL_WEIGHT) {
        weft_fail(s->dg, W0204, e->loc, "%s must be a constant, not %s", what, val_text(s, v));
        if (v.kind == VAL_WEIGHT)
            weft_note(s->dg, "test whether it is there with `!= none`");
    } else if (v.kind != VAL_UNKNOWN) {
        weft_fail(s->dg, W0207, e->loc, "%s must be true or false, not %s", what, val_text(s, v));
    }
    return cond_atom(s->cp, arena_alloc(s->a, 1), NULL, STR(""));
}

/* An argument v that is a word: is it, or is each that it may be, among those that fit here? A block that
 * nobody called goes on with the first. */
static bool word_fits(sema *s, const ast *e, val v, const char *words, str *out_word)
{
    for (const char *p = v.words; *p; p += strspn(p, " ")) {
        str word = v.known ? v.text : word_at(p, 0);
        if (word_find(words, word) < 0) {
            weft_fail(s->dg, W0207, e->loc,
                      STR_FMT " %s " STR_FMT ", which is none of the words that fit here: %s",
                      STR_ARG(e->name), v.known ? "is" : "may be", STR_ARG(word),
                      words_text(s, words));
            return false;
        }
        p += strcspn(p, " ");
    }
    *out_word = v.known ? v.text : word_at(v.words, 0);
    return true;
}

bool sema_word(sema *s, const ast *e, const char *words, str *out_word)
{
    if (e->kind == AST_CHOICE) {
        str other;
        int known = sema_known(s, sema_truth(s, e->kid[CHOICE_CONDITION], "the condition"));
        bool a = sema_word(s, e->kid[CHOICE_THEN], words, known == 0 ? &other : out_word);
        bool b = sema_word(s, e->kid[CHOICE_ELSE], words, known == 0 ? out_word : &other);
        return a && b;
    }
    if (e->kind == AST_NAME && word_find(words, e->name) >= 0) {
        *out_word = e->name;
        return true;
    }
    val v;
    bool found = e->kind == AST_NAME && sema_lookup(s, e->name, &v);
    if (found && v.kind == VAL_WORD)
        return word_fits(s, e, v, words, out_word);
    if (found && v.kind == VAL_UNKNOWN && s->top &&
        (!s->top->alone || diag_errors(s->dg) > s->top->errors))
        return false; /* what an error left was reported where it happened */
    weft_fail(s->dg, W0207, e->loc, "`" STR_FMT "` is none of the words that fit here: %s",
              STR_ARG(ast_spelt(e)), words_text(s, words));
    if (found && v.kind == VAL_UNKNOWN && s->top)
        weft_note(s->dg,
                  "an argument that is to be a word has that as its type: " STR_FMT ": word[%s]",
                  STR_ARG(e->name), words_text(s, words));
    else if (e->kind == AST_NAME)
        weft_suggest_word(s->dg, e->name, words);
    return false;
}
