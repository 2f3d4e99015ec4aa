/* metal_profile.c - how long steps take on a GPU. A call that is measured runs an item at a time, whose time on the GPU Metal
 * tells; that of an item of several steps is shared out by the bytes that each moves, as the plan has them. */
#include "runtime/exec/metal_impl.h"

#include "runtime/base/mem.h"

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

void metal_profile_set(exec *e, bool on)
{
    if (on) {
        step_time **fresh = times_create(e->p);
        mem_free(e->times);
        e->times = fresh;
    }
    e->measure = on;
}

const step_time *metal_profile_steps(const exec *e, int32_t bucket)
{
    WEFT_ASSERT(bucket >= 0 && bucket < e->p->n_bucket);
    return e->times ? e->times[bucket] : NULL;
}

/* Never 0, so that all of an item's time is somebody's. */
static double bytes_of(const plan_step *s, int64_t rows)
{
    return 1 + (double)s->cost.call_bytes + (double)rows * (double)s->cost.row_bytes;
}

void metal_profile_phase(exec *e, const metal_bucket *c, int32_t i, double s)
{
    const metal_tables *t = &c->of[metal_which(e->turn)];
    const plan_item *it = &c->plan->item[t->phases[i].first];
    double all = 0;
    for (int32_t k = it->first; k < it->first + it->n_step; k++)
        all += bytes_of(&c->plan->step[k], t->steps[k].rows);
    for (int32_t k = it->first; k < it->first + it->n_step; k++)
        e->ns[k] = (uint64_t)(s * 1e9 * bytes_of(&c->plan->step[k], t->steps[k].rows) / all);
}

void metal_profile_add(exec *e, const metal_bucket *c)
{
    const metal_tables *t = &c->of[metal_which(e->turn)];
    exec_times_add(e->times[c->plan - e->p->bucket], c->plan, t->n_row, e->ns, 0, e->d->groups);
    memset(e->ns, 0, (size_t)c->plan->n_step * sizeof *e->ns);
}
