/* schema_merge.c - two schemas into one that holds exactly where both do, for allOf and for keywords beside $ref, anyOf and
 * oneOf. Schemas below them are not merged here: they become an allOf, which is merged when it is reached. */
#include "runtime/grammar/schema_impl.h"

typedef VEC(value_member) member_vec;

const value *schema_object_of(schema *s, const value_member *members, size_t n)
{
    value_member *copy = ARENA_ARRAY(s->f->a, value_member, n + 1);
    value *v = ARENA_NEW(s->f->a, value);
    size_t twice;
    for (size_t i = 0; i < n; i++)
        copy[i] = members[i];
    bool ok = value_of_members(s->f->a, copy, n, v, &twice);
    WEFT_ASSERT(ok);
    s->f->n_part += n / 4;
    return v;
}

static const value *finish(schema *s, member_vec *m)
{
    const value *v = schema_object_of(s, m->at, m->n);
    VEC_FREE(m);
    return v;
}

const value *schema_without(schema *s, const value *v, const char *keyword)
{
    member_vec m = {0};
    for (size_t i = 0; i < value_count(v); i++)
        if (!str_eqz(v->as.object.members[i].name, keyword))
            VEC_PUSH(&m, v->as.object.members[i]);
    return finish(s, &m);
}

static value list_value(schema *s, const value *items, size_t n)
{
    value *copy = ARENA_ARRAY(s->f->a, value, n + 1);
    for (size_t i = 0; i < n; i++)
        copy[i] = items[i];
    return value_of_array(VT_NULL, copy, n);
}

static value both_of(schema *s, const value *a, const value *b)
{
    value_member m = {STR("allOf"), list_value(s, (value[]){*a, *b}, 2)};
    return *schema_object_of(s, &m, 1);
}

static bool same(schema *s, const value *a, const value *b)
{
    double x, y;
    if (value_float(a, &x) && value_float(b, &y))
        return x == y;
    return str_eq(schema_text(s, a), schema_text(s, b));
}

/* Those of a that are in b too. */
static value common(schema *s, const value *a, const value *b)
{
    VEC(value) kept = {0};
    for (size_t i = 0; i < value_count(a); i++)
        for (size_t k = 0; k < value_count(b); k++) {
            value x = value_at(a, i), y = value_at(b, k);
            if (++s->steps > SCHEMA_STEPS_MAX || form_full(s->f))
                break; /* the next schema says so */
            if (same(s, &x, &y)) {
                VEC_PUSH(&kept, x);
                break;
            }
        }
    value v = list_value(s, kept.at, kept.n);
    VEC_FREE(&kept);
    return v;
}

static value joined(schema *s, const value *a, const value *b)
{
    VEC(value) all = {0};
    for (size_t i = 0; i < value_count(a); i++)
        VEC_PUSH(&all, value_at(a, i));
    for (size_t i = 0; i < value_count(b); i++)
        VEC_PUSH(&all, value_at(b, i));
    s->steps += all.n; /* lists of lists double */
    value v = list_value(s, all.at, all.n);
    VEC_FREE(&all);
    return v;
}

static value listed(schema *s, const value *v)
{
    return value_kind_of(v) == VALUE_ARRAY ? *v : list_value(s, v, 1);
}

/* Types in common; integers are numbers. */
static value common_types(schema *s, const value *a, const value *b)
{
    VEC(value) kept = {0};
    for (size_t i = 0; i < value_count(a); i++)
        for (size_t k = 0; k < value_count(b); k++) {
            value x = value_at(a, i), y = value_at(b, k);
            str p, q;
            if (!value_str(&x, &p) || !value_str(&y, &q))
                continue;
            if (str_eq(p, q) || (str_eqz(p, "integer") && str_eqz(q, "number")))
                VEC_PUSH(&kept, x);
            else if (str_eqz(p, "number") && str_eqz(q, "integer"))
                VEC_PUSH(&kept, y);
        }
    value v = list_value(s, kept.at, kept.n);
    VEC_FREE(&kept);
    return v;
}

/* Properties of both. One that only one side lists must also be what the other side says of others. */
static value both_properties(schema *s, const value *a, const value *b)
{
    const value *x = value_get(a, STR("properties")), *y = value_get(b, STR("properties"));
    const value *x_rest = value_get(a, STR("additionalProperties"));
    const value *y_rest = value_get(b, STR("additionalProperties"));
    member_vec m = {0};
    for (size_t i = 0; i < value_count(x); i++) {
        value_member p = x->as.object.members[i];
        const value *other = value_get(y, p.name);
        other = other ? other : y_rest;
        p.v = other ? both_of(s, &p.v, other) : p.v;
        VEC_PUSH(&m, p);
    }
    for (size_t i = 0; i < value_count(y); i++) {
        value_member p = y->as.object.members[i];
        if (value_get(x, p.name))
            continue;
        p.v = x_rest ? both_of(s, &p.v, x_rest) : p.v;
        VEC_PUSH(&m, p);
    }
    return *finish(s, &m);
}

/* The first items of both. One that only one side lists must also be what the other side says of the rest. */
static value both_prefixes(schema *s, const value *a, const value *b)
{
    const value *p = value_get(a, STR("prefixItems")), *q = value_get(b, STR("prefixItems"));
    size_t n = value_count(p) > value_count(q) ? value_count(p) : value_count(q);
    VEC(value) list = {0};
    for (size_t i = 0; i < n; i++) {
        const value *x = i < value_count(p) ? schema_item(s, p, i) : value_get(a, STR("items"));
        const value *y = i < value_count(q) ? schema_item(s, q, i) : value_get(b, STR("items"));
        VEC_PUSH(&list, x && y ? both_of(s, x, y) : x ? *x : *y);
    }
    value v = list_value(s, list.at, list.n);
    VEC_FREE(&list);
    return v;
}

typedef enum { TAKE_LEAST, TAKE_MOST, TAKE_BOTH, TAKE_SAME } take;

static const struct {
    const char *name;
    take how;
} rows[] = {
    {"minimum", TAKE_MOST},
    {"exclusiveMinimum", TAKE_MOST},
    {"maximum", TAKE_LEAST},
    {"exclusiveMaximum", TAKE_LEAST},
    {"minLength", TAKE_MOST},
    {"maxLength", TAKE_LEAST},
    {"minItems", TAKE_MOST},
    {"maxItems", TAKE_LEAST},
    {"minProperties", TAKE_MOST},
    {"maxProperties", TAKE_LEAST},
    {"additionalProperties", TAKE_BOTH},
    {"propertyNames", TAKE_BOTH},
    {"items", TAKE_BOTH},
    {"pattern", TAKE_SAME},
    {"format", TAKE_SAME},
    {"multipleOf", TAKE_SAME},
    {"uniqueItems", TAKE_SAME},
    {"patternProperties", TAKE_SAME},
    {"anyOf", TAKE_SAME},
    {"oneOf", TAKE_SAME},
};

/* A keyword that both have. */
static weft_status both_values(schema *s, const schema_at *at, str name, const value *a,
                               const value *b, value *out)
{
    double x, y;
    if (schema_is_note(name)) {
        *out = *a;
        return WEFT_OK;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!str_eqz(name, rows[i].name))
            continue;
        if (rows[i].how == TAKE_BOTH) {
            *out = both_of(s, a, b);
            return WEFT_OK;
        }
        if (same(s, a, b)) {
            *out = *a;
            return WEFT_OK;
        }
        if (rows[i].how != TAKE_SAME && value_float(a, &x) && value_float(b, &y)) {
            *out = (x < y) == (rows[i].how == TAKE_LEAST) ? *a : *b;
            return WEFT_OK;
        }
        break;
    }
    return schema_fail(s, W1802, SCHEMA_AT(at, name),
                       "two different `" STR_FMT "` that must both hold are not supported",
                       STR_ARG(name));
}

/* What one side lists is also subject to what the other says of the rest: these are made of both schemas as a whole. */
static bool is_listed_later(str name)
{
    return str_eqz(name, "properties") || str_eqz(name, "prefixItems");
}

weft_status schema_merge(schema *s, const schema_at *at, const value *a, const value *b,
                         const value **out)
{
    bool flag;
    member_vec m = {0};
    weft_status st = WEFT_OK;
    if (++s->steps > SCHEMA_STEPS_MAX || form_full(s->f))
        return schema_fail(s, W1803, at, "merging schemas takes too many steps");
    if (value_bool(a, &flag) || value_bool(b, &flag)) {
        const value *yes = value_bool(a, &flag) ? a : b, *other = yes == a ? b : a;
        value_bool(yes, &flag);
        *out = flag ? other : yes;
        return WEFT_OK;
    }
    if (value_kind_of(a) != VALUE_OBJECT || value_kind_of(b) != VALUE_OBJECT)
        return schema_fail(s, W1801, at, "a schema is an object, true or false");
    for (size_t i = 0; i < value_count(a) && st == WEFT_OK; i++) {
        value_member p = a->as.object.members[i];
        const value *q = value_get(b, p.name);
        value one = {.type = VT_NULL};
        if (!q || is_listed_later(p.name)) {
            ;
        } else if (str_eqz(p.name, "type")) {
            value x = listed(s, &p.v), y = listed(s, q);
            p.v = common_types(s, &x, &y);
        } else if (str_eqz(p.name, "enum")) {
            p.v = common(s, &p.v, q);
        } else if (str_eqz(p.name, "const")) {
            value x = list_value(s, &p.v, 1), y = list_value(s, q, 1);
            p = (value_member){STR("enum"), common(s, &x, &y)};
        } else if (str_eqz(p.name, "required") || str_eqz(p.name, "allOf")) {
            p.v = joined(s, &p.v, q);
        } else if (str_eqz(p.name, "$ref")) {
            /* One stays here, the other becomes part of an allOf beside it. */
            value_member ref = {STR("$ref"), *q};
            one = list_value(s, schema_object_of(s, &ref, 1), 1);
            VEC_PUSH(&m, ((value_member){STR("allOf"), one}));
        } else {
            st = both_values(s, at, p.name, &p.v, q, &p.v);
        }
        if (!is_listed_later(p.name))
            VEC_PUSH(&m, p);
    }
    for (size_t i = 0; i < value_count(b) && st == WEFT_OK; i++) {
        value_member p = b->as.object.members[i];
        if (!value_get(a, p.name) && !is_listed_later(p.name))
            VEC_PUSH(&m, p);
    }
    if (st == WEFT_OK && (value_get(a, STR("properties")) || value_get(b, STR("properties"))))
        VEC_PUSH(&m, ((value_member){STR("properties"), both_properties(s, a, b)}));
    if (st == WEFT_OK && (value_get(a, STR("prefixItems")) || value_get(b, STR("prefixItems"))))
        VEC_PUSH(&m, ((value_member){STR("prefixItems"), both_prefixes(s, a, b)}));
    /* const of one side and enum of the other, or const twice, are one enum. */
    size_t n_enum = 0, at_enum[3] = {0};
    for (size_t i = 0; i < m.n && n_enum < 3; i++)
        if (str_eqz(m.at[i].name, "enum") || str_eqz(m.at[i].name, "const"))
            at_enum[n_enum++] = i;
    if (n_enum > 1) {
        value all = {.type = VT_NULL};
        for (size_t i = 0; i < n_enum; i++) {
            value_member *p = &m.at[at_enum[i]];
            value x = str_eqz(p->name, "const") ? list_value(s, &p->v, 1) : p->v;
            all = i ? common(s, &all, &x) : x;
        }
        for (size_t i = n_enum; i-- > 0;)
            m.at[at_enum[i]] = m.at[--m.n];
        VEC_PUSH(&m, ((value_member){STR("enum"), all}));
    }
    size_t n_all = 0;
    for (size_t i = 0; i < m.n; i++)
        n_all += str_eqz(m.at[i].name, "allOf");
    if (st == WEFT_OK && n_all > 1)
        st = schema_fail(s, W1802, at, "several $ref and allOf at one place are not supported");
    if (st == WEFT_OK)
        *out = finish(s, &m);
    else
        VEC_FREE(&m);
    return st;
}

/* ---- schemas that exclude each other ---- */

/* The values of const or enum; NULL: any. */
static const value *constants(schema *s, const value *v)
{
    const value *one = value_get(v, STR("const"));
    value *list;
    if (!one)
        return value_get(v, STR("enum"));
    list = ARENA_NEW(s->f->a, value);
    *list = list_value(s, one, 1);
    return list;
}

static bool constants_apart(schema *s, const value *a, const value *b)
{
    const value *x = constants(s, a), *y = constants(s, b);
    if (!x || !y)
        return false;
    value both = common(s, x, y);
    return value_count(&both) == 0 && s->steps <= SCHEMA_STEPS_MAX && !form_full(s->f);
}

static bool requires(const value *v, str name)
{
    const value *r = value_get(v, STR("required"));
    for (size_t i = 0; i < value_count(r); i++) {
        value x = value_at(r, i);
        str text;
        if (value_str(&x, &text) && str_eq(text, name))
            return true;
    }
    return false;
}

const value *schema_followed(schema *s, const schema_at *at, const value *v)
{
    for (int i = 0; i < 8; i++) {
        const value *ref = value_get(v, STR("$ref")), *to;
        size_t kept = diag_count(s->dg);
        if (!ref)
            break;
        if (schema_target(s, at, ref, &to) != WEFT_OK) {
            diag_keep_first(s->dg, kept); /* said when it is compiled */
            break;
        }
        v = to;
    }
    return v;
}

bool schema_apart_at(schema *s, const schema_at *at, const value *a, const value *b, str name)
{
    const value *p = value_get(value_get(schema_followed(s, at, a), STR("properties")), name);
    const value *q = value_get(value_get(schema_followed(s, at, b), STR("properties")), name);
    return p && q && constants_apart(s, schema_followed(s, at, p), schema_followed(s, at, q));
}

/* An object of a lists all that it may have, and lacks what b requires. */
static bool lacks_required(const value *a, const value *b)
{
    const value *names = value_get(b, STR("required")), *p = value_get(a, STR("properties"));
    const value *others = value_get(a, STR("additionalProperties"));
    bool flag;
    if (!others || !value_bool(others, &flag) || flag || value_get(a, STR("patternProperties")))
        return false;
    for (size_t i = 0; i < value_count(names); i++) {
        value x = value_at(names, i);
        str name;
        if (value_str(&x, &name) && !value_get(p, name))
            return true;
    }
    return false;
}

bool schema_apart(schema *s, const schema_at *at, const value *a, const value *b)
{
    unsigned x = 0, y = 0;
    s->steps++;
    a = schema_followed(s, at, a);
    b = schema_followed(s, at, b);
    if (value_kind_of(a) != VALUE_OBJECT || value_kind_of(b) != VALUE_OBJECT)
        return false;
    size_t kept = diag_count(s->dg);
    bool known = schema_types(s, at, a, &x) == WEFT_OK && schema_types(s, at, b, &y) == WEFT_OK;
    diag_keep_first(s->dg, kept);
    if (!known)
        return false;
    x |= x & TYPE_NUMBER ? TYPE_INTEGER : 0;
    y |= y & TYPE_NUMBER ? TYPE_INTEGER : 0;
    if ((x & y) == 0 || constants_apart(s, a, b))
        return true;
    if ((x & y) != TYPE_OBJECT)
        return false;
    if (lacks_required(a, b) || lacks_required(b, a))
        return true;
    const value *p = value_get(a, STR("properties")), *q = value_get(b, STR("properties"));
    for (size_t i = 0; i < value_count(p); i++) {
        const value_member *m = &p->as.object.members[i];
        const value *other = value_get(q, m->name);
        s->steps++;
        if (other && requires(a, m->name) && requires(b, m->name) &&
            schema_apart_at(s, at, a, b, m->name))
            return true;
    }
    return false;
}
