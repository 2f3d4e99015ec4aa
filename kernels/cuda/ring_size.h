/* ring_size.h - how ring_cuda.cuh cuts rows of weights into chunks, and the bytes of a ring; for the kernels and the host. */
#ifndef WEFT_KERNELS_CUDA_RING_SIZE_H
#define WEFT_KERNELS_CUDA_RING_SIZE_H

#include "kernels/kernels.h"

enum {
    RING_WARPS = 8,        /* of a block that multiply, at most, */
    RING_COPIERS = 2,      /* and that copy for them */
    RING_SLOT = 4608,      /* bytes of a chunk, at most, */
    RING_SLOT_MOST = 5632, /* but of Q5_K */
    RING_SLOTS = 6,        /* chunks of a warp that are under way, at most; */
    RING_SLOTS_LEAST = 1,
    RING_PAIR_SLOTS = 4, /* from so many on groups of rows are paired */
    RING_SKEW = 32,      /* bytes of it around rows that begin at no multiple of 16 */
    EXPERT_AHEAD = 2, /* chunks of a warp under way that no ring brings (experts_runs_cuda.cuh), */
    BLOCKS_AHEAD = 3, /* and of smaller ones, of rows by blocks */
    EXPERT_X = 32 * 1024, /* of their x at a time, where it is floats: bytes, at most */
    RING_SEGMENTS = 8,    /* of a phase that a block knows, at most */
    RING_X_COLS = 256,    /* 8-bit activations: columns of a block, */
    RING_X_BLOCK =
        336, /* and its bytes: codes, sums of 32 and of 16 of them, a scale; 21 times 16: so blocks lie in
                            different banks */
    RING_X_SUMS = 256,   /* i16 [8] */
    RING_X_HALVES = 272, /* i16 [16] */
    RING_X_SCALE = 304,
    RING_X_SMALL =
        48 /* bytes of 32 columns of rows cut by blocks: codes, a scale; three times 16 */
};

/* A chunk: `bytes` of each of `rows` rows, which are a group. `chunks` of them have all columns of these. rows 0: they cannot be cut.
 * paired: a warp multiplies two groups at a time, and their chunks come by turns. Weights in sheets have another kind (cut_sheets in
 * runtime/exec/cuda_load.c). */
typedef struct {
    uint16_t rows, chunks, bytes, paired;
} cuda_cut;

/* What a lane multiplies at a time: columns, and their bytes; 0: any eight. */
typedef struct {
    int32_t cols, bytes;
} cuda_lane_run;

K_FN cuda_lane_run cuda_lane_run_of(dtype type)
{
    switch (type) {
    case DT_Q8_0:
        return K_OF(cuda_lane_run){128, 136};
    case DT_Q4_0:
        return K_OF(cuda_lane_run){256, 144};
    case DT_Q4_K:
        return K_OF(cuda_lane_run){256, 144};
    case DT_Q5_K:
        return K_OF(cuda_lane_run){256, 176};
    case DT_Q6_K:
        return K_OF(cuda_lane_run){128, 105};
    default:
        return K_OF(cuda_lane_run){0, 0};
    }
}

K_FN bool cuda_is_halves(dtype type)
{
    return type == DT_BF16 || type == DT_F16;
}

/* 16-bit numbers: two rows, and as many columns, of a thousand or so, as fit into the row a number of times. */
K_FN cuda_cut cuda_cut_halves(int64_t n)
{
    int64_t chunks = (n + 1023) / 1024;
    while (chunks <= n / 256 && (n % chunks != 0 || n / chunks % 8 != 0))
        chunks++;
    if (n <= 0 || n % 8 != 0 || chunks > (n > 256 ? n / 256 : 1) || chunks > UINT16_MAX)
        return K_OF(cuda_cut){0, 0, 0, 0};
    return K_OF(cuda_cut){2, (uint16_t)chunks, (uint16_t)(n / chunks * 2), 0};
}

/* Are groups of rows of such runs paired? Measured: all gain by it but Q5_K, whose code is long. */
#define CUDA_PAIRED(type) ((type) != DT_Q5_K)

/* As many lanes to a row as divide its runs. */
K_FN cuda_cut cuda_cut_runs(cuda_lane_run r, int64_t n, bool paired)
{
    int64_t runs = n / r.cols, lanes = 1;
    while (lanes < 32 && runs % (2 * lanes) == 0)
        lanes *= 2;
    if (n % RING_X_COLS != 0 || n <= 0 || lanes * r.bytes % 16 != 0 || runs / lanes > UINT16_MAX)
        return K_OF(cuda_cut){0, 0, 0, 0};
    return K_OF(cuda_cut){(uint16_t)(32 / lanes), (uint16_t)(runs / lanes),
                          (uint16_t)(lanes * r.bytes), paired};
}

/* Bytes of a block of 32 columns, of types that lanes may multiply block by block; 0: of others. */
K_FN int64_t cuda_block_bytes(dtype type)
{
    return type == DT_MXFP4 ? 17 : type == DT_Q4_0 ? 18 : type == DT_Q8_0 ? 34 : 0;
}

/* Rows of such blocks (blocks_cuda.cuh), without gaps: a chunk is one piece from any byte on, and copied from the multiple of 16 before
 * to that behind. A part of a row that fits, or as many rows, a power of two. The matrix ends at a multiple of 16: what is copied is
 * all its own. */
K_FN cuda_cut cuda_cut_blocks(int64_t block, int64_t n, int64_t pitch, int64_t matrix_rows)
{
    enum { ROWS_MOST = 8, PIECE_LEAST = 16 };
    const int64_t all = n / 32, room = RING_SLOT - RING_SKEW;
    int64_t chunks = 1, rows = 1;
    if (block == 0 || n <= 0 || n % 32 != 0 || pitch != all * block ||
        matrix_rows * pitch % 16 != 0)
        return K_OF(cuda_cut){0, 0, 0, 0};
    while (chunks < all && (all % chunks != 0 || all / chunks * block > room))
        chunks++;
    if (chunks > 1 && all / chunks < PIECE_LEAST)
        return K_OF(cuda_cut){0, 0, 0, 0};
    while (chunks == 1 && rows < ROWS_MOST && 2 * rows * pitch <= room)
        rows *= 2;
    return K_OF(cuda_cut){(uint16_t)rows, (uint16_t)chunks, (uint16_t)(all / chunks * block), 0};
}

/* Of the rows of a matrix. It has to begin at a multiple of 16 bytes, or they cannot be copied. */
K_FN cuda_cut cuda_cut_of(dtype type, int64_t n, int64_t pitch, int64_t matrix_rows)
{
    const cuda_lane_run r = cuda_lane_run_of(type);
    cuda_cut cut = {0, 0, 0, 0};
    if (pitch % 16 == 0 && cuda_is_halves(type))
        cut = cuda_cut_halves(n);
    else if (pitch % 16 == 0 && r.cols != 0)
        cut = cuda_cut_runs(r, n, CUDA_PAIRED(type));
    return cut.rows != 0 ? cut : cuda_cut_blocks(cuda_block_bytes(type), n, pitch, matrix_rows);
}

/* Were rows cut by blocks? Those that can be are cut into runs, which are whole pieces of 16 bytes; of MXFP4 there are none. */
K_FN bool cuda_cut_is_blocks(dtype type, cuda_cut c)
{
    return cuda_block_bytes(type) != 0 && (cuda_lane_run_of(type).cols == 0 || c.bytes % 16 != 0);
}

/* What a chunk takes in a slot. */
K_FN int64_t cuda_chunk_bytes(dtype type, cuda_cut c)
{
    const int64_t bytes = (int64_t)c.rows * c.bytes;
    return cuda_cut_is_blocks(type, c) ? (bytes + RING_SKEW) / 16 * 16 : bytes;
}

/* x in shared memory: floats, or blocks of 8 bits. */
K_FN int64_t cuda_ring_x_bytes(dtype type, int64_t n)
{
    const bool runs = cuda_lane_run_of(type).cols != 0;
    if (cuda_block_bytes(type) != 0 && (!runs || n % RING_X_COLS != 0))
        return n / 32 * RING_X_SMALL;
    return runs ? (n + RING_X_COLS - 1) / RING_X_COLS * RING_X_BLOCK : (n + 7) / 8 * 32;
}

/* What a warp has for chunks of experts. */
K_FN int64_t cuda_expert_chunks(dtype type, int64_t n, int64_t matrix_rows)
{
    const int64_t block = cuda_block_bytes(type);
    if (cuda_is_halves(type))
        return EXPERT_AHEAD * cuda_chunk_bytes(type, cuda_cut_halves(n));
    if (cuda_lane_run_of(type).cols == 0)
        return BLOCKS_AHEAD *
               cuda_chunk_bytes(type, cuda_cut_blocks(block, n, n / 32 * block, matrix_rows));
    return EXPERT_AHEAD * (type == DT_Q5_K ? RING_SLOT_MOST : RING_SLOT);
}

/* x of all that have one; floats are long, and come by and by if they do not fit. */
K_FN int64_t cuda_expert_x_bytes(dtype type, int64_t n, int64_t vectors)
{
    const int64_t all = vectors * cuda_ring_x_bytes(type, n);
    return cuda_is_halves(type) && all > EXPERT_X ? EXPERT_X : all;
}

/* What one row needs for experts: x, and chunks. */
K_FN int64_t cuda_experts_one_bytes(const kargs *k)
{
    const int64_t n = k->size.experts.in;
    return cuda_expert_x_bytes(k->type[1], n, k->size.experts.x_vectors) + 16 +
           RING_WARPS * cuda_expert_chunks(k->type[1], n, k->size.experts.out);
}

K_FN int64_t cuda_ring_bytes(int64_t warps, int64_t slots, int64_t slot_bytes)
{
    return warps * slots * slot_bytes;
}

#endif
