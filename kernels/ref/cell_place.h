/* cell_place.h - where a state cell keeps the rows of a position, the layout of kcell in kernels.h, and which of them a
 * query sees.
 *
 * The runtime has given a sequence a page for every position it uses. */
#ifndef WEFT_KERNELS_REF_CELL_PLACE_H
#define WEFT_KERNELS_REF_CELL_PLACE_H

#include "kernels/kernels.h"

/* Bytes of n numbers of the stored type, which has no blocks or whole ones here. */
static inline int64_t cell_bytes(const kcell *c, int64_t n)
{
    const dtype_row *d = dtype_row_of(c->type);
    return n / d->elems * (int64_t)d->bytes;
}

static inline char *cell_page(const kcell *c, const int32_t *pages, int64_t pos)
{
    WEFT_ASSERT(pos >= 0);
    return c->base + pages[pos / c->page_tok] * c->page_bytes;
}

static inline char *cell_key(const kcell *c, const int32_t *pages, int64_t pos, int64_t head)
{
    int64_t tok = pos % c->page_tok;
    return cell_page(c, pages, pos) + cell_bytes(c, (head * c->page_tok + tok) * c->k);
}

/* Not for a latent cell, whose value is the beginning of its key. */
static inline char *cell_value(const kcell *c, const int32_t *pages, int64_t pos, int64_t head)
{
    int64_t tok = pos % c->page_tok, keys = c->page_tok * c->heads * c->k;
    return cell_page(c, pages, pos) + cell_bytes(c, keys + (head * c->page_tok + tok) * c->v);
}

/* The first position that a query of attend at `pos` sees. */
static inline int64_t attend_first(const kargs *k, int64_t pos)
{
    int64_t window = k->size.attend.window, chunk = k->size.attend.chunk, first = 0;
    if (window > 0 && pos - window + 1 > first)
        first = pos - window + 1;
    if (chunk > 0 && pos / chunk * chunk > first)
        first = pos / chunk * chunk;
    return first;
}

#endif
