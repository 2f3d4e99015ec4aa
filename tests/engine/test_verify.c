/* test_verify.c - the suite of runtime/engine/verify.c and of what `weft verify` says: right plans pass,
 * a step that was made wrong is found and named. */
#include "compiler/compiler.h"
#include "compiler/plan_make.h"
#include "runtime/cli/report_verify.h"
#include "tests/exec/toy.h"
#include <math.h>

enum { TOKENS = 20, ADAPTER_RANK = 3, ADAPTED = 64 };

typedef struct {
    weft_diag *dg;
    arena *a;
    model_file *mf;
    bound_model *bm;
    graph *fused;
    plan *p, *ref, *rounded, *original;
    verify_report r;
    int32_t ids[TOKENS];
    weft_status (*prepare)(void *ctx, weft_diag *dg, const plan *p, session *s);
    double
        scale_off; /* what the adapter of the plan is multiplied by, and not that of references */
} fixture;

static void fixture_open_slots(fixture *f, const char *model, dtype kv, int64_t slots)
{
    static const char *const logits[] = {"logits"};
    char path[512];
    *f = (fixture){.dg = diag_create(), .a = arena_create()};
    snprintf(path, sizeof path, "%s/%s", WEFT_GOLDEN, model);
    ck_assert_int_eq(model_file_open(f->dg, path, NULL, &f->mf), WEFT_OK);
    ck_assert_int_eq(model_bind(f->dg, f->mf, NULL, &f->bm), WEFT_OK);
    target t = {.be = backend_cpu_find("c"),
                .n_ctx = 64,
                .n_seq = 1,
                .n_tok_max = 16,
                .n_out_max = 16,
                .kv = kv,
                .lora_slots = slots,
                .lora_rank = slots ? ADAPTER_RANK : 0,
                .outputs = logits,
                .n_output = 1};
    target ref = t;
    ref.be = backend_reference();
    ref.kv = DT_F32;
    ck_assert_int_eq(plan_make(f->dg, f->bm->graph, &t, NULL, f->a, &f->p), WEFT_OK);
    ck_assert_int_eq(plan_graph(f->dg, f->bm->graph, &t, NULL, &f->fused), WEFT_OK);
    ck_assert_int_eq(plan_make(f->dg, f->fused, &ref, NULL, f->a, &f->ref), WEFT_OK);
    ck_assert_int_eq(plan_make(f->dg, f->bm->graph, &ref, NULL, f->a, &f->original), WEFT_OK);
    ref.kv = kv;
    ck_assert_int_eq(plan_make(f->dg, f->fused, &ref, NULL, f->a, &f->rounded), WEFT_OK);
    for (int i = 0; i < TOKENS; i++)
        f->ids[i] = (int32_t)((3 + i * 37) % f->p->n_vocab);
}

static void fixture_open(fixture *f, const char *model, dtype kv)
{
    fixture_open_slots(f, model, kv, 0);
}

static void fixture_close(fixture *f)
{
    graph_destroy(f->fused);
    diag_destroy(f->dg);
    bound_model_destroy(f->bm);
    model_file_close(f->mf);
    arena_destroy(f->a);
}

static void run(fixture *f, int threads)
{
    verify_options how = {.ref = f->ref,
                          .rounded = f->rounded,
                          .original = f->original,
                          .p = f->p,
                          .src = model_file_source(f->mf),
                          .run = {.n_ctx = 64, .n_seq = 1, .threads = threads},
                          .prepare = f->prepare,
                          .prepare_ctx = f,
                          .ids = f->ids,
                          .n_id = TOKENS};
    ck_assert_int_eq(verify_run(f->dg, &how, f->a, &f->r), WEFT_OK);
}

/* The first step of an op in a layer of a bucket, to be tampered with; layer -1: outside. */
static plan_step *find_step(fixture *f, int32_t bucket, const char *op, int32_t layer)
{
    const plan_bucket *b = &f->p->bucket[bucket];
    for (int32_t i = 0; i < b->n_step; i++)
        if (b->step[i].layer == layer && plan_kernel_of(f->p, &b->step[i])->op == kop_find(op))
            return (plan_step *)(uintptr_t)&b->step[i]; /* the arena's memory can be written */
    ck_abort_msg("there is no %s in layer %d", op, (int)layer);
}

static const plan_step *first_bad(const fixture *f)
{
    ck_assert_int_ge(f->r.first_bad, 0);
    const verify_value *x = &f->r.value[f->r.first_bad];
    ck_assert(x->error > x->bound);
    return &f->p->bucket[x->bucket].step[x->step];
}

static void expect_pass(const char *model, dtype kv, int threads)
{
    fixture f;
    fixture_open(&f, model, kv);
    run(&f, threads);
    ck_assert_int_eq(f.r.first_bad, -1);
    ck_assert(verify_passed(&f.r));
    ck_assert_int_ge(f.r.n_value, 4 * f.r.n_layer); /* of every layer some values are seen */
    ck_assert_int_gt(f.r.n_hidden, 0);
    for (int32_t i = 0; i < f.r.n_layer; i++)
        ck_assert(f.r.layer_drift[i] >= 0);
    /* Every value was looked at in each of the calls: of 4, 9, 3, 1, 1, 1 and 1 rows. */
    for (int32_t i = 0; i < f.r.n_value; i++)
        ck_assert_int_eq(f.r.value[i].n_call, 7);
    if (kv == DT_F32) { /* nothing is rounded: all is as good as equal */
        ck_assert(f.r.output[0].error < 1e-5);
        ck_assert(f.r.kl_max < 1e-8);
    } else {
        ck_assert(f.r.output[0].error > 1e-5); /* and what rounding costs is told */
    }
    ck_assert(verify_report_fault(f.dg,
                                  &(verify_subject){.p = f.p, .plans = plan_parts_or(NULL, f.p)},
                                  &f.r) == WEFT_OK);
    fixture_close(&f);
}

START_TEST(right_plans_pass)
{
    static const char *const model[] = {"llama-mha", "gemma2", "gpt_oss"};
    static const dtype kv[] = {DT_F32, DT_F16, DT_BF16};
    for (int i = 0; i < 9; i++)
        expect_pass(model[i / 3], kv[i % 3], 1 + i % 3);
}
END_TEST

/* What the diagnostics say. */
static char *told(fixture *f)
{
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    verify_subject of = {.p = f->p,
                         .plans = plan_parts_or(NULL, f->p),
                         .n_token = TOKENS,
                         .tokens = "",
                         .threads = 1};
    ck_assert_int_eq(verify_report_fault(f->dg, &of, &f->r), WEFT_ERR_PLAN);
    diag_print(f->dg, to, false);
    fclose(to);
    return text;
}

START_TEST(a_wrong_scale_is_found_and_its_line_is_quoted)
{
    fixture f;
    fixture_open(&f, "llama-mha", DT_F16);
    for (int32_t b = 0; b < f.p->n_bucket; b++)
        find_step(&f, b, "attend", 1)->f[0] *= 1.1;
    run(&f, 2);
    ck_assert(!verify_passed(&f.r));
    ck_assert_int_eq(plan_kernel_of(f.p, first_bad(&f))->op, KOP_attend);
    ck_assert_int_eq(first_bad(&f)->layer, 1);
    /* It is put right, so that what follows is not blamed. */
    for (int32_t i = 0; i < f.r.n_value; i++)
        ck_assert(i == f.r.first_bad || f.r.value[i].error <= f.r.value[i].bound);
    char *text = told(&f);
    ck_assert_ptr_nonnull(strstr(text, "error[W1510]: attend of layer 1: relative error"));
    ck_assert_ptr_nonnull(strstr(text, "llama.weft:"));
    ck_assert_ptr_nonnull(strstr(text, "a = attend(q, append(kv[l], k, v)"));
    ck_assert_ptr_nonnull(strstr(text, "computed by kernel k_attend_c, state stored in f16"));
    free(text);
    fixture_close(&f);
}
END_TEST

START_TEST(a_fault_in_one_bucket_alone_is_found)
{
    for (int32_t b = 0; b < 5; b++) {
        fixture f;
        fixture_open(&f, "llama-mha", DT_F32);
        ck_assert_int_eq(f.p->n_bucket, 5);
        find_step(&f, b, "attend", 2)->f[0] *= 1.01;
        run(&f, 1);
        bool used = b == 0 || b == 2 || b == 4; /* calls of 1, 3 or 4, and 9 rows */
        ck_assert_int_eq(f.r.first_bad >= 0, used);
        if (used)
            ck_assert_int_eq(f.r.value[f.r.first_bad].bucket, b);
        fixture_close(&f);
    }
}
END_TEST

START_TEST(a_fault_inside_of_a_chain_is_found_at_its_end)
{
    fixture f;
    fixture_open(&f, "llama-mha", DT_F32);
    for (int32_t b = 0; b < f.p->n_bucket; b++)
        find_step(&f, b, "rms_norm", 0)->f[0] = 0.5; /* eps */
    run(&f, 1);
    ck_assert_int_eq(first_bad(&f)->layer, 0);
    char *text = told(&f);
    ck_assert_ptr_nonnull(strstr(text, "k_rms_norm_c (line "));
    free(text);
    fixture_close(&f);
}
END_TEST

START_TEST(an_instruction_of_a_map_is_found)
{
    fixture f;
    fixture_open(&f, "llama-mha", DT_F32);
    plan_step *s = find_step(&f, 0, "map", 3);
    kinstr *code = (kinstr *)(uintptr_t)&f.p->code[s->code];
    int changed = 0;
    for (int32_t i = 0; i < s->n_code; i++)
        if (code[i].op == MAP_add) {
            code[i].op = MAP_sub;
            changed++;
        }
    ck_assert_int_gt(changed, 0);
    run(&f, 1);
    ck_assert_int_eq(plan_kernel_of(f.p, first_bad(&f))->op, KOP_map);
    fixture_close(&f);
}
END_TEST

START_TEST(another_kernel_is_found)
{
    fixture f;
    fixture_open(&f, "llama-mha", DT_F32);
    const backend *be = backend_cpu_find("c");
    int32_t wrong = f.p->n_kernel++;
    plan_kernel *kernels = ARENA_ARRAY(f.a, plan_kernel, (size_t)f.p->n_kernel);
    memcpy(kernels, f.p->kernel, (size_t)wrong * sizeof *kernels);
    ck_assert(be->find(be, "k_linear_F16_c", &kernels[wrong])); /* the weights are BF16 */
    f.p->kernel = kernels;
    for (int32_t b = 0; b < f.p->n_bucket; b++)
        find_step(&f, b, "linear", -1)->kernel = wrong; /* of the logits */
    run(&f, 3);
    ck_assert_int_eq(first_bad(&f)->kernel, wrong);
    char *text = told(&f);
    ck_assert_ptr_nonnull(strstr(text, "computed by kernel k_linear_F16_c from weights of BF16"));
    ck_assert_ptr_nonnull(strstr(text, "output logits[R] = lm_head(h)"));
    free(text);
    fixture_close(&f);
}
END_TEST

START_TEST(a_pass_that_changes_the_model_is_found)
{
    fixture f;
    fixture_open(&f, "llama-mha", DT_F32);
    const plan_bucket *b = f.original->bucket;
    for (int32_t i = 0; i < b->n_step; i++) /* as if a pass had changed it in the other two */
        if (plan_kernel_of(f.original, &b->step[i])->op == KOP_attend)
            ((plan_step *)(uintptr_t)&b->step[i])->f[0] *= 1.01;
    run(&f, 1);
    ck_assert_int_eq(f.r.first_bad, -1);
    ck_assert(!verify_passed(&f.r));
    char *text = told(&f);
    ck_assert_ptr_nonnull(strstr(text, "output logits: the passes change it by"));
    free(text);
    fixture_close(&f);
}
END_TEST

/* The toy model has weights of many types, among them Q8_0, for which activations are quantised. */
typedef struct {
    toy *t;
    graph *fused;
    plan *p, *ref, *rounded;
    verify_report r;
} quantized;

static void quantized_open(quantized *x)
{
    *x = (quantized){.t = toy_open()};
    target t = {.be = backend_cpu_find("c"),
                .n_ctx = TOY_TOKENS,
                .n_seq = 1,
                .n_tok_max = TOY_TOKENS,
                .n_out_max = TOY_TOKENS,
                .kv = DT_F16};
    target ref = t;
    ref.be = backend_reference();
    ref.kv = DT_F32;
    weft_diag *dg = x->t->dg;
    ck_assert_int_eq(plan_make(dg, x->t->g, &t, NULL, x->t->a, &x->p), WEFT_OK);
    ck_assert_int_eq(plan_graph(dg, x->t->g, &t, NULL, &x->fused), WEFT_OK);
    ck_assert_int_eq(plan_make(dg, x->fused, &ref, NULL, x->t->a, &x->ref), WEFT_OK);
    ref.kv = t.kv;
    ck_assert_int_eq(plan_make(dg, x->fused, &ref, NULL, x->t->a, &x->rounded), WEFT_OK);
}

static void quantized_run(quantized *x)
{
    int32_t ids[TOY_TOKENS];
    for (int i = 0; i < TOY_TOKENS; i++)
        ids[i] = i * 11 % VOCAB;
    verify_options how = {.ref = x->ref,
                          .rounded = x->rounded,
                          .p = x->p,
                          .src = model_file_source(x->t->mf),
                          .run = {.n_ctx = TOY_TOKENS, .n_seq = 1, .threads = 2},
                          .ids = ids,
                          .n_id = TOY_TOKENS};
    ck_assert_int_eq(verify_run(x->t->dg, &how, x->t->a, &x->r), WEFT_OK);
}

static void quantized_close(quantized *x)
{
    graph_destroy(x->fused);
    toy_close(x->t);
}

/* The first linear of a bucket that takes quantised activations. */
static plan_step *quantized_step(quantized *x, int32_t bucket)
{
    const plan_bucket *b = &x->p->bucket[bucket];
    for (int32_t i = 0; i < b->n_step; i++)
        if (plan_kernel_of(x->p, &b->step[i])->act != ACT_F32 &&
            plan_kernel_of(x->p, &b->step[i])->op == KOP_linear)
            return (plan_step *)(uintptr_t)&b->step[i];
    ck_abort_msg("no linear takes quantised activations");
}

START_TEST(rounding_is_told_from_faults)
{
    quantized x;
    quantized_open(&x);
    plan_parts whole = plan_parts_or(NULL, x.p);
    ck_assert(verify_rounds(&whole));
    quantized_run(&x);
    ck_assert_int_eq(x.r.first_bad, -1);
    double drift = 0;
    for (int32_t i = 0; i < x.r.n_value; i++)
        drift = fmax(drift, x.r.value[i].drift);
    ck_assert(drift > 1e-3); /* it does cost something */
    quantized_close(&x);

    quantized_open(&x);
    ck_assert_ptr_nonnull(strstr(plan_kernel_of(x.p, quantized_step(&x, 0))->name, "Q8_0"));
    quantized_step(&x, 0)->pitch[1] = 0; /* the first row of the weight in place of all */
    quantized_run(&x);
    ck_assert_int_ge(x.r.first_bad, 0);
    ck_assert_int_eq(x.r.value[x.r.first_bad].bucket, 0);
    quantized_close(&x);
}
END_TEST

/* An adapter on o_proj of layer 1, which all sessions use. */
static weft_status load_adapter(void *ctx, weft_diag *dg, const plan *p, session *s)
{
    const fixture *f = ctx;
    static float numbers[ADAPTED * ADAPTER_RANK];
    for (int i = 0; i < ADAPTED * ADAPTER_RANK; i++)
        numbers[i] = (float)(i * 37 % 101 - 50) / 500;
    adapter_part part = {.weight = "blk[1].o_proj",
                         .index = -1,
                         .rank = ADAPTER_RANK,
                         .in = ADAPTED,
                         .out = ADAPTED,
                         .a = numbers,
                         .b = numbers,
                         .scale = p == f->p ? f->scale_off : 1};
    adapter_source src = {.name = "made up", .hash = 1, .n_part = 1, .part = &part};
    WEFT_TRY(session_lora_load(dg, s, 1, &src));
    return session_lora_attach(dg, s, 0, &(adapter_use){1, 1}, 1);
}

START_TEST(adapters_are_compared)
{
    static const double off[] = {1, 1.1};
    for (int i = 0; i < 2; i++) {
        fixture f;
        fixture_open_slots(&f, "llama-mha", DT_F32, 2);
        f.prepare = load_adapter;
        f.scale_off = off[i];
        run(&f, 2);
        ck_assert(verify_passed(&f.r) == (i == 0));
        ck_assert(i == 0 || first_bad(&f)->layer == 1);
        fixture_close(&f);
    }
}
END_TEST

START_TEST(reports_are_written)
{
    fixture f;
    fixture_open(&f, "gemma2", DT_F16);
    run(&f, 1);
    verify_subject of = {.p = f.p,
                         .plans = plan_parts_or(NULL, f.p),
                         .n_token = TOKENS,
                         .tokens = "of a test",
                         .threads = 1};
    strbuf text = {0}, json = {0};
    verify_as_text(&of, &f.r, &text);
    ck_assert_ptr_nonnull(strstr(text.p, "all within their bounds\n"));
    ck_assert_ptr_nonnull(strstr(text.p, "state stored in f16"));
    verify_as_json(&of, &f.r, &json);
    ck_assert_ptr_nonnull(strstr(json.p, "\"passed\":true,\"first_bad\":null"));
    strbuf_free(&text);
    strbuf_free(&json);
    fixture_close(&f);
}
END_TEST

SUITE_MAIN("verify", right_plans_pass, a_wrong_scale_is_found_and_its_line_is_quoted,
           a_fault_in_one_bucket_alone_is_found, a_fault_inside_of_a_chain_is_found_at_its_end,
           an_instruction_of_a_map_is_found, another_kernel_is_found,
           a_pass_that_changes_the_model_is_found, rounding_is_told_from_faults,
           adapters_are_compared, reports_are_written)
