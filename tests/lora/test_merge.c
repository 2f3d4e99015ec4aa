/* test_merge.c - whole weights (modules_to_save) merged: they take the place of the base's, rows moved as GGUF has them. */
#include "runtime/lora/adapter_bind.h"
#include "runtime/lora/adapter_merge.h"
#include "tests/lora/peft_kit.h"

#include <math.h>

#define BASE WEFT_GOLDEN "/llama-mha"
#define FROM "model.layers.1.self_attn.q_proj.weight"
#define WHOLE "base_model.model.model.layers.0.self_attn.q_proj.weight"
#define V0 "base_model.model.model.layers.0.self_attn.v_proj"

/* An adapter that has layer 1's q_proj, whole, as this tensor, and a pair on v_proj. */
static void make_whole(const temp_dir *d, const model_file *mf, const char *name, int64_t rows)
{
    static const kit_tensor pair[] = {{V0 ".lora_A.weight", {4, 64}},
                                      {V0 ".lora_B.weight", {64, 4}}};
    const model_tensor *t = model_file_tensor(mf, STR(FROM));
    int64_t shape[] = {rows, 64};
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    safetensors_item items[] = {
        {name, t->type, 2, shape, t->data},
        {pair[0].name, DT_F32, 2, pair[0].shape, kit_numbers(a, &pair[0], 0)},
        {pair[1].name, DT_F32, 2, pair[1].shape, kit_numbers(a, &pair[1], 1)}};
    temp_path path = temp_join(d, "adapter_model.safetensors");
    ck_assert_int_eq(safetensors_write(dg, path.path, items, 3, NULL), WEFT_OK);
    temp_file(d, "adapter_config.json",
              STR("{\"r\": 4, \"lora_alpha\": 4, \"modules_to_save\": [\"q_proj\"]}"));
    diag_destroy(dg);
    arena_destroy(a);
}

static weft_status open_whole(kit_model *m, const temp_dir *d, adapter **out)
{
    adapter_file *f;
    weft_status st = adapter_file_open(m->dg, d->path, false, &f);
    ck_assert_int_eq(st, WEFT_OK);
    st = adapter_bind(m->dg, f, m->bm, true, out);
    adapter_file_close(f);
    return st;
}

/* The base with these adapters in it, as F32 in a GGUF file. */
static weft_status merge(kit_model *m, const blend_input *in, size_t n, const char *path)
{
    blend *b = NULL;
    quant_job *job = NULL;
    adapter_merge *g = NULL;
    bound_model *named;
    ck_assert_int_eq(model_bind(m->dg, m->mf, &(bind_options){.sites = true}, &named), WEFT_OK);
    weft_status st = blend_create(
        m->dg, in, n, &(blend_options){.method = BLEND_LINEAR, .density = 1, .seed = 0}, &b);
    if (st == WEFT_OK)
        st = quant_job_create(m->dg, m->mf, NULL, &job);
    if (st == WEFT_OK)
        st = quant_job_choose(m->dg, job, mix_find("F32"), NULL, NULL);
    if (st == WEFT_OK)
        st = adapter_merge_create(m->dg, named, b, in, n, true, &g);
    if (st == WEFT_OK)
        st = adapter_merge_attach(m->dg, g, job);
    if (st == WEFT_OK)
        st = quant_job_write(m->dg, job, path, &(quant_write_options){.threads = 2});
    quant_job_destroy(job);
    adapter_merge_destroy(g);
    blend_destroy(b);
    bound_model_destroy(named);
    return st;
}

static const float *tensor(const model_file *mf, const char *name)
{
    const model_tensor *t = model_file_tensor(mf, str_of(name));
    ck_assert_ptr_nonnull(t);
    ck_assert_int_eq(t->type, DT_F32);
    return t->data;
}

START_TEST(a_whole_weight_takes_the_place)
{
    static const char *const bases[] = {BASE, BASE "/model-bf16.gguf"};
    kit_model hf = kit_open(BASE, NULL);
    for (size_t k = 0; k < COUNT_OF(bases); k++)
        for (int half = 0; half < 2; half++) {
            kit_model m = kit_open(bases[k], NULL);
            temp_dir d = temp_dir_create();
            adapter *ad = NULL;
            model_file *out, *plain;
            make_whole(&d, hf.mf, WHOLE, 64);
            ck_assert_int_eq(open_whole(&m, &d, &ad), WEFT_OK);
            ck_assert_uint_eq(ad->n_full, 1);
            ck_assert_uint_eq(ad->n_site, 1);
            temp_path path = temp_join(&d, "out.gguf"), as_is = temp_join(&d, "plain.gguf");
            ck_assert_int_eq(merge(&m, &(blend_input){ad, half ? 0.5 : 1}, 1, path.path), WEFT_OK);
            ck_assert_int_eq(merge(&m, &(blend_input){ad, 0}, 1, as_is.path), WEFT_OK);
            ck_assert_int_eq(model_file_open(m.dg, path.path, NULL, &out), WEFT_OK);
            ck_assert_int_eq(model_file_open(m.dg, as_is.path, NULL, &plain), WEFT_OK);
            const float *x = tensor(out, "blk.0.attn_q.weight");
            const float *y = tensor(out, "blk.1.attn_q.weight");
            const float *was = tensor(plain, "blk.0.attn_q.weight");
            for (int i = 0; i < 64 * 64; i++) {
                float want = half ? (float)((double)was[i] + 0.5 * ((double)y[i] - was[i])) : y[i];
                if (x[i] != want)
                    ck_abort_msg("%s: element %d is %g, not %g", bases[k], i, x[i], want);
            }
            ck_assert(memcmp(was, y, 64 * 64 * sizeof *y) != 0);
            ck_assert(memcmp(tensor(out, "blk.0.attn_v.weight"),
                             tensor(plain, "blk.0.attn_v.weight"), 64 * 64 * sizeof *y) != 0);
            model_file_close(out);
            model_file_close(plain);
            adapter_close(ad);
            kit_close(&m);
        }
    kit_close(&hf);
}
END_TEST

START_TEST(whole_weights_that_do_not_fit)
{
    kit_model m = kit_open(BASE, NULL);
    temp_dir d = temp_dir_create(), e = temp_dir_create();
    adapter *x = NULL, *y = NULL;
    make_whole(&d, m.mf, WHOLE, 32);
    ck_assert_int_ne(open_whole(&m, &d, &x), WEFT_OK);
    expect_one(m.dg, W0702, WHOLE " is [32, 64], but blk[0].q_proj of " BASE " is [64, 64]");
    diag_reset(m.dg);
    make_whole(&d, m.mf, "base_model.model.model.norm.weight", 64);
    ck_assert_int_ne(open_whole(&m, &d, &x), WEFT_OK);
    expect_one(m.dg, W0701, "base_model.model.model.norm.weight reaches no weight");
    diag_reset(m.dg);
    make_whole(&d, m.mf, V0 ".weight", 64);
    ck_assert_int_ne(open_whole(&m, &d, &x), WEFT_OK);
    expect_one(m.dg, W0706, "has factors and a whole weight");
    diag_reset(m.dg);
    make_whole(&d, m.mf, WHOLE, 64);
    make_whole(&e, m.mf, WHOLE, 64);
    ck_assert_int_eq(open_whole(&m, &d, &x), WEFT_OK);
    ck_assert_int_eq(open_whole(&m, &e, &y), WEFT_OK);
    blend_input in[] = {{x, 1}, {y, 1}};
    temp_path path = temp_join(&d, "out.gguf");
    ck_assert_int_ne(merge(&m, in, 2, path.path), WEFT_OK);
    diag_entry last = diag_at(m.dg, diag_count(m.dg) - 1);
    ck_assert_int_eq(last.code, W0706);
    ck_assert_ptr_nonnull(strstr(last.message.p, "two adapters change blk[0].q_proj"));
    ck_assert_int_ne(access(path.path, F_OK), 0);
    adapter_close(x);
    adapter_close(y);
    kit_close(&m);
}
END_TEST

SUITE_MAIN("merge", a_whole_weight_takes_the_place, whole_weights_that_do_not_fit)
