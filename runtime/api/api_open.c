/* api_open.c - a file into a model, a model into a plan. */
#include "runtime/api/api_open.h"

#include "compiler/plan_file.h"
#include "runtime/api/api_impl.h"
#include "runtime/kv/policy.h"
#include "runtime/base/mem.h"
#include "runtime/base/threads.h"
#include "runtime/formats/random_model.h"

enum { BATCH_DEFAULT = 512, LORA_RANK_DEFAULT = 16 };

/* ---- models ---- */

static weft_status open_file(weft_diag *dg, const api_source *from, weft_model *m)
{
    if (from->path)
        return model_file_open(dg, from->path, &from->file, &m->file);
    if (from->random) {
        WEFT_TRY(random_model_create(dg, from->random, from->fillers, &m->made));
        return model_file_open_memory(dg, random_model_data(m->made), random_model_bytes(m->made),
                                      from->random, &m->file);
    }
    if (from->data)
        return model_file_open_memory(dg, from->data, from->bytes, from->name, &m->file);
    return model_file_open_fd(dg, from->fd, from->name, &from->file, &m->file);
}

weft_status api_model_open(weft_diag *dg, const api_source *from, weft_model **out_model)
{
    weft_model *m = mem_alloc(sizeof *m);
    *m = (weft_model){0};
    weft_status st = open_file(dg, from, m);
    if (st == WEFT_OK)
        st = model_bind(dg, m->file, &from->bind, &m->bound);
    if (st == WEFT_OK) {
        m->context = from->bind.context ? from->bind.context : weft_model_context(m);
        *out_model = m;
    } else {
        weft_model_close(m);
    }
    return st;
}

void weft_model_close(weft_model *m)
{
    if (!m)
        return;
    bound_model_destroy(m->bound);
    model_file_close(m->file);
    random_model_destroy(m->made);
    mem_free(m);
}

/* ---- what a plan is made for ---- */

static dtype kv_type(const weft_session_options *o)
{
    static const dtype types[] = {
        [WEFT_KV_F32] = DT_F32, [WEFT_KV_F16] = DT_F16, [WEFT_KV_BF16] = DT_BF16};
    if (o->kv == WEFT_KV_AUTO)
        return o->exec == WEFT_EXEC_REF ? DT_F32 : DT_F16;
    return types[o->kv];
}

/* What state stores: the text, where there is one. */
static weft_status kv_tiers(weft_diag *dg, const weft_session_options *o, target *t)
{
    t->kv = kv_type(o);
    if (!o->kv_policy || strcmp(o->kv_policy, "auto") == 0)
        return WEFT_OK;
    WEFT_TRY(policy_parse(dg, "KV policy", str_of(o->kv_policy), &t->tiers));
    const kpolicy_tier *first = &t->tiers.tier[0];
    t->kv = kform_dtype(first->key);
    if (t->tiers.n_tier == 1 && first->key == first->value)
        t->tiers = (kpolicy){0}; /* kv says it all */
    return WEFT_OK;
}

enum { PREFIXES_FEW = 4, PREFIXES_MANY = 64, PREFIXES_MAX = 1 << 16 };

bool api_in_range(const weft_session_options *o)
{
    return o->context >= 1 && o->context <= INT32_MAX && o->batch >= 0 && o->batch <= INT32_MAX &&
           o->sequences >= 0 && o->wants >= 0 && o->threads >= -1 && o->threads <= 4096 &&
           o->page_tokens >= 0 && o->lora_slots >= 0 && o->lora_rank >= 0 && o->pages >= 0 &&
           o->prefixes >= -1 && o->prefixes <= PREFIXES_MAX && (unsigned)o->exec <= WEFT_EXEC_REF &&
           (unsigned)o->kv <= WEFT_KV_BF16;
}

static int64_t sequences(const weft_session_options *o)
{
    return o->sequences ? o->sequences : 1;
}

static int64_t prefixes(const weft_session_options *o)
{
    int64_t n = sequences(o);
    if (o->prefixes != 0 || n == 1)
        return o->prefixes > 0 ? o->prefixes : 0;
    return n < PREFIXES_FEW ? PREFIXES_FEW : n < PREFIXES_MANY ? n : PREFIXES_MANY;
}

static int64_t held(const api_wanted *w)
{
    return w->held && w->held < w->how.context ? w->held : w->how.context;
}

static int64_t rows_of_call(const api_wanted *w)
{
    return target_rows(w->how.batch ? w->how.batch : BATCH_DEFAULT, held(w), sequences(&w->how));
}

/* The one place that chooses between the plan, the reference and kernels that round. */
static weft_status choose_kernels(weft_diag *dg, const weft_session_options *o, target *t)
{
    if (o->exec == WEFT_EXEC_PLAN)
        return backend_cpu(dg, o->round_bf16, &t->be);
    if (o->round_bf16)
        return weft_fail(dg, W1603, WEFT_NOWHERE, "the reference rounds nothing");
    t->be = backend_reference();
    return WEFT_OK;
}

weft_status api_target(weft_diag *dg, const api_wanted *w, target *out)
{
    static const char *const logits[] = {"logits"};
    /* Matrices that are split afterwards, and rows that nobody asked for. */
    static const char *const cutting[] = {"simplify", "take_rows"};
    const weft_session_options *o = &w->how;
    int64_t n_tok = rows_of_call(w);
    target t = {.n_ctx = held(w),
                .n_seq = sequences(o),
                .n_tok_max = n_tok,
                .n_out_max = o->wants < n_tok ? o->wants : n_tok,
                .outputs = o->n_output > 0 ? o->outputs : logits,
                .n_output = o->n_output > 0 ? o->n_output : 1,
                .may_fork = sequences(o) > 1 || prefixes(o) > 0,
                .lora_slots = o->lora_slots,
                .lora_rank =
                    o->lora_slots > 0 && o->lora_rank == 0 ? LORA_RANK_DEFAULT : o->lora_rank,
                .deterministic = o->deterministic,
                .round_bf16 = o->round_bf16,
                .as_stored = o->no_repack,
                .open = w->watched,
                .skip = w->watched ? cutting : w->skip,
                .n_skip = w->watched ? 2 : w->n_skip};
    WEFT_TRY(kv_tiers(dg, o, &t));
    WEFT_TRY(choose_kernels(dg, o, &t));
    *out = t;
    return WEFT_OK;
}

session_options api_run_options(const api_wanted *w)
{
    const weft_session_options *o = &w->how;
    return (session_options){.n_ctx = held(w),
                             .n_seq = sequences(o),
                             .page_tok = o->page_tokens,
                             .n_page = o->pages,
                             .n_prefix = prefixes(o),
                             .threads = o->threads ? (int)o->threads : 1,
                             .bytes_max = (size_t)o->max_bytes,
                             .cache_dir = o->cache_dir,
                             .cache_bytes_max = o->cache_bytes,
                             .use_cache = !o->no_weight_cache,
                             .cancel = o->cancel ? &o->cancel->flag : NULL,
                             .progress = {o->progress, o->progress_ctx}};
}

/* ---- plans ---- */

static weft_status make_plan(weft_diag *dg, const weft_model *m, const api_wanted *w, api_plan *out)
{
    const graph *g = m->bound->graph;
    WEFT_TRY(api_target(dg, w, &out->t));
    if (m->bound->settings.context_asked && w->how.context != m->context) {
        bind_options how = {.entry = g->entry.p, .context = w->how.context, .like = m->bound};
        WEFT_TRY(model_bind(dg, m->file, &how, &out->bound));
        g = out->bound->graph;
    }
    return plan_make(dg, g, &out->t, NULL, out->a, &out->p);
}

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

static weft_status read_plan(weft_diag *dg, const weft_model *m, const api_wanted *w, api_plan *out)
{
    const weft_session_options *o = &w->how;
    WEFT_TRY(plan_read_file(dg, o->plan, model_file_hash(m->file), out->a, &out->p));
    const plan *p = out->p;
    for (int i = 0; i < o->n_output; i++)
        if (!plan_has_output(p, o->outputs[i]))
            return weft_fail(dg, W0201, WEFT_NOWHERE, "the plan %s has no output '%s'", o->plan,
                             o->outputs[i]);
    if (p->n_ctx > 0 && o->context > p->n_ctx)
        return weft_fail(dg, W1406, WEFT_NOWHERE,
                         "the plan %s is for sequences of %lld tokens, %lld were asked for",
                         o->plan, (long long)p->n_ctx, (long long)o->context);
    if (o->batch && rows_of_call(w) > p->n_tok_max)
        return weft_fail(dg, W1406, WEFT_NOWHERE,
                         "the plan %s takes %lld rows in a call, %lld were asked for", o->plan,
                         (long long)p->n_tok_max, (long long)o->batch);
    return WEFT_OK;
}

weft_status api_plan_open(weft_diag *dg, const weft_model *m, const api_wanted *wanted,
                          api_plan *out)
{
    api_wanted w = *wanted;
    weft_session_options *o = &w.how;
    *out = (api_plan){.a = arena_create()};
    if (o->threads == -1)
        o->threads = threads_default();
    if (o->context == 0 && (o->context = weft_model_context(m)) == 0)
        return weft_fail(dg, W1406, WEFT_NOWHERE,
                         "the model file names no context: a session has to");
    if ((unsigned)o->exec > WEFT_EXEC_REF || (unsigned)o->kv > WEFT_KV_BF16)
        return weft_fail(dg, W1406, WEFT_NOWHERE, "no executor %d, or no storage %d for state",
                         (int)o->exec, (int)o->kv);
    if (!api_in_range(o))
        return weft_fail(dg, W1406, WEFT_NOWHERE,
                         "a session of %lld tokens, %lld sequences, %lld rows a call and %lld "
                         "threads is out of range",
                         (long long)o->context, (long long)o->sequences, (long long)o->batch,
                         (long long)o->threads);
    bound_model_check_context(dg, m->bound, held(&w));
    out->run = api_run_options(&w);
    return (o->plan ? read_plan : make_plan)(dg, m, &w, out);
}

void api_plan_close(api_plan *p)
{
    bound_model_destroy(p->bound);
    if (p->a)
        arena_destroy(p->a);
    *p = (api_plan){0};
}
