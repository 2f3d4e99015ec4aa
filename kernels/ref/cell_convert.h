/* cell_convert.h - the work of convert: units [begin, end) of the pages that a call has to make in a tier.
 *
 * A unit is a head of a page: the keys of a head, and its values, from the page of the tier before. Pages of all sequences are
 * counted one after the other. What a page looks like in a form, and how one form becomes another, is page_form.h's; so all
 * kernels give the same bits. Rows of this call are in tier 0 already, and the tier before is made. */
#ifndef WEFT_KERNELS_REF_CELL_CONVERT_H
#define WEFT_KERNELS_REF_CELL_CONVERT_H

#include "kernels/ref/cell_tier.h"

static inline void convert_head(const kcell *c, int tier, int32_t from, int32_t to, int64_t head)
{
    page_part src = cell_key_part(c, tier - 1), dst = cell_key_part(c, tier);
    page_convert(&dst, cell_key_at(c, tier, to, head), &src, cell_key_at(c, tier - 1, from, head));
    if (c->latent)
        return;
    src = cell_value_part(c, tier - 1);
    dst = cell_value_part(c, tier);
    page_convert(&dst, cell_value_at(c, tier, to, head), &src,
                 cell_value_at(c, tier - 1, from, head));
}

static inline void convert_units(const kargs *k, int64_t begin, int64_t end)
{
    const kcell *c = k->cell;
    int tier = (int)k->size.convert.tier;
    int64_t table = c->table + tier, first = 0; /* unit of the sequence's first page */
    for (int64_t s = 0; s < k->batch->n_seq && first < end; s++) {
        const int32_t *range = kbatch_convert(k->batch, table, s);
        const int32_t *from = kbatch_pages(k->batch, table - 1, s),
                      *to = kbatch_pages(k->batch, table, s);
        int64_t n = (range[1] - range[0]) * c->heads;
        int64_t u = begin > first ? begin - first : 0, stop = end - first < n ? end - first : n;
        for (; u < stop; u++) {
            int64_t e = range[0] + u / c->heads;
            convert_head(c, tier, from[e], to[e], u % c->heads);
        }
        first += n;
    }
}

#endif
