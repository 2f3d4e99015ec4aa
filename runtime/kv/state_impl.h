/* state_impl.h - the inside of a state, for the files state*.c.
 *
 * Entries of tables by the length of a sequence, with P = page_tok and last[] of the group:
 *
 *     b(k, L)  = floor((L - last[k - 1]) / P), at least 0: before it, pages are in tier k or beyond once L tokens are there
 *     upper    = where the entries of tier k end at length L: b(k, L); of tier 0 all, ceil(L / P)
 *     lower    = the first one that tier k has to have: that from which on tier k + 1 has none yet, or what the window shows
 *
 * The next token, at position L, sees in tier k some of [lower, b(k, L + 1)), and the conversion to tier k + 1 reads
 * entries from lower on. */
#ifndef WEFT_RUNTIME_KV_STATE_IMPL_H
#define WEFT_RUNTIME_KV_STATE_IMPL_H

#include "runtime/base/intmath.h"
#include "runtime/kv/pages.h"
#include "runtime/kv/state.h"

/* What a table of a sequence was before state_reserve_each. */
typedef struct {
    int64_t first, n;
    int64_t made;   /* entries from it on are new */
    int32_t shared; /* the page that was replaced by a copy; -1: none */
} mark;

/* Cells that keep the same rows in the same tiers. */
typedef struct {
    plan_cell_layout layout;
    int64_t keep; /* rows behind a sequence's end that stay; n_ctx: all */
    int64_t seen; /* of those, how many the next token may see */
    int64_t page_tok;
    int64_t pinned; /* entries that stay in tier 0 */
    kpolicy kv;
    int32_t table; /* of tier 0; the other tiers' follow */
} cell_group;

/* The pages of a tier of a group. */
typedef struct {
    cell_group *g;
    int32_t tier;
    page_pool pool;
    mark *marks;       /* [n_seq] */
    size_t page_bytes; /* of all its cells */
    int64_t lent;      /* state_spans_fit: what sequence 0 had as `stays` */
} cell_table;

/* Who holds pages is numbered: sequences first, then prefixes. */
struct state {
    int64_t n_seq, n_prefix, n_ctx, n_tok_max;
    int n_cell;
    int32_t n_group, n_table;
    size_t bytes, table_bytes;
    kcell *cells;                /* [n_cell] */
    size_t (*at)[K_TIERS_MAX];   /* [n_cell]: where the pages of each tier begin in the memory */
    int32_t *where;              /* [n_cell]: in which memory; one: 0 */
    const plan_cell *plan_cells; /* [n_cell] */
    const char **names;          /* [n_cell] */
    cell_group *groups;          /* [n_group] */
    cell_table *tables;          /* [n_table] */
    int64_t *length;             /* [n_seq + n_prefix]: tokens committed */
    state_copy *copy;
    void *copy_ctx;
    arena *home;
};

/* b(k, L); 0 of the tier after the last. */
static inline int64_t tier_begin(const cell_group *g, int32_t tier, int64_t length)
{
    if (tier >= g->kv.n_tier)
        return 0;
    int64_t rows = length - g->kv.tier[tier - 1].last;
    return rows > 0 ? rows / g->page_tok : 0;
}

/* Entries of a table that a holder of `length` tokens has, or gave back: up to this one. What became coarser under another
 * policy stays so. */
static inline int64_t table_upper(const cell_table *t, int64_t holder, int64_t length)
{
    const cell_group *g = t->g;
    if (t->tier == 0)
        return i64_ceil_div(length, g->page_tok);
    int64_t n = tier_begin(g, t->tier, length), stays = t[-1].pool.tables[holder].stays;
    int64_t whole = length / g->page_tok;
    stays = stays < whole ? stays : whole;
    return stays > n ? stays : n;
}

/* What a ring, and the tiers of pinned pages, may give back: entries before it. */
static inline int64_t table_behind(const cell_table *t, int64_t length)
{
    int64_t ring = length > t->g->keep ? (length - t->g->keep) / t->g->page_tok : 0;
    return t->tier > 0 && t->g->pinned > ring ? t->g->pinned : ring;
}

/* W1403 unless there is such a sequence. */
weft_status state_check_seq(weft_diag *dg, const state *st, int64_t seq) WEFT_MUST_USE;
/* Rows [first, n) of a page of tier 0 to the same place of another page. */
weft_status state_copy_rows(weft_diag *dg, const state *st, const kcell *c, int32_t from,
                            int32_t to, int64_t first, int64_t n) WEFT_MUST_USE;
/* Can a holder be cut to `length` tokens so that the next one sees what it should? Else out_entry, unless NULL, is the first
 * entry that is missing. */
bool table_can_keep(const cell_table *t, int64_t holder, int64_t length, int64_t *out_entry);
int64_t state_holder_keepable(const state *st, int64_t holder, int64_t length);
/* Let a holder hold the first `length` tokens of another one, which can be kept, and nothing else. */
void state_share(state *st, int64_t from, int64_t to, int64_t length);
/* Give back what is beyond `length` tokens. */
void state_cut(state *st, int64_t holder, int64_t length);
/* Let a sequence have entry `entry` of tier 0 for itself, with its first n_row rows; where it is shared there is a free page. On failure
 * nothing has changed. */
weft_status state_own_page(weft_diag *dg, state *st, cell_table *t, int64_t seq, int64_t entry,
                           int64_t n_row) WEFT_MUST_USE;
/* The most pages of a table that a call can need. */
int64_t state_pages_most(const state *st, const cell_table *t);

#endif
