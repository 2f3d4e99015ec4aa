/* answer_chat.c - /v1/chat/completions: a message, or deltas of one. */
#include "runtime/http/answer_impl.h"

static void write_head(const answer *a, const char *object, json_writer *w)
{
    json_key_text(w, "id", a->id);
    json_key_text(w, "object", object);
    json_key_int(w, "created", a->facts.created);
    json_key_text(w, "model", a->facts.model);
    if (a->facts.fingerprint)
        json_key_text(w, "system_fingerprint", a->facts.fingerprint);
}

static void write_usage(const answer *a, json_writer *w)
{
    int64_t prompt, cached, generated;
    answer_usage_counts(a, &prompt, &cached, &generated);
    json_key_open(w, "usage", '{');
    json_key_int(w, "prompt_tokens", prompt);
    json_key_int(w, "completion_tokens", generated);
    json_key_int(w, "total_tokens", prompt + generated);
    json_key_open(w, "prompt_tokens_details", '{');
    json_key_int(w, "cached_tokens", cached);
    json_close(w, '}');
    if (answer_reasoning_count(a)) {
        json_key_open(w, "completion_tokens_details", '{');
        json_key_int(w, "reasoning_tokens", answer_reasoning_count(a));
        json_close(w, '}');
    }
    json_close(w, '}');
}

static void write_logprobs(answer_choice *c, json_writer *w)
{
    json_key(w, "logprobs");
    if (!c->home->rq->logprobs) {
        json_null(w);
        return;
    }
    json_open(w, '{');
    json_key(w, "content");
    answer_logprob_list(c, w);
    json_key_text(w, "refusal", NULL);
    json_close(w, '}');
}

/* ---- a stream ---- */

/* One chunk around a delta, which is JSON. */
static void send_chunk(answer_choice *c, str delta, const char *reason)
{
    answer *a = c->home;
    strbuf json = {0};
    json_writer w = {.out = &json};
    json_open(&w, '{');
    write_head(a, "chat.completion.chunk", &w);
    json_key_open(&w, "choices", '[');
    json_open(&w, '{');
    json_key_int(&w, "index", (int64_t)c->index);
    json_key(&w, "delta");
    answer_json_raw(&w, delta);
    if (c->spoke)
        write_logprobs(c, &w);
    else /* they go with the text */
        json_key_text(&w, "logprobs", NULL);
    json_key_text(&w, "finish_reason", reason);
    json_close(&w, '}');
    json_close(&w, ']');
    if (a->rq->stream_usage)
        json_key_text(&w, "usage", NULL);
    json_close(&w, '}');
    answer_sse(a, NULL, answer_view(&json));
    strbuf_free(&json);
}

/* The first chunk of a choice says who speaks. */
static void speak(answer_choice *c)
{
    if (!c->spoke) {
        send_chunk(c, STR("{\"role\":\"assistant\",\"content\":\"\"}"), NULL);
        c->spoke = true;
    }
}

static void chat_delta(answer_choice *c, tool_event kind, answer_item *item, str text)
{
    strbuf json = {0};
    json_writer w = {.out = &json};
    char id[64];
    if (kind == TOOL_CALL_END)
        return;
    speak(c);
    json_open(&w, '{');
    if (kind == TOOL_TEXT || kind == TOOL_REASONING) {
        json_key_str(&w, kind == TOOL_TEXT ? "content" : "reasoning_content", text);
    } else {
        json_key_open(&w, "tool_calls", '[');
        json_open(&w, '{');
        json_key_int(&w, "index", (int64_t)item->number);
        if (kind == TOOL_CALL) {
            answer_call_id(c, item, id, sizeof id);
            json_key_text(&w, "id", id);
            json_key_text(&w, "type", "function");
        }
        json_key_open(&w, "function", '{');
        if (kind == TOOL_CALL)
            json_key_str(&w, "name", text);
        json_key_str(&w, "arguments", kind == TOOL_CALL ? STR("") : text);
        json_close(&w, '}');
        json_close(&w, '}');
        json_close(&w, ']');
    }
    json_close(&w, '}');
    send_chunk(c, answer_view(&json), NULL);
    strbuf_free(&json);
}

static void chat_close(answer_choice *c)
{
    speak(c);
    send_chunk(c, STR("{}"), answer_finish_reason(c));
}

static void chat_finish(answer *a)
{
    if (a->rq->stream_usage) {
        strbuf json = {0};
        json_writer w = {.out = &json};
        json_open(&w, '{');
        write_head(a, "chat.completion.chunk", &w);
        json_key_open(&w, "choices", '[');
        json_close(&w, ']');
        write_usage(a, &w);
        json_close(&w, '}');
        answer_sse(a, NULL, answer_view(&json));
        strbuf_free(&json);
    }
    answer_sse(a, NULL, STR("[DONE]"));
}

/* ---- one body ---- */

static void write_calls(const answer_choice *c, json_writer *w)
{
    char id[64];
    json_key_open(w, "tool_calls", '[');
    for (size_t i = 0; i < c->item.n; i++) {
        const answer_item *it = &c->item.at[i];
        if (it->kind != TOOL_CALL)
            continue;
        answer_call_id(c, it, id, sizeof id);
        json_open(w, '{');
        json_key_text(w, "id", id);
        json_key_text(w, "type", "function");
        json_key_open(w, "function", '{');
        json_key_str(w, "name", answer_view(&it->name));
        json_key_str(w, "arguments", answer_view(&it->text));
        json_close(w, '}');
        json_close(w, '}');
    }
    json_close(w, ']');
}

static void write_message(const answer_choice *c, json_writer *w)
{
    strbuf text = {0}, reasoning = {0};
    answer_joined(c, TOOL_TEXT, &text);
    answer_joined(c, TOOL_REASONING, &reasoning);
    json_key_open(w, "message", '{');
    json_key_text(w, "role", "assistant");
    if (text.n || !c->n_call)
        json_key_str(w, "content", answer_view(&text));
    else
        json_key_text(w, "content", NULL);
    json_key_text(w, "refusal", NULL);
    if (reasoning.n)
        json_key_str(w, "reasoning_content", answer_view(&reasoning));
    if (c->n_call)
        write_calls(c, w);
    json_close(w, '}');
    strbuf_free(&text);
    strbuf_free(&reasoning);
}

static void chat_body(answer *a)
{
    json_writer w = {.out = a->out};
    json_open(&w, '{');
    write_head(a, "chat.completion", &w);
    json_key_open(&w, "choices", '[');
    for (size_t i = 0; i < a->n_choice; i++) {
        answer_choice *c = &a->choice[i];
        json_open(&w, '{');
        json_key_int(&w, "index", (int64_t)i);
        write_message(c, &w);
        write_logprobs(c, &w);
        json_key_text(&w, "finish_reason", answer_finish_reason(c));
        json_close(&w, '}');
    }
    json_close(&w, ']');
    write_usage(a, &w);
    json_close(&w, '}');
}

const answer_route answer_route_chat = {"chatcmpl-", chat_delta, chat_close, chat_finish,
                                        chat_body};
