/* pass_lower_kv.c - how the rows of each cell lie in memory.
 *   before:  cell $kv[0]: kv_cache(heads = 8, k = 64, v = 64) window 4096
 *   after:   cell $kv[0]: kv_cache(heads = 8, k = 64, v = 64) window 4096 ring 4095
 * A ring where every reader has a window and window and chunk together are shorter than the context: it
 * keeps what the first row of a call may see, and the call brings its own rows. Contiguous where one sequence has the cell
 * for itself. Paged otherwise.
 *
 * Where cells have several tiers by age, what is appended goes on to them before anybody reads it:
 *   before:  $4 = append($kv[0], %2, %3)                             %5 = attend(%1, $4)
 *   after:   $4 = append($kv[0], %2, %3)  $5 = convert($4, tier = 1)  %6 = attend(%1, $5) */
#include "compiler/pass_impl.h"
#include "compiler/plan_cells.h"

/* The attribute of convert. */
static gattr tier_attr(int tier)
{
    return (gattr){.kind = GATTR_INT, .integer = tier};
}

/* An append, then a convert for each further tier; they stand for what it gave. */
static void keep_converted(rewriter *w, const gnode *old, int n_tier)
{
    gnode n = rewrite_node(w, old);
    const gtype type = w->p.g->values.at[old->first].type;
    rewrite_keep(w, &n, old);
    for (int k = 1; k < n_tier; k++) {
        gnode c = {.op = OP_convert,
                   .layer = old->layer,
                   .loc = old->loc,
                   .n_in = 1,
                   .in = {w->now[old->first]},
                   .attr = {tier_attr(k)},
                   .n_out = 1};
        w->now[old->first] = (gref){.kind = REF_VALUE, .id = rewrite_add(w, &c, &type)};
        w->p.changed = true;
    }
}

static bool has_convert(const graph *g)
{
    for (size_t i = 0; i < g->nodes.n; i++)
        if (g->nodes.at[i].op == OP_convert)
            return true;
    return false;
}

bool cells_convert(graph *g, const target *t)
{
    kpolicy tiers = plan_tiers(&t->tiers, t->kv);
    if (tiers.n_tier < 2 || has_convert(g))
        return false;
    rewriter w;
    rewrite_begin(&w, g, t);
    for (size_t i = 0; i < g->nodes.n; i++) {
        const gnode *old = &g->nodes.at[i];
        if (old->op == OP_append) {
            const gcell *c = &g->cells.at[g->values.at[old->first].type.cell];
            plan_cell p = plan_cell_of(c);
            keep_converted(&w, old, cell_grows(c) ? plan_cell_tiers(&p, &tiers).n_tier : 1);
        } else {
            gnode n = rewrite_node(&w, old);
            rewrite_keep(&w, &n, old);
        }
    }
    return rewrite_end(&w);
}

bool pass_lower_kv(graph *g, const target *t)
{
    bool changed = false;
    for (size_t i = 0; i < g->cells.n; i++) {
        gcell *c = &g->cells.at[i];
        if (c->layout != CELL_UNDECIDED || !cell_grows(c))
            continue;
        cell_decide(c, t);
        changed = true;
    }
    return cells_convert(g, t) || changed;
}
