/* quantize_cuda.cuh - rows rounded for the kernels that multiply them (act.h): split into a few bf16, or to 8 bits, a warp for
 * each block of these. Rows that are quantised alone. */
#ifndef WEFT_KERNELS_CUDA_QUANTIZE_CUDA_CUH
#define WEFT_KERNELS_CUDA_QUANTIZE_CUDA_CUH

#include "kernels/cuda/mma_cuda.cuh"

/* Columns [col, col_end) of a row of n, to which the last part adds what fills the row up. */
static __device__ void split_columns(kact act, const float *x, uint16_t *to, int64_t col,
                                     int64_t col_end, int64_t n)
{
    const int64_t fill = act_fill(act);
    if (col_end == n)
        col_end = (n + fill - 1) / fill * fill;
    for (int64_t i = col + threadIdx.x; i < col_end; i += block_threads()) {
        float rest = i < n ? x[i] : 0;
        for (int64_t p = 0; p < act_parts(act); p++) {
            uint16_t part = p == 0 || is_finite(rest) ? to_bf16(rest) : 0;
            to[act_split_at(act, i, p, 0)] = part;
            rest -= from_bf16(part);
        }
    }
}

/* The same of rows without a rest that are read as tiles: a thread has eight columns. */
static __device__ void split_eights(kact act, const float *x, uint16_t *to, int col, int col_end)
{
    const int parts = (int)act_parts(act);
    for (int i = col + (int)threadIdx.x * 8; i < col_end; i += block_threads() * 8) {
        const bytes16 low = *(const bytes16 *)(x + i), high = *(const bytes16 *)(x + i + 4);
        float rest[8];
        for (int e = 0; e < 8; e++)
            rest[e] = float_of((e < 4 ? low : high).w[e % 4]);
        for (int p = 0; p < parts; p++) {
            bytes16 h;
            UNROLL
            for (int e = 0; e < 8; e += 2) {
                float one = p == 0 || is_finite(rest[e]) ? rest[e] : 0;
                float two = p == 0 || is_finite(rest[e + 1]) ? rest[e + 1] : 0;
                h.w[e / 2] = bf16_pair(one, two);
                rest[e] -= from_bf16((uint16_t)h.w[e / 2]);
                rest[e + 1] -= from_bf16((uint16_t)(h.w[e / 2] >> 16));
            }
            *(bytes16 *)(to + act_split_at(act, i, p, 0)) = h;
        }
    }
}

static __device__ bool has_eights(kact act, const kpart &p, int64_t n, const void *x,
                                  const void *to)
{
    return act_is_tiled(act) && n % 32 == 0 && p.col % 8 == 0 && p.col_end % 8 == 0 &&
           (((uintptr_t)x | (uintptr_t)to) & 15) == 0;
}

/* Block i of a row of n: EACH numbers of each lane. */
template <int EACH>
static __device__ void quantize_block(kact act, const float *x, char *to, int64_t i, int64_t n)
{
    const int64_t first = i * WARP * EACH + lane_index() * EACH;
    float v[EACH], max = 0;
    int finite = 1, q[EACH], sum = 0;
    for (int e = 0; e < EACH; e++) {
        v[e] = x[first + e];
        finite &= is_finite(v[e]);
        max = fabsf(v[e]) > max ? fabsf(v[e]) : max;
    }
    max = warp_max(max);
    finite = __all_sync(ALL_LANES, finite);
    float inverse = 127 / max;
    if (inverse > 3.402823466e38f) /* numbers too small to have an inverse */
        inverse = 3.402823466e38f;
    for (int e = 0; e < EACH; e++) {
        q[e] = !finite ? 1 : max == 0 ? 0 : (int)rintf(v[e] * inverse); /* 1 times NaN */
        sum += q[e];
    }
    for (int e = 0; e < EACH; e++) {
        int64_t at = first + e;
        if (act_is_double(act))
            to[at / 8 * 16 + at % 8] = to[at / 8 * 16 + 8 + at % 8] = (char)q[e];
        else
            to[at] = (char)q[e];
    }
    for (int step = 1; step < 16 / EACH; step *= 2) /* 16 numbers have a sum */
        sum += __shfl_xor_sync(ALL_LANES, sum, step);
    if (first % 16 == 0)
        ((int16_t *)(uintptr_t)act_sum(act, to, n))[first / 16] = (int16_t)sum;
    if (lane_index() == 0)
        ((float *)(uintptr_t)act_d_of(act, to, n))[i] = !finite    ? float_of(0x7fc00000u)
                                                        : max == 0 ? 0
                                                                   : max / 127;
}

static __device__ void k_quantize_cuda(const kargs *k, const kthread *, int64_t begin, int64_t end)
{
    const kact act = (kact)k->choice.quantize.act;
    const int64_t n = k->size.quantize.width, b = act_block(act);
    const kpart part = kpart_of(k, n, begin, end);
    for (int64_t row = part.row; row < part.row_end; row++) {
        const float *x = row_in(k, 0, row);
        char *to = (char *)row_out(k, 0, row);
        if (has_eights(act, part, n, x, to)) {
            split_eights(act, x, (uint16_t *)to, (int)part.col, (int)part.col_end);
            continue;
        }
        if (act_is_split(act)) {
            split_columns(act, x, (uint16_t *)to, part.col, part.col_end, n);
            continue;
        }
        for (int64_t i = part.col / b + warp_index(); i < part.col_end / b; i += warp_count())
            if (b == WARP)
                quantize_block<1>(act, x, to, i, n);
            else
                quantize_block<8>(act, x, to, i, n);
    }
}

#endif
