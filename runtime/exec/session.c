/* session.c - what a call goes through: check the rows, reserve pages, run, commit. */
#include "runtime/exec/session.h"

#include "runtime/base/mem.h"
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

static weft_status open_parts(weft_diag *dg, session *s, const model_file *mf,
                              const session_options *opt)
{
    state_options st = {.n_seq = opt->n_seq ? opt->n_seq : 1,
                        .n_ctx = opt->n_ctx,
                        .page_tok = opt->page_tok,
                        .n_page = opt->n_page,
                        .type = s->p->kv};
    WEFT_TRY(state_create(dg, s->p, &st, &s->st));
    WEFT_TRY(s->dev->alloc(dg, state_bytes(s->st), &s->cells));
    state_bind(s->st, s->cells, s->dev->copy);
    s->b = batch_create(s->p, s->st);
    if (!s->w) {
        WEFT_TRY(weights_create(dg, s->p, mf, &s->own));
        s->w = s->own;
    }
    device_load what = {.p = s->p,
                        .w = s->w,
                        .cells = state_cells(s->st),
                        .threads = opt->threads ? opt->threads : 1};
    return s->dev->load(dg, &what, &s->e);
}

weft_status session_create(weft_diag *dg, const plan *p, const model_file *mf,
                           const session_options *opt, session **out_s)
{
    session *s = mem_alloc(sizeof *s);
    *s = (session){.p = p, .dev = opt->dev ? opt->dev : &device_cpu, .w = opt->w};
    weft_status status = open_parts(dg, s, mf, opt);
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
    s->dev->unload(s->e);
    batch_destroy(s->b);
    state_destroy(s->st);
    s->dev->free(s->cells);
    weights_destroy(s->own);
    free(s);
}

weft_status session_eval(weft_diag *dg, session *s, const batch_row *rows, int64_t n)
{
    WEFT_TRY(batch_fill(dg, s->b, rows, n));
    const kbatch *b = batch_view(s->b);
    WEFT_TRY(state_reserve_each(dg, s->st, batch_seqs(s->b), batch_seq_counts(s->b), b->n_seq));
    weft_status status = s->dev->run(dg, s->e, b);
    for (int64_t i = 0; i < b->n_seq; i++) {
        int64_t seq = batch_seq(s->b, i);
        if (status == WEFT_OK)
            state_commit(s->st, seq, batch_seq_rows(s->b, i));
        else
            state_release(s->st, seq);
    }
    if (status == WEFT_OK) {
        s->has_run = true;
        s->rows[ROWS_T] = b->n_tok;
        s->rows[ROWS_R] = b->n_out;
        s->rows[ROWS_S] = b->n_seq;
    }
    return status;
}

bool session_output(const session *s, const char *name, int index, const float **out_data,
                    int64_t *out_n_row, int64_t *out_width)
{
    for (int32_t i = 0; i < s->p->n_output && s->has_run; i++) {
        const plan_output *o = &s->p->output[i];
        if (strcmp(o->name, name) != 0 || o->index != index ||
            s->p->bucket->output[i].type != DT_F32)
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

void session_profile(session *s, device_profile *hook, void *ctx)
{
    s->dev->profile(s->e, hook, ctx);
}

session_memory session_bytes(const session *s)
{
    session_memory m = {.state = state_bytes(s->st),
                        .tables = state_table_bytes(s->st) + batch_bytes(s->b) + sizeof *s};
    size_t steps;
    s->dev->bytes(s->e, &m.arena, &m.scratch, &steps);
    m.tables += steps;
    if (s->own) {
        m.weights_mapped = s->p->mapped_bytes;
        m.weights_copied = weights_copied_bytes(s->own);
        m.tables += weights_table_bytes(s->own);
    }
    return m;
}
