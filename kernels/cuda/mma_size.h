/* mma_size.h - the squares of linear_mma_cuda.cuh, and their bytes of scratch; for the kernel and for the table. */
#ifndef WEFT_KERNELS_CUDA_MMA_SIZE_H
#define WEFT_KERNELS_CUDA_MMA_SIZE_H

#include "kernels/kernels.h"

enum {
    MMA_ROWS = 128, /* of the call, of a square of the result */
    MMA_COLS = 256, /* of the result */
    MMA_DEPTH = 64, /* columns of x and w at a time: a line of 128 bytes of bf16 */
    MMA_LINE = 2 * MMA_DEPTH,
    MMA_STAGES = 4,       /* of a ring, at most; */
    MMA_STAGES_LEAST = 2, /* one is filled while the other is multiplied */
    MMA_STAGE_BYTES = (MMA_ROWS + MMA_COLS) * MMA_LINE,
    MMA_ALIGN = 1024,
    CUDA_MMA_BYTES =
        MMA_STAGES * MMA_STAGE_BYTES + MMA_ALIGN, /* stages begin at a multiple of it */

    /* Of weft_bulk, beside as many stages: for each warp that multiplies some columns of its 16 rows of the result. */
    BULK_TURN = 32,
    BULK_PITCH = 4 * BULK_TURN + 32, /* of a row of them, in bytes */
    BULK_OWN = 16 * BULK_PITCH,
    CUDA_BULK_BYTES = CUDA_MMA_BYTES + MMA_ROWS / 16 * BULK_OWN
};

/* Stages of a ring in so many bytes of shared memory; 0: there is no room for one. */
K_FN int64_t cuda_mma_stages(int64_t bytes)
{
    const int64_t n = (bytes - MMA_ALIGN) / MMA_STAGE_BYTES;
    return n < MMA_STAGES_LEAST ? 0 : n < MMA_STAGES ? n : MMA_STAGES;
}

/* What a block takes of `room` for a ring and for `beside` bytes more; 0: it is too little. */
K_FN int64_t cuda_squares_bytes(int64_t room, int64_t beside)
{
    const int64_t stages = cuda_mma_stages(room - beside);
    return stages == 0 ? 0 : stages * MMA_STAGE_BYTES + MMA_ALIGN + beside;
}

/* Bytes of BF16 weights as f16 (halves_cuda.cuh), with the inverses of their powers: both begin at whole lines. */
K_FN int64_t cuda_halves_pad(int64_t bytes)
{
    return (bytes + MMA_LINE - 1) / MMA_LINE * MMA_LINE;
}

K_FN int64_t cuda_halves_bytes(int64_t out, int64_t in)
{
    return cuda_halves_pad(out * in * 2) + cuda_halves_pad(out * 4);
}

/* Forms of x that are f16 there, and how many f16 a number of it is. */
K_FN bool cuda_act_halves(kact act)
{
    return act == ACT_BF2T || act == ACT_BF3T;
}

K_FN int cuda_halves_parts(kact act)
{
    return act == ACT_BF2T ? 1 : 2;
}

/* Types of weights that are decoded for every square, each by code of its own. Others become bf16 before, or are decoded by code for
 * all of them. */
#define WEIGHT_TYPES_MMA(X) X(BF16) X(Q8_0) X(Q4_0) X(MXFP4) X(Q4_K) X(Q5_K) X(Q6_K)

/* Squares of experts: as many as there are if those who chose each leave their last tile almost empty. */
K_FN int64_t cuda_expert_units(const kargs *k)
{
    const int64_t choices = k->size.experts.rows * k->size.experts.slots;
    const int64_t chosen = k->size.experts.experts < choices ? k->size.experts.experts : choices;
    return (choices / MMA_ROWS + chosen) * ((k->size.experts.out + MMA_COLS - 1) / MMA_COLS);
}

/* What a block knows of the choices (expert_squares_cuda.cuh), */
K_FN int64_t cuda_expert_lists_bytes(int64_t experts)
{
    return (4 * MMA_ROWS + 2 * experts + 1) * (int64_t)sizeof(int32_t);
}

/* and stages. */
K_FN int64_t cuda_expert_squares_bytes(const kargs *k)
{
    return CUDA_MMA_BYTES + cuda_expert_lists_bytes(k->size.experts.experts);
}

#endif
