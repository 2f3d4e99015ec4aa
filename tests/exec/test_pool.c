/* test_pool.c - the suite of runtime/exec/pool.c and barrier.c; worth most under the thread sanitizer. */
#include "runtime/exec/pool.h"

#include "runtime/base/threads.h"
#include "runtime/exec/barrier.h"
#include "tests/base/suite.h"
#include <pthread.h>
#if defined(__linux__)
#include <sched.h>
#endif

enum { THREADS_MAX = 16, ROUNDS = 20 };

/* Every thread of a run writes its own cell in each round, and after a barrier reads all of them. Plain
 * memory, so that a thread too many, two with one index or a barrier that lets through are data races
 * too. */
typedef struct {
    int wrote[THREADS_MAX];
    int seen[THREADS_MAX];
    int count;
    barrier gate;
} meeting;

static void meet(void *ctx, int index, int count)
{
    meeting *m = ctx;
    ck_assert(index >= 0 && index < count && count == m->count);
    for (int round = 1; round <= ROUNDS; round++) {
        m->wrote[index] = round;
        barrier_wait(&m->gate);
        for (int i = 0; i < count; i++)
            m->seen[index] += m->wrote[i] == round;
        barrier_wait(&m->gate);
    }
}

/* Returns how many threads took part. */
static int run_meeting(int threads, bool spin)
{
    meeting m = {0};
    pool_gang g;
    barrier_init(&m.gate);
    pool_gather(&g, threads);
    ck_assert(g.count >= 1 && g.count <= threads);
    m.count = g.count;
    barrier_set(&m.gate, g.count, spin ? 20000 : 0);
    pool_go(&g, meet, &m);
    for (int i = 0; i < THREADS_MAX; i++)
        ck_assert_int_eq(m.seen[i], i < m.count ? ROUNDS * m.count : 0);
    barrier_deinit(&m.gate);
    return m.count;
}

START_TEST(all_threads_meet)
{
    const int thread_counts[] = {1, 2, 7, 16};
    weft_diag *dg = diag_create();
    for (size_t c = 0; c < COUNT_OF(thread_counts); c++) {
        int threads = thread_counts[c];
        ck_assert_int_eq(pool_acquire(dg, threads, false), WEFT_OK);
        ck_assert_int_eq(pool_workers(), threads - 1);
        for (int round = 0; round < 30; round++) /* workers are free again once a run ended */
            ck_assert_int_eq(run_meeting(threads, round % 2), threads);
        pool_release();
        ck_assert_int_eq(pool_workers(), 0);
    }
    diag_destroy(dg);
}
END_TEST

START_TEST(more_threads_than_workers_is_fine)
{
    ck_assert_int_eq(run_meeting(1, true), 1);
    ck_assert_int_eq(run_meeting(4, true), 1); /* nobody holds the pool: the caller does it all */
    weft_diag *dg = diag_create();
    ck_assert_int_eq(pool_acquire(dg, 2, false), WEFT_OK);
    ck_assert_int_eq(run_meeting(9, true), 2);
    ck_assert_int_eq(pool_acquire(dg, 5, false), WEFT_OK); /* grows, and is shared */
    ck_assert_int_eq(pool_workers(), 4);
    ck_assert_int_eq(run_meeting(2, false), 2);
    ck_assert_int_eq(pool_acquire(dg, 3, false), WEFT_OK);
    ck_assert_int_eq(pool_workers(), 4);
    pool_release();
    pool_release();
    ck_assert_int_eq(pool_workers(), 4);
    ck_assert_int_eq(run_meeting(5, false), 5);
    pool_release();
    ck_assert_int_eq(pool_workers(), 0);
    diag_destroy(dg);
}
END_TEST

/* A run inside a run of another thread: what is busy is not waited for. */
static void *run_beside(void *arg)
{
    *(int *)arg = run_meeting(4, true);
    return NULL;
}

static void start_another(void *ctx, int index, int count)
{
    pthread_t other;
    ck_assert_int_eq(count, 3);
    if (index == 0 && pthread_create(&other, NULL, run_beside, ctx) == 0)
        pthread_join(other, NULL);
}

START_TEST(busy_workers_are_not_waited_for)
{
    weft_diag *dg = diag_create();
    int count = 0;
    pool_gang g;
    ck_assert_int_eq(pool_acquire(dg, 3, false), WEFT_OK);
    pool_gather(&g, 3);
    ck_assert_int_eq(g.count, 3);
    ck_assert_int_eq(run_meeting(3, true), 1); /* all are taken */
    pool_go(&g, start_another, &count);
    ck_assert_int_ge(count, 1);
    ck_assert_int_eq(run_meeting(3, true), 3);
    pool_release();
    diag_destroy(dg);
}
END_TEST

/* A user of the pool that comes, works and goes again and again. */
static void *come_and_go(void *arg)
{
    int threads = *(const int *)arg;
    weft_diag *dg = diag_create();
    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(pool_acquire(dg, threads, i % 5 == 0), WEFT_OK);
        for (int k = 0; k < 10; k++)
            run_meeting(threads, k % 2);
        pool_release();
    }
    diag_destroy(dg);
    return NULL;
}

START_TEST(several_users_at_once)
{
    static const int threads[] = {1, 2, 7, 3, 2};
    pthread_t user[COUNT_OF(threads)];
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        ck_assert_int_eq(
            pthread_create(&user[i], NULL, come_and_go, (void *)(uintptr_t)&threads[i]), 0);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        pthread_join(user[i], NULL);
    ck_assert_int_eq(pool_workers(), 0);
}
END_TEST

#if defined(__linux__)
static void note_cpus(void *ctx, int index, int count)
{
    cpu_set_t set;
    (void)count;
    CPU_ZERO(&set);
    if (index > 0 && sched_getaffinity(0, sizeof set, &set) == 0)
        ((int *)ctx)[index] = CPU_COUNT(&set);
}

START_TEST(pinned_workers_have_one_cpu)
{
    weft_diag *dg = diag_create();
    int cpus[4] = {0};
    pool_gang g;
    cpu_set_t before, after;
    ck_assert_int_eq(sched_getaffinity(0, sizeof before, &before), 0);
    ck_assert_int_eq(pool_acquire(dg, 4, true), WEFT_OK);
    pool_gather(&g, 4);
    pool_go(&g, note_cpus, cpus);
    for (int i = 1; i < 4; i++)
        ck_assert_int_eq(cpus[i], 1);
    ck_assert_int_eq(sched_getaffinity(0, sizeof after, &after), 0);
    ck_assert(CPU_EQUAL(&before, &after)); /* the caller is left alone */
    pool_release();
    diag_destroy(dg);
}
END_TEST
#else
START_TEST(pinned_workers_have_one_cpu)
{
    ck_assert(!threads_pin(pthread_self(), 0));
}
END_TEST
#endif

SUITE_MAIN("pool", all_threads_meet, more_threads_than_workers_is_fine,
           busy_workers_are_not_waited_for, several_users_at_once, pinned_workers_have_one_cpu)
