/* lora_rows.h - what the kernels of adapters share: which rows of a call use which slot, and what a unit is.
 *
 * A unit of lora_down is a few rows of A of one slot, for a number of rows of the call; so each A is read once by a call of
 * few rows, whoever uses it, and there are no units where nobody does. */
#ifndef WEFT_KERNELS_LORA_ROWS_H
#define WEFT_KERNELS_LORA_ROWS_H

#include "kernels/kernels.h"

enum { LORA_RANKS = 4, LORA_ROWS = 64 }; /* of a unit: rows of A, and of the call */

K_FN lora_shape lora_shape_of(const kargs *k)
{
    lora_shape s;
    s.kind = (lora_kind)k->choice.lora.kind;
    s.in = k->size.lora.in;
    s.out = k->size.lora.out;
    s.parts = k->size.lora.parts;
    s.rank = k->size.lora.rank;
    return s;
}

/* The mix of row `row` of a step. */
K_FN const kmix *lora_mix_of(const kargs *k, int64_t row)
{
    static const kmix none = {0};
    if (!k->lora)
        return &none;
    int64_t at = k->choice.lora.rows == LORA_OF_ASKED  ? kbatch_at(k->batch, KBATCH_OUT)[row]
                 : k->choice.lora.rows == LORA_OF_SEQS ? kbatch_at(k->batch, KBATCH_FIRST)[row]
                                                       : row;
    return klora_mix(k->lora, kbatch_at(k->batch, KBATCH_SLOT)[at]);
}

/* The place of a slot in a mix, or -1. */
K_FN int lora_place(const kmix *m, int32_t slot)
{
    for (int i = 0; i < m->n; i++)
        if (m->slot[i] == slot)
            return i;
    return -1;
}

/* The part of the weight that vector v of a row takes. */
K_FN int64_t lora_part(const kargs *k, int64_t row, int64_t v)
{
    if (k->choice.lora.kind == LORA_EXPERTS)
        return ((const int32_t *)k->in[2])[row * k->size.lora.vectors + v];
    return k->choice.lora.kind == LORA_HEAD_LINEAR ? v : 0;
}

/* The rank that a slot has at the step's site. */
K_FN int64_t lora_rank_of(const kargs *k, int32_t slot)
{
    return klora_ranks_of(k->lora, k->choice.lora.site)[slot];
}

/* Groups of LORA_RANKS rows of A that the call uses. */
K_FN int64_t lora_groups(const kargs *k)
{
    int64_t n = 0;
    for (int64_t i = 0; k->lora && i < k->lora->n_used; i++)
        n += (lora_rank_of(k, klora_used_of(k->lora)[i]) + LORA_RANKS - 1) / LORA_RANKS;
    return n;
}

K_FN int64_t lora_units(const kargs *k)
{
    return (k->n[0] + LORA_ROWS - 1) / LORA_ROWS * lora_groups(k);
}

#endif
