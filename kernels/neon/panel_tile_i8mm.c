/* panel_tile_i8mm.c - the inner loops over an unpacked panel, in assembly.
 *
 * smmla multiplies eight columns of two rows of weights with those of two rows of activations. A tile of 8 by 4 rows
 * has 8 accumulators, and two sets of them take turns: while smmla fills one, the other is scaled and added up, an
 * instruction here and there between them. Compilers keep the two apart, which costs a fifth.
 *
 * Bound by the four vector pipes of Neoverse V1: a block of 32 columns is 32 smmla and, with float scales, 8 each of
 * scvtf (of which one can start a cycle), fmul and fmla. In the first cache that takes 18.0 cycles, with whole
 * numbers as scales of 32 columns 14.8, of 16 columns 17.6; 8 cycles are the smmla alone. With two threads on
 * 2.6 GHz that is 0.59, 0.72 and 0.60 TOP/s. Staggering the two sets by half a block gave 19.8 cycles. */
#include "kernels/neon/panel.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* Registers: v0-v7 and v8-v15 the two sets, v16-v23 the sums, v24-v25 activations, v26-v27 weights, v28-v31 scales. */
/* clang-format off */
#define SET0 0, 1, 2, 3, 4, 5, 6, 7
#define SET1 8, 9, 10, 11, 12, 13, 14, 15
#define SUMS 16, 17, 18, 19, 20, 21, 22, 23
#define ACTS(at) "ldp q24, q25, [%[q], #" #at "]\n"
#define CODES(at) "ldp q26, q27, [%[w], #" #at "]\n"
#define MM(to, w, x) "smmla v" #to ".4s, v" #w ".16b, v" #x ".16b\n"
#define AHEAD "prfm pldl1keep, [%[q], %[p]]\n prfm pldl1keep, [%[q], %[p64]]\n"
#define AHEAD16 "prfm pldl1keep, [%[q], %[p]]\n"
#define ZERO(v) "movi v" #v ".4s, #0\n"
#define ZEROS(a0, a1, a2, a3, a4, a5, a6, a7) \
    ZERO(a0) ZERO(a1) ZERO(a2) ZERO(a3) ZERO(a4) ZERO(a5) ZERO(a6) ZERO(a7)
#define EXPAND(macro, ...) macro(__VA_ARGS__)

/* Eight columns of all rows: activations at `x`, weights at `w0` and 32 further on at `w1`. */
#define STEP(x, w0, w1, a0, a1, a2, a3, a4, a5, a6, a7) \
    ACTS(x) CODES(w0) MM(a0, 26, 24) MM(a1, 26, 25) MM(a2, 27, 24) MM(a3, 27, 25) \
    CODES(w1) MM(a4, 26, 24) MM(a5, 26, 25) MM(a6, 27, 24) MM(a7, 27, 25)

/* ---- float scales ---- */
#define CVT(v) "scvtf v" #v ".4s, v" #v ".4s\n"
#define MUL(v, s) "fmul v" #v ".4s, v" #v ".4s, v" #s ".4s\n"
#define ADD(to, v, s) "fmla v" #to ".4s, v" #v ".4s, v" #s ".4s\n"
#define SCALE(s, at) "ldr q" #s ", [%[s], #" #at "]\n"
#define ACT_SCALES "prfm pldl1keep, [%[d], %[p]]\n ldp q30, q31, [%[d]], #32\n"
#define NEXT_SCALES "add %[s], %[s], #64\n"
#define NEXT "add %[w], %[w], #256\n add %[q], %[q], #128\n"

#define FIRST(...) \
    EXPAND(ZEROS, __VA_ARGS__) EXPAND(STEP, 0, 0, 32, __VA_ARGS__) EXPAND(STEP, 32, 64, 96, __VA_ARGS__) \
    EXPAND(STEP, 64, 128, 160, __VA_ARGS__) EXPAND(STEP, 96, 192, 224, __VA_ARGS__) NEXT

/* A block into a0-a7 while b0-b7, of the block before, are scaled. A stage begins four accumulators behind
 * the one before it. */
#define BLOCK(a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7) \
    ZEROS(a0, a1, a2, a3, a4, a5, a6, a7) \
    ACTS(0) CODES(0) MM(a0, 26, 24) MM(a1, 26, 25) MM(a2, 27, 24) MM(a3, 27, 25) \
    CODES(32) ACT_SCALES AHEAD MM(a4, 26, 24) CVT(b0) MM(a5, 26, 25) MM(a6, 27, 24) CVT(b1) MM(a7, 27, 25) CVT(b2) \
    ACTS(32) CODES(64) CVT(b3) MM(a0, 26, 24) CVT(b4) MM(a1, 26, 25) MM(a2, 27, 24) SCALE(28, 0) MM(a3, 27, 25) \
    MUL(b0, 28) CODES(96) CVT(b5) MM(a4, 26, 24) MM(a5, 26, 25) MUL(b1, 28) MM(a6, 27, 24) CVT(b6) MM(a7, 27, 25) \
    ACTS(64) SCALE(29, 16) CODES(128) MUL(b2, 29) MM(a0, 26, 24) MM(a1, 26, 25) CVT(b7) MM(a2, 27, 24) MUL(b3, 29) \
    MM(a3, 27, 25) CODES(160) SCALE(28, 32) MM(a4, 26, 24) MUL(b4, 28) MM(a5, 26, 25) MM(a6, 27, 24) ADD(16, b0, 30) \
    MM(a7, 27, 25) MUL(b5, 28) ACTS(96) CODES(192) ADD(17, b1, 31) MM(a0, 26, 24) SCALE(29, 48) MM(a1, 26, 25) \
    MM(a2, 27, 24) MUL(b6, 29) MM(a3, 27, 25) ADD(18, b2, 30) CODES(224) MUL(b7, 29) MM(a4, 26, 24) MM(a5, 26, 25) \
    ADD(19, b3, 31) MM(a6, 27, 24) ADD(20, b4, 30) MM(a7, 27, 25) ADD(21, b5, 31) ADD(22, b6, 30) ADD(23, b7, 31) \
    NEXT_SCALES NEXT

#define LAST(b0, b1, b2, b3, b4, b5, b6, b7) \
    ACT_SCALES CVT(b0) CVT(b1) CVT(b2) CVT(b3) CVT(b4) SCALE(28, 0) MUL(b0, 28) CVT(b5) MUL(b1, 28) CVT(b6) \
    SCALE(29, 16) MUL(b2, 29) CVT(b7) MUL(b3, 29) SCALE(28, 32) MUL(b4, 28) ADD(16, b0, 30) MUL(b5, 28) ADD(17, b1, 31) \
    SCALE(29, 48) MUL(b6, 29) ADD(18, b2, 30) MUL(b7, 29) ADD(19, b3, 31) ADD(20, b4, 30) ADD(21, b5, 31) \
    ADD(22, b6, 30) ADD(23, b7, 31)

#define STORE "stp q16, q17, [%[t]]\n stp q18, q19, [%[t], #32]\n stp q20, q21, [%[t], #64]\n stp q22, q23, [%[t], #96]\n"
#define ALL_VECTORS "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", \
    "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31"
/* clang-format on */

void panel_tile32(const int8_t *w, const float *scale, const int8_t *q, const float *d,
                  int64_t n_block, int64_t next, float t[TILE])
{
    int64_t left = n_block - 1;                  /* blocks to come after the first */
    __asm__ volatile(EXPAND(ZEROS, SUMS)         /* */
                     FIRST(SET0)                 /* */
                     "subs %[n], %[n], #2\n"     /* */
                     "b.lt 2f\n"                 /* */
                     ".p2align 5\n"              /* */
                     "1:\n"                      /* */
                     EXPAND(BLOCK, SET1, SET0)   /* */
                     EXPAND(BLOCK, SET0, SET1)   /* */
                     "subs %[n], %[n], #2\n"     /* */
                     "b.ge 1b\n"                 /* */
                     "2:\n"                      /* 0 or 1 more: -2 or -1 */
                     "tbnz %[n], #0, 3f\n"       /* */
                     EXPAND(LAST, SET0) "b 4f\n" /* */
                                        "3:\n"   /* */
                     EXPAND(BLOCK, SET1, SET0) EXPAND(LAST, SET1) /* */
                     "4:\n"                                       /* */
                     STORE
                     : [w] "+r"(w), [s] "+r"(scale), [q] "+r"(q), [d] "+r"(d), [n] "+r"(left)
                     : [t] "r"(t), [p] "r"(next), [p64] "r"(next + 64)
                     : "memory", "cc", ALL_VECTORS);
}

/* ---- whole numbers as scales ---- */
/* clang-format off */
#define MLA(to, v, s) "mla v" #to ".4s, v" #v ".4s, v" #s ".4s\n"
#define SCALES(s, next, at) "ldp q" #s ", q" #next ", [%[s], #" #at "]\n"
#define MLAS(b0, b1, b2, b3, b4, b5, b6, b7) \
    SCALES(28, 29, 0) SCALES(30, 31, 32) MLA(16, b0, 28) MLA(17, b1, 28) MLA(18, b2, 29) MLA(19, b3, 29) \
    MLA(20, b4, 30) MLA(21, b5, 30) MLA(22, b6, 31) MLA(23, b7, 31)

/* A group of 32 columns. */
#define GROUP32(a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7) \
    ACTS(0) CODES(0) ZERO(a0) MM(a0, 26, 24) ZERO(a1) SCALES(28, 29, 0) MM(a1, 26, 25) ZERO(a2) MM(a2, 27, 24) \
    ZERO(a3) MM(a3, 27, 25) MLA(16, b0, 28) CODES(32) ZERO(a4) MM(a4, 26, 24) ZERO(a5) MM(a5, 26, 25) \
    MLA(17, b1, 28) ZERO(a6) MM(a6, 27, 24) ZERO(a7) MM(a7, 27, 25) AHEAD \
    ACTS(32) MLA(18, b2, 29) CODES(64) MM(a0, 26, 24) MM(a1, 26, 25) MM(a2, 27, 24) MM(a3, 27, 25) \
    MLA(19, b3, 29) CODES(96) MM(a4, 26, 24) MM(a5, 26, 25) MM(a6, 27, 24) MM(a7, 27, 25) \
    ACTS(64) SCALES(30, 31, 32) CODES(128) MM(a0, 26, 24) MM(a1, 26, 25) MM(a2, 27, 24) MM(a3, 27, 25) \
    MLA(20, b4, 30) CODES(160) MM(a4, 26, 24) MM(a5, 26, 25) MM(a6, 27, 24) MM(a7, 27, 25) MLA(21, b5, 30) \
    ACTS(96) CODES(192) MM(a0, 26, 24) MM(a1, 26, 25) MM(a2, 27, 24) MLA(22, b6, 31) MM(a3, 27, 25) \
    CODES(224) MM(a4, 26, 24) MM(a5, 26, 25) MM(a6, 27, 24) MLA(23, b7, 31) MM(a7, 27, 25) \
    NEXT_SCALES NEXT

/* A group of 16 columns. */
#define NEXT16 "add %[w], %[w], #128\n add %[q], %[q], #64\n"
#define FIRST16(...) \
    EXPAND(ZEROS, __VA_ARGS__) EXPAND(STEP, 0, 0, 32, __VA_ARGS__) EXPAND(STEP, 32, 64, 96, __VA_ARGS__) NEXT16
#define GROUP16(a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7) \
    ACTS(0) SCALES(28, 29, 0) CODES(0) ZERO(a0) MM(a0, 26, 24) MLA(16, b0, 28) ZERO(a1) MM(a1, 26, 25) \
    ZERO(a2) MLA(17, b1, 28) MM(a2, 27, 24) ZERO(a3) MM(a3, 27, 25) MLA(18, b2, 29) CODES(32) ZERO(a4) MM(a4, 26, 24) \
    MLA(19, b3, 29) ZERO(a5) MM(a5, 26, 25) ZERO(a6) SCALES(30, 31, 32) MM(a6, 27, 24) ZERO(a7) MM(a7, 27, 25) AHEAD16 \
    MLA(20, b4, 30) ACTS(32) CODES(64) MM(a0, 26, 24) MLA(21, b5, 30) MM(a1, 26, 25) MM(a2, 27, 24) MM(a3, 27, 25) \
    MLA(22, b6, 31) CODES(96) MM(a4, 26, 24) MM(a5, 26, 25) MLA(23, b7, 31) MM(a6, 27, 24) MM(a7, 27, 25) \
    NEXT_SCALES NEXT16

/* 256 columns: the first group, two at a time, the last. */
#define GROUPS(first, group, twice) \
    "add %[s], %[b], #192\n" \
    EXPAND(ZEROS, SUMS) first(SET0) "mov %[n], #" #twice "\n" \
    "1:\n" EXPAND(group, SET1, SET0) EXPAND(group, SET0, SET1) "subs %[n], %[n], #1\n b.ne 1b\n" \
    EXPAND(group, SET1, SET0) EXPAND(MLAS, SET1)

/* Sums as floats, times d of the weights; less the products of two rows' minima with those of the sums of activations, low
 * bits in v24-v25, high bits in v26-v27; times d of the activations, added to t. */
#define FLOATS(a0, a1, a2, a3, a4, a5, a6, a7) \
    "ldp q28, q29, [%[b]]\n ldp q30, q31, [%[b], #32]\n" \
    CVT(a0) CVT(a1) CVT(a2) CVT(a3) CVT(a4) CVT(a5) CVT(a6) CVT(a7) \
    MUL(a0, 28) MUL(a1, 28) MUL(a2, 29) MUL(a3, 29) MUL(a4, 30) MUL(a5, 30) MUL(a6, 31) MUL(a7, 31)
#define SHIFT(v) "shl v" #v ".4s, v" #v ".4s, #7\n"
#define SUB(to, v, s) "fmls v" #to ".4s, v" #v ".4s, v" #s ".4s\n"
#define MINIMA(at, dmin_at, f0, f1, f2, f3, m0, m1, m2, m3) \
    "ldp q28, q29, [%[b], #" #at "]\n ldp q30, q31, [%[b], #" #dmin_at "]\n" \
    ZERO(m0) MM(m0, 28, 26) ZERO(m1) MM(m1, 28, 27) ZERO(m2) MM(m2, 29, 26) ZERO(m3) MM(m3, 29, 27) \
    SHIFT(m0) SHIFT(m1) SHIFT(m2) SHIFT(m3) MM(m0, 28, 24) MM(m1, 28, 25) MM(m2, 29, 24) MM(m3, 29, 25) \
    CVT(m0) CVT(m1) CVT(m2) CVT(m3) SUB(f0, m0, 30) SUB(f1, m1, 30) SUB(f2, m2, 31) SUB(f3, m3, 31)
#define LOAD_SUMS "ldp q24, q25, [%[m]], #32\n ldp q26, q27, [%[m]], #32\n"
#define ADD_TO(at, f0, f1, t0, t1) \
    "ldp q" #t0 ", q" #t1 ", [%[t], #" #at "]\n" \
    ADD(t0, f0, 30) ADD(t1, f1, 31) "stp q" #t0 ", q" #t1 ", [%[t], #" #at "]\n"
#define ADD_ALL ACT_SCALES ADD_TO(0, 16, 17, 0, 1) ADD_TO(32, 18, 19, 2, 3) ADD_TO(64, 20, 21, 4, 5) ADD_TO(96, 22, 23, 6, 7)
#define NEXT_BLOCK "add %[b], %[b], %[size]\n subs %[blocks], %[blocks], #1\n b.ne 0b\n"
/* clang-format on */

static_assert(offsetof(panel256_block, dmin) == 64 && offsetof(panel256_block, min) == 128 &&
                  offsetof(panel256_block, scale) == 192,
              "the fields lie where they are looked for");

void panel_tile256_min(const int8_t *w, const panel256_block *block, const int8_t *q,
                       const float *d, const int8_t *sums, int64_t n_block, int64_t next,
                       float t[TILE])
{
    int64_t n;
    const int32_t *scale;
    memset(t, 0, TILE * sizeof *t);
    __asm__ volatile("0:\n" GROUPS(FIRST, GROUP32, 3) EXPAND(FLOATS, SUMS) LOAD_SUMS /* */
                         MINIMA(128, 64, 16, 17, 18, 19, 0, 1, 2, 3)                 /* */
                     MINIMA(160, 96, 20, 21, 22, 23, 4, 5, 6, 7) ADD_ALL NEXT_BLOCK
                     : [w] "+r"(w), [b] "+r"(block), [q] "+r"(q), [d] "+r"(d), [m] "+r"(sums),
                       [s] "=&r"(scale), [n] "=&r"(n), [blocks] "+r"(n_block)
                     : [t] "r"(t), [p] "r"(next), [p64] "r"(next + 64), [size] "r"(sizeof *block)
                     : "memory", "cc", ALL_VECTORS);
}

void panel_tile256_groups8(const int8_t *w, const panel256_block *block, const int8_t *q,
                           const float *d, int64_t n_block, int64_t next, float t[TILE])
{
    int64_t n;
    const int32_t *scale;
    memset(t, 0, TILE * sizeof *t);
    __asm__ volatile("0:\n" GROUPS(FIRST, GROUP32, 3) EXPAND(FLOATS, SUMS) ADD_ALL NEXT_BLOCK
                     : [w] "+r"(w), [b] "+r"(block), [q] "+r"(q), [d] "+r"(d), [s] "=&r"(scale),
                       [n] "=&r"(n), [blocks] "+r"(n_block)
                     : [t] "r"(t), [p] "r"(next), [p64] "r"(next + 64), [size] "r"(sizeof *block)
                     : "memory", "cc", ALL_VECTORS);
}

void panel_tile256_groups16(const int8_t *w, const panel256_block *block, const int8_t *q,
                            const float *d, int64_t n_block, int64_t next, float t[TILE])
{
    int64_t n;
    const int32_t *scale;
    memset(t, 0, TILE * sizeof *t);
    __asm__ volatile("0:\n" GROUPS(FIRST16, GROUP16, 7) EXPAND(FLOATS, SUMS) ADD_ALL NEXT_BLOCK
                     : [w] "+r"(w), [b] "+r"(block), [q] "+r"(q), [d] "+r"(d), [s] "=&r"(scale),
                       [n] "=&r"(n), [blocks] "+r"(n_block)
                     : [t] "r"(t), [p] "r"(next), [p64] "r"(next + 64), [size] "r"(sizeof *block)
                     : "memory", "cc", ALL_VECTORS);
}
