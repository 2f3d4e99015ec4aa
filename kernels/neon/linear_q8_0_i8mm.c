/* linear_q8_0_i8mm.c - Q8_0 rows woven by eight times four woven rows of activations, for many rows.
 *
 * smmla multiplies eight columns of two weight rows with those of two rows of activations into four sums.
 * A tile is 8 weight rows by 4 activation rows: 8 accumulators, of which a block of 32 columns takes 32
 * smmla and 6 loads a step. After each block the sums are scaled into f32: [w0, w0, w1, w1] times
 * [a0, a1, a0, a1]. The scaling, one conversion a cycle, is what bounds it. A group of weights stays in the
 * first cache while all activations pass. */
#include "kernels/kernel_decls.h"

#include "kernels/neon/neon.h"

enum { BLOCK = 32, GROUP_BYTES = LAYOUT_GROUP * 34 };

/* Sums of weight rows 2p, 2p + 1 and activation rows 2h, 2h + 1 in acc[p * 2 + h]. */
static inline void tile(const uint8_t *w, const int8_t *q, const float *d, int64_t n,
                        float32x4_t acc[8])
{
    for (int i = 0; i < 8; i++)
        acc[i] = vdupq_n_f32(0);
    for (int64_t b = 0; b < n / BLOCK; b++, w += GROUP_BYTES, q += BLOCK * 4, d += 4) {
        int32x4_t s[8];
        for (int i = 0; i < 8; i++)
            s[i] = vdupq_n_s32(0);
        for (int step = 0; step < 4; step++) {
            int8x16_t x0 = vld1q_s8(q + step * 32), x1 = vld1q_s8(q + step * 32 + 16);
            for (int p = 0; p < 4; p++) {
                int8x16_t v = neon_load(w + 16 + step * 64 + p * 16);
                s[p * 2] = vmmlaq_s32(s[p * 2], v, x0);
                s[p * 2 + 1] = vmmlaq_s32(s[p * 2 + 1], v, x1);
            }
        }
        float16x8_t scale = vreinterpretq_f16_u8(vld1q_u8(w));
        float32x4_t low = vcvt_f32_f16(vget_low_f16(scale)), high = vcvt_high_f32_f16(scale);
        float32x4_t da = vld1q_f32(d);
        float32x4_t a[2] = {vreinterpretq_f32_f64(vdupq_laneq_f64(vreinterpretq_f64_f32(da), 0)),
                            vreinterpretq_f32_f64(vdupq_laneq_f64(vreinterpretq_f64_f32(da), 1))};
        float32x4_t ws[4] = {vzip1q_f32(low, low), vzip2q_f32(low, low), vzip1q_f32(high, high),
                             vzip2q_f32(high, high)};
        for (int p = 0; p < 4; p++)
            for (int h = 0; h < 2; h++)
                acc[p * 2 + h] =
                    vfmaq_f32(acc[p * 2 + h], vcvtq_f32_s32(s[p * 2 + h]), vmulq_f32(ws[p], a[h]));
    }
}

/* acc[p * 2 + h] holds [w 2p][a 2h, 2h + 1], then [w 2p + 1][..]: turned into rows of eight columns. */
static inline void store(const kargs *k, int64_t row, int64_t rows, int64_t col,
                         const float32x4_t acc[8])
{
    for (int h = 0; h < 2; h++) {
        float32x4_t even[2], odd[2]; /* activation rows 2h and 2h + 1 */
        for (int half = 0; half < 2; half++) {
            float32x4_t a = acc[half * 4 + h], b = acc[half * 4 + 2 + h];
            even[half] = vuzp1q_f32(a, b);
            odd[half] = vuzp2q_f32(a, b);
        }
        if (2 * h < rows)
            neon_store8(k, row + 2 * h, col, even);
        if (2 * h + 1 < rows)
            neon_store8(k, row + 2 * h + 1, col, odd);
    }
}

void k_linear_Q8_0_MANY_i8mm(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    kpart part = kpart_of(k, k->n[1], begin, end);
    int64_t n = k->n[2], rows = k->n[0];
    (void)t;
    for (int64_t col = part.col; col < part.col_end; col += LAYOUT_GROUP) {
        const uint8_t *w = (const uint8_t *)k->in[1] + col / LAYOUT_GROUP * k->pitch[1];
        for (int64_t row = 0; row < rows; row += 4) {
            const char *x = (const char *)k->in[0] + row * k->pitch[0];
            float32x4_t acc[8];
            tile(w, (const int8_t *)x, act_d4(x, n), n, acc);
            store(k, row, rows - row, col, acc);
        }
    }
}
