/* fake_graph.c - see fake_graph.h. Graphs and those that can be launched are the same here, in one list. */
#include "tests/cuda/fake_graph.h"

#include <stdlib.h>

struct CUgraphNode_st {
    struct CUgraphNode_st *next;
    bool overlaps;
    fake_op op;
};

typedef struct chain {
    struct chain *next;
    bool exec;
    cu_node first, last;
} chain;

static chain *chains;

static chain *find(const void *p, bool exec)
{
    chain *c = chains;
    while (c && (c != p || c->exec != exec))
        c = c->next;
    return c;
}

static chain *create(bool exec)
{
    chain *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    *c = (chain){.next = chains, .exec = exec};
    return chains = c;
}

static void destroy(chain *c)
{
    chain **at = &chains;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    while (c->first) {
        cu_node n = c->first;
        c->first = n->next;
        free(n);
    }
    free(c);
}

static cu_node add(chain *c, bool overlaps, const fake_op *o)
{
    cu_node n = calloc(1, sizeof *n);
    if (!n)
        return NULL;
    n->overlaps = overlaps;
    n->op = *o;
    if (c->last)
        c->last->next = n;
    else
        c->first = n;
    return c->last = n;
}

cu_graph fake_graph_create(void)
{
    return (cu_graph)(void *)create(false);
}

bool fake_graph_is(cu_graph g)
{
    return find(g, false) != NULL;
}

bool fake_graph_destroy(cu_graph g)
{
    chain *c = find(g, false);
    if (c)
        destroy(c);
    return c != NULL;
}

cu_node fake_graph_add(cu_graph g, cu_node behind, bool overlaps, const fake_op *o)
{
    chain *c = find(g, false);
    return c && c->last == behind ? add(c, overlaps, o) : NULL;
}

cu_graph_exec fake_graph_instantiate(cu_graph g)
{
    chain *from = find(g, false), *c = create(true);
    for (cu_node n = from ? from->first : NULL; n && c; n = n->next)
        if (!add(c, n->overlaps, &n->op)) {
            destroy(c);
            c = NULL;
        }
    return (cu_graph_exec)(void *)c;
}

bool fake_graph_exec_destroy(cu_graph_exec x)
{
    chain *c = find(x, true);
    if (c)
        destroy(c);
    return c != NULL;
}

cu_result fake_graph_launch(cu_graph_exec x, cu_stream s, fake_graph_size *out)
{
    const chain *c = find(x, true);
    cu_result r = c ? CU_OK : (cu_result)CU_INVALID_HANDLE;
    *out = (fake_graph_size){0};
    for (cu_node n = c ? c->first : NULL; n && r == CU_OK; n = n->next) {
        out->nodes++;
        out->overlaps += n->overlaps;
        out->phases += n->op.run.end - n->op.run.first;
        r = fake_stream_add(s, n->op);
    }
    return r;
}

int fake_graphs(void)
{
    int n = 0;
    for (const chain *c = chains; c; c = c->next)
        n++;
    return n;
}

void fake_graph_drop(void)
{
    while (chains)
        destroy(chains);
}
