/* tok_bpe.h - byte-pair encoding: the pair with the lowest rank is merged until none is left.
 * Private to this folder.
 *
 * Byte-level vocabularies are turned around when they are loaded: instead of writing each byte of a
 * text as a printable character, the tokens are kept as the bytes they stand for. SentencePiece
 * vocabularies, which have scores and no merges, get the merges that follow from the scores. */
#ifndef WEFT_RUNTIME_TEXT_TOK_BPE_H
#define WEFT_RUNTIME_TEXT_TOK_BPE_H

#include "runtime/text/tok.h"
#include "runtime/text/tok_vocab.h"

typedef struct {
    int32_t left, right; /* left is VOCAB_NONE: an empty slot */
    uint32_t rank;
    int32_t id; /* what they become */
} bpe_pair;

typedef struct {
    bpe_pair *pairs; /* cap of them, a power of two */
    bool borrowed;   /* they are an image's, and stay as they are */
    size_t n, cap;
    bool bytes;         /* texts are bytes, looked up in of_byte and raw */
    bool byte_fallback; /* a character without token becomes <0xNN> tokens */
    bool fuse_unk;      /* neighbours without token become one unknown token */
    bool ignore_merges; /* a piece that is a token is that token */
    int32_t unk;        /* VOCAB_NONE: what has no token is dropped */
    str prefix, suffix; /* around the characters of a word: ## before all but the first, </w> */
    int32_t of_byte[256];
    int32_t fallback[256];
    vocab_map raw; /* texts as bytes, where `bytes` and ignore_merges */
    /* Characters inside tokens that have none themselves; their ids go on where the tokens end. */
    VEC(str) extra;
    int32_t extra_first;
    vocab_map extra_map;
} bpe;

typedef struct {
    int32_t *ids;
    uint32_t *prev, *next;
    uint64_t *heap;
    size_t cap, heap_cap;
    strbuf text;
} bpe_scratch;

void bpe_init(bpe *b);
void bpe_deinit(bpe *b);
void bpe_scratch_start(bpe_scratch *s); /* its first blocks (runtime/base/mem_scope.h) */
void bpe_scratch_free(bpe_scratch *s);

/* The same pairs in a table of another size, so that the same pairs always give the same table; cap is more than b->n. */
void bpe_pairs_place(const bpe *b, bpe_pair *table, size_t cap);
/* A pair that stands twice keeps its first rank. */
void bpe_add_pair(bpe *b, int32_t left, int32_t right, uint32_t rank, int32_t id);
/* Turn to bytes; the texts live in a. A token that is no text of bytes can never be made. */
void bpe_use_bytes(bpe *b, arena *a, const tok_vocab *v);
/* All pairs whose halves make a token, the higher its score the earlier. scores has one number for
 * each token; those that `skip` has flags of take no part. */
void bpe_pairs_from_scores(bpe *b, const tok_vocab *v, const float *scores, uint32_t skip);

/* Whether what has no token takes part in merges, as unknown token or as bytes. */
bool bpe_merges_unknown(const bpe *b);

/* The token that a piece is as a whole, for ignore_merges. */
int32_t bpe_whole(const bpe *b, const tok_vocab *v, str piece);
/* Adds the ids of piece, of fewer than 2^31 bytes, to out. */
void bpe_encode(const bpe *b, const tok_vocab *v, bpe_scratch *s, str piece, tok_ids *out);

#endif
