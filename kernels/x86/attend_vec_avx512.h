/* attend_vec_avx512.h - the vectors of attend_vec.h with AVX-512, and what has no name in common. */
#ifndef WEFT_KERNELS_X86_ATTEND_VEC_AVX512_H
#define WEFT_KERNELS_X86_ATTEND_VEC_AVX512_H

#include <immintrin.h>
#include "kernels/x86/unpack.h"

typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;
/* Tiles of many queries: panels and keys. Of few: vectors of keys for more than four queries, turns of the inner loop at
 * once, and up to how many queries are few. */
enum {
    WIDE = 16,
    DOT_PANELS = 4,
    DOT_PANELS_LESS = 2,
    DOT_KEYS = 4,
    FEW_VECTORS = 2,
    FEW_UNROLL = 1,
    FEW_MAX = 8,
};
#define WIDE_OP(op) _mm512_##op /* as attend_vec.h names it */

#define VF_IN_REGISTER(x) (void)(x) /* no gain here */

/* Vectors of values for n queries: with what is multiplied they fit into 32 registers. */
X86_INLINE int add_vectors(int n)
{
    return n < 3 ? 8 : n < 7 ? 4 : 2;
}

X86_INLINE vf vf_from_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const void *)p));
}
X86_INLINE vf vf_from_bf16(const uint16_t *p)
{
    __m512i bits = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
}

/* What four queries have in every quarter, eight in both halves, or 16; those of the first. */
X86_INLINE vf vf_lanes(const float *p, int lanes)
{
    return lanes == 16  ? _mm512_loadu_ps(p)
           : lanes == 8 ? _mm512_broadcast_f32x8(_mm256_loadu_ps(p))
                        : _mm512_broadcast_f32x4(_mm_loadu_ps(p));
}
X86_INLINE void vf_put_lanes(float *p, vf a, int lanes)
{
    if (lanes == 16)
        _mm512_storeu_ps(p, a);
    else if (lanes == 8)
        _mm256_storeu_ps(p, _mm512_castps512_ps256(a));
    else
        _mm_storeu_ps(p, _mm512_castps512_ps128(a));
}

/* Eight floats twice; eight stored numbers of a key and of the next. */
X86_INLINE vf vf_eight(const float *p)
{
    return _mm512_broadcast_f32x8(_mm256_loadu_ps(p));
}
X86_INLINE __m256i eights_of_16(const char *key, int64_t pitch)
{
    __m256i first = _mm256_castsi128_si256(_mm_loadu_si128((const void *)key));
    return _mm256_inserti128_si256(first, _mm_loadu_si128((const void *)(key + pitch)), 1);
}
X86_INLINE vf vf_eights_f32(const char *key, int64_t pitch)
{
    vf first = _mm512_castps256_ps512(_mm256_loadu_ps((const float *)(const void *)key));
    return _mm512_insertf32x8(first, _mm256_loadu_ps((const float *)(const void *)(key + pitch)),
                              1);
}
X86_INLINE vf vf_eights_f16(const char *key, int64_t pitch)
{
    return _mm512_cvtph_ps(eights_of_16(key, pitch));
}
X86_INLINE vf vf_eights_bf16(const char *key, int64_t pitch)
{
    __m512i bits = _mm512_cvtepu16_epi32(eights_of_16(key, pitch));
    return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
}

/* Lanes 0 to 3 and 4 to 7 added, of a and then of b, in each half; in each four lanes the first two and the others, of a
 * and b; and those next to each other. */
X86_INLINE vf vf_fold_4(vf a, vf b)
{
    const __m512i other =
        _mm512_setr_epi32(4, 5, 6, 7, 16, 17, 18, 19, 12, 13, 14, 15, 24, 25, 26, 27);
    return _mm512_add_ps(_mm512_mask_blend_ps(0xf0f0, a, b), _mm512_permutex2var_ps(a, other, b));
}
X86_INLINE vf vf_fold_2(vf a, vf b)
{
    return _mm512_add_ps(_mm512_mask_blend_ps(0xcccc, a, b), _mm512_shuffle_ps(a, b, 0x4e));
}
X86_INLINE vf vf_fold_1(vf a, vf b)
{
    return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0xd8), _mm512_shuffle_ps(a, b, 0x8d));
}

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

X86_INLINE vi vi_lanes(const int32_t *p, int lanes)
{
    return _mm512_castps_si512(vf_lanes((const float *)(const void *)p, lanes));
}
/* The key of each lane, counted from the vector's first. */
X86_INLINE vi vi_keys(int lanes)
{
    return lanes == 16  ? _mm512_setzero_si512()
           : lanes == 8 ? _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1)
                        : _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
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
