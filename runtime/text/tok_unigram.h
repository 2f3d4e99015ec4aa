/* tok_unigram.h - the likeliest way to cut a text into tokens (Kudo, 2018). Private. */
#ifndef WEFT_RUNTIME_TEXT_TOK_UNIGRAM_H
#define WEFT_RUNTIME_TEXT_TOK_UNIGRAM_H

#include "runtime/text/tok.h"
#include "runtime/text/tok_tree.h"
#include "runtime/text/tok_vocab.h"

typedef struct {
    tok_tree tree;
    VEC(double) scores; /* by id */
    double unk_score;
    int32_t unk; /* VOCAB_NONE: text without tokens is an error */
    bool byte_fallback;
    uint32_t skip; /* flags of tokens that take no part */
    int32_t fallback[256];
} unigram;

typedef struct {
    double score;
    uint32_t from; /* the token before ends here */
    int32_t id;    /* VOCAB_NONE: not reached yet */
} unigram_step;

typedef struct {
    unigram_step *steps; /* by byte of the text */
    size_t cap;
    tok_ids ids, ends; /* the best path, backwards */
} unigram_scratch;

void unigram_deinit(unigram *u);
void unigram_scratch_start(unigram_scratch *s); /* its first blocks (runtime/base/mem_scope.h) */
void unigram_scratch_free(unigram_scratch *s);

/* Builds the tree over the tokens that have none of the flags in skip; scores and unk are set. */
void unigram_finish(unigram *u, const tok_vocab *v, uint32_t skip);

/* Adds the ids of piece, of fewer than 2^31 bytes. */
weft_status unigram_encode(weft_diag *dg, const unigram *u, const tok_vocab *v, unigram_scratch *s,
                           str piece, tok_ids *out) WEFT_MUST_USE;

#endif
