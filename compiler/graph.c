/* graph.c - the plain data structure: making a graph, adding to it, the type of an operand. */
#include "compiler/graph.h"

#include "compiler/graph_impl.h"
#include "runtime/base/intmath.h"

graph *graph_create(void)
{
    arena *a = arena_create();
    graph *g = ARENA_NEW(a, graph);
    g->a = a;
    return g;
}

void graph_destroy(graph *g)
{
    if (!g)
        return;
    VEC_FREE(&g->nodes);
    VEC_FREE(&g->values);
    VEC_FREE(&g->weights);
    VEC_FREE(&g->consts);
    VEC_FREE(&g->cells);
    VEC_FREE(&g->inputs);
    VEC_FREE(&g->outputs);
    arena_destroy(g->a); /* g itself with it */
}

int graph_add(graph *g, const gnode *n, const gtype *types, int n_out)
{
    gnode node = *n;
    node.first = (int)g->values.n;
    node.n_out = n_out;
    for (int i = 0; i < OP_ATTRS_MAX; i++)
        if (node.attr[i].kind == GATTR_WORD)
            node.attr[i].word = arena_str(g->a, node.attr[i].word);
    for (int i = 0; i < n_out; i++) {
        gvalue v = {.type = types[i], .node = (int)g->nodes.n};
        VEC_PUSH(&g->values, v);
    }
    VEC_PUSH(&g->nodes, node);
    return node.first;
}

static void *kept(arena *a, const void *x, size_t n, size_t item_bytes)
{
    if (!x)
        return NULL;
    void *to = arena_alloc_array(a, n, item_bytes);
    if (n > 0)
        memcpy(to, x, n * item_bytes);
    return to;
}

gweight gweight_copy(arena *a, const gweight *from)
{
    gweight w = *from;
    w.name = arena_str(a, w.name);
    w.line = arena_str(a, w.line);
    w.whole = arena_str(a, w.whole);
    w.piece = kept(a, w.piece, (size_t)w.n_piece, sizeof *w.piece);
    w.scales = kept(a, w.scales, (size_t)w.n_piece, sizeof *w.scales);
    if (w.computed)
        w.computed = kept(a, w.computed, (size_t)graph_weight_count(&w), sizeof *w.computed);
    return w;
}

int graph_add_weight(graph *g, const gweight *w)
{
    VEC_PUSH(&g->weights, gweight_copy(g->a, w));
    return (int)g->weights.n - 1;
}

int graph_add_const(graph *g, const gconst *from)
{
    gconst c = *from;
    c.data = kept(g->a, c.data, (size_t)c.n, sizeof *c.data);
    VEC_PUSH(&g->consts, c);
    return (int)g->consts.n - 1;
}

int graph_add_cell(graph *g, const gcell *from)
{
    gcell c = *from;
    c.name = arena_str(g->a, c.name);
    VEC_PUSH(&g->cells, c);
    return (int)g->cells.n - 1;
}

int graph_add_input(graph *g, str name, const gtype *type)
{
    VEC_PUSH(&g->inputs, ((ginput){arena_str(g->a, name), *type}));
    return (int)g->inputs.n - 1;
}

void graph_add_output(graph *g, const goutput *from)
{
    goutput o = *from;
    o.name = arena_str(g->a, o.name);
    VEC_PUSH(&g->outputs, o);
}

size_t graph_ref_count(const graph *g, gref_kind kind)
{
    const size_t count[] = {
        [REF_NONE] = 0,
        [REF_VALUE] = g->values.n,
        [REF_WEIGHT] = g->weights.n,
        [REF_CONST] = g->consts.n,
        [REF_CELL] = g->cells.n,
        [REF_INPUT] = g->inputs.n,
        [REF_NUMBER] = 0,
    };
    return count[kind];
}

bool graph_type_get(const graph *g, gref r, gtype *out_type)
{
    if (r.id < 0 || (size_t)r.id >= graph_ref_count(g, r.kind))
        return false;
    gtype t = {.cell = -1};
    switch (r.kind) {
    case REF_VALUE:
        t = g->values.at[r.id].type;
        break;
    case REF_INPUT:
        t = g->inputs.at[r.id].type;
        break;
    case REF_WEIGHT: {
        const gweight *w = &g->weights.at[r.id];
        t.rank = w->rank;
        memcpy(t.dim, w->dim, sizeof t.dim);
        t.pairs = w->pairs;
        break;
    }
    case REF_CONST:
        t.rank = 1;
        t.dim[0] = g->consts.at[r.id].n;
        break;
    case REF_CELL:
        t.cell = r.id;
        break;
    case REF_NONE:
    case REF_NUMBER:
        return false;
    }
    *out_type = t;
    return true;
}

const gtype *graph_type(const graph *g, gref r)
{
    if (r.kind == REF_VALUE && r.id >= 0 && (size_t)r.id < g->values.n)
        return &g->values.at[r.id].type;
    if (r.kind == REF_INPUT && r.id >= 0 && (size_t)r.id < g->inputs.n)
        return &g->inputs.at[r.id].type;
    gtype t;
    if (!graph_type_get(g, r, &t))
        return NULL;
    gtype *kept = ARENA_NEW(g->a, gtype);
    *kept = t;
    return kept;
}

int graph_maps(const graph *g)
{
    int high = 0;
    for (size_t i = 0; i < g->nodes.n; i++)
        high = g->nodes.at[i].map > high ? g->nodes.at[i].map : high;
    return high;
}

int graph_chains(const graph *g)
{
    int high = 0;
    for (size_t i = 0; i < g->nodes.n; i++) {
        const gnode *n = &g->nodes.at[i];
        high = n->chain > high ? n->chain : high;
        high = n->values > high ? n->values : high;
    }
    return high;
}

int64_t graph_weight_count(const gweight *w)
{
    int64_t n = 1;
    for (int i = 0; i < w->rank; i++)
        if (w->dim[i] < 0 || !i64_mul(n, w->dim[i], &n))
            return -1;
    return n;
}
