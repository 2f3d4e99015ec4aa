/* api_session.c - the public interface: sessions, and rows of tokens evaluated in them. */
#include "runtime/api/api_impl.h"

#include "compiler/plan_file.h"
#include "compiler/plan_make.h"
#include "runtime/base/mem.h"
#include "runtime/base/threads.h"

enum { BATCH_DEFAULT = 512 };

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

static bool in_range(const weft_session_options *o)
{
    return o->context >= 1 && o->context <= INT32_MAX && o->batch >= 0 && o->batch <= INT32_MAX &&
           o->sequences >= 0 && o->wants >= 0 && o->threads >= -1 && o->threads <= 4096 &&
           o->page_tokens >= 0 && o->pages >= 0 && (unsigned)o->exec <= WEFT_EXEC_REF &&
           (unsigned)o->kv <= WEFT_KV_BF16;
}

static int64_t rows_of_call(const weft_session_options *o, int64_t context)
{
    return target_rows(o->batch ? o->batch : BATCH_DEFAULT, context,
                       o->sequences ? o->sequences : 1);
}

static session_options run_options(const weft_session_options *o, int64_t context)
{
    return (session_options){.n_ctx = context,
                             .n_seq = o->sequences ? o->sequences : 1,
                             .page_tok = o->page_tokens,
                             .n_page = o->pages,
                             .threads = (int)o->threads,
                             .bytes_max = (size_t)o->max_bytes,
                             .cache_dir = o->cache_dir,
                             .cache_bytes_max = o->cache_bytes,
                             .use_cache = !o->no_weight_cache,
                             .cancel = o->cancel ? &o->cancel->flag : NULL,
                             .progress = {o->progress, o->progress_ctx}};
}

uint64_t api_state_bytes(const weft_model *m, const weft_session_options *o)
{
    session_options run = run_options(o, o->context);
    arena *a = arena_create();
    weft_diag *quiet = diag_create();
    target t = {.best = o->exec == WEFT_EXEC_REF ? VARIANT_ref : VARIANT_c,
                .n_ctx = o->context,
                .n_seq = run.n_seq,
                .n_tok_max = rows_of_call(o, o->context),
                .may_fork = run.n_seq > 1};
    plan_cell *cells;
    state *st;
    plan p = {.n_cell = plan_cells(m->bound->graph, &t, a, &cells), .n_tok_max = t.n_tok_max};
    p.cell = cells;
    state_options how = {.n_seq = run.n_seq,
                         .n_ctx = run.n_ctx,
                         .page_tok = run.page_tok,
                         .n_page = run.n_page,
                         .type = kv_type(o)};
    uint64_t bytes = UINT64_MAX;
    if (state_create(quiet, &p, &how, &st) == WEFT_OK) {
        bytes = state_bytes(st);
        state_destroy(st);
    }
    diag_destroy(quiet);
    arena_destroy(a);
    return bytes;
}

uint64_t weft_state_bytes(const weft_model *m, const weft_session_options *options)
{
    API_SCOPE_OR(UINT64_MAX);
    weft_session_options o;
    weft_diag *quiet = diag_create();
    bool fine = m && api_take(quiet, "weft_state_bytes", options, &o, sizeof o) == WEFT_OK;
    diag_destroy(quiet);
    if (fine && o.context == 0)
        o.context = weft_model_context(m);
    return fine && in_range(&o) ? api_state_bytes(m, &o) : UINT64_MAX;
}

static weft_status session_plan(weft_diag *dg, const weft_model *m, const weft_session_options *o,
                                int64_t context, bool watched, weft_session *s)
{
    static const char *const logits[] = {"logits"};
    /* Matrices that are split afterwards, and rows that nobody asked for. */
    static const char *const cutting[] = {"simplify", "take_rows"};
    int64_t n_seq = o->sequences ? o->sequences : 1;
    int64_t n_tok = rows_of_call(o, context);
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
                .as_stored = o->no_repack,
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
    session_options run = run_options(o, context);
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
    if (o->batch && rows_of_call(o, context) > p->n_tok_max)
        return weft_fail(dg, W1406, WEFT_NOWHERE,
                         "the plan %s takes %lld rows in a call, %lld were asked for", o->plan,
                         (long long)p->n_tok_max, (long long)o->batch);
    session_options run = run_options(o, context);
    return session_create(dg, p, m->file, &run, &s->run);
}

static weft_status create_session(weft_diag *dg, const weft_model *m,
                                  const weft_session_options *given, bool watched,
                                  weft_session **out_session)
{
    if (!dg || !m || !out_session)
        return api_lacks(dg, "weft_session_create", "a model");
    weft_session_options taken, *options = &taken;
    WEFT_TRY(api_take(dg, "weft_session_create", given, &taken, sizeof taken));
    for (int i = 0; i < options->n_output; i++)
        if (!options->outputs || !options->outputs[i])
            return api_lacks(dg, "weft_session_create", "the names of its outputs");
    if ((unsigned)options->exec > WEFT_EXEC_REF || (unsigned)options->kv > WEFT_KV_BF16)
        return weft_fail(dg, W1406, WEFT_NOWHERE, "no executor %d, or no storage %d for state",
                         (int)options->exec, (int)options->kv);
    if (taken.threads == -1)
        taken.threads = threads_default();
    int64_t context = taken.context ? taken.context : weft_model_context(m);
    taken.context = context;
    if (!in_range(options))
        return weft_fail(dg, W1406, WEFT_NOWHERE,
                         "a session of %lld tokens, %lld sequences, %lld rows a call and %lld "
                         "threads is out of range",
                         (long long)context, (long long)options->sequences,
                         (long long)options->batch, (long long)options->threads);
    bound_model_check_context(dg, m->bound, context);
    weft_session *s = mem_alloc(sizeof *s);
    *s = (weft_session){.a = arena_create(), .threads = options->threads ? options->threads : 1};
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
    API_SCOPE(dg);
    return create_session(dg, m, options, false, out_session);
}

weft_status api_session_create_watched(weft_diag *dg, const weft_model *m,
                                       const weft_session_options *options,
                                       weft_session **out_session)
{
    API_SCOPE(dg);
    return create_session(dg, m, options, true, out_session);
}

void weft_session_destroy(weft_session *s)
{
    if (!s)
        return;
    engine_deinit(&s->text);
    session_destroy(s->run);
    bound_model_destroy(s->bound);
    arena_destroy(s->a);
    mem_free(s);
}

weft_status weft_session_about(weft_diag *dg, const weft_session *s, weft_session_info *info)
{
    API_SCOPE(dg);
    if (!dg || !s || !info)
        return api_lacks(dg, "weft_session_about", "a session");
    session_limits most = session_most(s->run);
    session_memory b = session_bytes(s->run);
    const plan *p = session_plan_of(s->run);
    weft_session_info all = {.size = info->size,
                             .context = most.context,
                             .sequences = most.sequences,
                             .batch = most.batch,
                             .wants = most.wants,
                             .threads = s->threads,
                             .page_tokens = most.page_tok,
                             .pages = most.pages,
                             .pages_free = most.pages_free,
                             .weights_mapped = b.weights_mapped,
                             .weights_cached = b.weights_cached,
                             .weights_copied = b.weights_copied,
                             .weights_interleaved = b.weights_interleaved,
                             .activations = b.arena,
                             .state = b.state,
                             .scratch = b.scratch,
                             .tables = b.tables};
    for (int32_t i = 0; i < p->n_output; i++)
        if (strcmp(p->output[i].name, "logits") == 0 && p->output[i].index < 0)
            all.vocab = p->output[i].width;
    if (info->size < sizeof info->size)
        return weft_fail(dg, W1904, WEFT_NOWHERE,
                         "weft_session_about: the size is %zu; set it to the sizeof", info->size);
    api_give(info, &all, sizeof all);
    return WEFT_OK;
}

uint64_t weft_session_bytes(const weft_session *s)
{
    session_memory m = session_bytes(s->run);
    return session_memory_own(&m);
}

weft_status weft_eval(weft_diag *dg, weft_session *s, const weft_row *rows, int64_t n)
{
    API_SCOPE(dg);
    _Static_assert(sizeof(weft_row) == sizeof(batch_row) &&
                       offsetof(weft_row, pos) == offsetof(batch_row, pos) &&
                       offsetof(weft_row, seq) == offsetof(batch_row, seq) &&
                       offsetof(weft_row, slot) == offsetof(batch_row, slot) &&
                       offsetof(weft_row, want) == offsetof(batch_row, out),
                   "a public row is a batch row");
    if (!dg || !s || (!rows && n > 0))
        return api_lacks(dg, "weft_eval", "a session or rows");
    return session_eval(dg, s->run, (const batch_row *)rows, n);
}

weft_status weft_output(weft_diag *dg, const weft_session *s, const char *name, int index,
                        weft_view *out_view)
{
    API_SCOPE(dg);
    if (!dg || !s || !name || !out_view)
        return api_lacks(dg, "weft_output", "a session or a name");
    weft_view v;
    if (!session_output(s->run, name, index, &v.data, &v.rows, &v.width))
        return weft_fail(dg, W1406, WEFT_NOWHERE, "there is no output %s%s of a call that has run",
                         name, index < 0 ? "" : " with this index");
    *out_view = v;
    return WEFT_OK;
}

int64_t weft_length(const weft_session *s, int64_t seq)
{
    return seq >= 0 && seq < session_most(s->run).sequences ? session_length(s->run, seq) : -1;
}

weft_status weft_truncate(weft_diag *dg, weft_session *s, int64_t seq, int64_t length)
{
    API_SCOPE(dg);
    if (!dg || !s)
        return api_lacks(dg, "weft_truncate", "a session");
    return session_truncate(dg, s->run, seq, length);
}

weft_status weft_fork(weft_diag *dg, weft_session *s, int64_t from, int64_t to, int64_t length)
{
    API_SCOPE(dg);
    if (!dg || !s)
        return api_lacks(dg, "weft_fork", "a session");
    return session_fork(dg, s->run, from, to, length);
}
