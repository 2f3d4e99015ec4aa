/* metal_kit.h - a recorded model on the tests' GPU, for the suites of the Metal device: the host side and the shaders of the product,
 * on a Metal that checks its rules (metal_fake.h). */
#ifndef WEFT_TESTS_METAL_METAL_KIT_H
#define WEFT_TESTS_METAL_METAL_KIT_H

#include "compiler/compiler.h"
#include "compiler/plan_make.h"
#include "runtime/exec/metal_device.h"
#include "runtime/exec/session.h"
#include "runtime/formats/model_file.h"
#include "tests/base/suite.h"
#include "tests/metal/metal_fake.h"

#include <math.h>

typedef struct {
    weft_diag *dg;
    arena *a;
    model_file *mf, *expected;
    bound_model *bm;
    int64_t n, vocab, layers;
    const int32_t *ids;  /* [n] */
    const float *logits; /* [n, vocab] */
    plan *p;
} gpu_model;

static inline plan *gpu_plan(gpu_model *m, dtype kv, int64_t n_tok_max)
{
    static const char *const outputs[] = {"logits"};
    plan *p = NULL;
    target t = {.be = backend_metal(),
                .n_ctx = m->n,
                .n_seq = 2,
                .n_tok_max = n_tok_max,
                .kv = kv,
                .outputs = outputs,
                .n_output = 1,
                .may_fork = true};
    ck_assert_int_eq(plan_make(m->dg, m->bm->graph, &t, NULL, m->a, &p), WEFT_OK);
    return p;
}

/* file: in the model's folder; NULL: its safetensors. */
static inline gpu_model gpu_model_open_file(const char *name, const char *file)
{
    gpu_model m = {.dg = diag_create(), .a = arena_create()};
    const char *folder = arena_printf(m.a, "%s/%s", WEFT_GOLDEN, name).p;
    const char *values = arena_printf(m.a, "%s/expected.safetensors", folder).p;
    if (file)
        folder = arena_printf(m.a, "%s/%s", folder, file).p;
    ck_assert_int_eq(model_file_open(m.dg, folder, NULL, &m.mf), WEFT_OK);
    ck_assert_int_eq(model_file_open(m.dg, values, NULL, &m.expected), WEFT_OK);
    ck_assert_int_eq(model_bind(m.dg, m.mf, NULL, &m.bm), WEFT_OK);
    const model_tensor *ids = model_file_tensor(m.expected, STR("input_ids"));
    const model_tensor *logits = model_file_tensor(m.expected, STR("logits"));
    ck_assert(ids && logits && ids->type == DT_I32);
    m.n = ids->elems;
    m.ids = ids->data;
    m.vocab = logits->elems / m.n;
    m.logits = logits->data;
    m.p = gpu_plan(&m, DT_F32, m.n);
    for (int32_t i = 0; i < m.p->bucket[0].n_step; i++)
        m.layers = m.p->bucket[0].step[i].layer + 1 > m.layers ? m.p->bucket[0].step[i].layer + 1
                                                               : m.layers;
    return m;
}

static inline gpu_model gpu_model_open(const char *name)
{
    return gpu_model_open_file(name, NULL);
}

static inline void gpu_model_close(gpu_model *m)
{
    bound_model_destroy(m->bm);
    model_file_close(m->mf);
    model_file_close(m->expected);
    arena_destroy(m->a);
    diag_destroy(m->dg);
}

static inline const metal_driver *gpu_driver(weft_diag *dg)
{
    const metal_driver *driver = NULL;
    setenv("WEFT_METAL", WEFT_METAL_FILE, 1);
    setenv("WEFT_METAL_MAPS", "off", 0); /* shaders are compiled once for all plans */
    ck_assert_int_eq(metal_library(dg, &driver), WEFT_OK);
    return driver;
}

static inline device *gpu_open(weft_diag *dg)
{
    device *d = NULL;
    ck_assert_int_eq(metal_device_open(dg, gpu_driver(dg), 0, &d), WEFT_OK);
    return d;
}

static inline metal_fake_count gpu_counts(void)
{
    metal_fake_count c;
    metal_fake_counts(&c);
    return c;
}

/* Everything was given back. */
static inline void gpu_close(device *d)
{
    device_close(d);
    ck_assert_int_eq(gpu_counts().buffers, 0);
    ck_assert_int_eq(gpu_counts().wrapped, 0);
    ck_assert_int_eq(gpu_counts().without_pool, 0);
}

static inline session_options gpu_options(const gpu_model *m, device *d)
{
    return (session_options){.n_ctx = m->n, .n_seq = 2, .page_tok = 4, .threads = 1, .dev = d};
}

static inline weft_status gpu_session(gpu_model *m, device *d, session **out_s)
{
    session_options opt = gpu_options(m, d);
    return session_create(m->dg, m->p, model_file_source(m->mf), &opt, out_s);
}

static inline weft_status gpu_eval(gpu_model *m, session *s, int32_t seq, int64_t first, int64_t n)
{
    batch_row *rows = calloc((size_t)n, sizeof *rows);
    for (int64_t i = 0; i < n; i++)
        rows[i] = (batch_row){
            .id = m->ids[first + i], .pos = (int32_t)(first + i), .seq = seq, .out = true};
    weft_status st = session_eval(m->dg, s, rows, n);
    free(rows);
    return st;
}

/* How far the last call's logits, of rows from `first` on, are off the recorded ones, relative to 1 + their size. */
static inline double gpu_off(const gpu_model *m, const session *s, int64_t first, int64_t n)
{
    const float *got = NULL;
    int64_t n_row = 0, width = 0;
    double worst = 0;
    ck_assert(session_output(s, "logits", -1, &got, &n_row, &width));
    ck_assert(n_row == n && width == m->vocab);
    for (int64_t i = 0; i < n * width; i++) {
        double want = (double)m->logits[first * width + i];
        double off = fabs((double)got[i] - want) / (1 + fabs(want));
        worst = off > worst || isnan(off) ? (isnan(off) ? INFINITY : off) : worst;
    }
    return worst;
}

static const double GPU_CLOSE = 1e-4; /* as tests/golden allows */

/* Rows from `first` on, and that their logits are the recorded ones. */
static inline void gpu_expect(gpu_model *m, session *s, int32_t seq, int64_t first, int64_t n)
{
    ck_assert_int_eq(gpu_eval(m, s, seq, first, n), WEFT_OK);
    ck_assert_double_le(gpu_off(m, s, first, n), GPU_CLOSE);
}

/* One error, of this code and with these words; then none. */
static inline void gpu_expect_error(gpu_model *m, weft_code code, const char *words)
{
    expect_one(m->dg, code, words);
    diag_reset(m->dg);
}

#endif
