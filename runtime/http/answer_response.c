/* answer_response.c - /v1/responses: a list of items (reasoning, a message, calls), or the events that build it. */
#include "runtime/http/answer_impl.h"

#include <stdio.h>

/* ---- items ---- */

static void item_id(const answer_choice *c, size_t i, char *out, size_t bytes)
{
    static const char *const prefix[] = {
        [TOOL_TEXT] = "msg", [TOOL_REASONING] = "rs", [TOOL_CALL] = "fc"};
    snprintf(out, bytes, "%s_%016llx%02zx", prefix[c->item.at[i].kind],
             (unsigned long long)c->home->facts.id, i & 0xff);
}

/* A part of a message, with its text or without. */
static void write_part(answer_choice *c, tool_event kind, str text, bool done, json_writer *w)
{
    json_open(w, '{');
    json_key_text(w, "type", kind == TOOL_TEXT ? "output_text" : "reasoning_text");
    json_key_str(w, "text", text);
    if (kind == TOOL_TEXT) {
        json_key_open(w, "annotations", '[');
        json_close(w, ']');
        if (c->home->rq->logprobs) {
            json_key(w, "logprobs");
            if (done) {
                answer_logprob_all(c, w);
            } else {
                json_open(w, '[');
                json_close(w, ']');
            }
        }
    }
    json_close(w, '}');
}

/* `done`: with all that it holds; else as it is announced. */
static void write_item(answer_choice *c, size_t i, bool done, json_writer *w)
{
    const answer_item *it = &c->item.at[i];
    char id[64];
    bool cut = done && c->end == ANSWER_LENGTH && i + 1 == c->item.n;
    item_id(c, i, id, sizeof id);
    json_open(w, '{');
    json_key_text(w, "id", id);
    json_key_text(w, "type",
                  it->kind == TOOL_CALL   ? "function_call"
                  : it->kind == TOOL_TEXT ? "message"
                                          : "reasoning");
    json_key_text(w, "status", !done ? "in_progress" : cut ? "incomplete" : "completed");
    if (it->kind == TOOL_CALL) {
        answer_call_id(c, it, id, sizeof id);
        json_key_text(w, "call_id", id);
        json_key_str(w, "name", answer_view(&it->name));
        json_key_str(w, "arguments", done ? answer_view(&it->text) : STR(""));
    } else {
        if (it->kind == TOOL_TEXT)
            json_key_text(w, "role", "assistant");
        else {
            json_key_open(w, "summary", '[');
            json_close(w, ']');
        }
        json_key_open(w, "content", '[');
        if (done)
            write_part(c, it->kind, answer_view(&it->text), true, w);
        json_close(w, ']');
    }
    json_close(w, '}');
}

/* ---- the response ---- */

static void write_usage(const answer *a, json_writer *w)
{
    int64_t prompt, cached, generated;
    answer_usage_counts(a, &prompt, &cached, &generated);
    json_key_open(w, "usage", '{');
    json_key_int(w, "input_tokens", prompt);
    json_key_open(w, "input_tokens_details", '{');
    json_key_int(w, "cached_tokens", cached);
    json_close(w, '}');
    json_key_int(w, "output_tokens", generated);
    json_key_open(w, "output_tokens_details", '{');
    json_key_int(w, "reasoning_tokens", answer_reasoning_count(a));
    json_close(w, '}');
    json_key_int(w, "total_tokens", prompt + generated);
    json_close(w, '}');
}

static void write_settings(const answer *a, json_writer *w)
{
    const serve_request *q = a->rq;
    static const char *const choices[] = {"none", "auto", "required", "required"};
    static const char *const forms[] = {"text", "json_object", "json_schema", "regex", "grammar"};
    json_key_bool(w, "parallel_tool_calls", q->parallel_tool_calls);
    json_key_double(w, "temperature", q->sampler.temp);
    json_key_double(w, "top_p", q->sampler.top_p);
    json_key_text(w, "tool_choice", q->n_tool ? choices[q->tool_choice] : "auto");
    json_key_open(w, "tools", '[');
    for (size_t i = 0; i < q->n_tool; i++) {
        json_open(w, '{');
        json_key_text(w, "type", "function");
        json_key_str(w, "name", q->tool_at[i].name);
        if (q->tool_at[i].description.n)
            json_key_str(w, "description", q->tool_at[i].description);
        json_key(w, "parameters");
        if (q->tool_at[i].parameters)
            value_json(w, q->tool_at[i].parameters, SIZE_MAX);
        else
            json_null(w);
        json_key_bool(w, "strict", q->tool_at[i].strict);
        json_close(w, '}');
    }
    json_close(w, ']');
    json_key_open(w, "text", '{');
    json_key_open(w, "format", '{');
    json_key_text(w, "type", forms[q->format.kind]);
    if (q->format.kind == SERVE_FORMAT_SCHEMA) {
        json_key_str(w, "name", q->format.name.n ? q->format.name : STR("schema"));
        json_key(w, "schema");
        value_json(w, q->format.schema, SIZE_MAX);
        json_key_bool(w, "strict", q->format.strict);
    }
    json_close(w, '}');
    json_close(w, '}');
    if (q->max_tokens)
        json_key_int(w, "max_output_tokens", q->max_tokens);
    else
        json_key_text(w, "max_output_tokens", NULL);
    json_key(w, "metadata");
    if (q->metadata) {
        value_json(w, q->metadata, SIZE_MAX);
    } else {
        json_open(w, '{');
        json_close(w, '}');
    }
    json_key_bool(w, "store", false);
    json_key_text(w, "truncation", "disabled");
}

static void write_response(answer *a, bool done, json_writer *w)
{
    answer_choice *c = &a->choice[0];
    bool cut = c->end == ANSWER_LENGTH;
    json_open(w, '{');
    json_key_text(w, "id", a->id);
    json_key_text(w, "object", "response");
    json_key_int(w, "created_at", a->facts.created);
    json_key_text(w, "status", !done ? "in_progress" : cut ? "incomplete" : "completed");
    json_key_text(w, "error", NULL);
    json_key(w, "incomplete_details");
    if (done && cut) {
        json_open(w, '{');
        json_key_text(w, "reason", "max_output_tokens");
        json_close(w, '}');
    } else {
        json_null(w);
    }
    json_key_text(w, "instructions", NULL);
    json_key_text(w, "model", a->facts.model);
    json_key_open(w, "output", '[');
    for (size_t i = 0; done && i < c->item.n; i++)
        write_item(c, i, true, w);
    json_close(w, ']');
    write_settings(a, w);
    if (done)
        write_usage(a, w);
    else
        json_key_text(w, "usage", NULL);
    json_close(w, '}');
}

/* ---- events ---- */

static json_writer begin_event(answer *a, const char *type, strbuf *json)
{
    json_writer w = {.out = json};
    json_open(&w, '{');
    json_key_text(&w, "type", type);
    json_key_int(&w, "sequence_number", a->sequence++);
    return w;
}

static void end_event(answer *a, const char *type, json_writer *w)
{
    json_close(w, '}');
    answer_sse(a, type, answer_view(w->out));
    strbuf_free(w->out);
}

static void send_response(answer *a, const char *type, bool done)
{
    strbuf json = {0};
    json_writer w = begin_event(a, type, &json);
    json_key(&w, "response");
    write_response(a, done, &w);
    end_event(a, type, &w);
}

static void speak(answer_choice *c)
{
    if (c->spoke)
        return;
    c->spoke = true;
    send_response(c->home, "response.created", false);
    send_response(c->home, "response.in_progress", false);
}

static void send_item(answer_choice *c, size_t i, bool done)
{
    const char *type = done ? "response.output_item.done" : "response.output_item.added";
    strbuf json = {0};
    json_writer w = begin_event(c->home, type, &json);
    json_key_int(&w, "output_index", (int64_t)i);
    json_key(&w, "item");
    write_item(c, i, done, &w);
    end_event(c->home, type, &w);
}

/* Events of the inside of an item; `name` is the member that holds `text`, NULL: a whole part. `done`: it has come to its end. */
static void send_inside(answer_choice *c, size_t i, const char *type, const char *name, str text,
                        bool done)
{
    strbuf json = {0};
    char id[64];
    const answer_item *it = &c->item.at[i];
    json_writer w = begin_event(c->home, type, &json);
    item_id(c, i, id, sizeof id);
    json_key_text(&w, "item_id", id);
    json_key_int(&w, "output_index", (int64_t)i);
    if (it->kind != TOOL_CALL)
        json_key_int(&w, "content_index", 0);
    if (name) {
        json_key_str(&w, name, text);
        if (it->kind == TOOL_TEXT) {
            json_key(&w, "logprobs");
            if (done)
                answer_logprob_all(c, &w);
            else
                answer_logprob_new(c, &w);
        }
    } else {
        json_key(&w, "part");
        write_part(c, it->kind, text, done, &w);
    }
    end_event(c->home, type, &w);
}

static void close_item(answer_choice *c, size_t i)
{
    const answer_item *it = &c->item.at[i];
    str text = answer_view(&it->text);
    if (it->kind == TOOL_CALL) {
        send_inside(c, i, "response.function_call_arguments.done", "arguments", text, true);
    } else {
        send_inside(c, i,
                    it->kind == TOOL_TEXT ? "response.output_text.done"
                                          : "response.reasoning_text.done",
                    "text", text, true);
        send_inside(c, i, "response.content_part.done", NULL, text, true);
    }
    send_item(c, i, true);
}

/* Items that were announced and are over. */
static void close_items(answer_choice *c, size_t n)
{
    while (c->home->items_closed < n)
        close_item(c, c->home->items_closed++);
}

static void response_delta(answer_choice *c, tool_event kind, answer_item *item, str text)
{
    static const char *const types[] = {[TOOL_TEXT] = "response.output_text.delta",
                                        [TOOL_REASONING] = "response.reasoning_text.delta",
                                        [TOOL_ARGUMENTS] =
                                            "response.function_call_arguments.delta"};
    size_t i = (size_t)(item - c->item.at);
    speak(c);
    bool first = kind == TOOL_CALL ||
                 (kind != TOOL_ARGUMENTS && kind != TOOL_CALL_END && item->text.n == text.n);
    if (kind == TOOL_CALL_END) {
        close_items(c, i + 1);
        return;
    }
    if (first) {
        close_items(c, i);
        send_item(c, i, false);
        if (kind != TOOL_CALL)
            send_inside(c, i, "response.content_part.added", NULL, STR(""), false);
    }
    if (kind != TOOL_CALL)
        send_inside(c, i, types[kind], "delta", text, false);
}

static void response_close(answer_choice *c)
{
    speak(c);
    close_items(c, c->item.n);
    send_response(c->home, c->end == ANSWER_LENGTH ? "response.incomplete" : "response.completed",
                  true);
}

static void response_finish(answer *a)
{
    (void)a; /* the last event of a choice is the last of all */
}

static void response_body(answer *a)
{
    json_writer w = {.out = a->out};
    write_response(a, true, &w);
}

const answer_route answer_route_response = {"resp_", response_delta, response_close,
                                            response_finish, response_body};
