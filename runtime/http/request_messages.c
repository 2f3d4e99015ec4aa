/* request_messages.c - the messages of a chat, checked one by one and made what templates read: contents are strings,
 * arguments of calls are objects, and a message has no member that nobody would look at. */
#include "runtime/http/request_read.h"

/* ---- content ---- */

typedef struct {
    const char *type;
    bool text; /* has a member of this name that is part of the text; else it is refused */
    const char *member;
    const char *why;
} part_row;

/* clang-format off */
static const part_row parts[] = {
    {"text",        true,  "text",    NULL},
    {"input_text",  true,  "text",    NULL}, /* of /v1/responses */
    {"output_text", true,  "text",    NULL},
    {"refusal",     true,  "refusal", NULL},
    {"image_url",   false, NULL,      "images are not read"},
    {"input_image", false, NULL,      "images are not read"},
    {"input_audio", false, NULL,      "audio is not heard"},
    {"audio",       false, NULL,      "audio is not heard"},
    {"video_url",   false, NULL,      "videos are not seen"},
    {"file",        false, NULL,      "files are not opened; send their text"},
    {"input_file",  false, NULL,      "files are not opened; send their text"},
};
/* clang-format on */

static weft_status add_part(body_reader *r, str param, const value *v, strbuf *out)
{
    str type, text;
    WEFT_TRY(body_want(r, param, v, VALUE_OBJECT));
    str type_param = body_under(r, param, "type");
    if (!body_get(v, "type"))
        return body_fail(r, W1824, type_param, "is missing");
    WEFT_TRY(body_str(r, type_param, body_get(v, "type"), SERVE_WORD_MAX, &type));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const part_row *p = &parts[i];
        if (!str_eqz(type, p->type))
            continue;
        if (!p->text)
            return body_fail(r, W1825, type_param, "\"%s\" is not supported: %s", p->type, p->why);
        /* annotations and logprobs come back in answers; empty ones say nothing. */
        WEFT_TRY(body_members(
            r, param, v, p->member[0] == 't' ? "type text annotations logprobs" : "type refusal"));
        if (value_count(body_get(v, "annotations")))
            return body_fail(r, W1825, body_under(r, param, "annotations"), "is not supported");
        str text_param = body_under(r, param, p->member);
        if (!body_get(v, p->member))
            return body_fail(r, W1824, text_param, "is missing");
        WEFT_TRY(body_str(r, text_param, body_get(v, p->member), SIZE_MAX, &text));
        if (out->n)
            strbuf_putc(out, '\n');
        strbuf_put(out, text);
        return WEFT_OK;
    }
    return body_fail(r, W1823, type_param, "is \"" STR_FMT "\", expected \"text\"", STR_ARG(type));
}

weft_status body_content_text(body_reader *r, str param, const value *v, str *out)
{
    if (value_kind_of(v) == VALUE_STR)
        return body_str(r, param, v, SIZE_MAX, out);
    if (value_kind_of(v) != VALUE_ARRAY)
        return body_fail(r, W1823, param, "is %s, expected a string or a list of parts",
                         body_kind_name(v));
    strbuf text = {0};
    weft_status st = WEFT_OK;
    for (size_t i = 0; st == WEFT_OK && i < value_count(v); i++) {
        value item = value_at(v, i);
        st = add_part(r, body_at(r, param, i), &item, &text);
    }
    if (st == WEFT_OK)
        *out = arena_str(r->a, text.n ? strbuf_view(&text) : STR(""));
    strbuf_free(&text);
    return st;
}

/* ---- calls that the model made before ---- */

value body_arguments(body_reader *r, str text)
{
    weft_diag *quiet = diag_create();
    value v;
    bool object = json_read(quiet, r->a, "arguments", text,
                            (json_limits){.bytes_max = r->rules->body_max,
                                          .values_max = SERVE_VALUES_MAX,
                                          .depth_max = SERVE_DEPTH_MAX,
                                          .exact = true},
                            &v) == WEFT_OK &&
                  value_kind_of(&v) == VALUE_OBJECT;
    diag_destroy(quiet);
    /* What a model wrote badly goes back as it wrote it: refusing it would end the conversation for good. */
    return object ? v : value_of_str(text);
}

static weft_status one_call(body_reader *r, str param, const value *v, value *out)
{
    str id = STR(""), name, arguments = STR("{}");
    int type;
    WEFT_TRY(body_members(r, param, v, "id type function index"));
    if (body_get(v, "type"))
        WEFT_TRY(
            body_word(r, body_under(r, param, "type"), body_get(v, "type"), "function", &type));
    if (body_get(v, "id"))
        WEFT_TRY(body_str(r, body_under(r, param, "id"), body_get(v, "id"), SERVE_WORD_MAX, &id));
    const value *f = body_get(v, "function");
    str f_param = body_under(r, param, "function");
    if (!f)
        return body_fail(r, W1824, f_param, "is missing");
    WEFT_TRY(body_members(r, f_param, f, "name arguments"));
    if (!body_get(f, "name"))
        return body_fail(r, W1824, body_under(r, f_param, "name"), "is missing");
    WEFT_TRY(
        body_str(r, body_under(r, f_param, "name"), body_get(f, "name"), SERVE_WORD_MAX, &name));
    if (body_get(f, "arguments"))
        WEFT_TRY(body_str(r, body_under(r, f_param, "arguments"), body_get(f, "arguments"),
                          SIZE_MAX, &arguments));
    value_member *fm = ARENA_ARRAY(r->a, value_member, 2);
    fm[0] = (value_member){STR("name"), value_of_str(name)};
    fm[1] = (value_member){STR("arguments"), body_arguments(r, arguments)};
    value_member *m = ARENA_ARRAY(r->a, value_member, 3);
    m[0] = (value_member){STR("id"), value_of_str(id)};
    m[1] = (value_member){STR("type"), value_of_str(STR("function"))};
    m[2] = (value_member){STR("function"), body_object(r, fm, 2)};
    *out = body_object(r, m, 3);
    return WEFT_OK;
}

static weft_status all_calls(body_reader *r, str param, const value *v, value *out)
{
    WEFT_TRY(body_want(r, param, v, VALUE_ARRAY));
    size_t n = value_count(v);
    if (n > SERVE_TOOLS_MAX)
        return body_fail(r, W1823, param, "has %zu calls, the limit is %d", n, SERVE_TOOLS_MAX);
    value *at = ARENA_ARRAY(r->a, value, n ? n : 1);
    for (size_t i = 0; i < n; i++) {
        value item = value_at(v, i);
        WEFT_TRY(one_call(r, body_at(r, param, i), &item, &at[i]));
    }
    *out = value_of_array(VT_NULL, at, n);
    return WEFT_OK;
}

/* ---- messages ---- */

typedef struct {
    const char *role;
    const char *as;      /* what templates call it */
    const char *members; /* that it may have */
    bool content;        /* must be there */
} role_row;

/* clang-format off */
static const role_row roles[] = {
    {"system",    "system",    "role content name", true},
    {"developer", "system",    "role content name", true}, /* OpenAI's newer word for it */
    {"user",      "user",      "role content name", true},
    {"assistant", "assistant", "role content name tool_calls refusal reasoning_content reasoning annotations", false},
    {"tool",      "tool",      "role content name tool_call_id", true},
};
/* clang-format on */

static weft_status find_role(body_reader *r, str param, const value *v, const role_row **out)
{
    str role;
    str p = body_under(r, param, "role");
    WEFT_TRY(body_want(r, param, v, VALUE_OBJECT));
    if (!body_get(v, "role"))
        return body_fail(r, W1824, p, "is missing");
    WEFT_TRY(body_str(r, p, body_get(v, "role"), SERVE_WORD_MAX, &role));
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (str_eqz(role, roles[i].role)) {
            *out = &roles[i];
            return WEFT_OK;
        }
    if (str_eqz(role, "function"))
        return body_fail(r, W1825, p, "\"function\" is not supported: it was replaced by \"tool\"");
    return body_fail(r, W1823, p,
                     "is \"" STR_FMT "\", expected one of: system developer user assistant tool",
                     STR_ARG(role));
}

/* A member that is a text, as it is. */
static weft_status add_text(body_reader *r, str param, const value *v, const char *name,
                            value_member *m, size_t *n)
{
    str s;
    if (!body_get(v, name))
        return WEFT_OK;
    WEFT_TRY(body_str(r, body_under(r, param, name), body_get(v, name), SIZE_MAX, &s));
    m[(*n)++] = (value_member){str_of(name), value_of_str(s)};
    return WEFT_OK;
}

static weft_status one_message(body_reader *r, str param, const value *v, value *out)
{
    const role_row *role = NULL;
    const value *content = body_get(v, "content"), *calls = body_get(v, "tool_calls");
    value_member *m = ARENA_ARRAY(r->a, value_member, 8);
    size_t n = 0;
    str text = STR("");
    WEFT_TRY(find_role(r, param, v, &role));
    WEFT_TRY(body_members(r, param, v, role->members));
    if (value_count(body_get(v, "annotations")))
        return body_fail(r, W1825, body_under(r, param, "annotations"), "is not supported");
    if (!content && role->content)
        return body_fail(r, W1824, body_under(r, param, "content"), "is missing");
    if (content)
        WEFT_TRY(body_content_text(r, body_under(r, param, "content"), content, &text));
    else if (body_get(v, "refusal"))
        WEFT_TRY(
            body_str(r, body_under(r, param, "refusal"), body_get(v, "refusal"), SIZE_MAX, &text));
    else if (!calls)
        return body_fail(r, W1824, body_under(r, param, "content"),
                         "is missing, and there are no `tool_calls` either");
    m[n++] = (value_member){STR("role"), value_of_str(str_of(role->as))};
    m[n++] = (value_member){STR("content"), value_of_str(text)};
    WEFT_TRY(add_text(r, param, v, "name", m, &n));
    WEFT_TRY(add_text(r, param, v, "tool_call_id", m, &n));
    WEFT_TRY(add_text(r, param, v,
                      body_get(v, "reasoning_content") ? "reasoning_content" : "reasoning", m, &n));
    if (calls) {
        value list;
        WEFT_TRY(all_calls(r, body_under(r, param, "tool_calls"), calls, &list));
        if (value_count(&list))
            m[n++] = (value_member){STR("tool_calls"), list};
    }
    *out = body_object(r, m, n);
    return WEFT_OK;
}

weft_status body_messages(body_reader *r, str param, const value *v)
{
    WEFT_TRY(body_want(r, param, v, VALUE_ARRAY));
    size_t n = value_count(v);
    if (n == 0)
        return body_fail(r, W1823, param, "is an empty list");
    if (n > SERVE_MESSAGES_MAX)
        return body_fail(r, W1823, param, "has %zu messages, the limit is %d", n,
                         SERVE_MESSAGES_MAX);
    value *at = ARENA_ARRAY(r->a, value, n);
    for (size_t i = 0; i < n; i++) {
        value item = value_at(v, i);
        WEFT_TRY(one_message(r, body_at(r, param, i), &item, &at[i]));
    }
    value *all = ARENA_NEW(r->a, value);
    *all = value_of_array(VT_NULL, at, n);
    r->rq->messages = all;
    return WEFT_OK;
}
