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
    state_options opt = {n_seq, n_ctx, page_tok, n_page, DT_F32};
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
    ck_assert_int_eq(state_pages_free(st), 6);
    ck_assert_int_eq(state_context(st), 10);
    ck_assert_int_eq(state_count(st), 2);
    ck_assert_uint_gt(state_table_bytes(st), 0);
    char *base = malloc(state_bytes(st));
    state_bind(st, base);
    const kcell *c = state_cells(st);
    ck_assert_ptr_eq(c[0].base, base);
    ck_assert_ptr_eq(c[1].base, base + 6 * kv);
    ck_assert_int_eq(c[0].page_bytes, (int64_t)kv);
    ck_assert_int_eq(c[1].page_bytes, (int64_t)latent);
    ck_assert_int_eq(c[0].page_tok, 4);
    ck_assert_int_eq(c[0].heads, 2);
    ck_assert(c[1].latent && !c[0].latent);
    ck_assert_int_eq(c[1].type, DT_F32);
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
    const int32_t *pages = state_pages(st, 0);
    ck_assert_int_eq(state_reserve(dg, st, 0, 5), WEFT_OK);
    ck_assert_int_eq(state_pages_free(st), 2);
    ck_assert_int_eq(state_length(st, 0), 0); /* not there before they are committed */
    ck_assert_int_eq(pages[0], 0);
    ck_assert_int_eq(pages[1], 1);
    state_commit(st, 0, 5);
    ck_assert_int_eq(state_length(st, 0), 5);
    ck_assert_int_eq(state_reserve(dg, st, 0, 3), WEFT_OK); /* they fit into the second page */
    ck_assert_int_eq(state_pages_free(st), 2);
    state_commit(st, 0, 3);
    ck_assert_int_eq(state_reserve(dg, st, 0, 1), WEFT_OK);
    ck_assert_int_eq(state_pages_free(st), 1);
    state_release(st, 0);
    ck_assert_int_eq(state_pages_free(st), 2);
    ck_assert_int_eq(state_length(st, 0), 8);
    ck_assert_ptr_eq(state_pages(st, 0), pages);

    ck_assert_int_eq(state_truncate(dg, st, 0, 5), WEFT_OK);
    ck_assert_int_eq(state_pages_free(st), 2);
    ck_assert_int_eq(state_truncate(dg, st, 0, 4), WEFT_OK);
    ck_assert_int_eq(state_pages_free(st), 3);
    ck_assert_int_eq(state_reserve(dg, st, 1, 10), WEFT_OK);
    state_commit(st, 1, 10);
    ck_assert_int_eq(state_pages_free(st), 0);
    /* No page is in two tables. */
    const int32_t *other = state_pages(st, 1);
    for (int i = 0; i < 3; i++)
        ck_assert_int_ne(other[i], pages[0]);
    ck_assert_int_eq(state_truncate(dg, st, 1, 0), WEFT_OK);
    ck_assert_int_eq(state_truncate(dg, st, 0, 0), WEFT_OK);
    ck_assert_int_eq(state_pages_free(st), 4);
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
    expect_one(dg, W1401, "sequence 1 needs 1 more pages of 4 tokens; 0 of 3 are free");
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
    ck_assert_int_eq(state_pages_free(st), 0);
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
    };
    weft_diag *dg = diag_create();
    state *st = NULL;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        ck_assert_int_eq(state_create(dg, &two_cell_plan, &bad[i], &st), WEFT_ERR_LIMIT);
        expect_one(dg, W1406, "it must be from 1 to");
        diag_reset(dg);
    }
    const plan_cell huge = {.name = "kv", .heads = INT32_MAX, .k = INT32_MAX, .v = 1};
    const plan p = {.n_cell = 1, .cell = &huge};
    state_options opt = {.n_seq = 1, .n_ctx = 64};
    ck_assert_int_eq(state_create(dg, &p, &opt, &st), WEFT_ERR_TARGET);
    expect_one(dg, W0902, "1 pages of 64 tokens");
    ck_assert_ptr_null(st);
    diag_destroy(dg);
}
END_TEST

/* Random reserves, commits and cuts of many sequences, held against a plain count of pages. */
START_TEST(pages_are_never_lost_or_shared)
{
    enum { SEQS = 5, CTX = 40, TOK = 3, PAGES = 30, STEPS = 20000 };
    weft_diag *dg = diag_create();
    state *st = open_state(dg, SEQS, CTX, TOK, PAGES);
    uint32_t seed = 7;
    int64_t length[SEQS] = {0};
    for (int step = 0; step < STEPS; step++) {
        seed = seed * 1664525u + 1013904223u;
        int64_t seq = seed >> 8 & 0xff, n = seed >> 16 & 15;
        seq %= SEQS;
        if (seed >> 28 < 10) {
            if (state_reserve(dg, st, seq, n) == WEFT_OK) {
                if (seed >> 28 < 8) {
                    state_commit(st, seq, n);
                    length[seq] += n;
                } else {
                    state_release(st, seq);
                }
            }
        } else {
            int64_t to = length[seq] * n / 16;
            ck_assert_int_eq(state_truncate(dg, st, seq, to), WEFT_OK);
            length[seq] = to;
        }
        diag_reset(dg);
        int64_t used = 0;
        int seen[PAGES] = {0};
        for (int64_t s = 0; s < SEQS; s++) {
            ck_assert_int_eq(state_length(st, s), length[s]);
            for (int64_t i = 0; i < (length[s] + TOK - 1) / TOK; i++, used++)
                ck_assert_int_eq(seen[state_pages(st, s)[i]]++, 0);
        }
        ck_assert_int_eq(state_pages_free(st), PAGES - used);
    }
    state_destroy(st);
    diag_destroy(dg);
}
END_TEST

SUITE_MAIN("state", cells_lie_apart_and_aligned, pages_come_and_go,
           what_cannot_be_done_changes_nothing, sizes_out_of_range_are_refused,
           pages_are_never_lost_or_shared)
