/* lanes.h - short vectors: 16 bytes, 8 words of 16 bits, 4 of 32 bits, 4 floats.
 *
 * With GCC's vector extensions, which Clang shares: they say what no loop does, namely which sums are
 * kept apart, and both compilers make of them what the machine has, on any machine. Bytes widen to a
 * vector twice as long, since GCC 12 takes halves apart one by one otherwise. WEFT_PLAIN_LANES asks for
 * the same in plain C, slowly; the results are the same. */
#ifndef WEFT_KERNELS_C_LANES_H
#define WEFT_KERNELS_C_LANES_H

#include <stdint.h>
#include <string.h>

#if defined(__GNUC__) && !defined(WEFT_PLAIN_LANES)
#define LANES_INLINE static inline __attribute__((always_inline))
#define LANES_OF(type, bytes) type __attribute__((vector_size(bytes)))
typedef LANES_OF(int8_t, 16) i8x16;
typedef LANES_OF(uint8_t, 16) u8x16;
typedef LANES_OF(int16_t, 16) i16x8;
typedef LANES_OF(int32_t, 16) i32x4;
typedef LANES_OF(float, 16) f32x4;
typedef LANES_OF(uint64_t, 16) u64x2;
typedef LANES_OF(int16_t, 32) i16x16;
typedef LANES_OF(int32_t, 32) i32x8;

LANES_INLINE i8x16 bytes_at(const void *p)
{
    i8x16 v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* (c >> right & mask) << left of each byte, unsigned. */
LANES_INLINE i8x16 bytes_bits(i8x16 c, int right, int mask, int left)
{
    u8x16 v = (u8x16)c >> (uint8_t)right & (uint8_t)mask;
    return (i8x16)(v << (uint8_t)left);
}
LANES_INLINE i8x16 bytes_or(i8x16 a, i8x16 b)
{
    return a | b;
}
LANES_INLINE i8x16 bytes_less(i8x16 a, int k)
{
    return a - (int8_t)k;
}

/* 16 where a bit is set, else 0: eight bits of `low`, then eight of `high`. */
LANES_INLINE i8x16 bytes_of_bits(uint8_t low, uint8_t high)
{
    const u64x2 each = {low * 0x0101010101010101u, high * 0x0101010101010101u};
    const u8x16 bit = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    return (i8x16)(((u8x16)each & bit) != 0) & 16;
}

/* values[c] of each byte, 0 .. 15. One instruction on arm64, and a loop is as good elsewhere. */
LANES_INLINE i8x16 bytes_lookup(const int8_t values[16], i8x16 c)
{
#if defined(__aarch64__) && !defined(__clang__)
    return __builtin_shuffle(bytes_at(values), c);
#else
    i8x16 v;
    for (int i = 0; i < 16; i++)
        v[i] = values[c[i]];
    return v;
#endif
}

LANES_INLINE void bytes_widen(i8x16 c, int32_t to[16])
{
    i16x16 words = __builtin_convertvector(c, i16x16);
    i16x8 half[2];
    memcpy(half, &words, sizeof half);
    for (int i = 0; i < 2; i++) {
        i32x8 wide = __builtin_convertvector(half[i], i32x8);
        memcpy(to + 8 * i, &wide, sizeof wide);
    }
}

/* Products of bytes, i and i + 8 together; they fit. */
LANES_INLINE i16x8 bytes_dot(i8x16 a, i8x16 b)
{
    i16x16 p = __builtin_convertvector(a, i16x16) * __builtin_convertvector(b, i16x16);
    i16x8 half[2];
    memcpy(half, &p, sizeof half);
    return half[0] + half[1];
}
LANES_INLINE i16x8 words_add(i16x8 a, i16x8 b)
{
    return a + b;
}
LANES_INLINE i16x8 words_at(const int16_t *p)
{
    i16x8 v;
    memcpy(&v, p, sizeof v);
    return v;
}
/* Two neighbours together; the order of bytes within does not matter to their sum. */
LANES_INLINE i32x4 words_pair(i16x8 a)
{
    i32x4 v = (i32x4)a;
    return (v >> 16) + (v << 16 >> 16);
}

LANES_INLINE i32x4 ints_at(const int32_t *p)
{
    i32x4 v;
    memcpy(&v, p, sizeof v);
    return v;
}
LANES_INLINE i32x4 ints_add(i32x4 a, i32x4 b)
{
    return a + b;
}
LANES_INLINE i32x4 ints_add_product(i32x4 sum, i32x4 a, i32x4 b)
{
    return sum + a * b;
}
LANES_INLINE i32x4 ints_add_scaled(i32x4 sum, i32x4 a, int32_t scale)
{
    return sum + a * scale;
}

LANES_INLINE f32x4 floats_add_ints(f32x4 sum, i32x4 a, float scale)
{
    return sum + __builtin_convertvector(a, f32x4) * scale;
}
LANES_INLINE f32x4 floats_add_product(f32x4 sum, const float *a, const float *b)
{
    f32x4 va, vb;
    memcpy(&va, a, sizeof va);
    memcpy(&vb, b, sizeof vb);
    return sum + va * vb;
}
LANES_INLINE f32x4 floats_add(f32x4 a, f32x4 b)
{
    return a + b;
}
LANES_INLINE float floats_sum(f32x4 s)
{
    return (s[0] + s[1]) + (s[2] + s[3]);
}

#else
#include "kernels/c/lanes_plain.h"
#endif

#endif
