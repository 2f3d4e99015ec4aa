/* lanes_plain.h - lanes.h for compilers without vector extensions; included by it alone. */
#ifndef WEFT_KERNELS_C_LANES_PLAIN_H
#define WEFT_KERNELS_C_LANES_PLAIN_H

#include <stdint.h>
#include <string.h>
#include "kernels/c/half.h"

#define LANES_INLINE static inline
#define EACH(n) for (int i = 0; i < (n); i++)

typedef struct {
    int8_t v[16];
} i8x16;
typedef struct {
    int16_t v[8];
} i16x8;
typedef struct {
    int32_t v[4];
} i32x4;
typedef struct {
    float v[4];
} f32x4;

static inline i8x16 bytes_at(const void *p)
{
    i8x16 a;
    memcpy(&a, p, sizeof a);
    return a;
}
static inline i8x16 bytes_bits(i8x16 c, int right, int mask, int left)
{
    EACH(16) c.v[i] = (int8_t)(((uint8_t)c.v[i] >> right & mask) << left);
    return c;
}
static inline i8x16 bytes_or(i8x16 a, i8x16 b)
{
    EACH(16) a.v[i] = (int8_t)(a.v[i] | b.v[i]);
    return a;
}
static inline i8x16 bytes_less(i8x16 a, int k)
{
    EACH(16) a.v[i] = (int8_t)(a.v[i] - k);
    return a;
}
static inline i8x16 bytes_of_bits(uint8_t low, uint8_t high)
{
    i8x16 a;
    EACH(16) a.v[i] = (i < 8 ? low : high) >> i % 8 & 1 ? 16 : 0;
    return a;
}
static inline i8x16 bytes_lookup(const int8_t values[16], i8x16 c)
{
    EACH(16) c.v[i] = values[c.v[i]];
    return c;
}
static inline void bytes_widen(i8x16 c, int32_t to[16])
{
    EACH(16) to[i] = c.v[i];
}
static inline i16x8 bytes_dot(i8x16 a, i8x16 b)
{
    i16x8 s;
    EACH(8) s.v[i] = (int16_t)(a.v[i] * b.v[i] + a.v[i + 8] * b.v[i + 8]);
    return s;
}
static inline i16x8 bytes_dot_add(i16x8 sum, i8x16 a, i8x16 b)
{
    EACH(8) sum.v[i] = (int16_t)(sum.v[i] + a.v[i] * b.v[i] + a.v[i + 8] * b.v[i + 8]);
    return sum;
}
static inline i16x8 words_at(const int16_t *p)
{
    i16x8 a;
    memcpy(&a, p, sizeof a);
    return a;
}
static inline i32x4 words_fold(i16x8 a)
{
    i32x4 s;
    EACH(4) s.v[i] = a.v[i] + a.v[i + 4];
    return s;
}
static inline i32x4 words_fold_two(i16x8 a, i16x8 b)
{
    i32x4 s;
    EACH(4) s.v[i] = a.v[i] + a.v[i + 4] + b.v[i] + b.v[i + 4];
    return s;
}
static inline i32x4 words_pair(i16x8 a)
{
    i32x4 s;
    EACH(4) s.v[i] = a.v[2 * i] + a.v[2 * i + 1];
    return s;
}
static inline i32x4 ints_at(const int32_t *p)
{
    i32x4 a;
    memcpy(&a, p, sizeof a);
    return a;
}
static inline i32x4 ints_add_product(i32x4 sum, i32x4 a, i32x4 b)
{
    EACH(4) sum.v[i] += a.v[i] * b.v[i];
    return sum;
}
static inline i32x4 ints_add_scaled(i32x4 sum, i32x4 a, int32_t scale)
{
    EACH(4) sum.v[i] += a.v[i] * scale;
    return sum;
}
static inline f32x4 floats_add_ints(f32x4 sum, i32x4 a, float scale)
{
    EACH(4) sum.v[i] += (float)a.v[i] * scale;
    return sum;
}
static inline f32x4 floats_add_product(f32x4 sum, f32x4 a, f32x4 b)
{
    EACH(4) sum.v[i] += a.v[i] * b.v[i];
    return sum;
}
static inline f32x4 floats_at(const void *p)
{
    f32x4 a;
    memcpy(&a, p, sizeof a);
    return a;
}
typedef struct {
    f32x4 a, b;
} floats8;
static inline floats8 floats8_at_f32(const uint8_t *p)
{
    return (floats8){floats_at(p), floats_at(p + 16)};
}
static inline floats8 floats8_at_bf16(const uint8_t *p)
{
    float f[8];
    EACH(8) f[i] = float_of((uint32_t)(p[2 * i] | p[2 * i + 1] << 8) << 16);
    return (floats8){floats_at(f), floats_at(f + 4)};
}
static inline floats8 floats8_at_f16(const uint8_t *p)
{
    float f[8];
    EACH(8) f[i] = half_from_f16((uint16_t)(p[2 * i] | p[2 * i + 1] << 8));
    return (floats8){floats_at(f), floats_at(f + 4)};
}
static inline f32x4 floats_add(f32x4 a, f32x4 b)
{
    EACH(4) a.v[i] += b.v[i];
    return a;
}
static inline float floats_sum(f32x4 s)
{
    return (s.v[0] + s.v[1]) + (s.v[2] + s.v[3]);
}

#undef EACH
#endif
