/* sema_call.c - calls: which op, weight or block is meant, its operands and attributes. */
#include "dsl/bind.h"

#include <math.h>

/* ---- operands ---- */

bool val_as_tensor(sema *s, val *v)
{
    tensor_type *t;
    switch (v->kind) {
    case VAL_TENSOR:
        return true;
    case VAL_WEIGHT: {
        const weight *w = weight_choose(s, v->weight, v->index, WEFT_NOWHERE);
        t = ARENA_NEW(s->a, tensor_type);
        *t = weight_stored(s, w, v->index);
        *w->used = true;
        *v = (val){.kind = VAL_TENSOR, .tensor = t, .ref = emit_weight(s->bind, w, false)};
        return true;
    }
    case VAL_VEC:
        t = ARENA_NEW(s->a, tensor_type);
        *t = (tensor_type){.rank = 1, .dim = {v->size}};
        *v = (val){.kind = VAL_TENSOR, .tensor = t, .ref = emit_constant(s->bind, *v)};
        return true;
    default:
        return false;
    }
}

/* The first element that is no finite number, or n. */
static int64_t first_infinite(const double *data, int64_t n)
{
    int64_t i = 0;
    while (i < n && isfinite(data[i]))
        i++;
    return i;
}

/* A constant that enters a graph is finite. A vector that the graph has already was looked at before. */
static bool operand_finite(op_call *c, val v, weft_loc at)
{
    sema *s = c->s;
    double x;
    int64_t n = 0, i = 0;
    if (const_number(v, &x) && !isfinite(x)) {
        weft_fail(s->dg, W0414, at, "%s: this operand is %s, but must be a finite number", c->what,
                  number_text(s, x));
        return false;
    }
    if (v.kind != VAL_VEC || !v.data || v.truths || !poly_value(v.size, &n))
        return true;
    if (emitted_constant(s->bind, v.data))
        return true;
    if (sema_step(s, at, n / 16))
        i = first_infinite(v.data, n);
    if (i < n)
        weft_fail(s->dg, W0414, at,
                  "%s: element %lld of this vector is %s, but must be a finite number", c->what,
                  (long long)i, number_text(s, v.data[i]));
    return i == n;
}

/* Bring operand i to the kind its letter in ops.def asks for. */
static bool fit_operand(op_call *c, int i)
{
    val *v = &c->arg[i];
    sema *s = c->s;
    weft_loc at = c->at[i] ? c->at[i]->loc : c->site->loc;
    const char *wanted = NULL;
    if (v->kind == VAL_UNKNOWN) {
        static const sym_role role[] = {
            ['t'] = ROLE_FLOAT, ['d'] = ROLE_IDS,  ['r'] = ROLE_TABLE, ['n'] = ROLE_INT,
            ['c'] = ROLE_CELL,  ['s'] = ROLE_LIST, ['x'] = ROLE_OPEN};
        sema_role(s, c->at[i], role[(unsigned char)c->op->kinds[i]]);
        return true;
    }
    if (v->kind == VAL_NONE && op_operand_optional(c->op, i))
        return true;
    if (!operand_finite(c, *v, at))
        return false;
    switch (c->op->kinds[i]) {
    case 't':
    case 'w':
        if (v->kind == VAL_WEIGHT)
            c->prec_f32 |= weight_choose(s, v->weight, v->index, WEFT_NOWHERE)->prec_f32;
        if (c->op->code == OP_delta && v->kind == VAL_WEIGHT)
            return true;
        wanted = val_as_tensor(s, v) && !v->tensor->ids ? NULL : "a float tensor";
        break;
    case 'd':
        wanted = val_as_tensor(s, v) && v->tensor->ids ? NULL : "an i32 tensor";
        break;
    case 'x':
        if (!val_is_number(*v))
            wanted = val_as_tensor(s, v) && !v->tensor->ids ? NULL : "a float tensor or a constant";
        break;
    case 'v':
        if (c->op->code == OP_div)
            wanted = val_is_number(*v) || v->kind == VAL_VEC ? NULL : "a constant divisor";
        else
            wanted = v->kind == VAL_VEC || v->kind == VAL_WEIGHT ? NULL : "a constant vector";
        break;
    case 'c':
        wanted = v->kind == VAL_CELL ? NULL : "a state cell";
        break;
    case 'n':
        wanted = v->kind == VAL_INT ? NULL : "an integer";
        break;
    case 's':
        wanted = v->kind == VAL_LIST ? NULL : "a list of sizes";
        break;
    case 'r':
        wanted = v->kind == VAL_TABLE ? NULL : "a rope table";
        break;
    }
    if (!wanted)
        return true;
    bool constant_wanted = strchr("nsrv", c->op->kinds[i]) && v->kind == VAL_TENSOR;
    weft_fail(s->dg, constant_wanted ? W0204 : W0207, at, "%s takes %s here, not %s", c->what,
              wanted, val_text(s, *v));
    sema_note_name(s, c->at[i], at);
    return false;
}

/* ---- attributes ---- */

static bool attr_fits(op_call *c, const attr_row *row, const ast *e, val *out)
{
    sema *s = c->s;
    if (row->type == ATTR_WORD) {
        str word;
        if (!sema_word(s, e, row->words, &word))
            return false;
        *out = (val){.kind = VAL_STR, .known = true, .text = word};
        return true;
    }
    val v = sema_eval(s, e);
    bool fits = v.kind == VAL_UNKNOWN || (v.kind == VAL_NONE && row->otherwise);
    switch (row->type) {
    case ATTR_INT:
        fits |= v.kind == VAL_INT;
        break;
    case ATTR_FLOAT:
        fits |= val_is_number(v);
        break;
    case ATTR_BOOL:
        fits |= v.kind == VAL_BOOL;
        break;
    case ATTR_VECTOR:
        fits |= v.kind == VAL_VEC || v.kind == VAL_WEIGHT;
        break;
    case ATTR_WORD:
        break;
    }
    /* 8 / head_dim where a fraction is wanted: exact for few models, and then by chance */
    int64_t known;
    if (row->type == ATTR_FLOAT && v.kind == VAL_INT && !s->bind && e->kind == AST_BINARY &&
        str_eqz(e->name, "/") && e->kid[BINARY_LEFT]->kind == AST_INT &&
        !poly_value(v.size, &known)) {
        sema_inexact(s, e);
        return false;
    }
    static const char *const wanted[] = {"an integer", "a number", "true or false", "a vector",
                                         "a word"};
    if (!fits)
        weft_fail(s->dg, v.kind == VAL_TENSOR ? W0204 : W0207, e->loc,
                  "%s of %s must be %s, not %s", row->name, c->what, wanted[row->type],
                  val_text(s, v));
    *out = v;
    return fits;
}

/* ": cap * 2 is 0", or " is 0" where the text says so itself. */
static const char *stated(sema *s, const ast *e, double x)
{
    bool literal = !e || e->kind == AST_INT || e->kind == AST_FLOAT || e->kind == AST_UNARY;
    return literal
               ? arena_printf(s->a, " is %s", number_text(s, x)).p
               : arena_printf(s->a, ": " STR_FMT " is %s", STR_ARG(ast_spelt(e)), number_text(s, x))
                     .p;
}

/* A number that is known, without a checkpoint already, must be in the range of attrs.def. */
static bool attr_in_range(op_call *c, const attr_row *row, val v, const ast *at)
{
    double x;
    const char *wanted = const_number(v, &x) ? range_refuses(row->range, x) : NULL;
    if (!wanted)
        return true;
    weft_code code = row->range != RANGE_COUNT ? W0414 : x < 1 ? W0413 : W1106;
    weft_fail(c->s->dg, code, at ? at->loc : c->site->loc, "%s of %s%s, but must be %s", row->name,
              c->what, stated(c->s, at, x), wanted);
    return false;
}

/* Where the text gives attribute i: in the call, or among the sizes of a norm's weight. */
static const ast *attr_text(const op_call *c, int i)
{
    if (c->attr_at[i])
        return c->attr_at[i]->kid[ARG_VALUE];
    const ast *shape =
        c->w && c->w->kind->shape == SHAPE_NORM && i == 0 ? c->w->decl->kid[WEIGHT_SHAPE] : NULL;
    return shape && shape->n_kid == 2 ? shape->kid[1]->kid[ARG_VALUE] : NULL;
}

static bool give_attr(op_call *c, const ast *arg)
{
    int n;
    const attr_row *row = op_attrs(c->op->code, &n);
    for (int i = 0; i < n; i++) {
        if (!str_eqz(arg->name, row[i].name))
            continue;
        if (c->attr_at[i]) {
            weft_fail(c->s->dg, W0205, arg->name_loc, "%s is given twice", row[i].name);
            return false;
        }
        c->attr_at[i] = arg;
        return attr_fits(c, &row[i], arg->kid[ARG_VALUE], &c->attr[i]);
    }
    weft_fail(c->s->dg, W0205, arg->name_loc, "%s has no attribute `" STR_FMT "`", c->what,
              STR_ARG(arg->name));
    if (n > 0 && !SUGGEST_ROW(c->s->dg, arg->name, row, n))
        weft_note(c->s->dg, "`weft ops %s` lists what it takes", c->op->name);
    if (arg->kid[ARG_VALUE]->kind != AST_NAME) /* a name may be a word of the attribute meant */
        sema_eval(c->s, arg->kid[ARG_VALUE]);
    return false;
}

const val *call_attr(const op_call *c, const char *name)
{
    int n;
    const attr_row *row = op_attrs(c->op->code, &n);
    for (int i = 0; i < n; i++)
        if (strcmp(row[i].name, name) == 0)
            return &c->attr[i];
    WEFT_ASSERT(false); /* attrs.def has every attribute that a rule asks for */
    return NULL;
}

/* ---- applying an op ---- */

static bool apply(op_call *c)
{
    int n_attr, n_kind = (int)strlen(c->op->kinds);
    bool fine = true, known = true;
    if (c->op->runs == RUNS_NONE && !c->s->bind) /* with a checkpoint a plan finds out */
        weft_warn(c->s->dg, W0901, c->site->loc,
                  "%s: there is no kernel for it yet, so what needs it cannot be run", c->op->name);
    for (int i = 0; i < n_kind; i++) {
        fine &= fit_operand(c, i);
        known &= c->arg[i].kind != VAL_UNKNOWN;
    }
    const attr_row *row = op_attrs(c->op->code, &n_attr);
    for (int i = 0; i < n_attr; i++) {
        bool given = c->attr_at[i] || c->attr[i].kind != VAL_NONE;
        if (!row[i].otherwise && !given) {
            weft_fail(c->s->dg, W0208, c->site->loc, "%s needs the attribute `%s`", c->what,
                      row[i].name);
            weft_note(c->s->dg, "%s: %s", row[i].name, row[i].meaning);
            fine = false;
        }
        fine &= attr_in_range(c, &row[i], c->attr[i], attr_text(c, i));
    }
    c->out->n = 1;
    c->out->v[0] = val_unknown();
    if (c->op->code == OP_route)
        c->out->n = 2, c->out->v[1] = val_unknown();
    if (c->op->code == OP_split && c->arg[1].kind == VAL_LIST && c->arg[1].known &&
        c->arg[1].n >= 1 && c->arg[1].n <= SEMA_RESULTS_MAX) {
        c->out->n = (int)c->arg[1].n;
        for (int i = 0; i < c->out->n; i++)
            c->out->v[i] = val_unknown();
    }
    if (fine && known && shape_apply(c))
        emit_op(c->s->bind, c);
    return true;
}

/* Every operand and attribute absent. */
static void clear(op_call *c)
{
    for (int i = 0; i < OP_OPERANDS_MAX; i++)
        c->arg[i].kind = VAL_NONE;
    for (int i = 0; i < OP_ATTRS_MAX; i++)
        c->attr[i].kind = VAL_NONE;
}

val sema_op2(sema *s, const ast *e, op_code op, val a, val b)
{
    static const char *const sign[OP_COUNT] = {
        [OP_add] = "`+`", [OP_sub] = "`-`", [OP_mul] = "`*`", [OP_div] = "`/`"};
    results out;
    op_call c = {.s = s, .op = op_row_of(op), .site = e, .what = sign[op], .out = &out};
    clear(&c);
    c.arg[0] = a;
    c.arg[1] = b;
    c.at[0] = e->kid[0];
    c.at[1] = e->kid[1];
    apply(&c);
    return out.v[0];
}

val sema_op1(sema *s, const ast *e, op_code op, val a)
{
    results out;
    op_call c = {.s = s, .op = op_row_of(op), .site = e, .what = "`-`", .out = &out};
    clear(&c);
    c.arg[0] = a;
    c.at[0] = e->kid[0];
    apply(&c);
    return out.v[0];
}

/* Positional operands of a call, evaluated; named ones are attributes. */
typedef struct {
    val v[OP_OPERANDS_MAX];
    const ast *at[OP_OPERANDS_MAX];
    int n; /* may exceed the array: then the rest was dropped */
} operands;

static operands eval_operands(sema *s, const ast *args)
{
    operands o = {.n = 0};
    for (uint32_t i = 0; i < args->n_kid; i++) {
        const ast *arg = args->kid[i];
        if (arg->name.n)
            continue;
        val v = sema_eval(s, arg->kid[ARG_VALUE]);
        if (o.n < OP_OPERANDS_MAX) {
            o.v[o.n] = v;
            o.at[o.n] = arg->kid[ARG_VALUE];
        }
        o.n++;
    }
    return o;
}

static bool call_op(sema *s, const ast *e, const op_row *op, const operands *o, results *out)
{
    const ast *args = e->kid[CALL_ARGUMENTS];
    op_call c = {.s = s, .op = op, .site = e, .what = op->name, .out = out};
    int n_min, n_max;
    bool fine = true;
    op_arity(op, &n_min, &n_max);
    if (op->fuses == FUSE_INSERTED) {
        weft_fail(s->dg, W0203, e->kid[CALL_CALLEE]->loc,
                  "%s is placed by the compiler; it cannot be called", op->name);
        weft_note(s->dg, op->code == OP_take_rows
                             ? "`output name[R] = x` takes the rows asked for"
                             : "delta(w, x) places a weight's adapters by hand");
        return false;
    }
    if (o->n < n_min || o->n > n_max) {
        weft_fail(s->dg, W0206, e->loc, "%s takes %s%d operand%s, not %d", op->name,
                  n_min < n_max ? arena_printf(s->a, "%d to ", n_min).p : "", n_max,
                  n_max == 1 ? "" : "s", o->n);
        weft_note(s->dg, "%s(%s) -> %s", op->name, op->operands, op->result);
        fine = false;
    }
    clear(&c);
    for (int i = 0, k = 0; fine && k < o->n && i < n_max; i++) {
        bool skips = o->v[k].kind == VAL_CELL && op->kinds[i] != 'c' && op_operand_optional(op, i);
        if (skips && o->n - k < n_max - i) /* conv1d(x, w, cell): the bias is left out */
            continue;
        c.arg[i] = o->v[k];
        c.at[i] = o->at[k++];
    }
    for (uint32_t i = 0; i < args->n_kid; i++)
        if (args->kid[i]->name.n)
            fine &= give_attr(&c, args->kid[i]);
    return fine && apply(&c);
}

/* w(x): the weight's op with its stored operands filled in. */
static bool call_weight(sema *s, const ast *e, val callee, const operands *o, results *out)
{
    const weight *w = weight_choose(s, callee.weight, callee.index, e->loc);
    const op_row *op = op_find(str_of(w->kind->name));
    const ast *args = e->kid[CALL_ARGUMENTS];
    int n_wanted = 0;
    *w->used = true;
    for (const char *f = w->kind->fill; *f; f++)
        n_wanted += *f >= '0' && *f <= '9';
    if (callee.maybe && w->optional) {
        weft_fail(s->dg, W0201, e->loc, STR_FMT " may be absent here; test it first",
                  STR_ARG(w->name));
        weft_note(s->dg, "if " STR_FMT " != none { .. }", STR_ARG(w->name));
    }
    if (!op || !*w->kind->fill) {
        weft_fail(s->dg, W0207, e->loc, STR_FMT " is a plain tensor; it cannot be called",
                  STR_ARG(w->name));
        return false;
    }
    if (o->n != n_wanted) {
        weft_fail(s->dg, W0206, e->loc, STR_FMT " takes %d operand%s, not %d", STR_ARG(w->name),
                  n_wanted, n_wanted == 1 ? "" : "s", o->n);
        weft_note_at(s->dg, w->decl->name_loc, "%s weights: %s", w->kind->name, w->kind->meaning);
        return false;
    }
    op_call c = {.s = s, .op = op, .site = e, .what = w->text, .w = w, .out = out};
    c.prec_f32 = w->prec_f32;
    clear(&c);
    for (int i = 0; w->kind->fill[i]; i++) {
        char f = w->kind->fill[i];
        tensor_type *t = ARENA_NEW(s->a, tensor_type);
        if (f == 'w' || (f == 'b' && w->bias.rank > 0)) {
            *t = f == 'w' ? weight_stored(s, w, callee.index) : weight_bias(s, w, callee.index);
            c.arg[i] =
                (val){.kind = VAL_TENSOR, .tensor = t, .ref = emit_weight(s->bind, w, f == 'b')};
        } else if (f != 'b') {
            c.arg[i] = o->v[f - '0'];
            c.at[i] = o->at[f - '0'];
        }
    }
    if (w->kind->shape == SHAPE_NORM)
        c.attr[0] = w->eps;
    bool fine = true;
    for (uint32_t i = 0; i < args->n_kid; i++)
        if (args->kid[i]->name.n)
            fine &= give_attr(&c, args->kid[i]);
    if (!fine || !apply(&c))
        return false;
    if (out->v[0].kind == VAL_TENSOR)
        out->v[0].from = w;
    return true;
}

static bool call_builtin(sema *s, const ast *e, const builtin_row *row, const operands *o,
                         results *out)
{
    const ast *args = e->kid[CALL_ARGUMENTS];
    for (uint32_t i = 0; i < args->n_kid; i++) {
        if (!args->kid[i]->name.n)
            continue;
        weft_fail(s->dg, W0205, args->kid[i]->name_loc, "%s has no attribute `" STR_FMT "`",
                  row->name, STR_ARG(args->kid[i]->name));
        return false;
    }
    out->n = 1;
    out->v[0] = const_call(s, e, row, o->v, o->n);
    return true;
}

static bool call(sema *s, const ast *e, results *out)
{
    const ast *callee = e->kid[CALL_CALLEE], *args = e->kid[CALL_ARGUMENTS];
    val v = val_unknown();
    out->n = 1;
    out->v[0] = val_unknown();
    sym *y = NULL;
    if (callee->kind == AST_NAME)
        y = sema_lookup(s, callee->name, &v);
    else
        v = sema_eval(s, callee);
    if (v.kind == VAL_BLOCK)
        return sema_inline(s, v, e, args, out);

    operands o = eval_operands(s, args);
    if (v.kind == VAL_WEIGHT)
        return call_weight(s, e, v, &o, out);
    if (v.kind == VAL_UNKNOWN && y)
        sema_role(s, callee, ROLE_CALLED);
    if (callee->kind == AST_NAME && !y) {
        const op_row *op = op_find(callee->name);
        const builtin_row *builtin = builtin_find(callee->name);
        bool tensor = false;
        for (int i = 0; i < o.n && i < OP_OPERANDS_MAX; i++)
            o.v[i] = sema_constant(s, o.v[i]);
        for (int i = 0; i < o.n && i < OP_OPERANDS_MAX; i++)
            tensor |= o.v[i].kind == VAL_TENSOR || o.v[i].kind == VAL_WEIGHT ||
                      (s->top && o.v[i].kind == VAL_UNKNOWN);
        if (builtin && (!op || !tensor))
            return call_builtin(s, e, builtin, &o, out);
        if (op)
            return call_op(s, e, op, &o, out);
        sema_unknown(s, callee, W0203, "operator, block or weight");
    } else if (v.kind != VAL_UNKNOWN) {
        weft_fail(s->dg, W0207, callee->loc, "%s cannot be called", val_text(s, v));
        sema_note_name(s, callee, callee->loc);
    }
    for (uint32_t i = 0; i < args->n_kid; i++) /* mistakes in the rest are reported too */
        if (args->kid[i]->name.n && v.kind == VAL_UNKNOWN && !y &&
            args->kid[i]->kid[ARG_VALUE]->kind != AST_NAME)
            sema_eval(s, args->kid[i]->kid[ARG_VALUE]);
    return false;
}

bool sema_call(sema *s, const ast *e, results *out)
{
    s->depth += SEMA_DEPTH_CALL;
    bool known = call(s, e, out);
    s->depth -= SEMA_DEPTH_CALL;
    return known;
}
