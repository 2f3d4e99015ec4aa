/* append_c.c - write a call's rows into the pages of a state cell, in the forms of its first tier, rounded to
 * nearest, ties to even.
 *
 * A tile is whole heads. Rows go to different places, in any order. */
#include "kernels/kernel_decls.h"

#include <string.h>
#include "kernels/c/half.h"
#include "kernels/c/vec.h"
#include "kernels/ref/cell_place.h"

static void store_bf16(const float *from, uint16_t *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = half_to_bf16(from[i]);
}

static void store(dtype type, const float *from, char *to, int64_t n)
{
    if (type == DT_F16)
        halves_to_f16(from, (uint16_t *)(void *)to, n);
    else if (type == DT_BF16)
        store_bf16(from, (uint16_t *)(void *)to, n);
    else
        memcpy(to, from, (size_t)n * sizeof *from);
}

typedef char *cell_place(const kcell *c, int tier, const int32_t *pages, int64_t pos, int64_t head);

/* The heads of one row that begin in columns [col, col_end), each `width` wide. */
static void append_row(const kargs *k, int input, int64_t row, int64_t width, int64_t col,
                       int64_t col_end, cell_place *place)
{
    const float *x = row_in(k, input, row);
    const int32_t *pages = kcell_pages(k->cell, 0, k->batch, row);
    const kcell_tier *t = &k->cell->tier[0];
    dtype type = kform_dtype(input ? t->value : t->key);
    int64_t pos = kbatch_at(k->batch, KBATCH_POS)[row];
    for (; col < col_end; col += width)
        store(type, x + col, place(k->cell, 0, pages, pos, col / width), width);
}

void k_append_c(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    const kcell *c = k->cell;
    int64_t width = k->in[0] ? c->k : c->v; /* of a head of the columns that units count */
    kpart p = kpart_of(k, c->heads * width, begin, end);
    (void)t;
    for (int64_t row = p.row; row < p.row_end; row++) {
        if (k->in[0])
            append_row(k, 0, row, c->k, p.col, p.col_end, cell_key);
        if (k->in[1]) /* the same heads */
            append_row(k, 1, row, c->v, p.col / width * c->v, p.col_end / width * c->v, cell_value);
    }
}
