/* block256_any.h - interleaved weights with a scale for each 256 columns, times 8-bit activations, for any number of
 * rows.
 *
 * Like block32_any.h, but sums are multiplied by the scales of their groups and added up as integers, so that
 * floats come in once in 256 columns. Minima meet the sums of the activations in the same way. */
#ifndef WEFT_KERNELS_NEON_BLOCK256_ANY_H
#define WEFT_KERNELS_NEON_BLOCK256_ANY_H

#include "kernels/kernel_decls.h"

#include "kernels/c/rows8.h"
#include "kernels/neon/codes.h"
#include "kernels/neon/dots.h"

enum { BLOCK = 256, X_MAX = 4 };

/* Scales of a group, of eight rows. */
NEON_INLINE void widen(const uint8_t *scale, bool is_signed, int32x4_t to[2])
{
    int16x8_t s = is_signed ? vmovl_s8(vld1_s8((const int8_t *)scale))
                            : vreinterpretq_s16_u16(vmovl_u8(vld1_u8(scale)));
    to[0] = vmovl_s16(vget_low_s16(s));
    to[1] = vmovl_high_s16(s);
}

/* Minima of eight rows, [groups][8], times the sums of the groups of one row of activations. */
NEON_INLINE void add_minima8(const uint8_t *min, int16x8_t sums, int32x4_t to[2]){
#define GROUP(g)                                                                                   \
    {                                                                                              \
        int16x8_t m = vreinterpretq_s16_u16(vmovl_u8(vld1_u8(min + (g)*8)));                       \
        to[0] = vmlal_laneq_s16(to[0], vget_low_s16(m), sums, g);                                  \
        to[1] = vmlal_high_laneq_s16(to[1], m, sums, g);                                           \
    }
    /* clang-format off */
    GROUP(0) GROUP(1) GROUP(2) GROUP(3) GROUP(4) GROUP(5) GROUP(6) GROUP(7)
/* clang-format on */
#undef GROUP
}

NEON_INLINE void add_minima(const uint8_t *min, const int16_t *sums16, int groups, int32x4_t to[2])
{
    int16x8_t sums[2] = {vld1q_s16(sums16), vld1q_s16(sums16 + 8)};
    to[0] = to[1] = vdupq_n_s32(0);
    if (groups == 8) {
        add_minima8(min, vpaddq_s16(sums[0], sums[1]), to);
        return;
    }
    for (int i = 0; i < 2; i++)
        add_minima8(min + i * 64, sums[i], to);
}

/* 32 columns: sums times scales into u[i]. */
NEON_INLINE void sub_block(const uint8_t *codes, const uint8_t *scales, const int8_t *const *q,
                           int n_x, int32x4_t (*u)[2], const rows8_block256 *t)
{
    int32x4_t scale[2][2]; /* of columns 0 to 15, of 16 to 31 where they have their own */
    widen(scales, !t->has_min, scale[0]);
    if (t->groups == 16)
        widen(scales + 8, !t->has_min, scale[1]);
    for (int half = 0; half < 2; half++) {
        int8x16_t v[8];
        t->codes(codes, half, v);
        for (int i = 0; i < n_x; i++) {
            int steps = t->groups == 16 ? 2 : 4;
            u[i][half] = vmlaq_s32(u[i][half], dots4(v, q[i], steps, t->most), scale[0][half]);
            if (t->groups == 16)
                u[i][half] =
                    vmlaq_s32(u[i][half], dots4(v + 2, q[i] + 32, 2, t->most), scale[1][half]);
        }
    }
}

NEON_INLINE float32x4_t float_of(int32x4_t s, int shift)
{
    return shift == 0   ? vcvtq_f32_s32(s)
           : shift == 2 ? vcvtq_n_f32_s32(s, 2)
           : shift == 3 ? vcvtq_n_f32_s32(s, 3)
                        : vcvtq_n_f32_s32(s, 5);
}

NEON_INLINE void group(const uint8_t *w, const void *const *x, int n_x, int64_t n,
                       float (*sum)[LAYOUT_GROUP], const rows8_block256 *t)
{
    float32x4_t acc[X_MAX][2]; /* here, so that they need not be kept in memory */
    for (int i = 0; i < n_x; i++)
        acc[i][0] = acc[i][1] = vdupq_n_f32(0);
    for (int64_t b = 0; b < n / BLOCK; b++, w += t->bytes) {
        uint8_t own[128], min[128];
        const uint8_t *scales = code_scales(w, own, min, t);
        int32x4_t u[X_MAX][2];
        float32x4_t d[2], dmin[2];
        for (int i = 0; i < n_x; i++)
            u[i][0] = u[i][1] = vdupq_n_s32(0);
        neon_hint(w, t->codes_at);
        for (int sub = 0; sub < 8; sub++) {
            const int8_t *q[X_MAX];
            const uint8_t *codes = w + t->codes_at + sub * t->sub_bytes;
            neon_hint(codes, t->sub_bytes);
            for (int i = 0; i < n_x; i++)
                q[i] = act_q(x[i]) + b * 2 * BLOCK + sub * 64;
            sub_block(codes, scales + sub * t->groups, q, n_x, u, t);
        }
        neon_halves(w, d);
        if (t->has_min)
            neon_halves(w + 16, dmin);
        for (int i = 0; i < n_x; i++) {
            float da = act_d_of(ACT_Q8KD, x[i], n)[b];
            const int16_t *sums = act_sum(ACT_Q8KD, x[i], n) + b * 16;
            int32x4_t less[2], zero[2];
            if (t->has_min)
                add_minima(min, sums, t->groups, less);
            if (t->zero)
                add_minima(own, sums, t->groups, zero);
            for (int h = 0; h < 2; h++) {
                int32x4_t all =
                    t->zero ? vmlaq_n_s32(u[i][h], zero[h], t->zero << t->shift) : u[i][h];
                float32x4_t y = vmulq_f32(float_of(all, t->shift), d[h]);
                if (t->has_min)
                    y = vfmsq_f32(y, vcvtq_f32_s32(less[h]), dmin[h]);
                acc[i][h] = vfmaq_n_f32(acc[i][h], y, da);
            }
        }
    }
    for (int i = 0; i < n_x; i++)
        for (int h = 0; h < 2; h++)
            vst1q_f32(sum[i] + 4 * h, acc[i][h]);
}

/* Kernels for all these types. */
#define BLOCK256_KERNELS(variant)                                                                  \
    ROWS8_KERNELS_TO_4(Q2_K, variant, group, NULL)                                                 \
    ROWS8_KERNELS_TO_4(Q3_K, variant, group, NULL)                                                 \
    ROWS8_KERNELS_TO_4(Q4_K, variant, group, NULL)                                                 \
    ROWS8_KERNELS_TO_4(Q5_K, variant, group, NULL)                                                 \
    ROWS8_KERNELS_TO_4(Q6_K, variant, group, NULL)                                                 \
    ROWS8_KERNELS_TO_4(IQ4_XS, variant, group, NULL)

#endif
