/* bind_other.c - what the settings and weights of a checkpoint are called in the other format.
 *
 * A line has names for GGUF and for Hugging Face. One set of them bound it; whoever asks gets the other set too,
 * and with it a checkpoint can be written in the other format. Where the other key is adapted on its way in
 * (`"block_count" => it - mtp`), the value to store is the one that comes out right. */
#include "dsl/transform.h"

#include "dsl/bind_impl.h"

#include <math.h>

static const ast *other_lines(const binding *b, const ast *list)
{
    return bind_lines(list, b->from == ORIGIN_GGUF ? ORIGIN_HF : ORIGIN_GGUF);
}

static void keep_key(binding *b, other_key key)
{
    key.key = arena_str(b->home, key.key);
    if (key.v.type == VT_STR)
        key.v.as.s = arena_str(b->home, key.v.as.s);
    VEC_PUSH(&b->others->keys, key);
}

/* `if key("expert_gating_func", 0) == 2`: the key by which this model differs from others of the same name. */
static void keep_condition(binding *b, const ast *e)
{
    const ast *call =
        e && e->kind == AST_BINARY && str_eq(e->name, STR("==")) ? e->kid[BINARY_LEFT] : NULL;
    if (!call || call->kind != AST_CALL || !str_eq(call->kid[CALL_CALLEE]->name, STR("key")) ||
        call->kid[CALL_ARGUMENTS]->n_kid < 1)
        return;
    value want;
    val name = sema_eval(b->s, call->kid[CALL_ARGUMENTS]->kid[0]->kid[ARG_VALUE]);
    if (val_to_value(b->s, sema_eval(b->s, e->kid[BINARY_RIGHT]), &want) && name.kind == VAL_STR &&
        name.known)
        keep_key(b, (other_key){.key = name.text, .layer = -1, .v = want});
}

void other_arch(binding *b, const ast *body)
{
    for (uint32_t i = 0; b->others && i < body->n_kid; i++) {
        const ast *n = body->kid[i];
        if (n->kind == AST_MATCH && origin_of(n->name) != b->from &&
            n->kid[MATCH_NAMES]->n_kid > 0) {
            b->others->arch = arena_str(b->home, n->kid[MATCH_NAMES]->kid[0]->name);
            keep_condition(b, n->kid[MATCH_CONDITION]);
            return;
        }
    }
}

/* ---- settings ---- */

/* What key makes of v, as bind_param would read it; a list where it is no plain value. */
static value adapted(sema *s, const ast *key, value v)
{
    value out = {.type = VT_ARRAY};
    val_to_value(s, bind_adapted(s, key, value_to_val(s, &v)), &out);
    return out;
}

static double number_of(const value *v)
{
    double x;
    return value_float(v, &x) ? x : NAN;
}

static bool same(const value *a, const value *b)
{
    double x = number_of(a), y = number_of(b);
    if (!isnan(x) && !isnan(y))
        return fabs(x - y) <= 1e-12 * fabs(y);
    return a->type == b->type && ((a->type == VT_BOOL && a->as.b == b->as.b) ||
                                  (a->type == VT_STR && str_eq(a->as.s, b->as.s)));
}

static value moved(value v, double x)
{
    return v.type == VT_I64 ? value_of_int(VT_I64, (int64_t)x) : value_of_float(VT_F64, x);
}

/* The value that reads back as want: itself, or off by what is added or multiplied on the way. */
static bool invert(sema *s, const ast *key, value want, value *out)
{
    value got = adapted(s, key, want);
    double x = number_of(&want), y = number_of(&got);
    *out = want;
    if (same(&got, &want))
        return true;
    if (isnan(x) || isnan(y))
        return false;
    *out = moved(want, x + (x - y));
    got = adapted(s, key, *out);
    if (same(&got, &want))
        return true;
    *out = moved(want, y != 0 ? x * (x / y) : x);
    got = adapted(s, key, *out);
    return same(&got, &want);
}

void other_param(binding *b, const ast *n, int64_t layer, val v)
{
    sema *s = b->s;
    value want;
    if (!b->others || v.kind == VAL_NONE || v.kind == VAL_UNKNOWN || !val_to_value(s, v, &want))
        return;
    const ast *keys = other_lines(b, n->kid[PARAM_BINDINGS]);
    weft_diag *outer = s->dg; /* an adaptor that cannot take this value is no mistake of the file */
    s->dg = diag_create();
    bool found = false;
    for (uint32_t k = 0; keys && k < keys->n_kid && !found; k++) {
        other_key key = {.key = bind_text(s, keys->kid[k]), .layer = layer};
        found = key.key.n > 0 && invert(s, keys->kid[k], want, &key.v);
        if (found)
            keep_key(b, key);
    }
    diag_destroy(s->dg);
    s->dg = outer;
    if (s->stopped) { /* by a limit, which has to be reported here, too */
        s->stopped = false;
        sema_step(s, n->loc, 0);
    }
}

/* ---- weights ---- */

/* Whether this name stands for one tensor that is the weight as declared, its pair order aside; or, with `part`, for
 * one that has it among its rows. */
static bool describe(other_view *x, const ast *key, bool part)
{
    const ast *index = x->w->decl->kid[WEIGHT_INDEX];
    *x = (other_view){.b = x->b, .w = x->w, .rows_allowed = part && x->w->bound->stored.rank == 2};
    bool plain = !(index && weight_names_index(key, index));
    for (uint32_t i = 0; plain && i < key->n_kid; i++)
        plain = transform_other(x, key->kid[i]);
    return plain;
}

static void keep_weight(const other_view *x, const gweight *stored, const ast *key, str prefix,
                        bool bias)
{
    binding *b = x->b;
    gweight *w = ARENA_NEW(b->home, gweight);
    other_weight out = x->out;
    const char *tail = x->raw ? (bias ? "_bias" : "") : bias ? ".bias" : ".weight";
    *w = gweight_copy(b->home, stored);
    out.weight = w;
    if (key)
        out.name = arena_printf(b->home, STR_FMT STR_FMT "%s", STR_ARG(prefix),
                                STR_ARG(bind_text(b->s, key)), tail);
    VEC_PUSH(&b->others->weights, out);
}

void other_weights(binding *b, const weight *w)
{
    if (!b->others)
        return;
    other_view x = {.b = b, .w = w};
    const ast *keys = other_lines(b, w->decl->kid[WEIGHT_BINDINGS]), *key = NULL;
    const ast *prefixes = w->group ? other_lines(b, w->group->decl->kid[GROUP_PREFIXES]) : NULL;
    str prefix = prefixes && prefixes->n_kid ? bind_text(b->s, prefixes->kid[0]) : STR("");
    for (int part = 0; part < 2; part++)
        for (uint32_t k = 0; keys && k < keys->n_kid && !key; k++)
            key = describe(&x, keys->kid[k], part) ? keys->kid[k] : NULL;
    if (!key)
        x = (other_view){.b = b, .w = w};
    keep_weight(&x, &w->bound->stored, key, prefix, false);
    if (w->bound->bias.rank > 0)
        keep_weight(&x, &w->bound->bias, key, prefix, true);
}
