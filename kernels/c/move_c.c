/* move_c.c - the ops that only move numbers: split, concat, take_rows, at_pos. Values keep their
 * bits. out overlaps no input. */
#include "kernels/kernel_decls.h"

#include <string.h>
#include "kernels/c/vec.h"

/* n vectors of `width` floats; in either place they follow on each other by a step of its own. */
static void copy_vectors(float *to, int64_t to_step, const float *from, int64_t from_step,
                         int64_t width, int64_t n)
{
    for (int64_t v = 0; v < n; v++)
        memcpy(to + v * to_step, from + v * from_step, (size_t)width * sizeof *to);
}

/* One part of the last axis; a split into p parts is p steps. */
void k_split_c(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    int64_t vectors = k->size.split.vectors, x_width = k->size.split.width,
            first = k->size.split.first, width = k->size.split.part;
    (void)t;
    for (int64_t row = begin; row < end; row++)
        copy_vectors(row_out(k, 0, row), width, row_in(k, 0, row) + first, x_width, width, vectors);
}

void k_concat_c(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    int64_t vectors = k->size.concat.vectors, x_width = k->size.concat.x_width,
            y_width = k->size.concat.y_width, width = x_width + y_width;
    (void)t;
    for (int64_t row = begin; row < end; row++) {
        float *out = row_out(k, 0, row); /* [vectors, width] */
        copy_vectors(out, width, row_in(k, 0, row), x_width, x_width, vectors);
        copy_vectors(out + x_width, width, row_in(k, 1, row), y_width, y_width, vectors);
    }
}

void k_take_rows_c(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    const int32_t *rows = kbatch_at(k->batch, KBATCH_OUT); /* [n_out] */
    (void)t;
    for (int64_t row = begin; row < end; row++)
        memcpy(row_out(k, 0, row), row_in(k, 0, rows[row]),
               (size_t)k->size.take_rows.width * sizeof(float));
}

/* v at each row's position; beyond the end of v, its last element. */
void k_at_pos_c(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    const float *v = k->in[0];     /* [n] */
    const int32_t *pos = k->in[1]; /* [rows] */
    int64_t n = k->size.at_pos.positions;
    (void)t;
    for (int64_t row = begin; row < end; row++)
        *row_out(k, 0, row) = v[pos[row] < n ? pos[row] : n - 1];
}
