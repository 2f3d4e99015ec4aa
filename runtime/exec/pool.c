/* pool.c - workers that sleep until a job is listed, join it, and claim ranges of its units.
 *
 * A job lies on its caller's stack. The caller lists it, works on it, takes it off the list, and waits
 * for those that joined; so a job with no free worker is simply done by its caller. */
#include "runtime/exec/pool.h"

#include "runtime/base/file.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

/* Ranges per thread: more even out threads of uneven speed, fewer cost less claiming. */
enum { RANGES_PER_THREAD = 4 };

typedef struct job job;
struct job {
    pool_fn *fn;
    void *ctx;
    int64_t units, range;
    int threads;
    atomic_int_least64_t next; /* the first unit that nobody claimed */
    int joined;                /* threads that came, the caller included; pool.lock */
    int busy;                  /* workers that came and have not left; pool.lock */
    job *later;                /* in the list of jobs; pool.lock */
};

static struct {
    pthread_mutex_t life; /* held while workers start and stop; guards users, worker */
    int users;
    pthread_t worker[POOL_THREADS_MAX];

    pthread_mutex_t lock; /* guards what follows; taken after life */
    pthread_cond_t work;  /* a job was listed, or the workers shall stop */
    pthread_cond_t left;  /* the last worker left a job */
    job *jobs;
    int n_worker;
    bool stop;
} pool = {.life = PTHREAD_MUTEX_INITIALIZER,
          .lock = PTHREAD_MUTEX_INITIALIZER,
          .work = PTHREAD_COND_INITIALIZER,
          .left = PTHREAD_COND_INITIALIZER};

static void job_work(job *j, int index)
{
    for (;;) {
        int64_t begin = atomic_fetch_add_explicit(&j->next, j->range, memory_order_relaxed);
        if (begin >= j->units)
            return;
        int64_t end = j->units - begin < j->range ? j->units : begin + j->range;
        j->fn(j->ctx, index, begin, end);
    }
}

static job *find_job(void)
{
    for (job *j = pool.jobs; j; j = j->later)
        if (j->joined < j->threads &&
            atomic_load_explicit(&j->next, memory_order_relaxed) < j->units)
            return j;
    return NULL;
}

static void *worker_main(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&pool.lock);
    while (!pool.stop) {
        job *j = find_job();
        if (!j) {
            pthread_cond_wait(&pool.work, &pool.lock);
            continue;
        }
        int index = j->joined++;
        j->busy++;
        pthread_mutex_unlock(&pool.lock);
        job_work(j, index);
        pthread_mutex_lock(&pool.lock);
        if (--j->busy == 0)
            pthread_cond_broadcast(&pool.left);
    }
    pthread_mutex_unlock(&pool.lock);
    return NULL;
}

void pool_run(int threads, int64_t units, pool_fn *fn, void *ctx)
{
    if (units <= 0)
        return;
    if (threads <= 1 || units == 1) {
        fn(ctx, 0, 0, units);
        return;
    }
    int64_t ranges = (int64_t)threads * RANGES_PER_THREAD;
    job j = {.fn = fn,
             .ctx = ctx,
             .units = units,
             .range = units / ranges + (units % ranges != 0),
             .threads = threads,
             .joined = 1};
    pthread_mutex_lock(&pool.lock);
    job **end = &pool.jobs; /* the oldest is served first */
    while (*end)
        end = &(*end)->later;
    *end = &j;
    pthread_cond_broadcast(&pool.work);
    pthread_mutex_unlock(&pool.lock);

    job_work(&j, 0);

    pthread_mutex_lock(&pool.lock);
    job **at = &pool.jobs;
    while (*at != &j)
        at = &(*at)->later;
    *at = j.later;
    while (j.busy > 0)
        pthread_cond_wait(&pool.left, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
}

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
        error = pthread_create(&pool.worker[have], NULL, worker_main, NULL);
        if (error == 0)
            have++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_mutex_lock(&pool.lock);
    pool.n_worker = have;
    pthread_mutex_unlock(&pool.lock);
    return error;
}

/* Called with life held. */
static void stop_workers(void)
{
    pthread_mutex_lock(&pool.lock);
    int n = pool.n_worker;
    pool.stop = true;
    pthread_cond_broadcast(&pool.work);
    pthread_mutex_unlock(&pool.lock);
    for (int i = 0; i < n; i++)
        pthread_join(pool.worker[i], NULL);
    pthread_mutex_lock(&pool.lock);
    pool.n_worker = 0;
    pool.stop = false;
    pthread_mutex_unlock(&pool.lock);
}

weft_status pool_acquire(weft_diag *dg, int threads)
{
    WEFT_ASSERT(threads >= 1 && threads <= POOL_THREADS_MAX);
    pthread_mutex_lock(&pool.life);
    int error = add_workers(threads - 1);
    if (error == 0)
        pool.users++;
    else if (pool.users == 0)
        stop_workers();
    pthread_mutex_unlock(&pool.life);
    if (error)
        return weft_fail(dg, W1601, WEFT_NOWHERE, "%d threads cannot be started: %s", threads,
                         file_reason_of(error).text);
    return WEFT_OK;
}

void pool_release(void)
{
    pthread_mutex_lock(&pool.life);
    WEFT_ASSERT(pool.users > 0);
    if (--pool.users == 0)
        stop_workers();
    pthread_mutex_unlock(&pool.life);
}

int pool_workers(void)
{
    pthread_mutex_lock(&pool.lock);
    int n = pool.n_worker;
    pthread_mutex_unlock(&pool.lock);
    return n;
}
