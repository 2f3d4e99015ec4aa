/* lora_flags.c - --lora PATH[=SCALE], --lora-slots, --lora-rank. */
#include "runtime/cli/lora_flags.h"

#include "runtime/base/mem.h"
#include "runtime/base/vec.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#define RANDOM "random:"

/* ---- reading the flags ---- */

weft_status lora_flag_read(weft_diag *dg, arena *a, const char *text, const char **out_path,
                           double *out_scale)
{
    const char *at = strrchr(text, '=');
    char *end = NULL;
    *out_scale = 1;
    *out_path = text;
    if (!at || access(text, F_OK) == 0) /* a path may have a = in it */
        return WEFT_OK;
    *out_scale = strtod(at + 1, &end);
    if (at == text || end == at + 1 || *end || !isfinite(*out_scale))
        return weft_fail(
            dg, W1903, WEFT_NOWHERE,
            "--lora takes PATH or PATH=SCALE, and '%s' has no number behind the =", text);
    *out_path = arena_str(a, (str){text, (size_t)(at - text)}).p;
    return WEFT_OK;
}

/* random:RANK or random:RANK*COUNT */
static weft_status read_random(weft_diag *dg, lora *l, const char *text, int64_t *out_n)
{
    char *end;
    long rank = strtol(text, &end, 10), n = 1;
    if (*end == '*')
        n = strtol(end + 1, &end, 10);
    if (*end || rank < 1 || rank > LORA_RANK_MAX || n < 1 || n > LORA_ADAPTERS_MAX)
        return weft_fail(dg, W1903, WEFT_NOWHERE,
                         "--lora: " RANDOM
                         "RANK*COUNT has a rank of 1 to %d and a count of 1 to %d",
                         LORA_RANK_MAX, LORA_ADAPTERS_MAX);
    l->random_rank = rank > l->random_rank ? rank : l->random_rank;
    *out_n = n;
    return WEFT_OK;
}

static weft_status open_one(weft_diag *dg, const weft_model *m, lora *l, const char *text)
{
    double scale;
    int64_t n = 1;
    const char *path;
    WEFT_TRY(lora_flag_read(dg, l->a, text, &path, &scale));
    bool made = strncmp(path, RANDOM, strlen(RANDOM)) == 0;
    weft_adapter *one = NULL;
    if (made)
        WEFT_TRY(read_random(dg, l, path + strlen(RANDOM), &n));
    if (l->n + (size_t)n > LORA_ADAPTERS_MAX)
        return weft_fail(dg, W1903, WEFT_NOWHERE, "--lora: more than %d adapters",
                         LORA_ADAPTERS_MAX);
    if (!made)
        WEFT_TRY(weft_adapter_open(dg, m, path, &one));
    int64_t rank = made ? l->random_rank : weft_adapter_rank(one);
    l->rank = rank > l->rank ? rank : l->rank;
    for (; n > 0; n--) {
        l->adapter[l->n] = one;
        l->scale[l->n++] = (float)scale;
    }
    return WEFT_OK;
}

weft_status lora_open(weft_diag *dg, const weft_model *m, const model_flags *f, lora *out)
{
    *out = (lora){.f = f, .a = arena_create()};
    out->adapter = ARENA_ARRAY(out->a, weft_adapter *, LORA_ADAPTERS_MAX);
    out->scale = ARENA_ARRAY(out->a, float, LORA_ADAPTERS_MAX);
    for (size_t i = 0; i < f->lora.n; i++)
        WEFT_TRY(open_one(dg, m, out, f->lora.at[i]));
    return WEFT_OK;
}

void lora_close(lora *l)
{
    if (!l->a)
        return;
    for (size_t i = 0; i < l->n; i++)
        weft_adapter_close(l->adapter[i]);
    arena_destroy(l->a);
    *l = (lora){0};
}

void lora_want(const lora *l, weft_session_options *how)
{
    if (how->lora_slots < (int64_t)l->n)
        how->lora_slots = (int64_t)l->n;
    if (how->lora_rank == 0)
        how->lora_rank = l->rank;
}

/* ---- random numbers ---- */

static bool is_layers(const plan_site *s)
{
    return strchr(s->name, '[') && (s->kind == LORA_LINEAR || s->kind == LORA_EXPERTS);
}

/* An adapter of random numbers on the weights of layers, small enough that a model stays one. All sites share the numbers,
 * which takes nothing from what is measured: slots have copies. */
static weft_status load_random(weft_diag *dg, const lora *l, const plan *p, session *run,
                               int32_t slot)
{
    VEC(adapter_part) parts = {0};
    int64_t most = 0;
    for (int32_t i = 0; i < p->n_site; i++) {
        const plan_site *at = &p->site[i];
        int64_t out = at->first + at->out, wide = out > at->in ? out : at->in;
        most = wide > most ? wide : most;
        for (int64_t part = 0; part < at->parts && is_layers(at); part++)
            VEC_PUSH(&parts, ((adapter_part){.weight = at->name,
                                             .index = at->parts > 1 ? (int32_t)part : -1,
                                             .rank = l->random_rank,
                                             .in = at->in,
                                             .out = out,
                                             .scale = 1}));
    }
    size_t n = mem_product((size_t)most, (size_t)l->random_rank);
    float *numbers = mem_alloc(mem_product(n, sizeof *numbers));
    uint32_t x = 12345u + (uint32_t)slot;
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        numbers[i] = ((float)(x >> 8) / 16777216.0f - 0.5f) / 64;
    }
    for (size_t i = 0; i < parts.n; i++)
        parts.at[i].a = parts.at[i].b = numbers;
    adapter_source src = {.name = "random", .hash = x, .n_part = parts.n, .part = parts.at};
    weft_status st = session_lora_load(dg, run, slot, &src);
    mem_free(numbers);
    VEC_FREE(&parts);
    return st;
}

/* ---- into a session ---- */

static weft_status attach(weft_diag *dg, const lora *l, session *run, int64_t seq, lora_who who)
{
    adapter_use mix[LORA_ADAPTERS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++)
        if (who == LORA_MIX || (size_t)seq % l->n == i)
            mix[n++] = (adapter_use){.slot = (int32_t)i + 1, .scale = l->scale[i]};
    return session_lora_attach(dg, run, seq, mix, n);
}

weft_status lora_load_run(weft_diag *dg, const lora *l, const plan *p, session *run, lora_who who)
{
    for (size_t i = 0; i < l->n; i++) {
        int32_t slot = (int32_t)i + 1;
        WEFT_TRY(l->adapter[i] ? session_lora_load(dg, run, slot, &l->adapter[i]->from)
                               : load_random(dg, l, p, run, slot));
    }
    int64_t n_seq = session_most(run).sequences;
    for (int64_t seq = 0; seq < n_seq && l->n > 0 && who != LORA_SLOTS; seq++)
        WEFT_TRY(attach(dg, l, run, seq, who));
    return WEFT_OK;
}

weft_status lora_load(weft_diag *dg, lora *l, weft_session *s, lora_who who)
{
    return lora_load_run(dg, l, s->plan.p, s->run, who);
}

int64_t lora_reads(const lora *l, const plan *p, int64_t n_seq, lora_who who)
{
    int64_t floats = 0, used = who == LORA_EACH && n_seq < (int64_t)l->n ? n_seq : (int64_t)l->n;
    for (int32_t i = 0; i < p->n_site; i++)
        if (is_layers(&p->site[i]) && p->site[i].kind == LORA_LINEAR)
            floats += l->rank * (p->site[i].in + p->site[i].out);
    return used * floats * (int64_t)sizeof(float);
}
