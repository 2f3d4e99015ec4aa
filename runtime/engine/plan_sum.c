/* plan_sum.c - sums over the steps of a bucket. */
#include "runtime/engine/plan_sum.h"

#include "runtime/base/mem.h"
#include <stdlib.h>

static int64_t rows_of(const plan_step *s, const plan_call *c)
{
    switch (s->rows) {
    case ROWS_T:
        return c->n_tok;
    case ROWS_R:
        return c->n_out;
    case ROWS_S:
        return 1;
    case ROWS_FIXED:
        break;
    }
    return 1;
}

/* Positions that all rows of the call see together: a window and a chunk (n[2], n[3] of attend) hide
 * some. */
static double keys_of(const plan_step *s, const plan_call *c)
{
    double sum = 0;
    for (int64_t i = 0; i < c->n_tok; i++) {
        int64_t seen = c->pos + i + 1, window = s->size.attend.window, chunk = s->size.attend.chunk;
        if (chunk > 0)
            seen = (c->pos + i) % chunk + 1;
        if (window > 0 && seen > window)
            seen = window;
        sum += (double)seen;
    }
    return sum;
}

plan_work plan_work_of_step(const plan_step *s, const plan_call *c)
{
    const plan_cost *k = &s->cost;
    double rows = (double)rows_of(s, c);
    plan_work w = {(double)k->call_bytes + rows * (double)k->row_bytes,
                   rows * (double)k->row_flops};
    if (k->key_bytes || k->key_flops) {
        double keys = keys_of(s, c);
        w.bytes += keys * (double)k->key_bytes;
        w.flops += keys * (double)k->key_flops;
    }
    return w;
}

plan_work plan_work_of_call(const plan *p, const plan_call *c)
{
    const plan_bucket *b = plan_bucket_for(p, c->n_tok);
    plan_work sum = {0, 0};
    for (int32_t i = 0; i < b->n_step; i++) {
        plan_work w = plan_work_of_step(&b->step[i], c);
        sum.bytes += w.bytes;
        sum.flops += w.flops;
    }
    return sum;
}

/* ---- phases ---- */

/* The layer of the phase whose items begin at *at, which then stands behind them. What each thread does
 * for itself may belong to a neighbour, so it decides only where there is nothing else. */
static int32_t layer_of_items(const plan_bucket *b, int32_t *at)
{
    int32_t layer = -1, phase = b->item[*at].phase;
    bool shared = false;
    for (; *at < b->n_item && b->item[*at].phase == phase; ++*at) {
        const plan_item *it = &b->item[*at];
        if (!shared)
            layer = b->step[it->first + it->n_step - 1].layer;
        shared = shared || !it->per_thread;
    }
    return layer;
}

int32_t plan_phase_layer(const plan_bucket *b, int32_t phase)
{
    int32_t at = 0;
    while (at < b->n_item && b->item[at].phase < phase)
        at++;
    return at < b->n_item && b->item[at].phase == phase ? layer_of_items(b, &at) : -1;
}

plan_phases plan_phases_of(const plan_bucket *b)
{
    plan_phases n = {.all = b->n_phase};
    int32_t last = -1;
    for (int32_t i = 0; i < b->n_step; i++)
        last = b->step[i].layer > last ? b->step[i].layer : last;
    n.layers = last + 1;
    int32_t *count = mem_alloc(((size_t)n.layers + 1) * sizeof *count); /* [0]: outside */
    memset(count, 0, ((size_t)n.layers + 1) * sizeof *count);
    for (int32_t at = 0; at < b->n_item;)
        count[layer_of_items(b, &at) + 1]++;
    n.outside = count[0];
    n.per_layer_min = n.per_layer_max = n.layers ? count[1] : 0;
    for (int32_t l = 1; l <= n.layers; l++) {
        n.per_layer_min = count[l] < n.per_layer_min ? count[l] : n.per_layer_min;
        n.per_layer_max = count[l] > n.per_layer_max ? count[l] : n.per_layer_max;
    }
    mem_free(count);
    return n;
}

int32_t plan_layers_of(const plan *p, int32_t *out_first)
{
    int32_t first = INT32_MAX, last = -1;
    for (int32_t i = 0; i < p->bucket->n_step; i++) {
        int32_t layer = p->bucket->step[i].layer;
        first = layer >= 0 && layer < first ? layer : first;
        last = layer > last ? layer : last;
    }
    *out_first = last < 0 ? 0 : first;
    return last < 0 ? 0 : last - first + 1;
}

/* ---- kernels ---- */

static int by_bytes(const void *a, const void *b)
{
    const plan_use *x = a, *y = b;
    if (x->work.bytes != y->work.bytes)
        return x->work.bytes < y->work.bytes ? 1 : -1;
    return (x->kernel > y->kernel) - (x->kernel < y->kernel);
}

int32_t plan_uses_of_call(const plan *p, const plan_call *c, arena *a, const plan_use **out_uses)
{
    const plan_bucket *b = plan_bucket_for(p, c->n_tok);
    plan_use *use = ARENA_ARRAY(a, plan_use, (size_t)p->n_kernel);
    for (int32_t i = 0; i < b->n_step; i++) {
        plan_use *u = &use[b->step[i].kernel];
        plan_work w = plan_work_of_step(&b->step[i], c);
        u->n_step++;
        u->work.bytes += w.bytes;
        u->work.flops += w.flops;
    }
    int32_t n = 0;
    for (int32_t k = 0; k < p->n_kernel; k++)
        if (use[k].n_step) {
            use[n] = use[k];
            use[n++].kernel = k;
        }
    qsort(use, (size_t)n, sizeof *use, by_bytes);
    *out_uses = use;
    return n;
}
