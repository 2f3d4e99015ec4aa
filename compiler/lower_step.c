/* lower_step.c - each operator's arguments, in the layout that kernels/kernels.def gives.
 *
 * One function per family of operators, found in a table at the end. */
#include "compiler/bucket_impl.h"
#include "compiler/plan_check.h"

#include <inttypes.h>

/* ---- the operators ---- */

static weft_status lower_embed(lower *lo, const gnode *n, plan_step *s)
{
    const gtype *table = lower_type_of(lo, n, 0), *ids = lower_type_of(lo, n, 1);
    int64_t d = table->dim[1];
    WEFT_TRY(lower_expect_rank(lo, n, 0, 2));
    WEFT_TRY(lower_use_in(lo, n, s, 0, 0, lo->layout == LAYOUT_ROWS8 ? READ_ROWS8 : READ_ROWS));
    WEFT_TRY(lower_use_in(lo, n, s, 1, 1, READ_F32));
    WEFT_TRY(lower_check_ids(lo, n, 1, table->dim[0]));
    lower_count_rows(lo, s, ids, lower_row_elems(ids));
    s->size.embed.width = d;
    s->size.embed.vocab = table->dim[0];
    s->cost.row_bytes += s->cost.call_bytes / table->dim[0] * s->per_row; /* one row of the table */
    s->cost.call_bytes = 0;
    return lower_expect_result(lo, n, s, 0, s->per_row * d);
}

static weft_status lower_linear(lower *lo, const gnode *n, plan_step *s)
{
    const gtype *x = lower_type_of(lo, n, 0), *w = lower_type_of(lo, n, 1);
    WEFT_TRY(lower_use_in(lo, n, s, 0, 0, READ_F32));
    WEFT_TRY(lower_use_in(lo, n, s, 1, 1, lo->layout == LAYOUT_ROWS8 ? READ_ROWS8 : READ_ROWS));
    WEFT_TRY(lower_use_in(lo, n, s, 2, 2, lower_vector_read(lo)));
    lower_count_rows(lo, s, x, lower_row_vectors(x));
    s->size.linear.out = w->dim[0];
    s->size.linear.in = w->dim[1];
    WEFT_TRY(lower_expect_rank(lo, n, 1, 2));
    WEFT_TRY(lower_expect(lo, n, "the last dimension", lower_last_dim(x), w->dim[1]));
    WEFT_TRY(lower_expect_weight(lo, n, 2, w->dim[0]));
    s->cost.row_flops = s->per_row * w->dim[0] * (2 * w->dim[1] + lower_is_given(n, 2));
    return lower_expect_result(lo, n, s, 0, s->per_row * w->dim[0]);
}

/* rms_norm, layer_norm: operands x, w, bias as the kernel has them. */
static weft_status lower_norm(lower *lo, const gnode *n, plan_step *s)
{
    const gtype *x = lower_type_of(lo, n, 0);
    bool layer = n->op == OP_layer_norm;
    int64_t w_rows = 1;
    WEFT_TRY(lower_use_in(lo, n, s, 0, 0, READ_F32));
    for (int i = 1; i < (layer ? 3 : 2); i++) {
        WEFT_TRY(lower_use_in(lo, n, s, i, i, lower_vector_read(lo)));
        if (lower_is_given(n, i) && lower_type_of(lo, n, i)->rank == 2)
            w_rows = lower_type_of(lo, n, i)->dim[0];
    }
    WEFT_TRY(lower_expect_weight(lo, n, 1, w_rows * lower_last_dim(x)));
    WEFT_TRY(lower_expect_weight(lo, n, 2, w_rows * lower_last_dim(x)));
    lower_count_rows(lo, s, x, 1);
    s->size.norm.vectors = lower_row_vectors(x);
    s->size.norm.width = lower_last_dim(x);
    s->size.norm.weight_rows = w_rows;
    s->scalar.norm.eps = lower_attr_float(n, "eps", 0);
    s->cost.row_flops = lower_row_elems(x) * (layer ? 5 : 3) +
                        lower_row_elems(x) * lower_is_given(n, 1) +
                        lower_row_elems(x) * lower_is_given(n, 2);
    return lower_expect_result(lo, n, s, 0, lower_row_elems(x));
}

static weft_status lower_rope(lower *lo, const gnode *n, plan_step *s)
{
    const gtype *x = lower_type_of(lo, n, 0);
    const gconst *table = &lo->g->consts.at[n->in[2].id];
    WEFT_TRY(lower_use_in(lo, n, s, 0, 0, READ_F32));
    WEFT_TRY(lower_use_in(lo, n, s, 1, 1, READ_F32));
    WEFT_TRY(lower_use_in(lo, n, s, 2, 2, READ_F32));
    lower_count_rows(lo, s, x, 1);
    s->size.rope.heads = lower_row_vectors(x);
    s->size.rope.width = lower_last_dim(x);
    s->size.rope.pairs = table->n;
    s->scalar.rope.factor = table->factor;
    s->choice.rope.order =
        lower_attr_is_given(n, "pairs") ? lower_attr_word(n, "pairs", 0) + 1 : x->pairs;
    s->cost.row_flops = table->n * (3 + 6 * lower_row_vectors(x));
    if (2 * table->n > s->size.rope.width)
        return weft_fail(lo->dg, W0302, n->loc,
                         "rope: the table has %" PRId64 " pairs, a head %" PRId64 " elements",
                         table->n, s->size.rope.width);
    if (s->choice.rope.order == 0)
        return weft_fail(lo->dg, W0311, n->loc, "rope: no pair order is known for its operand");
    WEFT_TRY(lower_expect_row(lo, n, s, lower_type_of(lo, n, 1), 1));
    return lower_expect_result(lo, n, s, 0, lower_row_elems(x));
}

/* One part; plan_make_ref makes a step for each that is read. */
static weft_status lower_split(lower *lo, const gnode *n, plan_step *s)
{
    const gtype *x = lower_type_of(lo, n, 0);
    int64_t first = 0;
    for (int i = 0; i < lo->part; i++)
        first += lower_last_dim(lower_result_type(lo, n, i));
    WEFT_TRY(lower_use_in(lo, n, s, 0, 0, READ_F32));
    lower_count_rows(lo, s, x, 1);
    s->size.split.vectors = lower_row_vectors(x);
    s->size.split.width = lower_last_dim(x);
    s->size.split.first = first;
    s->size.split.part = lower_last_dim(lower_result_type(lo, n, lo->part));
    s->cost.row_bytes =
        s->size.split.vectors * s->size.split.part * 4; /* of x only the part is read */
    if (first + s->size.split.part > s->size.split.width)
        return weft_fail(lo->dg, W0304, n->loc,
                         "split: its parts take %" PRId64 " elements of %" PRId64,
                         first + s->size.split.part, s->size.split.width);
    return lower_expect_result(lo, n, s, lo->part, s->size.split.vectors * s->size.split.part);
}

static weft_status lower_concat(lower *lo, const gnode *n, plan_step *s)
{
    const gtype *x = lower_type_of(lo, n, 0), *y = lower_type_of(lo, n, 1);
    WEFT_TRY(lower_use_in(lo, n, s, 0, 0, READ_F32));
    WEFT_TRY(lower_use_in(lo, n, s, 1, 1, READ_F32));
    lower_count_rows(lo, s, x, 1);
    s->size.concat.vectors = lower_row_vectors(x);
    s->size.concat.x_width = lower_last_dim(x);
    s->size.concat.y_width = lower_last_dim(y);
    WEFT_TRY(lower_expect_row(lo, n, s, y, s->size.concat.vectors * s->size.concat.y_width));
    return lower_expect_result(
        lo, n, s, 0, s->size.concat.vectors * (s->size.concat.x_width + s->size.concat.y_width));
}

static weft_status lower_append(lower *lo, const gnode *n, plan_step *s)
{
    WEFT_TRY(lower_use_in(lo, n, s, 0, 1, READ_F32));
    WEFT_TRY(lower_use_in(lo, n, s, 1, 2, READ_F32));
    WEFT_TRY(lower_use_cell(lo, n, s, 0));
    const plan_cell *c = &lo->cells.at[s->cell];
    s->rows = ROWS_T;
    WEFT_TRY(lower_expect_row(lo, n, s, lower_type_of(lo, n, 1), c->heads * c->k));
    if (c->latent || !lower_is_given(n, 2))
        WEFT_TRY(lower_expect(lo, n, "the number of operands", 2 + lower_is_given(n, 2),
                              2 + !c->latent));
    else
        WEFT_TRY(lower_expect_row(lo, n, s, lower_type_of(lo, n, 2), c->heads * c->v));
    lower_count_rows(lo, s, lower_type_of(lo, n, 1), 1);
    s->cost.row_bytes *= 2; /* read, and written to the cell */
    return WEFT_OK;
}

/* Of a token in the coarsest tier, where most of a long context is. */
static int64_t lower_token_bytes(const lower *lo, const plan_cell *c)
{
    kpolicy own = plan_cell_tiers(c, &lo->tiers);
    const kpolicy_tier *t = &own.tier[own.n_tier - 1];
    int64_t bits = c->k * kform_bits(t->key) + (c->latent ? 0 : c->v * kform_bits(t->value));
    return c->heads * bits / 8;
}

static weft_status lower_convert(lower *lo, const gnode *n, plan_step *s)
{
    WEFT_TRY(lower_use_cell(lo, n, s, 0));
    int64_t tier = lower_attr_int(n, "tier", 0);
    kpolicy own = plan_cell_tiers(&lo->cells.at[s->cell], &lo->tiers);
    if (tier < 1 || tier >= own.n_tier)
        return weft_fail(lo->dg, W0902, n->loc, "convert: the cell has no tier %" PRId64, tier);
    s->rows = ROWS_T;
    s->size.convert.tier = tier;
    return WEFT_OK;
}

static weft_status lower_attend(lower *lo, const gnode *n, plan_step *s)
{
    const gtype *q = lower_type_of(lo, n, 0);
    WEFT_TRY(lower_use_in(lo, n, s, 0, 0, READ_F32));
    WEFT_TRY(lower_use_attr(lo, n, s, 2, "sinks"));
    WEFT_TRY(lower_use_attr(lo, n, s, 3, "slopes"));
    WEFT_TRY(lower_use_cell(lo, n, s, 1));
    const plan_cell *c = &lo->cells.at[s->cell];
    int64_t heads = lower_row_vectors(q), window = lower_attr_int(n, "window", 0);
    int64_t chunk = lower_attr_int(n, "chunk", 0);
    s->rows = ROWS_T;
    WEFT_TRY(lower_expect_row(lo, n, s, q, heads * c->k));
    WEFT_TRY(
        lower_expect(lo, n, "query heads beyond whole groups of the cell's", heads % c->heads, 0));
    WEFT_TRY(lower_expect_vector(lo, n, "sinks", heads));
    WEFT_TRY(lower_expect_vector(lo, n, "slopes", heads));
    lower_count_rows(lo, s, q, 1);
    s->size.attend.heads = heads;
    s->size.attend.window = window > 0 ? window : 0;
    s->size.attend.chunk = chunk > 0 ? chunk : 0;
    s->scalar.attend.scale = lower_attr_float(n, "scale", 1);
    s->scalar.attend.softcap = lower_attr_float(n, "softcap", 0);
    s->cost.key_bytes = lower_token_bytes(lo, c);
    s->cost.key_flops = heads * (2 * c->k + 2 * c->v + 3 + 3 * lower_attr_is_given(n, "softcap") +
                                 2 * lower_attr_is_given(n, "slopes"));
    return lower_expect_result(lo, n, s, 0, heads * c->v);
}

/* How far operand t moves for one step along each axis of the result r: a vector stands on the last
 * axis or, when its length is one of the symbols, on the rows; an axis of 1 stretches. */
bool lower_strides(int64_t *stride, const gtype *t, const gtype *r)
{
    if (t->rank > r->rank || (t->rank != r->rank && t->rank != 1))
        return false;
    if (t->rank == 1 && r->rank > 1 && t->dim[0] < 0) {
        stride[0] = 1;
        return t->dim[0] == r->dim[0];
    }
    int64_t step = 1;
    for (int i = t->rank - 1, j = r->rank - 1; i >= 0; i--, j--) {
        if (t->dim[i] == 1)
            continue;
        if (t->dim[i] != r->dim[j])
            return false;
        stride[j] = step;
        step *= t->dim[i] < 0 ? 1 : t->dim[i]; /* a symbol is always the slowest axis */
    }
    return true;
}

/* Binary operators and select. */
static weft_status lower_elementwise(lower *lo, const gnode *n, plan_step *s)
{
    const gtype *r = lower_result_type(lo, n, 0);
    for (int i = 0; i < n->n_in; i++) {
        WEFT_TRY(lower_use_in(lo, n, s, i, i, READ_F32));
        if (n->in[i].kind != REF_NUMBER && !lower_strides(s->stride[i], lower_type_of(lo, n, i), r))
            return weft_fail(lo->dg, W0301, n->loc, "%s: operand %d does not fit its result",
                             op_row_of(n->op)->name, i + 1);
    }
    lower_count_rows(lo, s, r, 1);
    for (int i = 1; i < r->rank; i++)
        s->size.binary.dim[i - 1] = r->dim[i];
    s->choice.binary.rank = r->rank ? r->rank : 1;
    s->cost.row_flops = lower_row_elems(r);
    return WEFT_OK;
}

static weft_status lower_unary(lower *lo, const gnode *n, plan_step *s)
{
    const gtype *x = lower_type_of(lo, n, 0);
    WEFT_TRY(lower_use_in(lo, n, s, 0, 0, READ_F32));
    lower_count_rows(lo, s, x, 1);
    s->size.unary.elems = lower_row_elems(x);
    s->cost.row_flops = lower_row_elems(x);
    return lower_expect_result(lo, n, s, 0, lower_row_elems(x));
}

static weft_status lower_gelu(lower *lo, const gnode *n, plan_step *s)
{
    WEFT_TRY(lower_unary(lo, n, s));
    s->choice.gelu.form = lower_attr_word(n, "form", 0);
    return WEFT_OK;
}

static weft_status lower_clamp(lower *lo, const gnode *n, plan_step *s)
{
    WEFT_TRY(lower_unary(lo, n, s));
    s->scalar.clamp.lo = lower_attr_float(n, "lo", 0);
    s->scalar.clamp.hi = lower_attr_float(n, "hi", 0);
    s->choice.clamp.bounds =
        (lower_attr_is_given(n, "lo") ? 1 : 0) | (lower_attr_is_given(n, "hi") ? 2 : 0);
    return WEFT_OK;
}

static weft_status lower_softmax(lower *lo, const gnode *n, plan_step *s)
{
    const gtype *x = lower_type_of(lo, n, 0);
    WEFT_TRY(lower_use_in(lo, n, s, 0, 0, READ_F32));
    lower_count_rows(lo, s, x, 1);
    s->size.softmax.vectors = lower_row_vectors(x);
    s->size.softmax.width = lower_last_dim(x);
    s->cost.row_flops = 5 * lower_row_elems(x);
    return lower_expect_result(lo, n, s, 0, lower_row_elems(x));
}

static weft_status lower_take_rows(lower *lo, const gnode *n, plan_step *s)
{
    const gtype *x = lower_type_of(lo, n, 0);
    WEFT_TRY(lower_use_in(lo, n, s, 0, 0, READ_F32));
    if (lower_rows_of(x) != ROWS_T || lower_rows_of(lower_result_type(lo, n, 0)) != ROWS_R)
        return weft_fail(lo->dg, W0301, n->loc, "take_rows: turns [T, ..] into [R, ..] only");
    lower_count_rows(lo, s, lower_result_type(lo, n, 0), 1);
    s->size.take_rows.width = lower_row_elems(x);
    return lower_expect_result(lo, n, s, 0, lower_row_elems(x));
}

static weft_status lower_route(lower *lo, const gnode *n, plan_step *s)
{
    const gtype *x = lower_type_of(lo, n, 0);
    int64_t experts = lower_last_dim(x), k = lower_last_dim(lower_result_type(lo, n, 0));
    int64_t groups = lower_attr_int(n, "groups", 1), top = lower_attr_int(n, "top_groups", groups);
    WEFT_TRY(lower_use_in(lo, n, s, 0, 0, READ_F32));
    WEFT_TRY(lower_use_attr(lo, n, s, 1, "select_bias"));
    if (groups < 1 || experts % groups != 0)
        return weft_fail(lo->dg, W0305, n->loc,
                         "route: %" PRId64 " experts do not make %" PRId64 " equal groups", experts,
                         groups);
    if (top < 1 || top > groups || k > experts / groups * top)
        return weft_fail(lo->dg, W0301, n->loc,
                         "route: cannot choose %" PRId64 " experts from %" PRId64 " of %" PRId64
                         " groups of %" PRId64,
                         k, top, groups, experts / groups);
    lower_count_rows(lo, s, x, 1);
    s->size.route.experts = experts;
    s->size.route.slots = k;
    s->size.route.groups = groups;
    s->size.route.top_groups = top;
    s->scalar.route.scale = lower_attr_float(n, "scale", 1);
    s->choice.route.score = lower_attr_word(n, "score", 0);
    s->choice.route.renorm = (int32_t)lower_attr_int(n, "renorm", 0);
    s->choice.route.group_score = lower_attr_word(n, "group_score", 0);
    s->cost.row_flops = experts * (3 + k);
    WEFT_TRY(lower_expect_rank(lo, n, 0, 2));
    WEFT_TRY(lower_expect_vector(lo, n, "select_bias", experts));
    WEFT_TRY(lower_expect_result(lo, n, s, 0, k));
    return lower_expect_result(lo, n, s, 1, k);
}

/* What one row reads of a stack of matrices of which it uses `used`. */
static int64_t stack_bytes(const lower *lo, const plan_step *s, int i, int64_t used)
{
    if (s->in[i].space != SPACE_WEIGHT)
        return 0;
    return lower_weight_bytes(lo, s->in[i].id) / lo->weights.at[s->in[i].id].dim[0] * used;
}

static weft_status lower_experts(lower *lo, const gnode *n, plan_step *s)
{
    const gtype *x = lower_type_of(lo, n, 0), *w = lower_type_of(lo, n, 1),
                *ids = lower_type_of(lo, n, 2);
    int64_t slots = lower_last_dim(ids), out = w->dim[1], in = w->dim[2];
    WEFT_TRY(lower_use_in(lo, n, s, 0, 0, READ_F32));
    WEFT_TRY(lower_use_in(lo, n, s, 1, 1, lo->layout == LAYOUT_ROWS8 ? READ_TABLE8 : READ_TABLE));
    WEFT_TRY(lower_use_in(lo, n, s, 2, 2, READ_F32));
    WEFT_TRY(lower_use_in(lo, n, s, 3, 3, lower_vector_read(lo)));
    WEFT_TRY(lower_check_ids(lo, n, 2, w->dim[0]));
    lower_count_rows(lo, s, x, 1);
    s->size.experts.slots = slots;
    s->size.experts.out = out;
    s->size.experts.in = in;
    s->size.experts.x_vectors = x->rank == 3 ? slots : 1;
    s->size.experts.experts = w->dim[0];
    s->cost.call_bytes = 0;
    s->cost.row_bytes += stack_bytes(lo, s, 1, slots) + stack_bytes(lo, s, 3, slots);
    s->cost.row_flops = slots * out * (2 * in + lower_is_given(n, 3));
    WEFT_TRY(lower_expect_rank(lo, n, 1, 3));
    WEFT_TRY(lower_expect_row(lo, n, s, x, s->size.experts.x_vectors * in));
    WEFT_TRY(lower_expect_row(lo, n, s, ids, slots));
    WEFT_TRY(lower_expect_weight(lo, n, 3, w->dim[0] * out));
    return lower_expect_result(lo, n, s, 0, slots * out);
}

static weft_status lower_combine(lower *lo, const gnode *n, plan_step *s)
{
    const gtype *y = lower_type_of(lo, n, 0);
    WEFT_TRY(lower_use_in(lo, n, s, 0, 0, READ_F32));
    WEFT_TRY(lower_use_in(lo, n, s, 1, 1, READ_F32));
    lower_count_rows(lo, s, y, 1);
    s->size.combine.slots = y->dim[1];
    s->size.combine.width = y->dim[2];
    s->cost.row_flops = 2 * lower_row_elems(y);
    WEFT_TRY(lower_expect_rank(lo, n, 0, 3));
    WEFT_TRY(lower_expect_row(lo, n, s, lower_type_of(lo, n, 1), s->size.combine.slots));
    return lower_expect_result(lo, n, s, 0, s->size.combine.width);
}

static weft_status lower_head_linear(lower *lo, const gnode *n, plan_step *s)
{
    const gtype *x = lower_type_of(lo, n, 0), *w = lower_type_of(lo, n, 1);
    WEFT_TRY(lower_use_in(lo, n, s, 0, 0, READ_F32));
    WEFT_TRY(lower_use_in(lo, n, s, 1, 1, READ_TABLE));
    WEFT_TRY(lower_use_in(lo, n, s, 2, 2, lower_vector_read(lo)));
    lower_count_rows(lo, s, x, 1);
    s->size.head_linear.heads = w->dim[0];
    s->size.head_linear.out = w->dim[1];
    s->size.head_linear.in = w->dim[2];
    s->cost.call_bytes += stack_bytes(lo, s, 1, w->dim[0]);
    s->cost.row_flops = w->dim[0] * w->dim[1] * (2 * w->dim[2] + lower_is_given(n, 2));
    WEFT_TRY(lower_expect_rank(lo, n, 1, 3));
    WEFT_TRY(lower_expect_row(lo, n, s, x, w->dim[0] * w->dim[2]));
    WEFT_TRY(lower_expect_weight(lo, n, 2, w->dim[0] * w->dim[1]));
    return lower_expect_result(lo, n, s, 0, w->dim[0] * w->dim[1]);
}

static weft_status lower_at_pos(lower *lo, const gnode *n, plan_step *s)
{
    WEFT_TRY(lower_use_in(lo, n, s, 0, 0, READ_F32));
    WEFT_TRY(lower_use_in(lo, n, s, 1, 1, READ_F32));
    lower_count_rows(lo, s, lower_type_of(lo, n, 1), 1);
    s->size.at_pos.positions =
        lower_row_elems(lower_type_of(lo, n, 0)) * lower_rows_max(lo, lower_type_of(lo, n, 0));
    s->cost.call_bytes = 0;
    s->cost.row_bytes += 4; /* one element of v */
    return lower_expect_result(lo, n, s, 0, 1);
}

typedef weft_status lower_fn(lower *lo, const gnode *n, plan_step *s);

/* What an operator of the language is to kernels; one that is not here has no reference kernel either. */
static const struct {
    lower_fn *fn;
    kop op;
} lower_of[OP_COUNT] = {
#define ROW(op, fn) [OP_##op] = {lower_##fn, KOP_##op}
    ROW(embed, embed),     ROW(linear, linear),
    ROW(rms_norm, norm),   ROW(layer_norm, norm),
    ROW(rope, rope),       ROW(split, split),
    ROW(concat, concat),   ROW(append, append),
    ROW(attend, attend),   ROW(add, elementwise),
    ROW(sub, elementwise), ROW(mul, elementwise),
    ROW(div, elementwise), ROW(max, elementwise),
    ROW(min, elementwise), ROW(select, elementwise),
    ROW(neg, unary),       ROW(silu, unary),
    ROW(gelu, gelu),       ROW(tanh, unary),
    ROW(sigmoid, unary),   ROW(relu, unary),
    ROW(softplus, unary),  ROW(exp, unary),
    ROW(sqrt, unary),      ROW(clamp, clamp),
    ROW(softmax, softmax), ROW(take_rows, take_rows),
    ROW(route, route),     ROW(experts, experts),
    ROW(combine, combine), ROW(head_linear, head_linear),
    ROW(at_pos, at_pos),   ROW(lora_down, lora_down),
    ROW(lora_up, lora_up), ROW(convert, convert),
#undef ROW
};

kop lower_kop(op_code op)
{
    return lower_of[op].fn ? lower_of[op].op : KOP_COUNT;
}

/* Of these a row, to which pitch counts, is one vector; of all others it is a row of the call. */
static bool rows_are_vectors(op_code op)
{
    return op == OP_experts || op == OP_combine || op == OP_head_linear || op == OP_lora_down ||
           op == OP_lora_up;
}

static int64_t row_pitch(const gnode *n, const plan_step *s, const gtype *t)
{
    return 4 * (rows_are_vectors(n->op) ? lower_last_dim(t) : lower_row_elems(t) / s->per_row);
}

/* Bytes from row to row of activations, which have no gaps yet. */
static void set_pitches(lower *lo, const gnode *n, plan_step *s)
{
    for (int i = 0; i < s->n_in; i++)
        if (s->in[i].space == SPACE_ARENA) {
            int operand = n->op == OP_append ? i + 1 : i;
            s->pitch[i] = row_pitch(n, s, lower_type_of(lo, n, operand));
        }
    for (int i = 0; i < s->n_out; i++)
        s->out_pitch[i] = row_pitch(n, s, lower_result_type(lo, n, lo->part + i));
}

static bool weighs(const gnode *n)
{
    return kop_row_of(lower_of[n->op].op)->weight > 0;
}

/* The type that a kernel is chosen by. */
static dtype weight_type(const graph *g, const gnode *n)
{
    int at = kop_row_of(lower_of[n->op].op)->weight;
    if (at < 0 || n->in[at].kind != REF_WEIGHT)
        return DT_F32;
    const gweight *w = &g->weights.at[n->in[at].id];
    return w->computed ? DT_F32 : w->type == DT_MXFP4_HF ? DT_MXFP4 : w->type;
}

/* Has it whole groups of rows, none of them of two pieces? */
static bool has_groups(const gweight *w)
{
    bool whole = w->rank >= 2 && w->dim[w->rank - 2] % LAYOUT_GROUP == 0;
    for (int i = 0; i < w->n_piece && w->rank == 2; i++)
        whole = whole && w->piece[i].rows % LAYOUT_GROUP == 0;
    return whole;
}

/* Did the model file write prec(f32)? Nothing may then round what it multiplies, whatever its weights are. */
static bool asks_f32(const gnode *n)
{
    enum { PREC_F32 = 1 }; /* auto, f32: the order of the words in attrs.def */
    return weighs(n) && lower_attr_word(n, "prec", 0) == PREC_F32;
}

/* The layout of a weight that is multiplied. */
static klayout layout_of_product(const target *t, const graph *g, const gnode *n)
{
    const gweight *w = &g->weights.at[n->in[1].id];
    const backend *by = t->laid_for ? t->laid_for : t->be;
    kop op = lower_of[n->op].op;
    dtype type = weight_type(g, n);
    if (w->computed || !has_groups(w))
        return LAYOUT_STORED;
    klayout l = by->layout(by, op, type, asks_f32(n));
    bool reads = by == t->be || (t->be->reads && t->be->reads(t->be, op, type, l, asks_f32(n)));
    return reads ? l : LAYOUT_STORED;
}

static bool multiplies_weight(const gnode *n)
{
    return (n->op == OP_linear || n->op == OP_experts) && n->in[1].kind == REF_WEIGHT;
}

/* A table that is multiplied with as well lies as that wants it, where it can be looked up so: it is in memory once. */
static klayout layout_of_table(const target *t, const graph *g, const gnode *n)
{
    klayout l = LAYOUT_STORED;
    for (size_t i = 0; i < g->nodes.n && l == LAYOUT_STORED && n->in[0].kind == REF_WEIGHT; i++) {
        const gnode *other = &g->nodes.at[i];
        if (other->op == OP_linear && multiplies_weight(other) &&
            graph_weights_share(&g->weights.at[other->in[1].id], &g->weights.at[n->in[0].id]))
            l = layout_of_product(t, g, other);
    }
    if (l == LAYOUT_STORED)
        return l;
    const gweight *w = &g->weights.at[n->in[0].id];
    bool reads = t->be->reads && t->be->reads(t->be, KOP_embed, w->type, l, false);
    return reads ? l : LAYOUT_STORED;
}

klayout lower_layout(const target *t, const graph *g, const gnode *n)
{
    if (t->as_stored)
        return LAYOUT_STORED;
    if (n->op == OP_embed)
        return layout_of_table(t, g, n);
    return multiplies_weight(n) ? layout_of_product(t, g, n) : LAYOUT_STORED;
}

/* The most rows that a call gives it, by which its kernel is chosen: of a long prompt the last layers see but the
 * rows that were asked for. */
static int64_t rows_for_kernel(const lower *lo, const gnode *n)
{
    if (lo->t->deterministic)
        return 1;
    return lower_rows_of(lower_result_type(lo, n, lo->part)) == ROWS_R ? lo->n_out : lo->n_tok;
}

int32_t lower_kernel(lower *lo, const plan_kernel *k)
{
    size_t i = 0;
    while (i < lo->kernels.n && strcmp(lo->kernels.at[i].name, k->name) != 0)
        i++;
    if (i == lo->kernels.n)
        VEC_PUSH(&lo->kernels, *k);
    return (int32_t)i;
}

weft_status lower_step(lower *lo, const gnode *n, plan_step *s)
{
    const char *name = op_row_of(n->op)->name;
    if (!lower_of[n->op].fn)
        return weft_fail(lo->dg, W0901, n->loc, "%s: this program has no kernel for it", name);
    dtype type = weight_type(lo->g, n);
    lo->layout = lower_layout(lo->t, lo->g, n);
    s->prec_f32 = asks_f32(n);
    plan_kernel k;
    kernel_want want = {.op = lower_of[n->op].op,
                        .type = type,
                        .layout = lo->layout,
                        .rows = rows_for_kernel(lo, n),
                        .any_rows = lo->t->deterministic,
                        .exact = s->prec_f32};
    if (!lo->t->be->select(lo->t->be, &want, &k))
        return weft_fail(lo->dg, W0901, n->loc, "%s: there is no kernel for it with weights of %s",
                         name, dtype_row_of(type)->name);
    s->kernel = lower_kernel(lo, &k);
    WEFT_TRY(lower_of[n->op].fn(lo, n, s));
    set_pitches(lo, n, s);
    for (int i = 0; i < s->n_out; i++)
        s->cost.row_bytes += lower_row_elems(lower_result_type(lo, n, lo->part + i)) * 4;
    return WEFT_OK;
}

size_t lower_scratch(const lower *lo, const plan_step *s)
{
    return plan_step_scratch(lo->t->be, lower_kernel_of(lo, s), s, lo->cells.at, &lo->tiers);
}
