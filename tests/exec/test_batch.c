/* test_batch.c - the suite of runtime/exec/batch.c; what a session says of bad rows is in
 * test_session.c. */
#include "runtime/exec/batch.h"

#include "tests/base/suite.h"

static const plan_cell cells[] = {
    {.name = "kv[0]", .heads = 1, .k = 2, .v = 2},
    {.name = "kv[1]", .heads = 1, .k = 2, .v = 2, .window = 4, .layout = PLAN_RING, .keep = 3},
};

typedef struct {
    weft_diag *dg;
    plan p;
    state *st;
    void *cells;
    batch *b;
} fixture;

static fixture open_fixture(plan limits)
{
    fixture f = {.dg = diag_create(), .p = limits};
    f.p.n_cell = COUNT_OF(cells);
    f.p.cell = cells;
    return f;
}

static void open_batch(fixture *f)
{
    state_options opt = {.n_seq = 8, .n_ctx = 16, .page_tok = 4, .type = DT_F32};
    ck_assert_int_eq(state_create(f->dg, &f->p, &opt, &f->st), WEFT_OK);
    f->cells = malloc(state_bytes(f->st));
    state_bind(f->st, f->cells, NULL, NULL);
    f->b = batch_create(&f->p, f->st);
    ck_assert_uint_gt(batch_bytes(f->b), 0);
}

static void close_fixture(fixture *f)
{
    batch_destroy(f->b);
    batch_destroy(NULL);
    state_destroy(f->st);
    free(f->cells);
    diag_destroy(f->dg);
}

/* Every entry that means something is in the view. */
static void expect_pages(const fixture *f)
{
    const kbatch *v = batch_view(f->b);
    batch_take_pages(f->b);
    ck_assert_int_eq(v->n_table, 2);
    for (int t = 0; t < 2; t++)
        for (int64_t i = 0; i < v->n_seq; i++) {
            state_page_table want = state_pages(f->st, t, batch_seq(f->b, i));
            ck_assert_int_ge(v->n_page, want.n);
            ck_assert_mem_eq(kbatch_pages(v, t, i), want.page, (size_t)want.n * sizeof *want.page);
        }
}

START_TEST(rows_become_arrays)
{
    fixture f =
        open_fixture((plan){.n_tok_max = 8, .n_out_max = 4, .n_seq_max = 3, .n_vocab = 100});
    open_batch(&f);
    ck_assert_int_eq(state_reserve(f.dg, f.st, 5, 3), WEFT_OK);
    state_commit(f.st, 5, 3);
    const batch_row rows[] = {
        {.id = 10, .pos = 3, .seq = 5},
        {.id = 11, .pos = 0, .seq = 7, .out = true},
        {.id = 99, .pos = 4, .seq = 5},
        {.id = 0, .pos = 0, .seq = 0},
        {.id = 12, .pos = 5, .seq = 5, .out = true},
    };
    ck_assert_int_eq(batch_fill(f.dg, f.b, rows, 5), WEFT_OK);
    const kbatch *v = batch_view(f.b);
    ck_assert_int_eq(v->n_tok, 5);
    ck_assert_int_eq(v->n_out, 2);
    ck_assert_int_eq(v->n_seq, 3);
    ck_assert_mem_eq(kbatch_at(v, KBATCH_TOKEN), ((int32_t[]){10, 11, 99, 0, 12}), 20);
    ck_assert_mem_eq(kbatch_at(v, KBATCH_POS), ((int32_t[]){3, 0, 4, 0, 5}), 20);
    ck_assert_mem_eq(kbatch_at(v, KBATCH_SEQ), ((int32_t[]){0, 1, 0, 2, 0}), 20); /* as they come */
    ck_assert_mem_eq(kbatch_at(v, KBATCH_OUT), ((int32_t[]){1, 4}), 8);
    ck_assert_mem_eq(kbatch_at(v, KBATCH_FIRST), ((int32_t[]){0, 1, 3}), 12);
    ck_assert_mem_eq(kbatch_at(v, KBATCH_LAST), ((int32_t[]){4, 1, 3}), 12);
    ck_assert_mem_eq(kbatch_at(v, KBATCH_SLOT), ((int32_t[5]){0}), 20);
    const int32_t seqs[] = {5, 7, 0}, counts[] = {3, 1, 1};
    ck_assert_int_eq(state_reserve_each(f.dg, f.st, seqs, counts, 3), WEFT_OK);
    expect_pages(&f);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(batch_seq(f.b, i), seqs[i]);
        ck_assert_int_eq(batch_seq_rows(f.b, i), counts[i]);
        ck_assert_int_eq(batch_seqs(f.b)[i], seqs[i]);
        ck_assert_int_eq(batch_seq_counts(f.b)[i], counts[i]);
    }
    /* The tables lie as close as the sequences of the call are many. */
    ck_assert_int_eq(batch_fill(f.dg, f.b, rows, 1), WEFT_OK);
    ck_assert_int_eq(v->n_seq, 1);
    expect_pages(&f);
    close_fixture(&f);
}
END_TEST

/* Tables are copied where they have changed, and where something else was written over them. */
START_TEST(tables_follow_their_sequences)
{
    fixture f = open_fixture((plan){.n_tok_max = 16, .n_out_max = 4, .n_seq_max = 4});
    uint32_t dice = 1;
    open_batch(&f);
    for (int call = 0; call < 3000; call++) {
        batch_row rows[16];
        int32_t seqs[4], counts[4];
        int64_t n = 0, n_seq = 0;
        dice = dice * 1664525u + 1013904223u;
        for (int32_t seq = 0; seq < 8 && n_seq < 4; seq++) {
            int64_t had = state_length(f.st, seq), more = dice >> (seq * 2 + 8) & 3;
            if (more == 3 || had + more > 16) { /* another beginning */
                ck_assert_int_eq(state_fork(f.dg, f.st, (seq + 3) % 8, seq,
                                            state_keepable(f.st, (seq + 3) % 8,
                                                           state_length(f.st, (seq + 3) % 8) / 2)),
                                 WEFT_OK);
                continue;
            }
            for (int64_t i = 0; i < more; i++)
                rows[n++] = (batch_row){.seq = seq, .pos = (int32_t)(had + i)};
            if (more) {
                seqs[n_seq] = seq;
                counts[n_seq++] = (int32_t)more;
            }
        }
        if (n == 0)
            continue;
        if (dice >> 30 == 0) { /* a call that is refused has written rows */
            rows[n - 1].pos++;
            ck_assert_int_ne(batch_fill(f.dg, f.b, rows, n), WEFT_OK);
            diag_reset(f.dg);
            rows[n - 1].pos--;
            n -= n > 1 && n_seq == 1;
            counts[0] = n_seq == 1 ? (int32_t)n : counts[0];
        }
        ck_assert_int_eq(batch_fill(f.dg, f.b, rows, n), WEFT_OK);
        ck_assert_int_eq(state_reserve_each(f.dg, f.st, seqs, counts, n_seq), WEFT_OK);
        expect_pages(&f);
        for (int64_t i = 0; i < n_seq; i++)
            state_commit(f.st, seqs[i], counts[i]);
    }
    close_fixture(&f);
}
END_TEST

START_TEST(limits_of_a_call)
{
    fixture f = open_fixture((plan){.n_tok_max = 8, .n_out_max = 2, .n_seq_max = 2});
    open_batch(&f);
    const batch_row three_seqs[] = {{.seq = 0}, {.seq = 4}, {.seq = 1}};
    ck_assert_int_eq(batch_fill(f.dg, f.b, three_seqs, 3), WEFT_ERR_LIMIT);
    expect_one(f.dg, W1406, "row 2 is of one more sequence than the 2");
    diag_reset(f.dg);
    const batch_row three_outs[] = {
        {.pos = 0, .out = true}, {.pos = 1, .out = true}, {.pos = 2, .out = true}};
    ck_assert_int_eq(batch_fill(f.dg, f.b, three_outs, 3), WEFT_ERR_LIMIT);
    expect_one(f.dg, W1406, "row 2 is one output more than the 2");
    diag_reset(f.dg);
    /* A refused batch leaves nothing behind. */
    const batch_row good[] = {{.seq = 1}, {.seq = 2}};
    ck_assert_int_eq(batch_fill(f.dg, f.b, good, 2), WEFT_OK);
    ck_assert_int_eq(batch_view(f.b)->n_seq, 2);
    /* Without a vocabulary any id that is not negative will do. */
    const batch_row big = {.id = INT32_MAX};
    ck_assert_int_eq(batch_fill(f.dg, f.b, &big, 1), WEFT_OK);
    const batch_row negative = {.id = -5};
    ck_assert_int_eq(batch_fill(f.dg, f.b, &negative, 1), WEFT_ERR_STATE);
    expect_one(f.dg, W1405, "row 0: token -5");
    close_fixture(&f);
}
END_TEST

START_TEST(a_table_of_positions_limits_them)
{
    fixture f = open_fixture((plan){.n_tok_max = 8, .n_out_max = 8, .n_seq_max = 2, .n_pos = 3});
    open_batch(&f);
    const batch_row rows[] = {{.pos = 0}, {.pos = 1}, {.pos = 2}, {.pos = 3}};
    ck_assert_int_eq(batch_fill(f.dg, f.b, rows, 3), WEFT_OK);
    ck_assert_int_eq(batch_fill(f.dg, f.b, rows, 4), WEFT_ERR_FULL);
    expect_one(f.dg, W1404,
               "row 3: position 3 of sequence 0 passes the 3 that the model has a table of");
    close_fixture(&f);
}
END_TEST

SUITE_MAIN("batch", rows_become_arrays, tables_follow_their_sequences, limits_of_a_call,
           a_table_of_positions_limits_them)
