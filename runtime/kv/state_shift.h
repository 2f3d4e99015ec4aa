/* state_shift.h - takes rows out of the middle of a sequence; those behind move to other positions.
 *
 * What moves was computed while the rows that are taken out were there, and its keys are turned from one position to another after
 * they were rounded: so this is not what evaluating the shorter text would give, and is never called exact. */
#ifndef WEFT_RUNTIME_KV_STATE_SHIFT_H
#define WEFT_RUNTIME_KV_STATE_SHIFT_H

#include "runtime/kv/state_file.h"

/* How the keys of a cell are turned by their positions: pair i by position times freqs[i]. */
typedef struct {
    const float *freqs; /* NULL: it cannot be known, because of `why` */
    int64_t pairs;
    bool interleaved; /* pairs are neighbours, not half the pairs apart */
    const char *why;
} key_turn;

/* Take rows [begin, end) out of a sequence. turn: one for each cell. Where rows move: W1420 names a cell whose keys cannot be turned,
 * that is a ring or that has tiers; W1401 where pages are shared and there is none for a copy. W1403, W1402 for rows that are not there.
 * On failure nothing has changed; but if a copy fails the sequence is cut to `begin`. */
weft_status state_remove_range(weft_diag *dg, state *st, int64_t seq, int64_t begin, int64_t end,
                               const key_turn *turn, const state_copies *copy) WEFT_MUST_USE;

#endif
