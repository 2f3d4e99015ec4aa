/* test_jinja_cost.c - no builtin and no operator works for longer than its steps pay for.
 *
 * Every row of the tables is called in an endless loop with long values, in every combination that
 * it takes. The limit on steps has to end it soon: work that is not counted lasts for hours. */
#include "runtime/formats/json_read.h"
#include "runtime/text/jinja.h"
#include "tests/base/suite.h"

#include <time.h>

enum { TEXT = 1 << 18, ITEMS = 5000, PAIRS = 1000, STEPS = 30000 };

/* For STEPS steps. A step is worth some nanoseconds; the slowest row needs a fifth of this. */
static const double seconds_max = 1.0;

static const char *const filters[] = {
#define FILTER(name, fn, how, least, params) name,
#include "runtime/text/jinja_filters.def"
#undef FILTER
};
static const char *const tests[] = {
#define TEST(name, fn, how, least, params) name,
#include "runtime/text/jinja_tests.def"
#undef TEST
};
static const char *const methods[] = {
#define METHOD(kind, name, fn, how, least, params) name,
#define UNSAFE(kind, name) name,
#include "runtime/text/jinja_methods.def"
#undef METHOD
#undef UNSAFE
};
static const char *const functions[] = {
#define FUNCTION(name, fn, how, least, params) name,
#include "runtime/text/jinja_functions.def"
#undef FUNCTION
};

/* The values: texts a, b (the same) and blank, list l and m (the same), strings in k, dict d and e. */
static const char *const subjects[] = {"a", "blank", "marks", "l", "k", "d", "2.5"};
static const char *const arguments[] = {
    "",           "(b)",       "(near)",    "('a')",          "('a', b)",      "(b, b)",
    "(1)",        "(l)",       "(d)",       "(tuple)",        "(' ', -1)",     "(near, 'x')",
    "('string')", "('in', b)", "('eq', b)", "(none, 100000)", "(attribute=b)",
};
static const char *const operators[] = {
    "a == b",
    "l == m",
    "d == e",
    "k == k2",
    "a in b",
    "near in a",
    "7.5 in l",
    "b in k",
    "b in d",
    "a < b",
    "l < m",
    "[a] < [b]",
    "(a, 1) == (b, 1)",
    "a ~ b",
    "a + b",
    "l + m",
    "a * 2",
    "l * 2",
    "a % 1",
    "'%c' % a",
    "'%s' % a",
    "'%.3s' % a",
    "'%r' % a",
    "a[200000]",
    "a[-1]",
    "a[::2]",
    "a[1:]",
    "l[1:]",
    "d[a]",
    "d[b] or 1",
    "d.x",
    "a ~ 1.25",
    "l ~ ''",
    "not a",
    "[floats, 1]|string",
    "floats|tojson",
    "marks|tojson",
    "marks|string|tojson",
    "[marks]|string",
    "'{}'.format(a)",
    "'{:.3}'.format(a)",
    "f(*l)",
    "g(**e)",
};

static strbuf json_text(void)
{
    strbuf j = {0};
    strbuf_add(&j, "{");
    for (int i = 0; i < 2; i++) {
        strbuf_add(&j, "\"%c\": \"", "ab"[i]);
        strbuf_fill(&j, 'a', TEXT);
        strbuf_add(&j, "\", ");
    }
    strbuf_add(&j, "\"blank\": \"");
    strbuf_fill(&j, ' ', TEXT);
    strbuf_add(&j, "\", \"marks\": \"");
    for (int i = 0; i < TEXT / 8; i++)
        strbuf_add(&j, "<\\n%%\\\"{'.,");
    strbuf_add(&j, "\", \"near\": \"");
    strbuf_fill(&j, 'a', 250);
    strbuf_add(&j, "ba\"");
    for (int i = 0; i < 2; i++) {
        strbuf_add(&j, ", \"%c\": [", "lm"[i]);
        for (int k = 0; k < ITEMS; k++)
            strbuf_add(&j, k ? ",%d" : "%d", k);
        strbuf_add(&j, "], \"%s\": [", i ? "k2" : "k");
        for (int k = 0; k < ITEMS; k++)
            strbuf_add(&j, k ? ",\"x%d\"" : "\"x%d\"", k % 999);
        strbuf_add(&j, "], \"%c\": {", "de"[i]);
        for (int k = 0; k < PAIRS; k++)
            strbuf_add(&j, k ? ",\"y%d\":%d" : "\"y%d\":%d", k, k);
        strbuf_add(&j, "}");
    }
    strbuf_add(&j, ", \"floats\": [");
    for (int k = 0; k < ITEMS; k++)
        strbuf_add(&j, k ? ",0.%d1" : "0.%d1", k + 12345678);
    strbuf_add(&j, "]}");
    return j;
}

static struct {
    arena *a;
    jinja_var vars[16];
    size_t n;
    size_t n_run;
} world;

static void world_make(void)
{
    strbuf text = json_text();
    weft_diag *dg = diag_create();
    value v;
    world.a = arena_create();
    json_limits limits = {.bytes_max = 64 << 20, .values_max = 4 << 20, .depth_max = 8};
    str kept = arena_str(world.a, strbuf_view(&text));
    ck_assert_int_eq(json_read(dg, world.a, "values", kept, limits, &v), WEFT_OK);
    for (size_t i = 0; i < v.as.object.n; i++)
        world.vars[world.n++] = (jinja_var){v.as.object.members[i].name, v.as.object.members[i].v};
    strbuf_free(&text);
    diag_destroy(dg);
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The expression in an endless loop: it fails, and soon. */
static void ends_soon(const char *expression)
{
    static const jinja_limits limits = {
        .steps_max = STEPS, .memory_max = 96 << 20, .output_max = 1 << 20, .depth_max = 200};
    const struct tm noon = {.tm_year = 124, .tm_mday = 1, .tm_hour = 12};
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    strbuf text = {0}, out = {0};
    const jinja *t;
    strbuf_add(&text,
               "{%% macro f() %%}{{ varargs|length }}{%% endmacro %%}"
               "{%% macro g() %%}{{ kwargs|length }}{%% endmacro %%}"
               "{%% set tuple = (a, b, near, a, b, near) %%}"
               "{%% for i in range(100000) %%}{%% for j in range(100000) %%}"
               "{%% if (%s) is defined %%}{%% endif %%}{%% endfor %%}{%% endfor %%}",
               expression);
    ck_assert_msg(jinja_compile(dg, a, "t", strbuf_view(&text), &t) == WEFT_OK, "%s", expression);
    double begin = now_s();
    weft_status status = jinja_render(dg, t, world.vars, world.n, &noon, &limits, &out);
    double seconds = now_s() - begin;
    ck_assert_msg(status != WEFT_OK, "%s comes to an end", expression);
    ck_assert_msg(seconds < seconds_max, "%s runs for %.2f s", expression, seconds);
    world.n_run += diag_at(dg, 0).code == W1304;
    strbuf_free(&text);
    strbuf_free(&out);
    diag_destroy(dg);
    arena_destroy(a);
}

static void walk(const char *form, const char *const *names, size_t n)
{
    world_make();
    for (size_t i = 0; i < n; i++)
        for (size_t s = 0; s < COUNT_OF(subjects); s++)
            for (size_t k = 0; k < COUNT_OF(arguments); k++) {
                strbuf e = {0};
                bool word = names[i][0] >= 'a' && names[i][0] <= 'z';
                if (word)
                    strbuf_add(&e, form, subjects[s], names[i], arguments[k]);
                else /* a test such as `==`, which only select can name */
                    strbuf_add(&e, "[%s]|select('%s'%s%s", subjects[s], names[i],
                               arguments[k][0] ? ", " : ")",
                               arguments[k][0] ? arguments[k] + 1 : "");
                ends_soon(e.p);
                strbuf_free(&e);
            }
    ck_assert_uint_gt(world.n_run, n); /* more than one combination a row is one it takes */
    arena_destroy(world.a);
}

START_TEST(filters_pay)
{
    walk("%s|%s%s", filters, COUNT_OF(filters));
}
END_TEST

START_TEST(tests_pay)
{
    walk("%s is %s%s", tests, COUNT_OF(tests));
}
END_TEST

START_TEST(methods_pay)
{
    world_make();
    for (size_t i = 0; i < COUNT_OF(methods); i++)
        for (size_t s = 0; s < COUNT_OF(subjects); s++)
            for (size_t k = 0; k < COUNT_OF(arguments); k++) {
                strbuf e = {0};
                strbuf_add(&e, "%s.%s%s", subjects[s], methods[i],
                           arguments[k][0] ? arguments[k] : "()");
                ends_soon(e.p);
                strbuf_free(&e);
            }
    arena_destroy(world.a);
}
END_TEST

START_TEST(functions_pay)
{
    world_make();
    for (size_t i = 0; i < COUNT_OF(functions); i++)
        for (size_t k = 0; k < COUNT_OF(arguments); k++) {
            strbuf e = {0};
            strbuf_add(&e, "%s%s", functions[i], arguments[k][0] ? arguments[k] : "()");
            ends_soon(e.p);
            strbuf_free(&e);
        }
    ends_soon("strftime_now('%c' * 100000)");
    arena_destroy(world.a);
}
END_TEST

START_TEST(operators_pay)
{
    world_make();
    for (size_t i = 0; i < COUNT_OF(operators); i++)
        ends_soon(operators[i]);
    arena_destroy(world.a);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("jinja_cost");
    tcase_set_timeout(tc, 600);
    tcase_add_test(tc, operators_pay);
    tcase_add_test(tc, functions_pay);
    tcase_add_test(tc, tests_pay);
    tcase_add_test(tc, methods_pay);
    tcase_add_test(tc, filters_pay);
    return suite_run("jinja_cost", tc, SUITE_FORK);
}
