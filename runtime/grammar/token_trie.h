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
    uint16_t *below; /* [n]: kinds of the characters below it, as bits (byte_kind) */
    uint16_t *chars; /* [n]: how many characters it is; CHARS_CUT: its last one is not complete */
    uint32_t *first; /* [n + 1]: how many of `order` stand before it */
    int32_t *order;  /* tokens in the order of the tree */
    size_t n;
    int32_t *same;     /* [n_token]: another token with the same bytes, or TRIE_NO_TOKEN */
    uint32_t *text_at; /* [n_token + 1] */
    char *text;
    size_t longest;       /* bytes */
    uint16_t *kinds;      /* [n_token]: of a token's characters; all bits where it has no bytes */
    int32_t *by_chars;    /* tokens by their number of characters */
    uint32_t *chars_from; /* [longest + 2]: where those with so many begin */
} token_trie;
enum { CHARS_CUT = 0x8000 };

/* text[i] are the bytes of token i, empty: it has none. */
void token_trie_init(token_trie *t, const str *text, int64_t n_token);
void token_trie_deinit(token_trie *t);
/* Characters of one kind are often alike to a grammar: then whole branches are. A character beyond ASCII has the kind of its
 * first byte; bytes that are no whole character are KIND_TAIL. */
enum {
    KIND_SMALL,
    KIND_LARGE,
    KIND_DIGIT,
    KIND_BLANK,
    KIND_CONTROL,
    KIND_QUOTE,
    KIND_BACKSLASH,
    KIND_BRACKET,
    KIND_MARK,
    KIND_TAIL,
    KIND_LEAD_2,
    KIND_LEAD,
    BYTE_KINDS
};
/* What may stand in a JSON string as it is. */
enum {
    KINDS_TEXT = ((1 << BYTE_KINDS) - 1) &
                 ~(1 << KIND_CONTROL | 1 << KIND_QUOTE | 1 << KIND_BACKSLASH | 1 << KIND_TAIL)
};
uint8_t byte_kind(uint8_t byte);
static inline str token_trie_text(const token_trie *t, int32_t id)
{
    return (str){t->text + t->text_at[id], t->text_at[id + 1] - t->text_at[id]};
}

struct grammar_vocab {
    int64_t n_token;
    size_t n_word;         /* of a mask */
    uint64_t *ends;        /* [n_word] */
    uint64_t *plain;       /* [n_word]: tokens of KINDS_TEXT */
    token_trie odd;        /* of those that are not plain */
    token_trie mid, first; /* first: of the first token of a text, where that differs */
    bool differs;
};

grammar_vocab *vocab_new(int64_t n_token); /* without its trees */
void vocab_finish(grammar_vocab *v);       /* once they are there */
void kinds_mask(const grammar_vocab *v, int32_t kinds,
                uint64_t *mask); /* tokens whose characters are all of these */

static inline void mask_set(uint64_t *mask, int32_t id)
{
    mask[id >> 6] |= (uint64_t)1 << (id & 63);
}
static inline bool mask_has(const uint64_t *mask, int32_t id)
{
    return mask[id >> 6] >> (id & 63) & 1;
}

#endif
