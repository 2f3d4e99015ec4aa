/* test_forms.c - what a model says does not depend on how its state is kept: in pages, rings or whole,
 * forked, cut, and short of pages. The storage type costs only what rounding costs. */
#include "tests/exec/toy.h"

enum { N = 24 };

static const int32_t ids_a[N] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8,
                                 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4};
static const int32_t ids_b[N] = {28, 0, 27, 1, 26, 2, 25, 3, 24, 4,  23, 5,
                                 22, 6, 21, 7, 20, 8, 19, 9, 18, 10, 17, 11};

/* The toy's plan with its cells kept in another way: its first sees everything, its second WINDOW. */
typedef struct {
    plan p;
    plan_cell cell[2];
} formed;

static formed *form_plan(const toy *t, plan_cell_layout first, plan_cell_layout second,
                         int64_t keep, dtype kv)
{
    formed *f = malloc(sizeof *f);
    f->p = *t->p;
    ck_assert_int_eq(f->p.n_cell, 2);
    memcpy(f->cell, t->p->cell, sizeof f->cell);
    ck_assert_int_eq(f->cell[0].window, 0);
    f->cell[0].layout = first;
    f->cell[1].layout = second;
    f->cell[1].keep = keep;
    f->cell[1].window = WINDOW; /* as bind tells it; the toy's graph is made by hand */
    f->p.cell = f->cell;
    f->p.kv = kv;
    return f;
}

static session *open_formed(toy *t, const formed *f, session_options opt)
{
    session *s = NULL;
    ck_assert_int_eq(session_create(t->dg, &f->p, model_file_source(t->mf), &opt, &s), WEFT_OK);
    return s;
}

typedef struct {
    float logits[N][VOCAB];
} record;

/* ids[from, to) as rows of a sequence, `chunk` at a time. */
static void eval(toy *t, session *s, int seq, const int32_t *ids, int from, int to, int chunk,
                 record *r)
{
    for (int at = from; at < to;) {
        int n = to - at < chunk ? to - at : chunk;
        batch_row rows[N];
        const float *data;
        int64_t n_row, width;
        for (int i = 0; i < n; i++)
            rows[i] = (batch_row){.id = ids[at + i], .pos = at + i, .seq = seq, .out = true};
        ck_assert_int_eq(session_eval(t->dg, s, rows, n), WEFT_OK);
        ck_assert(session_output(s, "logits", -1, &data, &n_row, &width));
        memcpy(r->logits[at], data, (size_t)n * VOCAB * sizeof *data);
        at += n;
    }
}

static void expect_same(const record *want, const record *got, int from, int to)
{
    for (int i = from; i < to; i++)
        if (memcmp(want->logits[i], got->logits[i], sizeof want->logits[i]) != 0)
            ck_abort_msg("logits of position %d differ", i);
}

static const struct {
    plan_cell_layout first, second;
    int64_t keep;
} forms[] = {
    {PLAN_PAGED, PLAN_PAGED, 0},
    {PLAN_PAGED, PLAN_RING, WINDOW - 1},
    {PLAN_CONTIGUOUS, PLAN_RING, WINDOW + 3},
    {PLAN_CONTIGUOUS, PLAN_CONTIGUOUS, 0},
};

START_TEST(every_form_gives_the_same)
{
    static const dtype types[] = {DT_F32, DT_F16, DT_BF16};
    /* Measured, of logits of about 1: 0.0018 and 0.015. */
    static const double far[] = {0, 0.005, 0.04};
    toy *t = toy_open();
    record exact, want, got;
    for (size_t ty = 0; ty < COUNT_OF(types); ty++)
        for (size_t i = 0; i < COUNT_OF(forms); i++)
            for (int chunk = 1; chunk <= N; chunk += 5) {
                formed *f = form_plan(t, forms[i].first, forms[i].second, forms[i].keep, types[ty]);
                session *s = open_formed(t, f, (session_options){.n_ctx = N, .page_tok = 3});
                record *r = i == 0 && chunk == 1 ? &want : &got;
                eval(t, s, 0, ids_a, 0, N, chunk, r);
                expect_same(&want, r, 0, N);
                session_destroy(s);
                free(f);
                if (ty == 0)
                    exact = want;
                double worst = 0;
                for (int p = 0; p < N; p++)
                    for (int v = 0; v < VOCAB; v++)
                        worst = fmax(worst,
                                     fabs((double)want.logits[p][v] - (double)exact.logits[p][v]));
                ck_assert_double_le(worst, far[ty]);
                if (ty > 0)
                    ck_assert_double_gt(worst, 0); /* it is stored so, then */
            }
    toy_close(t);
}
END_TEST

/* Two sequences with one beginning, which then part; one that shares nothing is the measure. */
START_TEST(a_fork_goes_on_as_if_alone)
{
    toy *t = toy_open();
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        formed *f = form_plan(t, forms[i].first, forms[i].second, forms[i].keep, DT_F32);
        for (int cut = 1; cut < N; cut++) {
            int32_t mixed[N];
            record a, b, got_a, got_b;
            for (int k = 0; k < N; k++)
                mixed[k] = k < cut ? ids_a[k] : ids_b[k];
            session *s =
                open_formed(t, f, (session_options){.n_ctx = N, .n_seq = 4, .page_tok = 4});
            eval(t, s, 0, ids_a, 0, N, N, &a);
            eval(t, s, 1, mixed, 0, N, N, &b);
            eval(t, s, 2, ids_a, 0, cut, 5, &got_a);
            ck_assert_int_eq(session_fork(t->dg, s, 2, 3, cut), WEFT_OK);
            ck_assert_int_eq(session_length(s, 3), cut);
            for (int k = cut; k < N; k++) { /* in turn, now one first and now the other */
                eval(t, s, k % 2 ? 2 : 3, k % 2 ? ids_a : mixed, k, k + 1, 1,
                     k % 2 ? &got_a : &got_b);
                eval(t, s, k % 2 ? 3 : 2, k % 2 ? mixed : ids_a, k, k + 1, 1,
                     k % 2 ? &got_b : &got_a);
            }
            expect_same(&a, &got_a, cut, N);
            expect_same(&b, &got_b, cut, N);
            session_destroy(s);
        }
        free(f);
    }
    toy_close(t);
}
END_TEST

START_TEST(a_ring_is_cut_exactly_or_not_at_all)
{
    toy *t = toy_open();
    formed *f = form_plan(t, PLAN_PAGED, PLAN_RING, WINDOW + 3, DT_F32);
    record a, got;
    int kept = 0;
    for (int cut = 0; cut <= N; cut++) {
        session *s = open_formed(t, f, (session_options){.n_ctx = N, .n_seq = 2, .page_tok = 2});
        eval(t, s, 1, ids_a, 0, N, 7, &a);
        int32_t mixed[N];
        for (int k = 0; k < N; k++)
            mixed[k] = k < cut ? ids_a[k] : ids_b[k];
        eval(t, s, 0, mixed, 0, N, 3, &got);
        int64_t can = session_keepable(s, 0, cut);
        ck_assert_int_eq(session_truncate(t->dg, s, 0, cut), can == cut ? WEFT_OK : WEFT_ERR_STATE);
        if (can != cut) {
            expect_one(t->dg, W1408, "cannot go from 24 tokens back");
            diag_reset(t->dg);
            ck_assert_int_eq(session_length(s, 0), N);
            ck_assert_int_eq(session_truncate(t->dg, s, 0, 0), WEFT_OK);
        }
        kept += can > 0;
        eval(t, s, 0, ids_a, (int)can, N, 5, &got);
        expect_same(&a, &got, (int)can, N);
        session_destroy(s);
    }
    ck_assert_int_ge(kept, 4); /* WINDOW + 3 rows stay, of which the next token sees WINDOW - 1 */
    ck_assert_int_lt(kept, N / 2);
    free(f);
    toy_close(t);
}
END_TEST

START_TEST(a_fork_without_pages_loses_nothing)
{
    toy *t = toy_open();
    formed *f = form_plan(t, PLAN_PAGED, PLAN_RING, WINDOW + 3, DT_F32);
    record a, got;
    /* Six pages of 4 hold N tokens: none is left for a copy. */
    session *s = open_formed(
        t, f, (session_options){.n_ctx = N, .n_seq = 2, .page_tok = 4, .n_page = N / 4});
    eval(t, s, 0, ids_a, 0, N, 6, &a);
    ck_assert_int_eq(session_truncate(t->dg, s, 0, N - 1), WEFT_OK);
    ck_assert_int_eq(session_fork(t->dg, s, 0, 1, N - 1), WEFT_OK);
    batch_row rows[] = {{.id = ids_a[N - 1], .pos = N - 1, .seq = 0, .out = true},
                        {.id = ids_b[N - 1], .pos = N - 1, .seq = 1, .out = true}};
    for (int round = 0; round < 3; round++) {
        ck_assert_int_eq(session_eval(t->dg, s, rows, 2), WEFT_ERR_FULL);
        expect_one(t->dg, W1401, "sequence 0 needs 1 more page of 4 tokens; 0 of 6 are free");
        diag_reset(t->dg);
    }
    ck_assert_int_eq(session_length(s, 0), N - 1);
    ck_assert_int_eq(session_length(s, 1), N - 1);
    /* Alone it can write in place. */
    ck_assert_int_eq(session_truncate(t->dg, s, 0, 0), WEFT_OK);
    eval(t, s, 1, ids_a, N - 1, N, 1, &got);
    expect_same(&a, &got, N - 1, N);
    session_destroy(s);
    free(f);
    toy_close(t);
}
END_TEST

SUITE_MAIN("forms", every_form_gives_the_same, a_fork_goes_on_as_if_alone,
           a_ring_is_cut_exactly_or_not_at_all, a_fork_without_pages_loses_nothing)
