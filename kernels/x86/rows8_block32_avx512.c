/* rows8_block32_avx512.c - interleaved weights with a scale for each 32 columns, times 8-bit activations, with VNNI.
 *
 * A register holds eight columns of eight rows. vpdpbusd with eight activations, repeated as they are loaded, leaves two
 * half sums of each row; they are scaled as they are and joined once, at the end. Codes are made unsigned by an offset:
 * sums begin with what it adds, taken away, half of it for each of the two.
 *
 * One row, 32 columns of 8 rows: Q8_0 14 instructions for the two vector ports, Q4_0 16, Q5_0 34; at what two cores
 * of a Sapphire Rapids read, 5 bytes a cycle each, their bytes take 54, 29 and 35 cycles. */
#include "kernels/kernel_decls.h"

#include "kernels/act.h"
#include "kernels/c/rows8.h"
#include "kernels/x86/codes_avx512.h"

enum { BLOCK = 32 };

/* Where the parts of a quantised row begin. */
typedef struct {
    int64_t d, sum;
} parts;

X86_INLINE float act_scale(const void *x, const parts *at, int64_t b)
{
    return ((const float *)((const char *)x + at->d))[b];
}

X86_INLINE int act_sum32(const void *x, const parts *at, int64_t b)
{
    const int16_t *sum = (const int16_t *)((const char *)x + at->sum) + 2 * b;
    return sum[0] + sum[1];
}

/* Products of one block with those of x, added up in lanes: two of each row. */
X86_INLINE __m512i products(const __m512i v[4], const int8_t *q, int offset, int sum)
{
    __m512i s = offset ? _mm512_set1_epi32(-offset / 2 * sum) : _mm512_setzero_si512();
    for (int step = 0; step < 4; step++)
        s = _mm512_dpbusd_epi32(s, v[step], codes_repeat(q + step * 8));
    return s;
}

X86_INLINE void group(const uint8_t *w, const void *const *x, int n_x, int64_t n,
                      float (*sum)[LAYOUT_GROUP], const rows8_block32 *t)
{
    const parts at = {act_pad(n), act_pad(n) + act_pad(n / BLOCK * 4)};
    __m512 acc[ROWS8_X_MAX];
    __m256 mins[ROWS8_X_MAX];
    for (int i = 0; i < n_x; i++) {
        acc[i] = _mm512_setzero_ps();
        mins[i] = _mm256_setzero_ps();
    }
    for (int64_t b = 0; b < n / BLOCK; b++, w += t->bytes) {
        __m512i v[4];
        x86_hint(w, t->bytes);
        __m256 d = t->scales(w);
        if (t->unit != 1)
            d = _mm256_mul_ps(d, _mm256_set1_ps(t->unit));
        const __m512 scale = codes_twice(d);
        t->codes(w + t->codes_at, v);
#pragma GCC unroll 8
        for (int i = 0; i < n_x; i++) {
            int of_x = t->offset || t->has_min ? act_sum32(x[i], &at, b) : 0;
            float dx = act_scale(x[i], &at, b);
            __m512i s = products(v, act_q(x[i]) + b * BLOCK, t->offset, of_x);
            acc[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(s),
                                     _mm512_mul_ps(scale, _mm512_set1_ps(dx)), acc[i]);
            if (t->has_min)
                mins[i] =
                    _mm256_fmadd_ps(t->scales(w + 16), _mm256_set1_ps(dx * (float)of_x), mins[i]);
        }
    }
    for (int i = 0; i < n_x; i++) {
        __m256 all = codes_join(acc[i]);
        _mm256_storeu_ps(sum[i], t->has_min ? _mm256_add_ps(all, mins[i]) : all);
    }
}

ROWS8_KERNELS(Q8_0, avx512, group)
ROWS8_KERNELS(Q4_0, avx512, group)
ROWS8_KERNELS(Q4_1, avx512, group)
ROWS8_KERNELS(Q5_0, avx512, group)
ROWS8_KERNELS(Q5_1, avx512, group)
ROWS8_KERNELS(IQ4_NL, avx512, group)
ROWS8_KERNELS(MXFP4, avx512, group)
