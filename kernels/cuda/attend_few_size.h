/* attend_few_size.h - how attend_few_cuda.cuh cuts its work into units, and its scratch; for the kernel and for the table. */
#ifndef WEFT_KERNELS_CUDA_ATTEND_FEW_SIZE_H
#define WEFT_KERNELS_CUDA_ATTEND_FEW_SIZE_H

#include "kernels/cuda/attend_cuda_size.h"

enum {
    FEW_HEADS = 4,                /* query heads of a unit at most */
    FEW_ATTEND_WARPS = 32,        /* of a block at most */
    FEW_WEIGHTS = 32 * FEW_HEADS, /* floats: of the positions that a warp has at a time */
};

/* A unit is a row's query heads that share one of the cell's, or FEW_HEADS of them. */
K_FN cuda_attend_size few_attend_size_of(const kargs *k)
{
    cuda_attend_size s = cuda_attend_size_of(k);
    s.parts = (s.group + FEW_HEADS - 1) / FEW_HEADS;
    s.heads = (s.group + s.parts - 1) / s.parts;
    s.rows = 1;
    return s;
}

K_FN int64_t few_attend_units(const kargs *k)
{
    int64_t units = k->size.attend.rows * k->cell->heads * few_attend_size_of(k).parts;
    return k->choice.attend.part == ATTEND_MERGE    ? k->size.attend.rows * k->size.attend.heads
           : k->choice.attend.part == ATTEND_STATES ? units * ATTEND_STRETCHES
                                                    : units;
}

/* Floats of what a stretch has of a query head: largest logit, sum of weights, and the sum of values. */
K_FN int64_t few_state_floats(int64_t v)
{
    return 4 + v;
}

/* Weights of each warp and the states of stretches; or what attend_cuda.cuh needs, for cells that are not read here. */
K_FN int64_t few_attend_bytes(const kargs *k)
{
    cuda_attend_size s = few_attend_size_of(k);
    int64_t own = FEW_ATTEND_WARPS * FEW_WEIGHTS +
                  ATTEND_STRETCHES * FEW_HEADS * few_state_floats(k->cell->v);
    int64_t other = CUDA_KEYS * s.position + s.heads * s.query;
    return (own > other ? own : other) * (int64_t)sizeof(float);
}

#endif
