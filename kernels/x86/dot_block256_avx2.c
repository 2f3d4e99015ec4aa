/* dot_block256_avx2.c - cores for the types with 256 numbers to a block, on activations with a scale for each
 * 256 (ACT_Q8K).
 *
 * Codes stay unsigned where they can: vpmaddubsw joins two products in 16 bits, vpmaddwd multiplies them with
 * the scale of their group and joins two again. What is too much, and the minima, are factors of the sums of
 * activations that the quantised row brings along: one vpmaddwd a block. All of it is exact. */
#include "kernels/x86/dot_x86.h"
#include "kernels/x86/unpack.h"

enum { BLOCK = 256 };

/* z plus the products of a run, times the scales of its groups. */
X86_INLINE __m256i add_run(__m256i z, __m256i q, __m256i magnitude, const int8_t *x, __m256i scale,
                           bool is_signed)
{
    __m256i v = x86_load(x);
    __m256i pairs = _mm256_maddubs_epi16(magnitude, is_signed ? _mm256_sign_epi8(v, q) : v);
    return _mm256_add_epi32(z, _mm256_madd_epi16(pairs, scale));
}

X86_INLINE void dot_blocks(const uint8_t *w, int64_t bytes, x86_head_fn *head, x86_run_fn *codes,
                           x86_less less, const void *const *x, int64_t n, float *out, int rows)
{
    __m256 s[4], mins[4];
    for (int r = 0; r < rows; r++)
        s[r] = mins[r] = _mm256_setzero_ps();
    for (int64_t i = 0; i < n / BLOCK; i++, w += bytes) {
        const x86_head256 h = head(w);
        __m256i z[4];
        x86_hint(w, bytes);
        for (int r = 0; r < rows; r++)
            z[r] = _mm256_setzero_si256();
            /* One by one: what a run shifts by is then known. */
#define RUN(run)                                                                                   \
    {                                                                                              \
        const __m256i q = codes(w, run), scale = x86_scale(h.scale, run);                          \
        const __m256i magnitude = less == X86_SIGNED ? _mm256_abs_epi8(q) : q;                     \
        for (int r = 0; r < rows; r++)                                                             \
            z[r] = add_run(z[r], q, magnitude, act_q(x[r]) + i * BLOCK + (run)*32, scale,          \
                           less == X86_SIGNED);                                                    \
    }
        /* clang-format off */
        RUN(0) RUN(1) RUN(2) RUN(3) RUN(4) RUN(5) RUN(6) RUN(7)
        /* clang-format on */
#undef RUN
            for (int r = 0; r < rows; r++)
        {
            float d = act_d(x[r], n)[i];
            __m256i sums = x86_load(act_sum(ACT_Q8K, x[r], n) + i * 16);
            __m256i taken = _mm256_madd_epi16(h.less, sums);
            if (less == X86_OFFSET)
                z[r] = _mm256_sub_epi32(z[r], taken);
            if (less == X86_MIN)
                mins[r] =
                    _mm256_fmadd_ps(_mm256_cvtepi32_ps(taken), _mm256_set1_ps(h.m * d), mins[r]);
            s[r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(z[r]), _mm256_set1_ps(h.d * d), s[r]);
        }
    }
    for (int r = 0; r < rows; r++)
        out[r] = x86_sum8(less == X86_MIN ? _mm256_sub_ps(s[r], mins[r]) : s[r]);
}

#define BLOCK_CORE(name, bytes, less, ...)                                                         \
    X86_INLINE void dot_##name(const void *w, const void *const *x, int64_t n, float *out,         \
                               int rows)                                                           \
    {                                                                                              \
        dot_blocks(w, bytes, x86_head_##name, x86_run_##name, less, x, n, out, rows);              \
    }                                                                                              \
    X86_CORE(dot_##name)                                                                           \
    const dot_core dot_avx2_##name = {ACT_Q8K, dot_##name##_1, dot_##name##_4, NULL};
X86_BLOCKS_256(BLOCK_CORE)
