/* graph_marks.c - do the marks of passes (map, chain, recompute) make sense?
 *
 * A map is one expression: element-wise nodes of one shape, all in the same chain or in none. A chain
 * has a contraction. Each map outside chains, each chain and every other node is a unit that is computed
 * whole, so units must not wait for each other in a circle. */
#include "compiler/graph_impl.h"

typedef struct {
    const graph *g;
    arena *a;
    int chains, maps; /* the highest numbers */
    int *unit;        /* [nodes] */
    int *next;        /* [nodes]: another node of the same unit, -1: none */
    int *head;        /* [units]: its first node, -1: none */
    int *waits;       /* [units]: reads of values that are not there yet, and of cells */
    int *touches;     /* [nodes]: the next node that touches the same cell, -1: none */
    int n_unit;
} marks;

static const char *numbers_fault(const marks *m, int *out_node)
{
    for (size_t i = 0; i < m->g->nodes.n; i++) {
        const gnode *n = &m->g->nodes.at[i];
        *out_node = (int)i;
        if (n->map < 0 || n->chain < 0 || n->values < 0 || n->map > GRAPH_ROWS_MAX ||
            n->chain > GRAPH_ROWS_MAX || n->values > GRAPH_ROWS_MAX)
            return "the number of its map or chain is out of range";
        if (n->values > 0 && (n->op != OP_append || n->n_in < 3 || n->in[2].kind != REF_VALUE))
            return "it has no values that a chain could write";
        if (n->recompute && n->chain == 0)
            return "it is recomputed for no chain";
    }
    *out_node = -1;
    return NULL;
}

static const char *maps_fault(marks *m, int *out_node)
{
    int *first = ARENA_ARRAY(m->a, int, (size_t)m->maps + 1); /* one past the map's first node */
    for (size_t i = 0; i < m->g->nodes.n; i++) {
        const gnode *n = &m->g->nodes.at[i];
        *out_node = (int)i;
        if (n->map == 0)
            continue;
        const gtype *t = &m->g->values.at[n->first].type;
        if (op_row_of(n->op)->fuses != FUSE_ELEMENTWISE || t->ids || t->rank < 1)
            return "it is not element-wise and cannot be part of a map";
        if (first[n->map] == 0) {
            first[n->map] = (int)i + 1;
            continue;
        }
        const gnode *f = &m->g->nodes.at[first[n->map] - 1];
        const gtype *ft = &m->g->values.at[f->first].type;
        if (!graph_dims_equal(ft, t))
            return "it has another shape than the rest of its map";
        if (f->chain != n->chain || f->recompute != n->recompute)
            return "it is in another chain than the rest of its map";
    }
    return NULL;
}

static const char *chains_fault(marks *m, int *out_node)
{
    bool *good = ARENA_ARRAY(m->a, bool, (size_t)m->chains + 1);
    for (size_t i = 0; i < m->g->nodes.n; i++) {
        const gnode *n = &m->g->nodes.at[i];
        bool contracts = op_row_of(n->op)->fuses == FUSE_CONTRACTION || n->op == OP_lora_up;
        if (n->chain > 0 && !n->recompute && contracts)
            good[n->chain] = true;
    }
    for (size_t i = 0; i < m->g->nodes.n; i++) {
        *out_node = (int)i;
        const gnode *n = &m->g->nodes.at[i];
        if ((n->chain > 0 && !good[n->chain]) || (n->values > 0 && !good[n->values]))
            return "its chain has no contraction";
    }
    return NULL;
}

/* ---- circles ---- */

static void find_units(marks *m)
{
    size_t n = m->g->nodes.n;
    m->n_unit = m->chains + m->maps + (int)n;
    m->unit = ARENA_ARRAY(m->a, int, n);
    m->next = ARENA_ARRAY(m->a, int, n);
    m->head = ARENA_ARRAY(m->a, int, (size_t)m->n_unit);
    m->waits = ARENA_ARRAY(m->a, int, (size_t)m->n_unit);
    for (int u = 0; u < m->n_unit; u++)
        m->head[u] = -1;
    for (size_t i = n; i-- > 0;) {
        const gnode *node = &m->g->nodes.at[i];
        int u = node->chain > 0 && !node->recompute ? node->chain - 1
                : node->map > 0                     ? m->chains + node->map - 1
                                                    : m->chains + m->maps + (int)i;
        m->unit[i] = u;
        m->next[i] = m->head[u];
        m->head[u] = (int)i;
    }
}

/* Does the unit of a node wait for a value that the node reads? A chain waits for the keys of its append alone. */
static bool waits_for(const marks *m, int node, int value)
{
    const gnode *n = &m->g->nodes.at[node];
    bool apart = n->op == OP_append && (n->chain > 0 || n->values > 0) && n->n_in > 2;
    bool keys = n->in[1].kind == REF_VALUE && n->in[1].id == value;
    return !apart || keys || n->in[2].kind != REF_VALUE || n->in[2].id != value;
}

/* The units that wait for unit u: one fewer thing; those that wait no more go onto the list. */
static void release(marks *m, const graph_uses *uses, int u, int *ready, int *n_ready)
{
    for (int i = m->head[u]; i >= 0; i = m->next[i]) {
        const gnode *n = &m->g->nodes.at[i];
        for (int v = n->first; v < n->first + n->n_out; v++)
            for (int r = uses->first[v]; r < uses->first[v + 1]; r++) {
                int to = m->unit[uses->node[r]];
                if (to != u && waits_for(m, uses->node[r], v) && --m->waits[to] == 0)
                    ready[(*n_ready)++] = to;
            }
        int to = m->touches[i] >= 0 ? m->unit[m->touches[i]] : u;
        if (to != u && --m->waits[to] == 0)
            ready[(*n_ready)++] = to;
    }
}

static const char *order_fault(marks *m, int *out_node)
{
    graph_uses uses = graph_uses_of(m->a, m->g);
    find_units(m);
    for (size_t v = 0; v < m->g->values.n; v++)
        for (int r = uses.first[v]; r < uses.first[v + 1]; r++)
            if (m->unit[uses.node[r]] != m->unit[m->g->values.at[v].node] &&
                waits_for(m, uses.node[r], (int)v))
                m->waits[m->unit[uses.node[r]]]++;
    m->touches = ARENA_ARRAY(m->a, int, m->g->nodes.n + 1);
    for (size_t i = m->g->nodes.n; i-- > 0;) {
        int before = uses.cell_before[i];
        m->touches[i] = m->touches[i] ? m->touches[i] - 1 : -1;
        if (before < 0)
            continue;
        m->touches[before] = (int)i + 1; /* until it is reached */
        m->waits[m->unit[i]] += m->unit[before] != m->unit[i];
    }
    int *ready = ARENA_ARRAY(m->a, int, (size_t)m->n_unit + 1), n_ready = 0;
    for (int u = 0; u < m->n_unit; u++)
        if (m->head[u] >= 0 && m->waits[u] == 0)
            ready[n_ready++] = u;
    for (int i = 0; i < n_ready; i++)
        release(m, &uses, ready[i], ready, &n_ready);
    for (int u = 0; u < m->n_unit; u++)
        if (m->waits[u] > 0 && m->head[u] >= 0 && u < m->chains + m->maps) {
            *out_node = m->head[u];
            return "its map or chain waits for itself";
        }
    return NULL;
}

const char *graph_marks_fault(const graph *g, int *out_node)
{
    typedef const char *check(marks * m, int *out_node);
    static check *const checks[] = {maps_fault, chains_fault, order_fault};
    marks m = {.g = g, .maps = graph_maps(g), .chains = graph_chains(g)};
    const char *fault = numbers_fault(&m, out_node);
    if (fault || (m.maps == 0 && m.chains == 0))
        return fault;
    m.a = arena_create();
    for (size_t i = 0; i < sizeof checks / sizeof *checks && !fault; i++)
        fault = checks[i](&m, out_node);
    arena_destroy(m.a);
    return fault;
}
