/* jinja_format.c - "%5.2f" % x and "{:>8}".format(x), with Python's rules.
 *
 * Both come down to a spec and a value. Widths are bounded by the memory of the rendering, precision
 * by PRECISION_MAX. */
#include "runtime/base/utf8.h"
#include "runtime/text/jinja_builtins.h"
#include "runtime/text/jinja_chars.h"

#include <math.h>
#include <stdio.h>

enum { PRECISION_MAX = 1000, NESTING_MAX = 2 };

typedef struct {
    str fill;
    char align; /* < > ^ = or 0 */
    char sign;  /* + or blank or 0 */
    bool alternate;
    int64_t width;
    char group;        /* , or _ or 0 */
    int64_t precision; /* -1: none */
    char type;         /* 0: none */
} spec;

/* sign and prefix, then body, filled up to the width. */
static void put_padded(jtext *t, const spec *s, str prefix, str body, char align)
{
    int64_t n = (int64_t)(utf8_count(prefix) + utf8_count(body));
    int64_t pad = s->width > n ? s->width - n : 0;
    int64_t left = align == '>' ? pad : align == '^' ? pad / 2 : 0;
    text_fill(t, s->fill, left);
    text_put(t, prefix);
    if (align == '=')
        text_fill(t, s->fill, pad);
    text_put(t, body);
    text_fill(t, s->fill, align == '<' ? pad : align == '^' ? pad - left : 0);
}

static weft_status put_text(jtext *t, const spec *s, str text)
{
    size_t end = 0;
    if (s->align == '=')
        return run_fail(t->r, "`=` aligns numbers only");
    if (s->precision < 0)
        end = text.n;
    for (int64_t i = 0; i < s->precision && end < text.n; i++)
        utf8_char_at(text, &end);
    put_padded(t, s, STR(""), (str){text.p, end}, s->align ? s->align : '<');
    return WEFT_OK;
}

/* Separators into the whole part of digits, every `every` from its end. */
static str grouped(char *to, const char *digits, char group, size_t every)
{
    size_t whole = strspn(digits, "0123456789abcdefABCDEF"), n = 0;
    for (size_t i = 0; digits[i]; i++) {
        if (i > 0 && i < whole && (whole - i) % every == 0)
            to[n++] = group;
        to[n++] = digits[i];
    }
    return (str){to, n};
}

static str sign_of(const spec *s, bool negative)
{
    return negative ? STR("-") : s->sign == '+' ? STR("+") : s->sign == ' ' ? STR(" ") : STR("");
}

static weft_status put_int(jtext *t, const spec *s, int64_t x)
{
    char digits[80], parted[160], prefix[4] = {0};
    uint64_t u = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
    size_t n = 0;
    unsigned base = s->type == 'x' || s->type == 'X' ? 16
                    : s->type == 'o'                 ? 8
                    : s->type == 'b'                 ? 2
                                                     : 10;
    if (s->type == 'c') {
        char one[4];
        if (x < 0 || x > 0x10ffff)
            return run_fail(t->r, "there is no character of that number");
        spec text = *s;
        text.precision = -1;
        return put_text(t, &text, (str){one, char_put(one, (uint32_t)x)});
    }
    do
        digits[n++] = (s->type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef")[u % base];
    while (u /= base);
    while (s->precision > (int64_t)n && n < 64)
        digits[n++] = '0';
    for (size_t i = 0; i < n / 2; i++) {
        char c = digits[i];
        digits[i] = digits[n - 1 - i];
        digits[n - 1 - i] = c;
    }
    digits[n] = 0;
    str sign = sign_of(s, x < 0);
    memcpy(prefix, sign.p, sign.n);
    if (s->alternate && base != 10) {
        prefix[sign.n] = '0';
        prefix[sign.n + 1] = s->type;
    }
    put_padded(t, s, str_of(prefix),
               s->group ? grouped(parted, digits, s->group, base == 10 ? 3 : 4) : str_of(digits),
               s->align ? s->align : '>');
    return WEFT_OK;
}

static weft_status put_float(jtext *t, const spec *s, double x)
{
    jinja_run *r = t->r;
    char how[] = "%#.*f", type = s->type;
    int64_t precision = s->precision < 0 ? 6 : s->precision;
    size_t room = (size_t)precision + 400;
    WEFT_TRY(run_room(r, room * 3));
    char *digits = arena_alloc(r->a, room), *parted = arena_alloc(r->a, room * 2);
    double size = fabs(x) * (type == '%' ? 100 : 1);
    if (type == 0 && s->precision < 0 && isfinite(x)) {
        jtext shortest = {.r = r};
        str text;
        print_float(&shortest, size);
        WEFT_TRY(text_done(&shortest, &text));
        snprintf(digits, room, STR_FMT, STR_ARG(text));
    } else if (!isfinite(x)) {
        bool upper = type == 'F' || type == 'E' || type == 'G';
        snprintf(digits, room, "%s", isnan(x) ? (upper ? "NAN" : "nan") : upper ? "INF" : "inf");
    } else {
        how[4] = type == '%' ? 'f' : type == 0 ? 'g' : type;
        if (s->alternate) {
            snprintf(digits, room, how, (int)precision, size);
        } else { /* "%#.*f" without its '#' */
            char plain[] = {'%', '.', '*', how[4], 0};
            snprintf(digits, room, plain, (int)precision, size);
        }
        if (type == 0 && !strpbrk(digits, ".e"))
            strcat(digits, ".0");
    }
    if (type == '%')
        strcat(digits, "%");
    put_padded(t, s, sign_of(s, signbit(x) && !isnan(x)),
               s->group ? grouped(parted, digits, s->group, 3) : str_of(digits),
               s->align ? s->align : '>');
    return WEFT_OK;
}

static weft_status put_value(jtext *t, const spec *s, const jval *v)
{
    if (s->precision > PRECISION_MAX)
        return run_fail(t->r, "a precision is at most %d", PRECISION_MAX);
    bool float_type = s->type && strchr("eEfFgG%", s->type);
    bool int_type = s->type && strchr("bcdoxX", s->type);
    if (jv_is_number(v) && (float_type || (v->kind == JV_FLOAT && !int_type && s->type != 's')))
        return put_float(t, s, jv_number(v));
    if (jv_is_integer(v) && (int_type || (v->kind == JV_INT && s->type == 0)))
        return put_int(t, s, jv_integer(v));
    if (s->type && s->type != 's')
        return run_fail(t->r, "the format `%c` does not take %s", s->type, jv_type(v));
    str text;
    WEFT_TRY(value_to_str(t->r, v, &text));
    return put_text(t, s, text);
}

/* ---- "..." % args ---- */

typedef struct {
    jinja_run *r;
    str fmt;
    size_t at;
    const jval *args;
    size_t used;
} percent;

static weft_status next_arg(percent *p, jval *out)
{
    bool tuple = jv_is_seq(p->args, JSEQ_TUPLE);
    size_t n = tuple ? p->args->as.list->n : 1;
    if (p->used >= n)
        return run_fail(p->r, "there are not enough values for this format");
    *out = tuple ? p->args->as.list->at[p->used] : *p->args;
    p->used++;
    return WEFT_OK;
}

static weft_status named_arg(percent *p, jval *out)
{
    size_t begin = p->at;
    int depth = 1;
    for (; p->at < p->fmt.n && depth; p->at++)
        depth += (p->fmt.p[p->at] == '(') - (p->fmt.p[p->at] == ')');
    if (depth)
        return run_fail(p->r, "a name in the format does not end");
    if (p->args->kind != JV_DICT)
        return run_fail(p->r, "a format with names takes a dict");
    str name = {p->fmt.p + begin, p->at - begin - 1};
    const jval *found = jdict_get_str(p->r, p->args->as.dict, name);
    if (!found)
        return run_fail(p->r, "the format's `" STR_FMT "` is not there", STR_ARG(name));
    *out = *found;
    p->used = 1;
    return WEFT_OK;
}

/* Digits at the current place, or the next value for a star. */
static weft_status read_count(percent *p, int64_t *out)
{
    jval v;
    if (p->at < p->fmt.n && p->fmt.p[p->at] == '*') {
        p->at++;
        WEFT_TRY(next_arg(p, &v));
        if (!jv_is_integer(&v))
            return run_fail(p->r, "`*` takes an integer");
        *out = jv_integer(&v);
        return WEFT_OK;
    }
    while (p->at < p->fmt.n && p->fmt.p[p->at] >= '0' && p->fmt.p[p->at] <= '9') {
        *out = *out * 10 + (p->fmt.p[p->at++] - '0');
        if (*out > INT32_MAX)
            return run_fail(p->r, "a width is too large");
    }
    return WEFT_OK;
}

static weft_status read_flags(percent *p, spec *s)
{
    bool zero = false;
    for (; p->at < p->fmt.n && p->fmt.p[p->at] && strchr("-+ #0", p->fmt.p[p->at]); p->at++) {
        char c = p->fmt.p[p->at];
        if (c == '-')
            s->align = '<';
        else if (c == '0')
            zero = true;
        else if (c == '#')
            s->alternate = true;
        else if (s->sign != '+')
            s->sign = c;
    }
    if (zero && s->align != '<') {
        s->align = '=';
        s->fill = STR("0");
    }
    WEFT_TRY(read_count(p, &s->width));
    if (s->width < 0) {
        s->align = '<';
        s->width = s->width < -INT32_MAX ? INT32_MAX : -s->width;
    }
    if (p->at < p->fmt.n && p->fmt.p[p->at] == '.') {
        p->at++;
        s->precision = 0;
        WEFT_TRY(read_count(p, &s->precision));
        s->precision = s->precision < 0 ? 0 : s->precision;
    }
    while (p->at < p->fmt.n && p->fmt.p[p->at] && strchr("hlL", p->fmt.p[p->at]))
        p->at++;
    return WEFT_OK;
}

static weft_status put_percent(percent *p, jtext *t)
{
    spec s = {.fill = STR(" "), .precision = -1};
    jval v = {.kind = JV_ABSENT};
    if (p->at < p->fmt.n && p->fmt.p[p->at] == '(') {
        p->at++;
        WEFT_TRY(named_arg(p, &v));
    }
    WEFT_TRY(read_flags(p, &s));
    if (p->at == p->fmt.n)
        return run_fail(p->r, "the format ends within a `%%`");
    char type = p->fmt.p[p->at++];
    if (type == '%') {
        text_putc(t, '%');
        return WEFT_OK;
    }
    if (v.kind == JV_ABSENT)
        WEFT_TRY(next_arg(p, &v));
    WEFT_TRY(run_touch(p->r, &v));
    if (type == 's' || type == 'r' || type == 'a') {
        jtext text = {.r = p->r};
        str printed;
        WEFT_TRY(type == 's' ? print_str(&text, &v) : print_repr(&text, &v));
        WEFT_TRY(text_done(&text, &printed));
        s.align = s.align == '<' ? '<' : '>';
        s.fill = STR(" ");
        return put_text(t, &s, printed);
    }
    if (type == 'c' && v.kind == JV_STR && utf8_count(v.as.s) == 1)
        return put_text(t, &s, v.as.s);
    if (!type || !strchr("diuoxXeEfFgGc", type))
        return run_fail(p->r, "there is no such format");
    if (!jv_is_number(&v))
        return run_fail(p->r, "the format `%%%c` takes a number, not %s", type, jv_type(&v));
    s.type = type == 'i' || type == 'u' ? 'd' : type;
    s.align = s.align ? s.align : '>';
    if (v.kind == JV_FLOAT && s.type == 'd' && fabs(v.as.f) < 0x1p63)
        v = jv_int((int64_t)v.as.f);
    return put_value(t, &s, &v);
}

weft_status format_percent(jinja_run *r, str fmt, const jval *args, jval *out)
{
    percent p = {.r = r, .fmt = fmt, .args = args};
    jtext t = {.r = r};
    while (p.at < fmt.n) {
        const char *sign = memchr(fmt.p + p.at, '%', fmt.n - p.at);
        size_t end = sign ? (size_t)(sign - fmt.p) : fmt.n;
        text_put(&t, (str){fmt.p + p.at, end - p.at});
        p.at = end + (sign != NULL);
        WEFT_TRY(run_step(r, 1));
        if (sign)
            WEFT_TRY(put_percent(&p, &t));
    }
    size_t n = jv_is_seq(args, JSEQ_TUPLE) ? args->as.list->n : 1;
    if (p.used < n && args->kind != JV_DICT && args->kind != JV_LIST)
        return run_fail(r, "not all values are used by the format");
    if (jv_is_seq(args, JSEQ_TUPLE) && p.used < n)
        return run_fail(r, "not all values are used by the format");
    return text_value(&t, out);
}

/* ---- "...".format(...) ---- */

typedef struct {
    jinja_run *r;
    const jcall *c;
    size_t next;
    bool automatic, numbered;
} braces;

static weft_status expand(braces *b, str fmt, int depth, jtext *t);

/* The value a field names: a number or keyword, then .attributes and [items]. */
static weft_status field_value(braces *b, str name, jval *out)
{
    size_t end = 0;
    int64_t number = 0;
    while (end < name.n && name.p[end] != '.' && name.p[end] != '[')
        end++;
    str first = {name.p, end};
    bool digits = end < 10;
    for (size_t i = 0; i < end && digits; i++) {
        digits = first.p[i] >= '0' && first.p[i] <= '9';
        number = number * 10 + (first.p[i] - '0');
    }
    if (digits) {
        b->automatic = b->automatic || end == 0;
        b->numbered = b->numbered || end > 0;
        if (b->automatic && b->numbered)
            return run_fail(b->r, "format: fields with and without numbers do not mix");
        size_t i = end == 0 ? b->next++ : (size_t)number;
        if (i >= b->c->n)
            return run_fail(b->r, "format: there is no argument %zu", i);
        *out = b->c->arg[i];
    } else {
        size_t k = 0;
        WEFT_TRY(run_step(b->r, 1 + b->c->n_kw / STEP_ITEMS));
        while (k < b->c->n_kw && !str_eq(b->c->kw_name[k], first))
            k++;
        if (k == b->c->n_kw)
            return run_fail(b->r, "format: there is no argument `" STR_FMT "`", STR_ARG(first));
        *out = b->c->kw[k];
    }
    while (end < name.n) {
        bool item = name.p[end] == '[';
        size_t begin = ++end;
        while (end < name.n &&
               (item ? name.p[end] != ']' : name.p[end] != '.' && name.p[end] != '['))
            end++;
        jval path = jv_str((str){name.p + begin, end - begin}), v = *out;
        WEFT_TRY(access_path(b->r, &v, &path, out));
        end += item;
    }
    return WEFT_OK;
}

static int64_t spec_number(str s, size_t *at)
{
    int64_t n = 0;
    while (*at < s.n && s.p[*at] >= '0' && s.p[*at] <= '9') {
        n = n * 10 + (s.p[(*at)++] - '0');
        n = n > INT32_MAX ? INT32_MAX : n;
    }
    return n;
}

/* [[fill]align][sign][#][0][width][grouping][.precision][type] */
static weft_status read_spec(jinja_run *r, str s, spec *out)
{
    size_t at = 0, after = 0;
    spec x = {.fill = STR(" "), .precision = -1};
    str first = s.n ? utf8_char_at(s, &after) : STR("");
    if (after < s.n && strchr("<>^=", s.p[after])) {
        x.fill = first;
        x.align = s.p[after];
        at = after + 1;
    } else if (s.n && s.p[0] && strchr("<>^=", s.p[0])) {
        x.align = s.p[at++];
    }
    if (at < s.n && (s.p[at] == '+' || s.p[at] == '-' || s.p[at] == ' ')) {
        x.sign = s.p[at] == '-' ? 0 : s.p[at];
        at++;
    }
    if (at < s.n && s.p[at] == '#') {
        x.alternate = true;
        at++;
    }
    if (at < s.n && s.p[at] == '0') {
        x.fill = x.align ? x.fill : STR("0");
        x.align = x.align ? x.align : '=';
        at++;
    }
    x.width = spec_number(s, &at);
    if (at < s.n && (s.p[at] == ',' || s.p[at] == '_'))
        x.group = s.p[at++];
    if (at + 1 < s.n && s.p[at] == '.') {
        at++;
        x.precision = spec_number(s, &at);
    }
    if (at < s.n)
        x.type = s.p[at++];
    if (at < s.n || (x.type && !strchr("sbcdoxXeEfFgG%", x.type)))
        return run_fail(r, "format: `" STR_FMT "` is not a format", STR_ARG(s));
    *out = x;
    return WEFT_OK;
}

/* One field, the text between its braces. */
static weft_status put_field(braces *b, str field, int depth, jtext *t)
{
    size_t end = 0;
    jval v;
    spec s = {.fill = STR(" "), .precision = -1};
    while (end < field.n && field.p[end] != '!' && field.p[end] != ':')
        end +=
            field.p[end] == '[' && memchr(field.p + end, ']', field.n - end)
                ? (size_t)((const char *)memchr(field.p + end, ']', field.n - end) - field.p) - end
                : 1;
    WEFT_TRY(field_value(b, (str){field.p, end}, &v));
    if (end < field.n && field.p[end] == '!') {
        jtext text = {.r = b->r};
        char how = end + 1 < field.n ? field.p[end + 1] : 0;
        end += 2;
        if ((how != 'r' && how != 's' && how != 'a') || (end < field.n && field.p[end] != ':'))
            return run_fail(b->r, "format: the conversions are !s and !r");
        WEFT_TRY(how == 's' ? print_str(&text, &v) : print_repr(&text, &v));
        WEFT_TRY(text_value(&text, &v));
    }
    if (end < field.n) {
        jtext inner = {.r = b->r};
        str text;
        WEFT_TRY(expand(b, (str){field.p + end + 1, field.n - end - 1}, depth + 1, &inner));
        WEFT_TRY(text_done(&inner, &text));
        if (text.n)
            WEFT_TRY(read_spec(b->r, text, &s));
        if (text.n && (v.kind == JV_NONE || v.kind >= JV_LIST))
            return run_fail(b->r, "format: %s takes no format", jv_type(&v));
    }
    return put_value(t, &s, &v);
}

static weft_status expand(braces *b, str fmt, int depth, jtext *t)
{
    if (depth > NESTING_MAX)
        return run_fail(b->r, "format: fields nest too deeply");
    for (size_t i = 0; i < fmt.n;) {
        char c = fmt.p[i];
        WEFT_TRY(run_step(b->r, 1));
        if ((c == '{' || c == '}') && depth == 0 && i + 1 < fmt.n && fmt.p[i + 1] == c) {
            text_putc(t, c);
            i += 2;
        } else if (c == '{') {
            size_t begin = ++i;
            int open = 1;
            for (; i < fmt.n && open; i++)
                open += (fmt.p[i] == '{') - (fmt.p[i] == '}');
            if (open)
                return run_fail(b->r, "format: a field does not end");
            WEFT_TRY(put_field(b, (str){fmt.p + begin, i - begin - 1}, depth, t));
        } else if (c == '}') {
            return run_fail(b->r, "format: a single `}`");
        } else {
            size_t begin = i;
            while (i < fmt.n && fmt.p[i] != '{' && fmt.p[i] != '}')
                i++;
            text_put(t, (str){fmt.p + begin, i - begin});
        }
    }
    return WEFT_OK;
}

weft_status method_format(jinja_run *r, const jcall *c, jval *out)
{
    braces b = {.r = r, .c = c};
    jtext t = {.r = r};
    WEFT_TRY(expand(&b, c->self.as.s, 0, &t));
    return text_value(&t, out);
}
