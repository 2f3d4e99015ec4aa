/* attend_vec_avx2.h - the vectors of attend_vec.h with AVX2 and FMA, and what has no name in common. */
#ifndef WEFT_KERNELS_X86_ATTEND_VEC_AVX2_H
#define WEFT_KERNELS_X86_ATTEND_VEC_AVX2_H

#include <immintrin.h>
#include "kernels/x86/unpack.h"

typedef __m256 vf;
typedef __m256i vi;
typedef __m256 vm;
enum { WIDE = 8, DOT_PANELS = 2, DOT_KEYS = 4, ADD_VECTORS = 2 };
#define WIDE_OP(op) _mm256_##op /* as attend_vec.h names it */

X86_INLINE vf vf_from_f16(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const void *)p));
}
X86_INLINE vf vf_from_bf16(const uint16_t *p)
{
    __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
}

/* Four floats in both halves; those of the lower. */
X86_INLINE vf vf_four(const float *p)
{
    __m128 four = _mm_loadu_ps(p);
    return _mm256_set_m128(four, four);
}
X86_INLINE void vf_put_four(float *p, vf a)
{
    _mm_storeu_ps(p, _mm256_castps256_ps128(a));
}

/* Four columns of two keys, a key to each half; and column l of each. */
X86_INLINE vf vf_keys(const float *key, int64_t pitch)
{
    return _mm256_set_m128(_mm_loadu_ps(key + pitch), _mm_loadu_ps(key));
}
#define vf_column(y, l) _mm256_permute_ps(y, 0x55 * (l))

/* The upper half in place of the lower; there are no quarters. */
X86_INLINE vf vf_upper_half(vf a)
{
    return _mm256_permute2f128_ps(a, a, 1);
}
X86_INLINE vf vf_second_quarter(vf a)
{
    return a;
}

/* The nearest whole number; a 2^n for -126 <= n <= 0, NaN of a NaN. */
X86_INLINE vf vf_round(vf a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
X86_INLINE vf vf_scale(vf a, vf n)
{
    __m256i whole = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
    vf scaled = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), whole));
    return _mm256_or_ps(scaled, _mm256_cmp_ps(n, n, _CMP_UNORD_Q));
}

X86_INLINE vi vi_load(const int32_t *p)
{
    return _mm256_loadu_si256((const void *)p);
}
X86_INLINE vi vi_four(const int32_t *p)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)p));
}
X86_INLINE vi vi_quarters(void)
{
    return _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
}

/* begin <= at < end; where so a, else b. */
X86_INLINE vm vm_within(vi begin, vi at, vi end)
{
    __m256i early = _mm256_cmpgt_epi32(begin, at), soon = _mm256_cmpgt_epi32(end, at);
    return _mm256_castsi256_ps(_mm256_andnot_si256(early, soon));
}
X86_INLINE vf vf_choose(vm m, vf a, vf b)
{
    return _mm256_blendv_ps(b, a, m);
}

#endif
