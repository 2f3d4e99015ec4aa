/* verb_lora_merge.c - `weft lora merge` and `weft lora convert`: adapters into weights, or into another adapter. */
#include "runtime/base/progress.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/verb_lora.h"
#include "runtime/exec/pool.h"
#include "runtime/lora/adapter_merge.h"
#include "runtime/lora/adapter_write.h"

typedef struct {
    lora_run *r;
    arena *a;
    lora_model m;
    adapter *ad[BLEND_MAX];
    blend_input in[BLEND_MAX];
    size_t n;
    blend *b;
    quant_job *job;
    adapter_merge *merge;
    progress bar;
} merging;

static void on_progress(void *ctx, uint64_t done)
{
    progress_update(&((merging *)ctx)->bar, done);
}

static weft_status open_adapters(merging *g)
{
    lora_run *r = g->r;
    if (r->o->lora.n > BLEND_MAX)
        return weft_fail(r->dg, W1904, WEFT_NOWHERE, "%zu adapters, and %d is the most",
                         r->o->lora.n, BLEND_MAX);
    for (size_t i = 0; i < r->o->lora.n; i++) {
        const char *path;
        double share;
        WEFT_TRY(lora_spec(r, g->a, r->o->lora.at[i], &path, &share));
        adapter_file *f;
        WEFT_TRY(adapter_file_open(r->dg, path, true, &f));
        weft_status st = adapter_bind(r->dg, f, g->m.bm, !r->o->adapter, &g->ad[i]);
        adapter_file_close(f);
        WEFT_TRY(st);
        g->in[g->n++] = (blend_input){g->ad[i], share};
    }
    return WEFT_OK;
}

/* ---- into an adapter ---- */

static weft_status write_adapter(merging *g)
{
    lora_run *r = g->r;
    double lost;
    int threads = lora_threads(r);
    WEFT_TRY(pool_acquire(r->dg, threads, false));
    progress_start(&g->bar, "merge", g->b->n_site, PROGRESS_COUNT);
    adapter_site *site = blend_factors(g->b, r->o->rank, threads, g->a, on_progress, g, &lost);
    progress_end(&g->bar);
    pool_release();
    WEFT_TRY(adapter_write(r->dg, r->o->out, g->m.bm, site, g->b->n_site,
                           lora_base_name(g->a, r->o->model)));
    int64_t rank = 0;
    for (size_t i = 0; i < g->b->n_site; i++)
        rank = site[i].rank > rank ? site[i].rank : rank;
    cli_say(r->c, "%s: %zu sites, rank %lld", r->o->out, g->b->n_site, (long long)rank);
    if (lost > 0)
        cli_say(r->c, "the rank takes away up to %.3g %% of a site's norm", 100 * lost);
    return WEFT_OK;
}

/* ---- into weights ---- */

/* The preset that leaves a folder's weights as they are, as far as GGUF can. */
static const char *type_of(const lora_model *m)
{
    int64_t most = 0;
    dtype type = DT_F32;
    for (size_t i = 0; i < model_file_tensor_count(m->mf); i++) {
        const model_tensor *t = model_file_tensor_at(m->mf, i);
        if (t->elems > most) {
            most = t->elems;
            type = t->type;
        }
    }
    return type == DT_F16 ? "F16" : type == DT_BF16 ? "BF16" : "F32";
}

static weft_status choose_types(merging *g)
{
    lora_run *r = g->r;
    const char *name = r->o->type;
    if (!name && model_file_format(g->m.mf) == MODEL_HF)
        name = type_of(&g->m);
    if (!name)
        return WEFT_OK;
    const mix_preset *preset = mix_find(name);
    if (!preset) {
        strbuf names = {0};
        mix_names(&names);
        weft_status st = weft_fail(r->dg, W1903, WEFT_NOWHERE, "there is no type '%s'", name);
        weft_note(r->dg, "types are %s", names.p);
        strbuf_free(&names);
        return st;
    }
    return quant_job_choose(r->dg, g->job, preset, NULL, NULL);
}

static void say_merged(merging *g)
{
    size_t full = 0;
    char whole[40] = "";
    for (size_t i = 0; i < g->n; i++)
        full += g->ad[i]->n_full;
    if (full)
        snprintf(whole, sizeof whole, ", %zu of them whole", full);
    cli_say(g->r->c, "%s: %zu adapter%s in %zu weights%s", g->r->o->out, g->n, g->n == 1 ? "" : "s",
            g->b->n_site + full, whole);
}

static weft_status write_model(merging *g)
{
    lora_run *r = g->r;
    WEFT_TRY(quant_job_create(r->dg, g->m.mf, r->o->arch, &g->job));
    WEFT_TRY(choose_types(g));
    WEFT_TRY(adapter_merge_create(r->dg, g->m.bm, g->b, g->in, g->n, true, &g->merge));
    WEFT_TRY(adapter_merge_attach(r->dg, g->merge, g->job));
    quant_write_options how = {
        .threads = lora_threads(r), .progress = on_progress, .ctx = g, .part = interrupt_removes};
    progress_start(&g->bar, "merge", quant_job_bytes(g->job), PROGRESS_BYTES);
    interrupt_waits();
    weft_status st = quant_job_write(r->dg, g->job, r->o->out, &how);
    interrupt_removes(NULL);
    progress_end(&g->bar);
    if (st == WEFT_OK)
        say_merged(g);
    return st;
}

static weft_status write_folder(merging *g)
{
    lora_run *r = g->r;
    if (r->o->type)
        return weft_fail(r->dg, W1904, WEFT_NOWHERE,
                         "--type is for GGUF files: a folder keeps the types that it has");
    WEFT_TRY(adapter_merge_create(r->dg, g->m.bm, g->b, g->in, g->n, false, &g->merge));
    progress_start(&g->bar, "merge", merge_folder_bytes(g->merge), PROGRESS_BYTES);
    weft_status st =
        merge_folder_write(r->dg, g->merge, r->o->out, &(merge_folder_options){on_progress, g});
    progress_end(&g->bar);
    if (st == WEFT_OK)
        say_merged(g);
    return st;
}

static weft_status make_blend(merging *g)
{
    lora_run *r = g->r;
    uint64_t sites = 0;
    blend_options how = {.method = (blend_method)r->o->method,
                         .density = r->o->density,
                         .seed = (uint64_t)r->o->seed,
                         .threads = lora_threads(r),
                         .progress = on_progress,
                         .ctx = g};
    for (size_t i = 0; i < g->n; i++)
        sites += g->ad[i]->n_site;
    WEFT_TRY(pool_acquire(r->dg, how.threads, false));
    progress_start(&g->bar, "compare", sites, PROGRESS_COUNT);
    weft_status st = blend_create(r->dg, g->in, g->n, &how, &g->b);
    progress_end(&g->bar);
    pool_release();
    return st;
}

static weft_status merge(merging *g)
{
    lora_run *r = g->r;
    if (!r->o->model || !r->o->out || r->o->lora.n == 0)
        return weft_fail(r->dg, W1904, WEFT_NOWHERE,
                         "merge takes -m MODEL, --lora PATH and -o FILE");
    WEFT_TRY(lora_model_open(r, r->o->model, r->o->arch, &g->m));
    WEFT_TRY(model_file_spare(r->dg, g->m.mf, r->o->out));
    WEFT_TRY(open_adapters(g));
    WEFT_TRY(make_blend(g));
    return r->o->adapter                     ? write_adapter(g)
           : adapter_path_is_gguf(r->o->out) ? write_model(g)
                                             : write_folder(g);
}

static weft_status finish(merging *g, weft_status st)
{
    quant_job_destroy(g->job);
    adapter_merge_destroy(g->merge);
    blend_destroy(g->b);
    for (size_t i = 0; i < BLEND_MAX; i++)
        adapter_close(g->ad[i]);
    lora_model_close(&g->m);
    arena_destroy(g->a);
    return st;
}

weft_status lora_merge(lora_run *r)
{
    merging g = {.r = r, .a = arena_create()};
    return finish(&g, merge(&g));
}

/* ---- convert ---- */

static weft_status convert(merging *g)
{
    lora_run *r = g->r;
    if (!r->o->model || !r->o->out)
        return weft_fail(r->dg, W1904, WEFT_NOWHERE, "convert takes PATH, -m MODEL and -o FILE");
    WEFT_TRY(lora_model_open(r, r->o->model, r->o->arch, &g->m));
    WEFT_TRY(model_file_spare(r->dg, g->m.mf, r->o->out));
    WEFT_TRY(adapter_open(r->dg, r->path, g->m.bm, &g->ad[0]));
    WEFT_TRY(adapter_write(r->dg, r->o->out, g->m.bm, g->ad[0]->site, g->ad[0]->n_site,
                           lora_base_name(g->a, r->o->model)));
    cli_say(r->c, "%s: %zu sites, rank %lld", r->o->out, g->ad[0]->n_site,
            (long long)g->ad[0]->rank_max);
    return WEFT_OK;
}

weft_status lora_convert(lora_run *r)
{
    merging g = {.r = r, .a = arena_create()};
    return finish(&g, convert(&g));
}
