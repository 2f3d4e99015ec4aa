/* plan_read_value.c - numbers, words and lists out of a plan file's JSON, or what is wrong with them. */
#include "compiler/plan_file_impl.h"

#include <inttypes.h>
#include <math.h>

weft_status plan_damaged(plan_reader *r, const char *fmt, ...)
{
    char what[200], where[96] = "";
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    if (r->outer >= 0 && r->part)
        snprintf(where, sizeof where, "bucket %" PRId64 ", %s %" PRId64 ": ", r->outer, r->part,
                 r->index);
    else if (r->part)
        snprintf(where, sizeof where, "%s %" PRId64 ": ", r->part, r->index);
    return weft_fail(r->dg, W1507, WEFT_NOWHERE, "%s: %s%s", r->name, where, what);
}

static const value *member(const value *v, const char *key)
{
    const value *m = value_get(v, str_of(key));
    return value_kind_of(m) == VALUE_NULL ? NULL : m;
}

static weft_status wrong(plan_reader *r, const char *key, const value *m, const char *wanted)
{
    return plan_damaged(r, m ? "`%s` is not %s" : "`%s`, %s, is missing", key, wanted);
}

static bool int_in(const value *v, int64_t min, int64_t max, int64_t *out)
{
    return value_kind_of(v) == VALUE_INT && value_int(v, out) && *out >= min && *out <= max;
}

weft_status plan_get_int(plan_reader *r, const value *v, const char *key, int64_t min, int64_t max,
                         int64_t *out)
{
    const value *m = member(v, key);
    return int_in(m, min, max, out) ? WEFT_OK : wrong(r, key, m, "a number in range");
}

weft_status plan_get_int_or(plan_reader *r, const value *v, const char *key, int64_t min,
                            int64_t max, int64_t otherwise, int64_t *out)
{
    *out = otherwise;
    return member(v, key) ? plan_get_int(r, v, key, min, max, out) : WEFT_OK;
}

weft_status plan_get_size(plan_reader *r, const value *v, const char *key, size_t *out)
{
    int64_t n;
    WEFT_TRY(plan_get_int_or(r, v, key, 0, INT64_MAX / 4, 0, &n));
    if ((uint64_t)n > SIZE_MAX)
        return plan_damaged(r, "`%s` is not a number in range", key);
    *out = (size_t)n;
    return WEFT_OK;
}

weft_status plan_get_bool(plan_reader *r, const value *v, const char *key, bool *out)
{
    const value *m = member(v, key);
    *out = false;
    return !m || value_bool(m, out) ? WEFT_OK : wrong(r, key, m, "true or false");
}

weft_status plan_get_str(plan_reader *r, const value *v, const char *key, const char **out)
{
    const value *m = member(v, key);
    str s;
    if (!value_str(m, &s) || memchr(s.p, 0, s.n))
        return wrong(r, key, m, "a text");
    *out = arena_str(r->a, s).p;
    return WEFT_OK;
}

static bool word_of(const value *v, const char *const *words, int *out)
{
    str s;
    if (!value_str(v, &s))
        return false;
    for (int i = 0; words[i]; i++)
        if (str_eqz(s, words[i])) {
            *out = i;
            return true;
        }
    return false;
}

weft_status plan_get_word(plan_reader *r, const value *v, const char *key, const char *const *words,
                          int *out)
{
    const value *m = member(v, key);
    return word_of(m, words, out) ? WEFT_OK : wrong(r, key, m, "one of its words");
}

static bool type_of(const value *v, dtype *out)
{
    str s;
    return value_str(v, &s) && dtype_from_name(s, out);
}

weft_status plan_get_type(plan_reader *r, const value *v, const char *key, dtype *out)
{
    const value *m = member(v, key);
    return type_of(m, out) ? WEFT_OK : wrong(r, key, m, "a storage type");
}

weft_status plan_get_array(plan_reader *r, const value *v, const char *key, const value **out)
{
    const value *m = member(v, key);
    if (m && value_kind_of(m) != VALUE_ARRAY)
        return wrong(r, key, m, "a list");
    *out = m;
    return WEFT_OK;
}

weft_status plan_get_ints(plan_reader *r, const value *v, const char *key, int64_t *to, size_t n)
{
    const value *list;
    WEFT_TRY(plan_get_array(r, v, key, &list));
    if (value_count(list) > n)
        return plan_damaged(r, "`%s` has more than %zu numbers", key, n);
    for (size_t i = 0; i < value_count(list); i++) {
        value x = value_at(list, i);
        if (!int_in(&x, INT64_MIN, INT64_MAX, &to[i]))
            return plan_damaged(r, "number %zu of `%s` is none", i, key);
    }
    return WEFT_OK;
}

weft_status plan_item_of(plan_reader *r, const value *list, size_t i, value_kind kind, value *out)
{
    value v = i < value_count(list) ? value_at(list, i) : (value){.type = VT_NULL};
    if (value_kind_of(&v) != kind)
        return plan_damaged(r, "item %zu of a list is of another kind", i);
    *out = v;
    return WEFT_OK;
}

weft_status plan_item_int(plan_reader *r, const value *list, size_t i, int64_t min, int64_t max,
                          int64_t *out)
{
    value v;
    WEFT_TRY(plan_item_of(r, list, i, VALUE_INT, &v));
    return int_in(&v, min, max, out) ? WEFT_OK
                                     : plan_damaged(r, "item %zu of a list is out of range", i);
}

weft_status plan_item_word(plan_reader *r, const value *list, size_t i, const char *const *words,
                           int *out)
{
    value v;
    WEFT_TRY(plan_item_of(r, list, i, VALUE_STR, &v));
    return word_of(&v, words, out)
               ? WEFT_OK
               : plan_damaged(r, "item %zu of a list is not one of its words", i);
}

weft_status plan_item_type(plan_reader *r, const value *list, size_t i, dtype *out)
{
    value v;
    WEFT_TRY(plan_item_of(r, list, i, VALUE_STR, &v));
    return type_of(&v, out) ? WEFT_OK
                            : plan_damaged(r, "item %zu of a list is not a storage type", i);
}

/* Numbers that JSON does not have are written as words. */
weft_status plan_item_float(plan_reader *r, const value *list, size_t i, double *out)
{
    static const char *const words[] = {"nan", "inf", "-inf", "-0", NULL};
    static const double means[] = {NAN, INFINITY, -INFINITY, -0.0};
    value v = i < value_count(list) ? value_at(list, i) : (value){.type = VT_NULL};
    int word;
    if (value_float(&v, out))
        return WEFT_OK;
    if (!word_of(&v, words, &word))
        return plan_damaged(r, "item %zu of a list is not a number", i);
    *out = means[word];
    return WEFT_OK;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

weft_status plan_get_hex(plan_reader *r, const value *v, const char *key, const void **out,
                         size_t *out_bytes)
{
    const value *m = member(v, key);
    str s;
    *out = NULL;
    *out_bytes = 0;
    if (!m)
        return WEFT_OK;
    if (!value_str(m, &s) || s.n % 2 != 0)
        return wrong(r, key, m, "bytes in hexadecimal");
    unsigned char *to = arena_alloc(r->a, s.n / 2);
    for (size_t i = 0; i < s.n; i += 2) {
        int high = hex_digit(s.p[i]), low = hex_digit(s.p[i + 1]);
        if (high < 0 || low < 0)
            return wrong(r, key, m, "bytes in hexadecimal");
        to[i / 2] = (unsigned char)(high << 4 | low);
    }
    *out = to;
    *out_bytes = s.n / 2;
    return WEFT_OK;
}
