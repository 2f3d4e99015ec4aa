/* test_cond.c - truths over symbols: one pointer for one truth. */
#include "dsl/cond.h"
#include "tests/base/suite.h"

static arena *home;
static poly_pool *pp;
static cond_pool *cp;
static const poly *l, *n, *k;
static const cond *p, *q, *r;

static void setup(void)
{
    static const char *const name[] = {"l", "n", "k", "p", "q", "r"};
    home = arena_create();
    pp = poly_pool_create(home);
    cp = cond_pool_create(home, pp);
    l = poly_symbol(pp, name[0], str_of(name[0]));
    n = poly_symbol(pp, name[1], str_of(name[1]));
    k = poly_symbol(pp, name[2], str_of(name[2]));
    p = cond_atom(cp, name[3], NULL, STR(""));
    q = cond_atom(cp, name[4], NULL, STR(""));
    r = cond_atom(cp, name[5], NULL, STR(""));
}

static void teardown(void)
{
    arena_destroy(home);
}

START_TEST(logic)
{
    const cond *yes = cond_bool(cp, true), *no = cond_bool(cp, false);
    ck_assert_ptr_eq(cond_not(cp, yes), no);
    ck_assert_ptr_eq(cond_not(cp, cond_not(cp, p)), p);
    ck_assert_ptr_eq(cond_and(cp, p, yes), p);
    ck_assert_ptr_eq(cond_and(cp, no, p), no);
    ck_assert_ptr_eq(cond_or(cp, p, no), p);
    ck_assert_ptr_eq(cond_or(cp, p, yes), yes);
    ck_assert_ptr_eq(cond_and(cp, p, p), p);
    ck_assert_ptr_eq(cond_and(cp, p, q), cond_and(cp, q, p));
    ck_assert_ptr_eq(cond_and(cp, p, cond_not(cp, p)), no);
    ck_assert_ptr_eq(cond_or(cp, cond_not(cp, q), q), yes);
    ck_assert_ptr_ne(cond_and(cp, p, q), cond_and(cp, p, r));
    ck_assert_ptr_ne(cond_and(cp, p, q), cond_or(cp, p, q));
}
END_TEST

START_TEST(comparisons)
{
    const poly *one = poly_int(pp, 1);
    ck_assert_ptr_eq(cond_less(cp, one, poly_int(pp, 2)), cond_bool(cp, true));
    ck_assert_ptr_eq(cond_less(cp, l, l), cond_bool(cp, false));
    ck_assert_ptr_eq(cond_equal(cp, l, l), cond_bool(cp, true));
    ck_assert_ptr_eq(cond_less(cp, l, poly_add(pp, l, one)), cond_bool(cp, true));
    ck_assert_ptr_eq(cond_less(cp, l, n), cond_less(cp, poly_add(pp, l, k), poly_add(pp, n, k)));
    ck_assert_ptr_eq(cond_equal(cp, l, n), cond_equal(cp, n, l));
    /* l < n is not (n <= l), and n < l + 1 is n <= l */
    ck_assert_ptr_eq(cond_not(cp, cond_less(cp, l, n)), cond_less(cp, n, poly_add(pp, l, one)));
    ck_assert_ptr_ne(cond_less(cp, l, n), cond_less(cp, n, l));
}
END_TEST

START_TEST(absence_and_words)
{
    static const int window, kind;
    ck_assert_ptr_eq(cond_none(cp, &window, NULL), cond_none(cp, &window, NULL));
    ck_assert_ptr_ne(cond_none(cp, &window, NULL), cond_none(cp, &window, l));
    ck_assert_ptr_ne(cond_atom(cp, &kind, NULL, STR("yarn")),
                     cond_atom(cp, &kind, NULL, STR("su")));
    ck_assert_ptr_eq(cond_atom(cp, &kind, NULL, STR("su")), cond_atom(cp, &kind, NULL, STR("su")));
}
END_TEST

START_TEST(another_layer)
{
    static const int slides;
    const cond *here = cond_and(cp, cond_less(cp, l, k), cond_atom(cp, &slides, l, STR("")));
    const cond *there = cond_replace(cp, here, l, n);
    ck_assert_ptr_eq(there, cond_and(cp, cond_less(cp, n, k), cond_atom(cp, &slides, n, STR(""))));
    ck_assert_ptr_eq(cond_replace(cp, there, n, l), here);
    ck_assert_ptr_eq(cond_replace(cp, cond_less(cp, l, k), l, k), cond_bool(cp, false));
    ck_assert_ptr_eq(cond_replace(cp, cond_not(cp, cond_equal(cp, l, n)), l, n),
                     cond_bool(cp, false));
}
END_TEST

START_TEST(heavy_truths_become_atoms)
{
    const cond *sum = cond_bool(cp, true), *twin = sum;
    for (int i = 0; i < 4000; i++) {
        sum = cond_and(cp, sum, cond_less(cp, l, poly_int(pp, i)));
        ck_assert_uint_le(sum->weight, COND_WEIGHT_MAX);
    }
    for (int i = 0; i < 4000; i++)
        twin = cond_and(cp, twin, cond_less(cp, l, poly_int(pp, i)));
    ck_assert_ptr_eq(sum, twin);
    /* doubling, which would be 2^200 long */
    const cond *c = p;
    for (int i = 0; i < 200; i++) {
        const cond *x = cond_less(cp, n, poly_int(pp, i));
        c = cond_or(cp, cond_and(cp, c, x), cond_and(cp, cond_not(cp, c), cond_not(cp, x)));
    }
    ck_assert_uint_le(c->weight, COND_WEIGHT_MAX);
    cond_replace(cp, c, n, l);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("cond");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, logic);
    tcase_add_test(tc, comparisons);
    tcase_add_test(tc, absence_and_words);
    tcase_add_test(tc, another_layer);
    tcase_add_test(tc, heavy_truths_become_atoms);
    return suite_run("cond", tc, CK_FORK_GETENV);
}
