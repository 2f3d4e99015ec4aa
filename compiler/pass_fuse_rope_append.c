/* pass_fuse_rope_append.c - let a chain go on with norms of heads, rope and append.
 *   before:  %1 = linear(%h, @k) chain 2  %2 = to_heads(%1, 8)          %3 = rope(%2, pos, #0)          $4 = append($kv, %3, %v)
 *   after:   %1 = linear(%h, @k) chain 2  %2 = to_heads(%1, 8) chain 2  %3 = rope(%2, pos, #0) chain 2  $4 = append($kv, %3, %v) chain 2
 * Heads are ranges of columns, so a tile of whole heads has all that these need. Keys and values of an append are written
 * by the chains that make them, which may be two. Maps in between join as in fuse_epilogue. */
#include "compiler/pass_impl.h"

/* rms_norm and layer_norm of each head by itself, rope: [row, H, D] from a plain chain. */
static bool join_heads(chains *c, int i)
{
    const gnode *n = &c->p.g->nodes.at[i];
    bool norm = n->op == OP_rms_norm || n->op == OP_layer_norm;
    if (n->chain > 0 || (!norm && n->op != OP_rope) || !pass_has_kernel(&c->p, n))
        return false;
    int chain = chains_of(c, n->in[0]);
    const chain_info *info = &c->chain[chain];
    if (chain == 0 || pass_type(c->p.g, n)->rank != 3 ||
        pass_row_elems(pass_type(c->p.g, n)) != info->cols)
        return false;
    for (int k = 1; k < n->n_in; k++)
        if (!chains_earlier(c, n->in[k], chain))
            return false;
    int64_t head = pass_type(c->p.g, n)->dim[2];
    if (!chains_takes(c, chain, head))
        return false;
    chains_add_step(c, chain, head);
    chains_join(c, i, chain);
    return true;
}

static int64_t last_dim_of(const chains *c, gref r)
{
    const gtype *t = &c->p.g->values.at[r.id].type;
    return t->dim[t->rank - 1];
}

/* Does an operand of append i have the columns of the chain that makes it, and can they be written by its tiles? What
 * touched the cell before must be done when that chain begins. */
static bool writes_columns(const chains *c, int i, gref r)
{
    int chain = chains_of(c, r), before = c->p.uses.cell_before[i];
    const chain_info *info = &c->chain[chain];
    const gtype *t = &c->p.g->values.at[r.id].type;
    return t->dim[0] == info->row && pass_row_elems(t) == info->cols &&
           chains_takes(c, chain, last_dim_of(c, r)) &&
           (before < 0 || c->level[before] < info->level);
}

/* What reads the cell waits for the values too: in a chain, the append is of its level, and they may be no higher. */
static bool values_come_later(const chains *c, const gnode *n, int chain)
{
    return n->n_in > 2 && n->in[2].kind == REF_VALUE &&
           c->level[c->p.g->values.at[n->in[2].id].node] > c->chain[chain].level;
}

/* Keys and values are written one by one, each by the chain that makes them. */
static bool join_append(chains *c, int i)
{
    gnode *n = &c->p.g->nodes.at[i];
    if (n->op != OP_append || !pass_has_kernel(&c->p, n))
        return false;
    for (int k = 1; k < n->n_in; k++) {
        int chain = chains_of(c, n->in[k]), *mark = k == 1 ? &n->chain : &n->values;
        if (*mark > 0 || chain == 0 || !writes_columns(c, i, n->in[k]) ||
            (k == 1 && values_come_later(c, n, chain)))
            continue;
        chains_add_step(c, chain, last_dim_of(c, n->in[k]));
        if (k == 1)
            chains_join(c, i, chain);
        n->values = k == 2 ? chain : n->values;
        c->p.changed = true;
    }
    return true;
}

static void join_heads_and_state(chains *c, int i)
{
    if (!chains_join_view(c, i) && !join_heads(c, i) && !join_append(c, i))
        chains_join_map(c, i);
}

bool pass_fuse_rope_append(graph *g, const target *t)
{
    return chains_grow(g, t, join_heads_and_state);
}
