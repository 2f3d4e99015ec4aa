/* test_serve_form.c - forms of answers: schemas of calls, references moved with them, and grammars that are compiled once. */
#include "runtime/http/serve_filter.h"
#include "tests/base/suite.h"

enum { BYTES = 256 };

/* A token for each byte, and an end. */
static grammar_vocab *bytes_vocab(void)
{
    static char letters[BYTES];
    static str text[BYTES + 1];
    int32_t end = BYTES;
    for (int i = 0; i < BYTES; i++) {
        letters[i] = (char)i;
        text[i] = (str){&letters[i], 1};
    }
    return grammar_vocab_of(text, BYTES + 1, &end, 1);
}

typedef struct {
    weft_diag *dg;
    arena *a;
    serve_request rq;
} asked;

static asked ask(const char *rest)
{
    asked q = {.dg = diag_create(), .a = arena_create()};
    serve_rules rules = {.model = "base", .sampler = serve_sampler_defaults(), .body_max = 1 << 20};
    strbuf body = {0}, why = {0};
    strbuf_add(&body, "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}], %s}", rest);
    weft_status st = serve_request_read(q.dg, q.a, SERVE_CHAT, strbuf_view(&body), &rules, &q.rq);
    diag_text(q.dg, &why, false);
    ck_assert_msg(st == WEFT_OK, "%s: %s", rest, why.n ? why.p : "");
    strbuf_free(&why);
    strbuf_free(&body);
    return q;
}

static void done(asked *q)
{
    diag_destroy(q->dg);
    arena_destroy(q->a);
}

#define TREE                                                                                       \
    "{\"$defs\": {\"Leaf\": {\"type\": \"object\", \"properties\": {\"$ref\": {\"type\": "         \
    "\"integer\"}, \"next\": {\"anyOf\": [{\"$ref\": \"#/$defs/Leaf\"}, {\"type\": \"null\"}]}}, " \
    "\"required\": [\"$ref\", \"next\"], \"additionalProperties\": false}}, \"type\": "            \
    "\"object\", "                                                                                 \
    "\"properties\": {\"leaf\": {\"$ref\": \"#/$defs/Leaf\"}}, \"required\": [\"leaf\"], "         \
    "\"additionalProperties\": false}"
#define TOOL(name)                                                                                 \
    "{\"type\": \"function\", \"function\": {\"name\": \"" name "\", \"parameters\": " TREE "}}"
#define LEAF "{\"leaf\":{\"$ref\":1,\"next\":{\"$ref\":2,\"next\":null}}}"
#define CALL(name) "{\"name\":\"" name "\",\"arguments\":" LEAF "}"

START_TEST(answers_have_the_form_that_was_asked_for)
{
    static const struct {
        const char *rest, *text;
        bool fits;
    } cases[] = {
        {"\"tools\": [" TOOL("f") ", " TOOL("g") "], \"tool_choice\": \"required\"", CALL("g"),
         true},
        {"\"tools\": [" TOOL("f") "], \"tool_choice\": \"required\"", CALL("g"), false},
        {"\"tools\": [" TOOL("f") "], \"tool_choice\": \"required\"",
         "{\"name\":\"f\",\"arguments\":{}}", false},
        {"\"tools\": [" TOOL("f") ", " TOOL(
             "g") "], \"tool_choice\": {\"type\": \"function\", \"function\": {\"name\": \"g\"}}",
         CALL("f"), false},
        {"\"tools\": [" TOOL("f") ", " TOOL(
             "g") "], \"tool_choice\": {\"type\": \"function\", \"function\": {\"name\": \"g\"}}",
         CALL("g"), true},
        /* calls may come beside an answer of a form */
        {"\"tools\": [" TOOL("f") "], \"json_schema\": " TREE, CALL("f"), true},
        {"\"tools\": [" TOOL("f") "], \"json_schema\": " TREE, LEAF, true},
        {"\"tools\": [" TOOL("f") "], \"json_schema\": " TREE, "{\"leaf\":1}", false},
        {"\"tools\": [" TOOL("f") "], \"response_format\": {\"type\": \"json_object\"}",
         "{\"a\":1}", true},
        {"\"tools\": [" TOOL("f") "], \"response_format\": {\"type\": \"json_object\"}", "[1]",
         false},
        {"\"response_format\": {\"type\": \"json_object\"}", "{\"a\":[1]}", true},
        {"\"regex\": \"[ab]+\"", "abba", true},
        {"\"regex\": \"[ab]+\"", "abc", false},
    };
    grammar_vocab *v = bytes_vocab();
    form_cache *kept = form_cache_create();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        asked q = ask(cases[i].rest);
        grammar *g = NULL;
        strbuf why = {0};
        weft_status st = serve_form_get(q.dg, kept, v, &q.rq, &g);
        diag_text(q.dg, &why, false);
        ck_assert_msg(st == WEFT_OK, "%s: %s", cases[i].rest, why.n ? why.p : "");
        ck_assert_msg((grammar_match(q.dg, g, str_of(cases[i].text)) == WEFT_OK) == cases[i].fits,
                      "%s: %s", cases[i].rest, cases[i].text);
        strbuf_free(&why);
        grammar_destroy(g);
        done(&q);
    }
    form_cache_destroy(kept);
    grammar_vocab_destroy(v);
}
END_TEST

START_TEST(without_a_form_there_is_no_grammar)
{
    asked q = ask("\"tools\": [" TOOL("f") "]");
    grammar *g = (grammar *)&q;
    form_cache *kept = form_cache_create();
    ck_assert_int_eq(serve_form_get(q.dg, kept, NULL, &q.rq, &g), WEFT_OK);
    ck_assert_ptr_null(g);
    form_cache_destroy(kept);
    done(&q);
}
END_TEST

START_TEST(equal_texts_are_compiled_once)
{
    grammar_vocab *v = bytes_vocab();
    form_cache *kept = form_cache_create();
    weft_diag *dg = diag_create();
    grammar *first, *again, *other;
    ck_assert_int_eq(form_cache_get(dg, kept, v, GRAMMAR_REGEX, "r", STR("a+"), &first), WEFT_OK);
    ck_assert_int_eq(form_cache_get(dg, kept, v, GRAMMAR_REGEX, "r", STR("a+"), &again), WEFT_OK);
    ck_assert_ptr_eq(first, again);
    /* the same text of another kind is another grammar */
    ck_assert_int_eq(form_cache_get(dg, kept, v, GRAMMAR_GBNF, "r", STR("root ::= \"a\""), &other),
                     WEFT_OK);
    ck_assert_ptr_ne(first, other);
    grammar_destroy(other);
    /* what is wrong is said each time, and not kept */
    ck_assert_int_ne(form_cache_get(dg, kept, v, GRAMMAR_REGEX, "r", STR("("), &other), WEFT_OK);
    ck_assert_int_ne(form_cache_get(dg, kept, v, GRAMMAR_REGEX, "r", STR("("), &other), WEFT_OK);
    ck_assert_uint_eq(form_cache_count(kept).kept, 2);
    ck_assert_uint_eq(form_cache_count(kept).hits, 1);
    /* many others push it out, and who holds it still has it */
    for (int i = 0; i < 3 * FORM_CACHE_MAX; i++) {
        char text[16];
        snprintf(text, sizeof text, "b{%d}", i + 1);
        ck_assert_int_eq(form_cache_get(dg, kept, v, GRAMMAR_REGEX, "r", str_of(text), &other),
                         WEFT_OK);
        grammar_destroy(other);
    }
    ck_assert_uint_eq(form_cache_count(kept).kept, FORM_CACHE_MAX);
    ck_assert_int_eq(grammar_match(dg, first, STR("aaa")), WEFT_OK);
    ck_assert_int_eq(form_cache_get(dg, kept, v, GRAMMAR_REGEX, "r", STR("a+"), &other), WEFT_OK);
    ck_assert_ptr_ne(first, other);
    grammar_destroy(other);
    grammar_destroy(first);
    grammar_destroy(again);
    diag_destroy(dg);
    form_cache_destroy(kept);
    grammar_vocab_destroy(v);
}
END_TEST

SUITE_MAIN("serve_form", answers_have_the_form_that_was_asked_for,
           without_a_form_there_is_no_grammar, equal_texts_are_compiled_once)
