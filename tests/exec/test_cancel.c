/* test_cancel.c - stopping a call from outside, at every place: it changes nothing, and what is evaluated
 * afterwards is as if it had never begun. */
#include "compiler/compiler.h"
#include "runtime/base/clock.h"
#include "runtime/formats/random_model.h"
#include "tests/exec/cache_kit.h"
#include <pthread.h>
#include <sched.h>
#include <time.h>

enum { N = 19, HELD = 7 };

static const int32_t ids[N] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8};

static session *open_session(toy *t, session_options opt)
{
    session *s = NULL;
    opt.n_ctx = N;
    opt.page_tok = 4;
    ck_assert_int_eq(session_create(t->dg, t->p, model_file_source(t->mf), &opt, &s), WEFT_OK);
    return s;
}

static weft_status eval(weft_diag *dg, session *s, int seq, int from, int to)
{
    batch_row rows[N];
    for (int i = from; i < to; i++)
        rows[i - from] = (batch_row){.id = ids[i], .pos = i, .seq = seq, .out = true};
    return session_eval(dg, s, rows, to - from);
}

static const float *logits(const session *s, int n)
{
    const float *data;
    int64_t n_row, width;
    ck_assert(session_output(s, "logits", -1, &data, &n_row, &width));
    ck_assert_int_eq(n_row, n);
    ck_assert_int_eq(width, VOCAB);
    return data;
}

static bool has_output(const session *s)
{
    const float *data;
    int64_t n_row, width;
    return session_output(s, "logits", -1, &data, &n_row, &width);
}

/* Logits of rows HELD and on, where nothing is ever cancelled. */
static void undisturbed(toy *t, float *to)
{
    session *s = open_session(t, (session_options){.threads = 1});
    ck_assert_int_eq(eval(t->dg, s, 0, 0, HELD), WEFT_OK);
    ck_assert_int_eq(eval(t->dg, s, 0, HELD, N), WEFT_OK);
    memcpy(to, logits(s, N - HELD), (N - HELD) * VOCAB * sizeof *to);
    session_destroy(s);
}

static void expect_cancelled(toy *t, weft_status status)
{
    ck_assert_int_eq(status, WEFT_ERR_CANCELLED);
    expect_one(t->dg, W1412, "cancelled");
    diag_reset(t->dg);
}

START_TEST(set_before_nothing_runs)
{
    toy *t = toy_open();
    float want[(N - HELD) * VOCAB];
    undisturbed(t, want);
    for (int threads = 1; threads <= 3; threads += 2) {
        cancel_flag stop = {0};
        session *s = open_session(t, (session_options){.threads = threads, .cancel = &stop});
        ck_assert_int_eq(eval(t->dg, s, 0, 0, HELD), WEFT_OK);
        cancel_ask(&stop, true);
        expect_cancelled(t, eval(t->dg, s, 0, HELD, N));
        ck_assert_int_eq(session_length(s, 0), HELD);
        ck_assert(!has_output(s));
        cancel_ask(&stop, false);
        ck_assert_int_eq(eval(t->dg, s, 0, HELD, N), WEFT_OK);
        ck_assert_mem_eq(logits(s, N - HELD), want, sizeof want);
        session_destroy(s);
    }
    toy_close(t);
}
END_TEST

/* Ends a call after so many phases. */
typedef struct {
    cancel_flag stop;
    int phases, seen;
} stopper;

static weft_status stop_at(void *ctx, weft_diag *dg, int32_t bucket, int32_t phase)
{
    stopper *st = ctx;
    (void)dg, (void)bucket, (void)phase;
    ck_assert_int_lt(st->seen, st->phases); /* none after the one it was set in */
    if (++st->seen == st->phases)
        cancel_ask(&st->stop, true);
    return WEFT_OK;
}

/* The pages of a sequence that was forked are copied when it goes on; they hold what they held. */
START_TEST(stopped_after_any_phase_nothing_has_changed)
{
    toy *t = toy_open();
    float want[(N - HELD) * VOCAB];
    undisturbed(t, want);
    bool ended = false;
    for (int phases = 1; !ended; phases++) {
        stopper st = {.phases = phases};
        session *s =
            open_session(t, (session_options){.n_seq = 2, .threads = 3, .cancel = &st.stop});
        ck_assert_int_eq(eval(t->dg, s, 0, 0, HELD), WEFT_OK);
        ck_assert_int_eq(session_fork(t->dg, s, 0, 1, HELD), WEFT_OK);
        session_watch(s, 0, stop_at, &st);
        weft_status status = eval(t->dg, s, 1, HELD, N);
        ended = status == WEFT_OK; /* stopped when all was done: too late */
        session_watch(s, 0, NULL, NULL);
        cancel_ask(&st.stop, false);
        if (!ended) {
            expect_cancelled(t, status);
            ck_assert_int_eq(session_length(s, 1), HELD);
            ck_assert(!has_output(s));
            ck_assert_int_eq(eval(t->dg, s, 1, HELD, N), WEFT_OK);
        }
        ck_assert_mem_eq(logits(s, N - HELD), want, sizeof want);
        ck_assert_int_eq(eval(t->dg, s, 0, HELD, N), WEFT_OK); /* whose pages it shared */
        ck_assert_mem_eq(logits(s, N - HELD), want, sizeof want);
        session_destroy(s);
        ck_assert_int_lt(phases, 1000);
        if (ended)
            ck_assert_int_gt(phases, 5);
    }
    toy_close(t);
}
END_TEST

/* A thread that asks for a stop a moment after it is told to, again and again. */
enum { IDLE, ASKED, DONE, LEAVE };

typedef struct {
    cancel_flag stop;
    atomic_int state;
} nuisance;

static void *bother(void *arg)
{
    nuisance *n = arg;
    uint32_t seed = 1;
    int now;
    while ((now = atomic_load(&n->state)) != LEAVE) {
        seed = seed * 1664525u + 1013904223u;
        struct timespec nap = {0, (long)(seed >> 16)}; /* up to 65 us */
        nanosleep(&nap, NULL);
        if (now == ASKED) {
            cancel_ask(&n->stop, true);
            atomic_store(&n->state, DONE);
        }
    }
    return NULL;
}

/* Whether the stop comes in time is chance; whatever comes of it, the next call is as if nothing had been. */
START_TEST(stopped_at_any_time_by_another_thread)
{
    toy *t = toy_open();
    float want[(N - HELD) * VOCAB];
    undisturbed(t, want);
    nuisance n = {.stop = {0}};
    pthread_t thread;
    session *s = open_session(t, (session_options){.threads = 4, .cancel = &n.stop});
    ck_assert_int_eq(eval(t->dg, s, 0, 0, HELD), WEFT_OK);
    ck_assert_int_eq(pthread_create(&thread, NULL, bother, &n), 0);
    for (int i = 0; i < 100; i++) {
        atomic_store(&n.state, ASKED);
        weft_status status = eval(t->dg, s, 0, HELD, N);
        if (status == WEFT_OK) {
            ck_assert_mem_eq(logits(s, N - HELD), want, sizeof want);
            ck_assert_int_eq(session_truncate(t->dg, s, 0, HELD), WEFT_OK);
        } else {
            expect_cancelled(t, status);
            ck_assert_int_eq(session_length(s, 0), HELD);
        }
        while (atomic_load(&n.state) != DONE)
            sched_yield();
        cancel_ask(&n.stop, false);
        ck_assert_int_eq(eval(t->dg, s, 0, HELD, N), WEFT_OK);
        ck_assert_mem_eq(logits(s, N - HELD), want, sizeof want);
        ck_assert_int_eq(session_truncate(t->dg, s, 0, HELD), WEFT_OK);
    }
    atomic_store(&n.state, LEAVE);
    pthread_join(thread, NULL);
    session_destroy(s);
    toy_close(t);
}
END_TEST

/* ---- a long call ---- */

enum { LONG = 2048 };

typedef struct {
    cancel_flag *stop;
    uint64_t asked_ns;
} timer;

static void *stop_in_a_moment(void *arg)
{
    timer *tm = arg;
    nanosleep(&(struct timespec){0, 30000000}, NULL);
    tm->asked_ns = clock_ns();
    cancel_ask(tm->stop, true);
    return NULL;
}

/* A prompt that takes seconds, on a model whose matrices are real: it stops when ranges of units end. */
START_TEST(a_long_call_stops_soon)
{
    static const char *const outputs[] = {"logits"};
    weft_diag *dg = diag_create();
    arena *a = arena_create();
    random_model *rm;
    model_file *mf;
    bound_model *bm;
    plan *p;
    session *s;
    cancel_flag stop = {0};
    ck_assert_int_eq(random_model_create(dg, "smollm2-135m:Q8_0", 0, &rm), WEFT_OK);
    ck_assert_int_eq(
        model_file_open_memory(dg, random_model_data(rm), random_model_bytes(rm), "made", &mf),
        WEFT_OK);
    ck_assert_int_eq(model_bind(dg, mf, NULL, &bm), WEFT_OK);
    target t = {.n_ctx = LONG,
                .n_seq = 1,
                .n_tok_max = LONG,
                .n_out_max = 1,
                .kv = DT_F16,
                .outputs = outputs,
                .n_output = 1};
    ck_assert_int_eq(backend_cpu(dg, false, &t.be), WEFT_OK);
    ck_assert_int_eq(plan_make(dg, bm->graph, &t, NULL, a, &p), WEFT_OK);
    session_options how = {.n_ctx = LONG, .threads = 2, .cancel = &stop};
    ck_assert_int_eq(session_create(dg, p, model_file_source(mf), &how, &s), WEFT_OK);
    batch_row *rows = calloc(LONG, sizeof *rows);
    for (int i = 0; i < LONG; i++)
        rows[i] = (batch_row){.id = i, .pos = i, .out = i == LONG - 1};
    timer tm = {.stop = &stop};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, stop_in_a_moment, &tm), 0);
    weft_status status = session_eval(dg, s, rows, LONG);
    uint64_t ended = clock_ns();
    pthread_join(thread, NULL);
    ck_assert_int_eq(status, WEFT_ERR_CANCELLED);
    ck_assert_int_eq(session_length(s, 0), 0);
    /* The bound is for machines that are busy or check every access; the whole
     * call takes several times as long on any. */
    ck_assert_uint_lt(ended - tm.asked_ns, UINT64_C(1000000000));
    free(rows);
    session_destroy(s);
    bound_model_destroy(bm);
    model_file_close(mf);
    random_model_destroy(rm);
    arena_destroy(a);
    diag_destroy(dg);
}
END_TEST

/* ---- loading ---- */

static void stop_soon(void *ctx, uint64_t done, uint64_t total)
{
    cancel_ask(ctx, done > 0 && done < total);
}

START_TEST(loading_stops_and_leaves_no_file)
{
    kit *k = kit_open();
    cancel_flag stop = {0};
    weights_options how = {.threads = 1, .use_cache = true, .cancel = &stop};
    weights *w = NULL;
    cancel_ask(&stop, true);
    ck_assert_int_eq(weights_create(k->dg, NULL, &k->p, model_file_source(k->mf), &how, &w),
                     WEFT_ERR_CANCELLED);
    expect_one(k->dg, W1412, "cancelled");
    diag_reset(k->dg);
    cancel_ask(&stop, false);
    how.progress = (weights_progress){.report = stop_soon, .ctx = &stop};
    ck_assert_int_eq(weights_create(k->dg, NULL, &k->p, model_file_source(k->mf), &how, &w),
                     WEFT_ERR_CANCELLED);
    expect_one(k->dg, W1412, "cancelled");
    ck_assert_ptr_null(w);
    ck_assert_int_eq(entries(k, NULL), 0);
    cancel_ask(&stop, false);
    how.progress = (weights_progress){0};
    ck_assert_int_eq(weights_create(k->dg, NULL, &k->p, model_file_source(k->mf), &how, &w),
                     WEFT_OK);
    ck_assert_mem_eq(cpu_weights_at(w, 0), k->want, rows8_bytes);
    weights_destroy(w);
    kit_close(k);
}
END_TEST

SUITE_MAIN("cancel", a_long_call_stops_soon, set_before_nothing_runs,
           stopped_after_any_phase_nothing_has_changed, stopped_at_any_time_by_another_thread,
           loading_stops_and_leaves_no_file)
