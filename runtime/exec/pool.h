/* pool.h - the threads of this process, shared by every session.
 *
 * A step is cut into units; whoever is free claims the next few. The calling thread always works too,
 * so a run ends whatever the other threads do, and several threads may run work at the same time:
 * they share the workers. Workers live from the first pool_acquire to the last pool_release.
 * All functions may be called from any thread, but not by work that runs in the pool, and not in a
 * child that was forked while the pool was held. */
#ifndef WEFT_RUNTIME_EXEC_POOL_H
#define WEFT_RUNTIME_EXEC_POOL_H

#include "runtime/base/diag.h"

enum { POOL_THREADS_MAX = 1024 };

/* See to it that there are workers for runs by `threads` threads, 1 to POOL_THREADS_MAX, the caller
 * among them. W1601 if the system gives none; then nothing is held. */
weft_status pool_acquire(weft_diag *dg, int threads) WEFT_MUST_USE;
void pool_release(void); /* one for each pool_acquire that succeeded */

/* Computes units [begin, end) as thread `index`; no two threads of one run have the same. */
typedef void pool_fn(void *ctx, int index, int64_t begin, int64_t end);

/* Have units [0, units) computed by at most `threads` threads; returns when all are done. */
void pool_run(int threads, int64_t units, pool_fn *fn, void *ctx);

int pool_workers(void); /* threads there are now, callers not counted */

#endif
