/* lower_step.c - each operator's arguments, in the layout that kernels/kernels.def gives.
 *
 * One function per family of operators, found in a table at the end. */
#include "compiler/lower_impl.h"

#include <inttypes.h>

/* ---- types and attributes ---- */

plan_rows lower_rows_of(const gtype *t)
{
    if (t->rank == 0 || t->dim[0] >= 0)
        return ROWS_FIXED;
    return t->dim[0] == GRAPH_T ? ROWS_T : t->dim[0] == GRAPH_R ? ROWS_R : ROWS_S;
}

int64_t lower_rows_max(const lower *lo, const gtype *t)
{
    switch (lower_rows_of(t)) {
    case ROWS_T:
        return lo->p->n_tok_max;
    case ROWS_R:
        return lo->p->n_out_max;
    case ROWS_S:
        return lo->p->n_seq_max;
    case ROWS_FIXED:
        break;
    }
    return t->rank == 0 ? 1 : t->dim[0];
}

int64_t lower_span(const gtype *t, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++)
        n *= t->dim[i];
    return n;
}

static int64_t last_dim(const gtype *t)
{
    return t->rank ? t->dim[t->rank - 1] : 1;
}

/* Elements, and vectors along the last axis, in one row of a call. */
static int64_t row_elems(const gtype *t)
{
    return t->rank ? lower_span(t, 1, t->rank) : 1;
}

static int64_t row_vectors(const gtype *t)
{
    return t->rank > 1 ? lower_span(t, 1, t->rank - 1) : 1;
}

static const gtype *type_of(const lower *lo, const gnode *n, int i)
{
    return graph_type(lo->g, n->in[i]);
}

static const gtype *result_type(const lower *lo, const gnode *n, int i)
{
    return &lo->g->values.at[n->first + i].type;
}

static bool is_given(const gnode *n, int i)
{
    return i < n->n_in && n->in[i].kind != REF_NONE;
}

/* name is one of the op's attributes in attrs.def. */
static const gattr *attr_of(const gnode *n, const char *name, const attr_row **out_row)
{
    int count, i = 0;
    const attr_row *rows = op_attrs(n->op, &count);
    while (i < count && strcmp(rows[i].name, name) != 0)
        i++;
    WEFT_ASSERT(i < count);
    if (out_row)
        *out_row = &rows[i];
    return &n->attr[i];
}

static bool attr_is_given(const gnode *n, const char *name)
{
    return attr_of(n, name, NULL)->kind != GATTR_NONE;
}

static int64_t attr_int(const gnode *n, const char *name, int64_t otherwise)
{
    const gattr *a = attr_of(n, name, NULL);
    return a->kind == GATTR_NONE ? otherwise : a->integer;
}

static double attr_float(const gnode *n, const char *name, double otherwise)
{
    const gattr *a = attr_of(n, name, NULL);
    if (a->kind == GATTR_INT)
        return (double)a->integer;
    return a->kind == GATTR_NONE ? otherwise : a->number;
}

/* The place of the word among those of attrs.def, which is how kernels.def counts too. */
static int attr_word(const gnode *n, const char *name, int otherwise)
{
    const attr_row *row;
    const gattr *a = attr_of(n, name, &row);
    if (a->kind == GATTR_NONE)
        return otherwise;
    int at = 0;
    for (const char *p = row->words; *p; at++) {
        size_t len = strcspn(p, " ");
        if (str_eq((str){p, len}, a->word))
            return at;
        p += len + strspn(p + len, " ");
    }
    return otherwise;
}

/* ---- operands ---- */

static void use_step(plan_step *s, int i, plan_operand o)
{
    WEFT_ASSERT(i < K_IN_MAX);
    s->in[i] = o;
    if (s->n_in <= i)
        s->n_in = i + 1;
}

static plan_operand place_const(lower *lo, int id)
{
    const gconst *c = &lo->g->consts.at[id];
    if (lo->const_at[id] < 0) {
        while (lo->consts.n % (PLAN_ALIGN / sizeof(float)))
            VEC_PUSH(&lo->consts, 0.0f);
        lo->const_at[id] = (int64_t)(lo->consts.n * sizeof(float));
        for (int64_t i = 0; i < c->n; i++)
            VEC_PUSH(&lo->consts, (float)c->data[i]);
    }
    return (plan_operand){.space = SPACE_CONST, .type = DT_F32, .offset = lo->const_at[id]};
}

static weft_status place_input(lower *lo, const gnode *n, int id, plan_operand *out)
{
    static const struct {
        const char *name;
        int64_t dim;
    } known[IO_COUNT] = {[IO_TOKENS] = {"tokens", GRAPH_T},
                         [IO_POS] = {"pos", GRAPH_T},
                         [IO_ROWS] = {"rows", GRAPH_R}};
    const ginput *in = &lo->g->inputs.at[id];
    for (int io = 0; io < IO_COUNT; io++) {
        if (!str_eqz(in->name, known[io].name) || in->type.rank != 1 ||
            in->type.dim[0] != known[io].dim)
            continue;
        *out = (plan_operand){.space = SPACE_IO, .type = DT_I32, .id = io};
        return WEFT_OK;
    }
    return weft_fail(lo->dg, W0901, n->loc,
                     "the reference executor gives tokens[T], pos[T] and rows[R], and no other "
                     "input '" STR_FMT "'",
                     STR_ARG(in->name));
}

static int64_t weight_bytes(const lower *lo, int32_t id)
{
    return (int64_t)lo->weights.at[id].bytes;
}

/* A value, const or number where a kernel expects rows of a weight is dense; it must be the same for
 * all rows of a call, and there is no table of addresses to it. */
static weft_status check_stand_in(lower *lo, const gnode *n, const plan_operand *o, const gtype *t,
                                  weight_form form)
{
    bool fixed = o->space == SPACE_CONST || lower_rows_of(t) == ROWS_FIXED;
    if (form == FORM_F32 || o->type == DT_I32 || (form == FORM_ROWS && fixed))
        return WEFT_OK;
    return weft_fail(lo->dg, W0901, n->loc, "%s: the reference kernel takes a stored weight here",
                     op_row_of(n->op)->name);
}

/* Operand i of the step: r, where a weight comes in this form. Counts what reading it whole costs,
 * but for a weight of FORM_TABLE, of which the op knows what it reads. */
static weft_status use(lower *lo, const gnode *n, plan_step *s, int i, gref r, weight_form form)
{
    plan_operand o = {SPACE_NONE, DT_F32, 0, 0};
    if (r.kind == REF_NUMBER) {
        s->f[i] = r.number;
    } else if (r.kind == REF_WEIGHT) {
        int32_t w;
        WEFT_TRY(lower_weight(lo, n, r.id, form, &w));
        o = (plan_operand){SPACE_WEIGHT, lo->weights.at[w].type, w, 0};
        s->pitch[i] = lo->weights.at[w].pitch;
        if (form != FORM_TABLE)
            s->cost.call_bytes += weight_bytes(lo, w);
    } else if (r.kind == REF_VALUE || r.kind == REF_INPUT || r.kind == REF_CONST) {
        const gtype *t = graph_type(lo->g, r);
        if (r.kind == REF_VALUE)
            o = lo->value[r.id];
        else if (r.kind == REF_CONST)
            o = place_const(lo, r.id);
        else
            WEFT_TRY(place_input(lo, n, r.id, &o));
        WEFT_ASSERT(o.space != SPACE_NONE);
        WEFT_TRY(check_stand_in(lo, n, &o, t, form));
        s->pitch[i] = last_dim(t) * 4;
        if (lower_rows_of(t) == ROWS_FIXED)
            s->cost.call_bytes += row_elems(t) * 4 * lower_rows_max(lo, t);
        else
            s->cost.row_bytes += row_elems(t) * 4;
    }
    use_step(s, i, o);
    return WEFT_OK;
}

static weft_status use_in(lower *lo, const gnode *n, plan_step *s, int i, int operand,
                          weight_form form)
{
    if (is_given(n, operand))
        return use(lo, n, s, i, n->in[operand], form);
    use_step(s, i, (plan_operand){SPACE_NONE, DT_F32, 0, 0});
    return WEFT_OK;
}

/* An attribute that is a vector. */
static weft_status use_attr(lower *lo, const gnode *n, plan_step *s, int i, const char *name)
{
    const gattr *a = attr_of(n, name, NULL);
    return use(lo, n, s, i, a->kind == GATTR_REF ? a->ref : (gref){.kind = REF_NONE}, FORM_F32);
}

/* The cell that operand i stands for. */
static weft_status use_cell(lower *lo, const gnode *n, plan_step *s, int i)
{
    int id = n->in[i].kind == REF_CELL ? n->in[i].id : type_of(lo, n, i)->cell;
    const gcell *c = &lo->g->cells.at[id];
    if (lo->cell_of[id] < 0) {
        plan_cell pc = {.name = arena_str(lo->a, c->name).p, .window = c->window};
        if (c->kind == CELL_kv_cache) {
            pc.heads = c->arg[0];
            pc.k = c->arg[1];
            pc.v = c->arg[2];
        } else if (c->kind == CELL_latent_cache) {
            pc.latent = true;
            pc.heads = 1;
            pc.k = c->arg[0];
            pc.v = c->arg[1];
        } else {
            int count;
            return weft_fail(lo->dg, W0901, c->loc,
                             "the reference executor has no cells of kind %s (" STR_FMT ")",
                             cell_rows(&count)[c->kind].name, STR_ARG(c->name));
        }
        if (pc.heads < 1 || pc.heads > DIM_MAX || pc.k < 1 || pc.k > DIM_MAX || pc.v < 1 ||
            pc.v > DIM_MAX || (pc.latent && pc.v > pc.k))
            return weft_fail(lo->dg, W0902, c->loc, "cell " STR_FMT " cannot have these sizes",
                             STR_ARG(c->name));
        lo->cell_of[id] = (int32_t)lo->cells.n;
        VEC_PUSH(&lo->cells, pc);
    }
    s->cell = lo->cell_of[id];
    return WEFT_OK;
}

/* The rows of a step whose n[0] counts rows of the call. */
static void count_rows(const lower *lo, plan_step *s, const gtype *t, int64_t per_row)
{
    s->rows = lower_rows_of(t);
    s->per_row = per_row;
    s->n[0] = lower_rows_max(lo, t) * per_row;
}

/* Ids that look a row up must be below n, or a kernel would read past its table. Tokens and positions
 * are checked at each call; a route's results are below its number of experts. */
static weft_status check_ids(lower *lo, const gnode *n, int operand, int64_t count)
{
    gref r = n->in[operand];
    if (r.kind == REF_INPUT) {
        str name = lo->g->inputs.at[r.id].name;
        int64_t *limit = str_eqz(name, "tokens") ? &lo->p->n_vocab
                         : str_eqz(name, "pos")  ? &lo->p->n_pos
                                                 : NULL;
        if (limit) {
            if (*limit == 0 || count < *limit)
                *limit = count;
            return WEFT_OK;
        }
    } else if (r.kind == REF_VALUE) {
        const gnode *from = &lo->g->nodes.at[lo->g->values.at[r.id].node];
        if (from->op == OP_route) {
            int64_t experts = last_dim(type_of(lo, from, 0));
            if (experts <= count)
                return WEFT_OK;
            return weft_fail(lo->dg, W0301, n->loc,
                             "%s: ids go up to %" PRId64 ", the weight has %" PRId64 " rows",
                             op_row_of(n->op)->name, experts - 1, count);
        }
    }
    return weft_fail(lo->dg, W0901, n->loc,
                     "%s: the reference executor takes ids from tokens, pos or route only",
                     op_row_of(n->op)->name);
}

/* A kernel trusts its sizes, so what the graph says about an operand or result must be what the
 * kernel will take it for. Shape rules see to that; a graph read from text may say anything. */
static weft_status expect(lower *lo, const gnode *n, const char *what, int64_t is, int64_t wants)
{
    if (is == wants)
        return WEFT_OK;
    return weft_fail(lo->dg, W0301, n->loc, "%s: %s is %" PRId64 ", expected %" PRId64,
                     op_row_of(n->op)->name, what, is, wants);
}

static weft_status expect_row(lower *lo, const gnode *n, const plan_step *s, const gtype *t,
                              int64_t elems)
{
    if (lower_rows_of(t) != s->rows)
        return weft_fail(lo->dg, W0301, n->loc, "%s: its operands and results differ in rows",
                         op_row_of(n->op)->name);
    return expect(lo, n, "the length of a row", row_elems(t), elems);
}

/* Result i, and the operands of the step that are one row per row. */
static weft_status expect_result(lower *lo, const gnode *n, const plan_step *s, int i,
                                 int64_t elems)
{
    return expect_row(lo, n, s, result_type(lo, n, i), elems);
}

static weft_status expect_rank(lower *lo, const gnode *n, int i, int rank)
{
    return expect(lo, n, "the number of dimensions of an operand", type_of(lo, n, i)->rank, rank);
}

/* An optional vector or stack of vectors: a bias, a norm's weight. */
static weft_status expect_weight(lower *lo, const gnode *n, int i, int64_t elems)
{
    if (!is_given(n, i))
        return WEFT_OK;
    const gtype *t = type_of(lo, n, i);
    return expect(lo, n, "the size of a weight", lower_span(t, 0, t->rank), elems);
}

static weft_status expect_vector(lower *lo, const gnode *n, const char *attr, int64_t elems)
{
    const gattr *a = attr_of(n, attr, NULL);
    if (a->kind != GATTR_REF)
        return WEFT_OK;
    const gtype *t = graph_type(lo->g, a->ref);
    return expect(lo, n, attr, lower_span(t, 0, t->rank), elems);
}

/* ---- the operators ---- */

static weft_status lower_embed(lower *lo, const gnode *n, plan_step *s)
{
    const gtype *table = type_of(lo, n, 0), *ids = type_of(lo, n, 1);
    int64_t d = table->dim[1];
    WEFT_TRY(expect_rank(lo, n, 0, 2));
    WEFT_TRY(use_in(lo, n, s, 0, 0, FORM_ROWS));
    WEFT_TRY(use_in(lo, n, s, 1, 1, FORM_F32));
    WEFT_TRY(check_ids(lo, n, 1, table->dim[0]));
    count_rows(lo, s, ids, row_elems(ids));
    s->n[1] = d;
    s->n[2] = table->dim[0];
    s->cost.row_bytes += s->cost.call_bytes / table->dim[0] * s->per_row; /* one row of the table */
    s->cost.call_bytes = 0;
    return expect_result(lo, n, s, 0, s->per_row * d);
}

static weft_status lower_linear(lower *lo, const gnode *n, plan_step *s)
{
    const gtype *x = type_of(lo, n, 0), *w = type_of(lo, n, 1);
    WEFT_TRY(use_in(lo, n, s, 0, 0, FORM_F32));
    WEFT_TRY(use_in(lo, n, s, 1, 1, FORM_ROWS));
    WEFT_TRY(use_in(lo, n, s, 2, 2, FORM_ROWS));
    count_rows(lo, s, x, row_vectors(x));
    s->n[1] = w->dim[0];
    s->n[2] = w->dim[1];
    WEFT_TRY(expect_rank(lo, n, 1, 2));
    WEFT_TRY(expect(lo, n, "the last dimension", last_dim(x), w->dim[1]));
    WEFT_TRY(expect_weight(lo, n, 2, w->dim[0]));
    s->cost.row_flops = s->per_row * w->dim[0] * (2 * w->dim[1] + is_given(n, 2));
    return expect_result(lo, n, s, 0, s->per_row * w->dim[0]);
}

/* rms_norm, layer_norm: operands x, w, bias as the kernel has them. */
static weft_status lower_norm(lower *lo, const gnode *n, plan_step *s)
{
    const gtype *x = type_of(lo, n, 0);
    bool layer = n->op == OP_layer_norm;
    int64_t w_rows = 1;
    WEFT_TRY(use_in(lo, n, s, 0, 0, FORM_F32));
    for (int i = 1; i < (layer ? 3 : 2); i++) {
        WEFT_TRY(use_in(lo, n, s, i, i, FORM_ROWS));
        if (is_given(n, i) && type_of(lo, n, i)->rank == 2)
            w_rows = type_of(lo, n, i)->dim[0];
    }
    WEFT_TRY(expect_weight(lo, n, 1, w_rows * last_dim(x)));
    WEFT_TRY(expect_weight(lo, n, 2, w_rows * last_dim(x)));
    count_rows(lo, s, x, 1);
    s->n[1] = row_vectors(x);
    s->n[2] = last_dim(x);
    s->n[3] = w_rows;
    s->f[0] = attr_float(n, "eps", 0);
    s->cost.row_flops = row_elems(x) * (layer ? 5 : 3) + row_elems(x) * is_given(n, 1) +
                        row_elems(x) * is_given(n, 2);
    return expect_result(lo, n, s, 0, row_elems(x));
}

static weft_status lower_rope(lower *lo, const gnode *n, plan_step *s)
{
    const gtype *x = type_of(lo, n, 0);
    const gconst *table = &lo->g->consts.at[n->in[2].id];
    WEFT_TRY(use_in(lo, n, s, 0, 0, FORM_F32));
    WEFT_TRY(use_in(lo, n, s, 1, 1, FORM_F32));
    WEFT_TRY(use_in(lo, n, s, 2, 2, FORM_F32));
    count_rows(lo, s, x, 1);
    s->n[1] = row_vectors(x);
    s->n[2] = last_dim(x);
    s->n[3] = table->n;
    s->f[0] = table->factor;
    s->word[0] = attr_is_given(n, "pairs") ? attr_word(n, "pairs", 0) + 1 : x->pairs;
    s->cost.row_flops = table->n * (3 + 6 * row_vectors(x));
    if (2 * table->n > s->n[2])
        return weft_fail(lo->dg, W0302, n->loc,
                         "rope: the table has %" PRId64 " pairs, a head %" PRId64 " elements",
                         table->n, s->n[2]);
    if (s->word[0] == 0)
        return weft_fail(lo->dg, W0311, n->loc, "rope: no pair order is known for its operand");
    WEFT_TRY(expect_row(lo, n, s, type_of(lo, n, 1), 1));
    return expect_result(lo, n, s, 0, row_elems(x));
}

/* One part; plan_make_ref makes a step for each that is read. */
static weft_status lower_split(lower *lo, const gnode *n, plan_step *s)
{
    const gtype *x = type_of(lo, n, 0);
    int64_t first = 0;
    for (int i = 0; i < lo->part; i++)
        first += last_dim(result_type(lo, n, i));
    WEFT_TRY(use_in(lo, n, s, 0, 0, FORM_F32));
    count_rows(lo, s, x, 1);
    s->n[1] = row_vectors(x);
    s->n[2] = last_dim(x);
    s->n[3] = first;
    s->n[4] = last_dim(result_type(lo, n, lo->part));
    s->cost.row_bytes = s->n[1] * s->n[4] * 4; /* of x only the part is read */
    if (first + s->n[4] > s->n[2])
        return weft_fail(lo->dg, W0304, n->loc,
                         "split: its parts take %" PRId64 " elements of %" PRId64, first + s->n[4],
                         s->n[2]);
    return expect_result(lo, n, s, lo->part, s->n[1] * s->n[4]);
}

static weft_status lower_concat(lower *lo, const gnode *n, plan_step *s)
{
    const gtype *x = type_of(lo, n, 0), *y = type_of(lo, n, 1);
    WEFT_TRY(use_in(lo, n, s, 0, 0, FORM_F32));
    WEFT_TRY(use_in(lo, n, s, 1, 1, FORM_F32));
    count_rows(lo, s, x, 1);
    s->n[1] = row_vectors(x);
    s->n[2] = last_dim(x);
    s->n[3] = last_dim(y);
    WEFT_TRY(expect_row(lo, n, s, y, s->n[1] * s->n[3]));
    return expect_result(lo, n, s, 0, s->n[1] * (s->n[2] + s->n[3]));
}

static weft_status lower_append(lower *lo, const gnode *n, plan_step *s)
{
    WEFT_TRY(use_in(lo, n, s, 0, 1, FORM_F32));
    WEFT_TRY(use_in(lo, n, s, 1, 2, FORM_F32));
    WEFT_TRY(use_cell(lo, n, s, 0));
    const plan_cell *c = &lo->cells.at[s->cell];
    s->rows = ROWS_T;
    WEFT_TRY(expect_row(lo, n, s, type_of(lo, n, 1), c->heads * c->k));
    if (c->latent || !is_given(n, 2))
        WEFT_TRY(expect(lo, n, "the number of operands", 2 + is_given(n, 2), 2 + !c->latent));
    else
        WEFT_TRY(expect_row(lo, n, s, type_of(lo, n, 2), c->heads * c->v));
    count_rows(lo, s, type_of(lo, n, 1), 1);
    s->cost.row_bytes *= 2; /* read, and written to the cell */
    return WEFT_OK;
}

static weft_status lower_attend(lower *lo, const gnode *n, plan_step *s)
{
    const gtype *q = type_of(lo, n, 0);
    WEFT_TRY(use_in(lo, n, s, 0, 0, FORM_F32));
    WEFT_TRY(use_attr(lo, n, s, 2, "sinks"));
    WEFT_TRY(use_attr(lo, n, s, 3, "slopes"));
    WEFT_TRY(use_cell(lo, n, s, 1));
    const plan_cell *c = &lo->cells.at[s->cell];
    int64_t heads = row_vectors(q), window = attr_int(n, "window", 0);
    int64_t chunk = attr_int(n, "chunk", 0);
    s->rows = ROWS_T;
    WEFT_TRY(expect_row(lo, n, s, q, heads * c->k));
    WEFT_TRY(expect(lo, n, "query heads beyond whole groups of the cell's", heads % c->heads, 0));
    WEFT_TRY(expect_vector(lo, n, "sinks", heads));
    WEFT_TRY(expect_vector(lo, n, "slopes", heads));
    count_rows(lo, s, q, 1);
    s->n[1] = heads;
    s->n[2] = window > 0 ? window : 0;
    s->n[3] = chunk > 0 ? chunk : 0;
    s->f[0] = attr_float(n, "scale", 1);
    s->f[1] = attr_float(n, "softcap", 0);
    s->cost.key_bytes = (c->latent ? c->k : c->heads * (c->k + c->v)) * 4;
    s->cost.key_flops = heads * (2 * c->k + 2 * c->v + 3 + 3 * attr_is_given(n, "softcap") +
                                 2 * attr_is_given(n, "slopes"));
    return expect_result(lo, n, s, 0, heads * c->v);
}

/* How far operand t moves for one step along each axis of the result r: a vector stands on the last
 * axis or, when its length is one of the symbols, on the rows; an axis of 1 stretches. */
static bool set_strides(int64_t *stride, const gtype *t, const gtype *r)
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
    const gtype *r = result_type(lo, n, 0);
    for (int i = 0; i < n->n_in; i++) {
        WEFT_TRY(use_in(lo, n, s, i, i, FORM_F32));
        if (n->in[i].kind != REF_NUMBER && !set_strides(s->stride[i], type_of(lo, n, i), r))
            return weft_fail(lo->dg, W0301, n->loc, "%s: operand %d does not fit its result",
                             op_row_of(n->op)->name, i + 1);
    }
    count_rows(lo, s, r, 1);
    for (int i = 1; i < r->rank; i++)
        s->n[i] = r->dim[i];
    s->word[0] = r->rank ? r->rank : 1;
    s->cost.row_flops = row_elems(r);
    return WEFT_OK;
}

static weft_status lower_unary(lower *lo, const gnode *n, plan_step *s)
{
    const gtype *x = type_of(lo, n, 0);
    WEFT_TRY(use_in(lo, n, s, 0, 0, FORM_F32));
    count_rows(lo, s, x, 1);
    s->n[1] = row_elems(x);
    s->cost.row_flops = row_elems(x);
    return expect_result(lo, n, s, 0, row_elems(x));
}

static weft_status lower_gelu(lower *lo, const gnode *n, plan_step *s)
{
    WEFT_TRY(lower_unary(lo, n, s));
    s->word[0] = attr_word(n, "form", 0);
    return WEFT_OK;
}

static weft_status lower_clamp(lower *lo, const gnode *n, plan_step *s)
{
    WEFT_TRY(lower_unary(lo, n, s));
    s->f[0] = attr_float(n, "lo", 0);
    s->f[1] = attr_float(n, "hi", 0);
    s->word[0] = (attr_is_given(n, "lo") ? 1 : 0) | (attr_is_given(n, "hi") ? 2 : 0);
    return WEFT_OK;
}

static weft_status lower_softmax(lower *lo, const gnode *n, plan_step *s)
{
    const gtype *x = type_of(lo, n, 0);
    WEFT_TRY(use_in(lo, n, s, 0, 0, FORM_F32));
    count_rows(lo, s, x, 1);
    s->n[1] = row_vectors(x);
    s->n[2] = last_dim(x);
    s->cost.row_flops = 5 * row_elems(x);
    return expect_result(lo, n, s, 0, row_elems(x));
}

static weft_status lower_take_rows(lower *lo, const gnode *n, plan_step *s)
{
    const gtype *x = type_of(lo, n, 0);
    WEFT_TRY(use_in(lo, n, s, 0, 0, FORM_F32));
    if (lower_rows_of(x) != ROWS_T || lower_rows_of(result_type(lo, n, 0)) != ROWS_R)
        return weft_fail(lo->dg, W0301, n->loc, "take_rows: turns [T, ..] into [R, ..] only");
    count_rows(lo, s, result_type(lo, n, 0), 1);
    s->n[1] = row_elems(x);
    return expect_result(lo, n, s, 0, row_elems(x));
}

static weft_status lower_route(lower *lo, const gnode *n, plan_step *s)
{
    const gtype *x = type_of(lo, n, 0);
    int64_t experts = last_dim(x), k = last_dim(result_type(lo, n, 0));
    int64_t groups = attr_int(n, "groups", 1), top = attr_int(n, "top_groups", groups);
    WEFT_TRY(use_in(lo, n, s, 0, 0, FORM_F32));
    WEFT_TRY(use_attr(lo, n, s, 1, "select_bias"));
    if (groups < 1 || experts % groups != 0)
        return weft_fail(lo->dg, W0305, n->loc,
                         "route: %" PRId64 " experts do not make %" PRId64 " equal groups", experts,
                         groups);
    if (top < 1 || top > groups || k > experts / groups * top)
        return weft_fail(lo->dg, W0301, n->loc,
                         "route: cannot choose %" PRId64 " experts from %" PRId64 " of %" PRId64
                         " groups of %" PRId64,
                         k, top, groups, experts / groups);
    count_rows(lo, s, x, 1);
    s->n[1] = experts;
    s->n[2] = k;
    s->n[3] = groups;
    s->n[4] = top;
    s->f[0] = attr_float(n, "scale", 1);
    s->word[0] = attr_word(n, "score", 0);
    s->word[1] = (int32_t)attr_int(n, "renorm", 0);
    s->word[2] = attr_word(n, "group_score", 0);
    s->cost.row_flops = experts * (3 + k);
    WEFT_TRY(expect_rank(lo, n, 0, 2));
    WEFT_TRY(expect_vector(lo, n, "select_bias", experts));
    WEFT_TRY(expect_result(lo, n, s, 0, k));
    return expect_result(lo, n, s, 1, k);
}

/* What one row reads of a stack of matrices of which it uses `used`. */
static int64_t stack_bytes(const lower *lo, const plan_step *s, int i, int64_t used)
{
    if (s->in[i].space != SPACE_WEIGHT)
        return 0;
    return weight_bytes(lo, s->in[i].id) / lo->weights.at[s->in[i].id].dim[0] * used;
}

static weft_status lower_experts(lower *lo, const gnode *n, plan_step *s)
{
    const gtype *x = type_of(lo, n, 0), *w = type_of(lo, n, 1), *ids = type_of(lo, n, 2);
    WEFT_TRY(use_in(lo, n, s, 0, 0, FORM_F32));
    WEFT_TRY(use_in(lo, n, s, 1, 1, FORM_TABLE));
    WEFT_TRY(use_in(lo, n, s, 2, 2, FORM_F32));
    WEFT_TRY(use_in(lo, n, s, 3, 3, FORM_ROWS));
    WEFT_TRY(check_ids(lo, n, 2, w->dim[0]));
    count_rows(lo, s, x, 1);
    s->n[1] = last_dim(ids);
    s->n[2] = w->dim[1];
    s->n[3] = w->dim[2];
    s->n[4] = x->rank == 3;
    s->n[5] = w->dim[0];
    s->cost.call_bytes = 0;
    s->cost.row_bytes += stack_bytes(lo, s, 1, s->n[1]) + stack_bytes(lo, s, 3, s->n[1]);
    s->cost.row_flops = s->n[1] * s->n[2] * (2 * s->n[3] + is_given(n, 3));
    WEFT_TRY(expect_rank(lo, n, 1, 3));
    WEFT_TRY(expect_row(lo, n, s, x, (s->n[4] ? s->n[1] : 1) * s->n[3]));
    WEFT_TRY(expect_row(lo, n, s, ids, s->n[1]));
    WEFT_TRY(expect_weight(lo, n, 3, w->dim[0] * w->dim[1]));
    return expect_result(lo, n, s, 0, s->n[1] * s->n[2]);
}

static weft_status lower_combine(lower *lo, const gnode *n, plan_step *s)
{
    const gtype *y = type_of(lo, n, 0);
    WEFT_TRY(use_in(lo, n, s, 0, 0, FORM_F32));
    WEFT_TRY(use_in(lo, n, s, 1, 1, FORM_F32));
    count_rows(lo, s, y, 1);
    s->n[1] = y->dim[1];
    s->n[2] = y->dim[2];
    s->cost.row_flops = 2 * row_elems(y);
    WEFT_TRY(expect_rank(lo, n, 0, 3));
    WEFT_TRY(expect_row(lo, n, s, type_of(lo, n, 1), s->n[1]));
    return expect_result(lo, n, s, 0, s->n[2]);
}

static weft_status lower_head_linear(lower *lo, const gnode *n, plan_step *s)
{
    const gtype *x = type_of(lo, n, 0), *w = type_of(lo, n, 1);
    WEFT_TRY(use_in(lo, n, s, 0, 0, FORM_F32));
    WEFT_TRY(use_in(lo, n, s, 1, 1, FORM_TABLE));
    WEFT_TRY(use_in(lo, n, s, 2, 2, FORM_ROWS));
    count_rows(lo, s, x, 1);
    s->n[1] = w->dim[0];
    s->n[2] = w->dim[1];
    s->n[3] = w->dim[2];
    s->cost.call_bytes += stack_bytes(lo, s, 1, w->dim[0]);
    s->cost.row_flops = w->dim[0] * w->dim[1] * (2 * w->dim[2] + is_given(n, 2));
    WEFT_TRY(expect_rank(lo, n, 1, 3));
    WEFT_TRY(expect_row(lo, n, s, x, w->dim[0] * w->dim[2]));
    WEFT_TRY(expect_weight(lo, n, 2, w->dim[0] * w->dim[1]));
    return expect_result(lo, n, s, 0, w->dim[0] * w->dim[1]);
}

static weft_status lower_at_pos(lower *lo, const gnode *n, plan_step *s)
{
    WEFT_TRY(use_in(lo, n, s, 0, 0, FORM_F32));
    WEFT_TRY(use_in(lo, n, s, 1, 1, FORM_F32));
    count_rows(lo, s, type_of(lo, n, 1), 1);
    s->n[1] = row_elems(type_of(lo, n, 0)) * lower_rows_max(lo, type_of(lo, n, 0));
    s->cost.call_bytes = 0;
    s->cost.row_bytes += 4; /* one element of v */
    return expect_result(lo, n, s, 0, 1);
}

typedef weft_status lower_fn(lower *lo, const gnode *n, plan_step *s);

/* An op that is not here has no reference kernel either. */
static lower_fn *const lower_of[OP_COUNT] = {
    [OP_embed] = lower_embed,     [OP_linear] = lower_linear,
    [OP_rms_norm] = lower_norm,   [OP_layer_norm] = lower_norm,
    [OP_rope] = lower_rope,       [OP_split] = lower_split,
    [OP_concat] = lower_concat,   [OP_append] = lower_append,
    [OP_attend] = lower_attend,   [OP_add] = lower_elementwise,
    [OP_sub] = lower_elementwise, [OP_mul] = lower_elementwise,
    [OP_div] = lower_elementwise, [OP_max] = lower_elementwise,
    [OP_min] = lower_elementwise, [OP_select] = lower_elementwise,
    [OP_neg] = lower_unary,       [OP_silu] = lower_unary,
    [OP_gelu] = lower_gelu,       [OP_tanh] = lower_unary,
    [OP_sigmoid] = lower_unary,   [OP_relu] = lower_unary,
    [OP_softplus] = lower_unary,  [OP_exp] = lower_unary,
    [OP_sqrt] = lower_unary,      [OP_clamp] = lower_clamp,
    [OP_softmax] = lower_softmax, [OP_take_rows] = lower_take_rows,
    [OP_route] = lower_route,     [OP_experts] = lower_experts,
    [OP_combine] = lower_combine, [OP_head_linear] = lower_head_linear,
    [OP_at_pos] = lower_at_pos,
};

weft_status lower_step(lower *lo, const gnode *n, plan_step *s)
{
    const char *op = op_row_of(n->op)->name;
    const kernel_row *row = kernel_find(op, "ref");
    if (!row || !lower_of[n->op])
        return weft_fail(lo->dg, W0901, n->loc, "%s: there is no reference kernel for it", op);
    s->kernel = kernel_index(row);
    s->op = (int32_t)n->op;
    WEFT_TRY(lower_of[n->op](lo, n, s));
    for (int i = 0; i < s->n_out; i++)
        s->cost.row_bytes += row_elems(result_type(lo, n, lo->part + i)) * 4;
    return WEFT_OK;
}
