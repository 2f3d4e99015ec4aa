/* jinja_run.c - one rendering from outside: variables in, limits, faults, text out. */
#include "runtime/text/jinja_run.h"

#include "runtime/text/text_parts.h"

/* ---- faults ---- */

weft_status run_fail(jinja_run *r, const char *fmt, ...)
{
    strbuf text = {0};
    va_list ap;
    va_start(ap, fmt);
    strbuf_vadd(&text, fmt, ap);
    va_end(ap);
    weft_status st =
        weft_fail(r->dg, W1303, (weft_loc){r->t->src, r->at, r->at_end}, STR_FMT, STR_ARG(text));
    strbuf_free(&text);
    return st;
}

weft_status run_limit(jinja_run *r, const char *what)
{
    return weft_fail(r->dg, W1304, (weft_loc){r->t->src, r->at, r->at_end}, "%s", what);
}

weft_status run_undefined(jinja_run *r, const jval *v)
{
    switch ((jwhy)v->why) {
    case JWHY_NAME:
        return run_fail(r, "`" STR_FMT "` is undefined", STR_ARG(v->as.s));
    case JWHY_ATTR:
        return run_fail(r, "%s has no attribute `" STR_FMT "`", jkind_name((jkind)v->of),
                        STR_ARG(v->as.s));
    case JWHY_UNSAFE:
        return run_fail(r, "`" STR_FMT "` would change a %s, which a template must not",
                        STR_ARG(v->as.s), jkind_name((jkind)v->of));
    default:
        return run_fail(r, STR_FMT, STR_ARG(v->as.s));
    }
}

weft_status run_step(jinja_run *r, uint64_t n)
{
    if (run_spend(r, n))
        return WEFT_OK;
    weft_status st = run_limit(r, "the template does not come to an end");
    weft_note(r->dg, "it was stopped after %llu steps", (unsigned long long)r->limits.steps_max);
    return st;
}

weft_status run_touch(jinja_run *r, const jval *v)
{
    switch (v->kind) {
    case JV_STR:
        return run_step(r, v->as.s.n / STEP_BYTES);
    case JV_LIST:
        return run_step(r, v->as.list->n / STEP_ITEMS);
    case JV_DICT:
        return run_step(r, v->as.dict->n / STEP_ITEMS);
    default:
        return WEFT_OK;
    }
}

weft_status run_search(jinja_run *r, str s, size_t n)
{
    enum { COMPARED_MAX = 256, COMPARED_PER_STEP = 1024 };
    size_t compared = n < COMPARED_MAX ? n : COMPARED_MAX;
    return run_step(r, s.n / STEP_BYTES + s.n / COMPARED_PER_STEP * compared);
}

weft_status run_room(jinja_run *r, size_t bytes)
{
    size_t used = arena_bytes(r->a) + r->args_bytes;
    if (used <= r->limits.memory_max && bytes <= r->limits.memory_max - used)
        return WEFT_OK;
    weft_status st = run_limit(r, "the template makes values that are too large");
    weft_note(r->dg, "they may take %zu bytes in all", r->limits.memory_max);
    return st;
}

weft_status run_list_room(jinja_run *r, size_t n)
{
    if (n > SIZE_MAX / 2 / sizeof(jval))
        n = SIZE_MAX / 2 / sizeof(jval);
    WEFT_TRY(run_step(r, n / 4));
    return run_room(r, n * sizeof(jval));
}

weft_status run_enter(jinja_run *r)
{
    if (r->depth >= r->limits.depth_max) {
        weft_status st = run_limit(r, "the template nests too deeply");
        weft_note(r->dg, "calls, statements and expressions nest %d deep at most",
                  r->limits.depth_max);
        return st;
    }
    r->depth++;
    return WEFT_OK;
}

/* ---- text that grows ---- */

/* Make room for n more bytes; false once the limit is passed. */
static bool text_room(jtext *t, size_t n)
{
    if (t->full || n <= t->cap - t->n)
        return !t->full;
    size_t used = arena_bytes(t->r->a), max = t->r->limits.memory_max;
    size_t cap = t->cap ? t->cap : 64;
    if (used > max || n > max - used || t->n > max - used - n) {
        t->full = true;
        return false;
    }
    while (cap - t->n < n)
        cap *= 2;
    if (cap > max - used)
        cap = t->n + n;
    char *p = arena_alloc(t->r->a, cap);
    if (t->n)
        memcpy(p, t->p, t->n);
    t->p = p;
    t->cap = cap;
    run_spend(t->r, t->n / STEP_BYTES);
    return true;
}

void text_put(jtext *t, str s)
{
    if (s.n == 0 || !text_room(t, s.n))
        return;
    memcpy(t->p + t->n, s.p, s.n);
    run_spend(t->r, (t->n + s.n) / STEP_BYTES - t->n / STEP_BYTES); /* single bytes add up */
    t->n += s.n;
}

void text_putz(jtext *t, const char *z)
{
    text_put(t, str_of(z));
}

void text_putc(jtext *t, char c)
{
    text_put(t, (str){&c, 1});
}

void text_fill(jtext *t, str s, int64_t times)
{
    size_t all;
    if (times <= 0 || s.n == 0)
        return;
    if (__builtin_mul_overflow((size_t)times, s.n, &all) || !text_room(t, all)) {
        t->full = true;
        return;
    }
    run_spend(t->r, (uint64_t)times / 4);
    for (int64_t i = 0; i < times; i++, t->n += s.n)
        memcpy(t->p + t->n, s.p, s.n);
}

weft_status text_done(jtext *t, str *out)
{
    if (t->full)
        return run_room(t->r, SIZE_MAX);
    *out = (str){t->p ? t->p : "", t->n};
    return WEFT_OK;
}

weft_status text_value(jtext *t, jval *out)
{
    str s = {0};
    WEFT_TRY(text_done(t, &s));
    *out = jv_str(s);
    return WEFT_OK;
}

weft_status value_to_str(jinja_run *r, const jval *v, str *out)
{
    if (v->kind == JV_STR) {
        *out = v->as.s;
        return WEFT_OK;
    }
    jtext t = {.r = r};
    WEFT_TRY(print_str(&t, v));
    return text_done(&t, out);
}

/* ---- rendering ---- */

weft_status run_put(jinja_run *r, str s)
{
    size_t n = r->out->n - r->out_begin;
    if (s.n > r->limits.output_max || n > r->limits.output_max - s.n) {
        weft_status st = run_limit(r, "the template prints too much");
        weft_note(r->dg, "%zu bytes are allowed", r->limits.output_max);
        return st;
    }
    strbuf_put(r->out, s);
    return run_step(r, s.n / STEP_BYTES);
}

static void set_globals(jinja_run *r, const jinja_var *vars, size_t n_var)
{
    for (size_t i = 0; i < r->t->n_name; i++) {
        const jrow *f = function_row(r->t->names[i]);
        size_t k = n_var;
        while (k > 0 && !str_eq(vars[k - 1].name, r->t->names[i]))
            k--;
        if (k > 0)
            r->globals[i] = jv_from_value(r, &vars[k - 1].v);
        else if (f)
            r->globals[i] = (jval){.kind = JV_BUILTIN, .as.fn.row = f};
    }
}

weft_status jinja_render(weft_diag *dg, const jinja *t, const jinja_var *vars, size_t n_var,
                         const struct tm *now, const jinja_limits *limits, strbuf *out)
{
    jinja_run r = {.dg = dg,
                   .a = arena_create(),
                   .t = t,
                   .limits = limits ? *limits : JINJA_LIMITS,
                   .out = out,
                   .out_begin = out->n,
                   .now = *now};
    r.fuel = r.limits.steps_max;
    r.globals = ARENA_ARRAY(r.a, jval, t->n_name);
    set_globals(&r, vars, n_var);
    weft_status st = run_room(&r, 0);
    if (st == WEFT_OK)
        st = run_body(&r, t->body);
    if (st != WEFT_OK && out->p) {
        out->n = r.out_begin;
        out->p[out->n] = 0;
    }
    arena_destroy(r.a);
    return st;
}

const jinja_engine jinja_whole = {jinja_compile, jinja_render};
