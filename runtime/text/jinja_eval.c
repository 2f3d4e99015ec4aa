/* jinja_eval.c - the value of an expression. */
#include "runtime/text/jinja_run.h"

#include "runtime/base/vec.h"

static void mark(jinja_run *r, const jexpr *e)
{
    r->at = e->begin;
    r->at_end = e->end;
}

static jval name_value(jinja_run *r, const jexpr *e)
{
    size_t n = 0; /* names looked at; a scope with many is paid for */
    for (const jscope *s = r->scope; s; s = s->up)
        for (const jbinding *b = s->first; b; b = b->next) {
            if (b->name == e->name)
                return b->v;
            if (++n % STEP_ITEMS == 0)
                run_spend(r, 1);
        }
    if (r->globals[e->name].kind != JV_ABSENT)
        return r->globals[e->name];
    return jv_undefined(JWHY_NAME, e->text);
}

static weft_status eval_list(jinja_run *r, const jexpr *e, jval *out)
{
    WEFT_TRY(run_list_room(r, e->n_item));
    jlist *l = jlist_new(r, e->op == JE_LIST ? JSEQ_LIST : JSEQ_TUPLE, e->n_item);
    for (size_t i = 0; i < e->n_item; i++) {
        jval v;
        WEFT_TRY(run_eval(r, e->items[i], &v));
        jlist_push(r, l, v);
    }
    *out = jv_list(l);
    return WEFT_OK;
}

static weft_status eval_dict(jinja_run *r, const jexpr *e, jval *out)
{
    jdict *d = jdict_new(r);
    WEFT_TRY(run_list_room(r, e->n_item));
    for (size_t i = 0; i < e->n_item; i += 2) {
        jval key, v;
        WEFT_TRY(run_eval(r, e->items[i], &key));
        WEFT_TRY(run_eval(r, e->items[i + 1], &v));
        if (!jv_hashable(r, &key)) {
            mark(r, e->items[i]);
            return run_fail(r, "a %s cannot be a key", jv_type(&key));
        }
        jdict_set(r, d, key, v);
    }
    *out = jv_dict(d);
    return WEFT_OK;
}

static weft_status eval_concat(jinja_run *r, const jexpr *e, jval *out)
{
    jtext t = {.r = r};
    for (size_t i = 0; i < e->n_item; i++) {
        jval v;
        WEFT_TRY(run_eval(r, e->items[i], &v));
        WEFT_TRY(print_str(&t, &v));
    }
    mark(r, e);
    return text_value(&t, out);
}

/* a < b < c: each pair in turn, until one does not hold. */
static weft_status eval_compare(jinja_run *r, const jexpr *e, jval *out)
{
    jval left, right;
    bool holds = true;
    WEFT_TRY(run_eval(r, e->a, &left));
    for (size_t i = 0; holds && i < e->n_arg; i++, left = right) {
        WEFT_TRY(run_eval(r, e->args[i].e, &right));
        mark(r, e);
        WEFT_TRY(op_compare(r, e->args[i].op, &left, &right, &holds));
    }
    *out = jv_bool(holds);
    return WEFT_OK;
}

static weft_status eval_cond(jinja_run *r, const jexpr *e, jval *out)
{
    jval cond;
    WEFT_TRY(run_eval(r, e->a, &cond));
    if (jv_truth(&cond))
        return run_eval(r, e->b, out);
    if (e->c)
        return run_eval(r, e->c, out);
    *out = jv_undefined(JWHY_TEXT, STR("an `if` without `else` did not hold"));
    return WEFT_OK;
}

static weft_status eval_item(jinja_run *r, const jexpr *e, jval *out)
{
    jval v, key, part[3];
    WEFT_TRY(run_eval(r, e->a, &v));
    if (e->b->op != JE_SLICE) {
        WEFT_TRY(run_eval(r, e->b, &key));
        mark(r, e);
        return access_item(r, &v, &key, out);
    }
    const jexpr *const of[3] = {e->b->a, e->b->b, e->b->c};
    for (int i = 0; i < 3; i++) {
        part[i] = jv_none();
        if (of[i])
            WEFT_TRY(run_eval(r, of[i], &part[i]));
    }
    mark(r, e);
    return access_slice(r, &v, part, out);
}

/* ---- calls, filters, tests ---- */

typedef struct {
    VEC(jval) pos, kw;
    VEC(str) name;
    size_t bytes; /* of what * and ** made, which counts as memory of the rendering */
} arg_values;

static void args_free(jinja_run *r, arg_values *a)
{
    r->args_bytes -= a->bytes;
    VEC_FREE(&a->pos);
    VEC_FREE(&a->kw);
    VEC_FREE(&a->name);
}

/* Room for n arguments more. A vector may have twice the room that it needs. */
static weft_status args_room(jinja_run *r, arg_values *a, size_t n, size_t each)
{
    WEFT_TRY(run_list_room(r, n));
    WEFT_TRY(run_room(r, 2 * n * each));
    a->bytes += 2 * n * each;
    r->args_bytes += 2 * n * each;
    return WEFT_OK;
}

static weft_status eval_star(jinja_run *r, const jarg *arg, const jval *v, arg_values *a)
{
    if (arg->kind == JARG_STAR) {
        const jlist *items;
        WEFT_TRY(access_items(r, v, &items));
        WEFT_TRY(args_room(r, a, items->n, sizeof(jval)));
        for (size_t i = 0; i < items->n; i++)
            VEC_PUSH(&a->pos, items->at[i]);
        return WEFT_OK;
    }
    if (v->kind != JV_DICT)
        return run_fail(r, "`**` takes a dict, not %s", jv_type(v));
    WEFT_TRY(args_room(r, a, v->as.dict->n, sizeof(jval) + sizeof(str)));
    for (size_t i = 0; i < v->as.dict->n; i++) {
        if (v->as.dict->at[i].key.kind != JV_STR)
            return run_fail(r, "a keyword is a string, not %s", jv_type(&v->as.dict->at[i].key));
        VEC_PUSH(&a->name, v->as.dict->at[i].key.as.s);
        VEC_PUSH(&a->kw, v->as.dict->at[i].v);
    }
    return WEFT_OK;
}

static weft_status eval_args(jinja_run *r, const jexpr *e, arg_values *a)
{
    for (size_t i = 0; i < e->n_arg; i++) {
        const jarg *arg = &e->args[i];
        jval v;
        WEFT_TRY(run_eval(r, arg->e, &v));
        if (arg->kind == JARG_POS) {
            VEC_PUSH(&a->pos, v);
        } else if (arg->kind == JARG_NAMED) {
            VEC_PUSH(&a->name, arg->name);
            VEC_PUSH(&a->kw, v);
        } else {
            WEFT_TRY(eval_star(r, arg, &v, a));
        }
    }
    return WEFT_OK;
}

static weft_status unknown_row(jinja_run *r, const jexpr *e)
{
    return run_fail(r, "there is no %s `" STR_FMT "`", e->op == JE_FILTER ? "filter" : "test",
                    STR_ARG(e->text));
}

static weft_status eval_applied(jinja_run *r, const jexpr *e, jval *out)
{
    jval v;
    arg_values a = {0};
    WEFT_TRY(run_eval(r, e->a, &v));
    weft_status st = eval_args(r, e, &a);
    mark(r, e);
    if (st == WEFT_OK && e->op == JE_CALL)
        st = call_value(r, &v, a.pos.at, a.pos.n, a.name.at, a.kw.at, a.kw.n, out);
    else if (st == WEFT_OK && !e->row)
        st = unknown_row(r, e);
    else if (st == WEFT_OK)
        st = call_row(r, e->row, e->op == JE_FILTER ? "filter" : "test", &v, a.pos.at, a.pos.n,
                      a.name.at, a.kw.at, a.kw.n, out);
    args_free(r, &a);
    return st;
}

static weft_status eval_logic(jinja_run *r, const jexpr *e, jval *out)
{
    jval v;
    WEFT_TRY(run_eval(r, e->a, &v));
    if (e->op == JE_NOT) {
        *out = jv_bool(!jv_truth(&v));
        return WEFT_OK;
    }
    if (jv_truth(&v) == (e->op == JE_AND))
        return run_eval(r, e->b, out);
    *out = v;
    return WEFT_OK;
}

static weft_status eval_operator(jinja_run *r, const jexpr *e, jval *out)
{
    jval a, b;
    WEFT_TRY(run_eval(r, e->a, &a));
    if (e->op == JE_NEG || e->op == JE_POS) {
        mark(r, e);
        return op_negate(r, &a, e->op == JE_NEG, out);
    }
    if (e->op == JE_ATTR) {
        mark(r, e);
        return access_attr(r, &a, e->text, e->maybe_method, out);
    }
    WEFT_TRY(run_eval(r, e->b, &b));
    mark(r, e);
    return op_binary(r, e->op, &a, &b, out);
}

static weft_status eval(jinja_run *r, const jexpr *e, jval *out)
{
    switch (e->op) {
    case JE_CONST:
        *out = e->value;
        return WEFT_OK;
    case JE_NAME:
        *out = name_value(r, e);
        return WEFT_OK;
    case JE_LIST:
    case JE_TUPLE:
        return eval_list(r, e, out);
    case JE_DICT:
        return eval_dict(r, e, out);
    case JE_CONCAT:
        return eval_concat(r, e, out);
    case JE_COMPARE:
        return eval_compare(r, e, out);
    case JE_AND:
    case JE_OR:
    case JE_NOT:
        return eval_logic(r, e, out);
    case JE_COND:
        return eval_cond(r, e, out);
    case JE_ITEM:
        return eval_item(r, e, out);
    case JE_CALL:
    case JE_FILTER:
    case JE_TEST:
        return eval_applied(r, e, out);
    default:
        return eval_operator(r, e, out);
    }
}

weft_status run_eval(jinja_run *r, const jexpr *e, jval *out)
{
    mark(r, e);
    WEFT_TRY(run_step(r, 1));
    WEFT_TRY(run_enter(r));
    weft_status st = eval(r, e, out);
    run_leave(r);
    return st;
}
