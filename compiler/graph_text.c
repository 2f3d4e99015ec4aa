/* graph_text.c - the small parts of the text form: names, numbers, types, operands. */
#include "compiler/graph_impl.h"

#include "runtime/base/utf8.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char *const gtext_symbols[3] = {"T", "R", "S"};
const char *const gtext_pairs[3] = {"", "half", "interleaved"};
const char *const gtext_layouts[4] = {"", "paged", "contiguous", "ring"};

/* ---- names, strings, numbers ---- */

bool gtext_is_word(str s)
{
    if (s.n == 0 || !gtext_is_letter(s.p[0]))
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!gtext_is_letter(s.p[i]) && !gtext_is_digit(s.p[i]))
            return false;
    return true;
}

/* Words, dots and [numbers]. */
static bool is_bare(str s)
{
    /* These stand for themselves among operands. */
    if (str_eqz(s, "_") || str_eqz(s, "nan") || str_eqz(s, "inf"))
        return false;
    if (s.n == 0 || !gtext_is_letter(s.p[0]))
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (gtext_is_letter(s.p[i]) || gtext_is_digit(s.p[i]) || s.p[i] == '.')
            continue;
        size_t from = i;
        if (s.p[i++] != '[')
            return false;
        while (i < s.n && gtext_is_digit(s.p[i]))
            i++;
        if (i >= s.n || s.p[i] != ']' || i == from + 1)
            return false;
    }
    return true;
}

void gtext_string(strbuf *out, str s)
{
    strbuf_putc(out, '"');
    for (size_t i = 0; i < s.n;) {
        uint32_t cp;
        size_t n = utf8_decode((str){s.p + i, s.n - i}, &cp);
        if (n == 0 || utf8_is_control(cp)) {
            strbuf_add(out, "\\x%02x", (unsigned)(unsigned char)s.p[i]);
            i++;
            continue;
        }
        if (cp == '"' || cp == '\\')
            strbuf_putc(out, '\\');
        strbuf_put(out, (str){s.p + i, n});
        i += n;
    }
    strbuf_putc(out, '"');
}

void gtext_name(strbuf *out, str name)
{
    if (is_bare(name))
        strbuf_put(out, name);
    else
        gtext_string(out, name);
}

void gtext_number(strbuf *out, double x)
{
    if (isnan(x)) {
        strbuf_put(out, STR("nan"));
        return;
    }
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            break;
    }
    strbuf_put(out, str_of(text));
}

void gtext_float(strbuf *out, float x)
{
    char text[40];
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)x);
        if (strtof(text, NULL) == x)
            break;
    }
    strbuf_put(out, isnan(x) ? STR("nan") : str_of(text));
}

/* ---- types and operands ---- */

void gtext_dims(strbuf *out, int rank, const int64_t *dim)
{
    strbuf_putc(out, '[');
    for (int i = 0; i < rank; i++) {
        if (i > 0)
            strbuf_put(out, STR(", "));
        if (dim[i] < 0 && dim[i] >= GRAPH_S)
            strbuf_put(out, str_of(gtext_symbols[GRAPH_T - dim[i]]));
        else
            strbuf_add(out, "%" PRId64, dim[i]);
    }
    strbuf_putc(out, ']');
}

static void put_cell(strbuf *out, const graph *g, int cell)
{
    strbuf_putc(out, '$');
    if (cell >= 0 && (size_t)cell < g->cells.n)
        gtext_name(out, g->cells.at[cell].name);
}

void gtext_type(strbuf *out, const graph *g, const gtype *t)
{
    if (t->cell >= 0) {
        put_cell(out, g, t->cell);
        return;
    }
    strbuf_put(out, t->ids ? STR("i32") : STR("f"));
    gtext_dims(out, t->rank, t->dim);
    if (t->pairs == 1 || t->pairs == 2)
        strbuf_add(out, " %s", gtext_pairs[t->pairs]);
}

void gtext_ref(strbuf *out, const graph *g, gref r)
{
    size_t n = graph_ref_count(g, r.kind);
    bool there = r.id >= 0 && (size_t)r.id < n;
    switch (r.kind) {
    case REF_NONE:
        strbuf_putc(out, '_');
        break;
    case REF_VALUE:
        strbuf_add(out, "%%%d", r.id);
        break;
    case REF_WEIGHT:
        strbuf_putc(out, '@');
        if (there)
            gtext_name(out, g->weights.at[r.id].name);
        break;
    case REF_CONST:
        strbuf_add(out, "#%d", r.id);
        break;
    case REF_CELL:
        put_cell(out, g, r.id);
        break;
    case REF_INPUT:
        if (there)
            gtext_name(out, g->inputs.at[r.id].name);
        break;
    case REF_NUMBER:
        gtext_number(out, r.number);
        break;
    }
}

void gtext_attr(strbuf *out, const graph *g, const attr_row *row, const gattr *a)
{
    strbuf_add(out, "%s = ", row->name);
    switch (a->kind) {
    case GATTR_NONE:
        break;
    case GATTR_INT:
        strbuf_add(out, "%" PRId64, a->integer);
        break;
    case GATTR_FLOAT:
        gtext_number(out, a->number);
        break;
    case GATTR_BOOL:
        strbuf_put(out, a->integer ? STR("true") : STR("false"));
        break;
    case GATTR_WORD:
        strbuf_put(out, a->word);
        break;
    case GATTR_REF:
        gtext_ref(out, g, a->ref);
        break;
    }
}

void gtext_marks(strbuf *out, const gnode *n)
{
    if (n->map > 0)
        strbuf_add(out, " map %d", n->map);
    if (n->chain > 0)
        strbuf_add(out, " %s %d", n->recompute ? "recompute" : "chain", n->chain);
    if (n->values > 0)
        strbuf_add(out, " values %d", n->values);
}
