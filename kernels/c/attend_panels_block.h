/* attend_panels_block.h - for attend_panels.h: a block of 64 positions as its products read it, from the tier in which rows
 * see it.
 *
 * Pages of a tier hold blocks of floats, or of codes (page_form.h). Rows of a call may see one page in different tiers; a
 * block is then computed once for each *run* of rows that see all of it alike. The products read floats where they are
 * stored or in scratch; blocks of codes become floats there, but for processors that multiply codes (attend_codes.h). */
#ifndef WEFT_KERNELS_C_ATTEND_PANELS_BLOCK_H
#define WEFT_KERNELS_C_ATTEND_PANELS_BLOCK_H

#include <string.h>
#include "kernels/c/attend_panels_size.h"
#include "kernels/ref/cell_place.h"
#include "kernels/ref/cell_tier.h"

enum { KEYS = ATTEND_KEYS };

/* What the products of a processor want. */
typedef struct {
    int64_t pad;   /* widths are multiples of it */
    int64_t ahead; /* bytes of keys and values after which a block is asked for */
    int64_t many;  /* queries of a unit where a call has many: ATTEND_MANY_READ or _COPIED */
    bool codes;    /* it multiplies codes: block_codes */
} attend_traits;

/* The pages of a tier. */
typedef struct {
    page_part key, value;
    const char *base;
    int64_t page_bytes, values; /* from the beginning of a page to its values */
    const int32_t *pages;       /* of the sequence at hand */
} attend_tier;

/* Rows of one sequence, and some query heads of one head of the cell. Queries are [rows, heads]; query i is lane
 * i % lanes of panel i / lanes. The last panel may have lanes that are nobody's. */
typedef struct {
    const kargs *k;
    attend_panels_size size;
    attend_traits want;
    attend_tier tier[K_TIERS_MAX];
    int64_t row, seq;         /* the first of the rows; their sequence */
    const int32_t *pos;       /* of each row */
    int64_t head, first_head; /* of the cell; of the query heads */
    int64_t rows, heads, queries;
    int64_t lanes, panels;
    int64_t k_width, v_width;             /* as the products see them, multiples of want.pad */
    bool copied;                          /* keys and values of this block are floats in scratch */
    bool next_head;                       /* the unit after this one is the next head of the cell */
    bool hinted;                          /* this unit's first blocks have been asked for */
    dtype type;                           /* of the keys and values as the products read them */
    float *q;                             /* [queries, k_width], scaled, in an order of its own */
    float *q_tiles;                       /* the same as attend_codes.h wants them, or NULL */
    float *p;                             /* [panels, KEYS, lanes]: logits, then weights */
    float *sum;                           /* [queries, size.v]: of this stretch */
    float *max, *total;                   /* [queries]: of this stretch */
    float *keep;                          /* [queries]: what a block leaves of the sums so far */
    float *sum_all, *max_all, *total_all; /* of the stretches before */
    int32_t *begin, *end;                 /* [queries]: what each sees of the block */
    float *key_mem, *value_mem;
    const attend_tier *now;            /* the tier that the block is read from */
    bool codes;                        /* key and value are blocks of codes */
    const char *key, *value;           /* the block's: what no row sees may be anything */
    int64_t key_pitch, value_pitch;    /* bytes */
    const char *hint_key, *hint_value; /* of a block that will be read later, as stored; or NULL */
    int64_t hint_key_pitch, hint_value_pitch;
} attend_work;

/* What attend_panels.h says of them. */
static void floats_read(const char *from, dtype type, int64_t n, float *to);
static bool panel_direct(const attend_work *w);

static void tiers_begin(attend_work *w)
{
    const kcell *c = w->k->cell;
    for (int i = 0; i < c->n_tier; i++) {
        attend_tier *t = &w->tier[i];
        t->key = cell_key_part(c, i);
        t->value = c->latent ? t->key : cell_value_part(c, i);
        t->base = c->tier[i].base;
        t->page_bytes = c->tier[i].page_bytes;
        t->values = c->latent ? 0 : c->heads * t->key.bytes;
    }
}

static int64_t stored_bytes(dtype type)
{
    return type == DT_F32 ? 4 : 2;
}

/* ---- which tier ---- */

/* That in which a row sees the page of a position. */
static int tier_at(const attend_work *w, int64_t row, int64_t pos)
{
    return cell_tier(w->k->cell, w->k->batch, w->seq, w->pos[row], pos / w->k->cell->page_tok);
}

/* Do rows a < b see all of the block at `at` alike? Of pages that row a does not see yet tier 0 counts. */
static bool rows_agree(const attend_work *w, int64_t at, int64_t a, int64_t b)
{
    int64_t page_tok = w->k->cell->page_tok;
    int64_t end = at + KEYS <= w->pos[b] ? at + KEYS : w->pos[b] + 1;
    for (int64_t i = at; i < end; i = (i / page_tok + 1) * page_tok)
        if (tier_at(w, a, i) != tier_at(w, b, i))
            return false;
    return true;
}

/* The end of the run of rows that begins with `from`, `to` at most: from row to row tiers only grow coarser. */
static int64_t run_end(const attend_work *w, int64_t at, int64_t from, int64_t to)
{
    if (w->k->cell->n_tier == 1 || from + 1 == to || rows_agree(w, at, from, to - 1))
        return to;
    int64_t end = from + 1;
    while (rows_agree(w, at, from, end))
        end++;
    return end;
}

/* ---- reading ---- */

static void row_copy(dtype type, const char *from, int64_t n, float *to)
{
    if (type == DT_F32)
        memcpy(to, from, (size_t)n * sizeof *to);
    else
        floats_read(from, type, n, to);
}

/* Tokens [tok, tok + n) of a part as floats, padded with zeros. */
static void rows_copy(const page_part *p, const char *part, int64_t tok, int64_t n, int64_t padded,
                      float *to)
{
    dtype type = kform_dtype(p->form);
    const char *from = part + page_row(p, tok);
    if (type == DT_COUNT)
        page_read(p, part, tok, n, 0, p->width, to, padded);
    else if (p->width == padded)
        row_copy(type, from, n * padded, to);
    else
        for (int64_t i = 0; i < n; i++)
            row_copy(type, from + i * p->row_bytes, p->width, to + i * padded);
    for (int64_t i = 0; p->width != padded && i < n; i++)
        memset(to + i * padded + p->width, 0, (size_t)(padded - p->width) * sizeof *to);
}

/* Positions [begin, end) of the block at `at` as `row` sees them, a page at a time. */
static void block_copy(attend_work *w, int64_t row, int64_t at, int64_t begin, int64_t end)
{
    const kcell *c = w->k->cell;
    for (int64_t i = begin; i < end;) {
        int64_t page = (at + i) / c->page_tok, tok = at + i - page * c->page_tok;
        int64_t n = c->page_tok - tok < end - i ? c->page_tok - tok : end - i;
        const attend_tier *t = &w->tier[tier_at(w, row, at + i)];
        const char *from = t->base + t->pages[page] * t->page_bytes;
        rows_copy(&t->key, from + w->head * t->key.bytes, tok, n, w->k_width,
                  w->key_mem + i * w->k_width);
        if (!c->latent)
            rows_copy(&t->value, from + t->values + w->head * t->value.bytes, tok, n, w->v_width,
                      w->value_mem + i * w->v_width);
        i += n;
    }
}

static int64_t part_offset(const page_part *p, int64_t tok)
{
    return kform_is_float(p->form) ? page_row(p, tok) : page_block(p, tok);
}

/* Where the keys and values of a whole block lie in a tier; a page has whole blocks. */
static void block_place(const attend_work *w, const attend_tier *t, int64_t at, int64_t head,
                        const char **out_key, const char **out_value)
{
    int64_t page = at / t->key.page_tok, tok = at - page * t->key.page_tok;
    const char *base = t->base + t->pages[page] * t->page_bytes;
    *out_key = base + head * t->key.bytes + part_offset(&t->key, tok);
    *out_value = w->k->cell->latent
                     ? *out_key
                     : base + t->values + head * t->value.bytes + part_offset(&t->value, tok);
}

/* Does a block lie in several pages? */
static bool is_scattered(const attend_work *w)
{
    return w->k->cell->page_tok % KEYS != 0;
}

/* The products' operands where they are, if they can be read there. */
static bool block_direct(const attend_work *w, const attend_tier *t)
{
    const kcell *c = w->k->cell;
    int64_t pad = w->want.pad;
    bool ragged = c->k % pad != 0 || (!c->latent && c->v % pad != 0);
    bool alike = kform_is_float(t->key.form) && t->key.form == t->value.form;
    return !ragged && !is_scattered(w) && alike && (t->key.form == KFORM_F32 || panel_direct(w));
}

/* Positions [begin, end) of the block at `at`, as `row` sees them. */
static void block_read(attend_work *w, int64_t row, int64_t at, int64_t begin, int64_t end)
{
    const attend_tier *t = &w->tier[w->k->cell->n_tier == 1 ? 0 : tier_at(w, row, at)];
    w->now = t;
    w->codes = w->want.codes && attend_tier_codes(w->k->cell, (int)(t - w->tier));
    if (w->codes || block_direct(w, t)) {
        w->copied = false;
        w->type = kform_dtype(t->key.form);
        block_place(w, t, at, w->head, &w->key, &w->value);
    } else {
        w->copied = true;
        w->type = DT_F32;
        block_copy(w, row, at, begin, end);
        w->key = (const char *)w->key_mem;
        w->value = (const char *)(w->k->cell->latent ? w->key_mem : w->value_mem);
    }
    w->key_pitch = w->k_width * stored_bytes(w->type); /* of codes it is of no use */
    w->value_pitch = w->k->cell->latent ? w->key_pitch : w->v_width * stored_bytes(w->type);
}

/* Bytes of a block of a part. */
static int64_t part_block_bytes(const page_part *p)
{
    return kform_is_float(p->form) ? KEYS * p->row_bytes : p->block_bytes;
}

/* While a block is computed for rows up to `row`, its products ask for the one so many later, be it the next head's, if it is
 * of the same tier. */
static void block_hint(attend_work *w, int64_t row, int64_t block, int64_t first, int64_t last)
{
    const kcell *c = w->k->cell;
    w->hint_key = w->hint_value = NULL;
    if (is_scattered(w))
        return;
    const attend_tier *t = &w->tier[tier_at(w, row, block * KEYS)];
    int64_t key = part_block_bytes(&t->key), value = c->latent ? 0 : part_block_bytes(&t->value);
    int64_t then = block + (w->want.ahead + key + value - 1) / (key + value), head = w->head;
    if (then > last && w->next_head) {
        then = first + then - last - 1;
        head++;
    }
    if (then > last || &w->tier[tier_at(w, row, then * KEYS)] != t)
        return;
    w->hint_key_pitch = key / KEYS;
    w->hint_value_pitch = value / KEYS;
    block_place(w, t, then * KEYS, head, &w->hint_key, &w->hint_value);
    if (c->latent)
        w->hint_value = NULL;
}

#endif
