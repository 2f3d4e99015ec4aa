/* sema_const.c - arithmetic and built-in functions on constants.
 *
 * Integers are sizes (poly.h) and stay exact; floats and vectors are computed in double where their
 * values are known, and are only typed where they are not. */
#include "dsl/bind.h"

#include <math.h>

enum {
    VECTOR_MAX = 1 << 20, /* elements of a constant vector */
    SPELT_MAX = 60,       /* an expression longer than this is not repeated in a message */
};

bool val_is_number(val v)
{
    return v.kind == VAL_INT || v.kind == VAL_FLOAT;
}

static bool is_numeric(val v)
{
    return val_is_number(v) || v.kind == VAL_VEC;
}

/* A constant as a double; false where it is only a symbol. */
bool const_number(val v, double *out)
{
    int64_t i;
    if (v.kind == VAL_INT && poly_value(v.size, &i)) {
        *out = (double)i;
        return true;
    }
    *out = v.kind == VAL_FLOAT ? v.number : 0;
    return v.kind == VAL_FLOAT && v.known;
}

static val float_val(bool known, double x)
{
    return (val){.kind = VAL_FLOAT, .known = known, .number = known ? x : 0};
}

static val bool_val(const cond *c)
{
    return (val){.kind = VAL_BOOL, .known = true, .truth = c};
}

static const cond *open_truth(sema *s)
{
    return cond_atom(s->cp, arena_alloc(s->a, 1), NULL, STR(""));
}

static val open_int(sema *s, const char *name)
{
    return (val){.kind = VAL_INT,
                 .known = true,
                 .size = poly_symbol(s->pp, arena_alloc(s->a, 1), str_of(name))};
}

/* With a checkpoint: the numbers on both sides of an operator, ": 32 / 5". */
static const char *operands_text(sema *s, const ast *e)
{
    int64_t a, b;
    if (!s->bind || e->kind != AST_BINARY)
        return "";
    val left = sema_eval(s, e->kid[BINARY_LEFT]), right = sema_eval(s, e->kid[BINARY_RIGHT]);
    if (left.kind != VAL_INT || right.kind != VAL_INT || !poly_value(left.size, &a) ||
        !poly_value(right.size, &b))
        return "";
    return arena_printf(s->a, ": %lld " STR_FMT " %lld", (long long)a, STR_ARG(e->name),
                        (long long)b)
        .p;
}

val sema_size(sema *s, const ast *e, const poly *p)
{
    if (p)
        return (val){.kind = VAL_INT, .known = true, .size = p};
    str spelt = ast_spelt(e);
    if (spelt.n > SPELT_MAX)
        spelt = STR("this");
    switch (poly_failure(s->pp)) {
    case POLY_ZERO_DIVISOR:
        weft_fail(s->dg, W0409, e->loc, STR_FMT " divides by zero", STR_ARG(spelt));
        break;
    case POLY_INEXACT:
        weft_fail(s->dg, W0407, e->loc, STR_FMT " leaves a remainder%s", STR_ARG(spelt),
                  operands_text(s, e));
        break;
    case POLY_OVERFLOW:
        weft_fail(s->dg, W0408, e->loc, STR_FMT " does not fit 64 bits", STR_ARG(spelt));
        break;
    default:
        weft_fail(s->dg, W1104, e->loc, "this size has more than %d terms", POLY_TERMS_MAX);
    }
    return val_unknown();
}

void sema_inexact(sema *s, const ast *e)
{
    str spelt = ast_spelt(e), by = ast_spelt(e->kid[BINARY_RIGHT]);
    weft_fail(s->dg, W0407, e->loc, STR_FMT " divides integers and leaves a remainder",
              STR_ARG(spelt.n > SPELT_MAX ? STR("this") : spelt));
    if (e->kid[BINARY_LEFT]->kind == AST_INT && by.n <= SPELT_MAX)
        weft_note(s->dg, "for a fraction write " STR_FMT ".0 / " STR_FMT,
                  STR_ARG(ast_spelt(e->kid[BINARY_LEFT])), STR_ARG(by));
}

/* ---- element by element ---- */

typedef double (*fn2)(double, double);

/* clang-format off */
static double f_add(double a, double b)  { return a + b; }
static double f_sub(double a, double b)  { return a - b; }
static double f_mul(double a, double b)  { return a * b; }
static double f_div(double a, double b)  { return a / b; }
static double f_lt(double a, double b)   { return a < b; }
static double f_le(double a, double b)   { return a <= b; }
static double f_gt(double a, double b)   { return a > b; }
static double f_ge(double a, double b)   { return a >= b; }
static double f_eq(double a, double b)   { return a == b; }
static double f_ne(double a, double b)   { return a != b; }
static double f_min(double a, double b)  { return b < a ? b : a; }
static double f_max(double a, double b)  { return a < b ? b : a; }
static double f_sqrt(double a, double b) { (void)b; return sqrt(a); }
static double f_log(double a, double b)  { (void)b; return log(a); }
static double f_exp(double a, double b)  { (void)b; return exp(a); }
static double f_sin(double a, double b)  { (void)b; return sin(a); }
static double f_cos(double a, double b)  { (void)b; return cos(a); }
static double f_floor(double a, double b){ (void)b; return floor(a); }
static double f_ceil(double a, double b) { (void)b; return ceil(a); }
/* clang-format on */

typedef struct {
    const char *sign;
    fn2 fn;
    bool compares;
} operator_row;

static const operator_row operators[] = {
    {"+", f_add, false}, {"-", f_sub, false}, {"*", f_mul, false}, {"/", f_div, false},
    {"^", pow, false},   {"<", f_lt, true},   {"<=", f_le, true},  {">", f_gt, true},
    {">=", f_ge, true},  {"==", f_eq, true},  {"!=", f_ne, true},
};

/* fn over scalars and vectors; a scalar stretches. Both are numeric. */
static val map2(sema *s, const ast *e, fn2 fn, bool truths, val a, val b)
{
    double x = 0, y = 0;
    bool vec_a = a.kind == VAL_VEC, vec_b = b.kind == VAL_VEC;
    if (!vec_a && !vec_b) {
        bool ka = const_number(a, &x), kb = const_number(b, &y);
        return float_val(ka && kb, ka && kb ? fn(x, y) : 0);
    }
    if (vec_a && vec_b && !dims_equal(s, a.size, b.size)) {
        weft_fail(s->dg, W0301, e->loc, "vectors of %s and %s elements do not go together",
                  poly_text(s, a.size), poly_text(s, b.size));
        for (uint32_t i = 0; i < e->n_kid; i++)
            sema_note_name(s, e->kid[i], e->loc);
        return val_unknown();
    }
    val out = {.kind = VAL_VEC, .truths = truths, .size = vec_a ? a.size : b.size};
    int64_t n;
    if ((vec_a ? a.data != NULL : const_number(a, &x)) &&
        (vec_b ? b.data != NULL : const_number(b, &y)) && poly_value(out.size, &n) &&
        sema_step(s, e->loc, n / 16)) {
        double *data = ARENA_ARRAY(s->a, double, (size_t)n);
        for (int64_t i = 0; i < n; i++)
            data[i] = fn(vec_a ? a.data[i] : x, vec_b ? b.data[i] : y);
        out.data = data;
        out.known = true;
    }
    return out;
}

/* ---- operators ---- */

static val compare_sizes(sema *s, str op, const poly *a, const poly *b)
{
    bool flip = op.p[0] == '>';
    const poly *lo = flip ? b : a, *hi = flip ? a : b;
    const cond *c;
    if (op.p[0] == '=' || op.p[0] == '!')
        c = cond_equal(s->cp, a, b);
    else if (op.n == 1)
        c = cond_less(s->cp, lo, hi);
    else
        c = cond_not(s->cp, cond_less(s->cp, hi, lo));
    return bool_val(op.p[0] == '!' ? cond_not(s->cp, c) : c);
}

/* 1 / n, of integers, is whole for n = 1 alone: nobody means that, so it is reported without a checkpoint. */
static bool const_over_symbol(sema *s, const ast *e, const poly *a, const poly *b)
{
    int64_t of, by;
    if (s->bind || !poly_value(a, &of) || (of != 1 && of != -1) || poly_value(b, &by))
        return false;
    sema_inexact(s, e);
    return true;
}

static val size_arithmetic(sema *s, const ast *e, const poly *a, const poly *b)
{
    const poly *both[2] = {a, b};
    switch (e->name.p[0]) {
    case '+':
        return sema_size(s, e, poly_add(s->pp, a, b));
    case '-':
        return sema_size(s, e, poly_sub(s->pp, a, b));
    case '*':
        return sema_size(s, e, poly_mul(s->pp, a, b));
    case '/':
        if (const_over_symbol(s, e, a, b))
            return val_unknown();
        if (s->stating)
            sema_state_exact(s, a, b);
        return sema_size(s, e, poly_div(s->pp, a, b));
    default:
        return sema_size(s, e, poly_call(s->pp, "mod", both, 2));
    }
}

/* == and != on what is not a number. */
static val compare_words(sema *s, const ast *e, val a, val b)
{
    const cond *c = open_truth(s);
    if (a.kind == VAL_NONE || b.kind == VAL_NONE) {
        c = val_is_none(s, a.kind == VAL_NONE ? b : a);
    } else if (a.kind == VAL_BOOL && b.kind == VAL_BOOL) {
        const cond *both = cond_and(s->cp, a.truth, b.truth);
        const cond *neither = cond_and(s->cp, cond_not(s->cp, a.truth), cond_not(s->cp, b.truth));
        c = cond_or(s->cp, both, neither);
    } else if (a.kind == VAL_STR && b.kind == VAL_STR) {
        if (a.known && b.known)
            c = cond_bool(s->cp, str_eq(a.text, b.text));
        else if (a.known || b.known)
            c = cond_atom(s->cp, a.known ? b.who : a.who, a.known ? b.index : a.index,
                          a.known ? a.text : b.text);
    } else if (a.kind != VAL_UNKNOWN && b.kind != VAL_UNKNOWN) {
        weft_fail(s->dg, W0207, e->loc, "%s is never equal to %s", val_text(s, a), val_text(s, b));
    }
    return bool_val(e->name.p[0] == '!' ? cond_not(s->cp, c) : c);
}

/* Another condition may well imply that it is there, which only a checkpoint decides: so this warns. */
void sema_warn_none(sema *s, const ast *e, val v)
{
    if (!v.maybe || (v.kind != VAL_INT && v.kind != VAL_FLOAT))
        return;
    str spelt = ast_spelt(e);
    weft_fail(s->dg, W0212, e->loc, STR_FMT " may be none here", STR_ARG(spelt));
    weft_note(s->dg,
              "test it first, `" STR_FMT " != none`, or say what serves instead, `" STR_FMT
              " ?? ..`",
              STR_ARG(spelt), STR_ARG(spelt));
}

val const_binary(sema *s, const ast *e, val a, val b)
{
    str op = e->name;
    bool equality = str_eq(op, STR("==")) || str_eq(op, STR("!="));
    bool compares = equality || op.p[0] == '<' || op.p[0] == '>';
    if (equality && (!is_numeric(a) || !is_numeric(b)))
        return compare_words(s, e, a, b);
    if (a.kind == VAL_UNKNOWN || b.kind == VAL_UNKNOWN)
        return compares ? bool_val(open_truth(s)) : val_unknown();
    if (!is_numeric(a) || !is_numeric(b)) {
        val bad = is_numeric(a) ? b : a;
        weft_fail(s->dg, bad.kind == VAL_TENSOR ? W0204 : W0207, e->kid[is_numeric(a)]->loc,
                  "`" STR_FMT "` takes numbers, not %s", STR_ARG(op), val_text(s, bad));
        if (bad.kind == VAL_SERIES)
            weft_note(s->dg, "choose one with an index, such as [l]");
        return val_unknown();
    }
    if (!equality) { /* none differs from every number */
        sema_warn_none(s, e->kid[BINARY_LEFT], a);
        sema_warn_none(s, e->kid[BINARY_RIGHT], b);
    }
    bool ints = a.kind == VAL_INT && b.kind == VAL_INT;
    if (ints && compares)
        return compare_sizes(s, op, a.size, b.size);
    if (ints && op.p[0] != '^')
        return size_arithmetic(s, e, a.size, b.size);
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (!str_eqz(op, operators[i].sign))
            continue;
        val out = map2(s, e, operators[i].fn, operators[i].compares, a, b);
        if (out.kind == VAL_FLOAT && operators[i].compares)
            return bool_val(out.known ? cond_bool(s->cp, out.number != 0) : open_truth(s));
        return out;
    }
    weft_fail(s->dg, W0207, e->loc, "`" STR_FMT "` takes integers", STR_ARG(op));
    return val_unknown();
}

val const_unary(sema *s, const ast *e, val a)
{
    if (a.kind == VAL_UNKNOWN)
        return a;
    sema_warn_none(s, e->kid[UNARY_OPERAND], a);
    if (a.kind == VAL_INT)
        return sema_size(s, e, poly_sub(s->pp, poly_int(s->pp, 0), a.size));
    if (is_numeric(a))
        return map2(s, e, f_mul, false, float_val(true, -1.0), a);
    weft_fail(s->dg, W0207, e->loc, "`-` takes a number, not %s", val_text(s, a));
    return val_unknown();
}

/* ---- built-in functions ---- */

typedef struct {
    sema *s;
    const ast *e;
    const val *arg;
    int n;
    const char *name;
} builtin_call;

static val wrong(builtin_call *c, int i, const char *wanted)
{
    val v = c->arg[i];
    if (v.kind != VAL_UNKNOWN)
        weft_fail(c->s->dg, v.kind == VAL_TENSOR || v.kind == VAL_WEIGHT ? W0204 : W0207,
                  c->e->kid[CALL_ARGUMENTS]->kid[i]->loc, "%s takes %s, not %s", c->name, wanted,
                  val_text(c->s, v));
    return val_unknown();
}

static val b_len(builtin_call *c)
{
    val v = c->arg[0];
    if (v.kind == VAL_LIST && v.known)
        return (val){.kind = VAL_INT, .known = true, .size = poly_int(c->s->pp, v.n)};
    if (v.kind == VAL_VEC || v.kind == VAL_TABLE)
        return (val){.kind = VAL_INT, .known = true, .size = v.size};
    if (v.kind == VAL_STR && v.known)
        return (val){.kind = VAL_INT, .known = true, .size = poly_int(c->s->pp, (int64_t)v.text.n)};
    if (v.kind == VAL_LIST || v.kind == VAL_STR || v.kind == VAL_UNKNOWN)
        return open_int(c->s, "len(..)");
    return wrong(c, 0, "a list, vector or string");
}

static val b_has(builtin_call *c)
{
    val list = c->arg[0], x = c->arg[1];
    if (list.kind != VAL_LIST && list.kind != VAL_UNKNOWN)
        return wrong(c, 0, "a list");
    if (list.kind == VAL_UNKNOWN || !list.known || x.kind == VAL_UNKNOWN)
        return bool_val(open_truth(c->s));
    if (list.n > 0 && !list.item)
        return wrong(c, 0, "a list that is not as long as a vocabulary");
    const cond *any = cond_bool(c->s->cp, false);
    for (uint32_t i = 0; i < list.n && sema_step(c->s, c->e->loc, 2); i++) {
        val item = list.item[i];
        const cond *same;
        if (item.kind == VAL_INT && x.kind == VAL_INT)
            same = cond_equal(c->s->cp, item.size, x.size);
        else if (item.kind == VAL_STR && x.kind == VAL_STR && item.known && x.known)
            same = cond_bool(c->s->cp, str_eq(item.text, x.text));
        else
            same = open_truth(c->s);
        any = cond_or(c->s->cp, any, same);
    }
    return bool_val(any);
}

static val rounded(builtin_call *c, fn2 fn)
{
    val v = c->arg[0];
    double x;
    if (v.kind == VAL_INT)
        return v;
    if (v.kind == VAL_VEC)
        return map2(c->s, c->e, fn, false, v, float_val(true, 0));
    if (v.kind == VAL_UNKNOWN || (v.kind == VAL_FLOAT && !const_number(v, &x)))
        return open_int(c->s, c->name);
    if (v.kind != VAL_FLOAT)
        return wrong(c, 0, "a number");
    x = fn(x, 0);
    if (x >= -9.2e18 && x <= 9.2e18)
        return (val){.kind = VAL_INT, .known = true, .size = poly_int(c->s->pp, (int64_t)x)};
    if (!bind_spoilt(c->s->bind))
        weft_fail(c->s->dg, W0408, c->e->loc, "%s does not fit an integer", number_text(c->s, x));
    return val_unknown();
}

static val b_floor(builtin_call *c)
{
    return rounded(c, f_floor);
}
static val b_ceil(builtin_call *c)
{
    return rounded(c, f_ceil);
}

static val sizes2(builtin_call *c, const char *fn)
{
    const poly *both[2] = {c->arg[0].size, c->arg[1].size};
    return sema_size(c->s, c->e, poly_call(c->s->pp, fn, both, 2));
}

static val b_idiv(builtin_call *c)
{
    for (int i = 0; i < 2; i++)
        if (c->arg[i].kind != VAL_INT)
            return wrong(c, i, "integers");
    return sizes2(c, "idiv");
}

static val mapped(builtin_call *c, fn2 fn)
{
    if (!is_numeric(c->arg[0]))
        return wrong(c, 0, "a number or vector");
    return map2(c->s, c->e, fn, false, c->arg[0], float_val(true, 0));
}

static val b_sqrt(builtin_call *c)
{
    return mapped(c, f_sqrt);
}
static val b_log(builtin_call *c)
{
    return mapped(c, f_log);
}
static val b_exp(builtin_call *c)
{
    return mapped(c, f_exp);
}
static val b_sin(builtin_call *c)
{
    return mapped(c, f_sin);
}
static val b_cos(builtin_call *c)
{
    return mapped(c, f_cos);
}

static val extreme(builtin_call *c, const char *fn, fn2 f)
{
    for (int i = 0; i < 2; i++)
        if (!is_numeric(c->arg[i]))
            return wrong(c, i, "numbers or vectors");
    if (c->arg[0].kind == VAL_INT && c->arg[1].kind == VAL_INT)
        return sizes2(c, fn);
    return map2(c->s, c->e, f, false, c->arg[0], c->arg[1]);
}

static val b_min(builtin_call *c)
{
    return extreme(c, "min", f_min);
}
static val b_max(builtin_call *c)
{
    return extreme(c, "max", f_max);
}

static val b_clamp(builtin_call *c)
{
    val v = c->arg[0];
    if (!is_numeric(v))
        return wrong(c, 0, "a number or vector");
    for (int i = 1; i < 3; i++) {
        val bound[2] = {v, c->arg[i]};
        builtin_call part = *c;
        if (bound[1].kind == VAL_NONE)
            continue;
        if (!val_is_number(bound[1]))
            return wrong(c, i, "a number or none as a bound");
        part.arg = bound;
        v = i == 1 ? b_max(&part) : b_min(&part);
        if (v.kind == VAL_UNKNOWN)
            return v;
    }
    return v;
}

static val b_iota(builtin_call *c)
{
    int64_t n;
    if (c->arg[0].kind != VAL_INT)
        return wrong(c, 0, "an integer");
    val out = {.kind = VAL_VEC, .size = c->arg[0].size};
    if (!poly_value(out.size, &n))
        return out;
    if (n < 0 || n > VECTOR_MAX) {
        weft_fail(c->s->dg, n < 0 ? W0413 : W1103, c->e->loc,
                  "a constant vector may have 0 to %d elements, not %lld", VECTOR_MAX,
                  (long long)n);
        return val_unknown();
    }
    if (!sema_step(c->s, c->e->loc, n / 16))
        return val_unknown();
    double *data = ARENA_ARRAY(c->s->a, double, (size_t)n);
    for (int64_t i = 0; i < n; i++)
        data[i] = (double)i;
    out.data = data;
    out.known = true;
    return out;
}

static val b_where(builtin_call *c)
{
    val t = c->arg[0];
    if (t.kind != VAL_VEC || !t.truths)
        return wrong(c, 0, "a comparison of vectors");
    for (int i = 1; i < 3; i++)
        if (!is_numeric(c->arg[i]))
            return wrong(c, i, "numbers or vectors");
    val a = map2(c->s, c->e, f_add, false, c->arg[1],
                 map2(c->s, c->e, f_mul, false, t, float_val(true, 0)));
    val b = map2(c->s, c->e, f_add, false, c->arg[2],
                 map2(c->s, c->e, f_mul, false, t, float_val(true, 0)));
    if (a.kind != VAL_VEC || b.kind != VAL_VEC)
        return val_unknown();
    val out = {.kind = VAL_VEC, .size = t.size};
    int64_t n;
    if (t.data && a.data && b.data && poly_value(out.size, &n) &&
        sema_step(c->s, c->e->loc, n / 16)) {
        double *data = ARENA_ARRAY(c->s->a, double, (size_t)n);
        for (int64_t i = 0; i < n; i++)
            data[i] = t.data[i] != 0 ? a.data[i] : b.data[i];
        out.data = data;
        out.known = true;
    }
    return out;
}

static val b_nonzero(builtin_call *c)
{
    val v = c->arg[0];
    double x;
    if (v.kind == VAL_NONE || v.kind == VAL_UNKNOWN)
        return v;
    if (!val_is_number(v))
        return wrong(c, 0, "a number");
    if (const_number(v, &x))
        return x == 0 ? (val){.kind = VAL_NONE, .known = true} : v;
    v.maybe = true;
    v.who = arena_alloc(c->s->a, 1);
    return v;
}

static val b_periodic(builtin_call *c)
{
    sema *s = c->s;
    val v = c->arg[0];
    if (v.kind == VAL_BOOL || v.kind == VAL_UNKNOWN)
        return v.kind == VAL_BOOL ? v : bool_val(open_truth(s));
    if (v.kind != VAL_INT)
        return wrong(c, 0, "a bool or an integer");
    if (c->arg[1].kind != VAL_INT)
        return wrong(c, 1, "an integer");
    const poly *both[2] = {c->arg[1].size, v.size};
    val m = sema_size(s, c->e, poly_call(s->pp, "mod", both, 2));
    if (m.kind == VAL_UNKNOWN)
        return m;
    return bool_val(cond_less(s->cp, m.size, poly_sub(s->pp, v.size, poly_int(s->pp, 1))));
}

/* A text that only a checkpoint decides. */
static val open_text(sema *s)
{
    return (val){.kind = VAL_STR, .who = arena_alloc(s->a, 1)};
}

static val b_kind_of(builtin_call *c)
{
    static const char *const name[] = {
        [VAL_NONE] = "none", [VAL_BOOL] = "bool", [VAL_INT] = "int",    [VAL_FLOAT] = "float",
        [VAL_STR] = "str",   [VAL_LIST] = "list", [VAL_VEC] = "vector",
    };
    val v = c->arg[0];
    if (v.kind == VAL_UNKNOWN || v.maybe)
        return open_text(c->s);
    if ((size_t)v.kind >= sizeof name / sizeof *name || !name[v.kind])
        return wrong(c, 0, "a constant");
    return (val){.kind = VAL_STR, .known = true, .text = str_of(name[v.kind]), .who = c->e};
}

static val b_key(builtin_call *c)
{
    if (c->arg[0].kind != VAL_STR)
        return wrong(c, 0, "a string");
    const ast *at = c->e->kid[CALL_ARGUMENTS]->kid[0];
    if (c->arg[0].known && !c->s->bind)
        keys_check_call(c->s, at->loc, c->arg[0].text, false);
    if (c->s->bind && c->arg[0].known) {
        val found;
        bool present = bind_key(c->s->bind, c->arg[0].text, &found);
        keys_check_call(c->s, at->loc, c->arg[0].text, present);
        if (present)
            return found;
        return c->n < 2 ? (val){.kind = VAL_NONE, .known = true} : c->arg[1];
    }
    if (c->n < 2)
        return val_unknown();
    val v = c->arg[1];
    if (v.kind == VAL_INT)
        return open_int(c->s, "key(..)");
    if (v.kind == VAL_BOOL)
        return bool_val(open_truth(c->s));
    v.known = false;
    v.who = arena_alloc(c->s->a, 1);
    return v.kind == VAL_NONE ? val_unknown() : v;
}

/* Frequencies are finite and not below 0, the factor is above 0. Where settings were refused already, their
 * table is not complained of. */
static bool rope_table_fits(builtin_call *c, const val *t, bool factor)
{
    sema *s = c->s;
    const ast *args = c->e->kid[CALL_ARGUMENTS];
    int64_t n = 0, i = 0;
    if (bind_spoilt(s->bind))
        return true;
    const char *wanted = factor ? range_refuses(RANGE_ABOVE_0, t->factor) : NULL;
    if (wanted)
        weft_fail(s->dg, W0414, args->kid[1]->loc,
                  "the factor of a rope table is %s, but must be %s", number_text(s, t->factor),
                  wanted);
    if (!t->data || !poly_value(t->size, &n) || !sema_step(s, c->e->loc, n / 16))
        return !wanted;
    while (i < n && !range_refuses(RANGE_FROM_0, t->data[i]))
        i++;
    if (i < n)
        weft_fail(s->dg, W0414, args->kid[0]->loc,
                  "frequency %lld of a rope table is %s, but must be %s", (long long)i,
                  number_text(s, t->data[i]), range_refuses(RANGE_FROM_0, t->data[i]));
    return !wanted && i == n;
}

static val b_rope_table(builtin_call *c)
{
    if (c->arg[0].kind != VAL_VEC)
        return wrong(c, 0, "a vector of frequencies");
    if (!val_is_number(c->arg[1]))
        return wrong(c, 1, "a number");
    val out = {.kind = VAL_TABLE, .size = c->arg[0].size, .data = c->arg[0].data};
    bool factor = const_number(c->arg[1], &out.factor);
    out.known = out.data && factor;
    return rope_table_fits(c, &out, factor) ? out : val_unknown();
}

val const_call(sema *s, const ast *e, const builtin_row *row, const val *arg, int n)
{
    static val (*const by_code[BUILTIN_COUNT])(builtin_call *) = {
#define KIND(...)
#define CELLKIND(...)
#define MODIFIER(...)
#define TRANSFORM(...)
#define BUILTIN(name, ...) [BUILTIN_##name] = b_##name,
#include "dsl/kinds.def"
#undef KIND
#undef CELLKIND
#undef MODIFIER
#undef TRANSFORM
#undef BUILTIN
    };
    builtin_call c = {s, e, arg, n, row->name};
    if (n < row->n_min || n > row->n_max) {
        weft_fail(s->dg, W0206, e->loc, "%s takes %s%d operand%s, not %d", row->name,
                  row->n_min < row->n_max ? arena_printf(s->a, "%d to ", row->n_min).p : "",
                  row->n_max, row->n_max == 1 ? "" : "s", n);
        return val_unknown();
    }
    return by_code[row->code](&c);
}
