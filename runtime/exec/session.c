/* session.c - what a call goes through: check the rows, reserve pages, run, commit. */
#include "runtime/exec/session.h"
#include "runtime/exec/session_parts.h"

#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"
#include <inttypes.h>

struct session {
    const plan *p;
    const weight_source *src; /* NULL: the weights are the caller's */
    device *dev;
    weights *own; /* NULL when the caller's are used */
    const weights *w;
    state *st;
    prefix_cache *prefixes; /* NULL: none are kept */
    void *cells;            /* the state's memory, of the device */
    batch *b;
    adapters *lora;          /* NULL: the plan has no slots */
    const code_maker *maker; /* NULL: none */
    const plan_code *code;
    void *code_own;
    exec *e;
    float *outputs; /* copies of them, where the host cannot read the device's memory; else NULL */
    bool has_run;
    int64_t rows[ROWS_FIXED]; /* of the last successful call, by plan_rows */
};

static int thread_count(const session_options *opt)
{
    return opt->threads ? opt->threads : 1;
}

/* A session that has its tables and nothing big yet. */
static weft_status open_tables(weft_diag *dg, const plan *p, const session_options *opt,
                               session *out_s)
{
    session s = {.p = p, .w = opt->w, .dev = opt->dev, .maker = opt->maker};
    if (!s.dev)
        s.dev = opt->w ? opt->w->dev : device_cpu();
    WEFT_ASSERT(!opt->w || opt->w->dev == s.dev);
    state_options st = {.n_seq = opt->n_seq ? opt->n_seq : 1,
                        .n_ctx = opt->n_ctx,
                        .page_tok = opt->page_tok,
                        .n_page = opt->n_page,
                        .n_prefix = opt->n_prefix,
                        .type = p->kv,
                        .kv = p->tiers.n_tier ? &p->tiers : NULL};
    WEFT_TRY(state_create(dg, p, &st, &s.st));
    s.b = batch_create(p, s.st);
    if (opt->n_prefix > 0)
        s.prefixes = prefix_cache_create(s.st);
    if (p->lora_slots > 0) {
        s.lora = adapters_create(p, s.dev, st.n_seq);
        batch_use(s.b, s.lora);
    }
    *out_s = s;
    return WEFT_OK;
}

static weights_options weights_how(const session_options *opt)
{
    return (weights_options){.threads = thread_count(opt),
                             .use_cache = opt->use_cache,
                             .cache_dir = opt->cache_dir,
                             .cache_bytes_max = opt->cache_bytes_max,
                             .check_cache = opt->check_cache,
                             .cancel = opt->cancel,
                             .progress = opt->progress};
}

static device_load load_how(const session *s, const session_options *opt)
{
    return (device_load){.p = s->p,
                         .lora = s->lora ? adapters_view(s->lora) : NULL,
                         .batch_bytes = batch_view_bytes(s->b),
                         .threads = thread_count(opt),
                         .pin = opt->pin,
                         .cancel = opt->cancel,
                         .for_code = s->maker != NULL,
                         .code = s->code};
}

/* Rows that an output has at most. */
static int64_t rows_max(const plan *p, const plan_output *o)
{
    int64_t n_seq = p->n_seq_max < p->n_tok_max ? p->n_seq_max : p->n_tok_max;
    const int64_t most[] = {p->n_tok_max, p->n_out_max, n_seq, o->n_row};
    return most[o->rows];
}

/* What copies of all outputs take. */
static size_t output_bytes(const session *s)
{
    size_t bytes = 0;
    for (int32_t i = 0; i < s->p->n_output && !s->dev->kind->host_memory; i++)
        bytes += (size_t)(rows_max(s->p, &s->p->output[i]) * s->p->output[i].width) * sizeof(float);
    return bytes;
}

static weft_status copy_cells(void *ctx, weft_diag *dg, void *to, const void *from, size_t bytes)
{
    device *d = ctx;
    return d->kind->copy(dg, d, to, from, bytes);
}

static weft_status take_outputs(weft_diag *dg, session *s)
{
    const device_kind *kind = s->dev->kind;
    size_t bytes = output_bytes(s);
    void *p = NULL;
    if (bytes && kind->host_alloc)
        WEFT_TRY(kind->host_alloc(dg, s->dev, bytes, &p));
    else if (bytes)
        p = mem_alloc(bytes);
    s->outputs = p;
    return WEFT_OK;
}

static void free_outputs(session *s)
{
    if (s->dev->kind->host_free)
        s->dev->kind->host_free(s->dev, s->outputs);
    else
        mem_free(s->outputs);
}

static weft_status open_parts(weft_diag *dg, session *s, const weight_source *src,
                              const session_options *opt, size_t interleaved_max)
{
    WEFT_TRY(s->dev->kind->alloc(dg, s->dev, state_bytes(s->st), &s->cells));
    state_bind(s->st, s->cells, copy_cells, s->dev);
    WEFT_TRY(take_outputs(dg, s));
    if (!s->w) {
        weights_options how = weights_how(opt);
        how.interleaved_max = interleaved_max;
        WEFT_TRY(weights_create(dg, s->dev, s->p, src, &how, &s->own));
        s->w = s->own;
    }
    if (s->maker) {
        code_options how = {.use_cache = opt->use_cache, .cache_dir = opt->cache_dir};
        WEFT_TRY(s->maker->make(dg, s->p, &how, &s->code, &s->code_own));
    }
    device_load what = load_how(s, opt);
    if (s->lora) {
        WEFT_TRY(adapters_bind(dg, s->lora));
        what.slots = adapters_memory(s->lora);
    }
    what.w = s->w;
    what.cells = state_cells(s->st);
    return s->dev->kind->load(dg, s->dev, &what, &s->e);
}

static void close_parts(session *s)
{
    s->dev->kind->unload(s->e);
    if (s->maker)
        s->maker->release(s->code_own);
    batch_destroy(s->b);
    prefix_cache_destroy(s->prefixes);
    adapters_destroy(s->lora);
    state_destroy(s->st);
    s->dev->kind->free(s->dev, s->cells);
    weights_destroy(s->own);
    free_outputs(s);
}

/* ---- memory ---- */

static size_t prefix_bytes(const session *s)
{
    return s->prefixes ? prefix_cache_bytes(s->prefixes) : 0;
}

/* Of a session whose tables are open, on a device that takes m and, where they are its own, for weights w. */
static session_memory sum_up(const session *s, const device_memory *m, const weights_memory *w)
{
    size_t tables = state_table_bytes(s->st) + batch_bytes(s->b) + output_bytes(s) +
                    prefix_bytes(s) + sizeof *s + (s->lora ? adapters_table_bytes(s->lora) : 0);
    const bool apart = !s->dev->kind->host_memory;
    return (session_memory){.weights_mapped = w->mapped,
                            .weights_copied = w->copied,
                            .weights_cached = w->cached,
                            .weights_interleaved = w->interleaved,
                            .arena = m->arena,
                            .state = state_bytes(s->st),
                            .adapters = s->lora ? adapters_bytes(s->lora) : 0,
                            .scratch = m->scratch,
                            .tables = m->tables + w->tables + (apart ? 0 : tables),
                            .host = apart ? m->host + w->host + tables : 0};
}

session_memory session_bytes(const session *s)
{
    device_memory m;
    weights_memory w = {0};
    s->dev->kind->bytes(s->e, &m);
    if (s->own)
        w = weights_bytes(s->own);
    return sum_up(s, &m, &w);
}

static weft_status need_of(weft_diag *dg, const session *s, const weight_source *src,
                           const session_options *opt, session_memory *out_m)
{
    device_memory m;
    weights_memory w = {0};
    weights_options how = weights_how(opt);
    device_load what = load_how(s, opt);
    WEFT_TRY(s->dev->kind->need(dg, s->dev, &what, &m));
    if (!opt->w)
        w = weights_need(s->dev, s->p, src, &how);
    *out_m = sum_up(s, &m, &w);
    return WEFT_OK;
}

weft_status session_need(weft_diag *dg, const plan *p, const weight_source *src,
                         const session_options *opt, session_memory *out_m)
{
    session s;
    WEFT_TRY(open_tables(dg, p, opt, &s));
    weft_status status = need_of(dg, &s, src, opt, out_m);
    close_parts(&s);
    return status;
}

size_t session_memory_sum(const session_memory *m)
{
    return m->weights_mapped + m->weights_cached + session_memory_own(m);
}

size_t session_memory_own(const session_memory *m)
{
    return m->weights_copied + m->weights_interleaved + m->arena + m->state + m->adapters +
           m->scratch + m->tables;
}

/* It takes `all` bytes and `most` are there. */
static weft_status refuse(weft_diag *dg, const session_memory *m, uint64_t all, uint64_t most,
                          const char *within)
{
    weft_status status =
        weft_fail(dg, W0902, WEFT_NOWHERE,
                  "the session takes %" PRIu64 " bytes, %" PRIu64 " more than the %" PRIu64
                  " available %s: it does not fit by %.1f MiB",
                  all, all - most, most, within, (double)(all - most) / (1 << 20));
    weft_note(dg, "weights %zu, state %zu, activations %zu, threads %zu, tables %zu",
              m->weights_mapped + m->weights_cached + m->weights_copied + m->weights_interleaved,
              m->state, m->arena, m->scratch, m->tables);
    if (m->host > 0)
        weft_note(dg, "these are of the device; beside them %zu bytes of the host", m->host);
    if (m->adapters > 0)
        weft_note(dg, "slots for adapters %zu", m->adapters);
    if (m->weights_interleaved > 0)
        weft_note(dg,
                  "%zu bytes of weights are repacked in memory, since no file of the weight cache "
                  "holds them; with no_repack they are used as the model file has them",
                  m->weights_interleaved);
    weft_note(dg, "%s", diag_row_of(W0902)->hint);
    return status;
}

/* The system hands out more than there is and ends the process when it is used; so what cannot fit is
 * refused here. What is mapped from files may be larger than memory: it is read again when it is needed.
 * Should the interleaved weights come to lie in memory after all, out_interleaved_max is the room for them. */
static weft_status check_need(weft_diag *dg, const session *s, const weight_source *src,
                              const session_options *opt, size_t *out_interleaved_max)
{
    session_memory m;
    memory_room room;
    WEFT_TRY(need_of(dg, s, src, opt, &m));
    uint64_t all = session_memory_sum(&m), own = session_memory_own(&m);
    *out_interleaved_max = 0;
    if (opt->bytes_max)
        return all <= opt->bytes_max ? WEFT_OK
                                     : refuse(dg, &m, all, opt->bytes_max, "by its options");
    WEFT_TRY(s->dev->kind->room(dg, s->dev, &room));
    if (own > room.bytes)
        return refuse(dg, &m, own, room.bytes, room.within);
    uint64_t left = room.bytes - own + m.weights_interleaved;
    *out_interleaved_max = left < SIZE_MAX ? (size_t)left : SIZE_MAX;
    room = memory_available("");
    if (m.host > room.bytes)
        return refuse(dg, &m, m.host, room.bytes, room.within);
    room = memory_mappable("");
    if (s->dev->kind->host_memory && own + m.weights_cached > room.bytes)
        return refuse(dg, &m, own + m.weights_cached, room.bytes, room.within);
    return WEFT_OK;
}

/* ---- opening and closing ---- */

weft_status session_create(weft_diag *dg, const plan *p, const weight_source *src,
                           const session_options *opt, session **out_s)
{
    session *s = mem_alloc(sizeof *s);
    weft_status status = open_tables(dg, p, opt, s);
    if (status != WEFT_OK) {
        mem_free(s);
        return status;
    }
    s->src = src;
    size_t interleaved_max;
    status = check_need(dg, s, src, opt, &interleaved_max);
    if (status == WEFT_OK)
        status = open_parts(dg, s, src, opt, interleaved_max);
    if (status == WEFT_OK)
        *out_s = s;
    else
        session_destroy(s);
    return status;
}

void session_destroy(session *s)
{
    if (!s)
        return;
    close_parts(s);
    mem_free(s);
}

session_parts session_parts_of(session *s)
{
    return (session_parts){
        .p = s->p, .src = s->src, .dev = s->dev, .st = s->st, .prefixes = s->prefixes};
}

session_limits session_most(const session *s)
{
    session_limits most = {.context = state_context(s->st),
                           .sequences = state_count(s->st),
                           .batch = s->p->n_tok_max,
                           .wants = s->p->n_out_max,
                           .call_sequences = s->p->n_seq_max};
    int32_t paged = state_paged_table(s->st);
    if (paged >= 0) {
        most.page_tok = state_page_tokens(s->st, paged);
        most.pages = state_pages_count(s->st, paged);
        most.pages_free = state_pages_free(s->st, paged);
    }
    return most;
}

int32_t session_tiers(const session *s, session_tier *out, int32_t n_max)
{
    int32_t n = state_tables(s->st);
    for (int32_t i = 0; i < n && i < n_max; i++)
        out[i] = (session_tier){.tier = state_table_tier(s->st, i),
                                .page_tok = state_page_tokens(s->st, i),
                                .pages = state_pages_count(s->st, i),
                                .pages_free = state_pages_free(s->st, i),
                                .page_bytes = state_page_bytes(s->st, i)};
    return n;
}

weft_status session_kv_change(weft_diag *dg, session *s, const kpolicy *kv)
{
    WEFT_TRY(state_change(dg, s->st, kv));
    session_prefix_clear(s);
    return WEFT_OK;
}

/* ---- calls ---- */

/* Rows of output i of the last call, and where it is in the arena. */
static int64_t output_rows(const session *s, int32_t i)
{
    const plan_output *o = &s->p->output[i];
    return o->rows == ROWS_FIXED ? o->n_row : s->rows[o->rows];
}

static size_t output_at(const session *s, int32_t i)
{
    const plan_operand *o = &plan_bucket_for(s->p, s->rows[ROWS_T])->output[i];
    WEFT_ASSERT(o->space == SPACE_ARENA && o->offset >= 0);
    return (size_t)o->offset;
}

static weft_status copy_outputs(weft_diag *dg, const session *s)
{
    float *to = s->outputs;
    for (int32_t i = 0; i < s->p->n_output; i++) {
        const plan_output *o = &s->p->output[i];
        size_t bytes = (size_t)(output_rows(s, i) * o->width) * sizeof *to;
        WEFT_TRY(s->dev->kind->read(dg, s->e, output_at(s, i), to, bytes));
        to += rows_max(s->p, o) * o->width;
    }
    return WEFT_OK;
}

/* In a scope of its own: where memory for a message is short, the pages must be released all the same. */
static weft_status run_rows(weft_diag *dg, session *s, const kbatch *b)
{
    MEM_SCOPE(scope);
    if (sigsetjmp(scope.env, 0) != 0)
        return diag_fail_memory(dg, scope.bytes);
    WEFT_TRY(s->dev->kind->submit(dg, s->e, b));
    WEFT_TRY(s->dev->kind->wait(dg, s->e));
    WEFT_TRY(weights_check(dg, s->w));
    s->rows[ROWS_T] = b->n_tok;
    s->rows[ROWS_R] = b->n_out;
    s->rows[ROWS_S] = b->n_seq;
    return s->outputs ? copy_outputs(dg, s) : WEFT_OK;
}

weft_status session_eval(weft_diag *dg, session *s, const batch_row *rows, int64_t n)
{
    WEFT_TRY(batch_fill(dg, s->b, rows, n));
    const kbatch *b = batch_view(s->b);
    if (s->prefixes)
        prefix_cache_make_room(s->prefixes, batch_seqs(s->b), batch_seq_counts(s->b), b->n_seq);
    WEFT_TRY(state_reserve_each(dg, s->st, batch_seqs(s->b), batch_seq_counts(s->b), b->n_seq));
    batch_take_pages(s->b);
    weft_status status = run_rows(dg, s, b);
    for (int64_t i = 0; i < b->n_seq; i++) {
        int64_t seq = batch_seq(s->b, i);
        if (status == WEFT_OK)
            state_commit(s->st, seq, batch_seq_rows(s->b, i));
        else
            state_release(s->st, seq);
    }
    s->has_run = status == WEFT_OK;
    return status;
}

/* The index of an output of numbers; -1: there is none such, or nothing has run. */
static int32_t output_find(const session *s, const char *name, int index)
{
    const plan_operand *at = plan_bucket_for(s->p, s->rows[ROWS_T])->output;
    for (int32_t i = 0; i < s->p->n_output && s->has_run; i++)
        if (s->p->output[i].index == index && strcmp(s->p->output[i].name, name) == 0 &&
            at[i].type == DT_F32)
            return i;
    return -1;
}

bool session_output(const session *s, const char *name, int index, const float **out_data,
                    int64_t *out_n_row, int64_t *out_width)
{
    int32_t i = output_find(s, name, index);
    if (i < 0)
        return false;
    const float *data = s->outputs;
    for (int32_t k = 0; k < i && data; k++)
        data += rows_max(s->p, &s->p->output[k]) * s->p->output[k].width;
    *out_data = data ? data : s->dev->kind->host(s->e, output_at(s, i));
    *out_n_row = output_rows(s, i);
    *out_width = s->p->output[i].width;
    return true;
}

weft_status session_read(weft_diag *dg, const session *s, const char *name, int index, float *to,
                         int64_t n)
{
    int32_t i = output_find(s, name, index);
    int64_t all = i < 0 ? 0 : output_rows(s, i) * s->p->output[i].width;
    if (i < 0 || n < 0 || n > all)
        return weft_fail(dg, W1406, WEFT_NOWHERE,
                         "output %s of the last call has %" PRId64 " numbers, %" PRId64
                         " were asked for",
                         name, all, n);
    return s->dev->kind->read(dg, s->e, output_at(s, i), to, (size_t)n * sizeof *to);
}

int64_t session_length(const session *s, int64_t seq)
{
    return state_has(s->st, seq) ? state_length(s->st, seq) : 0;
}

weft_status session_truncate(weft_diag *dg, session *s, int64_t seq, int64_t length)
{
    return state_truncate(dg, s->st, seq, length);
}

weft_status session_fork(weft_diag *dg, session *s, int64_t from, int64_t to, int64_t length)
{
    WEFT_TRY(state_fork(dg, s->st, from, to, length));
    if (s->lora)
        adapters_share(s->lora, from, to);
    return WEFT_OK;
}

/* ---- adapters ---- */

static weft_status need_slots(weft_diag *dg, const session *s)
{
    if (s->lora)
        return WEFT_OK;
    weft_status st = weft_fail(dg, W1407, WEFT_NOWHERE, "the session has no slots for adapters");
    weft_note(dg, "how many there are, and of which rank, is chosen when it opens");
    return st;
}

weft_status session_lora_load(weft_diag *dg, session *s, int32_t slot, const adapter_source *src)
{
    WEFT_TRY(need_slots(dg, s));
    return adapters_load(dg, s->lora, slot, src);
}

weft_status session_lora_unload(weft_diag *dg, session *s, int32_t slot)
{
    WEFT_TRY(need_slots(dg, s));
    return adapters_unload(dg, s->lora, slot);
}

weft_status session_lora_attach(weft_diag *dg, session *s, int64_t seq, const adapter_use *use,
                                size_t n)
{
    if (!state_has(s->st, seq))
        return weft_fail(dg, W1403, WEFT_NOWHERE,
                         "there is no sequence %" PRId64 "; they are numbered 0 to %" PRId64, seq,
                         state_count(s->st) - 1);
    if (n == 0 && !s->lora)
        return WEFT_OK;
    WEFT_TRY(need_slots(dg, s));
    return adapters_attach(dg, s->lora, seq, use, n);
}

uint64_t session_lora_key(const session *s, int64_t seq)
{
    return s->lora && state_has(s->st, seq) ? adapters_key(s->lora, seq) : 0;
}

int64_t session_keepable(const session *s, int64_t seq, int64_t length)
{
    return state_keepable(s->st, seq, length);
}

prefix_taken session_prefix_take(session *s, int64_t seq, uint64_t key, const int32_t *ids,
                                 int64_t n, int64_t least, bool again)
{
    return s->prefixes ? prefix_cache_take(s->prefixes, seq, key, ids, n, least, again)
                       : (prefix_taken){0};
}

void session_prefix_put(session *s, int64_t seq, uint64_t key, const int32_t *ids, int64_t n)
{
    if (s->prefixes)
        prefix_cache_put(s->prefixes, seq, key, ids, n);
}

void session_prefix_clear(session *s)
{
    if (s->prefixes)
        prefix_cache_clear(s->prefixes);
}

uint64_t session_prefix_turn(const session *s)
{
    return s->prefixes ? prefix_cache_turn(s->prefixes) : 0;
}

prefix_stats session_prefix_stats(const session *s)
{
    return s->prefixes ? prefix_cache_stats(s->prefixes) : (prefix_stats){0};
}

void session_profile_begin(session *s)
{
    s->dev->kind->profile(s->e, true);
}

void session_profile_end(session *s)
{
    s->dev->kind->profile(s->e, false);
}

const step_time *session_profile_steps(const session *s, int32_t bucket)
{
    return s->dev->kind->profile_steps(s->e, bucket);
}

uint64_t session_wait_ns(const session *s)
{
    return s->dev->kind->stats(s->e).wait_ns;
}

uint64_t session_barriers(const session *s)
{
    return s->dev->kind->stats(s->e).barriers;
}

const plan *session_plan_of(const session *s)
{
    return s->p;
}

const weights *session_weights(const session *s)
{
    return s->w;
}

void session_watch(session *s, device_watch *after_phase, void *ctx)
{
    s->dev->kind->watch(s->e, after_phase, ctx);
}

weft_status session_arena_read(weft_diag *dg, const session *s, int64_t offset, void *to,
                               size_t bytes)
{
    return s->dev->kind->read(dg, s->e, (size_t)offset, to, bytes);
}

weft_status session_arena_write(weft_diag *dg, session *s, int64_t offset, const void *from,
                                size_t bytes)
{
    return s->dev->kind->write(dg, s->e, (size_t)offset, from, bytes);
}
