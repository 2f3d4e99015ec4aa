/* dot_float_avx512.c - cores for weights stored as floats: F32, F16, BF16.
 *
 * Two sums of sixteen lanes for each pair of rows, with fused multiply-adds in f32; vdpbf16ps would round the
 * activations. Two weight rows at once, from two long streams, share what is loaded of the activations. A rest is
 * read under a mask. */
#include "kernels/x86/dot_x86.h"
#include "kernels/x86/unpack.h"

enum { LANES = 16, STEP = 2 * LANES };

/* Sixteen numbers, 0 for those not there. */
typedef __m512 read_fn(const uint8_t *p, __mmask16 there);

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

/* Sixteen columns from i on of `rows` weight rows and n_x of activations. */
X86_INLINE void add_lanes(const void *const *w, int rows, int bytes, read_fn *read,
                          const void *const *x, int n_x, int64_t i, __mmask16 there,
                          __m512 (*s)[DOT_STREAMS])
{
    __m512 v[DOT_STREAMS];
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++)
        v[r] = read((const uint8_t *)w[r] + i * bytes, there);
#pragma GCC unroll 4
    for (int j = 0; j < n_x; j++) {
        __m512 a = _mm512_maskz_loadu_ps(there, (const float *)x[j] + i);
#pragma GCC unroll 2
        for (int r = 0; r < rows; r++)
            s[j][r] = _mm512_fmadd_ps(v[r], a, s[j][r]);
    }
}

X86_INLINE void dot_floats(const void *const *w, const void *const *ahead, int rows, int bytes,
                           read_fn *read, const void *const *x, int n_x, int64_t n,
                           float (*out)[DOT_STREAMS])
{
    const __mmask16 all = 0xffff;
    __m512 s[DOT_STREAMS_X][DOT_STREAMS], t[DOT_STREAMS_X][DOT_STREAMS];
    int64_t i = 0;
#pragma GCC unroll 4
    for (int j = 0; j < n_x; j++)
#pragma GCC unroll 2
        for (int r = 0; r < rows; r++)
            s[j][r] = t[j][r] = _mm512_setzero_ps();
    for (; i + STEP <= n; i += STEP) {
        for (int r = 0; r < rows; r++)
            x86_hint_at((const uint8_t *)((uintptr_t)ahead[r] + (uintptr_t)(i * bytes)),
                        STEP * bytes);
        add_lanes(w, rows, bytes, read, x, n_x, i, all, s);
        add_lanes(w, rows, bytes, read, x, n_x, i + LANES, all, t);
    }
    for (; i < n; i += LANES) {
        __mmask16 there = (__mmask16)(n - i >= LANES ? all : (1u << (n - i)) - 1);
        add_lanes(w, rows, bytes, read, x, n_x, i, there, s);
    }
#pragma GCC unroll 4
    for (int j = 0; j < n_x; j++)
#pragma GCC unroll 2
        for (int r = 0; r < rows; r++)
            out[j][r] = _mm512_reduce_add_ps(_mm512_add_ps(s[j][r], t[j][r]));
}

/* One weight row with one or four rows of activations, and two with one to four. */
#define FLOAT_ONE(name, bytes, n_x)                                                                \
    static void dot_##name##_##n_x(const void *w, const void *const *x, int64_t n, float *out)     \
    {                                                                                              \
        float sum[DOT_STREAMS_X][DOT_STREAMS];                                                     \
        dot_floats(&w, &w, 1, bytes, read_##name, x, n_x, n, sum);                                 \
        for (int j = 0; j < (n_x); j++)                                                            \
            out[j] = sum[j][0];                                                                    \
    }
#define FLOAT_STREAMS(name, bytes)                                                                 \
    static void dot_##name##_streams(const void *const *w, const void *const *ahead,               \
                                     const void *const *x, int64_t n_x, int64_t n,                 \
                                     float(*out)[DOT_STREAMS])                                     \
    {                                                                                              \
        if (n_x == 1)                                                                              \
            dot_floats(w, ahead, DOT_STREAMS, bytes, read_##name, x, 1, n, out);                   \
        else if (n_x == 2)                                                                         \
            dot_floats(w, ahead, DOT_STREAMS, bytes, read_##name, x, 2, n, out);                   \
        else if (n_x == 3)                                                                         \
            dot_floats(w, ahead, DOT_STREAMS, bytes, read_##name, x, 3, n, out);                   \
        else                                                                                       \
            dot_floats(w, ahead, DOT_STREAMS, bytes, read_##name, x, 4, n, out);                   \
    }
#define FLOAT_CORE(name, bytes)                                                                    \
    FLOAT_ONE(name, bytes, 1)                                                                      \
    FLOAT_ONE(name, bytes, 4)                                                                      \
    FLOAT_STREAMS(name, bytes)                                                                     \
    const dot_core dot_avx512_##name = {ACT_F32, dot_##name##_1, dot_##name##_4,                   \
                                        dot_##name##_streams};
FLOAT_CORE(f32, 4)
FLOAT_CORE(f16, 2)
FLOAT_CORE(bf16, 2)
