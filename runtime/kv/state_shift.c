/* state_shift.c - rows that move go through a buffer of the host, run by run, from the first to the last. */
#include "runtime/kv/state_shift.h"

#include "kernels/page_form.h"
#include "runtime/base/mem.h"
#include "runtime/kv/state_impl.h"
#include <inttypes.h>
#include <math.h>

typedef struct {
    state *st;
    int64_t seq, begin, end;
    const state_copies *copy;
    unsigned char *raw;    /* rows of a page as they are stored, */
    float *rows;           /* as numbers, */
    double *cosine, *sine; /* and by how much pairs are turned */
} mover;

/* ---- checking ---- */

static weft_status check_cell(weft_diag *dg, const state *st, int i, const key_turn *turn)
{
    const kcell *c = &st->cells[i];
    const cell_group *g = st->tables[c->table].g;
    const char *why = NULL;
    if (g->kv.n_tier > 1)
        why = "older pages of it are quantised";
    else if (g->keep < st->n_ctx)
        why = "it keeps a window, and what is behind that is gone";
    else if (!turn->freqs)
        why = turn->why;
    if (!why)
        return WEFT_OK;
    return weft_fail(dg, W1420, WEFT_NOWHERE, "rows of %s cannot move to other positions: %s",
                     st->names[i], why);
}

/* Pages from row `begin` on are written, so they must be nobody else's. */
static weft_status check_pages(weft_diag *dg, const state *st, int64_t seq, int64_t begin,
                               int64_t end)
{
    for (int32_t i = 0; i < st->n_table; i++) {
        const cell_table *t = &st->tables[i];
        int64_t need = 0;
        for (int64_t e = begin / t->g->page_tok; e * t->g->page_tok < end; e++)
            need += pages_shared(&t->pool, &t->pool.tables[seq], e);
        if (need > t->pool.n_free)
            return weft_fail(dg, W1401, WEFT_NOWHERE,
                             "sequence %" PRId64 " shares %" PRId64 " page%s of %" PRId64
                             " tokens that are to change; %" PRId64 " of %" PRId64 " are free",
                             seq, need, need == 1 ? "" : "s", t->g->page_tok, t->pool.n_free,
                             t->pool.n_page);
    }
    return WEFT_OK;
}

static weft_status own_pages(weft_diag *dg, state *st, int64_t seq, int64_t begin, int64_t end)
{
    for (int32_t i = 0; i < st->n_table; i++) {
        cell_table *t = &st->tables[i];
        int64_t tok = t->g->page_tok, length = st->length[seq];
        for (int64_t e = begin / tok; e * tok < end; e++) {
            int64_t n = length - e * tok;
            WEFT_TRY(state_own_page(dg, st, t, seq, e, n < tok ? n : tok));
        }
    }
    return WEFT_OK;
}

/* ---- moving ---- */

static void turn_rows(const mover *m, const key_turn *turn, int64_t n, int64_t width)
{
    int64_t apart = turn->interleaved ? 1 : turn->pairs, step = turn->interleaved ? 2 : 1;
    for (int64_t row = 0; row < n; row++)
        for (int64_t i = 0; i < turn->pairs; i++) {
            float *x = m->rows + row * width + i * step;
            double a = x[0], b = x[apart];
            x[0] = (float)(a * m->cosine[i] - b * m->sine[i]);
            x[apart] = (float)(a * m->sine[i] + b * m->cosine[i]);
        }
}

/* n rows of a part from one place to another; turned, unless turn is NULL. */
static weft_status move_run(weft_diag *dg, const mover *m, const page_part *p, const char *from,
                            char *to, int64_t n, const key_turn *turn)
{
    size_t bytes = (size_t)(n * p->row_bytes);
    WEFT_TRY(m->copy->out(m->copy->ctx, dg, m->raw, from, bytes));
    if (turn) {
        page_part stored = page_part_of(p->form, PAGE_KEYS, n, p->width);
        page_part plain = page_part_of(KFORM_F32, PAGE_KEYS, n, p->width);
        page_read(&stored, m->raw, 0, n, 0, p->width, m->rows, p->width);
        turn_rows(m, turn, n, p->width);
        page_convert(&stored, m->raw, &plain, m->rows);
    }
    return m->copy->in(m->copy->ctx, dg, to, m->raw, bytes);
}

/* Where row `pos` of the part `at` bytes behind a page's beginning is. */
static char *row_at(const mover *m, const kcell *c, const page_part *p, int64_t at, int64_t pos)
{
    const kcell_tier *t = &c->tier[0];
    int32_t page = m->st->tables[c->table].pool.tables[m->seq].page[pos / c->page_tok];
    return t->base + page * t->page_bytes + at + page_row(p, pos % c->page_tok);
}

static weft_status move_part(weft_diag *dg, const mover *m, const kcell *c, const page_part *p,
                             int64_t at, const key_turn *turn)
{
    enum { RUN = 64 }; /* rows of the buffer */
    int64_t length = m->st->length[m->seq], to = m->begin;
    for (int64_t from = m->end, n; from < length; from += n, to += n) {
        int64_t left = c->page_tok - from % c->page_tok, room = c->page_tok - to % c->page_tok;
        n = length - from < RUN ? length - from : RUN;
        n = left < n ? left : n;
        n = room < n ? room : n;
        WEFT_TRY(move_run(dg, m, p, row_at(m, c, p, at, from), row_at(m, c, p, at, to), n, turn));
    }
    return WEFT_OK;
}

static weft_status move_cell(weft_diag *dg, mover *m, const kcell *c, const key_turn *turn)
{
    const kcell_tier *t = &c->tier[0];
    page_part keys = page_part_of(t->key, PAGE_KEYS, c->page_tok, c->k);
    page_part values = page_part_of(t->value, PAGE_VALUES, c->page_tok, c->v);
    int64_t at = 0;
    for (int64_t i = 0; i < turn->pairs; i++) {
        double angle = -(double)(m->end - m->begin) * turn->freqs[i];
        m->cosine[i] = cos(angle);
        m->sine[i] = sin(angle);
    }
    for (int64_t h = 0; h < c->heads; h++, at += keys.bytes)
        WEFT_TRY(move_part(dg, m, c, &keys, at, turn));
    for (int64_t h = 0; h < c->heads; h++, at += values.bytes)
        WEFT_TRY(move_part(dg, m, c, &values, at, NULL));
    return WEFT_OK;
}

static weft_status move_rows(weft_diag *dg, mover *m, const key_turn *turn)
{
    enum { RUN = 64, WIDEST = 8 };
    const state *st = m->st;
    int64_t width = 1;
    for (int i = 0; i < st->n_cell; i++) {
        int64_t most = st->cells[i].k > st->cells[i].v ? st->cells[i].k : st->cells[i].v;
        width = most > width ? most : width;
    }
    arena *a = arena_create();
    m->raw = arena_alloc(a, (size_t)(width * RUN * WIDEST));
    m->rows = ARENA_ARRAY(a, float, (size_t)(width * RUN));
    m->cosine = ARENA_ARRAY(a, double, (size_t)width);
    m->sine = ARENA_ARRAY(a, double, (size_t)width);
    weft_status status = WEFT_OK;
    for (int i = 0; i < st->n_cell && status == WEFT_OK; i++)
        status = move_cell(dg, m, &st->cells[i], &turn[i]);
    arena_destroy(a);
    return status;
}

weft_status state_remove_range(weft_diag *dg, state *st, int64_t seq, int64_t begin, int64_t end,
                               const key_turn *turn, const state_copies *copy)
{
    WEFT_TRY(state_check_seq(dg, st, seq));
    int64_t length = st->length[seq];
    if (begin < 0 || begin > end || end > length)
        return weft_fail(dg, W1402, WEFT_NOWHERE,
                         "sequence %" PRId64 " holds %" PRId64 " tokens; it has no rows %" PRId64
                         " to %" PRId64,
                         seq, length, begin, end);
    if (begin == end)
        return WEFT_OK;
    if (end == length)
        return state_truncate(dg, st, seq, begin);
    for (int i = 0; i < st->n_cell; i++)
        WEFT_TRY(check_cell(dg, st, i, &turn[i]));
    int64_t left = length - (end - begin);
    WEFT_TRY(check_pages(dg, st, seq, begin, left));
    WEFT_TRY(own_pages(dg, st, seq, begin, left));
    mover m = {.st = st, .seq = seq, .begin = begin, .end = end, .copy = copy};
    weft_status status = move_rows(dg, &m, turn);
    if (status != WEFT_OK) { /* some have moved and some have not */
        WEFT_TRY(state_truncate(dg, st, seq, begin));
        return status;
    }
    st->length[seq] = left;
    state_release(st, seq);
    return WEFT_OK;
}
