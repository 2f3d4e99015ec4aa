/* sema_other.c - what the settings and weights of a checkpoint are called in the other format.
 *
 * A line has names for GGUF and for Hugging Face. One set of them bound it; a sink that asks gets the other set too,
 * and with it a checkpoint can be written in the other format. Where the other key is adapted on its way in
 * (`"block_count" => it - mtp`), the value to store is the one that comes out right. */
#include "dsl/sema.h"

#include "runtime/base/intmath.h"

#include <math.h>

static const ast *other_binding(const sema *s, const ast *list)
{
    for (uint32_t i = 0; list && i < list->n_kid; i++)
        if (str_eq(list->kid[i]->name, STR("gguf")) != s->host->gguf)
            return list->kid[i];
    return NULL;
}

static str text_of(sema *s, const ast *n)
{
    val v;
    sema_string(s, n, &v);
    return v.known ? v.text : STR("");
}

/* `if key("expert_gating_func", 0) == 2`: the key that tells this model from others of the same name. */
static void report_condition(sema *s, const ast *e)
{
    const ast *call =
        e && e->kind == AST_BINARY && str_eq(e->name, STR("==")) ? e->kid[BINARY_LEFT] : NULL;
    if (!s->sink->other_key || !call || call->kind != AST_CALL ||
        !str_eq(call->kid[CALL_CALLEE]->name, STR("key")) || call->kid[CALL_ARGUMENTS]->n_kid < 1)
        return;
    val name = sema_eval(s, call->kid[CALL_ARGUMENTS]->kid[0]->kid[ARG_VALUE]);
    key_value want = bind_value(s, sema_eval(s, e->kid[BINARY_RIGHT]));
    if (name.kind == VAL_STR && name.known && want.kind != KEY_OTHER)
        s->sink->other_key(s->sink->ctx,
                           &(dsl_other_key){.key = name.text, .layer = -1, .value = want});
}

void other_arch(sema *s, const ast *body)
{
    if (!s->sink->other_arch)
        return;
    for (uint32_t i = 0; i < body->n_kid; i++) {
        const ast *n = body->kid[i];
        if (n->kind == AST_MATCH && str_eq(n->name, STR("gguf")) != s->host->gguf &&
            n->kid[MATCH_NAMES]->n_kid > 0) {
            s->sink->other_arch(s->sink->ctx, n->kid[MATCH_NAMES]->kid[0]->name);
            report_condition(s, n->kid[MATCH_CONDITION]);
            return;
        }
    }
}

/* ---- settings ---- */

/* What key makes of kv, as bind_param would read it. */
static key_value adapted(sema *s, const ast *key, key_value kv)
{
    val v = bind_key(s, kv);
    for (uint32_t i = 0; i < key->n_kid && v.kind != VAL_NONE; i++) {
        const val *outer = s->it;
        val it = v;
        s->it = &it;
        v = sema_eval(s, key->kid[i]->kid[MAP_VALUE]);
        s->it = outer;
    }
    return bind_value(s, v);
}

static double number_of(const key_value *kv)
{
    return kv->kind == KEY_INT ? (double)kv->integer : kv->kind == KEY_FLOAT ? kv->number : NAN;
}

static bool same(const key_value *a, const key_value *b)
{
    double x = number_of(a), y = number_of(b);
    if (!isnan(x) && !isnan(y))
        return fabs(x - y) <= 1e-12 * fabs(y);
    return a->kind == b->kind && ((a->kind == KEY_BOOL && a->truth == b->truth) ||
                                  (a->kind == KEY_STR && str_eq(a->text, b->text)));
}

static key_value moved(key_value kv, double x)
{
    if (kv.kind == KEY_INT)
        kv.integer = (int64_t)x;
    else
        kv.number = x;
    return kv;
}

/* The value that reads back as want: itself, or off by what is added or multiplied on the way. */
static bool invert(sema *s, const ast *key, key_value want, key_value *out)
{
    key_value got = adapted(s, key, want);
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

void other_param(sema *s, const ast *n, int64_t layer, val v)
{
    if (!s->sink || !s->sink->other_key || v.kind == VAL_NONE || v.kind == VAL_UNKNOWN)
        return;
    const ast *b = other_binding(s, n->kid[PARAM_BINDINGS]);
    key_value want = bind_value(s, v);
    weft_diag *told = s->dg; /* an adaptor that cannot take this value is no mistake of the file */
    s->dg = diag_create();
    bool found = false;
    for (uint32_t k = 0; b && want.kind != KEY_OTHER && k < b->n_kid && !found; k++) {
        dsl_other_key key = {.key = text_of(s, b->kid[k]), .layer = layer};
        found = key.key.n > 0 && invert(s, b->kid[k], want, &key.value);
        if (found)
            s->sink->other_key(s->sink->ctx, &key);
    }
    diag_destroy(s->dg);
    s->dg = told;
    if (s->stopped) { /* to be told again: a limit */
        s->stopped = false;
        sema_step(s, n->loc, 0);
    }
}

/* ---- weights ---- */

/* Whether this name stands for one tensor that is the weight as declared, its pair order aside; or, with `part`, for
 * one that has it among its rows. */
static bool is_plain(const weight *w, const ast *key, bool part)
{
    const ast *index = w->decl->kid[WEIGHT_INDEX];
    bool plain = !(index && weight_names_index(key, index)), paired = false;
    part = part && w->bound->stored.rank == 2;
    for (uint32_t i = 0; plain && i < key->n_kid; i++) {
        const transform_row *row =
            key->kid[i]->kind == AST_TRANSFORM ? transform_find(key->kid[i]->name) : NULL;
        bool rows = row && row->code == TRANSFORM_rows && part && !paired &&
                    key->kid[i]->kid[TRANSFORM_ARGUMENTS]->n_kid == 2;
        part = part && !rows; /* once */
        paired = paired || (row && row->code == TRANSFORM_pairs);
        plain = rows || (row && (row->code == TRANSFORM_pairs || row->code == TRANSFORM_raw));
    }
    return plain;
}

static int64_t int_of(sema *s, const ast *args, uint32_t i, int64_t absent)
{
    int64_t n;
    const poly *p =
        i < args->n_kid ? sema_int(s, args->kid[i]->kid[ARG_VALUE], "an argument") : NULL;
    return p && poly_value(p, &n) ? n : absent;
}

static void report_weight(sema *s, const dsl_weight *stored, const ast *key, str prefix, bool bias)
{
    dsl_other_weight out = {.weight = stored};
    const char *tail = bias ? ".bias" : ".weight";
    for (uint32_t i = 0; key && i < key->n_kid; i++) {
        const ast *args = key->kid[i]->kid[TRANSFORM_ARGUMENTS];
        transform_code code = transform_find(key->kid[i]->name)->code;
        if (code == TRANSFORM_raw) {
            tail = bias ? "_bias" : "";
            continue;
        }
        if (code == TRANSFORM_rows) {
            out.first = int_of(s, args, 0, 0);
            if (!i64_sub(int_of(s, args, 1, 0), out.first, &out.rows))
                out.rows = 0;
            continue;
        }
        out.pairs = bind_pairs(s, key->kid[i]);
        out.run = int_of(s, args, 1, 0);
        out.turned = int_of(s, args, 2, out.run);
    }
    if (key)
        out.name = arena_printf(s->a, STR_FMT STR_FMT "%s", STR_ARG(prefix),
                                STR_ARG(text_of(s, key)), tail);
    s->sink->other_weight(s->sink->ctx, &out);
}

void other_weight(sema *s, const weight *w)
{
    if (!s->sink || !s->sink->other_weight)
        return;
    const ast *b = other_binding(s, w->decl->kid[WEIGHT_BINDINGS]), *key = NULL;
    const ast *prefixes = w->group ? other_binding(s, w->group->decl->kid[GROUP_PREFIXES]) : NULL;
    str prefix = prefixes && prefixes->n_kid ? text_of(s, prefixes->kid[0]) : STR("");
    for (int part = 0; part < 2; part++)
        for (uint32_t k = 0; b && k < b->n_kid && !key; k++)
            key = is_plain(w, b->kid[k], part) ? b->kid[k] : NULL;
    report_weight(s, &w->bound->stored, key, prefix, false);
    if (w->bound->bias.rank > 0)
        report_weight(s, &w->bound->bias, key, prefix, true);
}
