/* jinja_print.c - values as Python's str() and repr() write them. */
#include "runtime/text/jinja_chars.h"
#include "runtime/text/jinja_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The shortest digits that read back as x, as repr(float) writes them: with an exponent below 1e-4
 * and from 1e16 on. */
void print_float(jtext *t, double x)
{
    char digits[40], *e;
    int exponent, precision = 0;
    run_spend(t->r, FLOAT_STEPS);
    if (isnan(x) || isinf(x)) {
        text_putz(t, isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
        return;
    }
    do
        snprintf(digits, sizeof digits, "%.*e", precision, x);
    while (strtod(digits, NULL) != x && ++precision < 17);
    e = strchr(digits, 'e');
    exponent = atoi(e + 1);
    if (exponent >= -4 && exponent < 16) {
        int decimals = precision > exponent ? precision - exponent : 0;
        snprintf(digits, sizeof digits, "%.*f", decimals, x);
        text_putz(t, digits);
        if (decimals == 0)
            text_putz(t, ".0");
        return;
    }
    text_put(t, (str){digits, (size_t)(e - digits)});
    snprintf(digits, sizeof digits, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
    text_putz(t, digits);
}

static void print_quoted(jtext *t, str s)
{
    char quote = memchr(s.p, '\'', s.n) && !memchr(s.p, '"', s.n) ? '"' : '\'';
    run_spend(t->r, s.n / STEP_CHARS);
    text_putc(t, quote);
    for (size_t i = 0, n; i < s.n; i += n) {
        uint32_t cp;
        char code[16] = {0};
        n = char_at(s, i, &cp);
        if (cp == (uint32_t)quote || cp == '\\' || cp == '\n' || cp == '\r' || cp == '\t') {
            code[0] = '\\';
            code[1] = cp == '\n' ? 'n' : cp == '\r' ? 'r' : cp == '\t' ? 't' : (char)cp;
        } else if (!char_is(cp, CHAR_PRINTABLE) && run_spend(t->r, 1))
            snprintf(code, sizeof code,
                     cp < 0x100     ? "\\x%02x"
                     : cp < 0x10000 ? "\\u%04x"
                                    : "\\U%08x",
                     cp);
        text_put(t, code[0] ? str_of(code) : (str){s.p + i, n});
    }
    text_putc(t, quote);
}

static weft_status print_items(jtext *t, const jlist *l)
{
    for (size_t i = 0; i < l->n && !t->full; i++) {
        if (i)
            text_putz(t, ", ");
        WEFT_TRY(print_repr(t, &l->at[i]));
    }
    return WEFT_OK;
}

static weft_status print_list(jtext *t, const jlist *l)
{
    static const char *const open[] = {
        "[", "(", "range(", "dict_keys([", "dict_values([", "dict_items([", "<generator object"};
    static const char *const close[] = {"]", ")", ")", "])", "])", "])", ">"};
    text_putz(t, open[l->seq]);
    if (l->seq == JSEQ_RANGE) {
        char text[96];
        int64_t step = l->n > 1 ? l->at[1].as.i - l->at[0].as.i : 1, first = 0, last = 0;
        if (l->n) {
            first = l->at[0].as.i;
            last = (int64_t)((uint64_t)l->at[l->n - 1].as.i + (uint64_t)step);
        }
        snprintf(text, sizeof text, "%" PRId64 ", %" PRId64, first, last);
        text_putz(t, text);
        if (step != 1) {
            snprintf(text, sizeof text, ", %" PRId64, step);
            text_putz(t, text);
        }
    } else if (l->seq != JSEQ_GENERATOR) {
        WEFT_TRY(print_items(t, l));
    }
    if (l->seq == JSEQ_TUPLE && l->n == 1)
        text_putc(t, ',');
    text_putz(t, close[l->seq]);
    return WEFT_OK;
}

static weft_status print_dict(jtext *t, const jdict *d)
{
    text_putc(t, '{');
    for (size_t i = 0; i < d->n && !t->full; i++) {
        if (i)
            text_putz(t, ", ");
        WEFT_TRY(print_repr(t, &d->at[i].key));
        text_putz(t, ": ");
        WEFT_TRY(print_repr(t, &d->at[i].v));
    }
    text_putc(t, '}');
    return WEFT_OK;
}

static weft_status print_other(jtext *t, const jval *v)
{
    char text[40];
    switch (v->kind) {
    case JV_NONE:
        text_putz(t, "None");
        break;
    case JV_BOOL:
        text_putz(t, v->as.b ? "True" : "False");
        break;
    case JV_INT:
        snprintf(text, sizeof text, "%" PRId64, v->as.i);
        text_putz(t, text);
        break;
    case JV_FLOAT:
        print_float(t, v->as.f);
        break;
    case JV_LIST:
        return print_list(t, v->as.list);
    case JV_DICT:
        return print_dict(t, v->as.dict);
    case JV_NAMESPACE:
        text_putz(t, "<Namespace ");
        WEFT_TRY(print_dict(t, v->as.dict));
        text_putc(t, '>');
        break;
    case JV_MACRO:
        text_putz(t, "<Macro ");
        print_quoted(t, v->as.macro->def->name);
        text_putc(t, '>');
        break;
    default:
        text_putc(t, '<');
        text_putz(t, jv_type(v));
        text_putc(t, '>');
    }
    return WEFT_OK;
}

weft_status print_repr(jtext *t, const jval *v)
{
    WEFT_TRY(run_step(t->r, 1));
    WEFT_TRY(run_enter(t->r));
    weft_status st = WEFT_OK;
    if (v->kind == JV_STR)
        print_quoted(t, v->as.s);
    else if (v->kind == JV_UNDEFINED)
        text_putz(t, "Undefined");
    else
        st = print_other(t, v);
    run_leave(t->r);
    return st;
}

weft_status print_str(jtext *t, const jval *v)
{
    if (v->kind == JV_STR)
        text_put(t, v->as.s);
    else if (v->kind != JV_UNDEFINED)
        return print_repr(t, v);
    return WEFT_OK;
}
