/* pass_chain.c - who may join a chain: nodes that need of its values only the columns they give, and can be computed by
 * its tiles. */
#include "compiler/lower_impl.h"
#include "compiler/pass_impl.h"

#include "runtime/base/intmath.h"

/* ---- beginning ---- */

static int list_maps(chains *c)
{
    const graph *g = c->p.g;
    int high = graph_maps(g);
    c->map_last = ARENA_ARRAY(c->p.a, int, (size_t)high + 1);
    c->map_first = ARENA_ARRAY(c->p.a, int, (size_t)high + 1);
    c->map_next = ARENA_ARRAY(c->p.a, int, g->nodes.n + 1);
    for (int m = 0; m <= high; m++)
        c->map_first[m] = c->map_last[m] = -1;
    for (int i = (int)g->nodes.n - 1; i >= 0; i--) {
        int m = g->nodes.at[i].map;
        c->map_next[i] = c->map_first[m];
        c->map_first[m] = i;
        c->map_last[m] = c->map_last[m] < 0 ? i : c->map_last[m];
    }
    return high;
}

/* ---- steps ---- */

bool pass_can_tile(int64_t whole, int64_t cols)
{
    enum { COLS_FEW = 256 }; /* as one tile they are no loss */
    return whole < cols || (whole == cols && cols <= COLS_FEW);
}

bool chains_takes(const chains *c, int chain, int64_t whole)
{
    const chain_info *info = &c->chain[chain];
    return info->n_step < c->p.t->be->chain_steps && i64_lcm(info->whole, whole) <= info->all &&
           pass_can_tile(whole, info->all);
}

void chains_add_step(chains *c, int chain, int64_t whole)
{
    chain_info *info = &c->chain[chain];
    info->whole = i64_lcm(info->whole, whole);
    info->n_step++;
}

/* Of a contraction: columns of its result, and what of them cannot be cut. */
static int64_t contraction_cols(const graph *g, const gnode *n)
{
    const gtype *t = pass_type(g, n);
    return t->dim[t->rank - 1] * (n->op == OP_head_linear ? t->dim[1] : 1);
}

int64_t pass_whole_of(const graph *g, const target *t, const gnode *n)
{
    if (n->op == OP_head_linear)
        return pass_type(g, n)->dim[2];
    return lower_layout(t, g, n) != LAYOUT_STORED ? LAYOUT_GROUP : 1;
}

static void describe_chain(chain_info *info, const graph *g, const gnode *n)
{
    const gtype *t = pass_type(g, n);
    bool experts = n->op == OP_experts || pass_lora_of(n, OP_lora_up, "experts");
    bool wide = experts || n->op == OP_head_linear;
    *info = (chain_info){.row = t->dim[0], .cols = -1, .experts = experts, .whole = 1};
    if (t->rank != (wide ? 3 : 2) || t->dim[0] >= 0)
        return;
    info->cols = t->dim[t->rank - 1];
    info->all = contraction_cols(g, n);
    if (wide)
        info->wide = *t;
}

/* The last axis: of heads, one of them. */
static int64_t last_dim(const graph *g, int value)
{
    const gtype *t = &g->values.at[value].type;
    return t->dim[t->rank - 1];
}

/* The steps that a node of a chain becomes. Keys and values of an append are one each. */
static void count_steps(chains *c, int i)
{
    const graph *g = c->p.g;
    const gnode *n = &g->nodes.at[i];
    if (n->values > 0)
        chains_add_step(c, n->values, last_dim(g, n->in[2].id));
    if (!pass_in_chain(n))
        return;
    if (pass_contracts(n))
        chains_add_step(c, n->chain, pass_whole_of(g, c->p.t, n));
    else if (n->op == OP_rms_norm || n->op == OP_layer_norm || n->op == OP_rope)
        chains_add_step(c, n->chain, last_dim(g, n->first));
    else if (n->op == OP_append)
        chains_add_step(c, n->chain, last_dim(g, n->in[1].id));
    else if (n->op == OP_combine || (n->map > 0 && c->map_last[n->map] == i))
        chains_add_step(c, n->chain, 1);
}

/* ---- levels ---- */

static int level_of(const chains *c, gref r)
{
    return r.kind == REF_VALUE ? c->level[c->p.g->values.at[r.id].node] : 0;
}

/* The level of node i, from those of its operands; true if that is news. */
static bool raise_level(chains *c, int i, int *map_level)
{
    const gnode *n = &c->p.g->nodes.at[i];
    int read[NODE_READS_MAX], level = 0;
    for (int k = graph_reads(n, read); k > 0; k--) {
        int from = c->level[c->p.g->values.at[read[k - 1]].node];
        level = from > level ? from : level;
    }
    int before = c->p.uses.cell_before[i];
    if (before >= 0 && c->level[before] > level)
        level = c->level[before];
    bool contracts = op_row_of(n->op)->fuses == FUSE_CONTRACTION || pass_contracts(n);
    if (contracts || op_row_of(n->op)->fuses == FUSE_ATTENTION)
        level++;
    int *all = pass_in_chain(n) ? &c->chain[n->chain].level
               : n->map > 0     ? &map_level[n->map]
                                : NULL;
    if (all) { /* of a chain its contractions decide */
        bool counts = !pass_in_chain(n) || contracts;
        *all = counts && level > *all ? level : *all;
        level = *all;
    }
    bool news = level != c->level[i];
    c->level[i] = level;
    return news;
}

/* One sweep does for nearly all graphs, another sees that: only a map or chain that ends behind one of its
 * readers takes more. There are no circles, so it ends. */
static void find_levels(chains *c, int n_map)
{
    int *map_level = ARENA_ARRAY(c->p.a, int, (size_t)n_map + 1);
    bool again = true;
    while (again) {
        again = false;
        for (int i = 0; i < (int)c->p.g->nodes.n; i++)
            again = raise_level(c, i, map_level) || again;
    }
}

static void begin(chains *c, graph *g, const target *t)
{
    *c = (chains){0};
    pass_begin(&c->p, g, t);
    c->chain = ARENA_ARRAY(c->p.a, chain_info, (size_t)graph_chains(g) + 1);
    c->level = ARENA_ARRAY(c->p.a, int, g->nodes.n + 1);
    for (size_t i = g->nodes.n; i-- > 0;)
        if (pass_in_chain(&g->nodes.at[i]) && pass_contracts(&g->nodes.at[i]))
            describe_chain(&c->chain[g->nodes.at[i].chain], g, &g->nodes.at[i]);
    find_levels(c, list_maps(c));
    for (size_t i = 0; i < g->nodes.n; i++)
        count_steps(c, (int)i);
}

int chains_of(const chains *c, gref r)
{
    if (r.kind != REF_VALUE)
        return 0;
    const gnode *n = pass_maker(c->p.g, r.id);
    return pass_in_chain(n) && c->chain[n->chain].cols > 0 ? n->chain : 0;
}

bool chains_earlier(const chains *c, gref r, int chain)
{
    return level_of(c, r) < c->chain[chain].level;
}

void chains_join(chains *c, int i, int chain)
{
    c->p.g->nodes.at[i].chain = chain;
    c->p.g->nodes.at[i].recompute = false;
    c->level[i] = c->chain[chain].level;
    c->p.changed = true;
}

/* ---- joining ---- */

static bool is_wide(const chain_info *info, const gtype *t)
{
    return info->wide.rank > 0 && graph_dims_equal(&info->wide, t);
}

/* Does a value of this type hold the chain's columns, each in its place? */
static bool is_plain(const chain_info *info, const gtype *t)
{
    return t->rank >= 2 && t->dim[0] == info->row && pass_row_elems(t) == info->cols;
}

bool chains_join_view(chains *c, int i)
{
    const gnode *n = &c->p.g->nodes.at[i];
    if (n->chain > 0 || (n->op != OP_to_heads && n->op != OP_from_heads))
        return false;
    int chain = chains_of(c, n->in[0]);
    const chain_info *info = &c->chain[chain];
    if (chain == 0 || !is_plain(info, &c->p.g->values.at[n->in[0].id].type))
        return false;
    chains_join(c, i, chain);
    return true;
}

bool chains_join_combine(chains *c, int i)
{
    const gnode *n = &c->p.g->nodes.at[i];
    if (n->chain > 0 || n->op != OP_combine || !pass_has_kernel(&c->p, n))
        return false;
    int chain = chains_of(c, n->in[0]);
    const chain_info *info = &c->chain[chain];
    if (chain == 0 || !info->experts || !is_wide(info, &c->p.g->values.at[n->in[0].id].type) ||
        !chains_earlier(c, n->in[1], chain) || !chains_takes(c, chain, 1))
        return false;
    chains_add_step(c, chain, 1);
    chains_join(c, i, chain);
    return true;
}

/* May a map of this shape in this chain read r? The chain's own values element by element, all else when
 * it is there before. Rows of a wide chain are [row * K], which vectors over rows do not follow. */
static bool operand_good(const chains *c, gref r, int chain, const gtype *shape)
{
    gtype t;
    if (!graph_type_get(c->p.g, r, &t)) /* a number */
        return true;
    bool same = graph_dims_equal(&t, shape);
    if (chains_of(c, r) == chain)
        return same;
    if (!chains_earlier(c, r, chain))
        return false;
    bool vector = r.kind == REF_WEIGHT || r.kind == REF_CONST;
    return same || !is_wide(&c->chain[chain], shape) || (vector && t.rank == 1);
}

/* The chain of the highest level whose columns the map reads: the one that is done last. */
static int last_chain(const chains *c, int map, const gtype *shape)
{
    const graph *g = c->p.g;
    int best = 0;
    for (int i = c->map_first[map]; i >= 0; i = c->map_next[i])
        for (int k = 0; k < g->nodes.at[i].n_in; k++) {
            gref r = g->nodes.at[i].in[k];
            int chain = chains_of(c, r);
            const chain_info *info = &c->chain[chain];
            if (chain > 0 && graph_dims_equal(&g->values.at[r.id].type, shape) &&
                (is_wide(info, shape) || is_plain(info, shape)) &&
                (best == 0 || info->level > c->chain[best].level))
                best = chain;
        }
    return best;
}

bool chains_join_map(chains *c, int i)
{
    const graph *g = c->p.g;
    int map = g->nodes.at[i].map;
    if (map == 0 || g->nodes.at[i].chain > 0 || c->map_last[map] != i)
        return false;
    const gtype *shape = pass_type(g, &g->nodes.at[i]);
    int chain = last_chain(c, map, shape);
    if (chain == 0 || !chains_takes(c, chain, 1))
        return false;
    for (int k = c->map_first[map]; k >= 0; k = c->map_next[k]) {
        for (int j = 0; j < g->nodes.at[k].n_in; j++) {
            gref r = g->nodes.at[k].in[j];
            bool inside = r.kind == REF_VALUE && pass_maker(g, r.id)->map == map;
            if (!inside && !operand_good(c, r, chain, shape))
                return false;
        }
    }
    chains_add_step(c, chain, 1);
    for (int k = c->map_first[map]; k >= 0; k = c->map_next[k])
        chains_join(c, k, chain);
    return true;
}

bool chains_grow(graph *g, const target *t, void (*join)(chains *c, int i))
{
    bool grown = false, again;
    do { /* a map that ends late may open the way to one that ends early */
        chains c;
        begin(&c, g, t);
        for (int i = 0; i < (int)g->nodes.n; i++)
            join(&c, i);
        again = pass_end(&c.p);
        grown = grown || again;
    } while (again);
    return grown;
}
