/* test_state.c - the suite of runtime/kv/state.c. */
#include "runtime/kv/state.h"
#include "tests/base/suite.h"

static const plan_cell two_cells[] = {
    {.name = "kv[0]", .heads = 2, .k = 6, .v = 4},
    {.name = "latent", .latent = true, .heads = 1, .k = 5, .v = 3},
};

static const plan two_cell_plan = {.n_cell = 2, .cell = two_cells};

static state *open_state(weft_diag *dg, int64_t n_seq, int64_t n_ctx, int64_t page_tok,
                         int64_t n_page)
{
    state_options opt = {
        .n_seq = n_seq, .n_ctx = n_ctx, .page_tok = page_tok, .n_page = n_page, .type = DT_F32};
    state *st = NULL;
    ck_assert_int_eq(state_create(dg, &two_cell_plan, &opt, &st), WEFT_OK);
    return st;
}

START_TEST(cells_lie_apart_and_aligned)
{
    weft_diag *dg = diag_create();
    state *st = open_state(dg, 2, 10, 4, 0);
    /* 3 pages each; a page of kv has 4 * 2 * (6 + 4) floats, one of latent 4 * 5, rounded up to 64. */
    size_t kv = 320, latent = 128;
    ck_assert_uint_eq(state_bytes(st), 6 * (kv + latent));
    ck_assert_int_eq(state_pages_free(st, 0), 6);
    ck_assert_int_eq(state_context(st), 10);
    ck_assert_int_eq(state_count(st), 2);
    ck_assert_uint_gt(state_table_bytes(st), 0);
    char *base = malloc(state_bytes(st));
    state_bind(st, base, NULL, NULL);
    const kcell *c = state_cells(st);
    ck_assert_ptr_eq(c[0].tier[0].base, base);
    ck_assert_ptr_eq(c[1].tier[0].base, base + 6 * kv);
    ck_assert_int_eq(c[0].tier[0].page_bytes, (int64_t)kv);
    ck_assert_int_eq(c[1].tier[0].page_bytes, (int64_t)latent);
    ck_assert_int_eq(c[0].page_tok, 4);
    ck_assert_int_eq(c[0].heads, 2);
    ck_assert(c[1].latent && !c[0].latent);
    ck_assert_int_eq(c[1].tier[0].key, KFORM_F32);
    free(base);
    state_destroy(st);
    state_destroy(NULL);
    diag_destroy(dg);
}
END_TEST

START_TEST(pages_come_and_go)
{
    weft_diag *dg = diag_create();
    state *st = open_state(dg, 2, 10, 4, 4);
    const int32_t *pages = state_pages(st, 0, 0).page;
    ck_assert_int_eq(state_reserve(dg, st, 0, 5), WEFT_OK);
    ck_assert_int_eq(state_pages_free(st, 0), 2);
    ck_assert_int_eq(state_length(st, 0), 0); /* not there before they are committed */
    ck_assert_int_eq(pages[0], 0);
    ck_assert_int_eq(pages[1], 1);
    state_commit(st, 0, 5);
    ck_assert_int_eq(state_length(st, 0), 5);
    ck_assert_int_eq(state_reserve(dg, st, 0, 3), WEFT_OK); /* they fit into the second page */
    ck_assert_int_eq(state_pages_free(st, 0), 2);
    state_commit(st, 0, 3);
    ck_assert_int_eq(state_reserve(dg, st, 0, 1), WEFT_OK);
    ck_assert_int_eq(state_pages_free(st, 0), 1);
    state_release(st, 0);
    ck_assert_int_eq(state_pages_free(st, 0), 2);
    ck_assert_int_eq(state_length(st, 0), 8);
    ck_assert_ptr_eq(state_pages(st, 0, 0).page, pages);

    ck_assert_int_eq(state_truncate(dg, st, 0, 5), WEFT_OK);
    ck_assert_int_eq(state_pages_free(st, 0), 2);
    ck_assert_int_eq(state_truncate(dg, st, 0, 4), WEFT_OK);
    ck_assert_int_eq(state_pages_free(st, 0), 3);
    ck_assert_int_eq(state_reserve(dg, st, 1, 10), WEFT_OK);
    state_commit(st, 1, 10);
    ck_assert_int_eq(state_pages_free(st, 0), 0);
    /* No page is in two tables. */
    const int32_t *other = state_pages(st, 0, 1).page;
    for (int i = 0; i < 3; i++)
        ck_assert_int_ne(other[i], pages[0]);
    ck_assert_int_eq(state_truncate(dg, st, 1, 0), WEFT_OK);
    ck_assert_int_eq(state_truncate(dg, st, 0, 0), WEFT_OK);
    ck_assert_int_eq(state_pages_free(st, 0), 4);
    ck_assert_uint_eq(diag_count(dg), 0);
    state_destroy(st);
    diag_destroy(dg);
}
END_TEST

START_TEST(what_cannot_be_done_changes_nothing)
{
    weft_diag *dg = diag_create();
    state *st = open_state(dg, 2, 10, 4, 3);
    ck_assert_int_eq(state_reserve(dg, st, 0, 9), WEFT_OK);
    state_commit(st, 0, 9);
    ck_assert_int_eq(state_reserve(dg, st, 1, 1), WEFT_ERR_FULL);
    expect_one(dg, W1401, "sequence 1 needs 1 more page of 4 tokens; 0 of 3 are free");
    diag_reset(dg);
    ck_assert_int_eq(state_reserve(dg, st, 0, 2), WEFT_ERR_FULL);
    expect_one(dg, W1404, "sequence 0 holds 9 tokens; 2 more pass its context of 10");
    diag_reset(dg);
    ck_assert_int_eq(state_reserve(dg, st, 0, INT64_MAX), WEFT_ERR_FULL);
    diag_reset(dg);
    ck_assert_int_eq(state_reserve(dg, st, 2, 1), WEFT_ERR_STATE);
    expect_one(dg, W1403, "there is no sequence 2; they are numbered 0 to 1");
    diag_reset(dg);
    ck_assert_int_eq(state_truncate(dg, st, 0, 10), WEFT_ERR_STATE);
    expect_one(dg, W1402, "holds 9 tokens; it cannot be cut to 10");
    diag_reset(dg);
    ck_assert_int_eq(state_truncate(dg, st, -1, 0), WEFT_ERR_STATE);
    ck_assert_int_eq(state_length(st, 0), 9);
    ck_assert_int_eq(state_length(st, 1), 0);
    ck_assert_int_eq(state_pages_free(st, 0), 0);
    state_destroy(st);
    diag_destroy(dg);
}
END_TEST

START_TEST(sizes_out_of_range_are_refused)
{
    const state_options bad[] = {
        {.n_seq = 0, .n_ctx = 1},
        {.n_seq = 1, .n_ctx = 0},
        {.n_seq = 1, .n_ctx = INT64_MAX},
        {.n_seq = INT64_MAX, .n_ctx = 1},
        {.n_seq = 1, .n_ctx = 1, .page_tok = -1},
        {.n_seq = 1, .n_ctx = 1, .page_tok = INT64_MAX},
        {.n_seq = 1, .n_ctx = 1, .n_page = -1},
        {.n_seq = 1 << 20, .n_ctx = 1 << 20, .page_tok = 1},
        {.n_seq = 1 << 20, .n_ctx = 1 << 20, .page_tok = 1, .n_page = 1},
        {.n_seq = 1, .n_ctx = 1, .n_page = INT64_MAX},
        {.n_seq = 1, .n_ctx = 1, .n_prefix = -1},
        {.n_seq = 1, .n_ctx = 1, .n_prefix = INT64_MAX},
        {.n_seq = 1, .n_ctx = 1 << 20, .page_tok = 1, .n_prefix = 1 << 20},
    };
    weft_diag *dg = diag_create();
    state *st = NULL;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        ck_assert_int_eq(state_create(dg, &two_cell_plan, &bad[i], &st), WEFT_ERR_LIMIT);
        expect_one(dg, W1406, "it must be from 1 to");
        diag_reset(dg);
    }
    const dtype types[] = {DT_Q8_0, DT_I32, DT_COUNT, (dtype)-1};
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        state_options opt = {.n_seq = 1, .n_ctx = 64, .type = types[i]};
        ck_assert_int_eq(state_create(dg, &two_cell_plan, &opt, &st), WEFT_ERR_LIMIT);
        expect_one(dg, W1406, "F32, F16 and BF16 can");
        diag_reset(dg);
    }
    const plan_cell huge = {.name = "kv", .heads = INT32_MAX, .k = INT32_MAX, .v = 1};
    const plan p = {.n_cell = 1, .cell = &huge};
    state_options opt = {.n_seq = 1, .n_ctx = 64};
    ck_assert_int_eq(state_create(dg, &p, &opt, &st), WEFT_ERR_TARGET);
    expect_one(dg, W0902, "1 page of 64 tokens");
    diag_reset(dg);
    const plan_cell worse = {.name = "kv", .heads = INT64_MAX, .k = INT64_MAX, .v = INT64_MAX};
    const plan q = {.n_cell = 1, .cell = &worse};
    ck_assert_int_eq(state_create(dg, &q, &opt, &st), WEFT_ERR_TARGET);
    ck_assert_ptr_null(st);
    diag_destroy(dg);
}
END_TEST

/* ---- tables ---- */

enum { TOK = 4 };

static const plan_cell mixed_cells[] = {
    {.name = "ring[0]", .heads = 2, .k = 3, .v = 2, .window = 4, .layout = PLAN_RING, .keep = 9},
    {.name = "kv[1]", .heads = 2, .k = 3, .v = 1},
    {.name = "whole[2]", .heads = 3, .k = 2, .v = 2, .layout = PLAN_CONTIGUOUS},
    {.name = "ring[3]", .heads = 1, .k = 2, .v = 2, .window = 4, .layout = PLAN_RING, .keep = 13},
    {.name = "latent[4]", .latent = true, .heads = 1, .k = 3, .v = 2},
    {.name = "ring[5]", .heads = 1, .k = 1, .v = 1, .window = 10, .layout = PLAN_RING, .keep = 9},
    {.name = "whole[6]", .latent = true, .heads = 1, .k = 5, .v = 2, .layout = PLAN_CONTIGUOUS},
};

enum { CELLS = 7, TABLES = 4, SEQS = 5, CTX = 61, CALL = 11 };
enum { WHOLE = 64 }; /* CTX in whole blocks of STATE_PAGE_TOK, as attention reads them */

static const plan mixed_plan = {.n_cell = CELLS, .cell = mixed_cells, .n_tok_max = CALL};

START_TEST(cells_that_keep_the_same_share_a_table)
{
    static const dtype types[] = {DT_F32, DT_F16, DT_BF16};
    weft_diag *dg = diag_create();
    for (size_t ty = 0; ty < COUNT_OF(types); ty++) {
        state_options opt = {
            .n_seq = 2, .n_ctx = CTX, .page_tok = TOK, .n_page = 7, .type = types[ty]};
        state *st;
        ck_assert_int_eq(state_create(dg, &mixed_plan, &opt, &st), WEFT_OK);
        ck_assert_int_eq(state_tables(st), TABLES);
        static const int table[CELLS] = {0, 1, 2, 3, 1, 0, 2};
        /* Rings: 9 rows touch at most 3 pages and 13 touch 4. Of the 11 rows of a call the first page
         * of a sequence costs 1, then 4 each. */
        static const int pages[TABLES] = {2 * 3 + 2 + 2, 7, 2, 2 * 4 + 2 + 2};
        static const int elems[CELLS] = {10, 8, 12, 4, 3, 2, 5};
        const kcell *c = state_cells(st);
        size_t all = 0;
        for (int i = 0; i < CELLS; i++) {
            ck_assert_int_eq(c[i].table, table[i]);
            ck_assert_int_eq(c[i].tier[0].key, kform_of_dtype(types[ty]));
            ck_assert_int_eq(c[i].page_tok, table[i] == 2 ? WHOLE : TOK);
            int64_t bytes = c[i].page_tok * elems[i] * (types[ty] == DT_F32 ? 4 : 2);
            ck_assert_int_eq(c[i].tier[0].page_bytes, (bytes + 63) / 64 * 64);
            all += (size_t)(c[i].tier[0].page_bytes * pages[table[i]]);
        }
        for (int t = 0; t < TABLES; t++) {
            ck_assert_int_eq(state_pages_count(st, t), pages[t]);
            ck_assert_int_eq(state_pages_free(st, t), pages[t]);
        }
        ck_assert_uint_eq(state_bytes(st), all);
        state_destroy(st);
    }
    const plan none = {.n_tok_max = 4}; /* without cells there are still lengths */
    state_options opt = {.n_seq = 1, .n_ctx = 8};
    state *st;
    ck_assert_int_eq(state_create(dg, &none, &opt, &st), WEFT_OK);
    ck_assert_int_eq(state_tables(st), 0);
    ck_assert_uint_eq(state_bytes(st), 0);
    ck_assert_int_eq(state_reserve(dg, st, 0, 8), WEFT_OK);
    state_commit(st, 0, 8);
    ck_assert_int_eq(state_reserve(dg, st, 0, 1), WEFT_ERR_FULL);
    ck_assert_int_eq(state_truncate(dg, st, 0, 3), WEFT_OK);
    ck_assert_int_eq(state_length(st, 0), 3);
    state_destroy(st);
    diag_destroy(dg);
}
END_TEST

static void append_plain(weft_diag *dg, state *st, int64_t seq, int64_t n)
{
    if (state_reserve(dg, st, seq, n) != WEFT_OK)
        ck_abort_msg("sequence %d does not take %d rows", (int)seq, (int)n);
    state_commit(st, seq, n);
}

/* The call that needs the most pages takes the last one of them. */
START_TEST(a_ring_has_exactly_the_pages_it_needs)
{
    enum { MOST = 3 };
    weft_diag *dg = diag_create();
    for (int keep = 0; keep <= 10; keep++)
        for (int tok = 1; tok <= 5; tok++)
            for (int call = 1; call <= 12; call++)
                for (int n_seq = 1; n_seq <= MOST; n_seq++) {
                    plan_cell c = {.heads = 1, .k = 1, .v = 1, .layout = PLAN_RING, .keep = keep};
                    plan p = {.n_cell = 1, .cell = &c, .n_tok_max = call};
                    state_options opt = {.n_seq = n_seq, .n_ctx = 1000, .page_tok = tok};
                    state *st;
                    ck_assert_int_eq(state_create(dg, &p, &opt, &st), WEFT_OK);
                    /* One row of the first page is kept. */
                    for (int seq = 0; seq < n_seq; seq++)
                        for (int i = 0; i < 7 * tok + keep + tok - 1; i++)
                            append_plain(dg, st, seq, 1);
                    int32_t seqs[MOST], rows[MOST];
                    int left = call, room = tok - (keep + 2 * tok - 2) % tok;
                    for (int seq = 0; seq < n_seq; seq++) {
                        seqs[seq] = seq;
                        rows[seq] = left >= room ? room : 0;
                        left -= rows[seq];
                    }
                    rows[0] += left;
                    ck_assert_int_eq(state_reserve_each(dg, st, seqs, rows, n_seq), WEFT_OK);
                    ck_assert_int_eq(state_pages_free(st, 0), 0);
                    state_destroy(st);
                }
    diag_destroy(dg);
}
END_TEST

/* ---- forks ---- */

static size_t n_copied;

static weft_status counting_copy(void *ctx, weft_diag *dg, void *to, const void *from, size_t bytes)
{
    (void)ctx, (void)dg;
    n_copied += bytes;
    memcpy(to, from, bytes);
    return WEFT_OK;
}

START_TEST(a_fork_shares_until_someone_writes)
{
    weft_diag *dg = diag_create();
    state *st = open_state(dg, 3, 10, 4, 5);
    char *base = calloc(1, state_bytes(st));
    state_bind(st, base, counting_copy, NULL);
    const kcell *c = state_cells(st);
    const int32_t *a = state_pages(st, 0, 0).page, *b = state_pages(st, 0, 1).page;
    append_plain(dg, st, 0, 7);
    for (int i = 0; i < 2; i++)
        memset(c[i].tier[0].base + a[1] * c[i].tier[0].page_bytes, 'x',
               (size_t)c[i].tier[0].page_bytes);
    ck_assert_int_eq(state_fork(dg, st, 0, 1, 7), WEFT_OK);
    ck_assert_int_eq(state_length(st, 1), 7);
    ck_assert_int_eq(state_pages_free(st, 0), 3);
    ck_assert_mem_eq(a, b, 2 * sizeof *a);

    /* Both go on in one call: one gets the copy, the other stays, and no third page is asked for. */
    n_copied = 0;
    int32_t shared = a[1], both[] = {0, 1}, one[] = {1, 1};
    ck_assert_int_eq(state_reserve_each(dg, st, both, one, 2), WEFT_OK);
    ck_assert_int_eq(state_pages_free(st, 0), 2);
    ck_assert_int_ne(a[1], b[1]);
    ck_assert_int_eq(b[1], shared);
    ck_assert_int_eq(a[0], b[0]);
    ck_assert_uint_eq(n_copied, 3 * (2 * (6 + 4) + 5) * 4); /* three rows of each cell */
    for (int h = 0; h < 2; h++) {
        const char *rows = c[0].tier[0].base + a[1] * c[0].tier[0].page_bytes + h * 4 * 6 * 4;
        for (int i = 0; i < 4 * 6 * 4; i++)
            ck_assert_int_eq(rows[i], i < 3 * 6 * 4 ? 'x' : 0);
    }
    state_commit(st, 0, 1);
    state_commit(st, 1, 1);

    /* Full pages are never copied; cut into the middle of a shared one it is copied again. */
    ck_assert_int_eq(state_fork(dg, st, 0, 2, 8), WEFT_OK);
    ck_assert_int_eq(state_reserve(dg, st, 2, 1), WEFT_OK);
    ck_assert_uint_eq(n_copied, 3 * (2 * (6 + 4) + 5) * 4);
    state_release(st, 2);
    ck_assert_int_eq(state_truncate(dg, st, 2, 2), WEFT_OK);
    ck_assert_int_eq(state_reserve(dg, st, 2, 1), WEFT_OK);
    ck_assert_int_ne(state_pages(st, 0, 2).page[0], a[0]);
    ck_assert_int_eq(state_pages_free(st, 0), 1);
    state_commit(st, 2, 1);

    /* What a sequence held goes when it becomes a fork, and a fork of itself is a cut. */
    ck_assert_int_eq(state_fork(dg, st, 0, 1, 4), WEFT_OK);
    ck_assert_int_eq(state_pages_free(st, 0), 2);
    ck_assert_int_eq(state_fork(dg, st, 0, 0, 3), WEFT_OK);
    ck_assert_int_eq(state_length(st, 0), 3);
    ck_assert_int_eq(state_fork(dg, st, 0, 2, 0), WEFT_OK);
    ck_assert_int_eq(state_length(st, 2), 0);
    ck_assert_int_eq(state_pages_free(st, 0), 4);
    ck_assert_uint_eq(diag_count(dg), 0);
    free(base);
    state_destroy(st);
    diag_destroy(dg);
}
END_TEST

START_TEST(a_call_that_does_not_fit_takes_no_page)
{
    weft_diag *dg = diag_create();
    state *st = open_state(dg, 3, 40, 4, 5);
    char *base = calloc(1, state_bytes(st));
    state_bind(st, base, counting_copy, NULL);
    append_plain(dg, st, 0, 7);
    ck_assert_int_eq(state_fork(dg, st, 0, 1, 7), WEFT_OK);
    int32_t before[2][2];
    for (int i = 0; i < 2; i++)
        memcpy(before[i], state_pages(st, 0, i).page, sizeof before[i]);
    n_copied = 0;
    const int32_t all[] = {0, 2, 1}, n_new[] = {2, 1, 2}, none[] = {2, 7, 1};
    ck_assert_int_eq(state_reserve_each(dg, st, all, n_new, 3), WEFT_ERR_FULL);
    expect_one(dg, W1401, "sequence 1 needs 1 more page of 4 tokens; 0 of 5 are free");
    diag_reset(dg);
    ck_assert_int_eq(state_reserve_each(dg, st, none, n_new, 3), WEFT_ERR_STATE);
    expect_one(dg, W1403, "there is no sequence 7");
    ck_assert_uint_eq(n_copied, 0);
    ck_assert_int_eq(state_pages_free(st, 0), 3);
    for (int i = 0; i < 2; i++) {
        ck_assert_mem_eq(before[i], state_pages(st, 0, i).page, sizeof before[i]);
        ck_assert_int_eq(state_length(st, i), 7);
    }
    /* With one row less for each it does; it is a copy, and a page for the third. */
    const int32_t fewer[] = {1, 1, 1};
    ck_assert_int_eq(state_reserve_each(dg, st, all, fewer, 3), WEFT_OK);
    ck_assert_int_eq(state_pages_free(st, 0), 1);
    free(base);
    state_destroy(st);
    diag_destroy(dg);
}
END_TEST

START_TEST(a_ring_does_not_go_back_too_far)
{
    weft_diag *dg = diag_create();
    const plan_cell cells[] = {
        {.name = "kv[0]", .heads = 1, .k = 1, .v = 1},
        {.name = "kv[1]", .heads = 1, .k = 1, .v = 1, .window = 5, .layout = PLAN_RING, .keep = 8},
    };
    const plan p = {.n_cell = 2, .cell = cells, .n_tok_max = 8};
    state_options opt = {.n_seq = 2, .n_ctx = 100, .page_tok = 4};
    state *st;
    ck_assert_int_eq(state_create(dg, &p, &opt, &st), WEFT_OK);
    for (int i = 0; i < 10; i++)
        append_plain(dg, st, 0, 5);
    /* 50 - 8 is in the page that begins at 40; from 44 on a token sees no row before that. */
    ck_assert_int_eq(state_keepable(st, 0, 50), 50);
    ck_assert_int_eq(state_keepable(st, 0, 44), 44);
    ck_assert_int_eq(state_keepable(st, 0, 43), 0);
    ck_assert_int_eq(state_keepable(st, 0, 0), 0);
    const char *why =
        "sequence 0 cannot go from 50 tokens back to 43: the next would see row 39 of "
        "kv[1], which keeps those from 40 on";
    ck_assert_int_eq(state_truncate(dg, st, 0, 43), WEFT_ERR_STATE);
    expect_one(dg, W1408, why);
    diag_reset(dg);
    append_plain(dg, st, 1, 3);
    ck_assert_int_eq(state_fork(dg, st, 0, 1, 43), WEFT_ERR_STATE);
    expect_one(dg, W1408, why);
    diag_reset(dg);
    ck_assert_int_eq(state_length(st, 0), 50);
    ck_assert_int_eq(state_length(st, 1), 3);
    ck_assert_int_eq(state_fork(dg, st, 0, 1, 45), WEFT_OK);
    ck_assert_int_eq(state_truncate(dg, st, 0, 44), WEFT_OK);
    ck_assert_int_eq(state_truncate(dg, st, 1, 43), WEFT_ERR_STATE); /* it came with the fork */
    diag_reset(dg);
    ck_assert_int_eq(state_fork(dg, st, 0, 7, 1), WEFT_ERR_STATE);
    expect_one(dg, W1403, "there is no sequence 7");
    diag_reset(dg);
    ck_assert_int_eq(state_fork(dg, st, -1, 0, 1), WEFT_ERR_STATE);
    expect_one(dg, W1403, "there is no sequence -1");
    diag_reset(dg);
    ck_assert_int_eq(state_fork(dg, st, 0, 1, 45), WEFT_ERR_STATE);
    expect_one(dg, W1402, "holds 44 tokens; it cannot be cut to 45");
    diag_reset(dg);
    ck_assert_int_eq(state_fork(dg, st, 0, 1, -1), WEFT_ERR_STATE);
    expect_one(dg, W1402, "it cannot be cut to -1");
    ck_assert_int_eq(state_truncate(dg, st, 0, 0), WEFT_OK);
    ck_assert_int_eq(state_truncate(dg, st, 1, 0), WEFT_OK);
    for (int t = 0; t < 2; t++)
        ck_assert_int_eq(state_pages_free(st, t), state_pages_count(st, t));
    append_plain(dg, st, 0, 8); /* a ring begins anew */
    ck_assert_int_eq(state_keepable(st, 0, 1), 1);
    state_destroy(st);
    diag_destroy(dg);
}
END_TEST

/* ---- random operations, held against a plain model ---- */

typedef struct {
    int64_t length;
    uint32_t stamp[CTX];                 /* what each row holds is made from its number */
    int64_t kept[TABLES];                /* the first row that is still there */
    int32_t page[TABLES][CTX / TOK + 1]; /* of a prefix */
} model_seq;

enum { PREFIXES = 3, HOLDERS = SEQS + PREFIXES };

/* Of each table: rows kept, rows seen, tokens in a page. */
typedef struct {
    int n;
    int64_t keep[TABLES], seen[TABLES], tok[TABLES];
} model_tables;

static const model_tables plain_tables = {
    TABLES, {9, CTX, CTX, 13}, {9, CTX, CTX, 3}, {TOK, TOK, CTX, TOK}};
static const model_tables shared_tables = {TABLES - 1, {9, CTX, 13}, {9, CTX, 3}, {TOK, TOK, TOK}};

typedef struct {
    weft_diag *dg;
    state *st;
    char *base;
    model_seq seq[HOLDERS];
    const model_tables *t;
    int n_holder; /* sequences, and prefixes where the round has them */
    uint32_t seed, next_stamp;
    int n_full, n_gone, n_fork, n_call, n_hold; /* how often */
} model;

static int64_t draw(model *m, int64_t n) /* 0 to n - 1 */
{
    m->seed = m->seed * 1664525u + 1013904223u;
    return (int64_t)(m->seed >> 8) % n;
}

/* Entry i of what a sequence or prefix holds. */
static int32_t page_at(const model *m, int64_t holder, int table, int64_t i)
{
    return holder < SEQS ? state_pages(m->st, table, holder).page[i]
                         : m->seq[holder].page[table][i];
}

/* Write or check a row, element by element, in every cell. */
static void each_element(model *m, int64_t seq, int64_t pos, uint32_t stamp, bool write)
{
    for (int i = 0; i < CELLS; i++) {
        const kcell *c = &state_cells(m->st)[i];
        int64_t bytes = c->tier[0].key == KFORM_F32 ? 4 : 2, tok = pos % c->page_tok;
        char *page =
            c->tier[0].base + page_at(m, seq, c->table, pos / c->page_tok) * c->tier[0].page_bytes;
        if (pos < m->seq[seq].kept[c->table])
            continue;
        for (int part = 0; part < (c->latent ? 1 : 2); part++) {
            int64_t width = part ? c->v : c->k;
            for (int64_t h = 0; h < c->heads; h++)
                for (int64_t e = 0; e < width; e++) {
                    char *at = page + ((part ? c->page_tok * c->heads * c->k : 0) +
                                       (h * c->page_tok + tok) * width + e) *
                                          bytes;
                    uint32_t want =
                        stamp * 2654435761u + (uint32_t)(i * 1000 + part * 100 + h * 10 + e);
                    if (write)
                        memcpy(at, &want, (size_t)bytes);
                    else if (memcmp(at, &want, (size_t)bytes) != 0)
                        ck_abort_msg("cell %d, sequence %d, row %d is another's", i, (int)seq,
                                     (int)pos);
                }
        }
    }
}

static int64_t pages_of(const model *m, int64_t rows, int table)
{
    return (rows + m->t->tok[table] - 1) / m->t->tok[table];
}

/* How many of the first n holders hold each page; the number of pages in use. */
static int64_t count_refs(const model *m, int t, int n, int *refs)
{
    int64_t used = 0;
    memset(refs, 0, (size_t)state_pages_count(m->st, t) * sizeof *refs);
    for (int s = 0; s < n; s++)
        for (int64_t i = m->seq[s].kept[t] / m->t->tok[t]; i < pages_of(m, m->seq[s].length, t);
             i++) {
            int32_t page = page_at(m, s, t, i);
            if (page < 0 || page >= state_pages_count(m->st, t))
                ck_abort_msg("there is no page %d", (int)page);
            used += refs[page]++ == 0;
        }
    return used;
}

static void check_all(model *m)
{
    int refs[200];
    int64_t apart = 0, n;
    size_t bytes;
    for (int t = 0; t < m->t->n; t++) {
        ck_assert_int_le(state_pages_count(m->st, t), 200);
        int64_t used = count_refs(m, t, m->n_holder, refs);
        ck_assert_int_eq(state_pages_free(m->st, t), state_pages_count(m->st, t) - used);
        apart += used - count_refs(m, t, SEQS, refs);
    }
    state_prefix_pages(m->st, &n, &bytes);
    ck_assert_int_eq(n, apart);
    ck_assert_int_eq(n > 0, bytes > 0);
    for (int s = 0; s < m->n_holder; s++) {
        ck_assert_int_eq(s < SEQS ? state_length(m->st, s) : state_prefix_length(m->st, s - SEQS),
                         m->seq[s].length);
        for (int64_t i = 0; i < m->seq[s].length; i++)
            each_element(m, s, i, m->seq[s].stamp[i], false);
    }
}

/* Do these rows fit? Sequence by sequence, as a shared page is no longer shared once copied. */
static bool call_fits(const model *m, const int32_t *seqs, const int32_t *rows, int n)
{
    bool fits = true;
    for (int t = 0; t < m->t->n; t++) {
        int refs[200];
        int64_t left = state_pages_count(m->st, t) - count_refs(m, t, m->n_holder, refs);
        int64_t tok = m->t->tok[t];
        for (int i = 0; i < n; i++) {
            const model_seq *s = &m->seq[seqs[i]];
            left -= pages_of(m, s->length + rows[i], t) - pages_of(m, s->length, t);
            if (rows[i] == 0 || s->length % tok == 0)
                continue;
            int *r = &refs[page_at(m, seqs[i], t, s->length / tok)];
            if (*r > 1) {
                left--;
                (*r)--;
            }
        }
        if (left < 0) {
            ck_assert_int_eq(t, 1); /* only the paged cells are short of pages */
            fits = false;
        }
    }
    return fits;
}

static void model_call(model *m)
{
    int32_t seqs[SEQS], rows[SEQS];
    int n = 0;
    int64_t left = CALL, first = draw(m, SEQS);
    for (int i = 0; i < SEQS; i++) {
        int32_t s = (int32_t)((first + i) % SEQS);
        int64_t most = CTX - m->seq[s].length < left ? CTX - m->seq[s].length : left;
        if (draw(m, 2))
            continue;
        seqs[n] = s;
        rows[n] = (int32_t)(draw(m, 3) ? draw(m, (most < 3 ? most : 3) + 1) : draw(m, most + 1));
        left -= rows[n++];
    }
    bool fits = call_fits(m, seqs, rows, n);
    ck_assert_int_eq(state_has_room(m->st, seqs, rows, n), fits);
    ck_assert_int_eq(state_reserve_each(m->dg, m->st, seqs, rows, n) == WEFT_OK, fits);
    if (!fits) {
        expect_one(m->dg, W1401, " more page");
        diag_reset(m->dg);
        m->n_full++;
        return;
    }
    m->n_call++;
    bool fails = draw(m, 6) == 0; /* after it has written */
    for (int i = 0; i < n; i++) {
        model_seq *s = &m->seq[seqs[i]];
        for (int64_t k = 0; k < rows[i]; k++) {
            uint32_t stamp = ++m->next_stamp;
            each_element(m, seqs[i], s->length + k, stamp, true);
            s->stamp[s->length + k] = stamp;
        }
    }
    for (int i = 0; i < n; i++) {
        model_seq *s = &m->seq[seqs[i]];
        int64_t taken = fails ? 0 : draw(m, 8) ? rows[i] : draw(m, rows[i] + 1);
        state_commit(m->st, seqs[i], taken);
        state_release(m->st, seqs[i]);
        s->length += taken;
        for (int t = 0; t < m->t->n; t++) {
            int64_t tok = m->t->tok[t], kept = (s->length - m->t->keep[t]) / tok * tok;
            if (s->length > m->t->keep[t] && kept > s->kept[t])
                s->kept[t] = kept;
        }
    }
}

/* Some of the tokens of a holder, mostly nearly all; can they be kept? */
static bool draw_length(model *m, const model_seq *s, int64_t *out_length)
{
    int64_t near = s->length < 7 ? 0 : s->length - 6, length = draw(m, s->length + 1);
    if (draw(m, 3))
        length = near + draw(m, s->length - near + 1);
    bool can = true;
    for (int t = 0; t < m->t->n; t++) {
        int64_t seen = length > m->t->seen[t] ? length - m->t->seen[t] : 0;
        can = can && (length == 0 || seen >= s->kept[t]);
    }
    *out_length = length;
    return can;
}

static void model_share(model *m, int64_t from, int64_t to, int64_t length)
{
    model_seq *s = &m->seq[to];
    int32_t page[TABLES][CTX / TOK + 1];
    for (int t = 0; t < m->t->n; t++)
        for (int64_t i = m->seq[from].kept[t] / m->t->tok[t]; i < pages_of(m, length, t); i++)
            page[t][i] = page_at(m, from, t, i);
    *s = m->seq[from];
    s->length = length;
    memcpy(s->page, page, sizeof page);
    if (length == 0)
        memset(s->kept, 0, sizeof s->kept);
}

/* A prefix takes, gives or drops. */
static void model_hold(model *m)
{
    int64_t seq = draw(m, SEQS), prefix = draw(m, PREFIXES), length;
    bool give = draw(m, 2);
    model_seq *from = &m->seq[give ? SEQS + prefix : seq];
    if (draw(m, 5) == 0) {
        int64_t before = 0, after = 0, alone = state_prefix_alone(m->st, prefix, NULL);
        for (int t = 0; t < m->t->n; t++)
            before += state_pages_free(m->st, t);
        state_drop(m->st, prefix);
        for (int t = 0; t < m->t->n; t++)
            after += state_pages_free(m->st, t);
        ck_assert_int_eq(after - before, alone);
        memset(&m->seq[SEQS + prefix], 0, sizeof m->seq[0]);
        return;
    }
    bool can = draw_length(m, from, &length);
    ck_assert_int_eq(give ? state_prefix_keepable(m->st, prefix, length)
                          : state_keepable(m->st, seq, length),
                     can ? length : 0);
    if (!can)
        return;
    m->n_hold++;
    if (give) {
        state_take(m->st, prefix, seq, length);
        model_share(m, SEQS + prefix, seq, length);
    } else {
        model_share(m, seq, SEQS + prefix, length);
        state_hold(m->st, seq, prefix, length);
    }
}

/* Cut a sequence, or make another one of its beginning. */
static void model_cut(model *m, bool fork)
{
    int64_t from = draw(m, SEQS), to = fork ? draw(m, SEQS) : from, length;
    model_seq *s = &m->seq[from];
    bool can = draw_length(m, s, &length);
    ck_assert_int_eq(state_keepable(m->st, from, length), can ? length : 0);
    weft_status status = fork ? state_fork(m->dg, m->st, from, to, length)
                              : state_truncate(m->dg, m->st, from, length);
    ck_assert_int_eq(status, can ? WEFT_OK : WEFT_ERR_STATE);
    if (!can) {
        expect_one(m->dg, W1408, "cannot go from");
        diag_reset(m->dg);
        m->n_gone++;
        return;
    }
    m->n_fork += fork;
    m->seq[to] = *s;
    m->seq[to].length = length;
    if (length == 0)
        memset(m->seq[to].kept, 0, sizeof s->kept);
}

START_TEST(whatever_happens_rows_are_there)
{
    static const dtype types[] = {DT_F32, DT_F16, DT_BF16};
    enum { STEPS = 5000 };
    for (int round = 0; round < 9; round++) {
        bool prefixes = round >= 6;
        model *m = calloc(1, sizeof *m);
        m->dg = diag_create();
        m->seed = (uint32_t)round + 1;
        m->t = prefixes ? &shared_tables : &plain_tables;
        m->n_holder = prefixes ? HOLDERS : SEQS;
        state_options opt = {.n_seq = SEQS,
                             .n_ctx = CTX,
                             .page_tok = TOK,
                             .n_page = round < 3 ? 30 : 0,
                             .n_prefix = prefixes ? PREFIXES : 0,
                             .type = types[round % 3]};
        ck_assert_int_eq(state_create(m->dg, &mixed_plan, &opt, &m->st), WEFT_OK);
        m->base = malloc(state_bytes(m->st));
        state_bind(m->st, m->base, NULL, NULL);
        for (int step = 0; step < STEPS; step++) {
            int64_t what = draw(m, 16);
            if (what < 11 + !prefixes)
                model_call(m);
            else if (what < 12)
                model_hold(m);
            else
                model_cut(m, what < 14);
            check_all(m);
        }
        ck_assert_int_gt(m->n_call, STEPS / 4);
        ck_assert_int_gt(m->n_fork, STEPS / 100);
        ck_assert_int_gt(m->n_gone, STEPS / 100);
        ck_assert_int_eq(m->n_hold > STEPS / 100, prefixes);
        if (round < 3)
            ck_assert_int_gt(m->n_full, STEPS / 100);
        else if (!prefixes)
            ck_assert_int_eq(m->n_full, 0); /* enough for all, shared or not */
        for (int p = 0; p < m->n_holder - SEQS; p++)
            state_drop(m->st, p);
        for (int s = 0; s < SEQS; s++)
            ck_assert_int_eq(state_truncate(m->dg, m->st, s, 0), WEFT_OK);
        for (int t = 0; t < m->t->n; t++)
            ck_assert_int_eq(state_pages_free(m->st, t), state_pages_count(m->st, t));
        state_destroy(m->st);
        diag_destroy(m->dg);
        free(m->base);
        free(m);
    }
}
END_TEST

SUITE_MAIN("state", cells_lie_apart_and_aligned, pages_come_and_go,
           what_cannot_be_done_changes_nothing, sizes_out_of_range_are_refused,
           cells_that_keep_the_same_share_a_table, a_ring_has_exactly_the_pages_it_needs,
           a_fork_shares_until_someone_writes, a_call_that_does_not_fit_takes_no_page,
           a_ring_does_not_go_back_too_far, whatever_happens_rows_are_there)
