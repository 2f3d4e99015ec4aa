/* move_ref.c - the ops that only move numbers: split, concat, take_rows, at_pos. Values keep their
 * bits, NaNs included. out overlaps no input. */
#include "kernels/kernel_decls.h"

#include <string.h>

static void copy_floats(float *dst, const float *src, int64_t n)
{
    memcpy(dst, src, (size_t)n * sizeof *dst);
}

/* One part of the last axis; a split into p parts is p steps. */
void k_split_ref(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    const float *x = k->in[0]; /* [rows, vectors, x_width] */
    float *out = k->out[0];    /* [rows, vectors, out_width] */
    int64_t vectors = k->size.split.vectors, x_width = k->size.split.width,
            first = k->size.split.first, out_width = k->size.split.part;
    (void)t;
    for (int64_t v = begin * vectors; v < end * vectors; v++)
        copy_floats(out + v * out_width, x + v * x_width + first, out_width);
}

void k_concat_ref(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    const float *x = k->in[0]; /* [rows, vectors, x_width] */
    const float *y = k->in[1]; /* [rows, vectors, y_width] */
    float *out = k->out[0];    /* [rows, vectors, x_width + y_width] */
    int64_t vectors = k->size.concat.vectors, x_width = k->size.concat.x_width,
            y_width = k->size.concat.y_width;
    (void)t;
    for (int64_t v = begin * vectors; v < end * vectors; v++) {
        copy_floats(out + v * (x_width + y_width), x + v * x_width, x_width);
        copy_floats(out + v * (x_width + y_width) + x_width, y + v * y_width, y_width);
    }
}

void k_take_rows_ref(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    const float *x = k->in[0];                             /* [n_tok, width] */
    const int32_t *rows = kbatch_at(k->batch, KBATCH_OUT); /* [n_out] */
    float *out = k->out[0];                                /* [n_out, width] */
    int64_t width = k->size.take_rows.width;
    (void)t;
    for (int64_t row = begin; row < end; row++) {
        WEFT_ASSERT(rows[row] >= 0 && rows[row] < k->batch->n_tok);
        copy_floats(out + row * width, x + rows[row] * width, width);
    }
}

/* v at each row's position, which is not negative; beyond the end of v, its last element. */
void k_at_pos_ref(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    const float *v = k->in[0];     /* [n] */
    const int32_t *pos = k->in[1]; /* [rows] */
    float *out = k->out[0];        /* [rows] */
    int64_t n = k->size.at_pos.positions;
    (void)t;
    for (int64_t row = begin; row < end; row++) {
        WEFT_ASSERT(pos[row] >= 0 && n > 0);
        out[row] = v[pos[row] < n ? pos[row] : n - 1];
    }
}
