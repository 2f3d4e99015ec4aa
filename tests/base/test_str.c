/* test_str.c - the suite of runtime/base/str.c. */
#include "tests/base/suite.h"

START_TEST(compares)
{
    ck_assert(str_eq(STR("abc"), str_of("abc")));
    ck_assert(!str_eq(STR("abc"), STR("abd")));
    ck_assert(!str_eq(STR("abc"), STR("ab")));
    ck_assert(str_eq((str){NULL, 0}, STR("")));
    ck_assert(str_eqz(STR("abc"), "abc"));
    ck_assert(str_starts(STR("abc"), STR("ab")));
    ck_assert(str_starts(STR("abc"), STR("")));
    ck_assert(!str_starts(STR("ab"), STR("abc")));
    ck_assert(str_ends(STR("a.weft"), STR(".weft")));
    ck_assert(str_ends((str){NULL, 0}, STR("")));
    ck_assert(!str_ends(STR("weft"), STR(".weft")));
    ck_assert_int_lt(str_cmp(STR("a"), STR("b")), 0);
    ck_assert_int_gt(str_cmp(STR("ab"), STR("a")), 0);
    ck_assert_int_eq(str_cmp(STR("a\0b"), STR("a\0b")), 0);
    ck_assert_int_gt(str_cmp(STR("\xff"), STR("a")), 0);
    ck_assert_int_eq(str_cmp((str){NULL, 0}, STR("")), 0);
}
END_TEST

START_TEST(hashes_like_fnv)
{
    /* Vectors of the FNV authors. */
    ck_assert_uint_eq(str_hash(STR("")), 0xcbf29ce484222325u);
    ck_assert_uint_eq(str_hash(STR("a")), 0xaf63dc4c8601ec8cu);
    ck_assert_uint_eq(str_hash(STR("foobar")), 0x85944171f73967e8u);
}
END_TEST

START_TEST(distance_counts_edits)
{
    static const struct {
        const char *a, *b;
        int cap, want;
    } rows[] = {
        {"", "", 5, 0},
        {"abc", "abc", 5, 0},
        {"abc", "abd", 5, 1},
        {"abc", "ab", 5, 1},
        {"abc", "xabc", 5, 1},
        {"abcd", "acbd", 5, 1}, /* neighbours swapped */
        {"ab", "ba", 5, 1},
        {"kitten", "sitting", 9, 3},
        {"kitten", "sitting", 2, 2}, /* no more than the cap */
        {"abc", "", 9, 3},
        {"abc", "xyz", 0, 0},
        {"rms_nrom", "rms_norm", 3, 1},
        {"ca", "abc", 9, 3}, /* a swapped pair is not edited again */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        ck_assert_int_eq(str_distance(str_of(rows[i].a), str_of(rows[i].b), rows[i].cap),
                         rows[i].want);
        ck_assert_int_eq(str_distance(str_of(rows[i].b), str_of(rows[i].a), rows[i].cap),
                         rows[i].want);
    }
}
END_TEST

START_TEST(distance_of_long_names_is_the_cap)
{
    strbuf a = {0}, b = {0};
    strbuf_fill(&a, 'a', 1000000);
    strbuf_fill(&b, 'b', 1000000);
    ck_assert_int_eq(str_distance(strbuf_view(&a), strbuf_view(&b), 3), 3);
    ck_assert_int_eq(str_distance(strbuf_view(&a), strbuf_view(&a), 3), 0);
    strbuf_free(&a);
    strbuf_free(&b);
}
END_TEST

START_TEST(guess_keeps_the_nearest)
{
    str_guess g = {0};
    str_guess_try(&g, STR("q_prj"), STR("k_proj"));
    ck_assert(str_eqz(g.name, "k_proj"));
    ck_assert_int_eq(g.distance, 2);
    str_guess_try(&g, STR("q_prj"), STR("q_proj"));
    ck_assert(str_eqz(g.name, "q_proj"));
    ck_assert_int_eq(g.distance, 1);
    str_guess_try(&g, STR("q_prj"), STR("o_proj")); /* further off */
    ck_assert(str_eqz(g.name, "q_proj"));

    str_guess none = {0};
    str_guess_try(&none, STR("x"), STR("y")); /* a third of one letter is none */
    str_guess_try(&none, STR("softmax"), STR("linear"));
    ck_assert_ptr_null(none.name.p);
}
END_TEST

START_TEST(buffer_grows)
{
    strbuf b = {0};
    ck_assert_uint_eq(strbuf_view(&b).n, 0);
    ck_assert_ptr_nonnull(strbuf_view(&b).p);
    strbuf_put(&b, (str){NULL, 0});
    ck_assert_str_eq(b.p, "");
    strbuf_add(&b, "%d-%s", 42, "x");
    strbuf_putc(&b, '!');
    strbuf_fill(&b, '.', 3);
    ck_assert_str_eq(b.p, "42-x!...");
    for (int i = 0; i < 1000; i++)
        strbuf_add(&b, "%04d", i);
    ck_assert_uint_eq(b.n, 8 + 4000);
    ck_assert_uint_eq(strlen(b.p), b.n);
    ck_assert_str_eq(b.p + b.n - 4, "0999");
    strbuf_reset(&b);
    ck_assert_str_eq(b.p, "");
    strbuf_put(&b, STR("a\0b"));
    ck_assert_uint_eq(b.n, 3);
    strbuf_free(&b);
    ck_assert_ptr_null(b.p);
    strbuf_free(&b);
}
END_TEST

START_TEST(buffer_takes_text_longer_than_itself)
{
    strbuf b = {0}, big = {0};
    strbuf_fill(&big, 'z', 100000);
    strbuf_add(&b, "<%s>", big.p);
    ck_assert_uint_eq(b.n, 100002);
    ck_assert(b.p[0] == '<' && b.p[100001] == '>' && b.p[100002] == 0);
    strbuf_free(&b);
    strbuf_free(&big);
}
END_TEST

START_TEST(globs)
{
    ck_assert(str_glob(STR("a*c"), STR("abbc")) && str_glob(STR("*"), STR("")));
    ck_assert(str_glob(STR("a?c*"), STR("abc")) && !str_glob(STR("a?c"), STR("ac")));
    ck_assert(str_glob(STR("*b*b"), STR("abab")) && !str_glob(STR("*b*b"), STR("aba")));
    ck_assert(!str_glob(STR(""), STR("a")) && str_glob(STR(""), STR("")));
    /* a name as long as it gets takes no longer than its square */
    static char name[65536];
    memset(name, 'a', sizeof name);
    ck_assert(!str_glob(STR("*a*a*a*a*b"), (str){name, sizeof name}));
}
END_TEST

SUITE_MAIN("str", globs, compares, hashes_like_fnv, distance_counts_edits,
           distance_of_long_names_is_the_cap, guess_keeps_the_nearest, buffer_grows,
           buffer_takes_text_longer_than_itself)
