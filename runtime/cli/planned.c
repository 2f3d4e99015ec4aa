/* planned.c - from a file to a plan. */
#include "runtime/cli/planned.h"

#include "runtime/base/threads.h"
#include "runtime/cli/interleaving.h"

static weft_status open_model(weft_diag *dg, const planned_flags *f, planned *pl)
{
    if (!f->random)
        return model_file_open(dg, f->model, &(model_file_options){.guard = true}, &pl->mf);
    int fillers = f->threads ? (int)f->threads : threads_default();
    WEFT_TRY(random_model_create(dg, f->random, f->fill ? fillers : 0, &pl->made));
    return model_file_open_memory(dg, random_model_data(pl->made), random_model_bytes(pl->made),
                                  f->random, &pl->mf);
}

static weft_status make_plan(weft_diag *dg, const planned_flags *f, const char *const *outputs,
                             int n_output, planned *pl)
{
    static const char *const logits[] = {"logits"};
    static const dtype kv[] = {DT_F32, DT_F16, DT_BF16};
    int64_t context = f->context, n_seq = f->n_seq ? f->n_seq : 1;
    int64_t n_out = f->n_out ? f->n_out : n_seq;
    WEFT_TRY(open_model(dg, f, pl));
    bind_options how = {.arch = f->arch, .entry = f->entry, .context = f->context};
    WEFT_TRY(model_bind(dg, pl->mf, &how, &pl->bm));
    if (context == 0 && !bound_model_context(pl->bm, &context))
        return weft_fail(dg, W1904, WEFT_NOWHERE, "the model names no context: -c N");
    if (f->n_ctx && f->n_ctx < context)
        context = f->n_ctx;
    bound_model_check_context(dg, pl->bm, context);
    int64_t n_tok = target_rows(f->n_tok, context, n_seq);
    pl->t = (target){.n_ctx = context,
                     .n_seq = n_seq,
                     .n_tok_max = n_tok,
                     .n_out_max = n_out < n_tok ? n_out : n_tok,
                     .kv = kv[f->kv],
                     .outputs = outputs ? outputs : logits,
                     .n_output = outputs ? n_output : 1,
                     .may_fork = n_seq > 1,
                     .deterministic = f->deterministic,
                     .round_bf16 = f->round_bf16,
                     .as_stored = f->no_repack,
                     .skip = f->skip,
                     .n_skip = f->n_skip};
    if (f->round_bf16 && f->exec == PLANNED_EXEC_REF)
        return weft_fail(dg, W1603, WEFT_NOWHERE, "the reference rounds nothing");
    if (f->exec == PLANNED_EXEC_REF)
        pl->t.best = VARIANT_ref;
    else
        WEFT_TRY((f->round_bf16 ? target_best_rounding : target_best)(dg, &pl->t.best));
    WEFT_TRY(plan_make(dg, pl->bm->graph, &pl->t, NULL, pl->a, &pl->p));
    pl->run = (session_options){.n_ctx = context,
                                .n_seq = n_seq,
                                .threads = f->threads ? (int)f->threads : threads_default(),
                                .use_cache = !f->no_weight_cache,
                                .progress = {interleaving_report, &pl->interleaving}};
    return WEFT_OK;
}

weft_status planned_open(weft_diag *dg, const planned_flags *f, const char *const *outputs,
                         int n_output, planned *out)
{
    *out = (planned){.a = arena_create()};
    if (!f->model && !f->random)
        return weft_fail(dg, W1904, WEFT_NOWHERE, "a checkpoint is needed: -m MODEL");
    if (f->model && f->random)
        return weft_fail(dg, W1904, WEFT_NOWHERE, "either -m MODEL or --random SHAPE:TYPE");
    return make_plan(dg, f, outputs, n_output, out);
}

void planned_close(planned *pl)
{
    bound_model_destroy(pl->bm);
    model_file_close(pl->mf);
    random_model_destroy(pl->made);
    if (pl->a)
        arena_destroy(pl->a);
    *pl = (planned){0};
}
