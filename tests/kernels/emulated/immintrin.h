/* immintrin.h - the AVX-512 and AVX-VNNI intrinsics that kernels/x86 uses, in plain C and AVX2, as Intel's guide defines them.
 *
 * Put before the compiler's own header, it lets the logic of those and the AMX kernels be checked where no
 * processor or emulator has their instructions. That a processor agrees only a run on one can tell. An intrinsic
 * that is missing here does not compile, for want of -mavx512f. */
#pragma GCC system_header
#include_next <immintrin.h>
#ifndef WEFT_TESTS_KERNELS_EMULATED_IMMINTRIN_H
#define WEFT_TESTS_KERNELS_EMULATED_IMMINTRIN_H

#include <stdint.h>
#include <string.h>

typedef union {
    int8_t i8[64];
    uint8_t u8[64];
    int16_t i16[32];
    uint16_t u16[32];
    int32_t i32[16];
    uint32_t u32[16];
    int64_t i64[8];
    uint64_t u64[8];
    float f32[16];
    __m128i x[4];
    __m256i y[2];
    __m256 f[2];
} emulated512;
#define __m512i emulated512
#define __m512 emulated512
#define __m512bh emulated512

/* A function whose result r is filled in by `each`, for i = 0 .. n - 1. */
#define EMULATED(name, args, n, each)                                                              \
    static inline __attribute__((unused)) emulated512 emulated_##name args                         \
    {                                                                                              \
        emulated512 r = {.i8 = {0}};                                                               \
        for (int i = 0; i < (n); i++)                                                              \
            each;                                                                                  \
        return r;                                                                                  \
    }
#define V emulated512

/* To nearest, ties to even; subnormal numbers are zeros. */
static inline __attribute__((unused)) uint16_t emulated_bf16(uint32_t bits)
{
    if ((bits & 0x7f800000u) == 0)
        return (uint16_t)(bits >> 16 & 0x8000);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Bytes 0 and 2 of four, then 1 and 3, as 16 bits: two products and their sum fit 32. */
static inline __attribute__((unused)) __m256i emulated_dpbusd256(__m256i z, __m256i a, __m256i b)
{
    __m256i even = _mm256_madd_epi16(_mm256_and_si256(a, _mm256_set1_epi16(255)),
                                     _mm256_srai_epi16(_mm256_slli_epi16(b, 8), 8));
    __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(a, 8), _mm256_srai_epi16(b, 8));
    return _mm256_add_epi32(z, _mm256_add_epi32(even, odd));
}
static inline __attribute__((unused)) __m256i emulated_dpwssd256(__m256i z, __m256i a, __m256i b)
{
    return _mm256_add_epi32(z, _mm256_madd_epi16(a, b));
}

/* clang-format off */
EMULATED(cvtne2ps_pbh,      (V a, V b),              32, r.u16[i] = emulated_bf16(i < 16 ? b.u32[i] : a.u32[i - 16]))
EMULATED(setzero_ps,        (void),                  0,  (void)0)
EMULATED(setzero_si512,     (void),                  0,  (void)0)
EMULATED(set1_ps,           (float a),               16, r.f32[i] = a)
EMULATED(set1_epi32,        (int32_t a),             16, r.i32[i] = a)
EMULATED(loadu_ps,          (const void *p),         1,  memcpy(&r, p, sizeof r))
EMULATED(loadu_si512,       (const void *p),         1,  memcpy(&r, p, sizeof r))
EMULATED(maskz_loadu_ps,    (uint16_t k, const void *p), 16, if (k >> i & 1) memcpy(&r.i32[i], (const char *)p + 4 * i, 4))
/* The upper half is undefined: noise. */
EMULATED(castsi256_si512,   (__m256i a),             1,  (memset(&r, 0x5a, sizeof r), r.y[0] = a))
EMULATED(inserti64x4,       (V a, __m256i b, int h), 2,  r.y[i] = i == h ? b : a.y[i])
EMULATED(castsi512_ps,      (V a),                   1,  r = a)
EMULATED(castps_si512,      (V a),                   1,  r = a)
EMULATED(mask_blend_ps,     (uint16_t k, V a, V b),  16, r.i32[i] = k >> i & 1 ? b.i32[i] : a.i32[i])
EMULATED(add_epi32,         (V a, V b),              16, r.u32[i] = a.u32[i] + b.u32[i])
EMULATED(mullo_epi16,       (V a, V b),              32, r.u16[i] = (uint16_t)(a.u16[i] * (uint32_t)b.u16[i]))
EMULATED(sub_epi16,         (V a, V b),              32, r.u16[i] = (uint16_t)(a.u16[i] - b.u16[i]))
EMULATED(slli_epi32,        (V a, unsigned n),       16, r.u32[i] = a.u32[i] << n)
EMULATED(add_ps,            (V a, V b),              16, r.f32[i] = a.f32[i] + b.f32[i])
EMULATED(mul_ps,            (V a, V b),              16, r.f32[i] = a.f32[i] * b.f32[i])
EMULATED(fmadd_ps,          (V a, V b, V c),         2,  r.f[i] = _mm256_fmadd_ps(a.f[i], b.f[i], c.f[i]))
EMULATED(fnmadd_ps,         (V a, V b, V c),         2,  r.f[i] = _mm256_fnmadd_ps(a.f[i], b.f[i], c.f[i]))
EMULATED(cvtepi32_ps,       (V a),                   16, r.f32[i] = (float)a.i32[i])
EMULATED(cvtepi8_epi32,     (__m128i a),             16, r.i32[i] = ((const signed char *)&a)[i])
EMULATED(cvtepi16_epi32,    (__m256i a),             16, { int16_t word; memcpy(&word, (const char *)&a + 2 * i, 2); r.i32[i] = word; })
EMULATED(cvtepu16_epi32,    (__m256i a),             16, memcpy(&r.u32[i], (const char *)&a + 2 * i, 2))
EMULATED(cvtph_ps,          (__m256i a),             2,  r.f[i] = _mm256_cvtph_ps(i ? _mm256_extracti128_si256(a, 1) : _mm256_castsi256_si128(a)))
EMULATED(shuffle_epi8,      (V a, V b),              2,  r.y[i] = _mm256_shuffle_epi8(a.y[i], b.y[i]))
EMULATED(dpwssd_epi32,      (V z, V a, V b),         2,  r.y[i] = emulated_dpwssd256(z.y[i], a.y[i], b.y[i]))
EMULATED(dpbusd_epi32,      (V z, V a, V b),         2,  r.y[i] = emulated_dpbusd256(z.y[i], a.y[i], b.y[i]))
EMULATED(unpacklo_epi32,    (V a, V b),              4,  r.x[i] = _mm_unpacklo_epi32(a.x[i], b.x[i]))
EMULATED(unpackhi_epi32,    (V a, V b),              4,  r.x[i] = _mm_unpackhi_epi32(a.x[i], b.x[i]))
EMULATED(unpacklo_epi64,    (V a, V b),              4,  r.x[i] = _mm_unpacklo_epi64(a.x[i], b.x[i]))
EMULATED(unpackhi_epi64,    (V a, V b),              4,  r.x[i] = _mm_unpackhi_epi64(a.x[i], b.x[i]))
EMULATED(shuffle_i32x4,     (V a, V b, int k),       4,  r.x[i] = (i < 2 ? a : b).x[k >> 2 * i & 3])
EMULATED(set1_epi8,         (char a),                64, r.i8[i] = (int8_t)a)
EMULATED(set1_epi64,        (long long a),           8,  r.i64[i] = a)
EMULATED(setr_epi32,        (int a, int b, int c, int d, int e, int f, int g, int h, int j, int k, int l, int m, int n, int o, int p, int q), 16, r.i32[i] = ((int[]){a, b, c, d, e, f, g, h, j, k, l, m, n, o, p, q})[i])
EMULATED(setr_epi64,        (long long a, long long b, long long c, long long d, long long e, long long f, long long g, long long h), 8, r.i64[i] = ((long long[]){a, b, c, d, e, f, g, h})[i])
EMULATED(castsi128_si512,   (__m128i a),             1,  (memset(&r, 0x5a, sizeof r), r.x[0] = a))
EMULATED(castps256_ps512,   (__m256 a),              1,  (memset(&r, 0x5a, sizeof r), r.f[0] = a))
EMULATED(inserti32x4,       (V a, __m128i b, int l), 4,  r.x[i] = i == l ? b : a.x[i])
EMULATED(broadcast_i32x4,   (__m128i a),             4,  r.x[i] = a)
EMULATED(and_si512,         (V a, V b),              16, r.u32[i] = a.u32[i] & b.u32[i])
EMULATED(sub_epi8,          (V a, V b),              64, r.u8[i] = (uint8_t)(a.u8[i] - b.u8[i]))
EMULATED(insertf32x8,       (V a, __m256 b, int h),  2,  r.f[i] = i == h ? b : a.f[i])
EMULATED(permutex2var_epi32, (V a, V k, V b),        16, r.i32[i] = (k.i32[i] & 16 ? b : a).i32[k.i32[i] & 15])
EMULATED(broadcast_f32x8,    (__m256 a),              2,  r.f[i] = a)
EMULATED(xor_si512,         (V a, V b),              16, r.u32[i] = a.u32[i] ^ b.u32[i])
EMULATED(ternarylogic_epi32, (V a, V b, V c, int k), 128, if (k >> i % 8 & 1) r.u32[i / 8] |= (i & 4 ? a.u32[i / 8] : ~a.u32[i / 8]) & (i & 2 ? b.u32[i / 8] : ~b.u32[i / 8]) & (i & 1 ? c.u32[i / 8] : ~c.u32[i / 8]))
EMULATED(srli_epi16,        (V a, unsigned n),       32, r.u16[i] = (uint16_t)(a.u16[i] >> n))
EMULATED(slli_epi16,        (V a, unsigned n),       32, r.u16[i] = (uint16_t)(a.u16[i] << n))
EMULATED(permutexvar_ps,    (V k, V a),              16, r.i32[i] = a.i32[k.i32[i] & 15])
EMULATED(permutex2var_ps,  (V a, V k, V b),         16, r.i32[i] = (k.i32[i] & 16 ? b : a).i32[k.i32[i] & 15])
EMULATED(permutex2var_epi64, (V a, V k, V b),        8,  r.i64[i] = (k.i64[i] & 8 ? b : a).i64[k.i64[i] & 7])
EMULATED(sub_ps,            (V a, V b),              16, r.f32[i] = a.f32[i] - b.f32[i])
EMULATED(max_ps,            (V a, V b),              2,  r.f[i] = _mm256_max_ps(a.f[i], b.f[i]))
EMULATED(roundscale_ps,     (V a, int k),            2,  { (void)k; r.f[i] = _mm256_round_ps(a.f[i], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); })
EMULATED(scalef_ps,         (V a, V b),              16, r.f32[i] = b.f32[i] != b.f32[i] ? b.f32[i] : __builtin_ldexpf(a.f32[i], (int)__builtin_floorf(b.f32[i])))
EMULATED(shuffle_ps,        (V a, V b, int k),       16, r.i32[i] = (i % 4 < 2 ? a : b).i32[i / 4 * 4 + (k >> i % 4 * 2 & 3)])
EMULATED(castps128_ps512,   (__m128 a),              1,  (memset(&r, 0x5a, sizeof r), memcpy(&r, &a, sizeof a)))
EMULATED(broadcast_f32x4,   (__m128 a),              4,  memcpy(&r.x[i], &a, sizeof a))
EMULATED(max_epu32,         (V a, V b),              16, r.u32[i] = a.u32[i] > b.u32[i] ? a.u32[i] : b.u32[i])
EMULATED(div_ps,            (V a, V b),              16, r.f32[i] = a.f32[i] / b.f32[i])
EMULATED(cvtps_epi32,       (V a),                   2,  r.y[i] = _mm256_cvtps_epi32(a.f[i]))
EMULATED(shuffle_epi32,     (V a, int k),            16, r.i32[i] = a.i32[i / 4 * 4 + (k >> i % 4 * 2 & 3)])
EMULATED(insertf32x4,       (V a, __m128 b, int l),  1,  (r = a, memcpy(&r.x[l], &b, sizeof b)))
/* clang-format on */
#undef V
static inline __attribute__((unused)) uint16_t emulated_cmplt_epi32(emulated512 a, emulated512 b)
{
    unsigned k = 0;
    for (int i = 0; i < 16; i++)
        k |= (unsigned)(a.i32[i] < b.i32[i]) << i;
    return (uint16_t)k;
}
static inline __attribute__((unused)) uint16_t emulated_cmple_epi32(emulated512 a, emulated512 b)
{
    return (uint16_t)~emulated_cmplt_epi32(b, a);
}
static inline __attribute__((unused)) uint16_t emulated_cmp_ps(emulated512 a, emulated512 b, int k)
{
    unsigned m = 0;
    for (int i = 0; i < 16; i++)
        m |= (unsigned)(k == _CMP_LT_OQ ? a.f32[i] < b.f32[i] : a.f32[i] <= b.f32[i]) << i;
    return (uint16_t)m;
}
static inline __attribute__((unused)) __m128 emulated_quarter_ps(emulated512 a)
{
    return _mm256_castps256_ps128(a.f[0]);
}

static inline __attribute__((unused)) __m256 emulated_low_ps(emulated512 a)
{
    return a.f[0];
}
static inline __attribute__((unused)) __m256i emulated_ternarylogic256(__m256i a, __m256i b,
                                                                       __m256i c, int k)
{
    emulated512 x = {.y = {a}}, y = {.y = {b}}, z = {.y = {c}};
    return emulated_ternarylogic_epi32(x, y, z, k).y[0];
}

static inline __attribute__((unused)) float emulated_reduce_add_ps(emulated512 a)
{
    float sum = 0;
    for (int i = 0; i < 16; i++)
        sum += a.f32[i];
    return sum;
}
static inline __attribute__((unused)) void emulated_store(void *p, emulated512 a)
{
    memcpy(p, &a, sizeof a);
}
static inline __attribute__((unused)) void emulated_mask_store(void *p, uint16_t k, emulated512 a)
{
    for (int i = 0; i < 16; i++)
        if (k >> i & 1)
            memcpy((char *)p + 4 * i, &a.i32[i], 4);
}
static inline __attribute__((unused)) __m256i emulated_maskz_load16(uint16_t k, const void *p)
{
    uint16_t at[16] = {0};
    for (int i = 0; i < 16; i++)
        if (k >> i & 1)
            memcpy(at + i, (const char *)p + 2 * i, 2);
    return _mm256_loadu_si256((const void *)at);
}

#define _mm512_cvtne2ps_pbh emulated_cvtne2ps_pbh
#define _mm512_setzero_ps emulated_setzero_ps
#define _mm512_setzero_si512 emulated_setzero_si512
#define _mm512_set1_ps emulated_set1_ps
#define _mm512_set1_epi32 emulated_set1_epi32
#define _mm512_loadu_ps emulated_loadu_ps
#define _mm512_loadu_si512 emulated_loadu_si512
#define _mm512_maskz_loadu_ps emulated_maskz_loadu_ps
#define _mm512_castsi256_si512 emulated_castsi256_si512
#undef _mm512_inserti64x4
#define _mm512_inserti64x4 emulated_inserti64x4
#define _mm512_castsi512_ps emulated_castsi512_ps
#define _mm512_castps_si512 emulated_castps_si512
#define _mm512_mask_blend_ps emulated_mask_blend_ps
#define _mm512_add_epi32 emulated_add_epi32
#define _mm512_mullo_epi16 emulated_mullo_epi16
#define _mm512_sub_epi16 emulated_sub_epi16
#undef _mm512_slli_epi32
#define _mm512_slli_epi32 emulated_slli_epi32
#define _mm512_add_ps emulated_add_ps
#define _mm512_mul_ps emulated_mul_ps
#define _mm512_fmadd_ps emulated_fmadd_ps
#define _mm512_fnmadd_ps emulated_fnmadd_ps
#define _mm512_cvtepi32_ps emulated_cvtepi32_ps
#define _mm512_cvtepi8_epi32 emulated_cvtepi8_epi32
#define _mm512_cvtepi16_epi32 emulated_cvtepi16_epi32
#define _mm512_cvtepu16_epi32 emulated_cvtepu16_epi32
#define _mm512_cvtph_ps emulated_cvtph_ps
#define _mm512_shuffle_epi8 emulated_shuffle_epi8
#define _mm512_dpwssd_epi32 emulated_dpwssd_epi32
#define _mm512_dpbusd_epi32 emulated_dpbusd_epi32
#define _mm512_unpacklo_epi32 emulated_unpacklo_epi32
#define _mm512_unpackhi_epi32 emulated_unpackhi_epi32
#define _mm512_unpacklo_epi64 emulated_unpacklo_epi64
#define _mm512_unpackhi_epi64 emulated_unpackhi_epi64
#undef _mm512_shuffle_i32x4
#define _mm512_shuffle_i32x4 emulated_shuffle_i32x4
#define _mm512_reduce_add_ps emulated_reduce_add_ps
#define _mm512_set1_epi8 emulated_set1_epi8
#define _mm512_set1_epi64 emulated_set1_epi64
#undef _mm512_setr_epi32
#define _mm512_setr_epi32 emulated_setr_epi32
#undef _mm512_setr_epi64
#define _mm512_setr_epi64 emulated_setr_epi64
#define _mm512_castsi128_si512 emulated_castsi128_si512
#define _mm512_castps256_ps512 emulated_castps256_ps512
#define _mm512_castps512_ps256 emulated_low_ps
#undef _mm512_inserti32x4
#define _mm512_inserti32x4 emulated_inserti32x4
#define _mm512_broadcast_i32x4 emulated_broadcast_i32x4
#define _mm512_and_si512 emulated_and_si512
#define _mm512_sub_epi8 emulated_sub_epi8
#undef _mm512_insertf32x8
#define _mm512_insertf32x8 emulated_insertf32x8
#define _mm512_permutex2var_epi32 emulated_permutex2var_epi32
#define _mm512_xor_si512 emulated_xor_si512
#undef _mm512_ternarylogic_epi32
#define _mm512_ternarylogic_epi32 emulated_ternarylogic_epi32
#undef _mm256_ternarylogic_epi32
#define _mm256_ternarylogic_epi32 emulated_ternarylogic256
#undef _mm512_srli_epi16
#define _mm512_srli_epi16 emulated_srli_epi16
#undef _mm512_slli_epi16
#define _mm512_slli_epi16 emulated_slli_epi16
#define _mm512_permutexvar_ps emulated_permutexvar_ps
#define _mm512_permutex2var_ps emulated_permutex2var_ps
#define _mm512_permutex2var_epi64 emulated_permutex2var_epi64
#define _mm256_dpwssd_epi32 emulated_dpwssd256
#define _mm256_dpwssd_avx_epi32 emulated_dpwssd256
#define _mm256_dpbusd_avx_epi32 emulated_dpbusd256
#define _mm512_sub_ps emulated_sub_ps
#define _mm512_max_ps emulated_max_ps
#undef _mm512_roundscale_ps
#define _mm512_roundscale_ps emulated_roundscale_ps
#define _mm512_scalef_ps emulated_scalef_ps
#undef _mm512_shuffle_ps
#define _mm512_shuffle_ps emulated_shuffle_ps
#undef _mm512_shuffle_f32x4
#define _mm512_shuffle_f32x4 emulated_shuffle_i32x4
#define _mm512_castps128_ps512 emulated_castps128_ps512
#define _mm512_castps512_ps128 emulated_quarter_ps
#define _mm512_broadcast_f32x4 emulated_broadcast_f32x4
#define _mm512_broadcast_f32x8 emulated_broadcast_f32x8
#undef _mm512_insertf32x4
#define _mm512_insertf32x4 emulated_insertf32x4
#undef _mm512_cmplt_epi32_mask
#define _mm512_cmplt_epi32_mask emulated_cmplt_epi32
#undef _mm512_cmple_epi32_mask
#define _mm512_cmple_epi32_mask emulated_cmple_epi32
#undef _mm512_cmp_ps_mask /* less, or less or equal */
#define _mm512_cmp_ps_mask emulated_cmp_ps
#define _mm512_max_epu32 emulated_max_epu32
#define _mm512_div_ps emulated_div_ps
#define _mm512_cvtps_epi32 emulated_cvtps_epi32
#undef _mm512_shuffle_epi32
#define _mm512_shuffle_epi32 emulated_shuffle_epi32
#undef _mm512_permute_ps
#define _mm512_permute_ps emulated_shuffle_epi32
#define _mm512_storeu_ps emulated_store
#define _mm512_storeu_si512 emulated_store
#define _mm512_mask_storeu_ps emulated_mask_store
#define _mm256_maskz_loadu_epi16 emulated_maskz_load16

#endif
