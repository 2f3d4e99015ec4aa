/* engine.c - a step: which rows of which generations go into one call of the session, and what becomes of its logits. */
#include "runtime/engine/generation_impl.h"

#include "runtime/base/mem.h"
#include <string.h>

weft_status engine_init(weft_diag *dg, engine *e, session *run)
{
    const plan *p = session_plan_of(run);
    *e = (engine){.run = run, .most = session_most(run)};
    for (int32_t i = 0; i < p->n_output; i++)
        if (strcmp(p->output[i].name, "logits") == 0 && p->output[i].index < 0 &&
            p->output[i].rows == ROWS_R)
            e->vocab = p->output[i].width;
        else if (strcmp(p->output[i].name, "hidden") == 0 && p->output[i].index < 0 &&
                 p->output[i].rows == ROWS_T)
            e->hidden = p->output[i].width;
    if (e->vocab < 1 || e->vocab > INT32_MAX || e->most.wants < 1)
        return weft_fail(dg, W1406, WEFT_NOWHERE,
                         "the session has no output logits to choose tokens from");
    if (session_prefix_stats(run).room > 0)
        e->share = (size_t)(e->most.page_tok > 0 ? e->most.page_tok : STATE_PAGE_TOK);
    e->rows = mem_alloc(mem_product((size_t)e->most.batch, sizeof *e->rows));
    e->order = mem_alloc(mem_product((size_t)e->most.batch, sizeof *e->order));
    if (session_chooses(run)) {
        const size_t wants = (size_t)e->most.wants;
        chooser_init(&e->pick, run);
        e->samplers = mem_alloc(mem_product(wants, sizeof *e->samplers));
        e->more = mem_alloc(mem_product(wants, sizeof *e->more));
        e->ids = mem_alloc(mem_product(wants, sizeof *e->ids));
    }
    return WEFT_OK;
}

void engine_deinit(engine *e)
{
    mem_free(e->rows);
    mem_free(e->order);
    mem_free(e->samplers);
    mem_free(e->more);
    mem_free(e->ids);
    chooser_deinit(&e->pick);
}

static size_t rows_left(const generation *g)
{
    return g->r->n_id - g->n_held;
}

/* A step in the making: rows, and who has them. */
typedef struct {
    int64_t n_row, n_want;
    size_t n_gen;
} call;

/* The next n ids of g; logits of the last if no id is left behind them. */
static void add_rows(engine *e, call *c, generation *g, size_t n)
{
    if (g->n_held < g->part && g->part - g->n_held < n)
        n = g->part - g->n_held;
    bool last = n == rows_left(g) && !g->sum;
    generation_note_mix(g);
    for (size_t i = 0; i < n; i++) {
        size_t at = g->n_held + i;
        e->rows[c->n_row++] = (batch_row){.id = g->r->ids[at],
                                          .pos = (int32_t)at,
                                          .seq = (int32_t)g->seq,
                                          .out = last && i + 1 == n};
    }
    c->n_want += last;
    g->n_row = n;
    e->order[c->n_gen++] = g;
}

/* Whole pages of ids at the beginning of both prompts, of which the last of g's is evaluated in any case. */
static size_t in_common(const engine *e, const generation *f, const generation *g)
{
    size_t n = f->r->n_prompt < g->r->n_prompt - 1 ? f->r->n_prompt : g->r->n_prompt - 1, i = 0;
    while (i < n && f->r->ids[i] == g->r->ids[i])
        i++;
    return i - i % e->share;
}

static bool in_prompt(const generation *g)
{
    return !g->r->ended && g->n_held < g->r->n_prompt;
}

static bool has_begun(const generation *g)
{
    return g->n_held > g->n_kept;
}

/* A prompt that has not begun waits for one that is going to reach what the two have in common, and leaves it there. */
static void find_waiting(const engine *e, generation *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        generation *g = list[i];
        g->waits = false;
        if (!in_prompt(g) || has_begun(g))
            continue;
        for (size_t k = 0; k < n && !g->waits; k++) {
            generation *f = list[k];
            if (k == i || !in_prompt(f) || f->waits || !(has_begun(f) || k < i) || f->key != g->key)
                continue;
            size_t common = in_common(e, f, g);
            g->waits = common > f->n_held && common >= g->n_held + e->share;
            if (g->waits && (f->part <= f->n_held || f->part > common))
                f->part = common;
        }
    }
}

/* Who of those with one row to go (`single`), or with more, has waited longest and is not in the call. */
static generation *longest_waiting(const engine *e, generation *const *list, size_t n, bool single)
{
    generation *found = NULL;
    for (size_t i = 0; i < n; i++) {
        generation *g = list[i];
        if (!g->r->ended && !g->waits && g->turn != e->turn && (rows_left(g) == 1) == single &&
            (!found || g->turn < found->turn))
            found = g;
    }
    return found;
}

/* Has the call room for one more generation, and `spare` others after it? */
static bool has_room(const engine *e, const call *c, int64_t spare)
{
    return c->n_row + spare < e->most.batch && c->n_want + spare < e->most.wants &&
           (int64_t)c->n_gen + spare < e->most.call_sequences;
}

/* Next tokens first, then parts of prompts; but a prompt that has waited longer than all others has a place kept for it. */
static void gather(engine *e, call *c, generation *const *list, size_t n)
{
    e->turn++;
    if (e->share)
        find_waiting(e, list, n);
    generation *next = longest_waiting(e, list, n, true),
               *begun = longest_waiting(e, list, n, false);
    bool kept = begun && next && begun->turn < next->turn;
    for (int single = 1; single >= 0; single--)
        while (has_room(e, c, single && kept)) {
            generation *g = longest_waiting(e, list, n, single);
            if (!g)
                break;
            generation_look(g);
            size_t room = (size_t)(e->most.batch - c->n_row);
            add_rows(e, c, g, rows_left(g) < room ? rows_left(g) : room);
            g->turn = e->turn;
        }
}

static weft_status check_list(weft_diag *dg, const engine *e, generation *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (list[i]->e != e)
            return weft_fail(dg, W1406, WEFT_NOWHERE, "generation %zu is of another session", i);
        if (list[i]->r->n_id == 0)
            return weft_fail(dg, W1406, WEFT_NOWHERE, "generation %zu has no prompt", i);
        for (size_t k = 0; k < i; k++)
            if (list[k]->seq == list[i]->seq)
                return weft_fail(dg, W1403, WEFT_NOWHERE,
                                 "generations %zu and %zu use the same sequence, %lld", k, i,
                                 (long long)list[i]->seq);
    }
    return WEFT_OK;
}

/* Give the rows of logits to those who asked for one, in the order of their rows. */
static weft_status take_logits(weft_diag *dg, const engine *e, const call *c)
{
    const float *logits = NULL;
    int64_t n_row = 0, width = 0;
    weft_status st = WEFT_OK;
    if (c->n_want && (!session_output(e->run, "logits", -1, &logits, &n_row, &width) ||
                      n_row != c->n_want || width != e->vocab))
        return weft_fail(dg, W1406, WEFT_NOWHERE, "the session gives no logits");
    for (size_t i = 0; i < c->n_gen; i++) {
        generation *g = e->order[i];
        if (rows_left(g) > 0 || g->sum) /* in the middle of its prompt */
            continue;
        weft_status one = request_take(dg, g->r, logits);
        logits += width;
        st = st != WEFT_OK ? st : one;
    }
    return st;
}

/* Will all of its rows in the call have been evaluated, so that it gets a token? */
static bool gets_token(const generation *g)
{
    return rows_left(g) == g->n_row && !g->sum;
}

/* Can the device choose all tokens of the call? Then e has what it needs to know. */
static bool is_on_device(engine *e, const call *c)
{
    int64_t n = 0;
    if (!e->pick.run || c->n_want == 0)
        return false;
    for (size_t i = 0; i < c->n_gen; i++) {
        const generation *g = e->order[i];
        if (g->sum)
            return false; /* such calls have no outputs */
        if (!gets_token(g))
            continue;
        if (!generation_on_device(g))
            return false;
        e->samplers[n] = g->r->pick;
        e->more[n++] = generation_goes_on(g);
    }
    return true;
}

/* The rows evaluated, and in e->ids what the device chose for those who get a token. */
static weft_status run_call(weft_diag *dg, engine *e, const call *c, bool on_device)
{
    if (c->n_gen == 0)
        return WEFT_OK;
    return on_device ? chooser_run(dg, &e->pick, e->rows, c->n_row, e->samplers, e->more, e->ids)
                     : session_eval(dg, e->run, e->rows, c->n_row);
}

/* Give tokens to those who asked, in the order of their rows. */
static weft_status take_ids(weft_diag *dg, const engine *e, const call *c)
{
    const int32_t *id = e->ids;
    weft_status st = WEFT_OK;
    for (size_t i = 0; i < c->n_gen; i++) {
        if (rows_left(e->order[i]) > 0)
            continue;
        weft_status one = request_take_id(dg, e->order[i]->r, *id++);
        st = st != WEFT_OK ? st : one;
    }
    return st;
}

/* Add the rows of the output hidden to the sums of those who want them; who has read all of its prompt has ended. */
static weft_status take_hidden(weft_diag *dg, const engine *e, const call *c)
{
    const float *row = NULL;
    int64_t n_row = 0, width = 0;
    bool wanted = false;
    for (size_t i = 0; i < c->n_gen; i++)
        wanted = wanted || e->order[i]->sum;
    if (!wanted)
        return WEFT_OK;
    if (!session_output(e->run, "hidden", -1, &row, &n_row, &width) || n_row != c->n_row ||
        width != e->hidden)
        return weft_fail(dg, W1406, WEFT_NOWHERE, "the session gives no output hidden");
    for (size_t i = 0; i < c->n_gen; i++) {
        generation *g = e->order[i];
        for (size_t k = 0; k < g->n_row; k++, row += width)
            for (int64_t at = 0; g->sum && at < width; at++)
                g->sum[at] += (double)row[at];
        if (g->sum && rows_left(g) == 0)
            request_stop(g->r, GEN_LENGTH);
    }
    return WEFT_OK;
}

/* The call that was gathered, and what it brings; the others of the list have nothing new. */
static weft_status finish(weft_diag *dg, engine *e, const call *c, generation *const *list,
                          size_t n)
{
    bool on_device = is_on_device(e, c);
    WEFT_TRY(run_call(dg, e, c, on_device));
    for (size_t i = 0; i < n; i++)
        request_wait(list[i]->r);
    for (size_t i = 0; i < c->n_gen; i++)
        e->order[i]->n_held += e->order[i]->n_row;
    weft_status st = on_device ? take_ids(dg, e, c) : take_logits(dg, e, c);
    weft_status sums = take_hidden(dg, e, c);
    st = st != WEFT_OK ? st : sums;
    for (size_t i = 0; i < c->n_gen; i++)
        generation_keep(e->order[i]);
    return st;
}

weft_status engine_step(weft_diag *dg, engine *e, generation *const *list, size_t n)
{
    call c = {0};
    WEFT_TRY(check_list(dg, e, list, n));
    gather(e, &c, list, n);
    return finish(dg, e, &c, list, n);
}

weft_status engine_run(weft_diag *dg, engine *e, const engine_part *parts, size_t n)
{
    call c = {0};
    e->turn++;
    for (size_t i = 0; i < n; i++) {
        generation *g = parts[i].g;
        WEFT_ASSERT(g->seq >= 0 && parts[i].rows > 0 && parts[i].rows <= rows_left(g) &&
                    (int64_t)parts[i].rows <= e->most.batch - c.n_row);
        add_rows(e, &c, g, parts[i].rows);
        g->turn = e->turn;
    }
    return finish(dg, e, &c, e->order, c.n_gen);
}
