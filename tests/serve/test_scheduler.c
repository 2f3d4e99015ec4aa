/* test_scheduler.c - the scheduler with the demo model: what many say together is what each says alone, whoever comes, goes, waits or
 * is preempted. */
#include "tests/base/suite.h"

#include "runtime/api/api_impl.h"
#include "runtime/serve/scheduler.h"
#include <stdatomic.h>
#include <sys/resource.h>

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

static void ok(const kit *k, weft_status st)
{
    ck_assert_msg(st == WEFT_OK, "%s", weft_diag_text(k->dg));
}

static weft_status open_adapter(void *ctx, weft_diag *dg, const char *name,
                                const adapter_source **out_a)
{
    kit *k = ctx;
    if (strncmp(name, "pirate", 6) != 0)
        return weft_fail(dg, W1407, WEFT_NOWHERE, "there is no adapter %s", name);
    k->opened++;
    *out_a = &k->pirate->from;
    return WEFT_OK;
}

static void close_adapter(void *ctx, const adapter_source *a)
{
    kit *k = ctx;
    ck_assert_ptr_eq(a, &k->pirate->from);
    k->closed++;
}

/* pages 0: enough for all. */
static void begin(kit *k, int64_t sequences, int64_t pages, int64_t prefixes, sched_options o)
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
static void end(kit *k)
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
static void hear(void *ctx, const sched_event *ev)
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

static prompt encode(const kit *k, const char *text)
{
    prompt p;
    ok(k, weft_encode(k->dg, k->t, text, strlen(text), WEFT_ADD_SPECIAL, &p.ids, &p.n));
    return p;
}

static sched_job job_of(const prompt *p, int64_t max_tokens, heard *h)
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

static void run_all(kit *k)
{
    for (int i = 0; !scheduler_idle(k->sched); i++) {
        ck_assert(scheduler_wait(k->sched, SCHED_FOREVER));
        ok(k, scheduler_step(k->dg, k->sched));
        ck_assert_int_lt(i, 200000);
    }
}

static sched_id add(kit *k, const sched_job *j)
{
    sched_id id = 0;
    ok(k, scheduler_add(k->dg, k->sched, j, &id));
    return id;
}

static bool collect(void *ctx, const weft_piece *p)
{
    heard *h = ctx;
    memcpy(h->said + h->n, p->text, p->bytes);
    h->n += p->bytes;
    h->said[h->n] = 0;
    h->n_generated += p->token >= 0;
    return true;
}

/* What a job's choice says when nobody else is there. */
static heard alone(kit *k, const sched_job *j, uint64_t seed_more)
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

static void same(const heard *a, const heard *b)
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

/* ---- tests ---- */

static void many_at_once(int64_t sequences, int64_t pages, int64_t prefixes, sched_options o,
                         sched_stats *out)
{
    enum { JOBS = 15 };
    static heard h[JOBS];
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
        heard a = alone(&k, &j[i], 0);
        ck_assert_int_eq(h[i].started, 1);
        ck_assert_int_eq(h[i].ended, 1);
        same(&h[i], &a);
    }
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

/* ---- a filter: only some tokens may come ---- */

typedef struct {
    token_filter base;
    uint64_t mask[2048];
    atomic_int *alive;
} some_tokens;

static weft_status some_mask(weft_diag *dg, token_filter *f, const uint64_t **out_mask)
{
    (void)dg;
    *out_mask = ((some_tokens *)f)->mask;
    return WEFT_OK;
}

static weft_status some_accept(weft_diag *dg, token_filter *f, int32_t id)
{
    if (((some_tokens *)f)->mask[id / 64] >> (id % 64) & 1)
        return WEFT_OK;
    return weft_fail(dg, W1805, WEFT_NOWHERE, "token %d", (int)id);
}

static bool some_must_end(const token_filter *f)
{
    (void)f;
    return false;
}

static void some_reset(token_filter *f)
{
    (void)f;
}

static token_filter *some_copy(const token_filter *f)
{
    some_tokens *c = malloc(sizeof *c);
    *c = *(const some_tokens *)f;
    atomic_fetch_add(c->alive, 1);
    return &c->base;
}

static void some_destroy(token_filter *f)
{
    atomic_fetch_sub(((some_tokens *)f)->alive, 1);
    free(f);
}

static const token_filter_kind some_kind = {some_mask, some_accept, some_must_end,
                                            some_copy, some_reset,  some_destroy};

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

/* ---- thousands, from several threads ---- */

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
    tcase_add_test(tc, a_storm_passes);
    return suite_run("scheduler", tc, SUITE_FORK);
}
