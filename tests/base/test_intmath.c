/* test_intmath.c - the suite of runtime/base/intmath.h. */
#include "runtime/base/intmath.h"
#include "tests/base/suite.h"

START_TEST(signed_edges)
{
    int64_t r = 77;
    ck_assert(i64_add(INT64_MAX - 1, 1, &r) && r == INT64_MAX);
    ck_assert(i64_add(INT64_MIN, INT64_MAX, &r) && r == -1);
    ck_assert(i64_sub(INT64_MIN + 1, 1, &r) && r == INT64_MIN);
    ck_assert(i64_mul(INT64_C(3037000499), INT64_C(3037000499), &r) &&
              r == INT64_C(9223372030926249001));
    ck_assert(i64_mul(INT64_MIN, 1, &r) && r == INT64_MIN);
    r = 77;
    ck_assert(!i64_add(INT64_MAX, 1, &r));
    ck_assert(!i64_add(INT64_MIN, -1, &r));
    ck_assert(!i64_sub(INT64_MIN, 1, &r));
    ck_assert(!i64_sub(0, INT64_MIN, &r));
    ck_assert(!i64_mul(INT64_MIN, -1, &r));
    ck_assert(!i64_mul(INT64_C(3037000500), INT64_C(3037000500), &r));
    ck_assert_int_eq(r, 77); /* untouched */
}
END_TEST

START_TEST(unsigned_edges)
{
    uint64_t r = 77;
    ck_assert(u64_add(UINT64_MAX, 0, &r) && r == UINT64_MAX);
    ck_assert(u64_sub(5, 5, &r) && r == 0);
    ck_assert(u64_mul(UINT64_C(0xFFFFFFFF), UINT64_C(0x100000001), &r) && r == UINT64_MAX);
    r = 77;
    ck_assert(!u64_add(UINT64_MAX, 1, &r));
    ck_assert(!u64_sub(4, 5, &r));
    ck_assert(!u64_mul(UINT64_C(0x100000000), UINT64_C(0x100000000), &r));
    ck_assert_uint_eq(r, 77);
    size_t s = 77;
    ck_assert(size_add(SIZE_MAX - 1, 1, &s) && s == SIZE_MAX);
    ck_assert(size_sub(1, 1, &s) && s == 0);
    ck_assert(size_mul(SIZE_MAX, 1, &s) && s == SIZE_MAX);
    ck_assert(!size_add(SIZE_MAX, 1, &s) && !size_sub(0, 1, &s) && !size_mul(SIZE_MAX, 2, &s));
}
END_TEST

START_TEST(rounding)
{
    uint64_t r = 77;
    ck_assert(u64_align_up(0, 32, &r) && r == 0);
    ck_assert(u64_align_up(1, 32, &r) && r == 32);
    ck_assert(u64_align_up(32, 32, &r) && r == 32);
    ck_assert(u64_align_up(33, 1, &r) && r == 33);
    ck_assert(u64_align_up(UINT64_MAX - 31, 32, &r) && r == UINT64_MAX - 31);
    ck_assert(!u64_align_up(UINT64_MAX - 30, 32, &r));
    size_t s;
    ck_assert(size_align_up(4095, 4096, &s) && s == 4096);
    ck_assert(!size_align_up(SIZE_MAX, 2, &s));
    ck_assert_int_eq(i64_ceil_div(0, 7), 0);
    ck_assert_int_eq(i64_ceil_div(7, 7), 1);
    ck_assert_int_eq(i64_ceil_div(8, 7), 2);
    ck_assert_int_eq(i64_ceil_div(INT64_MAX, 2), INT64_MAX / 2 + 1);
}
END_TEST

START_TEST(narrowing)
{
    int64_t i;
    size_t s;
    ck_assert(i64_from_u64(INT64_MAX, &i) && i == INT64_MAX);
    ck_assert(!i64_from_u64((uint64_t)INT64_MAX + 1, &i));
    ck_assert(size_from_u64(SIZE_MAX, &s) && s == SIZE_MAX);
}
END_TEST

SUITE_MAIN("intmath", signed_edges, unsigned_edges, rounding, narrowing)
