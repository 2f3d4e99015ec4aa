/* sched_step.c - a step: what came from outside, whose time is up, who has rows, one call of the session, and what it brought. */
#include "runtime/base/clock.h"
#include "runtime/base/mem.h"
#include "runtime/serve/sched_impl.h"
#include <string.h>

#define NS_PER_MS UINT64_C(1000000)

/* ---- what came from outside ---- */

static void end_plain(scheduler *s, choice *c, sched_end end)
{
    choice_end(s, c, end, (str){0}, W1110);
}

/* All choices of a job that have not ended; it is gone afterwards. */
static void end_job(scheduler *s, sched_id id, sched_end end)
{
    for (size_t i = s->live.n; i-- > 0;)
        if (i < s->live.n && s->live.at[i]->of->id == id)
            end_plain(s, s->live.at[i], end);
}

static void take_job(scheduler *s, job *j)
{
    j->lora = adapter_for(s, j->o.adapter);
    if (j->o.with)
        s->seq_used[generation_seq(j->o.with)] = true;
    for (int64_t i = 0; i < j->n_choice; i++) {
        j->choices[i].order = ++s->n_order;
        VEC_PUSH(&s->live, &j->choices[i]);
    }
    s->did.jobs++;
}

static char *next_reload(scheduler *s)
{
    pthread_mutex_lock(&s->lock);
    char *name = s->reloads.n > 0 ? s->reloads.at[--s->reloads.n] : NULL;
    pthread_mutex_unlock(&s->lock);
    return name;
}

/* The lock is held for as long as a list is emptied, and not while jobs end, as their events may add others. */
static void take_inbox(scheduler *s)
{
    for (char *name; (name = next_reload(s));) {
        adapters_mark_stale(s, name);
        mem_free(name);
    }
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->inbox.n; i++)
        take_job(s, s->inbox.at[i]);
    s->inbox.n = 0;
    /* With the jobs that they name: one that comes later is for a job that is not here yet. */
    sched_ids cancelled = s->cancels;
    s->cancels = s->ending;
    s->ending = cancelled;
    for (int i = 0; i < SCHED_SHARES_MAX; i++)
        s->served[i] = s->shares[i].served;
    pthread_mutex_unlock(&s->lock);
}

static void end_what_must(scheduler *s)
{
    uint64_t now = clock_ns();
    for (size_t i = 0; i < s->ending.n; i++)
        end_job(s, s->ending.at[i], SCHED_END_CANCELLED);
    s->ending.n = 0;
    for (size_t i = s->live.n; i-- > 0;) {
        const choice *c = i < s->live.n ? s->live.at[i] : NULL;
        if (c && c->of->deadline_ns && now >= c->of->deadline_ns)
            end_job(s, c->of->id, SCHED_END_DEADLINE);
    }
    pthread_mutex_lock(&s->lock);
    bool over = s->draining && now >= s->drain_ns;
    pthread_mutex_unlock(&s->lock);
    while (over && s->live.n > 0)
        end_plain(s, s->live.at[s->live.n - 1], SCHED_END_DRAINED);
}

/* ---- who waits for whom ---- */

/* Whole pages that the prompts of two jobs have in common, in tokens: those of which the hashes agree. */
static size_t in_common(const scheduler *s, const job *a, const job *b)
{
    size_t lo = 0, hi = a->n_page < b->n_page ? a->n_page : b->n_page;
    while (lo < hi) {
        size_t mid = (lo + hi + 1) / 2;
        if (a->pages[mid - 1] == b->pages[mid - 1])
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo * s->e.share;
}

static bool reads_prompt(const choice *c)
{
    return c->running && generation_held(c->g) < c->of->o.n_id;
}

/* What a prompt that has not begun has in common with others. It waits for one that is going to reach that, and leaves its state there: one that is
 * being read, or that came before and waits for nobody itself. What one that was read has of it are pages that the two will share. Only
 * a few are compared: behind a long queue it is no use. */
static void compare_prompts(scheduler *s, size_t at)
{
    enum { COMPARED_MAX = 48 };
    const size_t most = COMPARED_MAX + (size_t)s->most, page = s->e.share;
    const choice *c = s->live.at[at];
    sched_item *x = &s->items.at[at];
    if (!page || c->g || at > most)
        return;
    for (size_t i = 0; i < s->live.n && i < most && !x->waits; i++) {
        choice *f = s->live.at[i];
        bool before = i < at && !f->g && !s->items.at[i].waits;
        if (f->of == c->of || f->of->lora != c->of->lora || !(f->running || before))
            continue;
        size_t common = in_common(s, f->of, c->of), held = f->g ? generation_held(f->g) : 0;
        if (f->running && !reads_prompt(f)) {
            if ((int64_t)common > x->n_shared)
                x->n_shared = (int64_t)common;
        } else if (common > held && common >= page) {
            x->waits = true;
            if (f->g)
                generation_part(f->g, common);
            else if (f->part == 0 || common < f->part)
                f->part = common;
        }
    }
}

/* ---- deciding ---- */

static sched_item item_of(scheduler *s, size_t at)
{
    choice *c = s->live.at[at];
    const job *j = c->of;
    sched_item x = {.order = c->order,
                    .arrived = j->arrived_ns,
                    .priority = j->o.priority,
                    .share = j->o.share,
                    .adapter = j->lora ? j->lora->number : 0,
                    .running = c->running,
                    .n_id = (int64_t)choice_ids(c)};
    if (c->running) {
        int64_t seq = generation_seq(c->g);
        x.n_held = (int64_t)generation_held(c->g);
        x.pages_alone = s->alone[seq];
        x.shares_last = s->shares_last[seq];
    } else if (choice_sibling(c, &x.waits)) {
        x.n_shared = (int64_t)j->o.n_id - 1;
    }
    return x;
}

/* The items, and what there is for them. */
static void decide(scheduler *s)
{
    session_limits most = session_most(s->run);
    int64_t used = session_pages_used(s->run, s->alone, s->shares_last), n_decode = 0;
    s->items.n = s->order.n = 0;
    for (size_t i = 0; i < s->live.n; i++) {
        sched_item x = item_of(s, i);
        n_decode += x.running && x.n_id - x.n_held == 1;
        VEC_PUSH(&s->items, x);
        VEC_PUSH(&s->order, 0);
        if (!x.running && !x.waits && x.n_shared == 0)
            compare_prompts(s, i);
    }
    uint64_t max_ns = (uint64_t)s->o.max_itl_ms * NS_PER_MS;
    sched_room room = {.now = clock_ns(),
                       .patience = (uint64_t)s->o.patience_ms * NS_PER_MS,
                       .batch = most.batch,
                       .sequences = s->most,
                       .page_tok = most.page_tok,
                       .pages_free = most.pages - used,
                       .prompt_rows = sched_clock_rows(&s->clock, n_decode, max_ns),
                       .chunk_min = s->o.chunk_min,
                       .adapter_slots = s->n_slot,
                       .served = s->served};
    if (room.prompt_rows > most.batch)
        room.prompt_rows = most.batch;
    s->did.budget_rows = room.prompt_rows;
    sched_decide(&room, s->items.at, (int32_t)s->items.n, s->order.at);
}

/* ---- carrying it out ---- */

/* The first by rank of those that run. The policy counts pages without looking at them: should it have paused everybody, the session
 * has the last word. */
static void run_first(scheduler *s)
{
    for (size_t k = 0; k < s->items.n; k++) {
        choice *c = s->live.at[s->order.at[k]];
        if (!c->running)
            continue;
        c->held_before = generation_held(c->g);
        VEC_PUSH(&s->in_call, c);
        VEC_PUSH(&s->parts, ((engine_part){.g = c->g, .rows = 1}));
        return;
    }
}

/* Give those that were chosen their sequences, as far as they have none; what cannot begin has ended. */
static void begin_chosen(scheduler *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->in_call.n; i++) {
        choice *c = s->in_call.at[i];
        diag_reset(s->quiet);
        if (!c->running && choice_begin(s->quiet, s, c) != WEFT_OK) {
            weft_code code;
            str why = diag_last(s->quiet, &code);
            choice_end(s, c, code == W1110 ? SCHED_END_FAILED : SCHED_END_REFUSED, why, code);
            continue;
        }
        c->held_before = generation_held(c->g);
        size_t left = choice_ids(c) - c->held_before, rows = s->parts.at[i].rows;
        if (rows == 0)
            continue;
        s->parts.at[n] = (engine_part){.g = c->g, .rows = rows < left ? rows : left};
        s->in_call.at[n++] = c;
    }
    s->in_call.n = s->parts.n = n;
}

/* Sequences go, then others come, by rank. All choices are looked up before any ends: that moves the list which items are
 * numbered by. */
static void carry_out(scheduler *s)
{
    bool any = false;
    s->in_call.n = s->parts.n = 0;
    for (size_t k = 0; k < s->items.n; k++) {
        const sched_item *x = &s->items.at[s->order.at[k]];
        choice *c = s->live.at[s->order.at[k]];
        any = any || x->action != SCHED_PAUSE;
        if (x->action == SCHED_PREEMPT)
            choice_preempt(s, c);
        if (x->action != SCHED_RUN)
            continue;
        VEC_PUSH(&s->in_call, c);
        VEC_PUSH(&s->parts, ((engine_part){.rows = (size_t)x->rows}));
    }
    if (any)
        begin_chosen(s);
    else
        run_first(s);
}

static void count_rows(scheduler *s)
{
    uint64_t prompt = 0, decode = 0;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->in_call.n; i++) {
        const choice *c = s->in_call.at[i];
        int64_t rows = (int64_t)(generation_held(c->g) - c->held_before);
        if (c->first_ns && rows == 1)
            decode++;
        else
            prompt += (uint64_t)rows;
        sched_share_charge(s->shares, (int32_t)c->of->o.share, rows);
    }
    pthread_mutex_unlock(&s->lock);
    s->did.rows_prompt += prompt;
    s->did.rows_decode += decode;
}

/* Tokens to those who got one, ends to those who ended. */
static void tell_all(scheduler *s, const weft_diag *dg)
{
    uint64_t now = clock_ns();
    for (size_t i = 0; i < s->in_call.n; i++) {
        choice *c = s->in_call.at[i];
        choice_tell(s, c, now);
        gen_end end = request_end(generation_request(c->g));
        if (end == GEN_FAILED) {
            weft_code code;
            str why = diag_last(dg, &code);
            choice_end(s, c, SCHED_END_FAILED, why, code);
        } else if (end != GEN_NONE) {
            end_plain(s, c, (sched_end)end);
        }
    }
}

/* No pages after all: those that others hold were counted twice, or a tier was short. The last of the call gives way; one that is
 * alone has all there are. */
static void make_way(scheduler *s)
{
    choice *last = s->in_call.at[s->in_call.n - 1];
    int64_t running = 0;
    for (size_t i = 0; i < s->live.n; i++)
        running += s->live.at[i]->running;
    if (running > 1)
        choice_preempt(s, last);
    else
        end_plain(s, last, SCHED_END_CONTEXT);
}

static weft_status run_call(weft_diag *dg, scheduler *s)
{
    size_t n_before = diag_count(dg), n_row = 0;
    for (size_t i = 0; i < s->parts.n; i++)
        n_row += s->parts.at[i].rows;
    uint64_t begin = clock_ns();
    weft_status st = engine_run(dg, &s->e, s->parts.at, s->parts.n);
    uint64_t ns = clock_ns() - begin;
    const choice *first = s->in_call.at[0];
    bool ran = generation_held(first->g) > first->held_before;
    if (ran) {
        sched_clock_add(&s->clock, (int64_t)n_row, ns);
        histogram_add(&s->did.step, ns);
        s->did.steps++;
        count_rows(s);
        tell_all(s, dg);
        diag_keep_first(dg, n_before);
        return WEFT_OK;
    }
    if (st == WEFT_ERR_FULL) {
        diag_keep_first(dg, n_before);
        make_way(s);
        return WEFT_OK;
    }
    if (st == WEFT_ERR_CANCELLED)
        return st;
    /* The session itself has failed: nobody in the call can go on. */
    weft_code code;
    str why = diag_last(dg, &code);
    for (size_t i = 0; i < s->in_call.n; i++)
        choice_end(s, s->in_call.at[i], SCHED_END_FAILED, why, code);
    return st;
}

/* ---- what others may see ---- */

static sched_row row_of(const scheduler *s, const choice *c, uint64_t now)
{
    const job *j = c->of;
    size_t held = c->g ? generation_held(c->g) : 0;
    sched_row r = {.id = j->id,
                   .choice = c->index,
                   .priority = j->o.priority,
                   .share = j->o.share,
                   .state = !c->running        ? (c->g ? SCHED_PREEMPTED : SCHED_WAITS)
                            : held < j->o.n_id ? SCHED_READS
                                               : SCHED_WRITES,
                   .n_prompt = (int64_t)j->o.n_id,
                   .n_held = (int64_t)held,
                   .n_generated = c->n_generated,
                   .pages = sched_pages_of(s->e.most.page_tok, (int64_t)held),
                   .age_ns = now - j->arrived_ns};
    if (j->lora)
        strncpy(r.adapter, j->lora->name, sizeof r.adapter - 1);
    return r;
}

static void show(scheduler *s)
{
    enum { ROWS_MAX = 256 };
    session_limits most = session_most(s->run);
    uint64_t now = clock_ns();
    sched_stats *d = &s->did;
    d->waiting = d->running = d->preempted = 0;
    for (size_t i = 0; i < s->live.n; i++) {
        const choice *c = s->live.at[i];
        *(c->running ? &d->running : c->g ? &d->preempted : &d->waiting) += 1;
    }
    d->sequences = s->most;
    d->batch = most.batch;
    d->context = s->e.most.context;
    d->page_tok = most.page_tok;
    d->pages = most.pages;
    d->pages_free = most.pages_free;
    d->pages_kept =
        most.pages - most.pages_free - session_pages_used(s->run, s->alone, s->shares_last);
    int32_t n_tier = session_tiers(s->run, d->tiers, SCHED_TIERS);
    d->n_tier = n_tier < SCHED_TIERS ? n_tier : SCHED_TIERS;
    d->swap_memory_bytes = (int64_t)s->kept_memory;
    d->swap_disk_bytes = (int64_t)s->kept_disk;
    d->adapter_slots = s->n_slot;
    d->prefixes = session_prefix_stats(s->run);
    pthread_mutex_lock(&s->lock);
    uint64_t refused = s->shown.refused;
    s->shown = *d;
    s->shown.refused = refused;
    s->shown.draining = s->draining;
    s->rows.n = 0;
    for (size_t i = 0; i < s->live.n && i < ROWS_MAX; i++)
        VEC_PUSH(&s->rows, row_of(s, s->live.at[i], now));
    pthread_mutex_unlock(&s->lock);
}

weft_status scheduler_step(weft_diag *dg, scheduler *s)
{
    weft_status st = WEFT_OK;
    take_inbox(s);
    end_what_must(s);
    if (s->live.n > 0) {
        decide(s);
        carry_out(s);
    }
    if (s->live.n > 0 && s->parts.n > 0)
        st = run_call(dg, s);
    show(s);
    return st;
}
