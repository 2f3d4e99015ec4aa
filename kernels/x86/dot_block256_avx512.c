/* dot_block256_avx512.c - cores for the types with 256 numbers to a block, on activations with a scale for
 * each 256 (ACT_Q8K), with VNNI.
 *
 * As dot_block256_avx2.c, two runs of 32 numbers at a time: vpmaddubsw joins two products in 16 bits, vpdpwssd
 * multiplies them with the scales of their groups, joins two again and adds them up. All of it is exact. */
#include "kernels/x86/dot_x86.h"
#include "kernels/x86/unpack.h"

enum { BLOCK = 256 };

/* The words of runs 2 pair and 2 pair + 1, from those of x86_scale twice. */
X86_INLINE __m512i scale_of(__m512i scale, int pair)
{
    __m256i a = _mm256_set1_epi16((short)(4 * pair + ((4 * pair + 1) << 8)));
    __m256i b = _mm256_set1_epi16((short)(4 * pair + 2 + ((4 * pair + 3) << 8)));
    return _mm512_shuffle_epi8(scale, _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1));
}

X86_INLINE void dot_blocks(const uint8_t *w, int64_t bytes, x86_head_fn *head, x86_run_fn *codes,
                           x86_less less, const void *const *x, int64_t n, float *out, int rows)
{
    __m512 s[4];
    __m256 mins[4];
    for (int r = 0; r < rows; r++) {
        s[r] = _mm512_setzero_ps();
        mins[r] = _mm256_setzero_ps();
    }
    for (int64_t i = 0; i < n / BLOCK; i++, w += bytes) {
        const x86_head256 h = head(w);
        const __m512i scales = _mm512_broadcast_i64x4(h.scale);
        __m512i z[4];
        x86_hint(w, bytes);
        for (int r = 0; r < rows; r++)
            z[r] = _mm512_setzero_si512();
            /* One by one: what a run shifts by is then known. */
#define RUNS(pair)                                                                                 \
    {                                                                                              \
        const __m512i q = _mm512_inserti64x4(_mm512_castsi256_si512(codes(w, 2 * (pair))),         \
                                             codes(w, 2 * (pair) + 1), 1);                         \
        const __m512i scale = scale_of(scales, pair);                                              \
        const __mmask64 negative = less == X86_SIGNED ? _mm512_movepi8_mask(q) : 0;                \
        const __m512i magnitude = less == X86_SIGNED ? _mm512_abs_epi8(q) : q;                     \
        for (int r = 0; r < rows; r++) {                                                           \
            __m512i v = _mm512_loadu_si512(act_q(x[r]) + i * BLOCK + (pair)*64);                   \
            if (less == X86_SIGNED)                                                                \
                v = _mm512_mask_sub_epi8(v, negative, _mm512_setzero_si512(), v);                  \
            z[r] = _mm512_dpwssd_epi32(z[r], _mm512_maddubs_epi16(magnitude, v), scale);           \
        }                                                                                          \
    }
        /* clang-format off */
        RUNS(0) RUNS(1) RUNS(2) RUNS(3)
        /* clang-format on */
#undef RUNS
            for (int r = 0; r < rows; r++)
        {
            float d = act_d(x[r], n)[i];
            __m256i sums = x86_load(act_sum(ACT_Q8K, x[r], n) + i * 16);
            __m256i taken = _mm256_madd_epi16(h.less, sums);
            if (less == X86_OFFSET)
                z[r] = _mm512_sub_epi32(z[r], _mm512_zextsi256_si512(taken));
            if (less == X86_MIN)
                mins[r] =
                    _mm256_fmadd_ps(_mm256_cvtepi32_ps(taken), _mm256_set1_ps(h.m * d), mins[r]);
            s[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(z[r]), _mm512_set1_ps(h.d * d), s[r]);
        }
    }
    for (int r = 0; r < rows; r++) {
        float sum = _mm512_reduce_add_ps(s[r]);
        out[r] = less == X86_MIN ? sum - x86_sum8(mins[r]) : sum;
    }
}

#define BLOCK_CORE(name, bytes, less, ...)                                                         \
    X86_INLINE void dot_##name(const void *w, const void *const *x, int64_t n, float *out,         \
                               int rows)                                                           \
    {                                                                                              \
        dot_blocks(w, bytes, x86_head_##name, x86_run_##name, less, x, n, out, rows);              \
    }                                                                                              \
    X86_CORE(dot_##name)                                                                           \
    const dot_core dot_avx512_##name = {ACT_Q8K, dot_##name##_1, dot_##name##_4, NULL};
X86_BLOCKS_256(BLOCK_CORE)
