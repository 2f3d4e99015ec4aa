/* pass_take_rows.c - compute only the rows somebody asked for.
 *   before:  %1: f[T, 64] = rms_norm(%0, @w)      %2: f[T, 320] = linear(%1, @m)  %3: f[R, 320] = take_rows(%2, rows)
 *   after:   %1: f[R, 64] = take_rows(%0, rows)   %2: f[R, 64] = rms_norm(%1, @w) %3: f[R, 320] = linear(%2, @m)
 * Rows are taken as early as can be: above everything that works row by row, up to attention, state,
 * positions, and values that are needed for all rows anyway. So nothing is computed twice, and each value has
 * its rows taken once at most. */
#include "compiler/pass_impl.h"

typedef struct {
    rewriter w;
    gref rows;   /* the input that names them */
    bool *dead;  /* [nodes]: nobody needs it */
    bool *few;   /* [nodes]: computed for rows R instead of T */
    gref *taken; /* [old values + inputs]: its rows R, once they have been taken */
} taker;

static bool has_rows_t(const gtype *t)
{
    return t->cell < 0 && t->rank > 0 && t->dim[0] == GRAPH_T;
}

static bool takes(const taker *k, const gnode *n)
{
    return n->op == OP_take_rows && n->in[1].kind == k->rows.kind && n->in[1].id == k->rows.id;
}

/* Does row i of its results need only row i of its operands, whatever the row's position? */
static bool row_by_row(const graph *g, const gnode *n)
{
    fuse_class class = op_row_of(n->op)->fuses;
    bool good = class == FUSE_CONTRACTION || class == FUSE_ELEMENTWISE || class == FUSE_VIEW ||
                class == FUSE_MOVE || (class == FUSE_ROWWISE && n->op != OP_pool);
    for (int i = 0; i < n->n_in && good; i++) /* ids that come from outside cannot be taken */
        good = n->in[i].kind != REF_INPUT || !g->inputs.at[n->in[i].id].type.ids;
    for (int i = 0; i < n->n_out; i++)
        good = good && has_rows_t(&g->values.at[n->first + i].type);
    return good;
}

/* Every reader takes rows, or is computed for few of them itself; somebody is. */
static bool wanted_in_part(const taker *k, const gnode *n)
{
    const graph_uses *u = &k->w.p.uses;
    bool any = false;
    for (int v = n->first; v < n->first + n->n_out; v++) {
        if (u->output[v])
            return false;
        for (int r = u->first[v]; r < u->first[v + 1]; r++) {
            if (k->dead[u->node[r]])
                continue;
            if (!k->few[u->node[r]] && !takes(k, &k->w.p.g->nodes.at[u->node[r]]))
                return false;
            any = true;
        }
    }
    return any;
}

/* Rows of ids cannot be taken: such operands must come from nodes computed for few rows, too. */
static bool ids_come_along(const taker *k, const gnode *n)
{
    const graph *g = k->w.p.g;
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i].kind != REF_VALUE)
            continue;
        const gvalue *v = &g->values.at[n->in[i].id];
        if (v->type.ids && has_rows_t(&v->type) && !k->few[v->node])
            return false;
    }
    return true;
}

static void find_dead(taker *k)
{
    const graph *g = k->w.p.g;
    const graph_uses *u = &k->w.p.uses;
    for (size_t i = g->nodes.n; i-- > 0;) {
        const gnode *n = &g->nodes.at[i];
        bool needed = pass_writes_state(n);
        for (int v = n->first; v < n->first + n->n_out && !needed; v++) {
            needed = u->output[v];
            for (int r = u->first[v]; r < u->first[v + 1] && !needed; r++)
                needed = !k->dead[u->node[r]];
        }
        k->dead[i] = !needed;
    }
}

/* true if there is any. */
static bool choose(taker *k)
{
    const graph *g = k->w.p.g;
    bool any, again;
    bool *barred = ARENA_ARRAY(k->w.p.a, bool, g->nodes.n + 1);
    do {
        any = again = false;
        for (size_t i = g->nodes.n; i-- > 0;) {
            const gnode *n = &g->nodes.at[i];
            k->few[i] = !barred[i] && row_by_row(g, n) && wanted_in_part(k, n);
            any = any || k->few[i];
        }
        for (size_t i = 0; i < g->nodes.n; i++) {
            if (!k->few[i] || ids_come_along(k, &g->nodes.at[i]))
                continue;
            barred[i] = again = true;
        }
    } while (again);
    return any;
}

/* ---- rewriting ---- */

/* Rows R of operand r of node n, which has rows T; a place is given by who needs it. */
static gref take(taker *k, gref r, const gnode *n)
{
    const graph *g = k->w.p.g;
    gtype t;
    if (!graph_type_get(g, r, &t) || !has_rows_t(&t))
        return r.kind == REF_VALUE ? k->w.now[r.id] : r;
    if (r.kind == REF_VALUE && k->few[g->values.at[r.id].node])
        return k->w.now[r.id];
    gref *taken = &k->taken[r.kind == REF_VALUE ? (size_t)r.id : g->values.n + (size_t)r.id];
    if (taken->kind == REF_NONE) {
        gnode node = {.op = OP_take_rows, .layer = n->layer, .loc = n->loc, .n_in = 2, .n_out = 1};
        node.in[0] = r.kind == REF_VALUE ? k->w.now[r.id] : r;
        node.in[1] = k->rows;
        t.dim[0] = GRAPH_R;
        *taken = (gref){.kind = REF_VALUE, .id = rewrite_add(&k->w, &node, &t)};
    }
    return *taken;
}

static void add_few(taker *k, const gnode *old)
{
    gnode n = *old;
    for (int i = 0; i < n.n_in; i++)
        n.in[i] = take(k, n.in[i], old);
    for (int i = 0; i < OP_ATTRS_MAX; i++)
        if (n.attr[i].kind == GATTR_REF)
            n.attr[i].ref = take(k, n.attr[i].ref, old);
    rewrite_keep(&k->w, &n, old);
    for (int i = 0; i < old->n_out; i++)
        k->w.values.at[k->w.now[old->first + i].id].type.dim[0] = GRAPH_R;
    k->w.p.changed = true;
}

static bool find_rows(const graph *g, gref *out_rows)
{
    for (size_t i = 0; i < g->nodes.n; i++)
        if (g->nodes.at[i].op == OP_take_rows) {
            *out_rows = g->nodes.at[i].in[1];
            return out_rows->kind == REF_INPUT;
        }
    return false;
}

bool pass_take_rows(graph *g, const target *t)
{
    taker k = {0};
    if (!find_rows(g, &k.rows))
        return false;
    rewrite_begin(&k.w, g, t);
    k.dead = ARENA_ARRAY(k.w.p.a, bool, g->nodes.n + 1);
    k.few = ARENA_ARRAY(k.w.p.a, bool, g->nodes.n + 1);
    k.taken = ARENA_ARRAY(k.w.p.a, gref, g->values.n + g->inputs.n + 1);
    find_dead(&k);
    if (!choose(&k))
        return pass_end(&k.w.p);
    for (size_t i = 0; i < g->nodes.n; i++) {
        const gnode *n = &g->nodes.at[i];
        if (takes(&k, n)) {
            k.w.now[n->first] = take(&k, n->in[0], n);
        } else if (k.few[i]) {
            add_few(&k, n);
        } else {
            gnode same = rewrite_node(&k.w, n);
            rewrite_keep(&k.w, &same, n);
        }
    }
    return rewrite_end(&k.w);
}
