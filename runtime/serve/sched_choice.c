/* sched_choice.c - one choice: how it comes to a sequence and loses it, what is told of it, and its end. */
#include "runtime/base/clock.h"
#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"
#include "runtime/serve/sched_impl.h"
#include <stdio.h>
#include <string.h>

str diag_last(const weft_diag *dg, weft_code *out_code)
{
    size_t n = diag_count(dg);
    if (n == 0) {
        *out_code = W1110; /* the one that is recorded without memory */
        return STR("not enough memory");
    }
    diag_entry e = diag_at(dg, n - 1);
    *out_code = e.code;
    return e.message;
}

size_t choice_ids(const choice *c)
{
    size_t n = c->of->o.n_id;
    if (c->g)
        request_ids(generation_request(c->g), &n);
    return n;
}

/* ---- siblings ---- */

choice *choice_sibling(const choice *c, bool *out_waits)
{
    const job *j = c->of;
    choice *found = NULL;
    bool coming = false;
    for (int64_t i = 0; i < j->n_choice && !found; i++) {
        choice *x = &j->choices[i];
        if (x == c || x->ended)
            continue;
        if (x->running && generation_held(x->g) + 1 >= j->o.n_id)
            found = x;
        else if (x->running || (!x->g && x->index < c->index))
            coming = true;
    }
    *out_waits = !found && coming && !c->g;
    return found;
}

/* ---- sequences ---- */

static request_options options_of(const choice *c)
{
    const sched_job *o = &c->of->o;
    request_options r = {.max_tokens = o->max_tokens > 0 ? o->max_tokens : -1,
                         .min_tokens = o->min_tokens,
                         .stops = o->stops,
                         .n_stop = o->n_stop,
                         .ignore_end = o->ignore_end,
                         .show_special = o->show_special,
                         .n_top = o->n_top,
                         .filter = o->filter,
                         .pick = o->pick};
    r.pick.seed += (uint64_t)c->index;
    if (c->of->n_choice > o->n && r.n_top < 0)
        r.n_top = 0; /* the likeliest of them are shown */
    return r;
}

static weft_status make(weft_diag *dg, scheduler *s, choice *c)
{
    MEM_SCOPE(scope);
    if (sigsetjmp(scope.env, 0) != 0)
        return diag_fail_memory(dg, scope.bytes);
    const sched_job *o = &c->of->o;
    generation_options how = {.seq = GENERATION_NOWHERE, .how = options_of(c)};
    generation *g;
    WEFT_TRY(generation_create(dg, &s->e, s->text, &how, &g));
    weft_status st = generation_begin(dg, g, o->ids, o->n_id);
    if (st == WEFT_OK && o->embed)
        st = generation_pool(dg, g);
    if (st != WEFT_OK) {
        generation_destroy(g);
        return st;
    }
    c->g = g;
    return WEFT_OK;
}

static int64_t free_seq(const scheduler *s)
{
    int64_t i = 0;
    while (i < s->e.most.sequences && s->seq_used[i])
        i++;
    WEFT_ASSERT(i < s->e.most.sequences); /* the policy counts them */
    return i;
}

static weft_status place(weft_diag *dg, scheduler *s, choice *c, int64_t seq)
{
    bool waits;
    choice *from = choice_sibling(c, &waits);
    if (swap_in(s, c, seq))
        return WEFT_OK;
    if (from)
        return generation_place_by(dg, c->g, seq, from->g, c->of->o.n_id - 1);
    return generation_place(dg, c->g, seq);
}

static void tell_started(scheduler *s, choice *c);

weft_status choice_begin(weft_diag *dg, scheduler *s, choice *c)
{
    int64_t seq = free_seq(s);
    if (!c->g)
        WEFT_TRY(make(dg, s, c));
    WEFT_TRY(adapter_use_begin(dg, s, c->of->lora, seq, c->of->o.adapter_scale));
    weft_status st = place(dg, s, c, seq);
    if (st != WEFT_OK) {
        adapter_use_end(s, c->of->lora, seq);
        return st;
    }
    s->seq_used[seq] = true;
    c->running = true;
    generation_part(c->g, c->part);
    c->part = 0;
    if (c->of->counted) {
        c->of->counted = false;
        pthread_mutex_lock(&s->lock);
        s->queued--;
        pthread_mutex_unlock(&s->lock);
    }
    if (!c->begun_ns) {
        c->begun_ns = clock_ns();
        c->n_cached = (int64_t)generation_held(c->g);
        s->did.tokens_prompt += c->of->o.n_id;
        s->did.tokens_cached += (uint64_t)c->n_cached;
        histogram_add(&s->did.queue, c->begun_ns - c->of->arrived_ns);
        tell_started(s, c);
    }
    return WEFT_OK;
}

/* Its sequence is free again; what it holds is kept for others as far as there is room. */
static void give_back(scheduler *s, choice *c, int64_t seq)
{
    generation_leave(c->g);
    adapter_use_end(s, c->of->lora, seq);
    s->seq_used[seq] = false;
    c->running = false;
}

void choice_preempt(scheduler *s, choice *c)
{
    int64_t seq = generation_seq(c->g);
    if (!swap_out(s, c))
        s->did.preempted_recompute++;
    else if (c->swap.way == SCHED_TO_MEMORY)
        s->did.preempted_memory++;
    else
        s->did.preempted_disk++;
    give_back(s, c, seq);
}

/* ---- events ---- */

static sched_event event_of(const choice *c, sched_event_kind kind)
{
    const job *j = c->of;
    uint64_t at = j->arrived_ns;
    return (sched_event){.kind = kind,
                         .id = j->id,
                         .user = j->o.user,
                         .choice = c->index,
                         .token = TOK_NONE,
                         .code = W1110,
                         .logprobs = c->logprobs,
                         .n_prompt = (int64_t)j->o.n_id,
                         .n_cached = c->n_cached,
                         .n_generated = c->n_generated,
                         .n_read = c->g ? (int64_t)generation_held(c->g) : 0,
                         .wait_ns = c->begun_ns ? c->begun_ns - at : 0,
                         .first_ns = c->first_ns ? c->first_ns - at : 0,
                         .total_ns = clock_ns() - at};
}

static void tell(const scheduler *s, const job *j, const sched_event *ev)
{
    if (j->o.on_event)
        j->o.on_event(j->o.ctx, ev);
    else if (s->o.on_event)
        s->o.on_event(s->o.ctx, ev);
}

/* Are more answers generated than shown? Then nothing is, until all have ended. */
static bool is_held(const job *j)
{
    return j->n_choice > j->o.n;
}

static void tell_started(scheduler *s, choice *c)
{
    sched_event ev = event_of(c, SCHED_STARTED);
    if (!is_held(c->of))
        tell(s, c->of, &ev);
}

static void add_piece(sched_event *ev, const gen_piece *p)
{
    ev->token = p->id;
    ev->text = p->text;
    ev->logprob = p->logprob;
    ev->top = p->top;
    ev->n_top = p->n_top;
}

static str stop_text(const choice *c, int found)
{
    const sched_job *o = &c->of->o;
    return found >= 0 && (size_t)found < o->n_stop ? str_of(o->stops[found]) : (str){0};
}

/* Remember what is not told yet. A text that memory is too short for is told without its rest. */
static void hold(choice *c, const gen_piece *p)
{
    if (!is_held(c->of))
        return;
    MEM_SCOPE(scope);
    if (sigsetjmp(scope.env, 0) != 0)
        return;
    strbuf_put(&c->said, p->text);
    if (p->id == TOK_NONE)
        return;
    for (int64_t i = 0; c->of->o.n_top > 0 && i < p->n_top; i++)
        VEC_PUSH(&c->tops, p->top[i]);
    VEC_PUSH(&c->tokens,
             ((held_token){
                 .id = p->id, .logprob = p->logprob, .text_end = c->said.n, .top_end = c->tops.n}));
}

void choice_tell(scheduler *s, choice *c, uint64_t now_ns)
{
    const gen_piece *p = request_piece(generation_request(c->g));
    if (p->id == TOK_NONE) {
        sched_event ev = event_of(c, SCHED_READING);
        if (c->of->o.reading && !p->end)
            tell(s, c->of, &ev);
        return;
    }
    if (!c->first_ns) {
        c->first_ns = now_ns;
        histogram_add(&s->did.first_token, now_ns - c->of->arrived_ns);
    } else {
        histogram_add(&s->did.inter_token, now_ns - c->last_ns);
    }
    c->last_ns = now_ns;
    c->n_generated++;
    c->logprobs += (double)p->logprob;
    s->did.tokens_generated++;
    hold(c, p);
    if (is_held(c->of) || p->end)
        return; /* it comes with the end */
    sched_event ev = event_of(c, SCHED_PIECE);
    add_piece(&ev, p);
    tell(s, c->of, &ev);
}

/* ---- the end ---- */

void job_destroy(job *j)
{
    for (int64_t i = 0; i < j->n_choice; i++) {
        generation_destroy(j->choices[i].g);
        strbuf_free(&j->choices[i].said);
        VEC_FREE(&j->choices[i].tokens);
        VEC_FREE(&j->choices[i].tops);
    }
    if (j->o.filter)
        j->o.filter->kind->destroy(j->o.filter);
    arena_destroy(j->a);
    mem_free(j);
}

static void job_end(scheduler *s, job *j)
{
    adapter_release(s, j->lora);
    pthread_mutex_lock(&s->lock);
    s->there--;
    s->single = s->single && !j->o.with;
    s->queued -= j->counted;
    s->shares[j->o.share].active--;
    pthread_mutex_unlock(&s->lock);
    job_destroy(j);
}

static double per_token(const choice *c)
{
    return c->n_generated > 0 ? c->logprobs / (double)c->n_generated : -1e30;
}

static bool is_better(const choice *a, const choice *b)
{
    bool fa = a->end == SCHED_END_FAILED || a->end == SCHED_END_REFUSED;
    bool fb = b->end == SCHED_END_FAILED || b->end == SCHED_END_REFUSED;
    if (fa != fb)
        return fb;
    return per_token(a) > per_token(b);
}

/* A token that was held, into an event, with the text from *at on; to its end where it is the last. */
static void add_held(sched_event *ev, const choice *c, size_t i, size_t *at)
{
    const held_token *t = &c->tokens.at[i];
    size_t top = i > 0 ? t[-1].top_end : 0, end = i + 1 < c->tokens.n ? t->text_end : c->said.n;
    ev->token = t->id;
    ev->logprob = t->logprob;
    ev->n_top = (int64_t)(t->top_end - top);
    ev->top = ev->n_top > 0 ? &c->tops.at[top] : NULL;
    ev->text = (str){c->said.p + *at, end - *at};
    ev->n_generated = (int64_t)i + 1;
    *at = end;
}

/* All that was held of a choice, as it would have been told; the last token comes with the end. */
static void tell_held(scheduler *s, choice *c)
{
    size_t at = 0, n = c->tokens.n;
    sched_event ev = event_of(c, SCHED_STARTED);
    tell(s, c->of, &ev);
    for (size_t i = 0; i + 1 < n; i++) {
        ev = event_of(c, SCHED_PIECE);
        add_held(&ev, c, i, &at);
        tell(s, c->of, &ev);
    }
    ev = event_of(c, SCHED_ENDED);
    ev.text = strbuf_view(&c->said);
    if (n > 0)
        add_held(&ev, c, n - 1, &at);
    ev.n_generated = c->n_generated;
    ev.end = c->end;
    ev.why = str_of(c->why);
    ev.code = c->code;
    ev.stop = stop_text(c, c->stop_found);
    tell(s, c->of, &ev);
}

/* The n likeliest, as choices 0 to n - 1. */
static void tell_best(scheduler *s, job *j)
{
    for (int64_t i = 0; i < j->o.n; i++) {
        choice *best = NULL;
        for (int64_t k = 0; k < j->n_choice; k++)
            if (j->choices[k].index >= 0 && (!best || is_better(&j->choices[k], best)))
                best = &j->choices[k];
        best->index = (int32_t)i;
        tell_held(s, best);
        best->index = -1; /* told */
    }
}

static void leave_list(scheduler *s, const choice *c)
{
    size_t i = 0;
    while (i < s->live.n && s->live.at[i] != c)
        i++;
    WEFT_ASSERT(i < s->live.n);
    memmove(&s->live.at[i], &s->live.at[i + 1], (s->live.n - i - 1) * sizeof s->live.at[0]);
    s->live.n--;
}

void choice_end(scheduler *s, choice *c, sched_end end, str why, weft_code code)
{
    job *j = c->of;
    const request *r = c->g ? generation_request(c->g) : NULL;
    sched_event ev = event_of(c, SCHED_ENDED);
    WEFT_ASSERT(!c->ended);
    leave_list(s, c);
    c->stop_found = -1;
    if (r &&
        request_end(r) == GEN_NONE) { /* from outside: what was held back of its text comes too */
        generation_stop(c->g, end == SCHED_END_CANCELLED ? GEN_CANCELLED : GEN_CALLER);
        if (request_end(r) == GEN_STOP && end != SCHED_END_FAILED)
            end = SCHED_END_STOP;
        hold(c, &(gen_piece){.id = TOK_NONE, .text = request_piece(r)->text});
    }
    if (r) {
        add_piece(&ev, request_piece(r));
        c->stop_found = request_stop_found(r);
    }
    ev.end = c->end = end;
    ev.why = why;
    ev.code = c->code = code;
    snprintf(c->why, sizeof c->why, STR_FMT, STR_ARG(why)); /* for the event of one that is held */
    if (j->o.embed && c->g && end == SCHED_END_LENGTH)
        ev.vector = generation_pooled(c->g, &ev.n_vector);
    if (end == SCHED_END_STOP)
        ev.stop = stop_text(c, c->stop_found);
    c->ended = true;
    s->did.ended[end]++;
    if (!is_held(j))
        tell(s, j, &ev);
    if (j->o.with)
        s->seq_used[generation_seq(c->g)] = false;
    else if (c->running)
        give_back(s, c, generation_seq(c->g));
    swap_drop(s, c);
    if (!j->o.with)
        generation_destroy(c->g);
    c->g = NULL;
    if (--j->n_left > 0)
        return;
    if (is_held(j))
        tell_best(s, j);
    job_end(s, j);
}
