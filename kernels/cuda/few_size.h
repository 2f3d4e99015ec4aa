/* few_size.h - the tiles of linear_few_cuda.cuh, and their bytes of scratch; for the kernel and for the table. */
#ifndef WEFT_KERNELS_CUDA_FEW_SIZE_H
#define WEFT_KERNELS_CUDA_FEW_SIZE_H

#include "kernels/kernels.h"

enum {
    FEW_WARPS = 8,
    FEW_TILE = 16,                    /* rows of weights of a tile */
    FEW_N = 8,                        /* rows of activations of an instruction */
    FEW_N_MAX = 4,                    /* of these, at most */
    FEW_ROWS_MAX = FEW_N * FEW_N_MAX, /* at a time */
    FEW_CALL_MAX = 64, /* rows of calls whose phases are one launch as a rule, with chains */
    FEW_SUM_PITCH = FEW_TILE + 4, /* floats: a warp's sums lie in different banks */
    FEW_SUM_BYTES = FEW_WARPS * FEW_ROWS_MAX * FEW_SUM_PITCH * 4, /* of 1, 2 or 4 tiles */
    FEW_AHEAD_MAX = 6,      /* chunks of weights of a warp that are under way */
    FEW_RING_BYTES = 21120, /* of a warp: four chunks of x of 8 rows, and as many of Q4_K weights */
    FEW_BYTES = FEW_SUM_BYTES + FEW_WARPS * FEW_RING_BYTES,
    FEW_TILE_BYTES =
        28 * 1024, /* of chains with such linears: two values of 112 columns, of 32 rows */
    /* What a block has in shared memory, in calls of 2 to FEW_CALL_MAX rows: with more it has none there, and linears are slow. */
    FEW_BLOCK_BYTES = FEW_TILE_BYTES + FEW_BYTES
};

/* Instructions for so many rows: 1, 2 or 4. */
K_FN int64_t few_instructions(int64_t rows)
{
    return rows <= FEW_N ? 1 : rows <= 2 * FEW_N ? 2 : FEW_N_MAX;
}

/* A row as floats where it cannot be streamed (few_plain). */
K_FN int64_t cuda_few_bytes(const kargs *k)
{
    int64_t plain = k->size.linear.in * (int64_t)sizeof(float);
    return FEW_BYTES > plain ? FEW_BYTES : plain;
}

/* ---- sheets (few_sheets_cuda.cuh) ----
 *
 * A sheet is what warps have of a tile at a time, a chunk each. Slots for some of them lie in scratch behind sums and chunks of x:
 * steps that need no more than these run while sheets are copied, others do not. */

enum {
    SHEET_COLS = 256,       /* of a chunk */
    SHEET_X = 2,            /* chunks of x of a warp, of 8 or 16 rows; */
    SHEET_X_BYTES_8 = 2592, /* the largest of these: Q4_K's and Q5_K's */
    SHEET_X_BYTES_16 = 5184,
    SHEETS_LEAST = 3
};

K_CONST_FN int32_t sheet_x_bytes(int64_t rows)
{
    return rows <= FEW_N ? SHEET_X_BYTES_8 : SHEET_X_BYTES_16;
}

/* What lies before the sheets, with so many rows of x. */
K_CONST_FN int32_t sheet_own(int64_t rows)
{
    return FEW_SUM_BYTES + FEW_WARPS * SHEET_X * sheet_x_bytes(rows);
}

/* Tiles whose chunks of the same columns follow on each other: as many as registers have sums for. */
K_CONST_FN int32_t sheet_group(dtype type, int64_t rows)
{
    return rows <= 2 * FEW_N || type == DT_Q4_K ? 4 : 3;
}

/* Bytes of a chunk; 0: such weights come in no sheets. */
K_CONST_FN int32_t sheet_chunk(dtype type)
{
    return type == DT_Q8_0                      ? 272
           : type == DT_Q4_0 || type == DT_Q4_K ? 144
           : type == DT_Q5_K                    ? 176
           : type == DT_Q6_K                    ? 210
                                                : 0;
}

/* Rows of x that there is room for: with more than 16 they have to be in registers. */
K_CONST_FN int64_t sheet_rows_most(dtype type)
{
    const bool keeps = type == DT_Q4_K || type == DT_Q5_K || type == DT_Q6_K;
    return sheet_chunk(type) == 0 ? 0 : keeps ? FEW_ROWS_MAX : 2 * FEW_N;
}

/* From row to row in a slot: rows lie in different banks, whether lanes load 4 bytes each or 8. */
K_CONST_FN int32_t sheet_pitch(dtype type)
{
    return FEW_WARPS * sheet_chunk(type) + (type == DT_Q4_K || type == DT_Q5_K ? 32
                                            : type == DT_Q6_K                  ? 0
                                                                               : 16);
}

/* A slot; of Q6_K words behind the last row are read too. */
K_CONST_FN int32_t sheet_bytes(dtype type)
{
    return FEW_TILE * sheet_pitch(type) + 16;
}

/* ---- experts (experts_few_cuda.cuh) ---- */

enum {
    EXPERTS_FEW_RING = 23232, /* of a warp: three chunks of Q4_K weights with x of 16 rows */
    EXPERTS_FEW_SLOTS = FEW_WARPS * EXPERTS_FEW_RING,
    EXPERTS_FEW_WORDS = 4 /* before the lists */
};

/* Rows of x of a job, at most: of one bundle, or of two that have half of it each. */
K_FN int cuda_experts_few_each(int64_t rows)
{
    return rows <= FEW_N ? FEW_N : 2 * FEW_N;
}

/* Bundles of a call, at most: of floats they have up to FEW_N rows in calls of any number. */
K_FN int64_t cuda_experts_few_bundles(const kargs *k)
{
    const int64_t choices = k->size.experts.rows * k->size.experts.slots;
    const int64_t most = k->size.experts.experts + choices / (FEW_N / 2);
    return choices < most ? choices : most;
}

/* Slots of warps, then lists: bundles, experts, choices. */
K_FN int64_t cuda_experts_few_bytes(const kargs *k)
{
    const int64_t words = EXPERTS_FEW_WORDS + cuda_experts_few_bundles(k) + k->size.experts.experts;
    return EXPERTS_FEW_SLOTS + words * (int64_t)sizeof(int32_t) +
           k->size.experts.rows * k->size.experts.slots * (int64_t)sizeof(uint16_t);
}

#endif
