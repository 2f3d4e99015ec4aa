/* pages.h - a pool of numbered pages, and for each holder, a sequence or a prefix, a table of those it holds.
 *
 * A page is held by any number of tables and is free when none holds it. A holder has entries
 * [first, n) of its table, and of those before `first`, which were given back, the first `pinned`. Entries
 * from n on were never taken. Only numbers are kept here; what a page holds is state.c's. Nothing
 * allocates after page_pool_init. Private to runtime/kv. */
#ifndef WEFT_RUNTIME_KV_PAGES_H
#define WEFT_RUNTIME_KV_PAGES_H

#include "runtime/base/arena.h"

typedef struct {
    int32_t *page; /* [entries of the pool]; -1 where it holds none */
    int64_t first, n;
    int64_t stays;    /* entries before it were given back under another policy (state_change) */
    uint64_t version; /* another one whenever an entry is another page */
} page_table;

typedef struct {
    int64_t n_page, n_free;
    int64_t pinned;     /* entries that pages_drop leaves */
    int32_t *refs;      /* [n_page]: tables that hold the page */
    int32_t *free;      /* [n_free]: a stack of those that none holds */
    page_table *tables; /* [n_holder] */
    uint8_t *seen;      /* [n_page]: for pages_held */
} page_pool;

/* All pages free; page 0 is handed out first. */
void page_pool_init(page_pool *p, arena *a, int64_t n_holder, int64_t entries, int64_t n_page);

/* One more page at the end of a table; there must be a free one. */
void pages_take(page_pool *p, page_table *t);
/* Let an empty table go on with entry n. */
void pages_skip(page_table *t, int64_t n);
/* Keep entries before n; none is taken where the table has fewer. */
void pages_cut(page_pool *p, page_table *t, int64_t n);
/* Give back the entries before `first` that are not pinned, or as many of them as there are. */
void pages_drop(page_pool *p, page_table *t, int64_t first);
/* Let `to`, which holds nothing, hold what `from` does, up to entry n. */
void pages_share(page_pool *p, const page_table *from, page_table *to, int64_t n);

/* Let `to` hold its next entry too, which `from` holds. */
void pages_share_one(page_pool *p, const page_table *from, page_table *to);

/* How many pages of a table no other one holds; and how many different ones the first n tables hold. */
int64_t pages_alone(const page_pool *p, const page_table *t);
int64_t pages_held(const page_pool *p, int64_t n);

/* Of the first n tables: how many different pages they hold, and of each table how many that no other of them holds. */
int64_t pages_split(const page_pool *p, int64_t n, int64_t *out_alone);

/* Does another table hold entry i too? */
bool pages_shared(const page_pool *p, const page_table *t, int64_t i);
/* Put a free page in the place of shared entry i; the number of the shared one comes back. */
int32_t pages_own(page_pool *p, page_table *t, int64_t i);
/* The opposite of pages_own, while nothing else has happened to the pool. */
void pages_disown(page_pool *p, page_table *t, int64_t i, int32_t shared);

#endif
