/* schema_object.c - arrays and objects.
 *
 * Properties come in the order they are declared in, optional ones may be left out; others, where additionalProperties
 * has them, follow. A schema that lists properties and does not say whether there are others has no others. */
#include "runtime/grammar/schema_impl.h"

static const part *comma(schema *s)
{
    return PART_SEQ_OF(s->f, part_text(s->f, ","), part_rule(s->f, s->ws));
}

/* "{" or "[", what is inside with white space around it, and the other bracket. */
static const part *bracketed(schema *s, const char *open, const part *inside, const char *close)
{
    const part *ws = part_rule(s->f, s->ws);
    return PART_SEQ_OF(s->f, part_text(s->f, open), ws, inside, ws, part_text(s->f, close));
}

/* A rule of its own: however often it stands somewhere, its states are there once. */
static const part *as_rule(schema *s, const part *p)
{
    int32_t rule = form_rule_add(s->f, STR(""), WEFT_NOWHERE);
    s->f->rules.at[rule].body = p;
    return part_rule(s->f, rule);
}

/* item (, item)*, at least one. */
static const part *list_of(schema *s, const part *item, int64_t min, int64_t max)
{
    int64_t rest = max == REPEAT_NO_END ? REPEAT_NO_END : max - 1;
    return PART_SEQ_OF(
        s->f, item,
        part_repeat(s->f, PART_SEQ_OF(s->f, comma(s), item), min > 0 ? min - 1 : 0, rest));
}

/* ---- arrays ---- */

/* The constants of a schema, or NULL. */
static const value *listed_values(schema *s, const schema_at *at, const value *items)
{
    items = items ? schema_followed(s, at, items) : NULL;
    const value *list = value_get(items, STR("enum"));
    for (size_t i = 0; list && i < value_count(items); i++) {
        str name = items->as.object.members[i].name;
        if (!schema_is_note(name) && !str_eqz(name, "enum") && !str_eqz(name, "type"))
            return NULL;
    }
    return list;
}

/* Each of some constants at most once, in the order of the list: rule (i, n) is what follows n of them, all before i. */
static weft_status unique_items(schema *s, const schema_at *at, const value *items, int64_t min,
                                int64_t max, const part **out)
{
    enum { LISTED_MAX = 24 };
    form *f = s->f;
    const value *list = listed_values(s, at, items);
    size_t n = value_count(list);
    const part *one[LISTED_MAX];
    unsigned types = TYPE_ALL;
    if (!list || value_kind_of(list) != VALUE_ARRAY || n == 0 || n > LISTED_MAX)
        return schema_fail(
            s, W1802, SCHEMA_AT(at, STR("uniqueItems")),
            "uniqueItems is supported for items that are an enum of up to %d: a form "
            "cannot compare items",
            LISTED_MAX);
    items = schema_followed(s, at, items);
    if (value_get(items, STR("type")))
        WEFT_TRY(schema_types(s, at, items, &types));
    for (size_t i = 0; i < n; i++) {
        value x = value_at(list, i);
        str text = schema_text(s, &x);
        one[i] = schema_is_of_type(&x, types) ? part_bytes(f, text) : part_never(f);
        for (size_t k = 0; k < i; k++) /* the same twice in the list */
            if (one[k]->kind == PART_BYTES && str_eq(one[k]->bytes, text))
                one[i] = part_never(f);
    }
    int64_t most = max == REPEAT_NO_END || max > (int64_t)n ? (int64_t)n : max;
    int32_t first = (int32_t)f->rules.n;
    for (size_t i = 0; i < (n + 1) * (n + 1); i++)
        form_rule_add(f, STR(""), WEFT_NOWHERE);
    for (size_t i = 0; i <= n; i++)
        for (size_t c = 0; c <= i; c++) {
            part_vec way = {0};
            if (c > 0 && (int64_t)c >= min)
                VEC_PUSH(&way, part_empty(f));
            for (size_t k = i; k < n && (int64_t)c < most; k++) {
                const part *next = part_rule(f, first + (int32_t)((k + 1) * (n + 1) + c + 1));
                VEC_PUSH(&way,
                         c ? PART_SEQ_OF(f, comma(s), one[k], next) : PART_SEQ_OF(f, one[k], next));
            }
            f->rules.at[first + (int32_t)(i * (n + 1) + c)].body =
                part_list(f, PART_ALT, way.at, way.n);
            VEC_FREE(&way);
        }
    const part *none = part_text(f, "[]"), *some = bracketed(s, "[", part_rule(f, first), "]");
    *out = as_rule(s, min > 0 ? some : PART_ALT_OF(f, none, some));
    return WEFT_OK;
}

weft_status schema_array(schema *s, const schema_at *at, const value *v, const part **out)
{
    form *f = s->f;
    const value *items = value_get(v, STR("items")), *prefix = value_get(v, STR("prefixItems"));
    const value *unique = value_get(v, STR("uniqueItems"));
    if (value_kind_of(items) == VALUE_ARRAY && !prefix) { /* as earlier drafts have it */
        prefix = items;
        items = value_get(v, STR("additionalItems"));
    }
    const part *item = part_rule(f, s->value);
    size_t n = value_count(prefix);
    bool flag, no_more = false;
    int64_t min, max;
    enum { PREFIX_MAX = 128 };
    WEFT_TRY(schema_count(s, at, v, "minItems", 0, &min));
    WEFT_TRY(schema_count(s, at, v, "maxItems", REPEAT_NO_END, &max));
    if (unique && value_bool(unique, &flag) && flag && (max == REPEAT_NO_END || max > 1))
        return unique_items(s, at, prefix ? NULL : items, min, max, out);
    if (prefix && (value_kind_of(prefix) != VALUE_ARRAY || n > PREFIX_MAX))
        return schema_fail(s, W1801, SCHEMA_AT(at, STR("prefixItems")),
                           "prefixItems is not a list of up to %d schemas", PREFIX_MAX);
    if (value_kind_of(items) == VALUE_ARRAY)
        return schema_fail(s, W1802, SCHEMA_AT(at, STR("items")),
                           "a list of schemas is called prefixItems in draft 2020-12");
    no_more =
        (items && value_bool(items, &flag) && !flag) || (prefix && !items && min <= (int64_t)n);
    if (items && !no_more)
        WEFT_TRY(schema_part(s, SCHEMA_AT(at, STR("items")), items, &item));
    if (no_more && (max == REPEAT_NO_END || max > (int64_t)n))
        max = (int64_t)n;
    if (max != REPEAT_NO_END && max < min) {
        *out = part_never(f);
        return WEFT_OK;
    }
    if (max != REPEAT_NO_END && (int64_t)n > max)
        n = (size_t)max;
    /* From the end: what may follow item i. */
    const part *rest = part_empty(f);
    if (n > 0 && (max == REPEAT_NO_END || max > (int64_t)n))
        rest =
            part_repeat(f, PART_SEQ_OF(f, comma(s), item), min > (int64_t)n ? min - (int64_t)n : 0,
                        max == REPEAT_NO_END ? max : max - (int64_t)n);
    for (size_t i = n; i-- > 0;) {
        const part *p;
        WEFT_TRY(schema_part(s, SCHEMA_AT(at, STR("prefixItems")), schema_item(s, prefix, i), &p));
        rest = i ? PART_SEQ_OF(f, comma(s), p, rest) : PART_SEQ_OF(f, p, rest);
        if (i > 0 && min <= (int64_t)i)
            rest = part_repeat(f, rest, 0, 1);
    }
    if (n == 0 && max != 0)
        rest = list_of(s, item, min, max);
    const part *none = part_text(f, "[]"), *some = bracketed(s, "[", rest, "]");
    *out = as_rule(s, max == 0 ? none : min > 0 ? some : PART_ALT_OF(f, none, some));
    return WEFT_OK;
}

/* ---- objects ---- */

static const part *member(schema *s, const part *key, const part *v)
{
    return PART_SEQ_OF(s->f, key, part_text(s->f, ":"), part_rule(s->f, s->ws), v);
}

static bool is_required(const value *required, str name)
{
    for (size_t i = 0; i < value_count(required); i++) {
        value r = value_at(required, i);
        str text;
        if (value_str(&r, &text) && str_eq(text, name))
            return true;
    }
    return false;
}

typedef struct {
    part_vec item;
    VEC(bool) optional;
    VEC(str) name;
} members;

static void members_free(members *m)
{
    VEC_FREE(&m->item);
    VEC_FREE(&m->optional);
    VEC_FREE(&m->name);
}

static weft_status add_member(schema *s, const schema_at *at, members *m, str name, const value *v,
                              bool required)
{
    const part *p;
    value key = value_of_str(name);
    WEFT_TRY(schema_part(s, at, v, &p));
    VEC_PUSH(&m->item, member(s, part_bytes(s->f, schema_text(s, &key)), p));
    VEC_PUSH(&m->optional, !required);
    VEC_PUSH(&m->name, name);
    return WEFT_OK;
}

/* What is known of properties that are not listed; NULL: there are none. */
static const value *others_of(const value *v, bool listed)
{
    static const value any = {.type = VT_BOOL, .as.b = true};
    const value *o = value_get(v, STR("additionalProperties"));
    bool flag;
    if (!o)
        return listed ? NULL : &any;
    return value_bool(o, &flag) && !flag ? NULL : o;
}

static weft_status add_members(schema *s, const schema_at *at, const value *v, members *m)
{
    static const value any = {.type = VT_BOOL, .as.b = true};
    const value *props = value_get(v, STR("properties")), *required = value_get(v, STR("required"));
    const value *others = value_get(v, STR("additionalProperties"));
    const schema_at *at_props = SCHEMA_AT(at, STR("properties"));
    if (props && value_kind_of(props) != VALUE_OBJECT)
        return schema_fail(s, W1801, at_props, "properties is not an object");
    if (required && value_kind_of(required) != VALUE_ARRAY)
        return schema_fail(s, W1801, SCHEMA_AT(at, STR("required")), "required is not a list");
    enum { PAIRS_MAX = 1 << 24 }; /* names are looked for in the list of those that are required */
    if (value_count(required) > PAIRS_MAX / (value_count(props) + value_count(required) + 1))
        return schema_fail(s, W1803, at, "an object with %zu properties and %zu required names",
                           value_count(props), value_count(required));
    for (size_t i = 0; i < value_count(props); i++) {
        const value_member *p = &props->as.object.members[i];
        WEFT_TRY(add_member(s, SCHEMA_AT(at_props, p->name), m, p->name, &p->v,
                            is_required(required, p->name)));
    }
    for (size_t i = 0; i < value_count(required); i++) {
        value r = value_at(required, i);
        str name;
        if (!value_str(&r, &name))
            return schema_fail(s, W1801, SCHEMA_AT(at, STR("required")),
                               "required is not a list of names");
        bool there = false; /* as a property, or before in this list */
        for (size_t k = 0; k < m->name.n; k++)
            there = there || str_eq(m->name.at[k], name);
        if (!there)
            WEFT_TRY(add_member(s, SCHEMA_AT(at, STR("required")), m, name, others ? others : &any,
                                true));
    }
    return WEFT_OK;
}

/* Names and values of a map: properties that are not listed by name. NULL in *out: there are none. */
static weft_status other_members(schema *s, const schema_at *at, const value *v, const members *m,
                                 const part **out)
{
    const value *patterns = value_get(v, STR("patternProperties"));
    const value *names = value_get(v, STR("propertyNames"));
    const value *others =
        others_of(v, m->name.n > 0 || value_count(patterns) > 0 || value_get(v, STR("properties")));
    const part *key = NULL, *p;
    *out = NULL;
    if (value_count(patterns) > 0) {
        if (value_count(patterns) > 1 || m->name.n > 0 || others || names)
            return schema_fail(s, W1802, SCHEMA_AT(at, STR("patternProperties")),
                               "patternProperties is supported with one pattern, and without "
                               "properties, propertyNames and additionalProperties");
        const value_member *one = &patterns->as.object.members[0];
        value_member pattern[] = {{STR("type"), value_of_str(STR("string"))},
                                  {STR("pattern"), value_of_str(one->name)}};
        WEFT_TRY(schema_part(s, SCHEMA_AT(at, STR("patternProperties")),
                             schema_object_of(s, pattern, 2), &key));
        WEFT_TRY(schema_part(s, SCHEMA_AT(at, one->name), &one->v, &p));
        *out = member(s, key, p);
        return WEFT_OK;
    }
    if (names && m->name.n > 0)
        return schema_fail(s, W1802, SCHEMA_AT(at, STR("propertyNames")),
                           "propertyNames is not supported beside properties");
    if (!others)
        return WEFT_OK;
    if (names) {
        value_member string[] = {{STR("type"), value_of_str(STR("string"))}};
        const value *both;
        WEFT_TRY(schema_merge(s, SCHEMA_AT(at, STR("propertyNames")), names,
                              schema_object_of(s, string, 1), &both));
        WEFT_TRY(schema_part(s, SCHEMA_AT(at, STR("propertyNames")), both, &key));
    }
    enum { NAME_BYTES_MAX = 256 };
    for (size_t i = 0; i < m->name.n; i++)
        if (m->name.at[i].n > NAME_BYTES_MAX)
            return schema_fail(s, W1803, at,
                               "a property with a name of more than %d bytes beside "
                               "additionalProperties",
                               NAME_BYTES_MAX);
    WEFT_TRY(schema_part(s, SCHEMA_AT(at, STR("additionalProperties")), others, &p));
    if (!key)
        key = m->name.n ? as_rule(s, json_key_except(s->f, m->name.at, m->name.n))
                        : part_rule(s->f, s->string);
    *out = member(s, key, p);
    return WEFT_OK;
}

static weft_status build_object(schema *s, const schema_at *at, const value *v, members *m,
                                const part **out)
{
    form *f = s->f;
    const part *more, *inside, *none = part_text(f, "{}");
    int64_t min, max, needed = 0;
    WEFT_TRY(schema_count(s, at, v, "minProperties", 0, &min));
    WEFT_TRY(schema_count(s, at, v, "maxProperties", REPEAT_NO_END, &max));
    WEFT_TRY(add_members(s, at, v, m));
    WEFT_TRY(other_members(s, at, v, m, &more));
    for (size_t i = 0; i < m->optional.n; i++)
        needed += !m->optional.at[i];
    if (m->item.n == 0) {
        if (max != REPEAT_NO_END && max < min)
            inside = part_never(f);
        else
            inside = more && max != 0 ? list_of(s, more, min, max) : part_never(f);
    } else {
        if ((min > needed && min > 1) ||
            (max != REPEAT_NO_END && (more || max < (int64_t)m->item.n)))
            return schema_fail(s, W1802, at,
                               "minProperties and maxProperties are not supported where they "
                               "choose among properties");
        inside = part_ordered(f, m->item.at, m->optional.at, m->item.n, comma(s), more, min > 0);
    }
    /* Of what is all optional nothing may be left: then it is {}, without white space. */
    const part *some = bracketed(s, "{", inside, "}");
    *out = as_rule(s, needed > 0 || min > 0 ? some : PART_ALT_OF(f, none, some));
    return WEFT_OK;
}

weft_status schema_object(schema *s, const schema_at *at, const value *v, const part **out)
{
    members m = {.item = {0}};
    weft_status st = build_object(s, at, v, &m, out);
    members_free(&m);
    return st;
}
