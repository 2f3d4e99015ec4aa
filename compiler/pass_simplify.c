/* pass_simplify.c - drop what is done for nothing or twice, and cut matrices that are split afterwards.
 *   before:  %1: f[T, 96] = linear(%x, @qkv)         %2: f[T, 64], %3: f[T, 32] = split(%1)   %4 = mul(%2, 1)
 *   after:   %1: f[T, 64] = linear(%x, @qkv[0:64])   %2: f[T, 32] = linear(%x, @qkv[64:96])
 * Results stay the same to the bit (x + 0 of -0 aside): nothing is reassociated. Numbers are folded only
 * where the operator itself would give that number. A node equal to an earlier one is that one. Parts of
 * a matrix are views of the same bytes. What neither an output nor the state needs is left out. */
#include "compiler/pass_impl.h"

#include <math.h>

typedef struct {
    int weight, axis;
    int64_t begin, end;
    int slice;
} slice_row;

typedef struct {
    rewriter w;
    int *bucket; /* [n_bucket]: one past a new node with this hash, by open addressing */
    size_t n_bucket;
    VEC(slice_row) slices; /* in all rounds */
} simplifier;

/* What stands for node n, whose operands are simple already; false: it stays. */
typedef bool rule(simplifier *s, const gnode *n, const gnode *old, gref *out);

/* Give r for the only result of old, if it has its type. An output stays a value. */
static bool becomes(const simplifier *s, const gnode *old, gref r, gref *out)
{
    gtype t;
    const graph *g = s->w.p.g;
    if (!rewrite_type(&s->w, r, &t) || !graph_type_equal(&t, pass_type(g, old)) ||
        (r.kind != REF_VALUE && s->w.p.uses.output[old->first]))
        return false;
    *out = r;
    return true;
}

/* ---- numbers ---- */

static bool is_number(gref r, double x)
{
    return r.kind == REF_NUMBER && r.number == x;
}

/* x * 1, x + 0, x - 0, x / 1 */
static bool neutral(simplifier *s, const gnode *n, const gnode *old, gref *out)
{
    double x = n->op == OP_mul || n->op == OP_div ? 1 : 0;
    bool either = n->op == OP_mul || n->op == OP_add;
    if (is_number(n->in[1], x))
        return becomes(s, old, n->in[0], out);
    return either && is_number(n->in[0], x) && becomes(s, old, n->in[1], out);
}

static double compute(op_code op, double a, double b)
{
    switch (op) {
    case OP_add:
        return a + b;
    case OP_sub:
        return a - b;
    case OP_mul:
        return a * b;
    case OP_div:
        return a / b;
    default:
        return -a; /* neg */
    }
}

/* An operator on constant vectors and numbers, rounded as its kernel rounds it. */
static bool constant(simplifier *s, const gnode *n, const gnode *old, gref *out)
{
    graph *g = s->w.p.g;
    const gtype *t = pass_type(g, old);
    const gconst *c[2] = {NULL, NULL};
    if (t->rank != 1 || t->dim[0] < 1 || s->w.p.uses.output[old->first])
        return false;
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i].kind == REF_CONST)
            c[i] = &g->consts.at[n->in[i].id];
        else if (n->in[i].kind != REF_NUMBER)
            return false;
        if (c[i] && (c[i]->table || c[i]->n != t->dim[0]))
            return false;
    }
    double *data = ARENA_ARRAY(g->a, double, (size_t)t->dim[0]);
    for (int64_t k = 0; k < t->dim[0]; k++) {
        double x[2] = {0, 0};
        for (int i = 0; i < n->n_in; i++)
            x[i] = c[i] ? (double)(float)c[i]->data[k] : n->in[i].number;
        data[k] = (double)(float)compute(n->op, x[0], x[1]);
    }
    gconst made = {.n = t->dim[0], .data = data};
    VEC_PUSH(&g->consts, made);
    *out = (gref){.kind = REF_CONST, .id = (int)g->consts.n - 1};
    return true;
}

static bool arithmetic(simplifier *s, const gnode *n, const gnode *old, gref *out)
{
    return neutral(s, n, old, out) || constant(s, n, old, out);
}

/* ---- there and back ---- */

/* The operand of r's maker, if that is a node of this op. */
static bool undoes(const simplifier *s, gref r, op_code op, gref *out)
{
    const gnode *n = rewrite_maker(&s->w, r);
    if (!n || n->op != op)
        return false;
    *out = n->in[0];
    return true;
}

static bool negation(simplifier *s, const gnode *n, const gnode *old, gref *out)
{
    gref x;
    if (undoes(s, n->in[0], OP_neg, &x))
        return becomes(s, old, x, out);
    return constant(s, n, old, out);
}

static bool cut_heads(simplifier *s, const gnode *n, const gnode *old, gref *out)
{
    gref x;
    return undoes(s, n->in[0], OP_from_heads, &x) && becomes(s, old, x, out);
}

static bool join_heads(simplifier *s, const gnode *n, const gnode *old, gref *out)
{
    gref x;
    return undoes(s, n->in[0], OP_to_heads, &x) && becomes(s, old, x, out);
}

/* Both halves of a split, put together again. */
static bool join_split(simplifier *s, const gnode *n, const gnode *old, gref *out)
{
    const gnode *m = rewrite_maker(&s->w, n->in[0]);
    return m && m->op == OP_split && m->n_out == 2 && n->in[0].id == m->first &&
           n->in[1].kind == REF_VALUE && n->in[1].id == m->first + 1 &&
           becomes(s, old, m->in[0], out);
}

/* ---- matrices that are split ---- */

static int slice(simplifier *s, int weight, int axis, int64_t begin, int64_t end)
{
    for (size_t i = s->slices.n; i-- > 0;) {
        const slice_row *r = &s->slices.at[i];
        if (r->weight == weight && r->axis == axis && r->begin == begin && r->end == end)
            return r->slice;
    }
    slice_row r = {weight, axis, begin, end, 0};
    r.slice = pass_slice_weight(s->w.p.g, weight, axis, begin, end);
    VEC_PUSH(&s->slices, r);
    return r.slice;
}

/* The contraction whose result only this split reads, if its weights can be cut: [m, n] and [m] of linear,
 * [E, m, n] and [E, m] of experts. */
static const gnode *cuttable(const simplifier *s, const gnode *n, const gnode *old, int *out_axis)
{
    const gnode *m = rewrite_maker(&s->w, n->in[0]);
    const graph *g = s->w.p.g;
    if (!m || (m->op != OP_linear && m->op != OP_experts) || m->n_out != 1)
        return NULL;
    int was = old->in[0].id, axis = m->op == OP_experts, bias = axis ? 3 : 2;
    const graph_uses *u = &s->w.p.uses;
    if (u->output[was] || u->first[was + 1] - u->first[was] != 1)
        return NULL;
    for (int i = 1; i <= bias && i < m->n_in; i += bias - 1)
        if ((i == 1 || m->in[i].kind != REF_NONE) &&
            (m->in[i].kind != REF_WEIGHT || !pass_can_slice(&g->weights.at[m->in[i].id], axis)))
            return NULL;
    if (s->w.values.at[m->first].type.rank != (axis ? 3 : 2))
        return NULL;
    *out_axis = axis;
    return m;
}

static bool cut_matrix(simplifier *s, const gnode *n, const gnode *old)
{
    int axis = 0;
    const gnode *m = cuttable(s, n, old, &axis);
    if (!m)
        return false;
    gnode part = *m; /* m moves when nodes are added */
    int bias = axis ? 3 : 2;
    int64_t at = 0;
    for (int k = 0; k < old->n_out; k++) {
        gnode one = part;
        const gtype *t = &s->w.p.g->values.at[old->first + k].type;
        int64_t end = at + t->dim[t->rank - 1];
        one.in[1].id = slice(s, part.in[1].id, axis, at, end);
        if (bias < one.n_in && one.in[bias].kind == REF_WEIGHT)
            one.in[bias].id = slice(s, part.in[bias].id, axis, at, end);
        int value = rewrite_add(&s->w, &one, t);
        s->w.now[old->first + k] = (gref){.kind = REF_VALUE, .id = value};
        at = end;
    }
    return true;
}

static bool single_part(simplifier *s, const gnode *n, const gnode *old, gref *out)
{
    return old->n_out == 1 && becomes(s, old, n->in[0], out);
}

/* clang-format off */
static rule *const rules[OP_COUNT] = {
    [OP_add] = arithmetic, [OP_sub] = arithmetic, [OP_mul] = arithmetic, [OP_div] = arithmetic,
    [OP_neg] = negation, [OP_to_heads] = cut_heads, [OP_from_heads] = join_heads,
    [OP_split] = single_part, [OP_concat] = join_split,
};
/* clang-format on */

/* ---- the same thing twice ---- */

static uint64_t mix(uint64_t h, uint64_t x)
{
    return (h ^ x) * UINT64_C(0x9E3779B97F4A7C15) + (h >> 29);
}

static uint64_t ref_hash(uint64_t h, gref r)
{
    uint64_t bits = 0;
    memcpy(&bits, &r.number, sizeof bits);
    return mix(mix(h, (uint64_t)r.kind), r.kind == REF_NUMBER ? bits : (uint64_t)r.id);
}

static uint64_t node_hash(const gnode *n)
{
    uint64_t h = mix((uint64_t)n->op, (uint64_t)n->n_in);
    for (int i = 0; i < n->n_in; i++)
        h = ref_hash(h, n->in[i]);
    return h ^ h >> 32;
}

static bool nodes_same(const simplifier *s, const gnode *made, const gnode *n, const gnode *old)
{
    if (made->op != n->op || made->n_in != n->n_in || made->n_out != old->n_out)
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (!graph_ref_equal(made->in[i], n->in[i]))
            return false;
    for (int i = 0; i < OP_ATTRS_MAX; i++)
        if (!graph_attr_equal(&made->attr[i], &n->attr[i]))
            return false;
    for (int i = 0; i < old->n_out; i++)
        if (!graph_type_equal(&s->w.values.at[made->first + i].type,
                              &s->w.p.g->values.at[old->first + i].type))
            return false;
    return true;
}

/* The place of n's like in the table, or the free one where n belongs. */
static int *find_like(simplifier *s, const gnode *n, const gnode *old)
{
    size_t at = (size_t)node_hash(n) & (s->n_bucket - 1);
    while (s->bucket[at] > 0 && !nodes_same(s, &s->w.nodes.at[s->bucket[at] - 1], n, old))
        at = (at + 1) & (s->n_bucket - 1);
    return &s->bucket[at];
}

/* ---- the whole ---- */

static void take_over(simplifier *s, const gnode *old)
{
    gnode n = rewrite_node(&s->w, old);
    gref now;
    if (op_row_of(n.op)->fuses != FUSE_STATE) {
        if (rules[n.op] && rules[n.op](s, &n, old, &now)) {
            s->w.now[old->first] = now;
            s->w.p.changed = true;
            return;
        }
        int *like = find_like(s, &n, old);
        if (*like > 0) {
            for (int i = 0; i < old->n_out; i++)
                s->w.now[old->first + i] =
                    (gref){.kind = REF_VALUE, .id = s->w.nodes.at[*like - 1].first + i};
            s->w.p.changed = true;
            return;
        }
        if (n.op == OP_split && cut_matrix(s, &n, old)) {
            s->w.p.changed = true;
            return;
        }
        *like = (int)s->w.nodes.n + 1;
    }
    rewrite_keep(&s->w, &n, old);
}

static bool run_once(simplifier *s, graph *g, const target *t)
{
    rewrite_begin(&s->w, g, t);
    s->n_bucket = 64;
    while (s->n_bucket < 2 * g->nodes.n)
        s->n_bucket *= 2;
    s->bucket = ARENA_ARRAY(s->w.p.a, int, s->n_bucket);
    for (size_t i = 0; i < g->nodes.n; i++)
        take_over(s, &g->nodes.at[i]);
    return rewrite_end(&s->w);
}

/* Again while it helps: a value has fewer readers when one of them is gone. */
bool pass_simplify(graph *g, const target *t)
{
    simplifier s = {0};
    bool changed = false;
    while (run_once(&s, g, t))
        changed = true;
    VEC_FREE(&s.slices);
    return changed;
}
