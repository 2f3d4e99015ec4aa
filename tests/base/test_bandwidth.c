/* test_bandwidth.c - the suite of runtime/base/bandwidth.c. Rates differ between machines and moments, so it asks only
 * for what no machine is outside of. */
#include "runtime/base/bandwidth.h"
#include "tests/base/suite.h"

/* 16 to 24 GB in all: a machine at 1 GB/s takes half a minute, one at 100 TB/s has yet to come. */
static void expect_rate(int threads)
{
    double rate = bandwidth_read(threads);
    ck_assert(rate > 0.5e9 && rate < 1e14);
}

START_TEST(one_thread)
{
    expect_rate(1);
}
END_TEST

START_TEST(several_threads)
{
    expect_rate(2);
    expect_rate(7); /* more than some machines have, and no divisor of the block */
}
END_TEST

START_TEST(odd_counts)
{
    expect_rate(0); /* as one */
}
END_TEST

SUITE_MAIN("bandwidth", one_thread, several_threads, odd_counts)
