/* cell_place.h - where a state cell keeps the rows of a position; the layout of kcell in kernels.h.
 *
 * A page holds keys [page_tok, heads, k], then values [page_tok, heads, v]; of a latent cell it
 * holds rows [page_tok, k] alone. The runtime has given a sequence a page for every position it
 * uses. */
#ifndef WEFT_KERNELS_REF_CELL_PLACE_H
#define WEFT_KERNELS_REF_CELL_PLACE_H

#include "kernels/kernels.h"

/* Bytes of n numbers of the stored type, which has no blocks or whole ones here. */
static inline int64_t cell_bytes(const kcell *c, int64_t n)
{
    const dtype_row *d = dtype_row_of(c->type);
    return n / d->elems * (int64_t)d->bytes;
}

static inline char *cell_page(const kcell *c, const int32_t *pages, int64_t pos, int64_t *out_tok)
{
    WEFT_ASSERT(pos >= 0);
    int64_t place = c->ring > 0 ? pos % c->ring : pos;
    *out_tok = place % c->page_tok;
    return c->base + pages[place / c->page_tok] * c->page_bytes;
}

static inline char *cell_key(const kcell *c, const int32_t *pages, int64_t pos, int64_t head)
{
    int64_t tok;
    char *page = cell_page(c, pages, pos, &tok);
    return page + cell_bytes(c, (tok * c->heads + head) * c->k);
}

/* Not for a latent cell, whose value is the beginning of its key. */
static inline char *cell_value(const kcell *c, const int32_t *pages, int64_t pos, int64_t head)
{
    int64_t tok;
    char *page = cell_page(c, pages, pos, &tok);
    int64_t keys = c->page_tok * c->heads * c->k;
    return page + cell_bytes(c, keys + (tok * c->heads + head) * c->v);
}

#endif
