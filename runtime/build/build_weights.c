/* build_weights.c - weights of plans become tensors of an image. */
#include "runtime/build/build_weights.h"

#include "runtime/base/mem.h"
#include "runtime/exec/weight_rows.h"

/* ---- which are the same ---- */

static bool same_pieces(const plan_piece *x, const plan_piece *y, int32_t n)
{
    if (!x || !y)
        return x == y;
    for (int32_t i = 0; i < n; i++)
        if (x[i].tensor != y[i].tensor || x[i].offset != y[i].offset || x[i].rows != y[i].rows)
            return false;
    return true;
}

/* Do two weights have the same bytes, once made? */
static bool same_made(const plan_weight *x, const plan_weight *y)
{
    if (x->layout != y->layout || x->stored != y->stored || x->type != y->type ||
        x->rank != y->rank || x->bytes != y->bytes || x->n_piece != y->n_piece ||
        !x->computed != !y->computed)
        return false;
    for (int i = 0; i < x->rank; i++)
        if (x->dim[i] != y->dim[i] || x->stride[i] != y->stride[i])
            return false;
    return x->computed ? memcmp(x->computed, y->computed, x->bytes) == 0
                       : same_pieces(x->piece, y->piece, x->n_piece) &&
                             same_pieces(x->scales, y->scales, x->n_piece);
}

static bool same_stored(const build_tensor *t, const plan_weight *w, int piece, size_t bytes)
{
    const plan_piece *x = &t->w->piece[t->piece], *y = &w->piece[piece];
    return x->tensor == y->tensor && x->offset == y->offset && t->row.bytes == bytes &&
           t->row.type == w->type;
}

/* The tensor of a weight, or of one piece of it, which has so many bytes. */
static int32_t tensor_of(build_weights *b, const plan_weight *w, int piece, size_t bytes)
{
    for (size_t i = 0; i < b->list.n; i++) {
        const build_tensor *t = &b->list.at[i];
        if ((t->piece < 0) == (piece < 0) &&
            (piece < 0 ? same_made(t->w, w) : same_stored(t, w, piece, bytes)))
            return (int32_t)i;
    }
    build_tensor t = {.w = w,
                      .piece = piece,
                      .row = {.name = str_of(w->name),
                              .type = w->type,
                              .offset = image_tensor_place(b->bytes),
                              .bytes = bytes}};
    b->bytes = image_tensor_place(t.row.offset + bytes);
    VEC_PUSH(&b->list, t);
    return (int32_t)b->list.n - 1;
}

/* ---- plans ---- */

/* One that is read in place keeps the gaps between its rows: steps know their distance. */
static weft_status take_stored(weft_diag *dg, build_weights *b, const plan_weight *w,
                               plan_weight *to)
{
    plan_piece *piece = ARENA_ARRAY(b->a, plan_piece, (size_t)w->n_piece);
    WEFT_TRY(weight_check(dg, w));
    for (int i = 0; i < w->n_piece; i++) {
        weight_piece v;
        WEFT_TRY(weight_find(dg, w, i, b->src, &v));
        piece[i] = (plan_piece){.tensor = tensor_of(b, w, i, v.bytes), .rows = w->piece[i].rows};
    }
    to->piece = piece;
    return WEFT_OK;
}

static weft_status take_made(weft_diag *dg, build_weights *b, const plan_weight *w, plan_weight *to)
{
    size_t row;
    const dtype_row *type = dtype_row_of(w->type);
    plan_piece *piece = ARENA_NEW(b->a, plan_piece);
    if (!dtype_bytes(w->type, w->dim[w->rank - 1], &row))
        return weight_misfit(dg, w, "its rows are not whole");
    *piece = (plan_piece){.tensor = tensor_of(b, w, -1, w->bytes), .rows = w->dim[0]};
    to->mode = WEIGHT_MAPPED;
    to->stored = w->type;
    to->computed = NULL;
    to->scales = NULL;
    to->n_piece = 1;
    to->piece = piece;
    to->pitch = (int64_t)row * (w->layout == LAYOUT_STORED ? 1 : LAYOUT_GROUP);
    to->stride[w->rank - 1] = type->elems > 1 ? 0 : (int64_t)type->bytes;
    int64_t stride = (int64_t)row;
    for (int axis = w->rank - 2; axis >= 0; axis--) {
        to->stride[axis] = stride;
        stride *= w->dim[axis];
    }
    return WEFT_OK;
}

static size_t mapped_bytes(const plan_weight *list, int32_t n)
{
    size_t bytes = 0;
    for (int32_t i = 0; i < n; i++) {
        bool again = false;
        for (int32_t k = 0; k < i && !again; k++)
            again = plan_weights_share(&list[k], &list[i]);
        bytes += again ? 0 : list[i].bytes;
    }
    return bytes;
}

weft_status build_weights_add(weft_diag *dg, build_weights *b, const plan *p, const plan **out_p)
{
    plan *to = ARENA_NEW(b->a, plan);
    plan_weight *list = ARENA_ARRAY(b->a, plan_weight, (size_t)p->n_weight + 1);
    *to = *p;
    for (int32_t i = 0; i < p->n_weight; i++) {
        const plan_weight *w = &p->weight[i];
        list[i] = *w;
        list[i].align = PLAN_ALIGN;
        if (w->mode == WEIGHT_MAPPED)
            WEFT_TRY(take_stored(dg, b, w, &list[i]));
        else
            WEFT_TRY(take_made(dg, b, w, &list[i]));
    }
    to->weight = list;
    to->copied_bytes = to->interleaved_bytes = 0;
    to->mapped_bytes = mapped_bytes(list, p->n_weight);
    *out_p = to;
    return WEFT_OK;
}

void build_weights_cut(build_weights *b, size_t n, uint64_t bytes)
{
    b->list.n = n;
    b->bytes = bytes;
}

/* ---- bytes ---- */

weft_status build_weights_make(weft_diag *dg, const build_weights *b, size_t i, char *to)
{
    const build_tensor *t = &b->list.at[i];
    const plan_weight *w = t->w;
    weight_piece v;
    if (t->piece >= 0) {
        WEFT_TRY(weight_find(dg, w, t->piece, b->src, &v));
        memcpy(to, v.data, v.bytes);
        return WEFT_OK;
    }
    if (w->computed) {
        memcpy(to, w->computed, w->bytes);
        return WEFT_OK;
    }
    WEFT_TRY(weight_check(dg, w));
    for (int k = 0; k < w->n_piece; k++) {
        WEFT_TRY(weight_find(dg, w, k, b->src, &v));
        char *gather = mem_alloc(v.row_bytes + 1);
        weight_make(&v, 0, v.rows, to, gather);
        mem_free(gather);
        to += (size_t)v.rows * v.row_bytes;
    }
    return WEFT_OK;
}

void build_weights_free(build_weights *b)
{
    VEC_FREE(&b->list);
}
