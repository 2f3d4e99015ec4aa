/* test_everyday.c - 200 schemas of the kinds that people use (data/everyday_schemas.jsonl): each compiles, matches the texts that it
 * should, and refuses those that it should not. Random texts of allowed tokens satisfy the schema, as another reader of schemas
 * (schema_check.h) sees it. */
#include "runtime/formats/json_read.h"
#include "tests/grammar/grammar_case.h"
#include "tests/grammar/schema_check.h"

#include <check.h>

enum { SCHEMAS_MIN = 200, WALKS = 6, WALK_TOKENS = 160 };

static const json_limits most = {
    .bytes_max = 1 << 20, .values_max = 1 << 16, .depth_max = 300, .exact = true};

typedef struct {
    weft_diag *dg;
    arena *a;
    grammar_vocab *v;
    int schemas, texts, made;
} everyday;

/* Like case_walk without trying every token: by preference tokens that bring the text to its end, later on. */
static bool make_text(everyday *e, grammar *g, uint64_t seed, strbuf *out)
{
    matcher *m = matcher_create(g);
    bool ended = false;
    for (int i = 0; i < 4 * WALK_TOKENS && !ended; i++) {
        const uint64_t *mask;
        weft_status st = matcher_mask(e->dg, m, &mask);
        ck_assert_msg(st == WEFT_OK, "%s", diag_shown(e->dg));
        int32_t allowed[CASE_TOKENS], n = 0;
        for (int32_t id = 0; id < CASE_TOKENS; id++)
            if (case_has(mask, id))
                allowed[n++] = id;
        ck_assert_int_gt(n, 0);
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        int32_t id = allowed[(seed >> 33) % (uint64_t)n];
        static const char last[] = "\"]}n0123456789";
        for (size_t k = 0; i > WALK_TOKENS && k < sizeof last - 1; k++)
            if (case_has(mask, (unsigned char)last[k])) {
                id = (unsigned char)last[k];
                break;
            }
        if (matcher_may_end(m) && (matcher_must_end(m) || i > WALK_TOKENS || seed >> 62 == 0))
            id = CASE_END;
        ck_assert(matcher_accept(e->dg, m, id) == WEFT_OK);
        strbuf_put(out, case_text(id));
        ended = id == CASE_END;
    }
    matcher_destroy(m);
    return ended;
}

static void check_made(everyday *e, const value *schema, const char *name, grammar *g)
{
    strbuf out = {0};
    for (uint64_t seed = 1; seed <= WALKS; seed++) {
        value v;
        strbuf_reset(&out);
        if (!make_text(e, g, seed * 7919, &out))
            continue; /* it nests ever deeper */
        weft_status st = json_read(e->dg, e->a, "made", strbuf_view(&out), most, &v);
        if (st != WEFT_OK &&
            diag_at(e->dg, 0).code == W1010) { /* a name twice, where any may stand */
            diag_reset(e->dg);
            continue;
        }
        ck_assert_msg(st == WEFT_OK, "%s: made `" STR_FMT "`: %s", name, STR_ARG(strbuf_view(&out)),
                      diag_shown(e->dg));
        schema_checker c = {.root = schema};
        bool ok = check_value(&c, schema, &v);
        ck_assert_msg(ok, "%s: made `" STR_FMT "`, which is not valid: %s", name,
                      STR_ARG(strbuf_view(&out)), c.why ? c.why : "its members");
        pcre2_code_free(c.code);
        e->made++;
    }
    strbuf_free(&out);
}

static void check_texts(everyday *e, const value *list, const value *schema, const char *name,
                        grammar *g, bool yes)
{
    for (size_t i = 0; i < value_count(list); i++) {
        value t = value_at(list, i), v;
        str text;
        ck_assert(value_str(&t, &text));
        bool matches = grammar_match(e->dg, g, text) == WEFT_OK;
        ck_assert_msg(matches == yes, "%s %s `" STR_FMT "`: %s", name,
                      yes ? "should match" : "should not match", STR_ARG(text), diag_shown(e->dg));
        diag_reset(e->dg);
        /* The checker agrees, so that it is one. Some texts that are left out are no JSON. */
        if (json_read(e->dg, e->a, "text", text, most, &v) == WEFT_OK) {
            schema_checker c = {.root = schema};
            ck_assert_msg(check_value(&c, schema, &v) == yes, "%s: the checker on `" STR_FMT "`",
                          name, STR_ARG(text));
            pcre2_code_free(c.code);
        }
        diag_reset(e->dg);
        e->texts++;
    }
    ck_assert_uint_gt(value_count(list), 0);
}

static void run_schema(everyday *e, const value *line)
{
    const value *schema = value_get(line, STR("schema"));
    str name;
    strbuf text = {0};
    grammar *g;
    ck_assert(value_str(value_get(line, STR("name")), &name));
    char *z = arena_alloc(e->a, name.n + 1);
    memcpy(z, name.p, name.n);
    z[name.n] = 0;
    check_text(schema, &text);
    weft_status st = grammar_compile(e->dg, e->v, GRAMMAR_JSON_SCHEMA, z, strbuf_view(&text),
                                     GRAMMAR_LIMITS_DEFAULT, &g);
    ck_assert_msg(st == WEFT_OK, "%s: %s", z, diag_shown(e->dg));
    strbuf_free(&text);
    check_texts(e, value_get(line, STR("yes")), schema, z, g, true);
    check_texts(e, value_get(line, STR("no")), schema, z, g, false);
    check_made(e, schema, z, g);
    grammar_destroy(g);
    e->schemas++;
}

START_TEST(everyday_schemas)
{
    everyday e = {.dg = diag_create(), .a = arena_create(), .v = case_vocab()};
    source *src;
    ck_assert(source_open(e.dg, e.a, EVERYDAY_DATA, 8 << 20, &src) == WEFT_OK);
    for (size_t at = 0; at < src->text.n;) {
        const char *line = src->text.p + at, *end = memchr(line, '\n', src->text.n - at);
        size_t len = end ? (size_t)(end - line) : src->text.n - at;
        value c;
        ck_assert(json_read(e.dg, e.a, "everyday", (str){line, len}, most, &c) == WEFT_OK);
        run_schema(&e, &c);
        at += len + 1;
    }
    printf("%d schemas, %d texts, %d made at random\n", e.schemas, e.texts, e.made);
    ck_assert_int_ge(e.schemas, SCHEMAS_MIN);
    ck_assert_int_ge(e.made, 4 * e.schemas);
    grammar_vocab_destroy(e.v);
    arena_destroy(e.a);
    diag_destroy(e.dg);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("everyday");
    TCase *t = tcase_create("everyday");
    tcase_add_test(t, everyday_schemas);
    tcase_set_timeout(t, 120);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
