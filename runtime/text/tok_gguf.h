/* tok_gguf.h - what the reader and the writer of GGUF's tokenizer keys share: types of tokens, and what the names of
 * tokenizer.ggml.pre stand for, by name and the other way round. Private. */
#ifndef WEFT_RUNTIME_TEXT_TOK_GGUF_H
#define WEFT_RUNTIME_TEXT_TOK_GGUF_H

#include "runtime/text/tok_impl.h"

#define SPACE_MARK "\xe2\x96\x81"

enum { NFC = 1, WHOLE = 2, BOS = 4, PATTERNS_MAX = 6 }; /* as tok_gguf_pre.def has them */

/* tokenizer.ggml.token_type */
enum { TYPE_NORMAL = 1, TYPE_UNKNOWN, TYPE_CONTROL, TYPE_USER, TYPE_UNUSED, TYPE_BYTE };

typedef struct {
    const char *name;
    uint32_t flags;
    const char *patterns[PATTERNS_MAX]; /* NULL after the last */
} gguf_pre;

const gguf_pre *gguf_pre_named(str name); /* NULL: no such row */
weft_status gguf_pre_add(weft_diag *dg, const gguf_pre *p, pre_list *to) WEFT_MUST_USE;

/* The row that splits texts as t does, and of several the one with the most flags in common; NULL: none does.
 * Patterns can say one thing in many ways, so it is found by splitting texts, not by reading patterns: some that
 * mix what rows treat differently (tok_probe.h), and one with every character of the basic plane. */
const gguf_pre *gguf_pre_of(tok *t);

#endif
