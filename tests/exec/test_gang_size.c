/* test_gang_size.c - the suite of runtime/exec/gang_size.c, on machines that exist on paper. */
#include "runtime/exec/gang_size.h"

#include "tests/base/suite.h"

/* What a row takes on a machine by so many threads, and what of that the caller has a CPU for. */
typedef struct {
    int threads;
    double ns, cpu_ns, asleep_ns; /* the last: where they sleep at once */
} speed;

typedef struct {
    double all_ns;
    int64_t calls_at[65]; /* by threads */
    int64_t awake;
    int last;
} tally;

static uint64_t clock_now = 1;

static tally run(gang_size *g, int threads, const speed *by, int calls)
{
    tally t = {0};
    for (int i = 0; i < calls; i++) {
        gang_choice now = gang_size_next(g, threads);
        int n = now.threads;
        const speed *s = by;
        while (s->threads != n) {
            ck_assert_int_ne(s->threads, 0);
            s++;
        }
        double ns = now.awake ? s->ns : s->asleep_ns;
        uint64_t began = clock_now;
        clock_now += (uint64_t)ns;
        gang_size_learn(g, threads, 1, began, clock_now, (uint64_t)s->cpu_ns);
        t.all_ns += ns;
        t.calls_at[n]++;
        t.awake += now.awake;
        t.last = n;
    }
    return t;
}

static const speed quiet[] = {
    {4, 1e6, 1e6, 3e6}, {2, 2e6, 2e6, 4e6}, {1, 4e6, 4e6, 4e6}, {0, 0, 0, 0}};
/* Each thread has a fifth of a CPU, and all wait for the last in every phase. */
static const speed busy[] = {
    {4, 200e6, 2e6, 90e6}, {2, 80e6, 3e6, 50e6}, {1, 20e6, 4e6, 20e6}, {0, 0, 0, 0}};
/* The same, but sleepers get their CPU back soon. */
static const speed sleepy[] = {
    {4, 200e6, 2e6, 15e6}, {2, 80e6, 3e6, 18e6}, {1, 20e6, 4e6, 20e6}, {0, 0, 0, 0}};
/* The caller waits, for a disk, but threads are worth it. */
static const speed slow_disk[] = {
    {4, 10e6, 1e6, 12e6}, {2, 18e6, 2e6, 18e6}, {1, 30e6, 4e6, 30e6}, {0, 0, 0, 0}};

START_TEST(a_machine_of_its_own_is_used_whole)
{
    gang_size g = {0};
    tally t = run(&g, 4, quiet, 10000);
    ck_assert_int_eq(t.calls_at[4], 10000);
    ck_assert_int_eq(t.awake, 10000);
}
END_TEST

START_TEST(on_a_busy_one_fewer_threads_are_faster)
{
    gang_size g = {0};
    run(&g, 4, busy, 200);
    tally t = run(&g, 4, busy, 10000);
    ck_assert_int_eq(t.last, 1);
    ck_assert_int_gt(t.calls_at[1], 9500);
    ck_assert_msg(t.all_ns < 1.1 * 10000 * 20e6, "%g of the best", t.all_ns / (10000 * 20e6));
}
END_TEST

/* Where others leave, all threads are used again though they gain little, and at once after a pause. */
START_TEST(a_machine_that_is_quiet_again)
{
    static const speed flat[] = {
        {4, 95e4, 95e4, 1e6}, {2, 1e6, 1e6, 1e6}, {1, 1e6, 1e6, 1e6}, {0, 0, 0, 0}};
    gang_size g = {0};
    run(&g, 4, busy, 1000);
    clock_now += UINT64_C(3600) * 1000000000;
    tally t = run(&g, 4, flat, 200);
    ck_assert_int_eq(t.last, 4);
    ck_assert_int_gt(t.awake, 100);
}
END_TEST

START_TEST(or_all_of_them_that_sleep)
{
    gang_size g = {0};
    run(&g, 4, sleepy, 200);
    tally t = run(&g, 4, sleepy, 10000);
    ck_assert_int_gt(t.calls_at[4], 9000);
    ck_assert_int_lt(t.awake, 200);
    ck_assert_msg(t.all_ns < 1.1 * 10000 * 15e6, "%g of the best", t.all_ns / (10000 * 15e6));
}
END_TEST

START_TEST(all_come_back_when_the_others_have_gone)
{
    gang_size g = {0};
    run(&g, 4, busy, 5000);
    run(&g, 4, quiet, 5000); /* longest: the rest after a try on the busy machine */
    tally t = run(&g, 4, quiet, 1000);
    ck_assert_int_eq(t.calls_at[4], 1000);
    ck_assert_int_eq(t.awake, 1000);
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

SUITE_MAIN("gang_size", a_machine_that_is_quiet_again, a_machine_of_its_own_is_used_whole,
           on_a_busy_one_fewer_threads_are_faster, or_all_of_them_that_sleep,
           all_come_back_when_the_others_have_gone, waiting_alone_is_no_reason,
           one_thread_stays_one)
