/* peaks_avxvnni.c - vpdpbusd in registers of 256 bits. */
#include "kernels/peaks/peaks_impl.h"

#include <immintrin.h>

/* Twelve sums, as in peaks_avx2.c. */
enum { SUMS = 12 };
#define EACH(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11)

static double run_vnni(int64_t steps)
{
    char one = (char)peak_one();
    __m256i a = _mm256_set1_epi8(one), all = _mm256_setzero_si256();
#define BEGIN(i) __m256i s##i = _mm256_set1_epi32(one * i);
#define STEP(i) s##i = _mm256_dpbusd_avx_epi32(s##i, a, a);
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
const peak_row peaks_avxvnni[] = {
    {"avx vpdpbusd", PEAK_INT8, CPU_AVX2 | CPU_AVX_VNNI, 2.0 * 32 * SUMS, run_vnni, NULL},
    {.name = NULL},
};
/* clang-format on */
