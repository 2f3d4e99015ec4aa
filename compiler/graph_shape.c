/* graph_shape.c - do the types of a node's results follow from those of its operands?
 *
 * rule_<rule> is named in the rule column of ops.def. It sees operands of the right kinds, says what
 * is wrong with them, or gives the types its results must have. dsl/shape.c has the same rules for
 * sizes that are not known yet; here they are numbers, T, R or S. Pair order is not looked at. */
#include "compiler/graph_impl.h"

#include "runtime/base/intmath.h"

typedef struct {
    const graph *g;
    const gnode *n;
    const op_row *op;
    gtype in[OP_OPERANDS_MAX];
    bool has[OP_OPERANDS_MAX]; /* it is there and has a type: not a number */
    gtype want[2];
    int n_want; /* -1: the rule has compared the results itself */
} shape_call;

typedef const char *shape_rule(shape_call *c);

/* ---- what rules are made of ---- */

static int64_t last(const gtype *t)
{
    return t->rank > 0 ? t->dim[t->rank - 1] : -1;
}

static bool dims_same(const gtype *a, const gtype *b, int n)
{
    return a->rank >= n && b->rank >= n && memcmp(a->dim, b->dim, sizeof *a->dim * (size_t)n) == 0;
}

static const gtype *result(const shape_call *c, int i)
{
    return &c->g->values.at[c->n->first + i].type;
}

static const char *give(shape_call *c, gtype t)
{
    t.ids = false;
    c->want[c->n_want++] = t;
    return NULL;
}

static const char *give_last(shape_call *c, gtype t, int64_t n)
{
    t.dim[t.rank - 1] = n;
    return give(c, t);
}

/* A number the text gives beside what the types say. */
static bool number_is(const shape_call *c, int i, int64_t x)
{
    return i >= c->n->n_in || c->n->in[i].kind != REF_NUMBER || c->n->in[i].number == (double)x;
}

static bool attr_is(const shape_call *c, const char *name, int64_t n)
{
    int n_attr;
    const attr_row *rows = op_attrs(c->n->op, &n_attr);
    for (int i = 0; i < n_attr; i++) {
        gtype t;
        if (strcmp(rows[i].name, name) == 0 && c->n->attr[i].kind == GATTR_REF)
            return graph_type_get(c->g, c->n->attr[i].ref, &t) && t.rank == 1 && t.dim[0] == n;
    }
    return true;
}

/* ---- element by element ---- */

static const char *rule_unary(shape_call *c)
{
    return give(c, c->in[0]);
}

/* Equal shapes, a vector against the last axis or the rows, and 1 against anything. */
static bool broadcast(const gtype *a, const gtype *b, gtype *out)
{
    if (a->rank < b->rank)
        return broadcast(b, a, out);
    gtype t = *a;
    if (b->rank == 1 && a->rank > 1) {
        *out = t;
        return b->dim[0] == last(a) || b->dim[0] == 1 || (b->dim[0] < 0 && b->dim[0] == a->dim[0]);
    }
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++) {
        if (a->dim[i] != b->dim[i] && a->dim[i] != 1 && b->dim[i] != 1)
            return false;
        t.dim[i] = a->dim[i] == 1 ? b->dim[i] : a->dim[i];
    }
    *out = t;
    return true;
}

static const char *rule_binary(shape_call *c)
{
    gtype t = {.cell = -1};
    bool any = false;
    for (int i = 0; i < c->n->n_in; i++) {
        if (!c->has[i])
            continue;
        if (any && !broadcast(&t, &c->in[i], &t))
            return "its operands differ in shape";
        t = any ? t : c->in[i];
        any = true;
    }
    return any ? give(c, t) : "none of its operands is a tensor";
}

#define rule_divide rule_binary
#define rule_select rule_binary

/* ---- matrices ---- */

static const char *rule_embed(shape_call *c)
{
    gtype t = c->in[1];
    if (c->in[0].rank != 2 || t.rank >= GRAPH_RANK_MAX)
        return "its table is not [V, d]";
    t.dim[t.rank++] = c->in[0].dim[1];
    return give(c, t);
}

static const char *rule_linear(shape_call *c)
{
    if (c->in[1].rank != 2 || c->in[0].rank < 1 || last(&c->in[0]) != c->in[1].dim[1])
        return "its matrix does not take the operand's last dimension";
    if (c->has[2] && (c->in[2].rank != 1 || c->in[2].dim[0] != c->in[1].dim[0]))
        return "its bias does not fit the matrix";
    return give_last(c, c->in[0], c->in[1].dim[0]);
}

static const char *rule_head_linear(shape_call *c)
{
    const gtype *x = &c->in[0], *w = &c->in[1];
    if (x->rank != 3 || w->rank != 3 || x->dim[1] != w->dim[0] || x->dim[2] != w->dim[2])
        return "its matrices [H, m, n] do not take [T, H, n]";
    if (c->has[2] && (c->in[2].rank != 2 || !dims_same(&c->in[2], w, 2)))
        return "its bias does not fit the matrices";
    return give_last(c, *x, w->dim[1]);
}

static const char *rule_experts(shape_call *c)
{
    const gtype *x = &c->in[0], *w = &c->in[1], *ids = &c->in[2];
    if (w->rank != 3 || (x->rank != 2 && x->rank != 3) || last(x) != w->dim[2])
        return "its matrices [E, m, n] do not take [T, n] or [T, K, n]";
    if (ids->rank != 2 || !dims_same(x, ids, x->rank - 1))
        return "its ids are not [T, K]";
    if (c->has[3] && (c->in[3].rank != 2 || !dims_same(&c->in[3], w, 2)))
        return "its bias does not fit the matrices";
    gtype t = *ids;
    t.dim[t.rank++] = w->dim[1];
    return give(c, t);
}

static const char *rule_combine(shape_call *c)
{
    const gtype *y = &c->in[0], *w = &c->in[1];
    if (y->rank != 3 || w->rank != 2 || !dims_same(y, w, 2))
        return "its operands are not [T, K, d] and [T, K]";
    return give_last(c, *w, y->dim[2]);
}

static const char *rule_route(shape_call *c)
{
    const gtype *x = &c->in[0];
    int64_t k = c->n->attr[0].integer; /* attrs.def: k is the first */
    if (x->rank != 2 || k < 1 || k > x->dim[1])
        return "it cannot choose k from logits of this shape";
    if (!attr_is(c, "select_bias", x->dim[1]))
        return "select_bias is not [E]";
    give_last(c, *x, k);
    c->want[0].ids = true;
    return give_last(c, *x, k);
}

/* A site may be stored as a matrix for each expert; then only its rows are known to go on. */
static const char *rule_delta(shape_call *c)
{
    bool site_first = c->op->kinds[0] == 'w';
    const gtype *x = &c->in[site_first], *w = &c->in[!site_first];
    if (w->rank != 2 || x->rank < 1) {
        c->n_want = -1;
        return NULL;
    }
    if (last(x) != w->dim[1])
        return "its site does not take the operand's last dimension";
    return give_last(c, *x, w->dim[0]);
}

/* What adapters make of x: K_MIX_MAX parts of as many numbers as a slot has rows of A. A row has as many vectors as the
 * weight's op would give it. */
static const char *rule_lora_down(shape_call *c)
{
    const gtype *y = result(c, 0), *x = &c->in[c->has[2] ? 2 : 0];
    int64_t ranks = last(y);
    c->n_want = -1;
    if (!c->has[0] && !c->has[2])
        return "it has neither x nor ids";
    bool each = c->has[0] && !c->has[2]; /* a vector of x for each of the result's */
    bool good = y->rank == (each ? x->rank : x->rank + 1) && !y->ids && y->cell < 0 &&
                dims_same(x, y, y->rank - 1) && ranks >= 1;
    return good ? NULL : "its result is not one row of ranks for each vector";
}

static const char *rule_lora_up(shape_call *c)
{
    const gtype *h = &c->in[0], *y = result(c, 0);
    c->n_want = -1;
    return y->rank == h->rank && y->rank >= 1 && !y->ids && y->cell < 0 &&
                   dims_same(h, y, y->rank - 1) && last(y) >= 1
               ? NULL
               : "its result does not have its operand's vectors";
}

/* ---- rows ---- */

static const char *rule_norm(shape_call *c)
{
    const gtype *x = &c->in[0];
    for (int i = 1; i < 3; i++) {
        const gtype *w = &c->in[i];
        if (!c->has[i])
            continue;
        bool heads = w->rank == 2 && x->rank >= 2 && x->dim[x->rank - 2] == w->dim[0];
        if (x->rank < 1 || last(w) != last(x) || (w->rank != 1 && !heads))
            return "its weight does not fit the operand";
    }
    return give(c, *x);
}

static const char *rule_rope(shape_call *c)
{
    const gtype *x = &c->in[0], *pos = &c->in[1];
    if (x->rank != 3 || pos->rank != 1 || pos->dim[0] != x->dim[0])
        return "its operands are not [T, H, D] and [T]";
    if (c->in[2].dim[0] > x->dim[2] / 2)
        return "its table has more pairs than a head";
    return give(c, *x);
}

static const char *rule_take_rows(shape_call *c)
{
    gtype t = c->in[0];
    if (t.rank < 1 || c->in[1].rank != 1)
        return "its operands are not [T, ..] and [R]";
    t.dim[0] = c->in[1].dim[0];
    return give(c, t);
}

static const char *rule_at_pos(shape_call *c)
{
    return give(c, c->in[1]);
}

static const char *rule_pool(shape_call *c)
{
    gtype t = c->in[0];
    if (t.rank != 2)
        return "its operand is not [T, d]";
    t.dim[0] = GRAPH_S;
    return give(c, t);
}

/* ---- views ---- */

static const char *rule_to_heads(shape_call *c)
{
    const gtype *x = &c->in[0], *y = result(c, 0);
    int64_t n;
    c->n_want = -1;
    bool good = x->rank >= 1 && y->rank == x->rank + 1 && !y->ids && y->cell < 0 &&
                dims_same(x, y, x->rank - 1) && y->dim[x->rank - 1] >= 0 && last(y) >= 0 &&
                i64_mul(y->dim[x->rank - 1], last(y), &n) && n == last(x) &&
                number_is(c, 1, y->dim[x->rank - 1]);
    return good ? NULL : "its result is not the operand cut into heads";
}

static const char *rule_from_heads(shape_call *c)
{
    gtype t = c->in[0];
    int64_t n;
    if (t.rank < 2 || t.dim[t.rank - 2] < 0 || last(&t) < 0 ||
        !i64_mul(t.dim[t.rank - 2], last(&t), &n))
        return "its operand is not [.., H, D]";
    t.rank--;
    return give_last(c, t, n);
}

static const char *rule_split(shape_call *c)
{
    const gtype *x = &c->in[0];
    int64_t sum = 0;
    c->n_want = -1;
    for (int i = 0; i < c->n->n_out; i++) {
        const gtype *y = result(c, i);
        if (x->rank < 1 || y->rank != x->rank || y->ids || y->cell >= 0 ||
            !dims_same(x, y, x->rank - 1) || last(y) < 0 || !i64_add(sum, last(y), &sum) ||
            (i < OP_OPERANDS_MAX - 1 && !number_is(c, i + 1, last(y))))
            return "its results are not parts of the operand";
    }
    return sum == last(x) ? NULL : "its results do not make up the operand";
}

static const char *rule_concat(shape_call *c)
{
    const gtype *a = &c->in[0], *b = &c->in[1];
    int64_t n;
    if (a->rank < 1 || a->rank != b->rank || !dims_same(a, b, a->rank - 1) || last(a) < 0 ||
        last(b) < 0 || !i64_add(last(a), last(b), &n))
        return "its operands differ in shape";
    return give_last(c, *a, n);
}

/* ---- state ---- */

static const char *rule_append(shape_call *c)
{
    const gcell *cell = &c->g->cells.at[c->in[0].cell];
    const gtype *k = &c->in[1], *v = &c->in[2];
    bool fits = false;
    if (cell->kind == CELL_latent_cache)
        fits = !c->has[2] && k->rank == 2 && k->dim[1] == cell->arg[0];
    else if (cell->kind == CELL_kv_cache)
        fits = c->has[2] && k->rank == 3 && v->rank == 3 && k->dim[0] == v->dim[0] &&
               k->dim[1] == cell->arg[0] && v->dim[1] == cell->arg[0] &&
               k->dim[2] == cell->arg[1] && v->dim[2] == cell->arg[2];
    if (!fits || k->dim[0] != GRAPH_T)
        return "its rows do not fit the cell";
    return give(c, c->in[0]);
}

static const char *rule_convert(shape_call *c)
{
    cell_code kind = c->g->cells.at[c->in[0].cell].kind;
    if (kind != CELL_latent_cache && kind != CELL_kv_cache)
        return "it cannot convert this kind of cell";
    return give(c, c->in[0]);
}

static const char *rule_attend(shape_call *c)
{
    const gcell *cell = &c->g->cells.at[c->in[1].cell];
    const gtype *q = &c->in[0];
    bool latent = cell->kind == CELL_latent_cache;
    int64_t heads = latent ? 1 : cell->arg[0], k = cell->arg[latent ? 0 : 1];
    if (!latent && cell->kind != CELL_kv_cache)
        return "it cannot read this kind of cell";
    if (q->rank != 3 || q->dim[2] != k || heads < 1 || q->dim[1] < 1 || q->dim[1] % heads != 0)
        return "its queries do not fit the cell";
    if (!attr_is(c, "sinks", q->dim[1]) || !attr_is(c, "slopes", q->dim[1]))
        return "sinks and slopes are not [H]";
    return give_last(c, *q, cell->arg[latent ? 1 : 2]);
}

static const char *rule_attend_all(shape_call *c)
{
    const gtype *q = &c->in[0], *k = &c->in[1], *v = &c->in[2];
    if (q->rank != 3 || k->rank != 3 || v->rank != 3 || last(q) != last(k) || !dims_same(k, v, 2) ||
        k->dim[1] < 1 || q->dim[1] < 1 || q->dim[1] % k->dim[1] != 0)
        return "its queries, keys and values do not fit together";
    return give_last(c, *q, last(v));
}

static const char *rule_conv1d(shape_call *c)
{
    if (c->in[0].rank != 2 || c->in[1].rank != 2 || c->in[0].dim[1] != c->in[1].dim[0])
        return "its operands are not [T, c] and [c, k]";
    return give(c, c->in[0]);
}

static const char *rule_ssm_scan(shape_call *c)
{
    return c->in[0].rank == 3 ? give(c, c->in[0]) : "its operand is not [T, H, P]";
}

static const char *rule_recurrent(shape_call *c)
{
    if (c->in[0].rank != 3 || c->in[2].rank != 3 || !dims_same(&c->in[0], &c->in[2], 2))
        return "its operands are not [T, H, ..]";
    return give_last(c, c->in[0], last(&c->in[2]));
}

static shape_rule *const rules[OP_COUNT] = {
#define OP(name, tier, kinds, rule, ...) [OP_##name] = rule_##rule,
#define LIB(...)
#include "dsl/ops.def"
#undef OP
#undef LIB
};

const char *graph_shape_fault(const graph *g, const gnode *n)
{
    shape_call c = {.g = g, .n = n, .op = op_row_of(n->op)};
    for (int i = 0; i < n->n_in; i++)
        c.has[i] = graph_type_get(g, n->in[i], &c.in[i]);
    const char *fault = rules[n->op](&c);
    if (fault || c.n_want < 0)
        return fault;
    if (c.n_want != n->n_out)
        return "it gives another number of results";
    for (int i = 0; i < n->n_out; i++) {
        const gtype *y = result(&c, i), *want = &c.want[i];
        if (y->ids != want->ids || y->cell != want->cell || y->rank != want->rank ||
            !dims_same(y, want, y->rank))
            return "the type of its result does not follow from its operands";
    }
    return NULL;
}
