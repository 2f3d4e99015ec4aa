/* scheduler.c - what other threads see of a scheduler: jobs in, numbers out. Nothing here touches the session. */
#include "runtime/base/clock.h"
#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"
#include "runtime/serve/sched_impl.h"
#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#define NS_PER_MS UINT64_C(1000000)

enum {
    QUEUE_DEFAULT = 1024,
    CHOICES_DEFAULT = 64,
    PATIENCE_DEFAULT_MS = 10000,
    CHUNK_DEFAULT = 16,
    TIME_MAX_MS = 1 << 30, /* 12 days: no sum with it passes 64 bits */
    TOP_MAX = 1 << 20,     /* as weft_generation_options has it */
};

/* What the places for swapped state do, until it was measured. */
#define MEMORY_BPS_GUESS 1e9
#define DISK_BPS_GUESS 1e8

/* ---- making one ---- */

static int64_t or_default(int64_t given, int64_t otherwise)
{
    return given > 0 ? given : otherwise;
}

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

weft_status scheduler_create(weft_diag *dg, session *run, tok *text, const sched_options *o,
                             scheduler **out_s)
{
    engine e;
    WEFT_TRY(engine_init(dg, &e, run));
    scheduler *s = mem_alloc(sizeof *s);
    *s = (scheduler){.run = run,
                     .text = text,
                     .o = *o,
                     .e = e,
                     .n_slot = (int32_t)session_plan_of(run)->lora_slots,
                     .quiet = diag_create(),
                     .memory_bps = o->swap_memory_bps > 0 ? o->swap_memory_bps : MEMORY_BPS_GUESS,
                     .disk_bps = o->swap_disk_bps > 0 ? o->swap_disk_bps : DISK_BPS_GUESS};
    s->o.queue_max = or_default(o->queue_max, QUEUE_DEFAULT);
    s->o.choices_max = or_default(o->choices_max, CHOICES_DEFAULT);
    s->o.patience_ms = min64(or_default(o->patience_ms, PATIENCE_DEFAULT_MS), TIME_MAX_MS);
    s->o.chunk_min = or_default(o->chunk_min, CHUNK_DEFAULT);
    s->o.max_itl_ms = min64(o->max_itl_ms > 0 ? o->max_itl_ms : 0, TIME_MAX_MS);
    /* All that run can have a row with logits in one call. */
    session_limits *most = &s->e.most;
    s->most = min64(min64(most->sequences, most->call_sequences), min64(most->wants, most->batch));
    if (most->pages > 0) /* one text may hold all pages, and no more */
        most->context = min64(most->context, most->pages * most->page_tok);
    size_t n = (size_t)most->sequences;
    s->seq_used = mem_alloc(mem_product(n, sizeof *s->seq_used));
    memset(s->seq_used, 0, n * sizeof *s->seq_used);
    s->shares_last = mem_alloc(mem_product(n, sizeof *s->shares_last));
    s->alone = mem_alloc(mem_product(n, sizeof *s->alone));
    s->slot = mem_alloc(mem_product((size_t)s->n_slot + 1, sizeof *s->slot));
    memset(s->slot, 0, ((size_t)s->n_slot + 1) * sizeof *s->slot);
    VEC_START(&s->live);
    VEC_START(&s->inbox);
    VEC_START(&s->cancels);
    VEC_START(&s->ending);
    VEC_START(&s->reloads);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->wake, NULL);
    *out_s = s;
    return WEFT_OK;
}

void scheduler_destroy(scheduler *s)
{
    if (!s)
        return;
    scheduler_drain(s, 0);
    weft_status st = scheduler_step(s->quiet, s); /* all end */
    WEFT_ASSERT(st == WEFT_OK && s->live.n == 0);
    adapters_close_all(s);
    for (size_t i = 0; i < s->reloads.n; i++)
        mem_free(s->reloads.at[i]);
    VEC_FREE(&s->live);
    VEC_FREE(&s->items);
    VEC_FREE(&s->order);
    VEC_FREE(&s->parts);
    VEC_FREE(&s->in_call);
    VEC_FREE(&s->inbox);
    VEC_FREE(&s->cancels);
    VEC_FREE(&s->ending);
    VEC_FREE(&s->reloads);
    VEC_FREE(&s->rows);
    mem_free(s->seq_used);
    mem_free(s->shares_last);
    mem_free(s->alone);
    mem_free(s->slot);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    engine_deinit(&s->e);
    diag_destroy(s->quiet);
    mem_free(s);
}

/* ---- jobs ---- */

static weft_status check_job(weft_diag *dg, const scheduler *s, const sched_job *o)
{
    request_limits most = engine_limits(&s->e);
    int64_t n = o->n > 0 ? o->n : 1, best = o->best_of > 0 ? o->best_of : n;
    if (o->with)
        return WEFT_OK; /* generation_prompt has looked at it */
    WEFT_TRY(request_check(dg, &most, o->ids, o->n_id));
    if (o->n < 0 || o->best_of < 0 || best < n || best > s->o.choices_max)
        return weft_fail(dg, W1406, WEFT_NOWHERE,
                         "%lld choices of %lld that are generated; 1 to %lld are possible",
                         (long long)n, (long long)best, (long long)s->o.choices_max);
    if (o->max_tokens < 0 || o->min_tokens < 0 || o->n_top < -1 || o->n_top > TOP_MAX ||
        o->timeout_ms < 0 || o->share >= SCHED_SHARES_MAX)
        return weft_fail(dg, W1406, WEFT_NOWHERE, "a number of the job is out of range");
    if (o->embed && (s->e.hidden == 0 || best > 1))
        return weft_fail(dg, W1406, WEFT_NOWHERE,
                         best > 1 ? "an embedding has one choice"
                                  : "the session has no output hidden for embeddings");
    if (o->adapter && *o->adapter && (s->n_slot == 0 || !s->o.adapter_open))
        return weft_fail(dg, W1407, WEFT_NOWHERE, "%s: the session has no slots for adapters",
                         o->adapter);
    if (!isfinite(o->adapter_scale))
        return weft_fail(dg, W1406, WEFT_NOWHERE, "the scale of an adapter is no number");
    /* Wrong options of a sampler are said here, and not when its turn comes. */
    sampler *one;
    WEFT_TRY(sampler_create(dg, &o->pick, most.vocab, 1, &one));
    sampler_destroy(one);
    return WEFT_OK;
}

static void *copy_of(arena *a, const void *from, size_t n, size_t item_bytes)
{
    void *to = arena_alloc_array(a, n + 1, item_bytes);
    if (n > 0)
        memcpy(to, from, n * item_bytes);
    return to;
}

static const char *text_of(arena *a, const char *text)
{
    return text ? arena_str(a, str_of(text)).p : NULL;
}

/* Hashes of the beginnings that end whole pages (FNV-1a over the bytes of ids). Two prompts of equal hash are taken to begin the same only
 * for waiting: what is shared is found by the ids. */
static void hash_pages(const scheduler *s, job *j)
{
    if (s->e.share == 0 || j->o.embed) /* which evaluates all of its prompt */
        return;
    j->n_page = (j->o.n_id - 1) / s->e.share; /* the last token is always evaluated */
    j->pages = ARENA_ARRAY(j->a, uint64_t, j->n_page + 1);
    uint64_t h = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < j->n_page * s->e.share; i++) {
        for (int k = 0; k < 4; k++)
            h = (h ^ ((uint32_t)j->o.ids[i] >> 8 * k & 0xff)) * UINT64_C(1099511628211);
        if ((i + 1) % s->e.share == 0)
            j->pages[i / s->e.share] = h;
    }
}

/* With a generation that is there already. */
static job *make_job_with(const sched_job *o)
{
    job *j = mem_alloc(sizeof *j);
    *j = (job){.a = arena_create(), .arrived_ns = clock_ns(), .counted = true};
    j->o = (sched_job){.n = 1,
                       .n_top = -1,
                       .n_id = request_prompt_len(generation_request(o->with)),
                       .reading = o->reading,
                       .user = o->user,
                       .on_event = o->on_event,
                       .ctx = o->ctx,
                       .with = o->with};
    j->n_choice = j->n_left = 1;
    j->choices = ARENA_NEW(j->a, choice);
    j->choices[0] = (choice){.of = j,
                             .g = o->with,
                             .running = true,
                             .stop_found = -1,
                             .begun_ns = j->arrived_ns,
                             .n_cached = (int64_t)generation_kept(o->with)};
    return j;
}

static job *make_job(const scheduler *s, const sched_job *o)
{
    if (o->with)
        return make_job_with(o);
    job *j = mem_alloc(sizeof *j);
    *j = (job){.a = arena_create(), .o = *o, .arrived_ns = clock_ns(), .counted = true};
    sched_job *own = &j->o;
    own->n = o->n > 0 ? o->n : 1;
    j->n_choice = j->n_left = o->best_of > own->n ? o->best_of : own->n;
    own->ids = copy_of(j->a, o->ids, o->n_id, sizeof *o->ids);
    const char **stops = ARENA_ARRAY(j->a, const char *, o->n_stop + 1);
    for (size_t i = 0; i < o->n_stop; i++)
        stops[i] = text_of(j->a, o->stops[i]);
    own->stops = stops;
    own->adapter = text_of(j->a, o->adapter);
    own->pick.bias = copy_of(j->a, o->pick.bias, o->pick.n_bias, sizeof *o->pick.bias);
    if (o->pick.dry_breakers)
        own->pick.dry_breakers =
            copy_of(j->a, o->pick.dry_breakers, o->pick.n_breaker, sizeof(int32_t));
    own->pick.samplers = text_of(j->a, o->pick.samplers);
    if (o->timeout_ms > 0)
        j->deadline_ns = j->arrived_ns + (uint64_t)min64(o->timeout_ms, TIME_MAX_MS) * NS_PER_MS;
    j->choices = ARENA_ARRAY(j->a, choice, (size_t)j->n_choice);
    for (int64_t i = 0; i < j->n_choice; i++)
        j->choices[i] = (choice){.of = j, .index = (int32_t)i, .stop_found = -1};
    if (j->n_choice > own->n) /* they hold their texts until all have ended */
        for (int64_t i = 0; i < j->n_choice; i++) {
            strbuf_start(&j->choices[i].said);
            VEC_START(&j->choices[i].tokens);
            VEC_START(&j->choices[i].tops);
        }
    hash_pages(s, j);
    return j;
}

static weft_status queue_job(weft_diag *dg, scheduler *s, job *j, sched_id *out_id)
{
    weft_status st = WEFT_OK;
    mem_lock(&s->lock);
    if (s->draining)
        st = weft_fail(dg, W1851, WEFT_NOWHERE, "no more requests are taken: it is going down");
    else if (s->single || (j->o.with && s->there > 0))
        st = weft_fail(dg, W1850, WEFT_NOWHERE, "a text that runs alone is there, or others are");
    else if (s->queued >= s->o.queue_max)
        st = weft_fail(dg, W1850, WEFT_NOWHERE, "%lld requests wait, which is the most",
                       (long long)s->queued);
    if (st == WEFT_OK) {
        VEC_PUSH(&s->inbox, j);
        s->queued++;
        s->there++;
        s->single = j->o.with != NULL;
        *out_id = j->id = ++s->n_job;
        sched_share_join(s->shares, SCHED_SHARES_MAX, (int32_t)j->o.share);
        pthread_cond_signal(&s->wake);
    } else {
        s->shown.refused++;
    }
    mem_unlock(&s->lock);
    return st;
}

static weft_status add(weft_diag *dg, scheduler *s, const sched_job *o, sched_id *out_id)
{
    MEM_SCOPE(scope);
    if (sigsetjmp(scope.env, 0) != 0)
        return diag_fail_memory(dg, scope.bytes);
    WEFT_TRY(check_job(dg, s, o));
    job *j = make_job(s, o);
    weft_status st = queue_job(dg, s, j, out_id);
    if (st != WEFT_OK) {
        j->o.filter = NULL; /* the caller of this destroys it */
        if (o->with)
            j->choices[0].g = NULL;
        job_destroy(j);
    }
    return st;
}

weft_status scheduler_add(weft_diag *dg, scheduler *s, const sched_job *o, sched_id *out_id)
{
    weft_status st = add(dg, s, o, out_id);
    if (st != WEFT_OK && o->filter)
        o->filter->kind->destroy(o->filter);
    return st;
}

void scheduler_cancel(scheduler *s, sched_id id)
{
    MEM_SCOPE(scope);
    if (sigsetjmp(scope.env, 0) != 0)
        return; /* it goes on to its end: nothing worse */
    mem_lock(&s->lock);
    if (id > 0 && id <= s->n_job && s->there > 0) {
        VEC_PUSH(&s->cancels, id);
        pthread_cond_signal(&s->wake);
    }
    mem_unlock(&s->lock);
}

void scheduler_drain(scheduler *s, int64_t timeout_ms)
{
    uint64_t ms = (uint64_t)min64(timeout_ms > 0 ? timeout_ms : 0, TIME_MAX_MS);
    pthread_mutex_lock(&s->lock);
    s->draining = true;
    s->drain_ns = clock_ns() + ms * NS_PER_MS;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

weft_status scheduler_reload(weft_diag *dg, scheduler *s, const char *name)
{
    MEM_SCOPE(scope);
    if (sigsetjmp(scope.env, 0) != 0)
        return diag_fail_memory(dg, scope.bytes);
    size_t n = name ? strlen(name) : 0;
    char *copy = mem_alloc(n + 1);
    memcpy(copy, name ? name : "", n);
    copy[n] = '\0';
    mem_lock(&s->lock);
    VEC_PUSH(&s->reloads, copy);
    pthread_cond_signal(&s->wake);
    mem_unlock(&s->lock);
    return WEFT_OK;
}

weft_status scheduler_share(weft_diag *dg, scheduler *s, uint32_t share, double weight)
{
    if (share >= SCHED_SHARES_MAX || !(weight > 0) || !isfinite(weight))
        return weft_fail(dg, W1406, WEFT_NOWHERE,
                         "share %u with weight %g: there are %d, and a weight is above 0",
                         (unsigned)share, weight, SCHED_SHARES_MAX);
    pthread_mutex_lock(&s->lock);
    s->shares[share].weight = weight;
    pthread_mutex_unlock(&s->lock);
    return WEFT_OK;
}

/* ---- waiting ---- */

/* The date in so many ns. Not every system lets a condition wait by another clock; should the date jump, a wait is as much longer. */
static struct timespec date_in(uint64_t ns)
{
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    ns += (uint64_t)at.tv_nsec;
    at.tv_sec += (time_t)(ns / CLOCK_NS_PER_S);
    at.tv_nsec = (long)(ns % CLOCK_NS_PER_S);
    return at;
}

bool scheduler_wait(scheduler *s, int64_t timeout_ms)
{
    bool forever = timeout_ms == SCHED_FOREVER;
    struct timespec end =
        date_in((uint64_t)min64(timeout_ms > 0 ? timeout_ms : 0, TIME_MAX_MS) * NS_PER_MS);
    int rc = 0;
    pthread_mutex_lock(&s->lock);
    while (s->there == 0 && !s->draining && s->reloads.n == 0 && rc != ETIMEDOUT)
        rc = forever ? pthread_cond_wait(&s->wake, &s->lock)
                     : pthread_cond_timedwait(&s->wake, &s->lock, &end);
    bool more = s->there > 0 || !s->draining;
    pthread_mutex_unlock(&s->lock);
    return more;
}

/* Only the thread that steps changes what was added to nothing; others may add meanwhile. */
bool scheduler_idle(const scheduler *s)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)&s->lock;
    pthread_mutex_lock(lock);
    bool idle = s->there == 0;
    pthread_mutex_unlock(lock);
    return idle;
}

/* ---- numbers ---- */

sched_stats scheduler_stats(scheduler *s)
{
    pthread_mutex_lock(&s->lock);
    sched_stats now = s->shown;
    now.waiting += (int64_t)s->inbox.n;
    pthread_mutex_unlock(&s->lock);
    return now;
}

int64_t scheduler_list(scheduler *s, sched_row *out, int64_t n_max)
{
    pthread_mutex_lock(&s->lock);
    int64_t n = (int64_t)s->rows.n;
    if (n > 0 && n_max > 0)
        memcpy(out, s->rows.at, (size_t)min64(n, n_max) * sizeof *out);
    pthread_mutex_unlock(&s->lock);
    return n;
}
