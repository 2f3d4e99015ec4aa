/* tok_wordpiece.h - the longest token first, from the left of a word (BERT). Private. */
#ifndef WEFT_RUNTIME_TEXT_TOK_WORDPIECE_H
#define WEFT_RUNTIME_TEXT_TOK_WORDPIECE_H

#include "runtime/text/tok.h"
#include "runtime/text/tok_vocab.h"

typedef struct {
    str prefix;       /* of a token that continues a word: ## */
    size_t chars_max; /* a longer word is unknown */
    int32_t unk;      /* VOCAB_NONE: an unknown word is an error */
} wordpiece;

weft_status wordpiece_encode(weft_diag *dg, const wordpiece *w, const tok_vocab *v, str word,
                             tok_ids *out) WEFT_MUST_USE;

#endif
