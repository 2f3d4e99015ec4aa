/* block32_any.h - interleaved weights with a scale for each 32 columns, times 8-bit activations, for any number of rows.
 *
 * A vector of the weights holds eight columns of two rows, which leaves two half sums for each of them (dots.h),
 * and one addp joins those of four rows: no sum across a register is ever needed. Reads are hinted far ahead
 * into the last cache; without that a core keeps too few misses in flight to reach two thirds of the bandwidth. */
#ifndef WEFT_KERNELS_NEON_BLOCK32_ANY_H
#define WEFT_KERNELS_NEON_BLOCK32_ANY_H

#include "kernels/kernel_decls.h"

#include "kernels/c/rows8.h"
#include "kernels/neon/codes.h"
#include "kernels/neon/dots.h"
#include "kernels/neon/one_row.h"

enum { BLOCK = 32, X_MAX = 4 };

/* Whole numbers as floats, divided by 1 << shift. */
NEON_INLINE float32x4_t float_of(int32x4_t s, int shift)
{
    return shift == 0   ? vcvtq_f32_s32(s)
           : shift == 3 ? vcvtq_n_f32_s32(s, 3)
                        : vcvtq_n_f32_s32(s, 4);
}

NEON_INLINE void blocks(const uint8_t *w, const void *const *x, int n_x, int64_t n,
                        float (*sum)[LAYOUT_GROUP], const rows8_block32 *t)
{
    const int8_t *q[X_MAX];
    const float *d[X_MAX];
    const int16_t *sums[X_MAX];
    float32x4_t acc[X_MAX][2]; /* here, so that they need not be kept in memory */
    for (int i = 0; i < n_x; i++) {
        q[i] = act_q(x[i]);
        d[i] = act_d_of(ACT_Q8D, x[i], n);
        sums[i] = act_sum(ACT_Q8D, x[i], n);
        acc[i][0] = acc[i][1] = vdupq_n_f32(0);
    }
    for (int64_t b = 0; b < n / BLOCK; b++, w += t->bytes) {
        float32x4_t scale[2], min[2];
        neon_hint(w, t->bytes);
        if (n_x == 1 && t->codes == half_bytes)
            neon_hint_near(w, t->bytes);
        t->scales(w, scale);
        if (t->has_min) {
            neon_halves(w + 16, min);
            for (int h = 0; h < 2 && t->zero != 0; h++)
                min[h] = vfmaq_n_f32(min[h], scale[h], t->zero);
        }
        for (int half = 0; half < 2; half++) {
            int8x16_t v[8];
            t->codes(w + t->codes_at, half, v);
            for (int i = 0; i < n_x; i++) {
                int32x4_t s = dots4(v, q[i] + b * 2 * BLOCK, 4, t->most);
                acc[i][half] = vfmaq_f32(acc[i][half], float_of(s, t->shift),
                                         vmulq_n_f32(scale[half], d[i][b]));
            }
        }
        for (int i = 0; i < n_x && t->has_min; i++) {
            float of_min = d[i][b] * (float)(sums[i][2 * b] + sums[i][2 * b + 1]);
            for (int h = 0; h < 2; h++)
                acc[i][h] = vfmaq_n_f32(acc[i][h], min[h], of_min);
        }
    }
    for (int i = 0; i < n_x; i++)
        for (int h = 0; h < 2; h++)
            vst1q_f32(sum[i] + 4 * h, acc[i][h]);
}

#if defined(__ARM_FEATURE_DOTPROD)
NEON_INLINE bool in_asm(const uint8_t *w, const void *x, int64_t n, float sum[LAYOUT_GROUP],
                        const rows8_block32 *t)
{
    if (t->in_asm)
        one_row_Q4_0(w, act_q(x), act_d_of(ACT_Q8D, x, n), n / BLOCK, sum);
    return t->in_asm;
}
#else
NEON_INLINE bool in_asm(const uint8_t *w, const void *x, int64_t n, float sum[LAYOUT_GROUP],
                        const rows8_block32 *t)
{
    (void)w, (void)x, (void)n, (void)sum, (void)t;
    return false;
}
#endif

NEON_INLINE void group(const uint8_t *w, const void *const *x, int n_x, int64_t n,
                       float (*sum)[LAYOUT_GROUP], const rows8_block32 *t)
{
    if (n_x == 1 && in_asm(w, x[0], n, sum[0], t))
        return;
    blocks(w, x, n_x, n, sum, t);
}

/* Kernels for all these types. */
#define BLOCK32_KERNELS(variant)                                                                   \
    ROWS8_KERNELS_TO_4(Q8_0, variant, group, NULL)                                                 \
    ROWS8_KERNELS_TO_4(Q4_0, variant, group, NULL)                                                 \
    ROWS8_KERNELS_TO_4(Q4_1, variant, group, NULL)                                                 \
    ROWS8_KERNELS_TO_4(Q5_0, variant, group, NULL)                                                 \
    ROWS8_KERNELS_TO_4(Q5_1, variant, group, NULL)                                                 \
    ROWS8_KERNELS_TO_4(IQ4_NL, variant, group, NULL)                                               \
    ROWS8_KERNELS_TO_4(MXFP4, variant, group, NULL)

#endif
