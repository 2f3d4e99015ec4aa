/* layout.c - stored rows into groups of eight.
 *
 * A *step* is 8 columns. The bytes of a step of eight rows, 64 of them, go row by row: 16 of them are a vector of
 * two rows. What follows is for eight rows of one block; `x 8` is one of each row.
 *
 *   Q8_0   d x 8, steps 0 to 3
 *   Q4_0   d x 8, step 0 (low halves) with 2 (high halves), 1 with 3; codes less 8, as signed halves
 *   Q4_1   d x 8, m x 8, the same with codes as they are
 *   Q5_0   d x 8, fives (below) of rows 0 to 3, of rows 4 to 7; codes less 16
 *   Q5_1   d x 8, m x 8, the same
 *   IQ4_NL, MXFP4   as Q4_1 without m; MXFP4's d is a byte
 *   Q4_K   d x 8, dmin x 8, scale byte 0 x 8, .. byte 11 x 8, then each 32 columns as Q4_1 has them
 *   Q5_K   the same, each 32 columns as Q5_0 has them
 *   IQ4_XS d x 8, the scales less 32 as sixes (group 0 and 1 of all rows, 2 and 3, ..), each 32 columns as IQ4_NL has
 *          them
 *   Q6_K   d x 8, scale 0 x 8, .. scale 15 x 8, then each 32 columns as sixes of rows 0 and 1, 2 and 3, ..
 *
 * Fives: of two pairs of rows, 8 codes of 5 bits (4 steps of one pair, then of the other) in 5 bytes; sixes: of one
 * pair 4 codes of 6 bits (its steps; codes less 32) in 3 bytes. A byte begins with a code, so that masking the rest
 * away leaves it as a signed number times 8 or 4; the rests together are the codes left over. Unpacking four
 * vectors of sixes takes six instructions so, and would take 17 with low and high bits apart. */
#include "kernels/layout.h"

#include <string.h>

enum { G = LAYOUT_GROUP };

/* A code of a stored block, without its offset. */
typedef int code_fn(const uint8_t *block, int i);

static int code_Q4(const uint8_t *nibbles, int i) /* of 32 */
{
    return nibbles[i % 16] >> i / 16 * 4 & 15;
}

static int code_Q5(const uint8_t *fifth, int i) /* of 32: 4 bytes of fifth bits, then nibbles */
{
    return code_Q4(fifth + 4, i) | (fifth[i / 8] >> i % 8 & 1) << 4;
}

static int code_Q4_K(const uint8_t *block, int i) /* of 256 */
{
    return block[16 + i / 64 * 32 + i % 32] >> i / 32 % 2 * 4 & 15;
}

static int code_Q5_K(const uint8_t *block, int i)
{
    return (block[48 + i / 64 * 32 + i % 32] >> i / 32 % 2 * 4 & 15) |
           (block[16 + i % 32] >> i / 32 & 1) << 4;
}

static int code_IQ4_XS(const uint8_t *block, int i)
{
    return code_Q4(block + 8 + i / 32 * 16, i % 32);
}

static int scale_IQ4_XS(const uint8_t *block, int group)
{
    int high = block[2] | block[3] << 8;
    return (block[4 + group / 2] >> group % 2 * 4 & 15) | (high >> 2 * group & 3) << 4;
}

static int code_Q6_K(const uint8_t *block, int i)
{
    int low = block[i / 128 * 64 + i % 64] >> i / 64 % 2 * 4 & 15;
    return low | (block[128 + i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3) << 4;
}

/* 32 columns from `first` of eight blocks, each way of weaving. */
static uint8_t *weave_fours(const uint8_t *const block[G], code_fn *code, int first, int flip,
                            uint8_t *to)
{
    for (int step = 0; step < 2; step++)
        for (int r = 0; r < G; r++)
            for (int i = 0; i < 8; i++) {
                int at = first + step * 8 + i;
                *to++ = (uint8_t)((code(block[r], at) | code(block[r], at + 16) << 4) ^ flip);
            }
    return to;
}

static uint8_t *weave_fives(const uint8_t *const block[G], code_fn *code, int first, uint8_t *to)
{
    for (int half = 0; half < 2; half++, to += 5 * 16)
        for (int lane = 0; lane < 16; lane++) {
            int v[8];
            for (int i = 0; i < 8; i++) {
                const uint8_t *b = block[half * 4 + i / 4 * 2 + lane / 8];
                v[i] = code(b, first + i % 4 * 8 + lane % 8) ^ 16;
            }
            to[lane] = (uint8_t)(v[0] << 3 | v[5] >> 2);
            to[lane + 16] = (uint8_t)(v[1] << 3 | (v[6] >> 1 & 1) << 2 | (v[5] & 3));
            to[lane + 32] = (uint8_t)(v[2] << 3 | v[6] >> 2);
            to[lane + 48] = (uint8_t)(v[3] << 3 | (v[6] & 1) << 2 | (v[7] & 3));
            to[lane + 64] = (uint8_t)(v[4] << 3 | v[7] >> 2);
        }
    return to;
}

/* Four codes of 6 bits in three vectors' lane. */
static void put_sixes(const int v[4], uint8_t *to)
{
    for (int i = 0; i < 3; i++)
        to[i * 16] = (uint8_t)(v[i] << 2 | (v[3] >> (4 - 2 * i) & 3));
}

static uint8_t *weave_sixes(const uint8_t *const block[G], code_fn *code, int first, uint8_t *to)
{
    for (int pair = 0; pair < G / 2; pair++, to += 3 * 16)
        for (int lane = 0; lane < 16; lane++) {
            int v[4];
            for (int step = 0; step < 4; step++)
                v[step] = code(block[pair * 2 + lane / 8], first + step * 8 + lane % 8) ^ 32;
            put_sixes(v, to + lane);
        }
    return to;
}

/* `count` fields of so many bytes each: the first of every block, then the second, and so on. */
static uint8_t *weave_fields(const uint8_t *const block[G], int at, int bytes, int count,
                             uint8_t *to)
{
    for (int f = 0; f < count; f++)
        for (int r = 0; r < G; r++, to += bytes)
            memcpy(to, block[r] + at + f * bytes, (size_t)bytes);
    return to;
}

/* Eight blocks that follow `by` bytes further on. */
static void advance(const uint8_t *to[G], const uint8_t *const from[G], int64_t by)
{
    for (int r = 0; r < G; r++)
        to[r] = from[r] + by;
}

typedef uint8_t *weave_fn(const uint8_t *const block[G], uint8_t *to);

static uint8_t *weave_Q4_0(const uint8_t *const block[G], uint8_t *to)
{
    const uint8_t *codes[G];
    advance(codes, block, 2);
    return weave_fours(codes, code_Q4, 0, 0x88, weave_fields(block, 0, 2, 1, to));
}

static uint8_t *weave_Q4_1(const uint8_t *const block[G], uint8_t *to)
{
    const uint8_t *codes[G];
    advance(codes, block, 4);
    return weave_fours(codes, code_Q4, 0, 0, weave_fields(block, 0, 2, 2, to));
}

static uint8_t *weave_IQ4_NL(const uint8_t *const block[G], uint8_t *to)
{
    const uint8_t *codes[G];
    advance(codes, block, 2);
    return weave_fours(codes, code_Q4, 0, 0, weave_fields(block, 0, 2, 1, to));
}

static uint8_t *weave_MXFP4(const uint8_t *const block[G], uint8_t *to)
{
    const uint8_t *codes[G];
    advance(codes, block, 1);
    return weave_fours(codes, code_Q4, 0, 0, weave_fields(block, 0, 1, 1, to));
}

static uint8_t *weave_IQ4_XS(const uint8_t *const block[G], uint8_t *to)
{
    to = weave_fields(block, 0, 2, 1, to);
    for (int lane = 0; lane < 16; lane++) {
        int v[4];
        for (int i = 0; i < 4; i++)
            v[i] = scale_IQ4_XS(block[lane % 8], i * 2 + lane / 8) ^ 32;
        put_sixes(v, to + lane);
    }
    to += 3 * 16;
    for (int first = 0; first < 256; first += 32)
        to = weave_fours(block, code_IQ4_XS, first, 0, to);
    return to;
}

static uint8_t *weave_Q5_0(const uint8_t *const block[G], uint8_t *to)
{
    const uint8_t *codes[G];
    advance(codes, block, 2);
    return weave_fives(codes, code_Q5, 0, weave_fields(block, 0, 2, 1, to));
}

static uint8_t *weave_Q5_1(const uint8_t *const block[G], uint8_t *to)
{
    const uint8_t *codes[G];
    advance(codes, block, 4);
    return weave_fives(codes, code_Q5, 0, weave_fields(block, 0, 2, 2, to));
}

static uint8_t *weave_Q4_K(const uint8_t *const block[G], uint8_t *to)
{
    to = weave_fields(block, 4, 1, 12, weave_fields(block, 0, 2, 2, to));
    for (int first = 0; first < 256; first += 32)
        to = weave_fours(block, code_Q4_K, first, 0, to);
    return to;
}

static uint8_t *weave_Q5_K(const uint8_t *const block[G], uint8_t *to)
{
    to = weave_fields(block, 4, 1, 12, weave_fields(block, 0, 2, 2, to));
    for (int first = 0; first < 256; first += 32)
        to = weave_fives(block, code_Q5_K, first, to);
    return to;
}

static uint8_t *weave_Q6_K(const uint8_t *const block[G], uint8_t *to)
{
    to = weave_fields(block, 192, 1, 16, weave_fields(block, 208, 2, 1, to));
    for (int first = 0; first < 256; first += 32)
        to = weave_sixes(block, code_Q6_K, first, to);
    return to;
}

static uint8_t *weave_Q8_0(const uint8_t *const block[G], uint8_t *to)
{
    return weave_fields(block, 2, 8, 4, weave_fields(block, 0, 2, 1, to));
}

/* clang-format off */
static weave_fn *const rows8_of[DT_COUNT] = {
    [DT_Q8_0] = weave_Q8_0,
    [DT_Q4_0] = weave_Q4_0,
    [DT_Q4_1] = weave_Q4_1,
    [DT_Q5_0] = weave_Q5_0,
    [DT_Q5_1] = weave_Q5_1,
    [DT_Q4_K] = weave_Q4_K,
    [DT_Q5_K] = weave_Q5_K,
    [DT_Q6_K] = weave_Q6_K,
    [DT_IQ4_NL] = weave_IQ4_NL,
    [DT_MXFP4] = weave_MXFP4,
    [DT_IQ4_XS] = weave_IQ4_XS,
};
/* clang-format on */

bool layout_has(klayout l, dtype t)
{
    return l == LAYOUT_STORED || (l == LAYOUT_ROWS8 && rows8_of[t]);
}

const char *layout_name(klayout l)
{
    static const char *const names[LAYOUT_COUNT] = {"stored", "rows8"};
    return names[l];
}

void layout_pack(klayout l, dtype t, const void *const rows[G], int64_t n, void *to)
{
    WEFT_ASSERT(l == LAYOUT_ROWS8 && rows8_of[t]);
    const dtype_row *d = dtype_row_of(t);
    const uint8_t *block[G];
    uint8_t *at = to;
    for (int r = 0; r < G; r++)
        block[r] = rows[r];
    for (int64_t b = 0; b < n / d->elems; b++) {
        at = rows8_of[t](block, at);
        advance(block, block, (int64_t)d->bytes);
    }
}
