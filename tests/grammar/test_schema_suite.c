/* test_schema_suite.c - the cases of the JSON Schema Test Suite (draft 2020-12; data/json_schema_suite.jsonl, MIT, without
 * descriptions of single tests). A schema compiles or is refused with a message. No text that the suite calls invalid
 * matches; of those that it calls valid many do, and their number only grows. */
#include "runtime/base/json_write.h"
#include "runtime/formats/json_read.h"
#include "tests/grammar/grammar_case.h"

#include <check.h>

typedef struct {
    int schemas, refused, valid, matched, invalid, wrong;
} counts;

static str text_of(arena *a, const value *v)
{
    strbuf b = {0};
    json_writer w = {.out = &b};
    value_json(&w, v, SIZE_MAX);
    str s = arena_str(a, strbuf_view(&b));
    strbuf_free(&b);
    return s;
}

static void run_case(weft_diag *dg, const grammar_vocab *v, arena *a, const value *c, counts *n)
{
    grammar *g;
    str schema = text_of(a, value_get(c, STR("schema")));
    n->schemas++;
    diag_reset(dg);
    if (grammar_compile(dg, v, GRAMMAR_JSON_SCHEMA, "suite", schema, GRAMMAR_LIMITS_DEFAULT, &g) !=
        WEFT_OK) {
        ck_assert(diag_count(dg) > 0);
        n->refused++;
        return;
    }
    const value *tests = value_get(c, STR("tests"));
    for (size_t i = 0; i < value_count(tests); i++) {
        value t = value_at(tests, i);
        bool valid = false;
        ck_assert(value_bool(value_get(&t, STR("valid")), &valid));
        str data = text_of(a, value_get(&t, STR("data")));
        bool matches = grammar_match(dg, g, data) == WEFT_OK;
        if (!valid && matches)
            printf(STR_FMT " lets " STR_FMT " through\n", STR_ARG(schema), STR_ARG(data));
        n->wrong += !valid && matches;
        n->valid += valid;
        n->matched += valid && matches;
        n->invalid += !valid;
        diag_reset(dg);
    }
    grammar_destroy(g);
}

START_TEST(suite)
{
    grammar_vocab *v = case_vocab();
    weft_diag *dg = diag_create();
    arena *a = arena_create();
    source *src;
    counts n = {0};
    json_limits most = {
        .bytes_max = 1 << 20, .values_max = 1 << 16, .depth_max = 200, .exact = true};
    ck_assert(source_open(dg, a, SUITE_DATA, 8 << 20, &src) == WEFT_OK);
    for (size_t at = 0; at < src->text.n;) {
        const char *line = src->text.p + at, *end = memchr(line, '\n', src->text.n - at);
        size_t len = end ? (size_t)(end - line) : src->text.n - at;
        value c;
        diag_reset(dg);
        if (json_read(dg, a, "suite", (str){line, len}, most, &c) == WEFT_OK)
            run_case(dg, v, a, &c, &n);
        at += len + 1;
    }
    printf("%d schemas, %d refused; %d of %d valid texts can be made, none of %d others\n",
           n.schemas, n.refused, n.matched, n.valid, n.invalid);
    ck_assert_int_eq(n.wrong, 0);
    ck_assert_int_ge(n.schemas - n.refused, 150);
    ck_assert_int_ge(n.matched, 200);
    arena_destroy(a);
    diag_destroy(dg);
    grammar_vocab_destroy(v);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("schema_suite");
    TCase *t = tcase_create("schema_suite");
    tcase_add_test(t, suite);
    tcase_set_timeout(t, 120);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
