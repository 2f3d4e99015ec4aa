/* test_grammar_bombs.c - texts made to cost much: each is refused by a limit (W1803, or what json_read says of its own), or compiles
 * and runs, within a second and a bounded amount of memory. */
#include "tests/grammar/grammar_case.h"

#include <check.h>
#include <sys/resource.h>

/* Sanitizers make everything slower, and use more memory. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SLOWER = 20, LARGER = 8 };
#else
enum { SLOWER = 1, LARGER = 1 };
#endif
enum { MEMORY_MAX_MB = 512 * LARGER };

static double seconds(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r); /* of this process: others may use the machine */
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

static long memory_mb(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return r.ru_maxrss / 1024;
}

/* Compiles, takes a few masks, and says what came of it. */
static weft_status try_text(const char *what, grammar_kind kind, str text)
{
    grammar_vocab *v = case_vocab();
    weft_diag *dg = diag_create();
    grammar *g = NULL;
    double start = seconds();
    weft_status st = grammar_compile(dg, v, kind, what, text, GRAMMAR_LIMITS_DEFAULT, &g);
    double took = seconds() - start;
    ck_assert_msg(took < SLOWER, "%s takes %.2f s to compile", what, took);
    if (st == WEFT_OK) {
        matcher *m = matcher_create(g);
        for (int i = 0; i < 20; i++) {
            const uint64_t *mask;
            start = seconds();
            if (matcher_mask(dg, m, &mask) != WEFT_OK)
                break;
            int32_t id = 0;
            while (id < CASE_TOKENS && !case_has(mask, id))
                id++;
            bool goes_on =
                matcher_accept(dg, m, id) == WEFT_OK; /* or there are too many readings */
            took = seconds() - start;
            ck_assert_msg(took < SLOWER, "%s takes %.2f s for a token", what, took);
            if (id == CASE_END || !goes_on)
                break;
        }
        matcher_destroy(m);
        grammar_destroy(g);
    } else {
        ck_assert_msg(st != WEFT_ERR_LIMIT || strstr(diag_shown(dg), "W1803") ||
                          strstr(diag_shown(dg), "W11"),
                      "%s: %s", what, diag_shown(dg));
    }
    ck_assert_msg(memory_mb() < MEMORY_MAX_MB, "%s takes %ld MiB", what, memory_mb());
    diag_destroy(dg);
    grammar_vocab_destroy(v);
    return st;
}

/* before, then item n times with its number in place of %d, with `between`, then after. */
typedef struct {
    const char *what, *before, *item, *between, *after;
    int n;
    bool refused; /* by a limit; else it may compile */
    grammar_kind kind;
} bomb;

static void put_numbered(strbuf *b, const char *item, int i)
{
    for (; *item; item++)
        if (item[0] == '%' && item[1] == 'd') {
            strbuf_add(b, "%d", i);
            item++;
        } else if (item[0] == '%' && item[1] == 'n') {
            strbuf_add(b, "%d", i + 1);
            item++;
        } else {
            strbuf_putc(b, *item);
        }
}

/* clang-format off */
static const bomb bombs[] = {
    {"allOf twice of the next", "{\"$ref\":\"#/$defs/d0\",\"$defs\":{", "\"d%d\":{\"allOf\":[{\"$ref\":\"#/$defs/d%n\"},{\"$ref\":\"#/$defs/d%n\"}]}", ",", ",\"d40\":{\"type\":\"integer\"}}}", 40, true, GRAMMAR_JSON_SCHEMA},
    {"allOf within properties", "{\"$ref\":\"#/$defs/d0\",\"$defs\":{", "\"d%d\":{\"allOf\":[{\"properties\":{\"a\":{\"$ref\":\"#/$defs/d%n\"}}},{\"properties\":{\"a\":{\"$ref\":\"#/$defs/d%n\"}}}]}", ",", ",\"d40\":{\"type\":\"integer\"}}}", 40, true, GRAMMAR_JSON_SCHEMA},
    {"anyOf twice of the next", "{\"$ref\":\"#/$defs/d0\",\"$defs\":{", "\"d%d\":{\"anyOf\":[{\"$ref\":\"#/$defs/d%n\"},{\"$ref\":\"#/$defs/d%n\"}]}", ",", ",\"d40\":{\"type\":\"integer\"}}}", 40, false, GRAMMAR_JSON_SCHEMA},
    {"anyOf beside properties", "{\"$ref\":\"#/$defs/d0\",\"$defs\":{", "\"d%d\":{\"minimum\":%d,\"anyOf\":[{\"$ref\":\"#/$defs/d%n\"},{\"$ref\":\"#/$defs/d%n\",\"maximum\":9}]}", ",", ",\"d40\":{\"type\":\"integer\"}}}", 40, true, GRAMMAR_JSON_SCHEMA},
    {"a long chain of references", "{\"$ref\":\"#/$defs/d0\",\"$defs\":{", "\"d%d\":{\"$ref\":\"#/$defs/d%n\"}", ",", ",\"d5000\":{}}}", 5000, true, GRAMMAR_JSON_SCHEMA},
    {"a reference to itself with more", "", "{\"$ref\":\"#\",\"minimum\":1}", "", "", 1, true, GRAMMAR_JSON_SCHEMA},
    {"anchors looked for again and again", "{\"properties\":{", "\"p%d\":{\"$ref\":\"#x\"}", ",", "},\"$defs\":{\"z\":{\"$anchor\":\"x\",\"type\":\"null\"}}}", 20000, true, GRAMMAR_JSON_SCHEMA},
    {"counts of counts", "{\"$ref\":\"#/$defs/d0\",\"$defs\":{", "\"d%d\":{\"type\":\"array\",\"minItems\":60000,\"items\":{\"$ref\":\"#/$defs/d%n\"}}", ",", ",\"d4\":{\"type\":\"null\"}}}", 4, true, GRAMMAR_JSON_SCHEMA},
    {"long strings", "{\"properties\":{", "\"p%d\":{\"type\":\"string\",\"minLength\":65000}", ",", "}}", 10, true, GRAMMAR_JSON_SCHEMA},
    {"a minLength of a billion", "{\"minLength\":1000000000", "", "", "}", 1, true, GRAMMAR_JSON_SCHEMA},
    {"a maxLength of a billion", "{\"maxLength\":1000000000", "", "", "}", 1, false, GRAMMAR_JSON_SCHEMA},
    {"many optional properties", "{\"properties\":{", "\"p%d\":{\"type\":\"null\"}", ",", "}}", 3000, false, GRAMMAR_JSON_SCHEMA},
    {"too many properties", "{\"properties\":{", "\"p%d\":{\"type\":\"null\"}", ",", "}}", 30000, true, GRAMMAR_JSON_SCHEMA},
    {"many properties and others", "{\"additionalProperties\":true,\"properties\":{", "\"property number %d of them all\":{}", ",", "}}", 8000, false, GRAMMAR_JSON_SCHEMA},
    {"many required names", "{\"required\":[", "\"p%d\"", ",", "]}", 60000, true, GRAMMAR_JSON_SCHEMA},
    {"a long enum", "{\"enum\":[", "\"value number %d\"", ",", "]}", 30000, false, GRAMMAR_JSON_SCHEMA},
    {"oneOf of many", "{\"oneOf\":[", "{\"const\":%d}", ",", "]}", 20000, true, GRAMMAR_JSON_SCHEMA},
    {"oneOf of many objects", "{\"oneOf\":[", "{\"properties\":{\"a\":{\"const\":%d},\"b\":{},\"c\":{}}}", ",", "]}", 5000, false, GRAMMAR_JSON_SCHEMA},
    {"anyOf of many", "{\"anyOf\":[", "{\"type\":\"object\",\"properties\":{\"a\":{\"const\":%d}},\"required\":[\"a\"]}", ",", "]}", 5000, false, GRAMMAR_JSON_SCHEMA},
    {"multiples of many", "{\"properties\":{", "\"p%d\":{\"type\":\"integer\",\"multipleOf\":61}", ",", "}}", 1000, true, GRAMMAR_JSON_SCHEMA},
    {"unique items of many", "{\"properties\":{", "\"p%d\":{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"enum\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]}}", ",", "}}", 1000, true, GRAMMAR_JSON_SCHEMA},
    {"a pattern of patterns with a length", "{\"type\":\"string\",\"maxLength\":60000,\"pattern\":\"^", "(a|b%d*)*", "", "$\"}", 2000, false, GRAMMAR_JSON_SCHEMA},
    {"deep brackets", "", "[", "", "", 100000, true, GRAMMAR_JSON_SCHEMA},
    {"deep schemas", "", "{\"items\":", "", "", 5000, true, GRAMMAR_JSON_SCHEMA},
    {"a text past the limit", "{\"description\":\"", "xxxxxxxxxxxxxxxx", "", "\"}", 100000, true, GRAMMAR_JSON_SCHEMA},
    {"(a+)+", "(a+)+b", "", "", "", 1, false, GRAMMAR_REGEX},
    {"(a|a)*", "(a|a)*b", "", "", "", 1, false, GRAMMAR_REGEX},
    {"counts that multiply", "", "(", "", "a{100}){100}){100}){100}){100}){100}", 5, false, GRAMMAR_REGEX},
    {"optional counts that multiply", "((((a{0,300}){0,300}){0,300}){0,300}){0,300}", "", "", "", 1, false, GRAMMAR_REGEX},
    {"a count past the limit", "a{1000000}", "", "", "", 1, true, GRAMMAR_REGEX},
    {"many counts", "", "(ab|c){1000}", "", "", 300, true, GRAMMAR_REGEX},
    {"a far look back", "(a|b)*a(a|b){200}", "", "", "", 1, false, GRAMMAR_REGEX},
    {"stars after stars", "", "[a-z]*", "", "", 400, false, GRAMMAR_REGEX},
    {"choices after choices", "", "(a|ab|abc|b|bc|c)?", "", "", 2000, false, GRAMMAR_REGEX},
    {"deep groups", "", "(", "", "", 100000, true, GRAMMAR_REGEX},
    {"classes of many characters", "[", "\\u{%d}", "", "]", 9, false, GRAMMAR_REGEX},
    {"rules that double", "root ::= r0 r0\n", "r%d ::= r%n r%n\n", "", "r60 ::= \"a\"\n", 60, false, GRAMMAR_GBNF},
    {"rules with nothing to read", "root ::= \"b\" r0\n", "r%d ::= (r%n r%n)?\n", "", "r60 ::= \"a\"?\n", 60, false, GRAMMAR_GBNF},
    {"a rule of choices of itself", "root ::= \"a\" root root root | \"a\" root root | \"a\" root | \"a\"\n", "", "", "", 1, false, GRAMMAR_GBNF},
    {"many rules", "root ::= r0\n", "r%d ::= \"a\" r%n | \"b\"{100}\n", "", "r20000 ::= \"a\"\n", 20000, true, GRAMMAR_GBNF},
};
/* clang-format on */

START_TEST(one_bomb)
{
    const bomb *x = &bombs[_i];
    strbuf b = {0};
    strbuf_add(&b, "%s", x->before);
    for (int i = 0; i < x->n; i++) {
        strbuf_add(&b, "%s", i ? x->between : "");
        put_numbered(&b, x->item, i);
    }
    strbuf_add(&b, "%s", x->after);
    weft_status st = try_text(x->what, x->kind, strbuf_view(&b));
    ck_assert_msg(!x->refused || st == WEFT_ERR_LIMIT, "%s: status %d", x->what, (int)st);
    strbuf_free(&b);
}
END_TEST

/* A choice between two long lists of constants compares all pairs. */
START_TEST(pairs_of_constants)
{
    strbuf b = {0};
    strbuf_add(&b, "{\"allOf\":[");
    for (int k = 0; k < 2; k++) {
        strbuf_add(&b, "%s{\"enum\":[", k ? "," : "");
        for (int i = 0; i < 20000; i++)
            strbuf_add(&b, "%s\"%d constant\"", i ? "," : "", 2 * i + k);
        strbuf_add(&b, "]}");
    }
    strbuf_add(&b, "]}");
    ck_assert_int_eq(try_text("two long enums", GRAMMAR_JSON_SCHEMA, strbuf_view(&b)),
                     WEFT_ERR_LIMIT);
    memcpy(b.p, "{\"oneOf\":[", 10);
    ck_assert_int_eq(try_text("one of two long enums", GRAMMAR_JSON_SCHEMA, strbuf_view(&b)),
                     WEFT_ERR_LIMIT);
    strbuf_free(&b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("grammar_bombs");
    TCase *t = tcase_create("grammar_bombs");
    tcase_add_loop_test(t, one_bomb, 0, sizeof bombs / sizeof *bombs);
    tcase_add_test(t, pairs_of_constants);
    tcase_set_timeout(t, 120);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
