/* api.c - the public interface (weft.h): models and sessions over compiler and executor. */
#include "compiler/compiler.h"
#include "compiler/plan_file.h"
#include "compiler/plan_make.h"
#include "runtime/base/mem.h"
#include "runtime/api/api_impl.h"

#include <stdlib.h>

enum { BATCH_DEFAULT = 512 };

struct weft_model {
    model_file *file;
    bound_model *bound; /* with the trained context: what the model is */
};

struct weft_session {
    bound_model *bound; /* with its own context, where the model's graph depends on it; else NULL */
    arena *a;           /* the plan's */
    session *run;
    int64_t n_seq;
};

const char *weft_version(void)
{
    return WEFT_VERSION;
}

/* A call without something it cannot do without. dg may be what is missing. */
static weft_status call_lacks(weft_diag *dg, const char *call, const char *what)
{
    return dg ? weft_fail(dg, W1904, WEFT_NOWHERE, "%s was called without %s", call, what)
              : WEFT_ERR_USAGE;
}

/* ---- messages ---- */

weft_diag *weft_diag_create(void)
{
    return diag_create();
}

void weft_diag_destroy(weft_diag *dg)
{
    diag_destroy(dg);
}

const char *weft_diag_text(weft_diag *dg)
{
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    if (!to)
        return "";
    diag_print(dg, to, false);
    fclose(to);
    str kept = arena_str(diag_arena(dg), (str){text, n});
    mem_free(text);
    return kept.p;
}

void weft_diag_clear(weft_diag *dg)
{
    diag_reset(dg);
}

/* ---- models ---- */

static weft_status model_finish(weft_diag *dg, weft_status st, model_file *file,
                                const weft_model_options *options, weft_model **out_model)
{
    if (st != WEFT_OK)
        return st;
    weft_model *m = mem_alloc(sizeof *m);
    *m = (weft_model){.file = file};
    bind_options how = {.arch = options->arch};
    st = model_bind(dg, file, &how, &m->bound);
    if (st != WEFT_OK) {
        weft_model_close(m);
        return st;
    }
    *out_model = m;
    return WEFT_OK;
}

static const weft_model_options plain_model = {0};

static model_file_options file_options(const weft_model_options *o)
{
    return (model_file_options){.no_mmap = o->no_mmap, .mlock = o->mlock, .guard = o->guard};
}

weft_status weft_model_open(weft_diag *dg, const char *path, const weft_model_options *options,
                            weft_model **out_model)
{
    if (!dg || !path || !out_model)
        return call_lacks(dg, "weft_model_open", "a path");
    options = options ? options : &plain_model;
    model_file_options how = file_options(options);
    model_file *file = NULL;
    weft_status st = model_file_open(dg, path, &how, &file);
    return model_finish(dg, st, file, options, out_model);
}

weft_status weft_model_open_fd(weft_diag *dg, int fd, const char *name,
                               const weft_model_options *options, weft_model **out_model)
{
    if (!dg || !name || !out_model)
        return call_lacks(dg, "weft_model_open_fd", "a name");
    options = options ? options : &plain_model;
    model_file_options how = file_options(options);
    model_file *file = NULL;
    weft_status st = model_file_open_fd(dg, fd, name, &how, &file);
    return model_finish(dg, st, file, options, out_model);
}

weft_status weft_model_open_memory(weft_diag *dg, const void *data, size_t bytes, const char *name,
                                   const weft_model_options *options, weft_model **out_model)
{
    if (!dg || !data || !name || !out_model)
        return call_lacks(dg, "weft_model_open_memory", "data or a name");
    options = options ? options : &plain_model;
    model_file *file = NULL;
    weft_status st = model_file_open_memory(dg, data, bytes, name, &file);
    return model_finish(dg, st, file, options, out_model);
}

void weft_model_close(weft_model *m)
{
    if (!m)
        return;
    bound_model_destroy(m->bound);
    model_file_close(m->file);
    mem_free(m);
}

weft_status weft_model_check(weft_diag *dg, const weft_model *m)
{
    if (!dg || !m)
        return call_lacks(dg, "weft_model_check", "a model");
    return model_file_check(dg, m->file);
}

const char *weft_model_name(const weft_model *m)
{
    return m->bound->graph->model.p; /* arena_str ends it with a NUL */
}

bool weft_model_int(const weft_model *m, const char *name, int64_t *out_value)
{
    return bound_model_int(m->bound, name, out_value);
}

bool weft_model_float(const weft_model *m, const char *name, double *out_value)
{
    for (size_t i = 0; i < m->bound->params.n; i++) {
        const bound_param *p = &m->bound->params.at[i];
        if (str_eqz(p->name, name) && p->layer < 0 && p->value.kind == KEY_FLOAT) {
            *out_value = p->value.number;
            return true;
        }
    }
    return false;
}

uint64_t weft_model_bytes(const weft_model *m)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < model_file_tensor_count(m->file); i++)
        bytes += model_file_tensor_at(m->file, i)->bytes;
    return bytes;
}

uint64_t weft_model_token_bytes(const weft_model *m)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < m->bound->graph->cells.n; i++) {
        const gcell *c = &m->bound->graph->cells.at[i];
        if (c->kind == CELL_kv_cache)
            bytes += (uint64_t)c->arg[0] * (uint64_t)(c->arg[1] + c->arg[2]) * sizeof(float);
        else if (c->kind == CELL_latent_cache)
            bytes += (uint64_t)c->arg[0] * sizeof(float);
    }
    return bytes;
}

const model_file *api_model_file(const weft_model *m)
{
    return m->file;
}

/* ---- sessions ---- */

session *api_session(const weft_session *s)
{
    return s->run;
}

static dtype kv_type(const weft_session_options *o)
{
    static const dtype types[] = {
        [WEFT_KV_F32] = DT_F32, [WEFT_KV_F16] = DT_F16, [WEFT_KV_BF16] = DT_BF16};
    if (o->kv == WEFT_KV_AUTO)
        return o->exec == WEFT_EXEC_REF ? DT_F32 : DT_F16;
    return types[o->kv];
}

static weft_status session_plan(weft_diag *dg, const weft_model *m, const weft_session_options *o,
                                int64_t context, bool watched, weft_session *s)
{
    static const char *const logits[] = {"logits"};
    /* Matrices that are split afterwards, and rows that nobody asked for. */
    static const char *const cutting[] = {"simplify", "take_rows"};
    int64_t n_seq = o->sequences ? o->sequences : 1;
    int64_t n_tok = o->batch ? o->batch : context < BATCH_DEFAULT ? context : BATCH_DEFAULT;
    target t = {.n_ctx = context,
                .n_seq = n_seq,
                .n_tok_max = n_tok,
                .n_out_max = o->wants < n_tok ? o->wants : n_tok,
                .kv = kv_type(o),
                .outputs = o->n_output > 0 ? o->outputs : logits,
                .n_output = o->n_output > 0 ? o->n_output : 1,
                .may_fork = n_seq > 1,
                .deterministic = o->deterministic,
                .round_bf16 = o->round_bf16,
                .open = watched,
                .skip = cutting,
                .n_skip = watched ? 2 : 0};
    plan *p;
    if (o->round_bf16 && o->exec == WEFT_EXEC_REF)
        return weft_fail(dg, W1603, WEFT_NOWHERE, "the reference rounds nothing");
    if (o->exec == WEFT_EXEC_PLAN)
        WEFT_TRY((o->round_bf16 ? target_best_rounding : target_best)(dg, &t.best));
    const graph *g = m->bound->graph;
    if (m->bound->context_asked) {
        bind_options how = {.context = context, .like = m->bound};
        WEFT_TRY(model_bind(dg, m->file, &how, &s->bound));
        g = s->bound->graph;
    }
    WEFT_TRY(plan_make(dg, g, &t, NULL, s->a, &p));
    session_options run = {.n_ctx = context,
                           .n_seq = n_seq,
                           .threads = (int)o->threads,
                           .keep_packed = !o->no_pack_cache,
                           .progress = {o->progress, o->progress_ctx}};
    return session_create(dg, p, m->file, &run, &s->run);
}

/* "logits", "resid" for any index of it, "resid.3" for one. */
static bool plan_has_output(const plan *p, const char *want)
{
    char name[96];
    for (int32_t i = 0; i < p->n_output; i++) {
        const plan_output *o = &p->output[i];
        snprintf(name, sizeof name, "%s.%d", o->name, (int)o->index);
        if (strcmp(o->name, want) == 0 || (o->index >= 0 && strcmp(name, want) == 0))
            return true;
    }
    return false;
}

static weft_status session_plan_file(weft_diag *dg, const weft_model *m,
                                     const weft_session_options *o, int64_t context,
                                     weft_session *s)
{
    plan *p;
    WEFT_TRY(plan_read_file(dg, o->plan, model_file_hash(m->file), s->a, &p));
    for (int i = 0; i < o->n_output; i++)
        if (!plan_has_output(p, o->outputs[i]))
            return weft_fail(dg, W0201, WEFT_NOWHERE, "the plan %s has no output '%s'", o->plan,
                             o->outputs[i]);
    if (p->n_ctx > 0 && context > p->n_ctx)
        return weft_fail(dg, W1406, WEFT_NOWHERE,
                         "the plan %s is for sequences of %lld tokens, %lld were asked for",
                         o->plan, (long long)p->n_ctx, (long long)context);
    if (o->batch > p->n_tok_max)
        return weft_fail(dg, W1406, WEFT_NOWHERE,
                         "the plan %s takes %lld rows in a call, %lld were asked for", o->plan,
                         (long long)p->n_tok_max, (long long)o->batch);
    session_options run = {.n_ctx = context,
                           .n_seq = o->sequences ? o->sequences : 1,
                           .threads = (int)o->threads,
                           .keep_packed = !o->no_pack_cache,
                           .progress = {o->progress, o->progress_ctx}};
    return session_create(dg, p, m->file, &run, &s->run);
}

static weft_status create_session(weft_diag *dg, const weft_model *m,
                                  const weft_session_options *options, bool watched,
                                  weft_session **out_session)
{
    static const weft_session_options plain = {0};
    options = options ? options : &plain;
    if (!dg || !m || !out_session)
        return call_lacks(dg, "weft_session_create", "a model");
    for (int i = 0; i < options->n_output; i++)
        if (!options->outputs || !options->outputs[i])
            return call_lacks(dg, "weft_session_create", "the names of its outputs");
    if ((unsigned)options->exec > WEFT_EXEC_REF || (unsigned)options->kv > WEFT_KV_BF16)
        return weft_fail(dg, W1406, WEFT_NOWHERE, "no executor %d, or no storage %d for state",
                         (int)options->exec, (int)options->kv);
    int64_t context = options->context, trained;
    if (context == 0 && bound_model_int(m->bound, "ctx", &trained))
        context = trained;
    if (context < 1 || context > INT32_MAX || options->batch < 0 || options->sequences < 0 ||
        options->wants < 0 || options->threads < 0 || options->threads > 4096)
        return weft_fail(dg, W1406, WEFT_NOWHERE,
                         "a session of %lld tokens, %lld sequences, %lld rows a call and %lld "
                         "threads is out of range",
                         (long long)context, (long long)options->sequences,
                         (long long)options->batch, (long long)options->threads);
    weft_session *s = mem_alloc(sizeof *s);
    *s = (weft_session){.a = arena_create(), .n_seq = options->sequences ? options->sequences : 1};
    weft_status st = options->plan ? session_plan_file(dg, m, options, context, s)
                                   : session_plan(dg, m, options, context, watched, s);
    if (st == WEFT_OK)
        *out_session = s;
    else
        weft_session_destroy(s);
    return st;
}

weft_status weft_session_create(weft_diag *dg, const weft_model *m,
                                const weft_session_options *options, weft_session **out_session)
{
    return create_session(dg, m, options, false, out_session);
}

weft_status api_session_create_watched(weft_diag *dg, const weft_model *m,
                                       const weft_session_options *options,
                                       weft_session **out_session)
{
    return create_session(dg, m, options, true, out_session);
}

void weft_session_destroy(weft_session *s)
{
    if (!s)
        return;
    session_destroy(s->run);
    bound_model_destroy(s->bound);
    arena_destroy(s->a);
    mem_free(s);
}

uint64_t weft_session_bytes(const weft_session *s)
{
    session_memory b = session_bytes(s->run);
    return (uint64_t)b.weights_copied + b.arena + b.state + b.scratch + b.tables;
}

weft_status weft_eval(weft_diag *dg, weft_session *s, const weft_row *rows, int64_t n)
{
    _Static_assert(sizeof(weft_row) == sizeof(batch_row) &&
                       offsetof(weft_row, pos) == offsetof(batch_row, pos) &&
                       offsetof(weft_row, seq) == offsetof(batch_row, seq) &&
                       offsetof(weft_row, slot) == offsetof(batch_row, slot) &&
                       offsetof(weft_row, want) == offsetof(batch_row, out),
                   "a public row is a batch row");
    if (!dg || !s || (!rows && n > 0))
        return call_lacks(dg, "weft_eval", "a session or rows");
    return session_eval(dg, s->run, (const batch_row *)rows, n);
}

weft_status weft_output(weft_diag *dg, const weft_session *s, const char *name, int index,
                        weft_view *out_view)
{
    if (!dg || !s || !name || !out_view)
        return call_lacks(dg, "weft_output", "a session or a name");
    weft_view v;
    if (!session_output(s->run, name, index, &v.data, &v.rows, &v.width))
        return weft_fail(dg, W1406, WEFT_NOWHERE, "there is no output %s%s of a call that has run",
                         name, index < 0 ? "" : " with this index");
    *out_view = v;
    return WEFT_OK;
}

int64_t weft_length(const weft_session *s, int64_t seq)
{
    return seq >= 0 && seq < s->n_seq ? session_length(s->run, seq) : -1;
}

weft_status weft_truncate(weft_diag *dg, weft_session *s, int64_t seq, int64_t length)
{
    if (!dg || !s)
        return call_lacks(dg, "weft_truncate", "a session");
    return session_truncate(dg, s->run, seq, length);
}

weft_status weft_fork(weft_diag *dg, weft_session *s, int64_t from, int64_t to, int64_t length)
{
    if (!dg || !s)
        return call_lacks(dg, "weft_fork", "a session");
    return session_fork(dg, s->run, from, to, length);
}
