/* tok_cache.c - a direct-mapped cache. */
#include "runtime/text/tok_cache.h"

#include "runtime/base/mem.h"
#include <stdlib.h>

_Static_assert(sizeof(cache_word) == 64, "a word is one cache line");

void cache_free(tok_cache *c)
{
    mem_free(c->words);
    c->words = NULL;
}

cache_word *cache_find(tok_cache *c, str word, bool *out_hit)
{
    if (!c->words) {
        c->words = mem_alloc_for(c->life, CACHE_WORDS * sizeof *c->words);
        memset(c->words, 0, CACHE_WORDS * sizeof *c->words);
    }
    uint64_t hash = vocab_hash(word.p, word.n);
    cache_word *w = &c->words[hash & (CACHE_WORDS - 1)];
    *out_hit = w->n_key == word.n && w->hash == (uint32_t)(hash >> 32) &&
               memcmp(w->key, word.p, word.n) == 0;
    if (!*out_hit) {
        w->hash = (uint32_t)(hash >> 32);
        w->n_key = 0;
    }
    return w;
}

void cache_keep(cache_word *place, str word, const int32_t *ids, size_t n)
{
    if (n > CACHE_IDS_MAX)
        return;
    place->n_key = (uint8_t)word.n;
    place->n_id = (uint8_t)n;
    memcpy(place->key, word.p, word.n);
    memmove(place->ids, ids, n * sizeof *ids);
}
