/* plan_make.c - from a graph to a plan: the wanted outputs, the passes, then each bucket. */
#include "compiler/plan_make.h"

#include "compiler/bucket_impl.h"
#include "compiler/plan_check.h"

/* Outputs that nobody wants are gone before the passes look. */
static void drop_outputs(graph *g, const target *t)
{
    size_t n = 0;
    for (size_t i = 0; i < g->outputs.n; i++)
        if (lower_wants(t, &g->outputs.at[i]))
            g->outputs.at[n++] = g->outputs.at[i];
    g->outputs.n = n;
}

weft_status plan_graph(weft_diag *dg, const graph *g, const target *t, const pass_watch *watch,
                       graph **out_g)
{
    WEFT_TRY(lower_check(dg, g, t));
    graph *copy = graph_copy(g);
    drop_outputs(copy, t);
    weft_status status = passes_run(dg, copy, t, watch); /* none for VARIANT_ref */
    if (status == WEFT_OK)
        *out_g = copy;
    else
        graph_destroy(copy);
    return status;
}

/* ---- buckets ---- */

enum { BUCKETS_MAX = 32 };

/* 1, 2, 4, 8 and so on up to the largest call. */
static int bucket_sizes(const target *t, int64_t *sizes)
{
    int n = 0;
    for (int64_t size = 1; size < t->n_tok_max; size *= 2)
        sizes[n++] = size;
    sizes[n++] = t->n_tok_max;
    return n;
}

static weft_status make_bucket(lower *lo, int64_t n_tok, plan_bucket *out)
{
    bucket b = {.lo = lo, .a = arena_create()};
    lo->n_tok = n_tok;
    lo->n_out = lo->p->n_out_max < n_tok ? lo->p->n_out_max : n_tok;
    lo->n_seq = lo->p->n_seq_max < n_tok ? lo->p->n_seq_max : n_tok;
    weft_status status = bucket_steps(&b);
    if (status == WEFT_OK) {
        bucket_schedule(&b);
        status = bucket_place(&b, out);
    }
    VEC_FREE(&b.steps);
    VEC_FREE(&b.values);
    VEC_FREE(&b.items);
    VEC_FREE(&b.edges);
    VEC_FREE(&b.cells);
    VEC_FREE(&b.waits);
    VEC_FREE(&b.open);
    arena_destroy(b.a);
    return status;
}

static weft_status make_buckets(lower *lo)
{
    int64_t sizes[BUCKETS_MAX];
    int n = bucket_sizes(lo->t, sizes);
    plan_bucket *buckets = ARENA_ARRAY(lo->a, plan_bucket, (size_t)n);
    for (int i = 0; i < n; i++)
        WEFT_TRY(make_bucket(lo, sizes[i], &buckets[i]));
    lo->p->bucket = buckets;
    lo->p->n_bucket = n;
    return WEFT_OK;
}

static weft_status make_from(weft_diag *dg, const graph *g, const target *t, arena *a,
                             plan **out_plan)
{
    arena *scratch = arena_create();
    lower lo;
    lower_init(&lo, dg, g, t, a, scratch);
    lower_mark_live(&lo);
    weft_status status = lower_outputs(&lo);
    if (status == WEFT_OK)
        status = t->best == VARIANT_ref ? plan_make_ref(&lo) : make_buckets(&lo);
    if (status == WEFT_OK) {
        lower_finish(&lo);
#ifndef NDEBUG
        status = plan_check(dg, lo.p);
#endif
    }
    if (status == WEFT_OK)
        *out_plan = lo.p;
    lower_deinit(&lo);
    arena_destroy(scratch);
    return status;
}

/* Is there a step that does what t->round_bf16 asks for? (AMX rounds activations for quantised weights anyway.) */
static weft_status check_rounding(weft_diag *dg, const plan *p)
{
    int n_row;
    const kernel_row *rows = kernel_rows(&n_row);
    for (int32_t b = 0; b < p->n_bucket; b++)
        for (int32_t i = 0; i < p->bucket[b].n_step; i++) {
            const kernel_row *row = &rows[p->bucket[b].step[i].kernel];
            if (row->type == DT_BF16 && act_rounds_bf16(row->act))
                return WEFT_OK;
        }
    return weft_fail(dg, W1603, WEFT_NOWHERE,
                     "%s has no BF16 weights whose kernels round activations to bf16", p->model);
}

weft_status plan_make(weft_diag *dg, const graph *g, const target *t, const pass_watch *watch,
                      arena *a, plan **out_plan)
{
    if (t->best == VARIANT_ref) {
        WEFT_TRY(lower_check(dg, g, t));
        return make_from(dg, g, t, a, out_plan);
    }
    graph *fused;
    WEFT_TRY(plan_graph(dg, g, t, watch, &fused));
    plan *p;
    weft_status status = make_from(dg, fused, t, a, &p);
    graph_destroy(fused);
    if (status == WEFT_OK && t->round_bf16)
        status = check_rounding(dg, p);
    if (status == WEFT_OK)
        *out_plan = p;
    return status;
}
