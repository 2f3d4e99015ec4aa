#include "runtime/cli/bench_reads.h"

static double weight_bytes(const gweight *w)
{
    int64_t n = 1;
    size_t bytes = 0;
    for (int i = 0; i < w->rank; i++)
        n *= w->dim[i];
    return dtype_bytes(w->type, n, &bytes) ? (double)bytes : 0;
}

/* The share of a weight that a node reads: `chosen` of what stands along its first axis. */
static double share(const gweight *w, int64_t chosen)
{
    return chosen < w->dim[0] ? (double)chosen / (double)w->dim[0] : 1;
}

/* How many of the matrices of `experts` all rows choose together. */
static int64_t experts_chosen(const graph *g, const gnode *n, int64_t n_row)
{
    gtype ids;
    if (!graph_type_get(g, n->in[2], &ids) || ids.rank < 1)
        return INT64_MAX;
    return n_row * ids.dim[ids.rank - 1];
}

static double node_reads(const graph *g, const gnode *n, int64_t n_row)
{
    double bytes = 0;
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i].kind != REF_WEIGHT)
            continue;
        const gweight *w = &g->weights.at[n->in[i].id];
        int64_t chosen = n->op == OP_embed     ? n_row
                         : n->op == OP_experts ? experts_chosen(g, n, n_row)
                                               : INT64_MAX;
        bytes += weight_bytes(w) * (w->rank > 0 ? share(w, chosen) : 1);
    }
    return bytes;
}

static double cell_reads(const gcell *c, int64_t length, double kv_bytes)
{
    int64_t seen = c->window > 0 && c->window < length ? c->window : length, per_token = 0;
    if (c->kind == CELL_kv_cache)
        per_token = c->arg[0] * (c->arg[1] + c->arg[2]);
    else if (c->kind == CELL_latent_cache)
        per_token = c->arg[0];
    return (double)seen * (double)per_token * kv_bytes;
}

double bench_reads(const bound_model *bm, int64_t n_seq, int64_t length, double kv_bytes)
{
    const graph *g = bm->graph;
    double bytes = 0;
    for (size_t i = 0; i < g->nodes.n; i++)
        bytes += node_reads(g, &g->nodes.at[i], n_seq);
    for (size_t i = 0; i < g->cells.n; i++)
        bytes += (double)n_seq * cell_reads(&g->cells.at[i], length, kv_bytes);
    return bytes;
}
