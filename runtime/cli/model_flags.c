#include "runtime/cli/model_flags.h"

#include "runtime/api/api_device.h"
#include "runtime/base/threads.h"
#include "runtime/kv/policy.h"
#include <stdio.h>
#include <string.h>

static const char AUTO[] = "auto";

/* What --kv says; a program that sets no flags says nothing. */
static const char *kv_flag(const model_flags *f)
{
    return f->kv ? f->kv : AUTO;
}

/* The policy's text. Of forms of keys and values it is in memory that the next call uses again. */
static const char *policy_text(const model_flags *f)
{
    static char both[200];
    if (!f->kv_keys && !f->kv_values)
        return kv_flag(f);
    snprintf(both, sizeof both, "%s/%s", f->kv_keys ? f->kv_keys : "f16",
             f->kv_values ? f->kv_values : "f16");
    return both;
}

/* -ctk and -ctv take a form, and no policy; NULL is fine. */
static weft_status check_form(weft_diag *dg, const char *name, const char *form)
{
    kpolicy p;
    if (form && strpbrk(form, "/, \t"))
        return weft_fail(dg, W1903, WEFT_NOWHERE,
                         "%s takes one form, such as q8, not '%s'; a policy is for --kv", name,
                         form);
    return form ? policy_parse(dg, name, str_of(form), &p) : WEFT_OK;
}

weft_status model_flags_check_kv(weft_diag *dg, const model_flags *f)
{
    if (strcmp(kv_flag(f), AUTO) != 0 && (f->kv_keys || f->kv_values))
        return weft_fail(dg, W1904, WEFT_NOWHERE, "either --kv or -ctk and -ctv");
    WEFT_TRY(check_form(dg, "-ctk", f->kv_keys));
    WEFT_TRY(check_form(dg, "-ctv", f->kv_values));
    kpolicy p;
    const char *text = kv_flag(f);
    return strcmp(text, AUTO) == 0 ? WEFT_OK : policy_parse(dg, "--kv", str_of(text), &p);
}

weft_status model_flags_check(weft_diag *dg, const model_flags *f)
{
    if (!f->model && !f->random)
        return weft_fail(dg, W1904, WEFT_NOWHERE, "a checkpoint is needed: -m MODEL");
    if (f->model && f->random)
        return weft_fail(dg, W1904, WEFT_NOWHERE, "either -m MODEL or --random SHAPE:TYPE");
    return model_flags_check_kv(dg, f);
}

bool model_flags_stores(const model_flags *f)
{
    return strcmp(kv_flag(f), AUTO) != 0 || f->kv_keys || f->kv_values;
}

api_source model_flags_source(const model_flags *f)
{
    return (api_source){.path = f->model,
                        .random = f->random,
                        .fillers = f->threads ? (int)f->threads : threads_default(),
                        .file = {.no_mmap = f->no_mmap, .mlock = f->mlock, .guard = true},
                        .bind = {.arch = f->arch}};
}

/* The kind of card that -ngl alone means. */
#ifdef __APPLE__
#define CARD_USUAL "metal"
#else
#define CARD_USUAL "cuda"
#endif

const char *model_flags_device(const model_flags *f)
{
    return f->device ? f->device : f->device_layers > 0 ? CARD_USUAL : NULL;
}

/* Starts the bar with the first call: only then is it known that there is anything to do. */
static void report(void *ctx, uint64_t done, uint64_t total, const char *what)
{
    progress *bar = ctx;
    if (!bar->label)
        progress_start(bar, what, total, PROGRESS_BYTES);
    progress_update(bar, done);
    if (done == total)
        progress_end(bar);
}

static void interleaving_report(void *ctx, uint64_t done, uint64_t total)
{
    report(ctx, done, total, "interleaving weights");
}

static void upload_report(void *ctx, uint64_t done, uint64_t total)
{
    report(ctx, done, total, "weights to the card");
}

/* The bar of weights is over when this one begins. */
static void compile_report(void *ctx, uint64_t done, uint64_t total)
{
    static const char label[] = "compiling kernels for this plan";
    progress *bar = ctx;
    if (bar->label != label)
        progress_start(bar, label, total, PROGRESS_COUNT);
    progress_update(bar, done);
    if (done == total)
        progress_end(bar);
}

weft_session_options model_flags_session(const model_flags *f, progress *bar)
{
    const char *dev = model_flags_device(f);
    return (weft_session_options){.size = sizeof(weft_session_options),
                                  .context = f->context,
                                  .batch = f->batch,
                                  .threads = f->threads ? f->threads : -1,
                                  .exec = (weft_exec)f->exec,
                                  .kv_policy = policy_text(f),
                                  .deterministic = f->deterministic,
                                  .round_bf16 = f->round_bf16,
                                  .exact = f->exact,
                                  .no_weight_cache = f->no_weight_cache,
                                  .no_repack = f->no_repack,
                                  .lora_slots = f->lora_slots,
                                  .lora_rank = f->lora_rank,
                                  .device = dev,
                                  .device_layers = f->device_layers == 0  ? -1
                                                   : f->device_layers > 0 ? f->device_layers
                                                                          : 0,
                                  .allow_cpu = f->allow_cpu,
                                  .progress =
                                      api_device_is_card(dev) ? upload_report : interleaving_report,
                                  .compiling = compile_report,
                                  .progress_ctx = bar};
}
