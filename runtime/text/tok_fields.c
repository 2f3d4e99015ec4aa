/* tok_fields.c - reading one member at a time. */
#include "runtime/text/tok_fields.h"

#include <inttypes.h>

static weft_status wrong(weft_diag *dg, const char *what, const char *name, const char *wanted)
{
    return weft_fail(dg, W1203, WEFT_NOWHERE, "%s: '%s' is missing or not %s", what, name, wanted);
}

weft_status field_bool(weft_diag *dg, const char *what, const value *v, const char *name,
                       bool *io_x)
{
    const value *m = value_get(v, str_of(name));
    if (value_kind_of(m) == VALUE_NULL || value_bool(m, io_x))
        return WEFT_OK;
    return wrong(dg, what, name, "true or false");
}

weft_status field_int(weft_diag *dg, const char *what, const value *v, const char *name, int64_t lo,
                      int64_t hi, int64_t *io_x)
{
    const value *m = value_get(v, str_of(name));
    int64_t x;
    if (value_kind_of(m) == VALUE_NULL)
        return WEFT_OK;
    if (!value_int(m, &x) || x < lo || x > hi)
        return weft_fail(dg, W1203, WEFT_NOWHERE,
                         "%s: '%s' is not a number from %" PRId64 " to %" PRId64, what, name, lo,
                         hi);
    *io_x = x;
    return WEFT_OK;
}

weft_status field_str(weft_diag *dg, const char *what, const value *v, const char *name, str *out_s)
{
    return value_str(value_get(v, str_of(name)), out_s) ? WEFT_OK
                                                        : wrong(dg, what, name, "a string");
}

weft_status field_str_or_none(weft_diag *dg, const char *what, const value *v, const char *name,
                              str *out_s)
{
    if (value_kind_of(value_get(v, str_of(name))) != VALUE_NULL)
        return field_str(dg, what, v, name, out_s);
    *out_s = STR("");
    return WEFT_OK;
}

static weft_status check_length(weft_diag *dg, const char *what, const char *name, size_t n_max,
                                str s)
{
    if (s.n <= n_max)
        return WEFT_OK;
    return weft_fail(dg, W1209, WEFT_NOWHERE, "%s: '%s' has %zu bytes, at most %zu are allowed",
                     what, name, s.n, n_max);
}

weft_status field_text(weft_diag *dg, const char *what, const value *v, const char *name,
                       size_t n_max, str *out_s)
{
    WEFT_TRY(field_str(dg, what, v, name, out_s));
    return check_length(dg, what, name, n_max, *out_s);
}

weft_status field_copy(weft_diag *dg, arena *a, const char *what, const value *v, const char *name,
                       size_t n_max, str *out_s)
{
    str text;
    WEFT_TRY(field_text(dg, what, v, name, n_max, &text));
    *out_s = arena_str(a, text);
    return WEFT_OK;
}

weft_status field_text_or_none(weft_diag *dg, const char *what, const value *v, const char *name,
                               size_t n_max, str *out_s)
{
    WEFT_TRY(field_str_or_none(dg, what, v, name, out_s));
    return check_length(dg, what, name, n_max, *out_s);
}

weft_status field_list(weft_diag *dg, const char *what, const value *v, const char *name,
                       const value **out_list)
{
    const value *m = value_get(v, str_of(name));
    if (value_kind_of(m) != VALUE_ARRAY)
        return wrong(dg, what, name, "a list");
    *out_list = m;
    return WEFT_OK;
}

weft_status field_pattern(weft_diag *dg, const char *what, const value *v, tok_regex **out_re)
{
    const value *m = value_get(v, STR("pattern"));
    str text;
    if (value_str(value_get(m, STR("String")), &text)) {
        *out_re = tok_regex_literal(text);
        return WEFT_OK;
    }
    if (value_str(value_get(m, STR("Regex")), &text))
        return tok_regex_create(dg, text, out_re);
    return wrong(dg, what, "pattern", "a String or a Regex");
}

weft_status field_unknown(weft_diag *dg, const char *kind, str name)
{
    weft_status status = weft_fail(dg, W1202, WEFT_NOWHERE, "%s '" STR_FMT "' is not known to Weft",
                                   kind, STR_ARG(((str){name.p, name.n < 100 ? name.n : 100})));
    if (str_eq(name, STR("no_vocab")))
        weft_note(dg, "the file has no vocabulary: it can be evaluated with token ids alone");
    return status;
}

static weft_status load_steps(weft_diag *dg, arena *a, const step_kind *k, const value *v,
                              int depth, void *to)
{
    str type;
    const value *list;
    if (value_kind_of(v) == VALUE_NULL)
        return WEFT_OK;
    WEFT_TRY(field_str(dg, k->name, v, "type", &type));
    if (!str_eqz(type, "Sequence"))
        return k->load(dg, a, v, type, to);
    if (depth >= FIELDS_DEPTH_MAX)
        return weft_fail(dg, W1209, WEFT_NOWHERE, "%ss nest more than %d deep", k->name,
                         FIELDS_DEPTH_MAX);
    WEFT_TRY(field_list(dg, "Sequence", v, k->list, &list));
    for (size_t i = 0; i < value_count(list); i++) {
        value item = value_at(list, i);
        WEFT_TRY(load_steps(dg, a, k, &item, depth + 1, to));
    }
    return WEFT_OK;
}

weft_status field_steps(weft_diag *dg, arena *a, const step_kind *k, const value *v, void *to)
{
    return load_steps(dg, a, k, v, 0, to);
}

weft_status field_steps_check(weft_diag *dg, const step_kind *k, size_t n)
{
    if (n <= FIELDS_STEPS_MAX)
        return WEFT_OK;
    return weft_fail(dg, W1209, WEFT_NOWHERE, "%zu %ss, at most %d are allowed", n, k->name,
                     FIELDS_STEPS_MAX);
}
