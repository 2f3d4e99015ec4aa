/* tok_cache.h - words and their ids, the most recent in each place. Private to this folder.
 *
 * A word that hashes to a place takes it over. Most words of a text are in it. It grows with what was looked for in vain, so
 * that a tokenizer of short texts takes no megabytes. */
#ifndef WEFT_RUNTIME_TEXT_TOK_CACHE_H
#define WEFT_RUNTIME_TEXT_TOK_CACHE_H

#include "runtime/base/mem_scope.h"
#include "runtime/text/tok_vocab.h"

enum { CACHE_WORDS_MIN = 1 << 9, CACHE_WORDS_MAX = 1 << 15, CACHE_KEY_MAX = 26, CACHE_IDS_MAX = 8 };

typedef struct {
    uint32_t hash;
    uint8_t n_key, n_id; /* n_key is 0: empty */
    char key[CACHE_KEY_MAX];
    int32_t ids[CACHE_IDS_MAX];
} cache_word; /* one cache line */

typedef struct {
    cache_word *words;     /* [n_word], a power of two; or NULL */
    size_t n_word, n_miss; /* n_miss: since it has this size */
    mem_life life;         /* of the tokenizer */
} tok_cache;

void cache_free(tok_cache *c);

/* The place of a word of 1 to CACHE_KEY_MAX bytes; *out_hit: it is the word's own. If
 * not, the caller encodes the word and calls cache_keep. */
cache_word *cache_find(tok_cache *c, str word, bool *out_hit);
void cache_keep(cache_word *place, str word, const int32_t *ids, size_t n);

#endif
