/* unread.c - keys that change what a model computes, and that its model file never names (meaning.def). */
#include "compiler/unread.h"

#include <stdlib.h>

/* clang-format off */
static const struct {
    const char *name;
    model_format format;
    const char *harmless, *does;
} meanings[] = {
#define MEANING(name, format, harmless, does) {name, MODEL_##format, harmless, does},
#include "compiler/meaning.def"
#undef MEANING
};

/* The names of activations in config.json, and what computes them. */
static const struct { const char *name; op_code op; const char *form; } activations[] = {
    {"silu",              OP_silu,    ""},
    {"swish",             OP_silu,    ""},
    {"swiglu",            OP_silu,    ""},
    {"gelu",              OP_gelu,    "erf"},
    {"gelu_python",       OP_gelu,    "erf"},
    {"geglu",             OP_gelu,    "erf"},
    {"gelu_new",          OP_gelu,    "tanh"},
    {"gelu_fast",         OP_gelu,    "tanh"},
    {"gelu_accurate",     OP_gelu,    "tanh"},
    {"gelu_pytorch_tanh", OP_gelu,    "tanh"},
    {"gelu_python_tanh",  OP_gelu,    "tanh"},
    {"quick_gelu",        OP_gelu,    "quick"},
    {"relu",              OP_relu,    ""},
    {"relu2",             OP_relu,    ""},
    {"relu_squared",      OP_relu,    ""},
    {"tanh",              OP_tanh,    ""},
    {"sigmoid",           OP_sigmoid, ""},
};
/* clang-format on */

enum {
    LIST_ITEMS_MAX = 4096, /* one for each layer, at most */
    N_MEANING = sizeof meanings / sizeof *meanings,
    N_ACTIVATION = sizeof activations / sizeof *activations
};

typedef struct {
    const checkpoint *cp;
    const graph *g;
} unread;

static bool graph_computes(const graph *g, op_code op, const char *form)
{
    for (size_t i = 0; i < g->nodes.n; i++) {
        const gnode *n = &g->nodes.at[i];
        if (n->op != op)
            continue;
        if (op != OP_gelu || /* its only attribute is the form, which is erf unless it says so */
            (n->attr[0].kind == GATTR_WORD ? str_eqz(n->attr[0].word, form)
                                           : strcmp(form, "erf") == 0))
            return true;
    }
    return false;
}

static bool activation_computed(const unread *u, const value *v)
{
    for (int i = 0; i < N_ACTIVATION && v->type == VT_STR; i++)
        if (str_eqz(v->as.s, activations[i].name) &&
            graph_computes(u->g, activations[i].op, activations[i].form))
            return true;
    return false;
}

static bool values_equal(const value *a, const value *b)
{
    double x, y;
    str s, t;
    if (value_float(a, &x))
        return value_float(b, &y) && x == y;
    return value_str(a, &s) && value_str(b, &t) && str_eq(s, t);
}

static bool has_tensor(const unread *u, str pattern)
{
    for (size_t i = 0; i < model_file_tensor_count(u->cp->file); i++)
        if (str_glob(pattern, model_file_tensor_at(u->cp->file, i)->name))
            return true;
    return false;
}

/* Does this word of the column make the value harmless? */
static bool word_allows(const unread *u, str word, const value *v)
{
    str rest = {word.p + 1, word.n - 1}, text;
    char number[32], *end;
    double x;
    bool truth;
    switch (word.p[0]) {
    case '@':
        return activation_computed(u, v);
    case '=':
        return values_equal(v, model_file_key(u->cp->file, rest));
    case '!':
        return value_bool(model_file_key(u->cp->file, rest), &truth) && !truth;
    case '+':
        return has_tensor(u, rest);
    case '~':
        return !has_tensor(u, rest);
    default:
        break;
    }
    if (value_bool(v, &truth))
        return str_eqz(word, truth ? "true" : "false");
    if (!value_float(v, &x))
        return value_str(v, &text) && str_eq(text, word);
    snprintf(number, sizeof number, STR_FMT, STR_ARG(word));
    return strtod(number, &end) == x && *end == 0;
}

static bool is_harmless(const unread *u, const value *v, const char *words)
{
    value_kind kind = value_kind_of(v);
    int64_t whole;
    if (kind == VALUE_NULL || kind == VALUE_OBJECT || (kind == VALUE_INT && !value_int(v, &whole)))
        return true;
    if (kind == VALUE_STR && (str_eqz(v->as.s, "none") || str_eqz(v->as.s, "default")))
        return true;
    if (kind == VALUE_BOOL && !v->as.b && word_find(words, STR("true")) < 0)
        return true;
    for (const char *p = words; *p;) {
        size_t n = strcspn(p, " ");
        if (word_allows(u, (str){p, n}, v))
            return true;
        p += n + strspn(p + n, " ");
    }
    size_t n = value_count(v); /* every element of a list */
    bool harmless = kind == VALUE_ARRAY && n <= LIST_ITEMS_MAX;
    for (size_t i = 0; harmless && i < n; i++) {
        value item = value_at(v, i);
        harmless = value_kind_of(&item) != VALUE_ARRAY && is_harmless(u, &item, words);
    }
    return harmless;
}

static bool is_read(const checkpoint *cp, str name)
{
    for (size_t i = 0; i < cp->read.n; i++)
        if (str_eq(cp->read.at[i], name))
            return true;
    return false;
}

void warn_unread(weft_diag *dg, const checkpoint *cp, const char *model, const graph *g)
{
    unread u = {cp, g};
    for (size_t i = 0; i < N_MEANING; i++) {
        str name = str_of(meanings[i].name);
        if (meanings[i].format != model_file_format(cp->file) || is_read(cp, name))
            continue;
        if (!is_harmless(&u, model_file_key(cp->file, name), meanings[i].harmless))
            weft_fail(dg, W0410, WEFT_NOWHERE,
                      "%s has " STR_FMT STR_FMT ", which %s; %s never reads it", cp->path,
                      STR_ARG(cp->prefix), STR_ARG(name), meanings[i].does, model);
    }
}
