/* quantize_cuda.cuh - rows rounded for the kernels that multiply them (act.h): split into a few bf16, or to 8 bits. Rows that are
 * quantised alone, at multiples of 16 bytes. */
#ifndef WEFT_KERNELS_CUDA_QUANTIZE_CUDA_CUH
#define WEFT_KERNELS_CUDA_QUANTIZE_CUDA_CUH

#include "kernels/cuda/gate_cuda.cuh"
#include "kernels/cuda/halves_cuda.cuh"
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

/* act_split_at of rows that are read as tiles, with numbers to divide by that a compiler knows: others take a hundred instructions. */
static __device__ inline int split_place(kact act, int i, int p)
{
    const uint32_t parts = act == ACT_BF2T ? 2 : 3;
    return act == ACT_BF1 ? i
                          : (int)(((uint32_t)i / 32 * parts + (uint32_t)p) * 32 + (uint32_t)i % 32);
}

/* Eight columns of a row that is read as tiles. */
static __device__ inline void split_put(kact act, const floats4 *x, uint16_t *to, int col)
{
    float rest[8];
    UNROLL
    for (int e = 0; e < 8; e++)
        rest[e] = x[e / 4].x[e % 4];
    for (int p = 0; p < (int)act_parts(act); p++) {
        bytes16 h;
        UNROLL
        for (int e = 0; e < 8; e += 2) {
            float one = p == 0 || is_finite(rest[e]) ? rest[e] : 0;
            float two = p == 0 || is_finite(rest[e + 1]) ? rest[e + 1] : 0;
            h.w[e / 2] = bf16_pair(one, two);
            rest[e] -= from_bf16((uint16_t)h.w[e / 2]);
            rest[e + 1] -= from_bf16((uint16_t)(h.w[e / 2] >> 16));
        }
        *(bytes16 *)(to + split_place(act, col, p)) = h;
    }
}

/* The same of rows without a rest: a thread has eight columns, of one row and then of others. */
static __device__ inline void split_rows(const kargs *k, kact act, const kpart &p)
{
    const uint32_t eights = (uint32_t)(p.col_end - p.col) / 8, all = (uint32_t)block_threads();
    const bool narrow = eights < all; /* several rows at a time */
    const uint32_t rows = narrow ? 1 : (uint32_t)(p.row_end - p.row);
    const uint32_t each = narrow ? (uint32_t)(p.row_end - p.row) * eights : eights;
    for (uint32_t first = 0; first < rows; first++)
        for (uint32_t i = threadIdx.x; i < each; i += all) {
            const uint32_t down = narrow ? i / eights : 0;
            const int64_t row = p.row + first + down;
            const int col = (int)p.col + (int)(i - down * eights) * 8;
            const floats4 *x = (const floats4 *)(row_in(k, 0, row) + col);
            const floats4 v[2] = {x[0], x[1]};
            split_put(act, v, (uint16_t *)row_out(k, 0, row), col);
        }
}

/* ---- to 8 bits: a lane has eight numbers, so that four lanes or all 32 have a block ---- */

/* A row of n, and whether it is copied to the ring too (ring_size.h). */
struct quantize_to {
    kact act;
    int n;
    char *row;
    bool copied;
};

/* Eight codes; the sum of sixteen and of 32 of them, in the first lane of those that have them; the scale of their block. */
struct quantized {
    uint32_t low, high;
    int sum_16, sum_32;
    float scale;
};

/* Where a lane has eight codes, their sum and their scale, and the block of the ring's copy, if there is one. */
struct quantized_place {
    char *codes, *sum, *scale;
    shared_place block;
};

static __device__ inline quantized_place quantized_at(const quantize_to &to, uint32_t at)
{
    const uint32_t block = (uint32_t)act_block(to.act);
    const int64_t scales = act_q_bytes(to.act, to.n), sums = scales + act_pad(to.n / block * 4);
    return quantized_place{to.row + (act_is_double(to.act) ? 2 * at : at), to.row + at / 8 + sums,
                           to.row + at / (block / 4) + scales,
                           ring_x() + at / RING_X_COLS * RING_X_BLOCK};
}

/* A lane's eight, `on` columns after p: a multiple of 256, as is the column of the first lane. */
static __device__ inline void quantized_put(kact act, const quantized_place &p, int on,
                                            const quantized &q)
{
    const int block = (int)act_block(act), lane = lane_index();
    if (act_is_double(act))
        *(bytes16 *)(p.codes + 2 * on) = bytes16{{q.low, q.high, q.low, q.high}};
    else
        *(bytes8 *)(p.codes + on) = bytes8{{q.low, q.high}};
    if (lane % 2 == 0)
        *(int16_t *)(p.sum + on / 8) = (int16_t)q.sum_16;
    if (lane % (block / 8) == 0)
        *(float *)(p.scale + on / (block / 4)) = q.scale;
}

/* The same into the ring. */
static __device__ inline void quantized_copy(kact act, const quantized_place &p, int on,
                                             const quantized &q)
{
    const shared_place block = p.block + on / RING_X_COLS * RING_X_BLOCK;
    const int lane = lane_index();
    shared_put(block + 8 * lane, bytes8{{q.low, q.high}});
    if (act == ACT_Q8K && lane % 2 == 0)
        shared_put(block + lane + RING_X_HALVES, (int16_t)q.sum_16);
    if (act == ACT_Q8K && lane % 4 == 0)
        shared_put(block + lane / 2 + RING_X_SUMS, (int16_t)q.sum_32);
    if (act == ACT_Q8K && lane == 0)
        shared_put(block + RING_X_SCALE, q.scale);
    if (act == ACT_Q8 && lane % 4 == 0)
        shared_put(block + lane + RING_X_COLS, q.scale);
}

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

/* The larger magnitude; NaN if one is. */
static __device__ inline float magnitude_most(float a, float b)
{
#ifdef __CUDACC__
    float most;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(fabsf(a)), "f"(fabsf(b)));
    return most;
#else
    const uint32_t x = bits_of(a) & 0x7fffffffu, y = bits_of(b) & 0x7fffffffu;
    return float_of(x > y ? x : y);
#endif
}

/* The largest magnitude of a block as bits, which are those of an infinity or more where it is not finite; from a lane's numbers. */
static __device__ inline uint32_t block_most(const floats4 *v, int block)
{
    float four[2];
    UNROLL
    for (int i = 0; i < 2; i++)
        four[i] = magnitude_most(magnitude_most(v[i].x[0], v[i].x[1]),
                                 magnitude_most(v[i].x[2], v[i].x[3]));
    uint32_t most = bits_of(magnitude_most(four[0], four[1]));
    if (block == 256)
        return __reduce_max_sync(ALL_LANES, most);
    UNROLL
    for (int step = 1; step < 4; step *= 2) {
        const uint32_t other = __shfl_xor_sync(ALL_LANES, most, step);
        most = other > most ? other : most;
    }
    return most;
}

/* Codes by the inverse of their scale. */
static __device__ inline quantized quantized_of(const floats4 *v, float inverse, float scale)
{
    return quantized{code_word(v[0], inverse), code_word(v[1], inverse), 0, 0, scale};
}

/* Their sums. All lanes come here. */
static __device__ inline void quantized_sum(quantized &q)
{
    const int sum = __dp4a((int)q.low, 0x01010101, __dp4a((int)q.high, 0x01010101, 0));
    q.sum_16 = sum + __shfl_xor_sync(ALL_LANES, sum, 1);
    q.sum_32 = q.sum_16 + __shfl_xor_sync(ALL_LANES, q.sum_16, 2);
}

/* ---- of any numbers, at any address ---- */

/* Eight of a lane, from column `at` on. All lanes come here; those that have none say so. A block that is not finite has
 * codes 1 and a scale that is NaN. */
static __device__ APART void quantize_rare(quantize_to to, const float *x, int at, bool has)
{
    floats4 v[2];
    for (int e = 0; e < 8; e++)
        v[e / 4].x[e % 4] = has ? x[at + e] : 0;
    const uint32_t most = block_most(v, (int)act_block(to.act));
    const bool finite = most < 0x7f800000u;
    const float max = float_of(most);
    float inverse = 127 / max;
    if (inverse > 3.402823466e38f) /* numbers too small to have an inverse */
        inverse = 3.402823466e38f;
    for (int e = 0; e < 8 && !finite; e++)
        v[e / 4].x[e % 4] = 1;
    quantized q =
        quantized_of(v, finite ? inverse : 1.0f, finite ? max / 127 : float_of(0x7fc00000u));
    const quantized_place p = quantized_at(to, (uint32_t)at);
    quantized_sum(q);
    if (has)
        quantized_put(to.act, p, 0, q);
    if (has && to.copied)
        quantized_copy(to.act, p, 0, q);
}

static __device__ APART void quantize_any(quantize_to to, const float *x, int col, int col_end)
{
    const int step = block_threads() * 8;
    for (int first = col + warp_index() * WARP * 8; first < col_end; first += step) {
        const int at = first + lane_index() * 8;
        quantize_rare(to, x, at, at < col_end);
    }
}

/* ---- of usual numbers, at multiples of 16 bytes ----
 *
 * Of a largest magnitude that is neither tiny nor huge, quotients are a few products, without a branch to those of others: so several
 * blocks of a lane are computed side by side. */

static __device__ inline bool is_usual(uint32_t most)
{
    const uint32_t least_usual = 0x0d800000u, most_usual = 0x71800000u; /* 2^-100, 2^100 */
    return most - least_usual < most_usual - least_usual;
}

/* 127 / max as a division rounds it: this is what compilers make of one, but for its rare cases. */
static __device__ inline float usual_inverse(float max)
{
#ifdef __CUDACC__
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(max));
    r = fmaf(fmaf(-max, r, 1.0f), r, r);
    float q = 127 * r;
    q = fmaf(fmaf(-max, q, 127.0f), r, q);
    return fmaf(fmaf(-max, q, 127.0f), r, q);
#else
    return 127 / max;
#endif
}

/* max / 127, likewise; tried with all significands. */
static __device__ inline float usual_scale(float max)
{
#ifdef __CUDACC__
    const float r = 1.0f / 127, q = max * r;
    return fmaf(fmaf(-127.0f, q, max), r, q);
#else
    return max / 127;
#endif
}

/* UNITS eights of each lane of the block, from those at `first` on, which are v [2 * UNITS]; x has them too, for who has rare ones.
 * Of lanes that have no more it does not matter what v is. */
template <int UNITS>
static __device__ inline void quantize_loaded(const quantize_to &to, const float *x, int first,
                                              int col_end, const floats4 *v)
{
    const int step = block_threads() * 8, block = (int)act_block(to.act);
    const int at = first + (int)threadIdx.x * 8;
    const bool whole = first + UNITS * step <= col_end;
    uint32_t most[UNITS];
    bool usual = true;
    UNROLL
    for (int e = 0; e < UNITS; e++) {
        most[e] = block_most(v + 2 * e, block);
        usual &= is_usual(most[e]) || !(whole || at + e * step < col_end);
    }
    if (!__all_sync(ALL_LANES, usual)) {
        UNROLLED(1)
        for (int e = 0; e < UNITS; e++)
            quantize_rare(to, x, at + e * step, at + e * step < col_end);
        return;
    }
    const quantized_place p = quantized_at(to, (uint32_t)at);
    quantized q[UNITS];
    UNROLL
    for (int e = 0; e < UNITS; e++) {
        const float max = float_of(most[e]);
        q[e] = quantized_of(v + 2 * e, usual_inverse(max), usual_scale(max));
    }
    UNROLL
    for (int e = 0; e < UNITS; e++)
        quantized_sum(q[e]);
    UNROLL
    for (int e = 0; e < UNITS; e++)
        if (whole || at + e * step < col_end)
            quantized_put(to.act, p, e * step, q[e]);
    if (!to.copied)
        return;
    UNROLL
    for (int e = 0; e < UNITS; e++)
        if (whole || at + e * step < col_end)
            quantized_copy(to.act, p, e * step, q[e]);
}

/* The same from memory. Lanes that have no more read others again. */
template <int UNITS>
static __device__ inline void quantize_units(const quantize_to &to, const float *x, int first,
                                             int col_end)
{
    const int step = block_threads() * 8, at = first + (int)threadIdx.x * 8;
    const bool whole = first + UNITS * step <= col_end;
    const int again = (int)threadIdx.x * 8 % (int)act_block(to.act); /* which is there */
    floats4 v[2 * UNITS];
    UNROLL
    for (int e = 0; e < UNITS; e++) {
        const float *from = x + (whole || at + e * step < col_end ? at + e * step : again);
        v[2 * e] = *(const floats4 *)from;
        v[2 * e + 1] = *(const floats4 *)(from + 4);
    }
    quantize_loaded<UNITS>(to, x, first, col_end, v);
}

enum {
    QUANTIZE_UNITS = 4,      /* at a time, at most */
    QUANTIZE_WIDE = WARP * 8 /* columns that a warp has at once */
};

static __device__ inline void quantize_columns(const quantize_to &to, const float *x, int col,
                                               int col_end)
{
    const int step = block_threads() * 8, units = (col_end - col + step - 1) / step;
    UNROLLED(1)
    for (int done = 0; done < units; done += QUANTIZE_UNITS) {
        const int first = col + done * step;
        if (units == 1)
            quantize_units<1>(to, x, first, col_end);
        else if (units == 2)
            quantize_units<2>(to, x, first, col_end);
        else
            quantize_units<QUANTIZE_UNITS>(to, x, first, col_end);
    }
}

/* ---- some columns of all rows: a warp has 256 of one, and then of others ---- */

/* Those number `first` and on of `all`, UNITS side by side; where there are no more the first is read again. */
template <int UNITS>
static __device__ inline void quantize_parts(const kargs *k, kact act, const kpart &p, int first,
                                             int all)
{
    const int step = warp_count(), n = (int)k->size.quantize.width;
    const uint32_t each = (uint32_t)(p.col_end - p.col) / QUANTIZE_WIDE;
    floats4 v[UNITS][2];
    uint32_t most[UNITS];
    int row[UNITS], at[UNITS];
    bool usual = true;
    UNROLL
    for (int e = 0; e < UNITS; e++) {
        const uint32_t i = (uint32_t)(first + e * step < all ? first + e * step : first);
        row[e] = (int)p.row + (int)(i / each);
        at[e] = (int)p.col + (int)(i % each * QUANTIZE_WIDE) + lane_index() * 8;
        const float *from = row_in(k, 0, row[e]) + at[e];
        v[e][0] = *(const floats4 *)from;
        v[e][1] = *(const floats4 *)(from + 4);
    }
    UNROLL
    for (int e = 0; e < UNITS; e++) {
        most[e] = block_most(v[e], (int)act_block(act));
        usual &= is_usual(most[e]);
    }
    usual = __all_sync(ALL_LANES, usual);
    UNROLL
    for (int e = 0; e < UNITS; e++) {
        const quantize_to to = {act, n, (char *)row_out(k, 0, row[e]), false};
        if (e > 0 && first + e * step >= all)
            continue;
        if (!usual) {
            quantize_rare(to, row_in(k, 0, row[e]), at[e], true);
            continue;
        }
        const float max = float_of(most[e]);
        quantized q = quantized_of(v[e], usual_inverse(max), usual_scale(max));
        quantized_sum(q);
        quantized_put(act, quantized_at(to, (uint32_t)at[e]), 0, q);
    }
}

/* Can they be, of rows that a block has several of? */
static __device__ inline bool quantize_has_parts(const kargs *k, kact act, const kpart &p)
{
    return !act_is_split(act) && p.row_end - p.row > 1 &&
           (p.col_end - p.col) % QUANTIZE_WIDE == 0 && p.col_end - p.col < block_threads() * 8 &&
           is_aligned(k->in[0]) && k->pitch[0] % 16 == 0;
}

static __device__ inline void quantize_all_parts(const kargs *k, kact act, const kpart &p)
{
    const int all = (int)((p.row_end - p.row) * ((uint32_t)(p.col_end - p.col) / QUANTIZE_WIDE));
    const int warps = warp_count();
    UNROLLED(1)
    for (int first = warp_index(); first < all; first += QUANTIZE_UNITS * warps)
        if (all <= warps)
            quantize_parts<1>(k, act, p, first, all);
        else
            quantize_parts<QUANTIZE_UNITS>(k, act, p, first, all);
}

/* Units are parts of rows, `cols` columns each: a block does so for what it has attended with, behind that and in the same phase
 * (runtime/exec/cuda_heads.c). A warp has 256 columns at a time. */
static __device__ inline void k_quantize_cuda_heads(const kargs *k, int begin, int end, int cols)
{
    const int all = (int)k->size.quantize.width / QUANTIZE_WIDE, each = cols / QUANTIZE_WIDE;
    UNROLLED(1)
    for (int i = begin * each + warp_index(); i < end * each; i += warp_count()) {
        const int row = (int)((uint32_t)i / (uint32_t)all), col = (i - row * all) * QUANTIZE_WIDE;
        const kpart p = {row, row + 1, col, col + QUANTIZE_WIDE};
        quantize_parts<1>(k, (kact)k->choice.quantize.act, p, 0, 1);
    }
}

/* Is a row that is the call's only one copied to the ring? */
static __device__ inline bool quantize_copies(kact act, int n)
{
    return (act == ACT_Q8 || act == ACT_Q8K) && n % RING_X_COLS == 0 &&
           ring_x_fits(n / RING_X_COLS * RING_X_BLOCK);
}

static __device__ inline void quantize_row(const quantize_to &to, const float *x, int col,
                                           int col_end)
{
    if (act_is_split(to.act))
        split_columns(to.act, x, (uint16_t *)to.row, col, col_end, to.n);
    else if (is_aligned(x))
        quantize_columns(to, x, col, col_end);
    else
        quantize_any(to, x, col, col_end);
}

static __device__ ONE_COPY void k_quantize_cuda(const kargs *k, const kthread *, int64_t begin,
                                                int64_t end)
{
    const kact act = (kact)k->choice.quantize.act;
    const int n = (int)k->size.quantize.width;
    const kpart p = part_of(k, n, begin, end);
#ifndef WEFT_SHAPES /* images for a plan are for fewer rows */
    if (k->code) {
        if (cuda_halves_parts(act) == 1)
            x_halve<1>(k, p.row, p.row_end, (uint32_t)n);
        else
            x_halve<2>(k, p.row, p.row_end, (uint32_t)n);
        return;
    }
#endif
    const bool one = k->n[0] == 1 && p.col == 0 && p.col_end == n;
    const bool copied = one && quantize_copies(act, n);
    if (one && threadIdx.x == 0)
        ring_x_made(copied ? row_out(k, 0, 0) : NULL);
    if (!gate_meet_late())
        return;
    if (act_is_tiled(act) && n % 32 == 0 && p.col % 8 == 0 && p.col_end % 8 == 0 &&
        is_aligned(k->in[0]) && is_aligned(k->out[0]) &&
        (k->pitch[0] | k->out_pitch[0]) % 16 == 0) {
        split_rows(k, act, p);
        return;
    }
    if (quantize_has_parts(k, act, p)) {
        quantize_all_parts(k, act, p);
        return;
    }
    for (int64_t row = p.row; row < p.row_end; row++)
        quantize_row(quantize_to{act, n, (char *)row_out(k, 0, row), copied}, row_in(k, 0, row),
                     (int)p.col, (int)p.col_end);
}

#endif
