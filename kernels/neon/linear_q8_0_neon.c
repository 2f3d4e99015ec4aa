/* linear_q8_0_neon.c - Q8_0 rows woven by eight times 8-bit activations.
 *
 * One row of activations is bound by memory. A vector of the weights holds eight columns of two rows, so
 * that sdot leaves two half sums for each of them, and one addp joins those of four rows: no sum across a
 * register is ever needed. Reads are hinted 24 KB ahead into the last cache, every line of them; without
 * that a core keeps too few misses in flight to reach two thirds of the bandwidth. */
#include "kernels/kernel_decls.h"

#include <arm_neon.h>
#include "kernels/neon/neon.h"

enum { BLOCK = 32, GROUP_BYTES = LAYOUT_GROUP * 34 }; /* columns, and bytes of eight rows of them */

/* Eight sums of one block, times the activations' bytes q[32]. */
static inline void dots(const uint8_t *w, const int8_t *q, int32x4_t *low, int32x4_t *high)
{
    int32x4_t s[4] = {vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0)};
    for (int step = 0; step < 4; step++) {
        int8x16_t x = neon_twice(q + step * 8);
        for (int pair = 0; pair < 4; pair++)
            s[pair] = vdotq_s32(s[pair], neon_load(w + 16 + step * 64 + pair * 16), x);
    }
    *low = vpaddq_s32(s[0], s[1]);
    *high = vpaddq_s32(s[2], s[3]);
}

/* Eight weight rows times n_x rows of activations, at most four. */
static inline __attribute__((always_inline)) void group(const uint8_t *w, const void *const *x,
                                                        int n_x, int64_t n, float32x4_t (*sum)[2])
{
    const int8_t *q[4];
    const float *d[4];
    for (int i = 0; i < n_x; i++) {
        q[i] = act_q(x[i]);
        d[i] = act_d(x[i], n);
        sum[i][0] = sum[i][1] = vdupq_n_f32(0);
    }
    for (int64_t b = 0; b < n / BLOCK; b++, w += GROUP_BYTES) {
        for (int line = 0; line < GROUP_BYTES + 63; line += 64)
            neon_hint(w + line);
        float16x8_t scale = vreinterpretq_f16_u8(vld1q_u8(w));
        float32x4_t low = vcvt_f32_f16(vget_low_f16(scale)), high = vcvt_high_f32_f16(scale);
        for (int i = 0; i < n_x; i++) {
            int32x4_t s0, s1;
            dots(w, q[i] + b * BLOCK, &s0, &s1);
            sum[i][0] = vfmaq_f32(sum[i][0], vcvtq_f32_s32(s0), vmulq_n_f32(low, d[i][b]));
            sum[i][1] = vfmaq_f32(sum[i][1], vcvtq_f32_s32(s1), vmulq_n_f32(high, d[i][b]));
        }
    }
}

/* Constant numbers of rows, so that sums stay in registers. */
#define GROUP(n_x)                                                                                 \
    static void group_##n_x(const uint8_t *w, const void *const *x, int64_t n,                     \
                            float32x4_t(*sum)[2])                                                  \
    {                                                                                              \
        group(w, x, n_x, n, sum);                                                                  \
    }
GROUP(1)
GROUP(2)
GROUP(3)
GROUP(4)

typedef void group_fn(const uint8_t *w, const void *const *x, int64_t n, float32x4_t (*sum)[2]);
static group_fn *const groups[] = {group_1, group_2, group_3, group_4};

/* The same arithmetic for every number of rows: a row's bits do not depend on its company. */
void k_linear_Q8_0_ANY_dotprod(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    kpart part = kpart_of(k, k->n[1], begin, end);
    int64_t n = k->n[2];
    (void)t;
    for (int64_t row = part.row; row < part.row_end;) {
        int n_x = part.row_end - row < 4 ? (int)(part.row_end - row) : 4;
        const void *x[4];
        for (int i = 0; i < n_x; i++)
            x[i] = (const char *)k->in[0] + (row + i) * k->pitch[0];
        for (int64_t col = part.col; col < part.col_end; col += LAYOUT_GROUP) {
            const uint8_t *w = (const uint8_t *)k->in[1] + col / LAYOUT_GROUP * k->pitch[1];
            float32x4_t sum[4][2];
            groups[n_x - 1](w, x, n, sum);
            for (int i = 0; i < n_x; i++)
                neon_store8(k, row + i, col, sum[i]);
        }
        row += n_x;
    }
}
