/* block32_dotprod.c - interleaved weights with a scale for each 32 columns, times 8-bit activations.
 *
 * A vector of the weights holds eight columns of two rows, so that sdot leaves two half sums for each of them,
 * and one addp joins those of four rows: no sum across a register is ever needed. Reads are hinted far ahead
 * into the last cache; without that a core keeps too few misses in flight to reach two thirds of the bandwidth.
 *
 * One row, 32 columns of 8 rows, Neoverse V1, GCC 12: Q8_0 12.4 cycles (16 sdot, 10 to scale), which memory bounds at 20;
 * Q4_1 18, Q5_0 19.6, IQ4_NL 20, bound by the vector pipes (16 to 28 instructions to unpack); Q4_0 has its own loop, 13.5.
 * 65536 x 2048 with two threads, of the 79 GB/s that the same program read: Q8_0 92 %, Q4_0 and Q4_1 54 to 59 %. */
#include "kernels/kernel_decls.h"

#include "kernels/c/rows8.h"
#include "kernels/neon/codes.h"
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
                int32x4_t s[2] = {vdupq_n_s32(0), vdupq_n_s32(0)};
                for (int step = 0; step < 4; step++) {
                    int8x16_t twice = neon_load(q[i] + b * 2 * BLOCK + step * 16);
                    s[0] = vdotq_s32(s[0], v[step], twice);
                    s[1] = vdotq_s32(s[1], v[4 + step], twice);
                }
                acc[i][half] = vfmaq_f32(acc[i][half], float_of(vpaddq_s32(s[0], s[1]), t->shift),
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

NEON_INLINE void group(const uint8_t *w, const void *const *x, int n_x, int64_t n,
                       float (*sum)[LAYOUT_GROUP], const rows8_block32 *t)
{
    if (n_x == 1 && t->in_asm) {
        one_row_Q4_0(w, act_q(x[0]), act_d_of(ACT_Q8D, x[0], n), n / BLOCK, sum[0]);
        return;
    }
    blocks(w, x, n_x, n, sum, t);
}

ROWS8_KERNELS_TO_4(Q8_0, dotprod, group, NULL)
ROWS8_KERNELS_TO_4(Q4_0, dotprod, group, NULL)
ROWS8_KERNELS_TO_4(Q4_1, dotprod, group, NULL)
ROWS8_KERNELS_TO_4(Q5_0, dotprod, group, NULL)
ROWS8_KERNELS_TO_4(Q5_1, dotprod, group, NULL)
ROWS8_KERNELS_TO_4(IQ4_NL, dotprod, group, NULL)
ROWS8_KERNELS_TO_4(MXFP4, dotprod, group, NULL)
