/* lower_weight.c - decide how each weight comes into memory.
 *
 * A weight stays where the checkpoint has it when its rows are contiguous and evenly pitched: slices
 * and every n-th row only change offset and pitch. All else is copied once when a session loads it. */
#include "compiler/lower_impl.h"

#include "runtime/base/intmath.h"
#include <inttypes.h>

static bool last_axis_is_contiguous(const gweight *w)
{
    const dtype_row *t = dtype_row_of(w->type);
    int64_t step = w->stride[w->rank - 1];
    return t->elems > 1 || step == (int64_t)t->bytes || w->dim[w->rank - 1] == 1;
}

/* Whether axes [from, rank - 1) of one piece are rows at one distance, which is then *out_pitch. */
static bool rows_are_even(const gweight *w, int from, int64_t row_bytes, int64_t *out_pitch)
{
    int64_t pitch = 0, n = 1; /* of the rows seen so far, from the fastest axis up */
    for (int i = w->rank - 2; i >= from; i--) {
        if (w->dim[i] == 1)
            continue;
        int64_t whole = w->stride[i]; /* what n rows take */
        if (n == 1)
            pitch = whole;
        else if (!i64_mul(pitch, n, &whole) || whole != w->stride[i])
            return false;
        n *= w->dim[i];
    }
    *out_pitch = n == 1 ? row_bytes : pitch;
    return true;
}

static bool can_map(const gweight *w, weight_form form, int64_t row_bytes, int64_t *out_pitch)
{
    if (form == FORM_F32 || w->computed || w->type == DT_MXFP4_HF || !last_axis_is_contiguous(w))
        return false;
    if (form == FORM_ROWS8 || form == FORM_TABLE8)
        return false;
    if (form == FORM_TABLE)
        return rows_are_even(w, 1, row_bytes, out_pitch);
    return w->n_piece == 1 && rows_are_even(w, 0, row_bytes, out_pitch);
}

/* The type it has once loaded. */
static dtype loaded_type(const gweight *w, weight_form form)
{
    if (form == FORM_F32 || w->computed)
        return DT_F32;
    return w->type == DT_MXFP4_HF ? DT_MXFP4 : w->type;
}

static const plan_piece *copy_pieces(arena *a, const gpiece *from, int n)
{
    plan_piece *to = ARENA_ARRAY(a, plan_piece, (size_t)n);
    for (int i = 0; i < n; i++)
        to[i] = (plan_piece){(int32_t)from[i].tensor, from[i].offset, from[i].rows};
    return to;
}

/* Add n bytes that begin at PLAN_ALIGN to a total. */
static bool add_block(size_t *total, size_t n)
{
    size_t end;
    return size_add(*total, n, &end) && size_align_up(end, PLAN_ALIGN, total);
}

/* Was a weight in the same place counted before? */
static bool is_counted(const lower *lo, const plan_weight *pw)
{
    for (size_t i = 0; i < lo->weights.n; i++)
        if (plan_weights_share(&lo->weights.at[i], pw))
            return true;
    return false;
}

static weft_status too_large(lower *lo, const gweight *w)
{
    return weft_fail(lo->dg, W0902, w->loc,
                     "weight " STR_FMT " has a size that cannot be planned for", STR_ARG(w->name));
}

weft_status lower_weight(lower *lo, const gnode *n, int id, weight_form form, int32_t *out_weight)
{
    int32_t *slot = &lo->weight_of[(size_t)id * FORM_COUNT + form];
    const gweight *w = &lo->g->weights.at[id];
    if (*slot >= 0) {
        *out_weight = *slot;
        return WEFT_OK;
    }
    if (!w->computed && !dtype_row_of(w->type)->is_weight)
        return weft_fail(lo->dg, W0901, n->loc,
                         "%s: no reference kernel reads %s, the type of " STR_FMT,
                         op_row_of(n->op)->name, dtype_row_of(w->type)->name, STR_ARG(w->name));
    if (w->rank < 1)
        return weft_fail(lo->dg, W0310, n->loc, "%s: weight " STR_FMT " has no dimensions",
                         op_row_of(n->op)->name, STR_ARG(w->name));

    plan_weight pw = {.name = arena_str(lo->a, w->name).p,
                      .stored = w->type,
                      .type = loaded_type(w, form),
                      .rank = w->rank,
                      .rows = 1,
                      .n_table = form == FORM_TABLE || form == FORM_TABLE8 ? w->dim[0] : 0,
                      .n_piece = w->n_piece};
    for (int i = 0; i < w->rank; i++) {
        pw.dim[i] = w->dim[i];
        pw.stride[i] = w->stride[i];
        if (w->dim[i] < 1 || w->dim[i] > DIM_MAX)
            return too_large(lo, w);
        if (i < w->rank - 1 && !i64_mul(pw.rows, w->dim[i], &pw.rows))
            return too_large(lo, w);
    }
    size_t row_bytes, tables;
    if (!dtype_bytes(pw.type, w->dim[w->rank - 1], &row_bytes) || row_bytes > INT64_MAX ||
        !size_mul((size_t)pw.rows, row_bytes, &pw.bytes) || pw.bytes > INT64_MAX ||
        !size_mul((size_t)pw.n_table, sizeof(void *), &tables) ||
        !add_block(&lo->p->table_bytes, tables))
        return too_large(lo, w);

    pw.mode = can_map(w, form, (int64_t)row_bytes, &pw.pitch) ? WEIGHT_MAPPED : WEIGHT_COPIED;
    if (form == FORM_ROWS8 || form == FORM_TABLE8) {
        pw.mode = WEIGHT_PACKED;
        pw.layout = LAYOUT_ROWS8;
        pw.pitch = (int64_t)row_bytes * LAYOUT_GROUP;
        if (row_bytes > INT64_MAX / LAYOUT_GROUP || !add_block(&lo->p->packed_bytes, pw.bytes))
            return too_large(lo, w);
    } else if (pw.mode == WEIGHT_COPIED) {
        pw.pitch = (int64_t)row_bytes;
        if (!add_block(&lo->p->copied_bytes, pw.bytes))
            return too_large(lo, w);
    }
    if (w->computed) {
        float *values = ARENA_ARRAY(lo->a, float, pw.bytes / sizeof(float));
        memcpy(values, w->computed, pw.bytes);
        pw.computed = values;
        pw.n_piece = 0;
    } else {
        pw.piece = copy_pieces(lo->a, w->piece, w->n_piece);
        if (w->scales)
            pw.scales = copy_pieces(lo->a, w->scales, w->n_piece);
    }
    if (pw.mode == WEIGHT_MAPPED && !is_counted(lo, &pw) &&
        !size_add(lo->p->mapped_bytes, pw.bytes, &lo->p->mapped_bytes))
        return too_large(lo, w);
    *slot = *out_weight = (int32_t)lo->weights.n;
    VEC_PUSH(&lo->weights, pw);
    return WEFT_OK;
}
