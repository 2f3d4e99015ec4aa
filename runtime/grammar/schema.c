/* schema.c - JSON schemas into parts: types, constants, choices, references.
 *
 * Every text of the form satisfies the schema; not every text that satisfies it is of the form (README.md says which are left
 * out). What would let a text through that does not satisfy it is refused by name. */
#include "runtime/grammar/schema_impl.h"

#include <stdarg.h>

typedef enum { DOES_USED, DOES_NOTE, DOES_REFUSED } keyword_does;

#define ABOUT_ANY 0
#define ABOUT_OBJECT TYPE_OBJECT
#define ABOUT_ARRAY TYPE_ARRAY
#define ABOUT_STRING TYPE_STRING
#define ABOUT_NUMBER TYPE_NUMBER

typedef struct {
    const char *name;
    keyword_does does;
    unsigned about;
    const char *reason;
} keyword_row;

static const keyword_row keywords[] = {
#define KEYWORD(name, does, about, reason) {#name, DOES_##does, ABOUT_##about, reason},
#include "runtime/grammar/schema_keywords.def"
#undef KEYWORD
    {"$ref", DOES_USED, 0, NULL},
    {"$defs", DOES_NOTE, 0, NULL},
    {"$schema", DOES_NOTE, 0, NULL},
    {"$comment", DOES_NOTE, 0, NULL},
    {"$id", DOES_REFUSED, 0, "references are looked up in this schema alone, as #/.."},
    {"$anchor", DOES_NOTE, 0, NULL},
    {"$dynamicRef", DOES_REFUSED, 0, "write $ref"},
    {"$dynamicAnchor", DOES_REFUSED, 0, "write $defs"},
};
enum { N_KEYWORD = sizeof keywords / sizeof *keywords };

static const keyword_row *keyword_find(str name)
{
    for (size_t i = 0; i < N_KEYWORD; i++)
        if (str_eqz(name, keywords[i].name))
            return &keywords[i];
    return NULL;
}

bool schema_is_note(str name)
{
    const keyword_row *k = keyword_find(name);
    return str_starts(name, STR("x-")) || (k && k->does == DOES_NOTE); /* x-: OpenAPI's own */
}

/* ---- messages ---- */

void schema_path(strbuf *b, const schema_at *at)
{
    if (at->up) {
        schema_path(b, at->up);
        strbuf_putc(b, '/');
    }
    strbuf_put(b, at->key);
}

weft_status schema_fail(schema *s, weft_code code, const schema_at *at, const char *fmt, ...)
{
    strbuf text = {0};
    va_list ap;
    strbuf_add(&text, "%s: ", s->name);
    schema_path(&text, at);
    strbuf_add(&text, ": ");
    va_start(ap, fmt);
    strbuf_vadd(&text, fmt, ap);
    va_end(ap);
    weft_status st = weft_fail(s->dg, code, WEFT_NOWHERE, "%s", text.p);
    strbuf_free(&text);
    return st;
}

/* ---- reading values ---- */

const value *schema_item(schema *s, const value *array, size_t i)
{
    if (array->item == VT_NULL || array->item == VT_ARRAY)
        return (const value *)array->as.array.data + i;
    value *copy = ARENA_NEW(s->f->a, value);
    *copy = value_at(array, i);
    return copy;
}

str schema_text(schema *s, const value *v)
{
    strbuf b = {0};
    json_writer w = {.out = &b};
    value_json(&w, v, SIZE_MAX);
    str text = arena_str(s->f->a, strbuf_view(&b));
    s->f->n_part += text.n / 16;
    strbuf_free(&b);
    return text;
}

weft_status schema_count(schema *s, const schema_at *at, const value *v, const char *keyword,
                         int64_t usual, int64_t *out)
{
    const value *x = value_get(v, str_of(keyword));
    double exact;
    bool most = strncmp(keyword, "max", 3) == 0;
    *out = usual;
    if (!x)
        return WEFT_OK;
    if (!value_float(x, &exact) || !(exact >= 0) || (exact < 1e15 && !value_int(x, out)))
        return schema_fail(s, W1801, SCHEMA_AT(at, str_of(keyword)), "%s is not a count", keyword);
    if (exact > SCHEMA_COUNT_CAP) {
        if (!most)
            return schema_fail(s, W1803, SCHEMA_AT(at, str_of(keyword)),
                               "%s of %g, at most %d is supported", keyword, exact,
                               SCHEMA_COUNT_CAP);
        *out = SCHEMA_COUNT_CAP;
    }
    return WEFT_OK;
}

static const struct {
    const char *name;
    unsigned bit;
} types[] = {
    {"null", TYPE_NULL},     {"boolean", TYPE_BOOL},  {"integer", TYPE_INTEGER},
    {"number", TYPE_NUMBER}, {"string", TYPE_STRING}, {"array", TYPE_ARRAY},
    {"object", TYPE_OBJECT},
};
enum { N_TYPE = sizeof types / sizeof *types };

static weft_status type_bit(schema *s, const schema_at *at, const value *v, unsigned *out)
{
    str name;
    if (value_str(v, &name))
        for (size_t i = 0; i < N_TYPE; i++)
            if (str_eqz(name, types[i].name)) {
                *out |= types[i].bit;
                return WEFT_OK;
            }
    weft_status st = schema_fail(s, W1801, SCHEMA_AT(at, STR("type")), "there is no such type");
    if (value_str(v, &name))
        SUGGEST_ROW(s->dg, name, types, N_TYPE);
    return st;
}

weft_status schema_types(schema *s, const schema_at *at, const value *v, unsigned *out)
{
    const value *t = value_get(v, STR("type"));
    unsigned bits = 0;
    if (value_kind_of(t) == VALUE_ARRAY) {
        for (size_t i = 0; i < value_count(t); i++) {
            value one = value_at(t, i);
            WEFT_TRY(type_bit(s, at, &one, &bits));
        }
    } else if (t) {
        WEFT_TRY(type_bit(s, at, t, &bits));
    } else { /* the types that its keywords are about; without any, all */
        for (size_t i = 0; i < value_count(v); i++) {
            const keyword_row *k = keyword_find(v->as.object.members[i].name);
            bits |= k && k->does == DOES_USED ? k->about : 0;
        }
        bits = bits ? bits : TYPE_ALL;
    }
    *out = bits;
    return WEFT_OK;
}

/* ---- references ---- */

/* A part of a JSON pointer without ~0, ~1 and %xx. */
static str unescaped(arena *a, str s)
{
    char *to = arena_alloc(a, s.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        unsigned x;
        char hex[3] = {0};
        if (s.p[i] == '%' && i + 2 < s.n) {
            memcpy(hex, s.p + i + 1, 2);
            if (sscanf(hex, "%2x", &x) == 1) {
                to[n++] = (char)x;
                i += 2;
                continue;
            }
        }
        if (s.p[i] == '~' && i + 1 < s.n && (s.p[i + 1] == '0' || s.p[i + 1] == '1'))
            to[n++] = s.p[++i] == '0' ? '~' : '/';
        else
            to[n++] = s.p[i];
    }
    return (str){to, n};
}

enum { ANCHOR_STEPS = 100000, ANCHOR_DEPTH = 64 };

/* The schema with "$anchor": name. Looks everywhere: what is no schema seldom has an $anchor. */
static const value *find_anchor(const value *v, str name, int depth, int *left)
{
    str anchor;
    if (depth > ANCHOR_DEPTH || (*left)-- <= 0)
        return NULL;
    if (value_kind_of(v) == VALUE_OBJECT) {
        if (value_str(value_get(v, STR("$anchor")), &anchor) && str_eq(anchor, name))
            return v;
        for (size_t i = 0; i < value_count(v); i++) {
            const value *found = find_anchor(&v->as.object.members[i].v, name, depth + 1, left);
            if (found)
                return found;
        }
    } else if (value_kind_of(v) == VALUE_ARRAY && v->item == VT_NULL) {
        for (size_t i = 0; i < value_count(v); i++) {
            const value *found =
                find_anchor((const value *)v->as.array.data + i, name, depth + 1, left);
            if (found)
                return found;
        }
    }
    return NULL;
}

weft_status schema_target(schema *s, const schema_at *at, const value *ref, const value **out)
{
    const schema_at *here = SCHEMA_AT(at, STR("$ref"));
    const value *v = s->root;
    str path, id;
    if (!value_str(ref, &path))
        return schema_fail(s, W1801, here, "$ref is not a string");
    if (value_str(value_get(s->root, STR("$id")), &id) && str_starts(path, id))
        path = path.n == id.n ? STR("#") : (str){path.p + id.n, path.n - id.n};
    if (path.n > 1 && path.p[0] == '#' && path.p[1] != '/') {
        int left = ANCHOR_STEPS;
        v = find_anchor(s->root, (str){path.p + 1, path.n - 1}, 0, &left);
        s->steps += (size_t)(ANCHOR_STEPS - left) / 16;
        if (!v)
            return schema_fail(s, W1801, here, "$ref `" STR_FMT "` leads nowhere", STR_ARG(path));
        *out = v;
        return WEFT_OK;
    }
    if (path.n == 0 || path.p[0] != '#')
        return schema_fail(s, W1802, here,
                           "$ref `" STR_FMT "`: only places in this schema, #/.., are supported",
                           STR_ARG(path));
    for (size_t i = 1; i < path.n && v;) {
        size_t end = ++i;
        while (end < path.n && path.p[end] != '/')
            end++;
        str key = unescaped(s->f->a, (str){path.p + i, end - i});
        i = end;
        if (value_kind_of(v) == VALUE_ARRAY) {
            size_t k = 0;
            bool ok = key.n > 0 && key.n < 7;
            for (size_t d = 0; d < key.n && ok; d++) {
                ok = key.p[d] >= '0' && key.p[d] <= '9';
                k = k * 10 + (size_t)(key.p[d] - '0');
            }
            v = ok && k < value_count(v) ? schema_item(s, v, k) : NULL;
        } else {
            v = value_kind_of(v) == VALUE_OBJECT ? value_get(v, key) : NULL;
        }
    }
    if (!v)
        return schema_fail(s, W1801, here, "$ref `" STR_FMT "` leads nowhere", STR_ARG(path));
    *out = v;
    return WEFT_OK;
}

/* A schema that is a rule, so that it may refer to itself. */
static weft_status as_rule(schema *s, const schema_at *at, const value *to, str path,
                           const part **out)
{
    for (size_t i = 0; i < s->rules.n; i++)
        if (s->rules.at[i].v == to) {
            *out = part_rule(s->f, s->rules.at[i].rule);
            return WEFT_OK;
        }
    enum { REFS_MAX = 2000 };
    if (s->rules.n >= REFS_MAX)
        return schema_fail(s, W1803, at, "more than %d schemas are referred to", REFS_MAX);
    int32_t rule = form_rule_add(s->f, path, WEFT_NOWHERE);
    VEC_PUSH(&s->rules, ((schema_rule){to, rule}));
    const part *body;
    schema_at there = {.up = NULL, .key = path, .depth = at->depth + 1};
    WEFT_TRY(schema_part(s, &there, to, &body));
    s->f->rules.at[rule].body = body;
    *out = part_rule(s->f, rule);
    return WEFT_OK;
}

static weft_status reference(schema *s, const schema_at *at, const value *ref, const part **out)
{
    const value *to;
    str path;
    WEFT_TRY(schema_target(s, at, ref, &to));
    value_str(ref, &path);
    return as_rule(s, at, to, path, out);
}

/* ---- constants ---- */

bool schema_is_of_type(const value *v, unsigned bits)
{
    int64_t x;
    switch (value_kind_of(v)) {
    case VALUE_NULL:
        return bits & TYPE_NULL;
    case VALUE_BOOL:
        return bits & TYPE_BOOL;
    case VALUE_INT:
    case VALUE_FLOAT:
        return bits & TYPE_NUMBER || (bits & TYPE_INTEGER && value_int(v, &x));
    case VALUE_STR:
        return bits & TYPE_STRING;
    case VALUE_ARRAY:
        return bits & TYPE_ARRAY;
    case VALUE_OBJECT:
        return bits & TYPE_OBJECT;
    }
    return false;
}

static weft_status constants(schema *s, const schema_at *at, const value *v, const part **out)
{
    const value *list = value_get(v, STR("enum")), *one = value_get(v, STR("const"));
    unsigned bits = TYPE_ALL;
    if (list && one)
        return schema_fail(s, W1802, at, "enum and const at one place are not supported");
    if (list && value_kind_of(list) != VALUE_ARRAY)
        return schema_fail(s, W1801, SCHEMA_AT(at, STR("enum")), "enum is not a list");
    for (size_t i = 0; i < value_count(v); i++) {
        str name = v->as.object.members[i].name;
        if (!schema_is_note(name) && !str_eqz(name, "enum") && !str_eqz(name, "const") &&
            !str_eqz(name, "type"))
            return schema_fail(s, W1802, SCHEMA_AT(at, name),
                               "`" STR_FMT "` beside %s is not supported", STR_ARG(name),
                               list ? "enum" : "const");
    }
    if (value_get(v, STR("type")))
        WEFT_TRY(schema_types(s, at, v, &bits));
    part_vec way = {0};
    for (size_t i = 0; i < (list ? value_count(list) : 1); i++) {
        value x = list ? value_at(list, i) : *one;
        if (schema_is_of_type(&x, bits))
            VEC_PUSH(&way, part_bytes(s->f, schema_text(s, &x)));
    }
    *out = part_list(s->f, PART_ALT, way.at, way.n);
    VEC_FREE(&way);
    return WEFT_OK;
}

/* ---- choices ---- */

/* Whether something besides the keyword constrains the text. */
static bool has_others(const value *v, const char *keyword)
{
    for (size_t i = 0; i < value_count(v); i++) {
        str name = v->as.object.members[i].name;
        if (!schema_is_note(name) && !str_eqz(name, keyword))
            return true;
    }
    return false;
}

/* Whether constants of this property tell all schemas of the list apart. */
static bool tells_apart(schema *s, const schema_at *at, const value *list, str name)
{
    for (size_t i = 0; i < value_count(list); i++)
        for (size_t k = 0; k < i; k++) {
            if (++s->steps > SCHEMA_STEPS_MAX ||
                !schema_apart_at(s, at, schema_item(s, list, k), schema_item(s, list, i), name))
                return false;
        }
    return true;
}

/* A property that tells the schemas of oneOf apart but is not required, as pydantic writes it where it has a default: then it is
 * required. Every text of that satisfies the schema. */
static const value *made_apart(schema *s, const schema_at *at, const value *list)
{
    for (size_t i = 0; i < s->apart.n; i++)
        if (s->apart.at[i].list == list)
            return s->apart.at[i].made;
    const value *first = value_count(list) ? schema_followed(s, at, schema_item(s, list, 0)) : NULL;
    const value *props = value_get(first, STR("properties"));
    for (size_t i = 0; i < value_count(props) && value_count(list) > 1; i++) {
        str name = props->as.object.members[i].name;
        if (!tells_apart(s, at, list, name))
            continue;
        value *all = ARENA_ARRAY(s->f->a, value, value_count(list));
        for (size_t k = 0; k < value_count(list); k++) {
            value one = value_of_str(name);
            value *names = ARENA_NEW(s->f->a, value);
            *names = one;
            value_member m[] = {{STR("required"), value_of_array(VT_NULL, names, 1)}};
            const value *both;
            if (schema_merge(s, at, schema_followed(s, at, schema_item(s, list, k)),
                             schema_object_of(s, m, 1), &both) != WEFT_OK)
                return NULL;
            all[k] = *both;
        }
        value *v = ARENA_NEW(s->f->a, value);
        *v = value_of_array(VT_NULL, all, value_count(list));
        VEC_PUSH(&s->apart, ((schema_made){list, v}));
        return v;
    }
    return NULL;
}

static weft_status check_apart(schema *s, const schema_at *at, const value *list)
{
    for (size_t i = 0; i < value_count(list); i++)
        for (size_t k = 0; k < i; k++) {
            bool apart = schema_apart(s, at, schema_item(s, list, k), schema_item(s, list, i));
            if (s->steps > SCHEMA_STEPS_MAX || form_full(s->f))
                return schema_fail(s, W1803, at, "comparing schemas takes too many steps");
            if (!apart)
                return schema_fail(s, W1802, at,
                                   "schemas %zu and %zu of oneOf might hold for the same text; "
                                   "anyOf allows that, and a required property that is const in "
                                   "both tells them apart",
                                   k, i);
        }
    return WEFT_OK;
}

static weft_status choice(schema *s, const schema_at *at, const value *v, const char *keyword,
                          const part **out)
{
    const value *list = value_get(v, str_of(keyword));
    const schema_at *here = SCHEMA_AT(at, str_of(keyword));
    bool others = has_others(v, keyword), made = false;
    weft_status st = WEFT_OK;
    if (value_kind_of(list) != VALUE_ARRAY || value_count(list) == 0)
        return schema_fail(s, W1801, here, "%s is not a list of schemas", keyword);
    if (strcmp(keyword, "oneOf") == 0) {
        size_t kept = diag_count(s->dg);
        st = check_apart(s, here, list);
        const value *apart = st == WEFT_OK ? NULL : made_apart(s, here, list);
        if (st != WEFT_OK && !apart)
            return st;
        diag_keep_first(s->dg, apart ? kept : diag_count(s->dg));
        list = apart ? apart : list;
        made = apart != NULL; /* a copy, which may hold this oneOf again */
        st = WEFT_OK;
    }
    const value *rest = others ? schema_without(s, v, keyword) : NULL;
    part_vec way = {0};
    for (size_t i = 0; i < value_count(list) && st == WEFT_OK; i++) {
        const value *one = schema_item(s, list, i);
        const part *p = NULL;
        char number[24];
        snprintf(number, sizeof number, "%zu", i);
        const schema_at *at_one = SCHEMA_AT(here, str_of(number));
        if (rest)
            st = schema_merge(s, at_one, rest, one, &one);
        if (st == WEFT_OK)
            st = made && !rest ? as_rule(s, at_one, one, at_one->key, &p)
                               : schema_part(s, at_one, one, &p);
        if (st == WEFT_OK)
            VEC_PUSH(&way, p);
    }
    if (st == WEFT_OK)
        *out = part_list(s->f, PART_ALT, way.at, way.n);
    VEC_FREE(&way);
    return st;
}

/* All of allOf, and what stands beside it, as one schema. */
static weft_status all_of(schema *s, const schema_at *at, const value *v, const part **out)
{
    const value *list = value_get(v, STR("allOf")), *all = schema_without(s, v, "allOf");
    const schema_at *here = SCHEMA_AT(at, STR("allOf"));
    if (value_kind_of(list) != VALUE_ARRAY)
        return schema_fail(s, W1801, here, "allOf is not a list of schemas");
    if (value_count(list) == 1 && !has_others(v, "allOf")) /* often a reference with a note */
        return schema_part(s, here, schema_item(s, list, 0), out);
    for (size_t i = 0; i < value_count(list); i++) {
        const value *one = schema_item(s, list, i), *ref;
        /* What is referred to is merged in; a schema that refers to itself this way never ends. */
        for (int k = 0; (ref = value_get(one, STR("$ref"))) != NULL; k++) {
            const value *to;
            if (k > SCHEMA_DEPTH_MAX)
                return schema_fail(s, W1803, here, "references go too deep");
            WEFT_TRY(schema_target(s, here, ref, &to));
            if (has_others(one, "$ref"))
                WEFT_TRY(schema_merge(s, here, schema_without(s, one, "$ref"), to, &one));
            else
                one = to;
        }
        WEFT_TRY(schema_merge(s, here, all, one, &all));
    }
    return schema_part(s, SCHEMA_AT(at, STR("allOf")), all, out);
}

/* ---- one schema ---- */

static weft_status check_keywords(schema *s, const schema_at *at, const value *v)
{
    for (size_t i = 0; i < value_count(v); i++) {
        str name = v->as.object.members[i].name;
        const keyword_row *k = keyword_find(name);
        if ((k && k->does != DOES_REFUSED) || schema_is_note(name))
            continue;
        if (k && str_eqz(name, "$id") && v == s->root)
            continue;
        if (k)
            return schema_fail(s, W1802, SCHEMA_AT(at, name), "`%s` is not supported: %s", k->name,
                               k->reason);
        weft_status st = schema_fail(s, W1802, SCHEMA_AT(at, name),
                                     "`" STR_FMT "` is not a keyword of schemas", STR_ARG(name));
        SUGGEST_ROW(s->dg, name, keywords, N_KEYWORD);
        return st;
    }
    return WEFT_OK;
}

static weft_status typed(schema *s, const schema_at *at, const value *v, const part **out)
{
    form *f = s->f;
    unsigned bits;
    part_vec way = {0};
    weft_status st = WEFT_OK;
    const part *p = NULL;
    WEFT_TRY(schema_types(s, at, v, &bits));
    if (bits == TYPE_ALL && !value_get(v, STR("type"))) {
        *out = part_rule(f, s->value);
        return WEFT_OK;
    }
    if (bits & TYPE_NULL)
        VEC_PUSH(&way, part_text(f, "null"));
    if (bits & TYPE_BOOL) {
        VEC_PUSH(&way, part_text(f, "true"));
        VEC_PUSH(&way, part_text(f, "false"));
    }
    const struct {
        unsigned bit;
        weft_status (*make)(schema *, const schema_at *, const value *, const part **);
    } makers[] = {
        {TYPE_STRING, schema_string}, {TYPE_ARRAY, schema_array}, {TYPE_OBJECT, schema_object}};
    if (bits & (TYPE_NUMBER | TYPE_INTEGER)) {
        st = schema_number(s, at, v, !(bits & TYPE_NUMBER), &p);
        if (st == WEFT_OK)
            VEC_PUSH(&way, p);
    }
    for (size_t i = 0; i < 3 && st == WEFT_OK; i++)
        if (bits & makers[i].bit) {
            st = makers[i].make(s, at, v, &p);
            if (st == WEFT_OK)
                VEC_PUSH(&way, p);
        }
    if (st == WEFT_OK)
        *out = part_list(f, PART_ALT, way.at, way.n);
    VEC_FREE(&way);
    return st;
}

weft_status schema_part(schema *s, const schema_at *at, const value *v, const part **out)
{
    bool flag;
    if (++s->steps > SCHEMA_STEPS_MAX || form_full(s->f))
        return schema_fail(s, W1803, at, "the schema becomes too large when it is written out");
    if (at->depth > SCHEMA_DEPTH_MAX)
        return schema_fail(s, W1803, at, "schemas nest more than %d deep", SCHEMA_DEPTH_MAX);
    if (value_bool(v, &flag)) {
        *out = flag ? part_rule(s->f, s->value) : part_never(s->f);
        return WEFT_OK;
    }
    if (value_kind_of(v) != VALUE_OBJECT)
        return schema_fail(s, W1801, at, "a schema is an object, true or false");
    /* zod writes {"not": {}} for what never is. */
    const value *never = value_get(v, STR("not"));
    if (never && ((value_bool(never, &flag) && flag) ||
                  (value_kind_of(never) == VALUE_OBJECT && value_count(never) == 0))) {
        *out = part_never(s->f);
        return WEFT_OK;
    }
    WEFT_TRY(check_keywords(s, at, v));
    const value *ref = value_get(v, STR("$ref"));
    if (value_get(v, STR("allOf")))
        return all_of(s, at, v, out);
    if (ref && has_others(v, "$ref")) {
        const value *to;
        WEFT_TRY(schema_target(s, at, ref, &to));
        WEFT_TRY(schema_merge(s, at, schema_without(s, v, "$ref"), to, &v));
        return schema_part(s, SCHEMA_AT(at, STR("$ref")), v, out);
    }
    if (ref)
        return reference(s, at, ref, out);
    if (value_get(v, STR("anyOf")))
        return choice(s, at, v, "anyOf", out);
    if (value_get(v, STR("oneOf")))
        return choice(s, at, v, "oneOf", out);
    if (value_get(v, STR("enum")) || value_get(v, STR("const")))
        return constants(s, at, v, out);
    return typed(s, at, v, out);
}

weft_status schema_form(weft_diag *dg, form *f, const char *name, str text,
                        const grammar_limits *limits)
{
    value root;
    json_limits most = {.bytes_max = limits->bytes_max,
                        .values_max = 1 << 18,
                        .depth_max = limits->depth_max,
                        .exact = true};
    WEFT_TRY(json_read(dg, f->a, name, text, most, &root));
    schema s = {.dg = dg, .f = f, .name = name, .root = &root, .depth_max = limits->depth_max};
    f->root = form_rule_add(f, STR("schema"), WEFT_NOWHERE);
    json_rules_add(&s);
    schema_at at = {.key = STR("#")};
    VEC_PUSH(&s.rules, ((schema_rule){&root, f->root}));
    const part *body;
    weft_status st = schema_part(&s, &at, &root, &body);
    if (st == WEFT_OK)
        f->rules.at[f->root].body = body;
    VEC_FREE(&s.rules);
    VEC_FREE(&s.apart);
    return st;
}
