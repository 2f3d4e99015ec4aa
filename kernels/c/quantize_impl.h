/* quantize_impl.h - a block of activations rounded to 8 bits, for those kernels that quantize.
 *
 * The same bits as the reference. Magnitudes are compared as integers, which orders them alike and puts
 * infinities and NaNs above all numbers; adding 1.5 * 2^23 leaves the nearest integer in the low
 * bits, ties to even. Both are loops that vectorise everywhere. */
#ifndef WEFT_KERNELS_C_QUANTIZE_IMPL_H
#define WEFT_KERNELS_C_QUANTIZE_IMPL_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { QUANTIZE_CHUNK = 32, QUANTIZE_INF_BITS = 0x7f800000 };

/* The bits of the largest magnitude among 32. */
static inline int32_t quantize_max_bits(const float *x)
{
    int32_t max = 0;
    for (int i = 0; i < QUANTIZE_CHUNK; i++) {
        int32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= 0x7fffffff;
        max = bits > max ? bits : max;
    }
    return max;
}

static inline void quantize_round(const float *restrict x, int8_t *restrict q, float inverse)
{
    int32_t rounded[QUANTIZE_CHUNK];
    for (int i = 0; i < QUANTIZE_CHUNK; i++) {
        float y = x[i] * inverse + 0x1.8p23f;
        memcpy(rounded + i, &y, sizeof y);
    }
    for (int i = 0; i < QUANTIZE_CHUNK; i++)
        q[i] = (int8_t)rounded[i];
}

/* One block of b elements; returns its scale. */
static inline float quantize_block(const float *x, int8_t *q, int64_t b)
{
    int32_t bits = 0;
    for (int64_t i = 0; i < b; i += QUANTIZE_CHUNK) {
        int32_t here = quantize_max_bits(x + i);
        bits = here > bits ? here : bits;
    }
    if (bits >= QUANTIZE_INF_BITS || bits == 0) {
        memset(q, bits != 0, (size_t)b); /* times NaN is NaN; times 0 is 0 */
        return bits ? NAN : 0;
    }
    float max;
    memcpy(&max, &bits, sizeof max);
    float d = max / 127, inverse = 127 / max;
    if (inverse > FLT_MAX) /* numbers too small to have an inverse */
        inverse = FLT_MAX;
    for (int64_t i = 0; i < b; i += QUANTIZE_CHUNK)
        quantize_round(x + i, q + i, inverse);
    return d;
}

/* In the lanes of a word: the bytes are made positive by adding 128 to each, then added up in 16 bits. */
static inline int16_t quantize_sum16(const int8_t *q)
{
    const uint64_t flip = 0x8080808080808080u, low = 0x00ff00ff00ff00ffu;
    uint64_t a, b;
    memcpy(&a, q, sizeof a);
    memcpy(&b, q + 8, sizeof b);
    a ^= flip;
    b ^= flip;
    uint64_t four = (a & low) + (a >> 8 & low) + (b & low) + (b >> 8 & low);
    return (int16_t)((int)(four * 0x0001000100010001u >> 48) - 16 * 128);
}

#endif
