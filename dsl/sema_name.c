/* sema_name.c - names: looking them up, and what was meant by one that is not there. */
#include "dsl/sema.h"

/* The names of a group's weights: with a checkpoint every layer has its own. */
scope *group_names(const group *g, const poly *index)
{
    int64_t i;
    if (g->layer && index && poly_value(index, &i) && i >= 0 && i < g->n_layer)
        return g->layer[i];
    return g->names;
}

void sema_report_conflict(sema *s, sym *y)
{
    if (!y->conflict)
        return;
    weft_fail(s->dg, W0309, y->loc, "the arms of this if disagree about `" STR_FMT "`: %s",
              STR_ARG(y->name), y->conflict);
    weft_note_at(s->dg, y->other, "bound differently here");
    y->conflict = NULL;
}

void sema_role(sema *s, const ast *e, sym_role role)
{
    if (!s->top || !s->top->alone || !e || e->kind != AST_NAME || role == ROLE_OPEN ||
        diag_errors(s->dg) > s->top->errors) /* an error's value may be used as anything */
        return;
    sym *y = scope_find_here(s->top->names, e->name);
    if (!y || !y->live || y->v.kind != VAL_UNKNOWN)
        return;
    if (y->role == ROLE_OPEN) {
        y->role = role;
        y->role_at = e->loc;
    } else if (y->role != role) {
        weft_fail(s->dg, W0207, e->loc, STR_FMT " is used as %s here, but elsewhere as %s",
                  STR_ARG(y->name), sym_role_name(role), sym_role_name(y->role));
        weft_note_at(s->dg, y->role_at, "used as %s", sym_role_name(y->role));
    }
}

/* Everything that u stands for is read. */
static void use_mark(use *u)
{
    use *next = u && !u->read ? u : NULL;
    if (next)
        next->read = true;
    while (next) {
        use *parts[] = {next->a, next->b};
        next = next->later;
        for (int i = 0; i < 2; i++) {
            if (!parts[i] || parts[i]->read)
                continue;
            parts[i]->read = true;
            parts[i]->later = next;
            next = parts[i];
        }
    }
}

sym *sema_lookup(sema *s, str name, val *out)
{
    sym *y = s->top ? scope_find_here(s->top->names, name) : NULL;
    if (y && y->live) {
        sema_report_conflict(s, y);
        use_mark(y->use);
    }
    y = sema_find(s, name, out);
    if (y)
        y->used = true;
    return y;
}

sym *sema_find(sema *s, str name, val *out)
{
    sym *y = NULL;
    if (s->top) {
        y = scope_find_here(s->top->names, name);
        y = y && y->live ? y : NULL;
        for (int i = s->top->n_layer; !y && i-- > 0;) {
            const val *layer = &s->top->layer[i];
            y = scope_find_here(group_names(layer->group, layer->index), name);
            if (y) {
                *out = y->v;
                if (y->v.kind == VAL_WEIGHT)
                    out->index = layer->index;
                else if (y->class == SYM_INDEX)
                    out->size = layer->index;
                *out = val_settle(s, *out);
                return y;
            }
        }
        if (!y)
            y = scope_find(s->top->names->up, name);
    } else {
        y = scope_find(s->names, name);
    }
    if (y)
        *out = val_settle(s, y->v);
    return y;
}

/* "did you mean": the nearest name, and where it was declared if that is in the same file. */
static void note_guess(sema *s, const scope *sc, str_guess best, const source *src)
{
    sym *y = scope_find(sc, best.name);
    if (!best.name.n)
        return;
    if (y)
        y->used = true; /* no need to report that it is not */
    if (y && y->loc.src && y->loc.src == src)
        weft_note(s->dg, "did you mean `" STR_FMT "`, declared at line %u?", STR_ARG(best.name),
                  (unsigned)source_find(src, y->loc.begin).line);
    else
        weft_suggest(s->dg, &best);
}

static scope only(const scope *sc)
{
    return (scope){.bucket = sc->bucket, .n_bucket = sc->n_bucket};
}

/* The group that has a weight of this name. */
static const sym *holder(sema *s, const scope *sc, str name)
{
    for (; sc; s->n_scan += sc->n_bucket + sc->n, sc = sc->up)
        for (uint32_t i = 0; i < sc->n_bucket; i++)
            for (const sym *y = sc->bucket[i]; y; y = y->next)
                if (y->live && y->v.kind == VAL_GROUP && y->v.group->names &&
                    scope_find_here(y->v.group->names, name))
                    return y;
    return NULL;
}

/* What other languages call the words none, true and false. */
static const char *foreign_word(str name)
{
    static const struct {
        const char *theirs, *ours;
    } words[] = {{"None", "none"}, {"null", "none"}, {"nil", "none"},    {"NULL", "none"},
                 {"True", "true"}, {"TRUE", "true"}, {"False", "false"}, {"FALSE", "false"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_eqz(name, words[i].theirs))
            return words[i].ours;
    return NULL;
}

/* Report an unknown name with the nearest one that is known. */
void sema_unknown(sema *s, const ast *name, weft_code code, const char *what)
{
    str_guess best = {0};
    size_t errors = diag_errors(s->dg);
    s->n_unknown++;
    if (s->import_failed && (code == W0203 || strcmp(what, "fragment") == 0))
        return;
    const scope *here = s->top ? s->top->names : s->names;
    const sym *held = s->top && s->top->n_lost > 0 ? holder(s, here, name->name) : NULL;
    if (held) { /* the loop's head was reported */
        const sym *y = scope_find_here(held->v.group->names, name->name);
        if (y->v.kind == VAL_WEIGHT)
            *y->v.weight->used = true;
        return;
    }
    weft_fail(s->dg, code, name->name_loc, "unknown %s `" STR_FMT "`", what, STR_ARG(name->name));
    if (diag_errors(s->dg) == errors || errors >= DIAG_ERRORS_MAX)
        return; /* reported before, or not shown: no need to walk all names for what was meant */
    held = holder(s, here, name->name);
    if (code == W0203) {
        int n;
        for (int i = 0; i < OP_COUNT; i++)
            str_guess_try(&best, name->name, str_of(op_row_of((op_code)i)->name));
        const builtin_row *row = builtin_rows(&n);
        GUESS_ROWS(&best, name->name, row, n);
    }
    scope inner = *here, *at = &inner;
    scope layer;
    scope_guess(at, &best, name->name);
    for (int i = 0; s->top && i < s->top->n_layer; i++) {
        const val *open = &s->top->layer[i];
        str_guess before = best;
        scope names = only(group_names(open->group, open->index));
        scope_guess(&names, &best, name->name);
        if (best.name.p != before.name.p) {
            layer = names;
            at = &layer;
        }
    }
    sym *once = s->top ? scope_find_here(s->top->names, name->name) : NULL;
    if (held)
        weft_note(s->dg,
                  "it is a weight of the group " STR_FMT ": repeat l in " STR_FMT ", or " STR_FMT
                  "[i]." STR_FMT,
                  STR_ARG(held->name), STR_ARG(held->name), STR_ARG(held->name),
                  STR_ARG(name->name));
    else if (once && !once->live)
        weft_note_at(s->dg, once->loc, "it is bound only inside a loop or one arm of an if");
    else if (foreign_word(name->name))
        weft_note(s->dg, "it is written `%s`", foreign_word(name->name));
    else if (code == W0201 && op_find(name->name))
        weft_note(s->dg, STR_FMT " is an operator: call it", STR_ARG(name->name));
    else if ((code == W0203 || strcmp(what, "fragment") == 0) && module_offering(s, name->name))
        weft_note(s->dg, "%s has it: import %s", module_offering(s, name->name),
                  module_offering(s, name->name));
    else
        note_guess(s, at, best, name->name_loc.src);
}

void sema_unknown_member(sema *s, const ast *e, const scope *sc)
{
    str_guess best = {0};
    size_t errors = diag_errors(s->dg);
    const scope names = only(sc);
    str base = ast_spelt(e->kid[MEMBER_BASE]);
    weft_fail(s->dg, W0201, e->name_loc, "unknown name `" STR_FMT "` in " STR_FMT, STR_ARG(e->name),
              STR_ARG(base));
    if (diag_errors(s->dg) > errors && errors < DIAG_ERRORS_MAX)
        scope_guess(&names, &best, e->name);
    note_guess(s, &names, best, e->loc.src);
}
