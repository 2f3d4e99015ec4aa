/* state_rows.c - rows of sequences: room for more, those that count, cutting, sharing; checked. */
#include "runtime/kv/state_impl.h"

#include <inttypes.h>
#include "kernels/page_form.h"

weft_status state_check_seq(weft_diag *dg, const state *st, int64_t seq)
{
    if (state_has(st, seq))
        return WEFT_OK;
    return weft_fail(dg, W1403, WEFT_NOWHERE,
                     "there is no sequence %" PRId64 "; they are numbered 0 to %" PRId64, seq,
                     st->n_seq - 1);
}

/* ---- growing ---- */

/* Why there are no pages. Kept until all that was taken is given back: its message may itself find no memory, and then
 * nothing after it is run. */
typedef struct {
    const cell_table *t;
    int64_t seq, need, n_free;
} shortage;

static weft_status fail_short(weft_diag *dg, const shortage *why)
{
    return weft_fail(dg, W1401, WEFT_NOWHERE,
                     "sequence %" PRId64 " needs %" PRId64 " more page%s of %" PRId64
                     " tokens; %" PRId64 " of %" PRId64 " are free",
                     why->seq, why->need, why->need == 1 ? "" : "s", why->t->g->page_tok,
                     why->n_free, why->t->pool.n_page);
}

/* The first entry that can be made: nobody sees those behind a ring, nor those that the tier before has given back. */
static int64_t table_first(const cell_table *t, int64_t seq, int64_t length)
{
    int64_t first = table_behind(t, length);
    int64_t from = t->tier > 0 ? t[-1].pool.tables[seq].first : 0;
    return from > first ? from : first;
}

/* Pages of one table for n_new more tokens, and one that is nobody else's to write the first to. In a tier that is
 * converted to: for what the last of them sees in it. */
static bool reserve_pages(const state *st, cell_table *t, int64_t seq, int64_t n_new,
                          shortage *out_why)
{
    page_pool *p = &t->pool;
    page_table *tab = &p->tables[seq];
    int64_t length = st->length[seq], last = length / t->g->page_tok;
    int64_t first = tab->first, n = tab->n, end = table_upper(t, seq, length + n_new);
    bool shared =
        t->tier == 0 && n_new > 0 && length % t->g->page_tok != 0 && pages_shared(p, tab, last);
    int64_t behind = table_first(t, seq, length);
    behind = behind < end ? behind : end;
    if (tab->first == tab->n && tab->n < behind)
        pages_skip(tab, behind);
    int64_t more = end > tab->n ? end - tab->n : 0, need = more + shared;
    if (need > p->n_free) {
        *out_why = (shortage){.t = t, .seq = seq, .need = need, .n_free = p->n_free};
        tab->first = first;
        tab->n = n;
        return false;
    }
    t->marks[seq] = (mark){
        .first = first, .n = n, .made = tab->n, .shared = shared ? pages_own(p, tab, last) : -1};
    for (; more > 0; more--)
        pages_take(p, tab);
    return true;
}

static void undo_pages(const state *st, cell_table *t, int64_t seq)
{
    page_table *tab = &t->pool.tables[seq];
    const mark *m = &t->marks[seq];
    pages_cut(&t->pool, tab, m->made);
    tab->first = m->first;
    tab->n = m->n;
    if (m->shared >= 0)
        pages_disown(&t->pool, tab, st->length[seq] / t->g->page_tok, m->shared);
}

static weft_status check_new(weft_diag *dg, const state *st, int64_t seq, int64_t n_new)
{
    WEFT_TRY(state_check_seq(dg, st, seq));
    WEFT_ASSERT(n_new >= 0);
    if (n_new > st->n_ctx - st->length[seq])
        return weft_fail(dg, W1404, WEFT_NOWHERE,
                         "sequence %" PRId64 " holds %" PRId64 " tokens; %" PRId64
                         " more pass its context of %" PRId64,
                         seq, st->length[seq], n_new, st->n_ctx);
    return WEFT_OK;
}

/* In all tables, or in none. */
static bool reserve_one(state *st, int64_t seq, int64_t n_new, shortage *out_why)
{
    for (int32_t i = 0; i < st->n_table; i++) {
        if (reserve_pages(st, &st->tables[i], seq, n_new, out_why))
            continue;
        while (i-- > 0)
            undo_pages(st, &st->tables[i], seq);
        return false;
    }
    return true;
}

weft_status state_copy_rows(weft_diag *dg, const state *st, const kcell *c, int32_t from,
                            int32_t to, int64_t first, int64_t n)
{
    const kcell_tier *t = &c->tier[0];
    const char *src = t->base + from * t->page_bytes;
    char *dst = t->base + to * t->page_bytes;
    const page_part part[] = {page_part_of(t->key, PAGE_KEYS, c->page_tok, c->k),
                              page_part_of(t->value, PAGE_VALUES, c->page_tok, c->v)};
    int64_t at = 0;
    WEFT_ASSERT(st->copy);
    for (int i = 0; i < (c->latent ? 1 : 2); i++)
        for (int64_t h = 0; h < c->heads; h++, at += part[i].bytes) {
            int64_t begin = at + page_row(&part[i], first);
            WEFT_TRY(st->copy(st->copy_ctx, dg, dst + begin, src + begin,
                              (size_t)((n - first) * part[i].row_bytes)));
        }
    return WEFT_OK;
}

/* Where a page was replaced, its rows. Nothing was written since, so the order does not matter. */
static weft_status copy_shared(weft_diag *dg, const state *st, int64_t seq)
{
    for (int i = 0; i < st->n_cell; i++) {
        const kcell *c = &st->cells[i];
        const cell_table *t = &st->tables[c->table];
        int64_t length = st->length[seq];
        if (t->marks[seq].shared >= 0)
            WEFT_TRY(state_copy_rows(dg, st, c, t->marks[seq].shared,
                                     t->pool.tables[seq].page[length / c->page_tok], 0,
                                     length % c->page_tok));
    }
    return WEFT_OK;
}

/* Of the first n sequences, the last first. */
static void undo_each(state *st, const int32_t *seq, int64_t n)
{
    while (n-- > 0)
        for (int32_t t = st->n_table; t-- > 0;)
            undo_pages(st, &st->tables[t], seq[n]);
}

weft_status state_reserve_each(weft_diag *dg, state *st, const int32_t *seq, const int32_t *n_new,
                               int64_t n)
{
    shortage why;
    for (int64_t i = 0; i < n; i++)
        WEFT_TRY(check_new(dg, st, seq[i], n_new[i]));
    for (int64_t i = 0; i < n; i++) {
        if (reserve_one(st, seq[i], n_new[i], &why))
            continue;
        undo_each(st, seq, i);
        return fail_short(dg, &why);
    }
    weft_status status = WEFT_OK;
    for (int64_t i = 0; i < n && status == WEFT_OK; i++)
        status = copy_shared(dg, st, seq[i]);
    if (status != WEFT_OK)
        undo_each(st, seq, n);
    return status;
}

weft_status state_reserve(weft_diag *dg, state *st, int64_t seq, int64_t n_new)
{
    int32_t one = (int32_t)seq, n = (int32_t)n_new;
    WEFT_TRY(check_new(dg, st, seq, n_new));
    return state_reserve_each(dg, st, &one, &n, 1);
}

bool state_has_room(state *st, const int32_t *seq, const int32_t *n_new, int64_t n)
{
    shortage why;
    int64_t i = 0;
    while (i < n && reserve_one(st, seq[i], n_new[i], &why))
        i++;
    undo_each(st, seq, i);
    return i == n;
}

/* Entries of tier k go when tier k + 1 has them; one page more stays, so that a sequence can go back a little. */
static int64_t first_kept(const cell_table *t, int64_t length)
{
    int64_t first = table_behind(t, length), coarser = tier_begin(t->g, t->tier + 1, length) - 1;
    return coarser > first ? coarser : first;
}

void state_commit(state *st, int64_t seq, int64_t n_new)
{
    WEFT_ASSERT(state_has(st, seq) && n_new >= 0);
    int64_t length = st->length[seq] += n_new;
    for (int32_t i = 0; i < st->n_table; i++) {
        cell_table *t = &st->tables[i];
        page_table *tab = &t->pool.tables[seq];
        WEFT_ASSERT(t->tier > 0 || length <= tab->n * t->g->page_tok);
        if (t->tier > 0) /* what rows made that do not count */
            pages_cut(&t->pool, tab, table_upper(t, seq, length));
        pages_drop(&t->pool, tab, first_kept(t, length));
        t->marks[seq].made = INT64_MAX;
    }
}

/* ---- shrinking and sharing ---- */

/* Where entries after those of a tier can no longer be made, as nobody sees them, nobody sees those before either: a table has
 * no gaps. */
static void close_gap(cell_table *t, int64_t holder)
{
    page_table *tab = &t->pool.tables[holder];
    if (t->tier > 0 && t[-1].pool.tables[holder].first > tab->n)
        pages_drop(&t->pool, tab, tab->n);
}

void state_cut(state *st, int64_t holder, int64_t length)
{
    for (int32_t i = st->n_table; i-- > 0;) { /* a tier's end asks the tier before what stays */
        cell_table *t = &st->tables[i];
        pages_cut(&t->pool, &t->pool.tables[holder], table_upper(t, holder, length));
    }
    for (int32_t i = 0; i < st->n_table; i++)
        close_gap(&st->tables[i], holder);
}

void state_release(state *st, int64_t seq)
{
    WEFT_ASSERT(state_has(st, seq));
    state_cut(st, seq, st->length[seq]);
    for (int32_t i = 0; i < st->n_table; i++)
        st->tables[i].marks[seq].made = INT64_MAX;
}

void state_undo(state *st, int64_t seq, int64_t n_new)
{
    WEFT_ASSERT(state_has(st, seq) && n_new >= 0 && n_new <= st->length[seq]);
    st->length[seq] -= n_new;
    state_release(st, seq);
}

/* The first row that a token at `length` may see. */
static int64_t row_seen(const cell_group *g, int64_t length)
{
    return length > g->seen ? length - g->seen : 0;
}

bool table_can_keep(const cell_table *t, int64_t holder, int64_t length, int64_t *out_entry)
{
    const cell_group *g = t->g;
    const page_table *tab = &t->pool.tables[holder];
    int64_t lower = tier_begin(g, t->tier + 1, length), seen = row_seen(g, length) / g->page_tok;
    int64_t end = table_upper(t, holder, length);
    lower = seen > lower ? seen : lower;
    lower = tab->stays > lower ? tab->stays : lower;
    /* The page that the next row goes to. */
    if (t->tier == 0 && length % g->page_tok != 0 && lower >= end)
        lower = end - 1;
    if (t->tier > 0 && g->pinned > lower)
        lower = g->pinned;
    if (out_entry)
        *out_entry = lower;
    if (length == 0 || lower >= end)
        return true;
    /* What it has not yet is made of what the tier before has; that may be less after another policy. */
    int64_t lacks = lower > tab->n ? lower : tab->n;
    return lower >= tab->first &&
           (t->tier == 0 || lacks >= end || lacks >= t[-1].pool.tables[holder].first);
}

bool state_can_undo(const state *st, int64_t seq, int64_t n_new)
{
    WEFT_ASSERT(state_has(st, seq));
    int64_t length = st->length[seq], then = length + n_new;
    for (int32_t i = 0; i < st->n_table && length > 0; i++) {
        const cell_table *t = &st->tables[i];
        int64_t lower = 0, end = table_upper(t, seq, length);
        if (!table_can_keep(t, seq, length, &lower))
            return false;
        if (lower < end && first_kept(t, then) > lower)
            return false;
    }
    return true;
}

int64_t state_holder_keepable(const state *st, int64_t holder, int64_t length)
{
    WEFT_ASSERT(length >= 0 && length <= st->length[holder]);
    for (int32_t i = 0; i < st->n_table; i++)
        if (!table_can_keep(&st->tables[i], holder, length, NULL))
            return 0;
    return length;
}

int64_t state_keepable(const state *st, int64_t seq, int64_t length)
{
    WEFT_ASSERT(state_has(st, seq));
    return state_holder_keepable(st, seq, length);
}

static weft_status fail_gone(weft_diag *dg, const state *st, int64_t seq, int64_t length, int cell,
                             const cell_table *t, int64_t entry)
{
    const cell_group *g = t->g;
    int64_t row = entry * g->page_tok, seen = row_seen(g, length);
    row = row > seen ? row : seen;
    int64_t kept = t->pool.tables[seq].first * g->page_tok;
    return weft_fail(
        dg, W1408, WEFT_NOWHERE,
        "sequence %" PRId64 " cannot go from %" PRId64 " tokens back to %" PRId64
        ": the next would see row %" PRId64 " of %s%s%s, which keeps those from %" PRId64 " on",
        seq, st->length[seq], length, row, st->names[cell], g->kv.n_tier > 1 ? " as " : "",
        g->kv.n_tier > 1 ? kform_name(g->kv.tier[t->tier].key) : "", kept);
}

static weft_status check_rows(weft_diag *dg, const state *st, int64_t seq, int64_t length)
{
    if (length < 0 || length > st->length[seq])
        return weft_fail(dg, W1402, WEFT_NOWHERE,
                         "sequence %" PRId64 " holds %" PRId64
                         " tokens; it cannot be cut to %" PRId64,
                         seq, st->length[seq], length);
    for (int i = 0; i < st->n_cell; i++)
        for (int32_t k = 0; k < st->cells[i].n_tier; k++) {
            const cell_table *t = &st->tables[st->cells[i].table + k];
            int64_t entry;
            if (!table_can_keep(t, seq, length, &entry))
                return fail_gone(dg, st, seq, length, i, t, entry);
        }
    return WEFT_OK;
}

weft_status state_truncate(weft_diag *dg, state *st, int64_t seq, int64_t length)
{
    WEFT_TRY(state_check_seq(dg, st, seq));
    WEFT_TRY(check_rows(dg, st, seq, length));
    st->length[seq] = length;
    state_release(st, seq);
    return WEFT_OK;
}

void state_share(state *st, int64_t from, int64_t to, int64_t length)
{
    st->length[to] = length;
    for (int32_t i = 0; i < st->n_table; i++) {
        cell_table *t = &st->tables[i];
        page_table *tables = t->pool.tables;
        int64_t n = table_upper(t, from, length);
        pages_cut(&t->pool, &tables[to], 0);
        pages_share(&t->pool, &tables[from], &tables[to], n < tables[from].n ? n : tables[from].n);
        close_gap(t, to);
        if (to < st->n_seq)
            t->marks[to].made = INT64_MAX;
    }
}

weft_status state_fork(weft_diag *dg, state *st, int64_t from, int64_t to, int64_t length)
{
    WEFT_TRY(state_check_seq(dg, st, from));
    WEFT_TRY(state_check_seq(dg, st, to));
    if (from == to)
        return state_truncate(dg, st, from, length);
    WEFT_TRY(check_rows(dg, st, from, length));
    state_share(st, from, to, length);
    return WEFT_OK;
}
