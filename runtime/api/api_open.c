/* api_open.c - models from files: a file into a model, a model into a plan; the kind of weft_model that has a compiler. */
#include "runtime/api/api_open.h"

#include "compiler/plan_file.h"
#include "runtime/api/api_device.h"
#include "runtime/api/api_impl.h"
#include "runtime/base/mem.h"
#include "runtime/formats/random_model.h"
#include "runtime/jit/jit.h"
#include "runtime/lora/adapter.h"

enum { LORA_RANK_DEFAULT = 16 };

/* ---- models ---- */

static weft_status open_file(weft_diag *dg, const api_source *from, api_file *m)
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

/* The one place that chooses between the plan, the reference and kernels that round. */
static weft_status find_kernels(weft_diag *dg, const api_wanted *w, target *t)
{
    const weft_session_options *o = &w->how;
    bool rounds = !w->be || backend_card_is(w->be, ROUNDING_BF16);
    if (w->be && o->exec != WEFT_EXEC_REF && (!o->round_bf16 || rounds)) {
        t->be = w->be;
        return WEFT_OK;
    }
    if (w->be)
        return weft_fail(dg, W1406, WEFT_NOWHERE,
                         "a level is named: leave out the reference and rounding to bf16");
    if (o->exec != WEFT_EXEC_REF)
        return backend_cpu(dg, o->round_bf16, &t->be);
    if (o->round_bf16)
        return weft_fail(dg, W1603, WEFT_NOWHERE, "the reference rounds nothing");
    t->be = backend_reference();
    return WEFT_OK;
}

/* A level of the CPU's that rounds may be named, by the options or by WEFT_CPU. */
static weft_status choose_kernels(weft_diag *dg, const api_wanted *w, target *t)
{
    WEFT_TRY(find_kernels(dg, w, t));
    return api_check_exact(dg, &w->how, t->be->level);
}

weft_status api_target(weft_diag *dg, const api_wanted *w, target *out)
{
    static const char *const logits[] = {"logits"};
    /* Matrices that are split afterwards, and rows that nobody asked for. */
    static const char *const cutting[] = {"simplify", "take_rows"};
    const weft_session_options *o = &w->how;
    int64_t n_tok = api_rows_of_call(w);
    target t = {.n_ctx = api_held(w),
                .n_seq = api_sequences(o),
                .n_tok_max = n_tok,
                .n_out_max = o->wants < n_tok ? o->wants : n_tok,
                .outputs = o->n_output > 0 ? o->outputs : logits,
                .n_output = o->n_output > 0 ? o->n_output : 1,
                .may_fork = api_sequences(o) > 1 || api_prefixes(o) > 0,
                .lora_slots = o->lora_slots,
                .lora_rank =
                    o->lora_slots > 0 && o->lora_rank == 0 ? LORA_RANK_DEFAULT : o->lora_rank,
                .deterministic = o->deterministic,
                .round_bf16 = o->round_bf16,
                .as_stored = o->no_repack,
                .laid_for = w->laid_for,
                .open = w->watched,
                .skip = w->watched ? cutting : w->skip,
                .n_skip = w->watched ? 2 : w->n_skip};
    WEFT_TRY(api_kv(dg, o, &t.kv, &t.tiers));
    WEFT_TRY(choose_kernels(dg, w, &t));
    *out = t;
    return WEFT_OK;
}

/* ---- plans ---- */

static void close_bound(void *bound)
{
    bound_model_destroy(bound);
}

/* card: where layers are divided, t is for those of the CPU, and the plan of the whole only describes it. */
static weft_status make_plan(weft_diag *dg, const api_file *m, const api_wanted *w,
                             const backend *card, target *t, api_plan *out)
{
    const graph *g = m->bound->graph;
    plan *made;
    WEFT_TRY(api_target(dg, w, t));
    if (out->keep) {
        g = ((const bound_model *)out->keep)
                ->graph; /* of the plan for a card, which could not be */
    } else if (m->bound->settings.context_asked && w->how.context != m->bound_for) {
        bind_options how = {.entry = g->entry.p, .context = w->how.context, .like = m->bound};
        bound_model *again;
        WEFT_TRY(model_bind(dg, m->file, &how, &again));
        out->keep = again;
        out->keep_close = close_bound;
        g = again->graph;
    }
    WEFT_TRY(plan_make(dg, g, t, NULL, out->a, &made));
    out->p = made;
    if (!card || !api_device_divides(&w->how, graph_layers(g)))
        return WEFT_OK;
    plan_parts *parts = ARENA_NEW(out->a, plan_parts);
    target *on_card = ARENA_NEW(out->a, target);
    *on_card = *t;
    on_card->be = card;
    out->t_card = on_card;
    out->run.parts = parts;
    return plan_make_parts(dg, g, t, on_card, w->how.device_layers, out->a, parts);
}

/* A file's plan for a card rounds as the file says: that of another level of the card's, if it is one. */
static const backend *card_of_file(const api_file *m, const api_wanted *w, const backend *card)
{
    arena *a = arena_create();
    const backend *found = NULL;
    for (int how = 0; how <= ROUNDING_BF16 && !found; how++) {
        weft_diag *quiet = diag_create();
        const backend *be = backend_card(card->name, (backend_rounding)how);
        plan *p;
        if (be &&
            plan_read_file(quiet, w->how.plan, model_file_hash(m->file), be, a, &p) == WEFT_OK)
            found = be;
        diag_destroy(quiet);
    }
    arena_destroy(a);
    return found ? found : card;
}

static weft_status read_plan(weft_diag *dg, const api_file *m, const api_wanted *w,
                             const backend *card, api_plan *out)
{
    plan *made;
    const backend *be = card ? card_of_file(m, w, card) : NULL;
    WEFT_TRY(plan_read_file(dg, w->how.plan, model_file_hash(m->file), be, out->a, &made));
    out->p = made;
    if (be && w->how.exact && !backend_card_is(be, ROUNDING_NONE))
        return weft_fail(dg, W1617, WEFT_NOWHERE,
                         "exact is asked for, and the plan %s rounds activations", w->how.plan);
    return api_plan_serves(dg, made, arena_printf(out->a, "the plan %s", w->how.plan).p, w);
}

/* A plan for the card, or for the CPU where it is NULL; read or made. */
static weft_status plan_for(weft_diag *dg, const api_file *f, api_wanted w, const backend *card,
                            target *t, api_plan *out)
{
    if (card && !api_device_divides(&w.how, graph_layers(f->bound->graph)))
        w.be = card;
    return w.how.plan ? read_plan(dg, f, &w, card, out) : make_plan(dg, f, &w, card, t, out);
}

/* The card has no kernel for something: the CPU, if that is allowed, and a warning. */
static weft_status leave_card(weft_diag *dg, const api_file *f, const api_wanted *wanted,
                              weft_diag *why, target *t, api_plan *out)
{
    api_wanted w = *wanted;
    diag_entry e = diag_at(why, diag_count(why) - 1);
    weft_warn(dg, W1612, e.loc, "all of the model runs on the CPU: on %s, " STR_FMT, w.how.device,
              STR_ARG(e.message));
    device_close(out->dev);
    out->dev = out->run.dev = NULL;
    out->run.parts = NULL;
    out->t_card = NULL;
    w.how.device = NULL;
    w.how.device_layers = 0;
    return plan_for(dg, f, w, NULL, t, out);
}

static bool lacks_kernel(const weft_diag *dg)
{
    return diag_count(dg) > 0 && diag_at(dg, diag_count(dg) - 1).code == W0901;
}

static weft_status plan_for_card(weft_diag *dg, const api_file *f, const api_wanted *w,
                                 const backend *card, target *t, api_plan *out)
{
    if (!w->how.allow_cpu) {
        weft_status st = plan_for(dg, f, *w, card, t, out);
        if (st != WEFT_OK && lacks_kernel(dg))
            weft_note(dg, "this is for %s; allow_cpu lets all of the model run on the CPU",
                      w->how.device);
        return st;
    }
    weft_diag *tried = diag_create();
    weft_status st = plan_for(tried, f, *w, card, t, out);
    if (st != WEFT_OK)
        st = lacks_kernel(tried) ? leave_card(dg, f, w, tried, t, out)
                                 : plan_for(dg, f, *w, card, t, out); /* again, for its messages */
    diag_destroy(tried);
    return st;
}

static weft_status file_plan(weft_diag *dg, const weft_model *m, const api_wanted *w, api_plan *out)
{
    const api_file *f = api_file_of(m);
    target *t = ARENA_NEW(out->a, target);
    const backend *card;
    WEFT_TRY(api_device_choose(dg, w, graph_layers(f->bound->graph), out, &card));
    out->t = t;
    if (w->how.exec == WEFT_EXEC_JIT)
        out->run.maker = jit_maker();
    bound_model_check_context(dg, f->bound, api_held(w));
    return card ? plan_for_card(dg, f, w, card, t, out) : plan_for(dg, f, *w, NULL, t, out);
}

static weft_status file_cells(weft_diag *dg, const weft_model *m, const api_wanted *w, arena *a,
                              plan *out)
{
    api_wanted any = *w; /* whatever computes with them */
    target t;
    plan_cell *cells;
    any.be = NULL;
    any.how.exec = WEFT_EXEC_PLAN;
    any.how.exact = any.how.round_bf16 = false;
    WEFT_TRY(api_target(dg, &any, &t));
    *out = (plan){.n_cell = plan_cells(api_file_of(m)->bound->graph, &t, a, &cells),
                  .n_tok_max = t.n_tok_max,
                  .kv = t.kv,
                  .tiers = t.tiers};
    out->cell = cells;
    return WEFT_OK;
}

/* ---- the kind ---- */

static void file_close(weft_model *m)
{
    api_file *f = (api_file *)(void *)m;
    bound_model_destroy(f->bound);
    model_file_close(f->file);
    random_model_destroy(f->made);
    mem_free(f);
}

static model_hash file_hash(const weft_model *m)
{
    return model_file_hash(api_file_of(m)->file);
}

static const value *file_param(const weft_model *m, const char *name)
{
    return bound_model_param(api_file_of(m)->bound, name);
}

static weft_status file_tokenizer(weft_diag *dg, const weft_model *m, tok **out)
{
    return tok_open_model(dg, api_file_of(m)->file, out);
}

static weft_status file_chat(weft_diag *dg, const weft_model *m, const char *choice,
                             chat_template **out)
{
    return chat_open(dg, api_file_of(m)->file, choice, out);
}

static const model_kind kind_file = {.close = file_close,
                                     .hash = file_hash,
                                     .param = file_param,
                                     .plan = file_plan,
                                     .cells = file_cells,
                                     .tokenizer = file_tokenizer,
                                     .chat = file_chat};

weft_status api_model_open(weft_diag *dg, const api_source *from, weft_model **out_model)
{
    api_file *m = mem_alloc(sizeof *m);
    *m = (api_file){.base.kind = &kind_file};
    weft_status st = open_file(dg, from, m);
    if (st == WEFT_OK)
        st = model_bind(dg, m->file, &from->bind, &m->bound);
    if (st != WEFT_OK) {
        file_close(&m->base);
        return st;
    }
    m->base.weights = model_file_source(m->file);
    m->base.name = m->bound->graph->model.p; /* arena_str ends it with a NUL */
    if (!bound_model_context(m->bound, &m->base.context))
        m->base.context = 0;
    m->bound_for = from->bind.context ? from->bind.context : m->base.context;
    *out_model = &m->base;
    return WEFT_OK;
}

/* ---- the public interface: what opens files ---- */

static weft_status model_open(weft_diag *dg, const char *call, const weft_model_options *options,
                              api_source from, weft_model **out_model)
{
    weft_model_options o;
    WEFT_TRY(api_take(dg, call, options, &o, sizeof o));
    from.file = (model_file_options){.no_mmap = o.no_mmap, .mlock = o.mlock, .guard = o.guard};
    from.bind.arch = o.arch;
    return api_model_open(dg, &from, out_model);
}

weft_status weft_model_open(weft_diag *dg, const char *path, const weft_model_options *options,
                            weft_model **out_model)
{
    API_SCOPE(dg);
    if (!dg || !path || !out_model)
        return api_lacks(dg, "weft_model_open", "a path");
    return model_open(dg, "weft_model_open", options, (api_source){.path = path}, out_model);
}

weft_status weft_model_open_fd(weft_diag *dg, int fd, const char *name,
                               const weft_model_options *options, weft_model **out_model)
{
    API_SCOPE(dg);
    if (!dg || !name || !out_model)
        return api_lacks(dg, "weft_model_open_fd", "a name");
    return model_open(dg, "weft_model_open_fd", options, (api_source){.fd = fd, .name = name},
                      out_model);
}

weft_status weft_model_open_memory(weft_diag *dg, const void *data, size_t bytes, const char *name,
                                   const weft_model_options *options, weft_model **out_model)
{
    API_SCOPE(dg);
    if (!dg || !data || !name || !out_model)
        return api_lacks(dg, "weft_model_open_memory", "data or a name");
    return model_open(dg, "weft_model_open_memory", options,
                      (api_source){.data = data, .bytes = bytes, .name = name}, out_model);
}

weft_status weft_tokenizer_open(weft_diag *dg, const char *path, weft_tokenizer **out_tokenizer)
{
    API_SCOPE(dg);
    if (!dg || !path || !out_tokenizer)
        return api_lacks(dg, "weft_tokenizer_open", "a path");
    tok *text = NULL;
    weft_status st = tok_open(dg, path, &text);
    return api_tokenizer_made(st, text, out_tokenizer);
}

static void close_adapter(void *from)
{
    adapter_close(from);
}

weft_status weft_adapter_open(weft_diag *dg, const weft_model *m, const char *path,
                              weft_adapter **out_adapter)
{
    API_SCOPE(dg);
    if (!dg || !m || !path || !out_adapter)
        return api_lacks(dg, "weft_adapter_open", "a model or a path");
    if (m->kind != &kind_file)
        return weft_fail(dg, W1406, WEFT_NOWHERE, "%s is not of a model file: it takes no adapters",
                         m->name);
    adapter *from;
    WEFT_TRY(adapter_open(dg, path, api_file_of(m)->bound, &from));
    adapter_part *part = ARENA_ARRAY(from->home, adapter_part, from->n_site);
    for (size_t i = 0; i < from->n_site; i++) {
        const adapter_site *at = &from->site[i];
        part[i] = (adapter_part){.weight = at->name.p,
                                 .index = at->index,
                                 .rank = at->rank,
                                 .in = at->in,
                                 .out = at->out,
                                 .a = at->a,
                                 .b = at->b,
                                 .scale = at->scale};
    }
    weft_adapter *a = mem_alloc(sizeof *a);
    *a = (weft_adapter){
        .from = {.name = from->path, .hash = from->hash, .n_part = from->n_site, .part = part},
        .rank_max = from->rank_max,
        .model = m->kind->hash(m),
        .keep = from,
        .keep_close = close_adapter};
    *out_adapter = a;
    return WEFT_OK;
}
