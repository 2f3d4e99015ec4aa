/* answer_completion.c - /v1/completions: a text, or parts of one. */
#include "runtime/http/answer_impl.h"

static void write_head(const answer *a, json_writer *w)
{
    json_key_text(w, "id", a->id);
    json_key_text(w, "object", "text_completion");
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
    json_close(w, '}');
}

static str text_of(const answer *a, int32_t token)
{
    return a->facts.token_text ? a->facts.token_text(a->facts.token_ctx, token) : STR("");
}

/* Four lists of equal length, as this route has had them from the beginning. */
static void write_logprobs(answer_choice *c, json_writer *w)
{
    const answer *a = c->home;
    json_key(w, "logprobs");
    if (!a->rq->logprobs) {
        json_null(w);
        return;
    }
    json_open(w, '{');
    json_key_open(w, "tokens", '[');
    for (size_t i = 0; i < c->lp.n; i++)
        json_str(w, text_of(a, c->lp.at[i].token));
    json_close(w, ']');
    json_key_open(w, "token_logprobs", '[');
    for (size_t i = 0; i < c->lp.n; i++)
        json_double(w, (double)c->lp.at[i].logprob);
    json_close(w, ']');
    json_key_open(w, "top_logprobs", '[');
    for (size_t i = 0; i < c->lp.n; i++) {
        json_open(w, '{');
        for (size_t k = c->lp.at[i].top_begin; k < c->lp.at[i].top_end; k++) {
            strbuf name = {0};
            str t = text_of(a, c->top.at[k].id);
            strbuf_put(&name, t);
            strbuf_putc(&name, 0);
            json_key(w, name.p); /* bytes behind a NUL are lost: this form has only names */
            json_double(w, (double)c->top.at[k].logprob);
            strbuf_free(&name);
        }
        json_close(w, '}');
    }
    json_close(w, ']');
    json_key_open(w, "text_offset", '[');
    for (size_t i = 0; i < c->lp.n; i++)
        json_int(w, (int64_t)c->lp.at[i].offset);
    json_close(w, ']');
    json_close(w, '}');
    c->lp.n = c->top.n = 0;
}

static void write_choice(answer_choice *c, str text, const char *reason, json_writer *w)
{
    json_open(w, '{');
    json_key_int(w, "index", (int64_t)c->index);
    json_key_str(w, "text", text);
    write_logprobs(c, w);
    json_key_text(w, "finish_reason", reason);
    json_close(w, '}');
}

static void send_chunk(answer_choice *c, str text, const char *reason)
{
    answer *a = c->home;
    strbuf json = {0};
    json_writer w = {.out = &json};
    json_open(&w, '{');
    write_head(a, &w);
    json_key_open(&w, "choices", '[');
    write_choice(c, text, reason, &w);
    json_close(&w, ']');
    if (a->rq->stream_usage)
        json_key_text(&w, "usage", NULL);
    json_close(&w, '}');
    answer_sse(a, NULL, answer_view(&json));
    strbuf_free(&json);
}

static void completion_delta(answer_choice *c, tool_event kind, answer_item *item, str text)
{
    (void)kind;
    (void)item;
    send_chunk(c, text, NULL);
}

static void completion_close(answer_choice *c)
{
    send_chunk(c, STR(""), answer_finish_reason(c));
}

static void completion_finish(answer *a)
{
    if (a->rq->stream_usage) {
        strbuf json = {0};
        json_writer w = {.out = &json};
        json_open(&w, '{');
        write_head(a, &w);
        json_key_open(&w, "choices", '[');
        json_close(&w, ']');
        write_usage(a, &w);
        json_close(&w, '}');
        answer_sse(a, NULL, answer_view(&json));
        strbuf_free(&json);
    }
    answer_sse(a, NULL, STR("[DONE]"));
}

static void completion_body(answer *a)
{
    json_writer w = {.out = a->out};
    json_open(&w, '{');
    write_head(a, &w);
    json_key_open(&w, "choices", '[');
    for (size_t i = 0; i < a->n_choice; i++) {
        strbuf text = {0};
        answer_joined(&a->choice[i], TOOL_TEXT, &text);
        write_choice(&a->choice[i], answer_view(&text), answer_finish_reason(&a->choice[i]), &w);
        strbuf_free(&text);
    }
    json_close(&w, ']');
    write_usage(a, &w);
    json_close(&w, '}');
}

const answer_route answer_route_completion = {"cmpl-", completion_delta, completion_close,
                                              completion_finish, completion_body};
