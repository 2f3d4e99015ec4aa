/* test_adapter.c - adapters of both formats on checkpoints of both; and every way in which one can be wrong. */
#include "tests/lora/peft_kit.h"

#include <math.h>

#define BASE WEFT_GOLDEN "/llama-mha"
#define Q0 "base_model.model.model.layers.0.self_attn.q_proj"
#define PLAIN "\"peft_type\": \"LORA\", \"r\": 4, \"lora_alpha\": 8"

/* What is wrong, with the folder's name replaced by PATH. */
static void expect_text(const weft_diag *dg, const char *path, const char *want)
{
    char *text = printed(dg, false), *at;
    strbuf got = {0};
    const char *from = text;
    for (; (at = strstr(from, path)); from = at + strlen(path))
        strbuf_add(&got, "%.*sPATH", (int)(at - from), from);
    strbuf_add(&got, "%s", from);
    for (char *p = got.p; (p = strstr(p, WEFT_GOLDEN "/"));)
        memmove(p, p + strlen(WEFT_GOLDEN "/"), strlen(p + strlen(WEFT_GOLDEN "/")) + 1);
    ck_assert_str_eq(got.p, want);
    strbuf_free(&got);
    free(text);
}

/* clang-format off */
static const struct {
    const char *config;
    kit_tensor t[3];
    float broken;
    const char *want;
} wrong[] = {
    {"{" PLAIN "}", {{"base_model.model.model.layers.0.self_attn.q_prj.lora_A.weight", {4, 64}},
                     {"base_model.model.model.layers.0.self_attn.q_prj.lora_B.weight", {64, 4}}}, 0,
     "weft: error[W0701]: PATH: base_model.model.model.layers.0.self_attn.q_prj.lora_A.weight reaches no weight of llama-mha that can be adapted\n"
     "      = note: did you mean `model.layers.0.self_attn.q_proj`?\n"},
    {"{" PLAIN ", \"base_model_name_or_path\": \"acme/other-1b\"}",
                    {{Q0 ".lora_A.weight", {4, 96}}, {Q0 ".lora_B.weight", {80, 4}}}, 0,
     "weft: error[W0702]: PATH: " Q0 ".lora_A.weight and its other half make [80, 96], but blk[0].q_proj of llama-mha is [64, 64]\n"
     "      = note: the adapter was made for acme/other-1b\n"},
    {"{" PLAIN "}", {{Q0 ".lora_A.weight", {4, 64}}, {Q0 ".lora_B.weight", {64, 8}}}, 0,
     "weft: error[W0702]: PATH: " Q0 ".lora_A.weight is F32 [4, 64] and " Q0 ".lora_B.weight is F32 [64, 8]: their ranks differ\n"},
    {"{" PLAIN "}", {{Q0 ".lora_A.weight", {8, 64}}, {Q0 ".lora_B.weight", {64, 8}}}, 0,
     "weft: error[W0702]: PATH: " Q0 ".lora_A.weight has rank 8, but adapter_config.json says 4\n"},
    {"{" PLAIN "}", {{Q0 ".lora_A.weight", {4, 64}}, {Q0 ".lora_B.weight", {64, 4}}}, NAN,
     "weft: error[W0704]: PATH: " Q0 ".lora_A.weight[0, 5] is not a number\n"},
    {"{" PLAIN "}", {{Q0 ".lora_B.weight", {64, 4}}, {Q0 ".lora_A.weight", {4, 64}}}, INFINITY,
     "weft: error[W0704]: PATH: " Q0 ".lora_B.weight[1, 1] is infinite\n"},
    {"{" PLAIN "}", {{Q0 ".lora_A.weight", {4, 64}}}, 0,
     "weft: error[W0706]: PATH: " Q0 ".lora_A.weight has no B that belongs to it\n"},
    {"{" PLAIN "}", {{Q0 ".lora_B.weight", {64, 4}}}, 0,
     "weft: error[W0706]: PATH: " Q0 ".lora_B.weight has no A that belongs to it\n"},
    {"{" PLAIN "}", {{Q0 ".lora_A.weight", {4, 64}}, {Q0 ".lora_A.default.weight", {4, 64}}, {Q0 ".lora_B.weight", {64, 4}}}, 0,
     "weft: error[W0706]: PATH: " Q0 ".lora_A.weight and " Q0 ".lora_A.default.weight are the same half twice\n"},
    {"{" PLAIN ", \"use_dora\": true}", {{Q0 ".lora_A.weight", {4, 64}}}, 0,
     "weft: error[W0705]: PATH/adapter_config.json: DoRA (use_dora) is not supported\n"
     "      = note: merge it into its base with PEFT (merge_and_unload), and run the result\n"},
    {"{" PLAIN ", \"bias\": \"all\"}", {{Q0 ".lora_A.weight", {4, 64}}}, 0,
     "weft: error[W0705]: PATH/adapter_config.json: bias is \"all\": trained biases are not supported\n"},
    {"{\"peft_type\": \"IA3\"}", {{Q0 ".lora_A.weight", {4, 64}}}, 0,
     "weft: error[W0705]: PATH/adapter_config.json: peft_type is \"IA3\"; Weft reads \"LORA\"\n"},
    {"{" PLAIN ", \"alora_invocation_tokens\": [1, 2]}", {{Q0 ".lora_A.weight", {4, 64}}}, 0,
     "weft: error[W0705]: PATH/adapter_config.json: an activated LoRA (alora_invocation_tokens) is not supported\n"
     "      = note: it acts only behind its invocation tokens\n"},
    {"{" PLAIN ", \"target_parameters\": [\"experts.w1\"]}", {{Q0 ".lora_A.weight", {4, 64}}}, 0,
     "weft: error[W0705]: PATH/adapter_config.json: LoRA on bare parameters (target_parameters) is not supported\n"
     "      = note: merge it into its base with PEFT (merge_and_unload), and run the result\n"},
    {"{" PLAIN ", \"init_lora_weights\": \"pissa_niter_16\"}", {{Q0 ".lora_A.weight", {4, 64}}}, 0,
     "weft: error[W0705]: PATH/adapter_config.json: init_lora_weights is \"pissa_niter_16\", which changes the base\n"
     "      = note: save it from PEFT as a plain LoRA adapter (path_initial_model_for_weight_conversion)\n"},
    {"{" PLAIN "}", {{Q0 ".lora_A.weight", {4, 64}}, {Q0 ".lora_B.weight", {64, 4}}, {Q0 ".lora_magnitude_vector", {64}}}, 0,
     "weft: error[W0705]: PATH: " Q0 ".lora_magnitude_vector: DoRA is not supported\n"
     "      = note: merge it into its base with PEFT (merge_and_unload), and run the result\n"},
    {"{" PLAIN ", \"modules_to_save\": [\"lm_head\"]}",
     {{Q0 ".lora_A.weight", {4, 64}}, {Q0 ".lora_B.weight", {64, 4}}, {"base_model.model.lm_head.weight", {320, 64}}}, 0,
     "weft: error[W0705]: PATH: base_model.model.lm_head.weight is a whole weight (modules_to_save), not a factor\n"
     "      = note: adapters are mixed and switched, a whole weight cannot be: `weft lora merge` writes a model with it, which can be run\n"},
    {"{" PLAIN ", \"init_lora_weights\": \"loftq\"}", {{Q0 ".lora_A.weight", {4, 64}}}, 0,
     "weft: error[W0705]: PATH/adapter_config.json: init_lora_weights is \"loftq\", which changes the base\n"
     "      = note: merge it into its base with PEFT (merge_and_unload), and run the result\n"},
    {"{" PLAIN ", \"alpha_pattern\": {\"(?:([a-z_.0-9]+)+)+[A-Z]\": 2}}", {{Q0 ".lora_A.weight", {4, 64}}, {Q0 ".lora_B.weight", {64, 4}}}, 0,
     "weft: error[W1105]: PATH: a pattern of rank_pattern or alpha_pattern takes too long to compare with model.layers.0.self_attn.q_proj\n"},
    {"{\"r\": \"four\"}", {{Q0 ".lora_A.weight", {4, 64}}, {Q0 ".lora_B.weight", {64, 4}}}, 0,
     "weft: error[W0706]: PATH/adapter_config.json: r is not a number\n"},
    {"{" PLAIN ", \"alpha_pattern\": {\"q_(proj\": 2}}", {{Q0 ".lora_A.weight", {4, 64}}, {Q0 ".lora_B.weight", {64, 4}}}, 0,
     "weft: error[W0706]: PATH/adapter_config.json: alpha_pattern: \"q_(proj\" is not a regular expression that Weft reads\n"},
    {"{" PLAIN ", \"alpha_pattern\": {\"q_proj\": \"x\"}}", {{Q0 ".lora_A.weight", {4, 64}}, {Q0 ".lora_B.weight", {64, 4}}}, 0,
     "weft: error[W0706]: PATH/adapter_config.json: alpha_pattern: \"q_proj\" has no number\n"},
    {"{\"r\": 4, \"lora_alpha\": 1e300}", {{Q0 ".lora_A.weight", {4, 64}}, {Q0 ".lora_B.weight", {64, 4}}}, 0,
     "weft: error[W0706]: PATH: the scale of model.layers.0.self_attn.q_proj is 2.5e+299\n"},
    {"[1]", {{Q0 ".lora_A.weight", {4, 64}}}, 0,
     "weft: error[W0706]: PATH/adapter_config.json: is not an object\n"},
    {NULL, {{Q0 ".lora_A.weight", {4, 64}}}, 0,
     "weft: error[W0706]: PATH: there is no adapter_config.json\n"
     "      = note: an adapter is a PEFT folder or a GGUF file\n"},
    {"{" PLAIN "}", {{Q0 ".lora_A.weight", {4}}, {Q0 ".lora_B.weight", {64, 4}}}, 0,
     "weft: error[W0702]: PATH: " Q0 ".lora_A.weight is F32 [4] and " Q0 ".lora_B.weight is F32 [64, 4]: they have to be two matrices\n"},
    {"{" PLAIN "}", {{"base_model.model.model.embed_tokens.lora_embedding_A", {4, 300}},
                     {"base_model.model.model.embed_tokens.lora_embedding_B", {64, 4}}}, 0,
     "weft: error[W0702]: PATH: base_model.model.model.embed_tokens.lora_embedding_A and its other half make [300, 64], but tok_embd of llama-mha is [320, 64]\n"},
};
/* clang-format on */

START_TEST(what_is_wrong_is_said)
{
    kit_model m = kit_open(BASE, NULL);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        temp_dir d = temp_dir_create();
        adapter *ad = NULL;
        size_t n = 0;
        while (n < COUNT_OF(wrong[i].t) && wrong[i].t[n].name)
            n++;
        kit_peft(&d, wrong[i].config, wrong[i].t, n, wrong[i].broken);
        ck_assert_int_ne(adapter_open(m.dg, d.path, m.bm, &ad), WEFT_OK);
        ck_assert_ptr_null(ad);
        expect_text(m.dg, d.path, wrong[i].want);
        diag_reset(m.dg);
    }
    kit_close(&m);
}
END_TEST

static const kit_tensor q0[] = {{Q0 ".lora_A.weight", {4, 64}}, {Q0 ".lora_B.weight", {64, 4}}};

START_TEST(a_mapped_weight_is_refused)
{
    static const char from[] = "hf \"mlp.down_proj\"";
    static const kit_tensor down[] = {
        {"base_model.model.model.layers.1.mlp.down_proj.lora_A.weight", {4, 160}},
        {"base_model.model.model.layers.1.mlp.down_proj.lora_B.weight", {64, 4}}};
    temp_dir d = temp_dir_create();
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    source *src;
    ck_assert_int_eq(source_open(dg, a, WEFT_LLAMA, 1 << 20, &src), WEFT_OK);
    const char *at = strstr(src->text.p, from);
    ck_assert_ptr_nonnull(at);
    temp_path mine = temp_file(&d, "mine.weft",
                               arena_printf(a, "%.*s%s => it * 2%s", (int)(at - src->text.p),
                                            src->text.p, from, at + sizeof from - 1));
    kit_model m = kit_open(BASE, mine.path);
    adapter *ad = NULL;
    kit_peft(&d, "{" PLAIN "}", down, 2, 0);
    ck_assert_int_ne(adapter_open(m.dg, d.path, m.bm, &ad), WEFT_OK);
    expect_text(
        m.dg, d.path,
        "weft: error[W0703]: PATH: base_model.model.model.layers.1.mlp.down_proj.lora_A.weight is "
        "for blk[1].down_proj, whose elements go through a map (=>): factors cannot follow "
        "it\n");
    kit_close(&m);
    diag_destroy(dg);
    arena_destroy(a);
}
END_TEST

START_TEST(a_pickle_and_a_model_are_no_adapters)
{
    kit_model m = kit_open(BASE, NULL);
    temp_dir d = temp_dir_create();
    adapter *ad = NULL;
    temp_file(&d, "adapter_config.json", STR("{" PLAIN "}"));
    temp_file(&d, "adapter_model.bin", STR("PK"));
    ck_assert_int_ne(adapter_open(m.dg, d.path, m.bm, &ad), WEFT_OK);
    expect_text(
        m.dg, d.path,
        "weft: error[W0705]: PATH: adapter_model.bin is a Python pickle, which can run code\n"
        "      = note: save it again as adapter_model.safetensors: save_pretrained(.., "
        "safe_serialization=True)\n");
    diag_reset(m.dg);
    ck_assert_int_ne(adapter_open(m.dg, BASE, m.bm, &ad), WEFT_OK);
    expect_text(m.dg, d.path,
                "weft: error[W0706]: llama-mha: there is no adapter_config.json\n"
                "      = note: this is a model; an adapter is a PEFT folder or a GGUF file\n");
    diag_reset(m.dg);
    temp_path other = temp_file(&d, "other.safetensors", STR("x"));
    ck_assert_int_ne(adapter_open(m.dg, other.path, m.bm, &ad), WEFT_OK);
    expect_text(m.dg, d.path,
                "weft: error[W0706]: PATH/other.safetensors: is not a file of a PEFT adapter\n"
                "      = note: a PEFT adapter is a folder with adapter_config.json and "
                "adapter_model.safetensors\n");
    diag_reset(m.dg);
    ck_assert_int_ne(adapter_open(m.dg, BASE "/model-bf16.gguf", m.bm, &ad), WEFT_OK);
    expect_one(m.dg, W0705, "general.type is \"model\", not \"adapter\"");
    kit_close(&m);
}
END_TEST

START_TEST(a_file_cut_anywhere_is_refused)
{
    kit_model m = kit_open(BASE, NULL);
    temp_dir d = temp_dir_create();
    kit_peft(&d, "{" PLAIN "}", q0, 2, 0);
    temp_path path = temp_join(&d, "adapter_model.safetensors");
    struct stat st;
    ck_assert_int_eq(stat(path.path, &st), 0);
    for (off_t n = st.st_size - 1; n >= 0; n = n > 300 ? n - 97 : n - 1) {
        adapter *ad = NULL;
        ck_assert_int_eq(truncate(path.path, n), 0);
        ck_assert_int_ne(adapter_open(m.dg, d.path, m.bm, &ad), WEFT_OK);
        ck_assert_uint_eq(diag_count(m.dg), 1);
        diag_reset(m.dg);
    }
    kit_close(&m);
}
END_TEST

/* ---- what is right ---- */

/* In both formats A and B are the file's; GGUF's Llama has moved the rows of q and k within each head. */
START_TEST(rows_follow_the_base)
{
    enum { HEAD = 16 };
    kit_model hf = kit_open(BASE, NULL), gguf = kit_open(BASE "/model-bf16.gguf", NULL);
    adapter *x = NULL, *y = NULL;
    ck_assert_int_eq(adapter_open(hf.dg, WEFT_GOLDEN "/lora-llama", hf.bm, &x), WEFT_OK);
    ck_assert_int_eq(adapter_open(gguf.dg, WEFT_GOLDEN "/lora-llama", gguf.bm, &y), WEFT_OK);
    ck_assert_uint_eq(x->n_site, 28);
    ck_assert_uint_eq(y->n_site, 28);
    ck_assert_uint_eq(x->hash, y->hash);
    ck_assert_int_eq(x->rank_max, 4);
    for (size_t i = 0; i < 28; i++) {
        char name[64];
        snprintf(name, sizeof name, STR_FMT, STR_ARG(x->site[i].name));
        const adapter_site *s = &x->site[i], *t = kit_site(y, name, -1);
        bool moved = strstr(name, "q_proj") || strstr(name, "k_proj");
        ck_assert_ptr_nonnull(t);
        ck_assert_msg(s->scale == 2 && t->scale == 2, "%s: scale %g", name, s->scale);
        ck_assert_str_eq(name, gguf.bm->graph->weights.at[t->weight].name.p);
        ck_assert(memcmp(s->a, t->a, (size_t)(s->rank * s->in) * sizeof *s->a) == 0);
        for (int64_t r = 0; r < s->out; r++) {
            int64_t at = r % HEAD, to = r - at + (at < HEAD / 2 ? 2 * at : 2 * (at - HEAD / 2) + 1);
            if (memcmp(s->b + r * 4, t->b + (moved ? to : r) * 4, 16) != 0)
                ck_abort_msg("%s: row %d", name, (int)r);
        }
    }
    adapter_close(x);
    adapter_close(y);
    kit_close(&hf);
    kit_close(&gguf);
}
END_TEST

START_TEST(patterns_and_rslora_set_the_scale)
{
    static const kit_tensor t[] = {
        {Q0 ".lora_A.weight", {4, 64}},
        {Q0 ".lora_B.weight", {64, 4}},
        {"base_model.model.model.layers.1.self_attn.q_proj.lora_A.weight", {2, 64}},
        {"base_model.model.model.layers.1.self_attn.q_proj.lora_B.weight", {64, 2}},
        {"base_model.model.lm_head.lora_A.weight", {4, 64}},
        {"base_model.model.lm_head.lora_B.weight", {320, 4}},
        {"base_model.model.model.embed_tokens.lora_embedding_A", {4, 320}},
        {"base_model.model.model.embed_tokens.lora_embedding_B", {64, 4}}};
    static const char config[] =
        "{" PLAIN
        ", \"use_rslora\": true, \"rank_pattern\": {\"layers\\\\.[1-3]\\\\..*q_proj\": 2},"
        "\"alpha_pattern\": {\"lm_head\": 6, \"_proj\": 100}, \"target_modules\": \"all-linear\"}";
    kit_model m = kit_open(BASE, NULL);
    temp_dir d = temp_dir_create();
    adapter *ad = NULL, *again = NULL, *turned = NULL;
    kit_peft(&d, config, t, COUNT_OF(t), 0);
    if (adapter_open(m.dg, d.path, m.bm, &ad) != WEFT_OK)
        ck_abort_msg("%s", diag_shown(m.dg));
    ck_assert_uint_eq(ad->n_site, 4);
    ck_assert_double_eq(kit_site(ad, "blk[0].q_proj", -1)->scale, 4);
    ck_assert_double_eq(kit_site(ad, "blk[1].q_proj", -1)->scale, 8 / sqrt(2));
    ck_assert_double_eq(kit_site(ad, "lm_head", -1)->scale, 3);
    const adapter_site *e = kit_site(ad, "tok_embd", -1);
    ck_assert_int_eq(e->in, 320);
    ck_assert_int_eq(e->out, 64);
    /* the same bytes under other settings are another adapter */
    temp_file(&d, "adapter_config.json",
              STR("{\"r\": 4, \"lora_alpha\": 9, \"rank_pattern\": {\"1.self_attn.q_proj\": 2}}"));
    ck_assert_int_eq(adapter_open(m.dg, d.path, m.bm, &again), WEFT_OK);
    ck_assert_uint_ne(ad->hash, again->hash);
    temp_file(&d, "adapter_config.json",
              STR("{\"r\": 4, \"lora_alpha\": 9, \"rank_pattern\": {\"1.self_attn.q_proj\": 2}, "
                  "\"fan_in_fan_out\": true}"));
    ck_assert_int_eq(adapter_open(m.dg, d.path, m.bm, &turned), WEFT_OK);
    ck_assert_uint_ne(turned->hash, again->hash);
    adapter_close(ad);
    adapter_close(again);
    adapter_close(turned);
    kit_close(&m);
}
END_TEST

START_TEST(a_gguf_adapter_reaches_both)
{
    static const kit_tensor t[] = {{"blk.2.attn_q.weight.lora_a", {4, 64}},
                                   {"blk.2.attn_q.weight.lora_b", {64, 4}},
                                   {"token_embd.weight.lora_a", {320, 4}},
                                   {"token_embd.weight.lora_b", {64, 4}}};
    temp_dir d = temp_dir_create();
    temp_path path = kit_gguf(&d, "llama", "adapter", "lora", 12, t, COUNT_OF(t));
    kit_model hf = kit_open(BASE, NULL), gguf = kit_open(BASE "/model-bf16.gguf", NULL);
    adapter *x = NULL, *y = NULL;
    ck_assert_int_eq(adapter_open(hf.dg, path.path, hf.bm, &x), WEFT_OK);
    ck_assert_int_eq(adapter_open(gguf.dg, path.path, gguf.bm, &y), WEFT_OK);
    arena *a = arena_create();
    const float *b = kit_numbers(a, &t[1], 1), *table = kit_numbers(a, &t[2], 2);
    const adapter_site *s = kit_site(x, "blk[2].q_proj", -1), *u = kit_site(y, "blk[2].q_proj", -1);
    ck_assert_double_eq(s->scale, 3);
    ck_assert(memcmp(u->b, b, 64 * 4 * sizeof *b) == 0);
    for (int64_t at = 0; at < 16; at++) /* half order out of interleaved, in the second head */
        ck_assert(
            memcmp(s->b + (16 + at) * 4, b + (16 + (at < 8 ? 2 * at : 2 * at - 15)) * 4, 16) == 0);
    s = kit_site(x, "tok_embd", -1);
    ck_assert_int_eq(s->in, 320);
    for (int64_t id = 0; id < 320; id++)
        for (int64_t r = 0; r < 4; r++)
            ck_assert_msg(s->a[r * 320 + id] == table[id * 4 + r], "token %d", (int)id);
    arena_destroy(a);
    adapter_close(x);
    adapter_close(y);
    adapter *none = NULL;
    path = kit_gguf(&d, "llama", "adapter", "control_vector", 12, t, COUNT_OF(t));
    ck_assert_int_ne(adapter_open(hf.dg, path.path, hf.bm, &none), WEFT_OK);
    expect_one(hf.dg, W0705, "adapter.type is \"control_vector\", not \"lora\"");
    diag_reset(hf.dg);
    /* Names and shapes fit, but rows of q would be moved that were never moved. */
    path = kit_gguf(&d, "qwen2", "adapter", "lora", 12, t, COUNT_OF(t));
    ck_assert_int_ne(adapter_open(hf.dg, path.path, hf.bm, &none), WEFT_OK);
    expect_one(hf.dg, W0702, "is for the architecture \"qwen2\", but");
    ck_assert_int_ne(adapter_open(gguf.dg, path.path, gguf.bm, &none), WEFT_OK);
    expect_one(gguf.dg, W0702, "model-bf16.gguf is \"llama\"");
    kit_close(&hf);
    kit_close(&gguf);
}
END_TEST

SUITE_MAIN("adapter", what_is_wrong_is_said, a_mapped_weight_is_refused,
           a_pickle_and_a_model_are_no_adapters, a_file_cut_anywhere_is_refused,
           rows_follow_the_base, patterns_and_rslora_set_the_scale, a_gguf_adapter_reaches_both)
