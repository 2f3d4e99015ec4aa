/* pass_lower_kv.c - how the rows of each cell lie in memory.
 *   before:  cell $kv[0]: kv_cache(heads = 8, k = 64, v = 64) window 4096
 *   after:   cell $kv[0]: kv_cache(heads = 8, k = 64, v = 64) window 4096 ring 4095
 * A ring where every reader has a window and window and chunk together are shorter than the context: it
 * keeps what the first row of a call may see, and the call brings its own rows. Contiguous where one sequence has the cell
 * for itself. Paged otherwise. */
#include "compiler/pass_impl.h"

#include "runtime/base/intmath.h"

static bool grows(const gcell *c)
{
    return c->kind == CELL_kv_cache || c->kind == CELL_latent_cache;
}

bool pass_lower_kv(graph *g, const target *t)
{
    bool changed = false;
    for (size_t i = 0; i < g->cells.n; i++) {
        gcell *c = &g->cells.at[i];
        int64_t chunk = t->n_tok_max > 1 ? t->n_tok_max : 1, rows;
        if (c->form != CELL_UNDECIDED || !grows(c))
            continue;
        if (c->window > 0 && i64_add(c->window, chunk, &rows) && rows < t->n_ctx) {
            c->form = CELL_RING;
            c->keep = c->window - 1;
        } else {
            c->form = t->n_seq == 1 && !t->may_fork ? CELL_CONTIGUOUS : CELL_PAGED;
        }
        changed = true;
    }
    return changed;
}
