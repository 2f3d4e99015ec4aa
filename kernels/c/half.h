/* half.h - f16 and bf16 to float and back in loops that vectorise; the bits are those of
 * kernels/ref/dequant.h. Rows are aligned for their type. */
#ifndef WEFT_KERNELS_C_HALF_H
#define WEFT_KERNELS_C_HALF_H

#ifdef __F16C__
#include <immintrin.h>
#endif
#include "kernels/c/vec_math.h"

/* A subnormal is a count of 2^-24: put below a number with units of 2^-24, which is taken away. */
static inline float half_from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, magnitude = (uint32_t)(h & 0x7fff) << 13;
    float tiny = float_of(magnitude + (113u << 23)) - 0x1p-14f;
    uint32_t normal = magnitude + (112u << 23);
    uint32_t infinite = magnitude + (224u << 23); /* or not a number */
    uint32_t bits = magnitude < 1u << 23 ? bits_of(tiny) : normal;
    return float_of(sign | (magnitude >= 31u << 23 ? infinite : bits));
}

/* The same the other way: 0.5 has units of 2^-25 below and of 2^-24 above it, so that the sum is
 * rounded as a subnormal must be. */
static inline uint16_t half_to_f16(float x)
{
    uint32_t bits = bits_of(x), magnitude = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000;
    uint32_t tiny = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
    uint32_t rounded = (magnitude + 0xfff + (magnitude >> 13 & 1)) >> 13;
    uint32_t h = magnitude < 113u << 23 ? tiny : rounded - (112u << 10);
    h = magnitude >= 143u << 23 ? 0x7c00 : h;
    h = magnitude > 0x7f800000u ? 0x7e00 | (magnitude >> 13 & 0x3ff) : h;
    return (uint16_t)(sign | h);
}

static inline uint16_t half_to_bf16(float x)
{
    uint32_t bits = bits_of(x);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40 : rounded);
}

static inline void halves_from_f16(const uint16_t *from, float *to, int64_t n)
{
#ifdef __ARM_FP16_FORMAT_IEEE /* every arm64 converts in hardware */
    const __fp16 *f16 = (const __fp16 *)(const void *)from;
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)f16[i];
#elif defined(__F16C__) /* where this is built for processors that do */
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(from + i))));
    for (; i < n; i++)
        to[i] = half_from_f16(from[i]);
#else
    for (int64_t i = 0; i < n; i++)
        to[i] = half_from_f16(from[i]);
#endif
}

static inline void halves_to_f16(const float *from, uint16_t *to, int64_t n)
{
#ifdef __ARM_FP16_FORMAT_IEEE
    __fp16 *f16 = (__fp16 *)(void *)to;
    for (int64_t i = 0; i < n; i++)
        f16[i] = (__fp16)from[i];
#else
    for (int64_t i = 0; i < n; i++)
        to[i] = half_to_f16(from[i]);
#endif
}

static inline void halves_from_bf16(const uint16_t *from, float *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = float_of((uint32_t)from[i] << 16);
}

#endif
