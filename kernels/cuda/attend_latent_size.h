/* attend_latent_size.h - how attend_latent_cuda.cuh cuts its work into units, and its scratch; for the kernel and for the table. */
#ifndef WEFT_KERNELS_CUDA_ATTEND_LATENT_SIZE_H
#define WEFT_KERNELS_CUDA_ATTEND_LATENT_SIZE_H

#include "kernels/cuda/attend_cuda_size.h"

/* Columns go by sixteens, to each part in turn. In calls of one row units are smaller, unless there are many, so that more blocks have some,
 * and tiles are fewer, so that there is room for weights that are prefetched. */
enum {
    LATENT_PARTS = 8,   /* of the columns, each of which is a warp's */
    LATENT_HEADS = 16,  /* query heads of a unit at most, */
    LATENT_SPREAD = 64, /* or half of that, of one row with so many */
    LATENT_COLS = 16 * LATENT_PARTS,
    LATENT_STEPS = (CUDA_LATENT_K + LATENT_COLS - 1) / LATENT_COLS, /* sixteens of a part, */
    LATENT_BLOCKS = CUDA_LATENT_V / LATENT_COLS,                    /* and of values */
    LATENT_SLOTS = 4,                                               /* tiles in shared memory, */
    LATENT_SLOTS_ONE = 2,                                           /* of one row */
    LATENT_PITCH = CUDA_LATENT_TILE + 8, /* between heads, whose numbers so have other banks */
};

K_FN int64_t latent_heads_most(const kargs *k)
{
    const bool spread = k->size.attend.rows == 1 && k->size.attend.heads <= LATENT_SPREAD;
    return spread ? LATENT_HEADS / 2 : LATENT_HEADS;
}

/* Eights of query heads of a unit. */
K_FN int64_t latent_eights(int64_t heads)
{
    return (heads + 7) / 8;
}

K_FN int64_t latent_slots(const kargs *k)
{
    return k->size.attend.rows == 1 ? LATENT_SLOTS_ONE : LATENT_SLOTS;
}

/* Bytes of a row in a tile, filled up with zeros: 16 bytes of eight rows that are read at once are in different banks. */
K_FN int64_t latent_row_bytes(const kcell *c)
{
    return (c->k + 63) / 64 * 128;
}

K_FN int64_t latent_tiles_bytes(const kargs *k)
{
    return latent_slots(k) * CUDA_LATENT_TILE * latent_row_bytes(k->cell);
}

/* Of a block's heads: sums of logits by parts of the columns, weights as up to three numbers of 16 bits, and a few floats. */
K_FN int64_t latent_sums_bytes(int64_t heads)
{
    return LATENT_PARTS * latent_eights(heads) * 8 * LATENT_PITCH * (int64_t)sizeof(float);
}

K_FN int64_t latent_weights_bytes(int64_t heads)
{
    return 3 * latent_eights(heads) * 8 * LATENT_PITCH * (int64_t)sizeof(uint16_t);
}

K_FN int64_t latent_bytes(const kargs *k, int64_t heads)
{
    const int64_t merge = 5 * latent_eights(heads) * 8 * (int64_t)sizeof(float);
    return latent_tiles_bytes(k) + latent_sums_bytes(heads) + latent_weights_bytes(heads) + merge;
}

#endif
