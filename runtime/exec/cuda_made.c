/* cuda_made.c - images made for the buckets of a plan. One is compiled once and then comes from the cache (code_cache.h), without
 * NVRTC: its name is made of all that decides it.
 *
 * Buckets of few rows have one, whose kernels are over in microseconds: what code takes to come to a multiprocessor counts
 * there. Of those with more than one row only the ones that sequences of a session can fill by decoding together. */
#include "runtime/exec/cuda_impl.h"

#include "kernels/cuda/attend_cuda_size.h"
#include "kernels/cuda/few_size.h"
#include "runtime/base/checksum.h"
#include "runtime/base/mem.h"
#include "runtime/exec/code_cache.h"
#include "runtime/exec/cuda_text.h"
#include <stdatomic.h>

enum { MADE_MAX = 8 }; /* buckets of up to FEW_CALL_MAX rows: 1, 2, 4, .. */

typedef struct {
    cuda_bucket *bucket;
    cuda_text text;
    int32_t *shape, *heads; /* [n_step] */
    code_name name;
    strbuf code; /* empty: there is none yet */
} making;

static bool is_wanted(const plan *p, const plan_bucket *b)
{
    return b->n_tok_max <= FEW_CALL_MAX && b->n_step > 0 &&
           (b->n_tok_max == 1 || b->n_tok_max < 2 * p->n_seq_max);
}

/* ---- text ---- */

/* Is step i the norm of a row that linears multiply as floats, which come through the ring? */
static bool makes_x(const cuda_bucket *c, int32_t i)
{
    const plan_step *s = &c->plan->step[i];
    if (c->plan->n_tok_max != 1 || c->rows[i]->op != KOP_rms_norm)
        return false;
    for (int32_t to = i + 1; to < c->plan->n_step && to <= i + PACK_STEPS; to++) {
        const plan_operand *x = &c->plan->step[to].in[0], *y = &c->plan->step[to].out[0];
        if (c->steps[to].cut.rows > 0 && x->space == s->out[0].space &&
            x->offset == s->out[0].offset)
            return c->rows[to]->act == ACT_F32;
        if (y->space == s->out[0].space && y->offset == s->out[0].offset)
            return false; /* another value is there */
    }
    return false;
}

/* Does step i + 1 quantise the rows that step i, a norm, makes, with nothing between them? Then one function does both
 * (norm_cuda.cuh). */
static bool is_quantized(const cuda_bucket *c, int32_t i)
{
    const plan_step *s = &c->plan->step[i], *next = s + 1;
    if (i + 1 == c->plan->n_step || c->rows[i]->op != KOP_rms_norm ||
        c->rows[i + 1]->op != KOP_quantize)
        return false;
    const plan_item *it = &c->plan->item[c->steps[i].item],
                    *to = &c->plan->item[c->steps[i + 1].item];
    const int64_t width = s->size.norm.width;
    const kargs *q = &c->args[i + 1];
    return s->size.norm.vectors == 1 && s->size.norm.weight_rows <= 1 && width > TEAM_WIDTH_MAX &&
           width % 256 == 0 && next->size.quantize.width == width && c->args[i].tile == 0 &&
           q->tile == 0 && next->in[0].space == s->out[0].space &&
           next->in[0].offset == s->out[0].offset && next->rows == s->rows &&
           next->per_row == s->per_row && next->pitch[0] == s->out_pitch[0] &&
           ((uintptr_t)q->out[0] | (uintptr_t)q->out_pitch[0]) % 16 == 0 &&
           (it == to || (it->phase == to->phase && it->per_thread && to->per_thread));
}

/* Has no step of the plan made it? */
static bool is_given(const plan_operand *x)
{
    return x->space == SPACE_NONE || x->space == SPACE_WEIGHT || x->space == SPACE_CONST ||
           x->space == SPACE_IO;
}

/* Does the function of step i meet its gate by itself? A norm has asked for its weights by then. */
static bool is_late(const cuda_bucket *c, int32_t i)
{
    const bool norm = makes_x(c, i) || is_quantized(c, i);
    const bool copies = c->plan->n_tok_max == 1 || c->sheets; /* lists are made while it waits */
    return copies && (c->steps[i].cut.rows > 0 || c->rows[i]->op == KOP_quantize ||
                      (norm && is_given(&c->plan->step[i].in[1])));
}

static cuda_text_step text_step(const exec *e, const cuda_bucket *c, int32_t i)
{
    const plan_step *s = &c->plan->step[i];
    return (cuda_text_step){.k = &c->args[i],
                            .symbol = c->rows[i]->symbol,
                            .of = s,
                            .own = &c->own[i],
                            .cell = s->cell >= 0 ? e->cells + s->cell : NULL,
                            .code = s->n_code ? e->p->code + s->code : NULL,
                            .map = c->rows[i]->op == KOP_map,
                            .linear = c->rows[i]->op == KOP_linear,
                            .streams = c->steps[i].cut.rows > 0,
                            .sheets = c->sheets && c->steps[i].cut.rows > 0
                                          ? (int)few_instructions(c->plan->n_tok_max)
                                          : 0,
                            .blocks = !c->sheets && c->steps[i].cut.rows > 0 &&
                                      cuda_cut_is_blocks(c->rows[i]->type, c->steps[i].cut),
                            .lora = e->lora != NULL,
                            .one_row = c->plan->n_tok_max == 1,
                            .makes_x = makes_x(c, i),
                            .late = is_late(c, i),
                            .then = is_quantized(c, i) ? &c->args[i + 1] : NULL};
}

/* The shape by heads of all steps of a phase, which begins with item `first`; -1: it has none. */
static int32_t write_heads(const exec *e, making *m, int32_t first)
{
    const cuda_bucket *c = m->bucket;
    const int32_t from = c->plan->item[first].first, cols = cuda_heads_cols(e, c, first);
    cuda_heads h;
    if (cols > 0) {
        const cuda_text_step s = text_step(e, c, from);
        return cuda_text_add_cols(&m->text, &s, cols);
    }
    if (!cuda_heads_of(e, c, first, &h))
        return -1;
    const int32_t at[HEADS_STEPS] = {h.q, h.key, h.keys, h.values};
    cuda_text_step s[HEADS_STEPS];
    for (int i = 0; i < HEADS_STEPS; i++)
        s[i] = text_step(e, c, from + at[i]);
    return cuda_text_add_heads(&m->text, s, at,
                               is_given(&s[0].of->in[1]) && is_given(&s[0].of->in[2]));
}

static void write_text(const exec *e, arena *a, making *m)
{
    const cuda_bucket *c = m->bucket;
    m->text = (cuda_text){.a = a};
    m->shape = ARENA_ARRAY(a, int32_t, (size_t)c->plan->n_step);
    m->heads = ARENA_ARRAY(a, int32_t, (size_t)c->plan->n_step);
    for (int32_t i = 0; i < c->plan->n_step; i++) {
        const cuda_text_step step = text_step(e, c, i);
        m->shape[i] = cuda_text_add(&m->text, &step);
        m->heads[i] = -1;
    }
    for (int32_t i = 0; i < c->plan->n_item; i++)
        m->heads[c->plan->item[i].first] = write_heads(e, m, i);
    cuda_text_end(&m->text, cuda_made_threads(c));
}

static code_name name_of(const cuda_device *d, const char *stamp, str text)
{
    strbuf all = {0};
    strbuf_add(&all, "%s\n%s\nsm_%d%d\n%s\n", d->image->build, d->image->texts->flags,
               cuda_attribute(d, CU_CAPABILITY_MAJOR), cuda_attribute(d, CU_CAPABILITY_MINOR),
               stamp);
    strbuf_put(&all, text);
    code_name name = {checksum(all.p, all.n), str_hash(strbuf_view(&all))};
    strbuf_free(&all);
    return name;
}

/* ---- code ---- */

/* All that is not on disk. */
static weft_status make_rest(weft_diag *dg, const device_load *what, const exec *e, making *m,
                             int n)
{
    cuda_job job[MADE_MAX] = {{0}};
    const nvrtc *by;
    int n_job = 0;
    const cuda_target target = {.texts = e->d->image->texts,
                                .major = cuda_attribute(e->d, CU_CAPABILITY_MAJOR),
                                .minor = cuda_attribute(e->d, CU_CAPABILITY_MINOR)};
    for (int i = 0; i < n; i++)
        if (m[i].code.n == 0)
            job[n_job++].shapes = m[i].text.text.p;
    if (n_job == 0)
        return WEFT_OK;
    weft_status st = e->d->maker->load(dg, &by);
    if (st == WEFT_OK)
        st = cuda_nvrtc_compile(dg, by, &target, &what->keep, job, n_job);
    for (int i = 0, at = 0; i < n; i++) {
        if (m[i].code.n)
            continue;
        m[i].code = job[at++].code;
        if (m[i].code.n && what->keep.use_cache) {
            const int rows = (int)m[i].bucket->plan->n_tok_max;
            char of[128];
            snprintf(of, sizeof of, "%s, CUDA kernels for %d row%s", e->p->model, rows,
                     rows == 1 ? "" : "s");
            code_cache_put(dg, what->keep.cache_dir, m[i].name, of, strbuf_view(&m[i].code));
        }
    }
    return st;
}

/* A norm has the result of what quantises its rows, which has nothing to do any more. */
static void step_take(cuda_step *norm, cuda_step *next)
{
    norm->out[1] = next->out[0];
    norm->local |= (next->local >> K_IN_MAX & 1) << (K_IN_MAX + 1);
    next->shape = STEP_NONE;
}

/* Onto the card. */
static weft_status use(weft_diag *dg, const exec *e, const making *m)
{
    cuda_bucket *c = m->bucket;
    weft_diag *quiet = diag_create();
    weft_status st = cuda_enter(quiet, e->d);
    if (st == WEFT_OK)
        st = cuda_leave(quiet, e->d, cuda_kernel_load(e->d, m->code.p, &c->made),
                        "loading the plan's kernels");
    if (st != WEFT_OK)
        weft_warn(dg, W1613, WEFT_NOWHERE, STR_FMT, STR_ARG(diag_at(quiet, 0).message));
    diag_destroy(quiet);
    WEFT_TRY(st);
    c->kernel = &c->made;
    for (int32_t i = 0; i < c->plan->n_step; i++) {
        c->steps[i].shape = m->shape[i];
        c->heads[i] = m->heads[i];
    }
    for (int32_t i = 0; i < c->plan->n_step; i++)
        if (is_quantized(c, i))
            step_take(&c->steps[i], &c->steps[i + 1]);
    return WEFT_OK;
}

/* ---- the whole ---- */

/* Once: who starts many sessions knows it then. */
static void report_none(weft_diag *dg)
{
    static atomic_bool said;
    if (!atomic_exchange(&said, true))
        weft_warn(dg, W1613, WEFT_NOWHERE, "libnvrtc.so.13, which compiles them, is not there");
}

void cuda_made_load(weft_diag *dg, const device_load *what, exec *e)
{
    making m[MADE_MAX] = {{0}};
    strbuf path = {0}, stamp = {0};
    int n = 0;
    if (!e->d->maker)
        return;
    e->d->maker->find(&path, &stamp);
    if (path.n == 0) {
        report_none(dg);
        return;
    }
    arena *a = arena_create();
    for (int32_t i = 0; i < e->p->n_bucket && n < MADE_MAX; i++) {
        if (!is_wanted(e->p, &e->p->bucket[i]))
            continue;
        m[n].bucket = &e->buckets[i];
        write_text(e, a, &m[n]);
        m[n].name = name_of(e->d, stamp.p, strbuf_view(&m[n].text.text));
        if (what->keep.use_cache)
            code_cache_get(dg, what->keep.cache_dir, m[n].name, &m[n].code);
        n++;
    }
    (void)make_rest(dg, what, e, m, n); /* it has said what failed */
    for (int i = 0; i < n; i++) {
        if (m[i].code.n)
            (void)use(dg, e, &m[i]);
        strbuf_free(&m[i].text.text);
        strbuf_free(&m[i].code);
    }
    arena_destroy(a);
    strbuf_free(&path);
    strbuf_free(&stamp);
}

void cuda_made_free(exec *e)
{
    cu_context was;
    bool any = false;
    for (int32_t i = 0; i < e->p->n_bucket; i++)
        any = any || e->buckets[i].made.module;
    if (!any || e->d->driver->cuCtxPushCurrent(e->d->context) != CU_OK)
        return;
    for (int32_t i = 0; i < e->p->n_bucket; i++)
        cuda_kernel_free(e->d, &e->buckets[i].made);
    e->d->driver->cuCtxPopCurrent(&was);
}
