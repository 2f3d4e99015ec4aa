/* test_sequences.c - thousands of random operations on sequences and prefixes, against a plain model of what each holds: a number for
 * every position. Whatever a table has of a sequence must be that number, and what the next token may see must be there. */
#include "kernels/page_form.h"
#include "runtime/kv/state_file.h"
#include "runtime/kv/state_shift.h"
#include "tests/base/suite.h"
#include <math.h>

enum { TOK = 4, CTX = 53, SEQS = 4, PREFIXES = 3, CALL = 9, CELLS = 3, STEPS = 2000, OLD = 8 };

static const plan_cell plain_cells[CELLS] = {
    {.name = "kv[0]", .heads = 2, .k = 3, .v = 2},
    {.name = "kv[1]", .heads = 1, .k = 2, .v = 1},
    {.name = "kv[2]", .heads = 1, .k = 2, .v = 2},
};
static const plan_cell mixed_cells[CELLS] = {
    {.name = "kv[0]", .heads = 2, .k = 3, .v = 2},
    {.name = "ring[1]", .heads = 1, .k = 2, .v = 1, .window = 7, .layout = PLAN_RING, .keep = 6},
    {.name = "latent[2]", .latent = true, .heads = 1, .k = 3, .v = 2},
};
static const plan plain_plan = {.n_cell = CELLS, .cell = plain_cells, .n_tok_max = CALL};
static const plan mixed_plan = {.n_cell = CELLS, .cell = mixed_cells, .n_tok_max = CALL};

/* What is tried: no windows, windows, and windows with pages that become f16 when they are 8 tokens old. */
typedef struct {
    const plan *p;
    int tiers;
    int64_t n_page;
} kind;
static const kind kinds[] = {{&plain_plan, 1, 0},
                             {&plain_plan, 1, 30},
                             {&mixed_plan, 1, 30},
                             {&mixed_plan, 2, 0},
                             {&mixed_plan, 2, 30}};

enum { APPEND, TRUNCATE, FORK, HOLD, TAKE, DROP, RANGE, SAVE, LOAD, REMOVE, CHANGE, OPS };

typedef struct {
    int64_t length;
    float of[CTX];
} text;

typedef struct {
    weft_diag *dg;
    const kind *k;
    state *st;
    char *base, path[64];
    uint32_t seed;
    text seq[SEQS], prefix[PREFIXES], saved;
    bool has_file;
    state_copies copy;
    int32_t age, saved_age; /* at which pages become coarser */
    int done[OPS], refused[OPS], last;
} world;

static int64_t draw(world *w, int64_t n)
{
    w->seed = w->seed * 1664525u + 1013904223u;
    return (int64_t)((w->seed >> 8) % (uint32_t)n);
}

static weft_status copy_plain(void *ctx, weft_diag *dg, void *to, const void *from, size_t bytes)
{
    (void)ctx, (void)dg;
    memcpy(to, from, bytes);
    return WEFT_OK;
}

/* ---- rows ---- */

/* All numbers of a row of a cell, in the form they have there: written, or compared with x. */
static void row_is(const world *w, int cell, int tier, int32_t page, int64_t tok, float x,
                   bool write)
{
    const kcell *c = &state_cells(w->st)[cell];
    const kcell_tier *t = &c->tier[tier];
    const page_part parts[] = {page_part_of(t->key, PAGE_KEYS, TOK, c->k),
                               page_part_of(t->value, PAGE_VALUES, TOK, c->v)};
    char *at = t->base + page * t->page_bytes;
    for (int i = 0; i < (c->latent ? 1 : 2); i++)
        for (int64_t h = 0; h < c->heads; h++, at += parts[i].bytes) {
            float row[4], want = x + (float)(cell + 3 * h + 5 * i);
            page_part one = page_part_of(parts[i].form, parts[i].kind, 1, parts[i].width);
            page_part f32 = page_part_of(KFORM_F32, parts[i].kind, 1, parts[i].width);
            for (int64_t k = 0; k < 4; k++)
                row[k] = want;
            if (write) {
                page_convert(&one, at + page_row(&parts[i], tok), &f32, row);
                continue;
            }
            page_read(&parts[i], at, tok, 1, 0, parts[i].width, row, 4);
            for (int64_t k = 0; k < parts[i].width; k++)
                if (row[k] != want)
                    ck_abort_msg("cell %d tier %d token %d: %g is not %g", cell, tier, (int)tok,
                                 (double)row[k], (double)want);
        }
}

/* Everything that a sequence has is what it should be, and it has what the next token sees. */
static void check_seq(const world *w, int64_t seq)
{
    const text *x = &w->seq[seq];
    ck_assert_int_eq(state_length(w->st, seq), x->length);
    ck_assert_msg(state_keepable(w->st, seq, x->length) == x->length,
                  "kind %d: sequence %d of %d tokens after operation %d", (int)(w->k - kinds),
                  (int)seq, (int)x->length, w->last);
    for (int c = 0; c < CELLS; c++) {
        const kcell *cell = &state_cells(w->st)[c];
        int64_t window = w->k->p->cell[c].window;
        int64_t seen = window && x->length > window - 1 ? x->length - (window - 1) : 0;
        for (int64_t pos = 0; pos < x->length; pos++) {
            bool there = false;
            for (int tier = 0; tier < cell->n_tier; tier++) {
                state_page_table t = state_pages(w->st, cell->table + tier, seq);
                if (pos / TOK >= t.n || t.page[pos / TOK] < 0)
                    continue;
                there = true;
                row_is(w, c, tier, t.page[pos / TOK], pos % TOK, x->of[pos], false);
            }
            ck_assert_msg(there || pos < seen, "row %d of cell %d is gone", (int)pos, c);
        }
    }
    state_span spans[CELLS * 2];
    for (int32_t t = 0; t < state_tables(w->st); t++)
        spans[t] = state_span_of(w->st, t, seq);
    if (!state_spans_fit(w->st, spans, x->length)) {
        for (int32_t t = 0; t < state_tables(w->st); t++)
            fprintf(stderr, "table %d: %d to %d, %d stay\n", t, (int)spans[t].first,
                    (int)spans[t].n, (int)spans[t].stays);
        ck_abort_msg("kind %d: %d tokens do not fit after operation %d", (int)(w->k - kinds),
                     (int)x->length, w->last);
    }
}

/* What op convert does: pages of tier 1 from those of tier 0, before rows count. */
static void convert(world *w, int64_t seq, int64_t length)
{
    for (int c = 0; c < CELLS; c++) {
        const kcell *cell = &state_cells(w->st)[c];
        if (cell->n_tier < 2)
            continue;
        state_page_table t = state_pages(w->st, cell->table + 1, seq);
        for (int64_t e = t.made; e < t.n; e++)
            for (int64_t i = 0; i < TOK; i++) {
                ck_assert_int_lt(e * TOK + i, length);
                row_is(w, c, 1, t.page[e], i, w->seq[seq].of[e * TOK + i], true);
            }
    }
}

/* ---- operations ---- */

static bool result(world *w, int op, weft_status st, bool may_fail)
{
    (st == WEFT_OK ? w->done : w->refused)[op]++;
    w->last = op;
    ck_assert_msg(st == WEFT_OK || may_fail, "operation %d fails", op);
    diag_reset(w->dg);
    return st == WEFT_OK;
}

static void append(world *w)
{
    int64_t seq = draw(w, SEQS), n = 1 + draw(w, CALL);
    text *x = &w->seq[seq];
    int32_t s = (int32_t)seq, k = (int32_t)n;
    /* The oldest prefix gives way, as a cache of them would have it. */
    for (int64_t p = 0; x->length + n <= CTX && p < PREFIXES && !state_has_room(w->st, &s, &k, 1);
         p++) {
        state_drop(w->st, p);
        w->prefix[p].length = 0;
    }
    if (!result(w, APPEND, state_reserve(w->dg, w->st, seq, n), true))
        return;
    for (int64_t pos = x->length; pos < x->length + n; pos++) {
        x->of[pos] = (float)draw(w, 2000);
        for (int c = 0; c < CELLS; c++)
            row_is(w, c, 0, state_pages(w->st, state_cells(w->st)[c].table, seq).page[pos / TOK],
                   pos % TOK, x->of[pos], true);
    }
    convert(w, seq, x->length + n);
    state_commit(w->st, seq, n);
    x->length += n;
}

/* Often near the end, where windows allow it. */
static int64_t some_length(world *w, int64_t length)
{
    return draw(w, 2) ? draw(w, length + 1) : length - draw(w, length < 5 ? length + 1 : 5);
}

static void truncate_or_fork(world *w, bool fork)
{
    int64_t from = draw(w, SEQS), to = fork ? draw(w, SEQS) : from;
    int64_t n = some_length(w, w->seq[from].length);
    bool can = state_keepable(w->st, from, n) == n;
    weft_status st =
        fork ? state_fork(w->dg, w->st, from, to, n) : state_truncate(w->dg, w->st, from, n);
    if (result(w, fork ? FORK : TRUNCATE, st, !can)) {
        w->seq[to] = w->seq[from];
        w->seq[to].length = n;
    }
}

static void hold_or_take(world *w, bool take)
{
    int64_t seq = draw(w, SEQS), p = draw(w, PREFIXES);
    text *s = &w->seq[seq], *x = &w->prefix[p];
    int64_t n = some_length(w, take ? x->length : s->length);
    int64_t can = take ? state_prefix_keepable(w->st, p, n) : state_keepable(w->st, seq, n);
    if (!result(w, take ? TAKE : HOLD, can == n ? WEFT_OK : WEFT_ERR_STATE, true))
        return;
    if (take) {
        state_take(w->st, p, seq, n);
        *s = *x;
        s->length = n;
    } else {
        state_hold(w->st, seq, p, n);
        *x = *s;
        x->length = n;
    }
}

static void append_range(world *w)
{
    int64_t from = draw(w, SEQS), to = draw(w, SEQS), begin = w->seq[to].length;
    int64_t end = begin + draw(w, 12);
    bool right = from != to && end <= w->seq[from].length;
    weft_status st = state_append_range(w->dg, w->st, from, to, begin, end);
    ck_assert(right || st != WEFT_OK);
    if (!result(w, RANGE, st, true))
        return;
    memcpy(w->seq[to].of + begin, w->seq[from].of + begin,
           (size_t)(end - begin) * sizeof w->seq[to].of[0]);
    w->seq[to].length = end;
}

static const state_owner owner = {.model = {5, 6}};

static void save(world *w)
{
    int64_t seq = draw(w, SEQS);
    int32_t ids[CTX];
    for (int i = 0; i < CTX; i++)
        ids[i] = (int32_t)w->seq[seq].of[i];
    result(w, SAVE, state_file_save(w->dg, w->path, w->st, seq, ids, 0, &owner, &w->copy), false);
    w->saved = w->seq[seq];
    w->saved_age = w->age;
    w->has_file = true;
}

static void load(world *w)
{
    int64_t seq = draw(w, SEQS), n, next;
    state_file *f;
    if (!w->has_file)
        return;
    weft_status st = state_file_open(w->dg, w->path, w->st, &owner, &f);
    if (w->k->tiers > 1 && w->age != w->saved_age) { /* of another policy */
        ck_assert_int_ne(st, WEFT_OK);
        diag_reset(w->dg);
        return;
    }
    ck_assert_int_eq(st, WEFT_OK);
    const int32_t *ids = state_file_ids(f, &n, &next);
    ck_assert_int_eq(n, w->saved.length);
    ck_assert_int_eq(next, 0);
    for (int64_t i = 0; i < n; i++)
        ck_assert_int_eq(ids[i], (int32_t)w->saved.of[i]);
    bool room = state_file_room(f, w->st, seq);
    if (result(w, LOAD, state_file_load(w->dg, f, w->st, seq, &w->copy), !room))
        w->seq[seq] = w->saved;
    state_file_close(f);
}

/* Keys are turned by nothing, so that they stay known numbers. */
static void remove_range(world *w)
{
    static const float none[1] = {0};
    key_turn turn[CELLS] = {{none, 1, false, NULL}, {none, 1, true, NULL}, {none, 1, false, NULL}};
    int64_t seq = draw(w, SEQS), length = w->seq[seq].length, begin = draw(w, length + 1);
    int64_t end = begin + draw(w, length - begin + 1);
    text *x = &w->seq[seq];
    if (!result(w, REMOVE, state_remove_range(w->dg, w->st, seq, begin, end, turn, &w->copy), true))
        return;
    for (int64_t i = end; i < length; i++)
        x->of[begin + i - end] = x->of[i];
    x->length -= end - begin;
}

static kpolicy policy_of(int32_t age)
{
    return (kpolicy){.n_tier = 2,
                     .tier = {{KFORM_F32, KFORM_F32, age}, {KFORM_F16, KFORM_F16, KPOLICY_REST}}};
}

/* Pages become coarser sooner or later than before; prefixes go, as whoever keeps them would have it. */
static void change(world *w)
{
    int32_t age = (int32_t)draw(w, 14);
    kpolicy kv = policy_of(age);
    if (w->k->tiers < 2) {
        w->done[CHANGE]++;
        return;
    }
    if (!result(w, CHANGE, state_change(w->dg, w->st, &kv), age > OLD))
        return;
    w->age = age;
    for (int64_t p = 0; p < PREFIXES; p++) {
        state_drop(w->st, p);
        w->prefix[p].length = 0;
    }
}

START_TEST(whatever_is_done_rows_are_right)
{
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        world *w = calloc(1, sizeof *w);
        kpolicy kv = policy_of(OLD);
        state_options opt = {.n_seq = SEQS,
                             .n_ctx = CTX,
                             .page_tok = TOK,
                             .n_page = kinds[k].n_page,
                             .n_prefix = PREFIXES,
                             .type = DT_F32,
                             .kv = kinds[k].tiers > 1 ? &kv : NULL};
        w->dg = diag_create();
        w->k = &kinds[k];
        w->seed = (uint32_t)k + 1;
        w->age = OLD;
        w->copy = (state_copies){copy_plain, copy_plain, NULL};
        snprintf(w->path, sizeof w->path, "/tmp/weft-seqs-XXXXXX");
        close(mkstemp(w->path));
        ck_assert_int_eq(state_create(w->dg, kinds[k].p, &opt, &w->st), WEFT_OK);
        w->base = malloc(state_bytes(w->st));
        state_bind(w->st, w->base, NULL, NULL);
        for (int step = 0; step < STEPS; step++) {
            int64_t what = draw(w, 25);
            if (what < 11)
                append(w);
            else if (what < 15)
                truncate_or_fork(w, what < 13);
            else if (what < 18)
                hold_or_take(w, what < 17);
            else if (what < 20)
                append_range(w);
            else if (what == 20) {
                int64_t p = draw(w, PREFIXES);
                state_drop(w->st, p);
                w->prefix[p].length = 0;
                w->done[DROP]++;
            } else if (what == 21)
                save(w);
            else if (what == 22)
                load(w);
            else if (what == 23)
                remove_range(w);
            else
                change(w);
            for (int64_t s = 0; s < SEQS; s++)
                check_seq(w, s);
        }
        for (int op = 0; op < OPS; op++)
            ck_assert_msg(w->done[op] > 2, "operation %d was done %d times of kind %zu", op,
                          w->done[op], k);
        for (int64_t s = 0; s < SEQS; s++)
            ck_assert_int_eq(state_truncate(w->dg, w->st, s, 0), WEFT_OK);
        for (int64_t p = 0; p < PREFIXES; p++)
            state_drop(w->st, p);
        for (int32_t t = 0; t < state_tables(w->st); t++)
            ck_assert_int_eq(state_pages_free(w->st, t), state_pages_count(w->st, t));
        unlink(w->path);
        state_destroy(w->st);
        diag_destroy(w->dg);
        free(w->base);
        free(w);
    }
}
END_TEST

static state *open_plain(weft_diag *dg, const plan *p, int64_t n_page)
{
    state *st = NULL;
    state_options opt = {
        .n_seq = 2, .n_ctx = CTX, .page_tok = TOK, .n_page = n_page, .type = DT_F32};
    ck_assert_int_eq(state_create(dg, p, &opt, &st), WEFT_OK);
    return st;
}

static void grow(weft_diag *dg, state *st, int64_t seq, int64_t n)
{
    for (; n > 0; n -= CALL) {
        int64_t k = n < CALL ? n : CALL;
        ck_assert_int_eq(state_reserve(dg, st, seq, k), WEFT_OK);
        state_commit(st, seq, k);
    }
}

START_TEST(what_cannot_be_is_refused_by_name)
{
    static const float freqs[1] = {1};
    const key_turn turn[CELLS] = {{freqs, 1, false, NULL}, {freqs, 1, false, NULL}, {.why = "x"}};
    const state_copies copy = {copy_plain, copy_plain, NULL};
    weft_diag *dg = diag_create();
    state *st = open_plain(dg, &mixed_plan, 0);
    char *base = calloc(1, state_bytes(st));
    state_bind(st, base, NULL, NULL);
    grow(dg, st, 0, 30);
    const struct {
        int64_t from, to, begin, end;
        weft_code code;
        const char *says;
    } wrong[] = {
        {2, 1, 0, 1, W1403, "there is no sequence 2; they are numbered 0 to 1"},
        {0, -1, 0, 1, W1403, "there is no sequence -1"},
        {0, 0, 30, 30, W1403, "rows of sequence 0 cannot follow themselves"},
        {0, 1, 0, 31, W1402, "sequence 0 holds 30 tokens; it has no rows 0 to 31"},
        {0, 1, 3, 2, W1402, "it has no rows 3 to 2"},
        {0, 1, -1, 2, W1402, "it has no rows -1 to 2"},
        {0, 1, 4, 8, W1402, "sequence 1 holds 0 tokens; rows from 4 on do not follow them"},
        {0, 1, 0, 20, W1408,
         "row 14 of ring[1] is wanted of sequence 0, which keeps those from 24"},
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        ck_assert_int_ne(
            state_append_range(dg, st, wrong[i].from, wrong[i].to, wrong[i].begin, wrong[i].end),
            WEFT_OK);
        expect_one(dg, wrong[i].code, wrong[i].says);
        diag_reset(dg);
        ck_assert_int_eq(state_length(st, 1), 0);
    }
    ck_assert_int_eq(state_remove_range(dg, st, 0, 3, 9, turn, &copy), WEFT_ERR_STATE);
    expect_one(dg, W1420, "rows of ring[1] cannot move to other positions: it keeps a window");
    diag_reset(dg);
    ck_assert_int_eq(state_remove_range(dg, st, 0, 3, 31, turn, &copy), WEFT_ERR_STATE);
    expect_one(dg, W1402, "sequence 0 holds 30 tokens; it has no rows 3 to 31");
    diag_reset(dg);
    ck_assert_int_eq(state_remove_range(dg, st, 9, 3, 4, turn, &copy), WEFT_ERR_STATE);
    expect_one(dg, W1403, "there is no sequence 9");
    diag_reset(dg);
    state_destroy(st);
    free(base);

    st = open_plain(dg, &plain_plan, 8);
    base = calloc(1, state_bytes(st));
    state_bind(st, base, NULL, NULL);
    grow(dg, st, 0, 31);
    ck_assert_int_eq(state_remove_range(dg, st, 0, 3, 9, turn, &copy), WEFT_ERR_STATE);
    expect_one(dg, W1420, "rows of kv[2] cannot move to other positions: x");
    diag_reset(dg);
    key_turn all[CELLS] = {turn[0], turn[0], turn[0]};
    ck_assert_int_eq(state_fork(dg, st, 0, 1, 31), WEFT_OK);
    ck_assert_int_eq(state_remove_range(dg, st, 0, 3, 9, all, &copy), WEFT_ERR_FULL);
    expect_one(dg, W1401, "sequence 0 shares 7 pages of 4 tokens that are to change; 0 of 8");
    diag_reset(dg);
    ck_assert_int_eq(state_remove_range(dg, st, 0, 28, 31, turn, &copy), WEFT_OK); /* a cut */
    ck_assert_int_eq(state_length(st, 0), 28);
    state_destroy(st);
    free(base);
    diag_destroy(dg);
}
END_TEST

/* Keys of the same vector, turned by their positions; those that move are turned to where they come. */
START_TEST(keys_are_turned_to_their_new_positions)
{
    enum { WIDTH = 6, PAIRS = 2, N = 30 };
    static const plan_cell one = {.name = "kv", .heads = 2, .k = WIDTH, .v = 1};
    static const plan p = {.n_cell = 1, .cell = &one, .n_tok_max = CALL};
    static const float freqs[PAIRS] = {0.3f, 0.02f}, x[WIDTH] = {1, -2, 3, 0.5f, 7, 8};
    const state_copies copy = {copy_plain, copy_plain, NULL};
    for (int interleaved = 0; interleaved < 2; interleaved++) {
        const key_turn turn = {freqs, PAIRS, interleaved, NULL};
        weft_diag *dg = diag_create();
        state *st = open_plain(dg, &p, 0);
        char *base = calloc(1, state_bytes(st));
        state_bind(st, base, NULL, NULL);
        grow(dg, st, 0, N);
        const kcell *c = state_cells(st);
        const int32_t *pages = state_pages(st, 0, 0).page;
        for (int pass = 0; pass < 2; pass++) {
            for (int pos = 0; pos < (pass ? N - 7 : N); pos++)
                for (int h = 0; h < 2; h++) {
                    float *row = (float *)(void *)(c->tier[0].base +
                                                   pages[pos / TOK] * c->tier[0].page_bytes) +
                                 (h * TOK + pos % TOK) * WIDTH;
                    for (int i = 0; i < PAIRS; i++) {
                        int a = interleaved ? 2 * i : i, b = interleaved ? 2 * i + 1 : i + PAIRS;
                        double r = (double)pos * freqs[i];
                        double u = x[a] * cos(r) - x[b] * sin(r), v = x[a] * sin(r) + x[b] * cos(r);
                        if (!pass) {
                            row[a] = (float)u;
                            row[b] = (float)v;
                        } else {
                            ck_assert_double_lt(fabs(row[a] - u), 1e-5);
                            ck_assert_double_lt(fabs(row[b] - v), 1e-5);
                        }
                    }
                    for (int i = 2 * PAIRS; i < WIDTH; i++) {
                        if (!pass)
                            row[i] = x[i];
                        ck_assert(row[i] == x[i]);
                    }
                }
            if (!pass)
                ck_assert_int_eq(state_remove_range(dg, st, 0, 6, 13, &turn, &copy), WEFT_OK);
        }
        ck_assert_int_eq(state_length(st, 0), N - 7);
        state_destroy(st);
        free(base);
        diag_destroy(dg);
    }
}
END_TEST

SUITE_MAIN("sequences", whatever_is_done_rows_are_right, what_cannot_be_is_refused_by_name,
           keys_are_turned_to_their_new_positions)
