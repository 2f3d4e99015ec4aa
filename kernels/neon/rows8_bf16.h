/* rows8_bf16.h - the inner loops of interleaved BF16 weights times several rows of activations, in assembly.
 *
 * A group of eight weight rows is [n / 4][8][4] (../layout.c): a vector has four columns of two rows, which bfmmla multiplies
 * with those of two rows of activations. GCC 12 keeps sixteen sums in registers but moves them about, which costs a third;
 * so these are written out. In the first cache a tile of 8 by 8 reaches 3.3 products a cycle, of 4 (Neoverse-V1). */
#ifndef WEFT_KERNELS_NEON_ROWS8_BF16_H
#define WEFT_KERNELS_NEON_ROWS8_BF16_H

#include "kernels/neon/neon.h"

enum { BF16_PAIRS = 4, BF16_STEP = 8 }; /* pairs of rows of a tile, columns of a turn of the loop */

/* Eight weight rows times one to four pairs of rows, of which x[0] and x[1] are four rows each; n columns, a multiple of
 * BF16_STEP and more than none. Of the sixteen sums, 4 q + r is of weight rows 2 r, 2 r + 1 with rows 2 q, 2 q + 1 of
 * activations: w0 x0, w0 x1, w1 x0, w1 x1. With one or two pairs they are there several times, to be added up: every
 * fourth, or every eighth. */
typedef void bf16_loop(const uint8_t *w, const uint8_t *const *x, int64_t n, float32x4_t *sums);

/* By the number of parts of an activation, 1 or 3, and the number of pairs. They ask for weights NEON_AHEAD bytes
 * further on, but for the last ones, whose weights are in a cache. */
extern bf16_loop bf16_1_1, bf16_1_2, bf16_1_3, bf16_1_4, bf16_1_near;
extern bf16_loop bf16_3_1, bf16_3_2, bf16_3_3, bf16_3_4, bf16_3_near;

/* One row, x[0] (ACT_BF1, ACT_BF3), and n a multiple of BF16_ONE_STEP. Sum 4 i + r is of weight rows 2 r, 2 r + 1: both
 * halves belong to one of them each. */
enum { BF16_ONE_STEP = 16, BF16_SETS = 4 };
extern bf16_loop bf16_1_one, bf16_3_one;

#endif
