/* shape.c - the shape rule of every op: what it takes, what it gives, where the pair order goes.
 *
 * A rule sees operands of the right kind, all of them known; it fills out->v, or reports and leaves it
 * unknown. shape_<rule> is named in the rule column of ops.def. */
#include "dsl/sema.h"

static const tensor_type *type_of(const op_call *c, int i)
{
    return c->arg[i].tensor;
}

static const poly *last(const tensor_type *t)
{
    return t->dim[t->rank - 1];
}

static bool same(const op_call *c, const poly *a, const poly *b)
{
    return dims_equal(c->s, a, b);
}

static const char *text(const op_call *c, const poly *p)
{
    return poly_text(c->s, sema_narrowed(c->s, p));
}

/* ---- reporting ---- */

static bool rank_is(op_call *c, int i, int rank, const char *shape)
{
    if (type_of(c, i)->rank == rank)
        return true;
    weft_fail(c->s->dg, W0310, c->site->loc, "%s takes %s here, but its operand is %s", c->what,
              shape, type_text(c->s, type_of(c, i)));
    if (type_of(c, i)->rank == rank - 1 && rank == 3 && strchr(shape, 'H'))
        weft_note(c->s->dg, "to_heads(x, heads) cuts a row into heads");
    else
        sema_note_weight(c->s, c->arg[i].from);
    return false;
}

/* "expects a last dimension of n": the commonest mistake, so it says what would mend it. */
static bool last_is(op_call *c, int i, const poly *n)
{
    const tensor_type *t = type_of(c, i);
    if (t->rank > 0 && same(c, last(t), n))
        return true;
    weft_fail(c->s->dg, W0302, c->site->loc,
              "%s expects a last dimension of %s, but its operand is %s", c->what, text(c, n),
              type_text(c->s, t));
    const poly *joined = t->rank > 1 ? poly_mul(c->s->pp, t->dim[t->rank - 2], last(t)) : NULL;
    if (joined && same(c, joined, n)) {
        const ast *at = c->at[i];
        if (at && at->kind == AST_NAME)
            weft_note(c->s->dg, "it has one row per head; from_heads(" STR_FMT ") joins them",
                      STR_ARG(at->name));
        else
            weft_note(c->s->dg, "it has one row per head; from_heads joins them");
    } else if (c->arg[i].from && c->arg[i].from != c->w) {
        sema_note_weight(c->s, c->arg[i].from);
    } else if (c->arg[i].from) {
        sema_note_name(c->s, c->at[i], c->site->loc);
    } else if (c->arg[i].held) {
        sema_note_cell(c->s, c->arg[i].held);
    }
    if (c->w)
        sema_note_weight(c->s, c->w);
    return false;
}

static bool dim_is(op_call *c, int i, int axis, const poly *n, const char *shape)
{
    const tensor_type *t = type_of(c, i);
    if (same(c, t->dim[axis], n))
        return true;
    weft_fail(c->s->dg, W0301, c->site->loc,
              "%s takes %s here, with %s on axis %d; its operand is %s", c->what, shape, text(c, n),
              axis, type_text(c->s, t));
    return false;
}

static const weight *from(const op_call *c, int i)
{
    return c->arg[i].kind == VAL_TENSOR ? c->arg[i].from : NULL;
}

static bool differ(op_call *c, int i, int j)
{
    if (j < i)
        return differ(c, j, i); /* in the order of the text */
    weft_fail(c->s->dg, W0301, c->site->loc, "operands of %s differ in shape: %s and %s", c->what,
              type_text(c->s, type_of(c, i)), type_text(c->s, type_of(c, j)));
    sema_note_weight(c->s, from(c, i));
    if (from(c, j) != from(c, i))
        sema_note_weight(c->s, from(c, j));
    return false;
}

/* ---- results ---- */

/* The result's last dimension; NULL, and a report, where there is no such number. */
static const poly *last_given(op_call *c, const poly *p)
{
    if (!p && poly_failure(c->s->pp) == POLY_OVERFLOW)
        weft_fail(c->s->dg, W0408, c->site->loc,
                  "the last dimension of %s does not fit 64 bits; its operand is %s", c->what,
                  type_text(c->s, type_of(c, 0)));
    else if (!p)
        sema_size(c->s, c->site, NULL);
    return p;
}

static tensor_type *give(op_call *c, int i, const tensor_type *like)
{
    tensor_type *t = ARENA_NEW(c->s->a, tensor_type);
    *t = *like;
    c->out->v[i] = (val){.kind = VAL_TENSOR, .tensor = t};
    if (c->out->n <= i)
        c->out->n = i + 1;
    return t;
}

static tensor_type *give_last(op_call *c, int i, const tensor_type *like, const poly *n)
{
    tensor_type *t = give(c, i, like);
    t->dim[t->rank - 1] = n;
    pairs_drop(t);
    return t;
}

/* ---- rules ---- */

static bool shape_unary(op_call *c)
{
    if (c->op->code == OP_clamp && !c->attr_at[0] && !c->attr_at[1]) {
        weft_fail(c->s->dg, W0208, c->site->loc, "clamp needs lo, hi or both");
        return false;
    }
    give(c, 0, type_of(c, 0))->ids = false;
    c->out->v[0].from = c->arg[0].from;
    return true;
}

/* Equal shapes; a constant with anything; a vector [n] against a last dimension n; [T] against rows;
 * a dimension of 1 against any. */
static bool broadcast(op_call *c, int i, int j, tensor_type *out)
{
    const tensor_type *a = type_of(c, i), *b = type_of(c, j);
    if (a->rank < b->rank)
        return broadcast(c, j, i, out);
    *out = *a;
    if (b->rank == 1 && a->rank > 1) {
        bool rows = b->dim[0] == c->s->T && same(c, a->dim[0], b->dim[0]);
        return same(c, last(a), b->dim[0]) || rows || poly_is(b->dim[0], 1) || differ(c, i, j);
    }
    if (a->rank != b->rank)
        return differ(c, i, j);
    for (int k = 0; k < a->rank; k++) {
        bool one_a = poly_is(a->dim[k], 1), one_b = poly_is(b->dim[k], 1);
        if (!one_a && !one_b && !same(c, a->dim[k], b->dim[k]))
            return differ(c, i, j);
        out->dim[k] = one_a ? b->dim[k] : a->dim[k];
    }
    bool stretched = !poly_is(last(out), 1) && (poly_is(last(a), 1) || poly_is(last(b), 1));
    const tensor_type *wide = poly_is(last(a), 1) ? b : a; /* whose order the pairs have */
    pairs_copy(out, wide);
    if (!stretched)
        pairs_join(c->s, out, b);
    return true;
}

static bool broadcast_from(op_call *c, int first)
{
    tensor_type out;
    int shaped = -1;
    for (int i = first; i < OP_OPERANDS_MAX && c->arg[i].kind != VAL_NONE; i++) {
        if (c->arg[i].kind != VAL_TENSOR)
            continue;
        if (shaped < 0) {
            out = *type_of(c, i);
        } else {
            if (!broadcast(c, shaped, i, &out))
                return false;
            tensor_type *kept = ARENA_NEW(c->s->a, tensor_type);
            *kept = out;
            c->arg[i].tensor = kept;
        }
        shaped = i;
    }
    if (shaped >= 0)
        give(c, 0, &out);
    return shaped >= 0;
}

static bool shape_binary(op_call *c)
{
    if (c->arg[0].kind != VAL_TENSOR && c->arg[1].kind != VAL_TENSOR)
        return false;
    c->arg[2].kind = VAL_NONE;
    return broadcast_from(c, 0);
}

static bool shape_select(op_call *c)
{
    c->arg[3].kind = VAL_NONE;
    return broadcast_from(c, 0);
}

static bool shape_divide(op_call *c)
{
    double by;
    if (const_number(c->arg[1], &by) && by == 0) {
        weft_fail(c->s->dg, W0409, c->site->loc, STR_FMT " divides by zero",
                  STR_ARG(ast_spelt(c->site)));
        return false;
    }
    if (c->arg[1].kind == VAL_VEC)
        val_as_tensor(c->s, &c->arg[1]);
    return shape_binary(c);
}

static bool shape_embed(op_call *c)
{
    const tensor_type *table = type_of(c, 0), *ids = type_of(c, 1);
    if (!rank_is(c, 0, 2, "a table [V, d]") || ids->rank + 1 > TENSOR_RANK_MAX)
        return false;
    tensor_type *t = give(c, 0, ids);
    t->ids = false;
    t->dim[t->rank++] = table->dim[1];
    pairs_drop(t);
    return true;
}

static bool shape_linear(op_call *c)
{
    const tensor_type *w = type_of(c, 1);
    if (!rank_is(c, 1, 2, "a matrix [m, n]") || !last_is(c, 0, w->dim[1]))
        return false;
    if (c->arg[2].kind == VAL_TENSOR &&
        (type_of(c, 2)->rank != 1 || !same(c, last(type_of(c, 2)), w->dim[0])))
        return differ(c, 1, 2);
    tensor_type *t = give_last(c, 0, type_of(c, 0), w->dim[0]);
    pairs_copy(t, w);
    t->paired = c->w;
    return true;
}

static bool shape_norm(op_call *c)
{
    const tensor_type *x = type_of(c, 0);
    for (int i = 1; i < 3; i++) {
        if (c->arg[i].kind != VAL_TENSOR)
            continue;
        const tensor_type *w = type_of(c, i);
        if (w->rank < 1 || w->rank > 2)
            return rank_is(c, i, 1, "a weight [n] or [H, n]");
        if (!last_is(c, 0, last(w)))
            return false;
        if (w->rank == 2 && (x->rank < 2 || !same(c, x->dim[x->rank - 2], w->dim[0])))
            return differ(c, 0, i);
    }
    give(c, 0, x);
    c->out->v[0].from = c->arg[0].from;
    return true;
}

static bool shape_rope(op_call *c)
{
    const tensor_type *x = type_of(c, 0);
    if (!rank_is(c, 0, 3, "[T, H, D]") || !rank_is(c, 1, 1, "[T]") ||
        !dim_is(c, 1, 0, x->dim[0], "positions [T]"))
        return false;
    tensor_type *t = give(c, 0, x);
    c->out->v[0].from = c->arg[0].from;
    return pairs_rope(c, x, t);
}

static bool shape_to_heads(op_call *c)
{
    const tensor_type *x = type_of(c, 0);
    if (x->rank < 1 || x->rank + 1 > TENSOR_RANK_MAX)
        return rank_is(c, 0, 2, "[.., H*D]");
    const poly *n = sema_narrowed(c->s, last(x)), *heads = sema_narrowed(c->s, c->arg[1].size);
    const poly *width = sema_quotient(c->s, n, heads);
    if (!width) {
        weft_fail(c->s->dg, W0305, c->site->loc, "to_heads: %s is not a multiple of %s", text(c, n),
                  text(c, heads));
        sema_note_weight(c->s, c->arg[0].from);
        const char *whole = text(c, n);
        if (strspn(whole, "abcdefghijklmnopqrstuvwxyz_") == strlen(whole) && !poly_is(heads, 0))
            weft_note(c->s->dg, "if it is in every model, say so: require %s %% %s == 0", whole,
                      text(c, heads));
        return false;
    }
    tensor_type *t = give(c, 0, x);
    t->dim[t->rank - 1] = heads;
    t->dim[t->rank++] = width;
    for (int o = 0; o < ORIGIN_COUNT; o++)
        if (t->run[o] && !same(c, t->run[o], width)) /* the runs do not line up with these heads */
            t->pairs[o] = PAIRS_NONE;
    c->out->v[0].from = c->arg[0].from;
    return true;
}

static bool shape_from_heads(op_call *c)
{
    const tensor_type *x = type_of(c, 0);
    if (x->rank < 2) {
        weft_fail(c->s->dg, W0310, c->site->loc,
                  "from_heads takes [.., H, D], but its operand is %s", type_text(c->s, x));
        return false;
    }
    const poly *n = last_given(c, poly_mul(c->s->pp, x->dim[x->rank - 2], last(x)));
    if (!n)
        return false;
    tensor_type *t = give(c, 0, x);
    t->rank--;
    t->dim[t->rank - 1] = n;
    pairs_drop(t);
    return true;
}

static bool shape_split(op_call *c)
{
    const tensor_type *x = type_of(c, 0);
    val sizes = c->arg[1];
    if (!sizes.known)
        return false;
    if (sizes.n < 1 || sizes.n > SEMA_RESULTS_MAX || x->rank < 1) {
        weft_fail(c->s->dg, W0304, c->site->loc, "split takes 1 to %d sizes and a tensor to cut",
                  SEMA_RESULTS_MAX);
        return false;
    }
    const poly *sum = poly_int(c->s->pp, 0);
    for (uint32_t i = 0; i < sizes.n; i++) {
        if (sizes.item[i].kind == VAL_UNKNOWN)
            return false;
        if (sizes.item[i].kind != VAL_INT) {
            weft_fail(c->s->dg, W0207, c->at[1]->loc, "a size must be an integer, not %s",
                      val_text(c->s, sizes.item[i]));
            return false;
        }
        sum = poly_add(c->s->pp, sum, sizes.item[i].size);
    }
    if (!sum || !same(c, sum, last(x))) {
        weft_fail(c->s->dg, W0304, c->site->loc,
                  "split sizes sum to %s, but the operand's last dimension is %s",
                  sum ? text(c, sum) : "too much", text(c, last(x)));
        sema_note_weight(c->s, c->arg[0].from);
        return false;
    }
    for (uint32_t i = 0; i < sizes.n; i++) {
        tensor_type *t = give(c, (int)i, x);
        t->dim[x->rank - 1] = sizes.item[i].size;
        pairs_split(c->s, x, i == 0, t);
        c->out->v[i].from = c->arg[0].from;
    }
    return true;
}

static bool shape_concat(op_call *c)
{
    const tensor_type *a = type_of(c, 0), *b = type_of(c, 1);
    bool fits = a->rank == b->rank && a->rank > 0;
    for (int i = 0; fits && i + 1 < a->rank; i++)
        fits = same(c, a->dim[i], b->dim[i]);
    if (!fits)
        return differ(c, 0, 1);
    const poly *n = last_given(c, poly_add(c->s->pp, last(a), last(b)));
    if (n)
        give_last(c, 0, a, n);
    return n != NULL;
}

/* ---- state ---- */

static bool rows_fit(op_call *c, int i, const char *which, int rank, const poly *heads,
                     const poly *width)
{
    const tensor_type *t = type_of(c, i);
    bool fits = t->rank == rank && same(c, last(t), width) &&
                (rank == 2 || same(c, t->dim[1], heads)) && same(c, t->dim[0], c->s->T);
    if (fits)
        return true;
    const char *wanted = rank == 2
                             ? text(c, width)
                             : arena_printf(c->s->a, "%s, %s", text(c, heads), text(c, width)).p;
    weft_fail(c->s->dg, W0602, c->site->loc,
              "append: %s is %s, but the cell " STR_FMT " takes [T, %s]", which, type_text(c->s, t),
              STR_ARG(c->arg[0].cell->name), wanted);
    sema_note_weight(c->s, c->arg[i].from);
    sema_note_cell(c->s, c->arg[0].cell);
    return false;
}

static bool shape_append(op_call *c)
{
    cell *cl = cell_operand(c, 0, CELL_kv_cache, CELL_latent_cache);
    if (!cl)
        return false;
    bool latent = cl->kind->code == CELL_latent_cache;
    cl->written = true; /* or meant to be: a mistake here is reported here */
    if (latent == (c->arg[2].kind == VAL_TENSOR)) {
        weft_fail(c->s->dg, W0602, c->site->loc,
                  latent ? "append: a latent_cache takes one row, not keys and values"
                         : "append: a kv_cache takes keys and values");
        return false;
    }
    const poly *a0 = cell_size(c, c->arg[0], 0), *a1 = cell_size(c, c->arg[0], 1),
               *a2 = cell_size(c, c->arg[0], 2);
    if (!a0 || !a1 || (!latent && !a2))
        return false;
    if (latent ? !rows_fit(c, 1, "the row", 2, NULL, a0)
               : !rows_fit(c, 1, "k", 3, a0, a1) || !rows_fit(c, 2, "v", 3, a0, a2))
        return false;
    const tensor_type *k = type_of(c, 1);
    for (int o = 0; o < ORIGIN_COUNT; o++) {
        cl->pairs[o] = latent ? PAIRS_NONE : k->pairs[o];
        cl->turned[o] = k->turned[o];
    }
    cl->tagged = true;
    cell_slot *slot = cell_slot_of(c->s, cl, c->arg[0].index);
    val v = c->arg[0];
    v.version = ++slot->version;
    slot->at = c->site->loc;
    c->out->v[0] = v;
    c->out->n = 1;
    return true;
}

/* Head counts that are plain numbers, or whose quotient is known to be impossible. */
static bool heads_fit(op_call *c, const poly *heads, const poly *cell_heads)
{
    int64_t h, k;
    if (!poly_value(heads, &h) || !poly_value(cell_heads, &k) || (k > 0 && h % k == 0))
        return true;
    weft_fail(c->s->dg, W0604, c->site->loc, "%s: %lld query heads cannot share %lld cached ones",
              c->what, (long long)h, (long long)k);
    return false;
}

static bool vector_fits(op_call *c, const char *attr, const poly *n)
{
    val v = *call_attr(c, attr);
    const weight *w = v.kind == VAL_WEIGHT ? v.weight : NULL;
    if (v.kind == VAL_NONE || v.kind == VAL_UNKNOWN || !val_as_tensor(c->s, &v))
        return true;
    if (v.tensor->rank == 1 && same(c, v.tensor->dim[0], n))
        return true;
    weft_fail(c->s->dg, W0301, c->site->loc, "%s: %s must be [%s], not %s", c->what, attr,
              text(c, n), type_text(c->s, v.tensor));
    sema_note_weight(c->s, w);
    sema_note_weight(c->s, from(c, 0));
    return false;
}

static bool shape_attend(op_call *c)
{
    const tensor_type *q = type_of(c, 0);
    if (!rank_is(c, 0, 3, "queries [T, H, Dk]"))
        return false;
    cell *cl = cell_operand(c, 1, CELL_kv_cache, CELL_latent_cache);
    if (!cl)
        return false;
    bool latent = cl->kind->code == CELL_latent_cache;
    const poly *heads = latent ? poly_int(c->s->pp, 1) : cell_size(c, c->arg[1], 0);
    const poly *k = cell_size(c, c->arg[1], latent ? 0 : 1),
               *v = cell_size(c, c->arg[1], latent ? 1 : 2);
    if (!heads || !k || !v)
        return false;
    if (!same(c, q->dim[2], k)) {
        weft_fail(c->s->dg, W0303, c->site->loc,
                  "%s: queries are %s wide, the keys in " STR_FMT " are %s", c->what,
                  text(c, q->dim[2]), STR_ARG(cl->name), text(c, k));
        sema_note_weight(c->s, c->arg[0].from);
        sema_note_cell(c->s, cl);
        return false;
    }
    if (!heads_fit(c, q->dim[1], heads))
        return false;
    if (c->op->code == OP_attend &&
        (!vector_fits(c, "sinks", q->dim[1]) || !vector_fits(c, "slopes", q->dim[1])))
        return false;
    if (cl->tagged && !latent && !pairs_agree(c, q, cl->pairs, cl->turned))
        return false;
    cl->read_at = cl->read ? cl->read_at : c->site->loc;
    cl->read = true;
    give_last(c, 0, q, v);
    c->out->v[0].held = cl;
    return true;
}

static bool shape_attend_all(op_call *c)
{
    const tensor_type *q = type_of(c, 0), *k = type_of(c, 1), *v = type_of(c, 2);
    for (int i = 0; i < 3; i++)
        if (!rank_is(c, i, 3, "[T, H, D]"))
            return false;
    if (!same(c, last(q), last(k))) {
        weft_fail(c->s->dg, W0303, c->site->loc, "%s: queries are %s wide, the keys %s", c->what,
                  text(c, last(q)), text(c, last(k)));
        return false;
    }
    if (!same(c, k->dim[1], v->dim[1]))
        return differ(c, 1, 2);
    if (!heads_fit(c, q->dim[1], k->dim[1]))
        return false;
    if (!pairs_agree(c, q, k->pairs, k->turned))
        return false;
    give_last(c, 0, q, last(v));
    return true;
}

/* ---- experts and heads ---- */

static bool shape_route(op_call *c)
{
    const tensor_type *x = type_of(c, 0);
    const val *k = call_attr(c, "k");
    c->out->n = 2;
    if (!rank_is(c, 0, 2, "logits [T, E]") || k->kind != VAL_INT)
        return false;
    if (!vector_fits(c, "select_bias", x->dim[1]))
        return false;
    int64_t n_k, n_e;
    if (poly_value(k->size, &n_k) && poly_value(x->dim[1], &n_e) && (n_k < 1 || n_k > n_e)) {
        weft_fail(c->s->dg, W0301, c->site->loc, "route: k is %lld, but there are %lld experts",
                  (long long)n_k, (long long)n_e);
        return false;
    }
    give_last(c, 0, x, k->size)->ids = true;
    give_last(c, 1, x, k->size);
    return true;
}

static bool shape_experts(op_call *c)
{
    const tensor_type *x = type_of(c, 0), *w = type_of(c, 1), *ids = type_of(c, 2);
    if (!rank_is(c, 1, 3, "weights [E, m, n]") || !rank_is(c, 2, 2, "ids [T, K]") ||
        !last_is(c, 0, w->dim[2]))
        return false;
    if (x->rank != 2 && x->rank != 3)
        return rank_is(c, 0, 2, "[T, n] or [T, K, n]");
    if (!same(c, x->dim[0], ids->dim[0]) || (x->rank == 3 && !same(c, x->dim[1], ids->dim[1])))
        return differ(c, 0, 2);
    tensor_type *t = give(c, 0, ids);
    t->ids = false;
    t->dim[t->rank++] = w->dim[1];
    return true;
}

static bool shape_combine(op_call *c)
{
    const tensor_type *y = type_of(c, 0), *w = type_of(c, 1);
    if (!rank_is(c, 0, 3, "[T, K, d]") || !rank_is(c, 1, 2, "weights [T, K]"))
        return false;
    if (!same(c, y->dim[0], w->dim[0]) || !same(c, y->dim[1], w->dim[1]))
        return differ(c, 0, 1);
    give_last(c, 0, w, y->dim[2]);
    c->out->v[0].from = c->arg[0].from;
    return true;
}

static bool shape_head_linear(op_call *c)
{
    const tensor_type *x = type_of(c, 0), *w = type_of(c, 1);
    if (!rank_is(c, 1, 3, "weights [H, m, n]") || !last_is(c, 0, w->dim[2]) ||
        !rank_is(c, 0, 3, "[T, H, n]"))
        return false;
    if (!same(c, x->dim[1], w->dim[0]))
        return differ(c, 0, 1);
    give_last(c, 0, x, w->dim[1]);
    return true;
}

static bool shape_delta(op_call *c)
{
    val site = c->arg[0];
    if (site.kind != VAL_WEIGHT || site.weight->kind->code != KIND_linear) {
        weft_fail(c->s->dg, W0207, c->site->loc, "delta takes a linear weight first, not %s",
                  val_text(c->s, site));
        return false;
    }
    tensor_type w = weight_stored(c->s, site.weight, site.index);
    *site.weight->used = true;
    if (!last_is(c, 1, w.dim[1]))
        return false;
    give_last(c, 0, type_of(c, 1), w.dim[0]);
    return true;
}

/* Nobody calls these: a pass inserts them, and graph_shape.c knows their shapes. */
static bool shape_lora_down(op_call *c)
{
    give(c, 0, type_of(c, 0));
    return true;
}

#define shape_lora_up shape_lora_down

/* ---- rows and sequences ---- */

static bool shape_take_rows(op_call *c)
{
    give(c, 0, type_of(c, 0))->dim[0] = type_of(c, 1)->dim[0];
    return true;
}

static bool shape_convert(op_call *c) /* the compiler inserts it behind these checks */
{
    (void)c;
    return false;
}

static bool shape_at_pos(op_call *c)
{
    if (!rank_is(c, 1, 1, "positions [T]"))
        return false;
    give(c, 0, type_of(c, 1))->ids = false;
    return true;
}

static bool shape_pool(op_call *c)
{
    if (!rank_is(c, 0, 2, "[T, d]"))
        return false;
    give(c, 0, type_of(c, 0))->dim[0] = c->s->S;
    return true;
}

/* The cell of a recurrent op; its size i must be n (NULL: anything). */
static bool state_cell(op_call *c, int at, cell_code kind, int i, const poly *n)
{
    cell *cl = cell_operand(c, at, kind, kind);
    if (!cl)
        return false;
    cl->written = cl->read = true;
    const poly *size = cell_size(c, c->arg[at], i);
    if (!n || !size || same(c, size, n))
        return true;
    str name = word_at(cl->kind->arguments, i);
    weft_fail(c->s->dg, W0602, c->site->loc,
              "%s: the cell " STR_FMT " has " STR_FMT " = %s, not %s", c->what, STR_ARG(cl->name),
              STR_ARG(name), text(c, size), text(c, n));
    sema_note_cell(c->s, cl);
    return false;
}

static bool shape_conv1d(op_call *c)
{
    const tensor_type *x = type_of(c, 0), *w = type_of(c, 1);
    if (!rank_is(c, 0, 2, "[T, c]") || !rank_is(c, 1, 2, "weights [c, k]") ||
        !last_is(c, 0, w->dim[0]))
        return false;
    give(c, 0, x);
    return state_cell(c, 3, CELL_shift_state, 1, x->dim[1]);
}

static bool shape_ssm_scan(op_call *c)
{
    static const struct {
        int rank;
        const char *shape;
    } takes[] = {
        {3, "x [T, H, P]"}, {2, "dt [T, H]"}, {1, "a [H]"}, {3, "b [T, G, N]"}, {3, "c [T, G, N]"}};
    for (int i = 0; i < 5; i++)
        if (!rank_is(c, i, takes[i].rank, takes[i].shape))
            return false;
    const tensor_type *x = type_of(c, 0);
    if (!same(c, x->dim[1], type_of(c, 1)->dim[1]))
        return differ(c, 0, 1);
    if (!same(c, x->dim[1], type_of(c, 2)->dim[0]))
        return differ(c, 0, 2);
    if (!types_equal(c->s, type_of(c, 3), type_of(c, 4)))
        return differ(c, 3, 4);
    give(c, 0, x);
    return state_cell(c, 5, CELL_matrix_state, 0, x->dim[1]);
}

static bool shape_recurrent(op_call *c)
{
    const tensor_type *q = type_of(c, 0), *v = type_of(c, 2);
    for (int i = 0; i < 3; i++)
        if (!rank_is(c, i, 3, "[T, H, D]"))
            return false;
    if (!types_equal(c->s, q, type_of(c, 1)))
        return differ(c, 0, 1);
    if (!same(c, q->dim[1], v->dim[1]))
        return differ(c, 0, 2);
    give(c, 0, v);
    return state_cell(c, (int)strlen(c->op->kinds) - 1, CELL_matrix_state, 0, q->dim[1]);
}

bool shape_apply(op_call *c)
{
    static bool (*const rule_of[OP_COUNT])(op_call *) = {
#define OP(name, tier, kinds, rule, ...) [OP_##name] = shape_##rule,
#define LIB(...)
#include "dsl/ops.def"
#undef OP
#undef LIB
    };
    int n = c->out->n;
    if (rule_of[c->op->code](c))
        return true;
    c->out->n = n > c->out->n ? n : c->out->n;
    for (int i = 0; i < c->out->n; i++)
        c->out->v[i] = val_unknown();
    return false;
}
