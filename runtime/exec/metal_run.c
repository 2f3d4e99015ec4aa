/* metal_run.c - a call on a GPU: its tables are made ready, its phases become dispatches of one command buffer, and somebody
 * waits.
 *
 * A dispatch sees what the ones before a barrier wrote, so there is one behind each phase. Where somebody watches or measures,
 * each phase is a command buffer. */
#include "runtime/exec/metal_impl.h"

#include "runtime/base/clock.h"
#include <inttypes.h>
#include <time.h>

/* ---- cancelling ---- */

/* The word by which the GPU hears of it. */
static uint32_t *cancel_word(const exec *e)
{
    return (uint32_t *)(void *)(e->tables->p + e->cancel_at);
}

bool metal_is_cancelled(const exec *e)
{
    return *cancel_word(e) != 0;
}

/* What was asked of calls that are under way stays so. */
void metal_cancel_begin(exec *e)
{
    if (e->calls == 0 || cancel_asked(e->cancel))
        __atomic_store_n(cancel_word(e), cancel_asked(e->cancel), __ATOMIC_RELAXED);
}

weft_status metal_cancelled(weft_diag *dg, const exec *e)
{
    return weft_fail(dg, W1412, WEFT_NOWHERE, "evaluating %" PRId64 " rows was cancelled",
                     e->n_tok);
}

/* ---- calls ---- */

weft_status metal_begin(weft_diag *dg, exec *e, const kbatch *b, metal_bucket **out_c)
{
    metal_bucket *c = &e->buckets[plan_bucket_for(e->p, b->n_tok) - e->p->bucket];
    WEFT_ASSERT(kbatch_bytes(b) <= e->part.batch_end - e->part.batch);
    memcpy(metal_part(e, e->turn, e->part.batch), b, kbatch_bytes(b));
    WEFT_TRY(metal_prepare(dg, e, c, b));
    e->n_tok = b->n_tok;
    e->barriers = (uint64_t)c->of[metal_which(e->turn)].n_phase;
    *out_c = c;
    return WEFT_OK;
}

/* As kernels see a part of the tables. */
static uint64_t seen_at(const exec *e, const void *part)
{
    return e->tables->at + (uint64_t)((const char *)part - e->tables->p);
}

void metal_dispatch(exec *e, metal_bucket *c, metal_call *call, int32_t first, int32_t end)
{
    const metal_tables *t = &c->of[metal_which(e->turn)];
    metal_run run = {.shape = seen_at(e, c->shapes),
                     .step = seen_at(e, t->steps),
                     .item = seen_at(e, t->items),
                     .batch = metal_part_at(e, e->turn, e->part.batch),
                     .lora = e->lora ? metal_part_at(e, e->turn, e->part.lora) : 0,
                     .blocks = e->blocks ? e->blocks->at : 0,
                     .cancel = e->cancel ? e->tables->at + e->cancel_at : 0,
                     .block_bytes = (uint32_t)e->block_bytes,
                     .local_bytes = (uint32_t)c->local_bytes};
    for (int32_t i = first; i < end; i++) {
        run.phase = seen_at(e, &t->phases[i]);
        e->d->driver->dispatch(call, t->pipe[i], &run, sizeof run, e->d->groups, METAL_BLOCK,
                               t->shared[i]);
        e->d->driver->barrier(call);
    }
}

/* Phases [first, end) as a command buffer, begun. */
static weft_status run_phases(weft_diag *dg, exec *e, metal_bucket *c, int32_t first, int32_t end)
{
    metal_why why;
    metal_call *call = &e->call[metal_which(e->turn)];
    if (!e->d->driver->begin(e->queue, call, &why))
        return metal_fail(dg, e->d, "beginning a call", &why);
    metal_dispatch(e, c, call, first, end);
    e->d->driver->commit(e->queue, call);
    return WEFT_OK;
}

weft_status metal_submit(weft_diag *dg, exec *e, const kbatch *b)
{
    metal_bucket *c;
    WEFT_ASSERT(!e->now && e->calls == 0);
    metal_cancel_begin(e);
    e->turn++;
    WEFT_TRY(metal_begin(dg, e, b, &c));
    if (!e->watch && !e->measure)
        WEFT_TRY(run_phases(dg, e, c, 0, c->of[metal_which(e->turn)].n_phase));
    e->now = c;
    return WEFT_OK;
}

/* Awake for the time that a decoded token takes; then asleep for moments. */
enum { AWAKE_NS = 2000000, SLEEP_NS = 50000 };

weft_status metal_finish(weft_diag *dg, exec *e, metal_call *call, double *out_s)
{
    metal_why why;
    const uint64_t began = clock_ns();
    while (e->cancel && !e->d->driver->is_over(call)) {
        if (cancel_asked(e->cancel))
            __atomic_store_n(cancel_word(e), 1, __ATOMIC_RELAXED);
        if (clock_ns() - began > AWAKE_NS)
            nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
    }
    if (!e->d->driver->wait(call, out_s, &why))
        return metal_fail(dg, e->d, "running the plan", &why);
    return WEFT_OK;
}

/* Until a call, or a phase of it, is over. */
static weft_status wait_done(weft_diag *dg, exec *e, double *out_s)
{
    WEFT_TRY(metal_finish(dg, e, &e->call[metal_which(e->turn)], out_s));
    return metal_is_cancelled(e) ? metal_cancelled(dg, e) : WEFT_OK;
}

/* One by one; somebody looks at what each made, or how long it took. */
static weft_status wait_phases(weft_diag *dg, exec *e, metal_bucket *c)
{
    const metal_tables *t = &c->of[metal_which(e->turn)];
    for (int32_t i = 0; i < t->n_phase; i++) {
        double s = 0;
        WEFT_TRY(run_phases(dg, e, c, i, i + 1));
        WEFT_TRY(wait_done(dg, e, &s));
        if (e->watch)
            WEFT_TRY(e->watch(e->watch_ctx, dg, (int32_t)(c->plan - e->p->bucket),
                              c->plan->item[t->phases[i].first].phase));
        else
            metal_profile_phase(e, c, i, s);
    }
    if (!e->watch)
        metal_profile_add(e, c);
    return WEFT_OK;
}

weft_status metal_wait(weft_diag *dg, exec *e)
{
    metal_bucket *c = e->now;
    double s;
    WEFT_ASSERT(c);
    e->now = NULL;
    return e->watch || e->measure ? wait_phases(dg, e, c) : wait_done(dg, e, &s);
}
