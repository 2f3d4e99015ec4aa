/* jinja_filter_seq.c - filters over the items of a value: order, groups, first and last. */
#include "runtime/base/utf8.h"
#include "runtime/text/jinja_builtins.h"
#include "runtime/text/jinja_chars.h"

weft_status filter_length(jinja_run *r, const jcall *c, jval *out)
{
    out->kind = JV_INT;
    return access_length(r, &c->self, &out->as.i);
}

static weft_status copy_items(jinja_run *r, const jval *v, jseq seq, jlist **out)
{
    const jlist *items;
    WEFT_TRY(access_items(r, v, &items));
    WEFT_TRY(run_list_room(r, items->n));
    *out = jlist_new(r, seq, items->n);
    for (size_t i = 0; i < items->n; i++)
        jlist_push(r, *out, items->at[i]);
    return WEFT_OK;
}

weft_status filter_list(jinja_run *r, const jcall *c, jval *out)
{
    out->kind = JV_LIST;
    return copy_items(r, &c->self, JSEQ_LIST, &out->as.list);
}

weft_status filter_edge(jinja_run *r, const jcall *c, jval *out)
{
    const jlist *items;
    WEFT_TRY(access_items(r, &c->self, &items));
    *out = items->n ? items->at[c->how == AT_END ? items->n - 1 : 0]
                    : jv_undefined(JWHY_TEXT, STR("there is no item"));
    return WEFT_OK;
}

weft_status filter_reverse(jinja_run *r, const jcall *c, jval *out)
{
    const jlist *items;
    if (c->self.kind == JV_STR) {
        jval part[3] = {jv_none(), jv_none(), jv_int(-1)};
        return access_slice(r, &c->self, part, out);
    }
    WEFT_TRY(access_items(r, &c->self, &items));
    WEFT_TRY(run_list_room(r, items->n));
    jlist *l = jlist_new(r, JSEQ_GENERATOR, items->n);
    for (size_t i = items->n; i-- > 0;)
        jlist_push(r, l, items->at[i]);
    *out = jv_list(l);
    return WEFT_OK;
}

weft_status filter_items(jinja_run *r, const jcall *c, jval *out)
{
    if (c->self.kind == JV_UNDEFINED) {
        *out = jv_list(jlist_new(r, JSEQ_GENERATOR, 0));
        return WEFT_OK;
    }
    if (c->self.kind != JV_DICT)
        return run_fail(r, "items takes a dict, not %s", jv_type(&c->self));
    WEFT_TRY(dict_view(r, c->self.as.dict, JSEQ_ITEMS, out));
    out->as.list->seq = JSEQ_GENERATOR;
    return WEFT_OK;
}

weft_status filter_attr(jinja_run *r, const jcall *c, jval *out)
{
    str name = {0};
    WEFT_TRY(arg_str(r, c, 0, &name));
    jval v;
    WEFT_TRY(access_attr(r, &c->self, name, true, &v));
    bool key = c->self.kind == JV_DICT && v.kind != JV_BUILTIN; /* attributes only, no keys */
    *out = key ? jv_undefined(JWHY_ATTR, name) : v;
    out->of = key ? JV_DICT : out->of;
    return WEFT_OK;
}

/* ---- order ---- */

typedef struct {
    jval *key; /* one per part of the attribute */
    jval v;
} keyed;

/* What items are ordered by: the attributes, comma-separated, or the item; strings without case. */
typedef struct {
    jinja_run *r;
    const jval *attribute;
    bool fold, reverse;
    size_t n_part;
} ordering;

static weft_status fold_case(jinja_run *r, bool fold, jval *v)
{
    jval lower;
    if (!fold || v->kind != JV_STR)
        return WEFT_OK;
    WEFT_TRY(str_in_case(r, v->as.s, TO_LOWER, &lower));
    *v = lower;
    return WEFT_OK;
}

static size_t parts_of(const jval *attribute)
{
    size_t n = 1;
    for (size_t i = 0; attribute->kind == JV_STR && i < attribute->as.s.n; i++)
        n += attribute->as.s.p[i] == ',';
    return n;
}

static weft_status key_of(const ordering *o, const jval *item, jval *key)
{
    if (!jv_is_given(o->attribute) || o->attribute->kind != JV_STR) {
        key[0] = *item;
        if (jv_is_given(o->attribute))
            WEFT_TRY(access_path(o->r, item, o->attribute, &key[0]));
        return fold_case(o->r, o->fold, &key[0]);
    }
    str rest = o->attribute->as.s;
    for (size_t i = 0; i < o->n_part; i++) {
        size_t comma = str_find(rest, STR(","), 0), n = comma < rest.n ? comma : rest.n;
        jval path = jv_str((str){rest.p, n});
        WEFT_TRY(access_path(o->r, item, &path, &key[i]));
        WEFT_TRY(fold_case(o->r, o->fold, &key[i]));
        rest = (str){rest.p + n, rest.n - n};
        if (rest.n)
            rest = (str){rest.p + 1, rest.n - 1};
    }
    return WEFT_OK;
}

static weft_status in_order(const ordering *o, const keyed *a, const keyed *b, bool *out)
{
    int c = 0;
    for (size_t i = 0; i < o->n_part && c == 0; i++)
        if (o->n_part == 1 || !jv_equal(o->r, &a->key[i], &b->key[i]))
            WEFT_TRY(op_order(o->r, &a->key[i], &b->key[i], &c));
    *out = o->reverse ? c >= 0 : c <= 0;
    return WEFT_OK;
}

/* A merge sort: stable, and a bad order cannot make it read astray. */
static weft_status merge_sort(const ordering *o, keyed *at, keyed *spare, size_t n)
{
    size_t half = n / 2;
    if (n < 2)
        return WEFT_OK;
    WEFT_TRY(merge_sort(o, at, spare, half));
    WEFT_TRY(merge_sort(o, at + half, spare, n - half));
    memcpy(spare, at, half * sizeof *at);
    for (size_t i = 0, j = half, k = 0; i < half; k++) {
        bool keep = true;
        if (j < n)
            WEFT_TRY(in_order(o, &spare[i], &at[j], &keep));
        at[k] = keep ? spare[i++] : at[j++];
    }
    return WEFT_OK;
}

static weft_status sorted(ordering *o, const jlist *items, keyed **out)
{
    o->n_part = parts_of(o->attribute);
    size_t cost;
    if (__builtin_mul_overflow(items->n, o->n_part + 4, &cost))
        cost = SIZE_MAX;
    WEFT_TRY(run_list_room(o->r, cost));
    keyed *at = ARENA_ARRAY(o->r->a, keyed, items->n),
          *spare = ARENA_ARRAY(o->r->a, keyed, items->n);
    for (size_t i = 0; i < items->n; i++) {
        at[i].key = ARENA_ARRAY(o->r->a, jval, o->n_part);
        at[i].v = items->at[i];
        WEFT_TRY(key_of(o, &items->at[i], at[i].key));
    }
    WEFT_TRY(merge_sort(o, at, spare, items->n));
    *out = at;
    return WEFT_OK;
}

weft_status filter_sort(jinja_run *r, const jcall *c, jval *out)
{
    ordering o = {r, &c->arg[2], !arg_truth(c, 1), arg_truth(c, 0), 1};
    const jlist *items;
    keyed *at;
    WEFT_TRY(access_items(r, &c->self, &items));
    WEFT_TRY(sorted(&o, items, &at));
    jlist *l = jlist_new(r, JSEQ_LIST, items->n);
    for (size_t i = 0; i < items->n; i++)
        jlist_push(r, l, at[i].v);
    *out = jv_list(l);
    return WEFT_OK;
}

weft_status filter_dictsort(jinja_run *r, const jcall *c, jval *out)
{
    str by = STR("key");
    WEFT_TRY(arg_str(r, c, 1, &by));
    bool by_value = str_eqz(by, "value");
    jval pairs, column = jv_int(by_value);
    if (!by_value && !str_eqz(by, "key"))
        return run_fail(r, "dictsort: by is key or value");
    if (c->self.kind != JV_DICT)
        return run_fail(r, "dictsort takes a dict, not %s", jv_type(&c->self));
    WEFT_TRY(dict_view(r, c->self.as.dict, JSEQ_ITEMS, &pairs));
    jval arg[3] = {c->arg[2], c->arg[0], column};
    jcall sort = {.self = pairs, .arg = arg, .n = 3};
    return filter_sort(r, &sort, out);
}

weft_status filter_groupby(jinja_run *r, const jcall *c, jval *out)
{
    ordering o = {r, &c->arg[0], !arg_truth(c, 2), false, 1};
    const jlist *items;
    keyed *at;
    jlist *groups = jlist_new(r, JSEQ_LIST, 0), *members = NULL;
    WEFT_TRY(access_items(r, &c->self, &items));
    if (c->arg[1].kind != JV_ABSENT)
        return run_fail(r, "groupby with a default is not supported");
    WEFT_TRY(sorted(&o, items, &at));
    WEFT_TRY(run_list_room(r, items->n * 4));
    for (size_t i = 0; i < items->n; i++) {
        if (i == 0 || !jv_equal(r, &at[i].key[0], &at[i - 1].key[0])) {
            jlist *group = jlist_new(r, JSEQ_TUPLE, 2);
            jval key;
            members = jlist_new(r, JSEQ_LIST, 0);
            WEFT_TRY(access_path(r, &at[i].v, &c->arg[0], &key));
            jlist_push(r, group, key);
            jlist_push(r, group, jv_list(members));
            jlist_push(r, groups, jv_list(group));
        }
        jlist_push(r, members, at[i].v);
    }
    *out = jv_list(groups);
    return WEFT_OK;
}

weft_status filter_extreme(jinja_run *r, const jcall *c, jval *out)
{
    ordering o = {r, &c->arg[1], !arg_truth(c, 0), c->how == JE_GT, 1};
    const jlist *items;
    WEFT_TRY(access_items(r, &c->self, &items));
    jval best_key = {.kind = JV_ABSENT}, key;
    *out = jv_undefined(JWHY_TEXT, STR("there is no item"));
    for (size_t i = 0; i < items->n; i++) {
        bool keep = i > 0;
        WEFT_TRY(run_step(r, 1));
        WEFT_TRY(key_of(&o, &items->at[i], &key));
        keyed a = {&best_key, jv_none()}, b = {&key, jv_none()};
        if (i > 0)
            WEFT_TRY(in_order(&o, &a, &b, &keep));
        if (!keep) {
            *out = items->at[i];
            best_key = key;
        }
    }
    return WEFT_OK;
}

weft_status filter_unique(jinja_run *r, const jcall *c, jval *out)
{
    ordering o = {r, &c->arg[1], !arg_truth(c, 0), false, 1};
    const jlist *items;
    jdict *seen = jdict_new(r);
    jlist *l = jlist_new(r, JSEQ_GENERATOR, 0);
    WEFT_TRY(access_items(r, &c->self, &items));
    WEFT_TRY(run_list_room(r, items->n * 6));
    for (size_t i = 0; i < items->n; i++) {
        jval key;
        WEFT_TRY(run_step(r, 1));
        WEFT_TRY(key_of(&o, &items->at[i], &key));
        if (!jv_hashable(r, &key))
            return run_fail(r, "unique: %s items cannot be told apart", jv_type(&key));
        if (!jdict_get(r, seen, &key)) {
            jdict_set(r, seen, key, jv_none());
            jlist_push(r, l, items->at[i]);
        }
    }
    *out = jv_list(l);
    return WEFT_OK;
}

/* ---- cutting into pieces ---- */

static weft_status pieces_begin(jinja_run *r, const jcall *c, const jlist **items, int64_t *n)
{
    WEFT_TRY(access_items(r, &c->self, items));
    WEFT_TRY(arg_int(r, c, 0, n));
    if (*n < 1 || *n > 100000)
        return run_fail(r, "the number of pieces or items is from 1 to 100000");
    return run_list_room(r, ((*items)->n + (size_t)*n) * 3);
}

weft_status filter_batch(jinja_run *r, const jcall *c, jval *out)
{
    const jlist *items;
    int64_t n = 0;
    jlist *rows = jlist_new(r, JSEQ_GENERATOR, 0), *row = NULL;
    WEFT_TRY(pieces_begin(r, c, &items, &n));
    for (size_t i = 0; i < items->n; i++) {
        if (i % (size_t)n == 0) {
            row = jlist_new(r, JSEQ_LIST, 0);
            jlist_push(r, rows, jv_list(row));
        }
        jlist_push(r, row, items->at[i]);
    }
    while (row && jv_is_given(&c->arg[1]) && row->n < (size_t)n)
        jlist_push(r, row, c->arg[1]);
    *out = jv_list(rows);
    return WEFT_OK;
}

weft_status filter_slice(jinja_run *r, const jcall *c, jval *out)
{
    const jlist *items;
    int64_t n = 0;
    jlist *rows = jlist_new(r, JSEQ_GENERATOR, 0);
    WEFT_TRY(pieces_begin(r, c, &items, &n));
    size_t each = items->n / (size_t)n, more = items->n % (size_t)n, at = 0;
    for (size_t k = 0; k < (size_t)n; k++) {
        jlist *row = jlist_new(r, JSEQ_LIST, 0);
        for (size_t i = 0; i < each + (k < more); i++)
            jlist_push(r, row, items->at[at++]);
        if (jv_is_given(&c->arg[1]) && k >= more)
            jlist_push(r, row, c->arg[1]);
        jlist_push(r, rows, jv_list(row));
    }
    *out = jv_list(rows);
    return WEFT_OK;
}
