/* api_session.c - the public interface: sessions, and rows of tokens evaluated in them. */
#include "runtime/api/api_impl.h"

#include "runtime/base/mem.h"
#include "runtime/kv/policy.h"

uint64_t api_state_bytes(const weft_model *m, const weft_session_options *o)
{
    api_wanted w = {.how = *o};
    session_options run = api_run_options(&w);
    arena *a = arena_create();
    weft_diag *quiet = diag_create();
    uint64_t bytes = UINT64_MAX;
    plan p;
    if (m->kind->cells(quiet, m, &w, a, &p) == WEFT_OK) {
        state *st;
        state_options how = {.n_seq = run.n_seq,
                             .n_ctx = run.n_ctx,
                             .page_tok = run.page_tok,
                             .n_page = run.n_page,
                             .n_prefix = run.n_prefix,
                             .type = p.kv,
                             .kv = p.tiers.n_tier ? &p.tiers : NULL};
        if (state_create(quiet, &p, &how, &st) == WEFT_OK) {
            bytes = state_bytes(st);
            state_destroy(st);
        }
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
        o.context = m->context;
    return fine && api_in_range(&o) ? api_state_bytes(m, &o) : UINT64_MAX;
}

static weft_status create_session(weft_diag *dg, const weft_model *m,
                                  const weft_session_options *given, bool watched,
                                  weft_session **out_session)
{
    if (!dg || !m || !out_session)
        return api_lacks(dg, "weft_session_create", "a model");
    api_wanted w = {.watched = watched};
    WEFT_TRY(api_take(dg, "weft_session_create", given, &w.how, sizeof w.how));
    for (int i = 0; i < w.how.n_output; i++)
        if (!w.how.outputs || !w.how.outputs[i])
            return api_lacks(dg, "weft_session_create", "the names of its outputs");
    weft_session *s = mem_alloc(sizeof *s);
    *s = (weft_session){.model = m->kind->hash(m)};
    weft_status st = api_plan_open(dg, m, &w, &s->plan);
    if (st == WEFT_OK)
        st = session_create(dg, s->plan.p, m->weights, &s->plan.run, &s->run);
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
    chooser_deinit(&s->pick);
    session_destroy(s->run);
    api_plan_close(&s->plan);
    mem_free(s);
}

weft_status weft_session_about(weft_diag *dg, const weft_session *s, weft_session_info *info)
{
    API_SCOPE(dg);
    if (!dg || !s || !info)
        return api_lacks(dg, "weft_session_about", "a session");
    session_settle(s->run); /* pages that only a call under way has are free */
    session_limits most = session_most(s->run);
    session_memory b = session_bytes(s->run);
    prefix_stats had = session_prefix_stats(s->run);
    const plan *p = s->plan.p;
    weft_session_info all = {.size = info->size,
                             .context = most.context,
                             .sequences = most.sequences,
                             .batch = most.batch,
                             .wants = most.wants,
                             .threads = s->plan.run.threads,
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
                             .tables = b.tables,
                             .lora_slots = p->lora_slots,
                             .lora_rank = p->lora_slots > 0 ? p->lora_rank : 0,
                             .adapters = b.adapters,
                             .prefixes = had.room,
                             .prefixes_used = had.used,
                             .prefix_pages = had.pages,
                             .prefix_bytes = had.bytes,
                             .prefix_lookups = had.lookups,
                             .prefix_hits = had.hits,
                             .prefix_tokens = had.tokens,
                             .prefix_tokens_saved = had.tokens_saved,
                             .prefix_evicted = had.evicted,
                             .device =
                                 s->plan.run.parts ? s->plan.run.dev->kind->beside_cpu : p->backend,
                             .host = b.host,
                             .images = session_images(s->run),
                             .tokens_on_device = session_chosen_count(s->run)};
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
    if (!s)
        return 0;
    session_memory m = session_bytes(s->run);
    return session_memory_own(&m) + m.host;
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
    return s && seq >= 0 && seq < session_most(s->run).sequences ? session_length(s->run, seq) : -1;
}

weft_status weft_truncate(weft_diag *dg, weft_session *s, int64_t seq, int64_t length)
{
    API_SCOPE(dg);
    if (!dg || !s)
        return api_lacks(dg, "weft_truncate", "a session");
    return session_truncate(dg, s->run, seq, length);
}

int64_t weft_kv_tiers(const weft_session *s, weft_kv_tier *tiers, int64_t n_max)
{
    enum { SOME = 64 };
    session_tier all[SOME];
    if (!s)
        return 0;
    session_settle(s->run);
    int32_t n = session_tiers(s->run, all, SOME);
    for (int32_t i = 0; tiers && i < n && i < SOME && i < n_max; i++)
        tiers[i] = (weft_kv_tier){.keys = kform_name(all[i].tier.key),
                                  .values = kform_name(all[i].tier.value),
                                  .last = all[i].tier.last == KPOLICY_REST ? -1 : all[i].tier.last,
                                  .page_tokens = all[i].page_tok,
                                  .pages = all[i].pages,
                                  .pages_free = all[i].pages_free,
                                  .page_bytes = all[i].page_bytes,
                                  .bytes = (uint64_t)all[i].pages * all[i].page_bytes};
    return n;
}

weft_status weft_kv_change(weft_diag *dg, weft_session *s, const char *policy)
{
    API_SCOPE(dg);
    if (!dg || !s || !policy)
        return api_lacks(dg, "weft_kv_change", "a session and a policy");
    kpolicy p;
    WEFT_TRY(policy_parse(dg, "KV policy", str_of(policy), &p));
    return session_kv_change(dg, s->run, &p);
}

weft_status weft_fork(weft_diag *dg, weft_session *s, int64_t from, int64_t to, int64_t length)
{
    API_SCOPE(dg);
    if (!dg || !s)
        return api_lacks(dg, "weft_fork", "a session");
    return session_fork(dg, s->run, from, to, length);
}

void weft_prefixes_drop(weft_session *s)
{
    if (s)
        session_prefix_clear(s->run);
}

weft_status weft_sequence_save(weft_diag *dg, weft_session *s, int64_t seq, const int32_t *ids,
                               int64_t n, const char *path)
{
    API_SCOPE(dg);
    if (!dg || !s || (!ids && n > 0) || !path)
        return api_lacks(dg, "weft_sequence_save", "a session, ids or a path");
    session_text text = {.ids = (int32_t *)ids, .n = n}; /* which are only read */
    return session_save(dg, s->run, seq, session_lora_key(s->run, seq), &text, path);
}

weft_status weft_sequence_load(weft_diag *dg, weft_session *s, int64_t seq, const char *path,
                               int32_t **out_ids, int64_t *out_n)
{
    API_SCOPE(dg);
    if (!dg || !s || !path || !out_ids || !out_n)
        return api_lacks(dg, "weft_sequence_load", "a session, a path or a place for its ids");
    session_text text;
    WEFT_TRY(session_load(dg, s->run, seq, session_lora_key(s->run, seq), path, &text));
    *out_ids = text.ids;
    *out_n = text.n;
    return WEFT_OK;
}

weft_status weft_append_range(weft_diag *dg, weft_session *s, int64_t from, int64_t to,
                              int64_t begin, int64_t end)
{
    API_SCOPE(dg);
    if (!dg || !s)
        return api_lacks(dg, "weft_append_range", "a session");
    return session_append_range(dg, s->run, from, to, begin, end);
}

weft_status weft_remove_range(weft_diag *dg, weft_session *s, int64_t seq, int64_t begin,
                              int64_t end, bool *out_exact)
{
    API_SCOPE(dg);
    if (!dg || !s || !out_exact)
        return api_lacks(dg, "weft_remove_range", "a session or a place for its answer");
    return session_remove_range(dg, s->run, seq, begin, end, out_exact);
}
