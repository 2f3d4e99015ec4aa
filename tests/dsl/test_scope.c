/* test_scope.c - names, chained outward. */
#include "dsl/scope.h"
#include "tests/base/suite.h"

static val number(poly_pool *pp, int64_t i)
{
    return (val){.kind = VAL_INT, .known = true, .size = poly_int(pp, i)};
}

START_TEST(inner_names_hide_outer_ones)
{
    arena *a = arena_create();
    poly_pool *pp = poly_pool_create(a);
    scope *outer = scope_create(a, NULL), *inner = scope_create(a, outer);
    scope_add(outer, STR("x"), SYM_PARAM, number(pp, 1), WEFT_NOWHERE);
    scope_add(outer, STR("y"), SYM_LET, number(pp, 2), WEFT_NOWHERE);
    sym *x = scope_add(inner, STR("x"), SYM_VALUE, number(pp, 3), WEFT_NOWHERE);
    ck_assert_ptr_eq(scope_find(inner, STR("x")), x);
    ck_assert(poly_is(scope_find(inner, STR("y"))->v.size, 2));
    ck_assert_ptr_null(scope_find_here(inner, STR("y")));
    ck_assert_ptr_null(scope_find(outer, STR("z")));
    /* what is not live is found only by who asks for it */
    x->live = false;
    ck_assert(poly_is(scope_find(inner, STR("x"))->v.size, 1));
    ck_assert_ptr_eq(scope_find_here(inner, STR("x")), x);
    arena_destroy(a);
}
END_TEST

START_TEST(many_names)
{
    enum { N = 20000 };
    arena *a = arena_create();
    poly_pool *pp = poly_pool_create(a);
    scope *sc = scope_create(a, NULL);
    for (int i = 0; i < N; i++)
        scope_add(sc, arena_printf(a, "name_%d", i), SYM_LET, number(pp, i), WEFT_NOWHERE);
    ck_assert_uint_eq(sc->n, N);
    for (int i = 0; i < N; i++)
        ck_assert(poly_is(scope_find(sc, arena_printf(a, "name_%d", i))->v.size, i));
    arena_destroy(a);
}
END_TEST

START_TEST(guesses)
{
    arena *a = arena_create();
    scope *outer = scope_create(a, NULL), *inner = scope_create(a, outer);
    scope_add(outer, STR("q_proj"), SYM_WEIGHT, val_unknown(), WEFT_NOWHERE);
    scope_add(outer, STR("k_proj"), SYM_WEIGHT, val_unknown(), WEFT_NOWHERE);
    scope_add(inner, STR("heads"), SYM_PARAM, val_unknown(), WEFT_NOWHERE);
    sym *gone = scope_add(inner, STR("hidden"), SYM_VALUE, val_unknown(), WEFT_NOWHERE);
    gone->live = false;
    str_guess best = {0};
    scope_guess(inner, &best, STR("q_prj"));
    ck_assert(str_eqz(best.name, "q_proj"));
    best = (str_guess){0};
    scope_guess(inner, &best, STR("hiden"));
    ck_assert_uint_eq(best.name.n, 0);
    best = (str_guess){0};
    scope_guess(inner, &best, STR("something"));
    ck_assert_uint_eq(best.name.n, 0);
    arena_destroy(a);
}
END_TEST

START_TEST(every_class_has_a_name)
{
    for (int c = SYM_BASE; c <= SYM_MODEL; c++)
        ck_assert(strncmp(sym_class_name((sym_class)c), "a", 1) == 0);
}
END_TEST

SUITE_MAIN("scope", inner_names_hide_outer_ones, many_names, guesses, every_class_has_a_name)
