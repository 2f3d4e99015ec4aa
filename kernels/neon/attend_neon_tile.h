/* attend_neon_tile.h - the two products of attention on a block of positions, a few queries at a time: with the
 * keys, and of their weights with the values.
 *
 * A product of a query and a key runs in four lanes, a sum of values in the order of positions, whatever the tile:
 * queries and keys that do not fill one get smaller ones and the same bits. 16 accumulators wherever there are
 * that many, since a core starts four fused products a cycle and each takes four. Keys and values that are f16 or
 * bf16 become floats in registers, or beforehand in scratch where many queries meet them. */
#ifndef WEFT_KERNELS_NEON_ATTEND_NEON_TILE_H
#define WEFT_KERNELS_NEON_ATTEND_NEON_TILE_H

#include <string.h>
#include "kernels/neon/attend_neon_size.h"
#include "kernels/neon/neon.h"

/* Eight stored numbers as floats. */
NEON_INLINE void load8(const char *p, dtype type, float32x4_t to[2])
{
    if (type == DT_F32) {
        to[0] = vld1q_f32((const float *)(const void *)p);
        to[1] = vld1q_f32((const float *)(const void *)(p + 16));
    } else if (type == DT_F16) {
        float16x8_t h = vreinterpretq_f16_u8(vld1q_u8((const uint8_t *)p));
        to[0] = vcvt_f32_f16(vget_low_f16(h));
        to[1] = vcvt_high_f32_f16(h);
    } else {
        uint16x8_t h = vreinterpretq_u16_u8(vld1q_u8((const uint8_t *)p)), zero = vdupq_n_u16(0);
        to[0] = vreinterpretq_f32_u16(vzip1q_u16(zero, h));
        to[1] = vreinterpretq_f32_u16(vzip2q_u16(zero, h));
    }
}

/* n < 8 of them, then zeros. */
NEON_INLINE void load_some(const char *p, dtype type, int64_t n, float32x4_t to[2])
{
    char some[32] = {0};
    memcpy(some, p, (size_t)n * (type == DT_F32 ? 4 : 2));
    load8(some, type, to);
}

NEON_INLINE void load_up_to8(const char *p, dtype type, int64_t n, float32x4_t to[2])
{
    if (n < 8)
        load_some(p, type, n, to);
    else
        load8(p, type, to);
}

enum { TILE_QUERIES = 4, TILE_KEYS = 8, TILE_VECTORS = 8 };

/* s[g][j] = scale * (q[g] . key[j]) for n_q queries and n_key keys, both constants; width is a multiple of 8. */
NEON_INLINE void dot_tile(const float *const *q, const char *const *key, dtype type, int64_t width,
                          float scale, float *const *s, int n_q, int n_key)
{
    float32x4_t sum[TILE_QUERIES][TILE_KEYS];
    for (int g = 0; g < n_q; g++)
        for (int j = 0; j < n_key; j++)
            sum[g][j] = vdupq_n_f32(0);
    for (int64_t i = 0; i < width && type == DT_F32; i += 4) {
        float32x4_t x[TILE_QUERIES];
        for (int g = 0; g < n_q; g++)
            x[g] = vld1q_f32(q[g] + i);
        for (int j = 0; j < n_key; j++) {
            float32x4_t y = vld1q_f32((const float *)(const void *)key[j] + i);
            for (int g = 0; g < n_q; g++)
                sum[g][j] = vfmaq_f32(sum[g][j], x[g], y);
        }
    }
    for (int64_t i = 0; i < width && type != DT_F32; i += 8) {
        float32x4_t y[TILE_KEYS][2];
        for (int j = 0; j < n_key; j++)
            load8(key[j] + i * 2, type, y[j]);
        for (int half = 0; half < 2; half++)
            for (int g = 0; g < n_q; g++) {
                float32x4_t x = vld1q_f32(q[g] + i + 4 * half);
                for (int j = 0; j < n_key; j++)
                    sum[g][j] = vfmaq_f32(sum[g][j], x, y[j][half]);
            }
    }
    for (int g = 0; g < n_q; g++)
        for (int j = 0; j < n_key; j += 4) {
            float32x4_t low = vpaddq_f32(sum[g][j], sum[g][j + 1]);
            float32x4_t high = vpaddq_f32(sum[g][j + 2], sum[g][j + 3]);
            vst1q_f32(s[g] + j, vmulq_n_f32(vpaddq_f32(low, high), scale));
        }
}

/* One query and one key, of any width. */
NEON_INLINE float dot_ragged(const float *q, const char *key, dtype type, int64_t width,
                             float scale)
{
    float32x4_t sum = vdupq_n_f32(0);
    for (int64_t i = 0; i < width; i += 8) {
        float32x4_t x[2], y[2];
        load_up_to8((const char *)(q + i), DT_F32, width - i, x);
        load_up_to8(key + i * (type == DT_F32 ? 4 : 2), type, width - i, y);
        sum = vfmaq_f32(vfmaq_f32(sum, x[0], y[0]), x[1], y[1]);
    }
    return vaddvq_f32(sum) * scale;
}

/* One of four positions. */
#define ADD_LANE(lane)                                                                             \
    {                                                                                              \
        float32x4_t x[TILE_VECTORS];                                                               \
        for (int c = 0; c < n_vector; c += 2)                                                      \
            load8(value[j + lane] + at + (type == DT_F32 ? 16 : 8) * c, type, x + c);              \
        for (int c = 0; c < n_vector; c++)                                                         \
            for (int g = 0; g < n_q; g++)                                                          \
                to[g][c] = vfmaq_laneq_f32(to[g][c], x[c], weight[g], lane);                       \
    }

/* sum[g][..] += p[g][begin] value[begin][..] + ... up to end, for 4 n_vector columns. */
NEON_INLINE void add_tile(const float *const *p, const char *const *value, dtype type,
                          int64_t begin, int64_t end, int64_t col, float *const *sum, int n_q,
                          int n_vector)
{
    float32x4_t to[TILE_QUERIES][TILE_VECTORS];
    int64_t at = col * (type == DT_F32 ? 4 : 2);
    for (int g = 0; g < n_q; g++)
        for (int c = 0; c < n_vector; c++)
            to[g][c] = vld1q_f32(sum[g] + col + 4 * c);
    int64_t j = begin;
    for (; j + 4 <= end; j += 4) {
        float32x4_t weight[TILE_QUERIES];
        for (int g = 0; g < n_q; g++)
            weight[g] = vld1q_f32(p[g] + j);
        ADD_LANE(0)
        ADD_LANE(1)
        ADD_LANE(2)
        ADD_LANE(3)
    }
    for (; j < end; j++) {
        float32x4_t x[TILE_VECTORS];
        for (int c = 0; c < n_vector; c += 2)
            load8(value[j] + at + (type == DT_F32 ? 16 : 8) * c, type, x + c);
        for (int g = 0; g < n_q; g++)
            for (int c = 0; c < n_vector; c++)
                to[g][c] = vfmaq_n_f32(to[g][c], x[c], p[g][j]);
    }
    for (int g = 0; g < n_q; g++)
        for (int c = 0; c < n_vector; c++)
            vst1q_f32(sum[g] + col + 4 * c, to[g][c]);
}

/* The last n < 8 columns. */
NEON_INLINE void add_rest(const float *const *p, const char *const *value, dtype type,
                          int64_t begin, int64_t end, int64_t col, int64_t n, float *const *sum,
                          int n_q)
{
    for (int g = 0; g < n_q; g++) {
        float32x4_t to[2] = {vld1q_f32(sum[g] + col), vdupq_n_f32(0)};
        if (n > 4)
            to[1] = vld1q_f32(sum[g] + col + 4);
        for (int64_t j = begin; j < end; j++) {
            float32x4_t x[2];
            load_some(value[j] + col * (type == DT_F32 ? 4 : 2), type, n, x);
            to[0] = vfmaq_n_f32(to[0], x[0], p[g][j]);
            to[1] = vfmaq_n_f32(to[1], x[1], p[g][j]);
        }
        vst1q_f32(sum[g] + col, to[0]);
        if (n > 4)
            vst1q_f32(sum[g] + col + 4, to[1]);
    }
}

#endif
