/* tok_onig.h - the inside of the translator, shared by tok_onig.c and tok_onig_class.c only. */
#ifndef WEFT_RUNTIME_TEXT_TOK_ONIG_H
#define WEFT_RUNTIME_TEXT_TOK_ONIG_H

#include "runtime/text/tok_regex.h"

enum { ONIG_DEPTH_MAX = 100 };

typedef struct {
    weft_diag *dg;
    str in;
    size_t i; /* the next byte of in */
    int depth;
    char room[2][64]; /* the set of the last property, see onig_set_escape */
} onig_text;

/* What stands for one escape such as \s, written as the inside of a bracket. */
typedef struct {
    const char *items;   /* NULL: not such an escape */
    const char *inverse; /* the same for the other characters, or NULL */
    bool negated;        /* the escape means the characters that are not in items */
} onig_set;

static inline int onig_peek(const onig_text *x, size_t ahead)
{
    return x->i + ahead < x->in.n ? (unsigned char)x->in.p[x->i + ahead] : -1;
}
static inline bool onig_sees(const onig_text *x, const char *word)
{
    size_t n = strlen(word);
    return x->in.n - x->i >= n && memcmp(x->in.p + x->i, word, n) == 0;
}

weft_status onig_refuse(onig_text *x, const char *what); /* W1204 */

/* At the letter after a backslash: the set it stands for, which lasts until the next call; steps
 * over it if it is one. */
weft_status onig_set_escape(onig_text *x, onig_set *out_set) WEFT_MUST_USE;
/* At the letter after a backslash: one character; out gets it as PCRE2 writes it. */
weft_status onig_char_escape(onig_text *x, strbuf *out) WEFT_MUST_USE;
/* After a '[': adds a PCRE2 expression that matches the same one character. */
weft_status onig_class(onig_text *x, strbuf *out) WEFT_MUST_USE;

extern const char onig_word_items[];

#endif
