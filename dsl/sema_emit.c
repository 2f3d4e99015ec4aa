/* sema_emit.c - what the checker has typed goes to the sink as nodes of a graph. */
#include "dsl/sema.h"

#include "runtime/base/intmath.h"

bool sema_spoilt(const sema *s)
{
    return s->host && diag_failed(s->dg) > s->n_failed;
}

static void not_known(sema *s, weft_loc loc, const char *what)
{
    if (sema_spoilt(s))
        return;
    weft_fail(s->dg, W0207, loc, "%s cannot be decided from this checkpoint", what);
}

/* A size as the sink writes it: a number, T, R or S. */
static bool size_out(sema *s, const poly *p, weft_loc loc, int64_t *out)
{
    if (poly_value(p, out)) {
        bool fits = *out > 0 && *out <= DSL_SIZE_MAX;
        if (fits || sema_spoilt(s))
            return fits;
        if (*out < 1)
            weft_fail(s->dg, W0413, loc, "a dimension of this is %lld, but a size is at least 1",
                      (long long)*out);
        else
            weft_fail(s->dg, W1106, loc, "a dimension of this is %lld, but a size is at most %d",
                      (long long)*out, DSL_SIZE_MAX);
        return false;
    }
    *out = p == s->T ? DSL_T : p == s->R ? DSL_R : p == s->S ? DSL_S : 0;
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

static bool type_out(sema *s, const tensor_type *t, weft_loc loc, dsl_type *out)
{
    *out = (dsl_type){.ids = t->ids, .rank = t->rank, .cell = -1};
    out->pairs = (int)t->pairs[s->host->gguf ? ORIGIN_GGUF : ORIGIN_HF];
    for (int i = 0; i < t->rank; i++)
        if (!size_out(s, t->dim[i], loc, &out->dim[i]))
            return false;
    return elems_fit(s, loc, type_text(s, t), out->dim, t->rank);
}

dsl_ref emit_weight(sema *s, const weight *w, bool bias)
{
    if (!s->sink || !w->bound)
        return (dsl_ref){.kind = REF_NONE};
    int *id = bias ? &w->bound->bias_id : &w->bound->id;
    if (*id < 0)
        *id = s->sink->weight(s->sink->ctx, bias ? &w->bound->bias : &w->bound->stored);
    return (dsl_ref){REF_WEIGHT, *id, 0};
}

dsl_ref emit_constant(sema *s, val v)
{
    int64_t n;
    if (!s->sink || !v.data || !poly_value(v.size, &n))
        return (dsl_ref){.kind = REF_NONE};
    for (size_t i = 0; i < s->constants.n; i++)
        if (s->constants.at[i].data == v.data &&
            s->constants.at[i].table == (v.kind == VAL_TABLE) &&
            s->constants.at[i].factor == v.factor)
            return (dsl_ref){REF_CONST, (int)i, 0};
    dsl_const c = {.n = n, .data = v.data, .table = v.kind == VAL_TABLE, .factor = v.factor};
    VEC_PUSH(&s->constants, c);
    return (dsl_ref){REF_CONST, s->sink->constant(s->sink->ctx, &c), 0};
}

dsl_ref emit_input(sema *s, str name, const tensor_type *t)
{
    dsl_type type;
    if (!s->sink || !type_out(s, t, WEFT_NOWHERE, &type))
        return (dsl_ref){.kind = REF_NONE};
    return (dsl_ref){REF_INPUT, s->sink->input(s->sink->ctx, name, &type), 0};
}

/* ---- cells ---- */

/* With a checkpoint a cell's sizes are evaluated for its own layer. */
static void slot_bind(sema *s, cell *cl, cell_slot *slot)
{
    const ast *index = cl->decl->kid[CELL_INDEX], *args = cl->decl->kid[CELL_ARGUMENTS];
    frame *top = s->top;
    scope *outer = s->names;
    dsl_cell out = {.kind = cl->kind->code, .loc = cl->decl->name_loc, .name = cl->name};
    int64_t layer = -1;
    bool fine = true;
    s->top = NULL;
    s->names = scope_create(s->a, s->model_names);
    if (index && slot->index && poly_value(slot->index, &layer)) {
        val i = {.kind = VAL_INT, .known = true, .size = slot->index};
        scope_add(s->names, index->name, SYM_INDEX, i, index->name_loc);
        out.name = arena_printf(s->a, STR_FMT "[%lld]", STR_ARG(cl->name), (long long)layer);
    }
    for (uint32_t i = 0; i < args->n_kid; i++) {
        const char *p = cl->kind->arguments;
        for (int k = 0; *p; k++) {
            size_t n = strcspn(p, " ");
            if (str_eq(args->kid[i]->name, (str){p, n})) {
                slot->arg[k] = sema_int(s, args->kid[i]->kid[ARG_VALUE], "a cell's size");
                if (!slot->arg[k] || !poly_value(slot->arg[k], &out.arg[k]))
                    not_known(s, args->kid[i]->loc, "this size");
                else
                    fine &= sema_positive(s, args->kid[i]->kid[ARG_VALUE], out.arg[k], out.name);
            }
            p += n;
            p += *p == ' ';
        }
    }
    if (fine)
        elems_fit(s, cl->decl->loc, arena_str(s->a, out.name).p, out.arg, CELL_ARGS_MAX);
    s->names = outer;
    s->top = top;
    if (s->sink)
        slot->id = s->sink->cell(s->sink->ctx, &out);
    slot->ref = (dsl_ref){REF_CELL, slot->id, 0};
}

void cell_forget(cell *cl)
{
    cl->slots = NULL;
    cl->bucket = NULL;
    cl->n_slot = cl->n_bucket = 0;
}

/* Sizes are interned: an index is its address. */
static cell_slot **bucket_of(const cell *cl, const poly *index)
{
    uint64_t h = (uint64_t)(uintptr_t)index * 0x9e3779b97f4a7c15u;
    return &cl->bucket[(h >> 32) & (cl->n_bucket - 1)];
}

static void grow_slots(sema *s, cell *cl)
{
    cl->n_bucket = cl->n_bucket ? 4 * cl->n_bucket : 8;
    cl->bucket = ARENA_ARRAY(s->a, cell_slot *, cl->n_bucket);
    for (cell_slot *slot = cl->slots; slot; slot = slot->next) {
        cell_slot **home = bucket_of(cl, slot->index);
        slot->chain = *home;
        *home = slot;
    }
}

cell_slot *cell_slot_of(sema *s, cell *cl, const poly *index)
{
    for (cell_slot *slot = cl->bucket ? *bucket_of(cl, index) : NULL; slot; slot = slot->chain)
        if (slot->index == index)
            return slot;
    cell_slot *slot = ARENA_NEW(s->a, cell_slot);
    *slot = (cell_slot){.index = index, .next = cl->slots};
    cl->slots = slot;
    if (++cl->n_slot > 2 * cl->n_bucket) {
        grow_slots(s, cl);
    } else {
        slot->chain = *bucket_of(cl, index);
        *bucket_of(cl, index) = slot;
    }
    if (s->host)
        slot_bind(s, cl, slot);
    return slot;
}

/* ---- nodes ---- */

static dsl_ref ref_of(op_call *c, val v, weft_loc loc)
{
    int64_t whole;
    switch (v.kind) {
    case VAL_TENSOR:
    case VAL_CELL:
        return v.ref;
    case VAL_WEIGHT:
        return emit_weight(c->s, v.weight, false);
    case VAL_VEC:
    case VAL_TABLE:
        return emit_constant(c->s, v);
    case VAL_INT:
        if (poly_value(v.size, &whole))
            return (dsl_ref){REF_NUMBER, 0, (double)whole};
        break;
    case VAL_FLOAT:
        if (v.known)
            return (dsl_ref){REF_NUMBER, 0, v.number};
        break;
    default:
        return (dsl_ref){.kind = REF_NONE};
    }
    not_known(c->s, loc, "this number");
    return (dsl_ref){.kind = REF_NONE};
}

static dsl_attr attr_of(op_call *c, const attr_row *row, val v, weft_loc loc)
{
    dsl_attr out = {.kind = GATTR_NONE};
    int64_t whole;
    int truth;
    if (v.kind == VAL_NONE)
        return out;
    switch (row->type) {
    case ATTR_INT:
        out.kind = GATTR_INT;
        if (v.kind != VAL_INT || !poly_value(v.size, &out.integer))
            not_known(c->s, loc, row->name);
        break;
    case ATTR_FLOAT:
        out.kind = GATTR_FLOAT;
        out.number = v.number;
        if (v.kind == VAL_INT && poly_value(v.size, &whole))
            out.number = (double)whole;
        else if (v.kind != VAL_FLOAT || !v.known)
            not_known(c->s, loc, row->name);
        break;
    case ATTR_BOOL:
        truth = v.kind == VAL_BOOL ? sema_known(c->s, v.truth) : -1;
        out.kind = GATTR_BOOL;
        out.integer = truth == 1;
        if (truth < 0)
            not_known(c->s, loc, row->name);
        break;
    case ATTR_WORD:
        out.kind = GATTR_WORD;
        out.word = v.text;
        break;
    case ATTR_VECTOR:
        out.kind = GATTR_REF;
        out.ref = ref_of(c, v, loc);
        break;
    }
    return out;
}

/* What the checker kept in tags becomes plain attributes. */
static void fill_attrs(op_call *c, dsl_node *n)
{
    int n_attr;
    const attr_row *row = op_attrs(c->op->code, &n_attr);
    for (int i = 0; i < n_attr; i++) {
        weft_loc loc = c->attr_at[i] ? c->attr_at[i]->loc : c->site->loc;
        n->attr[i] = attr_of(c, &row[i], c->attr[i], loc);
    }
    if (c->op->code == OP_rope && n->attr[0].kind == GATTR_NONE) {
        pair_order p = c->arg[0].tensor->pairs[c->s->host->gguf ? ORIGIN_GGUF : ORIGIN_HF];
        n->attr[0] = (dsl_attr){.kind = GATTR_WORD,
                                .word = p == PAIRS_HALF ? STR("half") : STR("interleaved")};
    }
    for (int i = 0; i < n_attr && c->prec_f32; i++)
        if (strcmp(row[i].name, "prec") == 0)
            n->attr[i] = (dsl_attr){.kind = GATTR_WORD, .word = STR("f32")};
}

void emit_op(op_call *c)
{
    sema *s = c->s;
    if (!s->sink)
        return;
    dsl_node n = {.op = c->op->code,
                  .layer = s->layer,
                  .loc = c->site->loc,
                  .n_in = (int)strlen(c->op->kinds)};
    dsl_type type[SEMA_RESULTS_MAX];
    for (int i = 0; i < n.n_in; i++)
        n.in[i] = ref_of(c, c->arg[i], c->at[i] ? c->at[i]->loc : c->site->loc);
    fill_attrs(c, &n);
    n.n_out = c->out->n;
    for (int i = 0; i < n.n_out; i++) {
        val *v = &c->out->v[i];
        if (v->kind == VAL_CELL)
            type[i] = (dsl_type){.cell = cell_slot_of(s, v->cell, v->index)->id};
        else if (v->kind != VAL_TENSOR || !type_out(s, v->tensor, c->site->loc, &type[i]))
            return;
    }
    int first = s->sink->node(s->sink->ctx, &n, type);
    for (int i = 0; i < n.n_out; i++) {
        val *v = &c->out->v[i];
        v->ref = (dsl_ref){REF_VALUE, first + i, 0};
        if (v->kind == VAL_CELL)
            cell_slot_of(s, v->cell, v->index)->ref = v->ref;
    }
}

void emit_output(sema *s, const ast *n, val v, const poly *rows, int index)
{
    if (!s->sink)
        return;
    if (v.ref.kind != REF_VALUE) {
        if (sema_spoilt(s))
            return;
        weft_fail(s->dg, W0207, n->loc,
                  "an output must be computed; this is an operand as it stands");
        return;
    }
    if (rows == s->R) {
        dsl_type type, rows_type = {.ids = true, .rank = 1, .dim = {DSL_R}, .cell = -1};
        if (s->rows_input < 0)
            s->rows_input = s->sink->input(s->sink->ctx, STR("rows"), &rows_type);
        dsl_node node = {.op = OP_take_rows, .layer = -1, .loc = n->loc, .n_in = 2, .n_out = 1};
        node.in[0] = v.ref;
        node.in[1] = (dsl_ref){REF_INPUT, s->rows_input, 0};
        if (!type_out(s, v.tensor, n->loc, &type))
            return;
        type.dim[0] = DSL_R;
        v.ref = (dsl_ref){REF_VALUE, s->sink->node(s->sink->ctx, &node, &type), 0};
    }
    dsl_output out = {.name = n->name, .index = index, .value = v.ref.id, .loc = n->loc};
    s->sink->output(s->sink->ctx, &out);
}
