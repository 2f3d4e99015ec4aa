/* pass_slice.c - a weight that is part of another: the same bytes, seen from a later row on. */
#include "compiler/pass_impl.h"

#include "runtime/base/intmath.h"
#include <inttypes.h>

/* The axis must advance by bytes: not the one along which a quantised type has its blocks. Axis 0 is in
 * pieces, of which the slice takes what it needs; a further axis is in each of them alike. */
bool pass_can_slice(const gweight *w, int axis)
{
    bool blocks = dtype_row_of(w->type)->elems > 1 && axis == w->rank - 1;
    if (w->scales || blocks || axis >= w->rank || (w->computed && axis > 0))
        return false;
    bool one_each = axis == 0; /* pieces of one row are never cut */
    for (int i = 0; i < w->n_piece; i++) {
        int64_t end;
        one_each = one_each && w->piece[i].rows <= 1;
        if (!i64_mul(w->dim[axis], w->stride[axis], &end) ||
            !i64_add(w->piece[i].offset, end, &end))
            return false;
    }
    return w->computed || (w->n_piece > 0 && (w->stride[axis] > 0 || one_each));
}

/* Rows begin .. end - 1 of all pieces together. */
static void slice_pieces(graph *g, gweight *w, int64_t begin, int64_t end)
{
    gpiece *kept = ARENA_ARRAY(g->a, gpiece, (size_t)w->n_piece + 1);
    int64_t at = 0;
    int n = 0;
    for (int i = 0; i < w->n_piece; i++) {
        gpiece p = w->piece[i];
        int64_t lo = begin > at ? begin - at : 0, hi = end - at < p.rows ? end - at : p.rows;
        at += p.rows;
        if (lo >= hi)
            continue;
        p.offset += lo * w->stride[0];
        p.rows = hi - lo;
        kept[n++] = p;
    }
    w->piece = kept;
    w->n_piece = n;
}

static bool name_taken(const graph *g, str name)
{
    for (size_t i = 0; i < g->weights.n; i++)
        if (str_eq(g->weights.at[i].name, name))
            return true;
    return false;
}

int pass_slice_weight(graph *g, int weight, int axis, int64_t begin, int64_t end)
{
    gweight w = g->weights.at[weight];
    int64_t inner = 1;
    for (int i = 1; i < w.rank && w.computed; i++)
        inner *= w.dim[i];
    w.name = arena_printf(g->a, STR_FMT "[%s%" PRId64 ":%" PRId64 "]", STR_ARG(w.name),
                          axis ? ":, " : "", begin, end);
    while (name_taken(g, w.name))
        w.name = arena_printf(g->a, STR_FMT "~", STR_ARG(w.name));
    if (axis == 0) {
        slice_pieces(g, &w, begin, end);
        w.computed = w.computed ? w.computed + begin * inner : NULL;
    } else {
        gpiece *kept = ARENA_ARRAY(g->a, gpiece, (size_t)w.n_piece);
        for (int i = 0; i < w.n_piece; i++) {
            kept[i] = w.piece[i];
            kept[i].offset += begin * w.stride[axis];
        }
        w.piece = kept;
    }
    w.dim[axis] = end - begin;
    if (w.lora) {
        w.whole = w.whole.n > 0 ? w.whole : g->weights.at[weight].name;
        w.whole_row += begin;
    }
    VEC_PUSH(&g->weights, w);
    return (int)g->weights.n - 1;
}
