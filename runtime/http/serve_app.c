/* serve_app.c - requests into jobs of the scheduler, its events into those of answers. */
#include "runtime/http/serve_app.h"

#include "runtime/base/clock.h"
#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"
#include "runtime/grammar/grammar_filter.h"
#include "runtime/http/serve_filter.h"
#include "runtime/http/serve_stats.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

enum { ROWS_SHOWN = 64 };

/* What a request can say to the template, which may not look at it. */
typedef enum { KNOWS_TOOLS, KNOWS_DOCUMENTS, KNOWS_EFFORT, KNOWS_COUNT } knows;

struct serve_app {
    serve_app_options o;
    const tool_format_row *tools;
    grammar_vocab *vocab;
    pthread_mutex_t vocab_lock; /* guards making `vocab`, which the first grammar needs */
    form_cache *forms;
    live_profile *profile;         /* NULL: steps are not timed */
    atomic_int knows[KNOWS_COUNT]; /* what the template was seen to look at; 0: not yet */
    pthread_t thread;
    bool started;
    uint64_t begin_ns;
    atomic_uint_fast64_t seeds;
    strbuf
        token_bytes; /* of all tokens, one after the other; the vocabulary itself may spell them in letters of its own */
    size_t *token_at; /* [n_token + 1]: where each begins */
    int32_t n_token;
};

/* One prompt of a work, for events. */
typedef struct {
    serve_work *work;
    size_t prompt;
    sched_id id;
} work_job;

struct serve_work {
    serve_app *app;
    const serve_request *rq;
    uint32_t share;
    size_t n;
    tok_ids *ids;  /* [n] */
    strbuf *texts; /* [n]: what was encoded; for echo */
    work_job *jobs;
    grammar *form; /* that answers have; NULL: any */
    pthread_mutex_t
        lock; /* guards the ids of jobs and `cancelled`: cancel may come while start still adds */
    bool cancelled;
    serve_on_event *on;
    void *user;
};

static str token_text(void *ctx, int32_t id)
{
    const serve_app *a = ctx;
    if (id < 0 || id >= a->n_token || a->token_at[id + 1] == a->token_at[id])
        return STR("");
    return (str){a->token_bytes.p + a->token_at[id], a->token_at[id + 1] - a->token_at[id]};
}

static void read_tokens(serve_app *a)
{
    tok_stream *s = tok_stream_create(a->o.text, false);
    a->n_token = tok_vocab_size(a->o.text);
    a->token_at = mem_alloc(mem_product((size_t)a->n_token + 1, sizeof *a->token_at));
    for (int32_t i = 0; i < a->n_token; i++) {
        a->token_at[i] = a->token_bytes.n;
        if (tok_has(a->o.text, i))
            tok_stream_bytes(s, i, false, &a->token_bytes);
    }
    a->token_at[a->n_token] = a->token_bytes.n;
    tok_stream_destroy(s);
}

/* ---- preparing ---- */

static weft_status render(serve_app *a, weft_diag *dg, const serve_request *rq, strbuf *out)
{
    if (!a->o.chat)
        return weft_fail(dg, W1305, WEFT_NOWHERE,
                         "the model has no chat template; /v1/completions continues a text");
    chat_request c = {.messages = rq->messages,
                      .tools = rq->tools,
                      .documents = rq->documents,
                      .overrides = rq->variables,
                      .generate = !rq->no_answer};
    return chat_render(dg, a->o.chat, &c, out);
}

/* ---- what the template does not look at ---- */

/* The request's variables with an effort that no template has. */
static value odd_effort(arena *a, const serve_request *rq)
{
    size_t n = value_count(rq->variables), k = 0, twice;
    value_member *m = ARENA_ARRAY(a, value_member, n + 2);
    value out;
    for (size_t i = 0; i < n; i++) {
        str name = rq->variables->as.object.members[i].name;
        if (!str_eqz(name, "reasoning_effort") && !str_eqz(name, "enable_thinking"))
            m[k++] = rq->variables->as.object.members[i];
    }
    m[k++] = (value_member){STR("reasoning_effort"), value_of_str(STR("no such effort"))};
    m[k++] = (value_member){STR("enable_thinking"), value_of_bool(true)};
    bool differ = value_of_members(a, m, k, &out, &twice);
    WEFT_ASSERT(differ);
    return out;
}

/* A field that changes nothing of the prompt would be ignored: seen by rendering it both ways. A template that refuses the other way looks
 * at it too. What was seen once holds for all requests. */
static bool template_knows(serve_app *a, const serve_request *rq, knows what, str text)
{
    if (atomic_load(&a->knows[what]))
        return true;
    arena *scratch = arena_create();
    strbuf plain = {0};
    value odd = odd_effort(scratch, rq);
    chat_request c = {.messages = rq->messages,
                      .tools = what == KNOWS_TOOLS ? NULL : rq->tools,
                      .documents = what == KNOWS_DOCUMENTS ? NULL : rq->documents,
                      .overrides = what == KNOWS_EFFORT ? &odd : rq->variables,
                      .generate = !rq->no_answer};
    weft_diag *dg = diag_create();
    bool differs = chat_render(dg, a->o.chat, &c, &plain) != WEFT_OK ||
                   !str_eq(text, plain.n ? strbuf_view(&plain) : STR(""));
    diag_destroy(dg);
    strbuf_free(&plain);
    arena_destroy(scratch);
    if (differs)
        atomic_store(&a->knows[what], 1);
    return differs;
}

static weft_status check_template(serve_app *a, weft_diag *dg, const serve_request *rq, str text,
                                  answer_facts *facts)
{
    const struct {
        knows what;
        bool asked;
        const char *field, *instead;
    } fields[] = {
        /* A call that must come is generated under the tools' schemas, whether the model was told of them or not. */
        {KNOWS_TOOLS, rq->tools && rq->tool_choice == SERVE_TOOLS_AUTO, "tools",
         "; `tool_choice` \"required\", or a function's name, works all the same"},
        {KNOWS_DOCUMENTS, rq->documents != NULL, "documents", ""},
        {KNOWS_EFFORT, rq->effort,
         rq->kind == SERVE_RESPONSE ? "reasoning.effort" : "reasoning_effort", ""},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].asked && !template_knows(a, rq, fields[i].what, text)) {
            facts->refused = fields[i].field;
            return weft_fail(
                dg, W1825, WEFT_NOWHERE,
                "%s: is not supported: the model's chat template makes nothing of it%s",
                fields[i].field, fields[i].instead);
        }
    return WEFT_OK;
}

static bool ends_thinking(str text)
{
    while (text.n && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == ' '))
        text.n--;
    return str_ends(text, STR("<think>"));
}

static weft_status encode(serve_app *a, weft_diag *dg, serve_work *w, answer_facts *facts)
{
    const serve_request *rq = w->rq;
    if (rq->kind & (SERVE_CHAT | SERVE_RESPONSE)) {
        WEFT_TRY(render(a, dg, rq, &w->texts[0]));
        str text = w->texts[0].n ? strbuf_view(&w->texts[0]) : STR("");
        facts->thinks = ends_thinking(text);
        WEFT_TRY(check_template(a, dg, rq, text, facts));
        /* The template writes the special tokens, so they are read and none is added. */
        return tok_encode(dg, a->o.text, text, (tok_encode_flags){.parse_special = true},
                          &w->ids[0]);
    }
    for (size_t i = 0; i < w->n; i++) {
        const serve_prompt *p = &rq->prompts[i];
        for (size_t k = 0; p->ids && k < p->n_id; k++)
            VEC_PUSH(&w->ids[i], p->ids[k]);
        if (!p->ids)
            WEFT_TRY(tok_encode(dg, a->o.text, p->text, (tok_encode_flags){.add_special = true},
                                &w->ids[i]));
        if (p->ids && rq->echo)
            WEFT_TRY(tok_decode(dg, a->o.text, p->ids, p->n_id, true, &w->texts[i]));
        else if (rq->echo)
            strbuf_put(&w->texts[i], p->text);
    }
    return WEFT_OK;
}

/* Made when the first answer of a given form is asked for: it takes a while, and memory. */
static weft_status need_vocab(serve_app *a, weft_diag *dg)
{
    MEM_SCOPE(scope); /* the vocabulary stays, whatever becomes of the request */
    if (sigsetjmp(scope.env, 0) != 0)
        return diag_fail_memory(dg, scope.bytes);
    mem_lock(&a->vocab_lock);
    weft_status st =
        a->vocab ? WEFT_OK : grammar_vocab_create(dg, a->o.text, a->o.n_logit, &a->vocab);
    mem_unlock(&a->vocab_lock);
    return st;
}

static weft_status find_form(serve_app *a, weft_diag *dg, serve_work *w, answer_facts *facts)
{
    serve_form form = serve_form_of(w->rq);
    if (form == SERVE_FORM_NONE)
        return WEFT_OK;
    WEFT_TRY(need_vocab(a, dg));
    facts->thinks = false; /* the form begins with the first token */
    if (form !=
        SERVE_FORM_TEXT) /* a call is the bare object, whatever the model would write around it */
        facts->tools = tool_format_find("none");
    weft_status st = serve_form_get(dg, a->forms, a->vocab, w->rq, &w->form);
    static const char *const fields[] = {[SERVE_FORMAT_JSON] = "response_format",
                                         [SERVE_FORMAT_SCHEMA] = "response_format",
                                         [SERVE_FORMAT_REGEX] = "regex",
                                         [SERVE_FORMAT_GRAMMAR] = "grammar"};
    if (st != WEFT_OK)
        facts->refused = form != SERVE_FORM_TEXT         ? "tools"
                         : w->rq->kind == SERVE_RESPONSE ? "text.format"
                                                         : fields[w->rq->format.kind];
    return st;
}

static void give_up_form(void *form)
{
    grammar_destroy(form);
}

static void work_release(void *ctx, serve_work *w)
{
    (void)ctx;
    if (w->form)
        mem_scope_forget(give_up_form, w->form);
    for (size_t i = 0; i < w->n; i++) {
        VEC_FREE(&w->ids[i]);
        strbuf_free(&w->texts[i]);
    }
    grammar_destroy(w->form);
    mem_free(w->ids);
    mem_free(w->texts);
    mem_free(w->jobs);
    pthread_mutex_destroy(&w->lock);
    mem_free(w);
}

static weft_status prepare(void *ctx, weft_diag *dg, const serve_request *rq,
                           const serve_caller *who, serve_work **out_w, answer_facts *facts)
{
    serve_app *a = ctx;
    if (rq->kind == SERVE_EMBEDDING && !a->o.embeds)
        return weft_fail(dg, W1825, WEFT_NOWHERE,
                         "embeddings are not served: start the server with --embeddings");
    serve_work *w = mem_alloc(sizeof *w);
    *w =
        (serve_work){.app = a, .rq = rq, .share = who->share, .n = rq->n_prompt ? rq->n_prompt : 1};
    w->ids = mem_alloc(mem_product(w->n, sizeof *w->ids));
    w->texts = mem_alloc(mem_product(w->n, sizeof *w->texts));
    w->jobs = mem_alloc(mem_product(w->n, sizeof *w->jobs));
    memset(w->ids, 0, w->n * sizeof *w->ids);
    memset(w->texts, 0, w->n * sizeof *w->texts);
    for (size_t i = 0; i < w->n; i++)
        w->jobs[i] = (work_job){.work = w, .prompt = i};
    pthread_mutex_init(&w->lock, NULL);
    weft_status st = encode(a, dg, w, facts);
    if (st == WEFT_OK)
        st = find_form(a, dg, w, facts);
    if (st == WEFT_OK && w->form)
        mem_scope_on_fail(give_up_form, w->form); /* the work itself goes with the scope */
    if (st == WEFT_OK)
        *out_w = w;
    else
        work_release(a, w);
    return st;
}

static str prompt_text(void *ctx, serve_work *w, size_t prompt)
{
    (void)ctx;
    return w->texts[prompt].n ? strbuf_view(&w->texts[prompt]) : STR("");
}

/* ---- events ---- */

static answer_end_kind end_of(sched_end e)
{
    switch (e) {
    case SCHED_END_MODEL:
    case SCHED_END_STOP:
        return ANSWER_STOP;
    case SCHED_END_LENGTH:
    case SCHED_END_CONTEXT:
        return ANSWER_LENGTH;
    default:
        return ANSWER_FAILED;
    }
}

static void on_event(void *ctx, const sched_event *ev)
{
    const work_job *j = ev->user;
    serve_work *w = j->work;
    (void)ctx;
    if (ev->kind == SCHED_STARTED)
        return;
    answer_event e = {.choice = j->prompt * (size_t)w->rq->n + (size_t)ev->choice,
                      .token = ev->token,
                      .text = ev->text,
                      .logprob = ev->logprob,
                      .top = ev->top,
                      .n_top = ev->n_top,
                      .n_prompt = ev->n_prompt,
                      .n_cached = ev->n_cached,
                      .n_generated = ev->n_generated};
    if (ev->kind == SCHED_ENDED) {
        e.end = end_of(ev->end);
        e.vector = ev->vector;
        e.n_vector = ev->n_vector;
        if (w->rq->kind == SERVE_EMBEDDING)
            e.end = ev->vector ? ANSWER_STOP : ANSWER_FAILED;
        e.code = ev->end == SCHED_END_DEADLINE    ? W1833
                 : ev->end == SCHED_END_DRAINED   ? W1830
                 : ev->end == SCHED_END_CANCELLED ? W1412
                                                  : ev->code;
        e.why = ev->why.n         ? ev->why
                : e.code == W1833 ? STR("the request took longer than it may")
                : e.code == W1830 ? STR("the server is shutting down")
                                  : STR("cancelled");
        if (ev->vector && w->rq->dimensions > ev->n_vector) {
            e.end = ANSWER_FAILED;
            e.code = W1823;
            e.why = STR("dimensions is more than the vectors of this model have");
        }
    }
    w->on(w->user, &e); /* the last one may release the work */
}

/* Prompts whose jobs could not be added have an end all the same. */
static void fail_rest(serve_work *w, size_t from, const weft_diag *dg)
{
    size_t n = w->n;
    int64_t choices = w->rq->n;
    diag_entry d = diag_at(dg, diag_count(dg) - 1);
    for (size_t p = from; p < n; p++)
        for (int64_t i = 0; i < choices; i++) {
            answer_event e = {.choice = p * (size_t)choices + (size_t)i,
                              .token = -1,
                              .end = ANSWER_FAILED,
                              .code = d.code,
                              .why = d.message};
            w->on(w->user, &e);
        }
}

static sched_job job_of(serve_app *a, serve_work *w, size_t prompt)
{
    const serve_request *rq = w->rq;
    sched_job j = {.ids = w->ids[prompt].at,
                   .n_id = w->ids[prompt].n,
                   .n = rq->n,
                   .best_of = rq->best_of,
                   .max_tokens = rq->max_tokens,
                   .min_tokens = rq->min_tokens,
                   .stops = rq->stops_z,
                   .n_stop = rq->n_stop,
                   .ignore_end = rq->ignore_end,
                   .show_special = rq->tool_choice != SERVE_TOOLS_NONE && a->tools->special,
                   .n_top = rq->logprobs ? rq->top_logprobs : -1,
                   .pick = rq->sampler,
                   .share = w->share,
                   .priority = rq->priority,
                   .timeout_ms = rq->timeout_ms,
                   .embed = rq->kind == SERVE_EMBEDDING,
                   .user = &w->jobs[prompt],
                   .on_event = on_event};
    if (a->tools->body == TOOL_BODY_HARMONY && !(rq->kind & SERVE_COMPLETION))
        j.show_special = true; /* its channels are written in special tokens */
    if (!rq->seeded)
        j.pick.seed = atomic_fetch_add(&a->seeds, 0x9e3779b97f4a7c15u) ^ a->begin_ns;
    if (rq->adapter >= 0) {
        j.adapter = a->o.rules.adapters[rq->adapter];
        j.adapter_scale = a->o.scales ? a->o.scales[rq->adapter] : 1;
    }
    return j;
}

static weft_status make_filter(weft_diag *dg, grammar *form, token_filter **out_f)
{
    MEM_SCOPE(scope);
    if (sigsetjmp(scope.env, 0) != 0)
        return diag_fail_memory(dg, scope.bytes);
    *out_f = grammar_filter_create(form);
    return WEFT_OK;
}

static weft_status start(void *ctx, weft_diag *dg, serve_work *w, serve_on_event *on, void *user)
{
    serve_app *a = ctx;
    size_t n = w->n;
    w->on = on;
    w->user = user;
    for (size_t i = 0; i < n; i++) {
        sched_job j = job_of(a, w, i);
        weft_status st = w->form ? make_filter(dg, w->form, &j.filter) : WEFT_OK;
        pthread_mutex_lock(&w->lock);
        if (st == WEFT_OK) /* the filter is the scheduler's, also where it is refused */
            st = scheduler_add(dg, a->o.steps, &j, &w->jobs[i].id);
        bool last = i + 1 == n, cancelled = w->cancelled;
        sched_id id = st == WEFT_OK ? w->jobs[i].id : 0;
        pthread_mutex_unlock(&w->lock);
        if (st != WEFT_OK && i == 0)
            return st;
        if (st != WEFT_OK) {
            fail_rest(w, i, dg);
            return WEFT_OK;
        }
        if (cancelled)
            scheduler_cancel(a->o.steps, id);
        if (last)
            break; /* its events may have released the work */
    }
    return WEFT_OK;
}

static void cancel(void *ctx, serve_work *w)
{
    serve_app *a = ctx;
    pthread_mutex_lock(&w->lock);
    w->cancelled = true;
    for (size_t i = 0; i < w->n; i++)
        if (w->jobs[i].id)
            scheduler_cancel(a->o.steps, w->jobs[i].id);
    pthread_mutex_unlock(&w->lock);
}

/* ---- answers at once ---- */

static weft_status app_tokenize(void *ctx, weft_diag *dg, const serve_request *rq, strbuf *out)
{
    serve_app *a = ctx;
    tok_ids ids = {0};
    weft_status st = tok_encode(
        dg, a->o.text, rq->prompts[0].text,
        (tok_encode_flags){.add_special = rq->add_special, .parse_special = rq->parse_special},
        &ids);
    if (st == WEFT_OK)
        answer_tokens(ids.at, ids.n, rq, token_text, a, out);
    VEC_FREE(&ids);
    return st;
}

static weft_status app_detokenize(void *ctx, weft_diag *dg, const serve_request *rq, strbuf *out)
{
    serve_app *a = ctx;
    strbuf text = {0};
    weft_status st =
        tok_decode(dg, a->o.text, rq->prompts[0].ids, rq->prompts[0].n_id, rq->skip_special, &text);
    if (st == WEFT_OK)
        answer_text("content", text.n ? strbuf_view(&text) : STR(""), out);
    strbuf_free(&text);
    return st;
}

static weft_status app_render(void *ctx, weft_diag *dg, const serve_request *rq, strbuf *out)
{
    strbuf text = {0};
    weft_status st = render(ctx, dg, rq, &text);
    if (st == WEFT_OK)
        answer_text("prompt", text.n ? strbuf_view(&text) : STR(""), out);
    strbuf_free(&text);
    return st;
}

static void app_metrics(void *ctx, strbuf *out)
{
    serve_app *a = ctx;
    sched_stats s = scheduler_stats(a->o.steps);
    form_cache_counts forms = form_cache_count(a->forms);
    stats_metrics(&s, &forms, out);
}

static void app_state(void *ctx, const api_keys *keys, strbuf *out)
{
    serve_app *a = ctx;
    sched_stats s = scheduler_stats(a->o.steps);
    sched_row *rows = mem_alloc(ROWS_SHOWN * sizeof *rows);
    int64_t n = scheduler_list(a->o.steps, rows, ROWS_SHOWN);
    stats_about about = {.model = a->o.rules.model,
                         .uptime_s = (double)(clock_ns() - a->begin_ns) / 1e9,
                         .queue = a->o.queue,
                         .keys = keys,
                         .forms = form_cache_count(a->forms)};
    stats_state(&s, rows, n < ROWS_SHOWN ? n : ROWS_SHOWN, &about, out);
    mem_free(rows);
}

static weft_status app_model(void *ctx, weft_diag *dg, strbuf *out)
{
    serve_app *a = ctx;
    (void)dg;
    strbuf_put(out, a->o.model_json);
    return WEFT_OK;
}

static weft_status app_graph(void *ctx, weft_diag *dg, strbuf *out)
{
    serve_app *a = ctx;
    (void)dg;
    strbuf_put(out, a->o.graph_svg);
    return WEFT_OK;
}

static weft_status app_profile(void *ctx, weft_diag *dg, strbuf *out)
{
    serve_app *a = ctx;
    if (!a->profile)
        return weft_fail(dg, W1831, WEFT_NOWHERE, "steps are not timed: %s",
                         a->o.no_profile ? a->o.no_profile : "the server was told not to");
    live_profile_json(a->profile, out);
    return WEFT_OK;
}

serve_backend serve_app_backend(serve_app *a)
{
    return (serve_backend){.ctx = a,
                           .rules = a->o.rules,
                           .context = a->o.context,
                           .fingerprint = a->o.fingerprint,
                           .tools = a->tools,
                           .token_text = token_text,
                           .prepare = prepare,
                           .prompt_text = prompt_text,
                           .start = start,
                           .cancel = cancel,
                           .release = work_release,
                           .tokenize = app_tokenize,
                           .detokenize = app_detokenize,
                           .render = app_render,
                           .metrics = app_metrics,
                           .state = app_state,
                           .model = a->o.model_json.n ? app_model : NULL,
                           .graph = a->o.graph_svg.n ? app_graph : NULL,
                           .profile = app_profile};
}

/* ---- the thread that steps ---- */

/* One step, timed now and then. */
static weft_status step_once(serve_app *a, weft_diag *dg)
{
    if (!a->profile || !live_profile_begin(a->profile))
        return scheduler_step(dg, a->o.steps);
    sched_stats before = scheduler_stats(a->o.steps);
    weft_status st = scheduler_step(dg, a->o.steps);
    sched_stats after = scheduler_stats(a->o.steps);
    live_profile_end(a->profile, after.step.sum_s - before.step.sum_s,
                     after.rows_prompt - before.rows_prompt,
                     after.rows_decode - before.rows_decode);
    return st;
}

static void *step(void *arg)
{
    serve_app *a = arg;
    weft_diag *dg = diag_create();
    while (scheduler_wait(a->o.steps, SCHED_FOREVER)) {
        diag_reset(dg);
        if (step_once(a, dg) == WEFT_OK)
            continue;
        /* The session itself failed: nobody can be served any more, and all must hear of it. */
        if (a->o.on_broken)
            a->o.on_broken(a->o.ctx, dg);
        scheduler_drain(a->o.steps, 0);
    }
    diag_destroy(dg);
    return NULL;
}

/* How the model writes calls: its template is shown one. */
static const tool_format_row *find_tools(const serve_app_options *o)
{
    if (o->tool_format)
        return tool_format_find(o->tool_format);
    return tool_format_detect(tok_chat_template(o->text));
}

weft_status serve_app_create(weft_diag *dg, const serve_app_options *o, serve_app **out_app)
{
    const tool_format_row *tools = find_tools(o);
    if (!tools)
        return weft_fail(dg, W1903, WEFT_NOWHERE, "--tool-format: there is no `%s`",
                         o->tool_format);
    serve_app *a = mem_alloc(sizeof *a);
    *a = (serve_app){.o = *o, .tools = tools, .begin_ns = clock_ns()};
    pthread_mutex_init(&a->vocab_lock, NULL);
    a->forms = form_cache_create();
    read_tokens(a);
    if (o->plan)
        a->profile = live_profile_create(o->run, o->plan, o->threads);
    *out_app = a;
    return WEFT_OK;
}

weft_status serve_app_start(weft_diag *dg, serve_app *a)
{
    int why = pthread_create(&a->thread, NULL, step, a);
    if (why != 0)
        return weft_fail(dg, W1601, WEFT_NOWHERE, "the thread that steps cannot be started: %s",
                         strerror(why));
    a->started = true;
    return WEFT_OK;
}

void serve_app_drain(serve_app *a, int64_t timeout_ms)
{
    scheduler_drain(a->o.steps, timeout_ms);
    if (a->started)
        pthread_join(a->thread, NULL);
    a->started = false;
}

void serve_app_destroy(serve_app *a)
{
    if (!a)
        return;
    WEFT_ASSERT(!a->started);
    live_profile_destroy(a->profile);
    form_cache_destroy(a->forms);
    grammar_vocab_destroy(a->vocab);
    strbuf_free(&a->token_bytes);
    mem_free(a->token_at);
    pthread_mutex_destroy(&a->vocab_lock);
    mem_free(a);
}
