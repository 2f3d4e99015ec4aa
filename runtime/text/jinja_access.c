/* jinja_access.c - looking into values: attributes, items, slices, and the items of what is iterable.
 *
 * Jinja looks for an attribute first among the methods and then among the keys for a.b, and the
 * other way round for a["b"]. What is not there is undefined; only looking into something undefined
 * is a fault. */
#include "runtime/base/utf8.h"
#include "runtime/text/jinja_chars.h"
#include "runtime/text/jinja_run.h"

#include <inttypes.h>

static jval lacks(const jval *v, str name)
{
    jval u = jv_undefined(JWHY_ATTR, name);
    u.of = (uint8_t)v->kind;
    return u;
}

static bool find_method(jinja_run *r, const jval *v, str name, jval *out)
{
    const jrow *row = method_row(v, name);
    if (!row)
        return false;
    if (!row->fn) {
        *out = lacks(v, name);
        out->why = JWHY_UNSAFE;
        return true;
    }
    jval *self = ARENA_NEW(r->a, jval);
    *self = *v;
    *out = (jval){.kind = JV_BUILTIN, .as.fn = {row, self}};
    return true;
}

static jval loop_attr(jinja_run *r, const jval *v, str name)
{
    const jloop *l = v->as.loop;
    int64_t i = (int64_t)l->i, n = (int64_t)l->items->n;
    if (str_eqz(name, "index"))
        return jv_int(i + 1);
    if (str_eqz(name, "index0"))
        return jv_int(i);
    if (str_eqz(name, "first"))
        return jv_bool(i == 0);
    if (str_eqz(name, "last"))
        return jv_bool(i + 1 == n);
    if (str_eqz(name, "length"))
        return jv_int(n);
    if (str_eqz(name, "revindex"))
        return jv_int(n - i);
    if (str_eqz(name, "revindex0"))
        return jv_int(n - i - 1);
    if (str_eqz(name, "depth") || str_eqz(name, "depth0"))
        return jv_int(l->depth0 + (name.n == 5));
    if (str_eqz(name, "previtem"))
        return i > 0 ? l->items->at[i - 1]
                     : jv_undefined(JWHY_TEXT, STR("there is no previous item"));
    if (str_eqz(name, "nextitem"))
        return i + 1 < n ? l->items->at[i + 1]
                         : jv_undefined(JWHY_TEXT, STR("there is no next item"));
    jval out;
    return find_method(r, v, name, &out) ? out : lacks(v, name);
}

weft_status access_attr(jinja_run *r, const jval *v, str name, bool maybe_method, jval *out)
{
    const jval *found = NULL;
    switch (v->kind) {
    case JV_UNDEFINED:
        return run_undefined(r, v);
    case JV_LOOP:
        *out = loop_attr(r, v, name);
        return WEFT_OK;
    case JV_NAMESPACE:
        found = jdict_get_str(r, v->as.dict, name);
        *out = found ? *found : lacks(v, name);
        return WEFT_OK;
    case JV_MACRO:
        *out = str_eqz(name, "name") ? jv_str(v->as.macro->def->name) : lacks(v, name);
        return WEFT_OK;
    case JV_CYCLER:
        if (v->as.cycler->items && str_eqz(name, "current")) {
            *out = v->as.cycler->items->at[v->as.cycler->i];
            return WEFT_OK;
        }
        break;
    default:
        break;
    }
    if (maybe_method && find_method(r, v, name, out))
        return WEFT_OK;
    if (v->kind == JV_DICT)
        found = jdict_get_str(r, v->as.dict, name);
    *out = found ? *found : lacks(v, name);
    return WEFT_OK;
}

str utf8_char_at(str s, size_t *at)
{
    uint32_t cp;
    size_t begin = *at;
    *at += char_at(s, begin, &cp);
    return (str){s.p + begin, *at - begin};
}

static jval index_lacks(jinja_run *r, const jval *v, int64_t i)
{
    return jv_undefined(JWHY_TEXT, arena_printf(r->a, "%s has no element %" PRId64, jv_type(v), i));
}

static weft_status str_index(jinja_run *r, const jval *v, int64_t i, jval *out)
{
    str s = v->as.s;
    WEFT_TRY(run_step(r, s.n / 16));
    int64_t n = i < 0 ? (int64_t)utf8_count(s) : INT64_MAX, at = i < 0 ? n + i : i;
    size_t b = 0;
    if (at < 0 || (size_t)at >= s.n) {
        *out = index_lacks(r, v, i);
        return WEFT_OK;
    }
    for (; at > 0 && b < s.n; at--)
        utf8_char_at(s, &b);
    *out = b < s.n ? jv_str(utf8_char_at(s, &b)) : index_lacks(r, v, i);
    return WEFT_OK;
}

static bool has_order(const jval *v)
{
    return v->kind == JV_LIST && v->as.list->seq <= JSEQ_RANGE;
}

weft_status access_item(jinja_run *r, const jval *v, const jval *key, jval *out)
{
    if (v->kind == JV_UNDEFINED)
        return run_undefined(r, v);
    if (v->kind == JV_DICT && jv_hashable(r, key)) {
        const jval *found = jdict_get(r, v->as.dict, key);
        if (found) {
            *out = *found;
            return WEFT_OK;
        }
    }
    if (key->kind == JV_STR)
        return access_attr(r, v, key->as.s, true, out);
    if (jv_is_integer(key)) {
        int64_t i = jv_integer(key);
        if (v->kind == JV_STR)
            return str_index(r, v, i, out);
        if (has_order(v)) {
            int64_t n = (int64_t)v->as.list->n, at = i < 0 ? i + n : i;
            *out = at >= 0 && at < n ? v->as.list->at[at] : index_lacks(r, v, i);
            return WEFT_OK;
        }
        *out = index_lacks(r, v, i);
        return WEFT_OK;
    }
    *out = jv_undefined(
        JWHY_TEXT, arena_printf(r->a, "%s has no element of type %s", jv_type(v), jv_type(key)));
    return WEFT_OK;
}

weft_status access_path(jinja_run *r, const jval *v, const jval *path, jval *out)
{
    if (path->kind != JV_STR)
        return access_item(r, v, path, out);
    jval at = *v;
    for (str rest = path->as.s;;) {
        const char *dot = memchr(rest.p, '.', rest.n);
        str part = {rest.p, dot ? (size_t)(dot - rest.p) : rest.n};
        int64_t number = 0;
        bool digits = part.n > 0 && part.n < 18;
        for (size_t i = 0; i < part.n && digits; i++) {
            digits = part.p[i] >= '0' && part.p[i] <= '9';
            number = number * 10 + (part.p[i] - '0');
        }
        jval key = digits ? jv_int(number) : jv_str(part), next;
        WEFT_TRY(run_step(r, 1 + part.n / STEP_BYTES));
        WEFT_TRY(access_item(r, &at, &key, &next));
        at = next;
        if (!dot)
            break;
        rest = (str){dot + 1, rest.n - part.n - 1};
    }
    *out = at;
    return WEFT_OK;
}

/* ---- slices ---- */

/* Where a slice begins and how many items it has, over n items: Python's slice.indices. */
static weft_status slice_range(jinja_run *r, const jval part[3], int64_t n, int64_t *out_first,
                               int64_t *out_step, size_t *out_n)
{
    int64_t step = part[2].kind == JV_NONE ? 1 : jv_integer(&part[2]);
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n, edge[2];
    if (step == 0)
        return run_fail(r, "the step of a slice is zero");
    if (step < -INT64_MAX / 2)
        step = -INT64_MAX / 2;
    if (step > INT64_MAX / 2)
        step = INT64_MAX / 2;
    for (int k = 0; k < 2; k++) {
        int64_t x = part[k].kind == JV_NONE ? 0 : jv_integer(&part[k]);
        if (x < 0)
            x = x < -n ? low : x + n;
        x = x < low ? low : x > high ? high : x;
        if (part[k].kind == JV_NONE)
            x = (k == 0) == (step > 0) ? low : high;
        edge[k] = x;
    }
    int64_t span = step > 0 ? edge[1] - edge[0] : edge[0] - edge[1],
            stride = step > 0 ? step : -step;
    *out_first = edge[0];
    *out_step = step;
    *out_n = span > 0 ? (size_t)((span - 1) / stride + 1) : 0;
    return WEFT_OK;
}

static weft_status slice_str(jinja_run *r, str s, const jval part[3], jval *out)
{
    int64_t chars = (int64_t)utf8_count(s), first, step;
    size_t n;
    WEFT_TRY(run_step(r, s.n / 8));
    WEFT_TRY(slice_range(r, part, chars, &first, &step, &n));
    jtext t = {.r = r};
    size_t at = 0, begin = 0;
    if (n == 0)
        return text_value(&t, out);
    if (step == 1) {
        for (int64_t i = 0; i < first + (int64_t)n; i++) {
            begin = i == first ? at : begin;
            utf8_char_at(s, &at);
        }
        *out = jv_str((str){s.p + begin, at - begin});
        return WEFT_OK;
    }
    WEFT_TRY(run_room(r, (size_t)chars * sizeof(uint32_t)));
    uint32_t *offset = ARENA_ARRAY(r->a, uint32_t, (size_t)chars);
    for (int64_t i = 0; i < chars; i++) {
        offset[i] = (uint32_t)at;
        utf8_char_at(s, &at);
    }
    for (size_t i = 0; i < n; i++, first += step) {
        at = offset[first];
        text_put(&t, utf8_char_at(s, &at));
    }
    return text_value(&t, out);
}

weft_status access_slice(jinja_run *r, const jval *v, const jval part[3], jval *out)
{
    int64_t first, step;
    size_t n;
    if (v->kind == JV_UNDEFINED)
        return run_undefined(r, v);
    bool whole = v->kind == JV_STR || has_order(v);
    for (int k = 0; k < 3; k++)
        whole = whole && (part[k].kind == JV_NONE || jv_is_integer(&part[k]));
    if (!whole)
        return run_fail(r, "%s cannot be sliced like that", jv_type(v));
    if (v->kind == JV_STR)
        return slice_str(r, v->as.s, part, out);
    const jlist *l = v->as.list;
    WEFT_TRY(slice_range(r, part, (int64_t)l->n, &first, &step, &n));
    WEFT_TRY(run_list_room(r, n));
    jlist *made = jlist_new(r, l->seq, n);
    for (size_t i = 0; i < n; i++, first += step)
        jlist_push(r, made, l->at[first]);
    *out = jv_list(made);
    return WEFT_OK;
}

/* ---- items ---- */

weft_status access_items(jinja_run *r, const jval *v, const jlist **out)
{
    static const jlist none = {0};
    switch (v->kind) {
    case JV_UNDEFINED:
        *out = &none;
        return WEFT_OK;
    case JV_LIST:
        *out = v->as.list->spent ? &none : v->as.list;
        v->as.list->spent = v->as.list->seq == JSEQ_GENERATOR;
        return WEFT_OK;
    case JV_STR: {
        jlist *made;
        size_t n = utf8_count(v->as.s);
        WEFT_TRY(run_list_room(r, n));
        made = jlist_new(r, JSEQ_LIST, n);
        for (size_t at = 0; at < v->as.s.n;)
            jlist_push(r, made, jv_str(utf8_char_at(v->as.s, &at)));
        *out = made;
        return WEFT_OK;
    }
    case JV_DICT: {
        jlist *made;
        WEFT_TRY(run_list_room(r, v->as.dict->n));
        made = jlist_new(r, JSEQ_LIST, v->as.dict->n);
        for (size_t i = 0; i < v->as.dict->n; i++)
            jlist_push(r, made, v->as.dict->at[i].key);
        *out = made;
        return WEFT_OK;
    }
    default:
        return run_fail(r, "%s has no items", jv_type(v));
    }
}

weft_status access_length(jinja_run *r, const jval *v, int64_t *out)
{
    switch (v->kind) {
    case JV_UNDEFINED:
        *out = 0;
        return WEFT_OK;
    case JV_STR:
        *out = (int64_t)utf8_count(v->as.s);
        return run_step(r, v->as.s.n / 16);
    case JV_DICT:
        *out = (int64_t)v->as.dict->n;
        return WEFT_OK;
    case JV_LOOP:
        *out = (int64_t)v->as.loop->items->n;
        return WEFT_OK;
    default:
        if (v->kind != JV_LIST || v->as.list->seq == JSEQ_GENERATOR)
            return run_fail(r, "%s has no length", jv_type(v));
        *out = (int64_t)v->as.list->n;
        return WEFT_OK;
    }
}
