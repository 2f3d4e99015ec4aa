/* test_session.c - the suite of runtime/exec/session.c: one small model, cut into calls in every way. */
#include "tests/exec/toy.h"
#include <pthread.h>

enum { N = 19 };

static const int32_t ids_a[N] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8};
static const int32_t ids_b[N] = {28, 0, 27, 1, 26, 2, 25, 3, 24, 4, 23, 5, 22, 6, 21, 7, 20, 8, 19};

static session *open_session(toy *t, session_options opt)
{
    session *s = NULL;
    ck_assert_int_eq(session_create(t->dg, t->p, model_file_source(t->mf), &opt, &s), WEFT_OK);
    return s;
}

static const float *output(const session *s, const char *name, int index, int64_t n_row,
                           int64_t width)
{
    const float *data;
    int64_t got_rows, got_width;
    ck_assert(session_output(s, name, index, &data, &got_rows, &got_width));
    ck_assert_int_eq(got_rows, n_row);
    ck_assert_int_eq(got_width, width);
    return data;
}

/* The logits of every position of a sequence, gathered over several calls. */
typedef struct {
    float logits[N][VOCAB];
} record;

/* Evaluate ids[from, to) as rows of sequence seq. */
static void eval_run(toy *t, session *s, int seq, const int32_t *ids, int from, int to, record *r)
{
    batch_row rows[N];
    for (int i = from; i < to; i++)
        rows[i - from] = (batch_row){.id = ids[i], .pos = i, .seq = seq, .out = true};
    ck_assert_int_eq(session_eval(t->dg, s, rows, to - from), WEFT_OK);
    memcpy(r->logits[from], output(s, "logits", -1, to - from, VOCAB),
           (size_t)(to - from) * VOCAB * sizeof(float));
}

static void eval_chunks(toy *t, session *s, int seq, const int32_t *ids, int n, int chunk,
                        record *r)
{
    for (int i = 0; i < n; i += chunk)
        eval_run(t, s, seq, ids, i, i + chunk < n ? i + chunk : n, r);
}

/* Bit for bit. */
static void expect_same(const record *a, const record *b, int n)
{
    for (int i = 0; i < n; i++)
        if (memcmp(a->logits[i], b->logits[i], sizeof a->logits[i]) != 0)
            ck_abort_msg("logits of position %d differ", i);
}

static void whole_run(toy *t, const int32_t *ids, record *r)
{
    session *s = open_session(t, (session_options){.n_ctx = N, .n_seq = 1});
    eval_run(t, s, 0, ids, 0, N, r);
    session_destroy(s);
}

static void expect_within(const float *got, const double *want, int n, double bound,
                          const char *what)
{
    for (int i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= bound + bound * fabs(want[i])))
            ck_abort_msg("%s element %d is %g, expected %g", what, i, (double)got[i], want[i]);
}

static void expect_near(const float *got, const double *want, int n, const char *what)
{
    expect_within(got, want, n, 1e-5, what);
}

START_TEST(agrees_with_plain_loops)
{
    toy *t = toy_open();
    toy_result *r = malloc(sizeof *r);
    session *s = open_session(t, (session_options){.n_ctx = N, .page_tok = 4});
    record rec;
    toy_forward(&t->w, ids_a, N, r);
    eval_run(t, s, 0, ids_a, 0, N, &rec);
    expect_near(output(s, "resid", 0, N, D), r->resid[0][0], N * D, "resid 0");
    expect_near(output(s, "resid", 1, N, D), r->resid[1][0], N * D, "resid 1");
    expect_near(output(s, "hidden", -1, N, D), r->hidden[0], N * D, "hidden");
    expect_near(rec.logits[0], r->logits[0], N * VOCAB, "logits");
    const float *data;
    int64_t n, width;
    ck_assert(!session_output(s, "resid", 2, &data, &n, &width));
    ck_assert(!session_output(s, "resid", -1, &data, &n, &width));
    ck_assert(!session_output(s, "state", -1, &data, &n, &width));
    session_destroy(s);
    session_destroy(NULL);
    free(r);
    toy_close(t);
}
END_TEST

START_TEST(cut_into_calls_in_any_way_it_is_the_same)
{
    toy *t = toy_open();
    record whole, cut;
    whole_run(t, ids_a, &whole);
    for (int chunk = 1; chunk <= 7; chunk++)
        for (int page = 1; page <= 8; page += 3) {
            session *s = open_session(t, (session_options){.n_ctx = N, .page_tok = page});
            memset(&cut, 0, sizeof cut);
            eval_chunks(t, s, 0, ids_a, N, chunk, &cut);
            expect_same(&whole, &cut, N);
            ck_assert_int_eq(session_length(s, 0), N);
            session_destroy(s);
        }
    toy_close(t);
}
END_TEST

START_TEST(two_sequences_in_one_call_do_not_meet)
{
    toy *t = toy_open();
    record a, b, got_a, got_b;
    whole_run(t, ids_a, &a);
    whole_run(t, ids_b, &b);
    session *s = open_session(t, (session_options){.n_ctx = N, .n_seq = 3, .page_tok = 4});
    /* A prompt of one beside single tokens of the other, then alternating rows. */
    batch_row rows[TOY_TOKENS];
    int at_a = 0, at_b = 0;
    const int step_a[] = {7, 1, 5, 2, 4}, step_b[] = {1, 8, 5, 2, 3};
    for (size_t call = 0; call < COUNT_OF(step_a); call++) {
        int n = 0, end_a = at_a + step_a[call], end_b = at_b + step_b[call];
        int row_of[TOY_TOKENS], first_a = at_a, first_b = at_b;
        while (at_a < end_a || at_b < end_b) {
            if (at_a < end_a) {
                row_of[n] = at_a;
                rows[n++] = (batch_row){.id = ids_a[at_a], .pos = at_a, .seq = 2, .out = true};
                at_a++;
            }
            if (at_b < end_b) {
                row_of[n] = -1 - at_b;
                rows[n++] = (batch_row){.id = ids_b[at_b], .pos = at_b, .seq = 0, .out = true};
                at_b++;
            }
        }
        ck_assert_int_eq(session_eval(t->dg, s, rows, n), WEFT_OK);
        const float *logits = output(s, "logits", -1, n, VOCAB);
        for (int i = 0; i < n; i++)
            memcpy(row_of[i] >= 0 ? got_a.logits[row_of[i]] : got_b.logits[-1 - row_of[i]],
                   logits + i * VOCAB, VOCAB * sizeof(float));
        ck_assert_int_eq(session_length(s, 2), first_a + step_a[call]);
        ck_assert_int_eq(session_length(s, 0), first_b + step_b[call]);
        ck_assert_int_eq(session_length(s, 1), 0);
    }
    ck_assert_int_eq(at_a, N);
    ck_assert_int_eq(at_b, N);
    expect_same(&a, &got_a, N);
    expect_same(&b, &got_b, N);
    session_destroy(s);
    toy_close(t);
}
END_TEST

START_TEST(only_wanted_rows_come_out)
{
    toy *t = toy_open();
    record whole;
    whole_run(t, ids_a, &whole);
    session *s = open_session(t, (session_options){.n_ctx = N});
    batch_row rows[N];
    for (int i = 0; i < N; i++)
        rows[i] = (batch_row){.id = ids_a[i], .pos = i, .out = i == 4 || i == 11};
    ck_assert_int_eq(session_eval(t->dg, s, rows, N), WEFT_OK);
    const float *logits = output(s, "logits", -1, 2, VOCAB);
    ck_assert_mem_eq(logits, whole.logits[4], sizeof whole.logits[4]);
    ck_assert_mem_eq(logits + VOCAB, whole.logits[11], sizeof whole.logits[11]);
    output(s, "hidden", -1, N, D);
    ck_assert_int_eq(session_truncate(t->dg, s, 0, 0), WEFT_OK);
    for (int i = 0; i < N; i++)
        rows[i].out = false;
    ck_assert_int_eq(session_eval(t->dg, s, rows, N), WEFT_OK);
    output(s, "logits", -1, 0, VOCAB);
    session_destroy(s);
    toy_close(t);
}
END_TEST

START_TEST(truncating_is_exact)
{
    toy *t = toy_open();
    record whole, other, cut;
    whole_run(t, ids_a, &whole);
    session *s = open_session(t, (session_options){.n_ctx = N, .page_tok = 4});
    for (int keep = 0; keep <= N; keep++) {
        /* Another text after the first `keep` tokens, then back. */
        int32_t mixed[N];
        for (int i = 0; i < N; i++)
            mixed[i] = i < keep ? ids_a[i] : ids_b[i];
        eval_chunks(t, s, 0, mixed, N, 6, &other);
        ck_assert_int_eq(session_truncate(t->dg, s, 0, keep), WEFT_OK);
        ck_assert_int_eq(session_length(s, 0), keep);
        memcpy(&cut, &other, sizeof cut);
        if (keep < N)
            eval_run(t, s, 0, ids_a, keep, N, &cut);
        expect_same(&whole, &cut, N);
        ck_assert_int_eq(session_truncate(t->dg, s, 0, 0), WEFT_OK);
    }
    ck_assert_int_eq(session_truncate(t->dg, s, 0, 1), WEFT_ERR_STATE);
    expect_one(t->dg, W1402, "holds 0 tokens");
    diag_reset(t->dg);
    ck_assert_int_eq(session_truncate(t->dg, s, 1, 0), WEFT_ERR_STATE);
    expect_one(t->dg, W1403, "no sequence 1");
    session_destroy(s);
    toy_close(t);
}
END_TEST

START_TEST(out_of_pages_loses_nothing)
{
    toy *t = toy_open();
    record a, b, got;
    whole_run(t, ids_a, &a);
    whole_run(t, ids_b, &b);
    /* Seven pages of 4 tokens for two sequences of up to 19. */
    session *s =
        open_session(t, (session_options){.n_ctx = N, .n_seq = 2, .page_tok = 4, .n_page = 7});
    eval_run(t, s, 0, ids_a, 0, 10, &got); /* three pages */
    float before[10][VOCAB];
    memcpy(before, output(s, "logits", -1, 10, VOCAB), sizeof before);
    batch_row rows[N];
    int n = 0;
    for (int i = 10; i < 14; i++) /* one page more for this one */
        rows[n++] = (batch_row){.id = ids_a[i], .pos = i, .seq = 0, .out = true};
    for (int i = 0; i < 13; i++) /* and four for that one: one too many */
        rows[n++] = (batch_row){.id = ids_b[i], .pos = i, .seq = 1, .out = true};
    ck_assert_int_eq(session_eval(t->dg, s, rows, n), WEFT_ERR_FULL);
    expect_one(t->dg, W1401, "sequence 1 needs 4 more pages of 4 tokens; 3 of 7 are free");
    diag_reset(t->dg);
    ck_assert_int_eq(session_length(s, 0), 10);
    ck_assert_int_eq(session_length(s, 1), 0);
    ck_assert_mem_eq(output(s, "logits", -1, 10, VOCAB), before, sizeof before);
    /* No page stayed with the first: all four that are left are there for the second. */
    eval_run(t, s, 1, ids_b, 0, 16, &got);
    ck_assert_int_eq(session_truncate(t->dg, s, 1, 0), WEFT_OK);
    /* One row less fits, and both go on as if nothing had happened. */
    ck_assert_int_eq(session_eval(t->dg, s, rows, n - 1), WEFT_OK);
    const float *logits = output(s, "logits", -1, n - 1, VOCAB);
    ck_assert_mem_eq(logits, a.logits[10], 4 * sizeof a.logits[10]);
    ck_assert_mem_eq(logits + 4 * VOCAB, b.logits[0], 12 * sizeof b.logits[0]);
    /* A page is there again once a sequence is cut. */
    rows[0] = (batch_row){.id = ids_a[14], .pos = 14, .out = true};
    rows[1] = (batch_row){.id = ids_a[15], .pos = 15, .out = true};
    rows[2] = (batch_row){.id = ids_a[16], .pos = 16, .out = true};
    ck_assert_int_eq(session_eval(t->dg, s, rows, 3), WEFT_ERR_FULL);
    diag_reset(t->dg);
    ck_assert_int_eq(session_truncate(t->dg, s, 1, 8), WEFT_OK);
    ck_assert_int_eq(session_eval(t->dg, s, rows, 3), WEFT_OK);
    ck_assert_mem_eq(output(s, "logits", -1, 3, VOCAB), a.logits[14], 3 * sizeof a.logits[14]);
    session_destroy(s);
    toy_close(t);
}
END_TEST

START_TEST(bad_rows_are_refused_and_change_nothing)
{
    toy *t = toy_open();
    record whole, got;
    whole_run(t, ids_a, &whole);
    session *s = open_session(t, (session_options){.n_ctx = N, .n_seq = 2});
    eval_run(t, s, 0, ids_a, 0, 5, &got);
    const struct {
        batch_row second;
        weft_code code;
        const char *part;
    } bad[] = {
        {{.id = VOCAB, .pos = 6}, W1405, "row 1: token 29 is not from 0 to 28"},
        {{.id = -1, .pos = 6}, W1405, "row 1: token -1"},
        {{.id = 1, .pos = 5}, W1402, "row 1: position 5 of sequence 0, whose next is 6"},
        {{.id = 1, .pos = 7}, W1402, "row 1: position 7 of sequence 0, whose next is 6"},
        {{.id = 1, .pos = -1}, W1402, "row 1: position -1"},
        {{.id = 1, .pos = 1, .seq = 1}, W1402, "row 1: position 1 of sequence 1, whose next is 0"},
        {{.id = 1, .pos = 0, .seq = 2}, W1403, "row 1: there is no sequence 2"},
        {{.id = 1, .pos = 0, .seq = -1}, W1403, "row 1: there is no sequence -1"},
        {{.id = 1, .pos = 6, .slot = 1}, W1407, "row 1: adapter slot 1"},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        batch_row rows[2] = {{.id = ids_a[5], .pos = 5, .out = true}, bad[i].second};
        ck_assert_int_ne(session_eval(t->dg, s, rows, 2), WEFT_OK);
        expect_one(t->dg, bad[i].code, bad[i].part);
        diag_reset(t->dg);
        ck_assert_int_eq(session_length(s, 0), 5);
        ck_assert_int_eq(session_length(s, 1), 0);
    }
    batch_row many[TOY_TOKENS + 1] = {{.pos = 5}};
    ck_assert_int_eq(session_eval(t->dg, s, many, 0), WEFT_ERR_LIMIT);
    expect_one(t->dg, W1406, "a call has 0 rows");
    diag_reset(t->dg);
    ck_assert_int_eq(session_eval(t->dg, s, many, TOY_TOKENS + 1), WEFT_ERR_LIMIT);
    expect_one(t->dg, W1406, "25 rows; 1 to 24");
    diag_reset(t->dg);
    for (int i = 0; i < N; i++)
        many[i] = (batch_row){.id = 1, .pos = 5 + i};
    ck_assert_int_eq(session_eval(t->dg, s, many, N), WEFT_ERR_FULL);
    expect_one(t->dg, W1404, "row 14: position 19 of sequence 0 passes the context of 19");
    diag_reset(t->dg);
    eval_run(t, s, 0, ids_a, 5, N, &got);
    expect_same(&whole, &got, N);
    session_destroy(s);
    toy_close(t);
}
END_TEST

START_TEST(any_number_of_threads_gives_the_same)
{
    toy *t = toy_open();
    record whole, got;
    whole_run(t, ids_a, &whole);
    for (int threads = 2; threads <= 7; threads += 5) {
        session *s = open_session(t, (session_options){.n_ctx = N, .threads = threads});
        eval_chunks(t, s, 0, ids_a, N, 6, &got);
        expect_same(&whole, &got, N);
        session_destroy(s);
    }
    session *s;
    session_options opt = {.n_ctx = N, .threads = 5000};
    ck_assert_int_eq(session_create(t->dg, t->p, model_file_source(t->mf), &opt, &s),
                     WEFT_ERR_LIMIT);
    expect_one(t->dg, W1406, "5000 threads");
    toy_close(t);
}
END_TEST

START_TEST(sessions_share_weights_and_are_accounted_for)
{
    toy *t = toy_open();
    record whole, got;
    weights *w;
    whole_run(t, ids_a, &whole);
    ck_assert_int_eq(weights_create(t->dg, NULL, t->p, model_file_source(t->mf), NULL, &w),
                     WEFT_OK);
    session *own = open_session(t, (session_options){.n_ctx = N, .page_tok = 4});
    session *a = open_session(t, (session_options){.n_ctx = N, .w = {w}});
    session *b = open_session(t, (session_options){.n_ctx = N, .w = {w}, .threads = 2});
    eval_run(t, a, 0, ids_b, 0, N, &got);
    eval_chunks(t, b, 0, ids_a, N, 4, &got);
    expect_same(&whole, &got, N);

    session_memory m = session_bytes(own), shared = session_bytes(a), two = session_bytes(b);
    ck_assert_uint_eq(m.weights_copied, t->p->copied_bytes);
    ck_assert_uint_eq(m.weights_mapped, t->p->mapped_bytes);
    ck_assert_uint_eq(m.arena, t->p->arena_bytes);
    /* Five pages of four tokens; two cells with keys and values, f32, pages begun at 64 bytes. */
    ck_assert_uint_eq(m.state, 5 * 2 * (4 * 2 * K * 4));
    ck_assert_uint_gt(m.tables, 0);
    ck_assert_uint_eq(shared.weights_copied, 0);
    ck_assert_uint_eq(two.scratch, 2 * shared.scratch);
    session_destroy(own);
    session_destroy(a);
    session_destroy(b);
    weights_destroy(w);
    toy_close(t);
}
END_TEST

/* The toy as the compiler fuses and schedules it, against plain loops (activations are rounded to 8 bits
 * where they meet Q8_0, which costs a few hundredths here); and bit for bit whatever the
 * number of threads. */
START_TEST(fused_plans_agree)
{
    toy *t = toy_open();
    toy_result *r = malloc(sizeof *r);
    const int chunks[] = {1, 2, 5, N}, threads[] = {1, 2, 7, 16};
    target limits = {.be = backend_cpu_find("c"), .n_ctx = N, .n_seq = 1, .n_tok_max = TOY_TOKENS};
    ck_assert_int_eq(plan_make(t->dg, t->g, &limits, NULL, t->a, &t->p), WEFT_OK);
    toy_forward(&t->w, ids_a, N, r);
    for (size_t c = 0; c < COUNT_OF(chunks); c++) {
        record first, got;
        for (size_t i = 0; i < COUNT_OF(threads); i++) {
            session *s = open_session(
                t, (session_options){.n_ctx = N, .page_tok = 4, .threads = threads[i]});
            eval_chunks(t, s, 0, ids_a, N, chunks[c], i ? &got : &first);
            if (i)
                expect_same(&first, &got, N);
            else
                expect_within(first.logits[0], r->logits[0], N * VOCAB, 0.05, "logits");
            session_destroy(s);
        }
    }
    free(r);
    toy_close(t);
}
END_TEST

/* With room for many positions, attention with few heads becomes two steps in plans for few rows. */
START_TEST(attention_in_two_steps_gives_the_same_bits)
{
    toy *t = toy_open();
    const kernel_row *row = kernel_select(KOP_attend, DT_F32, 1, kvariant_best());
    const int64_t room[] = {N, 8192};
    const int threads[] = {1, 2, 7};
    int32_t n_step[COUNT_OF(room)];
    record first, got;
    for (size_t i = 0; i < COUNT_OF(room); i++) {
        target limits = {.be = backend_cpu_best(),
                         .n_ctx = room[i],
                         .n_seq = 1,
                         .n_tok_max = TOY_TOKENS,
                         .deterministic = true};
        ck_assert_int_eq(plan_make(t->dg, t->g, &limits, NULL, t->a, &t->p), WEFT_OK);
        n_step[i] = t->p->bucket[0].n_step;
        for (size_t k = 0; k < COUNT_OF(threads); k++) {
            session *s = open_session(
                t, (session_options){.n_ctx = N, .page_tok = 4, .threads = threads[k]});
            eval_chunks(t, s, 0, ids_a, N, 1, i + k ? &got : &first);
            if (i + k)
                expect_same(&first, &got, N);
            session_destroy(s);
        }
    }
    ck_assert_int_eq(n_step[1],
                     n_step[0] +
                         (kernel_splits(row) ? 1 : 0)); /* of its two layers one has a window */
    toy_close(t);
}
END_TEST

typedef struct {
    toy *t;
    const weights *w;
    const int32_t *ids;
    const record *want;
    int threads;
} user;

static void *use_session(void *arg)
{
    const user *u = arg;
    weft_diag *dg = diag_create();
    session_options opt = {.n_ctx = N, .w = {u->w}, .threads = u->threads, .page_tok = 4};
    for (int round = 0; round < 5; round++) {
        session *s = NULL;
        batch_row rows[4];
        ck_assert_int_eq(session_create(dg, u->t->p, model_file_source(u->t->mf), &opt, &s),
                         WEFT_OK);
        for (int i = 0; i < N; i += 4) {
            int n = N - i < 4 ? N - i : 4;
            for (int k = 0; k < n; k++)
                rows[k] = (batch_row){.id = u->ids[i + k], .pos = i + k, .out = true};
            ck_assert_int_eq(session_eval(dg, s, rows, n), WEFT_OK);
            ck_assert_mem_eq(output(s, "logits", -1, n, VOCAB), u->want->logits[i],
                             (size_t)n * sizeof u->want->logits[0]);
        }
        session_destroy(s);
    }
    diag_destroy(dg);
    return NULL;
}

START_TEST(sessions_run_at_once)
{
    toy *t = toy_open();
    record a, b;
    weights *w = NULL;
    whole_run(t, ids_a, &a);
    whole_run(t, ids_b, &b);
    ck_assert_int_eq(weights_create(t->dg, NULL, t->p, model_file_source(t->mf), NULL, &w),
                     WEFT_OK);
    user users[] = {
        {t, w, ids_a, &a, 1}, {t, w, ids_b, &b, 2}, {t, NULL, ids_a, &a, 7}, {t, w, ids_b, &b, 3}};
    pthread_t thread[COUNT_OF(users)];
    for (size_t i = 0; i < COUNT_OF(users); i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, use_session, &users[i]), 0);
    for (size_t i = 0; i < COUNT_OF(users); i++)
        pthread_join(thread[i], NULL);
    weights_destroy(w);
    toy_close(t);
}
END_TEST

START_TEST(what_cannot_fit_is_refused)
{
    toy *t = toy_open();
    session *s = NULL;
    session_options opt = {.n_ctx = INT32_MAX, .n_seq = 64, .page_tok = 1 << 16};
    session_memory need;
    ck_assert_int_eq(session_need(t->dg, t->p, model_file_source(t->mf), &opt, &need), WEFT_OK);
    ck_assert_uint_gt(need.state, (size_t)1 << 44);
    ck_assert_int_eq(session_create(t->dg, t->p, model_file_source(t->mf), &opt, &s),
                     WEFT_ERR_TARGET);
    expect_one(t->dg, W0902, " available ");
    diag_reset(t->dg);
    opt = (session_options){.n_ctx = N, .threads = -3};
    ck_assert_int_eq(session_create(t->dg, t->p, model_file_source(t->mf), &opt, &s),
                     WEFT_ERR_LIMIT);
    expect_one(t->dg, W1406, "-3 threads");
    diag_reset(t->dg);
    ck_assert_int_eq(session_need(t->dg, t->p, model_file_source(t->mf), &opt, &need),
                     WEFT_ERR_LIMIT);
    ck_assert_ptr_null(s);
    toy_close(t);
}
END_TEST

START_TEST(steps_are_timed)
{
    toy *t = toy_open();
    record got;
    for (int threads = 1; threads <= 3; threads += 2) {
        session *s = open_session(t, (session_options){.n_ctx = N, .threads = threads});
        const plan_bucket *b = t->p->bucket;
        ck_assert_ptr_null(session_profile_steps(s, 0, 0));
        eval_run(t, s, 0, ids_a, 0, 2, &got);
        ck_assert_uint_eq(session_barriers(s), (uint64_t)b->n_phase);
        session_profile_begin(s);
        eval_run(t, s, 0, ids_a, 2, 5, &got);
        eval_run(t, s, 0, ids_a, 5, 6, &got);
        session_profile_end(s);
        eval_run(t, s, 0, ids_a, 6, 9, &got);
        const step_time *times = session_profile_steps(s, 0, 0);
        uint64_t busy = 0;
        for (int32_t i = 0; i < b->n_step; i++) {
            ck_assert_uint_eq(times[i].calls, 2);
            if (b->step[i].rows == ROWS_T)
                ck_assert_uint_eq(times[i].rows, 4);
            ck_assert_uint_le(times[i].ns, times[i].ns_busy);
            ck_assert_uint_le(times[i].ns_busy, times[i].ns * (uint64_t)threads);
            busy += times[i].ns_busy;
        }
        ck_assert_uint_gt(busy, 0);
        ck_assert_uint_gt(session_wait_ns(s, 0), 0);
        session_profile_begin(s); /* from zero */
        ck_assert_uint_eq(session_profile_steps(s, 0, 0)->calls, 0);
        ck_assert_uint_eq(session_wait_ns(s, 0), 0);
        session_destroy(s);
    }
    toy_close(t);
}
END_TEST

SUITE_MAIN("session", agrees_with_plain_loops, cut_into_calls_in_any_way_it_is_the_same,
           two_sequences_in_one_call_do_not_meet, only_wanted_rows_come_out, truncating_is_exact,
           out_of_pages_loses_nothing, bad_rows_are_refused_and_change_nothing,
           any_number_of_threads_gives_the_same, fused_plans_agree,
           attention_in_two_steps_gives_the_same_bits, sessions_share_weights_and_are_accounted_for,
           sessions_run_at_once, what_cannot_fit_is_refused, steps_are_timed)
