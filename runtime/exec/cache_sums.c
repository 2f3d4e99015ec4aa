/* cache_sums.c - threads take runs of chunks in order, so that a file on a disk is read from its beginning to its end. */
#include "runtime/exec/cache_sums.h"

#include "runtime/base/checksum.h"
#include "runtime/exec/pool.h"
#include <stdatomic.h>

enum { RUN_CHUNKS = 16 };

typedef struct {
    const char *data;
    uint64_t bytes;
    size_t n_chunk;
    uint64_t *to;         /* where the sums go; NULL: compare */
    const uint64_t *with; /* what they are compared with */
    const cancel_flag *cancel;
    atomic_size_t next, done;  /* chunks */
    atomic_uint_least64_t bad; /* offset */
} sums_job;

size_t cache_sums_count(uint64_t bytes)
{
    return (size_t)(bytes / CACHE_CHUNK_BYTES + (bytes % CACHE_CHUNK_BYTES != 0));
}

static uint64_t sum_chunk(const char *data, uint64_t bytes, size_t i)
{
    uint64_t at = (uint64_t)i * CACHE_CHUNK_BYTES, left = bytes - at;
    return checksum(data + at, left < CACHE_CHUNK_BYTES ? (size_t)left : CACHE_CHUNK_BYTES);
}

static void work(void *ctx, int index, int count)
{
    sums_job *job = ctx;
    (void)index, (void)count;
    for (;;) {
        size_t first = atomic_fetch_add_explicit(&job->next, RUN_CHUNKS, memory_order_relaxed);
        if (first >= job->n_chunk || cancel_asked(job->cancel))
            return;
        size_t n = job->n_chunk - first < RUN_CHUNKS ? job->n_chunk - first : RUN_CHUNKS;
        for (size_t i = first; i < first + n; i++) {
            uint64_t sum = sum_chunk(job->data, job->bytes, i);
            if (job->to)
                job->to[i] = sum;
            else if (sum != job->with[i])
                atomic_store_explicit(&job->bad, (uint64_t)i * CACHE_CHUNK_BYTES,
                                      memory_order_relaxed);
        }
        atomic_fetch_add_explicit(&job->done, n, memory_order_relaxed);
    }
}

static weft_status run(weft_diag *dg, sums_job *job, interleave_work how)
{
    job->n_chunk = cache_sums_count(job->bytes);
    job->cancel = how.cancel;
    atomic_init(&job->bad, CACHE_NOTHING_BAD);
    if (how.threads > 1 && job->n_chunk > RUN_CHUNKS) {
        pool_gang gang;
        WEFT_TRY(pool_acquire(dg, how.threads, false));
        pool_gather(&gang, how.threads);
        pool_go(&gang, work, job);
        pool_release();
    } else {
        work(job, 0, 1);
    }
    if (atomic_load_explicit(&job->done, memory_order_relaxed) != job->n_chunk)
        return weft_fail(dg, W1412, WEFT_NOWHERE, "checking the weights was cancelled");
    return WEFT_OK;
}

weft_status cache_sums_make(weft_diag *dg, const char *data, uint64_t bytes, interleave_work how,
                            uint64_t *sums)
{
    sums_job job = {.data = data, .bytes = bytes, .to = sums};
    return run(dg, &job, how);
}

weft_status cache_sums_check(weft_diag *dg, const char *data, uint64_t bytes, interleave_work how,
                             const uint64_t *sums, uint64_t *out_bad)
{
    sums_job job = {.data = data, .bytes = bytes, .with = sums};
    WEFT_TRY(run(dg, &job, how));
    *out_bad = atomic_load_explicit(&job.bad, memory_order_relaxed);
    return WEFT_OK;
}

uint64_t cache_sums_sample(const char *data, uint64_t bytes, const uint64_t *sums, uint64_t seed)
{
    size_t n = cache_sums_count(bytes);
    for (int i = 0; i < CACHE_SAMPLE_CHUNKS && n > 0; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        size_t at = (size_t)((seed >> 16) % n);
        if (sum_chunk(data, bytes, at) != sums[at])
            return (uint64_t)at * CACHE_CHUNK_BYTES;
    }
    return CACHE_NOTHING_BAD;
}
