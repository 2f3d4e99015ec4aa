/* test_id_list.c - lists of ids and ID=NUMBER: what is taken, and how each wrong part is named. */
#include "runtime/cli/id_list.h"
#include "tests/base/suite.h"

#include <math.h>

static void takes(const char *text, size_t n, const int32_t *want)
{
    weft_diag *dg = diag_create();
    tok_ids ids = {0};
    ck_assert_int_eq(id_list_read(dg, "--ids", str_of(text), &ids), WEFT_OK);
    ck_assert_uint_eq(ids.n, n);
    for (size_t i = 0; i < n; i++)
        ck_assert_int_eq(ids.at[i], want[i]);
    VEC_FREE(&ids);
    diag_destroy(dg);
}

static void says(weft_diag *dg, const char *message)
{
    ck_assert_uint_eq(diag_count(dg), 1);
    diag_entry e = diag_at(dg, 0);
    ck_assert_int_eq(e.code, W1903);
    ck_assert_msg(str_eqz(e.message, message), "%.*s", STR_ARG(e.message));
    diag_destroy(dg);
}

static void refuses(const char *text, const char *message)
{
    weft_diag *dg = diag_create();
    tok_ids ids = {0};
    ck_assert_int_eq(id_list_read(dg, "--ids", str_of(text), &ids), WEFT_ERR_USAGE);
    VEC_FREE(&ids);
    says(dg, message);
}

START_TEST(lists)
{
    takes("", 0, NULL);
    takes(" \n", 0, NULL);
    takes("1,2,3", 3, (const int32_t[]){1, 2, 3});
    takes("1 2\t3\r\n", 3, (const int32_t[]){1, 2, 3});
    takes(" 1 , 2,\n3 ", 3, (const int32_t[]){1, 2, 3});
    takes("2147483647", 1, (const int32_t[]){INT32_MAX});
    takes("007", 1, (const int32_t[]){7});
}
END_TEST

START_TEST(wrong_lists)
{
    refuses("1,,2", "--ids: no token id before the comma at byte 2");
    refuses("1, ,2", "--ids: no token id before the comma at byte 3");
    refuses(",1", "--ids: no token id before the comma at byte 0");
    refuses(",", "--ids: no token id before the comma at byte 0");
    refuses("1,", "--ids: no token id after the comma at byte 1");
    refuses("1,2 , \n", "--ids: no token id after the comma at byte 4");
    refuses("1,x,2", "--ids: `x` at byte 2 is not a token id");
    refuses("-1", "--ids: `-1` at byte 0 is not a token id");
    refuses("+1", "--ids: `+1` at byte 0 is not a token id");
    refuses("1.5", "--ids: `1.5` at byte 0 is not a token id");
    refuses("1;2", "--ids: `1;2` at byte 0 is not a token id");
    refuses("2147483648", "--ids: `2147483648` at byte 0 is not a token id");
    refuses("99999999999999999999999", "--ids: `99999999999999999999` at byte 0 is not a token id");
}
END_TEST

START_TEST(biases)
{
    static const struct {
        const char *text;
        int32_t id;
        float bias;
    } good[] = {{"5=3", 5, 3}, {"0=-1.5", 0, -1.5f}, {"7=-inf", 7, -INFINITY}, {"7=1e3", 7, 1000}};
    static const char *const bad[] = {
        "",    "=3",    "5",    "5=",   "5= 3", " 5=3",  "5 =3",  "-1=3",   "x=1",
        "5=x", "5=3,6", "5=3,", "5=3 ", "5==3", "5=nan", "5=inf", "5=1e39", "2147483648=1",
    };
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        weft_diag *dg = diag_create();
        int32_t id = -1;
        float bias = 0;
        ck_assert_int_eq(id_bias_read(dg, "-l", good[i].text, &id, &bias), WEFT_OK);
        ck_assert_int_eq(id, good[i].id);
        ck_assert(bias == good[i].bias);
        diag_destroy(dg);
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        weft_diag *dg = diag_create();
        int32_t id = -1;
        float bias = 0;
        strbuf message = {0};
        ck_assert_msg(id_bias_read(dg, "-l", bad[i], &id, &bias) == WEFT_ERR_USAGE, "`%s`", bad[i]);
        strbuf_add(&message, "-l: `%s` is not ID=NUMBER", bad[i]);
        says(dg, message.p);
        strbuf_free(&message);
    }
}
END_TEST

SUITE_MAIN("id_list", lists, wrong_lists, biases)
