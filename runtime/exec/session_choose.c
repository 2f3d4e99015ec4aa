/* session_choose.c - calls whose tokens the device chooses, and the next one queued behind them.
 *
 * The rows of a call count from the moment that another one is queued behind it, since that one needs pages after them; if it
 * fails after all, they are undone. So a call is queued behind another only where that could be undone exactly. */
#include "runtime/exec/session_impl.h"

#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"

/* A call under way. */
typedef struct {
    int32_t *seq, *n_row; /* [n_seq]: its sequences, and rows of each */
    int64_t n_seq;
    batch_row *wants; /* [n_out]: rows that asked for a token */
    int64_t n_out;
    bool counts; /* committed */
} call;

struct session_calls {
    call at[DEVICE_CALLS]; /* the oldest first */
    int n;
    int32_t logits; /* which output */
    uint64_t begun, chosen;
    batch_row *rows; /* of the next call */
    int32_t *from;
    ksample *how;
    size_t bytes;
};

/* The output logits, if tokens can be chosen from it; -1: they cannot, also where not all logits have a token. */
static int32_t find_logits(const plan *p)
{
    const plan_output *o = plan_output_find(p, "logits", -1);
    const int32_t i = o ? (int32_t)(o - p->output) : -1;
    const bool fits = o && o->rows == ROWS_R && p->bucket[0].output[i].type == DT_F32 &&
                      o->width <= KSAMPLE_VOCAB_MAX && (!p->n_vocab || o->width <= p->n_vocab);
    return fits && p->n_out_max > 0 ? i : -1;
}

session_calls *session_calls_create(const session *s)
{
    const plan *p = s->p;
    const int32_t logits = find_logits(p);
    if (s->n_part > 1 || !s->dev->kind->choose || logits < 0)
        return NULL;
    const size_t outs = (size_t)p->n_out_max, seqs = (size_t)p->n_seq_max;
    const size_t bytes[] = {seqs * sizeof(int32_t), seqs * sizeof(int32_t),
                            outs * sizeof(batch_row)};
    const size_t own = outs * (sizeof(batch_row) + sizeof(int32_t) + sizeof(ksample));
    session_calls *c = mem_alloc(sizeof *c);
    *c = (session_calls){.logits = logits};
    for (int i = 0; i < DEVICE_CALLS; i++)
        c->at[i] = (call){
            .seq = mem_alloc(bytes[0]), .n_row = mem_alloc(bytes[1]), .wants = mem_alloc(bytes[2])};
    c->rows = mem_alloc(outs * sizeof *c->rows);
    c->from = mem_alloc(outs * sizeof *c->from);
    c->how = mem_alloc(outs * sizeof *c->how);
    c->bytes = sizeof *c + DEVICE_CALLS * (bytes[0] + bytes[1] + bytes[2]) + own;
    return c;
}

void session_calls_destroy(session_calls *c)
{
    if (!c)
        return;
    for (int i = 0; i < DEVICE_CALLS; i++) {
        mem_free(c->at[i].seq);
        mem_free(c->at[i].n_row);
        mem_free(c->at[i].wants);
    }
    mem_free(c->rows);
    mem_free(c->from);
    mem_free(c->how);
    mem_free(c);
}

size_t session_calls_bytes(const session_calls *c)
{
    return c ? c->bytes : 0;
}

bool session_chooses(const session *s)
{
    return s->calls != NULL;
}

uint64_t session_under_way(const session *s)
{
    return s->calls && s->calls->n > 0 ? s->calls->begun : 0;
}

uint64_t session_chosen_count(const session *s)
{
    return s->calls ? s->calls->chosen : 0;
}

/* ---- rows that count, or not ---- */

static void count_rows(session *s, call *k)
{
    for (int64_t i = 0; i < k->n_seq && !k->counts; i++)
        state_commit(s->st, k->seq[i], k->n_row[i]);
    k->counts = true;
}

/* All calls, the newest first, as if they had never been. */
static void undo_all(session *s)
{
    session_calls *c = s->calls;
    for (; c->n > 0; c->n--) {
        const call *k = &c->at[c->n - 1];
        for (int64_t i = 0; i < k->n_seq; i++)
            if (k->counts)
                state_undo(s->st, k->seq[i], k->n_row[i]);
            else
                state_release(s->st, k->seq[i]);
    }
}

void session_settle(session *s)
{
    if (!s->calls || s->calls->n == 0)
        return;
    s->dev->kind->drop(s->part[0].e);
    undo_all(s);
}

/* ---- beginning ---- */

/* The batch, whose pages are reserved, as a call of its own. */
static void note_call(session_calls *c, session *s, const batch_row *rows, int64_t n)
{
    call *k = &c->at[c->n++];
    const kbatch *b = batch_view(s->b);
    k->n_seq = b->n_seq;
    k->n_out = 0;
    k->counts = false;
    memcpy(k->seq, batch_seqs(s->b), (size_t)b->n_seq * sizeof *k->seq);
    memcpy(k->n_row, batch_seq_counts(s->b), (size_t)b->n_seq * sizeof *k->n_row);
    for (int64_t i = 0; i < n; i++)
        if (rows[i].out)
            k->wants[k->n_out++] = rows[i];
    c->begun++;
}

/* In a scope of its own: where memory for a message is short, the pages must be released all the same. */
static weft_status submit(weft_diag *dg, session *s, const ksample *how, const int32_t *from)
{
    MEM_SCOPE(scope);
    if (sigsetjmp(scope.env, 0) != 0)
        return diag_fail_memory(dg, scope.bytes);
    const kbatch *b = batch_view(s->b);
    const plan_operand *o = &plan_bucket_for(s->p, b->n_tok)->output[s->calls->logits];
    device_choice what = {.b = b,
                          .from = from,
                          .logits = (size_t)o->offset,
                          .width = s->p->output[s->calls->logits].width,
                          .how = how};
    WEFT_ASSERT(o->space == SPACE_ARENA && o->offset >= 0 && b->n_out > 0);
    return s->dev->kind->choose(dg, s->part[0].e, &what);
}

/* Passed on, with nothing under way. */
static weft_status failed(weft_status st, session *s)
{
    s->dev->kind->drop(s->part[0].e);
    undo_all(s);
    return st;
}

/* Reserve, queue, note; the batch is filled. */
static weft_status begin(weft_diag *dg, session *s, const batch_row *rows, int64_t n,
                         const ksample *how, const int32_t *from)
{
    const kbatch *b = batch_view(s->b);
    weft_status st =
        state_reserve_each(dg, s->st, batch_seqs(s->b), batch_seq_counts(s->b), b->n_seq);
    if (st != WEFT_OK)
        return failed(st, s);
    batch_take_pages(s->b);
    note_call(s->calls, s, rows, n);
    st = submit(dg, s, how, from);
    return st == WEFT_OK ? st : failed(st, s);
}

weft_status session_choose(weft_diag *dg, session *s, const batch_row *rows, int64_t n,
                           const ksample *how)
{
    session_settle(s);
    WEFT_ASSERT(s->calls);
    WEFT_TRY(batch_fill(dg, s->b, rows, n));
    if (s->prefixes)
        prefix_cache_make_room(s->prefixes, batch_seqs(s->b), batch_seq_counts(s->b),
                               batch_view(s->b)->n_seq);
    return begin(dg, s, rows, n, how, NULL);
}

/* ---- the call behind ---- */

/* The rows of the next call, each behind the last row of its sequence; 0: that cannot be. */
static int64_t next_rows(session *s, const call *k, const ksample *how, const bool *more)
{
    session_calls *c = s->calls;
    int64_t n = 0;
    for (int64_t i = 0; i < k->n_out; i++) {
        batch_row r = k->wants[i];
        if (!more[i])
            continue;
        r.id = 0; /* not known yet */
        r.pos++;
        if (r.pos != state_length(s->st, r.seq) || r.pos >= state_context(s->st) ||
            (s->p->n_pos && r.pos >= s->p->n_pos))
            return 0;
        c->how[n] = how[i];
        c->how[n].from = c->from[n] = (int32_t)i;
        c->rows[n++] = r;
    }
    return n;
}

static bool can_undo(session *s, const call *k)
{
    for (int64_t i = 0; i < k->n_seq; i++)
        if (!state_can_undo(s->st, k->seq[i], k->n_row[i]))
            return false;
    return true;
}

weft_status session_choose_next(weft_diag *dg, session *s, const ksample *how, const bool *more,
                                bool *out_begun)
{
    session_calls *c = s->calls;
    WEFT_ASSERT(c && c->n == 1);
    *out_begun = false;
    if (!can_undo(s, &c->at[0]))
        return WEFT_OK;
    count_rows(s, &c->at[0]);
    int64_t n = next_rows(s, &c->at[0], how, more);
    if (n == 0)
        return WEFT_OK;
    weft_status st = batch_fill(dg, s->b, c->rows, n);
    if (st != WEFT_OK)
        return failed(st, s);
    if (!state_has_room(s->st, batch_seqs(s->b), batch_seq_counts(s->b), batch_view(s->b)->n_seq))
        return WEFT_OK;
    WEFT_TRY(begin(dg, s, c->rows, n, c->how, c->from));
    *out_begun = true;
    return WEFT_OK;
}

/* ---- the end of one ---- */

static weft_status wait_oldest(weft_diag *dg, session *s, ksampled *out)
{
    MEM_SCOPE(scope);
    if (sigsetjmp(scope.env, 0) != 0)
        return diag_fail_memory(dg, scope.bytes);
    WEFT_TRY(s->dev->kind->chosen(dg, s->part[0].e, out));
    return weights_check(dg, s->part[0].w);
}

weft_status session_chosen(weft_diag *dg, session *s, ksampled *out)
{
    session_calls *c = s->calls;
    WEFT_ASSERT(c && c->n > 0);
    s->has_run = false;
    weft_status st = wait_oldest(dg, s, out);
    if (st != WEFT_OK)
        return failed(st, s);
    call first = c->at[0];
    count_rows(s, &first);
    c->chosen += (uint64_t)first.n_out;
    for (int i = 1; i < DEVICE_CALLS; i++)
        c->at[i - 1] = c->at[i];
    c->at[DEVICE_CALLS - 1] = first;
    c->n--;
    return WEFT_OK;
}
