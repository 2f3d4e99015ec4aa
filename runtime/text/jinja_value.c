/* jinja_value.c - lists, dicts with their hash index, equality and truth. */
#include "runtime/text/jinja_value.h"

#include "runtime/base/mem.h"
#include "runtime/base/utf8.h"
#include "runtime/text/jinja_run.h"

enum {
    DICT_LINEAR_MAX = 8, /* up to here keys are compared one by one */
    EQUAL_DEPTH_MAX = 200,
};

jlist *jlist_new(jinja_run *r, jseq seq, size_t cap)
{
    jlist *l = ARENA_NEW(r->a, jlist);
    l->seq = seq;
    l->cap = cap;
    l->at = cap ? ARENA_ARRAY(r->a, jval, cap) : NULL;
    return l;
}

void jlist_push(jinja_run *r, jlist *l, jval v)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 4;
        jval *at = ARENA_ARRAY(r->a, jval, cap);
        if (l->n)
            memcpy(at, l->at, l->n * sizeof *at);
        l->at = at;
        l->cap = cap;
    }
    l->at[l->n++] = v;
}

jdict *jdict_new(jinja_run *r)
{
    return ARENA_NEW(r->a, jdict);
}

bool jv_hashable(jinja_run *r, const jval *v)
{
    if (v->kind == JV_DICT)
        return false;
    if (v->kind != JV_LIST || !run_spend(r, 1))
        return true;
    if (v->as.list->seq == JSEQ_LIST)
        return false;
    for (size_t i = 0; v->as.list->seq == JSEQ_TUPLE && i < v->as.list->n; i++)
        if (!jv_hashable(r, &v->as.list->at[i]))
            return false;
    return true;
}

/* Equal keys hash alike: 1, 1.0 and true are one key. */
static uint64_t hash(jinja_run *r, const jval *v)
{
    if (v->kind == JV_STR) {
        run_spend(r, v->as.s.n / STEP_CHARS);
        return str_hash(v->as.s);
    }
    if (jv_is_number(v)) {
        double x = jv_number(v) + 0.0; /* -0.0 and 0.0 are one key */
        return str_hash((str){(const char *)&x, sizeof x});
    }
    return (uint64_t)v->kind;
}

static size_t find_slot(jinja_run *r, const jdict *d, const jval *key)
{
    size_t i = (size_t)hash(r, key) & (d->n_slot - 1);
    while (d->slot[i] && !jv_equal(r, &d->at[d->slot[i] - 1].key, key))
        i = (i + 1) & (d->n_slot - 1);
    return i;
}

static jval *find(jinja_run *r, const jdict *d, const jval *key)
{
    if (d->slot) {
        uint32_t at = d->slot[find_slot(r, d, key)];
        return at ? &d->at[at - 1].v : NULL;
    }
    for (size_t i = 0; i < d->n; i++)
        if (jv_equal(r, &d->at[i].key, key))
            return &d->at[i].v;
    return NULL;
}

static void index_again(jinja_run *r, jdict *d)
{
    d->n_slot = d->cap * 2; /* cap is a power of two: at most half of the slots are taken */
    d->slot = ARENA_ARRAY(r->a, uint32_t, d->n_slot);
    for (size_t i = 0; i < d->n; i++)
        d->slot[find_slot(r, d, &d->at[i].key)] = (uint32_t)i + 1;
}

void jdict_set(jinja_run *r, jdict *d, jval key, jval v)
{
    jval *old = find(r, d, &key);
    if (old) {
        *old = v;
        return;
    }
    if (d->n == d->cap) {
        size_t cap = d->cap ? d->cap * 2 : 4;
        jpair *at = ARENA_ARRAY(r->a, jpair, cap);
        if (d->n)
            memcpy(at, d->at, d->n * sizeof *at);
        d->at = at;
        d->cap = cap;
        if (cap > DICT_LINEAR_MAX)
            index_again(r, d);
    }
    if (d->slot)
        d->slot[find_slot(r, d, &key)] = (uint32_t)d->n + 1;
    d->at[d->n++] = (jpair){key, v};
}

void jdict_set_str(jinja_run *r, jdict *d, str key, jval v)
{
    jdict_set(r, d, jv_str(key), v);
}

const jval *jdict_get(jinja_run *r, const jdict *d, const jval *key)
{
    return find(r, d, key);
}

const jval *jdict_get_str(jinja_run *r, const jdict *d, str key)
{
    jval k = jv_str(key);
    return find(r, d, &k);
}

bool jv_truth(const jval *v)
{
    switch (v->kind) {
    case JV_ABSENT:
    case JV_UNDEFINED:
    case JV_NONE:
        return false;
    case JV_BOOL:
        return v->as.b;
    case JV_INT:
        return v->as.i != 0;
    case JV_FLOAT:
        return v->as.f != 0;
    case JV_STR:
        return v->as.s.n > 0;
    case JV_LIST:
        return v->as.list->n > 0 || v->as.list->seq == JSEQ_GENERATOR;
    case JV_DICT:
        return v->as.dict->n > 0;
    default:
        return true;
    }
}

double jv_number(const jval *v)
{
    return v->kind == JV_FLOAT ? v->as.f : (double)jv_integer(v);
}

int64_t jv_integer(const jval *v)
{
    return v->kind == JV_BOOL ? v->as.b : v->as.i;
}

static bool equal(jinja_run *r, const jval *a, const jval *b, int depth);

static bool equal_lists(jinja_run *r, const jlist *a, const jlist *b, int depth)
{
    if (a == b)
        return true;
    if (a->seq != b->seq || a->seq == JSEQ_GENERATOR || a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (!equal(r, &a->at[i], &b->at[i], depth))
            return false;
    return true;
}

static bool equal_dicts(jinja_run *r, const jdict *a, const jdict *b, int depth)
{
    if (a == b)
        return true;
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++) {
        const jval *other = find(r, b, &a->at[i].key);
        if (!other || !equal(r, &a->at[i].v, other, depth))
            return false;
    }
    return true;
}

static bool equal(jinja_run *r, const jval *a, const jval *b, int depth)
{
    if (!run_spend(r, 1))
        return false;
    if (jv_is_number(a) && jv_is_number(b)) {
        if (a->kind != JV_FLOAT && b->kind != JV_FLOAT)
            return jv_integer(a) == jv_integer(b);
        return jv_number(a) == jv_number(b);
    }
    if (a->kind != b->kind || depth == 0)
        return false;
    switch (a->kind) {
    case JV_STR:
        return a->as.s.n == b->as.s.n && run_spend(r, a->as.s.n / STEP_BYTES) &&
               str_eq(a->as.s, b->as.s);
    case JV_LIST:
        return equal_lists(r, a->as.list, b->as.list, depth - 1);
    case JV_DICT:
        return equal_dicts(r, a->as.dict, b->as.dict, depth - 1);
    case JV_NAMESPACE:
        return a->as.dict == b->as.dict;
    case JV_MACRO:
        return a->as.macro == b->as.macro;
    case JV_LOOP:
        return a->as.loop == b->as.loop;
    case JV_CYCLER:
        return a->as.cycler == b->as.cycler;
    case JV_BUILTIN:
        return a->as.fn.row == b->as.fn.row && a->as.fn.self == b->as.fn.self;
    default:
        return true; /* none and none, undefined and undefined */
    }
}

bool jv_equal(jinja_run *r, const jval *a, const jval *b)
{
    return equal(r, a, b, EQUAL_DEPTH_MAX);
}

const char *jkind_name(jkind kind)
{
    static const char *const name[] = {
        [JV_ABSENT] = "nothing", [JV_UNDEFINED] = "undefined",
        [JV_NONE] = "none",      [JV_BOOL] = "bool",
        [JV_INT] = "int",        [JV_FLOAT] = "float",
        [JV_STR] = "str",        [JV_LIST] = "list",
        [JV_DICT] = "dict",      [JV_NAMESPACE] = "namespace",
        [JV_MACRO] = "macro",    [JV_LOOP] = "loop",
        [JV_CYCLER] = "cycler",  [JV_BUILTIN] = "function",
    };
    return name[kind];
}

const char *jv_type(const jval *v)
{
    static const char *const seq[] = {
        [JSEQ_LIST] = "list",           [JSEQ_TUPLE] = "tuple",        [JSEQ_RANGE] = "range",
        [JSEQ_KEYS] = "dict_keys",      [JSEQ_VALUES] = "dict_values", [JSEQ_ITEMS] = "dict_items",
        [JSEQ_GENERATOR] = "generator",
    };
    return v->kind == JV_LIST ? seq[v->as.list->seq] : jkind_name(v->kind);
}

static str repaired(jinja_run *r, str s)
{
    uint32_t cp;
    size_t i = 0, n = 0;
    for (; i < s.n; i += n)
        if ((n = utf8_decode((str){s.p + i, s.n - i}, &cp)) == 0)
            break;
    if (i == s.n)
        return s;
    str fixed = {arena_alloc(r->a, mem_product(s.n, 3) + 1), 0};
    char *to = (char *)fixed.p;
    for (i = 0; i < s.n;) {
        n = utf8_decode((str){s.p + i, s.n - i}, &cp);
        memcpy(to + fixed.n, n ? s.p + i : "\xef\xbf\xbd", n ? n : 3);
        fixed.n += n ? n : 3;
        i += n ? n : 1;
    }
    return fixed;
}

static jval from_array(jinja_run *r, const value *v)
{
    size_t n = value_count(v);
    jlist *l = jlist_new(r, JSEQ_LIST, n);
    for (size_t i = 0; i < n; i++) {
        value item = value_at(v, i);
        jlist_push(r, l, jv_from_value(r, &item));
    }
    return jv_list(l);
}

static jval from_object(jinja_run *r, const value *v)
{
    jdict *d = jdict_new(r);
    for (size_t i = 0; i < v->as.object.n; i++) {
        const value_member *m = &v->as.object.members[i];
        jdict_set(r, d, jv_str(repaired(r, m->name)), jv_from_value(r, &m->v));
    }
    return jv_dict(d);
}

jval jv_from_value(jinja_run *r, const value *v)
{
    double f = 0;
    switch (value_kind_of(v)) {
    case VALUE_BOOL:
        return jv_bool(v->as.b);
    case VALUE_INT:
        return v->type != VT_U64      ? jv_int(v->as.i)
               : v->as.u <= INT64_MAX ? jv_int((int64_t)v->as.u)
                                      : jv_float((double)v->as.u);
    case VALUE_FLOAT:
        value_float(v, &f);
        return jv_float(f);
    case VALUE_STR:
        return jv_str(repaired(r, v->as.s));
    case VALUE_ARRAY:
        return from_array(r, v);
    case VALUE_OBJECT:
        return from_object(r, v);
    default:
        return jv_none();
    }
}
