/* schema_check.h - whether a value satisfies a JSON schema, written for the tests: straight from the specification, over parsed values
 * and PCRE2, sharing nothing with runtime/grammar. Aborts on a keyword that it does not know, so that none is passed over. */
#ifndef WEFT_TESTS_GRAMMAR_SCHEMA_CHECK_H
#define WEFT_TESTS_GRAMMAR_SCHEMA_CHECK_H

#include "runtime/base/json_write.h"
#include "runtime/formats/value.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <math.h>
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    const value *root;
    const char *why;    /* the keyword that failed last */
    char pattern[1024]; /* compiled last */
    pcre2_code *code;
} schema_checker;

static inline bool check_value(schema_checker *c, const value *s, const value *v);

static inline bool check_regex(schema_checker *c, str regex, str text)
{
    if (!c->code || !str_eqz(regex, c->pattern)) {
        int error;
        PCRE2_SIZE at;
        pcre2_code_free(c->code);
        c->code =
            pcre2_compile((PCRE2_SPTR)regex.p, regex.n,
                          PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_ALT_BSUX, &error, &at, NULL);
        if (!c->code || regex.n >= sizeof c->pattern) {
            fprintf(stderr, "the checker cannot read `" STR_FMT "`\n", STR_ARG(regex));
            abort();
        }
        memcpy(c->pattern, regex.p, regex.n);
        c->pattern[regex.n] = 0;
    }
    pcre2_match_data *m = pcre2_match_data_create_from_pattern(c->code, NULL);
    int rc = pcre2_match(c->code, (PCRE2_SPTR)text.p, text.n, 0, 0, m, NULL);
    pcre2_match_data_free(m);
    return rc >= 0;
}

static inline void check_text(const value *v, strbuf *b)
{
    json_writer w = {.out = b};
    value_json(&w, v, SIZE_MAX);
}

static inline bool check_same(const value *a, const value *b)
{
    double x, y;
    strbuf p = {0}, q = {0};
    if (value_float(a, &x) && value_float(b, &y))
        return x == y;
    check_text(a, &p);
    check_text(b, &q);
    bool same = str_eq(strbuf_view(&p), strbuf_view(&q));
    strbuf_free(&p);
    strbuf_free(&q);
    return same;
}

static inline bool check_type(str name, const value *v)
{
    double x;
    bool number = value_kind_of(v) == VALUE_INT || value_kind_of(v) == VALUE_FLOAT;
    switch (value_kind_of(v)) {
    case VALUE_NULL:
        return str_eqz(name, "null");
    case VALUE_BOOL:
        return str_eqz(name, "boolean");
    case VALUE_STR:
        return str_eqz(name, "string");
    case VALUE_ARRAY:
        return str_eqz(name, "array");
    case VALUE_OBJECT:
        return str_eqz(name, "object");
    default:
        return str_eqz(name, "number") ||
               (number && value_float(v, &x) && x == floor(x) && str_eqz(name, "integer"));
    }
}

static inline const value *check_anchor(const value *v, str name)
{
    str a;
    if (value_kind_of(v) != VALUE_OBJECT)
        return NULL;
    if (value_str(value_get(v, STR("$anchor")), &a) && str_eq(a, name))
        return v;
    for (size_t i = 0; i < value_count(v); i++) {
        const value *found = check_anchor(&v->as.object.members[i].v, name);
        if (found)
            return found;
    }
    return NULL;
}

static inline const value *check_ref(schema_checker *c, str ref)
{
    const char *hash = memchr(ref.p, '#', ref.n);
    str path = {hash + 1, ref.n - (size_t)(hash + 1 - ref.p)};
    const value *v = c->root;
    if (path.n && path.p[0] != '/')
        return check_anchor(c->root, path);
    for (size_t i = 0; i < path.n && v;) {
        size_t end = ++i;
        while (end < path.n && path.p[end] != '/')
            end++;
        v = value_get(v, (str){path.p + i, end - i});
        i = end;
    }
    return v;
}

static const struct {
    const char *name, *regex;
} check_formats[] = {
    {"date", "^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])$"},
    {"time", "^([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d+)?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)$"},
    {"date-time", "^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])T([01]\\d|2[0-3]):[0-5]\\d:[0-5]"
                  "\\d(\\.\\d+)?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)$"},
    {"duration", "^P(\\d+W|(?=.)(\\d+Y)?(\\d+M)?(\\d+D)?(T(?=.)(\\d+H)?(\\d+M)?(\\d+S)?)?)$"},
    {"uuid", "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"},
    {"uuid4", "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"},
    {"email", "^(?!\\.)(?!.*\\.\\.)[A-Za-z0-9_+.-]{1,64}(?<!\\.)@(?=.{1,255}$)([A-Za-z0-9]([A-Za-"
              "z0-9-]{0,61}"
              "[A-Za-z0-9])?\\.)+[A-Za-z]{2,}$"},
    {"hostname", "^(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\\.[A-Za-z0-9]([A-Za-"
                 "z0-9-]{0,61}[A-Za-"
                 "z0-9])?)*$"},
    {"ipv4", "^((25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)(\\.(?!$)|$)){4}$"},
    {"ipv6", "^([0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}$"},
    {"uri", "^[a-z][a-z0-9+.-]*://[^\\s/?#]+[^\\s\"<>\\\\^`{|}]*$"},
};

static inline bool check_format(schema_checker *c, str name, str text)
{
    for (size_t i = 0; i < sizeof check_formats / sizeof *check_formats; i++)
        if (str_eqz(name, check_formats[i].name))
            return check_regex(c, str_of(check_formats[i].regex), text);
    return true;
}

static inline size_t check_chars(str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char)s.p[i] & 0xc0) != 0x80;
    return n;
}

static inline size_t check_how_many(schema_checker *c, const value *list, const value *v)
{
    size_t n = 0;
    for (size_t i = 0; i < value_count(list); i++) {
        value one = value_at(list, i);
        n += check_value(c, &one, v);
    }
    return n;
}

static inline bool check_in(const value *list, const value *v)
{
    for (size_t i = 0; i < value_count(list); i++) {
        value one = value_at(list, i);
        if (check_same(&one, v))
            return true;
    }
    return false;
}

static inline bool check_members(schema_checker *c, const value *s, const value *v)
{
    const value *props = value_get(s, STR("properties"));
    const value *patterns = value_get(s, STR("patternProperties"));
    const value *others = value_get(s, STR("additionalProperties"));
    const value *names = value_get(s, STR("propertyNames"));
    for (size_t i = 0; i < value_count(v); i++) {
        const value_member *m = &v->as.object.members[i];
        const value *p = value_get(props, m->name);
        bool known = p != NULL;
        value key = value_of_str(m->name);
        if ((p && !check_value(c, p, &m->v)) || (names && !check_value(c, names, &key)))
            return false;
        for (size_t k = 0; k < value_count(patterns); k++)
            if (check_regex(c, patterns->as.object.members[k].name, m->name)) {
                known = true;
                if (!check_value(c, &patterns->as.object.members[k].v, &m->v))
                    return false;
            }
        if (!known && others && !check_value(c, others, &m->v))
            return false;
    }
    return true;
}

static inline bool check_items(schema_checker *c, const value *s, const value *v)
{
    const value *items = value_get(s, STR("items")), *prefix = value_get(s, STR("prefixItems"));
    const value *rest = items;
    if (value_kind_of(items) == VALUE_ARRAY) {
        prefix = items;
        rest = value_get(s, STR("additionalItems"));
    }
    for (size_t i = 0; i < value_count(v); i++) {
        value x = value_at(v, i), at;
        const value *one = rest;
        if (i < value_count(prefix)) {
            at = value_at(prefix, i);
            one = &at;
        }
        if (one && !check_value(c, one, &x))
            return false;
        bool unique;
        for (size_t k = 0; k < i && value_bool(value_get(s, STR("uniqueItems")), &unique) && unique;
             k++) {
            value y = value_at(v, k);
            if (check_same(&x, &y))
                return false;
        }
    }
    return true;
}

/* A bound: how many, or how much. */
static inline bool check_bound(str name, const value *b, const value *v)
{
    double x = 0, y = 0, q;
    str text = {0};
    bool number = value_kind_of(v) == VALUE_INT || value_kind_of(v) == VALUE_FLOAT;
    value_float(b, &y);
    if (number && value_float(v, &x)) {
        if (str_eqz(name, "multipleOf")) {
            q = x / y;
            return fabs(q - round(q)) <= 1e-9 * fmax(1, fabs(q));
        }
        return str_eqz(name, "minimum")            ? x >= y
               : str_eqz(name, "maximum")          ? x <= y
               : str_eqz(name, "exclusiveMinimum") ? x > y
               : str_eqz(name, "exclusiveMaximum") ? x < y
                                                   : true;
    }
    size_t n = value_str(v, &text) ? check_chars(text) : value_count(v);
    const char *of = value_kind_of(v) == VALUE_STR     ? "Length"
                     : value_kind_of(v) == VALUE_ARRAY ? "Items"
                                                       : "Properties";
    if (value_kind_of(v) != VALUE_STR && value_kind_of(v) != VALUE_ARRAY &&
        value_kind_of(v) != VALUE_OBJECT)
        return true;
    if (!str_ends(name, str_of(of)))
        return true;
    return str_starts(name, STR("min")) ? (double)n >= y : (double)n <= y;
}

static inline bool check_keyword(schema_checker *c, const value *s, str k, const value *x,
                                 const value *v)
{
    static const char *const bounds[] = {"minimum",          "maximum",       "exclusiveMinimum",
                                         "exclusiveMaximum", "multipleOf",    "minLength",
                                         "maxLength",        "minItems",      "maxItems",
                                         "minProperties",    "maxProperties", NULL};
    static const char *const notes[] = {"title",
                                        "description",
                                        "default",
                                        "example",
                                        "examples",
                                        "deprecated",
                                        "readOnly",
                                        "writeOnly",
                                        "definitions",
                                        "$defs",
                                        "$schema",
                                        "$id",
                                        "$anchor",
                                        "$comment",
                                        "discriminator",
                                        "xml",
                                        "markdownDescription",
                                        "properties",
                                        "patternProperties",
                                        "additionalProperties",
                                        "propertyNames",
                                        "items",
                                        "prefixItems",
                                        "additionalItems",
                                        "uniqueItems",
                                        NULL};
    str text, name;
    for (size_t i = 0; bounds[i]; i++)
        if (str_eqz(k, bounds[i]))
            return check_bound(k, x, v);
    for (size_t i = 0; notes[i]; i++) /* those of objects and arrays are checked together */
        if (str_eqz(k, notes[i]) || str_starts(k, STR("x-")))
            return true;
    if (str_eqz(k, "type")) {
        if (value_str(x, &text))
            return check_type(text, v);
        for (size_t i = 0; i < value_count(x); i++) {
            value one = value_at(x, i);
            if (value_str(&one, &text) && check_type(text, v))
                return true;
        }
        return false;
    }
    if (str_eqz(k, "enum"))
        return check_in(x, v);
    if (str_eqz(k, "const"))
        return check_same(x, v);
    if (str_eqz(k, "anyOf"))
        return check_how_many(c, x, v) > 0;
    if (str_eqz(k, "oneOf"))
        return check_how_many(c, x, v) == 1;
    if (str_eqz(k, "allOf"))
        return check_how_many(c, x, v) == value_count(x);
    if (str_eqz(k, "not"))
        return !check_value(c, x, v);
    if (str_eqz(k, "$ref") && value_str(x, &text))
        return check_value(c, check_ref(c, text), v);
    if (str_eqz(k, "required")) {
        for (size_t i = 0; i < value_count(x) && value_kind_of(v) == VALUE_OBJECT; i++) {
            value one = value_at(x, i);
            if (value_str(&one, &name) && !value_get(v, name))
                return false;
        }
        return true;
    }
    if (str_eqz(k, "pattern"))
        return !value_str(v, &text) || (value_str(x, &name) && check_regex(c, name, text));
    if (str_eqz(k, "format"))
        return !value_str(v, &text) || value_get(s, STR("pattern")) ||
               (value_str(x, &name) && check_format(c, name, text));
    fprintf(stderr, "the checker does not know `" STR_FMT "`\n", STR_ARG(k));
    abort();
}

static inline bool check_value(schema_checker *c, const value *s, const value *v)
{
    bool flag;
    if (value_bool(s, &flag))
        return flag;
    for (size_t i = 0; i < value_count(s); i++) {
        const value_member *m = &s->as.object.members[i];
        if (!check_keyword(c, s, m->name, &m->v, v)) {
            c->why = m->name.p;
            return false;
        }
    }
    if (value_kind_of(v) == VALUE_OBJECT)
        return check_members(c, s, v);
    if (value_kind_of(v) == VALUE_ARRAY)
        return check_items(c, s, v);
    return true;
}

#endif
