/* test_json_write.c - the suite of runtime/base/json_write.c. */
#include "runtime/base/json_write.h"
#include "tests/base/suite.h"
#include <math.h>

START_TEST(nests_with_commas)
{
    strbuf b = {0};
    json_writer w = {.out = &b};
    json_open(&w, '{');
    json_key(&w, "a");
    json_open(&w, '[');
    json_int(&w, 1);
    json_int(&w, INT64_MIN);
    json_open(&w, '{');
    json_close(&w, '}');
    json_open(&w, '[');
    json_close(&w, ']');
    json_close(&w, ']');
    json_key(&w, "b");
    json_bool(&w, true);
    json_key(&w, "c");
    json_bool(&w, false);
    json_key(&w, "d");
    json_null(&w);
    json_close(&w, '}');
    ck_assert_str_eq(b.p,
                     "{\"a\":[1,-9223372036854775808,{},[]],\"b\":true,\"c\":false,\"d\":null}");
    ck_assert_int_eq(w.depth, 0);
    strbuf_free(&b);
}
END_TEST

START_TEST(top_level_values_stand_alone)
{
    strbuf b = {0};
    json_writer w = {.out = &b};
    json_int(&w, 1);
    strbuf_putc(&b, '\n');
    json_open(&w, '[');
    json_int(&w, 2);
    json_close(&w, ']');
    ck_assert_str_eq(b.p, "1\n[2]");
    strbuf_free(&b);
}
END_TEST

START_TEST(escapes_strings)
{
    strbuf b = {0};
    json_writer w = {.out = &b};
    json_str(&w, STR("\"\\/\n\t\r\b\x1b\0\xC3\xA9\xF0\x9F\x98\x80"));
    ck_assert_str_eq(b.p, "\"\\\"\\\\/\\n\\t\\r\\u0008\\u001b\\u0000\xC3\xA9\xF0\x9F\x98\x80\"");
    strbuf_reset(&b);
    json_str(&w, STR("a\xFFz\xE6\xBC"));
    ck_assert_str_eq(b.p, "\"a\xEF\xBF\xBDz\xEF\xBF\xBD\xEF\xBF\xBD\"");
    strbuf_reset(&b);
    json_str(&w, STR("\xE2\x80\xA8\xE2\x80\xAE\x7f")); /* line separator, right-to-left override */
    ck_assert_str_eq(b.p, "\"\\u2028\\u202e\\u007f\"");
    strbuf_free(&b);
}
END_TEST

START_TEST(doubles_read_back)
{
    static const double values[] = {0.1, -2.5e-300, 1e300, 5e-324, 3, 1.0 / 3, -0.0};
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        strbuf b = {0};
        json_writer w = {.out = &b};
        json_double(&w, values[i]);
        ck_assert_double_eq(strtod(b.p, NULL), values[i]);
        strbuf_free(&b);
    }
    static const double none[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < COUNT_OF(none); i++) {
        strbuf b = {0};
        json_writer w = {.out = &b};
        json_double(&w, none[i]);
        ck_assert_str_eq(b.p, "null");
        strbuf_free(&b);
    }
}
END_TEST

SUITE_MAIN("json_write", nests_with_commas, top_level_values_stand_alone, escapes_strings,
           doubles_read_back)
