/* bf16_avx512.h - interleaved BF16 weights (kernels/layout.c) as floats: a line is four columns of eight rows. */
#ifndef WEFT_KERNELS_X86_BF16_AVX512_H
#define WEFT_KERNELS_X86_BF16_AVX512_H

#include "kernels/layout.h"
#include "kernels/x86/unpack.h"

enum { BF16_STEP = 4, BF16_STEP_BYTES = 2 * BF16_STEP * LAYOUT_GROUP };

/* Columns 2 half and 2 half + 1 of a step as f32: [8 rows][2]. */
X86_INLINE __m512 bf16_columns(__m512i line, int half)
{
    const int a = 0x01008080 + 0x04040000 * half, b = a + 0x02020000; /* bytes 0, 0, then the two */
    const __m512i at = _mm512_broadcast_i32x4(_mm_setr_epi32(a, b, a + 0x08080000, b + 0x08080000));
    return _mm512_castsi512_ps(_mm512_shuffle_epi8(line, at));
}

/* A last step of n < 4 columns, filled up with zeros. */
X86_INLINE __m512i bf16_rest(const uint8_t *w, int64_t n)
{
    uint8_t line[BF16_STEP_BYTES] = {0};
    for (int r = 0; r < LAYOUT_GROUP; r++)
        memcpy(line + r * BF16_STEP * 2, w + r * n * 2, (size_t)n * 2);
    return _mm512_loadu_si512(line);
}

#endif
