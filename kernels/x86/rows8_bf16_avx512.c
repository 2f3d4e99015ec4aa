/* rows8_bf16_avx512.c - interleaved BF16 weights times activations in f32, which is exact but for the order of sums.
 *
 * A register holds four columns of eight rows. Its halves, as f32, are two columns of each row: two activations,
 * repeated as they are loaded, multiply each, and leave two half sums of each row. Weights are one long stream, and eight
 * rows of them share what is loaded of the activations; as stored, two do.
 *
 * One row, four columns of 8 rows: 4 instructions for the two vector ports, 3 loads; at what two cores of a Sapphire
 * Rapids read, 5 bytes a cycle each, their 64 bytes take 13 cycles. */
#include "kernels/kernel_decls.h"

#include "kernels/c/rows8.h"
#include "kernels/x86/bf16_avx512.h"
#include "kernels/x86/codes_avx512.h"

X86_INLINE __m512 repeat_two(const float *x)
{
    return _mm512_castsi512_ps(codes_repeat((const int8_t *)(const void *)x));
}

X86_INLINE void add_step(__m512i line, const float *const *x, int n_x, int64_t c, __m512 (*acc)[2])
{
    const __m512 first = bf16_columns(line, 0), second = bf16_columns(line, 1);
#pragma GCC unroll 8
    for (int i = 0; i < n_x; i++) {
        acc[i][0] = _mm512_fmadd_ps(first, repeat_two(x[i] + c), acc[i][0]);
        acc[i][1] = _mm512_fmadd_ps(second, repeat_two(x[i] + c + 2), acc[i][1]);
    }
}

/* A last step of fewer columns, filled up with zeros. */
X86_INLINE void add_rest(const uint8_t *w, const float *const *x, int n_x, int64_t c, int64_t n,
                         __m512 (*acc)[2])
{
    float last[ROWS8_X_MAX][BF16_STEP] = {{0}};
    const float *at[ROWS8_X_MAX];
    for (int i = 0; i < n_x; i++) {
        memcpy(last[i], x[i] + c, (size_t)(n - c) * sizeof(float));
        at[i] = last[i];
    }
    add_step(bf16_rest(w, n - c), at, n_x, 0, acc);
}

X86_INLINE void group(const uint8_t *w, const void *const *x, int n_x, int64_t n,
                      float (*sum)[LAYOUT_GROUP])
{
    __m512 acc[ROWS8_X_MAX][2];
    const float *at[ROWS8_X_MAX];
    int64_t c = 0;
    for (int i = 0; i < n_x; i++) {
        acc[i][0] = acc[i][1] = _mm512_setzero_ps();
        at[i] = x[i];
    }
    for (; c + BF16_STEP <= n; c += BF16_STEP, w += BF16_STEP_BYTES) {
        x86_hint(w, BF16_STEP_BYTES);
        add_step(_mm512_loadu_si512(w), at, n_x, c, acc);
    }
    if (c < n)
        add_rest(w, at, n_x, c, n, acc);
    for (int i = 0; i < n_x; i++)
        _mm256_storeu_ps(sum[i], codes_join(_mm512_add_ps(acc[i][0], acc[i][1])));
}

/* Two groups at once, four sums instead of two: a fused product takes four cycles, so that one group alone is read at 16 bytes a cycle, even from
 * the second cache. */
static void group_pair(const uint8_t *w, int64_t pitch, const void *x, int64_t n,
                       float sum[2 * LAYOUT_GROUP])
{
    __m512 acc[2][1][2];
    const float *at = x;
    int64_t c = 0;
    for (int g = 0; g < 2; g++)
        acc[g][0][0] = acc[g][0][1] = _mm512_setzero_ps();
    for (; c + BF16_STEP <= n; c += BF16_STEP, w += BF16_STEP_BYTES) {
        x86_hint(w, BF16_STEP_BYTES);
        x86_hint(w + pitch, BF16_STEP_BYTES);
        add_step(_mm512_loadu_si512(w), &at, 1, c, acc[0]);
        add_step(_mm512_loadu_si512(w + pitch), &at, 1, c, acc[1]);
    }
    if (c < n) {
        add_rest(w, &at, 1, c, n, acc[0]);
        add_rest(w + pitch, &at, 1, c, n, acc[1]);
    }
    for (int g = 0; g < 2; g++)
        _mm256_storeu_ps(sum + g * LAYOUT_GROUP,
                         codes_join(_mm512_add_ps(acc[g][0][0], acc[g][0][1])));
}

#define GROUP(w, x, n_x, n, sum, type) group(w, x, n_x, n, sum)
ROWS8_KERNELS_PAIR(BF16, avx512, GROUP, group_pair)
