/* state.c - cells and their page tables; what sequences hold, checked.
 *
 * Cells are sorted into tables when the state is made; from then on all tables are treated alike. One
 * that is no ring keeps as many rows as the context has. */
#include "runtime/kv/state.h"

#include "runtime/base/intmath.h"
#include "runtime/kv/pages.h"
#include <inttypes.h>
#include <string.h>

/* What a table of a sequence was before state_reserve_each. */
typedef struct {
    int64_t n;
    int32_t shared; /* the page that was replaced by a copy; -1: none */
} mark;

/* The pages of all cells that keep the same rows. */
typedef struct {
    plan_cell_layout layout;
    int64_t keep; /* rows behind a sequence's end that stay; n_ctx: all */
    int64_t seen; /* of those, how many the next token may see */
    int64_t page_tok;
    page_pool pool;
    mark *marks;       /* [n_seq] */
    size_t page_bytes; /* of all its cells */
} cell_table;

/* Who holds pages is numbered: sequences first, then prefixes. */
struct state {
    int64_t n_seq, n_prefix, n_ctx;
    int n_cell;
    int32_t n_table;
    size_t bytes, table_bytes;
    kcell *cells;       /* [n_cell] */
    size_t *at;         /* [n_cell]: where each cell's pages begin in the memory */
    const char **names; /* [n_cell] */
    cell_table *tables; /* [n_table] */
    int64_t *length;    /* [n_seq + n_prefix]: tokens committed */
    state_copy *copy;
    void *copy_ctx;
    arena *home;
};

/* ---- making one ---- */

static weft_status check_count(weft_diag *dg, const char *what, int64_t n, int64_t most)
{
    if (n >= 1 && n <= most)
        return WEFT_OK;
    return weft_fail(dg, W1406, WEFT_NOWHERE, "%s is %" PRId64 "; it must be from 1 to %" PRId64,
                     what, n, most);
}

enum { SEQ_MAX = 1 << 20, PAGES_MAX = 1 << 26, PAGE_TOK_MAX = 1 << 16 };

static weft_status check_options(weft_diag *dg, const state_options *opt, int64_t page_tok)
{
    WEFT_TRY(check_count(dg, "the number of sequences", opt->n_seq, SEQ_MAX));
    WEFT_TRY(check_count(dg, "the context", opt->n_ctx, INT32_MAX));
    WEFT_TRY(check_count(dg, "the number of tokens in a page", page_tok, PAGE_TOK_MAX));
    if (opt->n_prefix)
        WEFT_TRY(check_count(dg, "the number of prefixes", opt->n_prefix, SEQ_MAX));
    WEFT_TRY(check_count(dg, "pages of all sequences and prefixes at full length",
                         i64_ceil_div(opt->n_ctx, page_tok) * (opt->n_seq + opt->n_prefix),
                         PAGES_MAX));
    if (opt->n_page)
        WEFT_TRY(check_count(dg, "the number of pages", opt->n_page, PAGES_MAX));
    if (opt->type == DT_F32 || opt->type == DT_F16 || opt->type == DT_BF16)
        return WEFT_OK;
    return weft_fail(dg, W1406, WEFT_NOWHERE, "state cannot be stored as %s; F32, F16 and BF16 can",
                     opt->type < DT_COUNT ? dtype_row_of(opt->type)->name : "what is no type");
}

/* The table of cells like c, which is new when there was none. */
static int32_t find_table(state *st, const plan_cell *c, int64_t page_tok)
{
    /* A page of a whole context could hardly be shared. */
    bool apart = c->layout == PLAN_CONTIGUOUS && st->n_prefix > 0;
    cell_table t = {.layout = apart ? PLAN_PAGED : c->layout,
                    .keep = st->n_ctx,
                    .seen = st->n_ctx,
                    .page_tok = page_tok};
    /* Attention reads blocks of STATE_PAGE_TOK tokens in place where no page ends within one. */
    if (t.layout == PLAN_CONTIGUOUS)
        t.page_tok = i64_ceil_div(st->n_ctx, STATE_PAGE_TOK) * STATE_PAGE_TOK;
    if (c->layout == PLAN_RING && c->keep < t.keep) {
        t.keep = c->keep > 0 ? c->keep : 0;
        t.seen = c->window > 0 && c->window - 1 < t.keep ? c->window - 1 : t.keep;
    }
    int32_t i = 0;
    while (i < st->n_table && (st->tables[i].layout != t.layout || st->tables[i].keep != t.keep))
        i++;
    if (i == st->n_table)
        st->tables[st->n_table++] = t;
    else if (t.seen > st->tables[i].seen)
        st->tables[i].seen = t.seen;
    return i;
}

/* The most pages that sequences hold which keep t->keep rows each, while n_tok more come to any of
 * them. The first more page of a sequence takes `step` rows, each further one page_tok. */
static int64_t ring_pages(const cell_table *t, int64_t n_seq, int64_t n_tok)
{
    int64_t reach = t->keep + 2 * t->page_tok - 2, step = t->page_tok - reach % t->page_tok;
    int64_t first = n_tok / step < n_seq ? n_tok / step : n_seq;
    return n_seq * (reach / t->page_tok) + first + (n_tok - first * step) / t->page_tok;
}

static void make_pages(state *st, cell_table *t, const plan *p, const state_options *opt)
{
    int64_t entries = i64_ceil_div(st->n_ctx, t->page_tok), n_page = entries * st->n_seq;
    if (t->layout == PLAN_PAGED && opt->n_page)
        n_page = opt->n_page;
    int64_t held = (t->keep + 2 * t->page_tok - 2) / t->page_tok; /* of a ring, between calls */
    int64_t ring = ring_pages(t, st->n_seq, p->n_tok_max) + st->n_prefix * held;
    if (t->layout == PLAN_RING) {
        n_page = entries * (st->n_seq + st->n_prefix);
        n_page = ring < n_page ? ring : n_page;
    }
    page_pool_init(&t->pool, st->home, st->n_seq + st->n_prefix, entries, n_page);
    t->marks = ARENA_ARRAY(st->home, mark, (size_t)st->n_seq);
}

/* What one page of cell c takes. */
static bool page_bytes(const plan_cell *c, dtype type, int64_t page_tok, size_t *out_bytes)
{
    int64_t elems = c->k;
    if (!c->latent && !(i64_add(c->k, c->v, &elems) && i64_mul(c->heads, elems, &elems)))
        return false;
    return elems >= 0 && i64_mul(elems, page_tok, &elems) && dtype_bytes(type, elems, out_bytes) &&
           size_align_up(*out_bytes, PLAN_ALIGN, out_bytes);
}

static weft_status lay_out(weft_diag *dg, state *st, const plan *p, dtype type)
{
    for (int i = 0; i < st->n_cell; i++) {
        const plan_cell *c = &p->cell[i];
        cell_table *t = &st->tables[st->cells[i].table];
        size_t page, all, end;
        if (!page_bytes(c, type, t->page_tok, &page) ||
            !size_mul(page, (size_t)t->pool.n_page, &all) || !size_add(st->bytes, all, &end) ||
            end > INT64_MAX)
            return weft_fail(dg, W0902, WEFT_NOWHERE,
                             "%" PRId64 " pages of %" PRId64
                             " tokens in each of %d cells do not fit into memory",
                             t->pool.n_page, t->page_tok, st->n_cell);
        t->page_bytes += page;
        st->at[i] = st->bytes;
        st->bytes = end;
        st->names[i] = c->name;
        kform form = kform_of_dtype(type);
        st->cells[i] = (kcell){.tier = {{.page_bytes = (int64_t)page, .key = form, .value = form}},
                               .n_tier = 1,
                               .page_tok = t->page_tok,
                               .heads = c->heads,
                               .k = c->k,
                               .v = c->v,
                               .latent = c->latent,
                               .table = st->cells[i].table};
    }
    return WEFT_OK;
}

weft_status state_create(weft_diag *dg, const plan *p, const state_options *opt, state **out_st)
{
    int64_t page_tok = opt->page_tok ? opt->page_tok : STATE_PAGE_TOK;
    WEFT_TRY(check_options(dg, opt, page_tok));
    arena *home = arena_create();
    state *st = ARENA_NEW(home, state);
    size_t n_cell = (size_t)p->n_cell;
    *st = (state){.n_seq = opt->n_seq,
                  .n_prefix = opt->n_prefix,
                  .n_ctx = opt->n_ctx,
                  .n_cell = p->n_cell,
                  .home = home};
    st->cells = ARENA_ARRAY(home, kcell, n_cell);
    st->at = ARENA_ARRAY(home, size_t, n_cell);
    st->names = ARENA_ARRAY(home, const char *, n_cell);
    st->tables = ARENA_ARRAY(home, cell_table, n_cell);
    st->length = ARENA_ARRAY(home, int64_t, (size_t)(st->n_seq + st->n_prefix));
    for (int i = 0; i < st->n_cell; i++)
        st->cells[i].table = find_table(st, &p->cell[i], page_tok);
    for (int32_t i = 0; i < st->n_table; i++)
        make_pages(st, &st->tables[i], p, opt);
    weft_status status = lay_out(dg, st, p, opt->type);
    if (status != WEFT_OK) {
        arena_destroy(home);
        return status;
    }
    st->table_bytes = arena_held(home);
    *out_st = st;
    return WEFT_OK;
}

void state_destroy(state *st)
{
    if (st)
        arena_destroy(st->home); /* st itself with it */
}

static weft_status copy_plain(void *ctx, weft_diag *dg, void *to, const void *from, size_t bytes)
{
    (void)ctx, (void)dg;
    memcpy(to, from, bytes);
    return WEFT_OK;
}

void state_bind(state *st, void *base, state_copy *copy, void *ctx)
{
    st->copy = copy ? copy : copy_plain;
    st->copy_ctx = ctx;
    for (int i = 0; i < st->n_cell; i++)
        st->cells[i].tier[0].base = (char *)base + st->at[i];
}

/* ---- what it is ---- */

size_t state_bytes(const state *st)
{
    return st->bytes;
}

size_t state_table_bytes(const state *st)
{
    return st->table_bytes;
}

const kcell *state_cells(const state *st)
{
    return st->cells;
}

bool state_has(const state *st, int64_t seq)
{
    return seq >= 0 && seq < st->n_seq;
}

int64_t state_count(const state *st)
{
    return st->n_seq;
}

int64_t state_length(const state *st, int64_t seq)
{
    WEFT_ASSERT(state_has(st, seq));
    return st->length[seq];
}

int64_t state_context(const state *st)
{
    return st->n_ctx;
}

int32_t state_tables(const state *st)
{
    return st->n_table;
}

static const page_pool *pool_at(const state *st, int32_t table)
{
    WEFT_ASSERT(table >= 0 && table < st->n_table);
    return &st->tables[table].pool;
}

int64_t state_pages_count(const state *st, int32_t table)
{
    return pool_at(st, table)->n_page;
}

int64_t state_pages_free(const state *st, int32_t table)
{
    return pool_at(st, table)->n_free;
}

int32_t state_paged_table(const state *st)
{
    for (int32_t i = 0; i < st->n_table; i++)
        if (st->tables[i].layout == PLAN_PAGED)
            return i;
    return -1;
}

int64_t state_page_tokens(const state *st, int32_t table)
{
    return st->tables[table].page_tok;
}

int64_t state_page_entries(const state *st, int32_t table)
{
    return i64_ceil_div(st->n_ctx, state_page_tokens(st, table));
}

state_page_table state_pages(const state *st, int32_t table, int64_t seq)
{
    WEFT_ASSERT(state_has(st, seq));
    const page_table *t = &pool_at(st, table)->tables[seq];
    return (state_page_table){.page = t->page, .n = t->n, .version = t->version};
}

/* ---- growing ---- */

static weft_status check_seq(weft_diag *dg, const state *st, int64_t seq)
{
    if (state_has(st, seq))
        return WEFT_OK;
    return weft_fail(dg, W1403, WEFT_NOWHERE,
                     "there is no sequence %" PRId64 "; they are numbered 0 to %" PRId64, seq,
                     st->n_seq - 1);
}

/* Why there are no pages. Kept until all that was taken is given back: its message may itself find no memory, and then
 * nothing after it is run. */
typedef struct {
    const cell_table *t;
    int64_t seq, need, n_free;
} shortage;

static weft_status fail_short(weft_diag *dg, const shortage *why)
{
    return weft_fail(dg, W1401, WEFT_NOWHERE,
                     "sequence %" PRId64 " needs %" PRId64 " more pages of %" PRId64
                     " tokens; %" PRId64 " of %" PRId64 " are free",
                     why->seq, why->need, why->t->page_tok, why->n_free, why->t->pool.n_page);
}

/* Pages of one table for n_new more tokens, and one that is nobody else's to write the first to. */
static bool reserve_pages(const state *st, cell_table *t, int64_t seq, int64_t n_new,
                          shortage *out_why)
{
    page_pool *p = &t->pool;
    page_table *tab = &p->tables[seq];
    int64_t length = st->length[seq], last = length / t->page_tok;
    bool shared = n_new > 0 && length % t->page_tok != 0 && pages_shared(p, tab, last);
    int64_t more = i64_ceil_div(length + n_new, t->page_tok) - tab->n;
    int64_t need = (more > 0 ? more : 0) + shared;
    if (need > p->n_free) {
        *out_why = (shortage){.t = t, .seq = seq, .need = need, .n_free = p->n_free};
        return false;
    }
    t->marks[seq] = (mark){.n = tab->n, .shared = shared ? pages_own(p, tab, last) : -1};
    for (; more > 0; more--)
        pages_take(p, tab);
    return true;
}

static void undo_pages(const state *st, cell_table *t, int64_t seq)
{
    page_table *tab = &t->pool.tables[seq];
    pages_cut(&t->pool, tab, t->marks[seq].n);
    if (t->marks[seq].shared >= 0)
        pages_disown(&t->pool, tab, st->length[seq] / t->page_tok, t->marks[seq].shared);
}

static weft_status check_new(weft_diag *dg, const state *st, int64_t seq, int64_t n_new)
{
    WEFT_TRY(check_seq(dg, st, seq));
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

static int64_t float_bytes(kform f)
{
    return (int64_t)dtype_row_of(kform_dtype(f))->bytes;
}

/* The first n rows of a page of tier 0; each head's are together. */
static weft_status copy_rows(weft_diag *dg, const state *st, const kcell *c, int32_t from,
                             int32_t to, int64_t n)
{
    const kcell_tier *t = &c->tier[0];
    const char *src = t->base + from * t->page_bytes;
    char *dst = t->base + to * t->page_bytes;
    const int64_t width[2] = {c->k * float_bytes(t->key),
                              c->latent ? 0 : c->v * float_bytes(t->value)};
    int64_t at = 0;
    WEFT_ASSERT(st->copy);
    for (int part = 0; part < 2; part++)
        for (int64_t h = 0; h < c->heads && width[part]; h++, at += c->page_tok * width[part])
            WEFT_TRY(st->copy(st->copy_ctx, dg, dst + at, src + at, (size_t)(n * width[part])));
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
            WEFT_TRY(copy_rows(dg, st, c, t->marks[seq].shared,
                               t->pool.tables[seq].page[length / t->page_tok],
                               length % t->page_tok));
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

void state_commit(state *st, int64_t seq, int64_t n_new)
{
    WEFT_ASSERT(state_has(st, seq) && n_new >= 0);
    int64_t length = st->length[seq] += n_new;
    for (int32_t i = 0; i < st->n_table; i++) {
        cell_table *t = &st->tables[i];
        page_table *tab = &t->pool.tables[seq];
        WEFT_ASSERT(length <= tab->n * t->page_tok);
        if (length > t->keep)
            pages_drop(&t->pool, tab, (length - t->keep) / t->page_tok);
    }
}

/* ---- shrinking and sharing ---- */

void state_release(state *st, int64_t seq)
{
    WEFT_ASSERT(state_has(st, seq));
    for (int32_t i = 0; i < st->n_table; i++) {
        cell_table *t = &st->tables[i];
        pages_cut(&t->pool, &t->pool.tables[seq], i64_ceil_div(st->length[seq], t->page_tok));
    }
}

/* The first row that the table still has, and the first that a token at `length` may see. */
static int64_t row_kept(const cell_table *t, int64_t seq)
{
    return t->pool.tables[seq].first * t->page_tok;
}

static int64_t row_seen(const cell_table *t, int64_t length)
{
    return length > t->seen ? length - t->seen : 0;
}

static bool can_keep(const cell_table *t, int64_t seq, int64_t length)
{
    return length == 0 || row_seen(t, length) >= row_kept(t, seq);
}

static int64_t holder_keepable(const state *st, int64_t holder, int64_t length)
{
    WEFT_ASSERT(length >= 0 && length <= st->length[holder]);
    for (int32_t i = 0; i < st->n_table; i++)
        if (!can_keep(&st->tables[i], holder, length))
            return 0;
    return length;
}

int64_t state_keepable(const state *st, int64_t seq, int64_t length)
{
    WEFT_ASSERT(state_has(st, seq));
    return holder_keepable(st, seq, length);
}

static weft_status check_rows(weft_diag *dg, const state *st, int64_t seq, int64_t length)
{
    if (length < 0 || length > st->length[seq])
        return weft_fail(dg, W1402, WEFT_NOWHERE,
                         "sequence %" PRId64 " holds %" PRId64
                         " tokens; it cannot be cut to %" PRId64,
                         seq, st->length[seq], length);
    for (int i = 0; i < st->n_cell; i++) {
        const cell_table *t = &st->tables[st->cells[i].table];
        if (!can_keep(t, seq, length))
            return weft_fail(
                dg, W1408, WEFT_NOWHERE,
                "sequence %" PRId64 " cannot go from %" PRId64 " tokens back to %" PRId64
                ": the next would see row %" PRId64 " of %s, which keeps those from %" PRId64 " on",
                seq, st->length[seq], length, row_seen(t, length), st->names[i], row_kept(t, seq));
    }
    return WEFT_OK;
}

weft_status state_truncate(weft_diag *dg, state *st, int64_t seq, int64_t length)
{
    WEFT_TRY(check_seq(dg, st, seq));
    WEFT_TRY(check_rows(dg, st, seq, length));
    st->length[seq] = length;
    state_release(st, seq);
    return WEFT_OK;
}

/* Let a holder hold the first `length` tokens of another one, which can be kept, and nothing else. */
static void share(state *st, int64_t from, int64_t to, int64_t length)
{
    st->length[to] = length;
    for (int32_t i = 0; i < st->n_table; i++) {
        cell_table *t = &st->tables[i];
        page_table *tables = t->pool.tables;
        pages_cut(&t->pool, &tables[to], 0);
        if (length > 0)
            pages_share(&t->pool, &tables[from], &tables[to], i64_ceil_div(length, t->page_tok));
    }
}

weft_status state_fork(weft_diag *dg, state *st, int64_t from, int64_t to, int64_t length)
{
    WEFT_TRY(check_seq(dg, st, from));
    WEFT_TRY(check_seq(dg, st, to));
    if (from == to)
        return state_truncate(dg, st, from, length);
    WEFT_TRY(check_rows(dg, st, from, length));
    share(st, from, to, length);
    return WEFT_OK;
}

/* ---- prefixes ---- */

bool state_has_room(state *st, const int32_t *seq, const int32_t *n_new, int64_t n)
{
    shortage why;
    int64_t i = 0;
    while (i < n && reserve_one(st, seq[i], n_new[i], &why))
        i++;
    undo_each(st, seq, i);
    return i == n;
}

int64_t state_prefixes(const state *st)
{
    return st->n_prefix;
}

/* Its number among those who hold pages. */
static int64_t holder_of(const state *st, int64_t prefix)
{
    WEFT_ASSERT(prefix >= 0 && prefix < st->n_prefix);
    return st->n_seq + prefix;
}

int64_t state_prefix_length(const state *st, int64_t prefix)
{
    return st->length[holder_of(st, prefix)];
}

int64_t state_prefix_keepable(const state *st, int64_t prefix, int64_t length)
{
    return holder_keepable(st, holder_of(st, prefix), length);
}

void state_hold(state *st, int64_t seq, int64_t prefix, int64_t length)
{
    WEFT_ASSERT(state_keepable(st, seq, length) == length);
    share(st, seq, holder_of(st, prefix), length);
}

void state_take(state *st, int64_t prefix, int64_t seq, int64_t length)
{
    WEFT_ASSERT(state_has(st, seq) && state_prefix_keepable(st, prefix, length) == length);
    share(st, holder_of(st, prefix), seq, length);
}

void state_drop(state *st, int64_t prefix)
{
    int64_t h = holder_of(st, prefix);
    st->length[h] = 0;
    for (int32_t i = 0; i < st->n_table; i++)
        pages_cut(&st->tables[i].pool, &st->tables[i].pool.tables[h], 0);
}

int64_t state_prefix_alone(const state *st, int64_t prefix, size_t *out_bytes)
{
    int64_t n = 0, h = holder_of(st, prefix);
    size_t bytes = 0;
    for (int32_t i = 0; i < st->n_table; i++) {
        const cell_table *t = &st->tables[i];
        int64_t alone = pages_alone(&t->pool, &t->pool.tables[h]);
        n += alone;
        bytes += (size_t)alone * t->page_bytes;
    }
    if (out_bytes)
        *out_bytes = bytes;
    return n;
}

void state_prefix_pages(const state *st, int64_t *out_n, size_t *out_bytes)
{
    *out_n = 0;
    *out_bytes = 0;
    for (int32_t i = 0; i < st->n_table; i++) {
        const cell_table *t = &st->tables[i];
        int64_t n = t->pool.n_page - t->pool.n_free - pages_held(&t->pool, st->n_seq);
        *out_n += n;
        *out_bytes += (size_t)n * t->page_bytes;
    }
}
