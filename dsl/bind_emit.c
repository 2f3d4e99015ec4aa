/* bind_emit.c - what the checker has typed becomes nodes, cells and outputs of the graph. */
#include "dsl/bind_impl.h"

#include "runtime/base/intmath.h"

static const gref nothing = {.kind = REF_NONE};

bool bind_spoilt(const binding *b)
{
    return b && diag_failed(b->s->dg) > b->n_failed;
}

static void not_known(binding *b, weft_loc loc, const char *what)
{
    if (!bind_spoilt(b))
        weft_fail(b->s->dg, W0207, loc, "%s cannot be decided from this checkpoint", what);
}

/* A size as the graph writes it: a number, T, R or S. */
static bool size_out(binding *b, const poly *p, weft_loc loc, int64_t *out)
{
    sema *s = b->s;
    if (poly_value(p, out)) {
        bool fits = *out > 0 && *out <= DSL_SIZE_MAX;
        if (fits || bind_spoilt(b))
            return fits;
        if (*out < 1)
            weft_fail(s->dg, W0413, loc, "a dimension of this is %lld, but a size is at least 1",
                      (long long)*out);
        else
            weft_fail(s->dg, W1106, loc, "a dimension of this is %lld, but a size is at most %d",
                      (long long)*out, DSL_SIZE_MAX);
        return false;
    }
    *out = p == s->T ? GRAPH_T : p == s->R ? GRAPH_R : p == s->S ? GRAPH_S : 0;
    if (*out < 0)
        return true;
    weft_fail(s->dg, W0310, loc, "a dimension of %s is neither a number nor T, R or S",
              poly_text(s, p));
    return false;
}

/* Are these sizes, each above 0, few enough elements? Sizes of a call (T, R, S) do not count. */
static bool elems_fit(sema *s, weft_loc loc, const char *what, const int64_t *size, int n)
{
    int64_t elems = 1;
    for (int i = 0; i < n; i++) {
        if (size[i] < 1 || (i64_mul(elems, size[i], &elems) && elems <= DSL_ELEMS_MAX))
            continue;
        weft_fail(s->dg, W1106, loc, "%s: these sizes multiply to more than %lld elements", what,
                  (long long)DSL_ELEMS_MAX);
        return false;
    }
    return true;
}

static bool type_out(binding *b, const tensor_type *t, weft_loc loc, gtype *out)
{
    *out = (gtype){.ids = t->ids, .rank = t->rank, .cell = -1, .pairs = (int)t->pairs[b->from]};
    for (int i = 0; i < t->rank; i++)
        if (!size_out(b, t->dim[i], loc, &out->dim[i]))
            return false;
    return elems_fit(b->s, loc, type_text(b->s, t), out->dim, t->rank);
}

gref emit_weight(binding *b, const weight *w, bool bias)
{
    if (!b || !w->bound)
        return nothing;
    int *id = bias ? &w->bound->bias_id : &w->bound->id;
    if (*id < 0)
        *id = graph_add_weight(b->g, bias ? &w->bound->bias : &w->bound->stored);
    return (gref){REF_WEIGHT, *id, 0};
}

bool emitted_constant(const binding *b, const double *data)
{
    for (size_t i = 0; b && i < b->constants.n; i++)
        if (b->constants.at[i] == data)
            return true;
    return false;
}

gref emit_constant(binding *b, val v)
{
    gconst c = {.data = v.data, .table = v.kind == VAL_TABLE, .factor = v.factor};
    if (!b || !v.data || !poly_value(v.size, &c.n))
        return nothing;
    for (size_t i = 0; i < b->constants.n; i++) {
        const gconst *had = &b->g->consts.at[i];
        if (b->constants.at[i] == v.data && had->table == c.table && had->factor == c.factor)
            return (gref){REF_CONST, (int)i, 0};
    }
    VEC_PUSH(&b->constants, v.data);
    return (gref){REF_CONST, graph_add_const(b->g, &c), 0};
}

gref emit_input(binding *b, str name, const tensor_type *t)
{
    gtype type;
    if (!b || !type_out(b, t, WEFT_NOWHERE, &type))
        return nothing;
    return (gref){REF_INPUT, graph_add_input(b->g, name, &type), 0};
}

/* coarsest and pin, which were looked at when the cell was declared. */
static bool cell_storage(binding *b, const ast *arg, gcell *out)
{
    sema *s = b->s;
    const ast *given = arg->kid[ARG_VALUE];
    if (str_eq(arg->name, STR("coarsest"))) {
        str word;
        out->bounded = sema_word(s, given, "f32 f16 bf16 q8 q4", &word);
        out->coarsest = out->bounded ? kform_find(word) : 0;
        return out->bounded;
    }
    const poly *n = sema_int(s, given, "pin");
    if (!n || !poly_value(n, &out->pin)) {
        not_known(b, arg->loc, "this number");
        return false;
    }
    return sema_positive(s, given, out->pin, out->name);
}

/* The sizes of a cell are evaluated for its own layer. */
void emit_cell(binding *b, cell *cl, cell_slot *slot)
{
    sema *s = b->s;
    const ast *index = cl->decl->kid[CELL_INDEX], *args = cl->decl->kid[CELL_ARGUMENTS];
    frame *top = s->top;
    scope *outer = s->names;
    gcell out = {.kind = cl->kind->code, .loc = cl->decl->name_loc, .name = cl->name};
    int64_t layer = -1;
    bool fine = true;
    s->top = NULL;
    s->names = scope_create(s->a, b->model_names);
    if (index && slot->index && poly_value(slot->index, &layer)) {
        val i = {.kind = VAL_INT, .known = true, .size = slot->index};
        scope_add(s->names, index->name, SYM_INDEX, i, index->name_loc);
        out.name = arena_printf(s->a, STR_FMT "[%lld]", STR_ARG(cl->name), (long long)layer);
    }
    for (uint32_t i = 0; i < args->n_kid; i++) {
        const ast *size = args->kid[i]->kid[ARG_VALUE];
        int k = word_find(cl->kind->arguments, args->kid[i]->name);
        if (k < 0) {
            fine &= cell_storage(b, args->kid[i], &out);
            continue;
        }
        slot->arg[k] = sema_int(s, size, "a cell's size");
        if (!slot->arg[k] || !poly_value(slot->arg[k], &out.arg[k]))
            not_known(b, args->kid[i]->loc, "this size");
        else
            fine &= sema_positive(s, size, out.arg[k], out.name);
    }
    if (fine)
        elems_fit(s, cl->decl->loc, arena_str(s->a, out.name).p, out.arg, CELL_ARGS_MAX);
    s->names = outer;
    s->top = top;
    slot->id = graph_add_cell(b->g, &out);
    slot->ref = (gref){REF_CELL, slot->id, 0};
}

/* ---- nodes ---- */

static gref ref_of(binding *b, val v, weft_loc loc)
{
    int64_t whole;
    switch (v.kind) {
    case VAL_TENSOR:
    case VAL_CELL:
        return v.ref;
    case VAL_WEIGHT:
        return emit_weight(b, v.weight, false);
    case VAL_VEC:
    case VAL_TABLE:
        return emit_constant(b, v);
    case VAL_INT:
        if (poly_value(v.size, &whole))
            return (gref){REF_NUMBER, 0, (double)whole};
        break;
    case VAL_FLOAT:
        if (v.known)
            return (gref){REF_NUMBER, 0, v.number};
        break;
    default:
        return nothing;
    }
    not_known(b, loc, "this number");
    return nothing;
}

static gattr attr_of(binding *b, const attr_row *row, val v, weft_loc loc)
{
    gattr out = {.kind = GATTR_NONE};
    int64_t whole;
    int truth;
    if (v.kind == VAL_NONE)
        return out;
    switch (row->type) {
    case ATTR_INT:
        out.kind = GATTR_INT;
        if (v.kind != VAL_INT || !poly_value(v.size, &out.integer))
            not_known(b, loc, row->name);
        break;
    case ATTR_FLOAT:
        out.kind = GATTR_FLOAT;
        out.number = v.number;
        if (v.kind == VAL_INT && poly_value(v.size, &whole))
            out.number = (double)whole;
        else if (v.kind != VAL_FLOAT || !v.known)
            not_known(b, loc, row->name);
        break;
    case ATTR_BOOL:
        truth = v.kind == VAL_BOOL ? sema_known(b->s, v.truth) : -1;
        out.kind = GATTR_BOOL;
        out.integer = truth == 1;
        if (truth < 0)
            not_known(b, loc, row->name);
        break;
    case ATTR_WORD:
        out.kind = GATTR_WORD;
        out.word = v.text;
        break;
    case ATTR_VECTOR:
        out.kind = GATTR_REF;
        out.ref = ref_of(b, v, loc);
        break;
    }
    return out;
}

/* What the checker kept in tags becomes plain attributes. */
static void fill_attrs(binding *b, const op_call *c, gnode *n)
{
    int n_attr;
    const attr_row *row = op_attrs(c->op->code, &n_attr);
    for (int i = 0; i < n_attr; i++) {
        weft_loc loc = c->attr_at[i] ? c->attr_at[i]->loc : c->site->loc;
        n->attr[i] = attr_of(b, &row[i], c->attr[i], loc);
    }
    if (c->op->code == OP_rope && n->attr[0].kind == GATTR_NONE) {
        pair_order p = c->arg[0].tensor->pairs[b->from];
        n->attr[0] =
            (gattr){.kind = GATTR_WORD, .word = p == PAIRS_HALF ? STR("half") : STR("interleaved")};
    }
    for (int i = 0; i < n_attr && c->prec_f32; i++)
        if (strcmp(row[i].name, "prec") == 0)
            n->attr[i] = (gattr){.kind = GATTR_WORD, .word = STR("f32")};
}

void emit_op(binding *b, op_call *c)
{
    if (!b)
        return;
    gnode n = {.op = c->op->code,
               .layer = b->s->layer,
               .loc = c->site->loc,
               .n_in = (int)strlen(c->op->kinds)};
    gtype type[SEMA_RESULTS_MAX];
    for (int i = 0; i < n.n_in; i++)
        n.in[i] = ref_of(b, c->arg[i], c->at[i] ? c->at[i]->loc : c->site->loc);
    fill_attrs(b, c, &n);
    for (int i = 0; i < c->out->n; i++) {
        val *v = &c->out->v[i];
        if (v->kind == VAL_CELL)
            type[i] = (gtype){.cell = cell_slot_of(b->s, v->cell, v->index)->id};
        else if (v->kind != VAL_TENSOR || !type_out(b, v->tensor, c->site->loc, &type[i]))
            return;
    }
    int first = graph_add(b->g, &n, type, c->out->n);
    for (int i = 0; i < c->out->n; i++) {
        val *v = &c->out->v[i];
        v->ref = (gref){REF_VALUE, first + i, 0};
        if (v->kind == VAL_CELL)
            cell_slot_of(b->s, v->cell, v->index)->ref = v->ref;
    }
}

void emit_output(binding *b, const ast *n, val v, const poly *rows, int index)
{
    if (!b)
        return;
    if (v.ref.kind != REF_VALUE) {
        if (!bind_spoilt(b))
            weft_fail(b->s->dg, W0207, n->loc,
                      "an output must be computed; this is an operand as it stands");
        return;
    }
    if (rows == b->s->R) {
        gtype type, rows_type = {.ids = true, .rank = 1, .dim = {GRAPH_R}, .cell = -1};
        if (b->rows_input < 0)
            b->rows_input = graph_add_input(b->g, STR("rows"), &rows_type);
        gnode node = {.op = OP_take_rows, .layer = -1, .loc = n->loc, .n_in = 2};
        node.in[0] = v.ref;
        node.in[1] = (gref){REF_INPUT, b->rows_input, 0};
        if (!type_out(b, v.tensor, n->loc, &type))
            return;
        type.dim[0] = GRAPH_R;
        v.ref = (gref){REF_VALUE, graph_add(b->g, &node, &type, 1), 0};
    }
    graph_add_output(b->g, &(goutput){n->name, index, v.ref.id, n->loc});
}
