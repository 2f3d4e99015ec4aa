/* test_sched_storm.c - thousands of jobs of all kinds from several threads, on a real session: each ends once, and nothing is left. */
#include "tests/serve/sched_kit.h"

enum { STORM_CHOICES = 3 };

typedef struct {
    kit *k;
    const prompt *p;
    heard *h;  /* [n][STORM_CHOICES] */
    int *asks; /* [n]: choices of each */
    int n, seed;
    atomic_int *left;    /* threads that still add */
    atomic_int *filters; /* that are alive */
} adder;

static token_filter *any_token(atomic_int *alive)
{
    some_tokens *f = calloc(1, sizeof *f);
    *f = (some_tokens){.base.kind = &some_kind, .alive = alive};
    memset(f->mask, 0xff, sizeof f->mask);
    atomic_fetch_add(alive, 1);
    return &f->base;
}

static void *add_many(void *ctx)
{
    adder *a = ctx;
    unsigned r = (unsigned)a->seed;
    weft_diag *dg = weft_diag_create();
    for (int i = 0; i < a->n; i++) {
        r = r * 1103515245u + 12345;
        sched_job j = job_of(&a->p[r >> 16 & 3], 1 + (r >> 18 & 15), &a->h[i * STORM_CHOICES]);
        sched_id id;
        j.n = a->asks[i] = (r >> 23 & 3) == 0 ? STORM_CHOICES : 1;
        j.priority = (int32_t)(r >> 20 & 3);
        j.share = r >> 22 & 3;
        j.timeout_ms = (r >> 24 & 15) == 0 ? 1 : 0;
        j.adapter = (r >> 25 & 7) == 0 ? (r >> 28 & 1 ? "pirate1" : "pirate2") : NULL;
        j.best_of = j.n == 1 && (r >> 21 & 15) == 0 ? 2 : 0;
        j.embed = j.n == 1 && !j.best_of && (r >> 19 & 15) == 0;
        j.n_top = (r >> 17 & 7) == 0 ? 3 : -1;
        j.filter =
            (r >> 26 & 7) == 0 ? any_token(a->filters) : NULL; /* gone if it is refused, too */
        if (scheduler_add(dg, a->k->sched, &j, &id) != WEFT_OK) {
            diag_reset(dg);
            usleep(1000);
            i--;
            continue;
        }
        if ((r >> 27 & 7) == 0)
            scheduler_cancel(a->k->sched, id);
        if ((r >> 16 & 63) == 0)
            usleep(500);
    }
    weft_diag_destroy(dg);
    atomic_fetch_sub(a->left, 1);
    return NULL;
}

/* Sanitizers take ten times as long and more. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { EACH = 100 };
#else
enum { EACH = 700 };
#endif

START_TEST(a_storm_passes)
{
    enum { THREADS = 3 };
    kit k;
    prompt p[4];
    pthread_t t[THREADS];
    adder a[THREADS];
    heard *h = calloc(THREADS * EACH * STORM_CHOICES, sizeof *h);
    int asks[THREADS * EACH];
    atomic_int left = THREADS, filters = 0;
    char dir[] = "/tmp/weft-swap-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    begin(&k, 5, 14, 8,
          (sched_options){.queue_max = 40,
                          .patience_ms = 20,
                          .max_itl_ms = 5,
                          .swap_memory_dir = dir,
                          .swap_memory_bytes = 1 << 21, /* some fit */
                          .swap_memory_bps = 1e12});
    for (size_t i = 0; i < 4; i++)
        p[i] = encode(&k, texts[i]);
    for (int i = 0; i < THREADS; i++) {
        a[i] = (adder){.k = &k,
                       .p = p,
                       .h = h + i * EACH * STORM_CHOICES,
                       .asks = asks + i * EACH,
                       .n = EACH,
                       .seed = i + 1,
                       .left = &left,
                       .filters = &filters};
        ck_assert_int_eq(pthread_create(&t[i], NULL, add_many, &a[i]), 0);
    }
    while (atomic_load(&left) > 0 || !scheduler_idle(k.sched))
        if (scheduler_wait(k.sched, 10))
            ok(&k, scheduler_step(k.dg, k.sched));
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    for (int i = 0; i < THREADS * EACH; i++)
        for (int c = 0; c < STORM_CHOICES; c++)
            ck_assert_int_eq(h[i * STORM_CHOICES + c].ended, c < asks[i]);
    sched_stats st = scheduler_stats(k.sched);
    uint64_t ended = 0;
    for (int i = 0; i < SCHED_END_COUNT; i++)
        ended += st.ended[i];
    ck_assert_uint_eq(st.jobs, THREADS * EACH);
    ck_assert_uint_ge(ended, THREADS * EACH);
    ck_assert_uint_eq(st.ended[SCHED_END_FAILED] + st.ended[SCHED_END_REFUSED], 0);
    ck_assert_uint_gt(st.ended[SCHED_END_CANCELLED], 0);
    ck_assert_uint_gt(st.ended[SCHED_END_DEADLINE], 0);
    ck_assert_uint_gt(st.adapter_loads, 0);
    ck_assert_uint_gt(st.tokens_cached, 0);
    ck_assert_int_eq(st.waiting + st.running + st.preempted, 0);
    ck_assert_int_eq(st.swap_memory_bytes, 0);
    ck_assert_int_eq(st.pages_free + st.pages_kept, st.pages);
    ck_assert_int_eq(atomic_load(&filters), 0);
    ck_assert_int_eq(rmdir(dir), 0);
    for (size_t i = 0; i < 4; i++)
        weft_free(p[i].ids);
    free(h);
    end(&k);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("sched_storm");
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, a_storm_passes);
    return suite_run("sched_storm", tc, SUITE_FORK);
}
