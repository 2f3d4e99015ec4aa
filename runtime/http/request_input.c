/* request_input.c - the input of /v1/responses as the messages of a chat.
 *
 *     {"role": "user", "content": ..}                          a message
 *     {"type": "function_call", "call_id", "name", "arguments"}  a call of the assistant; those that follow each other are one message
 *     {"type": "function_call_output", "call_id", "output"}      a message of the tool */
#include "runtime/http/request_read.h"

/* Messages so far; `instructions` may come before or after them. */
static void put_messages(body_reader *r, value *at, size_t n)
{
    value *all = ARENA_NEW(r->a, value);
    *all = value_of_array(VT_NULL, at, n);
    r->rq->messages = all;
}

static value plain_message(body_reader *r, const char *role, str content)
{
    value_member *m = ARENA_ARRAY(r->a, value_member, 2);
    m[0] = (value_member){STR("role"), value_of_str(str_of(role))};
    m[1] = (value_member){STR("content"), value_of_str(content)};
    return body_object(r, m, 2);
}

/* Stands before all messages. The table has `input` first, so they are there. */
weft_status body_instructions(body_reader *r, str param, const value *v)
{
    str text;
    WEFT_TRY(body_content_text(r, param, v, &text));
    size_t n = value_count(r->rq->messages);
    value *at = ARENA_ARRAY(r->a, value, n + 1);
    at[0] = plain_message(r, "system", text);
    for (size_t i = 0; i < n; i++)
        at[i + 1] = value_at(r->rq->messages, i);
    put_messages(r, at, n + 1);
    return WEFT_OK;
}

static weft_status need_text(body_reader *r, str param, const value *v, const char *name, str *out)
{
    str p = body_under(r, param, name);
    if (!body_get(v, name))
        return body_fail(r, W1824, p, "is missing");
    return body_str(r, p, body_get(v, name), SIZE_MAX, out);
}

static weft_status input_message(body_reader *r, str param, const value *v, value *out)
{
    static const char words[] = "system developer user assistant";
    static const char *const as[] = {"system", "system", "user", "assistant"};
    int role;
    str text;
    WEFT_TRY(body_members(r, param, v, "type role content id status phase"));
    if (!body_get(v, "role"))
        return body_fail(r, W1824, body_under(r, param, "role"), "is missing");
    WEFT_TRY(body_word(r, body_under(r, param, "role"), body_get(v, "role"), words, &role));
    if (!body_get(v, "content"))
        return body_fail(r, W1824, body_under(r, param, "content"), "is missing");
    WEFT_TRY(body_content_text(r, body_under(r, param, "content"), body_get(v, "content"), &text));
    *out = plain_message(r, as[role], text);
    return WEFT_OK;
}

static weft_status input_call(body_reader *r, str param, const value *v, value *out)
{
    str id, name, arguments;
    WEFT_TRY(body_members(r, param, v, "type id call_id name arguments status"));
    WEFT_TRY(need_text(r, param, v, "call_id", &id));
    WEFT_TRY(need_text(r, param, v, "name", &name));
    WEFT_TRY(need_text(r, param, v, "arguments", &arguments));
    value_member *f = ARENA_ARRAY(r->a, value_member, 2);
    f[0] = (value_member){STR("name"), value_of_str(name)};
    f[1] = (value_member){STR("arguments"), body_arguments(r, arguments)};
    value_member *m = ARENA_ARRAY(r->a, value_member, 3);
    m[0] = (value_member){STR("id"), value_of_str(id)};
    m[1] = (value_member){STR("type"), value_of_str(STR("function"))};
    m[2] = (value_member){STR("function"), body_object(r, f, 2)};
    *out = body_object(r, m, 3);
    return WEFT_OK;
}

/* The assistant's message with these calls. */
static value calls_message(body_reader *r, const value *calls, size_t n)
{
    value_member *m = ARENA_ARRAY(r->a, value_member, 3);
    m[0] = (value_member){STR("role"), value_of_str(STR("assistant"))};
    m[1] = (value_member){STR("content"), value_of_str(STR(""))};
    m[2] = (value_member){STR("tool_calls"), value_of_array(VT_NULL, calls, n)};
    return body_object(r, m, 3);
}

static weft_status input_output(body_reader *r, str param, const value *v, value *out)
{
    str id, text;
    WEFT_TRY(body_members(r, param, v, "type id call_id output status"));
    WEFT_TRY(need_text(r, param, v, "call_id", &id));
    if (!body_get(v, "output"))
        return body_fail(r, W1824, body_under(r, param, "output"), "is missing");
    WEFT_TRY(body_content_text(r, body_under(r, param, "output"), body_get(v, "output"), &text));
    value_member *m = ARENA_ARRAY(r->a, value_member, 3);
    m[0] = (value_member){STR("role"), value_of_str(STR("tool"))};
    m[1] = (value_member){STR("content"), value_of_str(text)};
    m[2] = (value_member){STR("tool_call_id"), value_of_str(id)};
    *out = body_object(r, m, 3);
    return WEFT_OK;
}

typedef enum { ITEM_MESSAGE, ITEM_CALL, ITEM_OUTPUT } item_kind;

static weft_status item_of(body_reader *r, str param, const value *v, item_kind *out)
{
    str type = STR("message");
    WEFT_TRY(body_want(r, param, v, VALUE_OBJECT));
    str p = body_under(r, param, "type");
    if (body_get(v, "type"))
        WEFT_TRY(body_str(r, p, body_get(v, "type"), SERVE_WORD_MAX, &type));
    if (str_eqz(type, "message"))
        *out = ITEM_MESSAGE;
    else if (str_eqz(type, "function_call"))
        *out = ITEM_CALL;
    else if (str_eqz(type, "function_call_output"))
        *out = ITEM_OUTPUT;
    else
        return body_fail(r, W1825, p,
                         "\"" STR_FMT
                         "\" is not supported; message, function_call and function_call_output are",
                         STR_ARG(type));
    return WEFT_OK;
}

weft_status body_input(body_reader *r, str param, const value *v)
{
    str text;
    if (value_kind_of(v) == VALUE_STR) {
        WEFT_TRY(body_str(r, param, v, SIZE_MAX, &text));
        value *one = ARENA_NEW(r->a, value);
        *one = plain_message(r, "user", text);
        put_messages(r, one, 1);
        return WEFT_OK;
    }
    WEFT_TRY(body_want(r, param, v, VALUE_ARRAY));
    size_t n = value_count(v), n_out = 0, n_call = 0;
    if (n == 0)
        return body_fail(r, W1823, param, "is an empty list");
    if (n > SERVE_MESSAGES_MAX)
        return body_fail(r, W1823, param, "has %zu items, the limit is %d", n, SERVE_MESSAGES_MAX);
    value *at = ARENA_ARRAY(r->a, value, n), *calls = ARENA_ARRAY(r->a, value, n);
    for (size_t i = 0; i < n; i++) {
        value item = value_at(v, i);
        str p = body_at(r, param, i);
        item_kind kind = ITEM_MESSAGE;
        WEFT_TRY(item_of(r, p, &item, &kind));
        if (kind == ITEM_CALL) {
            WEFT_TRY(input_call(r, p, &item, &calls[n_call++]));
            continue;
        }
        if (n_call) {
            at[n_out++] = calls_message(r, calls, n_call);
            calls += n_call; /* the message has those */
            n_call = 0;
        }
        WEFT_TRY(kind == ITEM_MESSAGE ? input_message(r, p, &item, &at[n_out])
                                      : input_output(r, p, &item, &at[n_out]));
        n_out++;
    }
    if (n_call)
        at[n_out++] = calls_message(r, calls, n_call);
    put_messages(r, at, n_out);
    return WEFT_OK;
}
