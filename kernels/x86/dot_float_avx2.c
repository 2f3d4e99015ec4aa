/* dot_float_avx2.c - cores for weights stored as floats: F32, F16, BF16.
 *
 * Two sums of eight lanes a row, with fused multiply-adds; a rest of fewer than sixteen is filled up with
 * zeros. */
#include "kernels/x86/dot_x86.h"
#include "kernels/x86/unpack.h"

enum { STEP = 16 };

typedef __m256 read_fn(const uint8_t *p); /* eight numbers */

X86_INLINE __m256 read_f32(const uint8_t *p)
{
    return _mm256_loadu_ps((const float *)(const void *)p);
}
X86_INLINE __m256 read_f16(const uint8_t *p)
{
    return _mm256_cvtph_ps(x86_load16(p));
}
X86_INLINE __m256 read_bf16(const uint8_t *p)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x86_load16(p)), 16));
}

X86_INLINE void add_step(const uint8_t *w, int64_t bytes, read_fn *read, const float *const *x,
                         int64_t i, __m256 *s, __m256 *t, int rows)
{
    __m256 a = read(w), b = read(w + STEP / 2 * bytes);
    for (int r = 0; r < rows; r++) {
        s[r] = _mm256_fmadd_ps(a, _mm256_loadu_ps(x[r] + i), s[r]);
        t[r] = _mm256_fmadd_ps(b, _mm256_loadu_ps(x[r] + i + 8), t[r]);
    }
}

X86_INLINE void dot_floats(const uint8_t *w, int64_t bytes, read_fn *read, const void *const *x,
                           int64_t n, float *out, int rows)
{
    __m256 s[4], t[4];
    const float *at[4];
    int64_t whole = n / STEP * STEP;
    for (int r = 0; r < rows; r++) {
        s[r] = t[r] = _mm256_setzero_ps();
        at[r] = x[r];
    }
    for (int64_t i = 0; i < whole; i += STEP, w += STEP * bytes) {
        if (i % (64 / bytes) == 0)
            x86_hint(w, 1);
        add_step(w, bytes, read, at, i, s, t, rows);
    }
    if (whole < n) {
        uint8_t rest[STEP * sizeof(float)] = {0};
        float last[4][STEP] = {0};
        memcpy(rest, w, (size_t)((n - whole) * bytes));
        for (int r = 0; r < rows; r++) {
            memcpy(last[r], at[r] + whole, (size_t)(n - whole) * sizeof(float));
            at[r] = last[r];
        }
        add_step(rest, bytes, read, at, 0, s, t, rows);
    }
    for (int r = 0; r < rows; r++)
        out[r] = x86_sum8(_mm256_add_ps(s[r], t[r]));
}

#define FLOAT_CORE(name, bytes)                                                                    \
    X86_INLINE void dot_##name(const void *w, const void *const *x, int64_t n, float *out,         \
                               int rows)                                                           \
    {                                                                                              \
        dot_floats(w, bytes, read_##name, x, n, out, rows);                                        \
    }                                                                                              \
    X86_CORE(dot_##name)                                                                           \
    const dot_core dot_avx2_##name = {ACT_F32, dot_##name##_1, dot_##name##_4, NULL};
FLOAT_CORE(f32, 4)
FLOAT_CORE(f16, 2)
FLOAT_CORE(bf16, 2)
