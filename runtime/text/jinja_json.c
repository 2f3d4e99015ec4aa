/* jinja_json.c - the filter tojson: Python's json.dumps as transformers calls it, with ensure_ascii
 * off unless asked for, and its arguments indent, separators and sort_keys. */
#include "runtime/text/jinja_builtins.h"
#include "runtime/text/jinja_chars.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    jtext t;
    bool ascii, sort;
    bool indented;
    str indent; /* of one level */
    str item_sep, key_sep;
    int level;
} dumper;

static void dump_string(dumper *d, str s)
{
    static const char letters[] = "\"\\\n\r\t\f\b", codes[] = "\"\\nrtfb";
    size_t plain = 0; /* what begins here needs no escape */
    run_spend(d->t.r, s.n / STEP_CHARS);
    text_putc(&d->t, '"');
    for (size_t i = 0, n; i < s.n; i += n) {
        uint32_t cp;
        char code[16];
        n = char_at(s, i, &cp);
        const char *letter = cp < 0x80 && cp ? strchr(letters, (int)cp) : NULL;
        if (letter)
            memcpy(code, (char[]){'\\', codes[letter - letters], 0}, 3);
        else if (cp < 0x20 || (d->ascii && cp > 0x7e && cp < 0x10000))
            snprintf(code, sizeof code, "\\u%04x", cp);
        else if (d->ascii && cp > 0xffff)
            snprintf(code, sizeof code, "\\u%04x\\u%04x", 0xd800 + ((cp - 0x10000) >> 10),
                     0xdc00 + (cp & 0x3ff));
        else
            continue;
        run_spend(d->t.r, !letter);
        text_put(&d->t, (str){s.p + plain, i - plain});
        text_putz(&d->t, code);
        plain = i + n;
    }
    text_put(&d->t, (str){s.p + plain, s.n - plain});
    text_putc(&d->t, '"');
}

static void dump_break(dumper *d)
{
    if (!d->indented)
        return;
    text_putc(&d->t, '\n');
    text_fill(&d->t, d->indent, d->level);
}

static void dump_number(dumper *d, const jval *v)
{
    if (v->kind != JV_FLOAT) {
        char text[32];
        snprintf(text, sizeof text, "%" PRId64, v->as.i);
        text_putz(&d->t, text);
    } else if (isnan(v->as.f) || isinf(v->as.f)) {
        text_putz(&d->t, isnan(v->as.f) ? "NaN" : v->as.f < 0 ? "-Infinity" : "Infinity");
    } else {
        print_float(&d->t, v->as.f);
    }
}

static weft_status dump(dumper *d, const jval *v);

static weft_status dump_list(dumper *d, const jlist *l)
{
    text_putc(&d->t, '[');
    d->level++;
    for (size_t i = 0; i < l->n && !d->t.full; i++) {
        if (i)
            text_put(&d->t, d->item_sep);
        dump_break(d);
        WEFT_TRY(dump(d, &l->at[i]));
    }
    d->level--;
    if (l->n)
        dump_break(d);
    text_putc(&d->t, ']');
    return WEFT_OK;
}

static weft_status dump_key(dumper *d, const jval *key)
{
    switch (key->kind) {
    case JV_STR:
        dump_string(d, key->as.s);
        return WEFT_OK;
    case JV_NONE:
        text_putz(&d->t, "\"null\"");
        return WEFT_OK;
    case JV_BOOL:
        text_putz(&d->t, key->as.b ? "\"true\"" : "\"false\"");
        return WEFT_OK;
    case JV_INT:
    case JV_FLOAT:
        text_putc(&d->t, '"');
        dump_number(d, key);
        text_putc(&d->t, '"');
        return WEFT_OK;
    default:
        return run_fail(d->t.r, "tojson: a %s cannot be a key", jv_type(key));
    }
}

/* The pairs in the order of their keys: an insertion sort would be slow, so the keys are merged. */
static weft_status sorted_pairs(jinja_run *r, jpair *at, jpair *spare, size_t n)
{
    size_t half = n / 2;
    if (n < 2)
        return WEFT_OK;
    WEFT_TRY(sorted_pairs(r, at, spare, half));
    WEFT_TRY(sorted_pairs(r, at + half, spare, n - half));
    memcpy(spare, at, half * sizeof *at);
    for (size_t i = 0, j = half, k = 0; i < half; k++) {
        int order = -1;
        if (j < n)
            WEFT_TRY(op_order(r, &spare[i].key, &at[j].key, &order));
        at[k] = j < n && order > 0 ? at[j++] : spare[i++];
    }
    return WEFT_OK;
}

static weft_status dump_dict(dumper *d, const jdict *dict)
{
    jinja_run *r = d->t.r;
    const jpair *at = dict->at;
    if (d->sort && dict->n > 1) {
        WEFT_TRY(run_list_room(r, dict->n * 3));
        jpair *copy = ARENA_ARRAY(r->a, jpair, dict->n), *spare = ARENA_ARRAY(r->a, jpair, dict->n);
        memcpy(copy, at, dict->n * sizeof *at);
        WEFT_TRY(sorted_pairs(r, copy, spare, dict->n));
        at = copy;
    }
    text_putc(&d->t, '{');
    d->level++;
    for (size_t i = 0; i < dict->n && !d->t.full; i++) {
        if (i)
            text_put(&d->t, d->item_sep);
        dump_break(d);
        WEFT_TRY(dump_key(d, &at[i].key));
        text_put(&d->t, d->key_sep);
        WEFT_TRY(dump(d, &at[i].v));
    }
    d->level--;
    if (dict->n)
        dump_break(d);
    text_putc(&d->t, '}');
    return WEFT_OK;
}

static weft_status dump_inner(dumper *d, const jval *v)
{
    switch (v->kind) {
    case JV_NONE:
        text_putz(&d->t, "null");
        return WEFT_OK;
    case JV_BOOL:
        text_putz(&d->t, v->as.b ? "true" : "false");
        return WEFT_OK;
    case JV_INT:
    case JV_FLOAT:
        dump_number(d, v);
        return WEFT_OK;
    case JV_STR:
        dump_string(d, v->as.s);
        return WEFT_OK;
    case JV_DICT:
        return dump_dict(d, v->as.dict);
    case JV_UNDEFINED:
        return run_undefined(d->t.r, v);
    default:
        if (jv_is_seq(v, JSEQ_LIST) || jv_is_seq(v, JSEQ_TUPLE))
            return dump_list(d, v->as.list);
        return run_fail(d->t.r, "tojson: a %s is not JSON", jv_type(v));
    }
}

static weft_status dump(dumper *d, const jval *v)
{
    WEFT_TRY(run_step(d->t.r, 1));
    WEFT_TRY(run_enter(d->t.r));
    weft_status st = dump_inner(d, v);
    run_leave(d->t.r);
    return st;
}

static weft_status read_indent(dumper *d, const jval *indent)
{
    if (!jv_is_given(indent))
        return WEFT_OK;
    d->indented = true;
    d->item_sep = STR(",");
    if (indent->kind == JV_STR) {
        d->indent = indent->as.s;
        return WEFT_OK;
    }
    if (!jv_is_integer(indent))
        return run_fail(d->t.r, "tojson: indent is a number or a string, not %s", jv_type(indent));
    jtext blanks = {.r = d->t.r};
    text_fill(&blanks, STR(" "), jv_integer(indent));
    return text_done(&blanks, &d->indent);
}

static weft_status read_separators(dumper *d, const jval *seps)
{
    if (!jv_is_given(seps))
        return WEFT_OK;
    const jlist *l = seps->kind == JV_LIST ? seps->as.list : NULL;
    if (!l || l->n != 2 || l->at[0].kind != JV_STR || l->at[1].kind != JV_STR)
        return run_fail(d->t.r, "tojson: separators are two strings");
    d->item_sep = l->at[0].as.s;
    d->key_sep = l->at[1].as.s;
    return WEFT_OK;
}

weft_status filter_tojson(jinja_run *r, const jcall *c, jval *out)
{
    dumper d = {.t = {.r = r}, .item_sep = STR(", "), .key_sep = STR(": ")};
    d.ascii = jv_truth(&c->arg[0]);
    WEFT_TRY(read_indent(&d, &c->arg[1]));
    WEFT_TRY(read_separators(&d, &c->arg[2]));
    d.sort = jv_truth(&c->arg[3]);
    WEFT_TRY(dump(&d, &c->self));
    return text_value(&d.t, out);
}
