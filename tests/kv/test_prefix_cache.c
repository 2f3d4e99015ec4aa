/* test_prefix_cache.c - the suite of runtime/kv/prefix_cache.c. What a row holds is a number made of the ids up to it, so a row
 * that comes from another text shows. */
#include "runtime/kv/prefix_cache.h"
#include "tests/base/suite.h"

enum { TOK = 4, CTX = 48, SEQS = 3, CALL = 8 };

static const plan_cell cells[] = {
    {.name = "kv[0]", .heads = 1, .k = 1, .v = 1},
    {.name = "ring[1]", .heads = 1, .k = 1, .v = 1, .window = 6, .layout = PLAN_RING, .keep = 5},
};

static const plan plain = {.n_cell = 1, .cell = cells, .n_tok_max = CALL};
static const plan windowed = {.n_cell = 2, .cell = cells, .n_tok_max = CALL};

typedef struct {
    weft_diag *dg;
    const plan *p;
    state *st;
    prefix_cache *c;
    char *base;
    uint32_t seed;
    int32_t ids[SEQS][CTX]; /* what each sequence holds */
} world;

static world open_world(const plan *p, int64_t n_prefix, int64_t n_page)
{
    world w = {.dg = diag_create(), .p = p, .seed = 1};
    state_options opt = {.n_seq = SEQS,
                         .n_ctx = CTX,
                         .page_tok = TOK,
                         .n_page = n_page,
                         .type = DT_F32,
                         .n_prefix = n_prefix};
    ck_assert_int_eq(state_create(w.dg, p, &opt, &w.st), WEFT_OK);
    w.base = calloc(1, state_bytes(w.st));
    state_bind(w.st, w.base, NULL, NULL);
    w.c = prefix_cache_create(w.st);
    return w;
}

/* No page is lost. */
static void close_world(world *w)
{
    prefix_cache_clear(w->c);
    for (int s = 0; s < SEQS; s++)
        ck_assert_int_eq(state_truncate(w->dg, w->st, s, 0), WEFT_OK);
    for (int32_t t = 0; t < state_tables(w->st); t++)
        ck_assert_int_eq(state_pages_free(w->st, t), state_pages_count(w->st, t));
    ck_assert_int_eq(prefix_cache_stats(w->c).pages, 0);
    prefix_cache_destroy(w->c);
    prefix_cache_destroy(NULL);
    state_destroy(w->st);
    free(w->base);
    diag_destroy(w->dg);
}

static float *row_at(const world *w, int cell, int64_t seq, int64_t pos)
{
    const kcell *c = &state_cells(w->st)[cell];
    int32_t page = state_pages(w->st, c->table, seq).page[pos / c->page_tok];
    ck_assert_int_ge(page, 0);
    return (float *)(void *)(c->tier[0].base + page * c->tier[0].page_bytes) + pos % c->page_tok;
}

static float row_of(const int32_t *ids, int64_t pos)
{
    uint32_t h = 1;
    for (int64_t i = 0; i <= pos; i++)
        h = (h ^ (uint32_t)ids[i]) * 2654435761u, h ^= h >> 15;
    return (float)(h & 0xffffff);
}

static void check_rows(const world *w, int64_t seq)
{
    int64_t n = state_length(w->st, seq);
    for (int c = 0; c < w->p->n_cell; c++)
        for (int64_t i = c == 1 && n > 5 ? n - 5 : 0; i < n; i++)
            if (*row_at(w, c, seq, i) != row_of(w->ids[seq], i))
                ck_abort_msg("row %d of sequence %d in cell %d is another's", (int)i, (int)seq, c);
}

/* Evaluate ids up to n in calls of at most CALL rows; what there is of room is made. */
static bool grow(world *w, int64_t seq, const int32_t *ids, int64_t n)
{
    for (int64_t at = state_length(w->st, seq); at < n;) {
        int32_t s = (int32_t)seq, k = n - at < CALL ? (int32_t)(n - at) : CALL;
        prefix_cache_make_room(w->c, &s, &k, 1);
        if (state_reserve(w->dg, w->st, seq, k) != WEFT_OK) {
            diag_reset(w->dg);
            return false;
        }
        memmove(w->ids[seq] + at, ids + at, (size_t)k * sizeof *ids);
        for (int c = 0; c < w->p->n_cell; c++)
            for (int64_t i = at; i < at + k; i++)
                *row_at(w, c, seq, i) = row_of(ids, i);
        state_commit(w->st, seq, k);
        at += k;
    }
    return true;
}

static int64_t take(world *w, int64_t seq, const int32_t *ids, int64_t n)
{
    prefix_taken t = prefix_cache_take(w->c, seq, 0, ids, n, 0, false);
    if (t.length > 0) {
        ck_assert_int_eq(state_length(w->st, seq), t.length);
        memcpy(w->ids[seq], ids, (size_t)t.length * sizeof *ids);
        check_rows(w, seq);
    }
    return t.length;
}

static void count_ids(int32_t *ids, int32_t from)
{
    for (int i = 0; i < CTX; i++)
        ids[i] = from + i;
}

START_TEST(a_text_goes_on_where_another_was)
{
    world w = open_world(&plain, 4, 0);
    int32_t a[CTX], b[CTX];
    count_ids(a, 100);
    count_ids(b, 100);
    b[14] = 7;
    ck_assert_int_eq(take(&w, 0, a, 20), 0);
    ck_assert(grow(&w, 0, a, 21));
    prefix_cache_put(w.c, 0, 0, a, 21); /* five whole pages of it */
    uint64_t turn = prefix_cache_turn(w.c);
    prefix_cache_put(w.c, 0, 0, a, 21);
    ck_assert_uint_eq(prefix_cache_turn(w.c), turn);
    ck_assert_int_eq(state_truncate(w.dg, w.st, 0, 0), WEFT_OK);
    prefix_stats s = prefix_cache_stats(w.c);
    ck_assert(s.room == 4 && s.used == 1 && s.pages == 5 && s.put == 1);
    ck_assert_uint_gt(s.bytes, 0);

    ck_assert_int_eq(take(&w, 1, a, 40), 20);
    ck_assert_int_eq(take(&w, 2, b, 40), 14); /* a part of a page too */
    ck_assert(grow(&w, 2, b, 40));
    check_rows(&w, 2);
    check_rows(&w, 1);
    ck_assert_int_eq(prefix_cache_take(w.c, 0, 1, a, 40, 0, false).length, 0); /* another key */
    ck_assert_int_eq(prefix_cache_take(w.c, 1, 0, a, 40, 20, true).length, 0); /* has as much */
    s = prefix_cache_stats(w.c);
    ck_assert_uint_eq(s.lookups, 4);
    ck_assert_uint_eq(s.hits, 2);
    ck_assert_uint_eq(s.tokens, 140);
    ck_assert_uint_eq(s.tokens_saved, 34);
    ck_assert_uint_eq(s.evicted, 0);
    /* A longer text takes the place of its beginning. */
    ck_assert(grow(&w, 1, a, 32));
    prefix_cache_put(w.c, 1, 0, a, 32);
    ck_assert_int_eq(prefix_cache_stats(w.c).used, 1);
    close_world(&w);
}
END_TEST

START_TEST(a_window_comes_with_its_text)
{
    world w = open_world(&windowed, 4, 0);
    int32_t a[CTX], b[CTX];
    count_ids(a, 100);
    count_ids(b, 100);
    b[21] = 7;
    ck_assert(grow(&w, 0, a, 22));
    prefix_cache_put(w.c, 0, 0, a, 22);
    ck_assert_int_eq(take(&w, 1, a, 30), 22);
    ck_assert(grow(&w, 1, a, 30));
    check_rows(&w, 1);
    /* Row 16 is the first that is left; the one at 21 sees it. */
    ck_assert_int_eq(take(&w, 2, b, 30), 21);
    ck_assert(grow(&w, 2, b, 30));
    check_rows(&w, 2);
    b[12] = 7; /* but nothing further back can be used, and that is said */
    prefix_taken t = prefix_cache_take(w.c, 2, 0, b, 30, 0, false);
    ck_assert_int_eq(t.length, 0);
    ck_assert_int_eq(t.common, 12);
    /* A longer text cannot serve for it. */
    ck_assert(grow(&w, 1, a, 40));
    prefix_cache_put(w.c, 1, 0, a, 40);
    ck_assert_int_eq(prefix_cache_stats(w.c).used, 2);
    ck_assert_int_eq(take(&w, 0, a, 22), 22);
    close_world(&w);
}
END_TEST

START_TEST(texts_give_way)
{
    world w = open_world(&plain, 2, 12);
    int32_t a[3][CTX];
    for (int i = 0; i < 3; i++) {
        count_ids(a[i], 1000 * i);
        ck_assert(grow(&w, 0, a[i], 16));
        prefix_cache_put(w.c, 0, 0, a[i], 16);
        ck_assert_int_eq(state_truncate(w.dg, w.st, 0, 0), WEFT_OK);
    }
    ck_assert_uint_eq(prefix_cache_stats(w.c).evicted, 1); /* there is room for two texts */
    ck_assert_int_eq(take(&w, 1, a[0], 16), 0);
    ck_assert_int_eq(take(&w, 1, a[1], 16), 16); /* used now, so the other one goes first */
    /* 8 of 12 pages are held by texts. */
    int32_t long_one[CTX];
    count_ids(long_one, 9000);
    ck_assert(grow(&w, 0, long_one, 28));
    prefix_stats s = prefix_cache_stats(w.c);
    ck_assert(s.used == 1 && s.evicted == 2);
    ck_assert_int_eq(take(&w, 2, a[1], 16), 16);
    /* Sequences hold the rest: nothing helps then, but all was tried. */
    ck_assert(grow(&w, 0, long_one, 32));
    ck_assert(!grow(&w, 0, long_one, 48));
    ck_assert_int_eq(prefix_cache_stats(w.c).used, 0);
    check_rows(&w, 0);
    check_rows(&w, 1);
    close_world(&w);
}
END_TEST

static int64_t draw(world *w, int64_t n)
{
    w->seed = w->seed * 1664525u + 1013904223u;
    return (int64_t)((w->seed >> 8) % (uint32_t)n);
}

START_TEST(whatever_is_taken_is_right)
{
    for (int round = 0; round < 4; round++) {
        world w = open_world(round % 2 ? &windowed : &plain, 5, round < 2 ? 0 : 24);
        w.seed = (uint32_t)round + 1;
        int64_t took = 0;
        for (int step = 0; step < 4000; step++) {
            int64_t seq = draw(&w, SEQS), n = 1 + draw(&w, CTX);
            int32_t ids[CTX];
            const int32_t *like = w.ids[draw(&w, SEQS)];
            int64_t same = draw(&w, CTX);
            for (int i = 0; i < CTX; i++)
                ids[i] = i < same ? like[i] : (int32_t)draw(&w, 2);
            ck_assert_int_eq(state_truncate(w.dg, w.st, seq, 0), WEFT_OK);
            took += take(&w, seq, ids, n - 1);
            int64_t before = state_length(w.st, seq);
            if (!grow(&w, seq, ids, n)) {
                ck_assert_int_ge(state_length(w.st, seq), before);
                continue;
            }
            check_rows(&w, seq);
            if (draw(&w, 3))
                prefix_cache_put(w.c, seq, 0, w.ids[seq], n);
        }
        for (int s = 0; s < SEQS; s++)
            check_rows(&w, s);
        ck_assert_int_gt(took, 8000);
        ck_assert_uint_gt(prefix_cache_stats(w.c).evicted, 100);
        close_world(&w);
    }
}
END_TEST

SUITE_MAIN("prefix_cache", a_text_goes_on_where_another_was, a_window_comes_with_its_text,
           texts_give_way, whatever_is_taken_is_right)
