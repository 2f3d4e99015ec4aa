/* tok_cache.h - words and their ids, the most recent in each place. Private to this folder.
 *
 * Of fixed size: a word that hashes to a place takes it over. Most words of a text are in it. */
#ifndef WEFT_RUNTIME_TEXT_TOK_CACHE_H
#define WEFT_RUNTIME_TEXT_TOK_CACHE_H

#include "runtime/base/mem_scope.h"
#include "runtime/text/tok_vocab.h"

enum { CACHE_WORDS = 1 << 15, CACHE_KEY_MAX = 26, CACHE_IDS_MAX = 8 };

typedef struct {
    uint32_t hash;
    uint8_t n_key, n_id; /* n_key is 0: empty */
    char key[CACHE_KEY_MAX];
    int32_t ids[CACHE_IDS_MAX];
} cache_word; /* one cache line */

typedef struct {
    cache_word *words; /* CACHE_WORDS of them, or NULL */
    mem_life life;     /* of the tokenizer */
} tok_cache;

void cache_free(tok_cache *c);

/* The place of a word of 1 to CACHE_KEY_MAX bytes; *out_hit: it is the word's own. If
 * not, the caller encodes the word and calls cache_keep. */
cache_word *cache_find(tok_cache *c, str word, bool *out_hit);
void cache_keep(cache_word *place, str word, const int32_t *ids, size_t n);

#endif
