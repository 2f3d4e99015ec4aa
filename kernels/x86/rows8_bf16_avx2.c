/* rows8_bf16_avx2.c - interleaved BF16 weights times activations in f32, for processors without AVX-512 that run a program built for
 * better ones: a register holds four columns of two rows, and four activations, twice, multiply them.
 *
 * One row, four columns of 8 rows: 4 loads that widen, 4 shifts, 4 fused products: 4 cycles, for bytes that take 12 from memory. */
#include "kernels/kernel_decls.h"

#include "kernels/c/rows8.h"
#include "kernels/x86/bf16_avx2.h"

enum { PAIRS = LAYOUT_GROUP / 2 };

X86_INLINE void add_step(const uint8_t *w, const float *const *x, int n_x, int64_t c,
                         __m256 (*acc)[PAIRS])
{
    __m256 four[2];
    for (int i = 0; i < n_x; i++)
        four[i] = _mm256_broadcast_ps((const __m128 *)(const void *)(x[i] + c));
#pragma GCC unroll 4
    for (int p = 0; p < PAIRS; p++) {
        const __m256 two = bf16_two_rows(w, p);
        for (int i = 0; i < n_x; i++)
            acc[i][p] = _mm256_fmadd_ps(two, four[i], acc[i][p]);
    }
}

X86_INLINE void add_rest(const uint8_t *w, const float *const *x, int n_x, int64_t c, int64_t n,
                         __m256 (*acc)[PAIRS])
{
    uint8_t line[BF16_STEP_BYTES];
    float last[2][BF16_STEP] = {{0}};
    const float *at[2];
    for (int i = 0; i < n_x; i++) {
        memcpy(last[i], x[i] + c, (size_t)(n - c) * sizeof(float));
        at[i] = last[i];
    }
    bf16_rest(w, n - c, line);
    add_step(line, at, n_x, 0, acc);
}

/* The four lanes of each row. */
X86_INLINE void put_sums(const __m256 acc[PAIRS], float sum[LAYOUT_GROUP])
{
    const __m256 a = _mm256_hadd_ps(acc[0], acc[1]), b = _mm256_hadd_ps(acc[2], acc[3]);
    const __m256 rows = _mm256_hadd_ps(a, b); /* 0 2 4 6 | 1 3 5 7 */
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_ps(sum, _mm256_permutevar8x32_ps(rows, order));
}

X86_INLINE void group(const uint8_t *w, const void *const *x, int n_x, int64_t n,
                      float (*sum)[LAYOUT_GROUP])
{
    __m256 acc[2][PAIRS];
    const float *at[2];
    int64_t c = 0;
    for (int i = 0; i < n_x; i++) {
        at[i] = x[i];
        for (int p = 0; p < PAIRS; p++)
            acc[i][p] = _mm256_setzero_ps();
    }
    for (; c + BF16_STEP <= n; c += BF16_STEP, w += BF16_STEP_BYTES) {
        x86_hint(w, BF16_STEP_BYTES);
        add_step(w, at, n_x, c, acc);
    }
    if (c < n)
        add_rest(w, at, n_x, c, n, acc);
    for (int i = 0; i < n_x; i++)
        put_sums(acc[i], sum[i]);
}

static void group_1(const uint8_t *w, const void *const *x, int64_t n, float (*sum)[LAYOUT_GROUP])
{
    group(w, x, 1, n, sum);
}

static void group_2(const uint8_t *w, const void *const *x, int64_t n, float (*sum)[LAYOUT_GROUP])
{
    group(w, x, 2, n, sum);
}

static const rows8_core core = {.of = {[1] = group_1, [2] = group_2}};

void k_linear_BF16_ANY_avx2(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    (void)t;
    rows8_linear(k, begin, end, &core);
}

void k_experts_BF16_ANY_avx2(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    (void)t;
    rows8_experts(k, begin, end, &core);
}
