/* state.h - what sequences keep between calls: pages of a fixed number of tokens, and who has which.
 *
 *     state_create(dg, p, &opt, &st);             tables; no memory for the cells yet
 *     state_bind(st, base, copy, ctx);            state_bytes(st) of it, the caller's, on any device
 *     state_reserve(dg, st, seq, n);              pages for n more tokens, or nothing changes
 *     ... a run that appends them ...
 *     state_commit(st, seq, n);                   now they count
 *     state_truncate(dg, st, seq, length);        exact: as if the tokens beyond had never been
 *     state_fork(dg, st, from, to, length);       two sequences with one beginning
 *
 * Cells that keep the same rows share a page table: page p of a table is the same page_tok tokens of a
 * sequence in each of its cells. There is one for the paged cells, one for the contiguous ones, whose
 * pages hold the whole context in multiples of STATE_PAGE_TOK tokens, and one for each number of rows that rings keep (plan_cell.keep). Each
 * has pages and numbers of its own. A page of a ring goes back when all its rows are further behind the
 * sequence's end than that; whoever wants older rows again gets W1408.
 *
 * Pages are counted by reference. A fork shares them, the last one too if it is not full, and
 * state_reserve copies it for whoever writes first. Everything is sized in state_create; nothing later
 * allocates. Not thread-safe: one thread works with a state at a time. Between reserving and committing
 * or releasing there is nothing but the run. */
#ifndef WEFT_RUNTIME_KV_STATE_H
#define WEFT_RUNTIME_KV_STATE_H

#include "compiler/plan.h"
#include "runtime/base/diag.h"

typedef struct state state;

enum { STATE_PAGE_TOK = 64 }; /* tokens in a page unless the caller says otherwise */

typedef struct {
    int64_t n_seq;     /* sequences, numbered from 0; at least 1 */
    int64_t n_ctx;     /* tokens each may hold; at least 1 */
    int64_t page_tok;  /* of paged cells and rings; 0: STATE_PAGE_TOK */
    int64_t n_page;    /* of the paged cells; 0: enough for all sequences at full length */
    dtype type;        /* of what cells store: DT_F32, DT_F16 or DT_BF16 */
    int64_t n_prefix;  /* prefixes, numbered from 0 */
    const kpolicy *kv; /* what cells store by age; NULL: all in `type` */
} state_options;

/* Each tier of a cell has a table and pages of its own. Those of all tiers but the last, and of rings, are exactly as many
 * as calls of p->n_tok_max rows can need; n_page is the number of the last tier's.
 *
 * Contiguous cells have a page for each sequence. Rings have exactly as many as calls of p->n_tok_max
 * rows can need: m rows touch (m + 2 * page_tok - 2) / page_tok pages where they begin at the worst
 * place, and a sequence has `keep` rows and its part of the call's. So neither ever runs out.
 * W1406 for a count or type that is out of range, W0902 for a size that is. */
weft_status state_create(weft_diag *dg, const plan *p, const state_options *opt,
                         state **out_st) WEFT_MUST_USE;
void state_destroy(state *st); /* NULL is fine */

size_t state_bytes(const state *st);       /* memory that the cells need, aligned to PLAN_ALIGN */
size_t state_table_bytes(const state *st); /* memory that the tables take */

/* Copies within the memory; the two parts do not overlap. */
typedef weft_status state_copy(void *ctx, weft_diag *dg, void *to, const void *from, size_t bytes);
/* The memory, which must outlive the state, and how to copy in it; NULL: it is ordinary memory. */
void state_bind(state *st, void *base, state_copy *copy, void *ctx);

/* Cells in n memories, as those of several devices: where[i] is that of cell i. Called before binding; out_bytes is what each takes,
 * state_bytes together. Then each has a base, and `copy` gets addresses of the same memory. */
void state_divide(state *st, const int32_t *where, int32_t n, size_t *out_bytes);
void state_bind_each(state *st, void *const *base, state_copy *copy, void *ctx);

/* Let pages cross from tier to tier at other ages from the next call on. What is coarser already stays so, until the sequence
 * is cut to less. W1415: another list of forms, or more pages in a tier than there are; then nothing has changed. */
weft_status state_change(weft_diag *dg, state *st, const kpolicy *kv) WEFT_MUST_USE;

/* One for each cell of the plan, once bound. */
const kcell *state_cells(const state *st);
int state_cell_count(const state *st);

/* Is there such a sequence? The functions below that take no diag require it. */
bool state_has(const state *st, int64_t seq);
int64_t state_count(const state *st);               /* n_seq */
int64_t state_length(const state *st, int64_t seq); /* tokens it holds */
int64_t state_context(const state *st);             /* n_ctx */

/* Page tables: how many kinds there are, kcell.table being one; and the pages of a kind. */
int32_t state_tables(const state *st);
int64_t state_pages_count(const state *st, int32_t table);
int64_t state_pages_free(const state *st, int32_t table);
size_t state_page_bytes(const state *st, int32_t table);       /* of a page, in all its cells */
kpolicy_tier state_table_tier(const state *st, int32_t table); /* whose pages they are */
/* The table of the paged cells, that of their last tier; -1: there are none, as where each sequence has its cells in one piece. */
int32_t state_paged_table(const state *st);
int64_t state_page_tokens(const state *st, int32_t table);
int64_t state_page_entries(const state *st,
                           int32_t table); /* of a sequence that fills the context */
/* That of a sequence: entry i is the page of positions i * page_tok and on, or -1 where it holds none; n of them
 * at most, which are the same as long as the version is. */
typedef struct {
    const int32_t *page;
    int64_t n;
    uint64_t version;
    int64_t made; /* between reserving and committing: entries from it on are to be converted to */
} state_page_table;
state_page_table state_pages(const state *st, int32_t table, int64_t seq);

/* Make room for n_new tokens after those it holds. W1403: no such sequence; W1404: more than n_ctx;
 * W1401: not enough free pages; what copying a page that is shared may fail with. On failure nothing has
 * changed. */
weft_status state_reserve(weft_diag *dg, state *st, int64_t seq, int64_t n_new) WEFT_MUST_USE;
/* For each of n different sequences; all or nothing. */
weft_status state_reserve_each(weft_diag *dg, state *st, const int32_t *seq, const int32_t *n_new,
                               int64_t n) WEFT_MUST_USE;
/* n_new of the reserved tokens are there now. */
void state_commit(state *st, int64_t seq, int64_t n_new);
/* Could n_new tokens that were reserved be undone after state_commit, so that all is as it was before? */
bool state_can_undo(const state *st, int64_t seq, int64_t n_new);
/* Then do: they were the last that were committed. Gives back what was reserved since, too. */
void state_undo(state *st, int64_t seq, int64_t n_new);
/* Give back what was reserved and not committed. A page that was copied stays a copy: the run may have
 * written to either. */
void state_release(state *st, int64_t seq);

/* Keep the first `length` tokens. W1403; W1402 if it does not hold that many; W1408 if a ring or a tier
 * no longer has what the next token would see. Cutting to 0 is always possible. On failure nothing has changed. */
weft_status state_truncate(weft_diag *dg, state *st, int64_t seq, int64_t length) WEFT_MUST_USE;
/* Let `to` hold the first `length` tokens of `from` and nothing else; what it held is dropped. Takes no
 * page and moves no row. Fails as state_truncate would for `from`. */
weft_status state_fork(weft_diag *dg, state *st, int64_t from, int64_t to,
                       int64_t length) WEFT_MUST_USE;
/* How many of its first `length` tokens truncate and fork can keep: all, or none because of a ring. */
int64_t state_keepable(const state *st, int64_t seq, int64_t length);

/* Let `to`, which holds `begin` tokens, hold rows [begin, end) of `from` behind them, at the same positions and exactly as they are. Whole
 * pages are shared; rows of the first one are copied where it begins within a page. Whether they mean the same behind other
 * rows is the caller's to know. W1403, W1402; W1408 where a ring has given back what the next token would see, or rows became coarser;
 * W1401. On failure nothing has changed. */
weft_status state_append_range(weft_diag *dg, state *st, int64_t from, int64_t to, int64_t begin,
                               int64_t end) WEFT_MUST_USE;

/* A prefix holds the pages of the beginning of a text without being a sequence: nothing is appended to it. All cells'
 * pages are held as they are at that length, so whoever takes it goes on exactly as the sequence that it came from
 * would. Its pages are those of the pools: where prefixes hold many, a reservation of the paged cells may find too few
 * (W1401), and some prefixes have to be dropped. Rings have pages for all prefixes, and contiguous cells are paged
 * where there are prefixes. */
int64_t state_prefixes(const state *st);
int64_t state_prefix_length(const state *st, int64_t prefix); /* 0: it holds nothing */
/* As state_keepable, of what state_take can give. */
int64_t state_prefix_keepable(const state *st, int64_t prefix, int64_t length);
/* Let a prefix hold the first `length` tokens of a sequence, or a sequence those of a prefix, and nothing else; `length` is
 * keepable. Takes no page and moves no row. */
void state_hold(state *st, int64_t seq, int64_t prefix, int64_t length);
void state_take(state *st, int64_t prefix, int64_t seq, int64_t length);
void state_drop(state *st, int64_t prefix); /* what it holds, if anything */
/* Pages that would be free without it; in all tables. Bytes of them too, unless NULL. */
int64_t state_prefix_alone(const state *st, int64_t prefix, size_t *out_bytes);
/* Pages that prefixes hold and no sequence does. */
void state_prefix_pages(const state *st, int64_t *out_n, size_t *out_bytes);
/* Pages of a table that sequences hold; and of each sequence, [n_seq], how many no other one holds. */
int64_t state_sequence_pages(const state *st, int32_t table, int64_t *out_alone);
/* Will the next row of a sequence take a copy of its last page, which another holder has too? */
bool state_shares_last(const state *st, int32_t table, int64_t seq);
/* Would state_reserve_each find pages? The sequences and counts are such that it may be called. Leaves all as it was. */
bool state_has_room(state *st, const int32_t *seq, const int32_t *n_new, int64_t n) WEFT_MUST_USE;

/* What a sequence has in a table: entries [first, n), and those that are pinned; what became coarser under another policy ends at
 * `stays`. */
typedef struct {
    int64_t first, n, stays;
} state_span;
/* How many entries before `first` it has too. */
int64_t state_span_pinned(const state *st, int32_t table, const state_span *s);
state_span state_span_of(const state *st, int32_t table, int64_t seq);
/* Could a sequence of `length` tokens have these, one for each table? Is there room for them, if seq gave back its own pages? */
bool state_spans_fit(state *st, const state_span *spans, int64_t length);
bool state_spans_room(const state *st, const state_span *spans, int64_t seq);
/* Let it hold `length` tokens in pages of its own, which are to be filled, and nothing else. The spans fit, and there is room. */
void state_place(state *st, int64_t seq, const state_span *spans, int64_t length);
/* A line for each cell: its name, sizes, forms, and what it keeps. State of one session can be put into another if they have the
 * same text. */
void state_describe(const state *st, strbuf *out);

#endif
