/* svd.h - the nearest matrix of a given rank, as two factors. */
#ifndef WEFT_RUNTIME_LORA_SVD_H
#define WEFT_RUNTIME_LORA_SVD_H

#include "runtime/base/arena.h"

#include <stdint.h>

typedef struct {
    int64_t rank;   /* at most what was asked for, and no more than the matrix has */
    const float *a; /* [rank, columns] */
    const float *b; /* [rows, rank] */
    double norm;    /* of the matrix: the root of the sum of its squares */
    double error;   /* of the matrix less b times a, the same norm */
} svd_factors;

/* x is [rows, columns]. By subspace iteration from a fixed random start, until what it holds of the matrix stays the
 * same to 1e-6; the error is measured, not estimated. Numbers do not depend on the threads, which are those of the pool
 * (runtime/exec/pool.h), acquired by the caller. Each factor gets the root of the singular values. Factors live in
 * home; besides them it takes some (rank + 8) * (rows + columns) numbers. */
svd_factors svd_truncated(const float *x, int64_t rows, int64_t columns, int64_t rank, int threads,
                          arena *home);

#endif
