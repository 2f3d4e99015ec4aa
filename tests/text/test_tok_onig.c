/* test_tok_onig.c - patterns of Oniguruma under PCRE2: what they match, and what is refused. */
#include "runtime/text/tok_regex.h"
#include "tests/base/suite.h"

/* Each match of pattern in text, with '|' between them. Expected values are Oniguruma's. */
static const struct {
    const char *pattern, *text, *matches;
} rows[] = {
    {"\\p{L}+", "ab \u00e9\u6f22 1", "ab|\u00e9\u6f22"},
    {"\\s+", "a\u00a0\u3000b\u180e-\xc2\x85", "\u00a0\u3000|\xc2\x85"}, /* not U+180E */
    {"\\S+", "a\u180eb c", "a\u180eb|c"},
    {"[^\\S\\n]+", "a \n\t b", " |\t "},
    {"\\w+", "a\u0301_b-c", "a\u0301_b|c"},
    {"\\bb", "a\u0301b b", "b"}, /* the mark belongs to the word */
    {"\\h+", "face\tzoo", "face"},
    {"\\u00e9|\\x{6f22}|\\x41", "\u00e9\u6f22A", "\u00e9|\u6f22|A"},
    {"[a[bc]]+", "abcd", "abc"},
    {"[a-z&&[^aeiou]]+", "hello", "h|ll"},
    {"[^a-z&&[^x]]+", "axbX", "x|X"},
    {"[\\p{L}&&[^\\p{Han}]]+", "a\u6f22b\u3042", "a|b\u3042"},
    {"\\p{Han}", "\u3005\u3001", "\u3005"}, /* the script, not its extensions */
    {"\\p{^L}+", "ab12", "12"},
    {"a{1,2}+", "aaaaa", "aaaaa"},
    {"a{2}?", "aaa", "aa|"},
    {"a{,2}b", "aaab", "aab"},
    {"(?m:a.b)", "a\nb", "a\nb"},
    {"a.b", "a\nb", ""},
    {"a$", "a\nab\na", "a|a"},
    {"(?i:'s|'LL)", "'S'll'\u017f", "'S|'ll|'\u017f"},
    {"a?+a|b++", "aabb", "aa|bb"},
    {"[[:digit:][:space:]]+", "1 \u0663x", "1 \u0663"},
    {"[]a]+", "a]b", "a]"},
    {"[\\w-]+", "a-b c", "a-b|c"},
    {"(?<!a)b", "ab b", "b"},
    {"x{a}", "x{a}", "x{a}"},
    {"(?=(\\d{3})+(?!\\d))", "12345", ""},
};

START_TEST(matches)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        weft_diag *dg = diag_create();
        tok_regex *re = NULL;
        strbuf got = {0};
        size_t begin, end;
        if (tok_regex_create(dg, str_of(rows[i].pattern), &re) != WEFT_OK)
            diag_print(dg, stderr, false);
        ck_assert_ptr_nonnull(re);
        tok_matches m = tok_matches_of(re, str_of(rows[i].text));
        for (bool first = true;; first = false) {
            ck_assert_int_eq(tok_matches_next(dg, &m, &begin, &end), WEFT_OK);
            if (begin == SIZE_MAX)
                break;
            if (!first)
                strbuf_putc(&got, '|');
            strbuf_put(&got, (str){rows[i].text + begin, end - begin});
        }
        ck_assert_msg(str_eqz(strbuf_view(&got), rows[i].matches), "'%s': '%s'", rows[i].pattern,
                      got.p ? got.p : "");
        strbuf_free(&got);
        tok_regex_destroy(re);
        diag_destroy(dg);
    }
}
END_TEST

START_TEST(refused)
{
    static const char *const patterns[] = {
        "(?~a)",    "(?x: a)", "(*FAIL)",  "\\y", "[\\W]",       "\\p{Nonsense}", "\\pL", "[a",
        "[a&&]",    "\\xff",   "(a",       "a)",  "\\u12",       "\\ud800",       "*a",   "\\",
        "[[:no:]]", "\\q",     "(?P<n>a)", "(?i", "\\x{110000}", "[z-a]",         "\\C",
    };
    for (size_t i = 0; i < COUNT_OF(patterns); i++) {
        weft_diag *dg = diag_create();
        tok_regex *re = NULL;
        weft_status status = tok_regex_create(dg, str_of(patterns[i]), &re);
        ck_assert_msg(status != WEFT_OK && re == NULL, "'%s' is taken", patterns[i]);
        ck_assert_int_eq(diag_at(dg, 0).code, W1204);
        diag_destroy(dg);
    }
}
END_TEST

START_TEST(literals)
{
    weft_diag *dg = diag_create();
    tok_regex *re = tok_regex_literal(STR("a.")), *none = tok_regex_literal(STR(""));
    size_t begin, end;
    tok_matches m = tok_matches_of(re, STR("ab a. a"));
    ck_assert_int_eq(tok_matches_next(dg, &m, &begin, &end), WEFT_OK);
    ck_assert(begin == 3 && end == 5);
    ck_assert_int_eq(tok_matches_next(dg, &m, &begin, &end), WEFT_OK);
    ck_assert_uint_eq(begin, SIZE_MAX);
    m = tok_matches_of(none, STR("a"));
    ck_assert_int_eq(tok_matches_next(dg, &m, &begin, &end), WEFT_OK);
    ck_assert_uint_eq(begin, SIZE_MAX);
    tok_regex_destroy(re);
    tok_regex_destroy(none);
    diag_destroy(dg);
}
END_TEST

SUITE_MAIN("tok_onig", matches, refused, literals)
