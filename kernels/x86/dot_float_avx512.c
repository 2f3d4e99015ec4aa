/* dot_float_avx512.c - cores for weights of whole numbers: F32, F16, BF16.
 *
 * Two sums of sixteen lanes a row, with fused multiply-adds in f32, which keep up with memory at up to sixteen
 * rows; vdpbf16ps would round the activations. A rest is read under a mask. */
#include "kernels/x86/dot_x86.h"
#include "kernels/x86/unpack.h"

enum { LANES = 16, STEP = 2 * LANES };

typedef __m512 read_fn(const uint8_t *p,
                       __mmask16 there); /* sixteen numbers, 0 for those not there */

X86_INLINE __m512 read_f32(const uint8_t *p, __mmask16 there)
{
    return _mm512_maskz_loadu_ps(there, p);
}
X86_INLINE __m512 read_f16(const uint8_t *p, __mmask16 there)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(there, p));
}
X86_INLINE __m512 read_bf16(const uint8_t *p, __mmask16 there)
{
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(there, p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

/* Sixteen columns from i on. */
X86_INLINE void add_lanes(__m512 w, const void *const *x, int64_t i, __mmask16 there, __m512 *s,
                          int rows)
{
    for (int r = 0; r < rows; r++)
        s[r] = _mm512_fmadd_ps(w, _mm512_maskz_loadu_ps(there, (const float *)x[r] + i), s[r]);
}

X86_INLINE void dot_floats(const uint8_t *w, int64_t bytes, read_fn *read, const void *const *x,
                           int64_t n, float *out, int rows)
{
    const __mmask16 all = 0xffff;
    __m512 s[4], t[4];
    int64_t i = 0;
    for (int r = 0; r < rows; r++)
        s[r] = t[r] = _mm512_setzero_ps();
    for (; i + STEP <= n; i += STEP) {
        x86_hint(w + i * bytes, STEP * bytes);
        add_lanes(read(w + i * bytes, all), x, i, all, s, rows);
        add_lanes(read(w + (i + LANES) * bytes, all), x, i + LANES, all, t, rows);
    }
    for (; i < n; i += LANES) {
        __mmask16 there = n - i >= LANES ? all : (__mmask16)((1u << (n - i)) - 1);
        add_lanes(read(w + i * bytes, there), x, i, there, s, rows);
    }
    for (int r = 0; r < rows; r++)
        out[r] = _mm512_reduce_add_ps(_mm512_add_ps(s[r], t[r]));
}

#define FLOAT_CORE(name, bytes)                                                                    \
    X86_INLINE void dot_##name(const void *w, const void *const *x, int64_t n, float *out,         \
                               int rows)                                                           \
    {                                                                                              \
        dot_floats(w, bytes, read_##name, x, n, out, rows);                                        \
    }                                                                                              \
    X86_CORE(dot_##name)                                                                           \
    const dot_core dot_avx512_##name = {ACT_F32, dot_##name##_1, dot_##name##_4};
FLOAT_CORE(f32, 4)
FLOAT_CORE(f16, 2)
FLOAT_CORE(bf16, 2)
