/* test_clock.c - the suite of runtime/base/clock.c. */
#include "runtime/base/clock.h"
#include "tests/base/suite.h"
#include <time.h>

START_TEST(time_goes_forward)
{
    uint64_t last = clock_ns();
    for (int i = 0; i < 100000; i++) {
        uint64_t now = clock_ns();
        ck_assert_uint_ge(now, last);
        last = now;
    }
}
END_TEST

START_TEST(a_nap_is_measured)
{
    uint64_t before = clock_ns();
    struct timespec nap = {.tv_nsec = 20000000};
    while (nanosleep(&nap, &nap) != 0)
        ;
    uint64_t took = clock_ns() - before;
    ck_assert_uint_ge(took, 19000000);
    ck_assert_double_lt(clock_seconds(took), 30); /* seconds, not some other unit */
    ck_assert_double_eq(clock_seconds(1500000000), 1.5);
}
END_TEST

SUITE_MAIN("clock", time_goes_forward, a_nap_is_measured)
