/* test_pool.c - the suite of runtime/exec/pool.c; worth most under the thread sanitizer. */
#include "runtime/exec/pool.h"

#include "tests/base/suite.h"
#include <pthread.h>
#include <stdatomic.h>

enum { UNITS_MAX = 1000, THREADS_MAX = 16 };

/* Counts how often each unit is done, and by which thread; plain memory, so that a unit done twice or
 * two threads with one index are data races too. */
typedef struct {
    int done[UNITS_MAX];
    int64_t by_thread[THREADS_MAX];
    atomic_int inside[THREADS_MAX];
    int threads;
} tally;

static void count_units(void *ctx, int index, int64_t begin, int64_t end)
{
    tally *t = ctx;
    ck_assert(index >= 0 && index < t->threads && begin < end);
    ck_assert_int_eq(atomic_fetch_add(&t->inside[index], 1), 0);
    for (int64_t i = begin; i < end; i++)
        t->done[i]++;
    t->by_thread[index] += end - begin;
    atomic_fetch_sub(&t->inside[index], 1);
}

static void run_counted(int threads, int64_t units)
{
    tally t = {.threads = threads};
    int64_t all = 0;
    pool_run(threads, units, count_units, &t);
    for (int i = 0; i < UNITS_MAX; i++)
        ck_assert_int_eq(t.done[i], i < units);
    for (int i = 0; i < threads; i++)
        all += t.by_thread[i];
    ck_assert_int_eq(all, units);
}

static const int64_t unit_counts[] = {0, 1, 2, 3, 7, 28, 29, 100, UNITS_MAX};

START_TEST(every_unit_is_done_once)
{
    const int thread_counts[] = {1, 2, 7};
    weft_diag *dg = diag_create();
    for (size_t c = 0; c < COUNT_OF(thread_counts); c++) {
        int threads = thread_counts[c];
        ck_assert_int_eq(pool_acquire(dg, threads), WEFT_OK);
        ck_assert_int_eq(pool_workers(), threads - 1);
        for (int round = 0; round < 50; round++)
            for (size_t u = 0; u < COUNT_OF(unit_counts); u++)
                run_counted(threads, unit_counts[u]);
        pool_release();
        ck_assert_int_eq(pool_workers(), 0);
    }
    diag_destroy(dg);
}
END_TEST

START_TEST(more_threads_than_workers_is_fine)
{
    run_counted(1, 10);
    run_counted(4, 10); /* nobody holds the pool: the caller does it all */
    weft_diag *dg = diag_create();
    ck_assert_int_eq(pool_acquire(dg, 2), WEFT_OK);
    run_counted(9, UNITS_MAX);
    ck_assert_int_eq(pool_acquire(dg, 5), WEFT_OK); /* grows, and is shared */
    ck_assert_int_eq(pool_workers(), 4);
    run_counted(2, UNITS_MAX);
    ck_assert_int_eq(pool_acquire(dg, 3), WEFT_OK);
    ck_assert_int_eq(pool_workers(), 4);
    pool_release();
    pool_release();
    ck_assert_int_eq(pool_workers(), 4);
    run_counted(5, UNITS_MAX);
    pool_release();
    ck_assert_int_eq(pool_workers(), 0);
    diag_destroy(dg);
}
END_TEST

/* A user of the pool that comes, works and goes again and again. */
static void *come_and_go(void *arg)
{
    int threads = *(const int *)arg;
    weft_diag *dg = diag_create();
    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(pool_acquire(dg, threads), WEFT_OK);
        for (int k = 0; k < 10; k++)
            run_counted(threads, unit_counts[(size_t)(i + k) % COUNT_OF(unit_counts)]);
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

SUITE_MAIN("pool", every_unit_is_done_once, more_threads_than_workers_is_fine,
           several_users_at_once)
