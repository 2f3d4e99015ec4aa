/* test_scheduler.c - the scheduler with the demo model: what many say together is what each says alone, whoever comes, goes, waits or
 * is preempted. */
#include "tests/serve/sched_kit.h"

#include <sys/resource.h>

/* ---- tests ---- */

static void many_at_once(int64_t sequences, int64_t pages, int64_t prefixes, sched_options o,
                         sched_stats *out)
{
    enum { JOBS = 15 };
    static heard h[JOBS], one[JOBS]; /* what each says alone is the same whenever this is called */
    static bool asked;
    kit k;
    prompt p[COUNT_OF(texts)];
    sched_job j[JOBS];
    memset(h, 0, sizeof h);
    begin(&k, sequences, pages, prefixes, o);
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        p[i] = encode(&k, texts[i]);
    for (size_t i = 0; i < JOBS; i++) {
        j[i] = job_of(&p[i % COUNT_OF(texts)], 20 + (int64_t)i * 5, &h[i]);
        j[i].pick.seed = i;
        j[i].pick.temp = i % 2 ? 0.8 : 0;
        j[i].priority = (int32_t)(i % 3);
        j[i].ignore_end = i % 4 == 0;
        if (i % 5 == 4)
            j[i].adapter = i % 2 ? "pirate" : "pirate2";
        add(&k, &j[i]);
        if (i % 3 == 0)
            ok(&k, scheduler_step(k.dg, k.sched));
    }
    run_all(&k);
    *out = scheduler_stats(k.sched);
    for (size_t i = 0; i < JOBS; i++) {
        if (!asked)
            one[i] = alone(&k, &j[i], 0);
        ck_assert_int_eq(h[i].started, 1);
        ck_assert_int_eq(h[i].ended, 1);
        same(&h[i], &one[i]);
    }
    asked = true;
    ck_assert_uint_eq(out->jobs, JOBS);
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        weft_free(p[i].ids);
    end(&k);
}

START_TEST(together_as_alone)
{
    sched_stats st;
    many_at_once(4, 0, 8, (sched_options){0}, &st);
    ck_assert_uint_eq(st.preempted_memory + st.preempted_disk, 0);
    ck_assert_uint_gt(st.tokens_generated, 100);
    ck_assert_uint_eq(st.first_token.n, 15);
    ck_assert_int_ge(st.n_tier, 1);
    ck_assert_int_eq(st.tiers[st.n_tier - 1].page_tok, PAGE);
    ck_assert_int_eq(st.tiers[st.n_tier - 1].pages, st.pages);
    ck_assert_int_eq(st.tiers[st.n_tier - 1].pages_free, st.pages_free);
    many_at_once(1, 0, -1, (sched_options){.max_itl_ms = 1}, &st);
    many_at_once(7, 0, 8, (sched_options){.max_itl_ms = 1, .chunk_min = 1}, &st);
}
END_TEST

START_TEST(preempted_as_alone)
{
    sched_stats st;
    char dir[] = "/tmp/weft-swap-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    /* The longest text takes 11 pages of the 14. */
    many_at_once(6, 14, 8, (sched_options){.patience_ms = 1}, &st);
    ck_assert_uint_gt(st.preempted_recompute, 0);
    many_at_once(6, 14, -1, (sched_options){.patience_ms = 1}, &st);
    ck_assert_uint_gt(st.preempted_recompute, 0);
    /* Files are so fast that computing is never cheaper: all that give way are swapped, and come back by their files. */
    sched_options swaps = {.patience_ms = 1,
                           .swap_memory_dir = dir,
                           .swap_memory_bytes = 1 << 26,
                           .swap_memory_bps = 1e30};
    many_at_once(6, 14, -1, swaps, &st);
    ck_assert_uint_gt(st.preempted_memory, 0);
    ck_assert_uint_eq(st.swapped_in, st.preempted_memory);
    ck_assert_int_eq(st.swap_memory_bytes, 0);
    uint64_t rows = st.rows_prompt;
    many_at_once(6, 14, -1,
                 (sched_options){.patience_ms = 1,
                                 .swap_disk_dir = dir,
                                 .swap_disk_bytes = 1 << 26,
                                 .swap_disk_bps = 1e30},
                 &st);
    ck_assert_uint_gt(st.preempted_disk, 0);
    ck_assert_uint_eq(st.swapped_in, st.preempted_disk);
    ck_assert_int_eq(st.swap_disk_bytes, 0);
    /* What comes back from a file is not read again. */
    ck_assert_uint_eq(st.rows_prompt, rows);
    /* A folder that has room for nothing: computed again. */
    swaps.swap_memory_bytes = 1;
    many_at_once(6, 14, -1, swaps, &st);
    ck_assert_uint_gt(st.preempted_recompute, 0);
    ck_assert_uint_eq(st.swapped_in, 0);
    ck_assert_uint_gt(st.rows_prompt, rows);
    ck_assert_int_eq(rmdir(dir), 0); /* no file is left */
}
END_TEST

START_TEST(prompts_share_what_they_have_in_common)
{
    static heard h[4];
    kit k;
    memset(h, 0, sizeof h);
    begin(&k, 4, 0, 8, (sched_options){0});
    prompt p = encode(&k, texts[3]);
    sched_job j = job_of(&p, 8, &h[0]);
    for (int i = 0; i < 4; i++) { /* at once: three wait for the first, and begin behind it */
        j.user = &h[i];
        add(&k, &j);
    }
    run_all(&k);
    int64_t whole = (int64_t)(p.n - 1) / PAGE * PAGE;
    ck_assert_int_ge(whole, PAGE);
    ck_assert_int_eq(h[0].n_cached, 0);
    for (int i = 1; i < 4; i++) {
        ck_assert_int_eq(h[i].n_cached, whole);
        same(&h[i], &h[0]);
    }
    ck_assert_uint_eq(scheduler_stats(k.sched).tokens_cached, 3 * (uint64_t)whole);
    weft_free(p.ids);
    end(&k);
}
END_TEST

START_TEST(context_full_and_stops)
{
    static heard h[2];
    static const char *const stops[] = {"never said", "Lily"};
    kit k;
    memset(h, 0, sizeof h);
    begin(&k, 2, 0, -1, (sched_options){0});
    prompt p = encode(&k, texts[0]);
    sched_job j = job_of(&p, 0, &h[0]);
    j.ignore_end = true;
    add(&k, &j);
    j = job_of(&p, 60, &h[1]);
    j.stops = stops;
    j.n_stop = 2;
    add(&k, &j);
    run_all(&k);
    ck_assert_int_eq(h[0].end, SCHED_END_CONTEXT);
    ck_assert_int_eq(h[0].n_generated, CONTEXT + 1 - (int64_t)p.n);
    ck_assert_int_eq(h[1].end, SCHED_END_STOP);
    ck_assert_str_eq(h[1].stop, "Lily");
    ck_assert_ptr_null(strstr(h[1].said, "Lily"));
    weft_free(p.ids);
    end(&k);
}
END_TEST

START_TEST(several_choices_of_one_prompt)
{
    static heard h[6];
    kit k;
    memset(h, 0, sizeof h);
    begin(&k, 4, 0, -1, (sched_options){0}); /* without a cache: by fork alone */
    prompt p = encode(&k, texts[3]);
    sched_job j = job_of(&p, 12, &h[0]);
    j.n = 3;
    j.pick.temp = 0.8;
    j.pick.seed = 5;
    add(&k, &j);
    run_all(&k);
    for (uint64_t i = 0; i < 3; i++) {
        heard a = alone(&k, &j, i);
        same(&h[i], &a);
    }
    /* The prompt was read once, and its last token by each. */
    ck_assert_uint_eq(scheduler_stats(k.sched).rows_prompt, p.n + 2);
    j.user = &h[3];
    j.n = 1;
    j.best_of = 3;
    add(&k, &j);
    run_all(&k);
    ck_assert_int_eq(h[3].ended, 1);
    ck_assert_int_eq(h[4].ended, 0);
    bool one = false;
    for (int i = 0; i < 3; i++)
        one = one || strcmp(h[3].said, h[i].said) == 0;
    ck_assert(one);
    ck_assert_double_lt(h[3].logprobs, 0);
    /* The one that is shown is told token by token, with what was asked for of each. */
    j.user = &h[4];
    j.n_top = 2;
    add(&k, &j);
    run_all(&k);
    same(&h[4], &h[3]);
    ck_assert_int_eq(h[4].n_token, h[4].n_generated);
    ck_assert_int_eq(h[4].n_top, 2 * h[4].n_token);
    ck_assert_double_eq_tol(h[4].sum, h[4].logprobs, 1e-6);
    weft_free(p.ids);
    end(&k);
}
END_TEST

START_TEST(goes_when_told)
{
    static heard h[8];
    kit k;
    sched_row row[8];
    memset(h, 0, sizeof h);
    begin(&k, 2, 0, 8, (sched_options){0});
    prompt p = encode(&k, texts[2]);
    sched_job j = job_of(&p, 0, &h[0]);
    sched_id id[8];
    j.ignore_end = true;
    j.n = 2;
    id[0] = add(&k, &j); /* two choices */
    j.n = 1;
    j.user = &h[2];
    id[2] = add(&k, &j); /* waits */
    j.user = &h[3];
    j.timeout_ms = 1;
    id[3] = add(&k, &j);
    for (int i = 0; i < 5; i++)
        ok(&k, scheduler_step(k.dg, k.sched));
    ck_assert_int_ge(scheduler_list(k.sched, row, 8), 3);
    ck_assert_uint_eq(row[0].id, id[0]);
    scheduler_cancel(k.sched, id[0]);
    scheduler_cancel(k.sched, 12345); /* nobody */
    ok(&k, scheduler_step(k.dg, k.sched));
    ck_assert_int_eq(h[0].end, SCHED_END_CANCELLED);
    ck_assert_int_eq(h[1].end, SCHED_END_CANCELLED);
    ck_assert_int_eq(h[2].ended, 0);
    usleep(2000);
    ok(&k, scheduler_step(k.dg, k.sched));
    ck_assert_int_eq(h[3].end, SCHED_END_DEADLINE);
    j.timeout_ms = 0;
    j.max_tokens = 3;
    j.user = &h[4];
    add(&k, &j);
    scheduler_drain(k.sched, 60000);
    j.user = &h[5];
    ck_assert_int_eq(scheduler_add(k.dg, k.sched, &j, &id[5]), WEFT_ERR_STATE);
    diag_reset(k.dg);
    while (!h[4].ended) /* those that are there go on */
        ok(&k, scheduler_step(k.dg, k.sched));
    ck_assert_int_eq(h[4].end, SCHED_END_LENGTH);
    ck_assert(scheduler_wait(k.sched, SCHED_FOREVER));
    scheduler_drain(k.sched, 0);
    ok(&k, scheduler_step(k.dg, k.sched));
    ck_assert_int_eq(h[2].end, SCHED_END_DRAINED);
    ck_assert(!scheduler_wait(k.sched, SCHED_FOREVER));
    weft_free(p.ids);
    end(&k);
}
END_TEST

START_TEST(what_cannot_be_is_refused)
{
    static heard h;
    kit k;
    sched_id id;
    memset(&h, 0, sizeof h);
    begin(&k, 2, 6, -1, (sched_options){.queue_max = 2});
    prompt p = encode(&k, texts[0]);
    sched_job good = job_of(&p, 4, &h), j = good;
    int32_t wide[CONTEXT] = {1, 2, 3};
    j.ids = wide;
    j.n_id = 6 * PAGE; /* all pages, and one more is to come */
    ck_assert_int_eq(scheduler_add(k.dg, k.sched, &j, &id), WEFT_ERR_FULL);
    j.n_id = 3;
    wide[1] = 1 << 30;
    ck_assert_int_eq(scheduler_add(k.dg, k.sched, &j, &id), WEFT_ERR_STATE);
    j = good;
    j.n = 100;
    ck_assert_int_eq(scheduler_add(k.dg, k.sched, &j, &id), WEFT_ERR_LIMIT);
    j = good;
    j.pick.temp = -1;
    ck_assert_int_eq(scheduler_add(k.dg, k.sched, &j, &id), WEFT_ERR_USAGE);
    j = good;
    j.n_id = 0;
    ck_assert_int_eq(scheduler_add(k.dg, k.sched, &j, &id), WEFT_ERR_LIMIT);
    diag_reset(k.dg);
    static heard few[2];
    memset(few, 0, sizeof few);
    j = good;
    j.adapter = "parrot";
    j.user = &few[0];
    add(&k, &j);
    j = good;
    j.user = &few[1];
    add(&k, &j);
    ck_assert_int_eq(scheduler_add(k.dg, k.sched, &good, &id), WEFT_ERR_FULL);
    ck_assert_ptr_nonnull(strstr(weft_diag_text(k.dg), "W1850"));
    diag_reset(k.dg);
    run_all(&k);
    ck_assert_int_eq(few[0].end, SCHED_END_REFUSED);
    ck_assert_int_eq(few[0].code, W1407);
    ck_assert_int_eq(few[1].end, SCHED_END_LENGTH);
    ck_assert_uint_eq(scheduler_stats(k.sched).refused, 1);
    weft_free(p.ids);
    end(&k);
}
END_TEST

START_TEST(adapters_are_opened_again)
{
    static heard h[3];
    kit k;
    memset(h, 0, sizeof h);
    begin(&k, 2, 0, 8, (sched_options){0});
    prompt p = encode(&k, texts[0]);
    sched_job j = job_of(&p, 14, &h[0]);
    j.adapter = "pirate";
    add(&k, &j);
    run_all(&k);
    ck_assert_int_eq(k.opened, 1);
    ck_assert_ptr_nonnull(strstr(h[0].said, "lass"));
    j.user = &h[1];
    add(&k, &j);
    run_all(&k);
    ck_assert_int_eq(k.opened, 1); /* it is in its slot */
    ok(&k, scheduler_reload(k.dg, k.sched, "pirate"));
    j.user = &h[2];
    add(&k, &j);
    run_all(&k);
    ck_assert_int_eq(k.opened, 2);
    ck_assert_int_eq(k.closed, 1);
    same(&h[2], &h[0]);
    weft_free(p.ids);
    end(&k);
}
END_TEST

START_TEST(a_filter_is_kept_to)
{
    static heard h[3];
    kit k;
    atomic_int alive = 1;
    memset(h, 0, sizeof h);
    begin(&k, 2, 0, 8, (sched_options){0});
    prompt p = encode(&k, texts[0]), only = encode(&k, " dog cat");
    some_tokens *f = calloc(1, sizeof *f);
    *f = (some_tokens){.base.kind = &some_kind, .alive = &alive};
    for (size_t i = 0; i < only.n; i++)
        f->mask[only.ids[i] / 64] |= UINT64_C(1) << (only.ids[i] % 64);
    sched_job j = job_of(&p, 10, &h[0]);
    j.pick.temp = 1;
    j.n = 2;
    j.ignore_end = true;
    j.filter = &f->base;
    add(&k, &j);
    run_all(&k);
    ck_assert_int_eq(alive, 0);
    ck_assert_int_eq(h[0].n_generated, 10);
    ck_assert_int_eq(h[1].n_generated, 10);
    weft_free(p.ids);
    weft_free(only.ids);
    end(&k);
}
END_TEST

/* ---- embeddings ---- */

typedef struct {
    float v[4096];
    int64_t n;
} vector;

static void hear_vector(void *ctx, const sched_event *ev)
{
    vector *v = ev->user;
    (void)ctx;
    if (ev->kind != SCHED_ENDED)
        return;
    ck_assert_int_eq(ev->end, SCHED_END_LENGTH);
    ck_assert_ptr_nonnull(ev->vector);
    ck_assert_int_le(ev->n_vector, 4096);
    memcpy(v->v, ev->vector, (size_t)ev->n_vector * sizeof *v->v);
    v->n = ev->n_vector;
}

START_TEST(embeddings_are_means)
{
    static vector v[2];
    static heard h;
    kit k;
    memset(&h, 0, sizeof h);
    begin(&k, 3, 0, 8, (sched_options){0});
    prompt p = encode(&k, texts[3]);
    sched_job j = job_of(&p, 20, &h);
    add(&k, &j); /* beside an answer */
    for (int i = 0; i < 2; i++) {
        j = (sched_job){.ids = p.ids,
                        .n_id = p.n,
                        .embed = true,
                        .n_top = -1,
                        .pick = sampler_defaults(),
                        .user = &v[i],
                        .on_event = hear_vector};
        add(&k, &j);
    }
    run_all(&k);
    ck_assert_int_eq(h.end, SCHED_END_LENGTH);
    const float *row;
    int64_t n_row, width;
    double sum[4096] = {0};
    ok(&k, weft_truncate(k.dg, k.alone, 0, 0));
    for (size_t i = 0; i < p.n; i++) {
        batch_row r = {.id = p.ids[i], .pos = (int32_t)i};
        ok(&k, session_eval(k.dg, k.alone->run, &r, 1));
        ck_assert(session_output(k.alone->run, "hidden", -1, &row, &n_row, &width));
        for (int64_t at = 0; at < width; at++)
            sum[at] += (double)row[at];
    }
    ck_assert_int_eq(v[0].n, width);
    for (int64_t at = 0; at < width; at++) {
        ck_assert_float_eq(v[0].v[at], (float)(sum[at] / (double)p.n));
        ck_assert_float_eq(v[1].v[at], v[0].v[at]);
    }
    j.n = 2;
    sched_id id;
    ck_assert_int_eq(scheduler_add(k.dg, k.sched, &j, &id), WEFT_ERR_LIMIT);
    weft_free(p.ids);
    end(&k);
}
END_TEST

/* ---- idle ---- */

#ifdef RUSAGE_THREAD
#define WAITER RUSAGE_THREAD
#else
#define WAITER RUSAGE_SELF /* macOS has none of a thread; the others sleep meanwhile */
#endif

typedef struct {
    scheduler *s;
    long sleeps; /* how often the thread went to sleep while it waited */
} waiter;

static void *wait_for_work(void *ctx)
{
    waiter *w = ctx;
    struct rusage before, after;
    getrusage(WAITER, &before);
    bool more = scheduler_wait(w->s, SCHED_FOREVER);
    getrusage(WAITER, &after);
    w->sleeps = after.ru_nvcsw - before.ru_nvcsw;
    return more ? w : NULL;
}

/* Who waits for work sleeps until it comes: a loop that looks now and then would sleep as often as it looks. */
START_TEST(idle_costs_nothing)
{
    enum {
        WAIT_US = 300000,
        SLEEPS_MAX = 8
    }; /* some for the lock and for wakes without a reason */
    static heard h;
    kit k;
    pthread_t t;
    void *came;
    memset(&h, 0, sizeof h);
    begin(&k, 2, 0, -1, (sched_options){0});
    waiter w = {.s = k.sched};
    ck_assert_int_eq(pthread_create(&t, NULL, wait_for_work, &w), 0);
    usleep(WAIT_US);
    prompt p = encode(&k, texts[0]);
    sched_job j = job_of(&p, 2, &h);
    add(&k, &j);
    pthread_join(t, &came);
    ck_assert_ptr_eq(came, &w);
    ck_assert_int_le(w.sleeps, SLEEPS_MAX);
    run_all(&k);
    ck_assert_int_eq(h.end, SCHED_END_LENGTH);
    weft_free(p.ids);
    end(&k);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("scheduler");
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, together_as_alone);
    tcase_add_test(tc, preempted_as_alone);
    tcase_add_test(tc, prompts_share_what_they_have_in_common);
    tcase_add_test(tc, context_full_and_stops);
    tcase_add_test(tc, several_choices_of_one_prompt);
    tcase_add_test(tc, goes_when_told);
    tcase_add_test(tc, what_cannot_be_is_refused);
    tcase_add_test(tc, adapters_are_opened_again);
    tcase_add_test(tc, a_filter_is_kept_to);
    tcase_add_test(tc, embeddings_are_means);
    tcase_add_test(tc, idle_costs_nothing);
    return suite_run("scheduler", tc, SUITE_FORK);
}
