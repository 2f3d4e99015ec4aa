/* exec_profile.c - how long steps take. Each thread counts for itself; after a run the counts of all are
 * brought together. */
#include "runtime/exec/exec_impl.h"

#include "runtime/base/mem.h"
#include <stdlib.h>

static int32_t steps_max(const plan *p)
{
    int32_t n = 0;
    for (int32_t i = 0; i < p->n_bucket; i++)
        if (p->bucket[i].n_step > n)
            n = p->bucket[i].n_step;
    return n;
}

/* Rounded up to whole cache lines, so that no two threads write to one. */
static size_t lines(size_t bytes)
{
    return (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

static exec_profile *profile_create(const exec *e)
{
    const plan *p = e->p;
    size_t threads = (size_t)e->threads, ns_bytes = lines((size_t)steps_max(p) * sizeof(uint64_t));
    size_t wait_bytes = lines(threads * sizeof(uint64_t)), all = lines(sizeof(exec_profile));
    all += lines((size_t)p->n_bucket * sizeof(step_time *));
    all += lines(threads * sizeof(uint64_t *)) + wait_bytes + mem_product(threads, ns_bytes);
    for (int32_t i = 0; i < p->n_bucket; i++)
        all += lines((size_t)p->bucket[i].n_step * sizeof(step_time));
    char *at = mem_alloc(all);
    memset(at, 0, all);
    exec_profile *f = (void *)at;
    at += lines(sizeof *f);
    f->steps = (void *)at;
    at += lines((size_t)p->n_bucket * sizeof *f->steps);
    f->ns = (void *)at;
    at += lines(threads * sizeof *f->ns);
    f->wait_ns = (void *)at;
    at += wait_bytes;
    for (size_t i = 0; i < threads; i++, at += ns_bytes)
        f->ns[i] = (void *)at;
    for (int32_t i = 0; i < p->n_bucket; i++) {
        f->steps[i] = (void *)at;
        at += lines((size_t)p->bucket[i].n_step * sizeof(step_time));
    }
    return f;
}

void exec_profile_set(exec *e, bool on)
{
    if (on) {
        mem_free(e->prof);
        e->prof = NULL; /* so it stays where memory is short */
        e->prof = profile_create(e);
    }
    if (e->prof)
        e->prof->on = on;
}

const step_time *exec_profile_steps(const exec *e, int32_t bucket)
{
    WEFT_ASSERT(bucket >= 0 && bucket < e->p->n_bucket);
    return e->prof ? e->prof->steps[bucket] : NULL;
}

void exec_profile_start(exec *e)
{
    size_t n = (size_t)steps_max(e->p);
    for (int i = 0; i < e->threads; i++) {
        memset(e->prof->ns[i], 0, n * sizeof(uint64_t));
        e->prof->wait_ns[i] = 0;
    }
}

void exec_profile_add(exec *e, const cpu_bucket *b)
{
    exec_profile *f = e->prof;
    const size_t pitch = lines((size_t)steps_max(e->p) * sizeof(uint64_t)) / sizeof(uint64_t);
    exec_times_add(f->steps[b->plan - e->p->bucket], b->plan, b->rows, f->ns[0], pitch, e->threads);
    for (int t = 0; t < e->threads; t++)
        f->all_wait_ns += f->wait_ns[t];
}
