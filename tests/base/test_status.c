/* test_status.c - the suite of runtime/base/status.c. */
#include "tests/base/suite.h"
#include <signal.h>

static weft_status fail_after(int *steps)
{
    WEFT_TRY(WEFT_OK);
    ++*steps;
    WEFT_TRY(WEFT_ERR_SHAPE);
    ++*steps;
    return WEFT_OK;
}

START_TEST(try_passes_failures_up)
{
    int steps = 0;
    ck_assert_int_eq(fail_after(&steps), WEFT_ERR_SHAPE);
    ck_assert_int_eq(steps, 1);
}
END_TEST

START_TEST(every_status_has_a_text)
{
    ck_assert_str_eq(weft_status_text(WEFT_OK), "ok");
    ck_assert_str_eq(weft_status_text(WEFT_ERR_SHAPE), "shapes do not fit");
    for (int i = 0; i < WEFT_STATUS_COUNT; i++)
        ck_assert_uint_gt(strlen(weft_status_text((weft_status)i)), 0);
}
END_TEST

static void run_into_a_bug(void)
{
    WEFT_ASSERT(1 + 1 == 2);
    WEFT_ASSERT(1 + 1 == 3);
}

START_TEST(a_bug_aborts)
{
    int status = child_status(run_into_a_bug);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}
END_TEST

SUITE_MAIN("status", try_passes_failures_up, every_status_has_a_text, a_bug_aborts)
