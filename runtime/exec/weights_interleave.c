/* weights_interleave.c - rows of the checkpoint interleaved into groups of eight, by all threads.
 *
 * The work is cut into runs of groups, so that one large matrix keeps every thread busy. */
#include "runtime/exec/weights_cpu.h"

#include "runtime/base/mem.h"
#include "runtime/base/vec.h"
#include "runtime/exec/pool.h"
#include <stdatomic.h>
#include <stdlib.h>

enum { RUN_BYTES = 1 << 20 };

typedef struct {
    weight_piece v;
    int64_t first, n; /* rows of it */
    char *to;
} interleave_run;

typedef struct {
    VEC(interleave_run) runs;
    size_t gather_bytes; /* a row of any piece, for each thread */
    char *gather;
    atomic_size_t next;
    weights_progress progress;
    const cancel_flag *cancel;
    uint64_t total; /* bytes */
    atomic_uint_least64_t done;
} interleave_job;

static void work(void *ctx, int index, int count)
{
    interleave_job *job = ctx;
    (void)count;
    for (;;) {
        size_t i = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
        if (i >= job->runs.n || cancel_asked(job->cancel))
            return;
        const interleave_run *run = &job->runs.at[i];
        weight_make(&run->v, run->first, run->n, run->to,
                    job->gather + (size_t)index * job->gather_bytes);
        uint64_t bytes = (uint64_t)run->n * run->v.row_bytes;
        uint64_t done = atomic_fetch_add_explicit(&job->done, bytes, memory_order_relaxed) + bytes;
        if (index == 0 && job->progress.report) /* the thread that called */
            job->progress.report(job->progress.ctx, done, job->total);
    }
}

static weft_status add_weight(weft_diag *dg, interleave_job *job, const plan_weight *w,
                              const weight_source *src, char *to)
{
    WEFT_TRY(weight_check(dg, w));
    for (int i = 0; i < w->n_piece; i++) {
        interleave_run run;
        WEFT_TRY(weight_find(dg, w, i, src, &run.v));
        size_t row = run.v.row_bytes;
        int64_t most = RUN_BYTES / (int64_t)row + 1;
        if (row > job->gather_bytes)
            job->gather_bytes = weight_block_end(0, row);
        for (run.first = 0; run.first < run.v.rows; run.first += run.n) {
            run.n = run.v.rows - run.first < most ? run.v.rows - run.first : most;
            run.to = to;
            VEC_PUSH(&job->runs, run);
            to += (size_t)run.n * row;
            job->total += (uint64_t)run.n * row;
        }
    }
    return WEFT_OK;
}

weft_status cpu_weights_interleave(weft_diag *dg, const plan *p, const weight_source *src,
                                   const weights_options *opt, char *to)
{
    interleave_job job = {.progress = opt->progress, .cancel = opt->cancel};
    int threads = opt->threads > 0 ? opt->threads : 1;
    size_t at = 0;
    weft_status status = WEFT_OK;
    for (int32_t i = 0; i < p->n_weight && status == WEFT_OK; i++) {
        const plan_weight *w = &p->weight[i];
        if (w->mode != WEIGHT_INTERLEAVED)
            continue;
        status = add_weight(dg, &job, w, src, to + at);
        at = weight_block_end(at, w->bytes);
    }
    if (status == WEFT_OK)
        status = pool_acquire(dg, threads, false);
    if (status == WEFT_OK) {
        pool_gang gang;
        job.gather = mem_alloc(job.gather_bytes * (size_t)threads + 1);
        pool_gather(&gang, threads);
        pool_go(&gang, work, &job);
        pool_release();
        if (atomic_load_explicit(&job.done, memory_order_relaxed) != job.total)
            status = weight_cancelled(dg);
        else if (job.progress.report)
            job.progress.report(job.progress.ctx, job.total, job.total);
    }
    mem_free(job.gather);
    VEC_FREE(&job.runs);
    return status;
}
