/* tok_wordpiece.h - the longest token first, from the left of a word (BERT). Private. */
#ifndef WEFT_RUNTIME_TEXT_TOK_WORDPIECE_H
#define WEFT_RUNTIME_TEXT_TOK_WORDPIECE_H

#include "runtime/text/tok.h"
#include "runtime/text/tok_tree.h"
#include "runtime/text/tok_vocab.h"

typedef struct {
    str prefix;         /* of a token that continues a word: ## */
    size_t chars_max;   /* a longer word is unknown */
    int32_t unk;        /* VOCAB_NONE: an unknown word is an error */
    tok_tree starts;    /* all tokens */
    tok_tree continues; /* those with the prefix, without it */
} wordpiece;

/* Makes the trees; the prefix is set. The texts of v are well-formed UTF-8, so a match ends with a character. */
void wordpiece_finish(wordpiece *w, const tok_vocab *v);
void wordpiece_deinit(wordpiece *w);

weft_status wordpiece_encode(weft_diag *dg, const wordpiece *w, str word,
                             tok_ids *out) WEFT_MUST_USE;

#endif
