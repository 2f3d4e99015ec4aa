/* attend_neon_size.h - how attend_neon.c cuts its work into units, and its scratch; for it and for the table. */
#ifndef WEFT_KERNELS_NEON_ATTEND_NEON_SIZE_H
#define WEFT_KERNELS_NEON_ATTEND_NEON_SIZE_H

#include "kernels/kernels.h"

enum {
    ATTEND_KEYS = 64, /* positions computed together */
    ATTEND_HEADS =
        8, /* query heads of a unit at most: the rest of a head of the cell is another's */
    ATTEND_QUERIES = 64, /* vectors of a unit, about: so many rows that each brings its heads */
};

typedef struct {
    int64_t group; /* query heads to a head of the cell */
    int64_t heads; /* of a unit */
    int64_t parts; /* units to a head of the cell */
    int64_t rows;  /* of a unit */
    int64_t v;     /* columns of a sum, a multiple of 4 */
} attend_neon_size;

static inline attend_neon_size attend_neon_size_of(const kargs *k)
{
    attend_neon_size s = {.group = k->n[1] / k->cell->heads, .v = (k->cell->v + 3) / 4 * 4};
    s.parts = (s.group + ATTEND_HEADS - 1) / ATTEND_HEADS;
    s.heads = (s.group + s.parts - 1) / s.parts;
    s.rows = s.heads < ATTEND_QUERIES ? ATTEND_QUERIES / s.heads : 1;
    return s;
}

static inline int64_t attend_neon_units(const kargs *k)
{
    attend_neon_size s = attend_neon_size_of(k);
    return (k->n[0] + s.rows - 1) / s.rows * k->cell->heads * s.parts;
}

/* Weights and sums of each query, a block of keys and values as floats. */
static inline size_t attend_neon_bytes(const kargs *k)
{
    attend_neon_size s = attend_neon_size_of(k);
    int64_t queries = s.rows * s.heads;
    bool copied = k->cell->type != DT_F32;
    int64_t floats = queries * (ATTEND_KEYS + s.v + 2);
    if (copied)
        floats += ATTEND_KEYS * (k->cell->k + (k->cell->latent ? 0 : k->cell->v));
    return (size_t)floats * sizeof(float);
}

#endif
