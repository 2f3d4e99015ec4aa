/* pass_lower_kv.c - how the rows of each cell lie in memory.
 *   before:  cell $kv[0]: kv_cache(heads = 8, k = 64, v = 64) window 4096
 *   after:   cell $kv[0]: kv_cache(heads = 8, k = 64, v = 64) window 4096 ring 4095
 * A ring where every reader has a window and window and chunk together are shorter than the context: it
 * keeps what the first row of a call may see, and the call brings its own rows. Contiguous where one sequence has the cell
 * for itself. Paged otherwise. */
#include "compiler/pass_impl.h"
#include "compiler/plan_cells.h"

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
    return changed;
}
