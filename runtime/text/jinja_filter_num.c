/* jinja_filter_num.c - filters about numbers, and default. */
#include "runtime/text/jinja_builtins.h"
#include "runtime/text/jinja_chars.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

weft_status filter_default(jinja_run *r, const jcall *c, jval *out)
{
    bool use = c->self.kind == JV_UNDEFINED || (arg_truth(c, 1) && !jv_truth(&c->self));
    (void)r;
    *out = !use ? c->self : c->arg[0].kind == JV_ABSENT ? jv_str(STR("")) : c->arg[0];
    return WEFT_OK;
}

weft_status filter_abs(jinja_run *r, const jcall *c, jval *out)
{
    bool minus = jv_is_number(&c->self) && jv_number(&c->self) < 0;
    return op_negate(r, &c->self, minus, out);
}

/* The digits of a number as Python's int() and float() read them: trimmed, with single underscores
 * between digits. NULL if it is too long or not like a number at all. */
static char *digits_of(str s, char *to, size_t size)
{
    size_t begin = char_skip_space(s, 0), end = char_trim_space(s, s.n), n = 0;
    if (end <= begin || end - begin >= size)
        return NULL;
    for (size_t i = begin; i < end; i++) {
        bool between = i > begin && i + 1 < end && s.p[i - 1] != '_' && s.p[i + 1] != '_';
        if (s.p[i] == '_' && between)
            continue;
        if (s.p[i] == 0 || s.p[i] == '_' || (unsigned char)s.p[i] >= 0x80)
            return NULL;
        to[n++] = s.p[i];
    }
    to[n] = 0;
    return to;
}

static bool read_float(str s, double *out)
{
    char text[512], *end;
    const char *p = digits_of(s, text, sizeof text);
    if (!p || strpbrk(p, "xXpP(")) /* C reads hexadecimal and nan(...); Python does not */
        return false;
    *out = strtod(p, &end);
    return *end == 0;
}

static bool read_int(str s, int base, int64_t *out)
{
    char text[128], *end;
    const char *p = digits_of(s, text, sizeof text);
    const char *digits = p && (*p == '-' || *p == '+') ? p + 1 : p;
    if (!p || digits[0] == ' ' || digits[0] == '-' || digits[0] == '+')
        return false;
    if (digits[0] == '0' && (digits[1] | 0x20) == (base == 2 ? 'b' : base == 8 ? 'o' : 0)) {
        memmove(text + (digits - p), digits + 2, strlen(digits + 2) + 1);
    } else if (base == 10 && digits[0] == '0' && (digits[1] | 0x20) == 'x') {
        return false;
    }
    long long x = strtoll(p, &end, base);
    *out = x;
    return end != p && *end == 0 && x != INT64_MAX && x != INT64_MIN;
}

static bool float_to_int(double f, int64_t *out)
{
    if (!(fabs(f) < 0x1p63))
        return false;
    *out = (int64_t)f;
    return true;
}

weft_status filter_int(jinja_run *r, const jcall *c, jval *out)
{
    int64_t x = 0, base = 10;
    double f;
    bool ok = false;
    if (c->self.kind == JV_UNDEFINED)
        return run_undefined(r, &c->self);
    WEFT_TRY(arg_int(r, c, 1, &base));
    if (base < 2 || base > 36)
        return run_fail(r, "int: the base is from 2 to 36");
    if (c->self.kind == JV_STR)
        WEFT_TRY(run_step(r, FLOAT_STEPS));
    if (c->self.kind == JV_STR)
        ok = read_int(c->self.as.s, (int)base, &x) ||
             (read_float(c->self.as.s, &f) && float_to_int(f, &x));
    else if (c->self.kind == JV_FLOAT)
        ok = float_to_int(c->self.as.f, &x);
    else if (jv_is_integer(&c->self)) {
        x = jv_integer(&c->self);
        ok = true;
    }
    *out = ok ? jv_int(x) : c->arg[0].kind == JV_ABSENT ? jv_int(0) : c->arg[0];
    return WEFT_OK;
}

weft_status filter_float(jinja_run *r, const jcall *c, jval *out)
{
    double f = 0;
    bool ok = jv_is_number(&c->self);
    if (c->self.kind == JV_UNDEFINED)
        return run_undefined(r, &c->self);
    if (ok)
        f = jv_number(&c->self);
    else if (c->self.kind == JV_STR) {
        WEFT_TRY(run_step(r, FLOAT_STEPS));
        ok = read_float(c->self.as.s, &f);
    }
    *out = ok ? jv_float(f) : c->arg[0].kind == JV_ABSENT ? jv_float(0) : c->arg[0];
    return WEFT_OK;
}

/* To `digits` decimals, half to even on the exact value, as Python's round. */
static double rounded(double x, int64_t digits)
{
    char text[400];
    if (digits > 300 || !isfinite(x))
        return x;
    if (digits < -300)
        return copysign(0.0, x);
    if (digits < 0) {
        double scale = pow(10, (double)-digits);
        return nearbyint(x / scale) * scale;
    }
    if (fabs(x) > 1e15) /* has no decimals */
        return x;
    snprintf(text, sizeof text, "%.*f", (int)digits, x);
    return strtod(text, NULL);
}

weft_status filter_round(jinja_run *r, const jcall *c, jval *out)
{
    int64_t digits = 0;
    str method = STR("common");
    WEFT_TRY(run_step(r, FLOAT_STEPS));
    WEFT_TRY(arg_int(r, c, 0, &digits));
    WEFT_TRY(arg_str(r, c, 1, &method));
    if (c->self.kind == JV_UNDEFINED)
        return run_undefined(r, &c->self);
    if (!jv_is_number(&c->self))
        return run_fail(r, "round takes a number, not %s", jv_type(&c->self));
    bool up = str_eqz(method, "ceil"), down = str_eqz(method, "floor");
    if (!up && !down && !str_eqz(method, "common"))
        return run_fail(r, "round: the method is common, ceil or floor");
    double x = jv_number(&c->self), scale = pow(10, (double)digits);
    if (!up && !down && c->self.kind != JV_FLOAT && digits >= 0)
        *out = jv_int(jv_integer(&c->self));
    else if (!up && !down && c->self.kind != JV_FLOAT)
        *out = jv_int((int64_t)rounded(x, digits < -18 ? -18 : digits));
    else if (!up && !down)
        *out = jv_float(rounded(x, digits));
    else
        *out = jv_float((up ? ceil(x * scale) : floor(x * scale)) / scale);
    return WEFT_OK;
}

weft_status filter_sum(jinja_run *r, const jcall *c, jval *out)
{
    const jlist *items;
    jval sum = c->arg[1].kind == JV_ABSENT ? jv_int(0) : c->arg[1];
    WEFT_TRY(access_items(r, &c->self, &items));
    if (sum.kind == JV_STR)
        return run_fail(r, "sum does not add strings; join does");
    for (size_t i = 0; i < items->n; i++) {
        jval v = items->at[i], next;
        WEFT_TRY(run_step(r, 1));
        if (jv_is_given(&c->arg[0]))
            WEFT_TRY(access_path(r, &items->at[i], &c->arg[0], &v));
        WEFT_TRY(op_binary(r, JE_ADD, &sum, &v, &next));
        sum = next;
    }
    *out = sum;
    return WEFT_OK;
}
