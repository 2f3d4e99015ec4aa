/* quantize_cuda.cuh - rows rounded for the kernels that multiply them (act.h): split into a few bf16, or to 8 bits. Rows that are
 * quantised alone, at multiples of 16 bytes. */
#ifndef WEFT_KERNELS_CUDA_QUANTIZE_CUDA_CUH
#define WEFT_KERNELS_CUDA_QUANTIZE_CUDA_CUH

#include "kernels/cuda/mma_cuda.cuh"

/* Columns [col, col_end) of a row of n, to which the last part adds what fills the row up. */
static __device__ APART void split_columns(kact act, const float *x, uint16_t *to, int col,
                                           int col_end, int n)
{
    const int fill = (int)act_fill(act);
    if (col_end == n)
        col_end = (n + fill - 1) / fill * fill;
    for (int i = col + (int)threadIdx.x; i < col_end; i += block_threads()) {
        float rest = i < n ? x[i] : 0;
        for (int p = 0; p < act_parts(act); p++) {
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

/* ---- to 8 bits: a lane has eight numbers, so that four lanes or all 32 have a block ---- */

/* Numbers within 2^22 of 0 and this are whole, rounded to nearest, ties to even; their last byte is that of the sum. */
static __device__ inline uint32_t code_word(const floats4 &v, float inverse)
{
    const float magic = 0x1.8p23f;
    uint32_t q[4];
    UNROLL
    for (int e = 0; e < 4; e++)
        q[e] = bits_of(v.x[e] * inverse + magic);
    return __byte_perm(__byte_perm(q[0], q[1], 0x0040), __byte_perm(q[2], q[3], 0x0040), 0x5410);
}

/* The largest magnitude of a block as bits, from that of a lane's numbers. */
static __device__ inline uint32_t block_most(uint32_t most, int64_t block)
{
    if (block == 256)
        return __reduce_max_sync(ALL_LANES, most);
    for (int step = 1; step < 4; step *= 2) {
        const uint32_t other = __shfl_xor_sync(ALL_LANES, most, step);
        most = other > most ? other : most;
    }
    return most;
}

/* Those from column `at` on, of a row of n. All lanes come here; those that have none say so. A block that is not finite has
 * codes 1 and a scale that is NaN. */
static __device__ inline void quantize_eight(kact act, const floats4 *v, char *to, int at, int n,
                                             bool has)
{
    const int block = (int)act_block(act);
    uint32_t most = 0;
    UNROLL
    for (int e = 0; e < 8; e++) {
        const uint32_t magnitude = bits_of(v[e / 4].x[e % 4]) & 0x7fffffffu;
        most = magnitude > most ? magnitude : most;
    }
    most = block_most(most, block);
    const bool finite = most < 0x7f800000u;
    const float max = float_of(most);
    float inverse = 127 / max;
    if (inverse > 3.402823466e38f) /* numbers too small to have an inverse */
        inverse = 3.402823466e38f;
    const uint32_t low = finite ? code_word(v[0], inverse) : 0x01010101u;
    const uint32_t high = finite ? code_word(v[1], inverse) : 0x01010101u;
    int sum = __dp4a((int)low, 0x01010101, __dp4a((int)high, 0x01010101, 0));
    sum += __shfl_xor_sync(ALL_LANES, sum, 1);
    if (!has)
        return;
    if (act_is_double(act))
        *(bytes16 *)(to + 2 * at) = bytes16{{low, high, low, high}};
    else
        *(bytes8 *)(to + at) = bytes8{{low, high}};
    if (at % 16 == 0)
        ((int16_t *)(uintptr_t)act_sum(act, to, n))[at / 16] = (int16_t)sum;
    if (at % block == 0)
        ((float *)(uintptr_t)act_d_of(act, to, n))[at / block] =
            finite ? max / 127 : float_of(0x7fc00000u);
}

enum { QUANTIZE_HELD = 4 }; /* eights of a lane that are loaded before the first is looked at */

static __device__ inline void quantize_columns(kact act, const float *x, char *to, int col,
                                               int col_end, int n)
{
    const int step = block_threads() * 8;
    const int held = (int)least(QUANTIZE_HELD, (col_end - col + step - 1) / step);
    const int lane = lane_index() * 8;
    const bool whole = (col_end - col) % (held * step) == 0; /* no lane is ever without numbers */
    UNROLLED(1)
    for (int first = col + warp_index() * WARP * 8; first < col_end; first += held * step) {
        floats4 v[QUANTIZE_HELD][2];
        UNROLL
        for (int e = 0; e < QUANTIZE_HELD; e++) {
            const int at = first + e * step + lane;
            v[e][0] = v[e][1] = floats4{{0, 0, 0, 0}};
            if (e < held && (whole || at < col_end)) {
                v[e][0] = *(const floats4 *)(x + at);
                v[e][1] = *(const floats4 *)(x + at + 4);
            }
        }
        UNROLLED(1)
        for (int e = 0; e < held && (whole || first + e * step < col_end); e++) {
            const int at = first + e * step + lane;
            quantize_eight(act, v[0], to, at, n, whole || at < col_end);
            UNROLL
            for (int i = 0; i + 1 < QUANTIZE_HELD; i++) { /* the next one is now the first */
                v[i][0] = v[i + 1][0];
                v[i][1] = v[i + 1][1];
            }
        }
    }
}

/* The same of numbers at any address. */
static __device__ APART void quantize_any(kact act, const float *x, char *to, int col, int col_end,
                                          int n)
{
    const int step = block_threads() * 8;
    for (int first = col + warp_index() * WARP * 8; first < col_end; first += step) {
        const int at = first + lane_index() * 8;
        floats4 v[2];
        for (int e = 0; e < 8; e++)
            v[e / 4].x[e % 4] = at < col_end ? x[at + e] : 0;
        quantize_eight(act, v, to, at, n, at < col_end);
    }
}

static __device__ inline void quantize_row(kact act, const float *x, char *to, int col, int col_end,
                                           int n)
{
    if (act_is_tiled(act) && n % 32 == 0 && col % 8 == 0 && col_end % 8 == 0 && is_aligned(x) &&
        is_aligned(to))
        split_eights(act, x, (uint16_t *)to, col, col_end);
    else if (act_is_split(act))
        split_columns(act, x, (uint16_t *)to, col, col_end, n);
    else if (is_aligned(x))
        quantize_columns(act, x, to, col, col_end, n);
    else
        quantize_any(act, x, to, col, col_end, n);
}

static __device__ ONE_COPY void k_quantize_cuda(const kargs *k, const kthread *, int64_t begin,
                                                int64_t end)
{
    const kact act = (kact)k->choice.quantize.act;
    const int n = (int)k->size.quantize.width;
    const kpart p = part_of(k, n, begin, end);
    for (int64_t row = p.row; row < p.row_end; row++)
        quantize_row(act, row_in(k, 0, row), (char *)row_out(k, 0, row), (int)p.col, (int)p.col_end,
                     n);
}

#endif
