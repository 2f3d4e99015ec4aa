/* api_plan.c - a session's options: checked, filled in, served by a plan that is there; then the plan from the model's kind. */
#include "runtime/api/api_model.h"

#include "compiler/target.h"
#include "kernels/kernels.h"
#include "runtime/api/api_impl.h"
#include "runtime/base/threads.h"
#include "runtime/kv/policy.h"

enum { BATCH_DEFAULT = 512 };

/* ---- what options mean ---- */

static dtype kv_type(const weft_session_options *o)
{
    static const dtype types[] = {
        [WEFT_KV_F32] = DT_F32, [WEFT_KV_F16] = DT_F16, [WEFT_KV_BF16] = DT_BF16};
    if (o->kv == WEFT_KV_AUTO)
        return o->exec == WEFT_EXEC_REF ? DT_F32 : DT_F16;
    return types[o->kv];
}

static bool policy_given(const weft_session_options *o)
{
    return o->kv_policy && strcmp(o->kv_policy, "auto") != 0;
}

weft_status api_kv(weft_diag *dg, const weft_session_options *o, dtype *out_kv, kpolicy *out_tiers)
{
    *out_kv = kv_type(o);
    *out_tiers = (kpolicy){0};
    if (!policy_given(o))
        return WEFT_OK;
    WEFT_TRY(policy_parse(dg, "KV policy", str_of(o->kv_policy), out_tiers));
    const kpolicy_tier *first = &out_tiers->tier[0];
    *out_kv = kform_dtype(first->key);
    if (out_tiers->n_tier == 1 && first->key == first->value)
        *out_tiers = (kpolicy){0}; /* kv says it all */
    return WEFT_OK;
}

enum { PREFIXES_FEW = 4, PREFIXES_MANY = 64, PREFIXES_MAX = 1 << 16 };

bool api_in_range(const weft_session_options *o)
{
    return o->context >= 1 && o->context <= INT32_MAX && o->batch >= 0 && o->batch <= INT32_MAX &&
           o->sequences >= 0 && o->wants >= 0 && o->threads >= -1 && o->threads <= 4096 &&
           o->page_tokens >= 0 && o->lora_slots >= 0 && o->lora_rank >= 0 && o->pages >= 0 &&
           o->prefixes >= -1 && o->device_layers >= -1 && o->prefixes <= PREFIXES_MAX &&
           (unsigned)o->exec <= WEFT_EXEC_JIT && (unsigned)o->kv <= WEFT_KV_BF16;
}

int64_t api_sequences(const weft_session_options *o)
{
    return o->sequences ? o->sequences : 1;
}

int64_t api_prefixes(const weft_session_options *o)
{
    int64_t n = api_sequences(o);
    if (o->prefixes != 0 || n == 1)
        return o->prefixes > 0 ? o->prefixes : 0;
    return n < PREFIXES_FEW ? PREFIXES_FEW : n < PREFIXES_MANY ? n : PREFIXES_MANY;
}

int64_t api_held(const api_wanted *w)
{
    return w->held && w->held < w->how.context ? w->held : w->how.context;
}

int64_t api_rows_of_call(const api_wanted *w)
{
    return target_rows(w->how.batch ? w->how.batch : BATCH_DEFAULT, api_held(w),
                       api_sequences(&w->how));
}

session_options api_run_options(const api_wanted *w)
{
    const weft_session_options *o = &w->how;
    return (session_options){.n_ctx = api_held(w),
                             .n_seq = api_sequences(o),
                             .page_tok = o->page_tokens,
                             .n_page = o->pages,
                             .n_prefix = api_prefixes(o),
                             .threads = o->threads ? (int)o->threads : 1,
                             .bytes_max = (size_t)o->max_bytes,
                             .cache_dir = o->cache_dir,
                             .cache_bytes_max = o->cache_bytes,
                             .use_cache = !o->no_weight_cache,
                             .cancel = o->cancel ? &o->cancel->flag : NULL,
                             .progress = {o->progress, o->progress_ctx},
                             .compiling = o->compiling};
}

/* ---- plans that are there ---- */

bool api_output_is(const plan_output *o, const char *name)
{
    size_t n = strlen(o->name);
    char index[16];
    snprintf(index, sizeof index, ".%d", (int)o->index);
    return strncmp(name, o->name, n) == 0 &&
           (!name[n] || (o->index >= 0 && strcmp(name + n, index) == 0));
}

static bool plan_has_output(const plan *p, const char *name)
{
    for (int32_t i = 0; i < p->n_output; i++)
        if (api_output_is(&p->output[i], name))
            return true;
    return false;
}

weft_status api_check_exact(weft_diag *dg, const weft_session_options *o, const char *level)
{
    for (kvariant v = 0; v < VARIANT_COUNT && o->exact; v++)
        if (kvariant_rounds(v) && strcmp(kvariant_name(v), level) == 0)
            return weft_fail(dg, W1617, WEFT_NOWHERE,
                             "exact is asked for, and kernels of %s round activations to bf16",
                             level);
    return WEFT_OK;
}

weft_status api_plan_serves(weft_diag *dg, const plan *p, const char *name, const api_wanted *w)
{
    const weft_session_options *o = &w->how;
    for (int i = 0; i < o->n_output; i++)
        if (!plan_has_output(p, o->outputs[i]))
            return weft_fail(dg, W0201, WEFT_NOWHERE, "%s has no output '%s'", name, o->outputs[i]);
    if (p->n_ctx > 0 && o->context > p->n_ctx)
        return weft_fail(dg, W1406, WEFT_NOWHERE,
                         "%s is for sequences of %lld tokens, %lld were asked for", name,
                         (long long)p->n_ctx, (long long)o->context);
    if (o->batch && api_rows_of_call(w) > p->n_tok_max)
        return weft_fail(dg, W1406, WEFT_NOWHERE,
                         "%s takes %lld rows in a call, %lld were asked for", name,
                         (long long)p->n_tok_max, (long long)o->batch);
    return api_check_exact(dg, o, p->level);
}

static weft_status serves_kv(weft_diag *dg, const plan *p, const char *name,
                             const weft_session_options *o)
{
    dtype kv;
    kpolicy tiers;
    char has[KPOLICY_TEXT_MAX], asked[KPOLICY_TEXT_MAX];
    if (o->kv == WEFT_KV_AUTO && !policy_given(o))
        return WEFT_OK;
    WEFT_TRY(api_kv(dg, o, &kv, &tiers));
    tiers = plan_tiers(&tiers, kv);
    kpolicy own = plan_tiers(&p->tiers, p->kv);
    kpolicy_text(&own, has);
    kpolicy_text(&tiers, asked);
    if (strcmp(has, asked) == 0)
        return WEFT_OK;
    return weft_fail(dg, W1406, WEFT_NOWHERE, "%s stores keys and values as %s, not as %s", name,
                     has, asked);
}

weft_status api_plan_serves_kind(weft_diag *dg, const plan *p, const char *name,
                                 const api_wanted *w)
{
    const weft_session_options *o = &w->how;
    const struct {
        const char *what;
        int64_t asked, most;
    } counts[] = {{"sequences", o->sequences, p->n_seq_max},
                  {"rows of a call with outputs", o->wants, p->n_out_max},
                  {"slots for adapters", o->lora_slots, p->lora_slots},
                  {"rank of adapters", o->lora_slots ? o->lora_rank : 0, p->lora_rank}};
    const struct {
        const char *what;
        bool asked;
    } others[] = {{"a plan file", o->plan != NULL},
                  {"a device", o->device && strcmp(o->device, "cpu") && strcmp(o->device, "auto")},
                  {"layers of a device", o->device_layers > 0},
                  {"the reference executor", o->exec == WEFT_EXEC_REF},
                  {"deterministic arithmetic", o->deterministic && !p->deterministic},
                  {"rounding to bf16", o->round_bf16},
                  {"passes to leave out", w->n_skip > 0},
                  {"watching", w->watched}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].asked > counts[i].most)
            return weft_fail(dg, W1406, WEFT_NOWHERE, "%s was made for %s up to %lld, not %lld",
                             name, counts[i].what, (long long)counts[i].most,
                             (long long)counts[i].asked);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].asked)
            return weft_fail(dg, W1406, WEFT_NOWHERE, "%s was made without %s", name,
                             others[i].what);
    return serves_kv(dg, p, name, o);
}

/* ---- opening ---- */

weft_status api_plan_open(weft_diag *dg, const weft_model *m, const api_wanted *wanted,
                          api_plan *out)
{
    api_wanted w = *wanted;
    weft_session_options *o = &w.how;
    *out = (api_plan){.a = arena_create()};
    if (o->threads == -1)
        o->threads = threads_default();
    if (o->context == 0 && (o->context = m->context) == 0)
        return weft_fail(dg, W1406, WEFT_NOWHERE,
                         "the model file names no context: a session has to");
    if ((unsigned)o->exec > WEFT_EXEC_JIT || (unsigned)o->kv > WEFT_KV_BF16)
        return weft_fail(dg, W1406, WEFT_NOWHERE, "no executor %d, or no storage %d for state",
                         (int)o->exec, (int)o->kv);
    if (!api_in_range(o))
        return weft_fail(dg, W1406, WEFT_NOWHERE,
                         "a session of %lld tokens, %lld sequences, %lld rows a call and %lld "
                         "threads is out of range",
                         (long long)o->context, (long long)o->sequences, (long long)o->batch,
                         (long long)o->threads);
    if (o->exact && o->round_bf16)
        return weft_fail(dg, W1617, WEFT_NOWHERE, "exact and round_bf16 are both asked for");
    out->run = api_run_options(&w);
    return m->kind->plan(dg, m, &w, out);
}

void api_plan_close(api_plan *p)
{
    if (p->keep)
        p->keep_close(p->keep);
    if (p->a)
        arena_destroy(p->a);
    device_close(p->dev);
    *p = (api_plan){0};
}
