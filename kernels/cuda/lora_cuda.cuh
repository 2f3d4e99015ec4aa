/* lora_cuda.cuh - products with the low-rank matrices of adapters; lora.h says how they lie, lora_rows.h what a unit is. */
#ifndef WEFT_KERNELS_CUDA_LORA_CUDA_CUH
#define WEFT_KERNELS_CUDA_LORA_CUDA_CUH

#include "kernels/cuda/block_cuda.cuh"
#include "kernels/lora_rows.h"

/* ---- A: scale * A x of each slot of a row's mix ---- */

/* The slot that group g of the call belongs to, and its first row of A. */
static __device__ int32_t group_slot(const kargs *k, int64_t g, int64_t *out_first)
{
    for (const int32_t *used = klora_used_of(k->lora);; used++) {
        int64_t n = (lora_rank_of(k, *used) + LORA_RANKS - 1) / LORA_RANKS;
        if (g < n) {
            *out_first = g * LORA_RANKS;
            return *used;
        }
        g -= n;
    }
}

/* Row r of A times vector v of a row, by a warp; of an embedding the number that its id has there. */
static __device__ float down_dot(const kargs *k, const lora_shape &s, int32_t slot, int64_t row,
                                 int64_t v, int64_t r)
{
    const float *a = (const float *)k->in[1] + lora_a_at(&s, slot, lora_part(k, row, v));
    if (s.kind == LORA_EMBED)
        return a[lora_a_index(&s, r, ((const int32_t *)k->in[2])[row])];
    int64_t xs = k->size.lora.x_vectors;
    const float *x = row_in(k, 0, row * xs + (xs > 1 ? v : 0));
    float sum = 0;
    for (int64_t i = lane_index(); i < s.in; i += WARP)
        sum = mad(a[lora_a_index(&s, r, i)], x[i], sum);
    return warp_sum(sum);
}

/* A warp has a row of A and a vector of a row at a time. */
static __device__ void down_unit(const kargs *k, const lora_shape &s, int64_t unit, int64_t groups)
{
    int64_t vectors = k->size.lora.vectors, first, row = unit / groups * LORA_ROWS;
    int32_t slot = group_slot(k, unit % groups, &first);
    int64_t ranks = least(lora_rank_of(k, slot) - first, LORA_RANKS);
    int64_t rows = least(k->n[0] - row, LORA_ROWS);
    for (int64_t i = warp_index(); i < rows * vectors * ranks; i += warp_count()) {
        int64_t r = first + i % ranks, v = i / ranks % vectors, at = row + i / ranks / vectors;
        const kmix *m = lora_mix_of(k, at);
        int place = m ? lora_place(m, slot) : -1;
        if (place < 0)
            continue;
        float sum = down_dot(k, s, slot, at, v, r);
        if (lane_index() == 0)
            row_out(k, 0, at * vectors + v)[place * s.rank + r] = m->scale[place] * sum;
    }
}

static __device__ ONE_COPY void k_lora_down_cuda(const kargs *k, const kthread *, int64_t begin,
                                                 int64_t end)
{
    lora_shape s = lora_shape_of(k);
    int64_t groups = lora_groups(k);
    for (int64_t unit = begin; unit < end; unit++)
        down_unit(k, s, unit, groups);
}

/* ---- B: the sum of B times those ---- */

static __device__ float up_number(const kargs *k, const lora_shape &s, int64_t row, int64_t v,
                                  int64_t col)
{
    const kmix *m = lora_mix_of(k, row);
    float sum = 0;
    for (int j = 0; m && j < m->n; j++) {
        const float *b = (const float *)k->in[1] + lora_b_at(&s, m->slot[j], lora_part(k, row, v));
        const float *h = row_in(k, 0, row * k->size.lora.vectors + v) + j * s.rank;
        int64_t rank = lora_rank_of(k, m->slot[j]);
        for (int64_t r = 0; r < rank; r++)
            sum = mad(b[lora_b_index(&s, col, r)], h[r], sum);
    }
    return sum;
}

static __device__ ONE_COPY void k_lora_up_cuda(const kargs *k, const kthread *, int64_t begin,
                                               int64_t end)
{
    lora_shape s = lora_shape_of(k);
    kpart p = kpart_of(k, s.out, begin, end);
    int64_t vectors = k->size.lora.vectors, width = p.col_end - p.col;
    for (int64_t i = threadIdx.x; i < (p.row_end - p.row) * vectors * width; i += block_threads()) {
        int64_t at = p.row * vectors + i / width, col = p.col + i % width;
        row_out(k, 0, at)[col] = up_number(k, s, at / vectors, at % vectors, col);
    }
}

#endif
