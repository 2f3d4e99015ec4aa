/* direct8_i8mm.c - four interleaved rows of Q8_0 or Q4_0 times six or eight rows of activations, without a panel, in assembly.
 *
 * The loops of direct_i8mm.c with the sides exchanged: half of a group's rows, which are unpacked once for twice the
 * activations, and whose other half comes in a second pass from the first cache. A pass asks for every second line of what
 * comes next, so that memory works during both.
 *
 * 32 columns of both halves take 41 cycles of a Neoverse V1 core (Q8_0) and 45 (Q4_0) in the first cache, 46 and 49 from
 * memory; without hints that bring lines into the first cache a pass over new weights waits, 50 and 52. */
#include "kernels/neon/direct.h"
#include "kernels/neon/direct_asm.h"

/* Registers: v0-v7 and v8-v15 the two sets, v16-v23 the sums, v24-v25 activations, v26-v27 weights, v28 a mask, v29-v30
 * scales of weights, v31 of activations. */
/* clang-format off */
#define ZEROS(a0, a1, a2, a3, a4, a5, a6, a7) \
    ZERO(a0) ZERO(a1) ZERO(a2) ZERO(a3) ZERO(a4) ZERO(a5) IF7(ZERO(a6) ZERO(a7))
#define LOW4(at) "ldp q24, q25, [%[q], #" #at "]\n"
#define MM(to, w, x) "smmla v" #to ".4s, v" #w ".16b, v" #x ".16b\n"
#define MUL(v, s) "fmul v" #v ".4s, v" #v ".4s, v" #s ".4s\n"
#define ADD(to, v) "fmla v" #to ".4s, v" #v ".4s, v31.4s\n"
#define LOW_SCALE(at) "ldr q31, [%[d], #" #at "]\n"
#define HIGH_SCALE(at) "ldr q31, [%[e], #" #at "]\n"

/* Scales of two pairs of rows, each number twice, as floats: v30 of the first, v29 of the second. */
#define SCALES "ldr d29, [%[s]]\n zip1 v29.8h, v29.8h, v29.8h\n"
#define WIDE_LOW "fcvtl v30.4s, v29.4h\n"
#define WIDE_HIGH "fcvtl2 v29.4s, v29.8h\n"

/* A step of two pairs of rows. */
#define LOAD(step) "ldp q26, q27, [%[w], #(64 * " #step ")]\n"
#define CODE_Q8_0_0 LOAD(0)
#define CODE_Q8_0_1 LOAD(1)
#define CODE_Q8_0_2 LOAD(2)
#define CODE_Q8_0_3 LOAD(3)
#define LOW "shl v26.16b, v26.16b, #4\n shl v27.16b, v27.16b, #4\n"
#define HIGH "and v26.16b, v26.16b, v28.16b\n and v27.16b, v27.16b, v28.16b\n"
#define CODE_Q4_0_0 LOAD(0) LOW
#define CODE_Q4_0_1 LOAD(1) LOW
#define CODE_Q4_0_2 LOAD(0) HIGH
#define CODE_Q4_0_3 LOAD(1) HIGH
#define CVT_Q8_0(v) "scvtf v" #v ".4s, v" #v ".4s\n"
#define CVT_Q4_0(v) "scvtf v" #v ".4s, v" #v ".4s, #4\n"

#define HINT(at) "prfm pldl3keep, [%[p], #" #at "]\n"
#define NEAR(at) "prfm pldl1keep, [%[c], #" #at "]\n"
#define HINTS_Q8_0 HINT(0) HINT(128) HINT(256) NEAR(0) NEAR(128) NEAR(256)
#define HINTS_Q4_0 HINT(0) HINT(128) NEAR(0) NEAR(128)

#define NEXT(bytes) \
    "add %[w], %[w], #" #bytes "\n add %[p], %[p], #" #bytes "\n add %[c], %[c], #" #bytes "\n" \
    "add %[q], %[q], #128\n add %[r], %[r], #128\n"
#define NEXT_Q8_0 NEXT(272)
#define NEXT_Q4_0 NEXT(144)
#define NEXT_SCALES(bytes) "add %[s], %[s], #" #bytes "\n add %[d], %[d], #32\n add %[e], %[e], #32\n"
#define NEXT_SCALES_Q8_0 NEXT_SCALES(272)
#define NEXT_SCALES_Q4_0 NEXT_SCALES(144)

#define STEP(code, at, a0, a1, a2, a3, a4, a5, a6, a7) \
    code LOW4(at) MM(a0, 26, 24) MM(a1, 27, 24) MM(a2, 26, 25) MM(a3, 27, 25) \
    HIGH4(at) MM(a4, 26, 24) MM(a5, 27, 24) IF7(MM(a6, 26, 25) MM(a7, 27, 25))
#define FIRST(type, ...) \
    SPREAD(ZEROS, __VA_ARGS__) SPREAD(STEP, CODE_##type##_0, 0, __VA_ARGS__) SPREAD(STEP, CODE_##type##_1, 32, __VA_ARGS__) \
    SPREAD(STEP, CODE_##type##_2, 64, __VA_ARGS__) SPREAD(STEP, CODE_##type##_3, 96, __VA_ARGS__) NEXT_##type

/* A block into a0-a7 while b0-b7, of the block before, are scaled. */
#define BLOCK(type, a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7) \
    ZEROS(a0, a1, a2, a3, a4, a5, a6, a7) \
    CODE_##type##_0 LOW4(0) SCALES MM(a0, 26, 24) MM(a1, 27, 24) MM(a2, 26, 25) MM(a3, 27, 25) \
    HIGH4(0) HINTS_##type MM(a4, 26, 24) CVT_##type(b0) MM(a5, 27, 24) IF7(MM(a6, 26, 25)) CVT_##type(b1) IF7(MM(a7, 27, 25)) WIDE_LOW \
    CODE_##type##_1 LOW4(32) CVT_##type(b2) MM(a0, 26, 24) WIDE_HIGH MM(a1, 27, 24) MM(a2, 26, 25) CVT_##type(b3) MM(a3, 27, 25) \
    MUL(b0, 30) HIGH4(32) CVT_##type(b4) MM(a4, 26, 24) MM(a5, 27, 24) MUL(b1, 29) IF7(MM(a6, 26, 25)) CVT_##type(b5) IF7(MM(a7, 27, 25)) \
    CODE_##type##_2 LOW4(64) MUL(b2, 30) MM(a0, 26, 24) MM(a1, 27, 24) IF7(CVT_##type(b6)) MM(a2, 26, 25) MUL(b3, 29) \
    MM(a3, 27, 25) HIGH4(64) LOW_SCALE(0) MM(a4, 26, 24) MUL(b4, 30) MM(a5, 27, 24) IF7(CVT_##type(b7) MM(a6, 26, 25)) ADD(16, b0) \
    IF7(MM(a7, 27, 25)) MUL(b5, 29) CODE_##type##_3 LOW4(96) ADD(17, b1) MM(a0, 26, 24) LOW_SCALE(16) MM(a1, 27, 24) \
    MM(a2, 26, 25) IF7(MUL(b6, 30)) MM(a3, 27, 25) ADD(18, b2) HIGH4(96) IF7(MUL(b7, 29)) MM(a4, 26, 24) MM(a5, 27, 24) \
    ADD(19, b3) HIGH_SCALE(0) IF7(MM(a6, 26, 25)) ADD(20, b4) IF7(MM(a7, 27, 25)) ADD(21, b5) IF7(HIGH_SCALE(16) ADD(22, b6) ADD(23, b7)) \
    NEXT_SCALES_##type NEXT_##type

#define LAST(type, b0, b1, b2, b3, b4, b5, b6, b7) \
    SCALES CVT_##type(b0) CVT_##type(b1) CVT_##type(b2) CVT_##type(b3) CVT_##type(b4) CVT_##type(b5) IF7(CVT_##type(b6)) \
    IF7(CVT_##type(b7)) WIDE_LOW WIDE_HIGH MUL(b0, 30) MUL(b1, 29) MUL(b2, 30) MUL(b3, 29) MUL(b4, 30) MUL(b5, 29) \
    IF7(MUL(b6, 30) MUL(b7, 29)) LOW_SCALE(0) ADD(16, b0) ADD(17, b1) LOW_SCALE(16) ADD(18, b2) ADD(19, b3) \
    HIGH_SCALE(0) ADD(20, b4) ADD(21, b5) IF7(HIGH_SCALE(16) ADD(22, b6) ADD(23, b7))

#define BEGIN "ldp q16, q18, [%[from]]\n ldp q17, q19, [%[from], #32]\n ldp q20, q22, [%[from], #128]\n ldp q21, q23, [%[from], #160]\n"
#define STORE "stp q16, q18, [%[t]]\n stp q17, q19, [%[t], #32]\n stp q20, q22, [%[t], #128]\n stp q21, q23, [%[t], #160]\n"
#define DIRECT(rows, type) \
    void direct##rows##_##type(const uint8_t *w, int half, const int8_t *q, const float *d, int64_t group, int64_t n_block, \
                        int64_t ahead, const float *from, float *t) \
    { \
        const uint8_t *s = w + 8 * half; \
        const uint8_t *c = (const uint8_t *)((uintptr_t)w + (uintptr_t)(ahead ? NEAR_AHEAD + 64 * half : 0)); \
        const uint8_t *p = (const uint8_t *)((uintptr_t)w + (uintptr_t)(ahead ? ahead + 64 * half : 0)); \
        const int8_t *r = q + group; \
        const float *e = (const float *)((const char *)d + group); \
        int64_t left = n_block - 1; /* blocks to come after the first */ \
        w += 16 + 32 * half; \
        t += 16 * half; \
        from = from ? from + 16 * half : from; \
        __asm__ volatile("movi v28.16b, #0xf0\n" ZEROS(16, 17, 18, 19, 20, 21, 22, 23) "cbz %[from], 5f\n" BEGIN "5:\n" \
                         EXPAND(FIRST, type, SET0) \
                         "subs %[n], %[n], #2\n b.lt 2f\n .p2align 6\n 1:\n" \
                         EXPAND(BLOCK, type, SET1, SET0) EXPAND(BLOCK, type, SET0, SET1) \
                         "subs %[n], %[n], #2\n b.ge 1b\n" \
                         "2:\n tbnz %[n], #0, 3f\n" /* 0 or 1 more: -2 or -1 */ \
                         EXPAND(LAST, type, SET0) "b 4f\n 3:\n" \
                         EXPAND(BLOCK, type, SET1, SET0) EXPAND(LAST, type, SET1) "4:\n" \
                         STORE \
                         : [w] "+r"(w), [s] "+r"(s), [p] "+r"(p), [c] "+r"(c), [q] "+r"(q), [r] "+r"(r), [d] "+r"(d), [e] "+r"(e), \
                           [n] "+r"(left) \
                         : [t] "r"(t), [from] "r"(from) \
                         : "memory", "cc", ALL_VECTORS); \
    }
/* What there is of rows 6 and 7. */
#define IF7(...) __VA_ARGS__
#define HIGH4(at) "ldp q24, q25, [%[r], #" #at "]\n"
DIRECT(8, Q8_0)
DIRECT(8, Q4_0)
#undef IF7
#undef HIGH4
#define IF7(...)
#define HIGH4(at) "ldr q24, [%[r], #" #at "]\n"
DIRECT(6, Q8_0)
DIRECT(6, Q4_0)
/* clang-format on */
