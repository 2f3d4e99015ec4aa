/* chosen.h - the rows that chose an expert (experts, kernel_ops.def), so many at a time: kernels read the weights of each
 * expert once for all of them. */
#ifndef WEFT_KERNELS_C_CHOSEN_H
#define WEFT_KERNELS_C_CHOSEN_H

#include "kernels/kernels.h"

/* The choices of the rows that are asked for; `at` is the next one to look at. */
typedef struct {
    int64_t at, end;
} chosen_slots;

static inline chosen_slots chosen_of(const kargs *k, const kpart *part)
{
    return (chosen_slots){part->row * k->size.experts.slots, part->row_end * k->size.experts.slots};
}

/* Up to `most` of those who chose expert e: their activations and results. None are left where it returns 0. */
static inline int64_t chosen_next(const kargs *k, chosen_slots *s, int64_t e, int64_t most,
                                  const void **x, float **out)
{
    const int32_t *ids = k->in[2];               /* [rows, K] */
    bool x_each = k->size.experts.x_vectors > 1; /* every choice has an x of its own */
    int64_t n = 0;
    for (; s->at < s->end && n < most; s->at++) {
        if (ids[s->at] != e)
            continue;
        x[n] =
            (const char *)k->in[0] + (x_each ? s->at : s->at / k->size.experts.slots) * k->pitch[0];
        out[n++] = (float *)(void *)((char *)k->out[0] + s->at * k->out_pitch[0]);
    }
    return n;
}

/* The bias of expert e, [m] or NULL. */
static inline const float *chosen_bias(const kargs *k, int64_t e)
{
    return k->in[3] ? (const float *)(const void *)((const char *)k->in[3] + e * k->pitch[3])
                    : NULL;
}

#endif
