/* pool.c - workers that each wait for a bell, and runs that take the idle ones.
 *
 * A worker belongs to who set `taken`; only that thread writes what it shall do and rings its bell. It
 * is free again before its run ends, so that the next run of the same caller finds it. */
#include "runtime/exec/pool.h"

#include "runtime/base/file.h"
#include "runtime/base/mem_scope.h"
#include "runtime/base/threads.h"
#include "runtime/exec/barrier.h"
#include <signal.h>

/* The wait of a worker between two tokens, which includes sampling; and of threads at a barrier, which
 * is what the slowest needs for its last range. Waking a thread takes some 50 us. */
enum { IDLE_SPIN_NS = 200 * 1000, BARRIER_SPIN_NS = 50 * 1000 };

typedef struct {
    pool_fn *fn;
    void *ctx;
    int count;
    bool awake;      /* its workers stay so for a while afterwards */
    atomic_int busy; /* workers that have not left yet */
} run;

struct pool_worker {
    bell work; /* rings for each run */
    atomic_bool taken;
    /* Of who took it; the worker reads them once it was rung. */
    run *r; /* NULL: end */
    int index;
    pool_worker *next;
    pthread_t thread; /* pool.life */
};

static struct {
    pthread_mutex_t life; /* held while workers start and stop; guards users */
    int users;
    atomic_int n_worker; /* changed with life held */
    atomic_int cores;    /* that this process may use; as above */
    atomic_uint forks;   /* of this process and those it comes from, while the pool was there */
    atomic_int active;   /* threads in runs, callers included */
    bell left;           /* rings when the last worker left a run */
    pool_worker worker[POOL_THREADS_MAX];
} pool = {.life = PTHREAD_MUTEX_INITIALIZER, .left = BELL_INIT};

static uint64_t idle_spin_ns(void)
{
    return atomic_load(&pool.n_worker) < atomic_load(&pool.cores) ? IDLE_SPIN_NS : 0;
}

static void *worker_main(void *arg)
{
    pool_worker *w = arg;
    bool awake = true;
    for (unsigned heard = 0;; heard++) {
        bell_wait(&w->work, heard, awake ? idle_spin_ns() : 0);
        run *r = w->r;
        if (!r)
            return NULL;
        awake = r->awake;
        r->fn(r->ctx, w->index, r->count);
        atomic_store_explicit(&w->taken, false, memory_order_release);
        if (atomic_fetch_sub(&r->busy, 1) == 1) /* r is gone once the last has left */
            bell_ring(&pool.left);
    }
}

/* ---- runs ---- */

static bool take(pool_worker *w)
{
    return !atomic_load_explicit(&w->taken, memory_order_relaxed) &&
           !atomic_exchange_explicit(&w->taken, true, memory_order_acquire);
}

void pool_gather(pool_gang *g, int threads)
{
    *g = (pool_gang){.count = 1};
    int n = atomic_load_explicit(&pool.n_worker, memory_order_acquire);
    pool_worker **end = &g->first;
    for (int i = 0; i < n && g->count < threads; i++) {
        pool_worker *w = &pool.worker[i];
        if (!take(w))
            continue;
        w->index = g->count++;
        *end = w;
        end = &w->next;
    }
    *end = NULL;
    /* Where threads share a CPU, waiting awake keeps the one that is waited for from running. */
    int active = atomic_fetch_add(&pool.active, g->count) + g->count;
    g->spin_ns = active <= atomic_load(&pool.cores) ? BARRIER_SPIN_NS : 0;
}

void pool_go(pool_gang *g, pool_fn *fn, void *ctx)
{
    run r = {
        .fn = fn, .ctx = ctx, .count = g->count, .awake = g->spin_ns > 0, .busy = g->count - 1};
    for (pool_worker *w = g->first, *next; w; w = next) {
        next = w->next; /* from the ring on it is not ours */
        w->r = &r;
        bell_ring(&w->work);
    }
    fn(ctx, 0, g->count);
    uint64_t spin_ns = g->spin_ns;
    for (;;) {
        unsigned heard = bell_rung(&pool.left);
        if (atomic_load(&r.busy) == 0)
            break;
        bell_wait(&pool.left, heard, spin_ns);
    }
    atomic_fetch_sub(&pool.active, g->count);
}

/* ---- life ---- */

/* Signals are the program's business; but a fault must reach the thread that caused it. */
static void block_signals(sigset_t *old)
{
    sigset_t set;
    sigfillset(&set);
    sigdelset(&set, SIGBUS);
    sigdelset(&set, SIGSEGV);
    sigdelset(&set, SIGFPE);
    sigdelset(&set, SIGILL);
    pthread_sigmask(SIG_SETMASK, &set, old);
}

/* Called with life held. Returns an errno value. */
static int add_workers(int want)
{
    sigset_t old;
    int error = 0, have = pool_workers();
    block_signals(&old);
    while (have < want && error == 0) {
        pool_worker *w = &pool.worker[have];
        bell_init(&w->work);
        atomic_store(&w->taken, false);
        error = pthread_create(&w->thread, NULL, worker_main, w);
        if (error == 0)
            atomic_store_explicit(&pool.n_worker, ++have, memory_order_release);
        else
            bell_deinit(&w->work);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return error;
}

/* Called with life held, while nobody uses the pool. */
static void stop_workers(void)
{
    int n = pool_workers();
    atomic_store(&pool.n_worker, 0);
    for (int i = 0; i < n; i++) {
        pool.worker[i].r = NULL;
        bell_ring(&pool.worker[i].work);
    }
    for (int i = 0; i < n; i++) {
        pthread_join(pool.worker[i].thread, NULL);
        bell_deinit(&pool.worker[i].work);
    }
}

/* Threads do not survive fork(2): the child begins with an empty pool. What it finds locked or half done was the business
 * of threads that it does not have. */
static void before_fork(void)
{
    pthread_mutex_lock(&pool.life);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&pool.life);
}

static void after_fork_in_child(void)
{
    pthread_mutex_init(&pool.life, NULL);
    bell_init(&pool.left);
    pool.users = 0;
    atomic_store(&pool.n_worker, 0);
    atomic_store(&pool.active, 0);
    atomic_fetch_add(&pool.forks, 1);
}

static void watch_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

unsigned pool_forks(void)
{
    return atomic_load_explicit(&pool.forks, memory_order_relaxed);
}

static void release_undone(void *none)
{
    (void)none;
    pool_release();
}

weft_status pool_acquire(weft_diag *dg, int threads, bool pin)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    WEFT_ASSERT(threads >= 1 && threads <= POOL_THREADS_MAX);
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&pool.life);
    bool first = pool.users == 0;
    pthread_mutex_unlock(&pool.life);
    int cores = first ? threads_default() : 0; /* without the lock: it takes memory */
    pthread_mutex_lock(&pool.life);
    if (cores)
        atomic_store(&pool.cores, cores);
    int error = add_workers(threads - 1);
    if (error == 0)
        pool.users++;
    else if (pool.users == 0)
        stop_workers();
    for (int i = 0; i < pool_workers() && pin; i++)
        threads_pin(pool.worker[i].thread, i + 1);
    pthread_mutex_unlock(&pool.life);
    if (error)
        return weft_fail(dg, W1601, WEFT_NOWHERE, "%d threads cannot be started: %s", threads,
                         file_reason_of(error).text);
    mem_scope_on_fail(release_undone, NULL);
    return WEFT_OK;
}

void pool_release(void)
{
    mem_scope_forget(release_undone, NULL);
    pthread_mutex_lock(&pool.life);
    WEFT_ASSERT(pool.users > 0);
    if (--pool.users == 0)
        stop_workers();
    pthread_mutex_unlock(&pool.life);
}

int pool_workers(void)
{
    return atomic_load(&pool.n_worker);
}
