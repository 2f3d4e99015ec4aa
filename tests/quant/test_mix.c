/* test_mix.c - which tensor gets which type. */
#include "runtime/quant/mix.h"
#include "tests/base/suite.h"

#include <stdlib.h>

/* clang-format off */
static const struct {
    const char *preset, *name;
    int rank;
    int64_t layers, experts, columns;
    bool tied;
    const char *type, *wanted;
    bool keep;
} cases[] = {
    /* plain types, and what never changes */
    {"F16",    "blk.0.attn_q.weight",        2, 32, 0, 4096, false, "F16",  "F16",  false},
    {"BF16",   "output.weight",              2, 32, 0, 4096, false, "BF16", "BF16", false},
    {"Q8_0",   "output.weight",              2, 32, 0, 4096, false, "Q8_0", "Q8_0", false},
    {"Q4_0",   "blk.0.attn_norm.weight",     1, 32, 0, 4096, false, "F32",  "F32",  true},
    {"Q4_0",   "blk.0.attn_q.bias",          1, 32, 0, 4096, false, "F32",  "F32",  true},
    {"Q4_0",   "blk.0.ffn_gate_inp.weight",  2, 32, 8, 4096, false, "F32",  "F32",  true},
    {"Q4_0",   "blk.0.attn_q_norm.weight",   2, 32, 0, 4096, false, "F32",  "F32",  true},
    {"Q4_0",   "blk.0.attn_q.lora_a",        2, 32, 0, 4096, false, "F32",  "F32",  true},
    /* the head */
    {"Q4_0",   "output.weight",              2, 32, 0, 4096, false, "Q6_K", "Q6_K", false},
    {"Q4_0",   "token_embd.weight",          2, 32, 0, 4096, false, "Q4_0", "Q4_0", false},
    {"Q4_0",   "token_embd.weight",          2, 32, 0, 4096, true,  "Q6_K", "Q6_K", false},
    {"Q4_K_M", "token_embd.weight",          2, 30, 0, 576,  true,  "Q8_0", "Q6_K", false},
    /* Q4_K_M: more bits in the first and last eighth of the layers, and every third between */
    {"Q4_K_M", "blk.0.ffn_down.weight",      2, 32, 0, 4096, false, "Q6_K", "Q6_K", false},
    {"Q4_K_M", "blk.3.ffn_down.weight",      2, 32, 0, 4096, false, "Q6_K", "Q6_K", false},
    {"Q4_K_M", "blk.4.ffn_down.weight",      2, 32, 0, 4096, false, "Q4_K", "Q4_K", false},
    {"Q4_K_M", "blk.5.ffn_down.weight",      2, 32, 0, 4096, false, "Q4_K", "Q4_K", false},
    {"Q4_K_M", "blk.6.ffn_down.weight",      2, 32, 0, 4096, false, "Q6_K", "Q6_K", false},
    {"Q4_K_M", "blk.27.ffn_down.weight",     2, 32, 0, 4096, false, "Q6_K", "Q6_K", false},
    {"Q4_K_M", "blk.26.ffn_down.weight",     2, 32, 0, 4096, false, "Q4_K", "Q4_K", false},
    {"Q4_K_M", "blk.31.attn_v.weight",       2, 32, 0, 4096, false, "Q6_K", "Q6_K", false},
    {"Q4_K_M", "blk.5.attn_v.weight",        2, 32, 0, 4096, false, "Q4_K", "Q4_K", false},
    {"Q4_K_M", "blk.0.attn_q.weight",        2, 32, 0, 4096, false, "Q4_K", "Q4_K", false},
    {"Q4_K_M", "blk.0.ffn_up.weight",        2, 32, 0, 4096, false, "Q4_K", "Q4_K", false},
    {"Q5_K_M", "blk.0.ffn_down.weight",      2, 32, 0, 4096, false, "Q6_K", "Q6_K", false},
    {"Q5_K_M", "blk.4.ffn_down.weight",      2, 32, 0, 4096, false, "Q5_K", "Q5_K", false},
    {"Q5_K_S", "blk.0.ffn_down.weight",      2, 32, 0, 4096, false, "Q5_K", "Q5_K", false},
    /* Q4_K_S: the first four attn_v, the first eighth of ffn_down */
    {"Q4_K_S", "blk.3.attn_v.weight",        2, 32, 0, 4096, false, "Q5_K", "Q5_K", false},
    {"Q4_K_S", "blk.4.attn_v.weight",        2, 32, 0, 4096, false, "Q4_K", "Q4_K", false},
    {"Q4_K_S", "blk.3.ffn_down.weight",      2, 32, 0, 4096, false, "Q5_K", "Q5_K", false},
    {"Q4_K_S", "blk.4.ffn_down.weight",      2, 32, 0, 4096, false, "Q4_K", "Q4_K", false},
    {"Q4_K_M", "blk.0.ffn_down_exps.weight", 3, 32, 8, 4096, false, "Q6_K", "Q6_K", false},
    {"Q4_K_M", "blk.9.attn_v.weight",        2, 32, 8, 4096, false, "Q8_0", "Q8_0", false},
    {"Q4_K_M", "blk.9.attn_k.weight",        2, 32, 8, 4096, false, "Q8_0", "Q8_0", false},
    {"Q4_K_M", "blk.9.attn_output.weight",   2, 32, 8, 4096, false, "Q5_K", "Q5_K", false},
    {"Q6_K",   "blk.0.ffn_down.weight",      2, 32, 0, 4096, false, "Q6_K", "Q6_K", false},
    /* rows that are no whole blocks */
    {"Q4_K_S", "blk.9.attn_q.weight",        2, 32, 0, 576,  false, "Q5_0", "Q4_K", false},
    {"Q5_K_S", "blk.9.attn_q.weight",        2, 32, 0, 576,  false, "Q5_1", "Q5_K", false},
    {"Q6_K",   "blk.9.attn_q.weight",        2, 32, 0, 576,  false, "Q8_0", "Q6_K", false},
    {"Q4_K_S", "blk.9.attn_q.weight",        2, 32, 0, 100,  false, "F16",  "Q4_K", false},
    {"Q4_0",   "blk.9.attn_q.weight",        2, 32, 0, 100,  false, "F16",  "Q4_0", false},
    {"Q8_0",   "blk.9.attn_q.weight",        2, 32, 0, 33,   false, "F16",  "Q8_0", false},
};
/* clang-format on */

START_TEST(presets)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mix_model m = {.preset = mix_find(cases[i].preset),
                       .layers = cases[i].layers,
                       .experts = cases[i].experts,
                       .tied = cases[i].tied};
        ck_assert_ptr_nonnull(m.preset);
        mix_choice c = mix_choose(&m, str_of(cases[i].name), cases[i].rank, cases[i].columns);
        ck_assert_msg(strcmp(dtype_row_of(c.type)->name, cases[i].type) == 0 &&
                          strcmp(dtype_row_of(c.wanted)->name, cases[i].wanted) == 0 &&
                          c.keep == cases[i].keep && !c.ruled,
                      "%s %s: %s, wanted %s%s", cases[i].preset, cases[i].name,
                      dtype_row_of(c.type)->name, dtype_row_of(c.wanted)->name,
                      c.keep ? ", kept" : "");
    }
    ck_assert_ptr_null(mix_find("Q4"));
    ck_assert_ptr_null(mix_find(""));
    ck_assert_str_eq(mix_find("q4_k_m")->name, "Q4_K_M");
}
END_TEST

START_TEST(rules)
{
    weft_diag *dg = diag_create();
    mix_rules list = {0};
    mix_rule r;
    static const char *const texts[] = {"blk.1.*=F16", "*.attn_?.weight=q8_0", "*=Q4_K"};
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(mix_rule_parse(dg, texts[i], &r), WEFT_OK);
        VEC_PUSH(&list, r);
    }
    mix_model m = {.preset = mix_find("Q6_K"), .rules = &list, .layers = 2};
    ck_assert_int_eq(mix_choose(&m, STR("blk.1.attn_q.weight"), 2, 256).type, DT_F16);
    ck_assert_int_eq(mix_choose(&m, STR("blk.0.attn_q.weight"), 2, 256).type, DT_Q8_0);
    mix_choice c = mix_choose(&m, STR("blk.0.attn_norm.weight"), 1, 64); /* whatever it is */
    ck_assert(c.ruled && !c.keep && c.wanted == DT_Q4_K && c.type == DT_Q5_0);
    static const char *const wrong[] = {"", "=", "=F16", "x", "x=", "x=Q9", "x=IQ2_XS", "x=I32"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_int_eq(mix_rule_parse(dg, wrong[i], &r), WEFT_ERR_USAGE);
    VEC_FREE(&list);
    diag_destroy(dg);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("all");
    tcase_add_test(c, presets);
    tcase_add_test(c, rules);
    return suite_run("mix", c, CK_FORK_GETENV);
}
