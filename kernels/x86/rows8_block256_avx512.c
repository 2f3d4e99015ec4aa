/* rows8_block256_avx512.c - interleaved weights with a scale for each 256 columns, times 8-bit activations, with VNNI.
 *
 * As rows8_block32_avx512.c, but half sums are multiplied by the scales of their groups, and by those of the block once in 256
 * columns. Minima meet the sums of the activations as integers: a word for each 16 columns, of which two may share
 * a minimum.
 *
 * One row, 32 columns of 8 rows: Q4_K 18 instructions for the two vector ports, Q5_K 36, Q6_K 36; at what two cores
 * of a Sapphire Rapids read, 5 bytes a cycle each, their bytes take 29, 35 and 42 cycles. */
#include "kernels/kernel_decls.h"

#include "kernels/act.h"
#include "kernels/c/rows8.h"
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

/* The scales of a group, for both halves of eight rows. */
X86_INLINE __m512 scale_of(const uint8_t *scale)
{
    __m256i wide = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)scale));
    return codes_twice(_mm256_cvtepi32_ps(wide));
}

/* Steps [step, end) times activations, of which `sum` is the sum. */
X86_INLINE __m512 products(const __m512i v[4], const int8_t *q, int step, int end, int offset,
                           int sum)
{
    __m512i s = offset ? _mm512_set1_epi32(-offset / 2 * sum) : _mm512_setzero_si512();
    for (; step < end; step++)
        s = _mm512_dpbusd_epi32(s, v[step], codes_repeat(q + step * 8));
    return _mm512_cvtepi32_ps(s);
}

/* 32 columns, added to u. */
X86_INLINE __m512 add_sub(__m512 u, const __m512i v[4], const int8_t *q, const int16_t *sum,
                          const __m512 scale[2], const rows8_block256 *t)
{
    if (t->groups == 8)
        return _mm512_fmadd_ps(products(v, q, 0, 4, t->offset, sum[0] + sum[1]), scale[0], u);
    u = _mm512_fmadd_ps(products(v, q, 0, 2, t->offset, sum[0]), scale[0], u);
    return _mm512_fmadd_ps(products(v, q, 2, 4, t->offset, sum[1]), scale[1], u);
}

/* Minima of eight rows, [groups][8], as pairs of words: of each 16 columns of 32. */
X86_INLINE void minima_of(const uint8_t *min, int groups, __m256i m[8])
{
#pragma GCC unroll 8
    for (int g = 0; g < 8; g++) {
        const uint8_t *at = min + g * groups;
        __m256i first = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)at)), second = first;
        if (groups == 16)
            second = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)(at + 8)));
        m[g] = _mm256_or_si256(first, _mm256_slli_epi32(second, 16));
    }
}

/* Those times the sums of the activations. */
X86_INLINE __m256 add_minima(const __m256i m[8], const int16_t *sum)
{
    __m256i all = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int g = 0; g < 8; g++) {
        int32_t pair;
        memcpy(&pair, sum + 2 * g, sizeof pair);
        all = _mm256_dpwssd_epi32(all, m[g], _mm256_set1_epi32(pair));
    }
    return _mm256_cvtepi32_ps(all);
}

X86_INLINE void group(const uint8_t *w, const void *const *x, int n_x, int64_t n,
                      float (*sum)[LAYOUT_GROUP], const rows8_block256 *t)
{
    __m512 acc[ROWS8_X_MAX];
    __m256 less[ROWS8_X_MAX];
    for (int i = 0; i < n_x; i++) {
        acc[i] = _mm512_setzero_ps();
        less[i] = _mm256_setzero_ps();
    }
    for (int64_t b = 0; b < n / BLOCK; b++, w += t->bytes) {
        uint8_t scale8[GROUPS_BYTES], min8[GROUPS_BYTES];
        __m512 u[ROWS8_X_MAX];
        const uint8_t *scales = t->scales(w, scale8, min8);
        x86_hint(w, t->codes_at);
        for (int i = 0; i < n_x; i++)
            u[i] = _mm512_setzero_ps();
        for (int sub = 0; sub < BLOCK / SUB; sub++) {
            const uint8_t *codes = w + t->codes_at + sub * t->sub_bytes;
            const uint8_t *of_sub = scales + sub * t->groups;
            const __m512 scale[2] = {scale_of(of_sub),
                                     scale_of(of_sub + (t->groups == 16 ? 8 : 0))};
            __m512i v[4];
            x86_hint(codes, t->sub_bytes);
            t->codes(codes, v);
#pragma GCC unroll 8
            for (int i = 0; i < n_x; i++) {
                const act_block256 a = act_of(x[i], n, b);
                u[i] = add_sub(u[i], v, a.q + sub * SUB, a.sum + sub * 2, scale, t);
            }
        }
        __m256i m[8];
        if (t->has_min)
            minima_of(min8, t->groups, m);
        const __m512 d = codes_twice(_mm256_mul_ps(codes_f16(w), _mm256_set1_ps(t->unit)));
#pragma GCC unroll 8
        for (int i = 0; i < n_x; i++) {
            const act_block256 a = act_of(x[i], n, b);
            acc[i] = _mm512_fmadd_ps(u[i], _mm512_mul_ps(d, _mm512_set1_ps(a.d)), acc[i]);
            if (t->has_min) {
                __m256 dmin = _mm256_mul_ps(codes_f16(w + 16), _mm256_set1_ps(a.d));
                less[i] = _mm256_fmadd_ps(add_minima(m, a.sum), dmin, less[i]);
            }
        }
    }
    for (int i = 0; i < n_x; i++) {
        __m256 all = codes_join(acc[i]);
        _mm256_storeu_ps(sum[i], t->has_min ? _mm256_sub_ps(all, less[i]) : all);
    }
}

ROWS8_KERNELS(Q2_K, avx512, group)
ROWS8_KERNELS(Q3_K, avx512, group)
ROWS8_KERNELS(Q4_K, avx512, group)
ROWS8_KERNELS(Q5_K, avx512, group)
ROWS8_KERNELS(Q6_K, avx512, group)
ROWS8_KERNELS(IQ4_XS, avx512, group)
