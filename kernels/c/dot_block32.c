/* dot_block32.c - cores for the types with 32 numbers to a block, on activations with a scale for
 * each 32 (ACT_Q8). dequant_block32.c has the layouts.
 *
 * The sum over a block is exact, in four lanes of integers; each is scaled by d of the block times d
 * of the activations and added to one of four sums. Where a block has a minimum m as well, it adds
 * m * d * (the sum of q), which the quantised row brings along.
 *
 * Vector instructions bound it: a block of Q8_0 takes 12, four of them products, and Neoverse V1 starts
 * two a cycle where operands come from others. That is 14 GB/s a core at 2.6 GHz; scales converted 64 at
 * a time beforehand made it slower. */
#include "kernels/c/dot_impl.h"

enum { BLOCK = 32, HALF = BLOCK / 2 };

/* The codes of a block as integers, and what scales them. */
typedef struct {
    bytes32 q;
    float d, m;
} block32;
typedef block32 unpack_fn(const uint8_t *w);

/* WIDE: products of two pairs may need more than 16 bits together. */
typedef enum { SMALL, SMALL_WITH_MIN, WIDE } summing;

LANES_INLINE i32x4 block_lanes(const bytes32 *q, const int8_t *x, summing how)
{
    i16x8 a = bytes_dot(q->a, bytes_at(x));
    if (how == WIDE)
        return words_fold_two(a, bytes_dot(q->b, bytes_at(x + HALF)));
    return words_fold(bytes_dot_add(a, q->b, bytes_at(x + HALF)));
}

LANES_INLINE void dot_blocks(const uint8_t *w, int64_t bytes, unpack_fn *unpack, summing how,
                             const void *const *x, int64_t n, float *out, int rows)
{
    f32x4 s[4] = {0};
    float mins[4] = {0};
    const int8_t *xq[4];
    const float *xd[4];
    const int16_t *xs[4];
    for (int r = 0; r < rows; r++) {
        xq[r] = act_q(x[r]);
        xd[r] = act_d(x[r], n);
        xs[r] = act_sum(ACT_Q8, x[r], n);
    }
    for (int64_t i = 0; i < n / BLOCK; i++, w += bytes) {
        if (bytes > BLOCK)
            prefetch(w);
        block32 b = unpack(w);
        for (int r = 0; r < rows; r++) {
            float d = xd[r][i];
            s[r] = floats_add_ints(s[r], block_lanes(&b.q, xq[r] + i * BLOCK, how), b.d * d);
            if (how == SMALL_WITH_MIN)
                mins[r] += b.m * d * (float)(xs[r][2 * i] + xs[r][2 * i + 1]);
        }
    }
    for (int r = 0; r < rows; r++)
        out[r] = how == SMALL_WITH_MIN ? floats_sum(s[r]) + mins[r] : floats_sum(s[r]);
}

LANES_INLINE block32 unpack_q8_0(const uint8_t *w)
{
    return (block32){{bytes_at(w + 2), bytes_at(w + 18)}, half_at(w), 0};
}

LANES_INLINE block32 unpack_q4_0(const uint8_t *w)
{
    bytes32 c = nibbles_at(w + 2);
    return (block32){{bytes_less(c.a, 8), bytes_less(c.b, 8)}, half_at(w), 0};
}

LANES_INLINE block32 unpack_q4_1(const uint8_t *w)
{
    return (block32){nibbles_at(w + 4), half_at(w), half_at(w + 2)};
}

/* 4-bit codes with the fifth bits, number j's in bit j % 8 of byte j / 8. */
LANES_INLINE bytes32 fives_at(const uint8_t *codes, const uint8_t *fifth)
{
    bytes32 c = nibbles_at(codes);
    return (bytes32){bytes_or(c.a, bytes_of_bits(fifth[0], fifth[1])),
                     bytes_or(c.b, bytes_of_bits(fifth[2], fifth[3]))};
}

LANES_INLINE block32 unpack_q5_0(const uint8_t *w)
{
    bytes32 c = fives_at(w + 6, w + 2);
    return (block32){{bytes_less(c.a, 16), bytes_less(c.b, 16)}, half_at(w), 0};
}

LANES_INLINE block32 unpack_q5_1(const uint8_t *w)
{
    return (block32){fives_at(w + 8, w + 4), half_at(w), half_at(w + 2)};
}

LANES_INLINE bytes32 looked_up(const int8_t values[16], const uint8_t *codes)
{
    bytes32 c = nibbles_at(codes);
    return (bytes32){bytes_lookup(values, c.a), bytes_lookup(values, c.b)};
}

LANES_INLINE block32 unpack_iq4_nl(const uint8_t *w)
{
    return (block32){looked_up(dot_iq4_values, w + 2), half_at(w), 0};
}

/* Half of 2^(e - 127): the values in the table are doubled. */
LANES_INLINE float e8m0_half(uint8_t e)
{
    return float_of(e < 2 ? 0x00200000u << e : (uint32_t)(e - 1) << 23);
}

LANES_INLINE block32 unpack_mxfp4(const uint8_t *w)
{
    static const int8_t doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    return (block32){looked_up(doubled, w + 1), e8m0_half(w[0]), 0};
}

#define BLOCK_CORE(name, bytes, how)                                                               \
    LANES_INLINE void dot_##name(const void *w, const void *const *x, int64_t n, float *out,       \
                                 int rows)                                                         \
    {                                                                                              \
        dot_blocks(w, bytes, unpack_##name, how, x, n, out, rows);                                 \
    }                                                                                              \
    DOT_CORE(dot_##name)

/* clang-format off */
BLOCK_CORE(q8_0,   34, WIDE)
BLOCK_CORE(q4_0,   18, SMALL)
BLOCK_CORE(q4_1,   20, SMALL_WITH_MIN)
BLOCK_CORE(q5_0,   22, SMALL)
BLOCK_CORE(q5_1,   24, SMALL_WITH_MIN)
BLOCK_CORE(iq4_nl, 18, WIDE)
BLOCK_CORE(mxfp4,  17, SMALL)
/* clang-format on */

const dot_core dot_core_Q8_0 = {ACT_Q8, dot_q8_0_1, dot_q8_0_4, NULL};
const dot_core dot_core_Q4_0 = {ACT_Q8, dot_q4_0_1, dot_q4_0_4, NULL};
const dot_core dot_core_Q4_1 = {ACT_Q8, dot_q4_1_1, dot_q4_1_4, NULL};
const dot_core dot_core_Q5_0 = {ACT_Q8, dot_q5_0_1, dot_q5_0_4, NULL};
const dot_core dot_core_Q5_1 = {ACT_Q8, dot_q5_1_1, dot_q5_1_4, NULL};
const dot_core dot_core_IQ4_NL = {ACT_Q8, dot_iq4_nl_1, dot_iq4_nl_4, NULL};
const dot_core dot_core_MXFP4 = {ACT_Q8, dot_mxfp4_1, dot_mxfp4_4, NULL};
