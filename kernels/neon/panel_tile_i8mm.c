/* panel_tile_i8mm.c - the inner loops over an unpacked panel, in assembly.
 *
 * smmla multiplies eight columns of two rows of weights with those of two rows of activations. A tile of 8 by 4 rows
 * has 8 accumulators, and two sets of them take turns: while smmla fills one, the other is scaled and added up, an
 * instruction here and there between them. Compilers keep the two apart, which costs a fifth.
 *
 * Bound by the four vector pipes of Neoverse V1: a block of 32 columns is 32 smmla and, with float scales, 8 each of
 * movi, scvtf (of which one can start a cycle), fmul and fmla. In the first cache that takes 18.0 cycles; with integers
 * as scales and all that belongs to 256 columns 16.6 for groups of 32 columns, 18.0 for groups of 16; 8 cycles
 * are the smmla alone. With two threads on 2.6 GHz that is 0.59, 0.64 and 0.59 TOP/s. Loads of 128 bits beyond 24 a
 * block cost a third of a cycle each.
 *
 * The next rows of activations are asked for line by line while these are multiplied: what a prefetcher of the processor
 * brings when it sees them is late, by a tenth of the time where they come from the third cache. */
#include "kernels/neon/panel_i8mm.h"

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
                     ".p2align 6\n"              /* */
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

/* ---- integers as scales ---- */
/* clang-format off */
#define MLA(to, v, s) "mla v" #to ".4s, v" #v ".4s, v" #s ".4s\n"
#define SCALES(s, next, at) "ldp q" #s ", q" #next ", [%[s], #" #at "]\n"
#define MULI(to, v, s) "mul v" #to ".4s, v" #v ".4s, v" #s ".4s\n"

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

/* The same, whose sums are the first. */
#define BEGIN32(a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7) \
    ACTS(0) CODES(0) ZERO(a0) MM(a0, 26, 24) ZERO(a1) SCALES(28, 29, 0) MM(a1, 26, 25) ZERO(a2) MM(a2, 27, 24) \
    ZERO(a3) MM(a3, 27, 25) MULI(16, b0, 28) CODES(32) ZERO(a4) MM(a4, 26, 24) ZERO(a5) MM(a5, 26, 25) \
    MULI(17, b1, 28) ZERO(a6) MM(a6, 27, 24) ZERO(a7) MM(a7, 27, 25) AHEAD \
    ACTS(32) MULI(18, b2, 29) CODES(64) MM(a0, 26, 24) MM(a1, 26, 25) MM(a2, 27, 24) MM(a3, 27, 25) \
    MULI(19, b3, 29) CODES(96) MM(a4, 26, 24) MM(a5, 26, 25) MM(a6, 27, 24) MM(a7, 27, 25) \
    ACTS(64) SCALES(30, 31, 32) CODES(128) MM(a0, 26, 24) MM(a1, 26, 25) MM(a2, 27, 24) MM(a3, 27, 25) \
    MULI(20, b4, 30) CODES(160) MM(a4, 26, 24) MM(a5, 26, 25) MM(a6, 27, 24) MM(a7, 27, 25) MULI(21, b5, 30) \
    ACTS(96) CODES(192) MM(a0, 26, 24) MM(a1, 26, 25) MM(a2, 27, 24) MULI(22, b6, 31) MM(a3, 27, 25) \
    CODES(224) MM(a4, 26, 24) MM(a5, 26, 25) MM(a6, 27, 24) MULI(23, b7, 31) MM(a7, 27, 25) \
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

#define BEGIN16(a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7) \
    ACTS(0) SCALES(28, 29, 0) CODES(0) ZERO(a0) MM(a0, 26, 24) MULI(16, b0, 28) ZERO(a1) MM(a1, 26, 25) \
    ZERO(a2) MULI(17, b1, 28) MM(a2, 27, 24) ZERO(a3) MM(a3, 27, 25) MULI(18, b2, 29) CODES(32) ZERO(a4) MM(a4, 26, 24) \
    MULI(19, b3, 29) ZERO(a5) MM(a5, 26, 25) ZERO(a6) SCALES(30, 31, 32) MM(a6, 27, 24) ZERO(a7) MM(a7, 27, 25) AHEAD16 \
    MULI(20, b4, 30) ACTS(32) CODES(64) MM(a0, 26, 24) MULI(21, b5, 30) MM(a1, 26, 25) MM(a2, 27, 24) MM(a3, 27, 25) \
    MULI(22, b6, 31) CODES(96) MM(a4, 26, 24) MM(a5, 26, 25) MULI(23, b7, 31) MM(a6, 27, 24) MM(a7, 27, 25) \
    NEXT_SCALES NEXT16

/* 256 columns after their first group: six groups, two at a time, and one; the first of them begins the sums. */
#define GROUPS(begin, group, twice) \
    "add %[s], %[b], #192\n" EXPAND(begin, SET1, SET0) EXPAND(group, SET0, SET1) "mov %[n], #" #twice "\n" \
    "1:\n" EXPAND(group, SET1, SET0) EXPAND(group, SET0, SET1) "subs %[n], %[n], #1\n b.ne 1b\n" \
    EXPAND(group, SET1, SET0)

/* The last group's sums; all as floats, times d of the weights; less the products of two rows' minima with those of the
 * sums of activations, high bits first; times d of the activations, added to t. All that between the products of the
 * first group of the next 256 columns, and alone after the last. */
#define BLOCK_AT(v, at) "ldr q" #v ", [%[b], #" #at "]\n"
#define SHIFT(v) "shl v" #v ".4s, v" #v ".4s, #7\n"
#define SUB(to, v, s) "fmls v" #to ".4s, v" #v ".4s, v" #s ".4s\n"
#define LOW_SUMS "ldp q30, q31, [%[m]], #64\n"
#define HIGH_SUMS "ldp q30, q31, [%[m], #32]\n"
#define ADD_TO(at, f0, f1, t0, t1) \
    "ldp q" #t0 ", q" #t1 ", [%[t], #" #at "]\n" \
    ADD(t0, f0, 30) ADD(t1, f1, 31) "stp q" #t0 ", q" #t1 ", [%[t], #" #at "]\n"
#define END_MIN \
    SCALES(28, 29, 0) MLA(16, 8, 28) MLA(17, 9, 28) MLA(18, 10, 29) MLA(19, 11, 29) SCALES(30, 31, 32) \
    MLA(20, 12, 30) MLA(21, 13, 30) MLA(22, 14, 31) MLA(23, 15, 31) HIGH_SUMS BLOCK_AT(28, 128) ZERO(8) \
    MM(8, 28, 30) ZERO(9) MM(9, 28, 31) BLOCK_AT(29, 144) ZERO(10) MM(10, 29, 30) ZERO(11) MM(11, 29, 31) \
    BLOCK_AT(28, 160) ZERO(12) MM(12, 28, 30) ZERO(13) MM(13, 28, 31) BLOCK_AT(29, 176) ZERO(14) MM(14, 29, 30) \
    ZERO(15) MM(15, 29, 31) SHIFT(8) SHIFT(9) SHIFT(10) SHIFT(11) SHIFT(12) SHIFT(13) SHIFT(14) SHIFT(15) \
    LOW_SUMS BLOCK_AT(28, 128) MM(8, 28, 30) CVT(16) MM(9, 28, 31) CVT(17) BLOCK_AT(29, 144) MM(10, 29, 30) \
    CVT(18) MM(11, 29, 31) CVT(19) BLOCK_AT(28, 160) MM(12, 28, 30) CVT(20) MM(13, 28, 31) CVT(21) \
    BLOCK_AT(29, 176) MM(14, 29, 30) CVT(22) MM(15, 29, 31) CVT(23) BLOCK_AT(29, 0) MUL(16, 29) CVT(8) \
    MUL(17, 29) CVT(9) BLOCK_AT(29, 16) MUL(18, 29) CVT(10) MUL(19, 29) CVT(11) BLOCK_AT(29, 32) MUL(20, 29) \
    CVT(12) MUL(21, 29) CVT(13) BLOCK_AT(29, 48) MUL(22, 29) CVT(14) MUL(23, 29) CVT(15) ACT_SCALES \
    BLOCK_AT(28, 64) SUB(16, 8, 28) SUB(17, 9, 28) BLOCK_AT(29, 80) SUB(18, 10, 29) SUB(19, 11, 29) \
    BLOCK_AT(28, 96) SUB(20, 12, 28) SUB(21, 13, 28) BLOCK_AT(29, 112) SUB(22, 14, 29) SUB(23, 15, 29) \
    ADD_TO(0, 16, 17, 8, 9) ADD_TO(32, 18, 19, 10, 11) ADD_TO(64, 20, 21, 12, 13) ADD_TO(96, 22, 23, 14, 15)
#define END_MIN_FIRST \
    ACTS(0) SCALES(28, 29, 0) MLA(16, 8, 28) CODES(0) MLA(17, 9, 28) MLA(18, 10, 29) ZERO(0) MLA(19, 11, 29) \
    SCALES(30, 31, 32) MM(0, 26, 24) MLA(20, 12, 30) MLA(21, 13, 30) ZERO(1) MLA(22, 14, 31) MLA(23, 15, 31) \
    MM(1, 26, 25) HIGH_SUMS ZERO(2) BLOCK_AT(28, 128) ZERO(8) MM(2, 27, 24) MM(8, 28, 30) ZERO(9) ZERO(3) \
    MM(9, 28, 31) BLOCK_AT(29, 144) MM(3, 27, 25) ZERO(10) MM(10, 29, 30) CODES(32) ZERO(11) MM(11, 29, 31) \
    ZERO(4) BLOCK_AT(28, 160) MM(4, 26, 24) ZERO(12) MM(12, 28, 30) ZERO(5) ZERO(13) MM(13, 28, 31) \
    MM(5, 26, 25) BLOCK_AT(29, 176) ZERO(14) ZERO(6) MM(14, 29, 30) ZERO(15) MM(6, 27, 24) MM(15, 29, 31) \
    SHIFT(8) ZERO(7) SHIFT(9) MM(7, 27, 25) SHIFT(10) SHIFT(11) ACTS(32) SHIFT(12) SHIFT(13) CODES(64) SHIFT(14) \
    SHIFT(15) MM(0, 26, 24) LOW_SUMS BLOCK_AT(28, 128) MM(1, 26, 25) MM(8, 28, 30) CVT(16) MM(2, 27, 24) \
    MM(9, 28, 31) MM(3, 27, 25) CVT(17) BLOCK_AT(29, 144) CODES(96) MM(10, 29, 30) CVT(18) MM(4, 26, 24) \
    MM(11, 29, 31) CVT(19) MM(5, 26, 25) BLOCK_AT(28, 160) MM(12, 28, 30) MM(6, 27, 24) CVT(20) MM(13, 28, 31) \
    MM(7, 27, 25) CVT(21) ACTS(64) BLOCK_AT(29, 176) MM(14, 29, 30) CODES(128) CVT(22) MM(15, 29, 31) \
    MM(0, 26, 24) CVT(23) BLOCK_AT(29, 0) MM(1, 26, 25) MUL(16, 29) CVT(8) MM(2, 27, 24) MUL(17, 29) CVT(9) \
    MM(3, 27, 25) BLOCK_AT(29, 16) CODES(160) MUL(18, 29) CVT(10) MM(4, 26, 24) MUL(19, 29) CVT(11) \
    MM(5, 26, 25) BLOCK_AT(29, 32) MUL(20, 29) MM(6, 27, 24) CVT(12) MUL(21, 29) MM(7, 27, 25) CVT(13) \
    BLOCK_AT(29, 48) ACTS(96) MUL(22, 29) CODES(192) CVT(14) MUL(23, 29) MM(0, 26, 24) CVT(15) ACT_SCALES \
    MM(1, 26, 25) BLOCK_AT(28, 64) SUB(16, 8, 28) MM(2, 27, 24) SUB(17, 9, 28) BLOCK_AT(29, 80) MM(3, 27, 25) \
    SUB(18, 10, 29) SUB(19, 11, 29) CODES(224) BLOCK_AT(28, 96) MM(4, 26, 24) SUB(20, 12, 28) SUB(21, 13, 28) \
    MM(5, 26, 25) BLOCK_AT(29, 112) SUB(22, 14, 29) MM(6, 27, 24) SUB(23, 15, 29) ADD_TO(0, 16, 17, 8, 9) \
    MM(7, 27, 25) ADD_TO(32, 18, 19, 10, 11) ADD_TO(64, 20, 21, 12, 13) NEXT ADD_TO(96, 22, 23, 14, 15)
#define END \
    SCALES(28, 29, 0) MLA(16, 8, 28) MLA(17, 9, 28) MLA(18, 10, 29) MLA(19, 11, 29) SCALES(30, 31, 32) \
    MLA(20, 12, 30) MLA(21, 13, 30) MLA(22, 14, 31) MLA(23, 15, 31) CVT(16) CVT(17) CVT(18) CVT(19) CVT(20) \
    CVT(21) CVT(22) CVT(23) BLOCK_AT(29, 0) MUL(16, 29) MUL(17, 29) BLOCK_AT(29, 16) MUL(18, 29) MUL(19, 29) \
    BLOCK_AT(29, 32) MUL(20, 29) MUL(21, 29) BLOCK_AT(29, 48) MUL(22, 29) MUL(23, 29) ACT_SCALES \
    ADD_TO(0, 16, 17, 8, 9) ADD_TO(32, 18, 19, 10, 11) ADD_TO(64, 20, 21, 12, 13) ADD_TO(96, 22, 23, 14, 15)
#define END_FIRST \
    ACTS(0) SCALES(28, 29, 0) CODES(0) MLA(16, 8, 28) ZERO(0) MM(0, 26, 24) MLA(17, 9, 28) ZERO(1) \
    MLA(18, 10, 29) MM(1, 26, 25) ZERO(2) MLA(19, 11, 29) MM(2, 27, 24) SCALES(30, 31, 32) ZERO(3) MM(3, 27, 25) \
    MLA(20, 12, 30) CODES(32) MLA(21, 13, 30) ZERO(4) MM(4, 26, 24) MLA(22, 14, 31) ZERO(5) MLA(23, 15, 31) \
    MM(5, 26, 25) ZERO(6) CVT(16) MM(6, 27, 24) CVT(17) ZERO(7) MM(7, 27, 25) CVT(18) ACTS(32) CVT(19) CODES(64) \
    MM(0, 26, 24) CVT(20) MM(1, 26, 25) CVT(21) MM(2, 27, 24) MM(3, 27, 25) CVT(22) CODES(96) CVT(23) \
    MM(4, 26, 24) MM(5, 26, 25) BLOCK_AT(29, 0) MM(6, 27, 24) MUL(16, 29) MM(7, 27, 25) ACTS(64) MUL(17, 29) \
    CODES(128) BLOCK_AT(29, 16) MM(0, 26, 24) MM(1, 26, 25) MUL(18, 29) MM(2, 27, 24) MUL(19, 29) MM(3, 27, 25) \
    CODES(160) BLOCK_AT(29, 32) MM(4, 26, 24) MUL(20, 29) MM(5, 26, 25) MM(6, 27, 24) MUL(21, 29) MM(7, 27, 25) \
    BLOCK_AT(29, 48) ACTS(96) CODES(192) MUL(22, 29) MM(0, 26, 24) MUL(23, 29) MM(1, 26, 25) MM(2, 27, 24) \
    ACT_SCALES MM(3, 27, 25) ADD_TO(0, 16, 17, 8, 9) CODES(224) MM(4, 26, 24) ADD_TO(32, 18, 19, 10, 11) \
    MM(5, 26, 25) ADD_TO(64, 20, 21, 12, 13) MM(6, 27, 24) MM(7, 27, 25) ADD_TO(96, 22, 23, 14, 15) NEXT
#define END_FIRST16 \
    ACTS(0) SCALES(28, 29, 0) MLA(16, 8, 28) CODES(0) MLA(17, 9, 28) ZERO(0) MLA(18, 10, 29) MM(0, 26, 24) \
    MLA(19, 11, 29) ZERO(1) SCALES(30, 31, 32) MM(1, 26, 25) MLA(20, 12, 30) ZERO(2) MLA(21, 13, 30) \
    MM(2, 27, 24) MLA(22, 14, 31) MLA(23, 15, 31) ZERO(3) CVT(16) MM(3, 27, 25) CVT(17) CODES(32) CVT(18) \
    ZERO(4) CVT(19) MM(4, 26, 24) CVT(20) ZERO(5) CVT(21) MM(5, 26, 25) CVT(22) ZERO(6) CVT(23) BLOCK_AT(29, 0) \
    MM(6, 27, 24) MUL(16, 29) ZERO(7) MUL(17, 29) MM(7, 27, 25) BLOCK_AT(29, 16) ACTS(32) MUL(18, 29) CODES(64) \
    MUL(19, 29) MM(0, 26, 24) BLOCK_AT(29, 32) MM(1, 26, 25) MUL(20, 29) MM(2, 27, 24) MUL(21, 29) \
    BLOCK_AT(29, 48) MM(3, 27, 25) MUL(22, 29) CODES(96) MUL(23, 29) MM(4, 26, 24) ACT_SCALES MM(5, 26, 25) \
    ADD_TO(0, 16, 17, 8, 9) MM(6, 27, 24) ADD_TO(32, 18, 19, 10, 11) MM(7, 27, 25) ADD_TO(64, 20, 21, 12, 13) \
    NEXT16 ADD_TO(96, 22, 23, 14, 15)

/* All blocks of 256 columns. */
#define BLOCKS(first, begin, group, twice, end_first, end) \
    first(SET0) "subs %[blocks], %[blocks], #1\n b.eq 2f\n" \
    "0:\n" GROUPS(begin, group, twice) end_first "add %[b], %[b], %[size]\n subs %[blocks], %[blocks], #1\n b.ne 0b\n" \
    "2:\n" GROUPS(begin, group, twice) end
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
    __asm__ volatile(BLOCKS(FIRST, BEGIN32, GROUP32, 2, END_MIN_FIRST, END_MIN)
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
    __asm__ volatile(BLOCKS(FIRST, BEGIN32, GROUP32, 2, END_FIRST, END)
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
    __asm__ volatile(BLOCKS(FIRST16, BEGIN16, GROUP16, 6, END_FIRST16, END)
                     : [w] "+r"(w), [b] "+r"(block), [q] "+r"(q), [d] "+r"(d), [s] "=&r"(scale),
                       [n] "=&r"(n), [blocks] "+r"(n_block)
                     : [t] "r"(t), [p] "r"(next), [p64] "r"(next + 64), [size] "r"(sizeof *block)
                     : "memory", "cc", ALL_VECTORS);
}
