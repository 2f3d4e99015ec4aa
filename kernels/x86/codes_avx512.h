/* codes_avx512.h - interleaved weights (kernels/layout.c says how they lie) as unsigned bytes, which is what vpdpbusd takes.
 *
 * Of 32 columns of eight rows v[step] holds eight columns, row r in bytes 8 r to 8 r + 7. Codes come with an offset
 * added, and times a power of two: the tables below say which. */
#ifndef WEFT_KERNELS_X86_CODES_AVX512_H
#define WEFT_KERNELS_X86_CODES_AVX512_H

#include "kernels/x86/unpack.h"

typedef void codes_fn(const uint8_t *w, __m512i v[4]);

/* What three operands make of a bit: table bit a * 4 + b * 2 + c. */
enum {
    BITS_CUT_FLIP = 0x6a, /* (a & b) ^ c */
    BITS_PICK = 0xca      /* a ? b : c */
};

X86_INLINE __m512i codes_set(int byte)
{
    return _mm512_set1_epi8((char)byte);
}

/* Eight activations for eight rows: a load that needs no vector port. */
X86_INLINE __m512i codes_repeat(const int8_t *q)
{
    long long eight;
    memcpy(&eight, q, sizeof eight);
    return _mm512_set1_epi64(eight);
}

/* A number of each row for both of its half sums. */
X86_INLINE __m512 codes_twice(__m256 of)
{
    const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    return _mm512_permutexvar_ps(twice, _mm512_castps256_ps512(of));
}

/* Two half sums of each row as one. */
X86_INLINE __m256 codes_join(__m512 s)
{
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 0, 2, 4, 6, 8, 10, 12, 14);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    return _mm256_add_ps(_mm512_castps512_ps256(_mm512_permutexvar_ps(even, s)),
                         _mm512_castps512_ps256(_mm512_permutexvar_ps(odd, s)));
}

/* Two groups, each of 64 bits of eight rows: the first 32 bits of all sixteen rows, then the second. */
X86_INLINE void codes_pair(__m512i a, __m512i b, void *to)
{
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    _mm512_storeu_si512(to, _mm512_permutex2var_epi32(a, even, b));
    _mm512_storeu_si512((char *)to + 64, _mm512_permutex2var_epi32(a, odd, b));
}

/* Bytes, 128 too many. */
X86_INLINE void codes_bytes(const uint8_t *w, __m512i v[4])
{
    for (int i = 0; i < 4; i++)
        v[i] = _mm512_xor_si512(_mm512_loadu_si512(w + i * 64), codes_set(0x80));
}

/* Halves of bytes; `flip` 8: signed ones, 8 too many. */
X86_INLINE void codes_halves(const uint8_t *w, int flip, __m512i v[4])
{
    const __m512i low = codes_set(15), other = codes_set(flip);
    for (int i = 0; i < 2; i++) {
        __m512i both = _mm512_loadu_si512(w + i * 64), high = _mm512_srli_epi16(both, 4);
        v[i] = _mm512_ternarylogic_epi32(both, low, other, BITS_CUT_FLIP);
        v[i + 2] = _mm512_ternarylogic_epi32(high, low, other, BITS_CUT_FLIP);
    }
}

X86_INLINE void codes_fours(const uint8_t *w, __m512i v[4])
{
    codes_halves(w, 0, v);
}

X86_INLINE void codes_signed_fours(const uint8_t *w, __m512i v[4])
{
    codes_halves(w, 8, v);
}

/* (b << left), where `mask` has ones, else c. */
X86_INLINE __m256i codes_over(__m256i b, int left, int mask, __m256i c)
{
    b = _mm256_slli_epi16(b, left);
    return _mm256_ternarylogic_epi32(_mm256_set1_epi8((char)mask), b, c, BITS_PICK);
}

/* Rows 0, 1, 4, 5 and 2, 3, 6, 7 in order, and of each byte what `mask` has, its sign flipped. */
X86_INLINE __m512i codes_with_rest(__m256i first, __m256i rest, int mask)
{
    const __m512i pairs = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    __m512i all = _mm512_permutex2var_epi64(_mm512_castsi256_si512(first), pairs,
                                            _mm512_castsi256_si512(rest));
    return _mm512_ternarylogic_epi32(all, codes_set(mask), codes_set(0x80), BITS_CUT_FLIP);
}

/* Fives: eight codes in five bytes, times 8. Bytes of rows 0, 1, 4, 5 are taken together: they hold the codes of
 * these rows, and with their rests those of rows 2, 3, 6, 7. */
X86_INLINE void codes_fives(const uint8_t *w, __m512i v[4])
{
    __m256i b[5], rest[4];
    for (int i = 0; i < 5; i++)
        b[i] = x86_join(x86_load16(w + i * 16), x86_load16(w + 80 + i * 16));
    rest[0] = b[4];
    rest[1] = codes_over(b[0], 5, 0xe0, _mm256_slli_epi16(b[1], 3));
    rest[2] = codes_over(b[2], 5, 0xe0, codes_over(b[1], 2, 0x10, _mm256_slli_epi16(b[3], 1)));
    rest[3] = codes_over(b[4], 5, 0xe0, _mm256_slli_epi16(b[3], 3));
    for (int i = 0; i < 4; i++)
        v[i] = codes_with_rest(b[i], rest[i], 0xf8);
}

/* Threes: eight codes in three bytes, times 32; of rows as fives. */
X86_INLINE void codes_threes(const uint8_t *w, __m512i v[4])
{
    __m256i b[3], first[4], rest[4];
    for (int i = 0; i < 3; i++)
        b[i] = x86_join(x86_load16(w + i * 16), x86_load16(w + 48 + i * 16));
    for (int i = 0; i < 2; i++) {
        first[2 * i] = b[i];
        first[2 * i + 1] = _mm256_slli_epi16(b[i], 3);
    }
    rest[0] = b[2];
    rest[1] = _mm256_slli_epi16(b[2], 3);
    rest[2] = codes_over(b[0], 6, 0xc0, _mm256_slli_epi16(b[2], 4));
    rest[3] = codes_over(b[1], 6, 0xc0, _mm256_slli_epi16(b[2], 5));
    for (int i = 0; i < 4; i++)
        v[i] = codes_with_rest(first[i], rest[i], 0xe0);
}

/* Four codes in a byte. */
X86_INLINE void codes_twos(const uint8_t *w, __m512i v[4])
{
    v[0] = _mm512_loadu_si512(w);
    v[1] = _mm512_srli_epi16(v[0], 2);
    v[2] = _mm512_srli_epi16(v[0], 4);
    v[3] = _mm512_srli_epi16(v[0], 6);
    for (int i = 0; i < 4; i++)
        v[i] = _mm512_and_si512(v[i], codes_set(3));
}

/* Byte i of the sixes of all four pairs of rows. */
X86_INLINE __m512i codes_pairs(const uint8_t *w)
{
    __m512i v = _mm512_castsi128_si512(x86_load16(w));
    v = _mm512_inserti32x4(v, x86_load16(w + 48), 1);
    v = _mm512_inserti32x4(v, x86_load16(w + 96), 2);
    return _mm512_inserti32x4(v, x86_load16(w + 144), 3);
}

/* Sixes: four codes in three bytes, times 4, 32 * 4 too many. */
X86_INLINE void codes_sixes(const uint8_t *w, __m512i v[4])
{
    const __m512i high = codes_set(0xc0), middle = codes_set(0xf0);
    __m512i b[4];
    for (int i = 0; i < 3; i++)
        b[i] = codes_pairs(w + i * 16);
    b[3] = _mm512_ternarylogic_epi32(middle, _mm512_slli_epi16(b[1], 4), _mm512_slli_epi16(b[2], 2),
                                     BITS_PICK);
    b[3] = _mm512_ternarylogic_epi32(high, _mm512_slli_epi16(b[0], 6), b[3], BITS_PICK);
    for (int i = 0; i < 4; i++)
        v[i] = _mm512_ternarylogic_epi32(b[i], codes_set(0xfc), codes_set(0x80), BITS_CUT_FLIP);
}

/* Values of a table, made unsigned by an offset. */
X86_INLINE void codes_values(const uint8_t *w, const int8_t table[16], int offset, __m512i v[4])
{
    __m128i values = _mm_add_epi8(x86_load16(table), _mm_set1_epi8((char)offset));
    codes_fours(w, v);
    for (int i = 0; i < 4; i++)
        v[i] = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(values), v[i]);
}

X86_INLINE void codes_iq4(const uint8_t *w, __m512i v[4]) /* 128 too many */
{
    codes_values(w, x86_iq4_values, 128, v);
}

X86_INLINE void codes_mxfp4(const uint8_t *w, __m512i v[4]) /* doubled, 12 too many */
{
    codes_values(w, x86_mxfp4_doubled, 12, v);
}

typedef __m256 scales_fn(const uint8_t *w);

X86_INLINE __m256 codes_f16(const uint8_t *w)
{
    return _mm256_cvtph_ps(x86_load16(w));
}

/* Half of 2^(e - 127), for eight bytes e. */
X86_INLINE __m256 codes_e8m0(const uint8_t *w)
{
    return x86_e8m0(_mm_cvtepu8_epi16(_mm_loadl_epi64((const void *)w)));
}

/* A type with a scale for each 32 columns; sizes are of eight rows. */
typedef struct {
    int bytes, codes_at;
    scales_fn *scales;
    codes_fn *codes;
    int offset;   /* of codes as they come */
    float unit;   /* of codes as they come */
    bool has_min; /* of each row, after the scales */
} rows8_block32;

/* clang-format off */
static const rows8_block32 rows8_Q8_0   = {272, 16, codes_f16,  codes_bytes,        128, 1,       false};
static const rows8_block32 rows8_Q4_0   = {144, 16, codes_f16,  codes_signed_fours, 8,   1,       false};
static const rows8_block32 rows8_Q4_1   = {160, 32, codes_f16,  codes_fours,        0,   1,       true};
static const rows8_block32 rows8_Q5_0   = {176, 16, codes_f16,  codes_fives,        128, 1 / 8.f, false};
static const rows8_block32 rows8_Q5_1   = {192, 32, codes_f16,  codes_fives,        0,   1 / 8.f, true};
static const rows8_block32 rows8_IQ4_NL = {144, 16, codes_f16,  codes_iq4,          128, 1,       false};
static const rows8_block32 rows8_MXFP4  = {136, 8,  codes_e8m0, codes_mxfp4,        12,  1,       false};
/* clang-format on */

/* The scales of groups of columns, as bytes: [groups][8 rows], and the minima; `w` is the block. */
enum { GROUPS_BYTES = 16 * 8 };
typedef const uint8_t *groups_fn(const uint8_t *w, uint8_t *scale, uint8_t *min);

/* 6 bits, from 12 bytes of each row. */
X86_INLINE const uint8_t *groups_six(const uint8_t *w, uint8_t *scale, uint8_t *min)
{
    const __m256i six = _mm256_set1_epi8(0x3f), four = _mm256_set1_epi8(0x0f);
    const __m256i high = _mm256_set1_epi8(0x30);
    __m256i a = x86_load(w + 32), b = x86_load(w + 64), c = x86_load(w + 96);
    __m256i top_a = _mm256_and_si256(_mm256_srli_epi16(a, 2), high);
    __m256i top_b = _mm256_and_si256(_mm256_srli_epi16(b, 2), high);
    __m256i c_high = _mm256_and_si256(_mm256_srli_epi16(c, 4), four);
    _mm256_storeu_si256((void *)scale, _mm256_and_si256(a, six));
    _mm256_storeu_si256((void *)(scale + 32), _mm256_or_si256(_mm256_and_si256(c, four), top_a));
    _mm256_storeu_si256((void *)min, _mm256_and_si256(b, six));
    _mm256_storeu_si256((void *)(min + 32), _mm256_or_si256(c_high, top_b));
    return scale;
}

/* 4 bits, and in the same byte 4 of the minimum. */
X86_INLINE const uint8_t *groups_four(const uint8_t *w, uint8_t *scale, uint8_t *min)
{
    const __m256i low = _mm256_set1_epi8(15);
    for (int i = 0; i < GROUPS_BYTES; i += 32) {
        __m256i both = x86_load(w + 32 + i);
        _mm256_storeu_si256((void *)(scale + i), _mm256_and_si256(both, low));
        _mm256_storeu_si256((void *)(min + i), _mm256_and_si256(_mm256_srli_epi16(both, 4), low));
    }
    return scale;
}

/* Eight groups of signed ones, as sixes. */
X86_INLINE void groups_sixes(const uint8_t *w, uint8_t *scale)
{
    const __m128i low = _mm_set1_epi8(0x3f), flip = _mm_set1_epi8(0x20);
    __m128i b[3], v[4];
    for (int i = 0; i < 3; i++) {
        b[i] = x86_load16(w + i * 16);
        v[i] = _mm_srli_epi16(b[i], 2);
    }
    __m128i second = _mm_and_si128(_mm_slli_epi16(b[1], 2), _mm_set1_epi8(0x0c));
    v[3] = _mm_or_si128(_mm_and_si128(b[2], _mm_set1_epi8(3)), second);
    v[3] = _mm_or_si128(v[3], _mm_and_si128(_mm_slli_epi16(b[0], 4), _mm_set1_epi8(0x30)));
    for (int i = 0; i < 4; i++) {
        __m128i code = _mm_xor_si128(_mm_and_si128(v[i], low), flip);
        _mm_storeu_si128((void *)(scale + i * 16), _mm_sub_epi8(code, flip));
    }
}

X86_INLINE const uint8_t *groups_sixes8(const uint8_t *w, uint8_t *scale, uint8_t *min)
{
    (void)min;
    groups_sixes(w + 16, scale);
    return scale;
}

X86_INLINE const uint8_t *groups_sixes16(const uint8_t *w, uint8_t *scale, uint8_t *min)
{
    (void)min;
    groups_sixes(w + 16, scale);
    groups_sixes(w + 64, scale + 64);
    return scale;
}

/* Signed, of 8 bits. */
X86_INLINE const uint8_t *groups_bytes(const uint8_t *w, uint8_t *scale, uint8_t *min)
{
    (void)scale, (void)min;
    return w + 16;
}

/* A type with a scale for each 256 columns, and integers that multiply it for each 32 or 16. */
typedef struct {
    int bytes, codes_at, sub_bytes; /* of 32 columns */
    codes_fn *codes;
    int offset;
    float unit;
    int groups; /* in 256 columns: 8 or 16 */
    groups_fn *scales;
    bool has_min;
} rows8_block256;

/* clang-format off */
static const rows8_block256 rows8_Q2_K   = {672,  160, 64,  codes_twos,   0,   1,        16, groups_four,    true};
static const rows8_block256 rows8_Q3_K   = {880,  112, 96,  codes_threes, 128, 1 / 32.f, 16, groups_sixes16, false};
static const rows8_block256 rows8_Q4_K   = {1152, 128, 128, codes_fours,  0,   1,        8,  groups_six,     true};
static const rows8_block256 rows8_Q5_K   = {1408, 128, 160, codes_fives,  0,   1 / 8.f,  8,  groups_six,     true};
static const rows8_block256 rows8_Q6_K   = {1680, 144, 192, codes_sixes,  128, 1 / 4.f,  16, groups_bytes,   false};
static const rows8_block256 rows8_IQ4_XS = {1088, 64,  128, codes_iq4,    128, 1,        8,  groups_sixes8,  false};
/* clang-format on */

#endif
