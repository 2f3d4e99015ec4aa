/* test_value.c - the suite of runtime/formats/value.c and name_index.c. */
#include "runtime/formats/value.h"
#include "runtime/formats/name_index.h"
#include "tests/base/suite.h"
#include <math.h>

START_TEST(numbers_convert_as_the_language_says)
{
    int64_t i = 7;
    double f;
    value u64_max = {.type = VT_U64, .as.u = UINT64_MAX}, u64 = value_of_int(VT_U64, 5);
    value whole = value_of_float(VT_F32, -3.0), half = value_of_float(VT_F64, 0.5);
    value huge = value_of_float(VT_F64, 0x1p60), inf = value_of_float(VT_F64, INFINITY);
    value nan = value_of_float(VT_F64, NAN), yes = value_of_bool(true);
    value i8 = value_of_int(VT_I8, -128), text = value_of_str(STR("12"));
    const value *no_int[] = {&u64_max, &half, &huge, &inf, &nan, &yes, &text, NULL};
    for (size_t k = 0; k < COUNT_OF(no_int); k++)
        ck_assert(!value_int(no_int[k], &i));
    ck_assert_int_eq(i, 7);
    ck_assert(value_int(&u64, &i) && i == 5);
    ck_assert(value_int(&whole, &i) && i == -3);
    ck_assert(value_int(&i8, &i) && i == -128);
    ck_assert(value_float(&u64_max, &f) && f == 0x1p64);
    ck_assert(value_float(&i8, &f) && f == -128);
    ck_assert(value_float(&half, &f) && f == 0.5);
    ck_assert(!value_float(&yes, &f) && !value_float(&text, &f) && !value_float(NULL, &f));
}
END_TEST

START_TEST(only_a_bool_is_a_bool)
{
    bool b = false;
    str s;
    value yes = value_of_bool(true), one = value_of_int(VT_U8, 1), text = value_of_str(STR("x"));
    ck_assert(value_bool(&yes, &b) && b);
    ck_assert(!value_bool(&one, &b) && !value_bool(&text, &b) && !value_bool(NULL, &b));
    ck_assert(value_str(&text, &s) && str_eqz(s, "x"));
    ck_assert(!value_str(&one, &s) && !value_str(NULL, &s));
    ck_assert_int_eq(value_kind_of(NULL), VALUE_NULL);
}
END_TEST

/* Each interleaved type from an odd address. */
START_TEST(packed_items_are_read_at_any_address)
{
    static const struct {
        value_type type;
        unsigned char bytes[8];
        double want;
    } cases[] = {
        {VT_U8, {200}, 200},
        {VT_I8, {200}, -56},
        {VT_U16, {0x34, 0x92}, 0x9234},
        {VT_I16, {0x34, 0x92}, 0x9234 - 0x10000},
        {VT_U32, {1, 2, 3, 0x84}, 0x84030201},
        {VT_I32, {0xff, 0xff, 0xff, 0xff}, -1},
        {VT_U64, {0, 0, 0, 0, 0, 0, 0, 0x80}, 0x1p63},
        {VT_I64, {0, 0, 0, 0, 0, 0, 0, 0x80}, -0x1p63},
        {VT_F32, {0, 0, 0x20, 0xc0}, -2.5},
        {VT_F64, {0, 0, 0, 0, 0, 0, 0xf8, 0x3f}, 1.5},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        unsigned char raw[1 + 2 * 8] = {0};
        size_t n = value_type_row_of(cases[i].type)->bytes;
        memcpy(raw + 1 + n, cases[i].bytes, n);
        value list = value_of_array(cases[i].type, raw + 1, 2);
        value first = value_at(&list, 0), second = value_at(&list, 1);
        double x, y;
        ck_assert(value_float(&first, &x) && value_float(&second, &y));
        ck_assert_double_eq(x, 0);
        ck_assert_double_eq(y, cases[i].want);
        ck_assert_int_eq(second.type, cases[i].type);
    }
    unsigned char bools[] = {1, 0};
    value list = value_of_array(VT_BOOL, bools, 2), one = value_at(&list, 0);
    ck_assert(one.type == VT_BOOL && one.as.b);
}
END_TEST

START_TEST(members_are_found_by_name_and_path)
{
    arena *a = arena_create();
    value inner, outer, big;
    size_t twice = 99;
    value_member leaf[] = {{STR("factor"), value_of_float(VT_F64, 8)}};
    ck_assert(value_of_members(a, leaf, 1, &inner, &twice));
    value_member top[] = {{STR("rope"), inner},
                          {STR("none"), {.type = VT_NULL}},
                          {STR("n"), value_of_int(VT_I64, 3)}};
    ck_assert(value_of_members(a, top, 3, &outer, &twice));
    double f;
    ck_assert(value_float(value_find(&outer, STR("rope.factor")), &f) && f == 8);
    ck_assert_ptr_null(value_find(&outer, STR("rope.other")));
    ck_assert_ptr_null(value_find(&outer, STR("rope.factor.deeper")));
    ck_assert_ptr_null(value_find(&outer, STR("n.x")));
    ck_assert_ptr_null(value_find(&outer, STR("")));
    ck_assert_ptr_null(value_find(&outer, STR(".")));
    ck_assert_ptr_null(value_find(NULL, STR("rope")));
    ck_assert_ptr_eq(value_find(&outer, STR("none")), &top[1].v);
    ck_assert_ptr_eq(value_find(&outer, STR("none.deeper.still")), &top[1].v);
    ck_assert_uint_eq(value_count(&outer), 3);
    ck_assert_ptr_null(value_get(&top[2].v, STR("n")));

    /* Few and many, with and without a name that stands twice. */
    for (size_t n = 1; n <= 3000; n = n * 3 + 1) {
        value_member *m = ARENA_ARRAY(a, value_member, n + 1);
        for (size_t i = 0; i < n; i++)
            m[i] = (value_member){arena_printf(a, "name.%zu", i), value_of_int(VT_I64, (int64_t)i)};
        ck_assert(value_of_members(a, m, n, &big, &twice));
        for (size_t i = 0; i < n; i++)
            ck_assert_ptr_eq(value_get(&big, m[i].name), &m[i].v);
        ck_assert_ptr_null(value_get(&big, STR("name.")));
        m[n] = m[n / 2];
        ck_assert(!value_of_members(a, m, n + 1, &big, &twice));
        ck_assert_uint_eq(twice, n);
    }
    arena_destroy(a);
}
END_TEST

START_TEST(a_name_is_found_in_two_pieces)
{
    arena *a = arena_create();
    str names[] = {STR("llama.block_count"), STR("llama"), STR("")};
    size_t twice, i = 9;
    const name_index *ix = name_index_create(a, names, 3, sizeof *names, &twice);
    for (size_t cut = 0; cut <= names[0].n; cut++) {
        str head = {names[0].p, cut}, tail = {names[0].p + cut, names[0].n - cut};
        ck_assert(name_index_find(ix, head, tail, &i) && i == 0);
    }
    ck_assert(name_index_find(ix, STR("lla"), STR("ma"), &i) && i == 1);
    ck_assert(name_index_find(ix, (str){0}, (str){0}, &i) && i == 2);
    ck_assert(!name_index_find(ix, STR("llama"), STR("."), &i));
    arena_destroy(a);
}
END_TEST

START_TEST(values_show_as_json)
{
    arena *a = arena_create();
    strbuf out = {0};
    json_writer w = {.out = &out};
    size_t twice;
    str words[] = {STR("a"), STR("b\"\xff")};
    unsigned char numbers[] = {1, 2, 3, 4, 5};
    value mixed[] = {{.type = VT_NULL}, value_of_bool(false), value_of_float(VT_F64, 0.25)};
    value_member m[] = {{STR("words"), value_of_array(VT_STR, words, 2)},
                        {STR("numbers"), value_of_array(VT_U8, numbers, 5)},
                        {STR("mixed"), value_of_array(VT_NULL, mixed, 3)},
                        {STR(""), {.type = VT_U64, .as.u = UINT64_MAX}}};
    value v;
    ck_assert(value_of_members(a, m, 4, &v, &twice));
    value_json(&w, &v, 3);
    ck_assert_str_eq(out.p, "{\"words\":[\"a\",\"b\\\"\xEF\xBF\xBD\"],"
                            "\"numbers\":[1,2,3,\"... 2 more\"],\"mixed\":[null,false,0.25],"
                            "\"\":1.8446744073709552e+19}");
    strbuf_free(&out);
    arena_destroy(a);
}
END_TEST

SUITE_MAIN("value", numbers_convert_as_the_language_says, only_a_bool_is_a_bool,
           packed_items_are_read_at_any_address, members_are_found_by_name_and_path,
           a_name_is_found_in_two_pieces, values_show_as_json)
