/* dot_block256.c - cores for the types with 256 numbers to a block, on activations with a scale for each
 * 256 (ACT_Q8K). dequant_block256.c tells the layouts.
 *
 * A block's codes are unpacked to bytes in memory, which stays in the first-level cache; sums of
 * products, times the scales of their groups, are exact in four lanes of integers, so that a block
 * costs one conversion and one product with d. Minima meet the sums of q that the row brings along. */
#include "kernels/c/dot_impl.h"

enum { BLOCK = 256 };

typedef struct {
    int8_t q[BLOCK];
    int16_t scale[16]; /* of each group: 8 or 16 of them */
    int16_t min[16];   /* of each 16 numbers */
    float d, m;
} block256;

typedef void unpack_fn(const uint8_t *w, block256 *b);

/* How a type's groups are summed. WIDE: two products together need 16 bits. */
typedef enum { GROUPS_OF_16, GROUPS_OF_32, GROUPS_OF_32_WIDE } grouping;

DOT_INLINE i32x4 block_lanes(const block256 *b, const int8_t *x, grouping g)
{
    i32x4 z = {0};
    int16_t p[16];
    if (g == GROUPS_OF_16)
        for (int i = 0; i < 16; i++) {
            products_apart(b->q + 16 * i, x + 16 * i, p);
            z = lanes_add(z, lanes_of_small(p), b->scale[i]);
        }
    else
        for (int i = 0; i < 8; i++) {
            products(b->q + 32 * i, x + 32 * i, p);
            z = lanes_add(z, g == GROUPS_OF_32 ? lanes_of_small(p) : lanes_of(p), b->scale[i]);
        }
    return z;
}

DOT_INLINE int block_mins(const block256 *b, const int16_t *sum)
{
    int s = 0;
    for (int i = 0; i < 16; i++)
        s += b->min[i] * sum[i];
    return s;
}

DOT_INLINE void dot_blocks(const uint8_t *w, int64_t bytes, unpack_fn *unpack, grouping g,
                           bool has_min, const void *const *x, int64_t n, float *out, int rows)
{
    f32x4 s[4] = {0};
    float mins[4] = {0};
    for (int64_t i = 0; i < n / BLOCK; i++, w += bytes) {
        block256 b;
        for (int64_t line = 0; line < bytes; line += 64)
            prefetch(w + line);
        unpack(w, &b);
        for (int r = 0; r < rows; r++) {
            float d = act_d(x[r], n)[i];
            s[r] = lanes_add_scaled(s[r], block_lanes(&b, act_q(x[r]) + i * BLOCK, g), b.d * d);
            if (has_min)
                mins[r] += b.m * d * (float)block_mins(&b, act_sum(ACT_Q8K, x[r], n) + i * 16);
        }
    }
    for (int r = 0; r < rows; r++)
        out[r] = has_min ? lanes_sum(s[r]) - mins[r] : lanes_sum(s[r]);
}

/* Some bits of 32 bytes. */
DOT_INLINE void take_bits(const uint8_t *c, int shift, int mask, int8_t *q)
{
    for (int j = 0; j < 32; j++)
        q[j] = (int8_t)(c[j] >> shift & mask);
}

/* 64 bytes of 2-bit codes. */
DOT_INLINE void take_twos(const uint8_t *codes, int8_t *q)
{
    for (int h = 0; h < 2; h++, codes += 32, q += 128) {
        take_bits(codes, 0, 3, q);
        take_bits(codes, 2, 3, q + 32);
        take_bits(codes, 4, 3, q + 64);
        take_bits(codes, 6, 3, q + 96);
    }
}

/* 128 bytes of 4-bit codes, 32 bytes to 64 numbers. */
DOT_INLINE void take_fours(const uint8_t *codes, int8_t *q)
{
    for (int g = 0; g < 4; g++, codes += 32, q += 64) {
        take_bits(codes, 0, 15, q);
        take_bits(codes, 4, 15, q + 32);
    }
}

DOT_INLINE void unpack_q2_k(const uint8_t *w, block256 *b)
{
    for (int g = 0; g < 16; g++) {
        b->scale[g] = w[g] & 15;
        b->min[g] = w[g] >> 4;
    }
    take_twos(w + 16, b->q);
    b->d = half_at(w + 80);
    b->m = half_at(w + 82);
}

/* Bit `shift` of 32 bytes, set: 0, else -4. */
DOT_INLINE void add_third_bit(const uint8_t *high, int shift, int8_t *q)
{
    for (int j = 0; j < 32; j++)
        q[j] = (int8_t)(q[j] - ((high[j] >> shift & 1) ^ 1) * 4);
}

DOT_INLINE void unpack_q3_k(const uint8_t *w, block256 *b)
{
    const uint8_t *scales = w + 96;
    for (int g = 0; g < 16; g++) {
        int low4 = scales[g % 8] >> g / 8 * 4 & 15, high2 = scales[8 + g % 4] >> g / 4 * 2 & 3;
        b->scale[g] = (int16_t)((low4 | high2 << 4) - 32);
    }
    take_twos(w + 32, b->q);
    add_third_bit(w, 0, b->q);
    add_third_bit(w, 1, b->q + 32);
    add_third_bit(w, 2, b->q + 64);
    add_third_bit(w, 3, b->q + 96);
    add_third_bit(w, 4, b->q + 128);
    add_third_bit(w, 5, b->q + 160);
    add_third_bit(w, 6, b->q + 192);
    add_third_bit(w, 7, b->q + 224);
    b->d = half_at(w + 108);
}

/* d, m and the eight 6-bit scales and minima of Q4_K and Q5_K; four bytes at a time, none of which
 * meets another. */
DOT_INLINE void unpack_scales(const uint8_t *w, block256 *b)
{
    uint32_t p[3], out[4];
    uint8_t bytes[16];
    memcpy(p, w + 4, sizeof p);
    out[0] = p[0] & 0x3f3f3f3f;
    out[1] = (p[2] & 0x0f0f0f0f) | (p[0] >> 6 & 0x03030303) << 4;
    out[2] = p[1] & 0x3f3f3f3f;
    out[3] = (p[2] >> 4 & 0x0f0f0f0f) | (p[1] >> 6 & 0x03030303) << 4;
    memcpy(bytes, out, sizeof bytes);
    for (int g = 0; g < 8; g++) {
        b->scale[g] = bytes[g];
        b->min[2 * g] = b->min[2 * g + 1] = bytes[8 + g];
    }
    b->d = half_at(w);
    b->m = half_at(w + 2);
}

DOT_INLINE void unpack_q4_k(const uint8_t *w, block256 *b)
{
    unpack_scales(w, b);
    take_fours(w + 16, b->q);
}

DOT_INLINE void add_fifth_bit(const uint8_t *fifth, int shift, int8_t *q)
{
    for (int j = 0; j < 32; j++)
        q[j] = (int8_t)(q[j] | (fifth[j] >> shift & 1) << 4);
}

DOT_INLINE void unpack_q5_k(const uint8_t *w, block256 *b)
{
    const uint8_t *fifth = w + 16;
    unpack_scales(w, b);
    take_fours(w + 48, b->q);
    add_fifth_bit(fifth, 0, b->q);
    add_fifth_bit(fifth, 1, b->q + 32);
    add_fifth_bit(fifth, 2, b->q + 64);
    add_fifth_bit(fifth, 3, b->q + 96);
    add_fifth_bit(fifth, 4, b->q + 128);
    add_fifth_bit(fifth, 5, b->q + 160);
    add_fifth_bit(fifth, 6, b->q + 192);
    add_fifth_bit(fifth, 7, b->q + 224);
}

/* 32 codes of 6 bits, less 32. */
DOT_INLINE void take_sixes(const uint8_t *low, int low_shift, const uint8_t *high, int high_shift,
                           int8_t *q)
{
    for (int j = 0; j < 32; j++)
        q[j] = (int8_t)(((low[j] >> low_shift & 15) | (high[j] >> high_shift & 3) << 4) - 32);
}

DOT_INLINE void unpack_q6_k(const uint8_t *w, block256 *b)
{
    for (int h = 0; h < 2; h++) {
        const uint8_t *low = w + 64 * h, *high = w + 128 + 32 * h;
        int8_t *q = b->q + 128 * h;
        take_sixes(low, 0, high, 0, q);
        take_sixes(low + 32, 0, high, 2, q + 32);
        take_sixes(low, 4, high, 4, q + 64);
        take_sixes(low + 32, 4, high, 6, q + 96);
    }
    for (int g = 0; g < 16; g++)
        b->scale[g] = (int8_t)w[192 + g];
    b->d = half_at(w + 208);
}

DOT_INLINE void unpack_iq4_xs(const uint8_t *w, block256 *b)
{
    int high = w[2] | w[3] << 8;
    for (int g = 0; g < 8; g++) {
        int scale = (w[4 + g / 2] >> g % 2 * 4 & 15) | (high >> 2 * g & 3) << 4;
        b->scale[g] = (int16_t)(scale - 32);
        lookup_halves(dot_iq4_values, w + 8 + 16 * g, b->q + 32 * g);
    }
    b->d = half_at(w);
}

#define BLOCK_CORE(name, bytes, grouping, has_min)                                                 \
    DOT_INLINE void dot_##name(const void *w, const void *const *x, int64_t n, float *out,         \
                               int rows)                                                           \
    {                                                                                              \
        dot_blocks(w, bytes, unpack_##name, grouping, has_min, x, n, out, rows);                   \
    }                                                                                              \
    DOT_CORE(dot_##name)

/* clang-format off */
BLOCK_CORE(q2_k,    84, GROUPS_OF_16,      true)
BLOCK_CORE(q3_k,   110, GROUPS_OF_16,      false)
BLOCK_CORE(q4_k,   144, GROUPS_OF_32,      true)
BLOCK_CORE(q5_k,   176, GROUPS_OF_32,      true)
BLOCK_CORE(q6_k,   210, GROUPS_OF_16,      false)
BLOCK_CORE(iq4_xs, 136, GROUPS_OF_32_WIDE, false)
/* clang-format on */

const dot_core dot_core_Q2_K = {ACT_Q8K, dot_q2_k_1, dot_q2_k_4};
const dot_core dot_core_Q3_K = {ACT_Q8K, dot_q3_k_1, dot_q3_k_4};
const dot_core dot_core_Q4_K = {ACT_Q8K, dot_q4_k_1, dot_q4_k_4};
const dot_core dot_core_Q5_K = {ACT_Q8K, dot_q5_k_1, dot_q5_k_4};
const dot_core dot_core_Q6_K = {ACT_Q8K, dot_q6_k_1, dot_q6_k_4};
const dot_core dot_core_IQ4_XS = {ACT_Q8K, dot_iq4_xs_1, dot_iq4_xs_4};
