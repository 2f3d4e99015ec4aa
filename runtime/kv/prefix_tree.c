/* prefix_tree.c - nodes are pages of ids, found among the children of the page before by a hash and then by the ids themselves.
 *
 * A node is there as long as an entry is at it or behind it, so below every node there is something to find. */
#include "runtime/kv/prefix_tree.h"

#include <string.h>

enum { NONE = -1 };

typedef struct {
    uint64_t hash;       /* of the page's ids; of a root: its key */
    int32_t parent;      /* NONE: a root */
    int32_t child, next; /* the first below it, and the next one beside it */
    int32_t entry;       /* the first that ends in the page behind it */
    int64_t depth;       /* pages up to it, itself included */
} node;

typedef struct {
    bool used;
    int32_t at;           /* the node of its last whole page */
    int32_t beside;       /* the next entry of that node */
    int32_t older, newer; /* in the order of use */
    uint64_t turn;        /* of its last use */
    int64_t n_tail;       /* ids behind the last whole page */
} entry;

struct prefix_tree {
    int64_t page_tok;
    int32_t n_entry, n_node, n_page;
    int32_t n_entry_used, n_page_used;
    node *nodes;    /* [n_node] */
    int32_t *ids;   /* [n_node][page_tok] */
    entry *entries; /* [n_entry] */
    int32_t *tails; /* [n_entry][page_tok] */
    int32_t free;   /* the first node that is not used; they are linked by `next` */
    int32_t root;   /* the first, others beside it: one for each key */
    int32_t oldest, newest;
    uint64_t turn; /* uses so far */
    arena *home;
};

prefix_tree *prefix_tree_create(int64_t page_tok, int32_t n_entry, int32_t n_page)
{
    WEFT_ASSERT(page_tok >= 1 && n_entry >= 1 && n_page >= 1 && n_page <= INT32_MAX - n_entry);
    arena *a = arena_create();
    prefix_tree *t = ARENA_NEW(a, prefix_tree);
    /* A root for each entry at most: they may all have different keys. */
    int32_t n_node = n_page + n_entry;
    *t = (prefix_tree){.page_tok = page_tok,
                       .n_entry = n_entry,
                       .n_node = n_node,
                       .n_page = n_page,
                       .root = NONE,
                       .oldest = NONE,
                       .newest = NONE,
                       .home = a};
    t->nodes = ARENA_ARRAY(a, node, (size_t)n_node);
    t->ids = ARENA_ARRAY(a, int32_t, (size_t)n_node * (size_t)page_tok);
    t->entries = ARENA_ARRAY(a, entry, (size_t)n_entry);
    t->tails = ARENA_ARRAY(a, int32_t, (size_t)n_entry * (size_t)page_tok);
    for (int32_t i = 0; i < n_node; i++)
        t->nodes[i].next = i + 1 < n_node ? i + 1 : NONE;
    return t;
}

void prefix_tree_destroy(prefix_tree *t)
{
    if (t)
        arena_destroy(t->home); /* t itself with it */
}

static int32_t *page_of(const prefix_tree *t, int32_t at)
{
    return t->ids + at * t->page_tok;
}

static int32_t *tail_of(const prefix_tree *t, int32_t e)
{
    return t->tails + e * t->page_tok;
}

static uint64_t hash_page(const prefix_tree *t, const int32_t *ids)
{
    uint64_t h = 0x9e3779b97f4a7c15u;
    for (int64_t i = 0; i < t->page_tok; i++)
        h = (h ^ (uint32_t)ids[i]) * 0xff51afd7ed558ccdu, h ^= h >> 29;
    return h;
}

/* ---- the order of use ---- */

static void unlink_use(prefix_tree *t, int32_t e)
{
    entry *x = &t->entries[e];
    *(x->older < 0 ? &t->oldest : &t->entries[x->older].newer) = x->newer;
    *(x->newer < 0 ? &t->newest : &t->entries[x->newer].older) = x->older;
}

static void link_newest(prefix_tree *t, int32_t e)
{
    entry *x = &t->entries[e];
    x->older = t->newest;
    x->newer = NONE;
    *(t->newest < 0 ? &t->oldest : &t->entries[t->newest].newer) = e;
    t->newest = e;
    x->turn = ++t->turn;
}

static void use(prefix_tree *t, int32_t e)
{
    unlink_use(t, e);
    link_newest(t, e);
}

/* ---- walking ---- */

static int32_t find_root(const prefix_tree *t, uint64_t key)
{
    int32_t r = t->root;
    while (r >= 0 && t->nodes[r].hash != key)
        r = t->nodes[r].next;
    return r;
}

static int32_t find_child(const prefix_tree *t, int32_t at, const int32_t *ids, uint64_t hash)
{
    int32_t c = t->nodes[at].child;
    size_t bytes = (size_t)t->page_tok * sizeof *ids;
    while (c >= 0 && (t->nodes[c].hash != hash || memcmp(page_of(t, c), ids, bytes) != 0))
        c = t->nodes[c].next;
    return c;
}

/* The last node on the way of these ids, as far as there is one. */
static int32_t walk(const prefix_tree *t, int32_t root, const int32_t *ids, int64_t n)
{
    int32_t at = root;
    for (int64_t i = 0; i + t->page_tok <= n; i += t->page_tok) {
        int32_t c = find_child(t, at, ids + i, hash_page(t, ids + i));
        if (c < 0)
            break;
        at = c;
    }
    return at;
}

static int64_t same_ids(const int32_t *a, const int32_t *b, int64_t n)
{
    int64_t i = 0;
    while (i < n && a[i] == b[i])
        i++;
    return i;
}

/* ---- finding ---- */

/* A text that is looked for, and the best so far. */
typedef struct {
    prefix_tree *t;
    const int32_t *ids;
    int64_t n;
    const prefix_how *how;
    prefix_found best;
} search;

/* Entry e has `common` of the text's first ids. */
static void offer(search *s, int32_t e, int64_t common)
{
    prefix_found *best = &s->best;
    const entry *of = s->t->entries;
    if (common > best->common)
        best->common = common;
    if (common < 1 || common < best->length)
        return;
    int64_t can = s->how && s->how->usable ? s->how->usable(s->how->ctx, e, common) : common;
    WEFT_ASSERT(can <= common);
    if (can > best->length ||
        (can == best->length && best->entry >= 0 && of[e].turn > of[best->entry].turn)) {
        best->entry = e;
        best->length = can;
    }
}

/* All entries at `top` and below it share as much with the text. */
static void offer_below(search *s, int32_t top, int64_t common)
{
    const node *nodes = s->t->nodes;
    int32_t at = top;
    while (at >= 0) {
        for (int32_t e = nodes[at].entry; e >= 0; e = s->t->entries[e].beside)
            offer(s, e, common);
        if (nodes[at].child >= 0) {
            at = nodes[at].child;
            continue;
        }
        while (at != top && nodes[at].next < 0)
            at = nodes[at].parent;
        at = at == top ? NONE : nodes[at].next;
    }
}

/* What is at a node on the text's way, and below it but for the child `done`. */
static void offer_at(search *s, int32_t at, int32_t done)
{
    const prefix_tree *t = s->t;
    int64_t here = t->nodes[at].depth * t->page_tok, left = s->n - here;
    const int32_t *rest = s->ids + here;
    for (int32_t e = t->nodes[at].entry; e >= 0; e = t->entries[e].beside) {
        int64_t n = t->entries[e].n_tail < left ? t->entries[e].n_tail : left;
        offer(s, e, here + same_ids(tail_of(t, e), rest, n));
    }
    for (int32_t c = t->nodes[at].child; c >= 0; c = t->nodes[c].next)
        if (c != done)
            offer_below(s, c,
                        here +
                            same_ids(page_of(t, c), rest, left < t->page_tok ? left : t->page_tok));
}

prefix_found prefix_tree_find(prefix_tree *t, uint64_t key, const int32_t *ids, int64_t n,
                              const prefix_how *how)
{
    search s = {.t = t, .ids = ids, .n = n, .how = how, .best.entry = NONE};
    int32_t root = find_root(t, key), at = root < 0 ? NONE : walk(t, root, ids, n), done = NONE;
    /* Upwards: what branches off further up shares less than a page that was passed. */
    for (; at >= 0; done = at, at = t->nodes[at].parent) {
        offer_at(&s, at, done);
        if (s.best.length >= t->nodes[at].depth * t->page_tok)
            break;
    }
    if (s.best.entry >= 0)
        use(t, s.best.entry);
    return s.best;
}

/* The entry of exactly these ids below a root. */
static int32_t find_same(const prefix_tree *t, int32_t root, const int32_t *ids, int64_t n)
{
    int64_t whole = n / t->page_tok, n_tail = n % t->page_tok;
    int32_t at = root < 0 ? NONE : walk(t, root, ids, n);
    if (at < 0 || t->nodes[at].depth != whole)
        return NONE;
    int32_t e = t->nodes[at].entry;
    while (e >= 0 && (t->entries[e].n_tail != n_tail ||
                      same_ids(tail_of(t, e), ids + n - n_tail, n_tail) != n_tail))
        e = t->entries[e].beside;
    return e;
}

int32_t prefix_tree_same(prefix_tree *t, uint64_t key, const int32_t *ids, int64_t n)
{
    int32_t e = find_same(t, find_root(t, key), ids, n);
    if (e >= 0)
        use(t, e);
    return e;
}

/* ---- changing ---- */

static int32_t *first_beside(prefix_tree *t, int32_t parent)
{
    return parent < 0 ? &t->root : &t->nodes[parent].child;
}

static int32_t add_node(prefix_tree *t, int32_t parent, uint64_t hash)
{
    int32_t at = t->free, *first = first_beside(t, parent);
    WEFT_ASSERT(at >= 0);
    t->free = t->nodes[at].next;
    t->nodes[at] = (node){.hash = hash,
                          .parent = parent,
                          .child = NONE,
                          .next = *first,
                          .entry = NONE,
                          .depth = parent < 0 ? 0 : t->nodes[parent].depth + 1};
    *first = at;
    t->n_page_used += parent >= 0;
    return at;
}

static void remove_node(prefix_tree *t, int32_t at)
{
    int32_t *link = first_beside(t, t->nodes[at].parent);
    while (*link != at)
        link = &t->nodes[*link].next;
    *link = t->nodes[at].next;
    t->n_page_used -= t->nodes[at].parent >= 0;
    t->nodes[at].next = t->free;
    t->free = at;
}

bool prefix_tree_put(prefix_tree *t, uint64_t key, const int32_t *ids, int64_t n, int32_t e)
{
    WEFT_ASSERT(e >= 0 && e < t->n_entry && !t->entries[e].used && n >= 0);
    int32_t root = find_root(t, key), at = root < 0 ? NONE : walk(t, root, ids, n);
    int64_t whole = n / t->page_tok, depth = at < 0 ? 0 : t->nodes[at].depth;
    WEFT_ASSERT(find_same(t, root, ids, n) < 0);
    if (whole - depth > t->n_page - t->n_page_used)
        return false;
    if (at < 0)
        at = add_node(t, NONE, key);
    for (; depth < whole; depth++) {
        const int32_t *page = ids + depth * t->page_tok;
        at = add_node(t, at, hash_page(t, page));
        memcpy(page_of(t, at), page, (size_t)t->page_tok * sizeof *ids);
    }
    int64_t n_tail = n % t->page_tok;
    memcpy(tail_of(t, e), ids + n - n_tail, (size_t)n_tail * sizeof *ids);
    t->entries[e] = (entry){.used = true, .at = at, .beside = t->nodes[at].entry, .n_tail = n_tail};
    t->nodes[at].entry = e;
    link_newest(t, e);
    t->n_entry_used++;
    return true;
}

void prefix_tree_remove(prefix_tree *t, int32_t e)
{
    WEFT_ASSERT(prefix_tree_has(t, e));
    int32_t at = t->entries[e].at, *link = &t->nodes[at].entry;
    while (*link != e)
        link = &t->entries[*link].beside;
    *link = t->entries[e].beside;
    unlink_use(t, e);
    t->entries[e].used = false;
    t->n_entry_used--;
    while (at >= 0 && t->nodes[at].entry < 0 && t->nodes[at].child < 0) {
        int32_t parent = t->nodes[at].parent;
        remove_node(t, at);
        at = parent;
    }
}

/* ---- what it is ---- */

bool prefix_tree_has(const prefix_tree *t, int32_t e)
{
    return e >= 0 && e < t->n_entry && t->entries[e].used;
}

int64_t prefix_tree_length(const prefix_tree *t, int32_t e)
{
    WEFT_ASSERT(prefix_tree_has(t, e));
    return t->nodes[t->entries[e].at].depth * t->page_tok + t->entries[e].n_tail;
}

int32_t prefix_tree_oldest(const prefix_tree *t)
{
    return t->oldest;
}

int32_t prefix_tree_newer(const prefix_tree *t, int32_t e)
{
    WEFT_ASSERT(prefix_tree_has(t, e));
    return t->entries[e].newer;
}

/* Of the entries of a node, the one with the most ids behind it, all of which `ids` begins with, and fewer than n. */
static int32_t longest_tail(const prefix_tree *t, int32_t at, const int32_t *ids, int64_t n)
{
    int32_t found = NONE;
    for (int32_t e = t->nodes[at].entry; e >= 0; e = t->entries[e].beside) {
        int64_t tail = t->entries[e].n_tail;
        if (tail < n && same_ids(tail_of(t, e), ids, tail) == tail &&
            (found < 0 || tail > t->entries[found].n_tail))
            found = e;
    }
    return found;
}

int32_t prefix_tree_shorter(const prefix_tree *t, int32_t e)
{
    WEFT_ASSERT(prefix_tree_has(t, e));
    int32_t at = t->entries[e].at;
    int32_t found = longest_tail(t, at, tail_of(t, e), t->entries[e].n_tail);
    for (; found < 0 && t->nodes[at].parent >= 0; at = t->nodes[at].parent)
        found = longest_tail(t, t->nodes[at].parent, page_of(t, at), t->page_tok);
    return found;
}

int32_t prefix_tree_count(const prefix_tree *t)
{
    return t->n_entry_used;
}

int32_t prefix_tree_room(const prefix_tree *t)
{
    return t->n_entry;
}

int32_t prefix_tree_pages(const prefix_tree *t)
{
    return t->n_page_used;
}

size_t prefix_tree_bytes(const prefix_tree *t)
{
    return arena_held(t->home);
}
