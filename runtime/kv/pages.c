/* pages.c - reference counts and a stack of free pages.
 *
 * Giving back in the opposite order of taking restores the stack exactly, so that an attempt that fails
 * leaves no trace. */
#include "runtime/kv/pages.h"

#include <string.h>

static int32_t *no_pages(arena *a, int64_t n)
{
    int32_t *page = ARENA_ARRAY(a, int32_t, (size_t)n);
    for (int64_t i = 0; i < n; i++)
        page[i] = -1;
    return page;
}

void page_pool_init(page_pool *p, arena *a, int64_t n_holder, int64_t entries, int64_t n_page)
{
    p->n_page = p->n_free = n_page;
    p->refs = ARENA_ARRAY(a, int32_t, (size_t)n_page);
    p->free = ARENA_ARRAY(a, int32_t, (size_t)n_page);
    for (int64_t i = 0; i < n_page; i++)
        p->free[i] = (int32_t)(n_page - 1 - i);
    p->seen = ARENA_ARRAY(a, uint8_t, (size_t)n_page);
    p->tables = ARENA_ARRAY(a, page_table, (size_t)n_holder);
    for (int64_t i = 0; i < n_holder; i++)
        p->tables[i].page = no_pages(a, entries);
}

static int32_t page_pop(page_pool *p)
{
    WEFT_ASSERT(p->n_free > 0);
    int32_t page = p->free[--p->n_free];
    WEFT_ASSERT(p->refs[page] == 0);
    p->refs[page] = 1;
    return page;
}

static void page_put(page_pool *p, int32_t page)
{
    WEFT_ASSERT(p->refs[page] > 0);
    if (--p->refs[page] == 0)
        p->free[p->n_free++] = page;
}

/* Let a table hold entry i no longer. */
static void entry_put(page_pool *p, page_table *t, int64_t i)
{
    page_put(p, t->page[i]);
    t->page[i] = -1;
    t->version++;
}

void pages_take(page_pool *p, page_table *t)
{
    t->page[t->n++] = page_pop(p);
    t->version++;
}

void pages_cut(page_pool *p, page_table *t, int64_t n)
{
    while (t->n > n)
        if (t->page[--t->n] >= 0)
            entry_put(p, t, t->n);
    t->first = t->first < t->n ? t->first : t->n;
    t->stays = t->stays < t->n ? t->stays : t->n;
}

void pages_skip(page_table *t, int64_t n)
{
    WEFT_ASSERT(t->first == t->n && n >= t->n);
    t->first = t->n = n;
}

void pages_drop(page_pool *p, page_table *t, int64_t first)
{
    for (; t->first < first && t->first < t->n; t->first++)
        if (t->first >= p->pinned)
            entry_put(p, t, t->first);
}

void pages_share(page_pool *p, const page_table *from, page_table *to, int64_t n)
{
    WEFT_ASSERT(to->n == 0 && n <= from->n);
    to->first = from->first < n ? from->first : n;
    to->stays = from->stays < n ? from->stays : n;
    to->n = n;
    to->version++;
    for (int64_t i = 0; i < n; i++) {
        to->page[i] = from->page[i];
        if (to->page[i] >= 0)
            p->refs[to->page[i]]++;
    }
}

void pages_share_one(page_pool *p, const page_table *from, page_table *to)
{
    WEFT_ASSERT(to->n < from->n && from->page[to->n] >= 0);
    to->page[to->n] = from->page[to->n];
    p->refs[to->page[to->n++]]++;
    to->version++;
}

int64_t pages_alone(const page_pool *p, const page_table *t)
{
    int64_t n = 0;
    for (int64_t i = 0; i < t->n; i++)
        n += t->page[i] >= 0 && p->refs[t->page[i]] == 1;
    return n;
}

int64_t pages_held(const page_pool *p, int64_t n)
{
    int64_t held = 0;
    memset(p->seen, 0, (size_t)p->n_page);
    for (int64_t h = 0; h < n; h++)
        for (int64_t i = 0; i < p->tables[h].n; i++) {
            int32_t page = p->tables[h].page[i];
            if (page < 0)
                continue;
            held += !p->seen[page];
            p->seen[page] = 1;
        }
    return held;
}

int64_t pages_split(const page_pool *p, int64_t n, int64_t *out_alone)
{
    enum { SEVERAL = 2 }; /* as far as is counted */
    int64_t held = 0;
    memset(p->seen, 0, (size_t)p->n_page);
    for (int64_t h = 0; h < n; h++)
        for (int64_t i = 0; i < p->tables[h].n; i++) {
            int32_t page = p->tables[h].page[i];
            if (page < 0 || p->seen[page] == SEVERAL)
                continue;
            held += p->seen[page]++ == 0;
        }
    for (int64_t h = 0; h < n; h++) {
        out_alone[h] = 0;
        for (int64_t i = 0; i < p->tables[h].n; i++)
            out_alone[h] += p->tables[h].page[i] >= 0 && p->seen[p->tables[h].page[i]] == 1;
    }
    return held;
}

bool pages_shared(const page_pool *p, const page_table *t, int64_t i)
{
    WEFT_ASSERT(i >= 0 && i < t->n && t->page[i] >= 0);
    return p->refs[t->page[i]] > 1;
}

int32_t pages_own(page_pool *p, page_table *t, int64_t i)
{
    WEFT_ASSERT(pages_shared(p, t, i));
    int32_t shared = t->page[i];
    t->page[i] = page_pop(p);
    t->version++;
    p->refs[shared]--;
    return shared;
}

void pages_disown(page_pool *p, page_table *t, int64_t i, int32_t shared)
{
    WEFT_ASSERT(p->refs[shared] > 0);
    page_put(p, t->page[i]);
    t->page[i] = shared;
    t->version++;
    p->refs[shared]++;
}
