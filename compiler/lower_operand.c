/* lower_operand.c - what a kernel's arguments are made of: types, attributes, operands, and the checks that a
 * graph says of them what the kernel will take them for. */
#include "compiler/lower_impl.h"
#include "compiler/plan_cells.h"

#include "runtime/base/intmath.h"
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
        return lo->n_tok;
    case ROWS_R:
        return lo->n_out;
    case ROWS_S:
        return lo->n_seq;
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

int64_t lower_last_dim(const gtype *t)
{
    return t->rank ? t->dim[t->rank - 1] : 1;
}

/* Elements, and vectors along the last axis, in one row of a call. */
int64_t lower_row_elems(const gtype *t)
{
    return t->rank ? lower_span(t, 1, t->rank) : 1;
}

int64_t lower_row_vectors(const gtype *t)
{
    return t->rank > 1 ? lower_span(t, 1, t->rank - 1) : 1;
}

const gtype *lower_type_of(const lower *lo, const gnode *n, int i)
{
    return graph_type(lo->g, n->in[i]);
}

const gtype *lower_result_type(const lower *lo, const gnode *n, int i)
{
    return &lo->g->values.at[n->first + i].type;
}

bool lower_is_given(const gnode *n, int i)
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

bool lower_attr_is_given(const gnode *n, const char *name)
{
    return attr_of(n, name, NULL)->kind != GATTR_NONE;
}

int64_t lower_attr_int(const gnode *n, const char *name, int64_t otherwise)
{
    const gattr *a = attr_of(n, name, NULL);
    return a->kind == GATTR_NONE ? otherwise : a->integer;
}

double lower_attr_float(const gnode *n, const char *name, double otherwise)
{
    const gattr *a = attr_of(n, name, NULL);
    if (a->kind == GATTR_INT)
        return (double)a->integer;
    return a->kind == GATTR_NONE ? otherwise : a->number;
}

/* The place of the word among those of attrs.def, which is how kernels.def counts too. */
int lower_attr_word(const gnode *n, const char *name, int otherwise)
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

bool lower_input_is_handed(const ginput *in)
{
    return str_starts(in->name, STR(LOWER_HANDED));
}

/* With room for the rows of any call. */
static int64_t input_bytes(const plan *p, const gtype *t)
{
    const int64_t rows[] = {p->n_tok_max, p->n_out_max, p->n_seq_max, t->rank ? t->dim[0] : 1};
    int64_t bytes = rows[lower_rows_of(t)] * lower_row_elems(t) * 4;
    return i64_ceil_div(bytes, PLAN_ALIGN) * PLAN_ALIGN;
}

int64_t lower_input_offset(const graph *g, const plan *p, int id)
{
    int64_t at = 0;
    for (int i = 0; i < id; i++)
        if (lower_input_is_handed(&g->inputs.at[i]))
            at += input_bytes(p, &g->inputs.at[i].type);
    return at;
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
    if (lower_input_is_handed(in)) { /* the stages make a place in the arena of it */
        *out = (plan_operand){.space = SPACE_IO,
                              .type = DT_F32,
                              .id = IO_COUNT,
                              .offset = lower_input_offset(lo->g, lo->p, id)};
        return WEFT_OK;
    }
    for (int io = 0; io < IO_COUNT; io++) {
        if (!str_eqz(in->name, known[io].name) || in->type.rank != 1 ||
            in->type.dim[0] != known[io].dim)
            continue;
        *out = (plan_operand){.space = SPACE_IO, .type = DT_I32, .id = io};
        return WEFT_OK;
    }
    return weft_fail(lo->dg, W0901, n->loc,
                     "an executor gives tokens[T], pos[T] and rows[R], and no other "
                     "input '" STR_FMT "'",
                     STR_ARG(in->name));
}

int64_t lower_weight_bytes(const lower *lo, int32_t id)
{
    return (int64_t)lo->weights.at[id].bytes;
}

/* A value, const or number where a kernel expects rows of a weight is dense; it must be the same for
 * all rows of a call, and there is no table of addresses to it. */
static weft_status check_stand_in(lower *lo, const gnode *n, const plan_operand *o, const gtype *t,
                                  weight_read read)
{
    bool fixed = o->space == SPACE_CONST || lower_rows_of(t) == ROWS_FIXED;
    if (read == READ_F32 || o->type == DT_I32 || (read == READ_ROWS && fixed))
        return WEFT_OK;
    return weft_fail(lo->dg, W0901, n->loc, "%s: the reference kernel takes a stored weight here",
                     op_row_of(n->op)->name);
}

/* Operand i of the step: r, where a weight comes in this form. Counts what reading it whole costs,
 * but for a weight of READ_TABLE, of which the op knows what it reads. */
weft_status lower_use(lower *lo, const gnode *n, plan_step *s, int i, gref r, weight_read read)
{
    plan_operand o = {SPACE_NONE, DT_F32, 0, 0};
    if (r.kind == REF_NUMBER) {
        s->f[i] = r.number;
    } else if (r.kind == REF_WEIGHT) {
        int32_t w;
        WEFT_TRY(lower_weight(lo, n, r.id, read, &w));
        o = (plan_operand){SPACE_WEIGHT, lo->weights.at[w].type, w, 0};
        s->pitch[i] = lo->weights.at[w].pitch;
        if (read != READ_TABLE)
            s->cost.call_bytes += lower_weight_bytes(lo, w);
    } else if (r.kind == REF_VALUE || r.kind == REF_INPUT || r.kind == REF_CONST) {
        const gtype *t = graph_type(lo->g, r);
        if (r.kind == REF_VALUE)
            o = lo->value[r.id];
        else if (r.kind == REF_CONST)
            o = place_const(lo, r.id);
        else
            WEFT_TRY(place_input(lo, n, r.id, &o));
        WEFT_ASSERT(o.space != SPACE_NONE);
        WEFT_TRY(check_stand_in(lo, n, &o, t, read));
        s->pitch[i] =
            (r.kind == REF_INPUT && t->ids ? 1 : lower_last_dim(t)) * 4; /* lower_step knows rows */
        if (lower_rows_of(t) == ROWS_FIXED)
            s->cost.call_bytes += lower_row_elems(t) * 4 * lower_rows_max(lo, t);
        else
            s->cost.row_bytes += lower_row_elems(t) * 4;
    }
    use_step(s, i, o);
    return WEFT_OK;
}

weft_status lower_use_in(lower *lo, const gnode *n, plan_step *s, int i, int operand,
                         weight_read read)
{
    if (lower_is_given(n, operand))
        return lower_use(lo, n, s, i, n->in[operand], read);
    use_step(s, i, (plan_operand){SPACE_NONE, DT_F32, 0, 0});
    return WEFT_OK;
}

/* An attribute that is a vector. */
weft_status lower_use_attr(lower *lo, const gnode *n, plan_step *s, int i, const char *name)
{
    const gattr *a = attr_of(n, name, NULL);
    return lower_use(lo, n, s, i, a->kind == GATTR_REF ? a->ref : (gref){.kind = REF_NONE},
                     READ_F32);
}

/* The cell that operand i stands for. */
weft_status lower_use_cell(lower *lo, const gnode *n, plan_step *s, int i)
{
    int id = n->in[i].kind == REF_CELL ? n->in[i].id : lower_type_of(lo, n, i)->cell;
    const gcell *c = &lo->g->cells.at[id];
    if (lo->cell_of[id] < 0) {
        if (!cell_grows(c)) {
            int count;
            return weft_fail(lo->dg, W0901, c->loc,
                             "no executor has cells of kind %s (" STR_FMT ")",
                             cell_rows(&count)[c->kind].name, STR_ARG(c->name));
        }
        plan_cell pc = plan_cell_of(c);
        pc.name = arena_str(lo->a, c->name).p;
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
void lower_count_rows(const lower *lo, plan_step *s, const gtype *t, int64_t per_row)
{
    s->rows = lower_rows_of(t);
    s->per_row = per_row;
    s->n[0] = lower_rows_max(lo, t) * per_row;
}

/* Ids that look a row up must be below n, or a kernel would read past its table. Tokens and positions
 * are checked at each call; a route's results are below its number of experts. */
weft_status lower_check_ids(lower *lo, const gnode *n, int operand, int64_t count)
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
            int64_t experts = lower_last_dim(lower_type_of(lo, from, 0));
            if (experts <= count)
                return WEFT_OK;
            return weft_fail(lo->dg, W0301, n->loc,
                             "%s: ids go up to %" PRId64 ", the weight has %" PRId64 " rows",
                             op_row_of(n->op)->name, experts - 1, count);
        }
    }
    return weft_fail(lo->dg, W0901, n->loc, "%s: executors take ids from tokens, pos or route only",
                     op_row_of(n->op)->name);
}

/* A kernel trusts its sizes, so what the graph says about an operand or result must be what the
 * kernel will take it for. Shape rules see to that; a graph read from text may say anything. */
weft_status lower_expect(lower *lo, const gnode *n, const char *what, int64_t is, int64_t wants)
{
    if (is == wants)
        return WEFT_OK;
    return weft_fail(lo->dg, W0301, n->loc, "%s: %s is %" PRId64 ", expected %" PRId64,
                     op_row_of(n->op)->name, what, is, wants);
}

weft_status lower_expect_row(lower *lo, const gnode *n, const plan_step *s, const gtype *t,
                             int64_t elems)
{
    if (lower_rows_of(t) != s->rows)
        return weft_fail(lo->dg, W0301, n->loc, "%s: its operands and results differ in rows",
                         op_row_of(n->op)->name);
    return lower_expect(lo, n, "the length of a row", lower_row_elems(t), elems);
}

/* Result i, and the operands of the step that are one row per row. */
weft_status lower_expect_result(lower *lo, const gnode *n, const plan_step *s, int i, int64_t elems)
{
    return lower_expect_row(lo, n, s, lower_result_type(lo, n, i), elems);
}

weft_status lower_expect_rank(lower *lo, const gnode *n, int i, int rank)
{
    return lower_expect(lo, n, "the number of dimensions of an operand",
                        lower_type_of(lo, n, i)->rank, rank);
}

/* An optional vector or stack of vectors: a bias, a norm's weight. */
weft_status lower_expect_weight(lower *lo, const gnode *n, int i, int64_t elems)
{
    if (!lower_is_given(n, i))
        return WEFT_OK;
    const gtype *t = lower_type_of(lo, n, i);
    return lower_expect(lo, n, "the size of a weight", lower_span(t, 0, t->rank), elems);
}

weft_status lower_expect_vector(lower *lo, const gnode *n, const char *attr, int64_t elems)
{
    const gattr *a = attr_of(n, attr, NULL);
    if (a->kind != GATTR_REF)
        return WEFT_OK;
    const gtype *t = graph_type(lo->g, a->ref);
    return lower_expect(lo, n, attr, lower_span(t, 0, t->rank), elems);
}

weight_read lower_vector_read(const lower *lo)
{
    return lo->t->be->fuses ? READ_F32 : READ_ROWS;
}
