/* verb_lora_extract.c - `weft lora extract`: what fine-tuning changed, as an adapter of a given rank. */
#include "runtime/base/mem.h"
#include "runtime/base/progress.h"
#include "runtime/cli/verb_lora.h"
#include "runtime/exec/pool.h"
#include "runtime/lora/adapter_write.h"
#include "runtime/lora/factors.h"
#include "runtime/lora/svd.h"
#include "runtime/quant/job_rows.h"
#include "kernels/ref/dequant.h"

#include <inttypes.h>
#include <math.h>

enum { RANK_USUAL = 16 };

typedef struct {
    lora_run *r;
    arena *a;
    lora_model tuned, base;
    VEC(adapter_site) sites;
    double norm2, error2; /* sums of squares over all sites */
    size_t n_other;       /* weights that differ and cannot be adapted */
    str first_other;
} extracting;

static const gweight *find_weight(const bound_model *bm, str name)
{
    for (size_t i = 0; i < bm->graph->weights.n; i++)
        if (str_eq(bm->graph->weights.at[i].name, name))
            return &bm->graph->weights.at[i];
    return NULL;
}

static bool readable(const gweight *w)
{
    return !w->computed && (dequant_has(w->type) || w->type == DT_MXFP4_HF);
}

static bool same_shape(const gweight *x, const gweight *y)
{
    bool same = x->rank == y->rank;
    for (int i = 0; same && i < x->rank; i++)
        same = x->dim[i] == y->dim[i];
    return same;
}

/* The tuned weight as the base orders its rows. */
static other_weight in_order(const extracting *x, const gweight *t, const gweight *b)
{
    other_weight o = {.weight = t, .pairs = b->pairs};
    const site_names *names = &x->tuned.bm->sites;
    for (size_t i = 0; i < names->n && o.run == 0; i++)
        for (int k = 0; str_eq(names->at[i].weight, t->name) && k < names->at[i].n_step; k++) {
            const site_step *s = &names->at[i].step[k];
            if (s->code == TRANSFORM_pairs && s->n_arg >= 2) {
                o.run = s->arg[1];
                o.turned = s->arg[s->n_arg > 2 ? 2 : 1];
            }
        }
    return o;
}

/* Matrix `index` of the tuned weight less that of the base, in x [rows, columns]. */
static void subtract(const extracting *e, const gweight *t, const gweight *b, int64_t index,
                     int64_t rows, int64_t columns, float *x, float *row)
{
    other_weight to = in_order(e, t, b), bo = {.weight = b, .pairs = b->pairs};
    for (int64_t i = 0; i < rows; i++) {
        float *at = x + i * columns;
        job_weight_row(e->tuned.mf, &to, index * rows + i, at);
        job_weight_row(e->base.mf, &bo, index * rows + i, row);
        for (int64_t k = 0; k < columns; k++)
            at[k] -= row[k];
    }
}

static bool is_table(const extracting *x, str name)
{
    const site_names *names = &x->base.bm->sites;
    for (size_t i = 0; i < names->n; i++)
        if (str_eq(names->at[i].weight, name))
            return names->at[i].kind == KIND_embed;
    return false;
}

static weft_status take_matrix(extracting *e, const gweight *t, const gweight *b, int64_t index,
                               float *x, float *row)
{
    int64_t rows = b->dim[b->rank - 2], columns = b->dim[b->rank - 1];
    subtract(e, t, b, index, rows, columns, x, row);
    for (int64_t i = 0; i < rows * columns; i++)
        if (!isfinite(x[i]))
            return weft_fail(e->r->dg, W0704, WEFT_NOWHERE,
                             STR_FMT " of %s or %s holds a number that is not finite",
                             STR_ARG(b->name), e->r->o->model, e->r->o->base);
    svd_factors f = svd_truncated(x, rows, columns, e->r->o->rank ? e->r->o->rank : RANK_USUAL,
                                  lora_threads(e->r), e->a);
    e->norm2 += f.norm * f.norm;
    e->error2 += f.error * f.error;
    if (f.rank == 0)
        return WEFT_OK;
    adapter_site s = {.weight = (int32_t)(b - e->base.bm->graph->weights.at),
                      .index = b->rank == 3 ? (int32_t)index : -1,
                      .rank = f.rank,
                      .in = columns,
                      .out = rows,
                      .a = f.a,
                      .b = f.b,
                      .scale = 1,
                      .name = b->name};
    if (is_table(e, b->name)) {
        s.in = rows;
        s.out = columns;
        s.a = matrix_transposed(e->a, f.b, rows, f.rank);
        s.b = matrix_transposed(e->a, f.a, f.rank, columns);
    }
    VEC_PUSH(&e->sites, s);
    return WEFT_OK;
}

/* A weight that no adapter reaches: does it differ? */
static bool differs(const extracting *e, const gweight *t, const gweight *b)
{
    int64_t rows = 1, n = b->rank ? b->dim[b->rank - 1] : 1;
    bool apart = !same_shape(t, b);
    for (int i = 0; i + 1 < b->rank; i++)
        rows *= b->dim[i];
    if (apart || b->rank < 1)
        return apart;
    if (t->computed && b->computed)
        return memcmp(t->computed, b->computed, (size_t)(rows * n) * sizeof *b->computed) != 0;
    float *x = mem_alloc((size_t)n * sizeof *x), *y = mem_alloc((size_t)n * sizeof *y);
    for (int64_t i = 0; i < rows && !apart && readable(t) && readable(b) && b->rank > 1; i++) {
        job_weight_row(e->tuned.mf, &(other_weight){.weight = t, .pairs = t->pairs}, i, x);
        job_weight_row(e->base.mf, &(other_weight){.weight = b, .pairs = b->pairs}, i, y);
        apart = memcmp(x, y, (size_t)n * sizeof *x) != 0;
    }
    if (b->rank == 1 && readable(t) && readable(b) && t->n_piece == 1 && b->n_piece == 1) {
        const model_tensor *p = model_file_tensor_at(e->tuned.mf, (size_t)t->piece[0].tensor);
        const model_tensor *q = model_file_tensor_at(e->base.mf, (size_t)b->piece[0].tensor);
        dequant_row(t->type, (const char *)p->data + t->piece[0].offset, x, n);
        dequant_row(b->type, (const char *)q->data + b->piece[0].offset, y, n);
        apart = memcmp(x, y, (size_t)n * sizeof *x) != 0;
    }
    mem_free(x);
    mem_free(y);
    return apart;
}

static weft_status take_weight(extracting *e, const gweight *b)
{
    const gweight *t = find_weight(e->tuned.bm, b->name);
    if (!t)
        return weft_fail(e->r->dg, W0702, WEFT_NOWHERE,
                         "%s has " STR_FMT ", and %s has not: they are different models",
                         e->r->o->base, STR_ARG(b->name), e->r->o->model);
    if (!b->lora || !readable(b) || !readable(t)) {
        if (differs(e, t, b) && e->n_other++ == 0)
            e->first_other = b->name;
        return WEFT_OK;
    }
    if (!same_shape(t, b))
        return weft_fail(e->r->dg, W0702, WEFT_NOWHERE,
                         STR_FMT " is [%" PRId64 ", %" PRId64 "] in %s and [%" PRId64 ", %" PRId64
                                 "] in %s",
                         STR_ARG(b->name), t->dim[t->rank - 2], t->dim[t->rank - 1], e->r->o->model,
                         b->dim[b->rank - 2], b->dim[b->rank - 1], e->r->o->base);
    int64_t n = b->rank == 3 ? b->dim[0] : 1;
    size_t elems = (size_t)(b->dim[b->rank - 2] * b->dim[b->rank - 1]);
    float *x = mem_alloc(mem_product(elems, sizeof *x));
    float *row = mem_alloc((size_t)b->dim[b->rank - 1] * sizeof *row);
    weft_status st = WEFT_OK;
    for (int64_t i = 0; i < n && st == WEFT_OK; i++)
        st = take_matrix(e, t, b, i, x, row);
    mem_free(x);
    mem_free(row);
    return st;
}

static weft_status extract(extracting *e)
{
    lora_run *r = e->r;
    progress bar;
    if (!r->o->model || !r->o->base || !r->o->out)
        return weft_fail(r->dg, W1904, WEFT_NOWHERE,
                         "extract takes -m TUNED, --base BASE and -o FILE");
    WEFT_TRY(lora_model_open(r, r->o->model, r->o->arch, &e->tuned));
    WEFT_TRY(lora_model_open(r, r->o->base, r->o->arch, &e->base));
    WEFT_TRY(model_file_spare(r->dg, e->tuned.mf, r->o->out));
    WEFT_TRY(model_file_spare(r->dg, e->base.mf, r->o->out));
    const graph *g = e->base.bm->graph;
    weft_status st = WEFT_OK;
    WEFT_TRY(pool_acquire(r->dg, lora_threads(r), false));
    progress_start(&bar, "extract", g->weights.n, PROGRESS_COUNT);
    for (size_t i = 0; i < g->weights.n && st == WEFT_OK; i++) {
        st = take_weight(e, &g->weights.at[i]);
        progress_update(&bar, i + 1);
    }
    progress_end(&bar);
    pool_release();
    WEFT_TRY(st);
    WEFT_TRY(model_file_check(r->dg, e->tuned.mf));
    WEFT_TRY(model_file_check(r->dg, e->base.mf));
    if (e->sites.n == 0)
        return weft_fail(r->dg, W0705, WEFT_NOWHERE,
                         "%s and %s have the same weights: there is nothing to extract",
                         r->o->model, r->o->base);
    WEFT_TRY(adapter_write(r->dg, r->o->out, e->base.bm, e->sites.at, e->sites.n,
                           lora_base_name(e->a, r->o->base)));
    cli_say(r->c, "%s: %zu site%s, rank %lld; of what changed %.3g %% is not in it", r->o->out,
            e->sites.n, e->sites.n == 1 ? "" : "s",
            (long long)(r->o->rank ? r->o->rank : RANK_USUAL),
            e->norm2 > 0 ? 100 * sqrt(e->error2 / e->norm2) : 0);
    if (e->n_other)
        cli_say(r->c,
                "%zu weight%s changed that no adapter reaches (norms, biases), the first " STR_FMT,
                e->n_other, e->n_other == 1 ? "" : "s", STR_ARG(e->first_other));
    return WEFT_OK;
}

weft_status lora_extract(lora_run *r)
{
    extracting e = {.r = r, .a = arena_create()};
    weft_status st = extract(&e);
    VEC_FREE(&e.sites);
    lora_model_close(&e.tuned);
    lora_model_close(&e.base);
    arena_destroy(e.a);
    return st;
}
