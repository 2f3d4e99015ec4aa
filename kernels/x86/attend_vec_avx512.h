/* attend_vec_avx512.h - the vectors of attend_vec.h with AVX-512, and what has no name in common. */
#ifndef WEFT_KERNELS_X86_ATTEND_VEC_AVX512_H
#define WEFT_KERNELS_X86_ATTEND_VEC_AVX512_H

#include <immintrin.h>
#include "kernels/x86/unpack.h"

typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;
enum { WIDE = 16, DOT_PANELS = 4, DOT_KEYS = 4, ADD_VECTORS = 4 };
#define WIDE_OP(op) _mm512_##op /* as attend_vec.h names it */

X86_INLINE vf vf_from_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const void *)p));
}
X86_INLINE vf vf_from_bf16(const uint16_t *p)
{
    __m512i bits = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
}

/* Four floats in every quarter; those of the first. */
X86_INLINE vf vf_four(const float *p)
{
    return _mm512_broadcast_f32x4(_mm_loadu_ps(p));
}
X86_INLINE void vf_put_four(float *p, vf a)
{
    _mm_storeu_ps(p, _mm512_castps512_ps128(a));
}

/* Four columns of four keys, a key to each quarter; and column l of each. */
X86_INLINE vf vf_keys(const float *key, int64_t pitch)
{
    vf y = _mm512_castps128_ps512(_mm_loadu_ps(key));
    y = _mm512_insertf32x4(y, _mm_loadu_ps(key + pitch), 1);
    y = _mm512_insertf32x4(y, _mm_loadu_ps(key + 2 * pitch), 2);
    return _mm512_insertf32x4(y, _mm_loadu_ps(key + 3 * pitch), 3);
}
#define vf_column(y, l) _mm512_shuffle_ps(y, y, 0x55 * (l))

/* The upper half in place of the lower; the second quarter in place of the first. */
X86_INLINE vf vf_upper_half(vf a)
{
    return _mm512_shuffle_f32x4(a, a, 0x4e);
}
X86_INLINE vf vf_second_quarter(vf a)
{
    return _mm512_shuffle_f32x4(a, a, 0xb1);
}

/* The nearest whole number; a 2^n, NaN of a NaN. */
X86_INLINE vf vf_round(vf a)
{
    return _mm512_roundscale_ps(a, 8);
}
X86_INLINE vf vf_scale(vf a, vf n)
{
    return _mm512_scalef_ps(a, n);
}

X86_INLINE vi vi_load(const int32_t *p)
{
    return _mm512_loadu_si512(p);
}
X86_INLINE vi vi_four(const int32_t *p)
{
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)p));
}
X86_INLINE vi vi_quarters(void)
{
    return _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
}

/* begin <= at < end; where so a, else b. */
X86_INLINE vm vm_within(vi begin, vi at, vi end)
{
    return _mm512_cmple_epi32_mask(begin, at) & _mm512_cmplt_epi32_mask(at, end);
}
X86_INLINE vf vf_choose(vm m, vf a, vf b)
{
    return _mm512_mask_blend_ps(m, b, a);
}

#endif
