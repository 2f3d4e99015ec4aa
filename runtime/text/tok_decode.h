/* tok_decode.h - decoders: steps from the texts of tokens to the text they stand for. Private.
 *
 * A whole list of ids goes through the steps as Hugging Face's tokenizers do it: each step rewrites
 * the list of texts. A stream applies the same steps to one token at a time. */
#ifndef WEFT_RUNTIME_TEXT_TOK_DECODE_H
#define WEFT_RUNTIME_TEXT_TOK_DECODE_H

#include "runtime/base/vec.h"
#include "runtime/text/tok_fields.h"

typedef enum {
    DEC_BYTE_LEVEL,
    DEC_BYTE_FALLBACK,
    DEC_FUSE,
    DEC_REPLACE,
    DEC_STRIP,
    DEC_METASPACE,
    DEC_WORDPIECE,
    DEC_BPE,
} dec_kind;

typedef struct {
    dec_kind kind;
    tok_regex *re;      /* Replace; owned */
    str text;           /* Replace: the new one; Strip: the character; WordPiece: ##; BPE: </w> */
    size_t start, stop; /* Strip: how many at most */
    bool cleanup;       /* WordPiece */
    bool prefix;        /* Metaspace: the first token's marks are dropped */
} dec_step;

typedef VEC(dec_step) dec_list;

/* Adds the steps of a "decoder" value, which may be null; texts are copied into a. */
weft_status dec_load(weft_diag *dg, arena *a, const value *v, dec_list *to) WEFT_MUST_USE;
/* W1209, W1214 for more steps than are allowed, or steps that could make a text too long. */
weft_status dec_check(weft_diag *dg, const dec_list *l) WEFT_MUST_USE;
void dec_free(dec_list *l);
dec_step dec_step_replace(str from, str to);

/* The pieces of a text and where each ends in it. */
typedef struct {
    strbuf text;
    VEC(size_t) ends;
} dec_texts;

void dec_texts_free(dec_texts *t);
void dec_texts_put(dec_texts *t, str text);
str dec_texts_at(const dec_texts *t, size_t i);

/* All steps over all texts, in place. */
weft_status dec_run(weft_diag *dg, const dec_list *l, dec_texts *texts) WEFT_MUST_USE;

/* Parts that a stream uses too. */
void dec_put_byte_level(strbuf *out, str text); /* bytes; a text with other characters as it is */
void dec_put_cleaned(strbuf *out, str text);
void dec_put_wordpiece(const dec_step *s, str text, bool first, strbuf *out);
void dec_put_metaspace(const dec_step *s, str text, bool first, strbuf *out);
void dec_put_suffixed(const dec_step *s, str text, bool last, strbuf *out);
/* Cuts up to n of the character s->text at the beginning; the rest. */
str dec_strip_start(const dec_step *s, str text, size_t n);
str dec_strip_stop(const dec_step *s, str text, size_t n);

/* How much of text, from its beginning, is settled: well-formed characters are copied, each maximal
 * part that can become none is U+FFFD. What is left may be the beginning of a character. */
size_t dec_put_utf8(strbuf *out, str text);
/* The same for a text that is complete. */
void dec_put_utf8_all(strbuf *out, str text);

#endif
