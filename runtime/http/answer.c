/* answer.c - events collected by choice, and what all routes share. */
#include "runtime/http/answer_impl.h"

#include "runtime/base/mem.h"
#include "runtime/base/utf8.h"
#include "runtime/http/form_schema.h"
#include "runtime/http/serve_error.h"
#include <stdio.h>

str answer_view(const strbuf *b)
{
    return b->n ? strbuf_view(b) : STR("");
}

void answer_json_raw(json_writer *w, str json)
{
    strbuf_put(w->out, json);
    w->comma = true;
}

/* ---- ids ---- */

void answer_call_id(const answer_choice *c, const answer_item *item, char *out, size_t bytes)
{
    const answer *a = c->home;
    uint64_t seed = a->facts.id * 1000003u + c->index * 8191u + item->number;
    int letters = a->facts.tools ? a->facts.tools->id_letters : 0;
    if (!letters) {
        snprintf(out, bytes, "call_%016llx%02zx%02zx", (unsigned long long)a->facts.id,
                 c->index & 0xff, item->number & 0xff);
        return;
    }
    /* Templates of Mistral's refuse ids that are not exactly so long. */
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    seed *= 0x9e3779b97f4a7c15u;
    size_t n = 0;
    for (; n < (size_t)letters && n + 1 < bytes; n++, seed /= 62)
        out[n] = digits[seed % 62];
    out[n] = 0;
}

/* ---- log-probabilities ---- */

static void write_token(const answer *a, int32_t token, float logprob, json_writer *w)
{
    str text = a->facts.token_text ? a->facts.token_text(a->facts.token_ctx, token) : STR("");
    json_key_str(w, "token", text);
    json_key_double(w, "logprob", (double)logprob);
    json_key_open(w, "bytes", '[');
    for (size_t i = 0; i < text.n; i++)
        json_int(w, (unsigned char)text.p[i]);
    json_close(w, ']');
}

static void write_logprobs(answer_choice *c, size_t from, json_writer *w)
{
    json_open(w, '[');
    for (size_t i = from; i < c->lp.n; i++) {
        const answer_logprob *l = &c->lp.at[i];
        json_open(w, '{');
        write_token(c->home, l->token, l->logprob, w);
        json_key_open(w, "top_logprobs", '[');
        for (size_t k = l->top_begin; k < l->top_end; k++) {
            json_open(w, '{');
            write_token(c->home, c->top.at[k].id, c->top.at[k].logprob, w);
            json_close(w, '}');
        }
        json_close(w, ']');
        json_close(w, '}');
    }
    json_close(w, ']');
}

void answer_logprob_list(answer_choice *c, json_writer *w)
{
    write_logprobs(c, 0, w);
    c->lp.n = c->top.n = 0;
}

void answer_logprob_new(answer_choice *c, json_writer *w)
{
    write_logprobs(c, c->n_told, w);
    c->n_told = c->lp.n;
}

void answer_logprob_all(answer_choice *c, json_writer *w)
{
    write_logprobs(c, 0, w);
}

static void keep_logprob(answer_choice *c, const answer_event *e)
{
    answer_logprob l = {
        .token = e->token, .logprob = e->logprob, .top_begin = c->top.n, .offset = c->n_char};
    for (int64_t i = 0; i < e->n_top && i < c->home->rq->top_logprobs; i++)
        VEC_PUSH(&c->top, e->top[i]);
    l.top_end = c->top.n;
    VEC_PUSH(&c->lp, l);
    c->home->bytes += sizeof l + (l.top_end - l.top_begin) * sizeof(token_logprob);
}

/* ---- items ---- */

static answer_item *last_item(answer_choice *c)
{
    return c->item.n ? &c->item.at[c->item.n - 1] : NULL;
}

/* From the tool parser, or straight from the text. */
static void on_part(void *ctx, tool_event kind, str text)
{
    answer_choice *c = ctx;
    answer *a = c->home;
    answer_item *it = last_item(c);
    bool begins = kind == TOOL_CALL ||
                  ((kind == TOOL_TEXT || kind == TOOL_REASONING) && (!it || it->kind != kind));
    if (begins && it)
        it->ended = true;
    if (begins) {
        answer_item fresh = {.kind = kind, .number = c->n_call};
        c->n_call += kind == TOOL_CALL;
        VEC_PUSH(&c->item, fresh);
        it = last_item(c);
    }
    if (!it)
        return;
    a->bytes += text.n;
    if (kind == TOOL_CALL_END)
        it->ended = true;
    else
        strbuf_put(kind == TOOL_CALL ? &it->name : &it->text, text);
    if (a->rq->stream)
        a->route->delta(c, kind, it, text);
}

void answer_joined(const answer_choice *c, tool_event kind, strbuf *out)
{
    for (size_t i = 0; i < c->item.n; i++)
        if (c->item.at[i].kind == kind)
            strbuf_put(out, answer_view(&c->item.at[i].text));
}

const char *answer_finish_reason(const answer_choice *c)
{
    if (c->end == ANSWER_GOES_ON)
        return NULL;
    if (c->end == ANSWER_FAILED)
        return "error";
    return c->end == ANSWER_LENGTH ? "length" : c->n_call ? "tool_calls" : "stop";
}

/* A prompt counts once, however many answers it has. */
void answer_usage_counts(const answer *a, int64_t *prompt, int64_t *cached, int64_t *generated)
{
    *prompt = *cached = *generated = 0;
    for (size_t i = 0; i < a->n_choice; i++) {
        const answer_choice *c = &a->choice[i];
        if (i % (size_t)a->rq->n == 0) {
            *prompt += c->n_prompt;
            *cached += c->n_cached;
        }
        *generated += c->n_generated;
    }
}

int64_t answer_reasoning_count(const answer *a)
{
    int64_t n = 0;
    for (size_t i = 0; i < a->n_choice; i++)
        n += a->choice[i].n_reasoning;
    return n;
}

/* ---- events ---- */

void answer_sse(answer *a, const char *event, str json)
{
    if (event)
        strbuf_add(a->out, "event: %s\n", event);
    strbuf_put(a->out, STR("data: "));
    strbuf_put(a->out, json); /* has no line break: json_write escapes them */
    strbuf_put(a->out, STR("\n\n"));
}

void answer_stream_error(const answer *a, weft_code code, str why, strbuf *out)
{
    strbuf json = {0};
    (void)serve_error_say(code, why, (str){0}, &json);
    if (a->rq->kind == SERVE_RESPONSE)
        strbuf_put(out, STR("event: error\n"));
    strbuf_add(out, "data: ");
    strbuf_put(out, answer_view(&json));
    strbuf_put(out, STR("\n\n"));
    strbuf_free(&json);
}

void answer_echo(answer *a, size_t prompt, str text, strbuf *out)
{
    a->out = out;
    for (int64_t i = 0; i < a->rq->n; i++) {
        answer_choice *c = &a->choice[prompt * (size_t)a->rq->n + (size_t)i];
        on_part(c, TOOL_TEXT, text);
        c->n_char += utf8_count(text);
    }
    a->out = NULL;
}

static void end_choice(answer_choice *c, const answer_event *e)
{
    answer *a = c->home;
    if (c->parser)
        tool_parser_end(c->parser);
    if (last_item(c))
        last_item(c)->ended = true;
    /* The rest behind the only call that is wanted is cancelled, which is how such an answer ends. */
    bool called = e->end == ANSWER_FAILED && answer_has_call(a, c->index);
    c->end = called ? ANSWER_STOP : e->end;
    c->code = e->code;
    strbuf_put(&c->why, e->why.n ? e->why : STR(""));
    c->n_prompt = e->n_prompt;
    c->n_cached = e->n_cached;
    c->n_generated = e->n_generated;
    if (e->vector && e->n_vector > 0) {
        size_t bytes = mem_product((size_t)e->n_vector, sizeof *c->vector);
        c->vector = mem_alloc(bytes);
        memcpy(c->vector, e->vector, bytes);
        c->n_vector = e->n_vector;
    }
    a->n_ended++;
    if (!a->rq->stream)
        return;
    if (c->end == ANSWER_FAILED)
        answer_stream_error(a, e->code, e->why, a->out);
    else
        a->route->close(c);
}

void answer_put(answer *a, const answer_event *e, strbuf *out)
{
    WEFT_ASSERT(e->choice < a->n_choice);
    answer_choice *c = &a->choice[e->choice];
    if (c->end != ANSWER_GOES_ON)
        return;
    a->out = out;
    if (e->token >= 0 && a->rq->logprobs)
        keep_logprob(c, e);
    /* Where one call is all that is wanted, what comes behind it is not part of the answer. */
    bool over = answer_has_call(a, e->choice);
    if (e->text.n && !over) {
        if (c->parser)
            tool_parser_put(c->parser, e->text);
        else
            on_part(c, TOOL_TEXT, e->text);
        c->n_char += utf8_count(e->text);
        const answer_item *it = last_item(c);
        c->n_reasoning += e->token >= 0 && it && it->kind == TOOL_REASONING && !it->ended;
    }
    if (e->end != ANSWER_GOES_ON) {
        end_choice(c, e);
    } else if (a->bytes > ANSWER_BYTES_MAX) {
        answer_event full = {
            .end = ANSWER_FAILED, .code = W1829, .why = STR("the answer is too long to be kept")};
        end_choice(c, &full);
    }
    a->out = NULL;
}

bool answer_has_call(const answer *a, size_t choice)
{
    const answer_choice *c = &a->choice[choice];
    return !a->rq->parallel_tool_calls && c->parser && tool_parser_called(c->parser);
}

bool answer_complete(const answer *a)
{
    return a->n_ended == a->n_choice;
}

int answer_end(answer *a, strbuf *out)
{
    int status = 200;
    a->out = out;
    for (size_t i = 0; i < a->n_choice && status == 200; i++) {
        const answer_choice *c = &a->choice[i];
        if (c->end != ANSWER_FAILED)
            continue;
        if (a->rq->stream)
            status = serve_error_of(c->code).http;
        else
            status = serve_error_say(c->code, answer_view(&c->why), (str){0}, out);
    }
    if (a->rq->stream)
        a->route->finish(a);
    else if (status == 200)
        a->route->body(a);
    a->out = NULL;
    return status;
}

/* ---- as an object ---- */

answer *answer_create(const serve_request *rq, const answer_facts *facts)
{
    answer *a = mem_alloc(sizeof *a);
    *a = (answer){.rq = rq, .facts = *facts};
    a->route = rq->kind == SERVE_CHAT         ? &answer_route_chat
               : rq->kind == SERVE_COMPLETION ? &answer_route_completion
               : rq->kind == SERVE_EMBEDDING  ? &answer_route_embedding
                                              : &answer_route_response;
    size_t prompts = rq->kind & (SERVE_COMPLETION | SERVE_EMBEDDING) ? rq->n_prompt : 1;
    a->n_choice = prompts * (size_t)rq->n;
    a->choice = mem_alloc(mem_product(a->n_choice, sizeof *a->choice));
    a->names = mem_alloc(mem_product(rq->n_tool + 1, sizeof *a->names));
    for (size_t i = 0; i < rq->n_tool; i++)
        a->names[i] = rq->tool_at[i].name;
    snprintf(a->id, sizeof a->id, "%s%016llx", a->route->id_prefix, (unsigned long long)facts->id);
    tool_options o = {.calls = rq->tool_choice != SERVE_TOOLS_NONE,
                      .thinks = facts->thinks,
                      .names = a->names,
                      .n_name = rq->n_tool};
    for (size_t i = 0; i < a->n_choice; i++) {
        answer_choice *c = &a->choice[i];
        *c = (answer_choice){.home = a, .index = i};
        /* An answer of a given form is that form alone. */
        bool apart = !(rq->kind & (SERVE_COMPLETION | SERVE_EMBEDDING)) && facts->tools &&
                     serve_form_of(rq) != SERVE_FORM_TEXT;
        if (apart)
            c->parser = tool_parser_create(facts->tools, &o, on_part, c);
    }
    return a;
}

void answer_destroy(answer *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->n_choice; i++) {
        answer_choice *c = &a->choice[i];
        tool_parser_destroy(c->parser);
        for (size_t k = 0; k < c->item.n; k++) {
            strbuf_free(&c->item.at[k].text);
            strbuf_free(&c->item.at[k].name);
        }
        VEC_FREE(&c->item);
        VEC_FREE(&c->lp);
        VEC_FREE(&c->top);
        strbuf_free(&c->why);
        mem_free(c->vector);
    }
    mem_free(a->choice);
    mem_free(a->names);
    mem_free(a);
}
