/* page_form.h - how the rows of a state cell lie in a page, in each form of kforms.def: the one place that knows.
 *
 * A page of a tier is made of *parts*: the keys of each head, then the values of each head; of a latent cell its rows
 * alone. Which part comes where is the cell's; this is about one part, page_tok rows of `width` numbers.
 *
 * Floats: rows one after the other, without gaps.
 *
 * q8 and q4: blocks of 64 tokens (of page_tok, where that is less), each for itself:
 *
 *     keys, latent rows    step f16 [width], mid f16 [width]; then codes, a row per token
 *                          x[token][c] = mid[c] + step[c] * code
 *     values               step f16 [token][groups of 64 columns]; then codes, a row per token
 *                          x[token][c] = step[token][c / 64] * code
 *
 * Keys have channels that are large in every token, values do not: so a key's step is that of its channel and a value's
 * that of its token. `mid` is the middle of the channel's range, rounded to f16.
 *
 * A code of q8 is an int8 from -119 to 119. q4 keeps its upper half, h = (code + 8) >> 4, from -7 to 7, as the nibble
 * h + 8; x has 16 * step * h in place of step * code. So q4 made of q8 is q4 made of floats, bit for bit: a page is
 * quantised once however often it moves. Of each 32 columns byte i has column i (low nibble) and column i + 16 (high).
 *
 * Rows of codes are padded to 32 columns, and the arrays of step and mid likewise, with code, step and mid 0; the steps
 * of values are padded to 64 bytes, and so is a block. A block so begins at a multiple of 64 bytes from its part.
 *
 * Errors, of numbers whose range f16 holds, against what was quantised; r is the largest distance from mid (of values:
 * from 0) in the group:
 *     step <= r / 119 (1 + 2^-10) + 2^-24;    q8: step / 2;    q4: 8.5 step.
 * A group with a NaN, an infinity or a middle or step beyond f16 has step NaN and codes 0: all of it reads as NaN. One whose
 * numbers are all the middle has step 0.
 *
 * step * code is exact in f32, so that reading gives the same bits with and without fused multiply-adds. Stateless,
 * deterministic on every architecture. Parts are aligned to 2 bytes at least (floats: for their type). */
#ifndef WEFT_KERNELS_PAGE_FORM_H
#define WEFT_KERNELS_PAGE_FORM_H

#include "kernels/kform.h"

enum {
    PAGE_BLOCK = 64,     /* tokens of a block */
    PAGE_GROUP = 64,     /* columns of a value's step */
    PAGE_PAD = 32,       /* columns of a row of codes are padded to it */
    PAGE_ALIGN = 64,     /* bytes */
    PAGE_CODE_MAX = 119, /* so that 16 * 7 + 7 is the last code that rounds down to 7 */
};

/* What a part holds: numbers that are alike by channel, or by token. */
typedef enum { PAGE_KEYS, PAGE_VALUES } page_kind;

/* A part and where in it things are, in bytes. */
typedef struct {
    kform form;
    page_kind kind;
    int64_t page_tok, width;
    int64_t bytes;     /* of the part */
    int64_t row_bytes; /* of a token's numbers or codes */
    /* of a quantised form: */
    int64_t block_tok, block_bytes;
    int64_t codes;  /* from the beginning of a block */
    int64_t mid;    /* the same; keys */
    int64_t groups; /* steps of a token; values */
} page_part;

/* Can pages of so many tokens be stored so? Quantised ones have whole blocks. */
static inline bool page_form_has(kform form, int64_t page_tok)
{
    return kform_is_float(form) || page_tok <= PAGE_BLOCK || page_tok % PAGE_BLOCK == 0;
}

static inline int64_t page_pad(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* page_form_has(form, page_tok); both counts are at least 1. */
static inline page_part page_part_of(kform form, page_kind kind, int64_t page_tok, int64_t width)
{
    page_part p = {.form = form, .kind = kind, .page_tok = page_tok, .width = width};
    if (kform_is_float(form)) {
        p.row_bytes = width * (int64_t)dtype_row_of(kform_dtype(form))->bytes;
        p.bytes = page_tok * p.row_bytes;
        return p;
    }
    int64_t padded = page_pad(width, PAGE_PAD);
    p.block_tok = page_tok < PAGE_BLOCK ? page_tok : PAGE_BLOCK;
    p.row_bytes = form == KFORM_Q8 ? padded : padded / 2;
    p.groups = (width + PAGE_GROUP - 1) / PAGE_GROUP;
    p.mid = 2 * padded;
    p.codes = kind == PAGE_KEYS ? 2 * p.mid : page_pad(2 * p.block_tok * p.groups, PAGE_ALIGN);
    p.block_bytes = page_pad(p.codes + p.block_tok * p.row_bytes, PAGE_ALIGN);
    p.bytes = page_tok / p.block_tok * p.block_bytes;
    return p;
}

/* Bytes from the beginning of a part to the block of a token; quantised forms. */
static inline int64_t page_block(const page_part *p, int64_t tok)
{
    return tok / p->block_tok * p->block_bytes;
}

/* The same to the numbers or codes of a token. */
static inline int64_t page_row(const page_part *p, int64_t tok)
{
    if (kform_is_float(p->form))
        return tok * p->row_bytes;
    return page_block(p, tok) + p->codes + tok % p->block_tok * p->row_bytes;
}

/* Columns [col, col + n_col) of tokens [tok, tok + n_tok) of the part at `part` as floats; rows of `to` are `pitch`
 * floats apart. */
void page_read(const page_part *p, const void *part, int64_t tok, int64_t n_tok, int64_t col,
               int64_t n_col, float *to, int64_t pitch);

/* Write all tokens of the part at `dst` from the part at `src`, of the same kind, page_tok and width. From floats to
 * any form, from q8 to q4, or from a form to itself. They do not overlap. */
void page_convert(const page_part *to, void *dst, const page_part *from, const void *src);

#endif
