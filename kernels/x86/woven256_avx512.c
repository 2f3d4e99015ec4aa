/* woven256_avx512.c - woven weights with a scale for each 256 columns, times 8-bit activations, with VNNI.
 *
 * As woven32_avx512.c, but half sums are joined and multiplied by the scales of their groups as whole numbers, eight
 * rows in the eight lanes of 64 bits, so that floats come in once in 256 columns. Minima meet the sums of the
 * activations likewise: a word for each 16 columns, two of which share a minimum.
 *
 * One row, 32 columns of 8 rows: Q4_K 18 instructions for the two vector ports, Q5_K 36, Q6_K 36; at what two cores
 * of a Sapphire Rapids read, 5 bytes a cycle each, their bytes take 29, 35 and 42 cycles. */
#include "kernels/kernel_decls.h"

#include "kernels/act.h"
#include "kernels/c/woven.h"
#include "kernels/x86/codes_avx512.h"

enum { BLOCK = 256, SUB = 32 };

/* Of one row of activations, at the block at hand. */
typedef struct {
    const int8_t *q;
    const int16_t *sum; /* of each 16 */
    float d;
} act_block256;

X86_INLINE act_block256 act_of(const void *x, int64_t n, int64_t b)
{
    return (act_block256){act_q(x) + b * BLOCK, act_sum(ACT_Q8K, x, n) + b * 16, act_d(x, n)[b]};
}

/* The scales of eight rows in lanes of 64 bits. */
X86_INLINE __m512i widen(const uint8_t *scale)
{
    return _mm512_cvtepi8_epi64(_mm_loadl_epi64((const void *)scale));
}

/* Half sums of each row, joined, times its scale. */
X86_INLINE __m512i scaled(__m512i s, __m512i scale)
{
    return _mm512_mul_epi32(_mm512_add_epi32(s, _mm512_srli_epi64(s, 32)), scale);
}

X86_INLINE __m512i begin_of(int offset, int sum)
{
    return offset ? _mm512_set1_epi32(-offset / 2 * sum) : _mm512_setzero_si512();
}

/* 32 columns: v times activations times scales. */
X86_INLINE __m512i sub_block(const __m512i v[4], const int8_t *q, const int16_t *sum,
                             const __m512i scale[2], const woven256 *t)
{
    __m512i s[2];
    if (t->groups == 8) {
        s[0] = begin_of(t->offset, sum[0] + sum[1]);
        for (int step = 0; step < 4; step++)
            s[0] = _mm512_dpbusd_epi32(s[0], v[step], codes_repeat(q + step * 8));
        return scaled(s[0], scale[0]);
    }
    for (int h = 0; h < 2; h++) {
        s[h] = begin_of(t->offset, sum[h]);
        for (int step = 2 * h; step < 2 * h + 2; step++)
            s[h] = _mm512_dpbusd_epi32(s[h], v[step], codes_repeat(q + step * 8));
    }
    return _mm512_add_epi64(scaled(s[0], scale[0]), scaled(s[1], scale[1]));
}

/* Minima of eight rows, [8 groups][8], times the sums of the groups. */
X86_INLINE __m256i minima(const uint8_t *min, const int16_t *sum)
{
    __m256i all = _mm256_setzero_si256();
    for (int g = 0; g < 8; g++) {
        __m256i m = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)(min + g * 8)));
        int32_t pair;
        memcpy(&pair, sum + 2 * g, sizeof pair);
        m = _mm256_or_si256(m, _mm256_slli_epi32(m, 16));
        all = _mm256_dpwssd_epi32(all, m, _mm256_set1_epi32(pair));
    }
    return all;
}

X86_INLINE void group(const uint8_t *w, const void *const *x, int n_x, int64_t n,
                      float (*sum)[LAYOUT_GROUP], const woven256 *t)
{
    __m256 acc[WOVEN_X_MAX];
    for (int i = 0; i < n_x; i++)
        acc[i] = _mm256_setzero_ps();
    for (int64_t b = 0; b < n / BLOCK; b++, w += t->bytes) {
        uint8_t scale8[64], min8[64];
        __m512i u[WOVEN_X_MAX];
        const uint8_t *scales = t->scales(w, scale8, min8);
        x86_hint(w, t->codes_at);
        for (int i = 0; i < n_x; i++)
            u[i] = _mm512_setzero_si512();
        for (int sub = 0; sub < BLOCK / SUB; sub++) {
            const uint8_t *codes = w + t->codes_at + sub * t->sub_bytes;
            const uint8_t *of_sub = scales + sub * t->groups;
            const __m512i scale[2] = {widen(of_sub), widen(of_sub + (t->groups == 16 ? 8 : 0))};
            __m512i v[4];
            x86_hint(codes, t->sub_bytes);
            t->codes(codes, v);
#pragma GCC unroll 8
            for (int i = 0; i < n_x; i++) {
                const act_block256 a = act_of(x[i], n, b);
                u[i] = _mm512_add_epi64(u[i],
                                        sub_block(v, a.q + sub * SUB, a.sum + sub * 2, scale, t));
            }
        }
        const __m256 d = _mm256_mul_ps(codes_f16(w), _mm256_set1_ps(t->unit));
        for (int i = 0; i < n_x; i++) {
            const act_block256 a = act_of(x[i], n, b);
            __m256 y = _mm256_mul_ps(_mm512_cvtepi64_ps(u[i]), d);
            if (t->has_min)
                y = _mm256_fnmadd_ps(_mm256_cvtepi32_ps(minima(min8, a.sum)), codes_f16(w + 16), y);
            acc[i] = _mm256_fmadd_ps(y, _mm256_set1_ps(a.d), acc[i]);
        }
    }
    for (int i = 0; i < n_x; i++)
        _mm256_storeu_ps(sum[i], acc[i]);
}

WOVEN_KERNELS(Q4_K, avx512, group)
WOVEN_KERNELS(Q5_K, avx512, group)
WOVEN_KERNELS(Q6_K, avx512, group)
WOVEN_KERNELS(IQ4_XS, avx512, group)
