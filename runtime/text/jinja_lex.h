/* jinja_lex.h - template text to tokens, with Jinja's rules for the white space around tags.
 * Private to the engine. */
#ifndef WEFT_RUNTIME_TEXT_JINJA_LEX_H
#define WEFT_RUNTIME_TEXT_JINJA_LEX_H

#include "runtime/base/diag.h"
#include "runtime/base/vec.h"

typedef enum {
#define JTOK(name, text) JTOK_##name,
#include "runtime/text/jinja_tokens.def"
#undef JTOK
    JTOK_COUNT
} jtok_kind;

typedef struct {
    jtok_kind kind;
    uint32_t begin, end;
    union {
        str s; /* TEXT, NAME, STR with its escapes resolved */
        int64_t i;
        double f;
    } as;
} jtok;

const char *jtok_text(jtok_kind kind); /* as the user would write it */

typedef VEC(jtok) jtok_list;

/* All tokens of src, the last one JTOK_END. Strings that differ from the source live in a. The caller
 * frees the list, also after a failure. */
weft_status jinja_lex(weft_diag *dg, arena *a, const source *src,
                      jtok_list *out_toks) WEFT_MUST_USE;

/* Line ends as \n, and one at the end of the text dropped, as Jinja reads a template. */
str jinja_normalize(arena *a, str text);

#endif
