/* tok_cache.c - a direct-mapped cache that doubles, up to a bound, when more words were missed than it has places. */
#include "runtime/text/tok_cache.h"

#include "runtime/base/mem.h"
#include <stdlib.h>

_Static_assert(sizeof(cache_word) == 64, "a word is one cache line");

void cache_free(tok_cache *c)
{
    mem_free(c->words);
    c->words = NULL;
}

static cache_word *place_of(const tok_cache *c, uint64_t hash)
{
    return &c->words[hash & (c->n_word - 1)];
}

/* What there was stays until there is memory for more. */
static void grow(tok_cache *c)
{
    tok_cache old = *c;
    size_t n = old.n_word ? 2 * old.n_word : CACHE_WORDS_MIN;
    c->words = mem_alloc_for(c->life, n * sizeof *c->words);
    c->n_word = n;
    c->n_miss = 0;
    memset(c->words, 0, n * sizeof *c->words);
    for (size_t i = 0; i < old.n_word; i++) {
        const cache_word *w = &old.words[i];
        if (w->n_key)
            *place_of(c, vocab_hash(w->key, w->n_key)) = *w;
    }
    cache_free(&old);
}

cache_word *cache_find(tok_cache *c, str word, bool *out_hit)
{
    if (!c->words || (c->n_miss > c->n_word && c->n_word < CACHE_WORDS_MAX))
        grow(c);
    uint64_t hash = vocab_hash(word.p, word.n);
    cache_word *w = place_of(c, hash);
    *out_hit = w->n_key == word.n && w->hash == (uint32_t)(hash >> 32) &&
               memcmp(w->key, word.p, word.n) == 0;
    if (!*out_hit) {
        w->hash = (uint32_t)(hash >> 32);
        w->n_key = 0;
        c->n_miss++;
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
