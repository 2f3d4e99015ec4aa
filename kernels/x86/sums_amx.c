/* sums_amx.c - few rows of types with a scale for each 256 columns, in tiles of integers: sums stay in the tiles.
 *
 * Codes are multiplied with the integers that scale 16 or 32 of them before tiles are, and products taken apart to two numbers
 * that fit bytes; minima are bytes anyway. So for 256 columns there are eight products of 64 columns, four more with minima,
 * and two or three sums for each number of the result, where few_amx.c has eight and the minima.
 *
 * Products of codes without a sign: a scale is 8 * high + low, of three bits each at most, and code * low and code * high are
 * at most 217. Others: 16 bits, whose high byte is signed.
 *
 * Where scales are for 32 columns, few_amx.c is faster for up to 8 rows, with IQ4_XS for up to 16: it has less to unpack.
 *
 * Bound for 16 weight rows, 256 columns of Q6_K: 64 rows of tiles take 11 vector instructions each on two ports, 350 cycles,
 * once for up to 32 rows; products 8 * 16 cycles for each 16 rows. Reached, from memory: 16 rows 990 cycles, 32 rows 1430. */
#include "kernels/x86/few_amx.h"

enum { LOW, HIGH, MIN };
enum { PICK = 0xca }; /* ternary logic: of the second what the first has bits for, else the third */

/* Bytes of sixteen rows: each as a number of 32 bits. */
X86_INLINE __m512i both_groups(const uint8_t *a, const uint8_t *b)
{
    return _mm512_cvtepi8_epi32(
        _mm_unpacklo_epi64(_mm_loadl_epi64((const void *)a), _mm_loadl_epi64((const void *)b)));
}

/* Each four times. */
X86_INLINE __m512i four_bytes(const uint8_t *a, const uint8_t *b)
{
    __m512i wide = both_groups(a, b);
    wide = _mm512_add_epi32(wide, _mm512_slli_epi32(wide, 16));
    return _mm512_add_epi32(wide, _mm512_slli_epi32(wide, 8));
}

/* Each as two words. */
X86_INLINE __m512i two_words(const uint8_t *a, const uint8_t *b)
{
    __m512i wide = both_groups(a, b);
    return _mm512_ternarylogic_epi32(_mm512_set1_epi32(0xffff), wide, _mm512_slli_epi32(wide, 16),
                                     PICK);
}

/* What the codes of 16 or 32 columns are multiplied with. */
typedef struct {
    __m512i low, high; /* codes with a sign: low alone */
    __m512i min;
} group_scales;

X86_INLINE bool is_small(const rows8_block256 *t)
{
    return t->offset == 0;
}

X86_INLINE group_scales scales_of(const heads256 *h, const rows8_block256 *t, int group)
{
    const int at = group * LAYOUT_GROUP;
    const __m512i three_bits = _mm512_set1_epi32(0x00070007);
    group_scales s;
    s.low = s.high = s.min = two_words(h->scale[0] + at, h->scale[1] + at);
    if (is_small(t)) {
        s.high = _mm512_srli_epi16(s.low, 3);
        s.low = _mm512_and_si512(s.low, three_bits);
    }
    if (t->has_min)
        s.min = four_bytes(h->min[0] + at, h->min[1] + at);
    return s;
}

X86_INLINE void put(few_work *j, int of, int row, __m512i v)
{
    _mm512_storeu_si512(j->tiles[of][row], v);
}

/* Four columns. A product of words makes those of two codes, which have no carry. */
X86_INLINE void put_small(few_work *j, int row, __m512i v, const group_scales *s)
{
    put(j, LOW, row, _mm512_mullo_epi16(v, s->low));
    put(j, HIGH, row, _mm512_mullo_epi16(v, s->high));
}

X86_INLINE void put_words(few_work *j, int row, __m512i v, const group_scales *s, int offset)
{
    const __m512i byte = _mm512_set1_epi32(0x00ff00ff),
                  less = _mm512_set1_epi32(offset * 0x00010001);
    __m512i even = _mm512_sub_epi16(_mm512_and_si512(v, byte), less);
    __m512i odd = _mm512_sub_epi16(_mm512_srli_epi16(v, 8), less);
    even = _mm512_mullo_epi16(even, s->low);
    odd = _mm512_mullo_epi16(odd, s->low);
    put(j, LOW, row, _mm512_ternarylogic_epi32(byte, even, _mm512_slli_epi16(odd, 8), PICK));
    put(j, HIGH, row, _mm512_ternarylogic_epi32(byte, _mm512_srli_epi16(even, 8), odd, PICK));
}

/* Codes that come times eight become what they are. */
X86_INLINE __m512i codes_small(__m512i v, const rows8_block256 *t)
{
    return t->unit == 1 ? v : _mm512_and_si512(_mm512_srli_epi16(v, 3), codes_set(0x1f));
}

X86_INLINE void put_columns(few_work *j, int row, __m512i v, const rows8_block256 *t,
                            const group_scales *s)
{
    if (is_small(t))
        put_small(j, row, codes_small(v, t), s);
    else
        put_words(j, row, v, s, t->offset);
    if (t->has_min)
        put(j, MIN, row, s->min);
}

X86_INLINE void unpack_sub(few_work *j, const heads256 *h, const rows8_block256 *t, int sub)
{
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    const int each = t->groups * BLOCK / CHUNK; /* groups in 32 columns */
    group_scales s[2];
    __m512i v[2][4];
    for (int i = 0; i < each; i++)
        s[i] = scales_of(h, t, sub * each + i);
    few_codes(j, t, sub, v);
    for (int step = 0; step < 4; step++) {
        const int row = (sub * 4 + step) * 2;
        const group_scales *g = &s[step * each / 4];
        put_columns(j, row, _mm512_permutex2var_epi32(v[0][step], even, v[1][step]), t, g);
        put_columns(j, row + 1, _mm512_permutex2var_epi32(v[0][step], odd, v[1][step]), t, g);
    }
}

#define LOAD(b, of, part) AMX_LOAD(b, j->tiles[of][(part)*AMX_ROWS], AMX_BYTES)
#define MULTIPLY(a, part)                                                                          \
    {                                                                                              \
        AMX_LOAD(a, few_x(j, half, (part)*AMX_BYTES), j->pitch);                                   \
        LOAD(6, LOW, part);                                                                        \
        AMX_DOT_U8(0, a, 6);                                                                       \
        LOAD(7, HIGH, part);                                                                       \
        if (is_small(t))                                                                           \
            AMX_DOT_U8(1, a, 7);                                                                   \
        else                                                                                       \
            AMX_DOT_I8(1, a, 7);                                                                   \
        if (t->has_min) {                                                                          \
            LOAD(6, MIN, part);                                                                    \
            AMX_DOT_U8(2, a, 6);                                                                   \
        }                                                                                          \
    }

X86_INLINE void multiply(few_work *j, const rows8_block256 *t, int half)
{
    AMX_ZERO(0);
    AMX_ZERO(1);
    AMX_ZERO(2);
    MULTIPLY(4, 0)
    MULTIPLY(5, 1)
    MULTIPLY(4, 2)
    MULTIPLY(5, 3)
    FEW_STORE(0, half * 4 + LOW);
    FEW_STORE(1, half * 4 + HIGH);
    if (t->has_min)
        FEW_STORE(2, half * 4 + MIN);
}

X86_INLINE void scale_sums(few_work *j, const rows8_block256 *t, int half)
{
    const int64_t at = j->first / CHUNK;
    const __m512 unit = _mm512_set1_ps(is_small(t) ? 1 : t->unit);
    const __m512 d = _mm512_mul_ps(both_ps(codes_f16(j->w[0]), codes_f16(j->w[1])), unit);
    const __m512 less = both_ps(codes_f16(j->w[0] + 16), codes_f16(j->w[1] + 16));
    for (int i = 0; i < j->rows; i++) {
        const __m512 dx = _mm512_set1_ps(act_d(j->x[half][i], j->n)[at]);
        __m512i high = _mm512_loadu_si512(j->sums[half * 4 + HIGH][i]);
        high = _mm512_slli_epi32(high, is_small(t) ? 3 : 8);
        __m512i all = _mm512_add_epi32(_mm512_loadu_si512(j->sums[half * 4 + LOW][i]), high);
        __m512 u = _mm512_mul_ps(_mm512_cvtepi32_ps(all), d);
        if (t->has_min)
            u = _mm512_fnmadd_ps(few_sums(j, half * 4 + MIN, i), less, u);
        _mm512_storeu_ps(j->acc[half][i], _mm512_fmadd_ps(u, dx, _mm512_loadu_ps(j->acc[half][i])));
    }
}

X86_INLINE void chunk_sums(few_work *j, const rows8_block256 *t)
{
    heads256 h;
    few_heads(j, t, &h);
    for (int sub = 0; sub < CHUNK / BLOCK; sub++)
        unpack_sub(j, &h, t, sub);
    for (int half = 0; half < j->halves; half++)
        multiply(j, t, half);
    for (int half = 0; half < j->halves; half++)
        scale_sums(j, t, half);
    for (int i = 0; i < 2; i++)
        j->w[i] += t->bytes;
}

FEW_KERNEL(Q2_K, _SUMS, chunk_sums, 64)
FEW_KERNEL(Q3_K, _SUMS, chunk_sums, 64)
FEW_KERNEL(Q4_K, _SUMS, chunk_sums, 64)
FEW_KERNEL(Q5_K, _SUMS, chunk_sums, 64)
FEW_KERNEL(Q6_K, _SUMS, chunk_sums, 64)
FEW_KERNEL(IQ4_XS, _SUMS, chunk_sums, 64)
