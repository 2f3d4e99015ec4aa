/* bf16_avx2.h - interleaved BF16 weights (kernels/layout.c) as floats: a step is four columns of eight rows. */
#ifndef WEFT_KERNELS_X86_BF16_AVX2_H
#define WEFT_KERNELS_X86_BF16_AVX2_H

#include "kernels/layout.h"
#include "kernels/x86/unpack.h"

enum { BF16_STEP = 4, BF16_STEP_BYTES = 2 * BF16_STEP * LAYOUT_GROUP };

/* Rows 2 pair and 2 pair + 1 of a step: [2 rows][4]. */
X86_INLINE __m256 bf16_two_rows(const uint8_t *step, int pair)
{
    const __m256i wide = _mm256_cvtepu16_epi32(x86_load16(step + pair * 16));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

/* A last step of n < 4 columns, filled up with zeros. */
X86_INLINE void bf16_rest(const uint8_t *w, int64_t n, uint8_t line[BF16_STEP_BYTES])
{
    memset(line, 0, BF16_STEP_BYTES);
    for (int r = 0; r < LAYOUT_GROUP; r++)
        memcpy(line + r * BF16_STEP * 2, w + r * n * 2, (size_t)n * 2);
}

#endif
