/* dot_float_avx2.c - cores for weights stored as floats: F32, F16, BF16.
 *
 * Two sums of eight lanes a row, with fused multiply-adds; a rest of fewer than sixteen is filled up with
 * zeros. Two weight rows are read at once, as streams through memory.
 *
 * One row of activations, 16 columns of two weight rows: 4 loads of weights and 2 of activations, 4 fused products, of 16 bits 4
 * conversions besides (BF16 two instructions each): 2 to 6 cycles; at 16 GB/s of one core their 64 bytes take 12. */
#include "kernels/x86/dot_x86.h"
#include "kernels/x86/unpack.h"

enum { STEP = 16 };

typedef __m256 read_fn(const uint8_t *p); /* eight numbers */

typedef struct {
    __m256 of[DOT_STREAMS_X][DOT_STREAMS][2];
} sums;

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

/* Sums of 16 columns from i on of some weight rows and rows of activations. */
X86_INLINE void add_step(const uint8_t *const *w, int n_w, int64_t bytes, read_fn *read,
                         const float *const *x, int n_x, int64_t i, sums *s)
{
    __m256 v[DOT_STREAMS][2];
    for (int r = 0; r < n_w; r++) {
        v[r][0] = read(w[r] + i * bytes);
        v[r][1] = read(w[r] + (i + STEP / 2) * bytes);
    }
    for (int j = 0; j < n_x; j++) {
        const __m256 a = _mm256_loadu_ps(x[j] + i), b = _mm256_loadu_ps(x[j] + i + STEP / 2);
        for (int r = 0; r < n_w; r++) {
            s->of[j][r][0] = _mm256_fmadd_ps(v[r][0], a, s->of[j][r][0]);
            s->of[j][r][1] = _mm256_fmadd_ps(v[r][1], b, s->of[j][r][1]);
        }
    }
}

/* The last columns, fewer than 16, filled up with zeros. */
X86_INLINE void add_rest(const uint8_t *const *w, int n_w, int64_t bytes, read_fn *read,
                         const float *const *x, int n_x, int64_t i, int64_t n, sums *s)
{
    uint8_t rest[DOT_STREAMS][STEP * sizeof(float)] = {{0}};
    float last[DOT_STREAMS_X][STEP] = {{0}};
    const uint8_t *rest_at[DOT_STREAMS];
    const float *last_at[DOT_STREAMS_X];
    for (int r = 0; r < n_w; r++) {
        memcpy(rest[r], w[r] + i * bytes, (size_t)((n - i) * bytes));
        rest_at[r] = rest[r];
    }
    for (int j = 0; j < n_x; j++) {
        memcpy(last[j], x[j] + i, (size_t)(n - i) * sizeof(float));
        last_at[j] = last[j];
    }
    add_step(rest_at, n_w, bytes, read, last_at, n_x, 0, s);
}

X86_INLINE void dot_floats(const void *const *w, const void *const *ahead, int n_w, int64_t bytes,
                           read_fn *read, const void *const *x, int n_x, int64_t n,
                           float (*out)[DOT_STREAMS])
{
    sums s;
    const uint8_t *w_at[DOT_STREAMS];
    const float *x_at[DOT_STREAMS_X];
    int64_t i = 0;
    for (int r = 0; r < n_w; r++)
        w_at[r] = w[r];
    for (int j = 0; j < n_x; j++) {
        x_at[j] = x[j];
        for (int r = 0; r < n_w; r++)
            s.of[j][r][0] = s.of[j][r][1] = _mm256_setzero_ps();
    }
    for (; i + STEP <= n; i += STEP) {
        for (int r = 0; r < n_w && i % (64 / bytes) == 0; r++)
            x86_hint_at((const uint8_t *)((uintptr_t)ahead[r] + (uintptr_t)(i * bytes)), 1);
        add_step(w_at, n_w, bytes, read, x_at, n_x, i, &s);
    }
    if (i < n)
        add_rest(w_at, n_w, bytes, read, x_at, n_x, i, n, &s);
    for (int j = 0; j < n_x; j++)
        for (int r = 0; r < n_w; r++)
            out[j][r] = x86_sum8(_mm256_add_ps(s.of[j][r][0], s.of[j][r][1]));
}

/* One weight row with one or four rows of activations; two with one to three, and with four one after the other: there are
 * 16 registers. */
#define FLOAT_ONE(name, bytes, n_x)                                                                \
    static void dot_##name##_##n_x(const void *w, const void *const *x, int64_t n, float *out)     \
    {                                                                                              \
        const void *ahead = (const void *)((uintptr_t)w + X86_AHEAD);                              \
        float sum[DOT_STREAMS_X][DOT_STREAMS];                                                     \
        dot_floats(&w, &ahead, 1, bytes, read_##name, x, n_x, n, sum);                             \
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
            for (int r = 0; r < DOT_STREAMS; r++) {                                                \
                float sum[DOT_STREAMS_X][DOT_STREAMS];                                             \
                dot_floats(w + r, ahead + r, 1, bytes, read_##name, x, 4, n, sum);                 \
                for (int j = 0; j < 4; j++)                                                        \
                    out[j][r] = sum[j][0];                                                         \
            }                                                                                      \
    }
#define FLOAT_CORE(name, bytes)                                                                    \
    FLOAT_ONE(name, bytes, 1)                                                                      \
    FLOAT_ONE(name, bytes, 4)                                                                      \
    FLOAT_STREAMS(name, bytes)                                                                     \
    const dot_core dot_avx2_##name = {ACT_F32, dot_##name##_1, dot_##name##_4,                     \
                                      dot_##name##_streams};
FLOAT_CORE(f32, 4)
FLOAT_CORE(f16, 2)
FLOAT_CORE(bf16, 2)
