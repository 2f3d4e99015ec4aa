/* attend_size.h - the floats of scratch that attend_c.c divides up, for the kernel and for the table. */
#ifndef WEFT_KERNELS_C_ATTEND_SIZE_H
#define WEFT_KERNELS_C_ATTEND_SIZE_H

#include "kernels/kernels.h"

enum { ATTEND_BLOCK = 64 }; /* positions computed together */

typedef struct {
    int64_t group; /* query heads to a head of the cell */
    int64_t p;     /* floats of [group, block] */
    int64_t key;   /* [block, k], where the cell has other forms than f32 */
    int64_t value; /* [block, v], the same */
    int64_t sum;   /* [group, v] */
} attend_size;

static inline attend_size attend_size_of(const kargs *k)
{
    const kcell *c = k->cell;
    int64_t group = k->size.attend.heads / c->heads;
    bool keys = false, values = false;
    for (int i = 0; i < c->n_tier; i++) {
        keys = keys || c->tier[i].key != KFORM_F32;
        values = values || (!c->latent && c->tier[i].value != KFORM_F32);
    }
    return (attend_size){.group = group,
                         .p = group * ATTEND_BLOCK,
                         .key = keys ? ATTEND_BLOCK * c->k : 0,
                         .value = values ? ATTEND_BLOCK * c->v : 0,
                         .sum = group * c->v};
}

static inline size_t attend_bytes(const kargs *k)
{
    attend_size s = attend_size_of(k);
    return (size_t)(s.p + s.key + s.value + s.sum + 2 * s.group) * sizeof(float);
}

#endif
