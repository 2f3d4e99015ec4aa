/* tok_cut.h - where a long piece may be cut without changing its tokens. Private to this folder.
 *
 * No token spans two neighbouring characters that stand side by side in no token, so a model that
 * gets both sides apart finds the same. That keeps memory and time in hand for tokenizers that
 * treat a whole text as one word, and lets the cache of words work for them. */
#ifndef WEFT_RUNTIME_TEXT_TOK_CUT_H
#define WEFT_RUNTIME_TEXT_TOK_CUT_H

#include "runtime/text/tok_vocab.h"

enum {
    CUT_ANYWHERE_BYTES = 4096, /* past these, any place that is safe will do */
    CUT_FORCED_BYTES = 1 << 20 /* past these, the piece is cut even where tokens could differ */
};

typedef struct {
    uint64_t *pairs; /* neighbours inside tokens; 0: an empty slot */
    size_t n, cap;
    bool forced; /* nothing is known of the tokens: cut by force only */
} tok_cut;

/* To be called for every token that the model can make of two characters or more. */
void cut_add(tok_cut *c, str token);
void cut_deinit(tok_cut *c);

/* The end of the part of piece that begins at `from`. */
size_t cut_next(const tok_cut *c, const tok_vocab *v, str piece, size_t from);

#endif
