/* test_keys.c - files of keys, good and bad. */
#include "runtime/http/keys.h"
#include "tests/base/suite.h"

static weft_status parse(const char *text, api_keys *out)
{
    weft_diag *dg = diag_create();
    weft_status st = keys_parse(dg, "keys", str_of(text), out);
    diag_destroy(dg);
    return st;
}

START_TEST(keys_have_names_and_settings)
{
    api_keys k = {0};
    ck_assert_int_eq(
        parse("# who\nalice sk-12345678 priority=5 weight=2.5\r\n\n  sk-abcdefgh==  # plain\n", &k),
        WEFT_OK);
    ck_assert_int_eq((int)k.n, 2);
    ck_assert_str_eq(k.at[0].name, "alice");
    ck_assert_str_eq(k.at[1].name, "key-2");
    ck_assert(k.at[0].priority == 5 && k.at[0].weight == 2.5 && k.at[1].priority == 0);
    ck_assert_int_eq(keys_find(&k, "Bearer sk-12345678"), 0);
    ck_assert_int_eq(keys_find(&k, "bearer sk-abcdefgh=="), 1);
    ck_assert_int_eq(keys_find(&k, "Bearer sk-1234567"), -1);
    ck_assert_int_eq(keys_find(&k, "Bearer sk-123456789"), -1);
    ck_assert_int_eq(keys_find(&k, "Basic sk-12345678"), -1);
    ck_assert_int_eq(keys_find(&k, NULL), -1);
    keys_free(&k);
}
END_TEST

START_TEST(bad_lines_are_named)
{
    static const char *const bad[] = {"",
                                      "# none\n",
                                      "short\n",
                                      "a sk-12345678 color=red\n",
                                      "a sk-12345678 priority=101\n",
                                      "a sk-12345678\nb sk-12345678\n",
                                      "a b c d e\n"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        api_keys k = {0};
        ck_assert_msg(parse(bad[i], &k) == WEFT_ERR_FORMAT, "%s", bad[i]);
    }
}
END_TEST

SUITE_MAIN("keys", keys_have_names_and_settings, bad_lines_are_named)
