/* jinja_ops.c - operators with Python's meaning: floor division and remainder, bools as numbers,
 * comparison only between what can be ordered. Integers have 64 bits; what does not fit is a fault. */
#include "runtime/base/intmath.h"
#include "runtime/text/jinja_run.h"

#include <math.h>

static const char *sign_of(jexpr_op op)
{
    static const char *const sign[] = {
        [JE_ADD] = "+",         [JE_SUB] = "-", [JE_MUL] = "*",  [JE_DIV] = "/",
        [JE_FLOORDIV] = "//",   [JE_MOD] = "%", [JE_POW] = "**", [JE_LT] = "<",
        [JE_LE] = "<=",         [JE_GT] = ">",  [JE_GE] = ">=",  [JE_IN] = "in",
        [JE_NOT_IN] = "not in",
    };
    return sign[op];
}

static weft_status wrong_types(jinja_run *r, jexpr_op op, const jval *a, const jval *b)
{
    if (a->kind == JV_UNDEFINED)
        return run_undefined(r, a);
    if (b->kind == JV_UNDEFINED)
        return run_undefined(r, b);
    return run_fail(r, "`%s` does not take %s and %s", sign_of(op), jv_type(a), jv_type(b));
}

static weft_status overflow(jinja_run *r, jexpr_op op)
{
    return run_fail(r, "the result of `%s` does not fit into 64 bits", sign_of(op));
}

static weft_status int_pow(jinja_run *r, int64_t base, int64_t n, jval *out)
{
    int64_t x = 1;
    if (n < 0) {
        if (base == 0)
            return run_fail(r, "division by zero");
        *out = jv_float(pow((double)base, (double)n));
        return WEFT_OK;
    }
    if (base == 0 || base == 1 || base == -1) {
        *out = jv_int(n == 0 ? 1 : base == -1 && n % 2 == 0 ? 1 : base);
        return WEFT_OK;
    }
    for (; n > 0; n--)
        if (!i64_mul(x, base, &x))
            return overflow(r, JE_POW);
    *out = jv_int(x);
    return WEFT_OK;
}

static weft_status int_op(jinja_run *r, jexpr_op op, int64_t a, int64_t b, jval *out)
{
    int64_t x = 0;
    bool fits = true;
    if (b == 0 && (op == JE_DIV || op == JE_FLOORDIV || op == JE_MOD))
        return run_fail(r, "division by zero");
    switch (op) {
    case JE_ADD:
        fits = i64_add(a, b, &x);
        break;
    case JE_SUB:
        fits = i64_sub(a, b, &x);
        break;
    case JE_MUL:
        fits = i64_mul(a, b, &x);
        break;
    case JE_DIV:
        *out = jv_float((double)((long double)a / (long double)b));
        return WEFT_OK;
    case JE_FLOORDIV:
        fits = !(a == INT64_MIN && b == -1);
        x = fits ? a / b - (a % b != 0 && (a % b < 0) != (b < 0)) : 0;
        break;
    case JE_MOD:
        x = b == -1 ? 0 : a % b;
        x += x != 0 && (x < 0) != (b < 0) ? b : 0;
        break;
    default:
        return int_pow(r, a, b, out);
    }
    *out = jv_int(x);
    return fits ? WEFT_OK : overflow(r, op);
}

static weft_status float_op(jinja_run *r, jexpr_op op, double a, double b, jval *out)
{
    double x, m;
    if (b == 0 && (op == JE_DIV || op == JE_FLOORDIV || op == JE_MOD))
        return run_fail(r, "division by zero");
    m = op == JE_MOD || op == JE_FLOORDIV ? fmod(a, b) : 0;
    switch (op) {
    case JE_ADD:
        x = a + b;
        break;
    case JE_SUB:
        x = a - b;
        break;
    case JE_MUL:
        x = a * b;
        break;
    case JE_DIV:
        x = a / b;
        break;
    case JE_MOD:
        x = m != 0 && (m < 0) != (b < 0) ? m + b : m != 0 ? m : copysign(0.0, b);
        break;
    case JE_FLOORDIV: /* as Python has it, so that it agrees with the remainder */
        x = floor((a - m) / b + 0.5) - (m != 0 && (m < 0) != (b < 0));
        break;
    default:
        if ((a == 0 && b < 0) || (a < 0 && b != floor(b) && !isinf(b)))
            return run_fail(r, "this power is not a real number");
        x = pow(a, b);
        if (isinf(x) && !isinf(a) && !isinf(b))
            return run_fail(r, "this power is too large");
    }
    *out = jv_float(x);
    return WEFT_OK;
}

static weft_status repeat(jinja_run *r, const jval *v, int64_t n, jval *out)
{
    if (v->kind == JV_STR) {
        jtext t = {.r = r};
        text_fill(&t, v->as.s, n);
        return text_value(&t, out);
    }
    const jlist *l = v->as.list;
    size_t all = 0;
    if (n > 0 && l->n > 0 && __builtin_mul_overflow((size_t)n, l->n, &all))
        all = SIZE_MAX;
    WEFT_TRY(run_list_room(r, all));
    jlist *made = jlist_new(r, l->seq, all);
    for (size_t i = 0; i < all; i++)
        jlist_push(r, made, l->at[i % l->n]);
    *out = jv_list(made);
    return WEFT_OK;
}

static bool is_repeatable(const jval *v)
{
    return v->kind == JV_STR || jv_is_seq(v, JSEQ_LIST) || jv_is_seq(v, JSEQ_TUPLE);
}

static weft_status join(jinja_run *r, const jval *a, const jval *b, jval *out)
{
    if (a->kind == JV_STR) {
        if (a->as.s.n == 0 || b->as.s.n == 0) {
            *out = a->as.s.n ? *a : *b;
            return WEFT_OK;
        }
        size_t n = a->as.s.n + b->as.s.n;
        WEFT_TRY(run_room(r, n));
        WEFT_TRY(run_step(r, n / 16));
        char *p = arena_alloc(r->a, n);
        memcpy(p, a->as.s.p, a->as.s.n);
        memcpy(p + a->as.s.n, b->as.s.p, b->as.s.n);
        *out = jv_str((str){p, n});
        return WEFT_OK;
    }
    const jlist *x = a->as.list, *y = b->as.list;
    WEFT_TRY(run_list_room(r, x->n + y->n));
    jlist *made = jlist_new(r, x->seq, x->n + y->n);
    for (size_t i = 0; i < x->n; i++)
        jlist_push(r, made, x->at[i]);
    for (size_t i = 0; i < y->n; i++)
        jlist_push(r, made, y->at[i]);
    *out = jv_list(made);
    return WEFT_OK;
}

weft_status op_binary(jinja_run *r, jexpr_op op, const jval *a, const jval *b, jval *out)
{
    if (jv_is_number(a) && jv_is_number(b)) {
        if (a->kind != JV_FLOAT && b->kind != JV_FLOAT)
            return int_op(r, op, jv_integer(a), jv_integer(b), out);
        return float_op(r, op, jv_number(a), jv_number(b), out);
    }
    if (op == JE_ADD && is_repeatable(a) && a->kind == b->kind &&
        (a->kind == JV_STR || a->as.list->seq == b->as.list->seq))
        return join(r, a, b, out);
    if (op == JE_MUL && is_repeatable(a) && jv_is_integer(b))
        return repeat(r, a, jv_integer(b), out);
    if (op == JE_MUL && is_repeatable(b) && jv_is_integer(a))
        return repeat(r, b, jv_integer(a), out);
    if (op == JE_MOD && a->kind == JV_STR) {
        WEFT_TRY(run_touch(r, a));
        return format_percent(r, a->as.s, b, out);
    }
    return wrong_types(r, op, a, b);
}

weft_status op_negate(jinja_run *r, const jval *v, bool minus, jval *out)
{
    if (v->kind == JV_UNDEFINED)
        return run_undefined(r, v);
    if (!jv_is_number(v))
        return run_fail(r, "`%c` does not take %s", minus ? '-' : '+', jv_type(v));
    if (v->kind == JV_FLOAT)
        *out = jv_float(minus ? -v->as.f : v->as.f);
    else if (minus && jv_integer(v) == INT64_MIN)
        return overflow(r, JE_SUB);
    else
        *out = jv_int(minus ? -jv_integer(v) : jv_integer(v));
    return WEFT_OK;
}

/* ---- comparing ---- */

static weft_status contains(jinja_run *r, const jval *all, const jval *one, bool *out)
{
    if (all->kind == JV_STR) {
        if (one->kind != JV_STR)
            return one->kind == JV_UNDEFINED ? run_undefined(r, one)
                                             : wrong_types(r, JE_IN, one, all);
        WEFT_TRY(run_search(r, all->as.s, one->as.s.n));
        *out =
            one->as.s.n == 0 || memmem(all->as.s.p, all->as.s.n, one->as.s.p, one->as.s.n) != NULL;
        return WEFT_OK;
    }
    if (all->kind == JV_DICT) {
        if (!jv_hashable(r, one))
            return run_fail(r, "a %s cannot be a key", jv_type(one));
        *out = jdict_get(r, all->as.dict, one) != NULL;
        return WEFT_OK;
    }
    const jlist *items;
    WEFT_TRY(access_items(r, all, &items));
    WEFT_TRY(run_step(r, items->n / 4));
    *out = false;
    for (size_t i = 0; i < items->n && !*out; i++)
        *out = jv_equal(r, &items->at[i], one);
    return WEFT_OK;
}

/* -1, 0, 1, or 2 where NaN is unordered to everything. */
static int order_numbers(const jval *a, const jval *b)
{
    if (a->kind != JV_FLOAT && b->kind != JV_FLOAT) {
        int64_t x = jv_integer(a), y = jv_integer(b);
        return (x > y) - (x < y);
    }
    double x = jv_number(a), y = jv_number(b);
    return isnan(x) || isnan(y) ? 2 : (x > y) - (x < y);
}

static weft_status order(jinja_run *r, jexpr_op op, const jval *a, const jval *b, int *out)
{
    WEFT_TRY(run_step(r, 1));
    if (jv_is_number(a) && jv_is_number(b)) {
        *out = order_numbers(a, b);
        return WEFT_OK;
    }
    if (a->kind == JV_STR && b->kind == JV_STR) {
        WEFT_TRY(run_step(r, (a->as.s.n < b->as.s.n ? a->as.s.n : b->as.s.n) / 16));
        int c = str_cmp(a->as.s, b->as.s); /* bytes of UTF-8 sort as its code points do */
        *out = (c > 0) - (c < 0);
        return WEFT_OK;
    }
    if (!is_repeatable(a) || !is_repeatable(b) || a->kind != b->kind ||
        a->as.list->seq != b->as.list->seq)
        return wrong_types(r, op, a, b);
    const jlist *x = a->as.list, *y = b->as.list;
    WEFT_TRY(run_enter(r));
    weft_status st = WEFT_OK;
    *out = (x->n > y->n) - (x->n < y->n);
    for (size_t i = 0; i < x->n && i < y->n; i++) {
        if (jv_equal(r, &x->at[i], &y->at[i]))
            continue;
        st = order(r, op, &x->at[i], &y->at[i], out);
        break;
    }
    run_leave(r);
    return st;
}

weft_status op_order(jinja_run *r, const jval *a, const jval *b, int *out)
{
    return order(r, JE_LT, a, b, out);
}

weft_status op_compare(jinja_run *r, jexpr_op op, const jval *a, const jval *b, bool *out)
{
    int c = 0;
    switch (op) {
    case JE_EQ:
    case JE_NE:
        *out = jv_equal(r, a, b) == (op == JE_EQ);
        return WEFT_OK;
    case JE_IN:
    case JE_NOT_IN:
        WEFT_TRY(contains(r, b, a, out));
        *out = *out == (op == JE_IN);
        return WEFT_OK;
    default:
        WEFT_TRY(order(r, op, a, b, &c));
        *out = (op == JE_LT && c == -1) || (op == JE_LE && (c == -1 || c == 0)) ||
               (op == JE_GT && c == 1) || (op == JE_GE && (c == 1 || c == 0));
        return WEFT_OK;
    }
}
