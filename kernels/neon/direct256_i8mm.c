/* direct256_i8mm.c - four interleaved rows of Q4_K or Q6_K times six or eight rows of activations, in assembly.
 *
 * As direct8_i8mm.c, with the loops of panel_tile_i8mm.c for integers as scales, which come as bytes. What belongs to
 * 256 columns is done between the products of the next. */
#include "kernels/neon/direct.h"
#include "kernels/neon/direct_asm.h"

/* Registers: v0-v7 and v8-v15 the two sets, v16-v23 the sums, v24-v25 activations, v26-v27 weights, v28 a mask, v29-v30
 * scales of the two pairs, v31 what comes and goes. Accumulators go by pairs of rows of activations: two of weights each. */
/* clang-format off */
#define ZEROS(a0, a1, a2, a3, a4, a5, a6, a7) \
    ZERO(a0) ZERO(a1) ZERO(a2) ZERO(a3) ZERO(a4) ZERO(a5) IF7(ZERO(a6) ZERO(a7))
#define LOW4(at) "ldp q24, q25, [%[q], #" #at "]\n"
#define MM(to, w, x) "smmla v" #to ".4s, v" #w ".16b, v" #x ".16b\n"
#define MLA(to, v, s) "mla v" #to ".4s, v" #v ".4s, v" #s ".4s\n"
#define MULI(to, v, s) "mul v" #to ".4s, v" #v ".4s, v" #s ".4s\n"
#define CVT(v) "scvtf v" #v ".4s, v" #v ".4s\n"
#define MUL(v, s) "fmul v" #v ".4s, v" #v ".4s, v" #s ".4s\n"
#define SUB(to, v, s) "fmls v" #to ".4s, v" #v ".4s, v" #s ".4s\n"
#define ADD(to, v) "fmla v" #to ".4s, v" #v ".4s, v31.4s\n"
#define SHIFT(v) "shl v" #v ".4s, v" #v ".4s, #7\n"
#define PAIR_AT(at) "ldp q29, q30, [%[b], #" #at "]\n"
#define LOAD31(from, at) "ldr q31, [%[" #from "], #" #at "]\n"
/* Scales of four rows, bytes, each number twice. */
#define SCALES(ext) \
    "ldr s29, [%[s]], #8\n " ext "shll v29.8h, v29.8b, #0\n zip1 v29.8h, v29.8h, v29.8h\n" \
    ext "shll2 v30.4s, v29.8h, #0\n " ext "shll v29.4s, v29.4h, #0\n"
#define SCALES_Q4_K SCALES("u")
#define SCALES_Q6_K SCALES("s")
#define HINTS "prfm pldl3keep, [%[w], %[far]]\n prfm pldl1keep, [%[w], %[near]]\n"
#define HINTS128 "prfm pldl3keep, [%[w], %[far128]]\n prfm pldl1keep, [%[w], %[near128]]\n"

/* A step of two pairs of rows: 32 columns are 128 bytes of fours, or 192 of sixes. */
#define LOAD(v, at) "ldr q" #v ", [%[w], #" #at "]\n"
#define LOAD2(at) "ldp q26, q27, [%[w], #" #at "]\n"
#define MASK "and v26.16b, v26.16b, v28.16b\n and v27.16b, v27.16b, v28.16b\n"
#define HIGH "ushr v26.16b, v26.16b, #4\n ushr v27.16b, v27.16b, #4\n"
#define CODE_Q4_K_0 LOAD2(0) MASK
#define CODE_Q4_K_1 LOAD2(64) MASK
#define CODE_Q4_K_2 LOAD2(0) HIGH
#define CODE_Q4_K_3 LOAD2(64) HIGH
#define CODE_Q6_K_0 LOAD(26, 0) LOAD(27, 48) MASK
#define CODE_Q6_K_1 LOAD(26, 16) LOAD(27, 64) MASK
#define CODE_Q6_K_2 LOAD(26, 32) LOAD(27, 80) MASK
#define REST(v, b0, b1, b2) \
    LOAD(v, b2) "shl v" #v ".16b, v" #v ".16b, #2\n" LOAD(31, b1) "sli v" #v ".16b, v31.16b, #4\n" \
    LOAD(31, b0) "sli v" #v ".16b, v31.16b, #6\n"
#define CODE_Q6_K_3 REST(26, 0, 16, 32) REST(27, 48, 64, 80)

#define NEXT(bytes) "add %[w], %[w], #" #bytes "\n add %[q], %[q], #128\n add %[r], %[r], #128\n"
#define NEXT_Q4_K NEXT(128)
#define NEXT_Q6_K NEXT(192)

#define LOW_MM(a0, a1, a2, a3, ...) MM(a0, 26, 24) MM(a1, 27, 24) MM(a2, 26, 25) MM(a3, 27, 25)
#define HIGH_MM(a0, a1, a2, a3, a4, a5, a6, a7) MM(a4, 26, 24) MM(a5, 27, 24) IF7(MM(a6, 26, 25) MM(a7, 27, 25))
#define STEP(code, at, ...) code LOW4(at) SPREAD(LOW_MM, __VA_ARGS__) HIGH4(at) SPREAD(HIGH_MM, __VA_ARGS__)

/* The first step of a group into a0-a7 while half of b0-b7, of the group before, are scaled; a second that scales the
 * rest. */
#define STEP_A(op, scales, code, at, a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7) \
    scales code LOW4(at) ZERO(a0) MM(a0, 26, 24) ZERO(a1) MM(a1, 27, 24) ZERO(a2) MM(a2, 26, 25) op(16, b0, 29) ZERO(a3) \
    MM(a3, 27, 25) HIGH4(at) op(17, b1, 30) ZERO(a4) MM(a4, 26, 24) ZERO(a5) MM(a5, 27, 24) op(18, b2, 29) \
    IF7(ZERO(a6) MM(a6, 26, 25) ZERO(a7) MM(a7, 27, 25)) op(19, b3, 30)
#define STEP_B(op, code, at, a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7) \
    code LOW4(at) MM(a0, 26, 24) op(20, b4, 29) MM(a1, 27, 24) MM(a2, 26, 25) op(21, b5, 30) MM(a3, 27, 25) \
    HIGH4(at) MM(a4, 26, 24) MM(a5, 27, 24) IF7(op(22, b6, 29) MM(a6, 26, 25) MM(a7, 27, 25) op(23, b7, 30))

/* 32 columns of one group. */
#define GROUP32(op, a0, a1, a2, a3, a4, a5, a6, a7, ...) \
    STEP_A(op, SCALES_Q4_K, CODE_Q4_K_0, 0, a0, a1, a2, a3, a4, a5, a6, a7, __VA_ARGS__) HINTS \
    STEP_B(op, CODE_Q4_K_1, 32, a0, a1, a2, a3, a4, a5, a6, a7, __VA_ARGS__) \
    STEP(CODE_Q4_K_2, 64, a0, a1, a2, a3, a4, a5, a6, a7) STEP(CODE_Q4_K_3, 96, a0, a1, a2, a3, a4, a5, a6, a7) NEXT_Q4_K
/* Of two groups, the first and the second. */
#define GROUP16_0(op, ...) STEP_A(op, SCALES_Q6_K, CODE_Q6_K_0, 0, __VA_ARGS__) HINTS STEP_B(op, CODE_Q6_K_1, 32, __VA_ARGS__)
#define GROUP16_1(op, ...) \
    STEP_A(op, SCALES_Q6_K, CODE_Q6_K_2, 64, __VA_ARGS__) HINTS128 STEP_B(op, CODE_Q6_K_3, 96, __VA_ARGS__) NEXT_Q6_K

/* The sums of 256 columns, whose last group is in v8-v15: scaled, less the minima of two rows times the sums of two rows of
 * activations, high bits first; added to t. In parts, for the steps of the next first group to go between. */
#define LAST_SCALE \
    MLA(16, 8, 29) MLA(17, 9, 30) MLA(18, 10, 29) MLA(19, 11, 30) MLA(20, 12, 29) MLA(21, 13, 30) \
    IF7(MLA(22, 14, 29) MLA(23, 15, 30))
#define MIN_HIGH \
    PAIR_AT(128) LOAD31(m, 32) ZERO(8) MM(8, 29, 31) ZERO(9) MM(9, 30, 31) LOAD31(m, 48) ZERO(10) MM(10, 29, 31) ZERO(11) \
    MM(11, 30, 31) LOAD31(o, 32) ZERO(12) MM(12, 29, 31) ZERO(13) MM(13, 30, 31) \
    IF7(LOAD31(o, 48) ZERO(14) MM(14, 29, 31) ZERO(15) MM(15, 30, 31)) SHIFT(8) SHIFT(9) SHIFT(10) SHIFT(11) \
    SHIFT(12) SHIFT(13) IF7(SHIFT(14) SHIFT(15))
#define MIN_LOW \
    LOAD31(m, 0) MM(8, 29, 31) CVT(16) MM(9, 30, 31) CVT(17) LOAD31(m, 16) MM(10, 29, 31) CVT(18) MM(11, 30, 31) CVT(19) \
    LOAD31(o, 0) MM(12, 29, 31) CVT(20) MM(13, 30, 31) CVT(21) IF7(LOAD31(o, 16) MM(14, 29, 31) CVT(22) MM(15, 30, 31) CVT(23)) \
    "add %[m], %[m], #64\n add %[o], %[o], #64\n"
#define TIMES_D \
    PAIR_AT(0) MUL(16, 29) MUL(17, 30) MUL(18, 29) MUL(19, 30) MUL(20, 29) MUL(21, 30) IF7(MUL(22, 29) MUL(23, 30))
#define LESS_MIN \
    CVT(8) CVT(9) CVT(10) CVT(11) CVT(12) CVT(13) IF7(CVT(14) CVT(15)) PAIR_AT(64) SUB(16, 8, 29) SUB(17, 9, 30) \
    SUB(18, 10, 29) SUB(19, 11, 30) SUB(20, 12, 29) SUB(21, 13, 30) IF7(SUB(22, 14, 29) SUB(23, 15, 30))
#define ADD_LOW \
    "ldp q8, q10, [%[t]]\n ldp q9, q11, [%[t], #32]\n" LOAD31(d, 0) ADD(8, 16) ADD(9, 17) LOAD31(d, 16) ADD(10, 18) \
    ADD(11, 19) "stp q8, q10, [%[t]]\n stp q9, q11, [%[t], #32]\n add %[d], %[d], #32\n"
#define ADD_HIGH \
    "ldp q12, q14, [%[t], #128]\n ldp q13, q15, [%[t], #160]\n" LOAD31(e, 0) ADD(12, 20) ADD(13, 21) \
    IF7(LOAD31(e, 16) ADD(14, 22) ADD(15, 23)) \
    "stp q12, q14, [%[t], #128]\n stp q13, q15, [%[t], #160]\n add %[e], %[e], #32\n"
#define CVT_SUMS CVT(16) CVT(17) CVT(18) CVT(19) CVT(20) CVT(21) IF7(CVT(22) CVT(23))

/* 256 columns after their first group: all others but the last scaling. */
#define GROUPS_Q4_K \
    "add %[s], %[b], %[scales]\n" EXPAND(GROUP32, MULI, SET1, SET0) EXPAND(GROUP32, MLA, SET0, SET1) "mov %[n], #2\n" \
    "1:\n" EXPAND(GROUP32, MLA, SET1, SET0) EXPAND(GROUP32, MLA, SET0, SET1) "subs %[n], %[n], #1\n b.ne 1b\n" \
    EXPAND(GROUP32, MLA, SET1, SET0) HEAD_Q4_K
#define GROUPS_Q6_K \
    "add %[s], %[b], %[scales]\n" EXPAND(GROUP16_1, MULI, SET1, SET0) "mov %[n], #7\n" \
    "1:\n" EXPAND(GROUP16_0, MLA, SET0, SET1) EXPAND(GROUP16_1, MLA, SET1, SET0) "subs %[n], %[n], #1\n b.ne 1b\n" HEAD_Q6_K
/* Over the scales of the next 256. */
#define HEAD_Q4_K HINTS "add %[w], %[w], #128\n"
#define HEAD_Q6_K HINTS "add %[w], %[w], #144\n"
#define NEXT_BLOCK "add %[b], %[b], %[size]\n"

#define FIRST_Q4_K \
    EXPAND(ZEROS, SET0) EXPAND(STEP, CODE_Q4_K_0, 0, SET0) HINTS EXPAND(STEP, CODE_Q4_K_1, 32, SET0) EXPAND(STEP, CODE_Q4_K_2, 64, SET0) \
    EXPAND(STEP, CODE_Q4_K_3, 96, SET0) NEXT_Q4_K
#define END_FIRST_Q4_K \
    SCALES_Q4_K LAST_SCALE EXPAND(ZEROS, SET0) EXPAND(STEP, CODE_Q4_K_0, 0, SET0) MIN_HIGH EXPAND(STEP, CODE_Q4_K_1, 32, SET0) MIN_LOW \
    EXPAND(STEP, CODE_Q4_K_2, 64, SET0) TIMES_D LESS_MIN EXPAND(STEP, CODE_Q4_K_3, 96, SET0) HINTS ADD_LOW ADD_HIGH NEXT_Q4_K
#define END_Q4_K SCALES_Q4_K LAST_SCALE MIN_HIGH MIN_LOW TIMES_D LESS_MIN ADD_LOW ADD_HIGH
#define FIRST_Q6_K EXPAND(ZEROS, SET0) EXPAND(STEP, CODE_Q6_K_0, 0, SET0) HINTS EXPAND(STEP, CODE_Q6_K_1, 32, SET0)
#define END_FIRST_Q6_K \
    SCALES_Q6_K LAST_SCALE EXPAND(ZEROS, SET0) EXPAND(STEP, CODE_Q6_K_0, 0, SET0) HINTS CVT_SUMS TIMES_D EXPAND(STEP, CODE_Q6_K_1, 32, SET0) \
    ADD_LOW ADD_HIGH
#define END_Q6_K SCALES_Q6_K LAST_SCALE CVT_SUMS TIMES_D ADD_LOW ADD_HIGH

#define DIRECT(rows, type, codes_at, half_bytes, mask) \
    void direct##rows##_##type(const uint8_t *w, const panel256_block *block, int half, const direct256_acts *x, \
                               int64_t n_block, int64_t ahead, float *t) \
    { \
        const char *b = (const char *)block + 32 * half, *s; \
        const char *q = x->q, *d = x->d, *m = x->sums, *r = q + x->group, *e = d + x->group, *o = m + x->group; \
        int64_t n, far = ahead ? ahead + (64 - half_bytes) * half : 0, near = ahead ? NEAR_AHEAD + (64 - half_bytes) * half : 0; \
        w += codes_at + half_bytes * half; \
        t += 16 * half; \
        __asm__ volatile("movi v28.16b, #" #mask "\n" FIRST_##type \
                         "subs %[blocks], %[blocks], #1\n b.eq 2f\n .p2align 6\n" \
                         "0:\n" GROUPS_##type END_FIRST_##type NEXT_BLOCK "subs %[blocks], %[blocks], #1\n b.ne 0b\n" \
                         "2:\n" GROUPS_##type END_##type \
                         : [w] "+r"(w), [b] "+r"(b), [s] "=&r"(s), [q] "+r"(q), [r] "+r"(r), [d] "+r"(d), [e] "+r"(e), \
                           [m] "+r"(m), [o] "+r"(o), [n] "=&r"(n), [blocks] "+r"(n_block) \
                         : [t] "r"(t), [far] "r"(far), [far128] "r"(far + 128), [near] "r"(near), [near128] "r"(near + 128), [size] "r"(sizeof *block), \
                           [scales] "r"(192 - 28 * half) \
                         : "memory", "cc", ALL_VECTORS); \
    }
/* What there is of rows 6 and 7. */
#define IF7(...) __VA_ARGS__
#define HIGH4(at) "ldp q24, q25, [%[r], #" #at "]\n"
DIRECT(8, Q4_K, 128, 32, 0x0f)
DIRECT(8, Q6_K, 144, 96, 0xfc)
#undef IF7
#undef HIGH4
#define IF7(...)
#define HIGH4(at) "ldr q24, [%[r], #" #at "]\n"
DIRECT(6, Q4_K, 128, 32, 0x0f)
DIRECT(6, Q6_K, 144, 96, 0xfc)
/* clang-format on */
