/* weights_interleave.c - rows of the checkpoint interleaved into groups of eight, by all threads.
 *
 * The work is cut into runs of groups, so that one large matrix keeps every thread busy. */
#include "runtime/exec/weights_impl.h"

#include "runtime/base/checksum.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"
#include "runtime/exec/pool.h"
#include <stdatomic.h>
#include <stdlib.h>

enum { RUN_BYTES = 1 << 20 };

typedef struct {
    piece_view v;
    int64_t first, n; /* groups */
    char *to;
} interleave_run;

typedef struct {
    VEC(interleave_run) runs;
    size_t gather_bytes; /* eight rows of any weight, for each thread */
    char *gather;
    atomic_size_t next;
    weights_progress progress;
    const cancel_flag *cancel;
    uint64_t total; /* bytes */
    atomic_uint_least64_t done;
} interleave_job;

/* Row r of a piece, all axes but the last counted as one. */
static int64_t row_offset(const plan_weight *w, int64_t r)
{
    int64_t offset = 0;
    for (int axis = w->rank - 2; axis > 0; axis--) {
        offset += r % w->dim[axis] * w->stride[axis];
        r /= w->dim[axis];
    }
    return offset + r * w->stride[0];
}

static void do_run(const interleave_run *run, char *gather)
{
    const plan_weight *w = run->v.w;
    int64_t n = w->dim[w->rank - 1];
    size_t row_bytes = (size_t)w->pitch / LAYOUT_GROUP;
    bool direct = w->stored == w->type && dtype_row_of(w->stored)->elems > 1;
    for (int64_t g = 0; g < run->n; g++) {
        const void *rows[LAYOUT_GROUP];
        for (int i = 0; i < LAYOUT_GROUP; i++) {
            int64_t offset = row_offset(w, (run->first + g) * LAYOUT_GROUP + i);
            rows[i] = run->v.data + offset;
            if (direct)
                continue;
            char *to = gather + (size_t)i * row_bytes;
            weights_copy_row(w, run->v.data + offset,
                             run->v.scales ? run->v.scales + offset / HF_BLOCK_BYTES : NULL, to, n);
            rows[i] = to;
        }
        layout_interleave(w->layout, w->type, rows, n, run->to + g * w->pitch);
    }
}

static void work(void *ctx, int index, int count)
{
    interleave_job *job = ctx;
    (void)count;
    for (;;) {
        size_t i = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
        if (i >= job->runs.n || cancel_asked(job->cancel))
            return;
        const interleave_run *run = &job->runs.at[i];
        do_run(run, job->gather + (size_t)index * job->gather_bytes);
        uint64_t bytes = (uint64_t)(run->n * run->v.w->pitch);
        uint64_t done = atomic_fetch_add_explicit(&job->done, bytes, memory_order_relaxed) + bytes;
        if (index == 0 && job->progress.report) /* the thread that called */
            job->progress.report(job->progress.ctx, done, job->total);
    }
}

static weft_status add_weight(weft_diag *dg, interleave_job *job, const plan_weight *w,
                              const model_file *mf, char *to)
{
    WEFT_TRY(weights_check_rows(dg, w));
    if ((size_t)w->pitch > job->gather_bytes)
        job->gather_bytes = weights_block_end(0, (size_t)w->pitch);
    int64_t most = RUN_BYTES / w->pitch + 1;
    for (int i = 0; i < w->n_piece; i++) {
        interleave_run run = {.to = to};
        WEFT_TRY(weights_find_piece(dg, w, i, mf, &run.v));
        int64_t rows = run.v.rows;
        for (int axis = 1; axis < w->rank - 1; axis++)
            rows *= w->dim[axis];
        if (rows % LAYOUT_GROUP != 0) /* no group has rows of two pieces */
            return weights_misfit(dg, w, "its pieces are not groups of rows");
        for (int64_t g = 0; g < rows / LAYOUT_GROUP; g += run.n) {
            run.first = g;
            run.n = rows / LAYOUT_GROUP - g < most ? rows / LAYOUT_GROUP - g : most;
            VEC_PUSH(&job->runs, run);
            run.to += run.n * w->pitch;
            job->total += (uint64_t)(run.n * w->pitch);
        }
        to += rows / LAYOUT_GROUP * w->pitch;
    }
    return WEFT_OK;
}

weft_status weights_interleave(weft_diag *dg, const plan *p, const model_file *mf,
                               const weights_options *opt, char *interleaved)
{
    interleave_job job = {.gather = NULL};
    int threads = weights_threads(opt);
    if (opt) {
        job.progress = opt->progress;
        job.cancel = opt->cancel;
    }
    size_t at = 0;
    weft_status status = WEFT_OK;
    for (int32_t i = 0; i < p->n_weight && status == WEFT_OK; i++) {
        const plan_weight *w = &p->weight[i];
        if (w->mode != WEIGHT_INTERLEAVED)
            continue;
        status = add_weight(dg, &job, w, mf, interleaved + at);
        at = weights_block_end(at, w->bytes);
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
            status = weights_cancelled(dg);
        else if (job.progress.report)
            job.progress.report(job.progress.ctx, job.total, job.total);
    }
    mem_free(job.gather);
    VEC_FREE(&job.runs);
    return status;
}

/* ---- a sample ---- */

/* Two blocks of the largest type, and a step of four columns that is not whole. */
enum { SAMPLE_COLS = 512, SAMPLE_COLS_ODD = 11 };
enum { SAMPLE_BYTES = LAYOUT_GROUP * SAMPLE_COLS * sizeof(float) };

static void fill_sample(char *to, size_t bytes)
{
    uint32_t seed = 1;
    for (size_t i = 0; i < bytes; i++, seed = seed * 1664525u + 1013904223u)
        to[i] = (char)(seed >> 24);
}

uint64_t weights_interleave_sample(klayout l, dtype type, dtype stored)
{
    bool hf = stored == DT_MXFP4_HF && type == DT_MXFP4;
    if (l == LAYOUT_STORED || !layout_has(l, type) || (stored != type && !hf))
        return 0;
    bool blocks = dtype_row_of(type)->elems > 1;
    int64_t n = blocks ? SAMPLE_COLS : SAMPLE_COLS_ODD;
    size_t row = 0;
    bool whole = dtype_bytes(type, n, &row);
    WEFT_ASSERT(whole && row * LAYOUT_GROUP <= SAMPLE_BYTES);
    size_t stored_row = hf ? (size_t)n / HF_BLOCK_ELEMS * HF_BLOCK_BYTES : row;
    int64_t step = blocks ? 0 : (int64_t)dtype_row_of(stored)->bytes;
    const plan_weight w = {.layout = l,
                           .type = type,
                           .stored = stored,
                           .rank = 2,
                           .dim = {LAYOUT_GROUP, n},
                           .stride = {(int64_t)stored_row, step},
                           .pitch = (int64_t)(row * LAYOUT_GROUP)};
    char *data = mem_alloc(4 * SAMPLE_BYTES), *scales = data + SAMPLE_BYTES;
    char *gather = scales + SAMPLE_BYTES, *to = gather + SAMPLE_BYTES;
    fill_sample(data, 2 * SAMPLE_BYTES);
    interleave_run run = {
        .v = {.w = &w, .data = data, .scales = hf ? scales : NULL, .rows = LAYOUT_GROUP},
        .n = 1,
        .to = to};
    do_run(&run, gather);
    uint64_t sum = checksum(to, row * LAYOUT_GROUP);
    mem_free(data);
    return sum;
}
