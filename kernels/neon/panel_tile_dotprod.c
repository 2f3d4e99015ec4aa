/* panel_tile_dotprod.c - the inner loops over an unpacked panel for sdot, in assembly.
 *
 * A tile of 8 weight rows by 4 rows of activations has 8 accumulators. At the end of a group each is read as a float
 * (panel_dotprod.h): fmla with the weights' scale from -1.5 * 2^23 of that on leaves sum times scale, rounded once
 * like the product of a converted sum; fmla with the activations' scale adds it up. What accumulators and products begin
 * with is loaded, which costs load slots, of which there are enough, and no vector slots.
 *
 * Bound by the two vector pipes of Neoverse N1 and Cortex-A76, slots for 32 columns, and loads of 16 bytes, two a cycle:
 *
 *     group   sdot  scaling  cycles  of sdot  loads and hints   cycles by llvm-mca, neoverse-n1
 *      16      64      32      48      67 %         66             48
 *      32      64      16      40      80 %         46             40
 *      32, with minima
 *              64      24      44      73 %         49             44
 *     256      64       2      33      97 %         27             33
 *
 * Minima of 256 columns as integers take 56 slots, 28 cycles, besides. Two rows take half of all that.
 *
 * An integer mla takes two slots of one pipe on these processors, a conversion (scvtf) as well, so that scales as integers
 * gain nothing. The numbers of cycles are the model's, not measured. */
#include "kernels/neon/panel_dotprod.h"

/* Registers: v0-v7 accumulators, [row of activations][half of the weight rows], v8-v15 the sums of t in the same order,
 * v16-v17 activations, v18-v21 weights, v22-v23 minima, v24-v27 products, v28-v29 scales of the weights, v30-v31 of the activations. */
/* clang-format off */
#define DOT(to, w, x, lane) "sdot v" #to ".4s, v" #w ".16b, v" #x ".4b[" #lane "]\n"
#define WEIGHTS(w0, w1) "ldp q18, q19, [%[w], #" #w0 "]\n ldp q20, q21, [%[w], #" #w1 "]\n"
#define LOADS4(x, w0, w1) "ldp q16, q17, [%[q], #" #x "]\n" WEIGHTS(w0, w1)
#define LOADS2(x, w0, w1) "ldr q16, [%[q], #" #x "]\n" WEIGHTS(w0, w1)
#define AHEAD(p) "prfm pldl1keep, [%[q], %[" #p "]]\n"
#define NEXT(q, w) "add %[q], %[q], #" #q "\n add %[w], %[w], #" #w "\n"
#define BEGIN(v, next) "ldp q" #v ", q" #next ", [%[bias]]\n"
#define UNBIAS(v, next) "ldp q" #v ", q" #next ", [%[s], #32]\n"
#define TIMES_W(to, sum, w) "fmla v" #to ".4s, v" #sum ".4s, v" #w ".4s\n"
#define TIMES_D(to, v, d, lane) "fmla v" #to ".4s, v" #v ".4s, v" #d ".s[" #lane "]\n"
#define SCALES \
    "lsr %[at], %[i], %[shift]\n add %[at], %[d], %[at], lsl #5\n add %[i], %[i], #1\n" \
    "ldp q28, q29, [%[s]]\n ldp q30, q31, [%[at]]\n"

/* Four columns of the first two rows of activations, and of the other two. */
#define FIRST(w0, w1, a, b) DOT(0, w0, 16, a) DOT(1, w1, 16, a) DOT(2, w0, 16, b) DOT(3, w1, 16, b)
#define OTHER(w0, w1, a, b) DOT(4, w0, 17, a) DOT(5, w1, 17, a) DOT(6, w0, 17, b) DOT(7, w1, 17, b)

/* Eight columns of four rows, or of two. */
#define STEP4(x, w0, w1) LOADS4(x, w0, w1) \
    FIRST(18, 19, 0, 2) OTHER(18, 19, 0, 2) FIRST(20, 21, 1, 3) OTHER(20, 21, 1, 3)
#define STEP2(x, w0, w1) LOADS2(x, w0, w1) FIRST(18, 19, 0, 2) FIRST(20, 21, 1, 3)

/* The last eight of a group, whose sums are scaled as they become ready; accumulators then begin anew. */
#define STEP_SCALED4(x, w0, w1) LOADS4(x, w0, w1) SCALES \
    FIRST(18, 19, 0, 2) UNBIAS(24, 25) FIRST(20, 21, 1, 3) UNBIAS(26, 27) \
    DOT(4, 18, 17, 0) TIMES_W(24, 0, 28) DOT(5, 19, 17, 0) TIMES_W(25, 1, 29) BEGIN(0, 1) \
    DOT(6, 18, 17, 2) TIMES_W(26, 2, 28) DOT(7, 19, 17, 2) TIMES_W(27, 3, 29) BEGIN(2, 3) \
    DOT(4, 20, 17, 1) TIMES_D(8, 24, 30, 0) DOT(5, 21, 17, 1) TIMES_D(9, 25, 30, 0) UNBIAS(24, 25) \
    DOT(6, 20, 17, 3) TIMES_D(10, 26, 30, 1) DOT(7, 21, 17, 3) TIMES_D(11, 27, 30, 1) UNBIAS(26, 27) \
    TIMES_W(24, 4, 28) TIMES_W(25, 5, 29) BEGIN(4, 5) TIMES_W(26, 6, 28) TIMES_W(27, 7, 29) BEGIN(6, 7) \
    TIMES_D(12, 24, 31, 0) TIMES_D(13, 25, 31, 0) TIMES_D(14, 26, 31, 1) TIMES_D(15, 27, 31, 1) \
    "add %[s], %[s], #64\n"
#define STEP_SCALED2(x, w0, w1) LOADS2(x, w0, w1) SCALES \
    FIRST(18, 19, 0, 2) UNBIAS(24, 25) FIRST(20, 21, 1, 3) UNBIAS(26, 27) \
    TIMES_W(24, 0, 28) TIMES_W(25, 1, 29) BEGIN(0, 1) TIMES_W(26, 2, 28) TIMES_W(27, 3, 29) BEGIN(2, 3) \
    TIMES_D(8, 24, 30, 0) TIMES_D(9, 25, 30, 0) TIMES_D(10, 26, 30, 1) TIMES_D(11, 27, 30, 1) \
    "add %[s], %[s], #64\n"

/* Minima of the weight rows, which come after the scales, times sums of the activations. */
#define MINIMA2 "ldr q24, [%[sums]], #16\n ldp q22, q23, [%[s]], #32\n" \
    TIMES_D(8, 22, 24, 0) TIMES_D(9, 23, 24, 0) TIMES_D(10, 22, 24, 1) TIMES_D(11, 23, 24, 1)
#define MINIMA4 MINIMA2 \
    TIMES_D(12, 22, 24, 2) TIMES_D(13, 23, 24, 2) TIMES_D(14, 22, 24, 3) TIMES_D(15, 23, 24, 3)

/* Groups of so many columns, for `rows` of activations. */
#define GROUP16(rows) AHEAD(p) STEP##rows(0, 0, 32) STEP_SCALED##rows(32, 64, 96) NEXT(64, 128)
#define GROUP32(rows) AHEAD(p) AHEAD(p64) STEP##rows(0, 0, 32) STEP##rows(32, 64, 96) STEP##rows(64, 128, 160) \
    STEP_SCALED##rows(96, 192, 224) NEXT(128, 256)
#define GROUP32_min(rows) GROUP32(rows) MINIMA##rows
#define GROUP256(rows) \
    "mov %[at], #15\n 2:\n" AHEAD(p) STEP##rows(0, 0, 32) STEP##rows(32, 64, 96) NEXT(64, 128) \
    "subs %[at], %[at], #1\n b.ne 2b\n" GROUP16(rows)

/* Minima of eight groups in place of weights, times the high bits of the sums of activations, then the low ones. */
#define SHIFT(v) "shl v" #v ".4s, v" #v ".4s, #7\n"
#define SHIFT2 SHIFT(0) SHIFT(1) SHIFT(2) SHIFT(3)
#define SHIFT4 SHIFT2 SHIFT(4) SHIFT(5) SHIFT(6) SHIFT(7)
#define GROUP_minima(rows) \
    STEP##rows(32, 0, 32) SHIFT##rows STEP_SCALED##rows(0, 0, 32) NEXT(64, 128) "add %[s], %[s], #64\n"

#define LOOP ".p2align 6\n 1:\n"
#define UNTIL "cmp %[i], %[n]\n b.lt 1b\n"
#define T_AT(v, next, at) "p q" #v ", q" #next ", [%[t], #" #at "]\n"
#define SUMS(op) op T_AT(8, 9, 0) op T_AT(10, 11, 32) op T_AT(12, 13, 64) op T_AT(14, 15, 96)
#define VECTORS "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", \
    "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31"
/* clang-format on */

#define EIGHT(x)                                                                                   \
    {                                                                                              \
        x, x, x, x, x, x, x, x                                                                     \
    }
static const int32_t bias[8] = EIGHT(DOT_BIAS_BITS), bias_minima[8] = EIGHT(DOT_BIAS_BITS >> 7);

#define TILE(group, begin, rows)                                                                   \
    static void tile##group##_##rows(const int8_t *w, const void *scale, const int8_t *q,          \
                                     const float *d, int64_t d_shift, const float *sums,           \
                                     int64_t n_group, int64_t next, float t[DOT_TILE])             \
    {                                                                                              \
        int64_t i = 0;                                                                             \
        const void *at;                                                                            \
        __asm__ volatile(SUMS("ld") BEGIN(0, 1) BEGIN(2, 3) BEGIN(4, 5) BEGIN(6, 7)                \
                             LOOP GROUP##group(rows) UNTIL SUMS("st")                              \
                         : [w] "+r"(w), [s] "+r"(scale), [q] "+r"(q), [sums] "+r"(sums),           \
                           [i] "+r"(i), [at] "=&r"(at)                                             \
                         : [t] "r"(t), [d] "r"(d), [shift] "r"(d_shift), [n] "r"(n_group),         \
                           [p] "r"(next), [p64] "r"(next + 64), [bias] "r"(begin)                  \
                         : "memory", "cc", VECTORS);                                               \
    }
#define TILES(group, begin)                                                                        \
    TILE(group, begin, 2)                                                                          \
    TILE(group, begin, 4)                                                                          \
    dot_tile_fn *const dot_tile##group[2] = {tile##group##_2, tile##group##_4};

TILES(16, bias)
TILES(32, bias)
TILES(32_min, bias)
TILES(256, bias)
TILES(_minima, bias_minima)
