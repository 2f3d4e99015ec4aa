/* tok_vocab.h - tokens by id and by text. Private to this folder. */
#ifndef WEFT_RUNTIME_TEXT_TOK_VOCAB_H
#define WEFT_RUNTIME_TEXT_TOK_VOCAB_H

#include "runtime/base/arena.h"
#include "runtime/base/vec.h"

enum { VOCAB_ID_MAX = (1 << 22) - 1, VOCAB_NONE = -1 };

/* Bytes of all texts of a vocabulary in a GGUF file, whose size bounds nothing: it can be a hole. The largest
 * known have three million. */
enum { VOCAB_TEXTS_MAX = 32 << 20 };

/* Bytes of one token: of an added one, or of Unigram, which are looked for at every place of a text; of any other. */
enum { VOCAB_SOUGHT_MAX = 4096, VOCAB_TEXT_MAX = 1 << 16 };

/* A hash of bytes that no file can make collide at will: it is seeded once for each process. */
uint64_t vocab_hash(const char *p, size_t n);

/* From text to a number; the texts are borrowed. A text that is added again gets the new number. */
typedef struct {
    const char *p;
    uint32_t n;
    int32_t id;
} vocab_slot;

typedef struct {
    vocab_slot *slots; /* cap of them, a power of two; p is NULL where empty */
    size_t n, cap;
} vocab_map;

void vocab_map_reserve(vocab_map *m, size_t n); /* room for n texts */
void vocab_map_add(vocab_map *m, str text, int32_t id);
/* The same for a text that is not there, in less time: texts that are there are not looked at. */
void vocab_map_add_new(vocab_map *m, str text, int32_t id);
int32_t vocab_map_find(const vocab_map *m, str text); /* VOCAB_NONE: not there */
void vocab_map_free(vocab_map *m);

enum {
    TOKEN_SPECIAL = 1, /* left out by skip_special; plain text in the eyes of a plain encode */
    TOKEN_ADDED = 2,   /* looked for in the text before the model sees it */
    TOKEN_BYTE = 4,    /* stands for one byte, <0xNN> */
    TOKEN_UNUSED = 8,
};

typedef struct {
    str text;  /* p is NULL: a hole */
    str shown; /* what decoders get: text, or for some added tokens its normal form */
    uint32_t flags;
} vocab_token;

typedef struct {
    VEC(vocab_token) tokens; /* by id */
    vocab_map map;
    /* Of an image, in place of the map: ids by the hashes of their texts, VOCAB_NONE where a place is empty; n_place is a power
     * of two. Borrowed, and maybe a stranger's: what stands there is looked at before it counts. */
    const int32_t *placed;
    size_t n_place;
    size_t text_max; /* the longest text, in bytes */
} tok_vocab;

/* Puts a copy of text, made in a, at id <= VOCAB_ID_MAX. */
void vocab_put(tok_vocab *v, arena *a, int32_t id, str text, uint32_t flags);
void vocab_free(tok_vocab *v);
/* Fills such a table with the ids that texts mean, in their order; n of at most three quarters of its places. */
void vocab_place(const tok_vocab *v, int32_t *table, size_t n_place);
int32_t vocab_find_placed(const tok_vocab *v, str text);
static inline int32_t vocab_find(const tok_vocab *v, str text)
{
    return v->placed ? vocab_find_placed(v, text) : vocab_map_find(&v->map, text);
}
static inline const vocab_token *vocab_at(const tok_vocab *v, int32_t id)
{
    return id >= 0 && (size_t)id < v->tokens.n ? &v->tokens.at[id] : NULL;
}

/* The byte that a text of the form <0xNN> stands for, or -1. */
int vocab_byte_of(str text);
/* The token of each byte, by that form; VOCAB_NONE where there is none. */
void vocab_bytes(const tok_vocab *v, int32_t out_ids[256]);

#endif
