/* graph_copy.c - a graph of its own, equal to another, for passes to rewrite. Places still point into the
 * texts of the first one, which must outlive both. */
#include "compiler/graph_impl.h"
#include "compiler/passes.h"

static void *kept(arena *a, const void *x, size_t n, size_t item_bytes)
{
    if (!x)
        return NULL;
    void *to = arena_alloc_array(a, n, item_bytes);
    if (n > 0)
        memcpy(to, x, n * item_bytes);
    return to;
}

static gweight weight_copy(arena *a, const gweight *from)
{
    gweight w = *from;
    w.name = arena_str(a, w.name);
    w.line = arena_str(a, w.line);
    w.piece = kept(a, w.piece, (size_t)w.n_piece, sizeof *w.piece);
    w.scales = kept(a, w.scales, (size_t)w.n_piece, sizeof *w.scales);
    if (w.computed)
        w.computed = kept(a, w.computed, (size_t)graph_weight_count(&w), sizeof *w.computed);
    return w;
}

static gnode node_copy(arena *a, const gnode *from)
{
    gnode n = *from;
    for (int i = 0; i < OP_ATTRS_MAX; i++)
        if (n.attr[i].kind == GATTR_WORD)
            n.attr[i].word = arena_str(a, n.attr[i].word);
    return n;
}

graph *graph_copy(const graph *from)
{
    graph *g = graph_create();
    g->model = arena_str(g->a, from->model);
    g->entry = arena_str(g->a, from->entry);
    for (size_t i = 0; i < from->nodes.n; i++)
        VEC_PUSH(&g->nodes, node_copy(g->a, &from->nodes.at[i]));
    for (size_t i = 0; i < from->values.n; i++)
        VEC_PUSH(&g->values, from->values.at[i]);
    for (size_t i = 0; i < from->weights.n; i++)
        VEC_PUSH(&g->weights, weight_copy(g->a, &from->weights.at[i]));
    for (size_t i = 0; i < from->consts.n; i++) {
        gconst c = from->consts.at[i];
        c.data = kept(g->a, c.data, (size_t)c.n, sizeof *c.data);
        VEC_PUSH(&g->consts, c);
    }
    for (size_t i = 0; i < from->cells.n; i++) {
        gcell c = from->cells.at[i];
        c.name = arena_str(g->a, c.name);
        VEC_PUSH(&g->cells, c);
    }
    for (size_t i = 0; i < from->inputs.n; i++) {
        ginput in = from->inputs.at[i];
        in.name = arena_str(g->a, in.name);
        VEC_PUSH(&g->inputs, in);
    }
    for (size_t i = 0; i < from->outputs.n; i++) {
        goutput o = from->outputs.at[i];
        o.name = arena_str(g->a, o.name);
        VEC_PUSH(&g->outputs, o);
    }
    return g;
}
