/* test_random_model.c - the suite of runtime/formats/random_model.c and random_fill.c. */
#include "runtime/formats/random_model.h"
#include "kernels/ref/dequant.h"
#include "runtime/formats/random_fill.h"
#include "tests/formats/files.h"
#include <math.h>

static model_file *open_made(weft_diag *dg, const random_model *rm)
{
    model_file *mf;
    expect_ok(
        dg, model_file_open_memory(dg, random_model_data(rm), random_model_bytes(rm), "made", &mf));
    return mf;
}

/* Mean and spread of the numbers that the bytes stand for. Quants from -8 to 7 have a mean of -0.5. */
static void check_numbers(dtype t, const void *data, int64_t n, double spread)
{
    float *x = malloc((size_t)n * sizeof *x);
    double sum = 0, sum2 = 0;
    bool finite = true;
    dequant_row(t, data, x, n);
    for (int64_t i = 0; i < n; i++) {
        finite = finite && isfinite(x[i]);
        sum += (double)x[i];
        sum2 += (double)x[i] * (double)x[i];
    }
    double mean = sum / (double)n, got = sqrt(sum2 / (double)n);
    free(x);
    if (!finite || !(fabs(mean) < 0.15 * spread) || !(got > 0.6 * spread && got < 1.6 * spread))
        ck_abort_msg("%s: mean %g and spread %g, expected 0 and %g", dtype_row_of(t)->name, mean,
                     got, spread);
}

START_TEST(every_type_has_sane_numbers)
{
    enum { N = 256 * 256 };
    static unsigned char bytes[N * 4];
    const double spreads[] = {1, 0.02, 1.0 / 128};
    int n_type = 0;
    for (int t = 0; t < DT_COUNT; t++) {
        size_t size;
        if (!dtype_row_of((dtype)t)->is_weight || t == DT_MXFP4_HF)
            continue;
        ck_assert(dtype_bytes((dtype)t, N, &size));
        for (size_t i = 0; i < COUNT_OF(spreads); i++) {
            random_blocks((dtype)t, spreads[i], 7, bytes, size);
            check_numbers((dtype)t, bytes, N, spreads[i]);
        }
        n_type++;
    }
    ck_assert_int_ge(n_type, 16);
}
END_TEST

START_TEST(filled)
{
    weft_diag *dg = diag_create();
    for (size_t i = 0; random_model_type(i); i++) {
        char spec[64];
        random_model *rm;
        snprintf(spec, sizeof spec, "tiny-qwen2:%s", random_model_type(i));
        expect_ok(dg, random_model_create(dg, spec, 2, &rm));
        model_file *mf = open_made(dg, rm);
        for (size_t k = 0; k < model_file_tensor_count(mf); k++) {
            const model_tensor *t = model_file_tensor_at(mf, k);
            const float *v = t->data;
            if (t->rank > 1)
                check_numbers(t->type, t->data, t->elems, 1 / sqrt((double)t->shape[t->rank - 1]));
            else if (str_ends(t->name, STR("norm.weight")))
                ck_assert(v[0] > 0.9f && v[0] < 1.1f);
            else
                ck_assert(v[0] != 0 && fabsf(v[0]) < 0.1f);
        }
        model_file_close(mf);
        random_model_destroy(rm);
    }
    diag_destroy(dg);
}
END_TEST

START_TEST(the_same_with_any_number_of_threads)
{
    weft_diag *dg = diag_create();
    random_model *one, *three;
    expect_ok(dg, random_model_create(dg, "tiny:Q4_K_M", 1, &one));
    expect_ok(dg,
              random_model_create(dg, "tiny:q4_k_m", 3, &three)); /* in either case of letters */
    ck_assert_uint_eq(random_model_bytes(one), random_model_bytes(three));
    model_file *a = open_made(dg, one), *b = open_made(dg, three);
    for (size_t i = 0; i < model_file_tensor_count(a); i++) {
        const model_tensor *x = model_file_tensor_at(a, i), *y = model_file_tensor_at(b, i);
        ck_assert(x->bytes == y->bytes && memcmp(x->data, y->data, x->bytes) == 0);
    }
    model_file_close(a);
    model_file_close(b);
    random_model_destroy(one);
    random_model_destroy(three);
    diag_destroy(dg);
}
END_TEST

static dtype type_of(const model_file *mf, const char *name)
{
    const model_tensor *t = model_file_tensor(mf, str_of(name));
    ck_assert_ptr_nonnull(t);
    return t->type;
}

START_TEST(mixes)
{
    weft_diag *dg = diag_create();
    random_model *rm;
    expect_ok(dg, random_model_create(dg, "llama-8b:Q4_K_M", 0, &rm));
    model_file *mf = open_made(dg, rm);
    ck_assert_int_eq(type_of(mf, "token_embd.weight"), DT_Q4_K);
    ck_assert_int_eq(type_of(mf, "output.weight"), DT_Q6_K);
    ck_assert_int_eq(type_of(mf, "blk.0.attn_v.weight"), DT_Q6_K);
    ck_assert_int_eq(type_of(mf, "blk.4.ffn_down.weight"), DT_Q4_K);
    ck_assert_int_eq(type_of(mf, "blk.0.attn_q.weight"), DT_Q4_K);
    ck_assert_int_eq(type_of(mf, "output_norm.weight"), DT_F32);
    int64_t elems = 0;
    for (size_t i = 0; i < model_file_tensor_count(mf); i++)
        elems += model_file_tensor_at(mf, i)->elems;
    ck_assert_int_eq(elems, INT64_C(8030261248)); /* as published */
    model_file_close(mf);
    random_model_destroy(rm);

    /* 896 is not a multiple of 256, 4864 is: only the down projections keep the larger blocks. */
    expect_ok(dg, random_model_create(dg, "qwen-0.5b:Q4_K", 0, &rm));
    mf = open_made(dg, rm);
    ck_assert_int_eq(type_of(mf, "token_embd.weight"), DT_Q8_0); /* tied: it is the head */
    ck_assert_int_eq(type_of(mf, "blk.0.attn_q.weight"), DT_Q5_0);
    ck_assert_int_eq(type_of(mf, "blk.0.ffn_down.weight"), DT_Q4_K);
    ck_assert_ptr_null(model_file_tensor(mf, STR("output.weight")));
    model_file_close(mf);
    random_model_destroy(rm);

    /* Layers with and without experts. */
    expect_ok(dg, random_model_create(dg, "deepseek-lite:BF16", 0, &rm));
    mf = open_made(dg, rm);
    ck_assert_int_eq(type_of(mf, "blk.0.ffn_up.weight"), DT_BF16);
    ck_assert_ptr_null(model_file_tensor(mf, STR("blk.1.ffn_up.weight")));
    ck_assert_int_eq(type_of(mf, "blk.1.exp_probs_b.bias"), DT_F32);
    ck_assert_ptr_null(model_file_tensor(mf, STR("blk.0.exp_probs_b.bias")));
    elems = 0;
    for (size_t i = 0; i < model_file_tensor_count(mf); i++)
        elems += model_file_tensor_at(mf, i)->elems;
    /* As published of DeepSeek-V2-Lite, and the biases that it does without. */
    ck_assert_int_eq(elems, INT64_C(15706484224) + INT64_C(26) * 64);
    model_file_close(mf);
    random_model_destroy(rm);
    diag_destroy(dg);
}
END_TEST

static void expect_refused(const char *spec, weft_code code, const char *part)
{
    weft_diag *dg = diag_create();
    random_model *rm;
    ck_assert_int_ne(random_model_create(dg, spec, 1, &rm), WEFT_OK);
    expect_one(dg, code, part);
    diag_destroy(dg);
}

START_TEST(unknown)
{
    expect_refused("", W1903, "shape ``");
    expect_refused("llama-2b:Q8_0", W1903, "shape `llama-2b`");
    expect_refused("llama-1b", W1903, "takes SHAPE:TYPE");
    expect_refused("llama-1b:", W1903, "type ``");
    expect_refused("llama-1b:Q9", W1903, "type `Q9`");
    expect_refused("tiny:Q8_0:x", W1903, "type `Q8_0:x`");
}
END_TEST

SUITE_MAIN("random_model", every_type_has_sane_numbers, filled, the_same_with_any_number_of_threads,
           mixes, unknown)
