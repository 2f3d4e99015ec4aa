/* grammar_filter.c - a grammar as what a request may choose from. */
#include "runtime/grammar/grammar_filter.h"

#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"

typedef struct {
    token_filter base;
    grammar *g;
    matcher *m; /* NULL: it is only there to be copied */
} grammar_filter;

static const token_filter_kind filter_kind;

static void let_go(void *g)
{
    grammar_destroy(g);
}

/* The hold comes before the matcher, so that where memory is short it goes after it. */
static grammar_filter *make(grammar *g)
{
    grammar_filter *f = mem_alloc(sizeof *f);
    *f = (grammar_filter){.base.kind = &filter_kind, .g = grammar_hold(g)};
    mem_scope_on_fail(let_go, g);
    return f;
}

static matcher *matcher_of(const token_filter *base)
{
    matcher *m = ((const grammar_filter *)base)->m;
    WEFT_ASSERT(m);
    return m;
}

static weft_status filter_mask(weft_diag *dg, token_filter *f, const uint64_t **out_mask)
{
    return matcher_mask(dg, matcher_of(f), out_mask);
}

static weft_status filter_accept(weft_diag *dg, token_filter *f, int32_t id)
{
    return matcher_accept(dg, matcher_of(f), id);
}

static bool filter_must_end(const token_filter *f)
{
    return matcher_must_end(matcher_of(f));
}

static token_filter *filter_copy(const token_filter *f)
{
    grammar *g = ((const grammar_filter *)f)->g;
    grammar_filter *made = make(g);
    made->m = matcher_create(g);
    return &made->base;
}

static void filter_reset(token_filter *f)
{
    matcher_reset(matcher_of(f));
}

static void filter_destroy(token_filter *base)
{
    grammar_filter *f = (grammar_filter *)base;
    matcher_destroy(f->m);
    mem_scope_forget(let_go, f->g);
    grammar_destroy(f->g);
    mem_free(f);
}

static const token_filter_kind filter_kind = {filter_mask, filter_accept, filter_must_end,
                                              filter_copy, filter_reset,  filter_destroy};

token_filter *grammar_filter_create(grammar *g)
{
    return &make(g)->base;
}
