/* test_plan_serves.c - the suite of runtime/api/api_plan.c: what a plan that is there can serve, and what is refused by name. */
#include "runtime/api/api_model.h"
#include "tests/base/suite.h"

static const plan_output outputs[] = {{.name = "logits", .index = -1}};
static const plan made = {.n_ctx = 100,
                          .n_tok_max = 8,
                          .n_out_max = 2,
                          .n_seq_max = 2,
                          .lora_slots = 1,
                          .lora_rank = 4,
                          .kv = DT_F16,
                          .level = "c",
                          .n_output = 1,
                          .output = outputs};

typedef struct {
    api_wanted w;
    const char *said; /* NULL: it is served */
} serve_case;

static weft_status ask(weft_diag *dg, const api_wanted *w)
{
    WEFT_TRY(api_plan_serves(dg, &made, "story", w));
    return api_plan_serves_kind(dg, &made, "story", w);
}

START_TEST(what_cannot_be_served_is_refused_by_name)
{
    static const char *const known[] = {"logits"}, *const unknown[] = {"hidden"};
    /* clang-format off */
    const serve_case cases[] = {
        {{.how = {.context = 100}}, NULL},
        {{.how = {.context = 10, .batch = 8, .sequences = 2, .wants = 2, .lora_slots = 1, .lora_rank = 4}}, NULL},
        {{.how = {.context = 10, .outputs = known, .n_output = 1}}, NULL},
        {{.how = {.context = 10, .kv = WEFT_KV_F16}}, NULL},
        {{.how = {.context = 10, .kv_policy = "f16"}}, NULL},
        {{.how = {.context = 10, .kv_policy = "auto"}}, NULL},
        {{.how = {.context = 4, .batch = 9}}, NULL}, /* no more than 4 rows are there */
        {{.how = {.context = 101}}, "story is for sequences of 100 tokens, 101 were asked for"},
        {{.how = {.context = 100, .batch = 9}}, "story takes 8 rows in a call, 9 were asked for"},
        {{.how = {.context = 10, .outputs = unknown, .n_output = 1}}, "story has no output 'hidden'"},
        {{.how = {.context = 10, .sequences = 3}}, "story was made for sequences up to 2, not 3"},
        {{.how = {.context = 10, .wants = 3}}, "with outputs up to 2, not 3"},
        {{.how = {.context = 10, .lora_slots = 2}}, "slots for adapters up to 1, not 2"},
        {{.how = {.context = 10, .lora_slots = 1, .lora_rank = 8}}, "rank of adapters up to 4, not 8"},
        {{.how = {.context = 10, .kv = WEFT_KV_F32}}, "story stores keys and values as f16, not as f32"},
        {{.how = {.context = 10, .kv_policy = "f16 last=64, q8 rest"}}, "not as f16 last=64, q8"},
        {{.how = {.context = 10, .deterministic = true}}, "story was made without deterministic arithmetic"},
        {{.how = {.context = 10, .round_bf16 = true}}, "without rounding to bf16"},
        {{.how = {.context = 10, .exact = true}}, NULL},
        {{.how = {.context = 10, .exec = WEFT_EXEC_REF}}, "without the reference executor"},
        {{.how = {.context = 10, .plan = "x.plan"}}, "without a plan file"},
        {{.how = {.context = 10}, .watched = true}, "without watching"},
    };
    /* clang-format on */
    weft_diag *dg = diag_create();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        weft_status st = ask(dg, &cases[i].w);
        const char *text = diag_shown(dg);
        ck_assert_msg((st == WEFT_OK) == !cases[i].said, "case %zu: %s", i, text);
        ck_assert_msg(!cases[i].said || strstr(text, cases[i].said), "case %zu: %s", i, text);
        diag_reset(dg);
    }
    diag_destroy(dg);
}
END_TEST

START_TEST(a_plan_that_rounds_has_not_all_bits)
{
    weft_diag *dg = diag_create();
    plan rounds = made;
    rounds.level = "amx_bf16";
    api_wanted w = {.how = {.context = 10}};
    ck_assert_int_eq(api_plan_serves(dg, &rounds, "story", &w), WEFT_OK);
    w.how.exact = true;
    ck_assert_int_eq(api_plan_serves(dg, &rounds, "story", &w), WEFT_ERR_DEVICE);
    ck_assert_int_eq(diag_at(dg, 0).code, W1617);
    diag_destroy(dg);
}
END_TEST

SUITE_MAIN("plan_serves", what_cannot_be_served_is_refused_by_name,
           a_plan_that_rounds_has_not_all_bits)
