/* test_grammar_api.c - the public interface: answers of a given form. */
#include "tests/api/oom_kit.h"

#define OBJECT                                                                                     \
    "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"maxLength\":12},"        \
    "\"age\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":99}},\"required\":[\"name\",\"age\"]" \
    "}"

static kit opened(const char *path)
{
    kit k = kit_of(path);
    k.how.context = 128;
    ok(&k, weft_tokenizer_of_model(k.dg, k.m, &k.t));
    ok(&k, weft_session_create(k.dg, k.m, &k.how, &k.s));
    return k;
}

static weft_status create(kit *k, weft_grammar_kind kind, const char *text, weft_grammar **out)
{
    return weft_grammar_create(k->dg, k->s, k->t, kind, "form", text, strlen(text), out);
}

static weft_generation *begun(kit *k, weft_grammar *form, double temp, uint64_t seed, int64_t most)
{
    weft_sampler_options pick = {.size = sizeof pick};
    weft_sampler_defaults(&pick);
    pick.temp = temp;
    pick.seed = seed;
    weft_generation_options how = {
        .size = sizeof how, .max_tokens = most, .sampler = &pick, .grammar = form};
    weft_generation *g = NULL;
    ok(k, weft_generation_create(k->dg, k->s, k->t, &how, &g));
    return g;
}

typedef struct {
    char text[4096];
    size_t n;
} heard;

static bool hear(void *ctx, const weft_piece *p)
{
    heard *h = ctx;
    ck_assert_uint_lt(h->n + p->bytes, sizeof h->text);
    memcpy(h->text + h->n, p->text, p->bytes);
    h->n += p->bytes;
    h->text[h->n] = 0;
    return true;
}

static heard answer(kit *k, weft_generation *g, const char *prompt, weft_end *end)
{
    heard h = {.n = 0};
    int32_t *ids = NULL;
    size_t n = 0;
    ok(k, weft_encode(k->dg, k->t, prompt, strlen(prompt), WEFT_ADD_SPECIAL, &ids, &n));
    ok(k, weft_generation_prompt(k->dg, g, ids, n));
    weft_free(ids);
    ok(k, weft_generate(k->dg, g, hear, &h, end));
    return h;
}

START_TEST(wrong_arguments)
{
    kit k = opened(DEMO);
    weft_grammar *none = NULL;
    weft_grammar_destroy(NULL);
    ck_assert_int_eq(weft_grammar_create(k.dg, NULL, k.t, WEFT_GRAMMAR_REGEX, "x", "a", 1, &none),
                     WEFT_ERR_USAGE);
    ck_assert_int_eq(weft_grammar_create(k.dg, k.s, NULL, WEFT_GRAMMAR_REGEX, "x", "a", 1, &none),
                     WEFT_ERR_USAGE);
    ck_assert_int_eq(weft_grammar_create(k.dg, k.s, k.t, WEFT_GRAMMAR_REGEX, "x", NULL, 0, &none),
                     WEFT_ERR_USAGE);
    ck_assert_int_eq(weft_grammar_create(k.dg, k.s, k.t, WEFT_GRAMMAR_REGEX, "x", "a", 1, NULL),
                     WEFT_ERR_USAGE);
    ck_assert_int_ne(weft_grammar_create(NULL, k.s, k.t, WEFT_GRAMMAR_REGEX, "x", "a", 1, &none),
                     WEFT_OK);
    ck_assert_int_eq(weft_grammar_create(k.dg, k.s, k.t, (weft_grammar_kind)99, "x", "a", 1, &none),
                     WEFT_ERR_USAGE);
    static const struct {
        weft_grammar_kind kind;
        const char *text, *code;
    } wrong[] = {
        {WEFT_GRAMMAR_REGEX, "(a", "W1801"},
        {WEFT_GRAMMAR_REGEX, "(?=a)", "W1802"},
        {WEFT_GRAMMAR_REGEX, "a{1000000}", "W1803"},
        {WEFT_GRAMMAR_REGEX, "[]", "W1804"},
        {WEFT_GRAMMAR_GBNF, "rule ::= \"a\"", "W1801"},
        {WEFT_GRAMMAR_JSON_SCHEMA, "{\"type\":", "W1014"},
        {WEFT_GRAMMAR_JSON_SCHEMA, "{\"if\":{}}", "W1802"},
        {WEFT_GRAMMAR_JSON_SCHEMA, "false", "W1804"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        weft_diag_clear(k.dg);
        ck_assert_int_ne(create(&k, wrong[i].kind, wrong[i].text, &none), WEFT_OK);
        ck_assert_msg(strstr(weft_diag_text(k.dg), wrong[i].code), "%s: %s", wrong[i].text,
                      weft_diag_text(k.dg));
        ck_assert_ptr_null(none); /* untouched */
    }
    kit_close(&k);
}
END_TEST

/* Answers that the model ends are of the form, however they are chosen. */
START_TEST(answers_have_the_form)
{
    static const char yes_no[] = "(yes|no), [a-z]{3,8}!";
    kit k = opened(DEMO);
    weft_grammar *object, *regex;
    ok(&k, create(&k, WEFT_GRAMMAR_JSON_SCHEMA, OBJECT, &object));
    ok(&k, create(&k, WEFT_GRAMMAR_REGEX, yes_no, &regex));
    for (uint64_t seed = 1; seed <= 6; seed++) {
        weft_end end;
        weft_generation *g = begun(&k, object, seed == 1 ? 0 : 1.5, seed, 100);
        heard h = answer(&k, g, "Once upon a time", &end);
        ck_assert_msg(strncmp(h.text, "{", 1) == 0, "%s", h.text);
        if (end == WEFT_END_MODEL) {
            int age = -1, n = 0;
            const char *at = strstr(h.text, "\"age\":");
            ck_assert_msg(strstr(h.text, "\"name\":") && at, "%s", h.text);
            ck_assert_msg(sscanf(at + 6, "%d%n", &age, &n) == 1 && age >= 0 && age <= 99, "%s",
                          h.text);
            ck_assert_msg(h.text[h.n - 1] == '}', "%s", h.text);
        } else {
            ck_assert_int_eq(end, WEFT_END_LENGTH);
        }
        weft_generation_destroy(g);
        g = begun(&k, regex, 1.5, seed, 0);
        h = answer(&k, g, "Is it?", &end);
        ck_assert_int_eq(end, WEFT_END_MODEL); /* the form has an end of its own */
        ck_assert_msg(strncmp(h.text, "yes, ", 5) == 0 || strncmp(h.text, "no, ", 4) == 0, "%s",
                      h.text);
        ck_assert_msg(h.text[h.n - 1] == '!', "%s", h.text);
        weft_generation_destroy(g);
    }
    weft_grammar_destroy(object);
    weft_grammar_destroy(regex);
    kit_close(&k);
}
END_TEST

/* A form for another model's tokens. */
START_TEST(another_model)
{
    kit k = opened(DEMO), other = kit_of(DATA "/llama-mha");
    weft_grammar *form = NULL;
    weft_generation *g = NULL;
    ok(&other, weft_session_create(other.dg, other.m, &other.how, &other.s));
    /* The tokenizer is the first model's: what counts is how many logits there are. */
    ok(&k, weft_grammar_create(k.dg, other.s, k.t, WEFT_GRAMMAR_REGEX, "form", "a*", 2, &form));
    weft_generation_options how = {.size = sizeof how, .grammar = form};
    ck_assert_int_ne(weft_generation_create(k.dg, k.s, k.t, &how, &g), WEFT_OK);
    ck_assert_msg(strstr(weft_diag_text(k.dg), "W1903"), "%s", weft_diag_text(k.dg));
    ck_assert_ptr_null(g);
    weft_grammar_destroy(form);
    kit_close(&k);
    kit_close(&other);
}
END_TEST

static weft_status make_and_drop(weft_diag *dg, void *ctx)
{
    kit *k = ctx;
    weft_grammar *form = NULL;
    weft_status st = weft_grammar_create(dg, k->s, k->t, WEFT_GRAMMAR_JSON_SCHEMA, "form", OBJECT,
                                         sizeof OBJECT - 1, &form);
    weft_grammar_destroy(form);
    return st;
}

static weft_status refuse(weft_diag *dg, void *ctx)
{
    kit *k = ctx;
    weft_grammar *form = NULL;
    static const char text[] = "{\"properties\":{\"a\":{\"pattern\":\"(?=a)\"}}}";
    return weft_grammar_create(dg, k->s, k->t, WEFT_GRAMMAR_JSON_SCHEMA, "form", text,
                               sizeof text - 1, &form);
}

START_TEST(memory_is_short)
{
    kit k = opened(DEMO);
    exhaust("a grammar", make_and_drop, &k, WEFT_OK);
    exhaust("a grammar that is refused", refuse, &k, WEFT_ERR_NAME);
    kit_close(&k);
}
END_TEST

/* Where memory is short while an answer is made, that is said, and the next answer is whole. */
START_TEST(generating_short_of_memory)
{
    kit k = opened(DEMO);
    weft_grammar *form;
    int failed = 0;
    ok(&k, create(&k, WEFT_GRAMMAR_REGEX, "(yes|no), [a-z]{3,8}!", &form));
    for (int64_t n = 1; n < 60; n += 3) {
        weft_generation *g = begun(&k, form, 1, (uint64_t)n, 0);
        weft_end end = WEFT_END_NONE;
        heard h = {.n = 0};
        int32_t *ids = NULL;
        size_t n_id = 0;
        ok(&k, weft_encode(k.dg, k.t, "Well,", 5, WEFT_ADD_SPECIAL, &ids, &n_id));
        ok(&k, weft_generation_prompt(k.dg, g, ids, n_id));
        weft_free(ids);
        mem_fail_after(n, false);
        weft_status st = weft_generate(k.dg, g, hear, &h, &end);
        bool came = mem_fail_came();
        mem_fail_after(0, false);
        failed += st != WEFT_OK || end == WEFT_END_FAILED;
        ck_assert_msg(came || (st == WEFT_OK && end == WEFT_END_MODEL), "%s", weft_diag_text(k.dg));
        weft_diag_clear(k.dg);
        weft_generation_destroy(g);
        g = begun(&k, form, 1, (uint64_t)n, 0);
        h = answer(&k, g, "Well,", &end);
        ck_assert_int_eq(end, WEFT_END_MODEL);
        ck_assert_msg(h.n > 0 && h.text[h.n - 1] == '!', "%s", h.text);
        weft_generation_destroy(g);
    }
    ck_assert_int_gt(failed, 0);
    weft_grammar_destroy(form);
    kit_close(&k);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("grammar_api");
    TCase *t = tcase_create("grammar_api");
    tcase_add_test(t, wrong_arguments);
    tcase_add_test(t, answers_have_the_form);
    tcase_add_test(t, another_model);
    tcase_add_test(t, memory_is_short);
    tcase_add_test(t, generating_short_of_memory);
    tcase_set_timeout(t, 300);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
