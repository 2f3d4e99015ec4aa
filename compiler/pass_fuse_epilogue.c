/* pass_fuse_epilogue.c - let a chain go on with the element-wise work on its columns.
 *   before:  %1 = linear(%h, @down) chain 4  %2 = add(%x, %1) map 3
 *   after:   %1 = linear(%h, @down) chain 4  %2 = add(%x, %1) map 3 chain 4
 * Activations and their products, residual sums, scales and caps are all this one case: a map that
 * reads columns of a chain where they stand, and for the rest only what is there before the chain
 * begins. Where a map reads several chains, it joins the last one. combine joins its experts alike. */
#include "compiler/pass_impl.h"

static void join_elements(chains *c, int i)
{
    if (!chains_join_view(c, i) && !chains_join_combine(c, i))
        chains_join_map(c, i);
}

bool pass_fuse_epilogue(graph *g, const target *t)
{
    return chains_grow(g, t, join_elements);
}
