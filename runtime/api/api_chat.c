/* api_chat.c - the public interface: a chat request, in JSON, rendered by a template. Needs the JSON reader, which a built
 * program has not. */
#include "runtime/api/api_impl.h"

#include "runtime/formats/json_read.h"

/* One part of a chat request, read from JSON; *out stays NULL where there is none. */
static weft_status chat_part(weft_diag *dg, arena *a, const char *what, const char *json,
                             value_kind kind, const value **out)
{
    if (!json)
        return WEFT_OK;
    value *v = ARENA_NEW(a, value);
    WEFT_TRY(json_read(dg, a, what, str_of(json), JSON_LIMITS_CONFIG, v));
    if (value_kind_of(v) != kind)
        return weft_fail(dg, W1306, WEFT_NOWHERE, "%s must be a JSON %s", what,
                         kind == VALUE_ARRAY ? "array" : "object");
    *out = v;
    return WEFT_OK;
}

static weft_status render(weft_diag *dg, const weft_template *t, const weft_chat *c, strbuf *out)
{
    arena *a = arena_create();
    chat_request rq = {.generate = !c->no_answer};
    weft_status st = chat_part(dg, a, "messages", c->messages, VALUE_ARRAY, &rq.messages);
    if (st == WEFT_OK)
        st = chat_part(dg, a, "tools", c->tools, VALUE_ARRAY, &rq.tools);
    if (st == WEFT_OK)
        st = chat_part(dg, a, "documents", c->documents, VALUE_ARRAY, &rq.documents);
    if (st == WEFT_OK)
        st = chat_part(dg, a, "variables", c->variables, VALUE_OBJECT, &rq.overrides);
    if (st == WEFT_OK)
        st = chat_render(dg, t->chat, &rq, out);
    arena_destroy(a);
    return st;
}

weft_status weft_template_render(weft_diag *dg, const weft_template *t, const weft_chat *chat,
                                 char **out_text, size_t *out_bytes)
{
    API_SCOPE(dg);
    weft_chat c;
    strbuf text = {0};
    if (!dg || !t || !chat || !out_text || !out_bytes)
        return api_lacks(dg, "weft_template_render", "a template or messages");
    WEFT_TRY(api_take(dg, "weft_template_render", chat, &c, sizeof c));
    if (!c.messages)
        return api_lacks(dg, "weft_template_render", "messages");
    weft_status st = render(dg, t, &c, &text);
    return api_give_text(st, &text, out_text, out_bytes);
}

weft_status weft_template_encode(weft_diag *dg, const weft_template *t, weft_tokenizer *tokenizer,
                                 const weft_chat *chat, int32_t **out_ids, size_t *out_n)
{
    API_SCOPE(dg);
    char *text;
    size_t bytes;
    if (!dg || !tokenizer || !out_ids || !out_n)
        return api_lacks(dg, "weft_template_encode", "a tokenizer");
    WEFT_TRY(weft_template_render(dg, t, chat, &text, &bytes));
    /* The template writes the special tokens, so they are read and none is added. */
    weft_status st = weft_encode(dg, tokenizer, text, bytes, WEFT_PARSE_SPECIAL, out_ids, out_n);
    weft_free(text);
    return st;
}
