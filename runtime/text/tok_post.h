/* tok_post.h - the tokens that a post-processor puts around a text. Private to this folder. */
#ifndef WEFT_RUNTIME_TEXT_TOK_POST_H
#define WEFT_RUNTIME_TEXT_TOK_POST_H

#include "runtime/formats/value.h"
#include "runtime/text/tok.h"

/* Reads a "post_processor" value, which may be null, into t's before and after. */
weft_status post_load(weft_diag *dg, tok *t, const value *v) WEFT_MUST_USE;

/* tok_json.c: one merge of the given rank; W1206 where a token is missing. text is scratch. */
weft_status tok_add_merge(weft_diag *dg, tok *t, size_t rank, str left, str right,
                          strbuf *text) WEFT_MUST_USE;

#endif
