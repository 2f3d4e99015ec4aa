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

static bool can_map(const gweight *w, weight_read read, int64_t row_bytes, int64_t *out_pitch)
{
    if (read == READ_F32 || w->computed || w->type == DT_MXFP4_HF || !last_axis_is_contiguous(w))
        return false;
    if (read == READ_TABLE)
        return rows_are_even(w, 1, row_bytes, out_pitch);
    return w->n_piece == 1 && rows_are_even(w, 0, row_bytes, out_pitch);
}

/* The type it has once loaded. */
static dtype loaded_type(const gweight *w, weight_read read)
{
    if (read == READ_F32 || w->computed)
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

static weft_status check_weight(lower *lo, const gnode *n, const gweight *w)
{
    if (!w->computed && !dtype_row_of(w->type)->is_weight)
        return weft_fail(lo->dg, W0901, n->loc,
                         "%s: no reference kernel reads %s, the type of " STR_FMT,
                         op_row_of(n->op)->name, dtype_row_of(w->type)->name, STR_ARG(w->name));
    if (w->rank < 1)
        return weft_fail(lo->dg, W0310, n->loc, "%s: weight " STR_FMT " has no dimensions",
                         op_row_of(n->op)->name, STR_ARG(w->name));
    return WEFT_OK;
}

/* Do rows of a mapped weight begin where kernels read vectors of floats, if the first does? */
static bool rows_are_vectors(const gweight *w, int64_t row_bytes, int64_t pitch, int64_t vector)
{
    const dtype_row *t = dtype_row_of(w->type);
    if (vector == 0 || t->elems > 1 || t->bytes != 2 || row_bytes % vector != 0)
        return true;
    return pitch % vector == 0 && (w->rank < 2 || w->stride[0] % vector == 0);
}

/* Sizes, mode and pitch; false if they do not fit. */
static bool size_weight(const gweight *w, weight_read read, int64_t vector, plan_weight *pw)
{
    size_t row_bytes;
    bool interleaved = read == READ_ROWS8 || read == READ_TABLE8;
    for (int i = 0; i < w->rank; i++) {
        pw->dim[i] = w->dim[i];
        pw->stride[i] = w->stride[i];
        if (w->dim[i] < 1 || w->dim[i] > DIM_MAX)
            return false;
        if (i < w->rank - 1 && !i64_mul(pw->rows, w->dim[i], &pw->rows))
            return false;
    }
    if (!dtype_bytes(pw->type, w->dim[w->rank - 1], &row_bytes) ||
        row_bytes > INT64_MAX / LAYOUT_GROUP ||
        !size_mul((size_t)pw->rows, row_bytes, &pw->bytes) || pw->bytes > INT64_MAX)
        return false;
    pw->pitch = (int64_t)row_bytes * (interleaved ? LAYOUT_GROUP : 1);
    pw->layout = interleaved ? LAYOUT_ROWS8 : LAYOUT_STORED;
    pw->mode = interleaved                                        ? WEIGHT_INTERLEAVED
               : can_map(w, read, (int64_t)row_bytes, &pw->pitch) ? WEIGHT_MAPPED
                                                                  : WEIGHT_COPIED;
    if (pw->mode == WEIGHT_MAPPED && !rows_are_vectors(w, (int64_t)row_bytes, pw->pitch, vector)) {
        pw->mode = WEIGHT_COPIED;
        pw->pitch = (int64_t)row_bytes;
    }
    return true;
}

/* Add it to the totals of the plan; false if they do not fit. */
static bool count_weight(lower *lo, const plan_weight *pw)
{
    plan *p = lo->p;
    size_t tables;
    if (!size_mul((size_t)pw->n_table, sizeof(void *), &tables) ||
        !add_block(&p->table_bytes, tables))
        return false;
    if (pw->mode != WEIGHT_MAPPED)
        return add_block(pw->mode == WEIGHT_INTERLEAVED ? &p->interleaved_bytes : &p->copied_bytes,
                         pw->bytes);
    return is_counted(lo, pw) || size_add(p->mapped_bytes, pw->bytes, &p->mapped_bytes);
}

static void copy_source(lower *lo, const gweight *w, plan_weight *pw)
{
    if (w->computed) {
        float *values = ARENA_ARRAY(lo->a, float, pw->bytes / sizeof(float));
        memcpy(values, w->computed, pw->bytes);
        pw->computed = values;
        return;
    }
    pw->n_piece = w->n_piece;
    pw->piece = copy_pieces(lo->a, w->piece, w->n_piece);
    if (w->scales)
        pw->scales = copy_pieces(lo->a, w->scales, w->n_piece);
}

/* The number in the plan of another weight that is made of the same bytes and read so, or -1: a table that is looked up and multiplied
 * with has two names. */
static int32_t same_bytes(const lower *lo, int id, weight_read read)
{
    const gweight *at = lo->g->weights.at;
    for (size_t i = 0; i < lo->g->weights.n; i++) {
        int32_t number = lo->weight_of[i * READ_COUNT + read];
        if (number >= 0 && graph_weights_share(&at[i], &at[id]))
            return number;
    }
    return -1;
}

weft_status lower_weight(lower *lo, const gnode *n, int id, weight_read read, int32_t *out_weight)
{
    int32_t *slot = &lo->weight_of[(size_t)id * READ_COUNT + read];
    if (*slot < 0 && read == READ_ROWS8) /* others are in place, or too small to matter */
        *slot = same_bytes(lo, id, read);
    const gweight *w = &lo->g->weights.at[id];
    if (*slot < 0) {
        WEFT_TRY(check_weight(lo, n, w));
        plan_weight pw = {.name = arena_str(lo->a, w->name).p,
                          .stored = w->type,
                          .type = loaded_type(w, read),
                          .rank = w->rank,
                          .rows = 1,
                          .n_table = read == READ_TABLE || read == READ_TABLE8 ? w->dim[0] : 0};
        bool fits = size_weight(w, read, lo->t->be->vector_bytes, &pw);
        if (fits)
            copy_source(lo, w, &pw);
        if (!fits || !count_weight(lo, &pw))
            return weft_fail(lo->dg, W0902, w->loc,
                             "weight " STR_FMT " has a size that cannot be planned for",
                             STR_ARG(w->name));
        *slot = (int32_t)lo->weights.n;
        VEC_PUSH(&lo->weights, pw);
    }
    *out_weight = *slot;
    return WEFT_OK;
}
