/* pass_impl.h - what the files pass_*.c share: a pass's scratch, which kernels there are, shapes, chains. */
#ifndef WEFT_COMPILER_PASS_IMPL_H
#define WEFT_COMPILER_PASS_IMPL_H

#include "compiler/graph_impl.h"
#include "compiler/passes.h"

#define PASS(name, meaning) pass_fn pass_##name;
#include "compiler/passes.def"
#undef PASS

/* ---- what a pass works with (pass_common.c) ---- */

typedef struct {
    graph *g;
    const target *t;
    arena *a; /* scratch, gone when the pass ends */
    graph_uses uses;
    bool changed;
    signed char kernel[KOP_COUNT][DT_COUNT + 1]; /* 1: there is one, -1: there is none */
} pass;

void pass_begin(pass *p, graph *g, const target *t);
bool pass_end(pass *p); /* whether anything changed */

/* Can the target compute this node; and element-wise nodes as a map? */
bool pass_has_kernel(pass *p, const gnode *n);
bool pass_has_map(pass *p);

static inline const gnode *pass_maker(const graph *g, int value)
{
    return &g->nodes.at[g->values.at[value].node];
}

static inline const gtype *pass_type(const graph *g, const gnode *n)
{
    return &g->values.at[n->first].type;
}

/* Does it change a cell of the state? That is done whether or not anybody reads what it gives. */
static inline bool pass_writes_state(const gnode *n)
{
    return op_row_of(n->op)->fuses == FUSE_STATE || n->op == OP_convert;
}

int64_t pass_row_elems(const gtype *t); /* in one row of [T, ..]; -1: not known */
/* Is it this op, lora_down or lora_up, for a weight of such an op? */
bool pass_lora_of(const gnode *n, op_code op, const char *of);
/* linear, experts and head_linear, and lora_up beside the first two: what a chain begins with. */
bool pass_contracts(const gnode *n);
bool pass_in_chain(const gnode *n); /* and not recomputed for it */
/* Numbers from 1 on in the order of the nodes, none left out. */
void pass_number_maps(graph *g);
void pass_number_chains(graph *g);

/* ---- rewriting (pass_rewrite.c) ---- */

/* Nodes are taken over one by one, in order, into new lists; `now` is what stands for an old value. Nothing
 * happens to the graph until rewrite_end, and without `changed` nothing at all. */
typedef struct {
    pass p;
    VEC(gnode) nodes;
    VEC(gvalue) values;
    gref *now; /* [old values] */
} rewriter;

void rewrite_begin(rewriter *w, graph *g, const target *t);
/* The old node with the operands it has now. */
gnode rewrite_node(const rewriter *w, const gnode *old);
/* Append a node; its first value. */
int rewrite_add(rewriter *w, const gnode *n, const gtype *types);
/* Append it as what stands for an old one, with the old one's types. */
void rewrite_keep(rewriter *w, const gnode *n, const gnode *old);
/* The new node that makes r, or NULL; and r's type, false for numbers. */
const gnode *rewrite_maker(const rewriter *w, gref r);
bool rewrite_type(const rewriter *w, gref r, gtype *out_type);
/* Put the new lists in place, without what neither an output nor the state needs. */
bool rewrite_end(rewriter *w);

/* A weight that is part of another: elements begin .. end - 1 of an axis. Only where
 * pass_can_slice. */
int pass_slice_weight(graph *g, int weight, int axis, int64_t begin, int64_t end);
bool pass_can_slice(const gweight *w, int axis);

/* ---- chains (pass_chain.c) ---- */

/* A chain's values are [row, .., cols] cut by columns. That of experts or head_linear is wide: its
 * contraction gives [row, K, cols], and so do nodes up to combine. */
typedef struct {
    int level;    /* see chains */
    gtype wide;   /* rank 0: it is plain */
    int64_t row;  /* T or R */
    int64_t cols; /* of a row; -1: nothing may join */
    /* What it is as steps: their number, the columns of all its vectors, and how many of those cannot be cut. */
    int n_step;
    int64_t all, whole;
    bool experts; /* it may be combined */
} chain_info;

/* Which nodes form a chain is decided here, and nowhere later: what joins can be computed by the chain's tiles.
 *
 * The level of a node counts contractions and attentions on the longest way to it, be it through a cell; a map is of the
 * level of its highest node, a chain of that of its contractions. Nodes join a chain only if what they read
 * from elsewhere is of a lower level. So the chain waits for nothing more than before, and never for
 * itself; and no level changes by it. */
typedef struct {
    pass p;
    int *level; /* [nodes] */
    chain_info *chain;
    int *map_last, *map_first; /* [maps + 1]: nodes of each map, -1: none */
    int *map_next;             /* [nodes]: the next one of the same map, -1: none */
} chains;

/* Offer every node to `join`, in order, until none joins any more. True if one did. */
bool chains_grow(graph *g, const target *t, void (*join)(chains *c, int i));
/* Views of a chain's values; maps, when i is the last node of one; combine: join if they may. */
bool chains_join_view(chains *c, int i);
bool chains_join_map(chains *c, int i);
bool chains_join_combine(chains *c, int i);
/* The chain whose columns value r is, or 0. */
int chains_of(const chains *c, gref r);
/* Is what r means there before chain number `chain` begins? */
bool chains_earlier(const chains *c, gref r, int chain);
void chains_join(chains *c, int i, int chain);
/* May a chain have one step more, whose columns can be cut only between parts of `whole`; and that it has. */
bool chains_takes(const chains *c, int chain, int64_t whole);
void chains_add_step(chains *c, int chain, int64_t whole);
/* Can columns be cut into tiles at all, where so many of them cannot be? */
bool pass_can_tile(int64_t whole, int64_t cols);
/* Columns of a contraction that cannot be cut: a vector of its heads, a group of interleaved rows. */
int64_t pass_whole_of(const graph *g, const target *t, const gnode *n);

#endif
