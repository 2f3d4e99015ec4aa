/* attend_metal_size.h - how attend.msl cuts its work into units, and its scratch; for the kernel and for the table. */
#ifndef WEFT_KERNELS_METAL_ATTEND_METAL_SIZE_H
#define WEFT_KERNELS_METAL_ATTEND_METAL_SIZE_H

#ifdef __METAL_VERSION__
#define METAL_SIZE_FN static inline
enum { ATTEND_STRETCHES = 16, ATTEND_PAD = 16 }; /* c/attend_panels_size.h */
#else
#include "kernels/c/attend_panels_size.h"
#define METAL_SIZE_FN K_FN
#endif

enum {
    METAL_KEYS = 32,    /* positions computed together: a simdgroup's lanes */
    METAL_HEADS = 8,    /* query heads of a unit at most */
    METAL_QUERIES = 32, /* vectors of a unit at most, where a call has many rows */
    METAL_FEW = 16,     /* rows of calls in which each has units of its own */
    METAL_STRETCH = 256 /* positions of a stretch: so many, or 2, 4, .. times that */
};

typedef struct {
    int32_t group;    /* query heads to a head of the cell */
    int32_t heads;    /* of a unit */
    int32_t parts;    /* units to a head of the cell */
    int32_t rows;     /* of a unit */
    int32_t k, v;     /* floats of a key and a value in scratch */
    int32_t query;    /* floats of a query: vector, weights, two sums and five numbers */
    int32_t position; /* of a position of a block: key and value */
} metal_attend_size;

METAL_SIZE_FN metal_attend_size metal_attend_size_of(int32_t rows, int32_t heads,
                                                     int32_t cell_heads, int32_t k, int32_t v,
                                                     bool latent)
{
    metal_attend_size s;
    s.group = heads / cell_heads;
    s.parts = (s.group + METAL_HEADS - 1) / METAL_HEADS;
    s.heads = (s.group + s.parts - 1) / s.parts;
    s.rows = rows <= METAL_FEW || s.heads > METAL_QUERIES ? 1 : METAL_QUERIES / s.heads;
    s.k = (k + 3) / 4 * 4;
    s.v = (v + 3) / 4 * 4;
    s.query = s.k + METAL_KEYS + 2 * s.v + 5;
    s.position = s.k + (latent ? 0 : s.v);
    return s;
}

/* Positions of a stretch of a row at `pos`; there are no more than ATTEND_STRETCHES. */
METAL_SIZE_FN int32_t metal_stretch_len(int32_t pos)
{
    int32_t len = METAL_STRETCH;
    while (pos / len >= ATTEND_STRETCHES)
        len *= 2;
    return len;
}

#ifndef __METAL_VERSION__
K_FN metal_attend_size metal_attend_size_in(const kargs *k)
{
    return metal_attend_size_of((int32_t)k->size.attend.rows, (int32_t)k->size.attend.heads,
                                (int32_t)k->cell->heads, (int32_t)k->cell->k, (int32_t)k->cell->v,
                                k->cell->latent);
}

K_FN int64_t metal_attend_units(const kargs *k)
{
    metal_attend_size s = metal_attend_size_in(k);
    int64_t units = (k->size.attend.rows + s.rows - 1) / s.rows * k->cell->heads * s.parts;
    return k->choice.attend.part == ATTEND_MERGE    ? k->size.attend.rows * k->size.attend.heads
           : k->choice.attend.part == ATTEND_STATES ? units * ATTEND_STRETCHES
                                                    : units;
}

K_FN int64_t metal_attend_bytes(const kargs *k)
{
    metal_attend_size s = metal_attend_size_in(k);
    if (k->choice.attend.part == ATTEND_MERGE)
        return 0;
    return (METAL_KEYS * s.position + s.rows * s.heads * s.query) * (int64_t)sizeof(float);
}
#endif

#endif
