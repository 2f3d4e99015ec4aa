/* test_jinja.c - the suite of the template engine: recorded cases of Jinja2, faults with their
 * places, limits. */
#include "runtime/formats/json_read.h"
#include "runtime/text/jinja.h"
#include "tests/base/suite.h"

static const struct tm noon = {.tm_year = 124,
                               .tm_mon = 6,
                               .tm_mday = 26,
                               .tm_hour = 12,
                               .tm_min = 30,
                               .tm_wday = 5,
                               .tm_yday = 207};

static const json_limits json = {
    .bytes_max = 1 << 20, .values_max = 1 << 16, .depth_max = 64, .exact = true};

static weft_status render_with(weft_diag *dg, arena *a, str text, const jinja_var *vars, size_t n,
                               const jinja_limits *limits, strbuf *out)
{
    const jinja *t;
    WEFT_TRY(jinja_compile(dg, a, "t.jinja", text, &t));
    return jinja_render(dg, t, vars, n, &noon, limits, out);
}

/* ---- recorded cases ---- */

typedef struct {
    arena *a;
    jinja_var vars[64];
    size_t n_var;
    size_t n_case, n_failed;
} recorded;

static void run_line(recorded *rec, str line)
{
    weft_diag *dg = diag_create();
    strbuf out = {0};
    value v;
    str text = {0}, want = {0};
    ck_assert_int_eq(json_read(dg, rec->a, "case", line, json, &v), WEFT_OK);
    const value *vars = value_get(&v, STR("variables"));
    for (size_t i = 0; i < value_count(vars); i++)
        rec->vars[rec->n_var++] =
            (jinja_var){vars->as.object.members[i].name, vars->as.object.members[i].v};
    if (value_str(value_get(&v, STR("t")), &text)) {
        bool fails = !value_str(value_get(&v, STR("out")), &want);
        weft_status st = render_with(dg, rec->a, text, rec->vars, rec->n_var, NULL, &out);
        bool good = fails ? st != WEFT_OK : st == WEFT_OK && str_eq(strbuf_view(&out), want);
        rec->n_case++;
        rec->n_failed += !good;
        if (!good)
            printf(STR_FMT "\n  gives  " STR_FMT "\n  wanted " STR_FMT "\n", STR_ARG(text),
                   STR_ARG(out), STR_ARG(want));
    }
    strbuf_free(&out);
    diag_destroy(dg);
}

START_TEST(jinja2_says_the_same)
{
    recorded rec = {.a = arena_create()};
    weft_diag *dg = diag_create();
    source *src;
    ck_assert_int_eq(
        source_open(dg, rec.a, WEFT_SOURCE_DIR "/tests/text/data/jinja_cases.jsonl", 1 << 20, &src),
        WEFT_OK);
    for (str rest = src->text; rest.n;) {
        const char *end = memchr(rest.p, '\n', rest.n);
        size_t n = end ? (size_t)(end - rest.p) : rest.n;
        run_line(&rec, (str){rest.p, n});
        rest = (str){rest.p + n + (end != NULL), rest.n - n - (end != NULL)};
    }
    ck_assert_msg(rec.n_case > 400 && rec.n_failed == 0, "%zu of %zu cases fail", rec.n_failed,
                  rec.n_case);
    arena_destroy(rec.a);
    diag_destroy(dg);
}
END_TEST

/* ---- faults ---- */

typedef struct {
    const char *text;
    weft_code code;
    uint32_t line, column;
    const char *part; /* of the message */
} fault;

static void check_fault(const fault *f, const jinja_limits *limits)
{
    weft_diag *dg = diag_create();
    arena *a = arena_create();
    strbuf out = {0};
    strbuf_add(&out, "kept");
    weft_status st = render_with(dg, a, str_of(f->text), NULL, 0, limits, &out);
    ck_assert_msg(st == diag_row_of(f->code)->status, "%.60s: status %d", f->text, (int)st);
    expect_one(dg, f->code, f->part);
    source_place at = source_find(diag_at(dg, 0).loc.src, diag_at(dg, 0).loc.begin);
    ck_assert_msg(f->line == 0 || (at.line == f->line && at.column == f->column),
                  "%.60s: at %u:%u, not %u:%u", f->text, at.line, at.column, f->line, f->column);
    ck_assert_str_eq(out.p, "kept");
    strbuf_free(&out);
    diag_destroy(dg);
    arena_destroy(a);
}

START_TEST(faults_have_a_place)
{
    /* clang-format off */
    static const fault faults[] = {
        {"a\n{% if x %}\nb",            W1301, 2, 9,  "ends before {% endif %}"},
        {"{% for a in b %}",            W1301, 1, 15, "ends before {% endfor %}"},
        {"{{ a b }}",                   W1301, 1, 6,  "}} is expected, not `b`"},
        {"{{ 'a }}",                    W1301, 1, 4,  "string does not end"},
        {"{{ (1, }}",                   W1301, 1, 8,  "another kind"},
        {"{{ 1) }}",                    W1301, 1, 5,  "was not opened"},
        {"{{ (1 %}",                    W1301, 1, 8,  "another kind"},
        {"{{ a ? b }}",                 W1301, 1, 6,  "no place inside a tag"},
        {"{{ a",                        W1301, 1, 1,  "}} ends it"},
        {"{% set x = 1",                W1301, 1, 1,  "%} ends it"},
        {"{# a",                        W1301, 1, 1,  "#} ends it"},
        {"{% raw %}",                   W1301, 1, 1,  "endraw"},
        {"{% fro a in b %}",            W1301, 1, 4,  "unknown tag `fro`"},
        {"{% include 'x' %}",           W1301, 1, 4,  "`include` would reach outside"},
        {"{% from 'x' import y %}",     W1301, 1, 4,  "`from`"},
        {"{% break %}",                 W1301, 1, 4,  "outside a loop"},
        {"{% set none = 1 %}",          W1301, 1, 8,  "cannot assign"},
        {"{{ f(a=1, 2) }}",             W1301, 1, 11, "without name follows"},
        {"{{ 99999999999999999999 }}",  W1301, 1, 4,  "64 bits"},
        {"ab\xff",                      W1301, 1, 3,  "not part of UTF-8"},
        {"é\n {{ x.y.z }}",             W1303, 2, 5,  "`x` is undefined"},
        {"{{ {}.a.b }}",                W1303, 1, 4,  "dict has no attribute `a`"},
        {"{{ 1 + none }}",              W1303, 1, 6,  "`+` does not take int and none"},
        {"{{ 'a' | nope }}",            W1303, 1, 10, "no filter `nope`"},
        {"{{ 1 is nope }}",             W1303, 1, 9,  "no test `nope`"},
        {"{{ [1].append(2) }}",         W1303, 1, 4,  "`append` would change a list"},
        {"{{ 'a'.replace('b') }}",      W1303, 1, 4,  "needs its argument `new`"},
        {"{{ 1|trim(chars='a', q=2) }}",W1303, 1, 6,  "no argument `q`"},
        {"{% for a, b in [1] %}{% endfor %}", W1303, 1, 8, "has no items"},
        {"{{ 1 // 0 }}",                W1303, 1, 6,  "division by zero"},
        {"{{ 2 ** 63 }}",               W1303, 1, 6,  "64 bits"},
        {"\n{{ raise_exception('no ' ~ 1) }}", W1302, 2, 4, "no 1"},
    };
    /* clang-format on */
    for (size_t i = 0; i < COUNT_OF(faults); i++)
        check_fault(&faults[i], NULL);
}
END_TEST

/* ---- limits ---- */

START_TEST(hostile_templates_are_stopped)
{
    /* clang-format off */
    static const fault faults[] = {
        {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", W1304, 0, 0, "nests too deeply"},
        {"{% for a in range(99999) %}{% for b in range(99999) %}{{ b }}{% endfor %}{% endfor %}", W1304, 0, 0, ""},
        {"{{ range(10**9) }}",                         W1304, 1, 4, "more than 100000"},
        {"{{ 'a' * 10**12 }}",                         W1304, 0, 0, "too large"},
        {"{{ [0] * 10**12 }}",                         W1304, 0, 0, ""},
        {"{{ '%999999999d' % 1 }}",                    W1304, 0, 0, "too large"},
        {"{{ '{:>999999999}'.format(1) }}",            W1304, 0, 0, "too large"},
        {"{{ 'a'.center(10**15) }}",                   W1304, 0, 0, "too large"},
        {"{{ [1]|tojson(indent=10**15) }}",            W1304, 0, 0, "too large"},
        {"{% set ns = namespace(s='ab') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}", W1304, 0, 0, "too large"},
        {"{% set ns = namespace(s=[0]) %}{% for i in range(60) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s }}", W1304, 0, 0, ""},
        {"{% set ns = namespace(a=[0], b=[0]) %}{% for i in range(60) %}{% set ns.a = [ns.a, ns.a] %}{% set ns.b = [ns.b, ns.b] %}{% endfor %}{{ ns.a == ns.b }}", W1304, 0, 0, "does not come to an end"},
        {"{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}", W1304, 0, 0, "nests too deeply"},
        {"{% for x in [[]] recursive %}{{ loop([x]) }}{% endfor %}", W1304, 0, 0, "nests too deeply"},
        {"{% set x = 'a' * 100000 %}{% for i in range(10000) %}{{ x }}{% endfor %}", W1304, 0, 0, ""},
    };
    /* clang-format on */
    for (size_t i = 0; i < COUNT_OF(faults); i++)
        check_fault(&faults[i], NULL);
}
END_TEST

static void check_repeated(const char *begin, const char *unit, size_t n, const char *end)
{
    weft_diag *dg = diag_create();
    arena *a = arena_create();
    strbuf text = {0}, out = {0};
    strbuf_add(&text, "%s", begin);
    for (size_t i = 0; i < n; i++)
        strbuf_put(&text, str_of(unit));
    strbuf_add(&text, "%s", end);
    ck_assert_msg(render_with(dg, a, strbuf_view(&text), NULL, 0, NULL, &out) != WEFT_OK,
                  "%zu times %s", n, unit);
    ck_assert_uint_eq(diag_count(dg), 1);
    strbuf_free(&text);
    strbuf_free(&out);
    diag_destroy(dg);
    arena_destroy(a);
}

START_TEST(deep_templates_are_refused)
{
    check_repeated("{{ ", "(", 100000, "1 }}");
    check_repeated("{{ ", "[", 100000, "1 }}");
    check_repeated("{{ ", "{1:", 100000, "1 }}");
    check_repeated("{{ ", "-", 100000, "1 }}");
    check_repeated("{{ ", "not ", 100000, "1 }}");
    check_repeated("{{ 1", "+1", 100000, " }}");
    check_repeated("{{ a", ".a", 100000, " }}");
    check_repeated("{{ a", "|e", 100000, " }}");
    check_repeated("{{ a", "()", 100000, " }}");
    check_repeated("{{ 1", " if 1 else 1", 50000, " }}");
    check_repeated("{{ f", "(f", 100000, " }}");
    check_repeated("", "{% if 1 %}", 50000, "");
    check_repeated("", "{% for a in b %}", 50000, "");
    check_repeated("{% set ", "(", 100000, "a = 1 %}");
    check_repeated("", "{{ '", 100000, "");
    check_repeated("", "x", (1 << 20) + 1, "");
}
END_TEST

START_TEST(limits_are_the_callers)
{
    static const jinja_limits tight = {
        .steps_max = 100, .memory_max = 1 << 16, .output_max = 10, .depth_max = 10};
    static const fault faults[] = {
        {"{% for i in range(90) %}{% endfor %}", W1304, 0, 0, "does not come to an end"},
        {"12345678901", W1304, 1, 1, "prints too much"},
        {"{{ 'abc' * 30000 }}", W1304, 1, 10, "too large"},
        {"{{ [[[[[[[[[[1]]]]]]]]]] }}", W1304, 1, 13, "nests too deeply"},
    };
    for (size_t i = 0; i < COUNT_OF(faults); i++)
        check_fault(&faults[i], &tight);
}
END_TEST

SUITE_MAIN("jinja", jinja2_says_the_same, faults_have_a_place, hostile_templates_are_stopped,
           deep_templates_are_refused, limits_are_the_callers)
