/* test_collect.c - what passes through a model's linears, against the same worked out from its outputs. */
#include "compiler/compiler.h"
#include "compiler/plan_make.h"
#include "runtime/formats/model_file.h"
#include "runtime/quant/imatrix_collect.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

enum { N = 7 };

typedef struct {
    weft_diag *dg;
    arena *a;
    model_file *mf;
    bound_model *bm;
    plan *p;
    session *s;
} running;

static void open_model(running *r, const char *path, kvariant best)
{
    static const char *const outputs[] = {"logits", "hidden"};
    *r = (running){.dg = diag_create(), .a = arena_create()};
    ck_assert_int_eq(model_file_open(r->dg, path, NULL, &r->mf), WEFT_OK);
    ck_assert_int_eq(model_bind(r->dg, r->mf, NULL, &r->bm), WEFT_OK);
    target t = {.n_ctx = 16,
                .n_seq = 1,
                .n_tok_max = N,
                .n_out_max = N,
                .kv = DT_F32,
                .outputs = outputs,
                .n_output = 2,
                .best = best};
    ck_assert_int_eq(plan_make(r->dg, r->bm->graph, &t, NULL, r->a, &r->p), WEFT_OK);
    session_options how = {.n_ctx = 16, .n_seq = 1, .threads = 2};
    ck_assert_int_eq(session_create(r->dg, r->p, r->mf, &how, &r->s), WEFT_OK);
}

static void close_model(running *r)
{
    session_destroy(r->s);
    bound_model_destroy(r->bm);
    model_file_close(r->mf);
    arena_destroy(r->a);
    diag_destroy(r->dg);
}

START_TEST(head)
{
    running r;
    imatrix *im = imatrix_create();
    imatrix_collect *c;
    batch_row rows[N];
    const float *hidden;
    int64_t n, width;
    double sum = 0;
    open_model(&r, WEFT_GOLDEN "/llama-mha/model-bf16.gguf", VARIANT_ref);
    ck_assert_int_eq(imatrix_collect_begin(r.dg, im, r.s, r.mf, &c), WEFT_OK);
    for (int i = 0; i < N; i++)
        rows[i] = (batch_row){.id = i * 3 + 1, .pos = i, .out = i >= 2};
    imatrix_collect_rows(c, N, N - 2);
    ck_assert_int_eq(session_eval(r.dg, r.s, rows, N), WEFT_OK);
    imatrix_collect_end(c);
    const imatrix_entry *e = imatrix_find(im, STR("output.weight"));
    ck_assert_ptr_nonnull(e);
    ck_assert(session_output(r.s, "hidden", -1, &hidden, &n, &width));
    ck_assert_int_eq(e->columns, width);
    for (int64_t k = 0; k < width; k++) { /* the reference takes rows out behind the head */
        double x = 0;
        for (int64_t i = 0; i < n; i++)
            x += (double)hidden[i * width + k] * (double)hidden[i * width + k];
        ck_assert_double_eq_tol((double)e->sums[k], x, 1e-4 * (1 + x));
        sum += x;
    }
    ck_assert(sum > 0 && n == N && e->counts[0] == N);
    /* every matrix of every layer, and nothing that is no matrix */
    e = imatrix_find(im, STR("blk.1.ffn_down.weight"));
    ck_assert(e && e->counts[0] == N && e->sums[3] > 0);
    e = imatrix_find(im, STR("blk.0.attn_q.weight"));
    const imatrix_entry *v = imatrix_find(im, STR("blk.0.attn_v.weight"));
    ck_assert(e && v && e->columns == v->columns);
    for (int64_t k = 0; k < e->columns; k++) /* both read the same */
        ck_assert_float_eq(e->sums[k], v->sums[k]);
    ck_assert_ptr_null(imatrix_find(im, STR("blk.0.attn_norm.weight")));
    imatrix_destroy(im);
    close_model(&r);
}
END_TEST

START_TEST(refuses)
{
    running r;
    imatrix *im = imatrix_create();
    imatrix_collect *c;
    open_model(&r, WEFT_GOLDEN "/llama-mha/model-bf16.gguf", VARIANT_c);
    ck_assert_int_eq(imatrix_collect_begin(r.dg, im, r.s, r.mf, &c), WEFT_ERR_FORMAT);
    close_model(&r);
    open_model(&r, WEFT_GOLDEN "/llama-mha", VARIANT_ref);
    ck_assert_int_eq(imatrix_collect_begin(r.dg, im, r.s, r.mf, &c), WEFT_ERR_FORMAT);
    close_model(&r);
    imatrix_destroy(im);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("collect");
    TCase *c = tcase_create("all");
    tcase_add_test(c, head);
    tcase_add_test(c, refuses);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
