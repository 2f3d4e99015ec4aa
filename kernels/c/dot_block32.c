/* dot_block32.c - cores for the types with 32 numbers to a block, on activations with a scale for
 * each 32 (ACT_Q8). dequant_block32.c tells the layouts.
 *
 * The sum over a block is exact, in four lanes of integers; each is scaled by d of the block times d
 * of the activations and added to one of four sums. Where a block has a minimum m as well, it adds
 * m * d * (the sum of q), which the packed row brings along. */
#include "kernels/c/dot_impl.h"

enum { BLOCK = 32, HALF = BLOCK / 2 };

typedef struct {
    float d, m;
} scales;
/* The codes of one block, as integers, and what scales them. */
typedef scales unpack_fn(const uint8_t *w, int8_t q[BLOCK]);

/* One row of activations taken apart. */
typedef struct {
    const int8_t *q;
    const float *d;
    const int16_t *sum;
} act_view;

DOT_INLINE act_view act_view_of(const void *row, int64_t n)
{
    return (act_view){act_q(row), act_d(row, n), act_sum(ACT_Q8, row, n)};
}

/* `bytes` of a block; `wide`: two codes of it may add up, times an activation each, to 15 bits. */
DOT_INLINE void dot_blocks(const uint8_t *w, int64_t bytes, unpack_fn *unpack, bool wide,
                           bool has_min, const void *const *x, int64_t n, float *out, int rows)
{
    f32x4 s[4] = {0};
    float mins[4] = {0};
    act_view v[4];
    for (int r = 0; r < rows; r++)
        v[r] = act_view_of(x[r], n);
    for (int64_t i = 0; i < n / BLOCK; i++, w += bytes) {
        int8_t q[BLOCK];
        prefetch(w);
        scales k = unpack(w, q);
        for (int r = 0; r < rows; r++) {
            int16_t p[16];
            products(q, v[r].q + i * BLOCK, p);
            float d = v[r].d[i];
            s[r] = lanes_add_scaled(s[r], wide ? lanes_of(p) : lanes_of_small(p), k.d * d);
            if (has_min)
                mins[r] += k.m * d * (float)(v[r].sum[2 * i] + v[r].sum[2 * i + 1]);
        }
    }
    for (int r = 0; r < rows; r++)
        out[r] = has_min ? lanes_sum(s[r]) + mins[r] : lanes_sum(s[r]);
}

DOT_INLINE scales unpack_q8_0(const uint8_t *w, int8_t q[BLOCK])
{
    memcpy(q, w + 2, BLOCK);
    return (scales){half_at(w), 0};
}

DOT_INLINE scales unpack_q4_0(const uint8_t *w, int8_t q[BLOCK])
{
    const uint8_t *c = w + 2;
    for (int j = 0; j < HALF; j++) {
        q[j] = (int8_t)((c[j] & 15) - 8);
        q[j + HALF] = (int8_t)((c[j] >> 4) - 8);
    }
    return (scales){half_at(w), 0};
}

DOT_INLINE scales unpack_q4_1(const uint8_t *w, int8_t q[BLOCK])
{
    const uint8_t *c = w + 4;
    for (int j = 0; j < HALF; j++) {
        q[j] = (int8_t)(c[j] & 15);
        q[j + HALF] = (int8_t)(c[j] >> 4);
    }
    return (scales){half_at(w), half_at(w + 2)};
}

/* The fifth bits, number j's in bit j % 8 of byte j / 8: 16 where it is set, else 0. */
DOT_INLINE void fifth_bits(const uint8_t *w, uint8_t high[BLOCK])
{
    for (int j = 0; j < BLOCK; j++)
        high[j] = w[j / 8] >> j % 8 & 1 ? 16 : 0;
}

DOT_INLINE scales unpack_q5_0(const uint8_t *w, int8_t q[BLOCK])
{
    const uint8_t *c = w + 6;
    uint8_t high[BLOCK];
    fifth_bits(w + 2, high);
    for (int j = 0; j < HALF; j++) {
        q[j] = (int8_t)(((c[j] & 15) | high[j]) - 16);
        q[j + HALF] = (int8_t)((c[j] >> 4 | high[j + HALF]) - 16);
    }
    return (scales){half_at(w), 0};
}

DOT_INLINE scales unpack_q5_1(const uint8_t *w, int8_t q[BLOCK])
{
    const uint8_t *c = w + 8;
    uint8_t high[BLOCK];
    fifth_bits(w + 4, high);
    for (int j = 0; j < HALF; j++) {
        q[j] = (int8_t)((c[j] & 15) | high[j]);
        q[j + HALF] = (int8_t)(c[j] >> 4 | high[j + HALF]);
    }
    return (scales){half_at(w), half_at(w + 2)};
}

DOT_INLINE scales unpack_iq4_nl(const uint8_t *w, int8_t q[BLOCK])
{
    lookup_halves(dot_iq4_values, w + 2, q);
    return (scales){half_at(w), 0};
}

/* Half of 2^(e - 127): the values in the table are doubled. */
DOT_INLINE float e8m0_half(uint8_t e)
{
    uint32_t bits = e < 2 ? 0x00200000u << e : (uint32_t)(e - 1) << 23;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

DOT_INLINE scales unpack_mxfp4(const uint8_t *w, int8_t q[BLOCK])
{
    static const int8_t doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    lookup_halves(doubled, w + 1, q);
    return (scales){e8m0_half(w[0]), 0};
}

/*   type    unpack         bytes wide   min */
#define BLOCK_CORE(name, bytes, wide, has_min)                                                     \
    DOT_INLINE void dot_##name(const void *w, const void *const *x, int64_t n, float *out,         \
                               int rows)                                                           \
    {                                                                                              \
        dot_blocks(w, bytes, unpack_##name, wide, has_min, x, n, out, rows);                       \
    }                                                                                              \
    DOT_CORE(dot_##name)

BLOCK_CORE(q8_0, 34, true, false)
BLOCK_CORE(q4_0, 18, false, false)
BLOCK_CORE(q4_1, 20, false, true)
BLOCK_CORE(q5_0, 22, false, false)
BLOCK_CORE(q5_1, 24, false, true)
BLOCK_CORE(iq4_nl, 18, true, false)
BLOCK_CORE(mxfp4, 17, false, false)

const dot_core dot_core_Q8_0 = {ACT_Q8, dot_q8_0_1, dot_q8_0_4};
const dot_core dot_core_Q4_0 = {ACT_Q8, dot_q4_0_1, dot_q4_0_4};
const dot_core dot_core_Q4_1 = {ACT_Q8, dot_q4_1_1, dot_q4_1_4};
const dot_core dot_core_Q5_0 = {ACT_Q8, dot_q5_0_1, dot_q5_0_4};
const dot_core dot_core_Q5_1 = {ACT_Q8, dot_q5_1_1, dot_q5_1_4};
const dot_core dot_core_IQ4_NL = {ACT_Q8, dot_iq4_nl_1, dot_iq4_nl_4};
const dot_core dot_core_MXFP4 = {ACT_Q8, dot_mxfp4_1, dot_mxfp4_4};
