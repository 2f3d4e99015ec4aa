/* sema_bind.c - parameters with a checkpoint at hand: keys, adaptors, defaults, lists per layer. */
#include "dsl/sema.h"

enum { LIST_ITEMS_MAX = 4096 }; /* a longer list (a vocabulary) has a length and nothing else */

scope *group_names(const group *g, const poly *index)
{
    int64_t i;
    if (g->layer && index && poly_value(index, &i) && i >= 0 && i < g->n_layer)
        return g->layer[i];
    return g->names;
}

val bind_key(sema *s, key_value kv)
{
    switch (kv.kind) {
    case KEY_NULL:
        return (val){.kind = VAL_NONE, .known = true};
    case KEY_BOOL:
        return (val){.kind = VAL_BOOL, .known = true, .truth = cond_bool(s->cp, kv.truth)};
    case KEY_INT:
        return (val){.kind = VAL_INT, .known = true, .size = poly_int(s->pp, kv.integer)};
    case KEY_FLOAT:
        return (val){.kind = VAL_FLOAT, .known = true, .number = kv.number};
    case KEY_STR:
        return (val){.kind = VAL_STR, .known = true, .text = arena_str(s->a, kv.text)};
    case KEY_LIST: {
        val v = {
            .kind = VAL_LIST, .known = true, .n = kv.n > UINT32_MAX ? UINT32_MAX : (uint32_t)kv.n};
        if (kv.n > LIST_ITEMS_MAX)
            return v;
        val *item = ARENA_ARRAY(s->a, val, kv.n);
        for (size_t i = 0; i < kv.n; i++) {
            key_value one = s->host->item(s->host->ctx, &kv, i);
            item[i] = one.kind == KEY_LIST ? val_unknown() : bind_key(s, one);
        }
        v.item = item;
        return v;
    }
    default:
        return val_unknown();
    }
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

/* The value itself, where it is short enough to be told. */
const char *val_shown(sema *s, val v)
{
    enum { TEXT_MAX = 40 };
    int64_t i;
    if (v.kind == VAL_UNKNOWN)
        return "something else";
    if (v.kind == VAL_INT && poly_value(v.size, &i))
        return arena_printf(s->a, "%lld", (long long)i).p;
    if (v.kind == VAL_FLOAT && v.known)
        return arena_printf(s->a, "%.9g", v.number).p;
    if (v.kind == VAL_BOOL && sema_known(s, v.truth) >= 0)
        return sema_known(s, v.truth) ? "true" : "false";
    if (v.kind == VAL_STR && v.known && v.text.n <= TEXT_MAX)
        return arena_printf(s->a, "\"" STR_FMT "\"", STR_ARG(v.text)).p;
    if (v.kind == VAL_LIST && v.known)
        return arena_printf(s->a, "a list of %u", (unsigned)v.n).p;
    return val_text(s, v);
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

static void note_tried(sema *s, const names_tried *tried)
{
    strbuf b = {0};
    for (size_t i = 0; i < tried->n; i++) {
        str name = tried->at[i];
        bool absolute = name.n > 0 && name.p[0] == '/';
        strbuf_add(&b, "%s" STR_FMT STR_FMT, i ? ", " : "",
                   STR_ARG(absolute ? STR("") : s->host->prefix), (int)name.n - absolute,
                   name.p + absolute);
    }
    weft_note(s->dg, "looked for %s in %s", b.n ? b.p : "no key at all", s->host->file);
    suggest_key(s, tried->at, tried->n);
    strbuf_free(&b);
}

/* One key of the binding, adapted; false if the search goes on. */
static bool try_key(sema *s, const ast *n, const ast *key, int64_t layer, names_tried *tried,
                    val *out)
{
    val name;
    sema_string(s, key, &name);
    if (!name.known)
        return *out = val_unknown(), true;
    bool absolute = name.text.n > 0 && name.text.p[0] == '/';
    str full = absolute ? (str){name.text.p + 1, name.text.n - 1} : name.text;
    VEC_PUSH(tried, name.text);
    key_value kv = s->host->key(s->host->ctx, name.text);
    if (kv.kind == KEY_LIST && layer >= 0) {
        if ((uint64_t)layer >= kv.n) {
            weft_fail(s->dg, W0412, key->loc,
                      STR_FMT STR_FMT " has %zu elements, but layer %lld is asked for",
                      STR_ARG(absolute ? STR("") : s->host->prefix), STR_ARG(full), kv.n,
                      (long long)layer);
            return *out = val_unknown(), true;
        }
        kv = s->host->item(s->host->ctx, &kv, (size_t)layer);
    }
    if (kv.kind == KEY_ABSENT || (kv.kind == KEY_NULL && !n->kid[PARAM_TYPE]->flag))
        return false;
    val v = bind_key(s, kv);
    for (uint32_t i = 0; i < key->n_kid && v.kind != VAL_NONE; i++) {
        const val *outer = s->it;
        val it = v;
        s->it = &it;
        v = sema_eval(s, key->kid[i]->kid[MAP_VALUE]);
        s->it = outer;
    }
    *out = typed(s, n, v, key,
                 arena_printf(s->a, STR_FMT STR_FMT " %s",
                              STR_ARG(absolute ? STR("") : s->host->prefix), STR_ARG(full),
                              key->n_kid ? "becomes" : "holds")
                     .p);
    return true;
}

/* An alternative that was not needed: asked for all the same, so that the host knows that the file names it. */
static void name_key(sema *s, const ast *key)
{
    val name;
    sema_string(s, key, &name);
    if (name.known)
        s->host->key(s->host->ctx, name.text);
}

val bind_param(sema *s, const ast *n, int64_t layer)
{
    const ast *bindings = n->kid[PARAM_BINDINGS];
    names_tried tried = {0};
    val v = {.kind = VAL_NONE, .known = true};
    bool found = false;
    for (uint32_t i = 0; i < bindings->n_kid && !found; i++) {
        const ast *b = bindings->kid[i];
        if (str_eq(b->name, STR("gguf")) != s->host->gguf)
            continue;
        for (uint32_t k = 0; k < b->n_kid; k++)
            if (found)
                name_key(s, b->kid[k]);
            else
                found = try_key(s, n, b->kid[k], layer, &tried, &v);
    }
    for (uint32_t i = 0; i < bindings->n_kid && !found; i++)
        for (uint32_t k = 0; k < bindings->kid[i]->n_kid; k++)
            if (str_eq(bindings->kid[i]->name, STR("gguf")) == s->host->gguf &&
                (n->kid[PARAM_DEFAULT] || n->kid[PARAM_TYPE]->flag))
                keys_check_param(s, bindings->kid[i]->kid[k]);
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
        note_tried(s, &tried);
        v = val_unknown();
    }
    VEC_FREE(&tried);
    other_param(s, n, layer, v);
    return v;
}

key_value bind_value(sema *s, val v)
{
    key_value kv = {.kind = KEY_OTHER};
    if (v.kind == VAL_NONE)
        kv.kind = KEY_NULL;
    else if (v.kind == VAL_INT && poly_value(v.size, &kv.integer))
        kv.kind = KEY_INT;
    else if (v.kind == VAL_FLOAT)
        kv = (key_value){.kind = KEY_FLOAT, .number = v.number};
    else if (v.kind == VAL_STR)
        kv = (key_value){.kind = KEY_STR, .text = v.text};
    else if (v.kind == VAL_BOOL)
        kv = (key_value){.kind = KEY_BOOL, .truth = sema_known(s, v.truth) == 1};
    return kv;
}

static void report(sema *s, str name, int64_t layer, val v)
{
    key_value kv = bind_value(s, v);
    if (kv.kind != KEY_OTHER && s->sink->param)
        s->sink->param(s->sink->ctx, name, layer, &kv);
}

/* What the context that a model was trained for is called in files of either format, with anything before a dot. */
static bool key_is_context(str key)
{
    static const char *const names[] = {
        "context_length", "max_position_embeddings", "n_positions", "n_ctx",
        "max_seq_len",    "max_sequence_length",     "seq_length",
    };
    size_t at = key.n;
    while (at > 0 && key.p[at - 1] != '.' && key.p[at - 1] != '/')
        at--;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_eqz((str){key.p + at, key.n - at}, names[i]))
            return true;
    return false;
}

bool param_is_context(const ast *n)
{
    const ast *bindings = n->kind == AST_PARAM ? n->kid[PARAM_BINDINGS] : NULL;
    for (uint32_t i = 0; bindings && i < bindings->n_kid; i++)
        for (uint32_t k = 0; k < bindings->kid[i]->n_kid; k++)
            if (key_is_context(bindings->kid[i]->kid[k]->name))
                return true;
    return false;
}

void bind_declared(sema *s, const ast *n, val v)
{
    if (!s->sink || s->in_fragment)
        return;
    if (v.kind != VAL_SERIES)
        report(s, n->name, -1, v);
    for (int64_t i = 0; v.kind == VAL_SERIES && i < v.series->n; i++)
        report(s, n->name, i, v.series->at[i]);
    int64_t trained;
    if (!param_is_context(n) || v.kind != VAL_INT || !poly_value(v.size, &trained))
        return;
    if (s->sink->trained)
        s->sink->trained(s->sink->ctx, trained);
    /* a session that does not say its context has the trained one */
    if (s->host->context == 0 && s->session_context)
        s->session_context->v = v;
}
