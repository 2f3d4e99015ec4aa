/* quantize_neon.c - activations rounded to 8 bits, once or twice each, and four rows of them interleaved; act.h has the layouts.
 *
 * The same bits as the reference. Magnitudes are compared as integers, which puts infinities and NaNs above all numbers.
 * Numbers split into bf16 are left to split.h. On Neoverse V1, 2048 numbers in blocks of 32 take
 * 0.6 us. */
#include "kernels/kernel_decls.h"

#include <float.h>
#include <math.h>
#include <string.h>
#include "kernels/neon/neon.h"
#include "kernels/neon/split.h"

enum { RUN = 256, INF_BITS = 0x7f800000 };

/* The bits of the largest magnitude. */
NEON_INLINE uint32_t max_bits(const float *x, int64_t b)
{
    uint32x4_t max[4];
    const uint32x4_t magnitude = vdupq_n_u32(0x7fffffff);
    for (int i = 0; i < 4; i++)
        max[i] = vdupq_n_u32(0);
    for (int64_t at = 0; at < b; at += 16)
        for (int i = 0; i < 4; i++) {
            uint32x4_t bits = vreinterpretq_u32_f32(vld1q_f32(x + at + i * 4));
            max[i] = vmaxq_u32(max[i], vandq_u32(bits, magnitude));
        }
    return vmaxvq_u32(vmaxq_u32(vmaxq_u32(max[0], max[1]), vmaxq_u32(max[2], max[3])));
}

/* Sixteen numbers, to the nearest, ties to even. */
NEON_INLINE int8x16_t rounded(const float *x, float inverse)
{
    int16x8_t half[2];
    for (int i = 0; i < 2; i++) {
        int32x4_t a = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + i * 8), inverse));
        int32x4_t b = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + i * 8 + 4), inverse));
        half[i] = vuzp1q_s16(vreinterpretq_s16_s32(a), vreinterpretq_s16_s32(b));
    }
    return vuzp1q_s8(vreinterpretq_s8_s16(half[0]), vreinterpretq_s8_s16(half[1]));
}

/* One block of b elements; returns its scale. */
NEON_INLINE float quantize_block(const float *x, int64_t b, int8_t *q)
{
    uint32_t bits = max_bits(x, b);
    if (bits >= INF_BITS || bits == 0) {
        memset(q, bits != 0, (size_t)b); /* times NaN is NaN; times 0 is 0 */
        return bits ? NAN : 0;
    }
    float max;
    memcpy(&max, &bits, sizeof max);
    float d = max / 127, inverse = 127 / max;
    if (inverse > FLT_MAX) /* numbers too small to have an inverse */
        inverse = FLT_MAX;
    for (int64_t i = 0; i < b; i += 16)
        vst1q_s8(q + i, rounded(x + i, inverse));
    return d;
}

/* The bits of the largest magnitude of each of four blocks of 32. */
NEON_INLINE uint32x4_t max_bits_of4(const float *x)
{
    const uint32x4_t magnitude = vdupq_n_u32(0x7fffffff);
    uint32x4_t max[4];
    for (int block = 0; block < 4; block++) {
        max[block] = vdupq_n_u32(0);
        for (int i = 0; i < 32; i += 4) {
            uint32x4_t bits = vreinterpretq_u32_f32(vld1q_f32(x + block * 32 + i));
            max[block] = vmaxq_u32(max[block], vandq_u32(bits, magnitude));
        }
    }
    return vpmaxq_u32(vpmaxq_u32(max[0], max[1]), vpmaxq_u32(max[2], max[3]));
}

/* Four blocks of 32, whose divisions are then one; false: some number is not finite. */
NEON_INLINE bool quantize_four(const float *x, int8_t *q, float *d)
{
    uint32x4_t bits = max_bits_of4(x);
    if (vmaxvq_u32(bits) >= INF_BITS)
        return false;
    float32x4_t max = vreinterpretq_f32_u32(bits), all = vdupq_n_f32(127);
    float inverse[4];
    vst1q_f32(d, vdivq_f32(max, all));
    vst1q_f32(inverse, vminq_f32(vdivq_f32(all, max), vdupq_n_f32(FLT_MAX)));
    for (int i = 0; i < 128; i += 16)
        vst1q_s8(q + i, rounded(x + i, inverse[i / 32]));
    return true;
}

/* At most 256 numbers, in blocks of b. */
NEON_INLINE void quantize_run(const float *x, int64_t n, int64_t b, int8_t *q, float *d)
{
    for (int64_t i = 0; i < n;) {
        if (b == 32 && i + 128 <= n && quantize_four(x + i, q + i, d + i / 32)) {
            i += 128;
            continue;
        }
        d[i / b] = quantize_block(x + i, b, q + i);
        i += b;
    }
}

/* Columns [col, col_end) of a row. */
NEON_INLINE void quantize_part(const float *x, int64_t n, int64_t col, int64_t col_end, kact act,
                               int64_t b, char *to)
{
    float *d = (float *)(uintptr_t)act_d_of(act, to, n);
    int16_t *sum = (int16_t *)(uintptr_t)act_sum(act, to, n);
    bool twice = act_is_double(act);
    for (int64_t i = col; i < col_end; i += RUN) {
        int8_t q[RUN];
        int64_t count = col_end - i < RUN ? col_end - i : RUN;
        quantize_run(x + i, count, b, q, d + i / b);
        for (int64_t j = 0; j < count; j += 16) {
            int8x16_t v = vld1q_s8(q + j);
            int64x2_t eights = vreinterpretq_s64_s8(v);
            sum[(i + j) / 16] = vaddlvq_s8(v);
            if (twice) {
                vst1q_s64((int64_t *)(void *)(to + 2 * (i + j)), vdupq_laneq_s64(eights, 0));
                vst1q_s64((int64_t *)(void *)(to + 2 * (i + j) + 16), vdupq_laneq_s64(eights, 1));
            } else {
                vst1q_s8((int8_t *)to + i + j, v);
            }
        }
    }
}

/* By columns, a tile is a multiple of 256: it cuts no block. */
void k_quantize_neon(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    kact act = (kact)k->choice.quantize.act;
    kpart part = kpart_of(k, k->size.quantize.width, begin, end);
    if (act_is_split(act)) {
        if (!split_rows(k, begin, end))
            k_quantize_c(k, t, begin, end);
        return;
    }
    for (int64_t row = part.row; row < part.row_end; row++) {
        const float *x = (const float *)((const char *)k->in[0] + row * k->pitch[0]); /* [n] */
        char *to = (char *)k->out[0] + row * k->out_pitch[0];
        if (act_block(act) == 32)
            quantize_part(x, k->size.quantize.width, part.col, part.col_end, act, 32, to);
        else
            quantize_part(x, k->size.quantize.width, part.col, part.col_end, act, 256, to);
    }
}

/* The sum of 32 codes of row r, from column i on. */
NEON_INLINE void put_sum(void *sums, kact act, int64_t i, int64_t r, int sum, float d)
{
    if (act == ACT_Q8X4) {
        ((float *)sums)[i / 32 * 4 + r] = d * (float)sum;
    } else {
        int8_t *two = (int8_t *)sums + i / 256 * 64 + r * 8 + i % 256 / 32;
        two[0] = (int8_t)(sum & 127);
        two[32] = (int8_t)(sum >> 7);
    }
}

/* Row r of four that are interleaved at `to`; x NULL: of zeros. */
NEON_INLINE void interleave_row(const float *x, int64_t n, int64_t r, kact act, int64_t b, char *to)
{
    float *d4 = (float *)(uintptr_t)act_d4(to, n) + r / 2 * 4 + r % 2;
    void *sums = (void *)(uintptr_t)act_sum4(act, to, n);
    for (int64_t i = 0; i < n; i += RUN) {
        int8_t q[RUN] = {0};
        float d[RUN / 32] = {0};
        int64_t count = n - i < RUN ? n - i : RUN;
        if (x)
            quantize_run(x + i, count, b, q, d);
        for (int64_t j = 0; j < count; j += b, d4 += 8)
            d4[0] = d4[2] = d[j / b];
        for (int64_t j = 0; j < count; j += 32) {
            int8x16_t v[2] = {vld1q_s8(q + j), vld1q_s8(q + j + 16)};
            for (int h = 0; h < 2; h++) {
                char *at = to + (i + j + h * 16) * 4 + r * 8;
                vst1_s8((int8_t *)at, vget_low_s8(v[h]));
                vst1_s8((int8_t *)at + 32, vget_high_s8(v[h]));
            }
            put_sum(sums, act, i + j, r, vaddlvq_s8(v[0]) + vaddlvq_s8(v[1]), d[j / b]);
        }
    }
}

void k_quantize4_neon(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    kact act = (kact)k->choice.quantize.act;
    int64_t n = k->size.quantize.width;
    (void)t;
    if (act_is_split(act)) {
        split_quads(k, begin, end);
        return;
    }
    for (int64_t row = begin * 4; row < end * 4; row++) {
        const float *x = (const float *)((const char *)k->in[0] + row * k->pitch[0]);
        char *to = (char *)k->out[0] + row / 4 * 4 * k->out_pitch[0];
        if (row >= k->size.quantize.rows)
            x = NULL;
        if (act == ACT_Q8X4)
            interleave_row(x, n, row % 4, ACT_Q8X4, 32, to);
        else
            interleave_row(x, n, row % 4, ACT_Q8KX4, 256, to);
    }
}
