/* split.h - activations as one or three bf16 each, in rows or interleaved by four, for quantize and quantize4; act.h has the layouts.
 *
 * The same bits as the reference. Four rows are interleaved two by two: a vector takes four columns of both. Rounding is one
 * instruction where a file is built for bf16. */
#ifndef WEFT_KERNELS_NEON_SPLIT_H
#define WEFT_KERNELS_NEON_SPLIT_H

#include <string.h>
#include "kernels/neon/neon.h"

enum { PARTS_MAX = 3, STEP = 8 };

/* Eight numbers as bf16, to nearest, ties to even; a NaN stays one. */
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
NEON_INLINE uint16x8_t rounded8(float32x4_t low, float32x4_t high)
{
    return vreinterpretq_u16_bf16(vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(low), high));
}
#else
NEON_INLINE uint16x4_t rounded4(float32x4_t x)
{
    uint32x4_t bits = vreinterpretq_u32_f32(x);
    uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    uint32x4_t up = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
    uint32x4_t nan = vorrq_u32(bits, vdupq_n_u32(0x400000));
    return vshrn_n_u32(vbslq_u32(vceqq_f32(x, x), up, nan), 16);
}

NEON_INLINE uint16x8_t rounded8(float32x4_t low, float32x4_t high)
{
    return vcombine_u16(rounded4(low), rounded4(high));
}
#endif

NEON_INLINE float32x4_t float_of(uint16x4_t h)
{
    return vreinterpretq_f32_u32(vshll_n_u16(h, 16));
}

/* Eight numbers, `parts` bf16 each. A rest that is not finite is 0. */
NEON_INLINE void split8(const float *x, int parts, uint16x8_t *to)
{
    const uint16x8_t infinite = vdupq_n_u16(0x7f80);
    float32x4_t low = vld1q_f32(x), high = vld1q_f32(x + 4);
    for (int p = 0; p < parts; p++) {
        uint16x8_t h = rounded8(low, high);
        if (p > 0)
            h = vbicq_u16(h, vceqq_u16(vandq_u16(h, infinite), infinite));
        low = vsubq_f32(low, float_of(vget_low_u16(h)));
        high = vsubq_f32(high, float_of(vget_high_u16(h)));
        to[p] = h;
    }
}

/* The same with the first n numbers of eight, the others 0; all are 0 where x is NULL. */
static inline void split_some(const float *x, int64_t n, int parts, uint16x8_t *to)
{
    float some[STEP] = {0};
    if (x && n > 0)
        memcpy(some, x, (size_t)(n < STEP ? n : STEP) * sizeof *some);
    split8(some, parts, to);
}

/* ---- rows ---- */

/* Numbers [col, end) of a row, in runs of 8, of three parts 4, filled up to a multiple of `fill`. */
NEON_INLINE void split_row(const float *x, int64_t col, int64_t end, int parts, int64_t fill,
                           uint16_t *to)
{
    for (; col < end || col % fill != 0; col += STEP) {
        uint16x8_t part[PARTS_MAX];
        if (col + STEP <= end)
            split8(x + col, parts, part);
        else
            split_some(x + col, end - col, parts, part);
        for (int p = 0; p < parts && parts > 1; p++) {
            vst1_u16(to + col * parts + p * 4, vget_low_u16(part[p]));
            vst1_u16(to + (col + 4) * parts + p * 4, vget_high_u16(part[p]));
        }
        if (parts == 1)
            vst1q_u16(to + col, part[0]);
    }
}

/* Units of quantize; false, and nothing done, for forms that only kernels of other processors take. */
static inline bool split_rows(const kargs *k, int64_t begin, int64_t end)
{
    kact act = (kact)k->choice.quantize.act;
    kpart part = kpart_of(k, k->size.quantize.width, begin, end);
    if (act != ACT_BF1 && act != ACT_BF3)
        return false;
    for (int64_t row = part.row; row < part.row_end; row++) {
        const float *x = (const float *)((const char *)k->in[0] + row * k->pitch[0]); /* [n] */
        uint16_t *to = (uint16_t *)(void *)((char *)k->out[0] + row * k->out_pitch[0]);
        if (act == ACT_BF1)
            split_row(x, part.col, part.col_end, 1, act_fill(act), to);
        else
            split_row(x, part.col, part.col_end, 3, act_fill(act), to);
    }
    return true;
}

/* ---- four rows ---- */

/* Two of four rows, each of n numbers; a row that is NULL is of zeros. */
NEON_INLINE void split_pair(const float *x0, const float *x1, int64_t n, int parts, uint16_t *to)
{
    for (int64_t i = 0; i < n; i += STEP, to += 4 * STEP * parts) {
        uint16x8_t a[PARTS_MAX], b[PARTS_MAX];
        if (x0 && x1 && i + STEP <= n) {
            split8(x0 + i, parts, a);
            split8(x1 + i, parts, b);
        } else {
            split_some(x0 ? x0 + i : NULL, n - i, parts, a);
            split_some(x1 ? x1 + i : NULL, n - i, parts, b);
        }
        for (int p = 0; p < parts; p++) {
            uint64x2_t first = vreinterpretq_u64_u16(a[p]), second = vreinterpretq_u64_u16(b[p]);
            uint16_t *put = to + p * 2 * STEP;
            vst1q_u16(put, vreinterpretq_u16_u64(vzip1q_u64(first, second)));
            vst1q_u16(put + 2 * STEP * parts, vreinterpretq_u16_u64(vzip2q_u64(first, second)));
        }
    }
}

/* Units of quantize4. */
static inline void split_quads(const kargs *k, int64_t begin, int64_t end)
{
    kact act = (kact)k->choice.quantize.act;
    int64_t n = k->size.quantize.width, parts = act_parts(act);
    for (int64_t row = begin * 4; row < end * 4; row += 2) {
        char *to = (char *)k->out[0] + row / 4 * 4 * k->out_pitch[0] + row % 4 / 2 * 16;
        const float *x[2];
        for (int64_t i = 0; i < 2; i++)
            x[i] = row + i < k->size.quantize.rows
                       ? (const float *)((const char *)k->in[0] + (row + i) * k->pitch[0])
                       : NULL;
        if (parts == 1)
            split_pair(x[0], x[1], n, 1, (uint16_t *)(void *)to);
        else
            split_pair(x[0], x[1], n, 3, (uint16_t *)(void *)to);
    }
}

#endif
