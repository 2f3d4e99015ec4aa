/* dot_block256.c - cores for the types with 256 numbers to a block, on activations with a scale for each
 * 256 (ACT_Q8K). dequant_block256.c has the layouts.
 *
 * Sums of products, times the scales of their groups, are exact in four lanes of integers, so that a
 * block costs one conversion and one product with d. Minima meet the sums of q that the row brings
 * along, in the same way. A block is done in runs of 32 numbers. */
#include "kernels/c/dot_impl.h"

enum { BLOCK = 256 };

/* What a block has besides its codes. */
typedef struct {
    int32_t scale[16]; /* of each group: 8 or 16 of them */
    int32_t min[16];   /* the same */
    float d, m;
} header256;

typedef void header_fn(const uint8_t *w, header256 *h);
typedef bytes32 run_fn(const uint8_t *w, int run); /* its codes */

/* How a type's groups are summed. WIDE: two products together need 16 bits. */
typedef enum { GROUPS_OF_16, GROUPS_OF_32, GROUPS_OF_32_WIDE } grouping;

LANES_INLINE i32x4 run_lanes(i32x4 z, const bytes32 *q, const int8_t *x, const int32_t *scale,
                             int run, grouping g)
{
    i8x16 x1 = bytes_at(x + 16);
    i16x8 a = bytes_dot(q->a, bytes_at(x));
    if (g == GROUPS_OF_32)
        return ints_add_scaled(z, words_fold(bytes_dot_add(a, q->b, x1)), scale[run]);
    i16x8 b = bytes_dot(q->b, x1);
    if (g == GROUPS_OF_32_WIDE)
        return ints_add_scaled(z, words_fold_two(a, b), scale[run]);
    z = ints_add_scaled(z, words_fold(a), scale[2 * run]);
    return ints_add_scaled(z, words_fold(b), scale[2 * run + 1]);
}

/* The sums of 16 numbers each, times the minima of their groups. */
LANES_INLINE i32x4 min_lanes(const header256 *h, const int16_t *sum, grouping g)
{
    i32x4 z = {0};
    if (g != GROUPS_OF_16) {
        z = ints_add_product(z, words_pair(words_at(sum)), ints_at(h->min));
        return ints_add_product(z, words_pair(words_at(sum + 8)), ints_at(h->min + 4));
    }
    for (int i = 0; i < 16; i += 4) {
        const int32_t four[4] = {sum[i], sum[i + 1], sum[i + 2], sum[i + 3]};
        z = ints_add_product(z, ints_at(four), ints_at(h->min + i));
    }
    return z;
}

LANES_INLINE void dot_blocks(const uint8_t *w, int64_t bytes, header_fn *head, run_fn *codes,
                             grouping g, bool has_min, const void *const *x, int64_t n, float *out,
                             int rows)
{
    f32x4 s[4] = {0}, mins[4] = {0};
    for (int64_t i = 0; i < n / BLOCK; i++, w += bytes) {
        header256 h;
        i32x4 z[4] = {0};
        head(w, &h);
        /* One by one: what a run shifts by is then known. */
#define RUN(run)                                                                                   \
    {                                                                                              \
        const bytes32 q = codes(w, run);                                                           \
        for (int r = 0; r < rows; r++)                                                             \
            z[r] = run_lanes(z[r], &q, act_q(x[r]) + i * BLOCK + (run)*32, h.scale, run, g);       \
    }
        /* clang-format off */
        RUN(0) RUN(1) RUN(2) RUN(3) RUN(4) RUN(5) RUN(6) RUN(7)
        /* clang-format on */
#undef RUN
            for (int r = 0; r < rows; r++)
        {
            float d = act_d(x[r], n)[i];
            s[r] = floats_add_ints(s[r], z[r], h.d * d);
            if (has_min) {
                const int16_t *sum = act_sum(ACT_Q8K, x[r], n) + i * 16;
                mins[r] = floats_add_ints(mins[r], min_lanes(&h, sum, g), h.m * d);
            }
        }
    }
    for (int r = 0; r < rows; r++)
        out[r] = has_min ? floats_sum(s[r]) - floats_sum(mins[r]) : floats_sum(s[r]);
}

/* 32 bytes, of which each number takes some bits. */
LANES_INLINE bytes32 bits_at(const uint8_t *p, int right, int mask, int left)
{
    return (bytes32){bytes_bits(bytes_at(p), right, mask, left),
                     bytes_bits(bytes_at(p + 16), right, mask, left)};
}
LANES_INLINE bytes32 either(bytes32 p, bytes32 q)
{
    return (bytes32){bytes_or(p.a, q.a), bytes_or(p.b, q.b)};
}
LANES_INLINE bytes32 less(bytes32 p, int k)
{
    return (bytes32){bytes_less(p.a, k), bytes_less(p.b, k)};
}

/* 2-bit codes: 32 bytes to 128 numbers; 4-bit codes: 32 bytes to 64 numbers. */
LANES_INLINE bytes32 twos(const uint8_t *codes, int run)
{
    return bits_at(codes + run / 4 * 32, run % 4 * 2, 3, 0);
}
LANES_INLINE bytes32 fours(const uint8_t *codes, int run)
{
    return bits_at(codes + run / 2 * 32, run % 2 * 4, 15, 0);
}

LANES_INLINE void head_q2_k(const uint8_t *w, header256 *h)
{
    i8x16 both = bytes_at(w);
    bytes_widen(bytes_bits(both, 0, 15, 0), h->scale);
    bytes_widen(bytes_bits(both, 4, 15, 0), h->min);
    h->d = half_at(w + 80);
    h->m = half_at(w + 82);
}
LANES_INLINE bytes32 run_q2_k(const uint8_t *w, int run)
{
    return twos(w + 16, run);
}

/* Scales are joined four bytes at a time, none of which meets another; so below. */
LANES_INLINE void head_q3_k(const uint8_t *w, header256 *h)
{
    uint32_t p[3], out[4];
    memcpy(p, w + 96, sizeof p);
    out[0] = (p[0] & 0x0f0f0f0f) | (p[2] & 0x03030303) << 4;
    out[1] = (p[1] & 0x0f0f0f0f) | (p[2] >> 2 & 0x03030303) << 4;
    out[2] = (p[0] >> 4 & 0x0f0f0f0f) | (p[2] >> 4 & 0x03030303) << 4;
    out[3] = (p[1] >> 4 & 0x0f0f0f0f) | (p[2] >> 6 & 0x03030303) << 4;
    bytes_widen(bytes_less(bytes_at(out), 32), h->scale);
    h->d = half_at(w + 108);
}
LANES_INLINE bytes32 run_q3_k(const uint8_t *w, int run)
{
    return less(either(twos(w + 32, run), bits_at(w, run, 1, 2)), 4);
}

LANES_INLINE void head_q4_k(const uint8_t *w, header256 *h)
{
    uint32_t p[3], out[4];
    int32_t both[16];
    memcpy(p, w + 4, sizeof p);
    out[0] = p[0] & 0x3f3f3f3f;
    out[1] = (p[2] & 0x0f0f0f0f) | (p[0] >> 6 & 0x03030303) << 4;
    out[2] = p[1] & 0x3f3f3f3f;
    out[3] = (p[2] >> 4 & 0x0f0f0f0f) | (p[1] >> 6 & 0x03030303) << 4;
    bytes_widen(bytes_at(out), both);
    memcpy(h->scale, both, 8 * sizeof *both);
    memcpy(h->min, both + 8, 8 * sizeof *both);
    h->d = half_at(w);
    h->m = half_at(w + 2);
}
LANES_INLINE bytes32 run_q4_k(const uint8_t *w, int run)
{
    return fours(w + 16, run);
}

LANES_INLINE void head_q5_k(const uint8_t *w, header256 *h)
{
    head_q4_k(w, h);
}
LANES_INLINE bytes32 run_q5_k(const uint8_t *w, int run)
{
    return either(fours(w + 48, run), bits_at(w + 16, run, 1, 4));
}

LANES_INLINE void head_q6_k(const uint8_t *w, header256 *h)
{
    bytes_widen(bytes_at(w + 192), h->scale);
    h->d = half_at(w + 208);
}
LANES_INLINE bytes32 run_q6_k(const uint8_t *w, int run)
{
    const uint8_t *low = w + run / 4 * 64 + run % 2 * 32, *high = w + 128 + run / 4 * 32;
    return less(either(bits_at(low, run % 4 / 2 * 4, 15, 0), bits_at(high, run % 4 * 2, 3, 4)), 32);
}

LANES_INLINE void head_iq4_xs(const uint8_t *w, header256 *h)
{
    int high = w[2] | w[3] << 8;
    for (int g = 0; g < 8; g++)
        h->scale[g] = ((w[4 + g / 2] >> g % 2 * 4 & 15) | (high >> 2 * g & 3) << 4) - 32;
    h->d = half_at(w);
}
LANES_INLINE bytes32 run_iq4_xs(const uint8_t *w, int run)
{
    bytes32 c = nibbles_at(w + 8 + 16 * run);
    return (bytes32){bytes_lookup(dot_iq4_values, c.a), bytes_lookup(dot_iq4_values, c.b)};
}

#define BLOCK_CORE(name, bytes, grouping, has_min)                                                 \
    LANES_INLINE void dot_##name(const void *w, const void *const *x, int64_t n, float *out,       \
                                 int rows)                                                         \
    {                                                                                              \
        dot_blocks(w, bytes, head_##name, run_##name, grouping, has_min, x, n, out, rows);         \
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

const dot_core dot_core_Q2_K = {ACT_Q8K, dot_q2_k_1, dot_q2_k_4, NULL};
const dot_core dot_core_Q3_K = {ACT_Q8K, dot_q3_k_1, dot_q3_k_4, NULL};
const dot_core dot_core_Q4_K = {ACT_Q8K, dot_q4_k_1, dot_q4_k_4, NULL};
const dot_core dot_core_Q5_K = {ACT_Q8K, dot_q5_k_1, dot_q5_k_4, NULL};
const dot_core dot_core_Q6_K = {ACT_Q8K, dot_q6_k_1, dot_q6_k_4, NULL};
const dot_core dot_core_IQ4_XS = {ACT_Q8K, dot_iq4_xs_1, dot_iq4_xs_4, NULL};
