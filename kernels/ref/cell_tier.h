/* cell_tier.h - in which tier of a cell a row sees a page, and where the parts of a page of any form begin. */
#ifndef WEFT_KERNELS_REF_CELL_TIER_H
#define WEFT_KERNELS_REF_CELL_TIER_H

#include "kernels/kernels.h"
#include "kernels/page_form.h"

/* The tier in which a row at `pos` of sequence `seq` of the call sees entry `e` of its page tables: that of the entry's
 * age, or the next coarser one that has it. */
static inline int cell_tier(const kcell *c, const kbatch *b, int64_t seq, int64_t pos, int64_t e)
{
    int64_t age = pos - ((e + 1) * c->page_tok - 1); /* of its youngest token */
    int k = 0;
    while (k + 1 < c->n_tier && e >= c->pinned && age >= kbatch_last(b, c->table + k))
        k++;
    while (k + 1 < c->n_tier && kbatch_pages(b, c->table + k, seq)[e] < 0)
        k++;
    return k;
}

/* The parts of a tier's pages. */
static inline page_part cell_key_part(const kcell *c, int tier)
{
    return page_part_of(c->tier[tier].key, PAGE_KEYS, c->page_tok, c->k);
}

/* Not for a latent cell. */
static inline page_part cell_value_part(const kcell *c, int tier)
{
    return page_part_of(c->tier[tier].value, PAGE_VALUES, c->page_tok, c->v);
}

/* Bytes of a page's parts, all heads. */
static inline int64_t cell_page_bytes(const kcell *c, int tier)
{
    int64_t value = c->latent ? 0 : cell_value_part(c, tier).bytes;
    return c->heads * (cell_key_part(c, tier).bytes + value);
}

/* Where a head's part begins in a page. */
static inline char *cell_key_at(const kcell *c, int tier, int32_t page, int64_t head)
{
    WEFT_ASSERT(page >= 0);
    return c->tier[tier].base + page * c->tier[tier].page_bytes +
           head * cell_key_part(c, tier).bytes;
}

static inline char *cell_value_at(const kcell *c, int tier, int32_t page, int64_t head)
{
    WEFT_ASSERT(page >= 0);
    return c->tier[tier].base + page * c->tier[tier].page_bytes +
           c->heads * cell_key_part(c, tier).bytes + head * cell_value_part(c, tier).bytes;
}

#endif
