/* test_json_read.c - the suite of runtime/formats/json_read.c. */
#include "runtime/formats/json_read.h"
#include "tests/formats/files.h"
#include <math.h>

static const json_limits limits = {.bytes_max = 1 << 20, .values_max = 1000, .depth_max = 8};

START_TEST(exact_text_stays_as_it_is_written)
{
    static const value_type want[] = {VT_I64, VT_F64, VT_F64, VT_I64,
                                      VT_F64, VT_F64, VT_F64, VT_I64};
    weft_diag *dg = diag_create();
    arena *a = arena_create();
    value v = {0};
    json_limits exact = limits;
    exact.exact = true;
    expect_ok(dg, json_read(dg, a, "x",
                            STR("[1, 1.0, 1e3, 9007199254740993, 99999999999999999999, Infinity, "
                                "-Infinity, {\"1\": \"b\\u0000c\\\\u0000\", \"a\": -7}]"),
                            exact, &v));
    for (size_t i = 0; i < 7; i++)
        ck_assert_int_eq(value_at(&v, i).type, want[i]);
    ck_assert(value_at(&v, 3).as.i == 9007199254740993);
    ck_assert(isinf(value_at(&v, 6).as.f) && value_at(&v, 6).as.f < 0);
    value last = value_at(&v, 7);
    ck_assert_int_eq(value_get(&last, STR("a"))->as.i, -7);
    ck_assert(str_eq(value_get(&last, STR("1"))->as.s, STR("b\0c\\u0000")));
    arena_destroy(a);
    diag_destroy(dg);
}
END_TEST

START_TEST(values_keep_their_types)
{
    weft_diag *dg = diag_create();
    arena *a = arena_create();
    value v = {0};
    expect_ok(dg, json_read(dg, a, "x",
                            STR(" {\"i\": -12, \"e\": 1e3, \"f\": 0.5, \"n\": null,\n"
                                "\"t\": true, \"s\": \"\\u00e9\\n\\ud83d\\ude00\","
                                "\"a\": [1, [\"b\"], {}], \"big\": 9007199254740993,"
                                "\"inf\": [Infinity, -Infinity], \"Infinity\": 1} "),
                            limits, &v));
    str s;
    int64_t i;
    double f;
    ck_assert_uint_eq(value_count(&v), 10);
    ck_assert_int_eq(value_get(&v, STR("i"))->type, VT_I64);
    ck_assert(value_int(value_get(&v, STR("i")), &i) && i == -12);
    ck_assert(value_int(value_get(&v, STR("e")), &i) && i == 1000);
    ck_assert_int_eq(value_get(&v, STR("f"))->type, VT_F64);
    ck_assert_int_eq(value_get(&v, STR("n"))->type, VT_NULL);
    ck_assert(value_get(&v, STR("t"))->as.b);
    ck_assert(value_str(value_get(&v, STR("s")), &s));
    ck_assert_str_eq(s.p, "\xc3\xa9\n\xf0\x9f\x98\x80");
    const value *list = value_get(&v, STR("a"));
    ck_assert_uint_eq(value_count(list), 3);
    value inner = value_at(list, 1), word = value_at(&inner, 0);
    ck_assert(value_str(&word, &s) && str_eqz(s, "b"));
    ck_assert(!value_int(value_get(&v, STR("big")), &i)); /* a double cannot hold it */
    value inf = value_at(value_get(&v, STR("inf")), 1);
    ck_assert(value_float(&inf, &f) && f == -INFINITY);
    ck_assert_ptr_nonnull(value_get(&v, STR("Infinity")));
    arena_destroy(a);
    diag_destroy(dg);
}
END_TEST

START_TEST(bad_text_is_refused_with_its_place)
{
    static const struct {
        const char *text;
        weft_code code;
        const char *part;
    } cases[] = {
        {"", W1014, "x: line 1, column 1 (byte 0): the text ends within a value"},
        {"{\n \"a\": }", W1014, "x: line 2, column 7 (byte 8): not JSON from here on"},
        {"{\"a\": 1", W1014, "the text ends within a value"},
        {"[1, 2,]", W1014, "not JSON from here on"},
        {"\"abc", W1014, "x: line 1"},
        {"\"abc\\", W1014, "x: line 1"},
        {"{} {}", W1014, "column 4 (byte 3): something follows the value"},
        {"{\"a\": NaN}", W1014, "not JSON"},
        {"[1 2]", W1014, "not JSON"},
        {"{\"a\" 1}", W1014, "not JSON"},
        {"{1: 2}", W1014, "not JSON"},
        {"\"a\nb\"", W1014, "byte 2): a control character in a string"},
        {"\"a\xff\"", W1014, "byte 2): a string with bytes that are not UTF-8"},
        {"\"a\xc3\"", W1014, "not UTF-8"},
        {"\"\\u0000\"", W1014, "a string with \\u0000 in it"},
        {"\"\\ud800\"", W1014, "not JSON"},
        {"[[[[[[[[[1]]]]]]]]]", W1102, "x: nested more than 8 deep at byte 8"},
        {"{\"a\": 1, \"b\": 2, \"a\": 3}", W1010, "the name \"a\" stands twice in one object"},
        {"{\"b\": {\"a\": 1, \"\\u0061\": 3}}", W1010, "the name \"a\" stands twice"},
    };
    weft_diag *dg = diag_create();
    arena *a = arena_create();
    value v = {.type = VT_I64, .as.i = 77};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ck_assert_int_ne(json_read(dg, a, "x", str_of(cases[i].text), limits, &v), WEFT_OK);
        expect_one(dg, cases[i].code, cases[i].part);
        diag_reset(dg);
    }
    ck_assert_int_ne(json_read(dg, a, "x", STR("[1,\0 2]"), limits, &v), WEFT_OK);
    expect_one(dg, W1014, "byte 3): a NUL byte");
    ck_assert_int_eq(v.as.i, 77); /* untouched */
    arena_destroy(a);
    diag_destroy(dg);
}
END_TEST

START_TEST(limits_are_kept)
{
    weft_diag *dg = diag_create();
    arena *a = arena_create();
    value v;
    strbuf text = {0};
    strbuf_putc(&text, '[');
    for (int i = 0; i < 2000; i++)
        strbuf_put(&text, STR("0,"));
    strbuf_put(&text, STR("0]"));
    ck_assert_int_ne(json_read(dg, a, "x", strbuf_view(&text), limits, &v), WEFT_OK);
    expect_one(dg, W1105, "x: holds 2002 values, the limit is 1000");
    diag_reset(dg);

    /* Deep enough to overflow the stack of a parser that recurses freely. */
    strbuf_reset(&text);
    strbuf_fill(&text, '[', 1 << 19);
    ck_assert_int_ne(json_read(dg, a, "x", strbuf_view(&text), limits, &v), WEFT_OK);
    expect_one(dg, W1102, "nested more than 8 deep");
    diag_reset(dg);

    strbuf_fill(&text, ' ', 1 << 20);
    ck_assert_int_ne(json_read(dg, a, "x", strbuf_view(&text), limits, &v), WEFT_OK);
    expect_one(dg, W1101, "bytes, the limit is 1048576");
    strbuf_free(&text);
    arena_destroy(a);
    diag_destroy(dg);
}
END_TEST

START_TEST(files_are_read)
{
    fixture fx = fixture_create();
    arena *a = arena_create();
    value v;
    temp_path p = temp_file(&fx.dir, "a.json", STR("[1,2,3]"));
    expect_ok(fx.dg, json_read_file(fx.dg, a, p.path, limits, &v));
    ck_assert_uint_eq(value_count(&v), 3);
    ck_assert_int_ne(json_read_file(fx.dg, a, fx.dir.path, limits, &v), WEFT_OK);
    expect_one(fx.dg, W1002, "is a directory");
    diag_reset(fx.dg);
    json_limits tight = limits;
    tight.bytes_max = 6;
    ck_assert_int_ne(json_read_file(fx.dg, a, p.path, tight, &v), WEFT_OK);
    expect_one(fx.dg, W1101, "7 bytes, the limit is 6");
    arena_destroy(a);
    fixture_destroy(&fx);
}
END_TEST

SUITE_MAIN("json_read", exact_text_stays_as_it_is_written, values_keep_their_types,
           bad_text_is_refused_with_its_place, limits_are_kept, files_are_read)
