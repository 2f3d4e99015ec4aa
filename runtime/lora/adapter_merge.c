/* adapter_merge.c - what is added to each row of a tensor on its way into a file; and blends as factors. */
#include "runtime/lora/adapter_merge_impl.h"
#include "runtime/lora/svd.h"

#include "runtime/base/mem.h"

#include <stdlib.h>

typedef struct {
    const adapter_merge *m;
    const store_tensor *t;
} change;

/* From the row that is there to that of the whole weight, all the way with a share of 1. */
static void go_to(const merge_gain *s, store_row at, bool table, float *x, int64_t n)
{
    bool column = at.flip && !table;
    for (int64_t i = 0; i < n; i++) {
        double to = column ? s->full->row[i][at.at] : s->full->row[at.at][i];
        x[i] = (float)(s->share == 1 ? to : x[i] + s->share * (to - x[i]));
    }
}

/* Of a tensor that is stored [in, out]: row `row` is a column of its weights, whose rows lie beside each other. */
static void turned_row(const adapter_merge *m, const store_tensor *t, int64_t row, float *x,
                       int64_t n)
{
    double sum[BLEND_COLUMNS];
    for (int64_t i = 0, k; i < n; i += k) {
        store_row at = t->row[i];
        const merge_gain *s = at.site >= 0 ? &m->from[at.site] : NULL;
        for (k = 1; i + k < n && k < BLEND_COLUMNS && t->row[i + k].site == at.site &&
                    t->row[i + k].at == at.at + k;)
            k++;
        if (s && s->full)
            for (int64_t j = 0; j < k; j++) {
                double to = s->full->row[at.at + j][row];
                x[i + j] = (float)(x[i + j] + s->share * (to - x[i + j]));
            }
        else if (s) {
            blend_line(m->b, s->sum, row, !at.flip, at.at, (int)k, sum);
            for (int64_t j = 0; j < k; j++)
                x[i + j] = (float)(x[i + j] + sum[j]);
        }
    }
}

void merge_row(const adapter_merge *m, const store_tensor *t, int64_t row, float *x, int64_t n)
{
    double sum[BLEND_COLUMNS];
    if (t->turned) {
        turned_row(m, t, row, x, n);
        return;
    }
    store_row at = t->row[row];
    if (at.site < 0)
        return;
    const merge_gain *s = &m->from[at.site];
    if (s->full) {
        go_to(s, at, t->embedding, x, n);
        return;
    }
    for (int64_t i = 0; i < n; i += BLEND_COLUMNS) { /* rounded once */
        int k = (int)(n - i < BLEND_COLUMNS ? n - i : BLEND_COLUMNS);
        blend_line(m->b, s->sum, at.at, at.flip, i, k, sum);
        for (int j = 0; j < k; j++)
            x[i + j] = (float)(x[i + j] + sum[j]);
    }
}

static void add_row(const void *ctx, int64_t row, float *x, int64_t n)
{
    const change *c = ctx;
    merge_row(c->m, c->t, row, x, n);
}

/* Are these two weights the same tensor? */
static bool is_tied(const bound_model *bm, const gweight **out_table, const gweight **out_head)
{
    const graph *g = bm->graph;
    *out_table = *out_head = NULL;
    for (size_t i = 0; i < bm->sites.n && !*out_table; i++)
        for (size_t k = 0; bm->sites.at[i].kind == KIND_embed && k < g->weights.n; k++)
            if (str_eq(g->weights.at[k].name, bm->sites.at[i].weight))
                *out_table = &g->weights.at[k];
    for (size_t k = 0; *out_table && k < g->weights.n; k++) {
        const gweight *w = &g->weights.at[k];
        if (w != *out_table && w->lora && w->n_piece == 1 && !w->computed &&
            (*out_table)->n_piece == 1 && w->piece[0].tensor == (*out_table)->piece[0].tensor)
            *out_head = w;
    }
    return *out_head != NULL;
}

static str gguf_name(const bound_model *bm, str weight)
{
    for (size_t i = 0; i < bm->sites.n; i++)
        if (bm->sites.at[i].gguf && str_eq(bm->sites.at[i].weight, weight))
            return bm->sites.at[i].tensor[0];
    return STR("");
}

bool merge_unties(const adapter_merge *m, const gweight **out_table, const gweight **out_head)
{
    bool touched = false;
    if (!is_tied(m->bm, out_table, out_head))
        return false;
    for (size_t i = 0; i < m->n; i++)
        touched |= str_eq(m->from[i].place.name, (*out_table)->name) ||
                   str_eq(m->from[i].place.name, (*out_head)->name);
    return touched;
}

/* A shared table of which one use changes becomes two. */
static void untie(quant_job *job, const adapter_merge *m)
{
    const gweight *table, *head;
    if (merge_unties(m, &table, &head))
        quant_job_repeat(
            job, arena_printf(m->home, STR_FMT ".weight", STR_ARG(gguf_name(m->bm, table->name))),
            arena_printf(m->home, STR_FMT ".weight", STR_ARG(gguf_name(m->bm, head->name))));
}

weft_status adapter_merge_attach(weft_diag *dg, adapter_merge *m, quant_job *job)
{
    untie(job, m);
    for (size_t i = 0; i < m->tensors.n; i++) {
        const store_tensor *t = &m->tensors.at[i];
        str name = arena_printf(m->home, STR_FMT "%s", STR_ARG(t->name), t->raw ? "" : ".weight");
        change *c = ARENA_NEW(m->home, change);
        bool there = false;
        *c = (change){m, t};
        WEFT_TRY(quant_job_change(dg, job, name, (quant_change){add_row, c}, &there));
        if (!there)
            return weft_fail(dg, W0705, WEFT_NOWHERE,
                             STR_FMT " is adapted, but the model has no tensor of that name",
                             STR_ARG(name));
        for (size_t k = 0; k < quant_job_count(job); k++) {
            const quant_tensor *q = quant_job_tensor(job, k);
            int64_t rows = t->out * (t->stacked ? t->stacked : 1);
            if (str_eq(q->name, name) && (q->columns != t->in || q->rows != rows))
                return weft_fail(dg, W0705, WEFT_NOWHERE,
                                 STR_FMT " has %lld rows of %lld, not %lld of %lld", STR_ARG(name),
                                 (long long)q->rows, (long long)q->columns, (long long)rows,
                                 (long long)t->in);
        }
    }
    return WEFT_OK;
}

static int by_place(const void *a, const void *b)
{
    const adapter_site *x = &((const merge_gain *)a)->place, *y = &((const merge_gain *)b)->place;
    if (x->weight != y->weight)
        return x->weight < y->weight ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Blends and whole weights, in the order of the weights; one of them for each. */
static weft_status gather(weft_diag *dg, adapter_merge *m, const blend_input *in, size_t n)
{
    size_t most = m->b->n_site;
    for (size_t i = 0; i < n; i++)
        most += in[i].from->n_full;
    m->from = ARENA_ARRAY(m->home, merge_gain, most + 1);
    for (size_t i = 0; i < m->b->n_site; i++)
        m->from[m->n++] = (merge_gain){m->b->site[i].place, &m->b->site[i], NULL, 1};
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < in[i].from->n_full; k++) {
            const adapter_full *x = &in[i].from->full[k];
            adapter_site place = {.weight = x->weight,
                                  .index = x->index,
                                  .in = x->in,
                                  .out = x->out,
                                  .name = x->name};
            m->from[m->n++] = (merge_gain){place, NULL, x, in[i].share};
        }
    qsort(m->from, m->n, sizeof *m->from, by_place);
    for (size_t i = 1; i < m->n; i++)
        if (by_place(&m->from[i - 1], &m->from[i]) == 0)
            return weft_fail(dg, W0706, WEFT_NOWHERE,
                             "two adapters change " STR_FMT ", and one of them holds it whole",
                             STR_ARG(m->from[i].place.name));
    return WEFT_OK;
}

weft_status adapter_merge_create(weft_diag *dg, const bound_model *bm, const blend *b,
                                 const blend_input *in, size_t n, bool gguf, adapter_merge **out)
{
    arena *home = arena_create();
    adapter_merge *m = ARENA_NEW(home, adapter_merge);
    *m = (adapter_merge){.home = home, .bm = bm, .b = b};
    weft_status st = gather(dg, m, in, n);
    adapter_site *site = ARENA_ARRAY(home, adapter_site, m->n + 1);
    for (size_t i = 0; i < m->n; i++)
        site[i] = m->from[i].place;
    if (st == WEFT_OK)
        st = store_map(dg, bm, site, m->n, gguf, home, &m->tensors);
    if (st == WEFT_OK)
        *out = m;
    else
        adapter_merge_destroy(m);
    return st;
}

void adapter_merge_destroy(adapter_merge *m)
{
    if (!m)
        return;
    VEC_FREE(&m->tensors);
    arena_destroy(m->home);
}

/* ---- one adapter ---- */

/* The parts beside each other: A's stacked, B's times their numbers in a row. */
static adapter_site concatenated(const blend_site *s, arena *home)
{
    adapter_site out = s->place;
    float *a = ARENA_ARRAY(home, float, (size_t)(out.rank * out.in));
    float *b = ARENA_ARRAY(home, float, (size_t)(out.rank * out.out));
    int64_t at = 0;
    bool alone = s->n_part == 1;
    for (int p = 0; p < s->n_part; p++) {
        const adapter_site *x = s->part[p].site;
        memcpy(a + at * out.in, x->a, (size_t)(x->rank * out.in) * sizeof *a);
        for (int64_t o = 0; o < out.out; o++)
            for (int64_t r = 0; r < x->rank; r++)
                b[o * out.rank + at + r] =
                    alone ? x->b[o * x->rank + r] : (float)(x->b[o * x->rank + r] * s->part[p].by);
        at += x->rank;
    }
    out.scale = alone ? s->part[0].by : 1; /* of one alone the scale can stay apart */
    out.a = a;
    out.b = b;
    return out;
}

static adapter_site refactored(const blend *b, const blend_site *s, int64_t rank, int threads,
                               arena *home, double *out_error)
{
    adapter_site out = s->place;
    float *x = mem_alloc(mem_product((size_t)(out.out * out.in), sizeof *x));
    double line[BLEND_COLUMNS];
    for (int64_t o = 0; o < out.out; o++)
        for (int64_t i = 0; i < out.in; i += BLEND_COLUMNS) {
            int n = (int)(out.in - i < BLEND_COLUMNS ? out.in - i : BLEND_COLUMNS);
            blend_line(b, s, o, false, i, n, line);
            for (int k = 0; k < n; k++)
                x[o * out.in + i + k] = (float)line[k];
        }
    svd_factors f = svd_truncated(x, out.out, out.in, rank, threads, home);
    mem_free(x);
    out.rank = f.rank;
    out.a = f.a;
    out.b = f.b;
    if (f.norm > 0 && f.error / f.norm > *out_error)
        *out_error = f.error / f.norm;
    return out;
}

adapter_site *blend_factors(const blend *b, int64_t rank, int threads, arena *home,
                            void (*progress)(void *ctx, uint64_t done), void *ctx,
                            double *out_error)
{
    adapter_site *site = ARENA_ARRAY(home, adapter_site, b->n_site + 1);
    *out_error = 0;
    for (size_t i = 0; i < b->n_site; i++) {
        const blend_site *s = &b->site[i];
        int64_t want = rank > 0 ? rank : s->place.rank;
        bool exact = blend_is_sum(b) && want >= s->place.rank;
        site[i] = exact ? concatenated(s, home) : refactored(b, s, want, threads, home, out_error);
        if (progress)
            progress(ctx, i + 1);
    }
    return site;
}
