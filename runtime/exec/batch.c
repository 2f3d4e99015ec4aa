/* batch.c - one pass over the rows: check each, number the sequences as they come. */
#include "runtime/exec/batch.h"

#include "runtime/base/intmath.h"
#include <inttypes.h>

enum { PAGES_STEP = 64 }; /* entries of page tables are as many of these as the longest one needs */

/* Which page table was copied. */
typedef struct {
    int64_t seq;
    uint64_t version;
} taken;

struct batch {
    const plan *p;
    const state *st;
    int64_t n_seq_state;
    kbatch *view;
    size_t view_bytes; /* room for it */
    taken *taken;      /* [n_table * n_seq]: what the page tables of the view are */
    int64_t laid[3];   /* while it has these counts of rows, sequences and entries; 0: never */
    int32_t *seq_of;   /* [n_seq_max]: number in the state */
    int32_t *n_row;    /* [n_seq_max]: rows in this call */
    int32_t *call_of;  /* [n_seq_state]: number in the newest call, or -1 */
    adapters *lora;    /* NULL: there are none */
    arena *home;
};

static int64_t pages_room(int64_t entries)
{
    return i64_ceil_div(entries, PAGES_STEP) * PAGES_STEP;
}

batch *batch_create(const plan *p, const state *st)
{
    arena *a = arena_create();
    batch *b = ARENA_NEW(a, batch);
    int64_t n_state = state_count(st), n_seq = p->n_seq_max < n_state ? p->n_seq_max : n_state;
    *b = (batch){.p = p, .st = st, .n_seq_state = n_state, .home = a};
    kbatch most = {.n_tok = p->n_tok_max, .n_seq = n_seq, .n_table = state_tables(st)};
    for (int32_t t = 0; t < state_tables(st); t++) {
        int64_t n = pages_room(state_page_entries(st, t));
        most.n_page = n > most.n_page ? n : most.n_page;
    }
    b->view_bytes = kbatch_bytes(&most);
    b->view = arena_alloc(a, b->view_bytes);
    *b->view = (kbatch){.n_table = most.n_table};
    b->taken = ARENA_ARRAY(a, taken, (size_t)(n_seq * most.n_table));
    b->seq_of = ARENA_ARRAY(a, int32_t, (size_t)n_seq);
    b->n_row = ARENA_ARRAY(a, int32_t, (size_t)n_seq);
    b->call_of = ARENA_ARRAY(a, int32_t, (size_t)n_state);
    for (int64_t i = 0; i < n_state; i++)
        b->call_of[i] = -1;
    return b;
}

void batch_use(batch *b, adapters *lora)
{
    b->lora = lora;
}

void batch_destroy(batch *b)
{
    if (b)
        arena_destroy(b->home); /* b itself with it */
}

enum { CALL_ROWS_MAX = 1 << 20 }; /* more than any plan takes in one call */

static weft_status rows_out_of_range(weft_diag *dg, const batch *b, int64_t n)
{
    return weft_fail(dg, W1406, WEFT_NOWHERE,
                     "a call has %" PRId64 " rows; 1 to %" PRId64 " are possible", n,
                     b->p->n_tok_max);
}

/* The number in this call of the row's sequence, which is new when it was not met yet. */
static weft_status number_seq(weft_diag *dg, batch *b, const batch_row *r, int64_t row,
                              int32_t *out_i)
{
    kbatch *v = b->view;
    int32_t i = b->call_of[r->seq];
    if (i < 0) {
        if (v->n_seq == b->p->n_seq_max)
            return weft_fail(dg, W1406, WEFT_NOWHERE,
                             "row %" PRId64 " is of one more sequence than the %" PRId64
                             " a call may have",
                             row, b->p->n_seq_max);
        i = (int32_t)v->n_seq++;
        b->seq_of[i] = r->seq;
        b->call_of[r->seq] = i;
        b->n_row[i] = 0;
        kbatch_room(v, KBATCH_FIRST)[i] = (int32_t)row;
    }
    *out_i = i;
    return WEFT_OK;
}

static weft_status check_slot(weft_diag *dg, const batch *b, const batch_row *r, int64_t row)
{
    if (!b->lora)
        return weft_fail(dg, W1407, WEFT_NOWHERE,
                         "row %" PRId64 ": adapter slot %" PRId32 ", but no adapter is loaded", row,
                         r->slot);
    if (!adapters_has(b->lora, r->slot))
        return weft_fail(dg, W1407, WEFT_NOWHERE,
                         "row %" PRId64 ": adapter slot %" PRId32 ", which is none of the %" PRId64
                         " or holds no adapter",
                         row, r->slot, b->p->lora_slots);
    return WEFT_OK;
}

/* Everything about a row but whether the call has room for it; out_i is the number of its sequence in the call. */
static weft_status check_row(weft_diag *dg, batch *b, const batch_row *r, int64_t row,
                             int32_t *out_i)
{
    const plan *p = b->p;
    int32_t i = 0;
    if (r->id < 0 || (p->n_vocab && r->id >= p->n_vocab))
        return weft_fail(dg, W1405, WEFT_NOWHERE,
                         "row %" PRId64 ": token %" PRId32 " is not from 0 to %" PRId64, row, r->id,
                         (p->n_vocab ? p->n_vocab : INT32_MAX) - 1);
    if (!state_has(b->st, r->seq))
        return weft_fail(dg, W1403, WEFT_NOWHERE,
                         "row %" PRId64 ": there is no sequence %" PRId32
                         "; they are numbered 0 to %" PRId64,
                         row, r->seq, b->n_seq_state - 1);
    if (r->slot != 0)
        WEFT_TRY(check_slot(dg, b, r, row));
    WEFT_TRY(number_seq(dg, b, r, row, &i));
    int64_t next = state_length(b->st, r->seq) + b->n_row[i];
    if (r->pos != next)
        return weft_fail(dg, W1402, WEFT_NOWHERE,
                         "row %" PRId64 ": position %" PRId32 " of sequence %" PRId32
                         ", whose next is %" PRId64,
                         row, r->pos, r->seq, next);
    if (r->pos >= state_context(b->st))
        return weft_fail(dg, W1404, WEFT_NOWHERE,
                         "row %" PRId64 ": position %" PRId32 " of sequence %" PRId32
                         " passes the context of %" PRId64,
                         row, r->pos, r->seq, state_context(b->st));
    if (p->n_pos && r->pos >= p->n_pos) {
        weft_status st = weft_fail(dg, W1404, WEFT_NOWHERE,
                                   "row %" PRId64 ": position %" PRId32 " of sequence %" PRId32
                                   " passes the %" PRId64 " that the model has a table of",
                                   row, r->pos, r->seq, p->n_pos);
        weft_note(dg, "a session with a longer context does not change that");
        return st;
    }
    *out_i = i;
    return WEFT_OK;
}

static weft_status take_row(weft_diag *dg, batch *b, const batch_row *r, int64_t row, int64_t n)
{
    kbatch *v = b->view;
    const plan *p = b->p;
    int32_t i = 0;
    WEFT_TRY(check_row(dg, b, r, row, &i));
    if (row == p->n_tok_max)
        return rows_out_of_range(dg, b, n);
    if (r->out) {
        if (v->n_out == p->n_out_max)
            return weft_fail(dg, W1406, WEFT_NOWHERE,
                             "row %" PRId64 " is one output more than the %" PRId64
                             " a call may have",
                             row, p->n_out_max);
        kbatch_room(v, KBATCH_OUT)[v->n_out++] = (int32_t)row;
    }
    kbatch_room(v, KBATCH_TOKEN)[row] = r->id;
    kbatch_room(v, KBATCH_POS)[row] = r->pos;
    kbatch_room(v, KBATCH_SEQ)[row] = i;
    kbatch_room(v, KBATCH_SLOT)[row] = b->lora ? adapters_mix(b->lora, r->seq, r->slot) : 0;
    kbatch_room(v, KBATCH_LAST)[i] = (int32_t)row;
    b->n_row[i]++;
    return WEFT_OK;
}

static void pages_copy(const state_page_table *from, int32_t *to, int64_t n)
{
    memcpy(to, from->page, (size_t)from->n * sizeof *to);
    for (int64_t i = from->n; i < n; i++)
        to[i] = -1;
}

/* Those that are as they were when they were copied stay: decoding copies one now and then. */
void batch_take_pages(batch *b)
{
    kbatch *v = b->view;
    v->n_page = 0;
    for (int32_t t = 0; t < v->n_table; t++)
        for (int64_t i = 0; i < v->n_seq; i++) {
            int64_t n = pages_room(state_pages(b->st, t, b->seq_of[i]).n);
            v->n_page = n > v->n_page ? n : v->n_page;
        }
    const int64_t laid[3] = {v->n_tok, v->n_seq, v->n_page};
    bool same = memcmp(b->laid, laid, sizeof laid) == 0;
    memcpy(b->laid, laid, sizeof laid);
    taken *had = b->taken;
    for (int32_t t = 0; t < v->n_table; t++) {
        v->data[kbatch_last_at(v, t)] = state_table_tier(b->st, t).last;
        for (int64_t i = 0; i < v->n_seq; i++, had++) {
            state_page_table from = state_pages(b->st, t, b->seq_of[i]);
            int32_t *to = kbatch_pages_room(v, t, i);
            to[-2] = (int32_t)from.made;
            to[-1] = (int32_t)from.n;
            if (same && had->seq == b->seq_of[i] && had->version == from.version)
                continue;
            pages_copy(&from, to, v->n_page);
            *had = (taken){b->seq_of[i], from.version};
        }
    }
}

/* The numbers that the call before gave to its sequences. Done here and not at that call's end, which it does not reach
 * where memory for a message is short. */
static void forget_seqs(batch *b)
{
    for (int64_t i = 0; i < b->view->n_seq; i++)
        b->call_of[b->seq_of[i]] = -1;
}

weft_status batch_fill(weft_diag *dg, batch *b, const batch_row *rows, int64_t n)
{
    kbatch *v = b->view;
    forget_seqs(b);
    v->n_out = v->n_seq = 0;
    /* Where a call may have all that sequences hold, one row more has no position: take_row names it. */
    bool all = b->p->n_tok_max == b->n_seq_state * state_context(b->st);
    if (n < 1 || n > CALL_ROWS_MAX || (n > b->p->n_tok_max && !all))
        return rows_out_of_range(dg, b, n); /* without a look at rows that can hardly be there */
    v->n_tok = n < b->p->n_tok_max ? n : b->p->n_tok_max;
    if (v->n_tok != b->laid[0])
        b->laid[0] = 0; /* rows may come to lie over the tables */
    for (int64_t row = 0; row < n; row++)
        WEFT_TRY(take_row(dg, b, &rows[row], row, n));
    if (b->lora)
        adapters_take_rows(b->lora, v);
    return WEFT_OK;
}

const kbatch *batch_view(const batch *b)
{
    return b->view;
}

int64_t batch_seq(const batch *b, int64_t i)
{
    WEFT_ASSERT(i >= 0 && i < b->view->n_seq);
    return b->seq_of[i];
}

int64_t batch_seq_rows(const batch *b, int64_t i)
{
    WEFT_ASSERT(i >= 0 && i < b->view->n_seq);
    return b->n_row[i];
}

const int32_t *batch_seqs(const batch *b)
{
    return b->seq_of;
}

const int32_t *batch_seq_counts(const batch *b)
{
    return b->n_row;
}

size_t batch_view_bytes(const batch *b)
{
    return b->view_bytes;
}

size_t batch_bytes(const batch *b)
{
    return arena_held(b->home);
}
