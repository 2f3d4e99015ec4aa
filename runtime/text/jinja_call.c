/* jinja_call.c - calling builtins and macros: arguments find their parameters. */
#include "runtime/text/jinja_run.h"

enum { PARAMS_MAX = 8 };

static weft_status bind(jinja_run *r, const jrow *row, const char *what, const jval *arg, size_t n,
                        const str *kw_name, const jval *kw, size_t n_kw, jval bound[PARAMS_MAX],
                        size_t *out_n)
{
    size_t n_param = 0;
    while (word_at(row->params, (int)n_param).n)
        n_param++;
    WEFT_ASSERT(n_param <= PARAMS_MAX);
    if (n > n_param)
        return run_fail(r, "%s `%s` takes at most %zu arguments, not %zu", what, row->name, n_param,
                        n);
    for (size_t i = 0; i < n; i++)
        bound[i] = arg[i];
    for (size_t k = 0; k < n_kw; k++) {
        size_t i = 0;
        while (i < n_param && !str_eq(word_at(row->params, (int)i), kw_name[k]))
            i++;
        if (i == n_param)
            return run_fail(r, "%s `%s` has no argument `" STR_FMT "`", what, row->name,
                            STR_ARG(kw_name[k]));
        if (bound[i].kind != JV_ABSENT)
            return run_fail(r, "%s `%s` is given `" STR_FMT "` twice", what, row->name,
                            STR_ARG(kw_name[k]));
        bound[i] = kw[k];
    }
    for (size_t i = 0; i < (size_t)row->least; i++) {
        str name = word_at(row->params, (int)i);
        if (bound[i].kind == JV_ABSENT)
            return run_fail(r, "%s `%s` needs its argument `" STR_FMT "`", what, row->name,
                            STR_ARG(name));
    }
    *out_n = n_param;
    return WEFT_OK;
}

weft_status call_row(jinja_run *r, const jrow *row, const char *what, const jval *self,
                     const jval *arg, size_t n, const str *kw_name, const jval *kw, size_t n_kw,
                     jval *out)
{
    jval bound[PARAMS_MAX] = {0};
    jcall c = {.self = self ? *self : jv_none(), .how = row->how};
    WEFT_TRY(run_step(r, 1));
    if (row->params[0] == '*') {
        c.arg = arg;
        c.n = n;
        c.kw_name = kw_name;
        c.kw = kw;
        c.n_kw = n_kw;
        if (n < (size_t)row->least)
            return run_fail(r, "%s `%s` needs %d arguments", what, row->name, row->least);
    } else {
        WEFT_TRY(bind(r, row, what, arg, n, kw_name, kw, n_kw, bound, &c.n));
        c.arg = bound;
    }
    WEFT_TRY(run_touch(r, &c.self));
    for (size_t i = 0; i < n; i++)
        WEFT_TRY(run_touch(r, &arg[i]));
    for (size_t i = 0; i < n_kw; i++)
        WEFT_TRY(run_touch(r, &kw[i]));
    return row->fn(r, &c, out);
}

/* ---- macros ---- */

static weft_status macro_keywords(jinja_run *r, const jmacro_def *m, const str *kw_name,
                                  const jval *kw, size_t n_kw, jval *bound, jscope *scope)
{
    jdict *rest = jdict_new(r);
    jval caller = {.kind = JV_ABSENT};
    for (size_t k = 0; k < n_kw; k++) {
        size_t i = 0;
        WEFT_TRY(run_step(r, 1 + m->n_param / STEP_ITEMS));
        while (i < m->n_param && !str_eq(m->param_name[i], kw_name[k]))
            i++;
        if (i < m->n_param && bound[i].kind != JV_ABSENT)
            return run_fail(r, "macro `" STR_FMT "` is given `" STR_FMT "` twice", STR_ARG(m->name),
                            STR_ARG(kw_name[k]));
        if (i < m->n_param)
            bound[i] = kw[k];
        else if (str_eqz(kw_name[k], "caller") && m->takes_caller)
            caller = kw[k];
        else if (m->takes_kwargs)
            jdict_set_str(r, rest, kw_name[k], kw[k]);
        else
            return run_fail(r, "macro `" STR_FMT "` has no argument `" STR_FMT "`",
                            STR_ARG(m->name), STR_ARG(kw_name[k]));
    }
    if (m->takes_kwargs)
        scope_set(r, scope, m->kwargs, jv_dict(rest));
    if (m->takes_caller && caller.kind == JV_ABSENT)
        caller = jv_undefined(JWHY_TEXT, STR("this macro was called without a call block"));
    if (m->takes_caller)
        scope_set(r, scope, m->caller, caller);
    return WEFT_OK;
}

static weft_status call_macro(jinja_run *r, const jmacro *macro, const jval *arg, size_t n,
                              const str *kw_name, const jval *kw, size_t n_kw, jval *out)
{
    const jmacro_def *m = macro->def;
    jscope *scope = ARENA_NEW(r->a, jscope), *before = r->scope;
    WEFT_TRY(run_list_room(r, m->n_param + n_kw));
    jval *bound = ARENA_ARRAY(r->a, jval, m->n_param);
    scope->up = macro->scope;
    if (n > m->n_param && !m->takes_varargs)
        return run_fail(r, "macro `" STR_FMT "` takes at most %zu arguments, not %zu",
                        STR_ARG(m->name), m->n_param, n);
    for (size_t i = 0; i < n && i < m->n_param; i++)
        bound[i] = arg[i];
    if (m->takes_varargs) {
        jlist *rest = jlist_new(r, JSEQ_TUPLE, 0);
        for (size_t i = m->n_param; i < n; i++)
            jlist_push(r, rest, arg[i]);
        scope_set(r, scope, m->varargs, jv_list(rest));
    }
    WEFT_TRY(macro_keywords(r, m, kw_name, kw, n_kw, bound, scope));
    r->scope = scope;
    weft_status st = WEFT_OK;
    for (size_t i = 0; st == WEFT_OK && i < m->n_param; i++) {
        if (bound[i].kind == JV_ABSENT && m->initial[i])
            st = run_eval(r, m->initial[i], &bound[i]);
        else if (bound[i].kind == JV_ABSENT)
            bound[i] = jv_undefined(JWHY_NAME, m->param_name[i]);
        if (st == WEFT_OK)
            scope_set(r, scope, m->param[i], bound[i]);
    }
    if (st == WEFT_OK)
        st = run_capture(r, scope, m->body, out);
    r->scope = before;
    return st;
}

static weft_status call_joiner(jcycler *j, jval *out)
{
    *out = jv_str(j->i ? j->sep : STR(""));
    j->i = 1;
    return WEFT_OK;
}

static weft_status call_loop(jinja_run *r, const jloop *l, const jval *arg, size_t n, jval *out)
{
    if (!l->stmt->recursive || n != 1)
        return run_fail(r, "only a loop marked `recursive` is called, with what to go through");
    size_t begin = r->out->n;
    WEFT_TRY(run_loop(r, l->stmt, &arg[0], l->scope, l->depth0 + 1));
    return run_take(r, begin, out);
}

weft_status call_value(jinja_run *r, const jval *f, const jval *arg, size_t n, const str *kw_name,
                       const jval *kw, size_t n_kw, jval *out)
{
    switch (f->kind) {
    case JV_UNDEFINED:
        return run_undefined(r, f);
    case JV_BUILTIN:
        return call_row(r, f->as.fn.row, f->as.fn.self ? "method" : "function", f->as.fn.self, arg,
                        n, kw_name, kw, n_kw, out);
    case JV_MACRO:
        return call_macro(r, f->as.macro, arg, n, kw_name, kw, n_kw, out);
    case JV_LOOP:
        return call_loop(r, f->as.loop, arg, n, out);
    case JV_CYCLER:
        if (!f->as.cycler->items)
            return call_joiner(f->as.cycler, out);
        break;
    default:
        break;
    }
    return run_fail(r, "%s cannot be called", jv_type(f));
}
