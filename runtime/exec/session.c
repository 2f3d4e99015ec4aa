/* session.c - what a call goes through: check the rows, reserve pages, run, commit. */
#include "runtime/exec/session_impl.h"
#include "runtime/exec/session_parts.h"

#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"
#include <inttypes.h>

static int thread_count(const session_options *opt)
{
    return opt->threads ? opt->threads : 1;
}

/* The parts of a session, without anything big. */
static void take_parts(session *s, const session_options *opt)
{
    const bool whole = !opt->parts;
    s->dev = opt->dev ? opt->dev : whole && opt->w[0] ? opt->w[0]->dev : device_cpu();
    plan_parts from = plan_parts_or(opt->parts, s->p);
    s->n_part = from.n_part;
    for (int32_t i = 0; i < s->n_part; i++) {
        const plan_part *x = &from.part[i];
        s->part[i] = (session_part){.p = x->p,
                                    .dev = whole || x->card ? s->dev : device_cpu(),
                                    .w = opt->w[i],
                                    .n_in = x->n_in,
                                    .in = x->in};
        WEFT_ASSERT(!opt->w[i] || opt->w[i]->dev == s->part[i].dev);
    }
}

static bool has_cell(const plan *p, const char *name, int32_t *out)
{
    for (int32_t i = 0; i < p->n_cell; i++)
        if (strcmp(p->cell[i].name, name) == 0) {
            *out = i;
            return true;
        }
    return false;
}

/* Each cell to the part that uses it. */
static void divide_cells(session *s)
{
    size_t bytes[PLAN_PARTS_MAX] = {state_bytes(s->st)};
    int32_t *where = mem_alloc(mem_product((size_t)s->p->n_cell + 1, sizeof *where)), unused;
    for (int32_t i = 0; i < s->p->n_cell; i++) {
        where[i] = 0;
        for (int32_t k = 0; k < s->n_part; k++)
            if (has_cell(s->part[k].p, s->p->cell[i].name, &unused))
                where[i] = k;
    }
    if (s->n_part > 1)
        state_divide(s->st, where, s->n_part, bytes);
    for (int32_t k = 0; k < s->n_part; k++)
        s->part[k].cell_bytes = bytes[k];
    mem_free(where);
}

/* Slots in each part. */
static void take_adapters(session *s, int64_t n_seq)
{
    adapter_home home[PLAN_PARTS_MAX];
    for (int32_t i = 0; i < s->n_part; i++)
        home[i] = (adapter_home){.p = s->part[i].p, .dev = s->part[i].dev};
    s->lora = adapters_create(home, s->n_part, n_seq);
    batch_use(s->b, s->lora);
}

/* A session that has its tables and nothing big yet. */
weft_status session_open_tables(weft_diag *dg, const plan *p, const session_options *opt,
                                session *out_s)
{
    session s = {.p = p, .maker = opt->maker};
    take_parts(&s, opt);
    state_options st = {.n_seq = opt->n_seq ? opt->n_seq : 1,
                        .n_ctx = opt->n_ctx,
                        .page_tok = opt->page_tok,
                        .n_page = opt->n_page,
                        .n_prefix = opt->n_prefix,
                        .type = p->kv,
                        .kv = p->tiers.n_tier ? &p->tiers : NULL};
    WEFT_TRY(state_create(dg, p, &st, &s.st));
    divide_cells(&s);
    s.b = batch_create(p, s.st);
    if (opt->n_prefix > 0)
        s.prefixes = prefix_cache_create(s.st);
    if (p->lora_slots > 0)
        take_adapters(&s, st.n_seq);
    s.calls = session_calls_create(&s);
    *out_s = s;
    return WEFT_OK;
}

weights_options session_weights_how(const session_options *opt)
{
    return (weights_options){.threads = thread_count(opt),
                             .use_cache = opt->use_cache,
                             .cache_dir = opt->cache_dir,
                             .cache_bytes_max = opt->cache_bytes_max,
                             .check_cache = opt->check_cache,
                             .cancel = opt->cancel,
                             .progress = opt->progress};
}

static code_options code_how(const session_options *opt)
{
    return (code_options){.use_cache = opt->use_cache,
                          .cache_dir = opt->cache_dir,
                          .compiling = opt->compiling,
                          .ctx = opt->progress.ctx};
}

device_load session_load_how(const session *s, const session_part *x, const session_options *opt)
{
    return (device_load){.p = x->p,
                         .lora = s->lora ? adapters_view(s->lora, (int32_t)(x - s->part)) : NULL,
                         .batch_bytes = batch_view_bytes(s->b),
                         .threads = thread_count(opt),
                         .pin = opt->pin,
                         .cancel = opt->cancel,
                         .for_code = s->maker != NULL,
                         .code = s->code,
                         .keep = code_how(opt)};
}

/* Rows that an output has at most. */
static int64_t rows_max(const plan *p, const plan_output *o)
{
    int64_t n_seq = p->n_seq_max < p->n_tok_max ? p->n_seq_max : p->n_tok_max;
    const int64_t most[] = {p->n_tok_max, p->n_out_max, n_seq, o->n_row};
    return most[o->rows];
}

static size_t most_bytes(const plan *p, const plan_output *o)
{
    return (size_t)(rows_max(p, o) * o->width) * sizeof(float);
}

/* What copies of all outputs take. */
size_t session_output_bytes(const session *s)
{
    size_t bytes = 0;
    for (int32_t i = 0; i < s->p->n_output && !s->dev->kind->host_memory; i++)
        bytes += most_bytes(s->p, &s->p->output[i]);
    return bytes;
}

/* And the largest value on its way from part to part. */
size_t session_handed_bytes(const session *s)
{
    size_t bytes = 0;
    for (int32_t i = 0; i < s->n_part; i++)
        for (int32_t k = 0; k < s->part[i].n_in; k++) {
            const plan *from = s->part[s->part[i].in[k].part].p;
            size_t one = most_bytes(from, &from->output[s->part[i].in[k].output]);
            bytes = one > bytes ? one : bytes;
        }
    return bytes;
}

static weft_status take_outputs(weft_diag *dg, session *s)
{
    const device_kind *kind = s->dev->kind;
    size_t bytes = session_output_bytes(s) + session_handed_bytes(s);
    void *p = NULL;
    if (bytes && kind->host_alloc)
        WEFT_TRY(kind->host_alloc(dg, s->dev, bytes, &p));
    else if (bytes)
        p = mem_alloc(bytes);
    s->outputs = p;
    s->handed = bytes ? s->outputs + session_output_bytes(s) / sizeof *s->outputs : NULL;
    return WEFT_OK;
}

static void free_outputs(session *s)
{
    if (s->dev->kind->host_free)
        s->dev->kind->host_free(s->dev, s->outputs);
    else
        mem_free(s->outputs);
}

/* The part whose cells are at this address. */
static const session_part *part_at(const session *s, const void *at)
{
    int32_t i = 0;
    for (; i + 1 < s->n_part; i++) {
        uintptr_t begin = (uintptr_t)s->part[i].cells;
        if ((uintptr_t)at >= begin && (uintptr_t)at < begin + s->part[i].cell_bytes)
            break;
    }
    return &s->part[i];
}

device *session_device_at(const session *s, const void *at)
{
    return part_at(s, at)->dev;
}

static weft_status copy_cells(void *ctx, weft_diag *dg, void *to, const void *from, size_t bytes)
{
    device *d = session_device_at(ctx, to);
    return d->kind->copy(dg, d, to, from, bytes);
}

static weft_status take_cells(weft_diag *dg, session *s)
{
    void *base[PLAN_PARTS_MAX];
    for (int32_t i = 0; i < s->n_part; i++) {
        session_part *x = &s->part[i];
        WEFT_TRY(x->dev->kind->alloc(dg, x->dev, x->cell_bytes, &x->cells));
        base[i] = x->cells;
    }
    state_bind_each(s->st, base, copy_cells, s);
    for (int32_t i = 0; i < s->n_part && s->n_part > 1; i++) {
        session_part *x = &s->part[i];
        x->view = mem_alloc(mem_product((size_t)x->p->n_cell + 1, sizeof *x->view));
        for (int32_t k = 0; k < s->p->n_cell; k++) {
            int32_t own;
            if (has_cell(x->p, s->p->cell[k].name, &own))
                x->view[own] = state_cells(s->st)[k];
        }
    }
    return WEFT_OK;
}

static weft_status open_part(weft_diag *dg, session *s, session_part *x, const weight_source *src,
                             const session_options *opt, size_t interleaved_max)
{
    if (!x->w) {
        weights_options how = session_weights_how(opt);
        how.interleaved_max = interleaved_max;
        WEFT_TRY(weights_create(dg, x->dev, x->p, src, &how, &x->own));
        x->w = x->own;
    }
    if (s->maker) {
        code_options how = code_how(opt);
        WEFT_ASSERT(s->n_part == 1);
        WEFT_TRY(s->maker->make(dg, s->p, &how, &s->code, &s->code_own));
    }
    device_load what = session_load_how(s, x, opt);
    if (s->lora)
        what.slots = adapters_memory(s->lora, (int32_t)(x - s->part));
    what.w = x->w;
    what.cells = x->view ? x->view : state_cells(s->st);
    return x->dev->kind->load(dg, x->dev, &what, &x->e);
}

static weft_status open_parts(weft_diag *dg, session *s, const weight_source *src,
                              const session_options *opt, const size_t *interleaved_max)
{
    WEFT_TRY(take_cells(dg, s));
    WEFT_TRY(take_outputs(dg, s));
    if (s->lora)
        WEFT_TRY(adapters_bind(dg, s->lora));
    for (int32_t i = 0; i < s->n_part; i++)
        WEFT_TRY(open_part(dg, s, &s->part[i], src, opt, interleaved_max[i]));
    return WEFT_OK;
}

void session_close_parts(session *s)
{
    session_calls_destroy(s->calls);
    for (int32_t i = 0; i < s->n_part; i++)
        s->part[i].dev->kind->unload(s->part[i].e);
    if (s->maker)
        s->maker->release(s->code_own);
    batch_destroy(s->b);
    prefix_cache_destroy(s->prefixes);
    adapters_destroy(s->lora);
    state_destroy(s->st);
    for (int32_t i = 0; i < s->n_part; i++) {
        s->part[i].dev->kind->free(s->part[i].dev, s->part[i].cells);
        weights_destroy(s->part[i].own);
        mem_free(s->part[i].view);
    }
    free_outputs(s);
}

/* ---- opening and closing ---- */

weft_status session_create(weft_diag *dg, const plan *p, const weight_source *src,
                           const session_options *opt, session **out_s)
{
    session *s = mem_alloc(sizeof *s);
    weft_status status = session_open_tables(dg, p, opt, s);
    if (status != WEFT_OK) {
        mem_free(s);
        return status;
    }
    s->src = src;
    size_t interleaved_max[PLAN_PARTS_MAX];
    status = session_check_need(dg, s, src, opt, interleaved_max);
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
    session_settle(s);
    session_close_parts(s);
    mem_free(s);
}

session_parts session_parts_of(session *s)
{
    session_settle(s);
    return (session_parts){.p = s->p, .src = s->src, .of = s, .st = s->st, .prefixes = s->prefixes};
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

int64_t session_pages_used(const session *s, int64_t *out_alone, bool *out_shares_last)
{
    int32_t paged = state_paged_table(s->st);
    for (int64_t i = 0; i < state_count(s->st); i++) {
        out_alone[i] = 0;
        out_shares_last[i] = paged >= 0 && state_shares_last(s->st, paged, i);
    }
    return paged >= 0 ? state_sequence_pages(s->st, paged, out_alone) : 0;
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
    session_settle(s);
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

/* Which part makes output i, and where it has it. */
static const session_part *output_part(const session *s, int32_t i, size_t *out_at)
{
    const session_part *x = s->part;
    int32_t own = i;
    for (int32_t k = 0; k < s->n_part && s->n_part > 1; k++) {
        const plan *p = s->part[k].p;
        const plan_output *o = plan_output_find(p, s->p->output[i].name, s->p->output[i].index);
        if (o) {
            x = &s->part[k];
            own = (int32_t)(o - p->output);
        }
    }
    const plan_operand *o = &plan_bucket_for(x->p, s->rows[ROWS_T])->output[own];
    WEFT_ASSERT(o->space == SPACE_ARENA && o->offset >= 0);
    *out_at = (size_t)o->offset;
    return x;
}

static weft_status copy_outputs(weft_diag *dg, const session *s)
{
    float *to = s->outputs;
    for (int32_t i = 0; i < s->p->n_output; i++) {
        const plan_output *o = &s->p->output[i];
        size_t bytes = (size_t)(output_rows(s, i) * o->width) * sizeof *to, at;
        const session_part *x = output_part(s, i, &at);
        WEFT_TRY(x->dev->kind->read(dg, x->e, at, to, bytes));
        to += rows_max(s->p, o) * o->width;
    }
    return WEFT_OK;
}

/* What an earlier part made, to where this one reads it. */
static weft_status take_over(weft_diag *dg, session *s, const session_part *to,
                             const plan_input *in, const kbatch *b)
{
    const session_part *from = &s->part[in->part];
    const plan_output *o = &from->p->output[in->output];
    const int64_t rows[] = {b->n_tok, b->n_out, b->n_seq, o->n_row};
    size_t bytes = (size_t)(rows[o->rows] * o->width) * sizeof(float);
    size_t at = (size_t)plan_bucket_for(from->p, b->n_tok)->output[in->output].offset;
    const void *value = s->handed;
    if (from->dev->kind->host_memory)
        value = from->dev->kind->host(from->e, at);
    else
        WEFT_TRY(from->dev->kind->read(dg, from->e, at, s->handed, bytes));
    return to->dev->kind->write(dg, to->e, (size_t)in->offset, value, bytes);
}

static weft_status run_part(weft_diag *dg, session *s, const session_part *x, const kbatch *b)
{
    for (int32_t i = 0; i < x->n_in; i++)
        WEFT_TRY(take_over(dg, s, x, &x->in[i], b));
    if (x->watch && x->n_in > 0)
        WEFT_TRY(x->watch(x->watch_ctx, dg,
                          (int32_t)(plan_bucket_for(x->p, b->n_tok) - x->p->bucket), -1));
    WEFT_TRY(x->dev->kind->submit(dg, x->e, b));
    WEFT_TRY(x->dev->kind->wait(dg, x->e));
    return weights_check(dg, x->w);
}

/* In a scope of its own: where memory for a message is short, the pages must be released all the same. */
static weft_status run_rows(weft_diag *dg, session *s, const kbatch *b)
{
    MEM_SCOPE(scope);
    if (sigsetjmp(scope.env, 0) != 0)
        return diag_fail_memory(dg, scope.bytes);
    for (int32_t i = 0; i < s->n_part; i++)
        WEFT_TRY(run_part(dg, s, &s->part[i], b));
    s->rows[ROWS_T] = b->n_tok;
    s->rows[ROWS_R] = b->n_out;
    s->rows[ROWS_S] = b->n_seq;
    return session_output_bytes(s) ? copy_outputs(dg, s) : WEFT_OK;
}

weft_status session_eval(weft_diag *dg, session *s, const batch_row *rows, int64_t n)
{
    session_settle(s);
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
    const plan_operand *at = plan_bucket_for(s->p, s->rows[ROWS_T])->output; /* types of all */
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
    size_t at;
    const session_part *x = output_part(s, i, &at);
    const float *data = session_output_bytes(s) ? s->outputs : NULL;
    for (int32_t k = 0; k < i && data; k++)
        data += rows_max(s->p, &s->p->output[k]) * s->p->output[k].width;
    *out_data = data ? data : x->dev->kind->host(x->e, at);
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
    size_t at;
    const session_part *x = output_part(s, i, &at);
    return x->dev->kind->read(dg, x->e, at, to, (size_t)n * sizeof *to);
}

int64_t session_length(const session *s, int64_t seq)
{
    return state_has(s->st, seq) ? state_length(s->st, seq) : 0;
}

weft_status session_truncate(weft_diag *dg, session *s, int64_t seq, int64_t length)
{
    session_settle(s);
    return state_truncate(dg, s->st, seq, length);
}

weft_status session_fork(weft_diag *dg, session *s, int64_t from, int64_t to, int64_t length)
{
    session_settle(s);
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
    session_settle(s);
    WEFT_TRY(need_slots(dg, s));
    return adapters_load(dg, s->lora, slot, src);
}

weft_status session_lora_unload(weft_diag *dg, session *s, int32_t slot)
{
    session_settle(s);
    WEFT_TRY(need_slots(dg, s));
    return adapters_unload(dg, s->lora, slot);
}

weft_status session_lora_attach(weft_diag *dg, session *s, int64_t seq, const adapter_use *use,
                                size_t n)
{
    session_settle(s);
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
    session_settle(s);
    return s->prefixes ? prefix_cache_take(s->prefixes, seq, key, ids, n, least, again)
                       : (prefix_taken){0};
}

void session_prefix_put(session *s, int64_t seq, uint64_t key, const int32_t *ids, int64_t n)
{
    session_settle(s);
    if (s->prefixes)
        prefix_cache_put(s->prefixes, seq, key, ids, n);
}

void session_prefix_clear(session *s)
{
    session_settle(s);
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
