/* linear_float_fhm.c - one row of activations times F16 rows as stored, with fmlal, which multiplies f16 and adds to f32
 * without rounding the product. Converting weights instead is bound by the one unit that does it: half of the bandwidth.
 *
 * A row of activations is scaled by a power of two to at most 2^15 and split into two f16, the second for the rest of
 * the first: 22 bits of every number, and no less than 2^-39 of the largest, where f32 sums keep 24. Each range of
 * weight rows splits it anew, into scratch. Of 71 GB/s (two Neoverse-V1 cores, two threads) rows of 2048 columns give 45,
 * where converted weights gave 34. */
#include "kernels/kernel_decls.h"

#include <math.h>
#include <string.h>
#include "kernels/neon/linear_float_stream.h"
#include "kernels/neon/neon.h"

enum { STEP = 8, TURN = 32 };

/* The power of two that brings the largest of n numbers to [2^14, 2^15); 1 if some are not finite. */
static float scale_of(const float *x, int64_t n)
{
    uint32_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= 0x7fffffff;
        most = bits > most ? bits : most;
    }
    int exponent = (int)(most >> 23) - 127;
    if (most == 0 || exponent == 128)
        return 1;
    return ldexpf(1, 14 - (exponent < -100 ? -100 : exponent));
}

/* Eight numbers. A rest that is not finite is 0. */
NEON_INLINE void split8(const float *x, float scale, float16_t *to)
{
    for (int half = 0; half < 2; half++) {
        float32x4_t v = vmulq_n_f32(vld1q_f32(x + half * 4), scale);
        float16x4_t first = vcvt_f16_f32(v);
        float32x4_t rest = vsubq_f32(v, vcvt_f32_f16(first));
        uint32x4_t fine = vcleq_f32(vabsq_f32(rest), vdupq_n_f32(65504));
        rest = vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(rest), fine));
        vst1_f16(to + half * 4, first);
        vst1_f16(to + STEP + half * 4, vcvt_f16_f32(rest));
    }
}

/* Eight firsts, eight seconds, then the next; columns after the last whole eight are left out. */
static float split_row(const float *x, int64_t n, float16_t *to)
{
    float scale = scale_of(x, n);
    for (int64_t i = 0; i + STEP <= n; i += STEP)
        split8(x + i, scale, to + 2 * i);
    return scale;
}

/* What a row of weights is multiplied with. */
typedef struct {
    const float16_t *parts; /* [n / 8][2][8] */
    const float *x;         /* [n] */
    float scale;
} split_x;

/* Eight columns. */
NEON_INLINE void step(const uint8_t *const *w, const float16_t *parts, int64_t i,
                      float32x4_t s[NEON_STREAMS][4], int n_w)
{
    float16x8_t first = vld1q_f16(parts + 2 * i), second = vld1q_f16(parts + 2 * i + STEP);
    for (int j = 0; j < n_w; j++) {
        float16x8_t v = vreinterpretq_f16_u8(vld1q_u8(w[j] + i * 2));
        s[j][0] = vfmlalq_low_f16(s[j][0], v, first);
        s[j][1] = vfmlalq_high_f16(s[j][1], v, first);
        s[j][2] = vfmlalq_low_f16(s[j][2], v, second);
        s[j][3] = vfmlalq_high_f16(s[j][3], v, second);
    }
}

NEON_INLINE void dots(const uint8_t *const *w, const uint8_t *const *ahead, const split_x *x,
                      int64_t n, float *out, int n_w)
{
    float32x4_t s[NEON_STREAMS][4];
    int64_t i = 0;
    for (int j = 0; j < n_w; j++)
        for (int u = 0; u < 4; u++)
            s[j][u] = vdupq_n_f32(0);
    for (; i + TURN <= n; i += TURN) {
        for (int j = 0; j < n_w; j++)
            neon_hint_here(ahead[j] + i * 2);
        for (int u = 0; u < TURN; u += STEP)
            step(w, x->parts, i + u, s, n_w);
    }
    for (; i + STEP <= n; i += STEP)
        step(w, x->parts, i, s, n_w);
    for (int j = 0; j < n_w; j++) {
        float32x4_t rest = vaddq_f32(s[j][2], s[j][3]);
        float sum = vaddvq_f32(vaddq_f32(vaddq_f32(s[j][0], s[j][1]), rest)) / x->scale;
        for (int64_t k = i; k < n; k++) {
            __fp16 h;
            memcpy(&h, w[j] + k * 2, sizeof h);
            sum += (float)h * x->x[k];
        }
        out[j] = sum;
    }
}

static void dots_one(const uint8_t *const *w, const uint8_t *const *ahead, const void *x, int64_t n,
                     float *out)
{
    dots(w, ahead, x, n, out, 1);
}

static void dots_streams(const uint8_t *const *w, const uint8_t *const *ahead, const void *x,
                         int64_t n, float *out)
{
    dots(w, ahead, x, n, out, NEON_STREAMS);
}

void k_linear_F16_ONE_fhm(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    kpart part = kpart_of(k, k->size.linear.out, begin, end);
    for (int64_t row = part.row; row < part.row_end; row++) {
        const float *x = (const float *)((const char *)k->in[0] + row * k->pitch[0]); /* [n] */
        split_x split = {t->scratch, x, split_row(x, k->size.linear.in, t->scratch)};
        kargs one = *k; /* this row alone, which is read from its parts */
        one.in[0] = &split;
        one.pitch[0] = 0;
        one.out[0] = (char *)k->out[0] + row * k->out_pitch[0];
        one.n[0] = 1;
        one.tile = k->tile ? k->tile : k->size.linear.out;
        one.cols = k->size.linear.out;
        neon_linear_streams(&one, k->tile ? begin : 0, k->tile ? end : 1, dots_one, dots_streams);
    }
}
