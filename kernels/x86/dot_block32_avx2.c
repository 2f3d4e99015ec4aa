/* dot_block32_avx2.c - cores for the types with 32 numbers to a block, on activations with a scale for
 * each 32 (ACT_Q8).
 *
 * vpmaddubsw multiplies unsigned with signed bytes. Signed codes give their sign to the activations, which
 * are never -128: |code| <= 128 and |x| <= 127, so that two products fit 16 bits and the sum over a block is
 * exact, in eight lanes. Blocks go to two sums in turn, since an fma takes longer than a block. */
#include "kernels/x86/dot_x86.h"
#include "kernels/x86/unpack.h"

enum { BLOCK = 32 };

typedef struct {
    const int8_t *q;
    const float *d;
    const int16_t *sum;
} quantized;

X86_INLINE quantized quantized_of(const void *x, int64_t n)
{
    return (quantized){act_q(x), act_d(x, n), act_sum(ACT_Q8, x, n)};
}

/* Eight integers, together the products of block i. */
X86_INLINE __m256i block_lanes(__m256i magnitude, __m256i q, const quantized *x, int64_t i,
                               bool has_min)
{
    __m256i v = x86_load(x->q + i * BLOCK);
    __m256i pairs = _mm256_maddubs_epi16(magnitude, has_min ? v : _mm256_sign_epi8(v, q));
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

/* Block i, added to sums s[r], and what its minimum adds to mins[r]. */
X86_INLINE void add_block(const x86_block32 *b, const quantized *x, int64_t i, bool has_min,
                          __m256 *s, float *mins, int rows)
{
    __m256i magnitude = has_min ? b->q : _mm256_abs_epi8(b->q);
    for (int r = 0; r < rows; r++) {
        float d = x[r].d[i];
        __m256 products = _mm256_cvtepi32_ps(block_lanes(magnitude, b->q, &x[r], i, has_min));
        s[r] = _mm256_fmadd_ps(products, _mm256_set1_ps(b->d * d), s[r]);
        if (has_min)
            mins[r] += b->m * d * (float)(x[r].sum[2 * i] + x[r].sum[2 * i + 1]);
    }
}

X86_INLINE void dot_blocks(const uint8_t *w, int64_t bytes, x86_unpack32 *unpack, bool has_min,
                           const void *const *x, int64_t n, float *out, int rows)
{
    __m256 even[4], odd[4];
    float mins[4] = {0};
    quantized p[4];
    int64_t i = 0, blocks = n / BLOCK;
    for (int r = 0; r < rows; r++) {
        even[r] = odd[r] = _mm256_setzero_ps();
        p[r] = quantized_of(x[r], n);
    }
    for (; i + 2 <= blocks; i += 2, w += 2 * bytes) {
        x86_hint(w, 1);
        const x86_block32 a = unpack(w), b = unpack(w + bytes);
        add_block(&a, p, i, has_min, even, mins, rows);
        add_block(&b, p, i + 1, has_min, odd, mins, rows);
    }
    if (i < blocks) {
        const x86_block32 a = unpack(w);
        add_block(&a, p, i, has_min, even, mins, rows);
    }
    for (int r = 0; r < rows; r++) {
        float sum = x86_sum8(_mm256_add_ps(even[r], odd[r]));
        out[r] = has_min ? sum + mins[r] : sum;
    }
}

#define BLOCK_CORE(name, bytes, has_min)                                                           \
    X86_INLINE void dot_##name(const void *w, const void *const *x, int64_t n, float *out,         \
                               int rows)                                                           \
    {                                                                                              \
        dot_blocks(w, bytes, x86_##name, has_min, x, n, out, rows);                                \
    }                                                                                              \
    X86_CORE(dot_##name)                                                                           \
    const dot_core dot_avx2_##name = {ACT_Q8, dot_##name##_1, dot_##name##_4, NULL};
X86_BLOCKS_32(BLOCK_CORE)
