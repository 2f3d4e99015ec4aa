/* batch.h - the rows of one call, checked, in the form that kernels read.
 *
 * Any mix of rows of several sequences is a batch: a prompt, one token each of many sequences, or
 * both. The rows of one sequence stand in the order of their positions, which go on from where the
 * sequence is; rows of different sequences may alternate. All memory is taken in batch_create. */
#ifndef WEFT_RUNTIME_EXEC_BATCH_H
#define WEFT_RUNTIME_EXEC_BATCH_H

#include "compiler/plan.h"
#include "runtime/exec/adapters.h"
#include "runtime/kv/state.h"

typedef struct {
    int32_t id;   /* token */
    int32_t pos;  /* in its sequence, from 0 */
    int32_t seq;  /* a sequence of the state */
    int32_t slot; /* adapter slot; 0: the mix of its sequence */
    bool out;     /* is its row of the outputs [R] wanted? */
} batch_row;

typedef struct batch batch;

/* For calls of p on st, both of which must outlive the batch. */
batch *batch_create(const plan *p, const state *st);
void batch_destroy(batch *b); /* NULL is fine */

/* Let rows use the adapters of a session, which must outlive it; without, they have none. */
void batch_use(batch *b, adapters *lora);

/* Take these rows, or say which one cannot be: W1402 its position, W1403 its sequence, W1404 past the
 * context, W1405 its token, W1406 one too many, W1407 its adapter slot. Changes no state. */
weft_status batch_fill(weft_diag *dg, batch *b, const batch_row *rows, int64_t n) WEFT_MUST_USE;

/* Take the page tables of its sequences, whose pages are reserved by now. */
void batch_take_pages(batch *b);

/* What the last successful batch_fill made; at the same address for good, valid until the next. */
const kbatch *batch_view(const batch *b);
/* Sequence i of that call: its number in the state, and how many rows it has. */
int64_t batch_seq(const batch *b, int64_t i);
int64_t batch_seq_rows(const batch *b, int64_t i);
const int32_t *batch_seqs(const batch *b); /* of all of them: [n_seq] */
const int32_t *batch_seq_counts(const batch *b);

size_t batch_view_bytes(const batch *b); /* of the view of any call, at most */
size_t batch_bytes(const batch *b);      /* memory it holds */

#endif
