/* test_adapter_write.c - what is written is what llama.cpp and PEFT read: names, shapes, orders, scales.
 *
 * The layout is that of llama.cpp's convert_lora_to_gguf.py and src/llama-adapter.cpp: A as [rank, in] and B as [out, rank]
 * under the names of the tensors, q and k of a Llama with the rows moved, the A of token_embd transposed, experts stacked. */
#include "runtime/lora/adapter_write.h"
#include "tests/lora/peft_kit.h"

#include <math.h>

#define Q0 "base_model.model.model.layers.0.self_attn.q_proj"
#define V1 "base_model.model.model.layers.1.self_attn.v_proj"
#define EMBED "base_model.model.model.embed_tokens"

static const kit_tensor some[] = {
    {Q0 ".lora_A.weight", {4, 64}},        {Q0 ".lora_B.weight", {64, 4}},
    {EMBED ".lora_embedding_A", {4, 320}}, {EMBED ".lora_embedding_B", {64, 4}},
    {V1 ".lora_A.weight", {2, 64}},        {V1 ".lora_B.weight", {64, 2}}};

static kit_model open_named(const char *path)
{
    kit_model m = {.dg = diag_create()};
    ck_assert_int_eq(model_file_open(m.dg, path, NULL, &m.mf), WEFT_OK);
    ck_assert_int_eq(model_bind(m.dg, m.mf, &(bind_options){.others = true, .sites = true}, &m.bm),
                     WEFT_OK);
    return m;
}

static void rewrite(kit_model *m, const char *from, const char *to)
{
    adapter *ad = NULL;
    if (adapter_open(m->dg, from, m->bm, &ad) != WEFT_OK ||
        adapter_write(m->dg, to, m->bm, ad->site, ad->n_site, "base") != WEFT_OK)
        ck_abort_msg("%s", diag_shown(m->dg));
    adapter_close(ad);
}

static const float *expect_tensor(const model_file *mf, const char *name, int64_t a, int64_t b,
                                  int64_t c)
{
    const model_tensor *t = model_file_tensor(mf, str_of(name));
    int64_t shape[] = {a, b, c};
    if (!t)
        ck_abort_msg("there is no %s", name);
    ck_assert_int_eq(t->type, DT_F32);
    ck_assert_int_eq(t->rank, c ? 3 : 2);
    for (int i = 0; i < t->rank; i++)
        ck_assert_msg(t->shape[i] == shape[i], "%s: axis %d is %d", name, i, (int)t->shape[i]);
    return t->data;
}

static void expect_key(const model_file *mf, const char *key, const char *want)
{
    str got = STR("");
    ck_assert_msg(value_str(model_file_key(mf, str_of(key)), &got), "there is no %s", key);
    ck_assert_msg(str_eqz(got, want), "%s is " STR_FMT, key, STR_ARG(got));
}

START_TEST(gguf_as_llama_cpp_reads_it)
{
    kit_model m = open_named(WEFT_GOLDEN "/llama-mha");
    temp_dir d = temp_dir_create();
    temp_path to = temp_join(&d, "out.gguf");
    arena *a = arena_create();
    model_file *mf;
    double alpha;
    kit_peft(&d, "{\"r\": 4, \"lora_alpha\": 12}", some, 4, 0);
    rewrite(&m, d.path, to.path);
    ck_assert_int_eq(model_file_open(m.dg, to.path, NULL, &mf), WEFT_OK);
    ck_assert_uint_eq(model_file_tensor_count(mf), 4);
    expect_key(mf, "/general.architecture", "llama");
    expect_key(mf, "/general.type", "adapter");
    expect_key(mf, "/adapter.type", "lora");
    ck_assert(value_float(model_file_key(mf, STR("/adapter.lora.alpha")), &alpha));
    ck_assert_double_eq(alpha, 12);
    const float *x = expect_tensor(mf, "blk.0.attn_q.weight.lora_a", 4, 64, 0);
    ck_assert(memcmp(x, kit_numbers(a, &some[0], 0), 4 * 64 * sizeof *x) == 0);
    const float *b = kit_numbers(a, &some[1], 1);
    x = expect_tensor(mf, "blk.0.attn_q.weight.lora_b", 64, 4, 0);
    for (int r = 0; r < 64; r++) { /* new[2i] = old[i], new[2i + 1] = old[i + 8], in heads of 16 */
        int at = r % 16, old = r - at + at % 2 * 8 + at / 2;
        ck_assert_msg(memcmp(x + r * 4, b + old * 4, 16) == 0, "row %d", r);
    }
    const float *table = kit_numbers(a, &some[2], 2);
    x = expect_tensor(mf, "token_embd.weight.lora_a", 320, 4, 0);
    for (int i = 0; i < 320; i++)
        for (int r = 0; r < 4; r++)
            ck_assert_msg(x[i * 4 + r] == table[r * 320 + i], "token %d", i);
    x = expect_tensor(mf, "token_embd.weight.lora_b", 64, 4, 0);
    ck_assert(memcmp(x, kit_numbers(a, &some[3], 3), 64 * 4 * sizeof *x) == 0);
    model_file_close(mf);
    arena_destroy(a);
    kit_close(&m);
}
END_TEST

/* GGUF has one alpha and divides it by each rank; where that does not give the scales, B has them. */
START_TEST(scales_that_gguf_cannot_say)
{
    kit_model m = open_named(WEFT_GOLDEN "/llama-mha");
    temp_dir d = temp_dir_create();
    temp_path to = temp_join(&d, "out.gguf"), back = temp_join(&d, "back");
    adapter *x = NULL, *y = NULL, *z = NULL;
    kit_peft(&d,
             "{\"r\": 4, \"lora_alpha\": 12, \"rank_pattern\": {\"1.self_attn.v_proj\": 2}, "
             "\"alpha_pattern\": {\"embed_tokens\": 7}}",
             some, COUNT_OF(some), 0);
    rewrite(&m, d.path, to.path);
    rewrite(&m, d.path, back.path);
    ck_assert_int_eq(adapter_open(m.dg, d.path, m.bm, &x), WEFT_OK);
    ck_assert_int_eq(adapter_open(m.dg, to.path, m.bm, &y), WEFT_OK);
    ck_assert_int_eq(adapter_open(m.dg, back.path, m.bm, &z), WEFT_OK);
    ck_assert_uint_eq(x->n_site, 3);
    ck_assert_uint_eq(y->n_site, 3);
    ck_assert_uint_eq(z->n_site, 3);
    for (size_t i = 0; i < 3; i++) {
        const adapter_site *s = &x->site[i], *t = &y->site[i], *u = &z->site[i];
        ck_assert_double_eq(t->scale, 1);
        ck_assert_double_eq_tol(u->scale, s->scale, 1e-12);
        ck_assert_int_eq(u->rank, s->rank);
        ck_assert(memcmp(u->b, s->b, (size_t)(s->out * s->rank) * sizeof *s->b) == 0);
        for (int64_t o = 0; o < s->out; o += 5)
            for (int64_t k = 0; k < s->in; k += 7)
                ck_assert_double_eq_tol(kit_delta(t, o, k), kit_delta(s, o, k), 1e-6);
    }
    adapter_close(x);
    adapter_close(y);
    adapter_close(z);
    kit_close(&m);
}
END_TEST

START_TEST(experts_are_stacked)
{
    static const kit_tensor t[] = {
        {"base_model.model.model.layers.0.mlp.experts.1.up_proj.lora_A.weight", {2, 64}},
        {"base_model.model.model.layers.0.mlp.experts.1.up_proj.lora_B.weight", {32, 2}}};
    kit_model m = open_named(WEFT_MOE);
    int64_t n = 0, d_in = 0, ff = 0;
    bound_model_int(m.bm, "n_exp", &n);
    bound_model_int(m.bm, "d", &d_in);
    bound_model_int(m.bm, "ff", &ff);
    kit_tensor fitted[2] = {t[0], t[1]};
    fitted[0].shape[1] = d_in;
    fitted[1].shape[0] = ff;
    temp_dir d = temp_dir_create();
    temp_path to = temp_join(&d, "out.gguf");
    model_file *mf;
    kit_peft(&d, "{\"r\": 2, \"lora_alpha\": 2}", fitted, 2, 0);
    rewrite(&m, d.path, to.path);
    ck_assert_int_eq(model_file_open(m.dg, to.path, NULL, &mf), WEFT_OK);
    const float *a = expect_tensor(mf, "blk.0.ffn_up_exps.weight.lora_a", n, 2, d_in);
    const float *b = expect_tensor(mf, "blk.0.ffn_up_exps.weight.lora_b", n, ff, 2);
    for (int64_t e = 0; e < n; e++) /* those that are not adapted are zero */
        ck_assert_msg((a[e * 2 * d_in] != 0) == (e == 1) && (b[e * ff * 2] != 0) == (e == 1),
                      "expert %d", (int)e);
    model_file_close(mf);
    kit_close(&m);
}
END_TEST

SUITE_MAIN("adapter_write", gguf_as_llama_cpp_reads_it, scales_that_gguf_cannot_say,
           experts_are_stacked)
