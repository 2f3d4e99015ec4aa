/* test_vec.c - the suite of runtime/base/vec.c. */
#include "runtime/base/vec.h"
#include "tests/base/suite.h"

typedef struct {
    char tag[24];
    int64_t x;
} item;

START_TEST(pushes_keep_what_was_there)
{
    VEC(int) v = {0};
    for (int i = 0; i < 100000; i++)
        VEC_PUSH(&v, i * 3);
    ck_assert_uint_eq(v.n, 100000);
    for (int i = 0; i < 100000; i++)
        ck_assert_int_eq(v.at[i], i * 3);
    VEC_FREE(&v);
    ck_assert_ptr_null(v.at);
    ck_assert_uint_eq(v.n + v.cap, 0);
    VEC_PUSH(&v, 7); /* usable again */
    ck_assert_int_eq(v.at[0], 7);
    VEC_FREE(&v);
}
END_TEST

START_TEST(structs_fit_too)
{
    VEC(item) v = {0};
    for (int64_t i = 0; i < 100; i++)
        VEC_PUSH(&v, ((item){"t", i}));
    ck_assert_int_eq(v.at[99].x, 99);
    ck_assert_str_eq(v.at[0].tag, "t");
    VEC_FREE(&v);
}
END_TEST

START_TEST(growth_at_least_doubles)
{
    size_t cap = 0;
    void *p = NULL;
    for (int i = 0; i < 10; i++) {
        size_t before = cap;
        p = vec_grow(p, &cap, 3);
        ck_assert_uint_ge(cap, before * 2);
        ck_assert_uint_gt(cap, before);
    }
    vec_release(p);
}
END_TEST

SUITE_MAIN("vec", pushes_keep_what_was_there, structs_fit_too, growth_at_least_doubles)
