/* plan_make.c - from a graph to a plan: the wanted outputs, the passes, then the back end's stage. */
#include "compiler/plan_make.h"

#include "compiler/lower_impl.h"
#include "compiler/plan_cells.h"
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

/* Chains and maps are what the passes make them for t, whatever a graph that was read says. */
static void drop_marks(graph *g)
{
    for (size_t i = 0; i < g->nodes.n; i++) {
        gnode *n = &g->nodes.at[i];
        n->map = n->chain = n->values = 0;
        n->recompute = false;
    }
}

weft_status plan_graph(weft_diag *dg, const graph *g, const target *t, const pass_watch *watch,
                       graph **out_g)
{
    WEFT_TRY(lower_check(dg, g, t));
    graph *copy = graph_copy(g);
    drop_outputs(copy, t);
    drop_marks(copy);
    weft_status status = passes_run(dg, copy, t, watch); /* inject_lora alone where nothing fuses */
    if (status == WEFT_OK)
        *out_g = copy;
    else
        graph_destroy(copy);
    return status;
}

static weft_status (*stage_of(const backend *be))(lower *)
{
    return be->lower ? be->lower : be->fuses ? lower_buckets : lower_reference;
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
        status = stage_of(t->be)(&lo);
    if (status == WEFT_OK) {
        lower_finish(&lo);
#ifndef NDEBUG
        status = plan_check(dg, t->be, lo.p);
#endif
    }
    if (status == WEFT_OK)
        *out_plan = lo.p;
    lower_deinit(&lo);
    arena_destroy(scratch);
    return status;
}

/* Is there a step that does what t->round_bf16 asks for? (Activations for quantised weights may be rounded anyway.) */
static weft_status check_rounding(weft_diag *dg, const plan *p)
{
    for (int32_t i = 0; i < p->n_kernel; i++) {
        const dtype type = p->kernel[i].type;
        if ((type == DT_BF16 || type == DT_F16) && act_rounds_bf16(p->kernel[i].act))
            return WEFT_OK;
    }
    return weft_fail(dg, W1603, WEFT_NOWHERE,
                     "%s has no BF16 or F16 weights whose kernels round activations to bf16",
                     p->model);
}

/* Adapters are nodes of their own, which the reference computes as well. */
static bool needs_lora(const graph *g, const target *t)
{
    bool by_hand = false;
    for (size_t i = 0; i < g->nodes.n && !by_hand; i++)
        by_hand = g->nodes.at[i].op == OP_delta || g->nodes.at[i].op == OP_lora;
    return by_hand || t->lora_slots > 0;
}

weft_status plan_make(weft_diag *dg, const graph *g, const target *t, const pass_watch *watch,
                      arena *a, plan **out_plan)
{
    if (!t->be->fuses && !needs_lora(g, t)) {
        WEFT_TRY(lower_check(dg, g, t));
        if (plan_tiers(&t->tiers, t->kv).n_tier < 2)
            return make_from(dg, g, t, a, out_plan);
        graph *tiered = graph_copy(g);
        cells_convert(tiered, t);
        weft_status made = make_from(dg, tiered, t, a, out_plan);
        graph_destroy(tiered);
        return made;
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
