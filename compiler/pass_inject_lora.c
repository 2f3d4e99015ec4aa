/* pass_inject_lora.c - put what adapters add beside each site.
 *   before:  %1: f[T, 8] = linear(%x, @w)
 *   after:   %1: f[T, 8] = linear(%x, @w)   %2: f[T, 128] = lora_down(%x, @w)   %3: f[T, 8] = lora_up(%2, @w)
 *            %4: f[T, 8] = add(%1, %3)
 * A site is a weight with `lora`, where a linear, experts, head_linear or an embed reads it. lora_down gives K_MIX_MAX times as many
 * numbers as a slot has rows of A. delta and lora, which place a site's adapters by hand, become the same two nodes; in a
 * session without slots too, since they have a value then, which is zero. */
#include "compiler/pass_impl.h"

#include "kernels/lora.h"

/* Which operand of an op is the site, and which say which part of it rows use; -1: none. */
typedef struct {
    op_code op;
    const char *of;
    int x, site, ids;
} site_row;

static const site_row sites[] = {
    {OP_linear, "linear", 0, 1, -1},
    {OP_experts, "experts", 0, 1, 2},
    {OP_head_linear, "head_linear", 0, 1, -1},
    {OP_embed, "embed", -1, 0, 1},
    {OP_delta, "linear", 1, 0, -1},
    {OP_lora, "linear", 0, 1, -1},
};

static bool by_hand(const gnode *n)
{
    return n->op == OP_delta || n->op == OP_lora;
}

/* What node n is as a site; NULL: none. Where a weight's adapters are placed by hand, they are nowhere else. */
static const site_row *site_of(const graph *g, const target *t, const bool *hand, const gnode *n)
{
    for (size_t i = 0; i < sizeof sites / sizeof *sites; i++) {
        const site_row *s = &sites[i];
        if (s->op != n->op || n->in[s->site].kind != REF_WEIGHT)
            continue;
        int id = n->in[s->site].id;
        const gweight *w = &g->weights.at[id];
        const gtype *y = pass_type(g, n);
        bool rows = y->rank >= 2 && y->dim[0] < 0; /* of a call: else no row has a mix */
        int rank = n->op == OP_experts || n->op == OP_head_linear ? 3 : 2;
        bool wanted = by_hand(n) || (w->lora && !hand[id] && t->lora_slots > 0);
        return rows && w->rank == rank && wanted ? s : NULL;
    }
    return NULL;
}

static gref operand(const gnode *n, int i)
{
    return i < 0 ? (gref){.kind = REF_NONE} : n->in[i];
}

static gnode lora_node(const gnode *n, op_code op, const site_row *s, gref x)
{
    gnode node = {
        .op = op, .layer = n->layer, .loc = n->loc, .n_in = s->ids < 0 ? 2 : 3, .n_out = 1};
    node.in[0] = x;
    node.in[1] = n->in[s->site];
    if (s->ids >= 0)
        node.in[2] = n->in[s->ids];
    if (strcmp(s->of, "linear") != 0)
        node.attr[0] = (gattr){.kind = GATTR_WORD, .word = str_of(s->of)};
    return node;
}

static gref value(int id)
{
    return (gref){.kind = REF_VALUE, .id = id};
}

/* The two nodes for n, whose operands are those of now; their sum with it unless n is of them alone. */
static void inject(rewriter *w, const gnode *n, const gnode *old, const site_row *s)
{
    const gtype *y = pass_type(w->p.g, old);
    int64_t rank = w->p.t->lora_slots > 0 ? w->p.t->lora_rank : 1;
    gtype ranks = *y, sum = *y;
    ranks.dim[ranks.rank - 1] = K_MIX_MAX * rank;
    ranks.pairs = 0;
    gref base = {.kind = REF_NONE};
    if (!by_hand(n)) {
        rewrite_keep(w, n, old);
        base = w->now[old->first];
    }
    gnode down = lora_node(n, OP_lora_down, s, operand(n, s->x));
    gnode up = lora_node(n, OP_lora_up, s, value(rewrite_add(w, &down, &ranks)));
    gref last = value(rewrite_add(w, &up, &sum));
    if (!by_hand(n)) {
        gnode add = {.op = OP_add, .layer = n->layer, .loc = n->loc, .n_in = 2, .n_out = 1};
        add.in[0] = base;
        add.in[1] = last;
        last = value(rewrite_add(w, &add, &sum));
    }
    w->now[old->first] = last;
    w->p.changed = true;
}

/* Weights whose adapters are placed by hand; and, where a graph has been here, all of them. */
static bool *find_hand(arena *a, const graph *g)
{
    bool *hand = ARENA_ARRAY(a, bool, g->weights.n + 1), again = false;
    for (size_t i = 0; i < g->nodes.n; i++) {
        const gnode *n = &g->nodes.at[i];
        again = again || n->op == OP_lora_down;
        gref site = n->in[n->op == OP_delta ? 0 : 1];
        if (by_hand(n) && site.kind == REF_WEIGHT)
            hand[site.id] = true;
    }
    for (size_t i = 0; i < g->weights.n && again; i++)
        hand[i] = true;
    return hand;
}

bool pass_inject_lora(graph *g, const target *t)
{
    rewriter w;
    rewrite_begin(&w, g, t);
    const bool *hand = find_hand(w.p.a, g);
    for (size_t i = 0; i < g->nodes.n; i++) {
        const gnode *old = &g->nodes.at[i];
        gnode n = rewrite_node(&w, old);
        const site_row *s = site_of(g, t, hand, old);
        if (s)
            inject(&w, &n, old, s);
        else
            rewrite_keep(&w, &n, old);
    }
    return rewrite_end(&w);
}
