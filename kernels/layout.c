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
 *   Q3_K   d x 8, the scales less 32 as sixes (group 0 and 1 of all rows, .. 6 and 7; the same of 8 to 15), then each
 *          32 columns as threes of rows 0 to 3, of rows 4 to 7; codes less 4
 *   Q2_K   d x 8, dmin x 8, scale byte 0 x 8, .. byte 15 x 8 (scale in the low half, minimum in the high), then each
 *          32 columns as twos of rows 0 and 1, 2 and 3, ..
 *   BF16   steps of 4 columns: 4 numbers of each row in turn, two rows to a vector; a last step may have fewer
 *
 * Fives: of two pairs of rows, 8 codes of 5 bits (4 steps of one pair, then of the other) in 5 bytes; sixes: of one
 * pair 4 codes of 6 bits (its steps; codes less 32) in 3 bytes. A byte begins with a code, so that masking the rest
 * away leaves it as a signed number times 8 or 4; the rests together are the codes left over. Unpacking four
 * vectors of sixes takes six instructions so, and would take 17 with low and high bits apart.
 *
 * Threes: of two pairs of rows, 8 codes v0 to v7 of 3 bits (4 steps of one pair, then of the other; less 4) in 3 bytes,
 * 16 bytes apart: v0 << 5 | v1 << 2 | v6 >> 1, then v2 << 5 | v3 << 2 | v7 >> 1, then
 * v4 << 5 | v5 << 2 | (v6 & 1) << 1 | (v7 & 1). Twos: of one pair, its 4 steps in one byte, step 0 in the lowest bits, as
 * they are. In all of these a vector of 16 bytes is 8 columns of the first row of a pair, then of the second. */
#include "kernels/layout.h"

#include <string.h>

enum { G = LAYOUT_GROUP };

enum { BLOCK_MAX = 256 };

/* The codes of stored blocks, one to a byte, without their offset. */
typedef uint8_t codes_of[G][BLOCK_MAX];
typedef void codes_fn(const uint8_t *block, uint8_t *codes);
typedef int scale_fn(const uint8_t *block, int group); /* 6 bits, without its offset */

static void codes_Q4(const uint8_t *nibbles, uint8_t *codes) /* of 32 */
{
    for (int i = 0; i < 16; i++) {
        codes[i] = nibbles[i] & 15;
        codes[i + 16] = nibbles[i] >> 4;
    }
}

static void codes_Q5(const uint8_t *fifth,
                     uint8_t *codes) /* of 32: 4 bytes of fifth bits, nibbles */
{
    codes_Q4(fifth + 4, codes);
    for (int i = 0; i < 32; i++)
        codes[i] = (uint8_t)(codes[i] | (fifth[i / 8] >> i % 8 & 1) << 4);
}

static void codes_Q4_K(const uint8_t *block, uint8_t *codes) /* of 256 */
{
    for (int run = 0; run < 4; run++, codes += 64)
        for (int i = 0; i < 32; i++) {
            codes[i] = block[16 + run * 32 + i] & 15;
            codes[i + 32] = block[16 + run * 32 + i] >> 4;
        }
}

static void codes_Q5_K(const uint8_t *block, uint8_t *codes)
{
    const uint8_t *fifth = block + 16, *nibbles = block + 48;
    for (int run = 0; run < 4; run++, codes += 64)
        for (int i = 0; i < 32; i++) {
            int bits = fifth[i] >> run * 2;
            codes[i] = (uint8_t)((nibbles[run * 32 + i] & 15) | (bits & 1) << 4);
            codes[i + 32] = (uint8_t)(nibbles[run * 32 + i] >> 4 | (bits & 2) << 3);
        }
}

static void codes_Q6_K(const uint8_t *block, uint8_t *codes)
{
    const uint8_t *low = block, *high = block + 128;
    for (int half = 0; half < 2; half++, low += 64, high += 32, codes += 128)
        for (int i = 0; i < 32; i++) {
            codes[i] = (uint8_t)((low[i] & 15) | (high[i] & 3) << 4);
            codes[i + 32] = (uint8_t)((low[i + 32] & 15) | (high[i] >> 2 & 3) << 4);
            codes[i + 64] = (uint8_t)(low[i] >> 4 | (high[i] >> 4 & 3) << 4);
            codes[i + 96] = (uint8_t)(low[i + 32] >> 4 | (high[i] >> 6) << 4);
        }
}

static void codes_Q2_K(const uint8_t *twos, uint8_t *codes)
{
    for (int half = 0; half < 2; half++, twos += 32)
        for (int shift = 0; shift < 8; shift += 2, codes += 32)
            for (int i = 0; i < 32; i++)
                codes[i] = twos[i] >> shift & 3;
}

static void codes_Q3_K(const uint8_t *block, uint8_t *codes)
{
    codes_Q2_K(block + 32, codes);
    for (int bit = 0; bit < 8; bit++, codes += 32)
        for (int i = 0; i < 32; i++)
            codes[i] = (uint8_t)(codes[i] | (block[i] >> bit & 1) << 2);
}

static int scale_Q3_K(const uint8_t *block, int group)
{
    const uint8_t *low = block + 96, *high = block + 104;
    return (low[group % 8] >> group / 8 * 4 & 15) | (high[group % 4] >> group / 4 * 2 & 3) << 4;
}

static void codes_IQ4_XS(const uint8_t *block, uint8_t *codes)
{
    for (int i = 0; i < 8; i++)
        codes_Q4(block + 8 + i * 16, codes + i * 32);
}

static int scale_IQ4_XS(const uint8_t *block, int group)
{
    int high = block[2] | block[3] << 8;
    return (block[4 + group / 2] >> group % 2 * 4 & 15) | (high >> 2 * group & 3) << 4;
}

/* 32 columns from `first` of eight blocks, each way of interleaving. */
static inline uint8_t *interleave_nibbles(codes_of codes, int first, int flip, uint8_t *to)
{
    for (int step = 0; step < 2; step++)
        for (int r = 0; r < G; r++, to += 8) {
            const uint8_t *c = codes[r] + first + step * 8;
            for (int i = 0; i < 8; i++)
                to[i] = (uint8_t)((c[i] | c[i + 16] << 4) ^ flip);
        }
    return to;
}

static uint8_t *interleave_fours(codes_of codes, int first, uint8_t *to)
{
    return interleave_nibbles(codes, first, 0, to);
}

static uint8_t *interleave_fours_signed(codes_of codes, int first, uint8_t *to) /* less 8 */
{
    return interleave_nibbles(codes, first, 0x88, to);
}

static uint8_t *interleave_fives(codes_of codes, int first, uint8_t *to)
{
    for (int half = 0; half < 2; half++, to += 5 * 16)
        for (int r = 0; r < 2; r++) {
            const uint8_t *a = codes[half * 4 + r] + first, *b = codes[half * 4 + 2 + r] + first;
            uint8_t *lane = to + r * 8;
            for (int i = 0; i < 8; i++) {
                int v[8];
                for (int step = 0; step < 4; step++) {
                    v[step] = a[step * 8 + i] ^ 16;
                    v[step + 4] = b[step * 8 + i] ^ 16;
                }
                lane[i] = (uint8_t)(v[0] << 3 | v[5] >> 2);
                lane[i + 16] = (uint8_t)(v[1] << 3 | (v[6] >> 1 & 1) << 2 | (v[5] & 3));
                lane[i + 32] = (uint8_t)(v[2] << 3 | v[6] >> 2);
                lane[i + 48] = (uint8_t)(v[3] << 3 | (v[6] & 1) << 2 | (v[7] & 3));
                lane[i + 64] = (uint8_t)(v[4] << 3 | v[7] >> 2);
            }
        }
    return to;
}

/* Four codes of 6 bits in three vectors' lane. */
static void put_sixes(int v0, int v1, int v2, int v3, uint8_t *to)
{
    to[0] = (uint8_t)(v0 << 2 | v3 >> 4);
    to[16] = (uint8_t)(v1 << 2 | (v3 >> 2 & 3));
    to[32] = (uint8_t)(v2 << 2 | (v3 & 3));
}

static uint8_t *interleave_sixes(codes_of codes, int first, uint8_t *to)
{
    for (int pair = 0; pair < G / 2; pair++, to += 3 * 16)
        for (int r = 0; r < 2; r++) {
            const uint8_t *c = codes[pair * 2 + r] + first;
            for (int i = 0; i < 8; i++)
                put_sixes(c[i] ^ 32, c[i + 8] ^ 32, c[i + 16] ^ 32, c[i + 24] ^ 32, to + r * 8 + i);
        }
    return to;
}

static uint8_t *interleave_threes(codes_of codes, int first, uint8_t *to)
{
    for (int half = 0; half < 2; half++, to += 3 * 16)
        for (int r = 0; r < 2; r++) {
            const uint8_t *a = codes[half * 4 + r] + first, *b = codes[half * 4 + 2 + r] + first;
            uint8_t *lane = to + r * 8;
            for (int i = 0; i < 8; i++) {
                int v[8];
                for (int step = 0; step < 4; step++) {
                    v[step] = a[step * 8 + i] ^ 4;
                    v[step + 4] = b[step * 8 + i] ^ 4;
                }
                lane[i] = (uint8_t)(v[0] << 5 | v[1] << 2 | v[6] >> 1);
                lane[i + 16] = (uint8_t)(v[2] << 5 | v[3] << 2 | v[7] >> 1);
                lane[i + 32] = (uint8_t)(v[4] << 5 | v[5] << 2 | (v[6] & 1) << 1 | (v[7] & 1));
            }
        }
    return to;
}

static uint8_t *interleave_twos(codes_of codes, int first, uint8_t *to)
{
    for (int r = 0; r < G; r++, to += 8) {
        const uint8_t *c = codes[r] + first;
        for (int i = 0; i < 8; i++)
            to[i] = (uint8_t)(c[i] | c[i + 8] << 2 | c[i + 16] << 4 | c[i + 24] << 6);
    }
    return to;
}

/* Bytes of a block that go as they are, `bytes` of each row in turn, `count` times. */
typedef struct {
    int at, bytes, count;
} field;

static inline __attribute__((always_inline)) uint8_t *
interleave_fields(const uint8_t *const block[G], field x, uint8_t *to)
{
    for (int f = 0; f < x.count; f++)
        for (int r = 0; r < G; r++, to += x.bytes)
            memcpy(to, block[r] + x.at + f * x.bytes, (size_t)x.bytes);
    return to;
}

/* The scales of eight groups of all rows, from `first` on, as sixes. */
static uint8_t *interleave_scales(const uint8_t *const block[G], scale_fn *fn, int first,
                                  uint8_t *to)
{
    for (int lane = 0; lane < 16; lane++) {
        int v[4];
        for (int i = 0; i < 4; i++)
            v[i] = fn(block[lane % 8], first + i * 2 + lane / 8) ^ 32;
        put_sixes(v[0], v[1], v[2], v[3], to + lane);
    }
    return to + 3 * 16;
}

typedef uint8_t *interleave_fn(codes_of codes, int first, uint8_t *to);

/* What becomes of a block: fields, then scales as sixes, then codes, each where it has any. */
typedef struct {
    int elems;
    field fields[2];
    int groups; /* that have a scale of their own among the sixes */
    scale_fn *scale;
    int codes_at;
    codes_fn *codes;
    interleave_fn *interleave;
} rows8;

/* Inlined for each type: what is known of it makes this up to six times faster. */
static inline __attribute__((always_inline)) uint8_t *
interleave_block(rows8 w, const uint8_t *const block[G], uint8_t *to)
{
    codes_of codes;
    to = interleave_fields(block, w.fields[1], interleave_fields(block, w.fields[0], to));
    for (int group = 0; group < w.groups; group += 8)
        to = interleave_scales(block, w.scale, group, to);
    for (int r = 0; r < G && w.codes; r++)
        w.codes(block[r] + w.codes_at, codes[r]);
    for (int first = 0; first < w.elems && w.codes; first += 32)
        to = w.interleave(codes, first, to);
    return to;
}

/* clang-format off */
#define ROWS8_TYPES \
    /*  type  elems  fields: at, bytes, count  groups, scale    codes: at, read by, interleaved by   */ \
    ROW(Q8_0,    32, 0, 2, 1,    2, 8, 4,     0, NULL,          0, NULL, NULL)                   \
    ROW(Q4_0,    32, 0, 2, 1,    0, 0, 0,     0, NULL,          2, codes_Q4, interleave_fours_signed) \
    ROW(Q4_1,    32, 0, 2, 2,    0, 0, 0,     0, NULL,          4, codes_Q4, interleave_fours)        \
    ROW(Q5_0,    32, 0, 2, 1,    0, 0, 0,     0, NULL,          2, codes_Q5, interleave_fives)        \
    ROW(Q5_1,    32, 0, 2, 2,    0, 0, 0,     0, NULL,          4, codes_Q5, interleave_fives)        \
    ROW(IQ4_NL,  32, 0, 2, 1,    0, 0, 0,     0, NULL,          2, codes_Q4, interleave_fours)        \
    ROW(MXFP4,   32, 0, 1, 1,    0, 0, 0,     0, NULL,          1, codes_Q4, interleave_fours)        \
    ROW(Q2_K,   256, 80, 2, 2,   0, 1, 16,    0, NULL,          16, codes_Q2_K, interleave_twos)      \
    ROW(Q3_K,   256, 108, 2, 1,  0, 0, 0,     16, scale_Q3_K,   0, codes_Q3_K, interleave_threes)     \
    ROW(Q4_K,   256, 0, 2, 2,    4, 1, 12,    0, NULL,          0, codes_Q4_K, interleave_fours)      \
    ROW(Q5_K,   256, 0, 2, 2,    4, 1, 12,    0, NULL,          0, codes_Q5_K, interleave_fives)      \
    ROW(Q6_K,   256, 208, 2, 1,  192, 1, 16,  0, NULL,          0, codes_Q6_K, interleave_sixes)      \
    ROW(IQ4_XS, 256, 0, 2, 1,    0, 0, 0,     8, scale_IQ4_XS,  0, codes_IQ4_XS, interleave_fours)

#define ROW(type, elems, at0, bytes0, count0, at1, bytes1, count1, ...) \
    static uint8_t *interleave_##type(const uint8_t *const block[G], uint8_t *to) \
    { \
        return interleave_block((rows8){elems, {{at0, bytes0, count0}, {at1, bytes1, count1}}, __VA_ARGS__}, \
                           block, to); \
    }
ROWS8_TYPES
#undef ROW

static uint8_t *(*const rows8_of[DT_COUNT])(const uint8_t *const block[G], uint8_t *to) = {
#define ROW(type, ...) [DT_##type] = interleave_##type,
ROWS8_TYPES
#undef ROW
};
/* clang-format on */

bool layout_has(klayout l, dtype t)
{
    return l == LAYOUT_STORED || (l == LAYOUT_ROWS8 && (rows8_of[t] || t == DT_BF16));
}

const char *layout_name(klayout l)
{
    static const char *const names[LAYOUT_COUNT] = {"stored", "rows8"};
    return names[l];
}

/* Numbers of two bytes, four columns at a time. */
static void interleave_halves(const void *const rows[G], int64_t n, uint8_t *to)
{
    enum { COLS = 4, BYTES = 2 };
    int64_t i = 0;
    for (; i + COLS <= n; i += COLS)
        for (int r = 0; r < G; r++, to += COLS * BYTES)
            memcpy(to, (const uint8_t *)rows[r] + i * BYTES, COLS * BYTES);
    for (int r = 0; r < G && i < n; r++, to += (n - i) * BYTES)
        memcpy(to, (const uint8_t *)rows[r] + i * BYTES, (size_t)(n - i) * BYTES);
}

void layout_interleave(klayout l, dtype t, const void *const rows[G], int64_t n, void *to)
{
    WEFT_ASSERT(l != LAYOUT_STORED && layout_has(l, t));
    if (t == DT_BF16) {
        interleave_halves(rows, n, to);
        return;
    }
    const dtype_row *d = dtype_row_of(t);
    const uint8_t *block[G];
    uint8_t *at = to;
    for (int r = 0; r < G; r++)
        block[r] = rows[r];
    for (int64_t b = 0; b < n / d->elems; b++) {
        at = rows8_of[t](block, at);
        for (int r = 0; r < G; r++)
            block[r] += d->bytes;
    }
}
