/* card_kit.h - a recorded model on the tests' card and on the CPU, for the suites of the CUDA device. */
#ifndef WEFT_TESTS_CUDA_CARD_KIT_H
#define WEFT_TESTS_CUDA_CARD_KIT_H

#include "compiler/compiler.h"
#include "compiler/plan_make.h"
#include "runtime/exec/cuda_device.h"
#include "runtime/exec/session.h"
#include "runtime/formats/model_file.h"
#include "runtime/formats/random_model.h"
#include "tests/base/suite.h"
#include "tests/cuda/fake_driver.h"

#include <math.h>

typedef struct {
    weft_diag *dg;
    arena *a;
    model_file *mf, *expected;
    bound_model *bm;
    int64_t n, vocab;
    int64_t n_ctx;       /* of plans; 0: n */
    int64_t n_seq;       /* of plans and sessions; 0: two */
    int64_t page_tok;    /* of sessions; 0: four */
    const int32_t *ids;  /* [n] */
    const float *logits; /* [n, vocab] */
    plan *p;             /* for cards */
} card_model;

static inline plan *card_plan(card_model *m, dtype kv, int64_t n_tok_max)
{
    static const char *const outputs[] = {"logits", "hidden"};
    plan *p = NULL;
    target t = {.be = backend_cuda(),
                .n_ctx = m->n_ctx ? m->n_ctx : m->n,
                .n_seq = m->n_seq ? m->n_seq : 2,
                .n_tok_max = n_tok_max,
                .kv = kv,
                .outputs = outputs,
                .n_output = 2,
                .may_fork = true};
    ck_assert_int_eq(plan_make(m->dg, m->bm->graph, &t, NULL, m->a, &p), WEFT_OK);
    return p;
}

/* file: in the model's folder; NULL: its safetensors. */
static inline card_model card_model_open(const char *name, const char *file)
{
    card_model m = {.dg = diag_create(), .a = arena_create()};
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
    m.p = card_plan(&m, DT_F32, m.n);
    return m;
}

/* One that is made up, with nothing recorded: bound, without a plan. out_rm is closed after it. */
static inline card_model card_random_open(const char *spec, const int32_t *ids, int64_t n,
                                          random_model **out_rm)
{
    card_model m = {.dg = diag_create(), .a = arena_create(), .n = n, .ids = ids};
    ck_assert_int_eq(random_model_create(m.dg, spec, 1, out_rm), WEFT_OK);
    ck_assert_int_eq(model_file_open_memory(m.dg, random_model_data(*out_rm),
                                            random_model_bytes(*out_rm), spec, &m.mf),
                     WEFT_OK);
    ck_assert_int_eq(model_bind(m.dg, m.mf, NULL, &m.bm), WEFT_OK);
    return m;
}

static inline void card_model_close(card_model *m)
{
    bound_model_destroy(m->bm);
    model_file_close(m->mf);
    model_file_close(m->expected);
    arena_destroy(m->a);
    diag_destroy(m->dg);
}

/* A card of this kind, opened. */
static inline device *card_open(weft_diag *dg, const fake_card *c)
{
    device *d = NULL;
    fake_reset(c);
    ck_assert_int_eq(fake_driver()->cuInit(0), CU_OK);
    ck_assert_int_eq(cuda_device_open(dg, fake_driver(), &fake_kernels, NULL, 0, &d), WEFT_OK);
    return d;
}

/* Everything was given back, and nothing was done that a card would not do. */
static inline void card_close(device *d)
{
    device_close(d);
    ck_assert_msg(!fake_misuse(), "%s", fake_misuse());
    ck_assert(fake_holds_nothing());
}

static inline session_options card_options(const card_model *m, device *d)
{
    return (session_options){.n_ctx = m->n,
                             .n_seq = m->n_seq ? m->n_seq : 2,
                             .page_tok = m->page_tok ? m->page_tok : 4,
                             .threads = 1,
                             .dev = d};
}

static inline weft_status card_eval(card_model *m, session *s, int32_t seq, int64_t first,
                                    int64_t n)
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
static inline double card_off(const card_model *m, const session *s, int64_t first, int64_t n)
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

#endif
