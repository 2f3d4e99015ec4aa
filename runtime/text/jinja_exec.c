/* jinja_exec.c - running statements: what they print goes to run->out, what they set to a scope. */
#include "runtime/text/jinja_run.h"

static void mark(jinja_run *r, uint32_t begin, uint32_t end)
{
    r->at = begin;
    r->at_end = end;
}

void scope_set(jinja_run *r, jscope *s, uint32_t name, jval v)
{
    if (!s) {
        r->globals[name] = v;
        return;
    }
    jbinding *b = s->first;
    for (size_t n = 1; b && b->name != name; b = b->next)
        if (n++ % STEP_ITEMS == 0)
            run_spend(r, 1);
    if (!b) {
        b = s->spare ? s->spare : ARENA_NEW(r->a, jbinding);
        s->spare = s->spare ? s->spare->next : NULL;
        *b = (jbinding){.name = name, .next = s->first};
        s->first = b;
    }
    b->v = v;
}

static jscope *scope_new(jinja_run *r, jscope *up)
{
    jscope *s = ARENA_NEW(r->a, jscope);
    s->up = up;
    return s;
}

static weft_status assign(jinja_run *r, jscope *scope, const jexpr *target, const jval *v)
{
    if (target->op == JE_NAME) {
        scope_set(r, scope, target->name, *v);
        return WEFT_OK;
    }
    mark(r, target->begin, target->end);
    if (target->op == JE_ATTR) {
        jval ns;
        WEFT_TRY(run_eval(r, target->a, &ns));
        if (ns.kind != JV_NAMESPACE)
            return run_fail(r, "only a namespace has attributes that can be set, not %s",
                            jv_type(&ns));
        WEFT_TRY(run_room(r, 2 * sizeof(jpair)));
        jdict_set_str(r, ns.as.dict, target->text, *v);
        return WEFT_OK;
    }
    const jlist *items;
    WEFT_TRY(access_items(r, v, &items));
    if (items->n != target->n_item)
        return run_fail(r, "%zu values are expected here, not %zu", target->n_item, items->n);
    WEFT_TRY(run_enter(r));
    for (size_t i = 0; i < items->n; i++)
        WEFT_TRY(assign(r, scope, target->items[i], &items->at[i]));
    run_leave(r);
    return WEFT_OK;
}

weft_status run_take(jinja_run *r, size_t begin, jval *out)
{
    jtext t = {.r = r};
    if (r->out->n > begin)
        text_put(&t, (str){r->out->p + begin, r->out->n - begin});
    r->out->n = begin;
    return text_value(&t, out);
}

weft_status run_capture(jinja_run *r, jscope *scope, const jstmt *body, jval *out)
{
    size_t begin = r->out->n;
    jscope *before = r->scope;
    r->scope = scope;
    weft_status st = run_body(r, body);
    r->scope = before;
    if (st != WEFT_OK)
        return st;
    return run_take(r, begin, out);
}

static weft_status exec_scoped(jinja_run *r, jscope *scope, const jstmt *body)
{
    jscope *before = r->scope;
    r->scope = scope;
    weft_status st = run_body(r, body);
    r->scope = before;
    return st;
}

/* ---- loops ---- */

/* The scope of a loop's next round. Where no macro can still look into the last one, it is used
 * again, so that long loops need no memory. */
static jscope *scope_again(jinja_run *r, const jstmt *s, jscope *up, jscope *last)
{
    if (!last || s->has_macro)
        return scope_new(r, up);
    while (last->first) {
        jbinding *b = last->first;
        last->first = b->next;
        b->next = last->spare;
        last->spare = b;
    }
    return last;
}

/* The items for which the loop's `if` holds. */
static weft_status filter_items(jinja_run *r, const jstmt *s, jscope *up, const jlist **items)
{
    jlist *kept = jlist_new(r, JSEQ_LIST, 0);
    jscope *before = r->scope;
    weft_status st = WEFT_OK;
    for (size_t i = 0; st == WEFT_OK && i < (*items)->n; i++) {
        jval holds = jv_none();
        r->scope = scope_new(r, up);
        st = run_room(r, 0);
        if (st == WEFT_OK)
            st = assign(r, r->scope, s->target, &(*items)->at[i]);
        if (st == WEFT_OK)
            st = run_eval(r, s->cond, &holds);
        if (st == WEFT_OK && jv_truth(&holds))
            jlist_push(r, kept, (*items)->at[i]);
    }
    r->scope = before;
    *items = kept;
    return st;
}

weft_status run_loop(jinja_run *r, const jstmt *s, const jval *over, jscope *up, int depth0)
{
    const jlist *items;
    mark(r, s->a->begin, s->a->end);
    WEFT_TRY(access_items(r, over, &items));
    if (s->cond)
        WEFT_TRY(filter_items(r, s, up, &items));
    if (items->n == 0)
        return s->other ? exec_scoped(r, scope_new(r, up), s->other) : WEFT_OK;
    jloop *l = ARENA_NEW(r->a, jloop);
    *l = (jloop){.items = items, .depth0 = depth0, .stmt = s, .scope = up};
    jscope *scope = NULL;
    for (; l->i < items->n; l->i++) {
        WEFT_TRY(run_room(r, 0));
        WEFT_TRY(run_step(r, 1));
        scope = scope_again(r, s, up, scope);
        scope_set(r, scope, s->loop, (jval){.kind = JV_LOOP, .as.loop = l});
        WEFT_TRY(assign(r, scope, s->target, &items->at[l->i]));
        WEFT_TRY(exec_scoped(r, scope, s->body));
        jflow flow = r->flow;
        r->flow = FLOW_ON;
        if (flow == FLOW_BREAK)
            break;
    }
    return WEFT_OK;
}

/* ---- the other statements ---- */

static weft_status exec_for(jinja_run *r, const jstmt *s)
{
    jval over;
    WEFT_TRY(run_eval(r, s->a, &over));
    return run_loop(r, s, &over, r->scope, 0);
}

static weft_status exec_if(jinja_run *r, const jstmt *s)
{
    for (;;) {
        jval cond;
        WEFT_TRY(run_eval(r, s->a, &cond));
        if (jv_truth(&cond))
            return run_body(r, s->body);
        bool elif = s->other && s->other->op == JS_IF && !s->other->next;
        if (!elif)
            return run_body(r, s->other);
        s = s->other;
    }
}

static weft_status exec_print(jinja_run *r, const jstmt *s)
{
    jval v;
    str text;
    WEFT_TRY(run_eval(r, s->a, &v));
    mark(r, s->a->begin, s->a->end);
    WEFT_TRY(value_to_str(r, &v, &text));
    return run_put(r, text);
}

static weft_status exec_set(jinja_run *r, const jstmt *s)
{
    jval v;
    WEFT_TRY(run_eval(r, s->a, &v));
    return assign(r, r->scope, s->target, &v);
}

/* A chain of filters over text; e->a of the innermost is NULL. */
static weft_status apply_filters(jinja_run *r, const jexpr *e, const jval *text, jval *out)
{
    jexpr input = {.op = JE_CONST, .begin = e->begin, .end = e->end, .value = *text}, copy = *e;
    jval inner;
    WEFT_TRY(run_enter(r));
    if (e->a) {
        WEFT_TRY(apply_filters(r, e->a, text, &inner));
        input.value = inner;
    }
    copy.a = &input;
    WEFT_TRY(run_eval(r, &copy, out));
    run_leave(r);
    return WEFT_OK;
}

static weft_status exec_block(jinja_run *r, const jstmt *s)
{
    jval text, v;
    str printed;
    WEFT_TRY(run_capture(r, scope_new(r, r->scope), s->body, &text));
    v = text;
    if (s->a)
        WEFT_TRY(apply_filters(r, s->a, &text, &v));
    if (s->op == JS_SET_BLOCK)
        return assign(r, r->scope, s->target, &v);
    WEFT_TRY(value_to_str(r, &v, &printed));
    return run_put(r, printed);
}

static jval macro_value(jinja_run *r, const jmacro_def *def)
{
    jmacro *m = ARENA_NEW(r->a, jmacro);
    *m = (jmacro){def, r->scope};
    return (jval){.kind = JV_MACRO, .as.macro = m};
}

/* A call block: the call of s->a, with its body as the keyword `caller`. */
static weft_status exec_call(jinja_run *r, const jstmt *s)
{
    jexpr body = {.op = JE_CONST, .begin = s->begin, .end = s->end}, call = *s->a;
    jval v;
    str text;
    body.value = macro_value(r, s->macro);
    call.args = ARENA_ARRAY(r->a, jarg, s->a->n_arg + 1);
    if (s->a->n_arg)
        memcpy(call.args, s->a->args, s->a->n_arg * sizeof *call.args);
    call.args[call.n_arg++] = (jarg){.kind = JARG_NAMED, .name = STR("caller"), .e = &body};
    WEFT_TRY(run_eval(r, &call, &v));
    WEFT_TRY(value_to_str(r, &v, &text));
    return run_put(r, text);
}

static weft_status exec_with(jinja_run *r, const jstmt *s)
{
    jscope *scope = scope_new(r, r->scope);
    for (size_t i = 0; i < s->n_with; i++) {
        jval v;
        WEFT_TRY(run_eval(r, s->values[i], &v));
        WEFT_TRY(assign(r, scope, s->names[i], &v));
    }
    return exec_scoped(r, scope, s->body);
}

static weft_status exec(jinja_run *r, const jstmt *s)
{
    switch (s->op) {
    case JS_TEXT:
        return run_put(r, s->text);
    case JS_PRINT:
        return exec_print(r, s);
    case JS_FOR:
        return exec_for(r, s);
    case JS_IF:
        return exec_if(r, s);
    case JS_SET:
        return exec_set(r, s);
    case JS_SET_BLOCK:
    case JS_FILTER:
        return exec_block(r, s);
    case JS_MACRO:
        scope_set(r, r->scope, s->macro->number, macro_value(r, s->macro));
        return WEFT_OK;
    case JS_CALL:
        return exec_call(r, s);
    case JS_WITH:
        return exec_with(r, s);
    case JS_SCOPE:
        return exec_scoped(r, scope_new(r, r->scope), s->body);
    default:
        r->flow = s->op == JS_BREAK ? FLOW_BREAK : FLOW_CONTINUE;
        return WEFT_OK;
    }
}

weft_status run_body(jinja_run *r, const jstmt *body)
{
    WEFT_TRY(run_enter(r));
    for (const jstmt *s = body; s && r->flow == FLOW_ON; s = s->next) {
        mark(r, s->begin, s->end);
        WEFT_TRY(run_step(r, 1));
        WEFT_TRY(exec(r, s));
    }
    run_leave(r);
    return WEFT_OK;
}
