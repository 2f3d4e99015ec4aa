/* name_index.c - open addressing with linear probing, at most half full. */
#include "runtime/formats/name_index.h"

#include "runtime/base/clock.h"

struct name_index {
    const char *items;
    size_t item_bytes;
    uint64_t seed;
    uint32_t *slots; /* 0: empty, else position + 1 */
    size_t mask;
};

static uint64_t mix(uint64_t h)
{
    /* The finaliser of splitmix64. */
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
    return h ^ (h >> 31);
}

/* A byte at a time, so that a name hashes alike in one piece and in two. */
static uint64_t hash_on(uint64_t h, str s)
{
    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned char)s.p[i]) * 0x9e3779b97f4a7c15u ^ h >> 29;
    return h;
}

static str name_at(const name_index *ix, size_t i)
{
    return *(const str *)(const void *)(ix->items + i * ix->item_bytes);
}

static bool equal(str name, str head, str tail)
{
    return name.n == head.n + tail.n && str_eq((str){name.p, head.n}, head) &&
           str_eq((str){name.p + head.n, tail.n}, tail);
}

/* The slot that holds the name, or the empty one where it would go. */
static uint32_t *find_slot(const name_index *ix, str head, str tail)
{
    size_t at = (size_t)mix(hash_on(hash_on(ix->seed, head), tail)) & ix->mask;
    while (ix->slots[at] && !equal(name_at(ix, ix->slots[at] - 1), head, tail))
        at = (at + 1) & ix->mask;
    return &ix->slots[at];
}

name_index *name_index_create(arena *a, const void *items, size_t n, size_t item_bytes,
                              size_t *out_twice)
{
    WEFT_ASSERT(n <= NAME_INDEX_MAX);
    size_t cap = 4;
    while (cap < 2 * n)
        cap *= 2;
    name_index *ix = ARENA_NEW(a, name_index);
    *ix = (name_index){.items = items, .item_bytes = item_bytes, .mask = cap - 1};
    ix->seed = mix(clock_ns() ^ (uintptr_t)ix);
    ix->slots = ARENA_ARRAY(a, uint32_t, cap);
    for (size_t i = 0; i < n; i++) {
        uint32_t *slot = find_slot(ix, name_at(ix, i), (str){0});
        if (*slot) {
            *out_twice = i;
            return NULL;
        }
        *slot = (uint32_t)i + 1;
    }
    return ix;
}

bool name_index_find(const name_index *ix, str head, str tail, size_t *out_i)
{
    uint32_t slot = *find_slot(ix, head, tail);
    if (!slot)
        return false;
    *out_i = slot - 1;
    return true;
}
