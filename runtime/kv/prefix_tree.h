/* prefix_tree.h - which texts there is state of: finds the one that a new text shares the most with.
 *
 *     prefix_tree_put(t, key, ids, n, entry);          entry stands for these n ids from now on
 *     prefix_tree_find(t, key, ids, n, &how, &length); the entry that has the most of the beginning of these
 *     prefix_tree_oldest(t)                            the one that was not asked for the longest
 *
 * A radix tree whose every step is a page of ids. Ids behind an entry's last whole page are kept with the entry. Texts with
 * different keys (sets of adapters) have nothing in common. An entry is a number that the owner gives: what it stands for (a
 * prefix of the state) is the owner's, who drops it where it takes an entry out.
 *
 * Everything is sized in prefix_tree_create; nothing later allocates. Not thread-safe. Private to runtime. */
#ifndef WEFT_RUNTIME_KV_PREFIX_TREE_H
#define WEFT_RUNTIME_KV_PREFIX_TREE_H

#include "runtime/base/arena.h"

typedef struct prefix_tree prefix_tree;

/* Of at most n_entry texts, numbered from 0, which have at most n_page different pages of page_tok ids. All are at least 1. */
prefix_tree *prefix_tree_create(int64_t page_tok, int32_t n_entry, int32_t n_page);
void prefix_tree_destroy(prefix_tree *t); /* NULL is fine */

/* How many of the first `length` ids of an entry its owner can use: all, fewer, or none. */
typedef int64_t prefix_usable(const void *ctx, int32_t entry, int64_t length);
typedef struct {
    prefix_usable *usable; /* NULL: any number of them */
    const void *ctx;
} prefix_how;

typedef struct {
    int32_t entry;  /* -1: none has anything that can be used */
    int64_t length; /* of it that can be used */
    int64_t common; /* ids that the text shares with some entry, whether they can be used or not */
} prefix_found;

/* The entry that the most of the first ids of this text can be used of; of several the newest. It is the newest then. */
prefix_found prefix_tree_find(prefix_tree *t, uint64_t key, const int32_t *ids, int64_t n,
                              const prefix_how *how);

/* The entry of exactly these ids, which is the newest then; -1: there is none. */
int32_t prefix_tree_same(prefix_tree *t, uint64_t key, const int32_t *ids, int64_t n);

/* Let an entry that is not in the tree stand for these ids, which no other does; it is the newest. False: there is no room for the pages
 * of ids that no entry has yet, and nothing has changed. */
bool prefix_tree_put(prefix_tree *t, uint64_t key, const int32_t *ids, int64_t n,
                     int32_t entry) WEFT_MUST_USE;
void prefix_tree_remove(prefix_tree *t, int32_t entry); /* which is in the tree */

bool prefix_tree_has(const prefix_tree *t, int32_t entry);
int64_t prefix_tree_length(const prefix_tree *t, int32_t entry); /* ids it stands for */
/* In the order of use: the first, and the next after one; -1: there is none. */
int32_t prefix_tree_oldest(const prefix_tree *t);
int32_t prefix_tree_newer(const prefix_tree *t, int32_t entry);
/* The longest entry whose ids are the beginning of this one's, which has more; -1: there is none. */
int32_t prefix_tree_shorter(const prefix_tree *t, int32_t entry);

int32_t prefix_tree_count(const prefix_tree *t); /* entries in it */
int32_t prefix_tree_room(const prefix_tree *t);  /* entries it may have */
int32_t prefix_tree_pages(const prefix_tree *t); /* different pages of ids in it */
size_t prefix_tree_bytes(const prefix_tree *t);  /* memory it holds */

#endif
