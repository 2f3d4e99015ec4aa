/* tok_regex.h - the patterns of tokenizers, run by PCRE2. Private to this folder.
 *
 * Tokenizers write their patterns for Oniguruma (Ruby's syntax). tok_onig_translate turns one into
 * a PCRE2 pattern of the same meaning, or refuses it by name (W1204). Matching is compiled to
 * machine code where the system allows it, and bounded: a pattern that backtracks without end is
 * W1205. A tok_regex has room for one match at a time, so it is not thread-safe. */
#ifndef WEFT_RUNTIME_TEXT_TOK_REGEX_H
#define WEFT_RUNTIME_TEXT_TOK_REGEX_H

#include "runtime/base/diag.h"

typedef struct tok_regex tok_regex;

enum { TOK_PATTERN_MAX = 1 << 16 }; /* bytes of a pattern */

weft_status tok_regex_create(weft_diag *dg, str pattern, tok_regex **out_re) WEFT_MUST_USE;
/* Finds the text itself; an empty one is never found. */
tok_regex *tok_regex_literal(str text);
/* What it was made of: the text itself, or the pattern as the tokenizer has it. */
bool tok_regex_is_literal(const tok_regex *re);
str tok_regex_text(const tok_regex *re);
void tok_regex_destroy(tok_regex *re); /* NULL is fine */

/* Goes through the matches of a text, which is well-formed UTF-8, from left to right. */
typedef struct {
    tok_regex *re;
    str text;
    size_t from;     /* where to look next */
    size_t last_end; /* an empty match there is not another one */
} tok_matches;

static inline tok_matches tok_matches_of(tok_regex *re, str text)
{
    return (tok_matches){re, text, 0, SIZE_MAX};
}

/* The next match; *out_begin is SIZE_MAX when there is none. */
weft_status tok_matches_next(weft_diag *dg, tok_matches *m, size_t *out_begin,
                             size_t *out_end) WEFT_MUST_USE;

/* How long a text may become, and the step that makes it so for the message. */
typedef struct {
    const char *what; /* "normalizer Replace" */
    size_t n_max;
} tok_bound;

/* W1214 where n bytes are more than b allows. */
weft_status tok_bound_check(weft_diag *dg, const tok_bound *b, size_t n) WEFT_MUST_USE;

/* `text` with every match replaced, at the end of out, which b bounds. */
weft_status tok_regex_replace(weft_diag *dg, tok_regex *re, str text, str with, const tok_bound *b,
                              strbuf *out) WEFT_MUST_USE;
/* The most that replacing all matches by n bytes can multiply a text by. */
double tok_regex_growth(const tok_regex *re, size_t n);

/* out gets the PCRE2 pattern. */
weft_status tok_onig_translate(weft_diag *dg, str pattern, strbuf *out) WEFT_MUST_USE;

#endif
