/* attend_few_size.h - how attend_few_cuda.cuh cuts its work into units, and its scratch; for the kernel and for the table. */
#ifndef WEFT_KERNELS_CUDA_ATTEND_FEW_SIZE_H
#define WEFT_KERNELS_CUDA_ATTEND_FEW_SIZE_H

#include "kernels/cuda/attend_cuda_size.h"

enum {
    FEW_HEADS = 4,      /* query heads of a unit at most */
    FEW_PIECE_BITS = 3, /* a stretch is 1 << so many pieces, of which each is a warp's */
    FEW_PIECES = 1 << FEW_PIECE_BITS,
    FEW_POSITIONS = 16, /* that a warp has at a time, at most */
    FEW_COLUMNS = 32,   /* of a result, by a warp: a lane each */
    /* Floats: of a warp, weights of those positions and factors; in front of columns, what is kept beside them. */
    FEW_TABLE = (FEW_POSITIONS + 1) * FEW_HEADS,
    FEW_PAD = 4,
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

/* Floats of what a piece has of a query head: largest logit, sum of weights, and from FEW_PAD on the sum of values. */
K_FN int64_t few_piece_floats(int64_t v)
{
    return FEW_PAD + v;
}

/* Of all stretches so far, by warps that have FEW_COLUMNS columns each. */
K_FN int64_t few_all_floats(int64_t v)
{
    return FEW_HEADS * v / FEW_COLUMNS * (FEW_PAD + FEW_COLUMNS);
}

/* A table of each warp, what pieces have, and stretches so far; or what attend_cuda.cuh needs, for cells that are not read here. */
K_FN int64_t few_attend_bytes(const kargs *k)
{
    if (k->choice.attend.part == ATTEND_MERGE)
        return CUDA_MERGE_HEADS * CUDA_MERGE_BYTES;
    cuda_attend_size s = few_attend_size_of(k);
    int64_t own = FEW_PIECES * (FEW_TABLE + FEW_HEADS * few_piece_floats(k->cell->v)) +
                  few_all_floats(k->cell->v);
    int64_t other = CUDA_KEYS * s.position + s.heads * s.query;
    return (own > other ? own : other) * (int64_t)sizeof(float);
}

#endif
