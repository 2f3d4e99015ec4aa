/* linear_cuda.cuh - x times w transposed, plus a bias: one matrix for all rows (linear), or one for each head (head_linear).
 * out overlaps no input. */
#ifndef WEFT_KERNELS_CUDA_LINEAR_CUDA_CUH
#define WEFT_KERNELS_CUDA_LINEAR_CUDA_CUH

#include "kernels/cuda/dot_cuda.cuh"

static __device__ inline dot_weights linear_weights(const kargs *k, const kpart &part)
{
    return dot_weights{
        (const uint8_t *)k->in[1], k->pitch[1], (const float *)k->in[2], part.col, part.col_end,
        k->size.linear.in,         k->type[1]};
}

/* Rows [row, row_end) of activations, `vectors` of which make a row of the call; of each the one that is `vector`. */
static __device__ void few_rows_run(const kargs *k, const dot_weights &j, int64_t row,
                                    int64_t row_end, int64_t vectors, int64_t vector)
{
    for (; row < row_end; row += FEW_X) {
        few_rows r;
        r.n = (int)least(row_end - row, FEW_X);
        for (int i = 0; i < r.n; i++) {
            r.x[i] = row_in(k, 0, (row + i) * vectors + vector);
            r.out[i] = row_out(k, 0, (row + i) * vectors + vector);
        }
        few_dots_any(j, r);
    }
}

static __device__ ONE_COPY void k_linear_cuda(const kargs *k, const kthread *, int64_t begin,
                                              int64_t end)
{
    const kpart part = part_of(k, k->size.linear.out, begin, end);
    few_rows_run(k, linear_weights(k, part), part.row, part.row_end, 1, 0);
}

static __device__ ONE_COPY void k_linear_many_cuda(const kargs *k, const kthread *t, int64_t begin,
                                                   int64_t end)
{
    const kpart part = part_of(k, k->size.linear.out, begin, end);
    many_rows r = {(const char *)row_in(k, 0, part.row),
                   (char *)row_out(k, 0, part.row),
                   k->pitch[0],
                   k->out_pitch[0],
                   NULL,
                   part.row_end - part.row,
                   1};
    many_dots(linear_weights(k, part), r, (float *)t->scratch);
}

/* Columns of a tile are whole heads; without tiles a unit is a head of a row. */
static __device__ ONE_COPY void k_head_linear_cuda(const kargs *k, const kthread *, int64_t begin,
                                                   int64_t end)
{
    int64_t heads = k->size.head_linear.heads, m = k->size.head_linear.out;
    const uint8_t *const *w = (const uint8_t *const *)k->in[1]; /* [heads] addresses of [m, n] */
    kpart part = kpart_of(k, heads * m, begin, end);
    int64_t units = k->tile ? part.col_end / m - part.col / m : end - begin;
    for (int64_t i = 0; i < units; i++) {
        int64_t head = k->tile ? part.col / m + i : (begin + i) % heads;
        int64_t row = k->tile ? part.row : (begin + i) / heads;
        int64_t row_end = k->tile ? part.row_end : row + 1;
        const float *bias = k->in[2] ? row_in(k, 2, head) : NULL;
        dot_weights j = {w[head], k->pitch[1], bias, 0, m, k->size.head_linear.in, k->type[1]};
        few_rows_run(k, j, row, row_end, heads, head);
    }
}

#endif
