/* sema_keys.c - keys that no checkpoint has: a misspelt one is absent like any other, so that its default counts and what
 * was to be tested is not (W0415).
 *
 * The tables know the keys of many families, not of all. So a strange key is reported where a known one is spelt nearly
 * alike; and where a checkpoint is at hand, which lacks it, key() is reported in any case. */
#include "dsl/bind.h"

static const char *const known[] = {
#define KEY(name) name,
#define MEANING(name, ...) name,
#include "compiler/meaning.def"
#include "dsl/keys.def"
#undef MEANING
#undef KEY
};

enum { N_KNOWN = sizeof known / sizeof *known, LEN_MIN = 5, DISTANCE_MAX = 2 };

static bool is_listed(str name)
{
    for (size_t i = 0; i < N_KNOWN; i++)
        if (str_eqz(name, known[i]))
            return true;
    return false;
}

/* Itself, or what it ends in: text_config.hidden_act. Tokenizers' keys and general ones are not in the tables. */
static bool is_known(str name)
{
    if (str_starts(name, STR("/")))
        return true;
    for (size_t i = 0; i < name.n; i++)
        if (name.p[i] == '.' && is_listed((str){name.p + i + 1, name.n - i - 1}))
            return true;
    return is_listed(name);
}

/* The known key that was meant, most likely; empty: none is near. */
static str_guess near_key(str name)
{
    str_guess best = {{0}, DISTANCE_MAX + 1};
    for (size_t i = 0; i < N_KNOWN && name.n >= LEN_MIN; i++) {
        int d = str_distance(name, str_of(known[i]), best.distance);
        if (d < best.distance)
            best = (str_guess){str_of(known[i]), d};
    }
    return best;
}

static void warn(sema *s, weft_loc loc, str name, str_guess near)
{
    if (s->bind)
        weft_fail(s->dg, W0415, loc,
                  "neither a family that is known nor %s has a key `" STR_FMT "`, so the default "
                  "counts",
                  bind_path(s->bind), STR_ARG(name));
    else
        weft_fail(s->dg, W0415, loc, "no family that is known has a key `" STR_FMT "`",
                  STR_ARG(name));
    if (!weft_suggest(s->dg, &near) && s->bind)
        suggest_key(s->bind, &name, 1);
}

void keys_check_call(sema *s, weft_loc loc, str name, bool present)
{
    if (present || s->binds || is_known(name))
        return;
    str_guess near = near_key(name);
    if (near.name.n || s->bind)
        warn(s, loc, name, near);
}

void keys_check_param(sema *s, const ast *key)
{
    val name;
    sema_string(s, key, &name);
    if (s->binds || !name.known || is_known(name.text))
        return;
    str_guess near = near_key(name.text);
    if (near.name.n)
        warn(s, key->loc, name.text, near);
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
