/* bench_sched.c - how many tokens a second does the scheduler give to many clients at once, and how long do they wait? Without HTTP.
 *
 *     bench_sched [MODEL [CLIENTS [REQUESTS [RATE [SHARED [MAX_ITL_MS]]]]]]
 *
 * Each request has a prompt of 128 random ids and an answer of 64 tokens; they arrive at RATE a second on average, at random times (0: each
 * client sends its next one as soon as the last has ended). SHARED ids are the same at the beginning of all prompts, before the 128. Times are
 * percentiles over all requests, in ms. The last line is what deciding who runs costs, with a queue of 1000. */
#include "runtime/api/api_impl.h"
#include "runtime/base/clock.h"
#include "runtime/serve/sched_policy.h"
#include "runtime/serve/scheduler.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PROMPT = 128, ANSWER = 64, PREFIXES = 64 };

typedef struct {
    int64_t clients, requests, shared, max_itl_ms;
    double rate;
} load;

typedef struct {
    const load *l;
    scheduler *s;
    int64_t vocab;
    int64_t added, ended, failed;
    uint64_t *first, *gap; /* [requests], [requests * ANSWER] */
    int64_t n_first, n_gap;
    uint64_t *last; /* [requests]: when its last token came */
    uint64_t rng;
} run;

static uint64_t draw(run *r, uint64_t n)
{
    r->rng = r->rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (r->rng >> 33) % n;
}

static void on_event(void *ctx, const sched_event *ev)
{
    run *r = ctx;
    uint64_t now = clock_ns(), *last = ev->user;
    if (ev->token != TOK_NONE) {
        if (*last)
            r->gap[r->n_gap++] = now - *last;
        else
            r->first[r->n_first++] = ev->first_ns;
        *last = now;
    }
    if (ev->kind == SCHED_ENDED) {
        r->ended++;
        r->failed += ev->end != SCHED_END_LENGTH;
    }
}

static weft_status add(weft_diag *dg, run *r)
{
    size_t n = (size_t)(r->l->shared + PROMPT);
    int32_t *ids = malloc(n * sizeof *ids);
    if (!ids)
        return WEFT_ERR_LIMIT;
    for (size_t i = 0; i < n; i++)
        ids[i] = (int64_t)i < r->l->shared ? (int32_t)(3 + i * 7919 % (uint64_t)(r->vocab - 3))
                                           : (int32_t)(3 + draw(r, (uint64_t)r->vocab - 3));
    sched_job j = {.ids = ids,
                   .n_id = n,
                   .max_tokens = ANSWER,
                   .ignore_end = true,
                   .n_top = -1,
                   .pick = sampler_defaults(),
                   .user = &r->last[r->added],
                   .on_event = on_event,
                   .ctx = r};
    sched_id id;
    weft_status st = scheduler_add(dg, r->s, &j, &id);
    free(ids);
    r->added++;
    return st;
}

/* When the next one comes, for arrivals that do not know of each other. */
static uint64_t gap_ns(run *r)
{
    double u = ((double)draw(r, 1 << 30) + 1) / ((double)(1 << 30) + 1);
    return (uint64_t)(-log(u) / r->l->rate * 1e9);
}

static weft_status run_load(weft_diag *dg, run *r)
{
    const load *l = r->l;
    uint64_t next = clock_ns();
    while (r->ended < l->requests) {
        uint64_t now = clock_ns();
        while (r->added < l->requests &&
               (l->rate > 0 ? now >= next : r->added - r->ended < l->clients)) {
            WEFT_TRY(add(dg, r));
            if (l->rate > 0)
                next += gap_ns(r);
        }
        if (scheduler_idle(r->s))
            scheduler_wait(r->s, 1);
        else
            WEFT_TRY(scheduler_step(dg, r->s));
    }
    return WEFT_OK;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void print_times(const char *name, uint64_t *ns, int64_t n)
{
    static const double at[] = {0.5, 0.9, 0.99};
    if (n == 0)
        return;
    qsort(ns, (size_t)n, sizeof *ns, by_size);
    printf("%-14s", name);
    for (int i = 0; i < 3; i++)
        printf("  p%-2.0f %8.2f", at[i] * 100,
               (double)ns[(int64_t)((double)(n - 1) * at[i])] / 1e6);
    printf("  most %8.2f ms\n", (double)ns[n - 1] / 1e6);
}

static weft_status measure(weft_diag *dg, const char *path, const load *l)
{
    weft_model *m;
    weft_tokenizer *t;
    weft_session *s;
    WEFT_TRY(weft_model_open(dg, path, NULL, &m));
    WEFT_TRY(weft_tokenizer_of_model(dg, m, &t));
    weft_session_options how = {.size = sizeof how,
                                .context = l->shared + PROMPT + ANSWER + 1,
                                .sequences = l->clients,
                                .batch = 512,
                                .threads = -1,
                                .prefixes = PREFIXES};
    WEFT_TRY(weft_session_create(dg, m, &how, &s));
    run r = {.l = l, .vocab = weft_tokenizer_size(t), .rng = 7};
    sched_options o = {.max_itl_ms = l->max_itl_ms, .queue_max = l->requests};
    WEFT_TRY(scheduler_create(dg, s->run, t->text, &o, &r.s));
    r.first = calloc((size_t)l->requests, sizeof *r.first);
    r.last = calloc((size_t)l->requests, sizeof *r.last);
    r.gap = calloc((size_t)l->requests * ANSWER, sizeof *r.gap);
    uint64_t begin = clock_ns();
    weft_status st = run_load(dg, &r);
    double seconds = clock_seconds(clock_ns() - begin);
    sched_stats did = scheduler_stats(r.s);
    printf("%lld clients, %lld requests, %lld tokens shared: %.1f tokens a second generated, %.1f "
           "with prompts; "
           "%.0f steps of %.1f rows; %lld failed\n",
           (long long)l->clients, (long long)l->requests, (long long)l->shared,
           (double)did.tokens_generated / seconds,
           (double)(did.tokens_generated + did.tokens_prompt) / seconds, (double)did.steps,
           (double)(did.rows_prompt + did.rows_decode) / (double)(did.steps ? did.steps : 1),
           (long long)r.failed);
    print_times("first token", r.first, r.n_first);
    print_times("inter-token", r.gap, r.n_gap);
    free(r.first);
    free(r.last);
    free(r.gap);
    scheduler_destroy(r.s);
    weft_session_destroy(s);
    weft_tokenizer_close(t);
    weft_model_close(m);
    return st;
}

/* 32 that run, 1000 that wait. */
static void measure_policy(void)
{
    enum { RUNS = 32, ALL = 1032, N = 200 };
    static sched_item x[ALL];
    static int32_t order[ALL];
    static double served[4];
    static uint64_t ns[N];
    sched_room room = {.now = 1000000,
                       .patience = 500000,
                       .batch = 512,
                       .sequences = RUNS,
                       .page_tok = 64,
                       .pages_free = 10,
                       .prompt_rows = 64,
                       .chunk_min = 16,
                       .served = served};
    for (int i = 0; i < N; i++) {
        for (uint32_t k = 0; k < ALL; k++)
            x[k] = (sched_item){.order = k,
                                .arrived = 900000 + k % 7 * 1000,
                                .share = k % 4,
                                .running = k < RUNS,
                                .n_id = 200 + k % 100,
                                .n_held = k < RUNS ? 199 + k % 100 : 0,
                                .pages_alone = k < RUNS ? 4 : 0};
        uint64_t begin = clock_ns();
        sched_decide(&room, x, ALL, order);
        ns[i] = clock_ns() - begin;
    }
    print_times("decide", ns, N);
}

static int64_t number(int argc, char **argv, int i, int64_t otherwise)
{
    return argc > i ? atoll(argv[i]) : otherwise;
}

int main(int argc, char **argv)
{
    load l = {.clients = number(argc, argv, 2, 8),
              .requests = number(argc, argv, 3, 64),
              .rate = argc > 4 ? atof(argv[4]) : 0,
              .shared = number(argc, argv, 5, 0),
              .max_itl_ms = number(argc, argv, 6, 0)};
    if (l.clients < 1 || l.requests < 1 || l.shared < 0 || l.rate < 0) {
        fprintf(stderr,
                "usage: bench_sched [MODEL [CLIENTS [REQUESTS [RATE [SHARED [MAX_ITL_MS]]]]]]\n");
        return 2;
    }
    weft_diag *dg = weft_diag_create();
    weft_status st = measure(dg, argc > 1 ? argv[1] : "models/stories-7m", &l);
    if (st != WEFT_OK)
        fprintf(stderr, "%s", weft_diag_text(dg));
    measure_policy();
    weft_diag_destroy(dg);
    return st == WEFT_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
