/* tok_unicode.h - the character classes that tokenizers are written in. Private to this folder.
 *
 * Text is UTF-8 that was checked once, when it came in; these functions rely on that. Categories
 * come from utf8proc; white space, word and punctuation characters are as Hugging Face's tokenizers
 * (Rust's standard library and regex crate) have them. */
#ifndef WEFT_RUNTIME_TEXT_TOK_UNICODE_H
#define WEFT_RUNTIME_TEXT_TOK_UNICODE_H

#include "runtime/base/str.h"

/* The character at p, which begins a well-formed sequence; its length in bytes. */
static inline size_t uni_next(const char *p, uint32_t *out_cp)
{
    const unsigned char *u = (const unsigned char *)p;
    if (u[0] < 0x80) {
        *out_cp = u[0];
        return 1;
    }
    if (u[0] < 0xe0) {
        *out_cp = (uint32_t)(u[0] & 0x1f) << 6 | (u[1] & 0x3f);
        return 2;
    }
    if (u[0] < 0xf0) {
        *out_cp = (uint32_t)(u[0] & 0x0f) << 12 | (uint32_t)(u[1] & 0x3f) << 6 | (u[2] & 0x3f);
        return 3;
    }
    *out_cp = (uint32_t)(u[0] & 0x07) << 18 | (uint32_t)(u[1] & 0x3f) << 12 |
              (uint32_t)(u[2] & 0x3f) << 6 | (u[3] & 0x3f);
    return 4;
}

/* How long the sequence is that begins with this byte. */
static inline size_t uni_len(char first)
{
    unsigned char u = (unsigned char)first;
    return u < 0x80 ? 1 : u < 0xe0 ? 2 : u < 0xf0 ? 3 : 4;
}

/* Where the character begins that ends before `at` > 0. */
static inline size_t uni_back(const char *p, size_t at)
{
    do
        at--;
    while (at > 0 && ((unsigned char)p[at] & 0xc0) == 0x80);
    return at;
}

typedef struct {
    uint32_t first, last;
} uni_span;

static inline bool uni_in_spans(const uni_span *spans, size_t n, uint32_t cp)
{
    for (size_t i = 0; i < n; i++)
        if (cp >= spans[i].first && cp <= spans[i].last)
            return true;
    return false;
}

#define UNI_IN(spans, cp) uni_in_spans(spans, sizeof(spans) / sizeof *(spans), cp)

size_t uni_put(char to[4], uint32_t cp); /* encodes; the length */
void uni_add(strbuf *out, uint32_t cp);

bool uni_is_ascii(str s);
bool uni_check(str s, size_t *out_bad); /* false and the first byte that is not UTF-8 */

bool uni_is_space(uint32_t cp); /* White_Space */
bool uni_is_han(uint32_t cp);   /* the blocks BERT sets off with spaces */

/* These need Unicode's tables: a tokenizer that uses them is one of which tok_needs_tables is true. */
bool uni_is_numeric(uint32_t cp); /* Nd, Nl, No */
bool uni_is_word(uint32_t cp);    /* \w of UTS #18 */
bool uni_is_punct(uint32_t cp);   /* P*, and what ASCII counts as such */
bool uni_is_mark(uint32_t cp);    /* M* */
bool uni_is_nonspacing(uint32_t cp);
bool uni_is_other(uint32_t cp); /* controls, formats, private use */
void uni_add_lower(strbuf *out, uint32_t cp);

typedef enum { UNI_NFC, UNI_NFD, UNI_NFKC, UNI_NFKD } uni_form;
void uni_normalize(strbuf *out, str s, uni_form form);

/* The printable character that byte-level BPE writes for each byte, and back (-1: for none). */
uint32_t uni_of_byte(unsigned char byte);
int uni_to_byte(uint32_t cp);

#endif
