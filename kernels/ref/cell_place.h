/* cell_place.h - where a state cell keeps the rows of a position, the layout of kcell in kernels.h, and which of them a
 * query sees.
 *
 * The runtime has given a sequence a page for every position it uses. */
#ifndef WEFT_KERNELS_REF_CELL_PLACE_H
#define WEFT_KERNELS_REF_CELL_PLACE_H

#include "kernels/kernels.h"

/* Bytes of n numbers of a form that is floats. */
static inline int64_t cell_bytes(kform f, int64_t n)
{
    return n * (int64_t)dtype_row_of(kform_dtype(f))->bytes;
}

/* `pages` is the sequence's table of that tier, here and below. */
static inline char *cell_page(const kcell *c, int tier, const int32_t *pages, int64_t pos)
{
    int32_t page = pages[pos / c->page_tok];
    WEFT_ASSERT(pos >= 0 && page >= 0);
    return c->tier[tier].base + page * c->tier[tier].page_bytes;
}

/* Of a tier of floats. */
static inline char *cell_key(const kcell *c, int tier, const int32_t *pages, int64_t pos,
                             int64_t head)
{
    int64_t tok = pos % c->page_tok;
    return cell_page(c, tier, pages, pos) +
           cell_bytes(c->tier[tier].key, (head * c->page_tok + tok) * c->k);
}

/* Not for a latent cell, whose value is the beginning of its key. */
static inline char *cell_value(const kcell *c, int tier, const int32_t *pages, int64_t pos,
                               int64_t head)
{
    const kcell_tier *t = &c->tier[tier];
    int64_t tok = pos % c->page_tok, keys = c->page_tok * c->heads * c->k;
    return cell_page(c, tier, pages, pos) + cell_bytes(t->key, keys) +
           cell_bytes(t->value, (head * c->page_tok + tok) * c->v);
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
