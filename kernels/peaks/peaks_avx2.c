/* peaks_avx2.c - fused multiplication and addition, and sums of byte products in two instructions, which codes of 4 bits
 * leave room for; those of 8 bits take twice as many. */
#include "kernels/peaks/peaks_impl.h"

#include <immintrin.h>

/* Twelve sums: with the operands they fill the sixteen registers. */
enum { SUMS = 12 };
#define EACH(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11)

static double run_fma(int64_t steps)
{
    float one = (float)peak_one();
    __m256 a = _mm256_set1_ps(one / 3), b = _mm256_set1_ps(one / 5);
#define BEGIN(i) __m256 s##i = _mm256_set1_ps(one * i);
#define STEP(i) s##i = _mm256_fmadd_ps(a, b, s##i);
#define ADD(i) a = _mm256_add_ps(a, s##i);
    EACH(BEGIN)
    for (int64_t n = 0; n < steps; n++) {
        EACH(STEP)
    }
    EACH(ADD)
#undef BEGIN
#undef STEP
#undef ADD
    return (double)_mm256_cvtss_f32(a);
}

/* The products differ by step, or the compiler would make them once. */
static double run_maddubs(int64_t steps)
{
    char one = (char)peak_one();
    __m256i a = _mm256_set1_epi8(one), all = _mm256_setzero_si256();
#define BEGIN(i) __m256i s##i = _mm256_set1_epi32(one * i);
#define STEP(i) s##i = _mm256_add_epi16(s##i, _mm256_maddubs_epi16(s##i, a));
#define ADD(i) all = _mm256_add_epi32(all, s##i);
    EACH(BEGIN)
    for (int64_t n = 0; n < steps; n++) {
        EACH(STEP)
    }
    EACH(ADD)
#undef BEGIN
#undef STEP
#undef ADD
    return (double)_mm256_extract_epi32(all, 0);
}

/* clang-format off */
const peak_row peaks_avx2[] = {
    {"avx2 fma",     PEAK_F32,  CPU_AVX2 | CPU_FMA, 2.0 * 8 * SUMS,  run_fma, NULL},
    {"avx2 maddubs", PEAK_INT8, CPU_AVX2,           2.0 * 32 * SUMS, run_maddubs, NULL},
    {.name = NULL},
};
/* clang-format on */
