/* http_call.c - one request for generated text: from its body to the last byte of its answer.
 *
 *     HTTP thread   read body ─▶ request ─▶ prepare, start ─▶ suspend            resume ─▶ head ─▶ reader ─▶ suspend ..
 *     backend                                      └▶ event ─▶ answer_put ─▶ out ─▶ ┘
 *
 * A stream's head is sent with its first event, so that what fails before it has a status of its own. */
#include "runtime/http/http_impl.h"

#include "runtime/base/mem.h"
#include "runtime/http/serve_error.h"
#include <stdio.h>
#include <time.h>

/* ---- the memory of an answer ----
 *
 * An answer grows from event to event, in the backend's thread, which goes on with others where memory is short. So all that it takes
 * is in one scope of its own, which is entered for each event and goes as a whole where one fails. */

static void enter(call *c)
{
    c->scope.outer = mem_scope_now;
    mem_scope_now = &c->scope;
}

static void leave(call *c)
{
    mem_scope_now = c->scope.outer;
}

call *call_create(http_server *s, struct MHD_Connection *conn)
{
    call *c = mem_alloc(sizeof *c);
    *c = (call){.s = s,
                .conn = conn,
                .key = -1,
                .status = 200,
                .holders = 1,
                .dg = diag_create(),
                .a = arena_create()};
    pthread_mutex_init(&c->lock, NULL);
    mem_scope_begin(&c->scope);
    leave(c);
    return c;
}

void call_release(call *c)
{
    if (atomic_fetch_sub(&c->holders, 1) != 1)
        return;
    if (c->work)
        c->s->b.release(c->s->b.ctx, c->work);
    answer_destroy(c->answer);
    strbuf_free(&c->body);
    strbuf_free(&c->out);
    diag_destroy(c->dg);
    arena_destroy(c->a);
    pthread_mutex_destroy(&c->lock);
    mem_scope_end(&c->scope);
    mem_free(c);
}

/* By lock: let the HTTP thread look again. */
static void go_on(call *c)
{
    if (c->suspended && !c->gone) {
        c->suspended = false;
        MHD_resume_connection(c->conn);
    }
}

/* By lock, after a failure: nothing of it is left. */
static void lost(call *c)
{
    c->answer = NULL;
    c->out = (strbuf){0};
    c->out_at = 0;
}

/* By lock: what was sent goes, once it is half of what is there, so that a client that is always a little behind costs no memory. */
static void make_room(call *c)
{
    if (c->out_at <= c->out.n / 2)
        return;
    memmove(c->out.p, c->out.p + c->out_at, c->out.n - c->out_at);
    c->out.n -= c->out_at;
    c->out_at = 0;
}

/* By lock: what the event makes of the answer. False: memory is short. */
static bool put_event(call *c, const answer_event *e)
{
    enter(c);
    if (sigsetjmp(c->scope.env, 0) != 0) {
        lost(c);
        return false;
    }
    make_room(c);
    answer_put(c->answer, e, &c->out);
    if (answer_complete(c->answer) && !c->finished) {
        c->finished = true;
        /* A stream that failed before anything was sent is an ordinary error. */
        if (c->rq.stream && !c->spoke && e->end == ANSWER_FAILED) {
            strbuf_reset(&c->out);
            c->out_at = 0;
            c->status = serve_error_say(e->code, e->why, (str){0}, &c->out);
        } else {
            c->status = answer_end(c->answer, &c->out);
        }
    }
    leave(c);
    return true;
}

static weft_status make_answer(call *c, const answer_facts *facts)
{
    serve_backend *b = &c->s->b;
    enter(c);
    if (sigsetjmp(c->scope.env, 0) != 0) {
        lost(c);
        return diag_fail_memory(c->dg, c->scope.bytes);
    }
    c->answer = answer_create(&c->rq, facts);
    for (size_t i = 0; c->rq.echo && i < c->rq.n_prompt; i++)
        answer_echo(c->answer, i, b->prompt_text(b->ctx, c->work, i), &c->out);
    c->spoke = c->out.n > 0;
    c->n_choice = (c->rq.n_prompt ? c->rq.n_prompt : 1) * (size_t)c->rq.n;
    leave(c);
    return WEFT_OK;
}

/* From the backend. */
static void on_event(void *user, const answer_event *e)
{
    call *c = user;
    http_server *s = c->s;
    pthread_mutex_lock(&c->lock);
    bool cancel = false;
    c->n_ended += e->end != ANSWER_GOES_ON;
    if (!c->broken && !put_event(c, e))
        c->broken = cancel = true;
    if (e->end == ANSWER_GOES_ON && !c->broken)
        cancel = c->finished || (c->out.n - c->out_at > s->o.unread_max && c->rq.stream) ||
                 (c->rq.n == 1 && answer_has_call(c->answer, e->choice));
    bool last = c->n_ended == c->n_choice;
    cancel &= !last;
    if (cancel) /* another thread may bring the last event before that is done */
        atomic_fetch_add(&c->holders, 1);
    c->complete |= last;
    c->spoke |= c->out.n > 0;
    if (c->complete || (c->rq.stream && c->out.n > c->out_at))
        go_on(c);
    pthread_mutex_unlock(&c->lock);
    if (cancel) {
        s->b.cancel(s->b.ctx, c->work);
        call_release(c);
    }
    if (last) {
        atomic_fetch_sub(&s->under_way, 1);
        call_release(c);
    }
}

/* The bytes of a stream as they come. */
static ssize_t read_stream(void *user, uint64_t at, char *buf, size_t max)
{
    call *c = user;
    (void)at;
    pthread_mutex_lock(&c->lock);
    size_t n = c->out.n - c->out_at;
    ssize_t given = 0;
    if (n > max)
        n = max;
    if (n) {
        memcpy(buf, c->out.p + c->out_at, n);
        c->out_at += n;
        if (c->out_at == c->out.n) {
            strbuf_reset(&c->out);
            c->out_at = 0;
        }
        given = (ssize_t)n;
    } else if (c->complete) {
        given = c->broken ? MHD_CONTENT_READER_END_WITH_ERROR : MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        c->suspended = true;
        MHD_suspend_connection(c->conn);
    }
    pthread_mutex_unlock(&c->lock);
    return given;
}

static enum MHD_Result send_stream(call *c)
{
    struct MHD_Response *r =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, read_stream, c, NULL);
    if (!r)
        return MHD_NO;
    MHD_add_response_header(r, "Content-Type", "text/event-stream; charset=utf-8");
    MHD_add_response_header(r, "Cache-Control", "no-cache");
    MHD_add_response_header(r, "X-Accel-Buffering", "no"); /* proxies must not wait for the end */
    enum MHD_Result ok = MHD_queue_response(c->conn, MHD_HTTP_OK, r);
    MHD_destroy_response(r);
    atomic_fetch_add(&c->s->answered[2], 1);
    c->state = CALL_ANSWERED;
    return ok;
}

enum MHD_Result call_resumed(call *c)
{
    pthread_mutex_lock(&c->lock);
    bool stream = c->rq.stream && (c->status == 200 || c->spoke);
    bool ready = c->complete || (c->rq.stream && c->out.n > c->out_at);
    if (!ready) {
        c->suspended = true;
        MHD_suspend_connection(c->conn);
        pthread_mutex_unlock(&c->lock);
        return MHD_YES;
    }
    bool failed = c->complete && c->status != 200, broken = c->broken && c->complete;
    pthread_mutex_unlock(&c->lock);
    if (broken) {
        c->state = CALL_ANSWERED;
        return call_send_short(c->s, c->conn);
    }
    if (stream && !(failed && c->out.n && c->out.p[0] == '{'))
        return send_stream(c);
    /* Complete: nobody else touches `out` any more. */
    return call_send(c, c->status, "application/json", c->out.n ? strbuf_view(&c->out) : STR("{}"));
}

/* All that takes memory for a request before it is queued. */
static weft_status prepare(call *c, answer_facts *out_facts)
{
    http_server *s = c->s;
    serve_backend *b = &s->b;
    serve_rules rules = b->rules;
    MEM_SCOPE(scope);
    if (sigsetjmp(scope.env, 0) != 0) {
        c->work = NULL;
        return diag_fail_memory(c->dg, scope.bytes);
    }
    if (c->key >= 0)
        rules.priority_max = s->keys.at[c->key].priority;
    if (atomic_load(&s->draining))
        return weft_fail(c->dg, W1830, WEFT_NOWHERE, "the server is shutting down");
    WEFT_TRY(serve_request_read(c->dg, c->a, c->route->kind,
                                c->body.n ? strbuf_view(&c->body) : STR(""), &rules, &c->rq));
    serve_caller who = {.name = c->key >= 0 ? s->keys.at[c->key].name : "",
                        .share = (uint32_t)(c->key + 1)};
    str model = str_of(rules.model);
    if (c->rq.adapter >= 0)
        model = arena_printf(c->a, "%s:%s", rules.model, rules.adapters[c->rq.adapter]);
    uint64_t number = atomic_fetch_add(&s->ids, 1) + 1;
    answer_facts facts = {.id = number * 0x9e3779b97f4a7c15u ^ (uint64_t)s->started << 20,
                          .created = (int64_t)time(NULL),
                          .model = model.p,
                          .fingerprint = b->fingerprint,
                          .tools = b->tools,
                          .token_text = b->token_text,
                          .token_ctx = b->ctx};
    weft_status st = b->prepare(b->ctx, c->dg, &c->rq, &who, &c->work, &facts);
    if (st != WEFT_OK) {
        c->rq.fault_param = str_of(facts.refused ? facts.refused : "");
        return st;
    }
    *out_facts = facts;
    return WEFT_OK;
}

static weft_status begin(call *c)
{
    http_server *s = c->s;
    serve_backend *b = &s->b;
    answer_facts facts;
    WEFT_TRY(prepare(c, &facts));
    WEFT_TRY(make_answer(c, &facts));
    /* Events may come at once, and the last of them gives up the backend's hold. */
    atomic_fetch_add(&c->holders, 1);
    atomic_fetch_add(&s->under_way, 1);
    atomic_fetch_add(&s->unsent, 1);
    c->counted = true;
    c->state = CALL_WAITING;
    watch_wait(s, c->watch, c);
    weft_status st = b->start(b->ctx, c->dg, c->work, on_event, c);
    if (st != WEFT_OK) {
        watch_wait(s, c->watch, NULL);
        atomic_fetch_sub(&s->under_way, 1);
        atomic_fetch_sub(&c->holders, 1);
        c->state = CALL_READING;
    }
    return st;
}

enum MHD_Result call_generate(call *c)
{
    if (begin(c) != WEFT_OK)
        return call_send_error(c, c->rq.fault_param.p ? c->rq.fault_param : STR(""));
    return call_resumed(c);
}

/* The watcher holds its lock, so the call is there. */
void call_hang_up(call *c)
{
    c->s->b.cancel(c->s->b.ctx, c->work);
}

void call_leave(call *c)
{
    pthread_mutex_lock(&c->lock);
    bool cancel = c->work && (c->answer || c->broken) && !c->complete;
    c->gone = true;
    pthread_mutex_unlock(&c->lock);
    watch_wait(c->s, c->watch, NULL);
    if (c->counted)
        atomic_fetch_sub(&c->s->unsent, 1);
    if (cancel && c->state != CALL_READING)
        c->s->b.cancel(c->s->b.ctx, c->work);
    call_release(c);
}
