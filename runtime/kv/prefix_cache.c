/* prefix_cache.c - a tree of texts over the prefixes of a state: entry i of the tree is prefix i. */
#include "runtime/kv/prefix_cache.h"

#include "runtime/base/mem.h"
#include "runtime/kv/prefix_tree.h"
#include <string.h>

struct prefix_cache {
    state *st;
    int64_t page_tok;
    prefix_tree *texts;
    prefix_stats did; /* its counts */
    uint64_t turn;
};

/* As many pages of ids as the state has pages for, where it keeps all rows; rings keep fewer pages than texts have. */
static int32_t tree_pages(const state *st, int64_t page_tok)
{
    int64_t all = state_prefixes(st) * ((state_context(st) + page_tok - 1) / page_tok);
    int32_t paged = state_paged_table(st);
    if (paged >= 0 && state_pages_count(st, paged) < all)
        all = state_pages_count(st, paged);
    enum { MOST = 1 << 22 };
    return (int32_t)(all < MOST ? all : MOST);
}

prefix_cache *prefix_cache_create(state *st)
{
    WEFT_ASSERT(state_prefixes(st) > 0);
    int32_t paged = state_paged_table(st);
    int64_t page_tok = paged >= 0 ? state_page_tokens(st, paged) : STATE_PAGE_TOK;
    prefix_cache *c = mem_alloc(sizeof *c);
    *c = (prefix_cache){.st = st, .page_tok = page_tok};
    c->texts = prefix_tree_create(page_tok, (int32_t)state_prefixes(st), tree_pages(st, page_tok));
    return c;
}

void prefix_cache_destroy(prefix_cache *c)
{
    if (!c)
        return;
    prefix_tree_destroy(c->texts);
    mem_free(c);
}

/* ---- using ---- */

static int64_t usable(const void *ctx, int32_t e, int64_t length)
{
    const prefix_cache *c = ctx;
    return state_prefix_keepable(c->st, e, length);
}

prefix_taken prefix_cache_take(prefix_cache *c, int64_t seq, uint64_t key, const int32_t *ids,
                               int64_t n, int64_t least, bool again)
{
    prefix_how how = {usable, c};
    prefix_found f = prefix_tree_find(c->texts, key, ids, n, &how);
    prefix_taken got = {.common = f.common};
    c->did.lookups += !again;
    c->did.tokens += again ? 0 : (uint64_t)n;
    if (f.entry < 0 || f.length <= least)
        return got;
    state_take(c->st, f.entry, seq, f.length);
    c->did.hits += !again || least == 0;
    c->did.tokens_saved += (uint64_t)(f.length - least);
    got.length = f.length;
    return got;
}

static void drop(prefix_cache *c, int32_t e)
{
    prefix_tree_remove(c->texts, e);
    state_drop(c->st, e);
    c->did.evicted++;
}

/* A prefix that stands for no text; the one used least recently gives its own where there is none. */
static int32_t free_entry(prefix_cache *c)
{
    if (prefix_tree_count(c->texts) == prefix_tree_room(c->texts))
        drop(c, prefix_tree_oldest(c->texts));
    int32_t e = 0;
    while (prefix_tree_has(c->texts, e))
        e++;
    return e;
}

static int64_t only_whole(const void *ctx, int32_t e, int64_t length)
{
    const prefix_cache *c = ctx;
    return prefix_tree_length(c->texts, e) == length ? length : 0;
}

/* Texts that begin this one are not needed where this one, which seq holds, can serve for them and for all that they can: where it can
 * be cut anywhere. A text that can be cut near its end alone serves for others near theirs, which is not the same place. */
static void drop_shorter(prefix_cache *c, int64_t seq, uint64_t key, const int32_t *ids, int64_t n)
{
    prefix_how how = {only_whole, c};
    for (;;) {
        prefix_found f = prefix_tree_find(c->texts, key, ids, n, &how);
        if (f.entry < 0 || state_keepable(c->st, seq, 1) != 1)
            return;
        drop(c, f.entry);
        c->did.evicted--; /* nothing is lost */
    }
}

void prefix_cache_put(prefix_cache *c, int64_t seq, uint64_t key, const int32_t *ids, int64_t n)
{
    WEFT_ASSERT(n == state_length(c->st, seq));
    /* Whole pages: nobody has to copy one to go on. But not where a window at that length is gone already. */
    int64_t whole = n - n % c->page_tok;
    if (state_keepable(c->st, seq, whole) == whole)
        n = whole;
    prefix_how how = {usable, c};
    if (n < 1 || prefix_tree_find(c->texts, key, ids, n, &how).length == n ||
        prefix_tree_same(c->texts, key, ids, n) >= 0)
        return; /* another text can serve for it */
    drop_shorter(c, seq, key, ids, n);
    int32_t e = free_entry(c);
    while (!prefix_tree_put(c->texts, key, ids, n, e)) {
        if (prefix_tree_oldest(c->texts) < 0)
            return; /* longer than the tree is large */
        drop(c, prefix_tree_oldest(c->texts));
    }
    state_hold(c->st, seq, e, n);
    c->did.put++;
    c->turn++;
}

/* ---- giving back ---- */

/* Drop the text used least recently of those that hold a page alone; where there is none such, of all: then two hold a page
 * together, or a sequence has to copy one that it shares with a text. */
bool prefix_cache_evict(prefix_cache *c)
{
    int32_t oldest = prefix_tree_oldest(c->texts), e = oldest;
    while (e >= 0 && state_prefix_alone(c->st, e, NULL) == 0)
        e = prefix_tree_newer(c->texts, e);
    if (oldest >= 0)
        drop(c, e >= 0 ? e : oldest);
    return oldest >= 0;
}

void prefix_cache_make_room(prefix_cache *c, const int32_t *seq, const int32_t *n_new, int64_t n)
{
    while (!state_has_room(c->st, seq, n_new, n) && prefix_cache_evict(c))
        ;
}

void prefix_cache_clear(prefix_cache *c)
{
    while (prefix_tree_oldest(c->texts) >= 0)
        drop(c, prefix_tree_oldest(c->texts));
}

/* ---- what it did ---- */

uint64_t prefix_cache_turn(const prefix_cache *c)
{
    return c->turn;
}

prefix_stats prefix_cache_stats(const prefix_cache *c)
{
    prefix_stats s = c->did;
    s.room = prefix_tree_room(c->texts);
    s.used = prefix_tree_count(c->texts);
    state_prefix_pages(c->st, &s.pages, &s.bytes);
    return s;
}

size_t prefix_cache_bytes(const prefix_cache *c)
{
    return prefix_tree_bytes(c->texts) + sizeof *c;
}
