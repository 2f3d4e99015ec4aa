/* session_look.c - into a session while it runs, part by part: the time of steps, and the values that they leave. */
#include "runtime/exec/session_impl.h"

const plan *session_plan_of(const session *s)
{
    return s->p;
}

plan_parts session_plans_of(const session *s)
{
    plan_parts plans = {.n_part = s->n_part};
    for (int32_t i = 0; i < s->n_part; i++)
        plans.part[i] = (plan_part){.p = s->part[i].p,
                                    .card = s->part[i].dev != device_cpu(),
                                    .n_in = s->part[i].n_in,
                                    .in = s->part[i].in};
    return plans;
}

const weights *session_weights(const session *s, int32_t part)
{
    return s->part[part].w;
}

/* ---- times ---- */

static void profile(session *s, bool on)
{
    for (int32_t i = 0; i < s->n_part; i++)
        s->part[i].dev->kind->profile(s->part[i].e, on);
}

void session_profile_begin(session *s)
{
    session_settle(s);
    profile(s, true);
}

void session_profile_end(session *s)
{
    profile(s, false);
}

const step_time *session_profile_steps(const session *s, int32_t part, int32_t bucket)
{
    const session_part *x = &s->part[part];
    return x->dev->kind->profile_steps(x->e, bucket);
}

uint64_t session_wait_ns(const session *s, int32_t part)
{
    const session_part *x = &s->part[part];
    return x->dev->kind->stats(x->e).wait_ns;
}

uint64_t session_barriers(const session *s)
{
    uint64_t n = 0;
    for (int32_t i = 0; i < s->n_part; i++)
        n += s->part[i].dev->kind->stats(s->part[i].e).barriers;
    return n;
}

int32_t session_images(const session *s)
{
    int32_t n = 0;
    for (int32_t i = 0; i < s->n_part; i++)
        n += s->part[i].dev->kind->stats(s->part[i].e).images;
    return n;
}

/* ---- values ---- */

void session_watch(session *s, int32_t part, device_watch *after_phase, void *ctx)
{
    session_part *x = &s->part[part];
    session_settle(s);
    x->watch = after_phase;
    x->watch_ctx = ctx;
    x->dev->kind->watch(x->e, after_phase, ctx);
}

weft_status session_arena_read(weft_diag *dg, const session *s, int32_t part, int64_t offset,
                               void *to, size_t bytes)
{
    const session_part *x = &s->part[part];
    return x->dev->kind->read(dg, x->e, (size_t)offset, to, bytes);
}

weft_status session_arena_write(weft_diag *dg, session *s, int32_t part, int64_t offset,
                                const void *from, size_t bytes)
{
    const session_part *x = &s->part[part];
    session_settle(s);
    return x->dev->kind->write(dg, x->e, (size_t)offset, from, bytes);
}
