/* prefix_cache.h - texts that were evaluated before: a new text begins with the state of one of them.
 *
 *     prefix_cache_put(c, seq, key, ids, n);               what the sequence holds can be used by others from now on
 *     prefix_cache_take(c, seq, key, ids, n, least, false) let it have what another text has of the first n of these
 *     prefix_cache_make_room(c, seqs, n_new, n);           give pages back for a call that would find too few
 *
 * Texts are found by a prefix_tree, and their pages held by prefixes of the state. Those used least recently go first, where
 * prefixes or pages are short. One thing is never wrong: what is taken is exactly what evaluating the text would have left, a
 * windowed cell's rows included; where the state cannot give that (state_keepable), a shorter beginning is used, or none.
 *
 * Nothing allocates after prefix_cache_create. Not thread-safe: whoever uses the state uses the cache. */
#ifndef WEFT_RUNTIME_KV_PREFIX_CACHE_H
#define WEFT_RUNTIME_KV_PREFIX_CACHE_H

#include "runtime/kv/state.h"

typedef struct prefix_cache prefix_cache;

/* Over the prefixes of st, of which there is at least one and which nobody else uses. st must outlive it. */
prefix_cache *prefix_cache_create(state *st);
void prefix_cache_destroy(prefix_cache *c); /* NULL is fine */

typedef struct {
    int64_t
        length; /* of the text that the sequence holds now; 0: nothing was taken and nothing has changed */
    int64_t common; /* that some text shares with it, whether it could be taken or not */
} prefix_taken;

/* Let sequence seq hold the beginning of these ids, if that is more than `least` of them and a text has it. Texts with different keys
 * (sets of adapters) share nothing. With `again` the same text was looked for before, and counts
 * once. */
prefix_taken prefix_cache_take(prefix_cache *c, int64_t seq, uint64_t key, const int32_t *ids,
                               int64_t n, int64_t least, bool again);
/* The sequence holds exactly these n ids. Its whole pages are kept, or all of it where a window ends within one. */
void prefix_cache_put(prefix_cache *c, int64_t seq, uint64_t key, const int32_t *ids, int64_t n);
/* Drop texts until a call of n sequences with n_new rows each finds pages, or none is left. */
void prefix_cache_make_room(prefix_cache *c, const int32_t *seq, const int32_t *n_new, int64_t n);
/* Drop the one that was used least recently, of those first whose pages nobody else holds; false: there is none left. */
bool prefix_cache_evict(prefix_cache *c);
/* Drop all texts: what they were evaluated with is another one now. */
void prefix_cache_clear(prefix_cache *c);

/* Changes whenever a text was put that was not there. */
uint64_t prefix_cache_turn(const prefix_cache *c);

typedef struct {
    int64_t room, used;            /* texts there may be, and are */
    int64_t pages;                 /* that no sequence holds, in all tables */
    size_t bytes;                  /* of those */
    uint64_t lookups, hits;        /* texts that were looked for, and of which a part was there */
    uint64_t tokens, tokens_saved; /* of those texts, and which were not evaluated again */
    uint64_t put, evicted;
} prefix_stats;

prefix_stats prefix_cache_stats(const prefix_cache *c);
size_t prefix_cache_bytes(const prefix_cache *c); /* memory it holds */

#endif
