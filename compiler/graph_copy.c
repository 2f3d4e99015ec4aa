/* graph_copy.c - a graph of its own, equal to another, for passes to rewrite. Places still point into the
 * texts of the first one, which must outlive both. */
#include "compiler/graph_impl.h"
#include "compiler/passes.h"

graph *graph_copy(const graph *from)
{
    graph *g = graph_create();
    g->model = arena_str(g->a, from->model);
    g->entry = arena_str(g->a, from->entry);
    for (size_t i = 0; i < from->nodes.n; i++) {
        gnode n = from->nodes.at[i];
        for (int k = 0; k < OP_ATTRS_MAX; k++)
            if (n.attr[k].kind == GATTR_WORD)
                n.attr[k].word = arena_str(g->a, n.attr[k].word);
        VEC_PUSH(&g->nodes, n);
    }
    for (size_t i = 0; i < from->values.n; i++)
        VEC_PUSH(&g->values, from->values.at[i]);
    for (size_t i = 0; i < from->weights.n; i++)
        graph_add_weight(g, &from->weights.at[i]);
    for (size_t i = 0; i < from->consts.n; i++)
        graph_add_const(g, &from->consts.at[i]);
    for (size_t i = 0; i < from->cells.n; i++)
        graph_add_cell(g, &from->cells.at[i]);
    for (size_t i = 0; i < from->inputs.n; i++)
        graph_add_input(g, from->inputs.at[i].name, &from->inputs.at[i].type);
    for (size_t i = 0; i < from->outputs.n; i++)
        graph_add_output(g, &from->outputs.at[i]);
    return g;
}
