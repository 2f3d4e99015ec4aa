/* fuzz_tok.h - a text through a stranger's tokenizer, and ids back.
 *
 * Whatever comes back must be UTF-8, and a stream must say what its decoder settles on: no byte of
 * an id's text is lost. A pattern may be refused or run into its limits, nothing worse. */
#ifndef WEFT_TESTS_FUZZ_FUZZ_TOK_H
#define WEFT_TESTS_FUZZ_FUZZ_TOK_H

#include "runtime/base/utf8.h"
#include "runtime/text/tok.h"
#include "tests/fuzz/fuzz_model.h"

#define FUZZ_TEXT                                                                                  \
    "Hello, world! 123 \u00e9\u2581\U0001f600 <s>[MASK] don't\n\n  \t\u041f\u0440 a\u0301 \u6f22"

static inline void fuzz_check_utf8(const strbuf *b)
{
    uint32_t cp;
    for (size_t i = 0; i < b->n;) {
        size_t n = utf8_decode((str){b->p + i, b->n - i}, &cp);
        WEFT_ASSERT(n > 0);
        i += n;
    }
}

static inline void fuzz_use_tok(weft_diag *dg, tok *t)
{
    tok_ids ids = {0};
    strbuf out = {0};
    for (int flags = 0; flags < 4; flags++) {
        tok_encode_flags f = {.add_special = flags & 1, .parse_special = flags & 2};
        fuzz_check(dg, tok_encode(dg, t, STR(FUZZ_TEXT), f, &ids));
        diag_reset(dg);
    }
    for (int32_t id = 0; id < 40; id++)
        VEC_PUSH(&ids, id);
    for (size_t i = 0; i < ids.n; i++)
        WEFT_ASSERT(ids.at[i] >= 0);
    fuzz_check(dg, tok_decode(dg, t, ids.at, ids.n, false, &out));
    fuzz_check_utf8(&out);
    tok_stream *s = tok_stream_create(t, true);
    for (size_t i = 0; i < ids.n; i++) {
        strbuf_reset(&out);
        tok_stream_put(s, ids.at[i], &out);
        fuzz_check_utf8(&out);
    }
    strbuf_reset(&out);
    tok_stream_flush(s, &out);
    fuzz_check_utf8(&out);
    tok_stream_destroy(s);
    strbuf_free(&out);
    VEC_FREE(&ids);
}

#endif
