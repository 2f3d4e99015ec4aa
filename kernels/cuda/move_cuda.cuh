/* move_cuda.cuh - embed, and the ops that only move numbers: split, concat, take_rows, at_pos. Values keep their bits. out
 * overlaps no input. */
#ifndef WEFT_KERNELS_CUDA_MOVE_CUDA_CUH
#define WEFT_KERNELS_CUDA_MOVE_CUDA_CUH

#include "kernels/cuda/block_cuda.cuh"
#include "kernels/cuda/weights_cuda.cuh"

static __device__ ONE_COPY void k_embed_cuda(const kargs *k, const kthread *, int64_t begin,
                                             int64_t end)
{
    const int32_t *ids = (const int32_t *)k->in[1]; /* [rows] */
    const uint32_t width = (uint32_t)k->size.embed.width, eights = (width + EIGHT - 1) / EIGHT;
    const kpart p = part_of(k, width, begin, end);
    UNROLLED(1)
    for (uint32_t at = threadIdx.x; at < (p.row_end - p.row) * eights; at += block_threads()) {
        const uint32_t i = at / eights, c = (at - i * eights) * EIGHT;
        const int64_t row = p.row + i;
        const uint8_t *from = (const uint8_t *)k->in[0] + ids[row] * k->pitch[0];
        const eight_floats e = eight_of(k->type[0], from, c, width);
        float *out = row_out(k, 0, row) + c;
        UNROLL
        for (uint32_t j = 0; j < EIGHT; j++)
            if (c + j < width)
                out[j] = e.w[j];
    }
}

/* n vectors of `width` floats; in either place they follow on each other by a step of its own. */
static __device__ void copy_vectors(float *to, int64_t to_step, const float *from,
                                    int64_t from_step, int64_t width, int64_t n)
{
    for (int64_t i = threadIdx.x; i < n * width; i += block_threads())
        to[i / width * to_step + i % width] = from[i / width * from_step + i % width];
}

/* One part of the last axis; a split into p parts is p steps. */
static __device__ ONE_COPY void k_split_cuda(const kargs *k, const kthread *, int64_t begin,
                                             int64_t end)
{
    int64_t vectors = k->size.split.vectors, width = k->size.split.part;
    for (int64_t row = begin; row < end; row++)
        copy_vectors(row_out(k, 0, row), width, row_in(k, 0, row) + k->size.split.first,
                     k->size.split.width, width, vectors);
}

static __device__ ONE_COPY void k_concat_cuda(const kargs *k, const kthread *, int64_t begin,
                                              int64_t end)
{
    int64_t vectors = k->size.concat.vectors, x_width = k->size.concat.x_width,
            y_width = k->size.concat.y_width, width = x_width + y_width;
    for (int64_t row = begin; row < end; row++) {
        float *out = row_out(k, 0, row); /* [vectors, width] */
        copy_vectors(out, width, row_in(k, 0, row), x_width, x_width, vectors);
        copy_vectors(out + x_width, width, row_in(k, 1, row), y_width, y_width, vectors);
    }
}

static __device__ APART void copy_row_any(float *to, const float *from, int n)
{
    for (int i = (int)threadIdx.x; i < n; i += block_threads())
        to[i] = from[i];
}

/* n floats by all threads of the block. */
static __device__ inline void copy_row(float *to, const float *from, int n)
{
    if (n % 4 != 0 || !is_aligned(to) || !is_aligned(from)) {
        copy_row_any(to, from, n);
        return;
    }
    UNROLLED(2)
    for (int i = 4 * (int)threadIdx.x; i < n; i += 4 * block_threads())
        *(floats4 *)(to + i) = *(const floats4 *)(from + i);
}

static __device__ ONE_COPY void k_take_rows_cuda(const kargs *k, const kthread *, int64_t begin,
                                                 int64_t end)
{
    const int32_t *rows = kbatch_at(k->batch, KBATCH_OUT); /* [n_out] */
    const kpart p = part_of(k, k->size.take_rows.width, begin, end);
    for (int64_t row = p.row; row < p.row_end; row++)
        copy_row(row_out(k, 0, row), row_in(k, 0, rows[row]), (int)k->size.take_rows.width);
}

/* v at each row's position; beyond the end of v, its last element. */
static __device__ ONE_COPY void k_at_pos_cuda(const kargs *k, const kthread *, int64_t begin,
                                              int64_t end)
{
    const float *v = (const float *)k->in[0];       /* [n] */
    const int32_t *pos = (const int32_t *)k->in[1]; /* [rows] */
    int64_t n = k->size.at_pos.positions;
    for (int64_t row = begin + threadIdx.x; row < end; row += block_threads())
        *row_out(k, 0, row) = v[pos[row] < n ? pos[row] : n - 1];
}

#endif
