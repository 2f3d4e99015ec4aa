/* request_input.c - the input of /v1/responses as the messages of a chat.
 *
 *     {"role": "user", "content": ..}                          a message
 *     {"type": "function_call", "call_id", "name", "arguments"}  a call of the assistant; those that follow each other are one message
 *     {"type": "function_call_output", "call_id", "output"}      a message of the tool
 *     {"type": "reasoning", "content": [..]}                     what the assistant thought before its message or calls that follow */
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

/* What the assistant said, thought and called; what is empty is left out, but for the content. `thought` is used up. */
static value assistant_message(body_reader *r, str content, str *thought, const value *calls,
                               size_t n_call)
{
    value_member *m = ARENA_ARRAY(r->a, value_member, 4);
    size_t n = 0;
    m[n++] = (value_member){STR("role"), value_of_str(STR("assistant"))};
    m[n++] = (value_member){STR("content"), value_of_str(content)};
    if (thought->n)
        m[n++] = (value_member){STR("reasoning_content"), value_of_str(*thought)};
    if (n_call)
        m[n++] = (value_member){STR("tool_calls"), value_of_array(VT_NULL, calls, n_call)};
    *thought = STR("");
    return body_object(r, m, n);
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

static weft_status input_message(body_reader *r, str param, const value *v, str *thought,
                                 value *out)
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
    *out = strcmp(as[role], "assistant") == 0 ? assistant_message(r, text, thought, NULL, 0)
                                              : plain_message(r, as[role], text);
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

/* As answers have them; what others encrypted cannot be read. */
static weft_status input_reasoning(body_reader *r, str param, const value *v, str *out)
{
    WEFT_TRY(body_members(r, param, v, "type id summary content encrypted_content status"));
    const value *sealed = body_get(v, "encrypted_content"), *content = body_get(v, "content");
    if (sealed && value_kind_of(sealed) != VALUE_NULL)
        return body_fail(r, W1825, body_under(r, param, "encrypted_content"),
                         "is not supported: reasoning is read as text");
    if (!content || value_kind_of(content) == VALUE_NULL)
        return WEFT_OK;
    str p = body_under(r, param, "content");
    WEFT_TRY(body_want(r, p, content, VALUE_ARRAY));
    size_t n = value_count(content), bytes = 0;
    str *texts = ARENA_ARRAY(r->a, str, n + 1);
    for (size_t i = 0; i < n; i++) {
        value part = value_at(content, i);
        str at = body_at(r, p, i);
        WEFT_TRY(body_want(r, at, &part, VALUE_OBJECT));
        WEFT_TRY(body_members(r, at, &part, "type text"));
        WEFT_TRY(need_text(r, at, &part, "text", &texts[i]));
        bytes += texts[i].n;
    }
    char *all = ARENA_ARRAY(r->a, char, bytes + 1), *to = all;
    for (size_t i = 0; i < n; to += texts[i++].n)
        memcpy(to, texts[i].p, texts[i].n);
    *out = (str){all, bytes};
    return WEFT_OK;
}

typedef enum { ITEM_MESSAGE, ITEM_CALL, ITEM_OUTPUT, ITEM_REASONING } item_kind;

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
    else if (str_eqz(type, "reasoning"))
        *out = ITEM_REASONING;
    else
        return body_fail(r, W1825, p,
                         "\"" STR_FMT "\" is not supported; message, reasoning, function_call and "
                         "function_call_output are",
                         STR_ARG(type));
    return WEFT_OK;
}

weft_status body_input(body_reader *r, str param, const value *v)
{
    str text, thought = STR("");
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
    value *at = ARENA_ARRAY(r->a, value, 2 * n + 1), *calls = ARENA_ARRAY(r->a, value, n);
    for (size_t i = 0; i < n; i++) {
        value item = value_at(v, i);
        str p = body_at(r, param, i);
        item_kind kind = ITEM_MESSAGE;
        WEFT_TRY(item_of(r, p, &item, &kind));
        if (kind == ITEM_CALL) {
            WEFT_TRY(input_call(r, p, &item, &calls[n_call++]));
            continue;
        }
        if (n_call || (kind == ITEM_REASONING && thought.n)) {
            at[n_out++] = assistant_message(r, STR(""), &thought, calls, n_call);
            calls += n_call; /* the message has those */
            n_call = 0;
        }
        if (kind == ITEM_REASONING) {
            WEFT_TRY(input_reasoning(r, p, &item, &thought));
            continue;
        }
        WEFT_TRY(kind == ITEM_MESSAGE ? input_message(r, p, &item, &thought, &at[n_out])
                                      : input_output(r, p, &item, &at[n_out]));
        if (thought.n) { /* somebody else speaks next */
            at[n_out + 1] = at[n_out];
            at[n_out++] = assistant_message(r, STR(""), &thought, NULL, 0);
        }
        n_out++;
    }
    if (n_call || thought.n)
        at[n_out++] = assistant_message(r, STR(""), &thought, calls, n_call);
    if (n_out == 0)
        return body_fail(r, W1823, param, "has no message");
    put_messages(r, at, n_out);
    return WEFT_OK;
}
