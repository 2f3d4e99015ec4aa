/* test_poly.c - symbolic sizes: identities, ring laws at random points, limits, printing. */
#include "dsl/poly.h"
#include "tests/base/suite.h"
#include <stdlib.h>

static arena *home;
static poly_pool *pp;

/* Symbols in the order of their creation, which is the order they print in. */
enum { A, B, C, D, HEADS, KV, HEAD_DIM, Q_RANK, L, FF, N_SYMBOL };
static const char *const name[N_SYMBOL] = {
    "a", "b", "c", "d", "heads", "kv_heads", "head_dim", "q_rank", "l", "ff",
};
static const poly *sym[N_SYMBOL];

static void setup(void)
{
    home = arena_create();
    pp = poly_pool_create(home);
    for (int i = 0; i < N_SYMBOL; i++)
        sym[i] = poly_symbol(pp, &name[i], str_of(name[i]));
}

static void teardown(void)
{
    arena_destroy(home);
}

static const poly *num(int64_t v)
{
    return poly_int(pp, v);
}
static const poly *add(const poly *a, const poly *b)
{
    return poly_add(pp, a, b);
}
static const poly *sub(const poly *a, const poly *b)
{
    return poly_sub(pp, a, b);
}
static const poly *mul(const poly *a, const poly *b)
{
    return poly_mul(pp, a, b);
}
static const poly *over(const poly *a, const poly *b)
{
    return poly_div(pp, a, b);
}
static const poly *call(const char *fn, const poly *a, const poly *b)
{
    return poly_call(pp, fn, (const poly *const[]){a, b}, 2);
}

static void expect_text(const poly *p, const char *want)
{
    strbuf text = {0};
    ck_assert_ptr_nonnull(p);
    poly_print(p, &text);
    ck_assert_str_eq(text.p, want);
    strbuf_free(&text);
}

static void expect_failure(const poly *p, poly_reason why)
{
    ck_assert_ptr_null(p);
    ck_assert_int_eq(poly_failure(pp), why);
}

/* ---- equality ---- */

START_TEST(test_equal_forms_are_one_pointer)
{
    ck_assert_ptr_eq(add(sym[A], sym[B]), add(sym[B], sym[A]));
    ck_assert_ptr_eq(mul(sym[A], sym[B]), mul(sym[B], sym[A]));
    ck_assert_ptr_eq(sub(add(sym[A], sym[B]), sym[B]), sym[A]);
    ck_assert_ptr_eq(sub(sym[A], sym[A]), num(0));
    ck_assert_ptr_eq(mul(sym[A], num(0)), num(0));
    ck_assert_ptr_eq(poly_symbol(pp, &name[A], STR("other")), sym[A]);
    ck_assert_ptr_ne(poly_symbol(pp, &home, STR("a")), sym[A]);
    const poly *sum = add(sym[A], sym[B]), *diff = sub(sym[A], sym[B]);
    ck_assert_ptr_eq(mul(sum, diff), sub(mul(sym[A], sym[A]), mul(sym[B], sym[B])));
}
END_TEST

START_TEST(test_values)
{
    int64_t v = 7;
    ck_assert(poly_value(num(-3), &v) && v == -3);
    ck_assert(poly_value(sub(sym[A], sym[A]), &v) && v == 0);
    v = 7;
    ck_assert(!poly_value(sym[A], &v));
    ck_assert(!poly_value(add(sym[A], num(1)), &v));
    ck_assert(!poly_value(NULL, &v));
    ck_assert_int_eq(v, 7);
    ck_assert(poly_is(num(4), 4) && !poly_is(num(4), 5) && !poly_is(sym[A], 0));
    ck_assert(poly_is(num(0), 0));
}
END_TEST

START_TEST(test_negative_for_all_sizes)
{
    const poly *d = sym[D], *kv = sym[KV];
    ck_assert(poly_is_negative(sub(d, mul(num(2), d))) && poly_is_negative(num(-1)));
    ck_assert(poly_is_negative(sub(num(-3), mul(kv, d))));
    ck_assert(!poly_is_negative(num(0)) && !poly_is_negative(d) && !poly_is_negative(sub(kv, d)));
    ck_assert(!poly_is_negative(sub(num(0), call("mod", d, kv)))); /* it may be 0 */
}
END_TEST

/* ---- division ---- */

START_TEST(test_division_undoes_itself)
{
    const poly *d = sym[D], *heads = sym[HEADS], *kv = sym[KV], *two = num(2);
    ck_assert_ptr_eq(mul(two, over(d, two)), d);
    ck_assert_ptr_eq(mul(heads, over(d, heads)), d);
    ck_assert_ptr_eq(mul(num(4), over(d, two)), mul(two, d));
    ck_assert_ptr_eq(mul(mul(kv, heads), over(d, heads)), mul(kv, d));
    ck_assert_ptr_eq(mul(kv, mul(heads, over(d, heads))), mul(kv, d));
    ck_assert_ptr_eq(mul(over(sym[HEAD_DIM], two), two), sym[HEAD_DIM]);
    ck_assert_ptr_eq(add(over(d, two), over(d, two)), d);
    ck_assert_ptr_eq(sub(d, over(d, two)), over(d, two));
    ck_assert_ptr_eq(mul(over(d, mul(two, heads)), heads), over(d, two));
    ck_assert_ptr_eq(over(over(d, two), heads), over(d, mul(heads, two)));
    ck_assert_ptr_eq(over(d, over(d, heads)), heads);
    const poly *sum = add(sym[A], sym[B]);
    ck_assert_ptr_eq(mul(over(sum, two), two), sum);
    ck_assert_ptr_eq(over(sum, two), add(over(sym[A], two), over(sym[B], two)));
}
END_TEST

START_TEST(test_division_cancels_what_is_common)
{
    const poly *a = sym[A], *b = sym[B], *c = sym[C];
    ck_assert_ptr_eq(over(mul(num(2), a), mul(num(2), b)), over(a, b));
    ck_assert_ptr_eq(over(mul(c, a), mul(c, b)), over(a, b));
    ck_assert_ptr_eq(over(sub(num(0), a), sub(num(0), b)), over(a, b));
    ck_assert_ptr_eq(over(a, sub(b, c)), over(sub(num(0), a), sub(c, b)));
    ck_assert_ptr_eq(over(mul(num(6), c), add(mul(num(4), a), mul(num(2), b))),
                     over(mul(num(3), c), add(mul(num(2), a), b)));
    ck_assert_ptr_eq(over(mul(a, c), add(mul(a, b), mul(a, a))), over(c, add(b, a)));
}
END_TEST

START_TEST(test_division_by_a_sum)
{
    const poly *a = sym[A], *b = sym[B], *c = sym[C], *d = sym[D];
    const poly *s = add(a, b), *t = add(c, num(1));
    ck_assert_ptr_eq(mul(over(d, s), s), d);
    ck_assert_ptr_eq(mul(over(d, s), mul(num(3), s)), mul(num(3), d));
    ck_assert_ptr_eq(mul(mul(c, s), over(d, s)), mul(c, d));
    ck_assert_ptr_eq(add(over(a, s), over(b, s)), num(1));
    ck_assert_ptr_eq(over(mul(s, t), s), t);
    ck_assert_ptr_eq(over(mul(s, s), s), s);
    ck_assert_ptr_eq(mul(mul(over(over(d, s), t), t), s), d);
    ck_assert_ptr_eq(mul(over(over(d, s), s), mul(s, s)), d);
    ck_assert_ptr_eq(over(d, over(d, s)), s);
    /* An atom of the divisor in a denominator. */
    ck_assert_ptr_eq(mul(over(over(d, a), s), s), over(d, a));
    ck_assert_ptr_eq(over(over(s, a), s), over(num(1), a));
    /* A sum that holds a quotient by a sum. */
    const poly *nested = add(c, over(d, s));
    ck_assert_ptr_eq(mul(over(a, nested), nested), a);
    ck_assert_ptr_eq(over(mul(nested, a), nested), a);
}
END_TEST

START_TEST(test_quotient_is_for_even_divisions)
{
    const poly *a = sym[A], *b = sym[B], *c = sym[C], *two = num(2);
    ck_assert_ptr_eq(poly_quotient(pp, mul(a, b), b), a);
    ck_assert_ptr_eq(poly_quotient(pp, add(mul(a, b), mul(c, b)), b), add(a, c));
    ck_assert_ptr_eq(poly_quotient(pp, add(mul(two, a), num(4)), two), add(a, two));
    ck_assert_ptr_eq(poly_quotient(pp, mul(add(a, b), add(b, c)), add(b, c)), add(a, b));
    ck_assert_ptr_eq(poly_quotient(pp, num(12), num(4)), num(3));
    ck_assert_ptr_eq(poly_quotient(pp, num(0), a), num(0));
    ck_assert_ptr_eq(poly_quotient(pp, mul(num(3), over(a, two)), num(3)), over(a, two));
    ck_assert_ptr_eq(poly_quotient(pp, a, over(a, b)), b);

    expect_failure(over(a, num(0)), POLY_ZERO_DIVISOR); /* stays the newest failure */
    expect_failure(poly_quotient(pp, a, two), POLY_ZERO_DIVISOR);
    expect_failure(poly_quotient(pp, over(a, two), two), POLY_ZERO_DIVISOR);
    expect_failure(poly_quotient(pp, add(mul(a, b), c), b), POLY_ZERO_DIVISOR);
    expect_failure(poly_quotient(pp, a, add(a, b)), POLY_ZERO_DIVISOR);
    expect_failure(poly_quotient(pp, num(7), two), POLY_ZERO_DIVISOR);
    expect_failure(poly_quotient(pp, a, num(0)), POLY_ZERO_DIVISOR);
    expect_failure(poly_quotient(pp, add(over(a, two), over(b, two)), two), POLY_ZERO_DIVISOR);
}
END_TEST

START_TEST(test_division_of_numbers)
{
    ck_assert_ptr_eq(over(num(-12), num(4)), num(-3));
    ck_assert_ptr_eq(over(num(12), num(-4)), num(-3));
    expect_failure(over(num(7), num(2)), POLY_INEXACT);
    expect_failure(over(sym[A], mul(num(2), sym[A])), POLY_INEXACT);
    expect_failure(over(num(0), num(0)), POLY_ZERO_DIVISOR);
    expect_failure(over(sym[A], sub(sym[B], sym[B])), POLY_ZERO_DIVISOR);
}
END_TEST

/* ---- calls, optional values, rewriting ---- */

START_TEST(test_calls_fold)
{
    static const struct {
        const char *fn;
        int64_t a, b, want;
    } row[] = {
        {"idiv", 7, 2, 3},   {"idiv", -7, 2, -4}, {"idiv", 7, -2, -4}, {"idiv", -7, -2, 3},
        {"idiv", 6, -2, -3}, {"idiv", 5, -1, -5}, {"mod", 7, 2, 1},    {"mod", -7, 2, 1},
        {"mod", -6, 2, 0},   {"mod", 7, -2, -1},  {"mod", 5, -1, 0},   {"mod", INT64_MIN, -1, 0},
        {"min", 3, -4, -4},  {"max", 3, -4, 3},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        ck_assert_ptr_eq(call(row[i].fn, num(row[i].a), num(row[i].b)), num(row[i].want));
    const poly *three[] = {num(4), num(9), num(2)};
    ck_assert_ptr_eq(poly_call(pp, "max", three, 3), num(9));
    ck_assert_ptr_eq(call("min", sym[A], sym[A]), sym[A]);
    ck_assert_ptr_eq(call("min", sym[A], num(2)), call("min", sym[A], num(2)));
    ck_assert_ptr_ne(call("min", sym[A], num(2)), call("max", sym[A], num(2)));
    ck_assert_ptr_ne(call("min", sym[A], num(2)), call("min", sym[A], num(3)));
    ck_assert_ptr_ne(call("[]", num(4), num(4)), num(4));
    expect_failure(call("idiv", num(1), num(0)), POLY_ZERO_DIVISOR);
    expect_failure(call("mod", sym[A], num(0)), POLY_ZERO_DIVISOR);
    expect_failure(call("idiv", num(INT64_MIN), num(-1)), POLY_OVERFLOW);
    /* Not the same as a division: a remainder is dropped. */
    ck_assert_ptr_ne(mul(call("idiv", sym[D], num(2)), num(2)), sym[D]);
}
END_TEST

START_TEST(test_narrow)
{
    const poly *p = sym[Q_RANK], *d = sym[D], *either = poly_coalesce(pp, p, d);
    ck_assert_ptr_eq(poly_narrow(pp, either, p, true), p);
    ck_assert_ptr_eq(poly_narrow(pp, either, p, false), d);
    ck_assert_ptr_eq(poly_narrow(pp, either, d, true), either);
    ck_assert_ptr_eq(poly_coalesce(pp, p, p), p);
    ck_assert_ptr_eq(poly_coalesce(pp, num(3), d), num(3));

    const poly *x = add(mul(either, either), over(sym[A], either));
    ck_assert_ptr_eq(poly_narrow(pp, x, p, false), add(mul(d, d), over(sym[A], d)));
    const poly *deep = call("idiv", add(over(sym[A], add(either, num(1))), sym[B]), either);
    ck_assert_ptr_eq(poly_narrow(pp, deep, p, true),
                     call("idiv", add(over(sym[A], add(p, num(1))), sym[B]), p));

    /* `q_rank ?? ff ?? d`, and `(q_rank ?? ff) ?? d`. */
    const poly *right = poly_coalesce(pp, p, poly_coalesce(pp, sym[FF], d));
    ck_assert_ptr_eq(poly_narrow(pp, right, p, false), poly_coalesce(pp, sym[FF], d));
    ck_assert_ptr_eq(poly_narrow(pp, right, sym[FF], true), poly_coalesce(pp, p, sym[FF]));
    const poly *left = poly_coalesce(pp, poly_coalesce(pp, p, sym[FF]), d);
    ck_assert_ptr_eq(poly_narrow(pp, left, p, true), p);
    ck_assert_ptr_eq(poly_narrow(pp, left, p, false), poly_coalesce(pp, sym[FF], d));
    /* Narrowing folds what becomes numbers. */
    const poly *least = call("min", poly_coalesce(pp, p, num(8)), num(5));
    ck_assert_ptr_eq(poly_narrow(pp, least, p, false), num(5));
}
END_TEST

START_TEST(test_replace)
{
    const poly *a = sym[A], *b = sym[B], *c = sym[C], *l = sym[L];
    const poly *ff_l = call("[]", sym[FF], l);
    ck_assert_ptr_eq(poly_replace(pp, ff_l, l, num(3)), call("[]", sym[FF], num(3)));
    ck_assert_ptr_eq(poly_replace(pp, ff_l, a, b), ff_l);
    ck_assert_ptr_eq(poly_replace(pp, mul(a, a), a, add(b, c)), mul(add(b, c), add(b, c)));
    ck_assert_ptr_eq(poly_replace(pp, over(c, a), a, num(2)), over(c, num(2)));
    ck_assert_ptr_eq(poly_replace(pp, over(c, add(a, b)), a, sub(num(2), b)), over(c, num(2)));
    ck_assert_ptr_eq(poly_replace(pp, over(a, b), a, mul(b, c)), c);
    ck_assert_ptr_eq(poly_replace(pp, over(a, b), b, add(a, c)), over(a, add(a, c)));
    ck_assert_ptr_eq(poly_replace(pp, over(add(a, num(1)), num(2)), a, num(3)), num(2));
    ck_assert_ptr_eq(poly_replace(pp, poly_coalesce(pp, a, b), b, a), a);
    /* Both at once: what is put in is not looked at again. */
    ck_assert_ptr_eq(poly_replace(pp, add(a, b), a, mul(a, b)), add(mul(a, b), b));
    expect_failure(poly_replace(pp, over(c, a), a, num(0)), POLY_ZERO_DIVISOR);
    expect_failure(poly_replace(pp, over(c, add(a, b)), a, sub(num(0), b)), POLY_ZERO_DIVISOR);
    expect_failure(poly_replace(pp, over(a, num(2)), a, num(3)), POLY_INEXACT);
    expect_failure(poly_replace(pp, call("idiv", over(a, num(2)), b), a, num(3)), POLY_INEXACT);
    expect_failure(poly_replace(pp, call("idiv", c, a), a, num(0)), POLY_ZERO_DIVISOR);
}
END_TEST

/* ---- ring laws at random points ---- */

/* A fraction, for the test's own arithmetic; den 0 marks a division by zero. */
typedef struct {
    int64_t num, den;
} fraction;

static fraction fraction_of(int64_t n, int64_t d)
{
    int64_t x = llabs(n), y = llabs(d);
    while (y != 0) {
        int64_t r = x % y;
        x = y;
        y = r;
    }
    if (x == 0 || d == 0)
        return (fraction){n != 0, d != 0};
    return d < 0 ? (fraction){-n / x, -d / x} : (fraction){n / x, d / x};
}

static uint32_t random_state;

static int random_below(int n)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (int)((random_state >> 8) % (uint32_t)n);
}

/* A poly and its value at a point. */
typedef struct {
    const poly *p;
    fraction v;
} sample;

static sample random_sample(const int64_t *point, int depth)
{
    if (depth == 0 || random_below(5) == 0) {
        int i = random_below(6);
        if (i < 4)
            return (sample){sym[i], {point[i], 1}};
        int64_t v = random_below(7) - 3;
        return (sample){num(v), {v, 1}};
    }
    sample x = random_sample(point, depth - 1), y = random_sample(point, depth - 1);
    fraction none = {0, 0};
    bool fine = x.v.den != 0 && y.v.den != 0;
    switch (random_below(6)) {
    case 0:
    case 1:
        return (sample){add(x.p, y.p),
                        fine ? fraction_of(x.v.num * y.v.den + y.v.num * x.v.den, x.v.den * y.v.den)
                             : none};
    case 2:
        return (sample){sub(x.p, y.p),
                        fine ? fraction_of(x.v.num * y.v.den - y.v.num * x.v.den, x.v.den * y.v.den)
                             : none};
    case 3:
    case 4:
        return (sample){mul(x.p, y.p),
                        fine ? fraction_of(x.v.num * y.v.num, x.v.den * y.v.den) : none};
    default:
        return (sample){over(x.p, y.p), fine && y.v.num != 0
                                            ? fraction_of(x.v.num * y.v.den, x.v.den * y.v.num)
                                            : none};
    }
}

/* p with the first four symbols replaced by numbers. */
static const poly *at_point(const poly *p, const int64_t *point)
{
    for (int i = 0; i < 4; i++)
        p = poly_replace(pp, p, sym[i], num(point[i]));
    return p;
}

START_TEST(test_random_values)
{
    int n_whole = 0, n_inexact = 0;
    random_state = 20240607;
    for (int i = 0; i < 20000; i++) {
        int64_t point[4];
        for (int k = 0; k < 4; k++)
            point[k] = random_below(11) - 4;
        sample s = random_sample(point, 1 + random_below(3));
        if (!s.p || s.v.den == 0)
            continue; /* an odd constant inside, or a division by zero at this point */
        const poly *got = at_point(s.p, point);
        if (s.v.den == 1) {
            ck_assert_ptr_nonnull(got);
            ck_assert_ptr_eq(got, num(s.v.num));
            n_whole++;
        } else {
            expect_failure(got, POLY_INEXACT);
            n_inexact++;
        }
        if (i % 512 == 511) { /* keep the pool small */
            teardown();
            setup();
        }
    }
    ck_assert_int_gt(n_whole, 5000);
    ck_assert_int_gt(n_inexact, 500);
}
END_TEST

/* A sum of products without division. */
static const poly *random_poly(int n_term)
{
    const poly *p = num(0);
    for (int i = 0; i < n_term; i++) {
        const poly *t = num(random_below(9) - 4);
        for (int k = random_below(3); k > 0; k--)
            t = mul(t, sym[random_below(4)]);
        p = add(p, t);
    }
    return p;
}

START_TEST(test_random_laws)
{
    random_state = 7;
    for (int i = 0; i < 2000; i++) {
        const poly *x = random_poly(3), *y = random_poly(3), *z = random_poly(3);
        ck_assert_ptr_eq(add(add(x, y), z), add(x, add(y, z)));
        ck_assert_ptr_eq(mul(mul(x, y), z), mul(x, mul(y, z)));
        ck_assert_ptr_eq(mul(x, y), mul(y, x));
        ck_assert_ptr_eq(mul(x, add(y, z)), add(mul(x, y), mul(x, z)));
        ck_assert_ptr_eq(sub(add(x, y), y), x);
        if (poly_is(y, 0))
            continue;
        ck_assert_ptr_eq(poly_quotient(pp, mul(x, y), y), x);
        const poly *q = over(x, y), *r = over(z, y);
        if (!q || !r)
            continue; /* a number that is not whole */
        ck_assert_ptr_eq(mul(q, y), x);
        ck_assert_ptr_eq(add(q, r) ? add(q, r) : over(add(x, z), y), over(add(x, z), y));
        ck_assert_ptr_eq(over(mul(x, num(6)), mul(y, num(6))), q);
        ck_assert_ptr_eq(mul(q, mul(y, z)), mul(x, z));
        if (add(q, r))
            ck_assert_ptr_eq(sub(add(q, r), r), q);
        const poly *both = over(q, z);
        if (!both)
            continue;
        ck_assert_ptr_eq(mul(both, z), q);
        if (mul(both, y))
            ck_assert_ptr_eq(mul(mul(both, y), z), x);
    }
}
END_TEST

/* ---- limits ---- */

START_TEST(test_overflow)
{
    const poly *most = num(INT64_MAX), *least = num(INT64_MIN), *a = sym[A];
    int64_t v;
    ck_assert(poly_value(least, &v) && v == INT64_MIN);
    ck_assert_ptr_eq(sub(add(least, num(1)), num(1)), least);
    ck_assert_ptr_eq(add(mul(num(INT64_MAX - 1), a), a), mul(most, a));
    expect_failure(add(most, num(1)), POLY_OVERFLOW);
    expect_failure(sub(least, num(1)), POLY_OVERFLOW);
    expect_failure(sub(num(0), least), POLY_OVERFLOW);
    expect_failure(add(mul(most, a), a), POLY_OVERFLOW);
    expect_failure(mul(mul(most, a), num(2)), POLY_OVERFLOW);
    expect_failure(mul(least, num(-1)), POLY_OVERFLOW);
    expect_failure(over(least, num(-1)), POLY_OVERFLOW);
    expect_failure(over(a, least), POLY_OVERFLOW);
    expect_failure(over(over(a, most), num(2)), POLY_OVERFLOW);
    ck_assert_ptr_eq(over(least, num(2)), num(INT64_MIN / 2));
    ck_assert_ptr_eq(over(mul(least, a), num(2)), mul(num(INT64_MIN / 2), a));
    expect_text(mul(least, a), "-9223372036854775808*a");
    expect_failure(over(a, add(mul(least, sym[B]), sym[C])), POLY_OVERFLOW); /* its sign */

    const poly *power = a;
    for (int i = 0; i < 8; i++) {
        power = mul(power, power);
        if (!power)
            break;
    }
    expect_failure(power, POLY_OVERFLOW); /* a^256 */
}
END_TEST

START_TEST(test_nothing_in_nothing_out)
{
    expect_failure(over(sym[A], num(0)), POLY_ZERO_DIVISOR);
    const poly *args[] = {sym[A], NULL};
    expect_failure(add(NULL, sym[A]), POLY_ZERO_DIVISOR);
    expect_failure(sub(sym[A], NULL), POLY_ZERO_DIVISOR);
    expect_failure(mul(NULL, NULL), POLY_ZERO_DIVISOR);
    expect_failure(over(NULL, num(0)), POLY_ZERO_DIVISOR);
    expect_failure(poly_quotient(pp, NULL, sym[A]), POLY_ZERO_DIVISOR);
    expect_failure(poly_call(pp, "min", args, 2), POLY_ZERO_DIVISOR);
    expect_failure(poly_coalesce(pp, NULL, sym[A]), POLY_ZERO_DIVISOR);
    expect_failure(poly_narrow(pp, NULL, sym[A], true), POLY_ZERO_DIVISOR);
    expect_failure(poly_replace(pp, sym[A], sym[A], NULL), POLY_ZERO_DIVISOR);
}
END_TEST

START_TEST(test_term_explosion_stops)
{
    const poly *base = add(add(sym[A], sym[B]), add(sym[C], sym[D])), *p = base;
    int power = 1;
    while (p && power < 100) {
        p = mul(p, base);
        power++;
    }
    ck_assert_int_eq(power, 10); /* (k + 3 choose 3) terms: 220 for k = 9, 286 for 10 */
    expect_failure(p, POLY_TOO_LONG);

    /* One product of many terms, and one from a replacement. */
    const poly *wide = num(1), *tall = num(1);
    for (int i = 0; i < 100; i++) {
        wide = add(mul(wide, sym[A]), num(1));
        tall = add(mul(tall, sym[B]), num(1));
    }
    expect_failure(mul(wide, tall), POLY_TOO_LONG);
    const poly *high = num(1);
    for (int i = 0; i < 60; i++)
        high = mul(high, sym[A]);
    expect_failure(poly_replace(pp, high, sym[A], base), POLY_TOO_LONG);
}
END_TEST

START_TEST(test_nesting_stops)
{
    const poly *p = sym[A];
    int depth = 0;
    for (; p && depth < 1000; depth++)
        p = call("idiv", p, sym[B]);
    expect_failure(p, POLY_TOO_LONG);
    ck_assert_int_eq(depth, 65);

    /* Twice as long at each level when written out. */
    p = sym[A];
    for (depth = 0; p && depth < 60; depth++)
        p = call("min", add(p, num(1)), mul(p, num(2)));
    expect_failure(p, POLY_TOO_LONG);
    ck_assert_int_lt(depth, 20);

    /* A replacement that would nest too deep. */
    p = sym[A];
    for (depth = 0; depth < 40; depth++)
        p = call("idiv", p, sym[B]);
    expect_failure(poly_replace(pp, p, sym[A], p), POLY_TOO_LONG);
    ck_assert_ptr_nonnull(poly_replace(pp, p, sym[B], sym[C]));

    /* Sums in denominators nest too. */
    p = sym[A];
    for (depth = 0; p && depth < 1000; depth++)
        p = call("mod", over(sym[B], add(p, sym[C])), num(7));
    expect_failure(p, POLY_TOO_LONG);
}
END_TEST

START_TEST(test_hard_fractions_end)
{
    /* Continued fractions and products of many different sums: done, or given up, in good time. */
    const poly *p = sym[A];
    for (int i = 0; p && i < 200; i++)
        p = over(sym[B], add(p, sym[i % 4]));
    p = num(1);
    for (int i = 0; p && i < 40; i++)
        p = over(mul(p, add(sym[A], num(i))), add(mul(sym[A], sym[B]), add(sym[C], num(i))));
    const poly *high = num(1), *sum = add(sym[A], sym[B]);
    for (int i = 0; i < 200; i++)
        high = mul(high, sym[A]);
    ck_assert_ptr_eq(mul(over(high, sum), sum), high);
}
END_TEST

/* ---- printing ---- */

START_TEST(test_print)
{
    const poly *a = sym[A], *b = sym[B], *d = sym[D], *two = num(2), *heads = sym[HEADS];
    const poly *either = poly_coalesce(pp, sym[Q_RANK], d), *sum = add(a, b);
    expect_text(num(0), "0");
    expect_text(num(-5), "-5");
    expect_text(num(1), "1");
    expect_text(add(mul(heads, sym[HEAD_DIM]), mul(mul(two, sym[KV]), sym[HEAD_DIM])),
                "heads*head_dim + 2*kv_heads*head_dim");
    expect_text(sub(a, b), "a - b");
    expect_text(sub(num(0), a), "-a");
    expect_text(sub(num(3), mul(two, a)), "-2*a + 3");
    expect_text(mul(d, d), "d^2");
    expect_text(add(num(1), add(d, mul(a, d))), "a*d + d + 1");

    expect_text(over(d, two), "d/2");
    expect_text(mul(num(3), over(d, two)), "3*d/2");
    expect_text(over(d, heads), "d/heads");
    expect_text(over(d, mul(two, heads)), "d/(2*heads)");
    expect_text(over(d, mul(heads, heads)), "d/heads^2");
    expect_text(over(num(1), heads), "1/heads");
    expect_text(over(sum, two), "(a + b)/2");
    expect_text(over(sub(num(0), sum), two), "-(a + b)/2");
    expect_text(sub(mul(d, d), over(sub(a, num(1)), two)), "d^2 - (a - 1)/2");
    expect_text(add(mul(mul(two, heads), sym[HEAD_DIM]), over(d, two)), "2*heads*head_dim + d/2");
    expect_text(add(num(1), over(d, heads)), "d/heads + 1");
    expect_text(over(d, sum), "d/(a + b)");
    expect_text(over(d, mul(two, mul(sum, sum))), "d/(2*(a^2 + 2*a*b + b^2))");
    expect_text(over(over(d, sum), sum), "d/(a + b)^2");
    expect_text(over(add(d, heads), sum), "(d + heads)/(a + b)");

    expect_text(either, "q_rank ?? d");
    expect_text(mul(either, two), "2*(q_rank ?? d)");
    expect_text(add(either, num(1)), "(q_rank ?? d) + 1");
    expect_text(mul(either, either), "(q_rank ?? d)^2");
    expect_text(over(a, either), "a/(q_rank ?? d)");
    expect_text(poly_coalesce(pp, sym[FF], either), "ff ?? q_rank ?? d");
    expect_text(poly_coalesce(pp, either, sum), "(q_rank ?? d) ?? a + b");
    expect_text(call("idiv", a, two), "idiv(a, 2)");
    expect_text(call("min", sum, either), "min(a + b, q_rank ?? d)");
    expect_text(call("[]", sym[FF], sym[L]), "ff[l]");
    expect_text(mul(two, call("[]", sym[FF], add(sym[L], num(1)))), "2*ff[l + 1]");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        test_equal_forms_are_one_pointer,
        test_values,
        test_negative_for_all_sizes,
        test_division_undoes_itself,
        test_division_cancels_what_is_common,
        test_division_by_a_sum,
        test_quotient_is_for_even_divisions,
        test_division_of_numbers,
        test_calls_fold,
        test_narrow,
        test_replace,
        test_random_values,
        test_random_laws,
        test_overflow,
        test_nothing_in_nothing_out,
        test_term_explosion_stops,
        test_nesting_stops,
        test_hard_fractions_end,
        test_print,
    };
    TCase *tc = tcase_create("poly");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(tc, tests[i]);
    return suite_run("poly", tc, CK_FORK_GETENV);
}
