/* ring_size.h - how ring_cuda.cuh cuts rows of weights into chunks, and the bytes of a ring; for the kernels and the host. */
#ifndef WEFT_KERNELS_CUDA_RING_SIZE_H
#define WEFT_KERNELS_CUDA_RING_SIZE_H

#include "kernels/kernels.h"

enum {
    RING_WARPS = 8,   /* of a block that multiply, at most, */
    RING_COPIERS = 2, /* and that copy for them */
    RING_SLOT = 4608,      /* bytes of a chunk, at most, */
    RING_SLOT_MOST = 5632, /* but of Q5_K */
    RING_SLOTS = 6,   /* chunks of a warp that are under way, at most; */
    RING_SLOTS_LEAST = 1,
    EXPERT_AHEAD = 2,  /* chunks of a warp under way that no ring brings (experts_runs_cuda.cuh) */
    RING_SEGMENTS = 8, /* of a phase that a block knows, at most */
    RING_X_COLS = 256, /* 8-bit activations: columns of a block, */
    RING_X_BLOCK =
        336, /* and its bytes: codes, sums of 32 and of 16 of them, a scale; 21 times 16: so blocks lie in
                            different banks */
    RING_X_SUMS = 256,   /* i16 [8] */
    RING_X_HALVES = 272, /* i16 [16] */
    RING_X_SCALE = 304
};

/* A chunk: `bytes` of each of `rows` rows. `chunks` of them have all columns of these. rows 0: they cannot be cut. */
typedef struct {
    uint16_t rows, chunks;
    uint32_t bytes;
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

/* 16-bit numbers: two rows, and as many columns, of a thousand or so, as fit into the row a number of times. */
K_FN cuda_cut cuda_cut_halves(int64_t n)
{
    int64_t chunks = (n + 1023) / 1024;
    while (chunks <= n / 256 && (n % chunks != 0 || n / chunks % 8 != 0))
        chunks++;
    if (n <= 0 || n % 8 != 0 || chunks > (n > 256 ? n / 256 : 1) || chunks > UINT16_MAX)
        return K_OF(cuda_cut){0, 0, 0};
    return K_OF(cuda_cut){2, (uint16_t)chunks, (uint32_t)(n / chunks * 2)};
}

/* As many lanes to a row as divide its runs. */
K_FN cuda_cut cuda_cut_runs(cuda_lane_run r, int64_t n)
{
    int64_t runs = n / r.cols, lanes = 1;
    while (lanes < 32 && runs % (2 * lanes) == 0)
        lanes *= 2;
    if (n % RING_X_COLS != 0 || n <= 0 || lanes * r.bytes % 16 != 0 || runs / lanes > UINT16_MAX)
        return K_OF(cuda_cut){0, 0, 0};
    return K_OF(cuda_cut){(uint16_t)(32 / lanes), (uint16_t)(runs / lanes),
                          (uint32_t)(lanes * r.bytes)};
}

/* Of a linear's rows. Where they begin is another matter: at multiples of 16 bytes, or they cannot be copied. */
K_FN cuda_cut cuda_cut_of(dtype type, int64_t n, int64_t pitch)
{
    cuda_lane_run r = cuda_lane_run_of(type);
    bool halves = type == DT_BF16 || type == DT_F16;
    if (pitch % 16 != 0 || (!halves && r.cols == 0))
        return K_OF(cuda_cut){0, 0, 0};
    return halves ? cuda_cut_halves(n) : cuda_cut_runs(r, n);
}

/* x in shared memory: floats, or blocks of 8 bits. */
K_FN int64_t cuda_ring_x_bytes(dtype type, int64_t n)
{
    return cuda_lane_run_of(type).cols == 0 ? (n + 7) / 8 * 32
                                            : (n + RING_X_COLS - 1) / RING_X_COLS * RING_X_BLOCK;
}

/* What a warp has for chunks of experts. */
K_FN int64_t cuda_expert_chunks(dtype type)
{
    return EXPERT_AHEAD * (type == DT_Q5_K ? RING_SLOT_MOST : RING_SLOT);
}

/* What one row needs for experts: x of each that has one, and chunks. */
K_FN int64_t cuda_experts_one_bytes(const kargs *k)
{
    const int64_t x = cuda_ring_x_bytes(k->type[1], k->size.experts.in);
    return k->size.experts.x_vectors * x + 16 + RING_WARPS * cuda_expert_chunks(k->type[1]);
}

K_FN int64_t cuda_ring_bytes(int64_t warps, int64_t slots, int64_t slot_bytes)
{
    return warps * slots * slot_bytes;
}

#endif
