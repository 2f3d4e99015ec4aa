/* one_row_dotprod.c - eight interleaved rows of Q4_0 times one row of activations, in assembly.
 *
 * Two sets of accumulators take turns: while sdot fills one, the sums of the other are joined and scaled in between.
 * Activations are loaded as they are multiplied, each 8 twice: sdot runs at 4 a cycle only if an operand comes
 * from memory, and a copy made by an instruction does not count.
 *
 * Bound by the four vector pipes of Neoverse V1: 32 columns of 8 rows take 16 sdot, 16 instructions to unpack and
 * 10 to scale, 13.1 cycles in the first cache; compilers make 15.8 of the same. For Q4_K and Q6_K, whose sums leave assembly
 * every 256 columns, such loops gained nothing (17.7 and 21.0 cycles against 16.4 and 20.7). */
#include "kernels/neon/one_row.h"

/* Registers: v0-v3 and v4-v7 the two sets, v8-v9 the sums, v10-v13 and v16-v23 weights, v24-v27 activations,
 * v28 a mask, v15 and v29-v31 scales. */
/* clang-format off */
#define EXPAND(macro, ...) macro(__VA_ARGS__)
#define SET0 0, 1, 2, 3
#define SET1 4, 5, 6, 7
#define LOAD2(v, next, at) "ldp q" #v ", q" #next ", [%[w], #" #at "]\n"
#define ACTS2(v, next, at) "ldp q" #v ", q" #next ", [%[q], #" #at "]\n"
#define LOW(to, v) "shl v" #to ".16b, v" #v ".16b, #4\n"
#define MASK(to, v) "and v" #to ".16b, v" #v ".16b, v28.16b\n"
#define DOT(to, w, x) "sdot v" #to ".4s, v" #w ".16b, v" #x ".16b\n"
#define JOIN(to, v) "addp v" #to ".4s, v" #to ".4s, v" #v ".4s\n"
#define ZERO(v) "movi v" #v ".4s, #0\n"
#define ZEROS(a0, a1, a2, a3) ZERO(a0) ZERO(a1) ZERO(a2) ZERO(a3)
#define HINT(at) "prfm pldl3keep, [%[p], #" #at "]\n"
#define ALL_VECTORS "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", \
    "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31"

/* Scales of the block before lie 144 bytes back. */
#define CVT(v) "scvtf v" #v ".4s, v" #v ".4s, #4\n"
#define ADD(to, v, s) "fmla v" #to ".4s, v" #v ".4s, v" #s ".4s\n"
#define SCALES "ldur q29, [%[w], #-144]\n"
#define ACT_D "ldr s15, [%[d]], #4\n"
#define SCALE_LOW "fcvtl v30.4s, v29.4h\n"
#define SCALE_HIGH "fcvtl2 v31.4s, v29.8h\n"
#define TIMES_D(v) "fmul v" #v ".4s, v" #v ".4s, v15.s[0]\n"
#define NEXT "add %[w], %[w], #144\n add %[q], %[q], #64\n add %[p], %[p], #144\n"
#define FIRST(a0, a1, a2, a3) \
    ZEROS(a0, a1, a2, a3) LOAD2(16, 17, 16) LOAD2(18, 19, 48) ACTS2(24, 25, 0) ACTS2(26, 27, 32) LOAD2(10, 11, 80) LOAD2(12, 13, 112) \
    LOW(20, 16) MASK(16, 16) LOW(21, 17) MASK(17, 17) LOW(22, 18) MASK(18, 18) LOW(23, 19) MASK(19, 19) \
    DOT(a0, 20, 24) DOT(a1, 21, 24) DOT(a2, 22, 24) DOT(a3, 23, 24) \
    LOW(20, 10) MASK(10, 10) LOW(21, 11) MASK(11, 11) LOW(22, 12) MASK(12, 12) LOW(23, 13) MASK(13, 13) \
    DOT(a0, 16, 26) DOT(a1, 17, 26) DOT(a2, 18, 26) DOT(a3, 19, 26) DOT(a0, 20, 25) DOT(a1, 21, 25) DOT(a2, 22, 25) DOT(a3, 23, 25) \
    DOT(a0, 10, 27) DOT(a1, 11, 27) DOT(a2, 12, 27) DOT(a3, 13, 27) NEXT
#define BLOCK(a0, a1, a2, a3, b0, b1, b2, b3) \
    ZEROS(a0, a1, a2, a3) LOAD2(16, 17, 16) SCALES LOAD2(18, 19, 48) ACTS2(24, 25, 0) ACTS2(26, 27, 32) ACT_D LOAD2(10, 11, 80) \
    LOAD2(12, 13, 112) JOIN(b0, b1) LOW(20, 16) MASK(16, 16) LOW(21, 17) SCALE_LOW MASK(17, 17) LOW(22, 18) JOIN(b2, b3) \
    MASK(18, 18) LOW(23, 19) MASK(19, 19) SCALE_HIGH DOT(a0, 20, 24) DOT(a1, 21, 24) CVT(b0) DOT(a2, 22, 24) DOT(a3, 23, 24) \
    LOW(20, 10) TIMES_D(30) MASK(10, 10) LOW(21, 11) MASK(11, 11) CVT(b2) LOW(22, 12) MASK(12, 12) TIMES_D(31) LOW(23, 13) \
    MASK(13, 13) DOT(a0, 16, 26) ADD(8, b0, 30) DOT(a1, 17, 26) DOT(a2, 18, 26) ADD(9, b2, 31) DOT(a3, 19, 26) DOT(a0, 20, 25) \
    DOT(a1, 21, 25) HINT(0) DOT(a2, 22, 25) DOT(a3, 23, 25) HINT(64) DOT(a0, 10, 27) DOT(a1, 11, 27) DOT(a2, 12, 27) HINT(128) \
    DOT(a3, 13, 27) NEXT
#define LAST(b0, b1, b2, b3) \
    SCALES ACT_D JOIN(b0, b1) SCALE_LOW JOIN(b2, b3) SCALE_HIGH CVT(b0) TIMES_D(30) CVT(b2) TIMES_D(31) ADD(8, b0, 30) ADD(9, b2, 31)
/* clang-format on */

void one_row_Q4_0(const uint8_t *w, const int8_t *q, const float *d, int64_t n_block, float sum[8])
{
    const uint8_t *p = (const uint8_t *)((uintptr_t)w + NEON_AHEAD);
    int64_t left = n_block - 1;                              /* blocks to come after the first */
    __asm__ volatile("movi v28.16b, #0xf0\n" ZERO(8) ZERO(9) /* */
                     EXPAND(FIRST, SET0)                     /* */
                     "subs %[n], %[n], #2\n"                 /* */
                     "b.lt 2f\n"                             /* */
                     ".p2align 5\n"                          /* */
                     "1:\n"                                  /* */
                     EXPAND(BLOCK, SET1, SET0)               /* */
                     EXPAND(BLOCK, SET0, SET1)               /* */
                     "subs %[n], %[n], #2\n"                 /* */
                     "b.ge 1b\n"                             /* */
                     "2:\n"                                  /* 0 or 1 more: -2 or -1 */
                     "tbnz %[n], #0, 3f\n"                   /* */
                     EXPAND(LAST, SET0) "b 4f\n"             /* */
                                        "3:\n"               /* */
                     EXPAND(BLOCK, SET1, SET0) EXPAND(LAST, SET1) /* */
                     "4:\n"                                       /* */
                     "stp q8, q9, [%[sum]]\n"
                     : [w] "+r"(w), [q] "+r"(q), [d] "+r"(d), [n] "+r"(left), [p] "+r"(p)
                     : [sum] "r"(sum)
                     : "memory", "cc", ALL_VECTORS);
}
