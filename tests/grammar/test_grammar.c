/* test_grammar.c - what grammars match, refuse and cost, in all three notations. */
#include "runtime/base/mem.h"
#include "runtime/formats/json_read.h"
#include "tests/grammar/grammar_case.h"

#include <check.h>

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

typedef struct {
    const char *text;
    const char *const *yes, *const *no;
} match_case;

static weft_status compile(weft_diag *dg, const grammar_vocab *v, grammar_kind kind,
                           const char *text, grammar **out)
{
    return grammar_compile(dg, v, kind, "test", str_of(text), GRAMMAR_LIMITS_DEFAULT, out);
}

/* Cases are separated by ends of lists, as NULL is no case. */
static void check_cases(grammar_kind kind, const match_case *c, size_t n)
{
    grammar_vocab *v = case_vocab();
    weft_diag *dg = diag_create();
    for (size_t i = 0; i < n; i++) {
        grammar *g = NULL;
        weft_status st = compile(dg, v, kind, c[i].text, &g);
        ck_assert_msg(st == WEFT_OK, "%s\n%s", c[i].text, diag_shown(dg));
        for (const char *const *t = c[i].yes; *t; t++)
            ck_assert_msg(grammar_match(dg, g, str_of(*t)) == WEFT_OK, "%s should match `%s`: %s",
                          c[i].text, *t, diag_shown(dg));
        for (const char *const *t = c[i].no; *t; t++)
            ck_assert_msg(grammar_match(dg, g, str_of(*t)) != WEFT_OK, "%s should not match `%s`",
                          c[i].text, *t);
        diag_reset(dg);
        strbuf out = {0};
        for (uint64_t seed = 1; seed <= 3; seed++) {
            strbuf_reset(&out);
            if (case_walk(dg, g, seed, 40, &out)) {
                str s = strbuf_view(&out);
                ck_assert_msg(grammar_match(dg, g, s) == WEFT_OK, "%s made `%.*s`", c[i].text,
                              (int)s.n, s.p);
                arena *a = arena_create();
                value parsed;
                json_limits most = {
                    .bytes_max = 1 << 20, .values_max = 1 << 16, .depth_max = 300, .exact = true};
                if (kind == GRAMMAR_JSON_SCHEMA &&
                    json_read(dg, a, "made", s, most, &parsed) != WEFT_OK)
                    ck_assert_msg(strstr(diag_shown(dg), "twice") ||
                                      strstr(diag_shown(dg), "W1010"),
                                  "%s made `%.*s`: %s", c[i].text, (int)s.n, s.p, diag_shown(dg));
                arena_destroy(a);
            }
            diag_reset(dg);
        }
        strbuf_free(&out);
        grammar_destroy(g);
    }
    diag_destroy(dg);
    grammar_vocab_destroy(v);
}
#define CHECK_CASES(kind, list) check_cases(kind, list, sizeof list / sizeof *list)

START_TEST(regex_matches)
{
    static const char long_a[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const match_case list[] = {
        {"abc", LIST("abc"), LIST("", "ab", "abcd", "xabc")},
        {"", LIST(""), LIST("a")},
        {"^a|b$", LIST("a", "b"), LIST("ab")},
        {"a*", LIST("", "a", long_a), LIST("b", "ab")},
        {"a+?b?", LIST("a", "aab"), LIST("", "b", "abb")},
        {"(a|b)*abb", LIST("abb", "aabb", "babababb"), LIST("ab", "abba")},
        {"[a-c]{2,3}", LIST("ab", "abc"), LIST("a", "abca", "ad")},
        {"d{3}", LIST("ddd"), LIST("dd", "dddd")},
        {"(ab){2,}", LIST("abab", "ababab"), LIST("ab", "aba")},
        {"(a|bc){5,40}", LIST("aaaaa", "bcabcabc"), LIST("aaaa", "bcbcbcbc")},
        {"[^\\x00\\x17]{2,40}\\u05e9?", LIST("{a\"", "ab\xd7\xa9"), LIST("a")},
        {"[^\\x01\\x17]{2,40}\\x01", LIST("{a\"\\z\x02\x01"), LIST("a\x01")},
        {"(a?){5,9}b", LIST("b", "aaaaaaaaab"), LIST("aaaaaaaaaab")},
        {"(a*)*", LIST("", "aaa"), LIST("b")},
        {"[^a-y]", LIST("z", "\xc3\xa9", "\xf0\x9f\x98\x80"), LIST("a", "\xc3", "zz")},
        {".", LIST("a", "\xe2\x82\xac"), LIST("\n", "", "\xed\xa0\x80")},
        {"\\d+\\.\\d\\d", LIST("1.25", "00.00"), LIST("1.5", ".25")},
        {"[\\w.]+@\\w+", LIST("a.b@c"), LIST("@c", "a b@c")},
        {"\\u00e9\\x41\\u{1f600}",
         LIST("\xc3\xa9"
              "A\xf0\x9f\x98\x80"),
         LIST("eA")},
        {"[\\u0400-\\u04ff]+", LIST("\xd0\x9f\xd1\x80"), LIST("P", "\xd0")},
        {"(?:a|(?<n>b))c", LIST("ac", "bc"), LIST("c")},
        {"\\[\\]\\{\\}\\/", LIST("[]{}/"), LIST("[]")},
        {"[]", LIST("a"), LIST("")},
    };
    check_cases(GRAMMAR_REGEX, list, sizeof list / sizeof *list - 1);
}
END_TEST

START_TEST(gbnf_matches)
{
    const match_case list[] = {
        {"root ::= \"yes\" | \"no\"", LIST("yes", "no"), LIST("ye", "yesno", "")},
        {"root ::= a \"-\" a # twice\na ::= [0-9]{1,2}\n", LIST("1-2", "12-34"),
         LIST("1-", "123-4")},
        {"root ::= (\n \"a\" |\n \"b\" )+ \"\\n\"", LIST("abab\n"), LIST("abab")},
        {"root ::= \"(\" root \")\" | \"x\"", LIST("x", "((x))"), LIST("((x)", "()")},
        {"root ::= expr\nexpr ::= term (\"+\" term)*\nterm ::= [0-9]+ | \"(\" expr \")\"",
         LIST("1+2", "(1+(2+3))+4"), LIST("1+", "(1", "")},
        {"root ::= item{0,3}\nitem ::= \"a\"? \"b\"", LIST("", "b", "abbab"), LIST("bbbb", "a")},
        {"root ::= [^\"\\\\\\x00-\\x1f]* \"\\u20ac\" .",
         LIST("a\xe2\x82\xac"
              "b"),
         LIST("a")},
        {"root ::= \"\" ws \"a\"\nws ::= [ \\t\\n]*", LIST("a", " \n a"), LIST(" ")},
    };
    CHECK_CASES(GRAMMAR_GBNF, list);
}
END_TEST

START_TEST(schema_matches)
{
    const match_case list[] = {
        {"true", LIST("1", "\"a\"", "[]", "{}", "[1, 2]", "{\"a\": [null, true]}", "-1.5e+10"),
         LIST("", "tru", "[1,]", "{a:1}", "01", "1.", "\"\n\"", "[ ]", "\"\\ud800\"")},
        {"{\"type\":\"string\"}", LIST("\"\"", "\"a\\n\\u00e9\\ud83d\\ude00\"", "\"\xc3\xa9\""),
         LIST("a", "\"", "\"\\x\"", "\"\\ude00\"", "\"\xc3\"", "1")},
        {"{\"type\":\"string\",\"minLength\":2,\"maxLength\":5}",
         LIST("\"ab\"", "\"abcde\"", "\"\xc3\xa9\\n\"", "\"\\ud83d\\ude00\\u0041\""),
         LIST("\"a\"", "\"abcdef\"", "\"\\n\"")},
        {"{\"type\":\"string\",\"minLength\":5}", LIST("\"abcde\"", "\"abcdefghi\""),
         LIST("\"abcd\"", "\"")},
        {"{\"type\":\"string\",\"minLength\":7,\"maxLength\":12}",
         LIST("\"abcdefg\"", "\"aaaaaaaa\\n\\nab\""), LIST("\"abcdef\"", "\"abcdefghijklm\"")},
        {"{\"type\":\"string\",\"pattern\":\"^[a-z]{6,}-[a-z]{5,7}$\"}",
         LIST("\"abcdef-abcde\"", "\"aaaaaaaaa-abcdefg\""),
         LIST("\"abcde-abcde\"", "\"abcdef-abcdefgh\"")},
        {"{\"type\":\"string\",\"maxLength\":3000}", LIST("\"\"", "\"abc\""), LIST("\"")},
        {"{\"type\":\"string\",\"pattern\":\"^[a-z\\\"\\n]+$\"}", LIST("\"a\\\"\"", "\"\\n\""),
         LIST("\"A\"", "\"\"")},
        {"{\"type\":\"string\",\"pattern\":\"^(a|b)c$\"}", LIST("\"ac\"", "\"bc\""),
         LIST("\"xac\"", "\"axc\"", "\"acx\"")},
        {"{\"type\":\"string\",\"pattern\":\"b\"}", LIST("\"abc\"", "\"b\""), LIST("\"ac\"")},
        {"{\"type\":\"string\",\"format\":\"date-time\"}",
         LIST("\"2024-02-28T23:59:59Z\"", "\"1999-12-31T00:00:00.5+01:00\""),
         LIST("\"2024-02-30T00:00:00Z\"", "\"2024-13-01T00:00:00Z\"")},
        {"{\"type\":\"integer\"}", LIST("0", "-1", "123"), LIST("-0", "01", "1.0", "1e3", "")},
        {"{\"type\":\"integer\",\"minimum\":-12,\"maximum\":345}",
         LIST("-12", "-1", "0", "9", "345", "299"), LIST("-13", "346", "1000", "-0")},
        {"{\"type\":\"integer\",\"exclusiveMinimum\":9,\"exclusiveMaximum\":101}",
         LIST("10", "99", "100"), LIST("9", "101")},
        {"{\"type\":\"integer\",\"minimum\":1}", LIST("1", "123456789"), LIST("0", "-5")},
        {"{\"type\":\"integer\",\"minimum\":1.5,\"maximum\":3.5}", LIST("2", "3"), LIST("1", "4")},
        {"{\"type\":\"number\",\"minimum\":0,\"maximum\":1}", LIST("0", "0.5", "1", "1.0", "0.0"),
         LIST("-0.5", "1.1", "2", "1.01")},
        {"{\"type\":\"number\",\"exclusiveMinimum\":-1,\"exclusiveMaximum\":2}",
         LIST("-0.5", "0", "1.999"), LIST("-1", "2", "-1.0", "2.0")},
        {"{\"type\":[\"integer\",\"null\"]}", LIST("1", "null"), LIST("true")},
        {"{\"enum\":[\"a\",1,null,{\"x\":[1]}]}", LIST("\"a\"", "1", "null", "{\"x\":[1]}"),
         LIST("\"b\"", "{}")},
        {"{\"type\":\"string\",\"enum\":[\"a\",1]}", LIST("\"a\""), LIST("1")},
        {"{\"const\":\"\\\"\\u00e9\"}", LIST("\"\\\"\xc3\xa9\""), LIST("\"\"")},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":"
         "\"string\"}},\"required\":[\"a\"]}",
         LIST("{\"a\":1}", "{\"a\": 1, \"b\": \"x\"}", "{\n  \"a\": 1\n}"),
         LIST("{}", "{\"b\":\"x\"}", "{\"b\":\"x\",\"a\":1}", "{\"a\":1,}", "{\"a\":1,\"c\":2}",
              "{\"a\" :1}")},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"null\"},\"b\":{\"type\":\"null\"},"
         "\"c\":{\"type\":\"null\"}}}",
         LIST("{}", "{\"a\":null}", "{\"b\":null}", "{\"a\":null,\"c\":null}",
              "{\"b\":null,\"c\":null}"),
         LIST("{,\"a\":null}", "{\"c\":null,\"a\":null}", "{\"a\":null,\"a\":null}")},
        {"{\"type\":\"object\",\"properties\":{\"ab\":{\"type\":\"null\"},\"ac\":{\"type\":"
         "\"null\"}},\"additionalProperties\":{\"type\":\"integer\"}}",
         LIST("{}", "{\"ab\":null,\"abc\":1,\"\":2}", "{\"a\":1}", "{\"x\":1}"),
         LIST("{\"ab\":1}", "{\"x\":null}", "{\"\\u0061b\":1}")},
        {"{\"type\":\"object\",\"additionalProperties\":{\"type\":\"boolean\"},\"minProperties\":1,"
         "\"maxProperties\":2}",
         LIST("{\"x\":true}", "{\"x\":true,\"y\":false}"),
         LIST("{}", "{\"x\":1}", "{\"a\":true,\"b\":true,\"c\":true}")},
        {"{\"type\":\"object\",\"patternProperties\":{\"^k[0-9]$\":{\"type\":\"null\"}}}",
         LIST("{}", "{\"k1\":null}"), LIST("{\"x\":null}")},
        {"{\"type\":\"object\",\"propertyNames\":{\"enum\":[\"x\",\"y\"]}}", LIST("{\"x\":1}"),
         LIST("{\"z\":1}")},
        {"{\"type\":\"object\",\"required\":[\"z\",\"z\"]}", LIST("{\"z\":1}"), LIST("{}")},
        {"{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"minItems\":1,\"maxItems\":3}",
         LIST("[1]", "[1, 2,3]"), LIST("[]", "[1,2,3,4]", "[\"a\"]")},
        {"{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"maxItems\":40}",
         LIST("[]", "[1,2,3,4,5,6,7]"), LIST("[1,]")},
        {"{\"type\":\"array\",\"prefixItems\":[{\"type\":\"integer\"},{\"type\":\"string\"}]}",
         LIST("[]", "[1]", "[1,\"a\"]"), LIST("[\"a\"]", "[1,\"a\",2]")},
        {"{\"type\":\"array\",\"prefixItems\":[{\"type\":\"integer\"}],\"items\":{\"type\":"
         "\"null\"},\"minItems\":2}",
         LIST("[1,null]", "[1,null,null]"), LIST("[1]", "[]", "[1,1]")},
        {"{\"type\":\"array\",\"items\":false}", LIST("[]"), LIST("[1]")},
        {"{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"string\",\"maxLength\":1}]}",
         LIST("1", "\"a\""), LIST("\"ab\"", "null")},
        {"{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"string\"}]}", LIST("1", "\"a\""),
         LIST("null")},
        {"{\"oneOf\":[{\"type\":\"object\",\"properties\":{\"k\":{\"const\":\"a\"},\"n\":{\"type\":"
         "\"integer\"}},\"required\":[\"k\",\"n\"]},"
         "{\"type\":\"object\",\"properties\":{\"k\":{\"const\":\"b\"}},\"required\":[\"k\"]}]}",
         LIST("{\"k\":\"a\",\"n\":1}", "{\"k\":\"b\"}"), LIST("{\"k\":\"a\"}", "{\"k\":\"c\"}")},
        {"{\"allOf\":[{\"type\":\"integer\",\"minimum\":3},{\"maximum\":5,\"minimum\":1}]}",
         LIST("3", "5"), LIST("2", "6", "\"a\"")},
        {"{\"allOf\":[{\"$ref\":\"#/$defs/"
         "a\"},{\"type\":\"object\",\"properties\":{\"y\":{\"type\":\"null\"}},\"required\":[\"y\"]"
         "}],"
         "\"$defs\":{\"a\":{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"null\"}},"
         "\"required\":[\"x\"]}}}",
         LIST("{\"x\":null,\"y\":null}"), LIST("{\"x\":null}", "{\"y\":null}")},
        {"{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"integer\"},\"next\":{\"anyOf\":[{"
         "\"$ref\":\"#\"},{\"type\":\"null\"}]}},\"required\":[\"v\",\"next\"]}",
         LIST("{\"v\":1,\"next\":null}", "{\"v\":1,\"next\":{\"v\":2,\"next\":null}}"),
         LIST("{\"v\":1}")},
        {"{\"$ref\":\"#/$defs/t\",\"$defs\":{\"t\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/"
         "$defs/t\"}}}}",
         LIST("[]", "[[],[[]]]"), LIST("[1]")},
        {"{\"type\":\"object\",\"properties\":{\"a\":false,\"b\":true}}", LIST("{}", "{\"b\":[1]}"),
         LIST("{\"a\":1}")},
        {"{\"properties\":{\"a\":{}},\"minLength\":1}", LIST("{}", "\"x\"", "{\"a\":1}"),
         LIST("\"\"", "1")},
    };
    CHECK_CASES(GRAMMAR_JSON_SCHEMA, list);
}
END_TEST

typedef struct {
    grammar_kind kind;
    const char *text, *code, *says;
} refused_case;

START_TEST(refused)
{
    const refused_case list[] = {
        {GRAMMAR_REGEX, "a(b", "W1801", "( without its )"},
        {GRAMMAR_REGEX, "a)", "W1801", ") without its ("},
        {GRAMMAR_REGEX, "[a", "W1801", "[ without its ]"},
        {GRAMMAR_REGEX, "*a", "W1801", "nothing to repeat"},
        {GRAMMAR_REGEX, "a{2,1}", "W1801", "ends before it begins"},
        {GRAMMAR_REGEX, "(a)\\1", "W1802", "\\1"},
        {GRAMMAR_REGEX, "(?=a)", "W1802", "(?="},
        {GRAMMAR_REGEX, "\\bword", "W1802", "\\b"},
        {GRAMMAR_REGEX, "a^b", "W1802", "ends of the expression"},
        {GRAMMAR_REGEX, "(ab|c){200000}", "W1803", "states"},
        {GRAMMAR_REGEX, "a{99999999999}", "W1803", "count"},
        {GRAMMAR_REGEX, "[^\\d\\D]", "W1804", "no text"},
        {GRAMMAR_GBNF, "a ::= \"x\"", "W1801", "no rule `root`"},
        {GRAMMAR_GBNF, "root ::= a", "W1801", "`a` is not defined"},
        {GRAMMAR_GBNF, "root ::= root \"a\" | \"b\"", "W1801", "calls itself"},
        {GRAMMAR_GBNF, "root ::= \"x\"? a\na ::= root \"a\" | \"b\"", "W1801", "calls itself"},
        {GRAMMAR_GBNF, "root ::= \"a\" root", "W1804", "no text"},
        {GRAMMAR_GBNF, "root ::= \"a", "W1801", "closing"},
        {GRAMMAR_GBNF, "root ::= \"a\"\nroot ::= \"b\"", "W1801", "twice"},
        {GRAMMAR_GBNF, "root ::= <|x|>", "W1802", "tokens"},
        {GRAMMAR_JSON_SCHEMA, "{", "W1014", ""},
        {GRAMMAR_JSON_SCHEMA, "3", "W1801", "a schema is"},
        {GRAMMAR_JSON_SCHEMA, "{\"type\":\"strin\"}", "W1801", "did you mean `string`"},
        {GRAMMAR_JSON_SCHEMA, "{\"properties\":{\"a\":{\"not\":{\"type\":\"null\"}}}}", "W1802",
         "#/properties/a/not"},
        {GRAMMAR_JSON_SCHEMA, "{\"if\":{}}", "W1802", "`if`"},
        {GRAMMAR_JSON_SCHEMA, "{\"minLenght\":1}", "W1802", "did you mean `minLength`"},
        {GRAMMAR_JSON_SCHEMA, "{\"$ref\":\"http://x/y\"}", "W1802", "only places in this schema"},
        {GRAMMAR_JSON_SCHEMA, "{\"$ref\":\"#/$defs/x\"}", "W1801", "leads nowhere"},
        {GRAMMAR_JSON_SCHEMA, "{\"$ref\":\"#\"}", "W1804", "no text"},
        {GRAMMAR_JSON_SCHEMA, "{\"type\":\"array\",\"uniqueItems\":true}", "W1802", "uniqueItems"},
        {GRAMMAR_JSON_SCHEMA, "{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"number\"}]}", "W1802",
         "oneOf"},
        {GRAMMAR_JSON_SCHEMA, "{\"type\":\"string\",\"format\":\"dat\"}", "W1802",
         "did you mean `date`"},
        {GRAMMAR_JSON_SCHEMA, "{\"type\":\"string\",\"pattern\":\"(?!a)\"}", "W1802", "#/pattern"},
        {GRAMMAR_JSON_SCHEMA, "{\"type\":\"number\",\"multipleOf\":0.3}", "W1802", "multipleOf"},
        {GRAMMAR_JSON_SCHEMA, "{\"enum\":[]}", "W1804", "no text"},
        {GRAMMAR_JSON_SCHEMA, "false", "W1804", "no text"},
        {GRAMMAR_JSON_SCHEMA, "{\"type\":\"integer\",\"minimum\":1e30}", "W1804", "no text"},
        {GRAMMAR_JSON_SCHEMA, "{\"minLength\":1000000}", "W1803", "minLength"},
    };
    grammar_vocab *v = case_vocab();
    weft_diag *dg = diag_create();
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        grammar *g = NULL;
        diag_reset(dg);
        weft_status st = compile(dg, v, list[i].kind, list[i].text, &g);
        ck_assert_msg(st != WEFT_OK, "%s was not refused", list[i].text);
        const char *said = diag_shown(dg);
        ck_assert_msg(strstr(said, list[i].code) && strstr(said, list[i].says), "%s: %s",
                      list[i].text, said);
    }
    diag_destroy(dg);
    grammar_vocab_destroy(v);
}
END_TEST

/* Nothing is deeper than the limit, and a text can always be finished from there. */
START_TEST(depth_is_bounded)
{
    grammar_vocab *v = case_vocab();
    weft_diag *dg = diag_create();
    grammar *g;
    ck_assert(grammar_compile_json_object(dg, v, GRAMMAR_LIMITS_DEFAULT, &g) == WEFT_OK);
    strbuf deep = {0};
    strbuf_add(&deep, "{\"a\":");
    strbuf_fill(&deep, '[', 100);
    strbuf_fill(&deep, ']', 100);
    strbuf_putc(&deep, '}');
    ck_assert(grammar_match(dg, g, strbuf_view(&deep)) == WEFT_OK);
    strbuf_reset(&deep);
    strbuf_add(&deep, "{\"a\":");
    strbuf_fill(&deep, '[', 10000);
    strbuf_fill(&deep, ']', 10000);
    strbuf_putc(&deep, '}');
    ck_assert(grammar_match(dg, g, strbuf_view(&deep)) != WEFT_OK);
    strbuf_free(&deep);
    grammar_destroy(g);
    diag_destroy(dg);
    grammar_vocab_destroy(v);
}
END_TEST

/* With caches of nothing, everything is forgotten before every token, and masks are the same. */
START_TEST(small_caches)
{
    grammar_vocab *v = case_vocab();
    weft_diag *dg = diag_create();
    grammar *big, *small;
    grammar_limits little = GRAMMAR_LIMITS_DEFAULT;
    little.cache_bytes = 64 << 10;
    ck_assert(grammar_compile_json_object(dg, v, GRAMMAR_LIMITS_DEFAULT, &big) == WEFT_OK);
    ck_assert(grammar_compile_json_object(dg, v, little, &small) == WEFT_OK);
    for (uint64_t seed = 1; seed < 30; seed++) {
        matcher *a = matcher_create(big), *b = matcher_create(small),
                *other = matcher_create(small);
        for (int i = 0; i < 60; i++) {
            const uint64_t *x, *y;
            ck_assert(matcher_mask(dg, a, &x) == WEFT_OK);
            weft_status st = matcher_mask(dg, b, &y);
            if (st != WEFT_OK)
                break; /* too little even for one mask: said, not wrong */
            ck_assert(memcmp(x, y, (CASE_TOKENS + 7) / 8) == 0);
            int32_t id = 0;
            for (uint64_t at = seed * 7919 + (uint64_t)i * 104729;; at++) {
                id = (int32_t)(at % CASE_TOKENS);
                if (case_has(x, id))
                    break;
            }
            ck_assert(matcher_accept(dg, a, id) == WEFT_OK);
            ck_assert(matcher_accept(dg, b, id) == WEFT_OK);
        }
        ck_assert(!matcher_may_end(other));
        matcher_destroy(a);
        matcher_destroy(b);
        matcher_destroy(other);
    }
    ck_assert_uint_lt(grammar_bytes(small), grammar_bytes(big) + (1 << 20));
    grammar_destroy(big);
    grammar_destroy(small);
    diag_destroy(dg);
    grammar_vocab_destroy(v);
}
END_TEST

/* Where memory is short a call says so, and the grammar can be used again; a text that was under way has lost its place. */
static bool run_short(weft_diag *dg, grammar *g, const char *text, int64_t after)
{
    matcher *m = matcher_create(g), *other = matcher_create(g);
    bool failed = false;
    mem_fail_after(after, false);
    for (size_t i = 0; text[i] && !failed; i++) {
        const uint64_t *mask;
        weft_status st = matcher_mask(dg, m, &mask);
        ck_assert(st != WEFT_OK || case_has(mask, (unsigned char)text[i]));
        if (st == WEFT_OK)
            st = matcher_accept(dg, m, (unsigned char)text[i]);
        failed = st != WEFT_OK;
        ck_assert(!failed || mem_fail_came());
    }
    mem_fail_after(0, false);
    ck_assert(failed || matcher_must_end(m));
    ck_assert(matcher_accept(dg, other, '{') == WEFT_OK);
    matcher_reset(m);
    ck_assert(matcher_accept(dg, m, '{') == WEFT_OK);
    matcher_destroy(m);
    matcher_destroy(other);
    ck_assert(grammar_match(dg, g, str_of(text)) == WEFT_OK);
    diag_reset(dg);
    return failed;
}

START_TEST(memory_is_short)
{
    grammar_vocab *v = case_vocab();
    weft_diag *dg = diag_create();
    (void)diag_fail_memory(dg, 1);
    diag_reset(dg);
    static const char *const cases[][2] = {
        {"{\"type\":\"object\"}", "{\"a\": [1, true, \"x\"], \"b\": {}}"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"maxLength\":9},\"b\":{"
         "\"type\":\"string\",\"pattern\":\"^[a-z]{2,12}$\"}},\"required\":[\"a\",\"b\"]}",
         "{\"a\": \"he\\nllo\", \"b\": \"abcdef\"}"}, /* counted_mask.c */
    };
    int failures = 0;
    for (int64_t after = 1; after < 800; after++) {
        grammar *g;
        const char *const *c = cases[after % 2];
        ck_assert(compile(dg, v, GRAMMAR_JSON_SCHEMA, c[0], &g) == WEFT_OK);
        failures += run_short(dg, g, c[1], after / 2 + 1);
        grammar_destroy(g);
    }
    ck_assert_int_gt(failures, 50);
    diag_destroy(dg);
    grammar_vocab_destroy(v);
}
END_TEST

START_TEST(ends)
{
    grammar_vocab *v = case_vocab();
    weft_diag *dg = diag_create();
    grammar *g;
    const uint64_t *mask;
    ck_assert(compile(dg, v, GRAMMAR_REGEX, "ab?", &g) == WEFT_OK);
    matcher *m = matcher_create(g);
    ck_assert(!matcher_may_end(m));
    ck_assert(matcher_accept(dg, m, CASE_END) != WEFT_OK);
    ck_assert(matcher_accept(dg, m, 'a') == WEFT_OK);
    ck_assert(matcher_may_end(m) && !matcher_must_end(m));
    ck_assert(matcher_accept(dg, m, 'b') == WEFT_OK);
    ck_assert(matcher_must_end(m));
    ck_assert(matcher_mask(dg, m, &mask) == WEFT_OK);
    for (int32_t id = 0; id < CASE_TOKENS; id++)
        ck_assert(case_has(mask, id) == (id == CASE_END));
    ck_assert(matcher_accept(dg, m, CASE_END) == WEFT_OK);
    ck_assert(matcher_accept(dg, m, 'b') != WEFT_OK);
    ck_assert(matcher_accept(dg, m, -1) != WEFT_OK);
    ck_assert(matcher_accept(dg, m, CASE_TOKENS) != WEFT_OK);
    matcher_reset(m);
    ck_assert(matcher_accept(dg, m, 'a') == WEFT_OK);
    matcher_destroy(m);
    grammar_destroy(g);
    diag_destroy(dg);
    grammar_vocab_destroy(v);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("grammar");
    TCase *t = tcase_create("grammar");
    tcase_add_test(t, regex_matches);
    tcase_add_test(t, gbnf_matches);
    tcase_add_test(t, schema_matches);
    tcase_add_test(t, refused);
    tcase_add_test(t, depth_is_bounded);
    tcase_add_test(t, small_caches);
    tcase_add_test(t, memory_is_short);
    tcase_add_test(t, ends);
    tcase_set_timeout(t, 120);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
