/* state_range.c - rows of one sequence at the end of another, at the same positions: whole pages are shared, rows of the first
 * one are copied where it begins within a page.
 *
 * Rows are taken as they were appended, from tier 0. What of them is to be in a coarser tier is made of them by the next call, as if
 * that had appended them. */
#include "runtime/kv/state_impl.h"

#include <inttypes.h>

typedef struct {
    int64_t from, to, begin, end;
} range;

static weft_status check_range(weft_diag *dg, const state *st, const range *r)
{
    WEFT_TRY(state_check_seq(dg, st, r->from));
    WEFT_TRY(state_check_seq(dg, st, r->to));
    if (r->from == r->to)
        return weft_fail(dg, W1403, WEFT_NOWHERE,
                         "rows of sequence %" PRId64 " cannot follow themselves", r->from);
    if (r->begin < 0 || r->begin > r->end || r->end > st->length[r->from])
        return weft_fail(dg, W1402, WEFT_NOWHERE,
                         "sequence %" PRId64 " holds %" PRId64 " tokens; it has no rows %" PRId64
                         " to %" PRId64,
                         r->from, st->length[r->from], r->begin, r->end);
    if (st->length[r->to] != r->begin)
        return weft_fail(dg, W1402, WEFT_NOWHERE,
                         "sequence %" PRId64 " holds %" PRId64 " tokens; rows from %" PRId64
                         " on do not follow them",
                         r->to, st->length[r->to], r->begin);
    return WEFT_OK;
}

static cell_table *group_table(const state *st, int32_t group)
{
    return &st->tables[st->groups[group].table];
}

/* The first row of the range that is still there as it was appended. */
static int64_t row_there(const cell_table *t, const range *r)
{
    const page_table *tab = &t->pool.tables[r->from];
    int64_t kept = tab->first * t->g->page_tok;
    if (r->end <= t->pool.pinned * t->g->page_tok)
        kept = 0;
    return kept > r->begin ? kept : r->begin;
}

/* The first row of the range that somebody will see: all, but of a ring. */
static int64_t row_wanted(const cell_table *t, const range *r)
{
    int64_t seen = r->end > t->g->seen ? r->end - t->g->seen : 0;
    return seen > r->begin ? seen : r->begin;
}

static weft_status check_rows(weft_diag *dg, const state *st, const range *r)
{
    for (int i = 0; i < st->n_cell; i++) {
        const cell_table *t = &st->tables[st->cells[i].table];
        if (row_there(t, r) > row_wanted(t, r))
            return weft_fail(dg, W1408, WEFT_NOWHERE,
                             "row %" PRId64 " of %s is wanted of sequence %" PRId64
                             ", which keeps those from %" PRId64 " on as they were appended",
                             row_wanted(t, r), st->names[i], r->from, row_there(t, r));
    }
    return WEFT_OK;
}

/* Does the range begin within a page of `to`, which `from` does not share? */
static bool begins_within(const cell_table *t, const range *r)
{
    int64_t e = r->begin / t->g->page_tok;
    const page_table *tables = t->pool.tables;
    return r->begin % t->g->page_tok != 0 && row_there(t, r) == r->begin &&
           tables[r->from].page[e] != tables[r->to].page[e];
}

static weft_status check_pages(weft_diag *dg, const state *st, const range *r)
{
    for (int32_t i = 0; i < st->n_group; i++) {
        cell_table *t = group_table(st, i);
        if (begins_within(t, r) && t->pool.n_free < 1 &&
            pages_shared(&t->pool, &t->pool.tables[r->to], r->begin / t->g->page_tok))
            return weft_fail(dg, W1401, WEFT_NOWHERE,
                             "sequence %" PRId64 " needs a page of %" PRId64
                             " tokens of its own; none of %" PRId64 " is free",
                             r->to, t->g->page_tok, t->pool.n_page);
    }
    return WEFT_OK;
}

static weft_status copy_cells(weft_diag *dg, const state *st, const cell_table *t, int32_t from,
                              int32_t to, int64_t first, int64_t n)
{
    for (int i = 0; i < st->n_cell; i++)
        if (&st->tables[st->cells[i].table] == t)
            WEFT_TRY(state_copy_rows(dg, st, &st->cells[i], from, to, first, n));
    return WEFT_OK;
}

weft_status state_own_page(weft_diag *dg, state *st, cell_table *t, int64_t seq, int64_t entry,
                           int64_t n_row)
{
    page_table *tab = &t->pool.tables[seq];
    if (!pages_shared(&t->pool, tab, entry))
        return WEFT_OK;
    int32_t shared = pages_own(&t->pool, tab, entry);
    weft_status status = copy_cells(dg, st, t, shared, tab->page[entry], 0, n_row);
    if (status != WEFT_OK)
        pages_disown(&t->pool, tab, entry, shared);
    return status;
}

/* The rows of the page that the range begins in. Nobody sees them before the sequence has them. */
static weft_status copy_first(weft_diag *dg, state *st, cell_table *t, const range *r)
{
    int64_t tok = t->g->page_tok, e = r->begin / tok, end = r->end - e * tok;
    if (!begins_within(t, r))
        return WEFT_OK;
    WEFT_TRY(state_own_page(dg, st, t, r->to, e, r->begin % tok));
    return copy_cells(dg, st, t, t->pool.tables[r->from].page[e], t->pool.tables[r->to].page[e],
                      r->begin % tok, end < tok ? end : tok);
}

/* The pages behind that one. */
static void share_pages(cell_table *t, const range *r)
{
    page_table *from = &t->pool.tables[r->from], *to = &t->pool.tables[r->to];
    int64_t there = row_there(t, r);
    if (there > r->begin) { /* rows between are gone, so nobody sees those before either */
        pages_cut(&t->pool, to, 0);
        pages_skip(to, there / t->g->page_tok);
    }
    int64_t end = i64_ceil_div(r->end, t->g->page_tok);
    while (to->n < end)
        pages_share_one(&t->pool, from, to);
}

weft_status state_append_range(weft_diag *dg, state *st, int64_t from, int64_t to, int64_t begin,
                               int64_t end)
{
    const range r = {from, to, begin, end};
    WEFT_TRY(check_range(dg, st, &r));
    if (begin == end)
        return WEFT_OK;
    WEFT_TRY(check_rows(dg, st, &r));
    WEFT_TRY(check_pages(dg, st, &r));
    for (int32_t i = 0; i < st->n_group; i++)
        WEFT_TRY(copy_first(dg, st, group_table(st, i), &r));
    st->length[to] = end;
    for (int32_t i = 0; i < st->n_group; i++) {
        cell_table *t = group_table(st, i);
        share_pages(t, &r);
        pages_drop(&t->pool, &t->pool.tables[to], table_behind(t, end));
        for (int32_t k = 1; k < t->g->kv.n_tier; k++) /* a table has no gaps */
            if (t[k - 1].pool.tables[to].first > t[k].pool.tables[to].n)
                pages_drop(&t[k].pool, &t[k].pool.tables[to], t[k].pool.tables[to].n);
    }
    return WEFT_OK;
}
