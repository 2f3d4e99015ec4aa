/* pass_fuse_rope_append.c - let a chain go on with norms of heads, rope and append.
 *   before:  %1 = linear(%h, @k) chain 2  %2 = to_heads(%1, 8)          %3 = rope(%2, pos, #0)          $4 = append($kv, %3, %v)
 *   after:   %1 = linear(%h, @k) chain 2  %2 = to_heads(%1, 8) chain 2  %3 = rope(%2, pos, #0) chain 2  $4 = append($kv, %3, %v) chain 2
 * Heads are ranges of columns, so a tile of whole heads has all that these need. An append joins the
 * chain of its keys; where the values come from another chain, the plan writes them at the end of that
 * one. Maps in between join as in fuse_epilogue. */
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
    chains_join(c, i, chain);
    return true;
}

/* The values of an append: of the same chain, of another one of this level at most, or there before.
 * Two appends never make two chains wait for each other's values. */
static bool join_values(chains *c, gref v, int chain)
{
    int other = chains_of(c, v);
    chain_info *keys = &c->chain[chain], *values = &c->chain[other];
    if (v.kind == REF_NONE || other == chain || chains_earlier(c, v, chain))
        return true;
    if (other == 0 || values->level > keys->level || keys->gives_v || values->takes_v)
        return false;
    keys->takes_v = values->gives_v = true;
    return true;
}

static bool join_append(chains *c, int i)
{
    const gnode *n = &c->p.g->nodes.at[i];
    if (n->chain > 0 || n->op != OP_append || !pass_has_kernel(&c->p, n))
        return false;
    int chain = chains_of(c, n->in[1]);
    /* An older version of the cell has been written before, and read by whoever may. */
    if (chain == 0 || !chains_earlier(c, n->in[0], chain))
        return false;
    const gtype *k = &c->p.g->values.at[n->in[1].id].type;
    if (k->dim[0] != c->chain[chain].row || pass_row_elems(k) != c->chain[chain].cols)
        return false;
    if (n->n_in > 2 && !join_values(c, n->in[2], chain))
        return false;
    chains_join(c, i, chain);
    return true;
}

/* Appends that have joined before. */
static void note_append(chains *c, const gnode *n)
{
    if (n->op != OP_append || !pass_in_chain(n) || n->n_in < 3)
        return;
    int other = chains_of(c, n->in[2]);
    if (other > 0 && other != n->chain)
        c->chain[n->chain].takes_v = c->chain[other].gives_v = true;
}

static void join_heads_and_state(chains *c, int i)
{
    note_append(c, &c->p.g->nodes.at[i]);
    if (!chains_join_view(c, i) && !join_heads(c, i) && !join_append(c, i))
        chains_join_map(c, i);
}

bool pass_fuse_rope_append(graph *g, const target *t)
{
    return chains_grow(g, t, join_heads_and_state);
}
