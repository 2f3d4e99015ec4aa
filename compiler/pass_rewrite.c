/* pass_rewrite.c - a graph made anew, node by node, for passes that replace, insert and drop nodes. */
#include "compiler/pass_impl.h"

void rewrite_begin(rewriter *w, graph *g, const target *t)
{
    *w = (rewriter){0};
    pass_begin(&w->p, g, t);
    w->now = ARENA_ARRAY(w->p.a, gref, g->values.n + 1);
}

static gref ref_now(const rewriter *w, gref r)
{
    return r.kind == REF_VALUE ? w->now[r.id] : r;
}

gnode rewrite_node(const rewriter *w, const gnode *old)
{
    gnode n = *old;
    for (int i = 0; i < n.n_in; i++)
        n.in[i] = ref_now(w, n.in[i]);
    for (int i = 0; i < OP_ATTRS_MAX; i++)
        if (n.attr[i].kind == GATTR_REF)
            n.attr[i].ref = ref_now(w, n.attr[i].ref);
    return n;
}

int rewrite_add(rewriter *w, const gnode *n, const gtype *types)
{
    gnode node = *n;
    node.first = (int)w->values.n;
    for (int i = 0; i < n->n_out; i++) {
        gvalue v = {.type = types[i], .node = (int)w->nodes.n};
        VEC_PUSH(&w->values, v);
    }
    VEC_PUSH(&w->nodes, node);
    return node.first;
}

void rewrite_keep(rewriter *w, const gnode *n, const gnode *old)
{
    gnode node = *n;
    node.first = (int)w->values.n;
    node.n_out = old->n_out;
    for (int i = 0; i < old->n_out; i++) {
        gvalue v = {.type = w->p.g->values.at[old->first + i].type, .node = (int)w->nodes.n};
        w->now[old->first + i] = (gref){.kind = REF_VALUE, .id = (int)w->values.n};
        VEC_PUSH(&w->values, v);
    }
    VEC_PUSH(&w->nodes, node);
}

const gnode *rewrite_maker(const rewriter *w, gref r)
{
    return r.kind == REF_VALUE ? &w->nodes.at[w->values.at[r.id].node] : NULL;
}

bool rewrite_type(const rewriter *w, gref r, gtype *out_type)
{
    if (r.kind != REF_VALUE)
        return graph_type_get(w->p.g, r, out_type);
    *out_type = w->values.at[r.id].type;
    return true;
}

/* ---- what is needed ---- */

static void mark_live(const rewriter *w, bool *live)
{
    const graph *g = w->p.g;
    int read[NODE_READS_MAX];
    for (size_t i = 0; i < g->outputs.n; i++) {
        gref r = w->now[g->outputs.at[i].value];
        WEFT_ASSERT(r.kind == REF_VALUE);
        live[w->values.at[r.id].node] = true;
    }
    for (size_t i = w->nodes.n; i-- > 0;) {
        const gnode *n = &w->nodes.at[i];
        live[i] = live[i] || pass_writes_state(n);
        if (live[i])
            for (int k = graph_reads(n, read); k > 0; k--)
                live[w->values.at[read[k - 1]].node] = true;
    }
}

static void renumber(gref *r, const int *number)
{
    if (r->kind == REF_VALUE)
        r->id = number[r->id];
}

/* Close the gaps that dead nodes leave; number[v] is what value v is called then. */
static void drop_dead(rewriter *w, const bool *live, int *number)
{
    size_t n = 0, n_value = 0;
    for (size_t i = 0; i < w->nodes.n; i++) {
        if (!live[i])
            continue;
        if (n != i)
            w->nodes.at[n] = w->nodes.at[i];
        gnode *node = &w->nodes.at[n];
        for (int k = 0; k < node->n_in; k++)
            renumber(&node->in[k], number);
        for (int k = 0; k < OP_ATTRS_MAX; k++)
            if (node->attr[k].kind == GATTR_REF)
                renumber(&node->attr[k].ref, number);
        for (int k = 0; k < node->n_out; k++) {
            number[node->first + k] = (int)n_value;
            w->values.at[n_value] = w->values.at[node->first + k];
            w->values.at[n_value++].node = (int)n;
        }
        node->first = (int)n_value - node->n_out;
        n++;
    }
    w->nodes.n = n;
    w->values.n = n_value;
}

bool rewrite_end(rewriter *w)
{
    graph *g = w->p.g;
    bool *live = ARENA_ARRAY(w->p.a, bool, w->nodes.n + 1);
    int *number = ARENA_ARRAY(w->p.a, int, w->values.n + 1);
    mark_live(w, live);
    for (size_t i = 0; i < w->nodes.n; i++)
        w->p.changed = w->p.changed || !live[i];
    if (w->p.changed) {
        drop_dead(w, live, number);
        for (size_t i = 0; i < g->outputs.n; i++)
            g->outputs.at[i].value = number[w->now[g->outputs.at[i].value].id];
        VEC_FREE(&g->nodes);
        VEC_FREE(&g->values);
        memcpy(&g->nodes, &w->nodes, sizeof g->nodes);
        memcpy(&g->values, &w->values, sizeof g->values);
    } else {
        VEC_FREE(&w->nodes);
        VEC_FREE(&w->values);
    }
    return pass_end(&w->p);
}
