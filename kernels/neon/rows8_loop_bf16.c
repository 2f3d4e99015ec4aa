/* rows8_loop_bf16.c - the inner loops of interleaved BF16 weights times several rows of activations, in assembly.
 *
 * Sums are v0 to v15, weights v16 to v23, activations v24 to v31. What a loop loads it uses at once: a product of two registers
 * that were both written long ago takes two turns. */
#include "kernels/neon/rows8_bf16.h"

/* clang-format off */
#define MUL(sum, weight, x) "bfmmla v" #sum ".4s, v" #weight ".8h, v" #x ".8h\n"
#define ONE(reg, from, at) "ldr q" #reg ", [%[" #from "], " #at "]\n"
#define PAIR(a, b, from, at) "ldp q" #a ", q" #b ", [%[" #from "], " #at "]\n"
#define CLEAR(sum) "movi v" #sum ".4s, 0\n"
#define CLEAR_ALL                                                                                  \
    CLEAR(0) CLEAR(1) CLEAR(2) CLEAR(3) CLEAR(4) CLEAR(5) CLEAR(6) CLEAR(7)                        \
    CLEAR(8) CLEAR(9) CLEAR(10) CLEAR(11) CLEAR(12) CLEAR(13) CLEAR(14) CLEAR(15)
#define KEEP(a, b, at) "stp q" #a ", q" #b ", [%[sums], " #at "]\n"
#define KEEP_ALL                                                                                   \
    KEEP(0, 1, 0) KEEP(2, 3, 32) KEEP(4, 5, 64) KEEP(6, 7, 96)                                     \
    KEEP(8, 9, 128) KEEP(10, 11, 160) KEEP(12, 13, 192) KEEP(14, 15, 224)
#define ALL_REGISTERS                                                                              \
    "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", \
    "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27",     \
    "v28", "v29", "v30", "v31"

/* ---- four pairs ---- */

/* Four columns: weights to a, b, c, d and one part of the activations to e, f, g, h. */
#define STEP(a, b, c, d, w_at, w_high, e, f, g, h, x_at)                                           \
    PAIR(a, b, w, w_at) PAIR(e, f, x0, x_at)                                                       \
    MUL(0, a, e) MUL(1, b, e) MUL(4, a, f) MUL(5, b, f)                                            \
    PAIR(g, h, x1, x_at)                                                                           \
    MUL(8, a, g) MUL(9, b, g) MUL(12, a, h) MUL(13, b, h)                                          \
    PAIR(c, d, w, w_high)                                                                          \
    MUL(2, c, e) MUL(3, d, e) MUL(6, c, f) MUL(7, d, f)                                            \
    MUL(10, c, g) MUL(11, d, g) MUL(14, c, h) MUL(15, d, h)

/* Another part of them, with the weights at hand. */
#define AGAIN(a, b, c, d, e, f, g, h, x_at)                                                        \
    PAIR(e, f, x0, x_at) PAIR(g, h, x1, x_at)                                                      \
    MUL(0, a, e) MUL(1, b, e) MUL(2, c, e) MUL(3, d, e)                                            \
    MUL(4, a, f) MUL(5, b, f) MUL(6, c, f) MUL(7, d, f)                                            \
    MUL(8, a, g) MUL(9, b, g) MUL(10, c, g) MUL(11, d, g)                                          \
    MUL(12, a, h) MUL(13, b, h) MUL(14, c, h) MUL(15, d, h)

#define EIGHT_1_4                                                                                  \
    STEP(16, 17, 18, 19, 0, 32, 24, 25, 26, 27, 0)                                                 \
    STEP(20, 21, 22, 23, 64, 96, 28, 29, 30, 31, 32)
#define EIGHT_3_4                                                                                  \
    STEP(16, 17, 18, 19, 0, 32, 24, 25, 26, 27, 0)                                                 \
    AGAIN(16, 17, 18, 19, 28, 29, 30, 31, 32)                                                      \
    AGAIN(16, 17, 18, 19, 24, 25, 26, 27, 64)                                                      \
    STEP(20, 21, 22, 23, 64, 96, 28, 29, 30, 31, 96)                                               \
    AGAIN(20, 21, 22, 23, 24, 25, 26, 27, 128)                                                     \
    AGAIN(20, 21, 22, 23, 28, 29, 30, 31, 160)

/* ---- fewer ---- */

#define WEIGHTS PAIR(16, 17, w, 0) PAIR(18, 19, w, 32) PAIR(20, 21, w, 64) PAIR(22, 23, w, 96)
/* The first four columns with a pair of rows, the others, and their sums. */
#define LOW(x, s0, s1, s2, s3) MUL(s0, 16, x) MUL(s1, 17, x) MUL(s2, 18, x) MUL(s3, 19, x)
#define HIGH(x, s0, s1, s2, s3) MUL(s0, 20, x) MUL(s1, 21, x) MUL(s2, 22, x) MUL(s3, 23, x)

/* A part. One pair has two sets of sums for each four columns, in turn; two have one each. */
#define LOW_1A(at) ONE(24, x0, at) LOW(24, 0, 1, 2, 3)
#define LOW_1B(at) ONE(25, x0, at) LOW(25, 4, 5, 6, 7)
#define HIGH_1A(at) ONE(26, x0, at) HIGH(26, 8, 9, 10, 11)
#define HIGH_1B(at) ONE(27, x0, at) HIGH(27, 12, 13, 14, 15)
#define LOW_2(at) PAIR(24, 25, x0, at) LOW(24, 0, 1, 2, 3) LOW(25, 4, 5, 6, 7)
#define HIGH_2(at) PAIR(26, 27, x0, at) HIGH(26, 8, 9, 10, 11) HIGH(27, 12, 13, 14, 15)
#define LOW_3(at)                                                                                  \
    PAIR(24, 25, x0, at) ONE(26, x1, at)                                                           \
    LOW(24, 0, 1, 2, 3) LOW(25, 4, 5, 6, 7) LOW(26, 8, 9, 10, 11)
#define HIGH_3(at)                                                                                 \
    PAIR(28, 29, x0, at) ONE(30, x1, at)                                                           \
    HIGH(28, 0, 1, 2, 3) HIGH(29, 4, 5, 6, 7) HIGH(30, 8, 9, 10, 11)

#define EIGHT_1_1 WEIGHTS LOW_1A(0) HIGH_1A(32)
#define EIGHT_1_2 WEIGHTS LOW_2(0) HIGH_2(32)
#define EIGHT_1_3 WEIGHTS LOW_3(0) HIGH_3(32)
#define EIGHT_3_1                                                                                  \
    WEIGHTS LOW_1A(0) HIGH_1A(96) LOW_1B(32) HIGH_1B(128) LOW_1A(64) HIGH_1A(160)
#define EIGHT_3_2 WEIGHTS LOW_2(0) HIGH_2(96) LOW_2(32) HIGH_2(128) LOW_2(64) HIGH_2(160)
#define EIGHT_3_3 WEIGHTS LOW_3(0) HIGH_3(96) LOW_3(32) HIGH_3(128) LOW_3(64) HIGH_3(160)

/* ---- one row ---- */

/* Firsts and seconds of four columns are a vector, thirds half of one; each four columns have their sums. */
#define HALF(reg, at) "ldr d" #reg ", [%[x0], " #at "]\n"
#define ODD(reg, at) "ldur q" #reg ", [%[x0], " #at "]\n" /* at any byte */
#define FOUR(a, b, c, d, at, high) PAIR(a, b, w, at) PAIR(c, d, w, high)
#define BOTH(v, a, b, s, t) MUL(s, v, a) MUL(t, v, b)
#define SIXTEEN_3                                                                                  \
    ODD(24, 0) HALF(25, 16) PAIR(16, 17, w, 0) BOTH(16, 24, 25, 0, 4) BOTH(17, 24, 25, 1, 5)       \
    PAIR(18, 19, w, 32) BOTH(18, 24, 25, 2, 6) BOTH(19, 24, 25, 3, 7)                              \
    ODD(26, 24) HALF(27, 40) PAIR(20, 21, w, 64) BOTH(20, 26, 27, 8, 12) BOTH(21, 26, 27, 9, 13)   \
    PAIR(22, 23, w, 96) BOTH(22, 26, 27, 10, 14) BOTH(23, 26, 27, 11, 15)                          \
    ODD(28, 48) HALF(29, 64) PAIR(16, 17, w, 128) BOTH(16, 28, 29, 0, 4) BOTH(17, 28, 29, 1, 5)    \
    PAIR(18, 19, w, 160) BOTH(18, 28, 29, 2, 6) BOTH(19, 28, 29, 3, 7)                             \
    ODD(30, 72) HALF(31, 88) PAIR(20, 21, w, 192) BOTH(20, 30, 31, 8, 12) BOTH(21, 30, 31, 9, 13)  \
    PAIR(22, 23, w, 224) BOTH(22, 30, 31, 10, 14) BOTH(23, 30, 31, 11, 15)
#define SIXTEEN_1                                                                                  \
    FOUR(16, 17, 18, 19, 0, 32) HALF(24, 0) LOW(24, 0, 1, 2, 3)                                    \
    FOUR(20, 21, 22, 23, 64, 96) HALF(25, 8) HIGH(25, 4, 5, 6, 7)                                  \
    FOUR(16, 17, 18, 19, 128, 160) HALF(26, 16) LOW(26, 8, 9, 10, 11)                              \
    FOUR(20, 21, 22, 23, 192, 224) HALF(27, 24) HIGH(27, 12, 13, 14, 15)

#define ONE_LOOP(parts)                                                                            \
    void bf16_##parts##_one(const uint8_t *w, const uint8_t *const *x, int64_t n,                  \
                            float32x4_t *sums)                                                     \
    {                                                                                              \
        const uint8_t *x0 = x[0], *ahead = w + NEON_AHEAD;                                         \
        __asm__ volatile(CLEAR_ALL                                                                 \
                         "1:\n"                                                                    \
                         "subs %[n], %[n], 16\n"                                                   \
                         "prfm pldl3keep, [%[ahead]]\n"                                            \
                         "prfm pldl3keep, [%[ahead], 64]\n"                                        \
                         "prfm pldl3keep, [%[ahead], 128]\n"                                       \
                         "prfm pldl3keep, [%[ahead], 192]\n"                                       \
                         "add %[ahead], %[ahead], 256\n"                                           \
                         SIXTEEN_##parts                                                           \
                         "add %[w], %[w], 256\n"                                                   \
                         "add %[x0], %[x0], 32 * " #parts "\n"                                     \
                         "b.gt 1b\n"                                                               \
                         KEEP_ALL                                                                  \
                         : [w] "+r"(w), [x0] "+r"(x0), [n] "+r"(n), [ahead] "+r"(ahead)            \
                         : [sums] "r"(sums)                                                        \
                         : "memory", "cc", ALL_REGISTERS);                                         \
    }
ONE_LOOP(1)
ONE_LOOP(3)

/* ---- several rows ---- */

#define HINTS                                                                                      \
    "prfm pldl3keep, [%[ahead]]\n"                                                                 \
    "prfm pldl3keep, [%[ahead], 64]\n"                                                             \
    "add %[ahead], %[ahead], 128\n"
#define NO_HINTS

/* x[1] is not read where there are no more than two pairs. */
#define LOOP(name, hints, parts, pairs)                                                            \
    void bf16_##parts##_##name(const uint8_t *w, const uint8_t *const *x, int64_t n,               \
                               float32x4_t *sums)                                                  \
    {                                                                                              \
        const uint8_t *x0 = x[0], *x1 = x[pairs > 2], *ahead = w + NEON_AHEAD;                     \
        __asm__ volatile(CLEAR_ALL                                                                 \
                         "1:\n"                                                                    \
                         "subs %[n], %[n], 8\n"                                                    \
                         hints                                                                     \
                         EIGHT_##parts##_##pairs                                                   \
                         "add %[w], %[w], 128\n"                                                   \
                         "add %[x0], %[x0], 64 * " #parts "\n"                                     \
                         "add %[x1], %[x1], 64 * " #parts "\n"                                     \
                         "b.gt 1b\n"                                                               \
                         KEEP_ALL                                                                  \
                         : [w] "+r"(w), [x0] "+r"(x0), [x1] "+r"(x1), [n] "+r"(n),                 \
                           [ahead] "+r"(ahead)                                                     \
                         : [sums] "r"(sums)                                                        \
                         : "memory", "cc", ALL_REGISTERS);                                         \
    }
LOOP(1, HINTS, 1, 1)
LOOP(2, HINTS, 1, 2)
LOOP(3, HINTS, 1, 3)
LOOP(4, HINTS, 1, 4)
LOOP(near, NO_HINTS, 1, 4)
LOOP(1, HINTS, 3, 1)
LOOP(2, HINTS, 3, 2)
LOOP(3, HINTS, 3, 3)
LOOP(4, HINTS, 3, 4)
LOOP(near, NO_HINTS, 3, 4)
/* clang-format on */
