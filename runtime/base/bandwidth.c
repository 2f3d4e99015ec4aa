/* bandwidth.c - each thread adds up its part of a large block, with hints far ahead of what it reads.
 *
 * A plain loop shows only two thirds of what some memories give (78 against 52 GB/s with two Neoverse-V1): the
 * hardware looks a few lines ahead, which is not enough requests in flight. How far ahead is best differs, so several
 * distances are tried, and the best of all passes counts: whatever disturbs a pass makes it slower, never faster.
 * Memory comes in whole lines, so touching a word of each moves them all. Pages of 2 MB, where the system has them,
 * keep the search for addresses out of the picture. */
#include "runtime/base/bandwidth.h"

#include "runtime/base/clock.h"
#include "runtime/base/memory.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LINE = 64, STEP = 4 * LINE, THREADS_MAX = 1024, PAGE_LARGE = 2 << 20 };

/* The block is four times the last cache, which may have 300 MB, and within these. All passes together read so much,
 * but each distance is tried twice. */
static const size_t block_least = (size_t)384 << 20, block_most = (size_t)2 << 30;
static const size_t all_bytes = (size_t)16 << 30;
enum { CACHES = 4, TRIES = 2 };
static const size_t ahead[] = {0, 8 << 10, 16 << 10, 24 << 10, 32 << 10, 64 << 10};
enum { DISTANCES = sizeof ahead / sizeof *ahead };

typedef struct {
    int threads;
    atomic_int arrived; /* at the barriers so far, all threads counted */
    atomic_bool stop;   /* a thread is missing: nobody may wait for it */
    double best;        /* thread 0 alone */
    const unsigned char *block;
    int passes;
    size_t part;          /* of each thread */
    _Atomic uint64_t sum; /* so that nothing is left out */
} team;

typedef struct {
    team *t;
    int index;
} member;

/* Wait for all others; n counts the caller's barriers. */
static bool meet(team *t, int *n)
{
    int all = ++*n * t->threads;
    atomic_fetch_add(&t->arrived, 1);
    for (int spins = 0; atomic_load(&t->arrived) < all; spins++) {
        if (atomic_load(&t->stop))
            return false;
        if (spins > 1000) /* more threads than processors */
            sched_yield();
    }
    return true;
}

/* The hints go past the end of a part: they may name any address. */
static uint64_t read_part(const unsigned char *from, size_t bytes, size_t far)
{
    uint64_t a = 0, b = 0, c = 0, d = 0, x[4];
    for (size_t i = 0; i + STEP <= bytes; i += STEP) {
        for (size_t k = 0; k < 4; k++) {
            if (far)
                __builtin_prefetch(from + i + k * LINE + far, 0, 1); /* into the last cache */
            memcpy(&x[k], from + i + k * LINE, sizeof x[k]);
        }
        a += x[0], b += x[1], c += x[2], d += x[3];
    }
    return a + b + c + d;
}

static void *work(void *ctx)
{
    const member *m = ctx;
    team *t = m->t;
    int n = 0;
    for (int pass = 0; pass < t->passes; pass++) {
        if (!meet(t, &n))
            return NULL;
        uint64_t start = clock_ns();
        t->sum +=
            read_part(t->block + (size_t)m->index * t->part, t->part, ahead[pass % DISTANCES]);
        if (!meet(t, &n))
            return NULL;
        double rate = (double)t->part * t->threads / clock_seconds(clock_ns() - start);
        if (m->index == 0 && rate > t->best)
            t->best = rate;
    }
    return NULL;
}

/* 0 if not all of the threads can be started. */
static double measure(int threads, const unsigned char *block, size_t bytes)
{
    static const size_t whole = STEP;
    pthread_t thread[THREADS_MAX];
    member m[THREADS_MAX];
    int tries = (int)(all_bytes / bytes / DISTANCES);
    team t = {.threads = threads,
              .block = block,
              .passes = DISTANCES * (tries < TRIES ? TRIES : tries),
              .part = bytes / (size_t)threads / whole * whole};
    int n = 1;
    for (int i = 0; i < threads; i++)
        m[i] = (member){&t, i};
    for (; n < threads; n++)
        if (pthread_create(&thread[n], NULL, work, &m[n]) != 0)
            break;
    if (n < threads)
        atomic_store(&t.stop, true);
    else
        work(&m[0]);
    for (int i = 1; i < n; i++)
        pthread_join(thread[i], NULL);
    return t.best;
}

/* More than any cache holds, as far as a quarter of the free memory allows. */
static size_t block_size(void)
{
    size_t bytes = block_least;
#if defined(_SC_LEVEL3_CACHE_SIZE)
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    uint64_t want = cache > 0 ? CACHES * (uint64_t)cache : 0, room = memory_available("").bytes / 4;
    want = want < block_most ? want : block_most;
    want = want < room ? want : room;
    bytes = want > bytes ? (size_t)want : bytes;
#endif
    return bytes / PAGE_LARGE * PAGE_LARGE;
}

double bandwidth_read(int threads)
{
    size_t block_bytes = block_size(), mapped = block_bytes + PAGE_LARGE;
    unsigned char *map =
        mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return 0;
    unsigned char *block = map + (PAGE_LARGE - (uintptr_t)map % PAGE_LARGE) % PAGE_LARGE;
#if defined(MADV_HUGEPAGE)
    madvise(block, block_bytes, MADV_HUGEPAGE); /* as far as there are any */
#endif
    memset(block, 1, block_bytes); /* pages of their own, not one of zeros */
    threads = threads < 1 ? 1 : threads > THREADS_MAX ? THREADS_MAX : threads;
    double best = measure(threads, block, block_bytes);
    munmap(map, mapped);
    return best;
}
