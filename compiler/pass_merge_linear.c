/* pass_merge_linear.c - give every contraction a chain, and one to those that run side by side.
 *   before:  %1 = linear(%x, @gate)          %2 = silu(%1)    %3 = linear(%x, @up)          %4 = mul(%2, %3)
 *   after:   %1 = linear(%x, @gate) chain 1  %2 = silu(%1)    %3 = linear(%x, @up) chain 1  %4 = mul(%2, %3)
 * A chain's tile is the same columns of all its members. So contractions share one only if they read
 * the same value (experts: with the same ids), give the same number of columns, and meet in an element-wise
 * node, which can then take both results while they are in the cache. The projections q, k and v do
 * not: their columns differ in number. They still share a phase and their quantised input, by scheduling.
 * So does what adapters add to a contraction: lora_up of the same operand joins it, and the sum of both. */
#include "compiler/pass_impl.h"

static bool same_value(gref a, gref b)
{
    return a.kind == b.kind && (a.kind == REF_VALUE || a.kind == REF_INPUT) && a.id == b.id;
}

/* Does `up` add to the columns of a what adapters make of the same x? */
static bool adds_to(const graph *g, const gnode *a, const gnode *up)
{
    if (up->op != OP_lora_up || a->op == OP_lora_up || up->in[0].kind != REF_VALUE)
        return false;
    const gnode *down = pass_maker(g, up->in[0].id);
    bool experts = a->op == OP_experts;
    return down->op == OP_lora_down && same_value(down->in[0], a->in[0]) &&
           graph_dims_equal(pass_type(g, a), pass_type(g, up)) &&
           (!experts || (up->n_in > 2 && same_value(up->in[2], a->in[2])));
}

/* Would these two, which meet, be of one chain? */
static bool side_by_side(const graph *g, const gnode *a, const gnode *b)
{
    if (adds_to(g, a, b) || adds_to(g, b, a))
        return true;
    if (a->op != b->op || !same_value(a->in[0], b->in[0]) ||
        !graph_dims_equal(pass_type(g, a), pass_type(g, b)))
        return false;
    if (a->op == OP_experts && !same_value(a->in[2], b->in[2]))
        return false;
    /* A matrix or bias that is computed might be computed from the other's result. */
    for (int i = 1; i < a->n_in; i++)
        if ((a->in[i].kind == REF_VALUE || b->in[i].kind == REF_VALUE) &&
            !same_value(a->in[i], b->in[i]))
            return false;
    return true;
}

static int count_chain(const graph *g, int chain, int until)
{
    int n = 0;
    for (int i = chain - 1; i <= until; i++) /* a chain is named after its first node */
        n += g->nodes.at[i].chain == chain;
    return n;
}

/* All of chain `from` into chain `to`. Chains are short and merges few. */
static void rename_chain(graph *g, int from, int to, int until)
{
    for (int i = until; i >= 0; i--) {
        if (g->nodes.at[i].chain == from)
            g->nodes.at[i].chain = to;
        if (i == from - 1)
            break;
    }
}

/* root[i]: the one contraction whose results element-wise node i works on, plus one; 0: none or several. */
static int root_of(const pass *p, const int *root, int i)
{
    graph *g = p->g;
    int found = 0, read[NODE_READS_MAX];
    for (int k = 0, n = graph_reads(&g->nodes.at[i], read); k < n; k++) {
        int other = root[g->values.at[read[k]].node];
        if (other == 0 || other == found)
            continue;
        if (found == 0) {
            found = other;
            continue;
        }
        gnode *a = &g->nodes.at[found - 1], *b = &g->nodes.at[other - 1];
        if (a->chain == b->chain)
            continue;
        if (!side_by_side(g, a, b) ||
            count_chain(g, a->chain, i) + count_chain(g, b->chain, i) > p->t->be->chain_steps)
            return 0;
        int low = a->chain < b->chain ? a->chain : b->chain;
        rename_chain(g, a->chain + b->chain - low, low, i);
        if (a->op == OP_lora_up) /* the other one has what further ones are held against */
            found = other;
    }
    return found;
}

/* Heads are columns that a tile has whole. */
static bool can_begin(const graph *g, const target *t, const gnode *n)
{
    const gtype *r = pass_type(g, n);
    return n->op != OP_head_linear ||
           (r->rank == 3 && pass_can_tile(pass_whole_of(g, t, n), r->dim[1] * r->dim[2]));
}

bool pass_merge_linear(graph *g, const target *t)
{
    pass p;
    if (graph_chains(g) > 0) /* it has been here */
        return false;
    pass_begin(&p, g, t);
    int *root = ARENA_ARRAY(p.a, int, g->nodes.n + 1);
    for (size_t i = 0; i < g->nodes.n; i++) {
        gnode *n = &g->nodes.at[i];
        if (pass_contracts(n) && pass_has_kernel(&p, n) && can_begin(g, t, n)) {
            n->chain = (int)i + 1;
            root[i] = (int)i + 1;
            p.changed = true;
        } else if (op_row_of(n->op)->fuses == FUSE_ELEMENTWISE) {
            root[i] = root_of(&p, root, (int)i);
        }
    }
    if (p.changed)
        pass_number_chains(g);
    return pass_end(&p);
}
