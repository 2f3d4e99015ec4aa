/* peaks_avx512.c - fused multiplication and addition, vpdpbusd and vdpbf16ps. */
#include "kernels/peaks/peaks_impl.h"

#include <immintrin.h>

static double run_fma(int64_t steps)
{
    float one = (float)peak_one();
    __m512 a = _mm512_set1_ps(one / 3), b = _mm512_set1_ps(one / 5);
#define BEGIN(i) __m512 s##i = _mm512_set1_ps(one * i);
#define STEP(i) s##i = _mm512_fmadd_ps(a, b, s##i);
#define ADD(i) a = _mm512_add_ps(a, s##i);
    PEAK_EACH(BEGIN)
    for (int64_t n = 0; n < steps; n++) {
        PEAK_EACH(STEP)
    }
    PEAK_EACH(ADD)
#undef BEGIN
#undef STEP
#undef ADD
    return (double)_mm512_cvtss_f32(a);
}

static double run_vnni(int64_t steps)
{
    char one = (char)peak_one();
    __m512i a = _mm512_set1_epi8(one), all = _mm512_setzero_si512();
#define BEGIN(i) __m512i s##i = _mm512_set1_epi32(one * i);
#define STEP(i) s##i = _mm512_dpbusd_epi32(s##i, a, a);
#define ADD(i) all = _mm512_add_epi32(all, s##i);
    PEAK_EACH(BEGIN)
    for (int64_t n = 0; n < steps; n++) {
        PEAK_EACH(STEP)
    }
    PEAK_EACH(ADD)
#undef BEGIN
#undef STEP
#undef ADD
    return (double)_mm_cvtsi128_si32(_mm512_castsi512_si128(all));
}

static double run_bf16(int64_t steps)
{
    float one = (float)peak_one();
    __m512bh a = (__m512bh)_mm512_castps_si512(_mm512_set1_ps(one / 3));
    __m512 all = _mm512_setzero_ps();
#define BEGIN(i) __m512 s##i = _mm512_set1_ps(one * i);
#define STEP(i) s##i = _mm512_dpbf16_ps(s##i, a, a);
#define ADD(i) all = _mm512_add_ps(all, s##i);
    PEAK_EACH(BEGIN)
    for (int64_t n = 0; n < steps; n++) {
        PEAK_EACH(STEP)
    }
    PEAK_EACH(ADD)
#undef BEGIN
#undef STEP
#undef ADD
    return (double)_mm512_cvtss_f32(all);
}

/* clang-format off */
const peak_row peaks_avx512[] = {
    {"avx512 fma",       PEAK_F32,  CPU_AVX512F,                   2.0 * 16 * PEAK_SUMS, run_fma, NULL},
    {"avx512 vpdpbusd",  PEAK_INT8, CPU_AVX512F | CPU_AVX512_VNNI, 2.0 * 64 * PEAK_SUMS, run_vnni, NULL},
    {"avx512 vdpbf16ps", PEAK_BF16, CPU_AVX512F | CPU_AVX512_BF16, 2.0 * 32 * PEAK_SUMS, run_bf16, NULL},
    {.name = NULL},
};
/* clang-format on */
