/* graph_uses.c - who reads a value: lists made once, for passes that would otherwise search. */
#include "compiler/graph_impl.h"

int graph_reads(const gnode *n, int *out)
{
    int count = 0;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i].kind == REF_VALUE)
            out[count++] = n->in[i].id;
    for (int i = 0; i < OP_ATTRS_MAX; i++)
        if (n->attr[i].kind == GATTR_REF && n->attr[i].ref.kind == REF_VALUE)
            out[count++] = n->attr[i].ref.id;
    return count;
}

/* The same, each value once. */
static int reads_once(const gnode *n, int *out)
{
    int read[NODE_READS_MAX], n_read = graph_reads(n, read), count = 0;
    for (int i = 0; i < n_read; i++) {
        bool seen = false;
        for (int k = 0; k < count && !seen; k++)
            seen = out[k] == read[i];
        if (!seen)
            out[count++] = read[i];
    }
    return count;
}

int graph_cell_of(const graph *g, const gnode *n)
{
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i].kind == REF_CELL)
            return n->in[i].id;
        if (n->in[i].kind == REF_VALUE && g->values.at[n->in[i].id].type.cell >= 0)
            return g->values.at[n->in[i].id].type.cell;
    }
    return -1;
}

/* Cells are read and written in the order of the nodes. */
static int *cells_before(arena *a, const graph *g)
{
    int *before = ARENA_ARRAY(a, int, g->nodes.n + 1);
    int *last = ARENA_ARRAY(a, int, g->cells.n + 1); /* one past a node */
    for (size_t i = 0; i < g->nodes.n; i++) {
        int cell = graph_cell_of(g, &g->nodes.at[i]);
        before[i] = cell < 0 ? -1 : last[cell] - 1;
        if (cell >= 0)
            last[cell] = (int)i + 1;
    }
    return before;
}

graph_uses graph_uses_of(arena *a, const graph *g)
{
    graph_uses u = {
        .first = ARENA_ARRAY(a, int, g->values.n + 2),
        .output = ARENA_ARRAY(a, bool, g->values.n + 1),
        .cell_before = cells_before(a, g),
    };
    int read[NODE_READS_MAX];
    /* Counted two places up: first[v + 1] is then where v begins, and filling in moves it to the end. */
    for (size_t i = 0; i < g->nodes.n; i++)
        for (int k = reads_once(&g->nodes.at[i], read); k > 0; k--)
            u.first[read[k - 1] + 2]++;
    for (size_t v = 1; v < g->values.n + 2; v++)
        u.first[v] += u.first[v - 1];
    u.node = ARENA_ARRAY(a, int, (size_t)u.first[g->values.n + 1] + 1);
    for (size_t i = 0; i < g->nodes.n; i++) {
        int n = reads_once(&g->nodes.at[i], read);
        for (int k = 0; k < n; k++)
            u.node[u.first[read[k] + 1]++] = (int)i;
    }
    for (size_t i = 0; i < g->outputs.n; i++)
        u.output[g->outputs.at[i].value] = true;
    return u;
}
