/* test_fenced.c - whole models on a device whose memory is not the host's, against the CPU with the same
 * kernels, bit for bit, and against the recorded values. */
#include "tests/exec/device_fenced.h"

#include "compiler/compiler.h"
#include "compiler/plan_make.h"
#include "runtime/engine/profile.h"
#include "runtime/engine/verify.h"
#include "runtime/quant/imatrix_collect.h"
#include "tests/base/suite.h"

#include <math.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const golden[] = {"llama-mha", "gemma2", "gpt_oss"};

typedef struct {
    weft_diag *dg;
    arena *a;
    model_file *mf, *expected;
    bound_model *bm;
    int64_t n, vocab;
    const int32_t *ids;  /* [n] */
    const float *logits; /* [n, vocab] */
    device *dev;
    plan *p, *p_cpu;
} fixture;

static plan *plan_for(fixture *f, const backend *be)
{
    static const char *const outputs[] = {"logits", "hidden"};
    plan *p = NULL;
    target t = {.be = be,
                .n_ctx = f->n,
                .n_seq = 2,
                .n_tok_max = f->n,
                .kv = DT_F32,
                .outputs = outputs,
                .n_output = 2,
                .may_fork = true};
    ck_assert_int_eq(plan_make(f->dg, f->bm->graph, &t, NULL, f->a, &p), WEFT_OK);
    return p;
}

static fixture open_model(const char *name, const char *file)
{
    fixture f = {.dg = diag_create(), .a = arena_create()};
    const char *folder = arena_printf(f.a, "%s/%s", WEFT_GOLDEN, name).p;
    const char *values = arena_printf(f.a, "%s/expected.safetensors", folder).p;
    if (file)
        folder = arena_printf(f.a, "%s/%s", folder, file).p;
    ck_assert_int_eq(model_file_open(f.dg, folder, NULL, &f.mf), WEFT_OK);
    ck_assert_int_eq(model_file_open(f.dg, values, NULL, &f.expected), WEFT_OK);
    ck_assert_int_eq(model_bind(f.dg, f.mf, NULL, &f.bm), WEFT_OK);
    const model_tensor *ids = model_file_tensor(f.expected, STR("input_ids"));
    const model_tensor *logits = model_file_tensor(f.expected, STR("logits"));
    ck_assert(ids && logits && ids->type == DT_I32);
    f.n = ids->elems;
    f.ids = ids->data;
    f.vocab = logits->elems / f.n;
    f.logits = logits->data;
    ck_assert_int_eq(device_kind_fenced.open(f.dg, NULL, &f.dev), WEFT_OK);
    f.p = plan_for(&f, backend_fenced());
    f.p_cpu = plan_for(&f, backend_reference());
    return f;
}

static void close_model(fixture *f)
{
    ck_assert_uint_eq(fenced_held(f->dev), 0);
    device_close(f->dev);
    bound_model_destroy(f->bm);
    model_file_close(f->mf);
    model_file_close(f->expected);
    arena_destroy(f->a);
    diag_destroy(f->dg);
}

static session *open_session(fixture *f, const plan *p, device *dev)
{
    session *s = NULL;
    session_options opt = {.n_ctx = f->n, .n_seq = 2, .page_tok = 4, .threads = 2, .dev = dev};
    session_memory need, got;
    ck_assert_int_eq(session_need(f->dg, p, model_file_source(f->mf), &opt, &need), WEFT_OK);
    ck_assert_int_eq(session_create(f->dg, p, model_file_source(f->mf), &opt, &s), WEFT_OK);
    got = session_bytes(s);
    ck_assert_mem_eq(&need, &got, sizeof need);
    return s;
}

static weft_status eval(fixture *f, session *s, int32_t seq, int64_t first, int64_t n)
{
    batch_row *rows = calloc((size_t)n, sizeof *rows);
    for (int64_t i = 0; i < n; i++)
        rows[i] = (batch_row){
            .id = f->ids[first + i], .pos = (int32_t)(first + i), .seq = seq, .out = true};
    weft_status st = session_eval(f->dg, s, rows, n);
    free(rows);
    return st;
}

static const float *output(const session *s, const char *name, int64_t n, int64_t *out_width)
{
    const float *data = NULL;
    int64_t n_row = 0;
    ck_assert(session_output(s, name, -1, &data, &n_row, out_width));
    ck_assert_int_eq(n_row, n);
    return data;
}

/* The rows of both sessions' last calls are the same bits, and near the recorded ones. */
static void expect_same(fixture *f, const session *a, const session *b, int64_t first, int64_t n)
{
    static const char *const names[] = {"logits", "hidden"};
    for (size_t k = 0; k < COUNT_OF(names); k++) {
        int64_t width, width_b;
        const float *x = output(a, names[k], n, &width), *y = output(b, names[k], n, &width_b);
        size_t bytes = (size_t)(n * width) * sizeof *x;
        ck_assert_int_eq(width, width_b);
        ck_assert_mem_eq(x, y, bytes);
        float *copy = malloc(bytes);
        ck_assert_int_eq(session_read(f->dg, a, names[k], -1, copy, n * width), WEFT_OK);
        ck_assert_mem_eq(copy, x, bytes);
        ck_assert_int_eq(session_read(f->dg, a, names[k], -1, copy, n * width + 1), WEFT_ERR_LIMIT);
        diag_reset(f->dg);
        free(copy);
        for (int64_t i = 0; i < n * width && k == 0; i++) {
            double want = (double)f->logits[first * width + i];
            ck_assert_double_le(fabs((double)x[i] - want), 1e-4 * (1 + fabs(want)));
        }
    }
}

static void run_golden(const char *name)
{
    fixture f = open_model(name, NULL);
    session *a = open_session(&f, f.p, f.dev), *b = open_session(&f, f.p_cpu, NULL);
    session *both[] = {a, b};
    int64_t keep = f.n / 2 - 1;
    /* whole, in pieces, row by row, forked within a page, cut */
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(eval(&f, both[i], 0, 0, f.n), WEFT_OK);
    expect_same(&f, a, b, 0, f.n);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(session_fork(f.dg, both[i], 0, 1, keep), WEFT_OK);
    for (int64_t at = keep; at < f.n; at++) {
        for (int i = 0; i < 2; i++)
            ck_assert_int_eq(eval(&f, both[i], 1, at, 1), WEFT_OK);
        expect_same(&f, a, b, at, 1);
    }
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(session_truncate(f.dg, both[i], 0, 3), WEFT_OK);
    for (int64_t at = 3, n; at < f.n; at += n) {
        n = f.n - at < 5 ? f.n - at : 5;
        for (int i = 0; i < 2; i++)
            ck_assert_int_eq(eval(&f, both[i], 0, at, n), WEFT_OK);
        expect_same(&f, a, b, at, n);
    }
    session_destroy(a);
    session_destroy(b);
    close_model(&f);
}

START_TEST(goldens_run_behind_the_fence)
{
    for (size_t i = 0; i < COUNT_OF(golden); i++)
        run_golden(golden[i]);
}
END_TEST

START_TEST(no_device_takes_the_plan_of_another)
{
    fixture f = open_model(golden[0], NULL);
    session *s = NULL;
    session_options opt = {.n_ctx = f.n, .n_seq = 2};
    ck_assert_int_eq(session_create(f.dg, f.p, model_file_source(f.mf), &opt, &s), WEFT_ERR_PLAN);
    expect_one(f.dg, W1501, "a kernel fenced_");
    diag_reset(f.dg);
    opt.dev = f.dev;
    ck_assert_int_eq(session_create(f.dg, f.p_cpu, model_file_source(f.mf), &opt, &s),
                     WEFT_ERR_PLAN);
    expect_one(f.dg, W1501, "a kernel k_");
    close_model(&f);
}
END_TEST

static const volatile char *behind;

static void read_behind(void)
{
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    (void)*behind;
}

START_TEST(whoever_reads_behind_the_fence_ends)
{
    weft_diag *dg = diag_create();
    device *d = NULL;
    void *p = NULL;
    ck_assert_int_eq(device_kind_fenced.open(dg, NULL, &d), WEFT_OK);
    ck_assert_int_eq(device_kind_fenced.alloc(dg, d, 64, &p), WEFT_OK);
    behind = p;
    ck_assert(WIFSIGNALED(child_status(read_behind)));
    device_kind_fenced.free(d, p);
    device_close(d);
    diag_destroy(dg);
}
END_TEST

/* A copy that fails at any place of a call fails the call, and changes no sequence. */
START_TEST(copies_may_fail)
{
    fixture f = open_model(golden[0], NULL);
    session *a = open_session(&f, f.p, f.dev), *b = open_session(&f, f.p_cpu, NULL);
    ck_assert_int_eq(eval(&f, a, 0, 0, 6), WEFT_OK);
    ck_assert_int_eq(session_fork(f.dg, a, 0, 1, 6), WEFT_OK);
    weft_status st = WEFT_ERR_TARGET;
    int64_t n = 0;
    for (; st != WEFT_OK; n++) {
        fenced_fail_after(f.dev, n);
        st = eval(&f, a, 1, 6, 2);
        fenced_fail_after(f.dev, -1);
        ck_assert_int_eq(session_length(a, 1), st == WEFT_OK ? 8 : 6);
        if (st != WEFT_OK)
            expect_one(f.dg, W0902, "copies no more");
        diag_reset(f.dg);
    }
    ck_assert_int_gt(n, 3); /* pages of the fork, the batch, the outputs */
    ck_assert_int_eq(eval(&f, b, 0, 0, 6), WEFT_OK);
    ck_assert_int_eq(eval(&f, b, 0, 6, 2), WEFT_OK);
    expect_same(&f, a, b, 6, 2);
    session_destroy(a);
    session_destroy(b);
    close_model(&f);
}
END_TEST

START_TEST(verify_and_profile_run_there)
{
    fixture f = open_model(golden[0], NULL);
    verify_options how = {.ref = f.p,
                          .rounded = f.p,
                          .p = f.p,
                          .src = model_file_source(f.mf),
                          .run = {.n_ctx = f.n, .dev = f.dev},
                          .ids = f.ids,
                          .n_id = f.n};
    verify_report r;
    ck_assert_int_eq(verify_run(f.dg, &how, f.a, &r), WEFT_OK);
    ck_assert(verify_passed(&r));
    ck_assert_int_gt(r.n_value, 20);
    for (int32_t i = 0; i < r.n_value; i++)
        ck_assert_double_eq(r.value[i].error, 0);
    session *s = open_session(&f, f.p, f.dev);
    profile_options what = {
        .n_prompt = 8, .n_decode = 4, .limits = {{.threads = 1, .bandwidth = 1e9}}};
    for (size_t i = 0; i < COUNT_OF(what.limits->peaks.rate); i++)
        what.limits->peaks.rate[i] = 1e9;
    profile prof;
    ck_assert_int_eq(profile_make(f.dg, s, &what, f.a, &prof), WEFT_OK);
    ck_assert_int_gt(prof.run[PROFILE_DECODE].n_step, 20);
    session_destroy(s);
    close_model(&f);
}
END_TEST

START_TEST(importance_is_collected_there)
{
    fixture f = open_model(golden[0], "model-bf16.gguf");
    session *s[] = {open_session(&f, f.p, f.dev), open_session(&f, f.p_cpu, NULL)};
    imatrix *im[2];
    for (int i = 0; i < 2; i++) {
        imatrix_collect *c;
        im[i] = imatrix_create();
        ck_assert_int_eq(imatrix_collect_begin(f.dg, im[i], s[i], f.mf, &c), WEFT_OK);
        imatrix_collect_rows(c, f.n, f.n);
        ck_assert_int_eq(eval(&f, s[i], 0, 0, f.n), WEFT_OK);
        imatrix_collect_end(c);
        session_destroy(s[i]);
    }
    const imatrix_entry *a = imatrix_find(im[0], STR("blk.1.ffn_down.weight"));
    const imatrix_entry *b = imatrix_find(im[1], STR("blk.1.ffn_down.weight"));
    ck_assert(a && b && a->columns == b->columns && a->sums[3] > 0);
    ck_assert_mem_eq(a->sums, b->sums, (size_t)a->columns * sizeof *a->sums);
    for (int i = 0; i < 2; i++)
        imatrix_destroy(im[i]);
    close_model(&f);
}
END_TEST

/* Rows go to a file and back, and to other positions, by the device's copies alone. */
START_TEST(sequences_are_saved_and_moved)
{
    fixture f = open_model(golden[0], NULL);
    char path[] = "/tmp/weft-fenced-XXXXXX";
    session *a = open_session(&f, f.p, f.dev), *b = open_session(&f, f.p_cpu, NULL);
    int64_t half = f.n / 2;
    session_text text = {.ids = (int32_t *)f.ids, .n = half}, got = {0};
    bool exact = true;
    close(mkstemp(path));
    ck_assert_int_eq(eval(&f, a, 0, 0, half), WEFT_OK);
    ck_assert_int_eq(eval(&f, b, 1, 0, half), WEFT_OK);
    ck_assert_int_eq(session_save(f.dg, a, 0, 0, &text, path), WEFT_OK);
    ck_assert_int_eq(session_load(f.dg, a, 1, 0, path, &got), WEFT_OK);
    ck_assert_int_eq(got.n, half);
    ck_assert_mem_eq(got.ids, f.ids, (size_t)half * sizeof *f.ids);
    ck_assert_int_eq(eval(&f, a, 1, half, f.n - half), WEFT_OK);
    ck_assert_int_eq(eval(&f, b, 1, half, f.n - half), WEFT_OK);
    expect_same(&f, a, b, half, f.n - half);
    ck_assert_int_eq(session_remove_range(f.dg, a, 1, 5, 9, &exact), WEFT_OK);
    ck_assert(!exact && session_length(a, 1) == f.n - 4);
    fenced_fail_after(f.dev, 3); /* in the middle: what has moved is not kept */
    ck_assert_int_ne(session_remove_range(f.dg, a, 1, 5, 9, &exact), WEFT_OK);
    ck_assert_int_eq(session_length(a, 1), 5);
    ck_assert_int_ne(session_load(f.dg, a, 1, 0, path, &got), WEFT_OK);
    ck_assert_int_eq(session_length(a, 1), 0);
    fenced_fail_after(f.dev, -1);
    diag_reset(f.dg);
    unlink(path);
    free(got.ids);
    session_destroy(a);
    session_destroy(b);
    close_model(&f);
}
END_TEST

SUITE_MAIN("fenced", sequences_are_saved_and_moved, goldens_run_behind_the_fence,
           no_device_takes_the_plan_of_another, whoever_reads_behind_the_fence_ends,
           copies_may_fail, verify_and_profile_run_there, importance_is_collected_there)
