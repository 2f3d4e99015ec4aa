/* pool.h - the threads of this process, shared by every session.
 *
 *     pool_gang g;
 *     pool_gather(&g, threads);       the caller and those workers that are idle now, g.count in all
 *     pool_go(&g, fn, ctx);           fn(ctx, index, count) on each of them; returns when all are done
 *
 * The caller always works too and waits for no worker that is busy, so several threads may run work at
 * the same time: they share the workers. Workers live from the first pool_acquire to the last
 * pool_release; an idle one stays awake for a moment, so that runs which follow each other closely need
 * not wake it. All functions may be called from any thread, but not by work that runs in the pool. A
 * child of fork(2) begins with an empty pool: what was acquired before the fork must not be used or released there, which
 * pool_forks says. */
#ifndef WEFT_RUNTIME_EXEC_POOL_H
#define WEFT_RUNTIME_EXEC_POOL_H

#include "runtime/base/diag.h"

enum { POOL_THREADS_MAX = 1024 };

/* See to it that there are workers for runs by `threads` threads, 1 to POOL_THREADS_MAX, the caller
 * among them. pin: bind each worker to a CPU of its own as far as they go, the first left to callers; it
 * stays so until the workers end, and does nothing where threads_pin does nothing. W1601 if the system
 * gives no threads; then nothing is held. */
weft_status pool_acquire(weft_diag *dg, int threads, bool pin) WEFT_MUST_USE;
void pool_release(void); /* one for each pool_acquire that succeeded */

typedef struct pool_worker pool_worker;

typedef struct {
    int count;        /* threads of this run, at least 1 */
    uint64_t spin_ns; /* how long its threads should wait for each other awake; may be set to 0 */
    pool_worker *first;
} pool_gang;

/* Take idle workers, at most threads - 1; pool_go must follow. */
void pool_gather(pool_gang *g, int threads);
typedef void pool_fn(void *ctx, int index, int count);
void pool_go(pool_gang *g, pool_fn *fn, void *ctx);

unsigned pool_forks(void); /* differs from what it was iff this is a child of that process */
int pool_workers(void);    /* threads there are now, callers not counted */

#endif
