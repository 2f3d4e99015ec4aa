/* direct_i8mm.c - eight interleaved rows of Q8_0 or Q4_0 times four rows of activations, without a panel, in assembly.
 *
 * The loops of panel_tile_i8mm.c, with codes and scales as they lie: what a panel would hold is made on the way. For few
 * rows that is less work than unpacking, and what comes from memory is waited for while products are made. 32
 * columns take 21.4 cycles of a Neoverse V1 core (Q8_0) and 27.0 (Q4_0) in the first cache; compilers make 26.4 and
 * 29.0 of the same. */
#include "kernels/neon/direct.h"
#include "kernels/neon/direct_asm.h"

/* Registers: v0-v7 and v8-v15 the two sets, v16-v23 the sums, v24-v25 activations, v26 weights, v27 a mask, v28-v29 scales
 * of weights, v30-v31 of activations. */
/* clang-format off */
#define ZEROS(a0, a1, a2, a3, a4, a5, a6, a7) \
    ZERO(a0) ZERO(a1) ZERO(a2) ZERO(a3) ZERO(a4) ZERO(a5) ZERO(a6) ZERO(a7)
#define ACTS(at) "ldp q24, q25, [%[q], #" #at "]\n"
#define MM(to, x) "smmla v" #to ".4s, v26.16b, v" #x ".16b\n"
#define MUL(v) "fmul v" #v ".4s, v" #v ".4s, v29.4s\n"
#define ADD(to, v, s) "fmla v" #to ".4s, v" #v ".4s, v" #s ".4s\n"
#define ACT_SCALES "ldp q30, q31, [%[d]], #32\n"

/* Scales of two pairs of rows, each number twice; then those of a pair as floats. */
#define HALVES "ldr q28, [%[s]]\n"
#define ZIP(which) "zip" #which " v28.8h, v28.8h, v28.8h\n"
#define WIDE_LOW "fcvtl v29.4s, v28.4h\n"
#define WIDE_HIGH "fcvtl2 v29.4s, v28.8h\n"

/* A step of a pair of rows. */
#define LOAD(step, pair) "ldr q26, [%[w], #(16 + 64 * " #step " + 16 * " #pair ")]\n"
#define CODE_Q8_0_0(pair) LOAD(0, pair)
#define CODE_Q8_0_1(pair) LOAD(1, pair)
#define CODE_Q8_0_2(pair) LOAD(2, pair)
#define CODE_Q8_0_3(pair) LOAD(3, pair)
#define LOW "shl v26.16b, v26.16b, #4\n"
#define HIGH "and v26.16b, v26.16b, v27.16b\n"
#define CODE_Q4_0_0(pair) LOAD(0, pair) LOW
#define CODE_Q4_0_1(pair) LOAD(1, pair) LOW
#define CODE_Q4_0_2(pair) LOAD(0, pair) HIGH
#define CODE_Q4_0_3(pair) LOAD(1, pair) HIGH
#define CVT_Q8_0(v) "scvtf v" #v ".4s, v" #v ".4s\n"
#define CVT_Q4_0(v) "scvtf v" #v ".4s, v" #v ".4s, #4\n"

/* Every line of a block. */
#define HINT(at) "prfm pldl3keep, [%[p], #" #at "]\n"
#define HINT_Q8_0(at) HINT(at)
#define HINT_Q4_0(at) HINT_##at
#define HINT_0 HINT(0)
#define HINT_64 HINT(64)
#define HINT_128 HINT(128)
#define HINT_192
#define HINT_256

#define NEXT(bytes) "add %[w], %[w], #" #bytes "\n add %[p], %[p], #" #bytes "\n add %[q], %[q], #128\n"
#define NEXT_Q8_0 NEXT(272)
#define NEXT_Q4_0 NEXT(144)
#define NEXT_SCALES_Q8_0 "add %[s], %[s], #272\n"
#define NEXT_SCALES_Q4_0 "add %[s], %[s], #144\n"

#define PAIR(code, a, b) code MM(a, 24) MM(b, 25)
#define STEP(type, step, a0, a1, a2, a3, a4, a5, a6, a7) \
    PAIR(CODE_##type##_##step(0), a0, a1) PAIR(CODE_##type##_##step(1), a2, a3) \
    PAIR(CODE_##type##_##step(2), a4, a5) PAIR(CODE_##type##_##step(3), a6, a7)
#define FIRST(type, ...) \
    SPREAD(ZEROS, __VA_ARGS__) ACTS(0) SPREAD(STEP, type, 0, __VA_ARGS__) ACTS(32) SPREAD(STEP, type, 1, __VA_ARGS__) \
    ACTS(64) SPREAD(STEP, type, 2, __VA_ARGS__) ACTS(96) SPREAD(STEP, type, 3, __VA_ARGS__) NEXT_##type

/* A block into a0-a7 while b0-b7, of the block before, are scaled. */
#define BLOCK(type, a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7) \
    ACTS(0) CODE_##type##_0(0) ZERO(a0) MM(a0, 24) ACT_SCALES HALVES ZIP(1) CVT_##type(b0) ZERO(a1) MM(a1, 25) \
    CODE_##type##_0(1) ZERO(a2) MM(a2, 24) ZERO(a3) MM(a3, 25) WIDE_LOW MUL(b0) CVT_##type(b1) HINT_##type(0) \
    CODE_##type##_0(2) ZERO(a4) MM(a4, 24) ZERO(a5) MM(a5, 25) CODE_##type##_0(3) ZERO(a6) MM(a6, 24) \
    CVT_##type(b2) ZERO(a7) MM(a7, 25) MUL(b1) ADD(16, b0, 30) ACTS(32) CODE_##type##_1(0) MM(a0, 24) MM(a1, 25) \
    WIDE_HIGH CVT_##type(b3) HINT_##type(64) CODE_##type##_1(1) MM(a2, 24) MUL(b2) MM(a3, 25) ADD(17, b1, 31) \
    CODE_##type##_1(2) MM(a4, 24) CVT_##type(b4) MM(a5, 25) MUL(b3) CODE_##type##_1(3) MM(a6, 24) \
    ADD(18, b2, 30) MM(a7, 25) HALVES ZIP(2) CVT_##type(b5) HINT_##type(128) ACTS(64) CODE_##type##_2(0) \
    MM(a0, 24) WIDE_LOW MUL(b4) MM(a1, 25) ADD(19, b3, 31) CODE_##type##_2(1) MM(a2, 24) CVT_##type(b6) \
    MM(a3, 25) MUL(b5) CODE_##type##_2(2) MM(a4, 24) ADD(20, b4, 30) MM(a5, 25) CVT_##type(b7) HINT_##type(192) \
    CODE_##type##_2(3) MM(a6, 24) WIDE_HIGH MM(a7, 25) MUL(b6) ADD(21, b5, 31) ACTS(96) CODE_##type##_3(0) \
    MM(a0, 24) MM(a1, 25) CODE_##type##_3(1) MM(a2, 24) MUL(b7) MM(a3, 25) ADD(22, b6, 30) HINT_##type(256) \
    CODE_##type##_3(2) MM(a4, 24) MM(a5, 25) CODE_##type##_3(3) MM(a6, 24) ADD(23, b7, 31) MM(a7, 25) \
    NEXT_SCALES_##type NEXT_##type

#define LAST(type, b0, b1, b2, b3, b4, b5, b6, b7) \
    ACT_SCALES HALVES ZIP(1) CVT_##type(b0) CVT_##type(b1) CVT_##type(b2) CVT_##type(b3) CVT_##type(b4) CVT_##type(b5) \
    CVT_##type(b6) CVT_##type(b7) WIDE_LOW MUL(b0) MUL(b1) WIDE_HIGH MUL(b2) MUL(b3) HALVES ZIP(2) WIDE_LOW MUL(b4) \
    MUL(b5) WIDE_HIGH MUL(b6) MUL(b7) ADD(16, b0, 30) ADD(17, b1, 31) ADD(18, b2, 30) ADD(19, b3, 31) \
    ADD(20, b4, 30) ADD(21, b5, 31) ADD(22, b6, 30) ADD(23, b7, 31)

#define BEGIN "ldp q16, q17, [%[from]]\n ldp q18, q19, [%[from], #32]\n ldp q20, q21, [%[from], #64]\n ldp q22, q23, [%[from], #96]\n"
#define STORE "stp q16, q17, [%[t]]\n stp q18, q19, [%[t], #32]\n stp q20, q21, [%[t], #64]\n stp q22, q23, [%[t], #96]\n"
#define DIRECT(type) \
    void direct_##type(const uint8_t *w, const int8_t *q, const float *d, int64_t n_block, int64_t ahead, const float *from, float *t) \
    { \
        const uint8_t *s = w, *p = (const uint8_t *)((uintptr_t)w + (uintptr_t)ahead); \
        int64_t left = n_block - 1; /* blocks to come after the first */ \
        __asm__ volatile("movi v27.16b, #0xf0\n" ZEROS(16, 17, 18, 19, 20, 21, 22, 23) "cbz %[from], 5f\n" BEGIN "5:\n" \
                         EXPAND(FIRST, type, SET0) \
                         "subs %[n], %[n], #2\n b.lt 2f\n .p2align 6\n 1:\n" \
                         EXPAND(BLOCK, type, SET1, SET0) EXPAND(BLOCK, type, SET0, SET1) \
                         "subs %[n], %[n], #2\n b.ge 1b\n" \
                         "2:\n tbnz %[n], #0, 3f\n" /* 0 or 1 more: -2 or -1 */ \
                         EXPAND(LAST, type, SET0) "b 4f\n 3:\n" \
                         EXPAND(BLOCK, type, SET1, SET0) EXPAND(LAST, type, SET1) "4:\n" \
                         STORE \
                         : [w] "+r"(w), [s] "+r"(s), [p] "+r"(p), [q] "+r"(q), [d] "+r"(d), [n] "+r"(left) \
                         : [t] "r"(t), [from] "r"(from) \
                         : "memory", "cc", ALL_VECTORS); \
    }
DIRECT(Q8_0)
DIRECT(Q4_0)
/* clang-format on */
