/* exec_steps.h - what every executor does with the steps of a plan: operands to addresses, the sizes of a call, the phases
 * that have anything to do. Knows nothing of where memory is: addresses are only put together. */
#ifndef WEFT_RUNTIME_EXEC_EXEC_STEPS_H
#define WEFT_RUNTIME_EXEC_EXEC_STEPS_H

#include "runtime/exec/device.h"

/* Where things are, in the addresses that kernels are given. */
typedef struct {
    const void *(*weight)(const weights *w, int32_t i); /* of weights.h, by their number */
    const weights *w;
    char *arena;
    const char *consts;
    const kinstr *code;
    const kcell *cells;
    const klora *lora;
    const void *slots;
} exec_places;

/* The operands that each thread has for itself: bit i is in[i], bit K_IN_MAX + i is out[i]; and those that are arrays of the
 * batch: a plan_io, else -1. */
typedef struct {
    int8_t io[K_IN_MAX];
    uint32_t local, tile;
} exec_spaces;

/* Arguments of step s of bucket b, as of a call with the most rows; what is the batch's is NULL, of LOCAL and TILE operands
 * it is their offset. */
kargs exec_step_args(const plan *p, const plan_bucket *b, const plan_step *s,
                     const exec_places *at);
exec_spaces exec_step_spaces(const plan_step *s);

/* For a call of n_tok rows, whose batch is at this address; rows: by plan_rows. */
void exec_step_call(const plan_step *s, const int8_t *io, const kbatch *at, const int64_t *rows,
                    kargs *k);

/* Items that run without a barrier between them: one phase, and perhaps idle ones before it. */
typedef struct {
    int32_t first, end;
} item_span;

/* The first phase from item `from` on that has anything to do in a call with these units [n_item]; empty if none has. One
 * that is idle goes with the next, unless they stay apart. */
item_span exec_span_from(const plan *p, const plan_bucket *b, const int64_t *units, int32_t from,
                         bool apart);

/* Add what a call took: ns[i] of step i of each of n threads, whose numbers are `pitch` apart. */
void exec_times_add(step_time *times, const plan_bucket *b, const int64_t *rows, const uint64_t *ns,
                    size_t pitch, int n);

#endif
