/* unread.c - keys that change what a model computes, and that its model file never names (meaning.def). */
#include "compiler/checkpoint.h"

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
    checkpoint *cp;
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

static bool activation_computed(const unread *u, const key_value *kv)
{
    for (int i = 0; i < N_ACTIVATION && kv->kind == KEY_STR; i++)
        if (str_eqz(kv->text, activations[i].name) &&
            graph_computes(u->g, activations[i].op, activations[i].form))
            return true;
    return false;
}

static bool number_of(const key_value *kv, double *out)
{
    *out = kv->kind == KEY_INT ? (double)kv->integer : kv->number;
    return kv->kind == KEY_INT || kv->kind == KEY_FLOAT;
}

static bool values_equal(const key_value *a, const key_value *b)
{
    double x, y;
    if (number_of(a, &x))
        return number_of(b, &y) && x == y;
    return a->kind == KEY_STR && b->kind == KEY_STR && str_eq(a->text, b->text);
}

static bool has_tensor(const unread *u, str pattern)
{
    for (size_t i = 0; i < model_file_tensor_count(u->cp->file); i++)
        if (str_glob(pattern, model_file_tensor_at(u->cp->file, i)->name))
            return true;
    return false;
}

static key_value key_named(const unread *u, str name)
{
    return checkpoint_value(model_file_key(u->cp->file, name));
}

/* Does this word of the column make the value harmless? */
static bool word_allows(const unread *u, str word, const key_value *kv)
{
    str rest = {word.p + 1, word.n - 1};
    char number[32];
    double x;
    key_value other;
    switch (word.p[0]) {
    case '@':
        return activation_computed(u, kv);
    case '=':
        other = key_named(u, rest);
        return values_equal(kv, &other);
    case '!':
        other = key_named(u, rest);
        return other.kind == KEY_BOOL && !other.truth;
    case '+':
        return has_tensor(u, rest);
    case '~':
        return !has_tensor(u, rest);
    default:
        break;
    }
    if (kv->kind == KEY_BOOL)
        return str_eqz(word, kv->truth ? "true" : "false");
    if (!number_of(kv, &x))
        return kv->kind == KEY_STR && str_eq(kv->text, word);
    snprintf(number, sizeof number, STR_FMT, STR_ARG(word));
    char *end;
    return strtod(number, &end) == x && *end == 0;
}

static bool is_harmless(const unread *u, const key_value *kv, const char *words)
{
    if (kv->kind == KEY_ABSENT || kv->kind == KEY_NULL || kv->kind == KEY_OTHER)
        return true;
    if (kv->kind == KEY_STR && (str_eqz(kv->text, "none") || str_eqz(kv->text, "default")))
        return true;
    if (kv->kind == KEY_BOOL && !kv->truth && !word_in(words, STR("true")))
        return true;
    for (const char *p = words; *p;) {
        size_t n = strcspn(p, " ");
        if (word_allows(u, (str){p, n}, kv))
            return true;
        p += n + strspn(p + n, " ");
    }
    bool harmless = kv->kind == KEY_LIST && kv->n <= LIST_ITEMS_MAX; /* every element of it */
    for (size_t i = 0; harmless && i < kv->n; i++) {
        key_value item = u->cp->host.item(u->cp, kv, i);
        harmless = item.kind != KEY_LIST && is_harmless(u, &item, words);
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

void checkpoint_warn_unread(checkpoint *cp, const char *model, const graph *g)
{
    unread u = {cp, g};
    for (size_t i = 0; i < N_MEANING; i++) {
        str name = str_of(meanings[i].name);
        if (meanings[i].format != model_file_format(cp->file) || is_read(cp, name))
            continue;
        key_value kv = key_named(&u, name);
        if (!is_harmless(&u, &kv, meanings[i].harmless))
            weft_fail(cp->dg, W0410, WEFT_NOWHERE,
                      "%s has " STR_FMT STR_FMT ", which %s; %s never reads it", cp->host.file,
                      STR_ARG(cp->host.prefix), STR_ARG(name), meanings[i].does, model);
    }
}
