/* dot_block32_avx512.c - cores for the types with 32 numbers to a block, on activations with a scale for
 * each 32 (ACT_Q8), with VNNI.
 *
 * Two blocks fill a register. vpdpbusd multiplies unsigned with signed bytes and joins four products in 32 bits,
 * exactly. Signed codes give their sign to the activations, which are never -128. A block that is left over
 * goes with one of zeros. */
#include "kernels/x86/dot_x86.h"
#include "kernels/x86/unpack.h"

enum { BLOCK = 32 };

/* Two blocks: their codes, and the scale of each in eight lanes. */
typedef struct {
    __m512i magnitude;
    __mmask64 negative;
    __m512 d;
    float m[2];
} pair32;

X86_INLINE pair32 pair_of(const x86_block32 *a, const x86_block32 *b, bool has_min)
{
    __m512i q = _mm512_inserti64x4(_mm512_castsi256_si512(a->q), b->q, 1);
    __m512 d = _mm512_mask_blend_ps(0xff00, _mm512_set1_ps(a->d), _mm512_set1_ps(b->d));
    if (has_min)
        return (pair32){q, 0, d, {a->m, b->m}};
    return (pair32){_mm512_abs_epi8(q), _mm512_movepi8_mask(q), d, {0, 0}};
}

/* Blocks i and i + 1 of which `count` are there, added to sums s[r]. */
X86_INLINE void add_pair(const pair32 *p, const void *const *x, int64_t n, int64_t i, int count,
                         bool has_min, __m512 *s, float *mins, int rows)
{
    const __m512i zero = _mm512_setzero_si512();
    for (int r = 0; r < rows; r++) {
        const float *d = act_d(x[r], n) + i;
        const int8_t *q = act_q(x[r]) + i * BLOCK;
        __m512i v = count == 2 ? _mm512_loadu_si512(q) : _mm512_zextsi256_si512(x86_load(q));
        if (!has_min)
            v = _mm512_mask_sub_epi8(v, p->negative, zero, v);
        __m512 products = _mm512_cvtepi32_ps(_mm512_dpbusd_epi32(zero, p->magnitude, v));
        float second = count == 2 ? d[1] : 0;
        __m512 dx = _mm512_mask_blend_ps(0xff00, _mm512_set1_ps(d[0]), _mm512_set1_ps(second));
        s[r] = _mm512_fmadd_ps(products, _mm512_mul_ps(p->d, dx), s[r]);
        if (has_min) {
            const int16_t *sum = act_sum(ACT_Q8, x[r], n) + 2 * i;
            mins[r] += p->m[0] * d[0] * (float)(sum[0] + sum[1]);
            if (count == 2)
                mins[r] += p->m[1] * d[1] * (float)(sum[2] + sum[3]);
        }
    }
}

X86_INLINE void dot_blocks(const uint8_t *w, int64_t bytes, x86_unpack32 *unpack, bool has_min,
                           const void *const *x, int64_t n, float *out, int rows)
{
    __m512 s[4];
    float mins[4] = {0};
    int64_t i = 0, blocks = n / BLOCK;
    for (int r = 0; r < rows; r++)
        s[r] = _mm512_setzero_ps();
    for (; i + 2 <= blocks; i += 2, w += 2 * bytes) {
        x86_hint(w, 1);
        const x86_block32 a = unpack(w), b = unpack(w + bytes);
        const pair32 p = pair_of(&a, &b, has_min);
        add_pair(&p, x, n, i, 2, has_min, s, mins, rows);
    }
    if (i < blocks) {
        const x86_block32 a = unpack(w), b = {_mm256_setzero_si256(), 0, 0};
        const pair32 p = pair_of(&a, &b, has_min);
        add_pair(&p, x, n, i, 1, has_min, s, mins, rows);
    }
    for (int r = 0; r < rows; r++) {
        float sum = _mm512_reduce_add_ps(s[r]);
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
    const dot_core dot_avx512_##name = {ACT_Q8, dot_##name##_1, dot_##name##_4, NULL};
X86_BLOCKS_32(BLOCK_CORE)
