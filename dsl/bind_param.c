/* bind_param.c - parameters with a checkpoint at hand: keys, adaptors, defaults, lists per layer. */
#include "dsl/bind_impl.h"

enum { LIST_ITEMS_MAX = 4096 }; /* a longer list (a vocabulary) has a length and nothing else */

val value_to_val(sema *s, const value *v)
{
    int64_t whole;
    switch (value_kind_of(v)) {
    case VALUE_NULL:
        return (val){.kind = VAL_NONE, .known = true};
    case VALUE_BOOL:
        return (val){.kind = VAL_BOOL, .known = true, .truth = cond_bool(s->cp, v->as.b)};
    case VALUE_INT:
        if (!value_int(v, &whole))
            return val_unknown();
        return (val){.kind = VAL_INT, .known = true, .size = poly_int(s->pp, whole)};
    case VALUE_FLOAT:
        return (val){.kind = VAL_FLOAT, .known = true, .number = v->as.f};
    case VALUE_STR:
        return (val){.kind = VAL_STR, .known = true, .text = arena_str(s->a, v->as.s)};
    case VALUE_ARRAY: {
        size_t n = value_count(v);
        val list = {
            .kind = VAL_LIST, .known = true, .n = n > UINT32_MAX ? UINT32_MAX : (uint32_t)n};
        if (n > LIST_ITEMS_MAX)
            return list;
        val *item = ARENA_ARRAY(s->a, val, n);
        for (size_t i = 0; i < n; i++) {
            value one = value_at(v, i);
            item[i] = value_kind_of(&one) == VALUE_ARRAY ? val_unknown() : value_to_val(s, &one);
        }
        list.item = item;
        return list;
    }
    case VALUE_OBJECT:
        break;
    }
    return val_unknown();
}

bool val_to_value(sema *s, val v, value *out)
{
    int64_t whole;
    if (v.kind == VAL_NONE)
        *out = (value){.type = VT_NULL};
    else if (v.kind == VAL_INT && poly_value(v.size, &whole))
        *out = value_of_int(VT_I64, whole);
    else if (v.kind == VAL_FLOAT)
        *out = value_of_float(VT_F64, v.number);
    else if (v.kind == VAL_STR)
        *out = value_of_str(v.text);
    else if (v.kind == VAL_BOOL)
        *out = value_of_bool(sema_known(s, v.truth) == 1);
    else
        return false;
    return true;
}

bool bind_key(binding *b, str name, val *out)
{
    const value *v = checkpoint_key(b->cp, name);
    if (v)
        *out = value_to_val(b->s, v);
    return v != NULL;
}

/* A list of numbers as the vector its type asks for; an integral float as an int. */
static val converted(sema *s, const ast *type, val v)
{
    bool vector = str_eq(type->name, STR("float")) && type->kid[TYPE_DIMS];
    if (v.kind == VAL_FLOAT && v.known && str_eq(type->name, STR("int")) && v.number > -9e15 &&
        v.number < 9e15 && (double)(int64_t)v.number == v.number)
        return (val){.kind = VAL_INT, .known = true, .size = poly_int(s->pp, (int64_t)v.number)};
    if (v.kind != VAL_LIST || !vector || !v.item)
        return v;
    double *data = ARENA_ARRAY(s->a, double, v.n);
    for (uint32_t i = 0; i < v.n; i++) {
        int64_t whole;
        if (v.item[i].kind == VAL_FLOAT)
            data[i] = v.item[i].number;
        else if (v.item[i].kind == VAL_INT && poly_value(v.item[i].size, &whole))
            data[i] = (double)whole;
        else
            return v;
    }
    return (val){.kind = VAL_VEC, .known = true, .size = poly_int(s->pp, v.n), .data = data};
}

/* No setting is infinite, and neither a setting nor an element of one is a NaN. */
static bool param_finite(sema *s, const ast *n, val v, const ast *at, const char *from)
{
    double x = 0;
    int64_t len, i = 0;
    const char *wanted = const_number(v, &x) ? range_refuses(RANGE_FINITE, x) : NULL;
    if (v.kind == VAL_VEC && v.data && poly_value(v.size, &len))
        for (; i < len && !wanted; i++)
            wanted = range_refuses(RANGE_NUMBER, x = v.data[i]);
    if (wanted)
        weft_fail(s->dg, W0414, at->loc, STR_FMT " must be %s, but %s %s%s", STR_ARG(n->name),
                  wanted, from, v.kind == VAL_VEC ? "a list with " : "", number_text(s, x));
    return !wanted;
}

static val typed(sema *s, const ast *n, val v, const ast *at, const char *from)
{
    const ast *type = n->kid[PARAM_TYPE];
    v = converted(s, type, v);
    if (v.kind != VAL_UNKNOWN && sema_fits(s, type, &v))
        return param_finite(s, n, v, at, from) ? v : val_unknown();
    str spelt = {type->loc.src->text.p + type->loc.begin, type->loc.end - type->loc.begin};
    weft_fail(s->dg, W0402, at->loc, STR_FMT " is " STR_FMT ", but %s %s", STR_ARG(n->name),
              STR_ARG(spelt), from, val_shown(s, v));
    return val_unknown();
}

typedef VEC(str) names_tried; /* as the model file writes them */

/* A key as the checkpoint spells it. */
static str full_name(const binding *b, str name)
{
    if (name.n > 0 && name.p[0] == '/')
        return (str){name.p + 1, name.n - 1};
    return arena_printf(b->s->a, STR_FMT STR_FMT, STR_ARG(b->cp->prefix), STR_ARG(name));
}

static void note_tried(binding *b, const names_tried *tried)
{
    strbuf names = {0};
    for (size_t i = 0; i < tried->n; i++) {
        str name = full_name(b, tried->at[i]);
        strbuf_add(&names, "%s" STR_FMT, i ? ", " : "", STR_ARG(name));
    }
    weft_note(b->s->dg, "looked for %s in %s", names.n ? names.p : "no key at all", b->cp->path);
    suggest_key(b, tried->at, tried->n);
    strbuf_free(&names);
}

val bind_adapted(sema *s, const ast *key, val v)
{
    for (uint32_t i = 0; i < key->n_kid && v.kind != VAL_NONE; i++) {
        const val *outer = s->it;
        val it = v;
        s->it = &it;
        v = sema_eval(s, key->kid[i]->kid[MAP_VALUE]);
        s->it = outer;
    }
    return v;
}

/* One key of the binding, adapted; false if the search goes on. */
static bool try_key(binding *b, const ast *n, const ast *key, int64_t layer, names_tried *tried,
                    val *out)
{
    sema *s = b->s;
    val name;
    value item;
    sema_string(s, key, &name);
    if (!name.known)
        return *out = val_unknown(), true;
    str full = full_name(b, name.text);
    VEC_PUSH(tried, name.text);
    const value *v = checkpoint_key(b->cp, name.text);
    if (value_kind_of(v) == VALUE_ARRAY && layer >= 0) {
        if ((uint64_t)layer >= value_count(v)) {
            weft_fail(s->dg, W0412, key->loc,
                      STR_FMT " has %zu elements, but layer %lld is asked for", STR_ARG(full),
                      value_count(v), (long long)layer);
            return *out = val_unknown(), true;
        }
        item = value_at(v, (size_t)layer);
        v = &item;
    }
    if (!v || (value_kind_of(v) == VALUE_NULL && !n->kid[PARAM_TYPE]->flag))
        return false;
    const char *from =
        arena_printf(s->a, STR_FMT " %s", STR_ARG(full), key->n_kid ? "becomes" : "holds").p;
    *out = typed(s, n, bind_adapted(s, key, value_to_val(s, v)), key, from);
    return true;
}

val bind_param(binding *b, const ast *n, int64_t layer)
{
    sema *s = b->s;
    const ast *keys = bind_lines(n->kid[PARAM_BINDINGS], b->from);
    uint32_t n_key = keys ? keys->n_kid : 0;
    names_tried tried = {0};
    val v = {.kind = VAL_NONE, .known = true};
    bool found = false, may_lack = n->kid[PARAM_DEFAULT] || n->kid[PARAM_TYPE]->flag;
    for (uint32_t k = 0; k < n_key; k++)
        if (!found)
            found = try_key(b, n, keys->kid[k], layer, &tried, &v);
        else /* not needed, but named: the file knows the key */
            checkpoint_key(b->cp, bind_text(s, keys->kid[k]));
    for (uint32_t k = 0; k < n_key && !found && may_lack; k++)
        keys_check_param(s, keys->kid[k]);
    if (!found && n->kid[PARAM_DEFAULT]) {
        v = sema_eval(s, n->kid[PARAM_DEFAULT]);
        found = true;
        if (v.kind != VAL_UNKNOWN)
            v = typed(s, n, v, n->kid[PARAM_DEFAULT], "its default is");
    }
    if (!found && !n->kid[PARAM_TYPE]->flag) {
        weft_fail(s->dg, W0401, n->name_loc,
                  STR_FMT ": none of the keys is present and there is no default",
                  STR_ARG(n->name));
        note_tried(b, &tried);
        v = val_unknown();
    }
    VEC_FREE(&tried);
    other_param(b, n, layer, v);
    return v;
}

static void keep_param(binding *b, str name, int64_t layer, val v)
{
    model_param p = {.name = arena_str(b->home, name), .layer = layer};
    if (!val_to_value(b->s, v, &p.v))
        return;
    if (p.v.type == VT_STR)
        p.v.as.s = arena_str(b->home, p.v.as.s);
    VEC_PUSH(&b->settings->params, p);
}

void bind_declared(binding *b, const ast *n, val v)
{
    int64_t trained;
    if (b->s->in_fragment)
        return;
    if (v.kind != VAL_SERIES)
        keep_param(b, n->name, -1, v);
    for (int64_t i = 0; v.kind == VAL_SERIES && i < v.series->n; i++)
        keep_param(b, n->name, i, v.series->at[i]);
    if (!param_is_context(n) || v.kind != VAL_INT || !poly_value(v.size, &trained))
        return;
    if (b->settings->context == 0 && trained > 0)
        b->settings->context = trained;
    if (b->context == 0) /* a session that does not say its context has the trained one */
        b->session_context->v = v;
}

void bind_context_asked(binding *b, const sym *y)
{
    if (b && b->settings && y == b->session_context)
        b->settings->context_asked = true;
}
