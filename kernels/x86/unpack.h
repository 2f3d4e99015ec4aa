/* unpack.h - stored blocks as bytes in AVX2 registers, 32 numbers to each, for all x86 kernels.
 *
 * kernels/ref/dequant_block32.c and dequant_block256.c have the layouts. Every file that includes this is built
 * with AVX2, FMA and F16C. Functions are inlined with constants, which leaves no branch on them. */
#ifndef WEFT_KERNELS_X86_UNPACK_H
#define WEFT_KERNELS_X86_UNPACK_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define X86_INLINE static inline __attribute__((always_inline))

/* How far ahead of its use a line of weights is asked for, and into which cache: past the end of the page at hand, where
 * the processor's own prefetching stops. Past the end of a weight the hint does nothing. bench/results/kernels.md has what other
 * distances gave. */
#ifndef X86_AHEAD /* tuning defines others: 0 for no hints */
#define X86_AHEAD (8 << 10)
#endif
#ifndef X86_HINT
#define X86_HINT _MM_HINT_T1
#endif
X86_INLINE void x86_hint_at(const uint8_t *p, int64_t bytes)
{
    for (int64_t i = 0; X86_AHEAD > 0 && i < bytes; i += 64)
        _mm_prefetch((const char *)((uintptr_t)p + (uintptr_t)i), X86_HINT);
}
X86_INLINE void x86_hint(const uint8_t *p, int64_t bytes)
{
    x86_hint_at((const uint8_t *)((uintptr_t)p + X86_AHEAD), bytes);
}

X86_INLINE float x86_half(const uint8_t *p)
{
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(h)));
}
X86_INLINE __m256i x86_load(const void *p)
{
    return _mm256_loadu_si256(p);
}
X86_INLINE __m128i x86_load16(const void *p)
{
    return _mm_loadu_si128(p);
}
X86_INLINE __m256i x86_join(__m128i low, __m128i high)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

/* (c >> right & mask) << left of each byte. */
X86_INLINE __m256i x86_bits(__m256i c, int right, int mask, int left)
{
    if (left > right)
        c = _mm256_slli_epi16(c, left - right);
    else if (right > left)
        c = _mm256_srli_epi16(c, right - left);
    return _mm256_and_si256(c, _mm256_set1_epi8((char)(mask << left)));
}

X86_INLINE float x86_sum8(__m256 s)
{
    __m128 a = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
    a = _mm_add_ps(a, _mm_movehl_ps(a, a));
    return _mm_cvtss_f32(_mm_add_ss(a, _mm_movehdup_ps(a)));
}

/* ---- blocks of 32 ---- */

/* Signed codes, or codes of at most 5 bits, unsigned, beside a minimum. */
typedef struct {
    __m256i q;
    float d, m;
} x86_block32;
typedef x86_block32 x86_unpack32(const uint8_t *w);

/* 16 bytes of 4-bit codes: number j in the low half of byte j, number j + 16 in the high one. */
X86_INLINE __m256i x86_nibbles(const uint8_t *p)
{
    __m128i c = x86_load16(p);
    return _mm256_and_si256(x86_join(c, _mm_srli_epi16(c, 4)), _mm256_set1_epi8(15));
}

/* 16 in byte j where bit j is set, else 0. */
X86_INLINE __m256i x86_fifth(const uint8_t *p)
{
    int32_t bits;
    memcpy(&bits, p, sizeof bits);
    const __m256i byte_of = _mm256_setr_epi64x(0x0000000000000000, 0x0101010101010101,
                                               0x0202020202020202, 0x0303030303030303);
    const __m256i bit_of = _mm256_set1_epi64x((int64_t)0x8040201008040201u);
    __m256i each = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(bits), byte_of), bit_of);
    return _mm256_and_si256(_mm256_cmpeq_epi8(each, bit_of), _mm256_set1_epi8(16));
}

X86_INLINE __m256i x86_lookup(const int8_t values[16], __m256i c)
{
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(x86_load16(values)), c);
}

static const int8_t x86_iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};
static const int8_t x86_mxfp4_doubled[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                             0, -1, -2, -3, -4, -6, -8, -12};

X86_INLINE x86_block32 x86_q8_0(const uint8_t *w)
{
    return (x86_block32){x86_load(w + 2), x86_half(w), 0};
}
X86_INLINE x86_block32 x86_q4_0(const uint8_t *w)
{
    return (x86_block32){_mm256_sub_epi8(x86_nibbles(w + 2), _mm256_set1_epi8(8)), x86_half(w), 0};
}
X86_INLINE x86_block32 x86_q4_1(const uint8_t *w)
{
    return (x86_block32){x86_nibbles(w + 4), x86_half(w), x86_half(w + 2)};
}
X86_INLINE x86_block32 x86_q5_0(const uint8_t *w)
{
    __m256i c = _mm256_or_si256(x86_nibbles(w + 6), x86_fifth(w + 2));
    return (x86_block32){_mm256_sub_epi8(c, _mm256_set1_epi8(16)), x86_half(w), 0};
}
X86_INLINE x86_block32 x86_q5_1(const uint8_t *w)
{
    __m256i c = _mm256_or_si256(x86_nibbles(w + 8), x86_fifth(w + 4));
    return (x86_block32){c, x86_half(w), x86_half(w + 2)};
}
X86_INLINE x86_block32 x86_iq4_nl(const uint8_t *w)
{
    return (x86_block32){x86_lookup(x86_iq4_values, x86_nibbles(w + 2)), x86_half(w), 0};
}
/* Half of 2^(e - 127), of eight words: the values in the table are doubled. */
X86_INLINE __m256 x86_e8m0(__m128i e)
{
    __m256i wide = _mm256_cvtepu16_epi32(e), two = _mm256_set1_epi32(2);
    __m256i small = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), wide); /* below 2^-126 */
    __m256i bits = _mm256_slli_epi32(_mm256_sub_epi32(wide, _mm256_set1_epi32(1)), 23);
    return _mm256_castsi256_ps(_mm256_blendv_epi8(bits, small, _mm256_cmpgt_epi32(two, wide)));
}
/* Half of 2^(e - 127): the values in the table are doubled. */
X86_INLINE x86_block32 x86_mxfp4(const uint8_t *w)
{
    uint32_t e = w[0], bits = e < 2 ? 0x00200000u << e : (e - 1) << 23;
    float d;
    memcpy(&d, &bits, sizeof d);
    return (x86_block32){x86_lookup(x86_mxfp4_doubled, x86_nibbles(w + 1)), d, 0};
}

/* ---- blocks of 256 ---- */

/* What a block has besides its codes. Scales are 16-bit words, laid so that x86_scale finds those of a run of
 * 32 numbers: of groups of 16 the even ones in the low half and the odd ones in the high half, of groups of 32
 * all of them in both. `less` is a factor for each 16 numbers in their order: of the minimum, or of what is to
 * be taken from the products of d because the codes are unsigned. */
typedef struct {
    __m256i scale, less;
    float d, m;
} x86_head256;
typedef x86_head256 x86_head_fn(const uint8_t *w);
typedef __m256i x86_run_fn(const uint8_t *w, int run); /* the codes of a run */

/* What stands in `less`. SIGNED: nothing, and codes are signed. */
typedef enum { X86_SIGNED, X86_OFFSET, X86_MIN } x86_less;

/* The words of run 0 .. 7. */
X86_INLINE __m256i x86_scale(__m256i scale, int run)
{
    return _mm256_shuffle_epi8(scale, _mm256_set1_epi16((short)(2 * run + ((2 * run + 1) << 8))));
}

/* 16 scales as bytes; the words of `scale`. */
X86_INLINE __m256i x86_scales16(__m128i bytes)
{
    const __m128i even_odd = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    return _mm256_cvtepi8_epi16(_mm_shuffle_epi8(bytes, even_odd));
}
/* 8 of them. */
X86_INLINE __m256i x86_scales8(__m128i bytes)
{
    return _mm256_broadcastsi128_si256(_mm_cvtepi8_epi16(bytes));
}
/* Each twice, in order: of 32 numbers the factor of both halves. */
X86_INLINE __m256i x86_twice8(__m128i bytes)
{
    __m128i words = _mm_cvtepi8_epi16(bytes);
    return x86_join(_mm_unpacklo_epi16(words, words), _mm_unpackhi_epi16(words, words));
}

/* 2-bit codes: 32 bytes to 128 numbers; 4-bit codes: 32 bytes to 64 numbers. */
X86_INLINE __m256i x86_twos(const uint8_t *codes, int run)
{
    return x86_bits(x86_load(codes + run / 4 * 32), run % 4 * 2, 3, 0);
}
X86_INLINE __m256i x86_fours(const uint8_t *codes, int run)
{
    return x86_bits(x86_load(codes + run / 2 * 32), run % 2 * 4, 15, 0);
}

X86_INLINE x86_head256 x86_head_q2_k(const uint8_t *w)
{
    const __m128i low = _mm_set1_epi8(15);
    __m128i both = x86_load16(w);
    __m128i mins = _mm_and_si128(_mm_srli_epi16(both, 4), low);
    return (x86_head256){x86_scales16(_mm_and_si128(both, low)), _mm256_cvtepi8_epi16(mins),
                         x86_half(w + 80), x86_half(w + 82)};
}
X86_INLINE __m256i x86_run_q2_k(const uint8_t *w, int run)
{
    return x86_twos(w + 16, run);
}

/* 12 bytes as dwords; the last is 0. */
X86_INLINE __m128i x86_load12(const uint8_t *p)
{
    int32_t last;
    memcpy(&last, p + 8, sizeof last);
    return _mm_insert_epi32(_mm_loadl_epi64((const void *)p), last, 2);
}

/* Scales are joined four bytes at a time, none of which meets another; so below. */
X86_INLINE x86_head256 x86_head_q3_k(const uint8_t *w)
{
    __m128i p = x86_load12(w + 96);
    __m128i low = _mm_srlv_epi32(_mm_shuffle_epi32(p, 0x44), _mm_setr_epi32(0, 0, 4, 4));
    __m128i high = _mm_srlv_epi32(_mm_shuffle_epi32(p, 0xaa), _mm_setr_epi32(0, 2, 4, 6));
    low = _mm_and_si128(low, _mm_set1_epi8(15));
    high = _mm_slli_epi16(_mm_and_si128(high, _mm_set1_epi8(3)), 4);
    __m128i scales = _mm_sub_epi8(_mm_or_si128(low, high), _mm_set1_epi8(32));
    return (x86_head256){x86_scales16(scales), _mm256_slli_epi16(_mm256_cvtepi8_epi16(scales), 2),
                         x86_half(w + 108), 0};
}
X86_INLINE __m256i x86_run_q3_k(const uint8_t *w, int run) /* 4 too many */
{
    return _mm256_or_si256(x86_twos(w + 32, run), x86_bits(x86_load(w), run, 1, 2));
}

X86_INLINE x86_head256 x86_head_q4_k(const uint8_t *w)
{
    __m128i p = x86_load16(w + 4); /* of which 12 bytes are scales and minima */
    __m128i low = _mm_srlv_epi32(_mm_shuffle_epi32(p, 0x98), _mm_setr_epi32(0, 0, 0, 4));
    __m128i high = _mm_srli_epi32(_mm_shuffle_epi32(p, 0x50), 2);
    low = _mm_and_si128(low, _mm_setr_epi32(0x3f3f3f3f, 0x0f0f0f0f, 0x3f3f3f3f, 0x0f0f0f0f));
    high = _mm_and_si128(high, _mm_setr_epi32(0, 0x30303030, 0, 0x30303030));
    __m128i both = _mm_or_si128(low, high); /* eight scales, eight minima */
    return (x86_head256){x86_scales8(both), x86_twice8(_mm_unpackhi_epi64(both, both)), x86_half(w),
                         x86_half(w + 2)};
}
X86_INLINE __m256i x86_run_q4_k(const uint8_t *w, int run)
{
    return x86_fours(w + 16, run);
}

X86_INLINE x86_head256 x86_head_q5_k(const uint8_t *w)
{
    return x86_head_q4_k(w);
}
X86_INLINE __m256i x86_run_q5_k(const uint8_t *w, int run)
{
    return _mm256_or_si256(x86_fours(w + 48, run), x86_bits(x86_load(w + 16), run, 1, 4));
}

X86_INLINE x86_head256 x86_head_q6_k(const uint8_t *w)
{
    __m128i scales = x86_load16(w + 192);
    return (x86_head256){x86_scales16(scales), _mm256_slli_epi16(_mm256_cvtepi8_epi16(scales), 5),
                         x86_half(w + 208), 0};
}
X86_INLINE __m256i x86_run_q6_k(const uint8_t *w, int run) /* 32 too many */
{
    const uint8_t *low = w + run / 4 * 64 + run % 2 * 32, *high = w + 128 + run / 4 * 32;
    return _mm256_or_si256(x86_bits(x86_load(low), run % 4 / 2 * 4, 15, 0),
                           x86_bits(x86_load(high), run % 4 * 2, 3, 4));
}

X86_INLINE x86_head256 x86_head_iq4_xs(const uint8_t *w)
{
    int32_t low4;
    int16_t high;
    memcpy(&low4, w + 4, sizeof low4);
    memcpy(&high, w + 2, sizeof high);
    __m128i both = _mm_cvtsi32_si128(low4);
    __m128i low =
        _mm_and_si128(_mm_unpacklo_epi8(both, _mm_srli_epi16(both, 4)), _mm_set1_epi8(15));
    /* two bits of each, moved to the top of a word and down */
    __m128i top =
        _mm_mullo_epi16(_mm_set1_epi16(high), _mm_setr_epi16(1 << 14, 1 << 12, 1 << 10, 1 << 8,
                                                             1 << 6, 1 << 4, 1 << 2, 1));
    __m128i words =
        _mm_or_si128(_mm_cvtepu8_epi16(low), _mm_slli_epi16(_mm_srli_epi16(top, 14), 4));
    words = _mm_sub_epi16(words, _mm_set1_epi16(32));
    return (x86_head256){_mm256_broadcastsi128_si256(words), _mm256_setzero_si256(), x86_half(w),
                         0};
}
X86_INLINE __m256i x86_run_iq4_xs(const uint8_t *w, int run)
{
    return x86_lookup(x86_iq4_values, x86_nibbles(w + 8 + 16 * run));
}

/* name, bytes of a block, what stands in `less`, and by how much codes are too large then */
#define X86_BLOCKS_256(X)                                                                          \
    X(q2_k, 84, X86_MIN, 0)                                                                        \
    X(q3_k, 110, X86_OFFSET, 4)                                                                    \
    X(q4_k, 144, X86_MIN, 0)                                                                       \
    X(q5_k, 176, X86_MIN, 0)                                                                       \
    X(q6_k, 210, X86_OFFSET, 32)                                                                   \
    X(iq4_xs, 136, X86_SIGNED, 0)
/* name, bytes of a block, whether it has a minimum and unsigned codes */
#define X86_BLOCKS_32(X)                                                                           \
    X(q8_0, 34, false)                                                                             \
    X(q4_0, 18, false)                                                                             \
    X(q4_1, 20, true)                                                                              \
    X(q5_0, 22, false)                                                                             \
    X(q5_1, 24, true)                                                                              \
    X(iq4_nl, 18, false)                                                                           \
    X(mxfp4, 17, false)

/* The two functions of a core (kernels/c/dot_c.h), from `name`, which is inlined with 1 and 4. */
#define X86_CORE(name)                                                                             \
    static void name##_1(const void *w, const void *const *x, int64_t n, float *out)               \
    {                                                                                              \
        name(w, x, n, out, 1);                                                                     \
    }                                                                                              \
    static void name##_4(const void *w, const void *const *x, int64_t n, float *out)               \
    {                                                                                              \
        name(w, x, n, out, 4);                                                                     \
    }

#endif
