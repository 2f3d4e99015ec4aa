/* plan_cells.c - from the cells of a graph to those of a plan: what one keeps, and what that takes. */
#include "compiler/plan_cells.h"

#include "runtime/base/intmath.h"

bool cell_grows(const gcell *c)
{
    return c->kind == CELL_kv_cache || c->kind == CELL_latent_cache;
}

void cell_decide(gcell *c, const target *t)
{
    int64_t chunk = t->n_tok_max > 1 ? t->n_tok_max : 1, rows;
    if (c->window > 0 && i64_add(c->window, chunk, &rows) && rows < t->n_ctx) {
        c->layout = CELL_RING;
        c->keep = c->window - 1;
    } else {
        c->layout = t->n_seq == 1 && !t->may_fork ? CELL_CONTIGUOUS : CELL_PAGED;
    }
}

plan_cell plan_cell_of(const gcell *c)
{
    bool latent = c->kind == CELL_latent_cache;
    return (plan_cell){.latent = latent,
                       .heads = latent ? 1 : c->arg[0],
                       .k = c->arg[latent ? 0 : 1],
                       .v = c->arg[latent ? 1 : 2],
                       .window = c->window,
                       .layout = c->layout == CELL_RING         ? PLAN_RING
                                 : c->layout == CELL_CONTIGUOUS ? PLAN_CONTIGUOUS
                                                                : PLAN_PAGED,
                       .keep = c->keep,
                       .bounded = c->bounded,
                       .coarsest = c->coarsest,
                       .pin = c->pin};
}

int32_t plan_cells(const graph *g, const target *t, arena *a, plan_cell **out_cells)
{
    int32_t n = 0;
    *out_cells = ARENA_ARRAY(a, plan_cell, g->cells.n);
    for (size_t i = 0; i < g->cells.n; i++) {
        gcell c = g->cells.at[i];
        if (!cell_grows(&c))
            continue;
        if (t->be->fuses && c.layout == CELL_UNDECIDED)
            cell_decide(&c, t);
        (*out_cells)[n] = plan_cell_of(&c);
        (*out_cells)[n++].name = arena_str(a, c.name).p;
    }
    return n;
}
