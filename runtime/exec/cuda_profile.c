/* cuda_profile.c - how long steps take on a card. Each block counts for itself; after a call the counts of all are brought
 * together. */
#include "runtime/exec/cuda_impl.h"

#include "runtime/base/mem.h"

static size_t ns_bytes(const exec *e)
{
    return mem_product((size_t)e->d->blocks * (size_t)cuda_steps_max(e->p), sizeof(uint64_t));
}

/* One block: a table of all buckets, and behind it theirs. */
static step_time **times_create(const plan *p)
{
    size_t n = 0, head = (size_t)p->n_bucket * sizeof(step_time *);
    for (int32_t i = 0; i < p->n_bucket; i++)
        n += (size_t)p->bucket[i].n_step;
    size_t bytes = head + mem_product(n, sizeof(step_time));
    step_time **t = mem_alloc(bytes);
    memset(t, 0, bytes);
    step_time *at = (step_time *)(void *)((char *)t + head);
    for (int32_t i = 0; i < p->n_bucket; at += p->bucket[i++].n_step)
        t[i] = at;
    return t;
}

void cuda_profile_set(exec *e, bool on)
{
    if (on) {
        step_time **fresh = times_create(e->p);
        if (!e->ns)
            e->ns = mem_alloc(ns_bytes(e));
        mem_free(e->times);
        e->times = fresh;
    }
    e->measure = on;
}

const step_time *cuda_profile_steps(const exec *e, int32_t bucket)
{
    WEFT_ASSERT(bucket >= 0 && bucket < e->p->n_bucket);
    return e->times ? e->times[bucket] : NULL;
}

cu_result cuda_profile_start(exec *e)
{
    return e->d->driver->cuMemsetD8Async(cuda_at(e->card + e->at.ns), 0, ns_bytes(e), e->stream);
}

weft_status cuda_profile_add(weft_diag *dg, exec *e, const cuda_bucket *b)
{
    const size_t pitch = (size_t)b->plan->n_step;
    size_t bytes = (size_t)e->d->blocks * pitch * sizeof(uint64_t);
    WEFT_TRY(e->d->base.kind->copy_out(dg, &e->d->base, e->ns, e->card + e->at.ns, bytes));
    exec_times_add(e->times[b->plan - e->p->bucket], b->plan, b->n_row, e->ns, pitch, e->d->blocks);
    return WEFT_OK;
}
