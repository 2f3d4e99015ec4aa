/* talk.c - what `run` and `chat` share: open a model, generate text. */
#include "runtime/cli/talk.h"

#include "runtime/api/api_impl.h"
#include "runtime/base/clock.h"
#include "runtime/base/mem.h"
#include "runtime/base/memory.h"
#include "runtime/base/prefault.h"
#include "runtime/cli/id_list.h"
#include "runtime/cli/interrupt.h"
#include "runtime/serve/scheduler.h"

#include <time.h>

enum { CONTEXT_DEFAULT = 8192 };

/* ---- how long a context ---- */

/* For a session that is to be opened like this. */
static int64_t choose_context(talk *t, weft_session_options like)
{
    int64_t known = weft_model_context(t->m), trained = known ? known : CONTEXT_DEFAULT;
    if (t->f->open.context >= 0)
        return t->f->open.context > 0 ? t->f->open.context : trained;
    int64_t wanted = trained < CONTEXT_DEFAULT ? trained : CONTEXT_DEFAULT;
    uint64_t room = memory_available("").bytes / 2;
    like.context = wanted;
    while (like.context > 256 && weft_state_bytes(t->m, &like) > room)
        like.context /= 2;
    if (like.context < wanted)
        cli_say(t->c, "memory is short: a context of %lld tokens instead of %lld (-c sets it)",
                (long long)like.context, (long long)wanted);
    return like.context;
}

/* ---- how tokens are chosen ---- */

static uint64_t new_seed(void)
{
    return ((uint64_t)time(NULL) * 1000003u ^ clock_ns()) & 0xffffffffu;
}

static weft_status read_bias(talk *t, const talk_flags *f, weft_bias **out)
{
    const flag_list *l = &f->bias;
    weft_bias *bias = ARENA_ARRAY(t->a, weft_bias, l->n + 1);
    for (size_t i = 0; i < l->n; i++) {
        WEFT_TRY(id_bias_read(t->c->dg, "--logit-bias", l->at[i], &bias[i].token, &bias[i].bias));
    }
    *out = bias;
    return WEFT_OK;
}

static weft_status sampler_of(talk *t, const talk_flags *f, weft_sampler_options *out)
{
    weft_sampler_options o = f->pick;
    weft_bias *bias = NULL;
    WEFT_TRY(read_bias(t, f, &bias));
    o.size = sizeof o;
    o.seed = f->seed >= 0 ? (uint64_t)f->seed : new_seed();
    o.mirostat = (int)f->mirostat;
    o.bias = bias;
    o.n_bias = f->bias.n;
    *out = o;
    return WEFT_OK;
}

/* Create the generation, or give it other options. */
weft_status talk_change(talk *t, const talk_flags *f)
{
    weft_sampler_options pick;
    WEFT_TRY(sampler_of(t, f, &pick));
    weft_generation_options o = {.size = sizeof o,
                                 .max_tokens = f->n > 0 ? f->n : 0,
                                 .stops = f->stop.at,
                                 .n_stop = f->stop.n,
                                 .ignore_end = f->ignore_end,
                                 .logprobs = t->n_top >= 0,
                                 .top_logprobs = t->n_top > 0 ? t->n_top : 0,
                                 .sampler = &pick,
                                 .grammar = t->form};
    if (t->g)
        WEFT_TRY(weft_generation_change(t->c->dg, t->g, &o));
    else
        WEFT_TRY(weft_generation_create(t->c->dg, t->s, t->text, &o, &t->g));
    t->f = f;
    t->seed = pick.seed;
    const char *why = weft_generation_host_why(t->g);
    if (t->about.device && strcmp(t->about.device, "cpu") != 0)
        cli_say_verbose(t->c,
                        why ? "tokens are chosen on the host, because of %s"
                            : "tokens are chosen on the device",
                        why);
    return WEFT_OK;
}

/* ---- opening ---- */

weft_status talk_open(cli *c, const talk_flags *f, const talk_kind *kind, talk *t)
{
    uint64_t start = clock_ns();
    *t = (talk){.c = c,
                .f = f,
                .kind = kind,
                .a = arena_create(),
                .cancel = weft_cancel_create(),
                .n_top = -1,
                .about.size = sizeof t->about};
    if (!t->cancel)
        return weft_fail(c->dg, W1110, WEFT_NOWHERE, "not enough memory");
    prefault_code();
    WEFT_TRY(kind->open(t));
    WEFT_TRY(weft_tokenizer_of_model(c->dg, t->m, &t->text));
    progress bar = {0};
    weft_session_options how = kind->session(t, &bar);
    how.wants = 1;
    how.prefixes = f->prefixes;
    how.cancel = t->cancel;
    how.context = choose_context(t, how);
    WEFT_TRY(weft_session_create(c->dg, t->m, &how, &t->s));
    if (kind->ready)
        WEFT_TRY(kind->ready(t));
    if (kind->form)
        WEFT_TRY(kind->form(t));
    WEFT_TRY(weft_session_about(c->dg, t->s, &t->about));
    WEFT_TRY(talk_change(t, f));
    WEFT_TRY(scheduler_create(c->dg, t->s->run, t->text->text, &(sched_options){0}, &t->steps));
    interrupt_cancels(t->cancel);
    mem_give_back(); /* what compiling left */
    t->load_ns = clock_ns() - start;
    cli_say_verbose(c, "%s (%s): context %lld, %lld threads, seed %llu, %.1f MiB for the session",
                    t->from, weft_model_name(t->m), (long long)t->about.context,
                    (long long)t->about.threads, (unsigned long long)t->seed,
                    (double)weft_session_bytes(t->s) / (1 << 20));
    return WEFT_OK;
}

void talk_close(talk *t)
{
    interrupt_cancels(NULL);
    scheduler_destroy(t->steps);
    weft_generation_destroy(t->g);
    weft_template_close(t->chat);
    weft_session_destroy(t->s);
    if (t->kind->close)
        t->kind->close(t);
    weft_cancel_destroy(t->cancel);
    weft_tokenizer_close(t->text);
    weft_model_close(t->m);
    arena_destroy(t->a);
}

/* ---- generating ---- */

weft_status talk_encode(talk *t, str text, talk_answer *r)
{
    return weft_encode(t->c->dg, t->text, text.p, text.n, WEFT_ADD_SPECIAL | WEFT_PARSE_SPECIAL,
                       &r->ids, &r->n_prompt);
}

void talk_answer_free(talk_answer *r)
{
    weft_free(r->ids);
    strbuf_free(&r->said);
}

typedef struct {
    talk *t;
    talk_answer *r;
    progress bar;
    bool show, begun;
    str before;
    uint64_t start;
    bool ended;
    weft_code code; /* why it failed, if it did */
    strbuf why;
} listener;

/* The prompt is through: what it took, and the text that the answer continues. */
static void begin(listener *l)
{
    if (l->begun)
        return;
    l->begun = true;
    progress_end(&l->bar);
    l->r->prompt_ns = clock_ns() - l->start;
    if (l->show)
        cli_print(l->t->c, l->before);
}

static bool on_piece(void *ctx, const weft_piece *p)
{
    listener *l = ctx;
    if (p->token < 0 && !p->end) {
        progress_update(&l->bar, (uint64_t)p->prompt_done);
    } else {
        begin(l);
        strbuf_put(&l->r->said, (str){p->text, p->bytes});
        if (l->show)
            cli_print(l->t->c, (str){p->text, p->bytes});
        if (l->t->on_token && p->token >= 0)
            l->t->on_token(l->t->on_token_ctx, p);
    }
    return l->t->c->out_error == 0 && !*interrupt_flag();
}

static void on_event(void *ctx, const sched_event *ev)
{
    listener *l = ctx;
    const weft_piece *p = weft_generation_piece(l->t->g);
    if (!on_piece(l, p) && ev->kind != SCHED_ENDED)
        scheduler_cancel(l->t->steps, ev->id);
    if (ev->kind != SCHED_ENDED)
        return;
    l->ended = true;
    l->r->end = p->end;
    if (ev->end == SCHED_END_FAILED) {
        l->code = ev->code;
        strbuf_put(&l->why, ev->why);
    }
}

/* Steps until the answer has ended. A cancelled call is an end like any other. */
static weft_status generate(listener *l)
{
    weft_diag *dg = l->t->c->dg;
    sched_id id;
    sched_job job = {.with = l->t->g->g, .reading = true, .on_event = on_event, .ctx = l};
    WEFT_TRY(scheduler_add(dg, l->t->steps, &job, &id));
    while (!l->ended) {
        size_t n_before = diag_count(dg);
        weft_status st = scheduler_step(dg, l->t->steps);
        if (st == WEFT_ERR_CANCELLED) {
            diag_keep_first(dg, n_before);
            scheduler_cancel(l->t->steps, id);
        } else {
            WEFT_TRY(st);
        }
    }
    return l->why.n > 0
               ? weft_fail(dg, l->code, WEFT_NOWHERE, STR_FMT, STR_ARG(strbuf_view(&l->why)))
               : WEFT_OK;
}

weft_status talk_go_on(talk *t, bool show, str before, talk_answer *r)
{
    listener l = {.t = t, .r = r, .show = show, .before = before, .start = clock_ns()};
    weft_status st = weft_generation_prompt(t->c->dg, t->g, r->ids, r->n_prompt);
    if (st != WEFT_OK)
        return st;
    weft_cancel_clear(t->cancel);
    interrupt_hold(true);
    progress_start(&l.bar, "reading the prompt", r->n_prompt, PROGRESS_COUNT);
    r->end = WEFT_END_LENGTH; /* of no tokens */
    if (t->f->n != 0)
        st = generate(&l);
    strbuf_free(&l.why);
    begin(&l);
    r->ns = clock_ns() - l.start - r->prompt_ns;
    weft_generation_ids(t->g, &r->n);
    return st == WEFT_OK ? weft_model_check(t->c->dg, t->m) : st;
}
