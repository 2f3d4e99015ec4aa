/* dot_size.h - the tiles of dot_cuda.cuh and the lists of experts_cuda.cuh, and their bytes of scratch; for the kernels and
 * for the table. */
#ifndef WEFT_KERNELS_CUDA_DOT_SIZE_H
#define WEFT_KERNELS_CUDA_DOT_SIZE_H

#include <stdint.h>

enum {
    TILE_W = 64,   /* rows of weights of a tile; of activations as many with 256 threads */
    TILE_K = 32,   /* columns at a time */
    TILE_EACH = 4, /* of either, of a thread */
    TILE_PITCH = TILE_W + 4, /* floats: rows of a column, whole 16 bytes */
    CUDA_TILES_BYTES = 2 * TILE_K * TILE_PITCH * 4,
    CHOICES_MAX = 4096, /* of experts that are sorted at a time */
};

/* Tiles, choices in order of their experts, and for each expert where its choices begin and end. */
static inline int64_t cuda_experts_bytes(int64_t experts)
{
    return CUDA_TILES_BYTES + (CHOICES_MAX + 2 * experts + 1) * (int64_t)sizeof(int32_t);
}

#endif
