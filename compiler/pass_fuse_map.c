/* pass_fuse_map.c - join element-wise nodes into one expression.
 *   before:  %2 = silu(%1)        %4 = mul(%2, %3)
 *   after:   %2 = silu(%1) map 1  %4 = mul(%2, %3) map 1
 * A node joins the maps that make its operands when all have its shape and together they stay within what
 * a map kernel takes: inputs, results that others read, registers. Nothing that a map needs may itself
 * need a part of it. Nor does a map read the results of two chains: then it could end neither of them. */
#include "compiler/pass_impl.h"

/* NODES_MAX follows from the registers. A map spans few nodes of the graph: what is made far before it is
 * used has left the caches anyway, and the search for circles stays short. */
enum { NODES_MAX = MAP_REGS_MAX, SPAN_MAX = 512 };

typedef struct {
    pass p;
    int *map;      /* [nodes]: one past the first node of its map, 0: none */
    int *next;     /* [nodes]: the next node of its map, -1: none */
    int *tail;     /* [nodes]: of a map's first node, its last one */
    int *source;   /* [nodes]: the chain its result is columns of, 0: none */
    int *chain_at; /* [nodes]: the next contraction of its chain, around; itself if alone */
    int *span;  /* [nodes]: the first node of the maps and chains that begin before it and end not
                    * before it; itself if there are none */
    int *stamp; /* [nodes]: the search that came by last */
    int *stack; /* [nodes] */
    int n_search;
} mapper;

typedef struct {
    int n, node[NODES_MAX];
} node_set;

static bool joins(mapper *m, const gnode *n)
{
    const gtype *t = pass_type(m->p.g, n);
    return op_row_of(n->op)->fuses == FUSE_ELEMENTWISE && !t->ids && t->rank > 0 && t->dim[0] < 0;
}

static bool holds(const node_set *s, int node)
{
    for (int i = 0; i < s->n; i++)
        if (s->node[i] == node)
            return true;
    return false;
}

/* ---- circles ---- */

static void note_span(mapper *m, int first, int last)
{
    for (int i = first + 1; i <= last; i++)
        m->span[i] = m->span[i] < first ? m->span[i] : first;
}

static void push(mapper *m, int node, int low, int *n_stack)
{
    if (node >= low && m->stamp[node] != m->n_search) {
        m->stamp[node] = m->n_search;
        m->stack[(*n_stack)++] = node;
    }
}

/* Does anything the set reads from outside need a node of the set, be it by the order of what touches a cell? What is
 * searched are units: with a node all of its map or chain. */
static bool needs_itself(mapper *m, const node_set *s)
{
    const graph *g = m->p.g;
    int n_stack = 0, low = s->node[0], read[NODE_READS_MAX];
    for (int i = 1; i < s->n; i++)
        low = s->node[i] < low ? s->node[i] : low;
    while (m->span[low] < low) /* what lies before needs nothing from there on */
        low = m->span[low];
    m->n_search++;
    for (int i = 0; i < s->n; i++)
        for (int k = graph_reads(&g->nodes.at[s->node[i]], read); k > 0; k--)
            if (!holds(s, g->values.at[read[k - 1]].node))
                push(m, g->values.at[read[k - 1]].node, low, &n_stack);
    while (n_stack > 0) {
        int node = m->stack[--n_stack];
        if (holds(s, node))
            return true;
        for (int k = graph_reads(&g->nodes.at[node], read); k > 0; k--)
            push(m, g->values.at[read[k - 1]].node, low, &n_stack);
        push(m, m->p.uses.cell_before[node], low, &n_stack);
        if (m->map[node] > 0)
            for (int i = m->map[node] - 1; i >= 0; i = m->next[i])
                push(m, i, low, &n_stack);
        for (int i = m->chain_at[node]; i != node; i = m->chain_at[i])
            push(m, i, low, &n_stack);
    }
    return false;
}

/* ---- limits ---- */

/* Distinct operands from outside; numbers are registers but not inputs. */
static bool fits_kernel(const pass *p, const node_set *s)
{
    const graph *g = p->g;
    const backend *be = p->t->be;
    gref seen[MAP_REGS_MAX];
    int n_seen = 0, n_input = 0;
    for (int i = 0; i < s->n; i++) {
        const gnode *n = &g->nodes.at[s->node[i]];
        for (int k = 0; k < n->n_in; k++) {
            gref r = n->in[k];
            bool known =
                r.kind == REF_NONE || (r.kind == REF_VALUE && holds(s, g->values.at[r.id].node));
            for (int j = 0; j < n_seen && !known; j++)
                known = graph_ref_equal(seen[j], r);
            if (known)
                continue;
            if (n_seen + s->n == be->map_registers)
                return false;
            seen[n_seen++] = r;
            n_input += r.kind != REF_NUMBER;
        }
    }
    return n_input <= be->map_inputs && n_seen + s->n <= be->map_registers;
}

static bool read_outside(const mapper *m, const node_set *s, int value)
{
    const graph_uses *u = &m->p.uses;
    bool outside = u->output[value];
    for (int r = u->first[value]; r < u->first[value + 1] && !outside; r++)
        outside = !holds(s, u->node[r]);
    return outside;
}

static bool few_results(const mapper *m, const node_set *s)
{
    int n = 0;
    for (int i = 0; i < s->n; i++)
        n += read_outside(m, s, m->p.g->nodes.at[s->node[i]].first);
    return n <= m->p.t->be->map_results;
}

static bool one_source(const mapper *m, const node_set *s, int *out_source)
{
    int read[NODE_READS_MAX];
    *out_source = 0;
    for (int i = 0; i < s->n; i++)
        for (int k = graph_reads(&m->p.g->nodes.at[s->node[i]], read); k > 0; k--) {
            int node = m->p.g->values.at[read[k - 1]].node;
            int from = holds(s, node) ? 0 : m->source[node];
            if (from && *out_source && from != *out_source)
                return false;
            *out_source = from ? from : *out_source;
        }
    return true;
}

/* ---- joining ---- */

static bool add_map(const mapper *m, node_set *s, int first)
{
    for (int i = first; i >= 0; i = m->next[i]) {
        if (s->n == NODES_MAX)
            return false;
        s->node[s->n++] = i;
    }
    return true;
}

/* Node i and the maps that begin with these nodes, as one. */
static bool try_join(mapper *m, int i, const int *first, int n_first)
{
    node_set s = {.n = 1, .node = {i}};
    int from;
    for (int k = 0; k < n_first; k++)
        if (i - first[k] > SPAN_MAX || !add_map(m, &s, first[k]))
            return false;
    if (!fits_kernel(&m->p, &s) || !few_results(m, &s) || !one_source(m, &s, &from) ||
        needs_itself(m, &s))
        return false;
    int head = first[0];
    for (int k = 1; k < n_first; k++)
        head = first[k] < head ? first[k] : head;
    for (int k = 0; k < n_first; k++) { /* append to the earliest one, then node i */
        if (first[k] == head)
            continue;
        m->next[m->tail[head]] = first[k];
        m->tail[head] = m->tail[first[k]];
    }
    m->next[m->tail[head]] = i;
    m->tail[head] = i;
    note_span(m, head, i);
    for (int k = head; k >= 0; k = m->next[k]) {
        m->map[k] = head + 1;
        m->source[k] = from;
    }
    return true;
}

/* The maps that make operands of node i and have its shape. */
static int maps_read(const mapper *m, int i, int *first)
{
    const graph *g = m->p.g;
    int n = 0, read[NODE_READS_MAX];
    for (int k = graph_reads(&g->nodes.at[i], read); k > 0; k--) {
        const gvalue *v = &g->values.at[read[k - 1]];
        bool known =
            m->map[v->node] == 0 || !graph_dims_equal(&v->type, pass_type(g, &g->nodes.at[i]));
        for (int j = 0; j < n && !known; j++)
            known = first[j] == m->map[v->node] - 1;
        if (!known)
            first[n++] = m->map[v->node] - 1;
    }
    return n;
}

static void place(mapper *m, int i)
{
    int first[NODE_READS_MAX], n = maps_read(m, i, first);
    if (n > 0 && try_join(m, i, first, n))
        return;
    for (int k = 0; n > 1 && k < n; k++)
        if (try_join(m, i, &first[k], 1))
            return;
    m->map[i] = i + 1;
    m->tail[i] = i;
    one_source(m, &(node_set){.n = 1, .node = {i}}, &m->source[i]);
}

/* Views and row-wise nodes that a chain may go on with keep their operand's chain. */
static int source_of(const mapper *m, const gnode *n)
{
    bool goes_on = n->op == OP_to_heads || n->op == OP_from_heads || n->op == OP_combine ||
                   n->op == OP_rope || n->op == OP_rms_norm || n->op == OP_layer_norm;
    if (pass_contracts(n))
        return n->chain;
    return goes_on && n->in[0].kind == REF_VALUE ? m->source[m->p.g->values.at[n->in[0].id].node]
                                                 : 0;
}

static void link_chains(mapper *m)
{
    size_t n = m->p.g->nodes.n;
    int *last =
        ARENA_ARRAY(m->p.a, int, (size_t)graph_chains(m->p.g) + 1); /* one past a chain's node */
    for (size_t i = 0; i < n; i++) {
        const gnode *node = &m->p.g->nodes.at[i];
        m->chain_at[i] = (int)i;
        if (!pass_in_chain(node))
            continue;
        int before = last[node->chain] - 1;
        if (before >= 0) {
            m->chain_at[i] = m->chain_at[before];
            m->chain_at[before] = (int)i;
            note_span(m, before, (int)i);
        }
        last[node->chain] = (int)i + 1;
    }
}

bool pass_fuse_map(graph *g, const target *t)
{
    if (graph_maps(g) > 0) /* it has been here */
        return false;
    mapper m = {0};
    pass_begin(&m.p, g, t);
    size_t n = g->nodes.n;
    int **fields[] = {&m.map,      &m.next, &m.tail,  &m.source,
                      &m.chain_at, &m.span, &m.stamp, &m.stack};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        *fields[i] = ARENA_ARRAY(m.p.a, int, n + 1);
    for (size_t i = 0; i < n; i++)
        m.next[i] = -1;
    for (size_t i = 0; i < n; i++)
        m.span[i] = (int)i;
    link_chains(&m);
    bool has_map = pass_has_map(&m.p);
    for (size_t i = 0; i < n && has_map; i++) {
        if (joins(&m, &g->nodes.at[i]))
            place(&m, (int)i);
        else
            m.source[i] = source_of(&m, &g->nodes.at[i]);
    }
    for (size_t i = 0; i < n; i++) {
        g->nodes.at[i].map = m.map[i];
        m.p.changed = m.p.changed || m.map[i] > 0;
    }
    pass_number_maps(g);
    return pass_end(&m.p);
}
