/* pass_fuse_norm.c - let every thread prepare what a chain reads, instead of waiting for it.
 *   before:  %1 = add(%x, %o) map 1           %2 = rms_norm(%1, @w)           %3 = linear(%2, @m) chain 4
 *   after:   %1 = add(%x, %o) map 1 recompute 4  %2 = rms_norm(%1, @w) recompute 4  %3 = linear(%2, @m) chain 4
 * For row-wise work outside chains that leads to a chain: norms, maps, softmax, route, gathered rows. With
 * few rows it takes less time than a barrier, so each thread does it for itself; the plan decides by
 * the number of rows. The chain named is the first that reads the value, directly or through others of
 * these. An output of the graph is computed once and left alone, and with it its map. */
#include "compiler/pass_impl.h"

typedef struct {
    pass p;
    int *chain_of; /* [nodes]: the chain it prepares, 0: none */
    int *reads_at; /* [nodes]: the node of that chain that reads it */
    bool *out_map; /* [maps + 1]: a part of it is an output */
} preparer;

static bool is_view(const gnode *n)
{
    return n->op == OP_to_heads || n->op == OP_from_heads;
}

/* Adapters of an embedding, which are looked up, and what they add to heads, which no chain does. */
static bool lora_prepares(const gnode *n)
{
    return pass_lora_of(n, OP_lora_down, "embed") || pass_lora_of(n, OP_lora_up, "embed") ||
           pass_lora_of(n, OP_lora_up, "head_linear");
}

static bool prepares(preparer *r, const gnode *n)
{
    const op_row *op = op_row_of(n->op);
    if (is_view(n))
        return n->chain == 0;
    if (n->chain > 0 || n->op == OP_pool) /* which mixes rows */
        return false;
    if (n->map > 0 ? r->out_map[n->map] : op->fuses == FUSE_ELEMENTWISE)
        return false;
    for (int k = 0; k < n->n_out; k++)
        if (r->p.uses.output[n->first + k])
            return false;
    bool rows = op->fuses == FUSE_ROWWISE || op->fuses == FUSE_GATHER || op->fuses == FUSE_VIEW ||
                op->fuses == FUSE_MOVE || n->op == OP_take_rows || lora_prepares(n);
    return n->map > 0 || (rows && pass_has_kernel(&r->p, n));
}

/* The first chain that node i leads to. */
static void look_ahead(preparer *r, int i)
{
    const gnode *n = &r->p.g->nodes.at[i];
    const graph_uses *u = &r->p.uses;
    for (int k = u->first[n->first]; k < u->first[n->first + n->n_out]; k++) {
        int reader = u->node[k];
        const gnode *to = &r->p.g->nodes.at[reader];
        bool direct = pass_in_chain(to);
        int chain = direct ? to->chain : r->chain_of[reader];
        int at = direct ? reader : r->reads_at[reader];
        if (chain > 0 && (r->chain_of[i] == 0 || at < r->reads_at[i])) {
            r->chain_of[i] = chain;
            r->reads_at[i] = at;
        }
    }
}

/* All of a map prepare the same chain; true if that changed one of them. */
static bool level_maps(preparer *r, int n_map)
{
    int *best = ARENA_ARRAY(r->p.a, int, (size_t)n_map + 1); /* one past a node */
    const graph *g = r->p.g;
    bool changed = false;
    for (size_t i = 0; i < g->nodes.n; i++) {
        int m = g->nodes.at[i].map;
        if (m > 0 && r->chain_of[i] > 0 &&
            (best[m] == 0 || r->reads_at[i] < r->reads_at[best[m] - 1]))
            best[m] = (int)i + 1;
    }
    for (size_t i = 0; i < g->nodes.n; i++) {
        int from = best[g->nodes.at[i].map] - 1;
        if (g->nodes.at[i].map == 0 || from < 0 || r->reads_at[i] == r->reads_at[from])
            continue;
        r->chain_of[i] = r->chain_of[from];
        r->reads_at[i] = r->reads_at[from];
        changed = true;
    }
    return changed;
}

static int mark_maps(preparer *r)
{
    const graph *g = r->p.g;
    int high = graph_maps(g);
    r->out_map = ARENA_ARRAY(r->p.a, bool, (size_t)high + 1);
    for (size_t i = 0; i < g->nodes.n; i++)
        if (r->p.uses.output[g->nodes.at[i].first])
            r->out_map[g->nodes.at[i].map] = true;
    return high;
}

bool pass_fuse_norm(graph *g, const target *t)
{
    preparer r = {0};
    pass_begin(&r.p, g, t);
    r.chain_of = ARENA_ARRAY(r.p.a, int, g->nodes.n + 1);
    r.reads_at = ARENA_ARRAY(r.p.a, int, g->nodes.n + 1);
    int n_map = mark_maps(&r);
    do { /* again only where nodes of a map lead to different chains */
        for (int i = (int)g->nodes.n - 1; i >= 0; i--)
            if (prepares(&r, &g->nodes.at[i]))
                look_ahead(&r, i);
    } while (level_maps(&r, n_map));
    for (size_t i = 0; i < g->nodes.n; i++) {
        gnode *n = &g->nodes.at[i];
        if (r.chain_of[i] == 0 || is_view(n))
            continue;
        n->chain = r.chain_of[i];
        n->recompute = true;
        r.p.changed = true;
    }
    return pass_end(&r.p);
}
