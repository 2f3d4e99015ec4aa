/* session.c - what a call goes through: check the rows, reserve pages, run, commit. */
#include "runtime/exec/session.h"

#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"
#include "runtime/exec/weight_cache.h"
#include <inttypes.h>
#include <stdlib.h>

struct session {
    const plan *p;
    const device *dev;
    weights *own; /* NULL when the caller's are used */
    const weights *w;
    state *st;
    void *cells; /* the state's memory, of the device */
    batch *b;
    exec *e;
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
    session s = {.p = p, .dev = opt->dev ? opt->dev : &device_cpu, .w = opt->w};
    state_options st = {.n_seq = opt->n_seq ? opt->n_seq : 1,
                        .n_ctx = opt->n_ctx,
                        .page_tok = opt->page_tok,
                        .n_page = opt->n_page,
                        .type = p->kv};
    WEFT_TRY(state_create(dg, p, &st, &s.st));
    s.b = batch_create(p, s.st);
    *out_s = s;
    return WEFT_OK;
}

static weft_status open_parts(weft_diag *dg, session *s, const model_file *mf,
                              const session_options *opt, size_t interleaved_max)
{
    WEFT_TRY(s->dev->alloc(dg, state_bytes(s->st), &s->cells));
    state_bind(s->st, s->cells, s->dev->copy);
    if (!s->w) {
        weights_options how = {.threads = thread_count(opt),
                               .use_cache = opt->use_cache,
                               .cache_dir = opt->cache_dir,
                               .cache_bytes_max = opt->cache_bytes_max,
                               .interleaved_max = interleaved_max,
                               .check_cache = opt->check_cache,
                               .cancel = opt->cancel,
                               .progress = opt->progress};
        WEFT_TRY(weights_create(dg, s->p, mf, &how, &s->own));
        s->w = s->own;
    }
    device_load what = {.p = s->p,
                        .w = s->w,
                        .cells = state_cells(s->st),
                        .threads = thread_count(opt),
                        .pin = opt->pin,
                        .cancel = opt->cancel};
    return s->dev->load(dg, &what, &s->e);
}

static void close_parts(session *s)
{
    s->dev->unload(s->e);
    batch_destroy(s->b);
    state_destroy(s->st);
    s->dev->free(s->cells);
    weights_destroy(s->own);
}

/* ---- memory ---- */

/* Where interleaved weights are. */
typedef enum { ROWS8_ELSEWHERE, ROWS8_CACHED, ROWS8_HERE } interleaved;

/* Of a session whose tables are open, on a device that takes m. ROWS8_ELSEWHERE: all weights are the caller's. */
static session_memory sum_up(const session *s, const device_memory *m, interleaved where)
{
    session_memory all = {.arena = m->arena,
                          .state = state_bytes(s->st),
                          .scratch = m->scratch,
                          .tables =
                              m->tables + state_table_bytes(s->st) + batch_bytes(s->b) + sizeof *s};
    if (where != ROWS8_ELSEWHERE) {
        all.weights_mapped = s->p->mapped_bytes;
        all.weights_copied = s->p->copied_bytes;
        *(where == ROWS8_CACHED ? &all.weights_cached : &all.weights_interleaved) =
            s->p->interleaved_bytes;
        all.tables += weights_table_bytes(s->p);
    }
    return all;
}

session_memory session_bytes(const session *s)
{
    device_memory m;
    s->dev->bytes(s->e, &m);
    return sum_up(s, &m,
                  !s->own                        ? ROWS8_ELSEWHERE
                  : weights_cache_mapped(s->own) ? ROWS8_CACHED
                                                 : ROWS8_HERE);
}

static weft_status need_of(weft_diag *dg, const session *s, const model_file *mf,
                           const session_options *opt, session_memory *out_m)
{
    device_memory m;
    WEFT_TRY(s->dev->need(dg, s->p, thread_count(opt), &m));
    cache_options cache = {
        .keep = opt->use_cache, .dir = opt->cache_dir, .bytes_max = opt->cache_bytes_max};
    bool cached = mf && !opt->w && weight_cache_would_keep(s->p, mf, &cache);
    *out_m = sum_up(s, &m, opt->w ? ROWS8_ELSEWHERE : cached ? ROWS8_CACHED : ROWS8_HERE);
    return WEFT_OK;
}

weft_status session_need(weft_diag *dg, const plan *p, const model_file *mf,
                         const session_options *opt, session_memory *out_m)
{
    session s;
    WEFT_TRY(open_tables(dg, p, opt, &s));
    weft_status status = need_of(dg, &s, mf, opt, out_m);
    close_parts(&s);
    return status;
}

size_t session_memory_sum(const session_memory *m)
{
    return m->weights_mapped + m->weights_cached + session_memory_own(m);
}

size_t session_memory_own(const session_memory *m)
{
    return m->weights_copied + m->weights_interleaved + m->arena + m->state + m->scratch +
           m->tables;
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
static weft_status check_need(weft_diag *dg, const session *s, const model_file *mf,
                              const session_options *opt, size_t *out_interleaved_max)
{
    session_memory m;
    memory_room room;
    WEFT_TRY(need_of(dg, s, mf, opt, &m));
    uint64_t all = session_memory_sum(&m), own = session_memory_own(&m);
    *out_interleaved_max = 0;
    if (opt->bytes_max)
        return all <= opt->bytes_max ? WEFT_OK
                                     : refuse(dg, &m, all, opt->bytes_max, "by its options");
    WEFT_TRY(s->dev->probe(dg, &room));
    if (own > room.bytes)
        return refuse(dg, &m, own, room.bytes, room.within);
    uint64_t left = room.bytes - own + m.weights_interleaved;
    *out_interleaved_max = left < SIZE_MAX ? (size_t)left : SIZE_MAX;
    room = memory_mappable("");
    if (own + m.weights_cached > room.bytes)
        return refuse(dg, &m, own + m.weights_cached, room.bytes, room.within);
    return WEFT_OK;
}

/* ---- opening and closing ---- */

weft_status session_create(weft_diag *dg, const plan *p, const model_file *mf,
                           const session_options *opt, session **out_s)
{
    session *s = mem_alloc(sizeof *s);
    weft_status status = open_tables(dg, p, opt, s);
    if (status != WEFT_OK) {
        mem_free(s);
        return status;
    }
    size_t interleaved_max;
    status = check_need(dg, s, mf, opt, &interleaved_max);
    if (status == WEFT_OK)
        status = open_parts(dg, s, mf, opt, interleaved_max);
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

/* ---- calls ---- */

/* In a scope of its own: where memory for a message is short, the pages must be released all the same. */
static weft_status run_rows(weft_diag *dg, session *s, const kbatch *b)
{
    MEM_SCOPE(scope);
    if (sigsetjmp(scope.env, 0) != 0)
        return diag_fail_memory(dg, scope.bytes);
    WEFT_TRY(s->dev->run(dg, s->e, b));
    return weights_check(dg, s->w);
}

weft_status session_eval(weft_diag *dg, session *s, const batch_row *rows, int64_t n)
{
    WEFT_TRY(batch_fill(dg, s->b, rows, n));
    const kbatch *b = batch_view(s->b);
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
    if (status == WEFT_OK) {
        s->rows[ROWS_T] = b->n_tok;
        s->rows[ROWS_R] = b->n_out;
        s->rows[ROWS_S] = b->n_seq;
    }
    return status;
}

bool session_output(const session *s, const char *name, int index, const float **out_data,
                    int64_t *out_n_row, int64_t *out_width)
{
    const plan_operand *at = plan_bucket_for(s->p, s->rows[ROWS_T])->output;
    for (int32_t i = 0; i < s->p->n_output && s->has_run; i++) {
        const plan_output *o = &s->p->output[i];
        if (strcmp(o->name, name) != 0 || o->index != index || at[i].type != DT_F32)
            continue;
        *out_data = s->dev->output(s->e, i);
        *out_n_row = o->rows == ROWS_FIXED ? o->n_row : s->rows[o->rows];
        *out_width = o->width;
        return true;
    }
    return false;
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
    return state_fork(dg, s->st, from, to, length);
}

int64_t session_keepable(const session *s, int64_t seq, int64_t length)
{
    return state_keepable(s->st, seq, length);
}

void session_profile_begin(session *s)
{
    s->dev->profile(s->e, true);
}

void session_profile_end(session *s)
{
    s->dev->profile(s->e, false);
}

const step_time *session_profile_steps(const session *s, int32_t bucket)
{
    return s->dev->profile_steps(s->e, bucket);
}

uint64_t session_wait_ns(const session *s)
{
    return s->dev->stats(s->e).wait_ns;
}

uint64_t session_barriers(const session *s)
{
    return s->dev->stats(s->e).barriers;
}

const plan *session_plan_of(const session *s)
{
    return s->p;
}

void session_watch(session *s, device_watch *after_phase, void *ctx)
{
    s->dev->watch(s->e, after_phase, ctx);
}

void *session_arena(session *s)
{
    return s->dev->activations(s->e);
}
