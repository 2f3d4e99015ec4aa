/* sched_kit.h - a scheduler with the demo model, what is heard of its jobs, and a filter of some tokens, for the tests of this folder. */
#ifndef WEFT_TESTS_SERVE_SCHED_KIT_H
#define WEFT_TESTS_SERVE_SCHED_KIT_H

#include "tests/base/suite.h"

#include "runtime/api/api_impl.h"
#include "runtime/serve/scheduler.h"
#include <stdatomic.h>

#define DEMO WEFT_SOURCE_DIR "/models/stories-7m"

enum { CONTEXT = 250, PAGE = 16, BATCH = 48, SAID_MAX = 4096, HEARD_MAX = 1024 };

typedef struct {
    weft_diag *dg;
    weft_model *m;
    weft_tokenizer *t;
    weft_session *s, *alone; /* alone: one sequence, for comparison */
    weft_adapter *pirate;
    scheduler *sched;
    int opened, closed;
} kit;

static inline void ok(const kit *k, weft_status st)
{
    ck_assert_msg(st == WEFT_OK, "%s", weft_diag_text(k->dg));
}

static inline weft_status open_adapter(void *ctx, weft_diag *dg, const char *name,
                                       const adapter_source **out_a)
{
    kit *k = ctx;
    if (strncmp(name, "pirate", 6) != 0)
        return weft_fail(dg, W1407, WEFT_NOWHERE, "there is no adapter %s", name);
    k->opened++;
    *out_a = &k->pirate->from;
    return WEFT_OK;
}

static inline void close_adapter(void *ctx, const adapter_source *a)
{
    kit *k = ctx;
    ck_assert_ptr_eq(a, &k->pirate->from);
    k->closed++;
}

/* pages 0: enough for all. */
static inline void begin(kit *k, int64_t sequences, int64_t pages, int64_t prefixes,
                         sched_options o)
{
    *k = (kit){.dg = weft_diag_create()};
    ok(k, weft_model_open(k->dg, DEMO, NULL, &k->m));
    ok(k, weft_tokenizer_of_model(k->dg, k->m, &k->t));
    ok(k, weft_adapter_open(k->dg, k->m, WEFT_SOURCE_DIR "/models/stories-7m-pirate", &k->pirate));
    static const char *const outputs[] = {"logits", "hidden"};
    weft_session_options how = {.size = sizeof how,
                                .outputs = outputs,
                                .n_output = 2,
                                .context = CONTEXT,
                                .sequences = sequences,
                                .batch = BATCH,
                                .page_tokens = PAGE,
                                .pages = pages,
                                .deterministic = true,
                                .lora_slots = 1,
                                .lora_rank = weft_adapter_rank(k->pirate),
                                .prefixes = prefixes};
    ok(k, weft_session_create(k->dg, k->m, &how, &k->s));
    how.sequences = 1;
    how.pages = 0;
    how.prefixes = -1;
    ok(k, weft_session_create(k->dg, k->m, &how, &k->alone));
    ok(k, weft_lora_load(k->dg, k->alone, 1, k->pirate));
    o.adapter_open = open_adapter;
    o.adapter_close = close_adapter;
    o.adapter_ctx = k;
    ok(k, scheduler_create(k->dg, k->s->run, k->t->text, &o, &k->sched));
}

/* All pages are free again once nothing is kept for others. */
static inline void end(kit *k)
{
    if (k->sched) {
        ck_assert(scheduler_idle(k->sched));
        scheduler_destroy(k->sched);
    }
    session_prefix_clear(k->s->run);
    session_limits most = session_most(k->s->run);
    ck_assert_int_eq(most.pages_free, most.pages);
    ck_assert_int_eq(k->opened, k->closed);
    weft_session_destroy(k->s);
    weft_session_destroy(k->alone);
    weft_adapter_close(k->pirate);
    weft_tokenizer_close(k->t);
    weft_model_close(k->m);
    weft_diag_destroy(k->dg);
}

/* ---- what is heard of a choice ---- */

typedef struct {
    int started, ended;
    sched_end end;
    weft_code code;
    size_t n;
    char said[SAID_MAX];
    char stop[64];
    int64_t n_cached, n_generated;
    int64_t n_token, n_top; /* tokens told, and of the likeliest with each */
    double logprobs, sum;   /* as the end says; of the tokens that were told */
} heard;

/* user of a job: the place for its choice 0. */
static inline void hear(void *ctx, const sched_event *ev)
{
    heard *h = (heard *)ev->user + ev->choice;
    (void)ctx;
    ck_assert_int_eq(h->ended, 0);
    ck_assert_uint_lt(h->n + ev->text.n, SAID_MAX);
    if (ev->text.n)
        memcpy(h->said + h->n, ev->text.p, ev->text.n);
    h->n += ev->text.n;
    h->said[h->n] = 0;
    h->started += ev->kind == SCHED_STARTED;
    if (ev->token != TOK_NONE) {
        h->n_token++;
        h->n_top += ev->n_top;
        h->sum += (double)ev->logprob;
        if (ev->n_top > 0) /* of greedy choices the first, or as likely */
            ck_assert_float_ge(ev->top[0].logprob, ev->logprob);
    }
    h->n_cached = ev->n_cached;
    h->n_generated = ev->n_generated;
    if (ev->kind != SCHED_ENDED)
        return;
    h->ended++;
    h->end = ev->end;
    h->code = ev->code;
    h->logprobs = ev->logprobs;
    ck_assert_uint_lt(ev->stop.n, sizeof h->stop);
    if (ev->stop.n)
        memcpy(h->stop, ev->stop.p, ev->stop.n);
}

typedef struct {
    int32_t *ids;
    size_t n;
} prompt;

static inline prompt encode(const kit *k, const char *text)
{
    prompt p;
    ok(k, weft_encode(k->dg, k->t, text, strlen(text), WEFT_ADD_SPECIAL, &p.ids, &p.n));
    return p;
}

static inline sched_job job_of(const prompt *p, int64_t max_tokens, heard *h)
{
    sched_job j = {.ids = p->ids,
                   .n_id = p->n,
                   .max_tokens = max_tokens,
                   .n_top = -1,
                   .pick = sampler_defaults(),
                   .user = h,
                   .on_event = hear};
    j.pick.temp = 0;
    return j;
}

static inline void run_all(kit *k)
{
    for (int i = 0; !scheduler_idle(k->sched); i++) {
        ck_assert(scheduler_wait(k->sched, SCHED_FOREVER));
        ok(k, scheduler_step(k->dg, k->sched));
        ck_assert_int_lt(i, 200000);
    }
}

static inline sched_id add(kit *k, const sched_job *j)
{
    sched_id id = 0;
    ok(k, scheduler_add(k->dg, k->sched, j, &id));
    return id;
}

static inline bool collect(void *ctx, const weft_piece *p)
{
    heard *h = ctx;
    memcpy(h->said + h->n, p->text, p->bytes);
    h->n += p->bytes;
    h->said[h->n] = 0;
    h->n_generated += p->token >= 0;
    return true;
}

/* What a job's choice says when nobody else is there. */
static inline heard alone(kit *k, const sched_job *j, uint64_t seed_more)
{
    heard h = {0};
    weft_end why;
    weft_generation *g = NULL;
    weft_sampler_options pick = {.size = sizeof pick};
    weft_sampler_defaults(&pick);
    pick.temp = j->pick.temp;
    pick.seed = j->pick.seed + seed_more;
    weft_generation_options o = {.size = sizeof o,
                                 .max_tokens = j->max_tokens,
                                 .stops = j->stops,
                                 .n_stop = j->n_stop,
                                 .ignore_end = j->ignore_end,
                                 .sampler = &pick};
    weft_lora_use mix = {.slot = 1, .scale = 1};
    ok(k, weft_lora_attach(k->dg, k->alone, 0, &mix, j->adapter ? 1 : 0));
    ok(k, weft_generation_create(k->dg, k->alone, k->t, &o, &g));
    ok(k, weft_generation_prompt(k->dg, g, j->ids, j->n_id));
    ok(k, weft_generate(k->dg, g, collect, &h, &why));
    weft_generation_destroy(g);
    h.end = (sched_end)why;
    return h;
}

static inline void same(const heard *a, const heard *b)
{
    ck_assert_str_eq(a->said, b->said);
    ck_assert_int_eq(a->end, b->end);
    ck_assert_int_eq(a->n_generated, b->n_generated);
}

static const char *const texts[] = {
    "Once upon a time",
    "The old robot",
    "One day, a little girl named Lily went to the park with her mother. They saw a big dog and a "
    "small cat",
    "Tom had a red ball. He liked to play with it all day. One morning the ball was gone. Tom "
    "looked under the bed, behind the "
    "door and in the garden, but he could not find it anywhere. Then he heard a noise from the "
    "tree",
    "Sara and Ben were friends",
};

/* ---- a filter: only some tokens may come ---- */

typedef struct {
    token_filter base;
    uint64_t mask[2048];
    atomic_int *alive;
} some_tokens;

static inline weft_status some_mask(weft_diag *dg, token_filter *f, const uint64_t **out_mask)
{
    (void)dg;
    *out_mask = ((some_tokens *)f)->mask;
    return WEFT_OK;
}

static inline weft_status some_accept(weft_diag *dg, token_filter *f, int32_t id)
{
    if (((some_tokens *)f)->mask[id / 64] >> (id % 64) & 1)
        return WEFT_OK;
    return weft_fail(dg, W1805, WEFT_NOWHERE, "token %d", (int)id);
}

static inline bool some_must_end(const token_filter *f)
{
    (void)f;
    return false;
}

static inline void some_reset(token_filter *f)
{
    (void)f;
}

static inline token_filter *some_copy(const token_filter *f)
{
    some_tokens *c = malloc(sizeof *c);
    *c = *(const some_tokens *)f;
    atomic_fetch_add(c->alive, 1);
    return &c->base;
}

static inline void some_destroy(token_filter *f)
{
    atomic_fetch_sub(((some_tokens *)f)->alive, 1);
    free(f);
}

static const token_filter_kind some_kind = {some_mask, some_accept, some_must_end,
                                            some_copy, some_reset,  some_destroy};

#endif
