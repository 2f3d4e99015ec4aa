/* factors.h - a tensor of low rank, and what the transforms of a weight line do to it.
 *
 * A stored tensor is the product of B [out, rank] and A [rank, in]; several that are stacked or joined into one weight
 * keep their own A. Every row of the tensor (all axes but the last, counted as one) is a row of some part's B, so slices,
 * reshapes and re-orderings of the output axes move rows and touch no number; only a transpose makes new factors.
 * Private to runtime/lora and the verb `lora`. */
#ifndef WEFT_RUNTIME_LORA_FACTORS_H
#define WEFT_RUNTIME_LORA_FACTORS_H

#include "dsl/elaborate.h"

typedef struct {
    int64_t rank, in;
    const float *a; /* [rank, in] */
    double scale;
} factor_part;

typedef struct {
    int part;       /* -1: a row of zeros */
    const float *b; /* [rank of the part] */
} factor_row;

typedef struct {
    arena *home; /* what is made lives here */
    int rank;    /* of the tensor, at least 2 */
    int64_t dim[GRAPH_RANK_MAX];
    VEC(factor_part) parts;
    VEC(factor_row) rows; /* the product of all sizes but the last */
} factors;

void factors_free(factors *f);

/* `out` rows of a part more, one for each row of b [out, rank]; NULL: zeros. */
void factors_add(factors *f, const factor_part *part, const float *b, int64_t out);

/* One transform. False: it does not fit this shape, or mixes inputs with outputs. */
bool factors_apply(factors *f, const site_step *step);
/* Rows from one pair order (of gtype) to another, as `pairs(order, run, turned)` says it. */
bool factors_turn(factors *f, int from, int to, int64_t run, int64_t turned);

/* The matrix at one index of the axes before the last two: A [rank, in], B [out, rank], made in home; A may be a part's.
 * Where its parts differ in scale it is multiplied into B and *scale is 1. Rank 0: all zeros. */
typedef struct {
    int64_t rank;
    const float *a, *b;
    double scale;
} factor_pair;
factor_pair factors_matrix(factors *f, int64_t index);

/* x [rows, columns] as [columns, rows], in a. */
const float *matrix_transposed(arena *a, const float *x, int64_t rows, int64_t columns);

#endif
