/* sema_text.c - values, sizes and types as messages show them, and notes on where things stand. */
#include "dsl/sema.h"

#include <math.h>

static const char *keep_text(sema *s, strbuf *b)
{
    str text = arena_str(s->a, strbuf_view(b));
    s->n_scan += text.n;
    strbuf_free(b);
    return text.p;
}

const char *number_text(sema *s, double x)
{
    if (isnan(x)) /* some libraries print its sign */
        return "nan";
    return arena_printf(s->a, fabs(x) < 1e15 && floor(x) == x ? "%.0f" : "%.9g", x).p;
}

const char *poly_text(sema *s, const poly *p)
{
    strbuf b = {0};
    poly_print(p, &b);
    return keep_text(s, &b);
}

const char *type_text(sema *s, const tensor_type *t)
{
    strbuf b = {0};
    strbuf_add(&b, "%s[", t->ids ? "i32" : "");
    for (int i = 0; i < t->rank; i++) {
        strbuf_add(&b, i ? ", " : "");
        poly_print(sema_narrowed(s, t->dim[i]), &b);
    }
    strbuf_add(&b, "]");
    return keep_text(s, &b);
}

void sema_note_weight(sema *s, const weight *w)
{
    if (!w)
        return;
    source_place at = source_find(w->decl->loc.src, w->decl->name_loc.begin);
    str shape = ast_spelt(w->decl->kid[WEIGHT_SHAPE]);
    weft_note(s->dg, STR_FMT " is declared (" STR_FMT ") at line %u", STR_ARG(w->name),
              STR_ARG(shape), (unsigned)at.line);
}

void sema_note_name(sema *s, const ast *e, weft_loc near)
{
    val v;
    const sym *y = e && e->kind == AST_NAME ? sema_find(s, e->name, &v) : NULL;
    if (!y || !y->loc.src || y->loc.src != near.src)
        return;
    uint32_t line = source_find(y->loc.src, y->loc.begin).line;
    if (v.kind == VAL_WEIGHT && y->class == SYM_WEIGHT)
        sema_note_weight(s, v.weight);
    else if (line != source_find(near.src, near.begin).line)
        weft_note(s->dg, STR_FMT " is %s at line %u", STR_ARG(y->name),
                  y->class == SYM_VALUE ? "bound" : "declared", (unsigned)line);
}

const char *words_text(sema *s, const char *words)
{
    strbuf b = {0};
    for (const char *p = words; *p; p++)
        strbuf_put(&b, *p == ' ' ? STR(", ") : (str){p, 1});
    return keep_text(s, &b);
}

const char *val_text(sema *s, val v)
{
    static const char *const name[] = {
        [VAL_UNKNOWN] = "unknown",      [VAL_NONE] = "none",
        [VAL_BOOL] = "a bool",          [VAL_INT] = "an integer",
        [VAL_FLOAT] = "a float",        [VAL_STR] = "a string",
        [VAL_LIST] = "a list",          [VAL_VEC] = "a constant vector",
        [VAL_TABLE] = "a rope table",   [VAL_SERIES] = "one value per layer",
        [VAL_TENSOR] = "a tensor",      [VAL_WEIGHT] = "a weight",
        [VAL_GROUP] = "a group",        [VAL_CELL] = "a state cell",
        [VAL_SCOPE] = "a set of names", [VAL_BLOCK] = "a block",
        [VAL_WORD] = "a word",
    };
    if (v.kind == VAL_TENSOR)
        return arena_printf(s->a, "a tensor %s", type_text(s, v.tensor)).p;
    if (v.kind == VAL_VEC && v.size)
        return arena_printf(s->a, "a vector of %s", poly_text(s, v.size)).p;
    return name[v.kind];
}

/* The value itself, where it is short enough to show. */
const char *val_shown(sema *s, val v)
{
    enum { TEXT_MAX = 40 };
    int64_t i;
    if (v.kind == VAL_UNKNOWN)
        return "something else";
    if (v.kind == VAL_INT && poly_value(v.size, &i))
        return arena_printf(s->a, "%lld", (long long)i).p;
    if (v.kind == VAL_FLOAT && v.known)
        return arena_printf(s->a, "%.9g", v.number).p;
    if (v.kind == VAL_BOOL && sema_known(s, v.truth) >= 0)
        return sema_known(s, v.truth) ? "true" : "false";
    if (v.kind == VAL_STR && v.known && v.text.n <= TEXT_MAX)
        return arena_printf(s->a, "\"" STR_FMT "\"", STR_ARG(v.text)).p;
    if (v.kind == VAL_LIST && v.known)
        return arena_printf(s->a, "a list of %u", (unsigned)v.n).p;
    return val_text(s, v);
}
