/* cuda_graph.c - phases that are launches of their own, as one graph of the driver's.
 *
 * Node i of a graph is the launch of phase i, behind that of phase i - 1. What a phase is stands in the card's memory, and so does the
 * batch: the same graph does for all calls of a bucket that have such phases, and decoding launches it again and again.
 * Where launches may overlap its edges are programmatic: a kernel begins when the one before it has begun everywhere, asks for tables and
 * weights, and waits by itself (kernels/cuda/launch_cuda.cuh). Memory that a graph takes is the driver's. */
#include "runtime/exec/cuda_impl.h"

#include <stdlib.h>

/* ---- which way calls of few rows are launched ---- */

#define NAMED "WEFT_CUDA_CALLS"

weft_status cuda_calls_find(weft_diag *dg, cuda_device *d)
{
    static const char *const names[CUDA_CALLS_COUNT] = {
        [CUDA_CALLS_PERSISTENT] = "persistent",
        [CUDA_CALLS_GRAPH] = "graph",
        [CUDA_CALLS_LAUNCHES] = "launches",
    };
    const char *given = getenv(NAMED);
    d->calls = d->together ? CUDA_CALLS_PERSISTENT : CUDA_CALLS_GRAPH;
    if (!given || !given[0])
        return WEFT_OK;
    int i = 0;
    while (i < CUDA_CALLS_COUNT && strcmp(given, names[i]) != 0)
        i++;
    if (i == CUDA_CALLS_COUNT)
        return weft_fail(dg, W1618, WEFT_NOWHERE,
                         NAMED "=%s: expected persistent, graph or launches", given);
    if (i == CUDA_CALLS_PERSISTENT && !d->together)
        return weft_fail(dg, W1618, WEFT_NOWHERE,
                         NAMED "=%s: blocks of the card %s cannot wait for each other", given,
                         d->place);
    d->calls = (cuda_calls)i;
    return WEFT_OK;
}

/* ---- graphs ---- */

static cu_result add_phase(const exec *e, const cuda_bucket *c, int32_t i, cu_graph g,
                           cu_node *last)
{
    const cu_edge edge =
        e->d->dependent ? (cu_edge){.from_port = CU_PORT_PROGRAMMATIC, .type = CU_EDGE_PROGRAMMATIC}
                        : (cu_edge){0};
    cuda_dispatch o = cuda_dispatch_packed(e, c, i);
    void *args[] = {&o.with};
    cu_node_params what = {.type = CU_NODE_KERNEL};
    what.kernel = (cu_kernel_node){.f = o.f,
                                   .grid_x = o.blocks,
                                   .grid_y = 1,
                                   .grid_z = 1,
                                   .block_x = o.threads,
                                   .block_y = 1,
                                   .block_z = 1,
                                   .shared_bytes = o.bytes,
                                   .args = args};
    const cu_node before = *last;
    return e->d->driver->cuGraphAddNode(last, g, i > 0 ? &before : NULL, i > 0 ? &edge : NULL,
                                        i > 0 ? 1 : 0, &what);
}

static cu_result make(const exec *e, const cuda_bucket *c, cu_graph_exec *out_x)
{
    const cuda_driver *driver = e->d->driver;
    cu_graph g = NULL;
    cu_node last = NULL;
    cu_result r = driver->cuGraphCreate(&g, 0);
    if (r != CU_OK)
        return r;
    for (int32_t i = 0; i < c->n_phase && r == CU_OK; i++)
        r = add_phase(e, c, i, g, &last);
    if (r == CU_OK)
        r = driver->cuGraphInstantiateWithFlags(out_x, g, 0);
    driver->cuGraphDestroy(g);
    return r;
}

static void drop(const exec *e, cuda_bucket *c)
{
    if (c->graph)
        e->d->driver->cuGraphExecDestroy(c->graph);
    c->graph = NULL;
}

/* Are its nodes those of the call at hand? They are launched alike but for their number, and for where each has its values. */
static bool is_of_call(const cuda_bucket *c)
{
    bool is = c->graph_phases == c->n_phase;
    for (int32_t i = 0; i < c->n_phase && is; i++)
        is = c->graph_lasts[i] == cuda_outlasts(c, &c->phases[i]);
    return is;
}

cu_result cuda_graph_launch(const exec *e, cuda_bucket *c)
{
    cu_result r = CU_OK;
    WEFT_ASSERT(c->packed && !c->apart && !e->measure && e->call.bytes == 0);
    if (c->graph && !is_of_call(c))
        drop(e, c);
    if (!c->graph) {
        c->graph_phases = c->n_phase;
        for (int32_t i = 0; i < c->n_phase; i++)
            c->graph_lasts[i] = cuda_outlasts(c, &c->phases[i]);
        r = make(e, c, &c->graph);
    }
    return r == CU_OK ? e->d->driver->cuGraphLaunch(c->graph, e->stream) : r;
}

void cuda_graphs_free(exec *e)
{
    cu_context was;
    bool any = false;
    for (int32_t i = 0; i < e->p->n_bucket; i++)
        any = any || e->buckets[i].graph;
    if (!any || e->d->driver->cuCtxPushCurrent(e->d->context) != CU_OK)
        return;
    for (int32_t i = 0; i < e->p->n_bucket; i++)
        drop(e, &e->buckets[i]);
    e->d->driver->cuCtxPopCurrent(&was);
}
