/* state_parts.h - the bytes that a sequence has in the cells, one stretch of memory after the other. Private to runtime/kv.
 *
 * In the order of tables, entries, cells, parts: of floats those rows of each head that are in use, of other forms the whole
 * part. So sequences with the same spans and length have stretches of the same sizes in the same order. */
#ifndef WEFT_RUNTIME_KV_STATE_PARTS_H
#define WEFT_RUNTIME_KV_STATE_PARTS_H

#include "runtime/kv/state.h"

/* One stretch, in the memory that was bound; NULL where only sizes are asked for. */
typedef weft_status state_part_fn(void *ctx, weft_diag *dg, char *at, size_t bytes);

/* Of a sequence of `length` tokens that has, or would have, these spans; seq -1: sizes alone. */
weft_status state_parts_each(weft_diag *dg, const state *st, int64_t seq, const state_span *spans,
                             int64_t length, state_part_fn *fn, void *ctx) WEFT_MUST_USE;

#endif
