/* page_form.h - how the rows of a state cell lie in a page, in each form of kforms.def: the one place that knows.
 *
 * A page of a tier is made of *parts*: the keys of each head, then the values of each head; of a latent cell its rows
 * alone. Which part comes where is the cell's; this is about one part, page_tok rows of `width` numbers.
 *
 * Floats: rows one after the other, without gaps.
 *
 * q8 and q4: blocks of 64 tokens (of page_tok, where that is less), each for itself:
 *
 *     keys, latent rows    step f16 [width], mid f16 [width], codes [width / 4][token][4]
 *                          x[token][c] = mid[c] + step[c] * code
 *     values               step f16 [groups of 64 columns][token], codes [token / 4][width][4]
 *                          x[token][c] = step[c / 64][token] * code
 *
 * Keys have channels that are large in every token, values do not: so a key's step is that of its channel and a value's
 * that of its token. `mid` is the middle of the channel's range, rounded to f16.
 *
 * Four numbers that one sum goes over, a key's channels or a column's tokens, are side by side, and then the sums: the
 * order of instructions that multiply bytes (vpdpbusd, sdot, tiles), which so need no sums across a vector.
 *
 * A code of q8 is a whole number from -120 to 120, stored with 128 added as a byte. q4 keeps the upper half of that byte,
 * and reads it as the byte in the middle of the sixteen that share it: code 16 * nibble - 120, from -120 to 120 again. So the
 * number of a group that is furthest from mid (of keys also the other end, but for mid's rounding) is as exact as in q8: the
 * first token of a text is often the extreme of a channel, and all look at it. q4 has no code 0. Made of q8 it is what it
 * would be made of floats, bit for bit: a page is quantised once however often it moves. The low nibbles of four bytes are the
 * first four of eight channels or tokens, the high ones the other four: [width / 8][token][4] bytes.
 *
 * Widths are padded to 32, the tokens of values to 8, the steps of values and a block to 64 bytes, with step, mid and code
 * 0 (q4: with the nibble of code 0). A block so begins at a multiple of 64 bytes from its part.
 *
 * Errors, of numbers whose range f16 holds, against what was quantised; r is the largest distance from mid (of values:
 * from 0) in the group:
 *     step <= r / 120 (1 + 2^-10) + 2^-24;    q8: step / 2;    q4: 8.5 step.
 * A group with a NaN, an infinity or a middle or step beyond f16 has step NaN and codes 0: all of it reads as NaN. One whose
 * numbers are all the middle has step 0.
 *
 * step * code is exact in f32, so that reading gives the same bits with and without fused multiply-adds. Stateless,
 * deterministic on every architecture. Parts are aligned to 2 bytes at least (floats: for their type). */
#ifndef WEFT_KERNELS_PAGE_FORM_H
#define WEFT_KERNELS_PAGE_FORM_H

#include "kernels/kform.h"

enum {
    PAGE_BLOCK = 64,   /* tokens of a block */
    PAGE_GROUP = 64,   /* columns of a value's step */
    PAGE_PAD = 32,     /* columns are padded to it */
    PAGE_TOK_PAD = 8,  /* tokens of a column of values */
    PAGE_ALIGN = 64,   /* bytes */
    PAGE_QUAD = 4,     /* numbers of a sum that lie side by side */
    PAGE_OFFSET = 128, /* what is added to codes */
    PAGE_CODE_MAX =
        120, /* the bytes are 8 to 248: the middles of the first and of the last sixteen */
};

/* What a part holds: numbers that are alike by channel, or by token. */
typedef enum { PAGE_KEYS, PAGE_VALUES } page_kind;

/* A part and where in it things are, in bytes. */
typedef struct {
    kform form;
    page_kind kind;
    int64_t page_tok, width;
    int64_t bytes;     /* of the part */
    int64_t row_bytes; /* of a token; floats */
    /* of a quantised form: */
    int64_t block_tok, block_bytes;
    int64_t padded; /* width */
    int64_t mid;    /* from the beginning of a block; keys */
    int64_t codes;  /* the same */
    int64_t
        quad_bytes; /* of all codes with the same four channels (keys) or tokens (values); q4: of twice four */
} page_part;

/* Can pages of so many tokens be stored so? Quantised ones have whole blocks. */
K_FN bool page_form_has(kform form, int64_t page_tok)
{
    return kform_is_float(form) || page_tok <= PAGE_BLOCK || page_tok % PAGE_BLOCK == 0;
}

K_FN int64_t page_pad(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* page_form_has(form, page_tok); both counts are at least 1. */
K_FN page_part page_part_of(kform form, page_kind kind, int64_t page_tok, int64_t width)
{
    page_part p = {form, kind, page_tok, width, 0, 0, 0, 0, 0, 0, 0, 0};
    if (kform_is_float(form)) {
        p.row_bytes = width * kform_bytes(form);
        p.bytes = page_tok * p.row_bytes;
        return p;
    }
    int64_t quad = form == KFORM_Q8 ? PAGE_QUAD : 2 * PAGE_QUAD, quads;
    p.padded = page_pad(width, PAGE_PAD);
    p.block_tok = page_tok < PAGE_BLOCK ? page_tok : PAGE_BLOCK;
    if (kind == PAGE_KEYS) {
        p.mid = 2 * p.padded;
        p.codes = 2 * p.mid;
        p.quad_bytes = p.block_tok * PAGE_QUAD;
        quads = p.padded / quad;
    } else {
        int64_t groups = (width + PAGE_GROUP - 1) / PAGE_GROUP;
        p.codes = page_pad(2 * p.block_tok * groups, PAGE_ALIGN);
        p.quad_bytes = p.padded * PAGE_QUAD;
        quads = page_pad(p.block_tok, PAGE_TOK_PAD) / quad;
    }
    p.block_bytes = page_pad(p.codes + quads * p.quad_bytes, PAGE_ALIGN);
    p.bytes = page_tok / p.block_tok * p.block_bytes;
    return p;
}

/* Bytes from the beginning of a part to the numbers of a token; floats. */
K_FN int64_t page_row(const page_part *p, int64_t tok)
{
    return tok * p->row_bytes;
}

/* The same to the block of a token; quantised forms. */
K_FN int64_t page_block(const page_part *p, int64_t tok)
{
    return tok / p->block_tok * p->block_bytes;
}

/* Columns [col, col + n_col) of tokens [tok, tok + n_tok) of the part at `part` as floats; rows of `to` are `pitch`
 * floats apart. */
void page_read(const page_part *p, const void *part, int64_t tok, int64_t n_tok, int64_t col,
               int64_t n_col, float *to, int64_t pitch);

/* Write all tokens of the part at `dst` from the part at `src`, of the same kind, page_tok and width. From floats to
 * any form, from q8 to q4, or from a form to itself. They do not overlap. */
void page_convert(const page_part *to, void *dst, const page_part *from, const void *src);

#endif
