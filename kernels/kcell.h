/* kcell.h - a state cell as a kernel sees it: numbers of past tokens, in pages, in one or more tiers.
 *
 * A tier is a way to store: forms of keys and of values. Rows are appended in tier 0, whose forms are floats. As tokens
 * go by a page becomes one of the next tier, a whole page at a time (op convert). For a row at position t, page e, which
 * holds positions [e * page_tok, (e + 1) * page_tok), is in tier k or a coarser one if
 *
 *     t - ((e + 1) * page_tok - 1) >= last[k - 1]
 *
 * so it depends on nothing but the two. `last` is in the batch (kbatch_last). The first `pinned` pages of a sequence stay
 * in tier 0 for good. */
#ifndef WEFT_KERNELS_KCELL_H
#define WEFT_KERNELS_KCELL_H

#include "kernels/kpolicy.h"

typedef struct {
    char *base;         /* page p begins at base + p * page_bytes */
    int64_t page_bytes; /* its parts, and what they are padded with */
    kform key, value;   /* of a latent row: key, and value is the same */
} kcell_tier;

/* A page holds keys [heads, page_tok, k], then values [heads, page_tok, v]; of a latent cell rows [page_tok, k] alone; where
 * forms have blocks, page_form.h says how these lie. Position i of a sequence is token i % page_tok of its page
 * i / page_tok. */
typedef struct {
    kcell_tier tier[K_TIERS_MAX];
    int32_t n_tier;
    int32_t table; /* of the batch's page tables, that of tier 0; those of the other tiers follow */
    int64_t page_tok;
    int64_t pinned;      /* pages at the beginning of a sequence that stay in tier 0 */
    int64_t heads, k, v; /* a latent row: heads 1, k its width, v the part that serves as value */
    bool latent;         /* one row per token; no separate values */
} kcell;

#endif
