/* state.h - what sequences keep between calls: pages of a fixed number of tokens, and who has which.
 *
 *     state_create(dg, p, &opt, &st);             tables; no memory for the cells yet
 *     state_bind(st, base);                       state_bytes(st) of it, the caller's, on any device
 *     state_reserve(dg, st, seq, n);              pages for n more tokens, or nothing changes
 *     ... a run that appends them ...
 *     state_commit(st, seq, n);                   now they count
 *     state_truncate(dg, st, seq, length);        exact: as if the tokens beyond had never been
 *
 * All cells share one numbering: page p is the same page_tok tokens of a sequence in every cell, so a
 * sequence has one page table, whatever the model. Pages are counted by reference, so that sequences
 * can come to share them. Everything is sized in state_create; nothing later allocates.
 * Not thread-safe: one thread works with a state at a time. */
#ifndef WEFT_RUNTIME_KV_STATE_H
#define WEFT_RUNTIME_KV_STATE_H

#include "compiler/plan.h"
#include "runtime/base/diag.h"

typedef struct state state;

enum { STATE_PAGE_TOK = 64 }; /* tokens in a page unless the caller says otherwise */

typedef struct {
    int64_t n_seq;    /* sequences, numbered from 0; at least 1 */
    int64_t n_ctx;    /* tokens each may hold; at least 1 */
    int64_t page_tok; /* 0: STATE_PAGE_TOK */
    int64_t n_page;   /* 0: enough for all sequences at full length */
    dtype type;       /* of what cells store: DT_F32 */
} state_options;

/* W1406 for a count that is out of range, W0902 for a size that is. */
weft_status state_create(weft_diag *dg, const plan *p, const state_options *opt,
                         state **out_st) WEFT_MUST_USE;
void state_destroy(state *st); /* NULL is fine */

size_t state_bytes(const state *st);       /* memory that the cells need, aligned to PLAN_ALIGN */
size_t state_table_bytes(const state *st); /* memory that the tables take */
void state_bind(state *st, void *base);    /* the memory; it must outlive the state */

/* One for each cell of the plan, once bound. */
const kcell *state_cells(const state *st);

/* Is there such a sequence? The functions below that take no diag require it. */
bool state_has(const state *st, int64_t seq);
int64_t state_count(const state *st);               /* n_seq */
int64_t state_length(const state *st, int64_t seq); /* tokens it holds */
int64_t state_pages_free(const state *st);
int64_t state_context(const state *st); /* n_ctx */

/* The page table of a sequence: entry i is the page of positions i * page_tok and on. It stays at this
 * address; entries beyond what was reserved mean nothing. */
const int32_t *state_pages(const state *st, int64_t seq);

/* Make room for n_new tokens after those it holds. W1403: no such sequence; W1404: more than n_ctx;
 * W1401: not enough free pages. On failure nothing has changed. */
weft_status state_reserve(weft_diag *dg, state *st, int64_t seq, int64_t n_new) WEFT_MUST_USE;
/* n_new of the reserved tokens are there now. */
void state_commit(state *st, int64_t seq, int64_t n_new);
/* Give back what was reserved and not committed. */
void state_release(state *st, int64_t seq);
/* Keep the first `length` tokens. W1403; W1402 if it does not hold that many. */
weft_status state_truncate(weft_diag *dg, state *st, int64_t seq, int64_t length) WEFT_MUST_USE;

#endif
