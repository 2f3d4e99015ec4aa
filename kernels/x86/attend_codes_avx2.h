/* attend_codes_avx2.h - vectors and products of codes with AVX2, for attend_codes_x86.h.
 *
 * vpmaddwd multiplies numbers of 16 bits and adds two products: of the four codes in a lane it takes the first and third,
 * then the second and fourth, which are bytes of words. A quad is the numbers in that order. A lane of a vector is a
 * token or a column.
 *
 * Bounds and what was reached, as in attend_codes_avx512.h:
 *   products   16 vpmaddwd, 16 vpaddd, 4 to unpack, with keys and with values (ports 0, 1, 5): 24
 *   the rest   22 instructions: 9
 *   together   33                                       reached 43 (f16: 51) */
#ifndef WEFT_KERNELS_X86_ATTEND_CODES_AVX2_H
#define WEFT_KERNELS_X86_ATTEND_CODES_AVX2_H

#ifndef ATTEND_AVX2
#define ATTEND_AVX2 /* for attend_vec.h, where this is included by itself */
#endif
#include "kernels/c/attend_codes_operand.h"
#include "kernels/x86/attend_x86.h"

X86_INLINE vi vi_bits(vf a)
{
    return _mm256_castps_si256(a);
}
X86_INLINE vf vf_of_bits(vi a)
{
    return _mm256_castsi256_ps(a);
}
X86_INLINE vi vi_magnitude_max(vi a, vi b)
{
    return _mm256_max_epu32(a, _mm256_and_si256(b, _mm256_set1_epi32(0x7fffffff)));
}
X86_INLINE vm vm_less(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
}
X86_INLINE vm vm_within_f(vf a, vf b, vf c)
{
    return _mm256_and_ps(_mm256_cmp_ps(a, b, _CMP_LE_OQ), _mm256_cmp_ps(b, c, _CMP_LT_OQ));
}

X86_INLINE vf vf_four(const float *p)
{
    return _mm256_broadcast_ps((const __m128 *)(const void *)p);
}
X86_INLINE vf vf_fours(void)
{
    return _mm256_setr_ps(0, 1, 2, 3, 0, 1, 2, 3);
}
X86_INLINE vf vf_each(const float *p)
{
    return _mm256_set_m128(_mm_broadcast_ss(p + 1), _mm_broadcast_ss(p));
}
X86_INLINE void vf_each_put(float *p, vf x)
{
    p[0] = _mm256_cvtss_f32(x);
    p[1] = _mm_cvtss_f32(_mm256_extractf128_ps(x, 1));
}

X86_INLINE void tokens_turn(float (*s)[KEYS], int64_t j, vf to[8])
{
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        const float *a = s[i % 2 * 2] + 16 * j + i / 2 * 4;
        to[i] = _mm256_set_m128(_mm_loadu_ps(a + KEYS), _mm_loadu_ps(a));
    }
}

/* The first and third number as words, then the second and fourth, twice: of two queries, 16 bytes each. */
X86_INLINE void quad_put(int8_t *to, vi x)
{
    const __m256i order = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 8, 9, 4, 5, 12, 13, 0, 1, 8, 9, 4, 5, 12, 13));
    _mm256_storeu_si256((void *)to, _mm256_shuffle_epi8(x, order));
}

/* ---- products ---- */

typedef struct {
    __m256i sum;
} codes_sums;

typedef struct {
    __m256i even, odd, stored;
} codes_loaded;

X86_INLINE codes_sums sums_begin(const codes_whole *x, int64_t g, bool half)
{
    int32_t low = codes_offset(x, g, half);
    return (codes_sums){_mm256_set1_epi32(low)};
}

X86_INLINE vf sums_end(codes_sums s)
{
    return _mm256_cvtepi32_ps(s.sum);
}

X86_INLINE codes_loaded codes_load(const uint8_t *at, bool half)
{
    const __m256i mask = _mm256_set1_epi16(half ? 15 : 255);
    __m256i x = _mm256_loadu_si256((const void *)at), odd = _mm256_srli_epi16(x, 8);
    return (codes_loaded){_mm256_and_si256(x, mask), half ? _mm256_and_si256(odd, mask) : odd, x};
}

X86_INLINE codes_loaded codes_upper(codes_loaded x)
{
    x.even = _mm256_and_si256(_mm256_srli_epi16(x.stored, 4), _mm256_set1_epi16(15));
    x.odd = _mm256_srli_epi16(x.stored, 12);
    return x;
}

X86_INLINE __m256i two_at(const int8_t *p)
{
    int32_t two;
    memcpy(&two, p, sizeof two);
    return _mm256_set1_epi32(two);
}

/* One quad of codes in n_v vectors, for n_q queries. */
X86_INLINE void quad_add(const int8_t (*quad)[4][16], const codes_loaded *code,
                         codes_sums sums[4][4], int n_q, int n_v)
{
#pragma GCC unroll 4
    for (int g = 0; g < n_q; g++) {
        __m256i even = two_at((*quad)[g]), odd = two_at((*quad)[g] + 4);
#pragma GCC unroll 4
        for (int v = 0; v < n_v; v++) {
            __m256i both = _mm256_add_epi32(_mm256_madd_epi16(code[v].even, even),
                                            _mm256_madd_epi16(code[v].odd, odd));
            sums[g][v].sum = _mm256_add_epi32(sums[g][v].sum, both);
            __asm__("" : "+x"(sums[g][v].sum)); /* where it is */
        }
    }
}

#endif
