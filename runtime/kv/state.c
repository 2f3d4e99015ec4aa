/* state.c - the pool of pages and the page tables.
 *
 * Free pages are a stack of numbers. A page is free when no table holds it. */
#include "runtime/kv/state.h"

#include "runtime/base/intmath.h"
#include "runtime/base/mem.h"
#include <inttypes.h>
#include <stdlib.h>

typedef struct {
    int32_t *pages; /* [pages_seq] */
    int64_t n_page; /* entries in use; pages for reserved tokens included */
    int64_t length; /* tokens committed */
} sequence;

struct state {
    int64_t n_seq, n_ctx, page_tok, n_page;
    int64_t pages_seq; /* the longest page table */
    int n_cell;
    size_t bytes, table_bytes;
    kcell *cells;   /* [n_cell] */
    size_t *at;     /* [n_cell]: where each cell's pages begin in the memory */
    sequence *seqs; /* [n_seq] */
    int32_t *refs;  /* [n_page]: tables that hold the page */
    int32_t *free;  /* [n_free]: pages that none holds */
    int64_t n_free;
    arena *home;
};

/* What one page of cell c takes. */
static bool page_bytes(const plan_cell *c, const state_options *opt, int64_t page_tok,
                       size_t *out_bytes)
{
    int64_t elems = c->latent ? c->k : c->heads * (c->k + c->v);
    return i64_mul(elems, page_tok, &elems) && dtype_bytes(opt->type, elems, out_bytes);
}

static weft_status lay_out(weft_diag *dg, state *st, const plan *p, const state_options *opt)
{
    for (int i = 0; i < st->n_cell; i++) {
        const plan_cell *c = &p->cell[i];
        size_t page, all, end;
        if (!page_bytes(c, opt, st->page_tok, &page) || !size_align_up(page, PLAN_ALIGN, &page) ||
            !size_mul(page, (size_t)st->n_page, &all) || !size_add(st->bytes, all, &end) ||
            end > INT64_MAX)
            return weft_fail(dg, W0902, WEFT_NOWHERE,
                             "%" PRId64 " pages of %" PRId64 " tokens in %d cells do not fit into "
                             "memory",
                             st->n_page, st->page_tok, st->n_cell);
        st->at[i] = st->bytes;
        st->bytes = end;
        st->cells[i] = (kcell){.page_bytes = (int64_t)page,
                               .page_tok = st->page_tok,
                               .heads = c->heads,
                               .k = c->k,
                               .v = c->v,
                               .latent = c->latent,
                               .type = opt->type};
    }
    return WEFT_OK;
}

static weft_status check_count(weft_diag *dg, const char *what, int64_t n, int64_t most)
{
    if (n >= 1 && n <= most)
        return WEFT_OK;
    return weft_fail(dg, W1406, WEFT_NOWHERE, "%s is %" PRId64 "; it must be from 1 to %" PRId64,
                     what, n, most);
}

enum { SEQ_MAX = 1 << 20, PAGES_MAX = 1 << 26, PAGE_TOK_MAX = 1 << 16 };

weft_status state_create(weft_diag *dg, const plan *p, const state_options *opt, state **out_st)
{
    int64_t page_tok = opt->page_tok ? opt->page_tok : STATE_PAGE_TOK;
    WEFT_TRY(check_count(dg, "the number of sequences", opt->n_seq, SEQ_MAX));
    WEFT_TRY(check_count(dg, "the context", opt->n_ctx, INT32_MAX));
    WEFT_TRY(check_count(dg, "the number of tokens in a page", page_tok, PAGE_TOK_MAX));
    int64_t pages_seq = i64_ceil_div(opt->n_ctx, page_tok);
    int64_t n_page = opt->n_page ? opt->n_page : pages_seq * opt->n_seq;
    WEFT_TRY(check_count(dg, "the number of pages", n_page, PAGES_MAX));
    WEFT_TRY(check_count(dg, "pages of all sequences at full length", pages_seq * opt->n_seq,
                         PAGES_MAX));

    arena *home = arena_create();
    state *st = ARENA_NEW(home, state);
    *st = (state){.n_seq = opt->n_seq,
                  .n_ctx = opt->n_ctx,
                  .page_tok = page_tok,
                  .n_page = n_page,
                  .pages_seq = pages_seq,
                  .n_cell = p->n_cell,
                  .home = home};
    st->cells = ARENA_ARRAY(home, kcell, (size_t)p->n_cell);
    st->at = ARENA_ARRAY(home, size_t, (size_t)p->n_cell);
    weft_status status = lay_out(dg, st, p, opt);
    if (status != WEFT_OK) {
        arena_destroy(home);
        return status;
    }
    st->seqs = ARENA_ARRAY(home, sequence, (size_t)st->n_seq);
    for (int64_t i = 0; i < st->n_seq; i++)
        st->seqs[i].pages = ARENA_ARRAY(home, int32_t, (size_t)pages_seq);
    st->refs = ARENA_ARRAY(home, int32_t, (size_t)n_page);
    st->free = ARENA_ARRAY(home, int32_t, (size_t)n_page);
    st->n_free = n_page;
    for (int64_t i = 0; i < n_page; i++)
        st->free[i] = (int32_t)(n_page - 1 - i); /* page 0 is handed out first */
    st->table_bytes = arena_bytes(home);
    *out_st = st;
    return WEFT_OK;
}

void state_destroy(state *st)
{
    if (st)
        arena_destroy(st->home); /* st itself with it */
}

size_t state_bytes(const state *st)
{
    return st->bytes;
}

size_t state_table_bytes(const state *st)
{
    return st->table_bytes;
}

void state_bind(state *st, void *base)
{
    for (int i = 0; i < st->n_cell; i++)
        st->cells[i].base = (char *)base + st->at[i];
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

static sequence *seq_at(const state *st, int64_t seq)
{
    WEFT_ASSERT(state_has(st, seq));
    return &st->seqs[seq];
}

int64_t state_length(const state *st, int64_t seq)
{
    return seq_at(st, seq)->length;
}

int64_t state_pages_free(const state *st)
{
    return st->n_free;
}

int64_t state_context(const state *st)
{
    return st->n_ctx;
}

const int32_t *state_pages(const state *st, int64_t seq)
{
    return seq_at(st, seq)->pages;
}

static weft_status check_seq(weft_diag *dg, const state *st, int64_t seq)
{
    if (state_has(st, seq))
        return WEFT_OK;
    return weft_fail(dg, W1403, WEFT_NOWHERE,
                     "there is no sequence %" PRId64 "; they are numbered 0 to %" PRId64, seq,
                     st->n_seq - 1);
}

weft_status state_reserve(weft_diag *dg, state *st, int64_t seq, int64_t n_new)
{
    WEFT_TRY(check_seq(dg, st, seq));
    WEFT_ASSERT(n_new >= 0);
    sequence *s = &st->seqs[seq];
    if (n_new > st->n_ctx - s->length)
        return weft_fail(dg, W1404, WEFT_NOWHERE,
                         "sequence %" PRId64 " holds %" PRId64 " tokens; %" PRId64
                         " more pass its context of %" PRId64,
                         seq, s->length, n_new, st->n_ctx);
    int64_t need = i64_ceil_div(s->length + n_new, st->page_tok) - s->n_page;
    if (need > st->n_free)
        return weft_fail(dg, W1401, WEFT_NOWHERE,
                         "sequence %" PRId64 " needs %" PRId64 " more pages of %" PRId64
                         " tokens; %" PRId64 " of %" PRId64 " are free",
                         seq, need, st->page_tok, st->n_free, st->n_page);
    for (; need > 0; need--) {
        int32_t page = st->free[--st->n_free];
        st->refs[page] = 1;
        s->pages[s->n_page++] = page;
    }
    return WEFT_OK;
}

void state_commit(state *st, int64_t seq, int64_t n_new)
{
    sequence *s = seq_at(st, seq);
    WEFT_ASSERT(n_new >= 0 && s->length + n_new <= s->n_page * st->page_tok);
    s->length += n_new;
}

void state_release(state *st, int64_t seq)
{
    sequence *s = seq_at(st, seq);
    int64_t keep = i64_ceil_div(s->length, st->page_tok);
    while (s->n_page > keep) {
        int32_t page = s->pages[--s->n_page];
        WEFT_ASSERT(st->refs[page] > 0);
        if (--st->refs[page] == 0)
            st->free[st->n_free++] = page;
    }
}

weft_status state_truncate(weft_diag *dg, state *st, int64_t seq, int64_t length)
{
    WEFT_TRY(check_seq(dg, st, seq));
    sequence *s = &st->seqs[seq];
    if (length < 0 || length > s->length)
        return weft_fail(dg, W1402, WEFT_NOWHERE,
                         "sequence %" PRId64 " holds %" PRId64
                         " tokens; it cannot be cut to %" PRId64,
                         seq, s->length, length);
    s->length = length;
    state_release(st, seq);
    return WEFT_OK;
}
