/* test_gang_size.c - the suite of runtime/exec/gang_size.c, on machines that exist on paper. */
#include "runtime/exec/gang_size.h"

#include "tests/base/suite.h"

/* What a row takes on a machine by so many threads, and what of that the caller has a CPU for. */
typedef struct {
    int threads;
    double ns, cpu_ns;
} speed;

typedef struct {
    double all_ns;
    int64_t calls_at[65]; /* by threads */
    int last;
} tally;

static tally run(gang_size *g, int threads, const speed *by, int calls)
{
    tally t = {0};
    for (int i = 0; i < calls; i++) {
        int n = gang_size_next(g, threads);
        const speed *s = by;
        while (s->threads != n) {
            ck_assert_int_ne(s->threads, 0);
            s++;
        }
        gang_size_learn(g, threads, 1, (uint64_t)s->ns, (uint64_t)s->cpu_ns);
        t.all_ns += s->ns;
        t.calls_at[n]++;
        t.last = n;
    }
    return t;
}

static const speed quiet[] = {{4, 1e6, 1e6}, {2, 2e6, 2e6}, {1, 4e6, 4e6}, {0, 0, 0}};
/* Each thread has a fifth of a CPU, and all wait for the last in every phase. */
static const speed busy[] = {{4, 200e6, 2e6}, {2, 80e6, 3e6}, {1, 20e6, 4e6}, {0, 0, 0}};
/* The caller waits, for a disk, but threads are worth it. */
static const speed slow_disk[] = {{4, 10e6, 1e6}, {2, 18e6, 2e6}, {1, 30e6, 4e6}, {0, 0, 0}};

START_TEST(a_machine_of_its_own_is_used_whole)
{
    gang_size g = {0};
    tally t = run(&g, 4, quiet, 10000);
    ck_assert_int_eq(t.calls_at[4], 10000);
}
END_TEST

START_TEST(on_a_busy_one_fewer_threads_are_faster)
{
    gang_size g = {0};
    run(&g, 4, busy, 200);
    tally t = run(&g, 4, busy, 10000);
    ck_assert_int_eq(t.last, 1);
    ck_assert_int_gt(t.calls_at[1], 9800);
    ck_assert_msg(t.all_ns < 1.1 * 10000 * 20e6, "%g of the best", t.all_ns / (10000 * 20e6));
}
END_TEST

START_TEST(all_come_back_when_the_others_have_gone)
{
    gang_size g = {0};
    run(&g, 4, busy, 5000);
    run(&g, 4, quiet, 5000); /* longest: the rest after a try on the busy machine */
    tally t = run(&g, 4, quiet, 1000);
    ck_assert_int_eq(t.calls_at[4], 1000);
}
END_TEST

START_TEST(waiting_alone_is_no_reason)
{
    gang_size g = {0};
    tally t = run(&g, 4, slow_disk, 10000);
    ck_assert_int_eq(t.last, 4);
    ck_assert_msg(t.all_ns < 1.1 * 10000 * 10e6, "%g of the best", t.all_ns / (10000 * 10e6));
}
END_TEST

START_TEST(one_thread_stays_one)
{
    gang_size g = {0};
    tally t = run(&g, 1, busy, 100);
    ck_assert_int_eq(t.calls_at[1], 100);
}
END_TEST

SUITE_MAIN("gang_size", a_machine_of_its_own_is_used_whole, on_a_busy_one_fewer_threads_are_faster,
           all_come_back_when_the_others_have_gone, waiting_alone_is_no_reason,
           one_thread_stays_one)
