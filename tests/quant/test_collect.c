/* test_collect.c - what passes through a model's linears, against the same worked out from its outputs. */
#include "compiler/compiler.h"
#include "compiler/plan_make.h"
#include "runtime/formats/model_file.h"
#include "runtime/quant/imatrix_collect.h"
#include "runtime/quant/job.h"
#include "tests/base/suite.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { N = 7 };

typedef struct {
    weft_diag *dg;
    arena *a;
    model_file *mf;
    bound_model *bm;
    plan *p;
    session *s;
} running;

static void open_model_as(running *r, const char *path, const char *arch, const backend *be,
                          bool open)
{
    static const char *const outputs[] = {"logits", "hidden"};
    *r = (running){.dg = diag_create(), .a = arena_create()};
    ck_assert_int_eq(model_file_open(r->dg, path, NULL, &r->mf), WEFT_OK);
    ck_assert_int_eq(model_bind(r->dg, r->mf, &(bind_options){.arch = arch}, &r->bm), WEFT_OK);
    target t = {.n_ctx = 16,
                .n_seq = 1,
                .n_tok_max = N,
                .n_out_max = N,
                .kv = DT_F32,
                .outputs = outputs,
                .n_output = 2,
                .open = open,
                .be = be};
    ck_assert_int_eq(plan_make(r->dg, r->bm->graph, &t, NULL, r->a, &r->p), WEFT_OK);
    session_options how = {.n_ctx = 16, .n_seq = 1, .threads = 2};
    ck_assert_int_eq(session_create(r->dg, r->p, model_file_source(r->mf), &how, &r->s), WEFT_OK);
}

static void open_model(running *r, const char *path, const backend *be, bool open)
{
    open_model_as(r, path, NULL, be, open);
}

static void close_model(running *r)
{
    session_destroy(r->s);
    bound_model_destroy(r->bm);
    model_file_close(r->mf);
    arena_destroy(r->a);
    diag_destroy(r->dg);
}

/* Numbers that were computed from a tensor belong to no tensor. */
START_TEST(a_mapped_matrix_is_left_out)
{
    static const char from[] = "gguf \"ffn_down\"";
    temp_dir d = temp_dir_create();
    temp_path mine = temp_join(&d, "mine.weft");
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    source *src;
    ck_assert_int_eq(source_open(dg, a, WEFT_LLAMA, 1 << 20, &src), WEFT_OK);
    const char *at = strstr(src->text.p, from);
    ck_assert_ptr_nonnull(at);
    FILE *f = fopen(mine.path, "w");
    fprintf(f, "%.*s%s => it * 2%s", (int)(at - src->text.p), src->text.p, from,
            at + sizeof from - 1);
    fclose(f);
    running r;
    imatrix *im = imatrix_create();
    imatrix_collect *c;
    open_model_as(&r, WEFT_GOLDEN "/llama-mha/model-bf16.gguf", mine.path, backend_reference(),
                  false);
    ck_assert_int_eq(imatrix_collect_begin(r.dg, im, r.s, r.mf, &c), WEFT_OK);
    imatrix_collect_rows(c, 1, 1);
    ck_assert_int_eq(session_eval(r.dg, r.s, &(batch_row){.id = 1, .out = true}, 1), WEFT_OK);
    imatrix_collect_end(c);
    ck_assert_ptr_nonnull(imatrix_find(im, STR("blk.0.ffn_up.weight")));
    ck_assert_ptr_null(imatrix_find(im, STR("blk.0.ffn_down.weight")));
    imatrix_destroy(im);
    close_model(&r);
    diag_destroy(dg);
    arena_destroy(a);
    unlink(mine.path);
    rmdir(d.path);
}
END_TEST

START_TEST(head)
{
    running r;
    imatrix *im = imatrix_create();
    imatrix_collect *c;
    batch_row rows[N];
    const float *hidden;
    int64_t n, width;
    double sum = 0;
    open_model(&r, WEFT_GOLDEN "/llama-mha/model-bf16.gguf", backend_reference(), false);
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

static imatrix *collected(const char *path, const backend *be)
{
    running r;
    imatrix *im = imatrix_create();
    imatrix_collect *c;
    batch_row rows[N];
    open_model(&r, path, be, true);
    ck_assert_int_eq(imatrix_collect_begin(r.dg, im, r.s, r.mf, &c), WEFT_OK);
    for (int i = 0; i < N; i++)
        rows[i] = (batch_row){.id = i * 3 + 1, .pos = i, .out = true};
    imatrix_collect_rows(c, N, N);
    ck_assert_int_eq(session_eval(r.dg, r.s, rows, N), WEFT_OK);
    imatrix_collect_end(c);
    close_model(&r);
    return im;
}

/* IN, quantised, at a path of its own. */
static void quantised(const char *in, const char *preset, const char *out)
{
    weft_diag *dg = diag_create();
    model_file *mf;
    quant_job *j = NULL;
    ck_assert_int_eq(model_file_open(dg, in, NULL, &mf), WEFT_OK);
    ck_assert_int_eq(quant_job_create(dg, mf, NULL, &j), WEFT_OK);
    ck_assert_int_eq(quant_job_choose(dg, j, mix_find(preset), NULL, NULL), WEFT_OK);
    ck_assert_int_eq(quant_job_write(dg, j, out, &(quant_write_options){.threads = 1}), WEFT_OK);
    quant_job_destroy(j);
    model_file_close(mf);
    diag_destroy(dg);
}

/* A compiled plan sees what the reference does, but for activations that it rounds. */
START_TEST(fast)
{
    static const struct {
        const char *model, *preset;
        double bound; /* 8 bits of activations may also choose another expert */
    } cases[] = {
        {"llama-mha/model-bf16.gguf", "BF16", 1e-4},
        {"llama-mha/model-bf16.gguf", "Q8_0", 0.05},
        {"llama-mha/model-bf16.gguf", "Q4_0", 0.05},
        {"gpt_oss", "F32", 1e-4}, /* experts; a limit of 7 is the one that GGUF can have */
        {"gpt_oss", "Q8_0", 0.3},
    };
    weft_diag *dg = diag_create();
    const backend *be;
    char in[2048], path[] = "/tmp/weft-collect-XXXXXX";
    int fd = mkstemp(path);
    ck_assert(fd >= 0 && close(fd) == 0);
    ck_assert_int_eq(backend_cpu(dg, false, &be), WEFT_OK);
    diag_destroy(dg);
    snprintf(in, sizeof in,
             "mkdir %s.in && cp -r %s/%s %s.in/m && if [ -d %s.in/m ]; then sed -i "
             "'s/\"swiglu_limit\": 1.5/\"swiglu_limit\": 7.0/' %s.in/m/config.json; fi",
             path, WEFT_GOLDEN, cases[_i].model, path, path, path);
    ck_assert_int_eq(system(in), 0);
    snprintf(in, sizeof in, "%s.in/m", path);
    quantised(in, cases[_i].preset, path);
    snprintf(in, sizeof in, "rm -r %s.in", path);
    ck_assert_int_eq(system(in), 0);
    imatrix *want = collected(path, backend_reference()), *got = collected(path, be);
    ck_assert_uint_eq(imatrix_count(got), imatrix_count(want));
    for (size_t i = 0; i < imatrix_count(want); i++) {
        const imatrix_entry *a = imatrix_at(want, i), *b = imatrix_find(got, a->name);
        ck_assert(b && b->mats == a->mats && b->columns == a->columns);
        double off = 0, all = 0, counts = 0;
        for (int64_t k = 0; k < a->columns; k++) {
            double x = 0; /* over all experts */
            for (int64_t m = 0; m < a->mats; m++) {
                x += (double)a->sums[m * a->columns + k] - (double)b->sums[m * a->columns + k];
                all += (double)a->sums[m * a->columns + k];
            }
            off += fabs(x);
        }
        for (int64_t m = 0; m < a->mats; m++) {
            counts += (double)(a->counts[m] - b->counts[m]);
            ck_assert(cases[_i].bound > 1e-4 || a->counts[m] == b->counts[m]);
        }
        ck_assert(counts == 0 && all > 0);
        ck_assert_msg(off <= cases[_i].bound * all, STR_FMT " is %g off", STR_ARG(a->name),
                      off / all);
    }
    imatrix_destroy(want);
    imatrix_destroy(got);
    unlink(path);
}
END_TEST

/* Every form of activations that there is, as the reference quantises it. */
START_TEST(unpacks)
{
    enum { ROWS = 6, WIDTH = 512 };
    static float x[ROWS][WIDTH], back[WIDTH];
    int n_kernel;
    const kernel_row *rows = kernel_rows(&n_kernel);
    kact act = (kact)_i;
    const char *op = act_group(act) > 1 ? "quantize4" : "quantize";
    int64_t pitch = act_row_bytes(act, WIDTH);
    _Alignas(64) static char quantized[8 * 8 * WIDTH];
    uint32_t seed = 7;
    for (int i = 0; i < ROWS * WIDTH; i++)
        x[i / WIDTH][i % WIDTH] =
            (float)((seed = seed * 1664525 + 1013904223) >> 8) / (1 << 23) - 1;
    ck_assert((int64_t)sizeof quantized >= 8 * pitch);
    kargs k = {.in = {x},
               .out = {quantized},
               .pitch = {sizeof *x},
               .out_pitch = {pitch},
               .n = {ROWS, WIDTH},
               .word = {act}};
    kthread t = {0};
    for (int i = 0; i < n_kernel; i++)
        if (rows[i].op == kop_find(op) && rows[i].variant == VARIANT_ref)
            rows[i].fn(&k, &t, 0, act_group(act) > 1 ? (ROWS + 3) / 4 : ROWS);
    for (int r = 0; r < ROWS; r++) {
        int group = (int)act_group(act);
        imatrix_unpack(act, quantized + r / group * group * pitch, r % group, WIDTH, back);
        for (int i = 0; i < WIDTH; i++)
            ck_assert_float_eq_tol(back[i], x[r][i], act_rounds(act) ? 0.5f / 127 : 1e-6f);
    }
}
END_TEST

START_TEST(refuses)
{
    running r;
    imatrix *im = imatrix_create();
    imatrix_collect *c;
    open_model(&r, WEFT_GOLDEN "/llama-mha/model-bf16.gguf", backend_cpu_find("c"),
               false); /* each thread has its norms */
    ck_assert_int_eq(imatrix_collect_begin(r.dg, im, r.s, r.mf, &c), WEFT_ERR_FORMAT);
    close_model(&r);
    open_model(&r, WEFT_GOLDEN "/llama-mha", backend_reference(), false);
    ck_assert_int_eq(imatrix_collect_begin(r.dg, im, r.s, r.mf, &c), WEFT_ERR_FORMAT);
    close_model(&r);
    imatrix_destroy(im);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("all");
    tcase_add_test(c, head);
    tcase_add_test(c, a_mapped_matrix_is_left_out);
    tcase_add_loop_test(c, fast, 0, 5);
    tcase_add_loop_test(c, unpacks, ACT_F32 + 1, ACT_COUNT);
    tcase_add_test(c, refuses);
    return suite_run("collect", c, CK_FORK_GETENV);
}
