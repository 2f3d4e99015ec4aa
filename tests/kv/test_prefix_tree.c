/* test_prefix_tree.c - the suite of runtime/kv/prefix_tree.c: known cases, then random ones against a plain list of texts. */
#include "runtime/kv/prefix_tree.h"
#include "tests/base/suite.h"

START_TEST(the_longest_beginning_is_found)
{
    prefix_tree *t = prefix_tree_create(4, 8, 8);
    const int32_t a[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, b[] = {1, 2, 3, 4, 5, 6, 70, 80};
    ck_assert(prefix_tree_put(t, 0, a, 10, 3));
    ck_assert(prefix_tree_put(t, 0, b, 8, 5));
    ck_assert_int_eq(prefix_tree_count(t), 2);
    ck_assert_int_eq(prefix_tree_room(t), 8);
    ck_assert_int_eq(prefix_tree_pages(t), 3); /* the first page is there once */
    ck_assert_int_eq(prefix_tree_length(t, 3), 10);

    prefix_found f = prefix_tree_find(t, 0, a, 10, NULL);
    ck_assert_int_eq(f.entry, 3);
    ck_assert_int_eq(f.length, 10);
    f = prefix_tree_find(t, 0, a, 9, NULL); /* into an entry's tail, */
    ck_assert_int_eq(f.length, 9);
    f = prefix_tree_find(t, 0, b, 7, NULL); /* into a page, */
    ck_assert_int_eq(f.entry, 5);
    ck_assert_int_eq(f.length, 7);
    f = prefix_tree_find(t, 0, a, 6, NULL); /* and where both have as much, the newest */
    ck_assert_int_eq(f.entry, 5);
    ck_assert_int_eq(f.length, 6);
    const int32_t other[] = {1, 2, 30};
    f = prefix_tree_find(t, 0, other, 3, NULL);
    ck_assert_int_eq(f.length, 2);
    f = prefix_tree_find(t, 0, other + 2, 1, NULL);
    ck_assert_int_eq(f.entry, -1);
    ck_assert_int_eq(f.common, 0);
    ck_assert_uint_gt(prefix_tree_bytes(t), 0);
    prefix_tree_destroy(t);
    prefix_tree_destroy(NULL);
}
END_TEST

START_TEST(adapters_keep_texts_apart)
{
    prefix_tree *t = prefix_tree_create(2, 3, 3);
    const int32_t a[] = {1, 2, 3};
    ck_assert(prefix_tree_put(t, 7, a, 3, 0));
    ck_assert_int_eq(prefix_tree_find(t, 0, a, 3, NULL).entry, -1);
    ck_assert_int_eq(prefix_tree_same(t, 0, a, 3), -1);
    ck_assert_int_eq(prefix_tree_same(t, 7, a, 3), 0);
    ck_assert_int_eq(prefix_tree_same(t, 7, a, 2), -1);
    ck_assert(prefix_tree_put(t, 0, a, 3, 1));
    ck_assert_int_eq(prefix_tree_find(t, 0, a, 3, NULL).entry, 1);
    prefix_tree_remove(t, 0);
    ck_assert_int_eq(prefix_tree_find(t, 7, a, 3, NULL).entry, -1);
    ck_assert_int_eq(prefix_tree_pages(t), 1);
    prefix_tree_destroy(t);
}
END_TEST

START_TEST(what_has_no_room_changes_nothing)
{
    prefix_tree *t = prefix_tree_create(2, 2, 3);
    const int32_t a[] = {1, 2, 3, 4}, b[] = {1, 2, 5, 6, 7, 8};
    ck_assert(prefix_tree_put(t, 0, a, 4, 0));
    ck_assert(!prefix_tree_put(t, 0, b, 6, 1)); /* two more pages, one is left */
    ck_assert_int_eq(prefix_tree_pages(t), 2);
    ck_assert(!prefix_tree_has(t, 1));
    ck_assert(prefix_tree_put(t, 0, b, 5, 1));
    ck_assert_int_eq(prefix_tree_pages(t), 3);
    prefix_tree_remove(t, 0);
    prefix_tree_remove(t, 1);
    ck_assert_int_eq(prefix_tree_pages(t), 0);
    ck_assert_int_eq(prefix_tree_oldest(t), -1);
    ck_assert(prefix_tree_put(t, 0, b, 6, 1));
    prefix_tree_destroy(t);
}
END_TEST

static int64_t only_whole(const void *ctx, int32_t e, int64_t length)
{
    return prefix_tree_length(ctx, e) == length ? length : 0;
}

START_TEST(what_cannot_be_used_is_passed_over)
{
    prefix_tree *t = prefix_tree_create(2, 4, 16);
    const int32_t a[] = {1, 2, 3, 4, 5, 6, 7};
    ck_assert(prefix_tree_put(t, 0, a, 3, 0));
    ck_assert(prefix_tree_put(t, 0, a, 7, 1));
    prefix_how how = {only_whole, t};
    prefix_found f = prefix_tree_find(t, 0, a, 6, &how);
    ck_assert_int_eq(f.entry, 0);
    ck_assert_int_eq(f.length, 3);
    ck_assert_int_eq(f.common, 6);
    f = prefix_tree_find(t, 0, a, 2, &how);
    ck_assert_int_eq(f.entry, -1);
    ck_assert_int_eq(f.common, 2);
    ck_assert_int_eq(prefix_tree_shorter(t, 1), 0);
    ck_assert_int_eq(prefix_tree_shorter(t, 0), -1);
    ck_assert_int_eq(prefix_tree_oldest(t), 1);
    ck_assert_int_eq(prefix_tree_newer(t, 1), 0);
    prefix_tree_destroy(t);
}
END_TEST

/* ---- against a plain list ---- */

enum { ENTRIES = 12, LENGTH = 40, STEPS = 8000 };

typedef struct {
    bool there;
    uint64_t key, used;
    int64_t n, from; /* ids, and those that can be used begin here */
    int32_t ids[LENGTH];
} text;

typedef struct {
    prefix_tree *t;
    text of[ENTRIES];
    uint64_t clock;
    uint32_t seed;
    int64_t page_tok;
    int32_t n_page;
} list;

static int64_t draw(list *l, int64_t n)
{
    l->seed = l->seed * 1664525u + 1013904223u;
    return (int64_t)((l->seed >> 8) % (uint32_t)n);
}

static int64_t usable(const void *ctx, int32_t e, int64_t length)
{
    const list *l = ctx;
    return length >= l->of[e].from ? length : 0;
}

/* Few ids, and mostly a part of a text that is there: so texts share much. */
static text draw_text(list *l)
{
    text x = {.key = (uint64_t)draw(l, 2), .n = draw(l, LENGTH + 1)};
    const text *like = &l->of[draw(l, ENTRIES)];
    int64_t same = like->there ? draw(l, like->n + 1) : 0;
    for (int64_t i = 0; i < x.n; i++)
        x.ids[i] = i < same ? like->ids[i] : (int32_t)draw(l, 3);
    if (like->there)
        x.key = like->key;
    x.from = draw(l, 4) ? 0 : draw(l, x.n + 1);
    return x;
}

static int64_t plain_common(const text *a, const text *b)
{
    int64_t i = 0;
    while (a->key == b->key && i < a->n && i < b->n && a->ids[i] == b->ids[i])
        i++;
    return i;
}

static prefix_found plain_find(const list *l, const text *x)
{
    prefix_found f = {.entry = -1};
    for (int32_t e = 0; e < ENTRIES; e++) {
        if (!l->of[e].there)
            continue;
        int64_t n = plain_common(&l->of[e], x), can = usable(l, e, n);
        f.common = n > f.common ? n : f.common;
        if (can > f.length || (can > 0 && can == f.length && l->of[e].used > l->of[f.entry].used)) {
            f.entry = e;
            f.length = can;
        }
    }
    return f;
}

static int32_t plain_same(const list *l, const text *x)
{
    for (int32_t e = 0; e < ENTRIES; e++)
        if (l->of[e].there && l->of[e].key == x->key && l->of[e].n == x->n &&
            plain_common(&l->of[e], x) == x->n)
            return e;
    return -1;
}

static int32_t plain_oldest(const list *l, uint64_t after)
{
    int32_t found = -1;
    for (int32_t e = 0; e < ENTRIES; e++)
        if (l->of[e].there && l->of[e].used > after &&
            (found < 0 || l->of[e].used < l->of[found].used))
            found = e;
    return found;
}

static int32_t plain_shorter(const list *l, int32_t of)
{
    int32_t found = -1;
    for (int32_t e = 0; e < ENTRIES; e++)
        if (l->of[e].there && e != of && l->of[e].key == l->of[of].key &&
            l->of[e].n < l->of[of].n && plain_common(&l->of[e], &l->of[of]) == l->of[e].n &&
            (found < 0 || l->of[e].n > l->of[found].n))
            found = e;
    return found;
}

/* Different pages: those of a text that no text before it in the list has. */
static int32_t plain_pages(const list *l)
{
    int32_t n = 0;
    for (int e = 0; e < ENTRIES; e++)
        for (int64_t i = l->page_tok; l->of[e].there && i <= l->of[e].n; i += l->page_tok) {
            bool seen = false;
            for (int k = 0; k < e; k++)
                seen = seen || (l->of[k].there && plain_common(&l->of[k], &l->of[e]) >= i);
            n += !seen;
        }
    return n;
}

static void check_list(const list *l)
{
    ck_assert_int_eq(prefix_tree_pages(l->t), plain_pages(l));
    ck_assert_int_eq(prefix_tree_oldest(l->t), plain_oldest(l, 0));
    int n = 0;
    for (int32_t e = 0; e < ENTRIES; e++) {
        ck_assert(prefix_tree_has(l->t, e) == l->of[e].there);
        if (!l->of[e].there)
            continue;
        n++;
        ck_assert_int_eq(prefix_tree_length(l->t, e), l->of[e].n);
        ck_assert_int_eq(prefix_tree_newer(l->t, e), plain_oldest(l, l->of[e].used));
        ck_assert_int_eq(prefix_tree_shorter(l->t, e), plain_shorter(l, e));
    }
    ck_assert_int_eq(prefix_tree_count(l->t), n);
}

/* Put a text in where there is a place; the oldest goes where there is none, or no room for its pages. */
static void list_put(list *l, const text *x)
{
    int32_t same = plain_same(l, x), e = 0;
    ck_assert_int_eq(prefix_tree_same(l->t, x->key, x->ids, x->n), same);
    if (same >= 0) {
        l->of[same].used = ++l->clock;
        return;
    }
    while (e < ENTRIES && l->of[e].there)
        e++;
    if (e == ENTRIES) {
        e = prefix_tree_oldest(l->t);
        prefix_tree_remove(l->t, e);
        l->of[e].there = false;
    }
    l->of[e] = *x;
    l->of[e].there = true;
    l->of[e].used = ++l->clock;
    bool fits = plain_pages(l) <= l->n_page;
    ck_assert(prefix_tree_put(l->t, x->key, x->ids, x->n, e) == fits);
    l->of[e].there = fits;
}

static void list_find(list *l, const text *x)
{
    prefix_how how = {usable, l};
    prefix_found got = prefix_tree_find(l->t, x->key, x->ids, x->n, &how), want = plain_find(l, x);
    ck_assert_int_eq(got.length, want.length);
    ck_assert_int_eq(got.entry, want.entry);
    ck_assert_int_eq(got.common, want.common);
    if (got.entry >= 0)
        l->of[got.entry].used = ++l->clock;
}

START_TEST(it_finds_what_a_plain_list_does)
{
    for (int round = 0; round < 6; round++) {
        list *l = calloc(1, sizeof *l);
        l->seed = (uint32_t)round + 1;
        l->page_tok = (int64_t[]){1, 2, 3, 4, 8, 64}[round];
        l->n_page = round % 2 ? 1000 : 20;
        l->t = prefix_tree_create(l->page_tok, ENTRIES, l->n_page);
        int n_found = 0;
        for (int step = 0; step < STEPS; step++) {
            text x = draw_text(l);
            int64_t what = draw(l, 8);
            int32_t e = (int32_t)draw(l, ENTRIES);
            if (what < 4)
                list_find(l, &x), n_found += plain_find(l, &x).entry >= 0;
            else if (what < 7)
                list_put(l, &x);
            else if (l->of[e].there) {
                prefix_tree_remove(l->t, e);
                l->of[e].there = false;
            }
            check_list(l);
        }
        ck_assert_int_gt(n_found, STEPS / 8);
        for (int32_t e; (e = prefix_tree_oldest(l->t)) >= 0;)
            prefix_tree_remove(l->t, e);
        ck_assert_int_eq(prefix_tree_pages(l->t), 0);
        prefix_tree_destroy(l->t);
        free(l);
    }
}
END_TEST

SUITE_MAIN("prefix_tree", the_longest_beginning_is_found, adapters_keep_texts_apart,
           what_has_no_room_changes_nothing, what_cannot_be_used_is_passed_over,
           it_finds_what_a_plain_list_does)
