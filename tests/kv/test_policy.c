/* test_policy.c - the suite of runtime/kv/policy.c and kernels/kpolicy.c. */
#include "runtime/kv/policy.h"
#include "tests/base/suite.h"

static const char *text_of(const kpolicy *p)
{
    static char text[200];
    strbuf b = {0};
    kpolicy_print(p, &b);
    snprintf(text, sizeof text, "%s", b.p);
    strbuf_free(&b);
    return text;
}

START_TEST(policies_are_read)
{
    static const char *const cases[][2] = {
        {"f32", "f32"},
        {"bf16 rest", "bf16"},
        {"q8", "f16 last=0, q8 rest"},
        {" q4_0 ", "f16 last=0, q4 rest"},
        {"q8_0/f16", "f16 last=0, q8/f16 rest"},
        {"q4/bf16", "f16/bf16 last=0, q4/bf16 rest"},
        {"f32/f16", "f32/f16"},
        {"f16 last=256, q8 last=4096, q4 rest", "f16 last=256, q8 last=4096, q4 rest"},
        {"f16 last = 256 ,q8\tlast=4096,q4", "f16 last=256, q8 last=4096, q4 rest"},
        {"q8 last=512, q4", "f16 last=0, q8 last=512, q4 rest"},
        {"f32 last=8, bf16 last=1073741824, q8/q4", "f32 last=8, bf16 last=1073741824, q8/q4 rest"},
        {"f16 last=1, q8/f16 last=2, q8 last=3, q4",
         "f16 last=1, q8/f16 last=2, q8 last=3, q4 rest"},
    };
    weft_diag *dg = diag_create();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        kpolicy p, again;
        ck_assert_int_eq(policy_parse(dg, "--kv", str_of(cases[i][0]), &p), WEFT_OK);
        ck_assert_str_eq(text_of(&p), cases[i][1]);
        ck_assert_ptr_null(kpolicy_wrong(&p));
        ck_assert_int_eq(policy_parse(dg, "--kv", str_of(cases[i][1]), &again), WEFT_OK);
        ck_assert(kpolicy_same_forms(&p, &again));
    }
    ck_assert_uint_eq(diag_count(dg), 0);
    diag_destroy(dg);
}
END_TEST

/* Text, message, and the column of the caret, from 1; 0: there is no text to show. */
START_TEST(mistakes_have_a_place)
{
    static const struct {
        const char *text, *why;
        int column;
    } cases[] = {
        {"", "the policy ends here", 0},
        {"  ", "the policy ends here", 3},
        {"f17", "there is no form `f17`", 1},
        {"q8_1", "there is no form `q8_1`", 1},
        {"f16 last=4, q5 rest", "there is no form `q5`", 13},
        {"f16/", "the policy ends here", 5},
        {"f16 last", "`=` expected", 9},
        {"f16 last=", "a number of tokens expected", 10},
        {"f16 last=x, q8", "`x` is no number of tokens", 10},
        {"f16 last=-1, q8", "`-` here; a number of tokens expected", 10},
        {"f16 last=1e9, q8", "`1e9` is no number", 10},
        {"f16 last=1073741825, q8", "last is at most 1073741824", 10},
        {"f16 last=99999999999999999999999999999, q8", "last is at most 1073741824", 10},
        {"f16, q8", "only the last tier goes without", 1},
        {"f16 rest, q8", "`rest` is for the last tier", 5},
        {"f16 last=4", "another one has to follow", 5},
        {"f16 last=4,", "the policy ends here", 12},
        {"f16 last=4, q8 last=4, q4", "last=4 is not more than that of the tier before, 4", 16},
        {"q8 last=0, q4", "last=0 is not more than that of the tier before, 0", 4},
        {"q8 last=4, f16", "keys of f16 after q8", 12},
        {"f16 last=4, bf16", "keys of bf16 after f16", 13},
        {"f16 last=4, q8/f32", "values of f32 after f16", 13},
        {"f16 last=4, f16 last=8, q8", "the same as the one before", 13},
        {"f16 first=4, q8", "`first` here", 5},
        {"f16 rest q8", "`q` here; `,` or the end expected", 10},
        {"f16; q8", "`;` here", 4},
        {"f32 last=1, f16 last=2, q8/f16 last=3, q8 last=4, q4", "at most 4 tiers", 51},
    };
    weft_diag *dg = diag_create();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        kpolicy p = {.n_tier = 77};
        ck_assert_int_eq(policy_parse(dg, "--kv", str_of(cases[i].text), &p), WEFT_ERR_SYNTAX);
        ck_assert_int_eq(p.n_tier, 77);
        expect_one(dg, W1414, cases[i].why);
        const char *shown = diag_shown(dg);
        char place[32];
        snprintf(place, sizeof place, "--kv:1:%d", cases[i].column);
        ck_assert_msg(!cases[i].column || (strstr(shown, place) && strchr(shown, '^')), "%s",
                      shown);
        diag_reset(dg);
    }
    char *text = calloc(1, POLICY_TEXT_MAX + 2);
    memset(text, ' ', POLICY_TEXT_MAX + 1);
    kpolicy p;
    ck_assert_int_eq(policy_parse(dg, "--kv", str_of(text), &p), WEFT_ERR_SYNTAX);
    expect_one(dg, W1414, "1001 bytes long");
    free(text);
    diag_destroy(dg);
}
END_TEST

START_TEST(cells_have_bounds)
{
    static const struct {
        const char *text;
        kform coarsest;
        bool latent;
        const char *is;
    } cases[] = {
        {"f16 last=4, q8 last=8, q4", KFORM_COUNT, false, "f16 last=4, q8 last=8, q4 rest"},
        {"f16 last=4, q8 last=8, q4", KFORM_Q8, false, "f16 last=4, q8 rest"},
        {"f16 last=4, q8 last=8, q4", KFORM_F16, false, "f16"},
        {"f16 last=4, q8 last=8, q4", KFORM_BF16, false, "f16"},
        {"f16 last=4, q8 last=8, q4", KFORM_F32, false, "f32"},
        {"q4", KFORM_Q8, false, "f16 last=0, q8 rest"},
        {"f32 last=2, f16 last=4, q4", KFORM_BF16, false, "f32 last=2, f16 rest"},
        {"f16 last=4, q8/f16 last=9, q4/q8", KFORM_COUNT, true, "f16 last=4, q8 last=9, q4 rest"},
        {"f16 last=4, f16/q8 last=9, q8", KFORM_COUNT, true, "f16 last=9, q8 rest"},
        {"bf16", KFORM_Q4, false, "bf16"},
    };
    weft_diag *dg = diag_create();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        kpolicy p;
        ck_assert_int_eq(policy_parse(dg, "--kv", str_of(cases[i].text), &p), WEFT_OK);
        kpolicy c = kpolicy_for_cell(&p, cases[i].coarsest, cases[i].latent);
        ck_assert_str_eq(text_of(&c), cases[i].is);
        ck_assert_ptr_null(kpolicy_wrong(&c));
    }
    const kpolicy wrong[] = {
        {0},
        {.n_tier = K_TIERS_MAX + 1},
        {1, {{KFORM_Q8, KFORM_Q8, KPOLICY_REST}}},
        {1, {{KFORM_F16, KFORM_F16, 4}}},
        {1, {{KFORM_COUNT, KFORM_F16, KPOLICY_REST}}},
        {2, {{KFORM_F16, KFORM_F16, 4}, {KFORM_F16, KFORM_F16, KPOLICY_REST}}},
        {2, {{KFORM_F16, KFORM_F16, -4}, {KFORM_Q8, KFORM_Q8, KPOLICY_REST}}},
        {2, {{KFORM_F16, KFORM_F16, 4}, {KFORM_F32, KFORM_Q8, KPOLICY_REST}}},
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        ck_assert_ptr_nonnull(kpolicy_wrong(&wrong[i]));
    diag_destroy(dg);
}
END_TEST

SUITE_MAIN("policy", policies_are_read, mistakes_have_a_place, cells_have_bounds)
