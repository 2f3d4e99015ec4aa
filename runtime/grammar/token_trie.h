/* token_trie.h - the bytes of all tokens as a tree, in one pass over which every token is met behind its beginnings. Private. */
#ifndef WEFT_RUNTIME_GRAMMAR_TOKEN_TRIE_H
#define WEFT_RUNTIME_GRAMMAR_TOKEN_TRIE_H

#include "runtime/base/str.h"
#include "runtime/base/vec.h"
#include "runtime/grammar/grammar.h"

enum {
    TRIE_NO_TOKEN = -1,
    TOKEN_BYTES_MAX = 512, /* a longer token is never allowed */
};

/* Node 0 is the empty text. A node stands before its children, and all below it before `end`. */
typedef struct {
    uint8_t *byte;   /* [n] */
    uint16_t *depth; /* [n] */
    uint32_t *end;   /* [n] */
    int32_t *token;  /* [n]: the first token that is this text, or TRIE_NO_TOKEN */
    uint16_t *below; /* [n]: kinds of the bytes below it, as bits (byte_kind) */
    uint32_t *first; /* [n + 1]: how many of `order` stand before it */
    int32_t *order;  /* tokens in the order of the tree */
    size_t n;
    int32_t *same;     /* [n_token]: another token with the same bytes, or TRIE_NO_TOKEN */
    uint32_t *text_at; /* [n_token + 1] */
    char *text;
    size_t longest; /* bytes */
} token_trie;

/* text[i] are the bytes of token i, empty: it has none. */
void token_trie_init(token_trie *t, const str *text, int64_t n_token);
void token_trie_deinit(token_trie *t);
/* Bytes of one kind are often alike to a grammar: then whole branches are. */
enum { BYTE_KINDS = 12 };
uint8_t byte_kind(uint8_t byte);
static inline str token_trie_text(const token_trie *t, int32_t id)
{
    return (str){t->text + t->text_at[id], t->text_at[id + 1] - t->text_at[id]};
}

struct grammar_vocab {
    int64_t n_token;
    size_t n_word;         /* of a mask */
    uint64_t *ends;        /* [n_word] */
    token_trie mid, first; /* first: of the first token of a text, where that differs */
    bool differs;
};

grammar_vocab *vocab_new(int64_t n_token); /* without its trees */

static inline void mask_set(uint64_t *mask, int32_t id)
{
    mask[id >> 6] |= (uint64_t)1 << (id & 63);
}
static inline bool mask_has(const uint64_t *mask, int32_t id)
{
    return mask[id >> 6] >> (id & 63) & 1;
}

#endif
