/* state_parts.c - walks pages as state.c and page_form.h lay them out. */
#include "runtime/kv/state_parts.h"

#include "kernels/page_form.h"

typedef struct {
    weft_diag *dg;
    state_part_fn *fn;
    void *ctx;
} visitor;

/* The heads' parts of one kind, which begin *at bytes behind `page`; NULL: there is no page. */
static weft_status each_head(const visitor *v, const page_part *p, int64_t heads, int64_t n_row,
                             char *page, int64_t *at)
{
    int64_t bytes = kform_is_float(p->form) ? n_row * p->row_bytes : p->bytes;
    for (int64_t h = 0; h < heads; h++, *at += p->bytes)
        if (bytes > 0)
            WEFT_TRY(v->fn(v->ctx, v->dg, page ? page + *at : NULL, (size_t)bytes));
    return WEFT_OK;
}

static weft_status each_part(const visitor *v, const kcell *c, int tier, int32_t number,
                             int64_t n_row)
{
    const kcell_tier *t = &c->tier[tier];
    char *page = number < 0 ? NULL : t->base + number * t->page_bytes;
    int64_t at = 0;
    page_part keys = page_part_of(t->key, PAGE_KEYS, c->page_tok, c->k);
    WEFT_TRY(each_head(v, &keys, c->heads, n_row, page, &at));
    if (c->latent)
        return WEFT_OK;
    page_part values = page_part_of(t->value, PAGE_VALUES, c->page_tok, c->v);
    return each_head(v, &values, c->heads, n_row, page, &at);
}

weft_status state_parts_each(weft_diag *dg, const state *st, int64_t seq, const state_span *spans,
                             int64_t length, state_part_fn *fn, void *ctx)
{
    visitor v = {dg, fn, ctx};
    const kcell *cells = state_cells(st);
    for (int32_t table = 0; table < state_tables(st); table++)
        for (int64_t e = 0; e < spans[table].n; e++)
            for (int i = 0; i < state_cell_count(st); i++) {
                const kcell *c = &cells[i];
                int tier = table - c->table;
                bool has =
                    e >= spans[table].first || e < state_span_pinned(st, table, &spans[table]);
                if (tier < 0 || tier >= c->n_tier || !has)
                    continue;
                int64_t left = length - e * c->page_tok;
                int32_t page = seq < 0 ? -1 : state_pages(st, table, seq).page[e];
                WEFT_TRY(each_part(&v, c, tier, page, left < c->page_tok ? left : c->page_tok));
            }
    return WEFT_OK;
}
