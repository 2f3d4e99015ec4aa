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
#if defined(__aarch64__)
#include <arm_neon.h>
#endif

#define LANES_INLINE static inline __attribute__((always_inline))
#define LANES_OF(type, bytes) type __attribute__((vector_size(bytes)))
typedef LANES_OF(int8_t, 16) i8x16;
typedef LANES_OF(uint8_t, 16) u8x16;
typedef LANES_OF(int16_t, 16) i16x8;
typedef LANES_OF(int32_t, 16) i32x4;
typedef LANES_OF(float, 16) f32x4;
typedef LANES_OF(uint16_t, 16) u16x8;
#if defined(__ARM_FP16_FORMAT_IEEE)
typedef LANES_OF(__fp16, 16) f16x8;
#endif
typedef LANES_OF(uint64_t, 16) u64x2;
typedef LANES_OF(int16_t, 32) i16x16;
typedef LANES_OF(int32_t, 32) i32x8;
typedef LANES_OF(uint32_t, 32) u32x8;
typedef LANES_OF(float, 32) f32x8;

LANES_INLINE i8x16 bytes_at(const void *p)
{
    i8x16 v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* (c >> right & mask) << left of each byte, unsigned. */
LANES_INLINE i8x16 bytes_bits(i8x16 c, int right, int mask, int left)
{
    u8x16 v = left > right ? (u8x16)c << (left - right) : (u8x16)c >> (right - left);
    return (i8x16)(v & (uint8_t)(mask << left));
}
LANES_INLINE i8x16 bytes_or(i8x16 a, i8x16 b)
{
    return a | b;
}
LANES_INLINE i8x16 bytes_less(i8x16 a, int k)
{
    return a - (int8_t)k;
}

/* 16 in byte i where bit i is set, else 0. */
LANES_INLINE uint64_t eight_of_bits(uint8_t bits)
{
    static const uint8_t bit_of[8] = {1, 2, 4, 8, 16, 32, 64, 128};
    uint64_t each = bits * 0x0101010101010101u, bit;
    memcpy(&bit, bit_of, sizeof bit);
    return ((each & bit) + 0x7f7f7f7f7f7f7f7fu) >> 3 & 0x1010101010101010u; /* none carries */
}
LANES_INLINE i8x16 bytes_of_bits(uint8_t low, uint8_t high)
{
    const u64x2 both = {eight_of_bits(low), eight_of_bits(high)};
    return (i8x16)both;
}

/* values[c] of each byte, 0 .. 15. One instruction on every arm64; SSE2 has none. */
LANES_INLINE i8x16 bytes_lookup(const int8_t values[16], i8x16 c)
{
#if defined(__aarch64__)
    return (i8x16)vqtbl1q_s8((int8x16_t)bytes_at(values), (uint8x16_t)c);
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
LANES_INLINE i16x8 bytes_dot_add(i16x8 sum, i8x16 a, i8x16 b)
{
    i16x16 p = __builtin_convertvector(a, i16x16) * __builtin_convertvector(b, i16x16);
    i16x8 half[2];
    memcpy(half, &p, sizeof half);
    return sum + half[0] + half[1];
}
LANES_INLINE i16x8 words_at(const int16_t *p)
{
    i16x8 v;
    memcpy(&v, p, sizeof v);
    return v;
}
/* Two together: i and i + 4; or the neighbours 2 i and 2 i + 1. */
LANES_INLINE i32x4 words_fold(i16x8 a)
{
    i32x8 wide = __builtin_convertvector(a, i32x8);
    i32x4 half[2];
    memcpy(half, &wide, sizeof half);
    return half[0] + half[1];
}
LANES_INLINE i32x4 words_fold_two(i16x8 a, i16x8 b)
{
    i32x8 wide = __builtin_convertvector(a, i32x8) + __builtin_convertvector(b, i32x8);
    i32x4 half[2];
    memcpy(half, &wide, sizeof half);
    return half[0] + half[1];
}
LANES_INLINE i32x4 words_pair(i16x8 a)
{
    i32x4 v = (i32x4)a; /* which of the two comes first does not matter to their sum */
    return (v >> 16) + (v << 16 >> 16);
}

LANES_INLINE i32x4 ints_at(const int32_t *p)
{
    i32x4 v;
    memcpy(&v, p, sizeof v);
    return v;
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
LANES_INLINE f32x4 floats_add_product(f32x4 sum, f32x4 a, f32x4 b)
{
    return sum + a * b;
}
LANES_INLINE f32x4 floats_at(const void *p)
{
    f32x4 v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Eight stored numbers. */
typedef struct {
    f32x4 a, b;
} floats8;
LANES_INLINE floats8 floats8_at_f32(const uint8_t *p)
{
    return (floats8){floats_at(p), floats_at(p + 16)};
}
LANES_INLINE floats8 floats8_at_bf16(const uint8_t *p)
{
    u16x8 h;
    floats8 f;
    memcpy(&h, p, sizeof h);
    u32x8 wide = __builtin_convertvector(h, u32x8) << 16;
    memcpy(&f, &wide, sizeof f);
    return f;
}
LANES_INLINE floats8 floats8_at_f16(const uint8_t *p)
{
    floats8 f;
#if defined(__ARM_FP16_FORMAT_IEEE)
    f16x8 h;
    memcpy(&h, p, sizeof h);
    f32x8 wide = __builtin_convertvector(h, f32x8);
    memcpy(&f, &wide, sizeof f);
#else
    /* Exponents lie 112 apart; the product also makes subnormals right. */
    u16x8 h;
    memcpy(&h, p, sizeof h);
    u32x8 w = __builtin_convertvector(h, u32x8), magnitude = (w & 0x7fff) << 13;
    u32x8 special = (u32x8)(magnitude >= 0x0f800000) & 0x7f800000;
    f32x8 x = (f32x8)magnitude * 0x1p112f;
    w = (u32x8)x | special | (w & 0x8000) << 16;
    memcpy(&f, &w, sizeof f);
#endif
    return f;
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
