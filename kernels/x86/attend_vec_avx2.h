/* attend_vec_avx2.h - the vectors of attend_vec.h with AVX2 and FMA, and what has no name in common. */
#ifndef WEFT_KERNELS_X86_ATTEND_VEC_AVX2_H
#define WEFT_KERNELS_X86_ATTEND_VEC_AVX2_H

#include <immintrin.h>
#include "kernels/x86/unpack.h"

typedef __m256 vf;
typedef __m256i vi;
typedef __m256 vm;
/* Tiles of many queries: panels and keys. Of few: vectors of keys for more than four queries, turns of the inner loop at
 * once, and up to how many queries are few. */
enum {
    WIDE = 8,
    DOT_PANELS = 3,
    DOT_PANELS_LESS = 2,
    DOT_KEYS = 4,
    FEW_VECTORS = 1,
    FEW_UNROLL = 2,
    FEW_MAX = 8,
};
#define WIDE_OP(op) _mm256_##op /* as attend_vec.h names it */

/* Load x once, and not for each of its products: that saves 6 % at four queries. */
#define VF_IN_REGISTER(x) __asm__("" : "+x"(x))

/* Vectors of values for n queries: with what is multiplied they fit into 16 registers. */
X86_INLINE int add_vectors(int n)
{
    return n == 1 ? 8 : n == 2 ? 4 : n < 7 ? 2 : 1;
}

X86_INLINE vf vf_from_f16(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const void *)p));
}
X86_INLINE vf vf_from_bf16(const uint16_t *p)
{
    __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
}

/* What four queries have in both halves, or eight; those of the lower. */
X86_INLINE vf vf_lanes(const float *p, int lanes)
{
    __m128 four = _mm_loadu_ps(p);
    return lanes == 8 ? _mm256_loadu_ps(p) : _mm256_set_m128(four, four);
}
X86_INLINE void vf_put_lanes(float *p, vf a, int lanes)
{
    if (lanes == 8)
        _mm256_storeu_ps(p, a);
    else
        _mm_storeu_ps(p, _mm256_castps256_ps128(a));
}

/* Eight floats; eight stored numbers of a key. */
X86_INLINE vf vf_eight(const float *p)
{
    return _mm256_loadu_ps(p);
}
X86_INLINE vf vf_eights_f32(const char *key, int64_t pitch)
{
    (void)pitch;
    return _mm256_loadu_ps((const float *)(const void *)key);
}
X86_INLINE vf vf_eights_f16(const char *key, int64_t pitch)
{
    (void)pitch;
    return vf_from_f16((const uint16_t *)(const void *)key);
}
X86_INLINE vf vf_eights_bf16(const char *key, int64_t pitch)
{
    (void)pitch;
    return vf_from_bf16((const uint16_t *)(const void *)key);
}

/* Lanes 0 to 3 and 4 to 7 added, of a and then of b; in each four lanes the first two and the others, of a and b; and
 * those next to each other. */
X86_INLINE vf vf_fold_4(vf a, vf b)
{
    return _mm256_add_ps(_mm256_blend_ps(a, b, 0xf0), _mm256_permute2f128_ps(a, b, 0x21));
}
X86_INLINE vf vf_fold_2(vf a, vf b)
{
    return _mm256_add_ps(_mm256_blend_ps(a, b, 0xcc), _mm256_shuffle_ps(a, b, 0x4e));
}
X86_INLINE vf vf_fold_1(vf a, vf b)
{
    return _mm256_add_ps(_mm256_shuffle_ps(a, b, 0xd8), _mm256_shuffle_ps(a, b, 0x8d));
}

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

X86_INLINE vi vi_lanes(const int32_t *p, int lanes)
{
    __m256i four = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)p));
    return lanes == 8 ? _mm256_loadu_si256((const void *)p) : four;
}
/* The key of each lane, counted from the vector's first. */
X86_INLINE vi vi_keys(int lanes)
{
    return lanes == 8 ? _mm256_setzero_si256() : _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
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
