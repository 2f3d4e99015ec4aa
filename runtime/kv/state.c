/* state.c - cells sorted into groups, and groups into tables; how many pages each has, and where they lie.
 *
 * A group that is no ring keeps as many rows as the context has. From state_create on all tables are treated alike. */
#include "kernels/page_form.h"
#include "runtime/kv/state_impl.h"

#include <inttypes.h>
#include <string.h>

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
    return WEFT_OK;
}

/* The policy, and whether pages of this size can have its forms. */
static weft_status check_policy(weft_diag *dg, const state_options *opt, int64_t page_tok,
                                kpolicy *out)
{
    if (opt->kv) {
        const char *why = kpolicy_wrong(opt->kv);
        if (why)
            return weft_fail(dg, W1406, WEFT_NOWHERE, "state cannot be stored so: %s", why);
        *out = *opt->kv;
    } else {
        kform f = kform_of_dtype(opt->type);
        if (f == KFORM_COUNT)
            return weft_fail(
                dg, W1406, WEFT_NOWHERE, "state cannot be stored as %s; F32, F16 and BF16 can",
                opt->type < DT_COUNT ? dtype_row_of(opt->type)->name : "what is no type");
        *out = kpolicy_plain(f, f);
    }
    for (int32_t i = 0; i < out->n_tier; i++) {
        const kform of[] = {out->tier[i].key, out->tier[i].value};
        for (int k = 0; k < 2; k++)
            if (!page_form_has(of[k], page_tok))
                return weft_fail(dg, W1406, WEFT_NOWHERE,
                                 "pages of %" PRId64
                                 " tokens cannot be %s: it takes at most %d, or "
                                 "a multiple of that",
                                 page_tok, kform_name(of[k]), PAGE_BLOCK);
    }
    return WEFT_OK;
}

static bool group_is(const cell_group *a, const cell_group *b)
{
    bool same = a->layout == b->layout && a->keep == b->keep && a->pinned == b->pinned &&
                kpolicy_same_forms(&a->kv, &b->kv);
    for (int32_t i = 0; i < a->kv.n_tier && same; i++)
        same = a->kv.tier[i].last == b->kv.tier[i].last;
    return same;
}

static kpolicy cell_policy(const plan_cell *c, const kpolicy *kv)
{
    return kpolicy_for_cell(kv, c->bounded ? c->coarsest : KFORM_COUNT, c->latent);
}

/* The group of cells like c, which is new when there was none. */
static int32_t find_group(state *st, const plan_cell *c, const kpolicy *kv, int64_t page_tok)
{
    cell_group g = {.layout = c->layout,
                    .keep = st->n_ctx,
                    .seen = st->n_ctx,
                    .page_tok = page_tok,
                    .kv = cell_policy(c, kv)};
    /* A page of a whole context could hardly be shared, nor become a coarser one. */
    if (c->layout == PLAN_CONTIGUOUS && (st->n_prefix > 0 || g.kv.n_tier > 1))
        g.layout = PLAN_PAGED;
    /* Attention reads blocks of STATE_PAGE_TOK tokens in place where no page ends within one. */
    if (g.layout == PLAN_CONTIGUOUS)
        g.page_tok = i64_ceil_div(st->n_ctx, STATE_PAGE_TOK) * STATE_PAGE_TOK;
    if (c->layout == PLAN_RING && c->keep < g.keep) {
        g.keep = c->keep > 0 ? c->keep : 0;
        g.seen = c->window > 0 && c->window - 1 < g.keep ? c->window - 1 : g.keep;
    } else if (g.kv.n_tier > 1 && c->pin > 0) {
        int64_t pin = c->pin < st->n_ctx ? c->pin : st->n_ctx;
        g.pinned = i64_ceil_div(pin, g.page_tok);
    }
    int32_t i = 0;
    while (i < st->n_group && !group_is(&st->groups[i], &g))
        i++;
    if (i == st->n_group)
        st->groups[st->n_group++] = g;
    else if (g.seen > st->groups[i].seen)
        st->groups[i].seen = g.seen;
    return i;
}

/* Rows that a table of a sequence spans between calls, as far as they matter to it: n more come to (reach + n) / page_tok
 * pages where they begin at the worst place. A page of slack is kept behind what a tier has to have (state_commit). Coarser
 * tiers are sized as if pages came to them at once: so another policy may let them come sooner (state_change). */
static int64_t table_reach(const cell_table *t)
{
    const cell_group *g = t->g;
    int64_t last = g->kv.tier[t->tier].last, keep = g->keep;
    if (last != KPOLICY_REST && last + g->page_tok < keep)
        keep = last + g->page_tok;
    return keep + (t->tier == 0 ? 2 * g->page_tok - 2 : g->page_tok - 1);
}

/* Pages of a sequence that fills the context. Coarser tiers have whole ones alone. */
static int64_t table_entries(const state *st, const cell_table *t)
{
    int64_t page_tok = t->g->page_tok;
    return t->tier == 0 ? i64_ceil_div(st->n_ctx, page_tok) : st->n_ctx / page_tok;
}

/* The most pages that sequences hold whose tables reach so far, while n_tok more rows come to any of them. The first more
 * page of a sequence takes `step` rows, each further one page_tok. */
static int64_t pages_reached(int64_t reach, int64_t page_tok, int64_t n_seq, int64_t n_tok)
{
    int64_t step = page_tok - reach % page_tok;
    int64_t first = n_tok / step < n_seq ? n_tok / step : n_seq;
    return n_seq * (reach / page_tok) + first + (n_tok - first * step) / page_tok;
}

int64_t state_pages_most(const state *st, const cell_table *t)
{
    const cell_group *g = t->g;
    int64_t entries = table_entries(st, t), reach = table_reach(t);
    int64_t holders = st->n_seq + st->n_prefix, pinned = t->tier == 0 ? g->pinned : 0;
    int64_t n = pages_reached(reach, g->page_tok, st->n_seq, st->n_tok_max) +
                st->n_prefix * (reach / g->page_tok) + holders * pinned;
    return n < entries * holders ? n : entries * holders;
}

/* Has it all that sequences keep, so that prefixes live of what these leave? */
static bool keeps_all(const cell_table *t)
{
    return t->g->layout != PLAN_RING && t->tier + 1 == t->g->kv.n_tier;
}

static void make_pages(state *st, cell_table *t, const state_options *opt)
{
    const cell_group *g = t->g;
    int64_t entries = i64_ceil_div(st->n_ctx, g->page_tok), n_page = state_pages_most(st, t);
    if (keeps_all(t))
        n_page = st->n_seq * table_entries(st, t);
    if (keeps_all(t) && g->layout == PLAN_PAGED && opt->n_page)
        n_page = opt->n_page;
    page_pool_init(&t->pool, st->home, st->n_seq + st->n_prefix, entries, n_page);
    t->pool.pinned = t->tier == 0 ? g->pinned : 0;
    t->marks = ARENA_ARRAY(st->home, mark, (size_t)st->n_seq);
}

static void make_tables(state *st, const state_options *opt)
{
    for (int32_t i = 0; i < st->n_group; i++) {
        cell_group *g = &st->groups[i];
        g->table = st->n_table;
        for (int32_t k = 0; k < g->kv.n_tier; k++) {
            cell_table *t = &st->tables[st->n_table++];
            *t = (cell_table){.g = g, .tier = k};
            make_pages(st, t, opt);
        }
    }
}

/* What one page of a tier of cell c takes. */
static bool page_bytes(const plan_cell *c, const kpolicy_tier *t, int64_t page_tok,
                       size_t *out_bytes)
{
    int64_t elems = c->k, most;
    if (!c->latent && !(i64_add(c->k, c->v, &elems) && i64_mul(c->heads, elems, &elems)))
        return false;
    /* No form takes more than 8 bytes a number and 64 times as much for padding. */
    if (elems < 0 || !i64_mul(elems, page_tok, &most) || !i64_mul(most, 8 * 64, &most))
        return false;
    int64_t bytes = c->heads * page_part_of(t->key, PAGE_KEYS, page_tok, c->k).bytes;
    if (!c->latent)
        bytes += c->heads * page_part_of(t->value, PAGE_VALUES, page_tok, c->v).bytes;
    return size_align_up((size_t)bytes, PLAN_ALIGN, out_bytes);
}

static weft_status lay_out_tier(weft_diag *dg, state *st, int i, int32_t tier)
{
    const plan_cell *c = &st->plan_cells[i];
    kcell *to = &st->cells[i];
    cell_table *t = &st->tables[to->table + tier];
    const kpolicy_tier *p = &t->g->kv.tier[tier];
    size_t page, all, end;
    if (!page_bytes(c, p, t->g->page_tok, &page) || !size_mul(page, (size_t)t->pool.n_page, &all) ||
        !size_add(st->bytes, all, &end) || end > INT64_MAX)
        return weft_fail(
            dg, W0902, WEFT_NOWHERE,
            "%" PRId64 " page%s of %" PRId64 " tokens in each of %d cells do not fit into memory",
            t->pool.n_page, t->pool.n_page == 1 ? "" : "s", t->g->page_tok, st->n_cell);
    t->page_bytes += page;
    st->at[i][tier] = st->bytes;
    st->bytes = end;
    to->tier[tier] = (kcell_tier){.page_bytes = (int64_t)page, .key = p->key, .value = p->value};
    return WEFT_OK;
}

static weft_status lay_out(weft_diag *dg, state *st, const int32_t *group)
{
    for (int i = 0; i < st->n_cell; i++) {
        const plan_cell *c = &st->plan_cells[i];
        const cell_group *g = &st->groups[group[i]];
        st->names[i] = c->name;
        st->cells[i] = (kcell){.n_tier = g->kv.n_tier,
                               .table = g->table,
                               .page_tok = g->page_tok,
                               .pinned = g->pinned,
                               .heads = c->heads,
                               .k = c->k,
                               .v = c->v,
                               .latent = c->latent};
        for (int32_t k = 0; k < g->kv.n_tier; k++)
            WEFT_TRY(lay_out_tier(dg, st, i, k));
    }
    return WEFT_OK;
}

weft_status state_create(weft_diag *dg, const plan *p, const state_options *opt, state **out_st)
{
    int64_t page_tok = opt->page_tok ? opt->page_tok : STATE_PAGE_TOK;
    kpolicy kv;
    WEFT_TRY(check_options(dg, opt, page_tok));
    WEFT_TRY(check_policy(dg, opt, page_tok, &kv));
    arena *home = arena_create();
    state *st = ARENA_NEW(home, state);
    size_t n_cell = (size_t)p->n_cell;
    *st = (state){.n_seq = opt->n_seq,
                  .n_prefix = opt->n_prefix,
                  .n_ctx = opt->n_ctx,
                  .n_tok_max = p->n_tok_max,
                  .n_cell = p->n_cell,
                  .home = home};
    plan_cell *cells = ARENA_ARRAY(home, plan_cell, n_cell);
    int32_t *group = ARENA_ARRAY(home, int32_t, n_cell);
    if (n_cell)
        memcpy(cells, p->cell, n_cell * sizeof *cells);
    st->plan_cells = cells;
    st->cells = ARENA_ARRAY(home, kcell, n_cell);
    st->at = arena_alloc(home, n_cell * sizeof *st->at);
    st->where = ARENA_ARRAY(home, int32_t, n_cell);
    st->names = ARENA_ARRAY(home, const char *, n_cell);
    st->groups = ARENA_ARRAY(home, cell_group, n_cell);
    st->tables = ARENA_ARRAY(home, cell_table, n_cell * K_TIERS_MAX);
    st->length = ARENA_ARRAY(home, int64_t, (size_t)(st->n_seq + st->n_prefix));
    for (int i = 0; i < st->n_cell; i++)
        group[i] = find_group(st, &cells[i], &kv, page_tok);
    make_tables(st, opt);
    weft_status status = lay_out(dg, st, group);
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

void state_divide(state *st, const int32_t *where, int32_t n, size_t *out_bytes)
{
    for (int32_t i = 0; i < n; i++)
        out_bytes[i] = 0;
    for (int i = 0; i < st->n_cell; i++) {
        st->where[i] = where[i];
        for (int32_t k = 0; k < st->cells[i].n_tier; k++) {
            const page_pool *pool = &st->tables[st->cells[i].table + k].pool;
            st->at[i][k] = out_bytes[where[i]];
            out_bytes[where[i]] += (size_t)st->cells[i].tier[k].page_bytes * (size_t)pool->n_page;
        }
    }
}

void state_bind_each(state *st, void *const *base, state_copy *copy, void *ctx)
{
    st->copy = copy ? copy : copy_plain;
    st->copy_ctx = ctx;
    for (int i = 0; i < st->n_cell; i++)
        for (int32_t k = 0; k < st->cells[i].n_tier; k++)
            st->cells[i].tier[k].base = (char *)base[st->where[i]] + st->at[i][k];
}

void state_bind(state *st, void *base, state_copy *copy, void *ctx)
{
    state_bind_each(st, &base, copy, ctx);
}

/* ---- another policy ---- */

/* Pages that calls may need under another policy. Where pages come to a tier sooner than before, the next call makes
 * all that the tier lacks at once, while it still has what will go on to the tier after it. */
static int64_t pages_needed(const state *st, const cell_table *t, const cell_group *then)
{
    cell_group g = *then;
    cell_table as = *t;
    as.g = &g;
    int64_t most = state_pages_most(st, &as), n = st->n_tok_max / g.page_tok + st->n_seq;
    if (t->tier == 0 || g.kv.tier[t->tier - 1].last >= t->g->kv.tier[t->tier - 1].last)
        return most;
    for (int64_t h = 0; h < st->n_seq + st->n_prefix; h++) {
        const page_table *tab = &t->pool.tables[h];
        int64_t end = tier_begin(&g, t->tier, st->length[h]);
        n += (end > tab->n ? end : tab->n) - tab->first;
    }
    return n > most ? n : most;
}

static weft_status check_change(weft_diag *dg, const state *st, const cell_group *g,
                                const cell_group *then, const char *name)
{
    for (int32_t k = 0; k < g->kv.n_tier; k++) {
        const cell_table *t = &st->tables[g->table + k];
        int64_t need = pages_needed(st, t, then);
        if (!keeps_all(t) && need > t->pool.n_page)
            return weft_fail(dg, W1415, WEFT_NOWHERE,
                             "%s would need %" PRId64 " page%s of %" PRId64
                             " tokens in tier %d (%s); there are %" PRId64,
                             name, need, need == 1 ? "" : "s", g->page_tok, (int)k,
                             kform_name(g->kv.tier[k].key), t->pool.n_page);
    }
    return WEFT_OK;
}

weft_status state_change(weft_diag *dg, state *st, const kpolicy *kv)
{
    arena *a = arena_create();
    cell_group *then = ARENA_ARRAY(a, cell_group, (size_t)st->n_group);
    weft_status status = WEFT_OK;
    for (int i = 0; i < st->n_cell && status == WEFT_OK; i++) {
        const cell_group *g = st->tables[st->cells[i].table].g;
        cell_group *to = &then[g - st->groups];
        *to = *g;
        to->kv = cell_policy(&st->plan_cells[i], kv);
        if (!kpolicy_same_forms(&to->kv, &g->kv)) {
            strbuf was = {0}, is = {0};
            kpolicy_print(&g->kv, &was);
            kpolicy_print(&to->kv, &is);
            status = weft_fail(dg, W1415, WEFT_NOWHERE,
                               "%s is stored as `%s`, which cannot become `%s`: only `last` of a "
                               "tier can change",
                               st->names[i], was.p, is.p);
            strbuf_free(&was);
            strbuf_free(&is);
        } else {
            status = check_change(dg, st, g, to, st->names[i]);
        }
    }
    for (int32_t i = 0; i < st->n_group && status == WEFT_OK; i++) {
        st->groups[i].kv = then[i].kv;
        for (int32_t k = 0; k + 1 < then[i].kv.n_tier; k++)
            for (int64_t h = 0; h < st->n_seq + st->n_prefix; h++) {
                page_table *tab = &st->tables[st->groups[i].table + k].pool.tables[h];
                tab->stays = tab->first;
            }
    }
    /* Where pages cross later than before, a coarser tier may have some that are not due yet. */
    for (int64_t h = 0; h < st->n_seq + st->n_prefix && status == WEFT_OK; h++)
        state_cut(st, h, st->length[h]);
    arena_destroy(a);
    return status;
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

int state_cell_count(const state *st)
{
    return st->n_cell;
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

static const cell_table *table_at(const state *st, int32_t table)
{
    WEFT_ASSERT(table >= 0 && table < st->n_table);
    return &st->tables[table];
}

int64_t state_pages_count(const state *st, int32_t table)
{
    return table_at(st, table)->pool.n_page;
}

int64_t state_pages_free(const state *st, int32_t table)
{
    return table_at(st, table)->pool.n_free;
}

size_t state_page_bytes(const state *st, int32_t table)
{
    return table_at(st, table)->page_bytes;
}

kpolicy_tier state_table_tier(const state *st, int32_t table)
{
    const cell_table *t = table_at(st, table);
    return t->g->kv.tier[t->tier];
}

int32_t state_paged_table(const state *st)
{
    for (int32_t i = 0; i < st->n_table; i++)
        if (st->tables[i].g->layout == PLAN_PAGED)
            return i + st->tables[i].g->kv.n_tier - 1;
    return -1;
}

int64_t state_page_tokens(const state *st, int32_t table)
{
    return table_at(st, table)->g->page_tok;
}

int64_t state_page_entries(const state *st, int32_t table)
{
    return i64_ceil_div(st->n_ctx, state_page_tokens(st, table));
}

state_page_table state_pages(const state *st, int32_t table, int64_t seq)
{
    WEFT_ASSERT(state_has(st, seq));
    const cell_table *t = table_at(st, table);
    const page_table *tab = &t->pool.tables[seq];
    int64_t made = t->tier && t->marks[seq].made < tab->n ? t->marks[seq].made : tab->n;
    return (state_page_table){
        .page = tab->page, .n = tab->n, .version = tab->version, .made = made};
}
