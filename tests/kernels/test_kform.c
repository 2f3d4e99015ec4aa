/* test_kform.c - forms are found by their names and types. */
#include "kernels/kform.h"

#include <string.h>
#include "tests/base/suite.h"

START_TEST(names)
{
    for (kform f = 0; f < KFORM_COUNT; f++) {
        ck_assert_int_eq(kform_find(str_of(kform_name(f))), f);
        ck_assert_int_gt(strlen(kform_meaning(f)), 0);
    }
    ck_assert_int_eq(kform_find(str_of("q8")), KFORM_Q8);
    ck_assert_int_eq(kform_find(str_of("q")), KFORM_COUNT);
    ck_assert_int_eq(kform_find(str_of("q80")), KFORM_COUNT);
    ck_assert_int_eq(kform_find(str_of("")), KFORM_COUNT);
}
END_TEST

START_TEST(types)
{
    ck_assert_int_eq(kform_of_dtype(DT_F32), KFORM_F32);
    ck_assert_int_eq(kform_of_dtype(DT_F16), KFORM_F16);
    ck_assert_int_eq(kform_of_dtype(DT_BF16), KFORM_BF16);
    ck_assert_int_eq(kform_of_dtype(DT_Q8_0), KFORM_COUNT);
    ck_assert_int_eq(kform_of_dtype(DT_COUNT), KFORM_COUNT);
    for (kform f = 0; f < KFORM_COUNT; f++)
        ck_assert_int_eq(kform_is_float(f), kform_of_dtype(kform_dtype(f)) == f);
}
END_TEST

SUITE_MAIN("kform", names, types)
