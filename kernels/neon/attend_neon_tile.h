/* attend_neon_tile.h - the two products of attention on a block of positions, for panels of four queries and for one
 * query or two.
 *
 * A product of a query and a key is summed over its columns one after the other, or, where at most two query heads share a
 * head of the cell, over those equal modulo 4 first; a sum of values in the order of positions. Queries and keys that
 * do not fill a tile get smaller ones and the same bits. A core starts
 * four fused products a cycle, and one that continues a sum waits two cycles for the last: tiles have eight sums or
 * more. Keys and values that are f16 or bf16 become floats in registers, or beforehand in scratch where many
 * queries meet them. */
#ifndef WEFT_KERNELS_NEON_ATTEND_NEON_TILE_H
#define WEFT_KERNELS_NEON_ATTEND_NEON_TILE_H

#include "kernels/c/attend_panels_size.h"
#include "kernels/neon/attend_neon_asm.h"
#include "kernels/neon/neon.h"

/* A zero of its own: a copy of another costs as much as a product. */
NEON_INLINE float32x4_t zero_new(void)
{
    float32x4_t zero;
    __asm__ volatile("movi %0.2d, #0" : "=w"(zero));
    return zero;
}

/* Eight stored numbers as floats. */
NEON_INLINE void load8(const char *p, dtype type, float32x4_t to[2])
{
    if (type == DT_F32) {
        to[0] = vld1q_f32((const float *)(const void *)p);
        to[1] = vld1q_f32((const float *)(const void *)(p + 16));
    } else if (type == DT_F16) {
        float16x8_t h = vreinterpretq_f16_u8(vld1q_u8((const uint8_t *)p));
#ifdef __ARM_FEATURE_FP16_FML /* 0 + h * 1 is h, and four start a cycle; of fcvtl one does */
        float16x8_t one = vreinterpretq_f16_u16(vdupq_n_u16(0x3c00));
        to[0] = vfmlalq_low_f16(zero_new(), h, one);
        to[1] = vfmlalq_high_f16(zero_new(), h, one);
#else
        to[0] = vcvt_f32_f16(vget_low_f16(h));
        to[1] = vcvt_high_f32_f16(h);
#endif
    } else {
        uint16x8_t h = vreinterpretq_u16_u8(vld1q_u8((const uint8_t *)p)), zero = vdupq_n_u16(0);
        to[0] = vreinterpretq_f32_u16(vzip1q_u16(zero, h));
        to[1] = vreinterpretq_f32_u16(vzip2q_u16(zero, h));
    }
}

enum { TILE_KEYS = 8, TILE_VECTORS = 16 };

/* Lines of memory that is read some blocks later. */
NEON_INLINE void hint_lines(const char *later, int bytes)
{
    for (int i = 0; i < bytes; i += NEON_LINE)
        __asm__ volatile("prfm " LATER ", [%0]" ::"r"(later + i));
}

/* ---- panels of four queries ---- */

/* sum[l][..] = keep[l] sum[l][..] + p[begin][l] value[begin][..] + ... up to end, for four queries and eight columns; rows
 * of sum are sum_pitch apart. */
NEON_INLINE void add_tile8(const float *p, const float *keep, const char *value, int64_t pitch,
                           dtype type, int64_t n, float *sum, int64_t sum_pitch)
{
    float32x4_t to[4][2];
    for (int g = 0; g < 4; g++)
        for (int c = 0; c < 2; c++)
            to[g][c] = vmulq_n_f32(vld1q_f32(sum + g * sum_pitch + 4 * c), keep[g]);
    for (int64_t j = 0; j < n; j++) {
        float32x4_t x[2], weight = vld1q_f32(p + 4 * j);
        load8(value + j * pitch, type, x);
        for (int c = 0; c < 2; c++) {
            to[0][c] = vfmaq_laneq_f32(to[0][c], x[c], weight, 0);
            to[1][c] = vfmaq_laneq_f32(to[1][c], x[c], weight, 1);
            to[2][c] = vfmaq_laneq_f32(to[2][c], x[c], weight, 2);
            to[3][c] = vfmaq_laneq_f32(to[3][c], x[c], weight, 3);
        }
    }
    for (int g = 0; g < 4; g++)
        for (int c = 0; c < 2; c++)
            vst1q_f32(sum + g * sum_pitch + 4 * c, to[g][c]);
}

/* ---- one query or two, each a panel of its own ---- */

/* s[g][j] = q[g] . key[j] for n_q queries and eight keys: lanes are columns modulo 4. */
NEON_INLINE void dot_tile_slim(const float *q, int64_t q_pitch, const char *key, int64_t pitch,
                               dtype type, int64_t width, float *s, const char *later, int n_q)
{
    float32x4_t sum[2][TILE_KEYS];
    for (int j = 0; j < TILE_KEYS; j++)
        sum[0][j] = sum[1][j] = vdupq_n_f32(0);
    for (int64_t i = 0; i < width; i += 8) {
        int bytes = TILE_KEYS * 8 * (type == DT_F32 ? 4 : 2);
        hint_lines(later + i / 8 * bytes, bytes);
#pragma GCC unroll 8
        for (int j = 0; j < TILE_KEYS; j++) {
            float32x4_t y[2];
            load8(key + j * pitch + i * (type == DT_F32 ? 4 : 2), type, y);
#pragma GCC unroll 2
            for (int g = 0; g < n_q; g++) {
                const float *x = q + g * q_pitch + i;
                sum[g][j] = vfmaq_f32(sum[g][j], vld1q_f32(x), y[0]);
                sum[g][j] = vfmaq_f32(sum[g][j], vld1q_f32(x + 4), y[1]);
            }
        }
    }
    for (int g = 0; g < n_q; g++)
        for (int j = 0; j < TILE_KEYS; j += 4)
            vst1q_f32(s + g * ATTEND_KEYS + j,
                      vpaddq_f32(vpaddq_f32(sum[g][j], sum[g][j + 1]),
                                 vpaddq_f32(sum[g][j + 2], sum[g][j + 3])));
}

/* As add_tile8, for n_q queries whose weights are p_step apart, and 4 n_vector columns. */
NEON_INLINE void add_tile_slim(const float *p, int64_t p_step, const float *keep, const char *value,
                               int64_t pitch, dtype type, int64_t n, float *sum, int64_t sum_pitch,
                               const char *later, int n_q, int n_vector)
{
    float32x4_t to[2][TILE_VECTORS];
    int bytes = n_vector * (type == DT_F32 ? 16 : 8);
    for (int g = 0; g < n_q; g++)
        for (int c = 0; c < n_vector; c++)
            to[g][c] = vmulq_n_f32(vld1q_f32(sum + g * sum_pitch + 4 * c), keep[g]);
    for (int64_t j = 0; j < n; j++) {
        float32x4_t weight[2];
        for (int g = 0; g < n_q; g++)
            weight[g] = vld1q_dup_f32(p + g * ATTEND_KEYS + j * p_step);
        hint_lines(later + j * bytes, bytes);
#pragma GCC unroll 8
        for (int c = 0; c < n_vector; c += 2) {
            float32x4_t x[2];
            load8(value + j * pitch + (type == DT_F32 ? 16 : 8) * c, type, x);
#pragma GCC unroll 2
            for (int g = 0; g < n_q; g++) {
                to[g][c] = vfmaq_f32(to[g][c], x[0], weight[g]);
                to[g][c + 1] = vfmaq_f32(to[g][c + 1], x[1], weight[g]);
            }
        }
    }
    for (int g = 0; g < n_q; g++)
        for (int c = 0; c < n_vector; c++)
            vst1q_f32(sum + g * sum_pitch + 4 * c, to[g][c]);
}

#endif
