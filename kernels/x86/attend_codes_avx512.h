/* attend_codes_avx512.h - vectors and products of codes with AVX-512 VNNI, for attend_codes_x86.h.
 *
 * vpdpbusd multiplies bytes without a sign, the codes, with signed ones: a number is 128 * high + low, so that two
 * instructions take it. Of a quad that is four high bytes and four low ones, each read to all lanes at once; a lane of a
 * vector is a token or a column.
 *
 * Bounds and what was reached, cycles of a Sapphire Rapids core of 2.7 GHz for one position of four queries, width 64, in the
 * second cache:
 *   products   8 vpdpbusd with keys, 8 with values (ports 0, 5): 8; q4 1 more to unpack        reached 9.5
 *   the rest   11 instructions (numbers of a quad 12, twice; softmax 14; for 64 positions): 5.5  reached 12
 *   together   13.5                                                                             reached 21 (f16: 35) */
#ifndef WEFT_KERNELS_X86_ATTEND_CODES_AVX512_H
#define WEFT_KERNELS_X86_ATTEND_CODES_AVX512_H

#include "kernels/c/attend_codes_operand.h"
#include "kernels/x86/attend_x86.h"

X86_INLINE vi vi_bits(vf a)
{
    return _mm512_castps_si512(a);
}
X86_INLINE vf vf_of_bits(vi a)
{
    return _mm512_castsi512_ps(a);
}
X86_INLINE vi vi_magnitude_max(vi a, vi b)
{
    return _mm512_max_epu32(a, _mm512_and_si512(b, _mm512_set1_epi32(0x7fffffff)));
}
X86_INLINE vm vm_less(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}
X86_INLINE vm vm_within_f(vf a, vf b, vf c)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ) & _mm512_cmp_ps_mask(b, c, _CMP_LT_OQ);
}

X86_INLINE vf vf_four(const float *p)
{
    return _mm512_broadcast_f32x4(_mm_loadu_ps(p));
}
X86_INLINE vf vf_fours(void)
{
    return _mm512_broadcast_f32x4(_mm_setr_ps(0, 1, 2, 3));
}
X86_INLINE vf vf_each(const float *p)
{
    const __m512i order = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    return _mm512_permutexvar_ps(order, _mm512_castps128_ps512(_mm_loadu_ps(p)));
}
X86_INLINE void vf_each_put(float *p, vf x)
{
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    _mm_storeu_ps(p, _mm512_castps512_ps128(_mm512_permutexvar_ps(order, x)));
}

X86_INLINE void tokens_turn(float (*s)[KEYS], int64_t j, vf to[4])
{
    vf a = vf_load(s[0] + 16 * j), b = vf_load(s[1] + 16 * j);
    vf c = vf_load(s[2] + 16 * j), d = vf_load(s[3] + 16 * j);
    vf ab = _mm512_shuffle_f32x4(a, b, 0x44), ab2 = _mm512_shuffle_f32x4(a, b, 0xee);
    vf cd = _mm512_shuffle_f32x4(c, d, 0x44), cd2 = _mm512_shuffle_f32x4(c, d, 0xee);
    to[0] = _mm512_shuffle_f32x4(ab, cd, 0x88);
    to[1] = _mm512_shuffle_f32x4(ab, cd, 0xdd);
    to[2] = _mm512_shuffle_f32x4(ab2, cd2, 0x88);
    to[3] = _mm512_shuffle_f32x4(ab2, cd2, 0xdd);
}

/* A number of 15 bits is its upper eight and its lower seven: bytes 1 and 0 of twice its upper part with its lower one. The
 * first four bytes of a query's 16 are the upper parts, then come the lower ones. */
X86_INLINE void quad_put(int8_t *to, vi x)
{
    const __m512i order = _mm512_broadcast_i32x4(
        _mm_setr_epi8(1, 5, 9, 13, 0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1));
    const __m512i upper = _mm512_set1_epi32(0xff00), used = _mm512_set1_epi32(0xff7f);
    __m512i both = _mm512_ternarylogic_epi32(upper, _mm512_slli_epi32(x, 1), x, 0xca);
    _mm512_storeu_si512(to, _mm512_shuffle_epi8(_mm512_and_si512(both, used), order));
}

/* ---- products ---- */

typedef struct {
    __m512i high, low;
} codes_sums;

typedef struct {
    __m512i code, stored;
} codes_loaded;

X86_INLINE codes_sums sums_begin(const codes_whole *x, int64_t g, bool half)
{
    int32_t low = codes_offset(x, g, half);
    return (codes_sums){_mm512_setzero_si512(), _mm512_set1_epi32(low)};
}

X86_INLINE vf sums_end(codes_sums s)
{
    return _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_slli_epi32(s.high, 7), s.low));
}

X86_INLINE codes_loaded codes_load(const uint8_t *at, bool half)
{
    __m512i x = _mm512_loadu_si512(at);
    return (codes_loaded){half ? _mm512_and_si512(x, _mm512_set1_epi8(15)) : x, x};
}

X86_INLINE codes_loaded codes_upper(codes_loaded x)
{
    x.code = _mm512_and_si512(_mm512_srli_epi16(x.stored, 4), _mm512_set1_epi8(15));
    return x;
}

X86_INLINE __m512i four_at(const int8_t *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    return _mm512_set1_epi32(four);
}

/* One quad of codes in n_v vectors, for n_q queries. */
X86_INLINE void quad_add(const int8_t (*quad)[4][16], const codes_loaded *code,
                         codes_sums sums[4][4], int n_q, int n_v)
{
#pragma GCC unroll 4
    for (int g = 0; g < n_q; g++) {
        __m512i high = four_at((*quad)[g]), low = four_at((*quad)[g] + 4);
#pragma GCC unroll 4
        for (int v = 0; v < n_v; v++) {
            sums[g][v].high = _mm512_dpbusd_epi32(sums[g][v].high, code[v].code, high);
            sums[g][v].low = _mm512_dpbusd_epi32(sums[g][v].low, code[v].code, low);
#ifdef __AVX512F__ /* not emulated: sums stay in their registers */
            __asm__("" : "+v"(sums[g][v].high), "+v"(sums[g][v].low));
#endif
        }
    }
}

#endif
