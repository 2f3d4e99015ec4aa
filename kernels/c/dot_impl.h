/* dot_impl.h - what the cores share: lanes, half floats, prefetching.
 *
 * Loops over bytes are left to the compiler: with a trip count of 16 or 32 that it knows, it makes good
 * code of them for any vector unit. What it does not find by itself is to keep several sums apart until
 * the end; four lanes are therefore spelled as a vector, where the compiler has them. */
#ifndef WEFT_KERNELS_C_DOT_IMPL_H
#define WEFT_KERNELS_C_DOT_IMPL_H

#include <string.h>
#include "kernels/c/dot_c.h"
#include "kernels/ref/dequant.h"

#if defined(__GNUC__) && !defined(WEFT_PLAIN_LANES)
#define DOT_INLINE static inline __attribute__((always_inline))
typedef int8_t i8x16 __attribute__((vector_size(16)));
typedef uint8_t u8x16 __attribute__((vector_size(16)));
typedef int16_t i16x8 __attribute__((vector_size(16)));
typedef int32_t i32x4 __attribute__((vector_size(16)));
typedef float f32x4 __attribute__((vector_size(16)));

/* Each lane has the sum of four of p. */
DOT_INLINE i32x4 lanes_of(const int16_t p[16])
{
    i16x8 a, b;
    memcpy(&a, p, sizeof a);
    memcpy(&b, p + 8, sizeof b);
    i32x4 c = (i32x4)a, d = (i32x4)b;
    return (c >> 16) + (c << 16 >> 16) + (d >> 16) + (d << 16 >> 16);
}
/* The same where no two of p add up to more than 16 bits hold. */
DOT_INLINE i32x4 lanes_of_small(const int16_t p[16])
{
    i16x8 a, b;
    memcpy(&a, p, sizeof a);
    memcpy(&b, p + 8, sizeof b);
    i32x4 c = (i32x4)(a + b);
    return (c >> 16) + (c << 16 >> 16);
}
DOT_INLINE i32x4 lanes_add(i32x4 sum, i32x4 z, int scale)
{
    return sum + z * scale;
}
DOT_INLINE f32x4 lanes_add_scaled(f32x4 sum, i32x4 z, float scale)
{
    return sum + __builtin_convertvector(z, f32x4) * scale;
}
DOT_INLINE f32x4 lanes_add_products(f32x4 sum, const float *a, const float *b)
{
    f32x4 va, vb;
    memcpy(&va, a, sizeof va);
    memcpy(&vb, b, sizeof vb);
    return sum + va * vb;
}
DOT_INLINE f32x4 lanes_join(f32x4 a, f32x4 b)
{
    return a + b;
}
DOT_INLINE float lanes_sum(f32x4 s)
{
    return (s[0] + s[1]) + (s[2] + s[3]);
}
#else
#define DOT_INLINE static inline
typedef struct {
    int32_t v[4];
} i32x4;
typedef struct {
    float v[4];
} f32x4;

DOT_INLINE i32x4 lanes_of(const int16_t p[16])
{
    i32x4 s;
    for (int i = 0; i < 4; i++)
        s.v[i] = p[2 * i] + p[2 * i + 1] + p[2 * i + 8] + p[2 * i + 9];
    return s;
}
DOT_INLINE i32x4 lanes_of_small(const int16_t p[16])
{
    return lanes_of(p);
}
DOT_INLINE i32x4 lanes_add(i32x4 sum, i32x4 z, int scale)
{
    for (int i = 0; i < 4; i++)
        sum.v[i] += z.v[i] * scale;
    return sum;
}
DOT_INLINE f32x4 lanes_add_scaled(f32x4 sum, i32x4 z, float scale)
{
    for (int i = 0; i < 4; i++)
        sum.v[i] += (float)z.v[i] * scale;
    return sum;
}
DOT_INLINE f32x4 lanes_add_products(f32x4 sum, const float *a, const float *b)
{
    for (int i = 0; i < 4; i++)
        sum.v[i] += a[i] * b[i];
    return sum;
}
DOT_INLINE f32x4 lanes_join(f32x4 a, f32x4 b)
{
    for (int i = 0; i < 4; i++)
        a.v[i] += b.v[i];
    return a;
}
DOT_INLINE float lanes_sum(f32x4 s)
{
    return (s.v[0] + s.v[1]) + (s.v[2] + s.v[3]);
}
#endif

/* Products of 32 bytes, in pairs that 16 bits hold: no sum of two exceeds 2 * 128 * 127. */
DOT_INLINE void products(const int8_t *q, const int8_t *x, int16_t p[16])
{
    for (int j = 0; j < 16; j++)
        p[j] = (int16_t)(q[j] * x[j] + q[j + 16] * x[j + 16]);
}

/* Products of 16 bytes. */
DOT_INLINE void products_apart(const int8_t *q, const int8_t *x, int16_t p[16])
{
    for (int j = 0; j < 16; j++)
        p[j] = (int16_t)(q[j] * x[j]);
}

/* The values that 4-bit codes stand for; byte j has number j in its low half, j + 16 in the high one. */
DOT_INLINE void lookup_halves(const int8_t values[16], const uint8_t codes[16], int8_t q[32])
{
#if defined(__GNUC__) && !defined(__clang__) && defined(__aarch64__) && !defined(WEFT_PLAIN_LANES)
    u8x16 c; /* one instruction there; elsewhere a loop is no slower */
    i8x16 v, low, high;
    memcpy(&c, codes, sizeof c);
    memcpy(&v, values, sizeof v);
    low = __builtin_shuffle(v, (i8x16)(c & 15));
    high = __builtin_shuffle(v, (i8x16)(c >> 4));
    memcpy(q, &low, sizeof low);
    memcpy(q + 16, &high, sizeof high);
#else
    for (int j = 0; j < 16; j++) {
        q[j] = values[codes[j] & 15];
        q[j + 16] = values[codes[j] >> 4];
    }
#endif
}

/* The 16 values of IQ4_NL and IQ4_XS. */
static const int8_t dot_iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};

/* A weight row follows another, so what is needed soon lies far ahead. Bytes between p and what is
 * asked for; measured on Neoverse V1, where 24 to 32 KB give half as much again as none. */
enum { DOT_AHEAD = 24 << 10 };
DOT_INLINE void prefetch(const uint8_t *p)
{
#if defined(__GNUC__)
    __builtin_prefetch((const void *)((uintptr_t)p + DOT_AHEAD), 0, 1);
#else
    (void)p;
#endif
}

/* The scale of a block. */
DOT_INLINE float half_at(const uint8_t *p)
{
#if defined(__ARM_FP16_FORMAT_IEEE)
    __fp16 h;
    memcpy(&h, p, sizeof h);
    return (float)h;
#else
    return f16_to_f32((uint16_t)(p[0] | p[1] << 8));
#endif
}

/* The two functions of a core, from `name`, which is inlined with 1 and 4. */
#define DOT_CORE(name)                                                                             \
    static void name##_1(const void *w, const void *const *x, int64_t n, float *out)               \
    {                                                                                              \
        name(w, x, n, out, 1);                                                                     \
    }                                                                                              \
    static void name##_4(const void *w, const void *const *x, int64_t n, float *out)               \
    {                                                                                              \
        name(w, x, n, out, 4);                                                                     \
    }

extern const dot_core dot_core_F32, dot_core_F16, dot_core_BF16;
extern const dot_core dot_core_Q8_0, dot_core_Q4_0, dot_core_Q4_1, dot_core_Q5_0, dot_core_Q5_1,
    dot_core_IQ4_NL, dot_core_MXFP4;
extern const dot_core dot_core_Q2_K, dot_core_Q3_K, dot_core_Q4_K, dot_core_Q5_K, dot_core_Q6_K,
    dot_core_IQ4_XS;

#endif
