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

static weft_status add_part(field_reader *r, str param, const value *v, strbuf *out)
{
    str type, text;
    WEFT_TRY(field_want(r, param, v, VALUE_OBJECT));
    str type_param = field_under(r, param, "type");
    if (!field_get(v, "type"))
        return field_fail(r, W1824, type_param, "is missing");
    WEFT_TRY(field_str(r, type_param, field_get(v, "type"), SERVE_WORD_MAX, &type));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const part_row *p = &parts[i];
        if (!str_eqz(type, p->type))
            continue;
        if (!p->text)
            return field_fail(r, W1825, type_param, "\"%s\" is not supported: %s", p->type, p->why);
        /* annotations and logprobs come back in answers; empty ones say nothing. */
        WEFT_TRY(field_members(
            r, param, v, p->member[0] == 't' ? "type text annotations logprobs" : "type refusal"));
        if (value_count(field_get(v, "annotations")))
            return field_fail(r, W1825, field_under(r, param, "annotations"), "is not supported");
        str text_param = field_under(r, param, p->member);
        if (!field_get(v, p->member))
            return field_fail(r, W1824, text_param, "is missing");
        WEFT_TRY(field_str(r, text_param, field_get(v, p->member), SIZE_MAX, &text));
        if (out->n)
            strbuf_putc(out, '\n');
        strbuf_put(out, text);
        return WEFT_OK;
    }
    return field_fail(r, W1823, type_param, "is \"" STR_FMT "\", expected \"text\"", STR_ARG(type));
}

weft_status field_content_text(field_reader *r, str param, const value *v, str *out)
{
    if (value_kind_of(v) == VALUE_STR)
        return field_str(r, param, v, SIZE_MAX, out);
    if (value_kind_of(v) != VALUE_ARRAY)
        return field_fail(r, W1823, param, "is %s, expected a string or a list of parts",
                          field_kind_name(v));
    strbuf text = {0};
    weft_status st = WEFT_OK;
    for (size_t i = 0; st == WEFT_OK && i < value_count(v); i++) {
        value item = value_at(v, i);
        st = add_part(r, field_at(r, param, i), &item, &text);
    }
    if (st == WEFT_OK)
        *out = arena_str(r->a, text.n ? strbuf_view(&text) : STR(""));
    strbuf_free(&text);
    return st;
}

/* ---- calls that the model made before ---- */

value field_arguments(field_reader *r, str text)
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

static weft_status one_call(field_reader *r, str param, const value *v, value *out)
{
    str id = STR(""), name, arguments = STR("{}");
    int type;
    WEFT_TRY(field_members(r, param, v, "id type function index"));
    if (field_get(v, "type"))
        WEFT_TRY(
            field_word(r, field_under(r, param, "type"), field_get(v, "type"), "function", &type));
    if (field_get(v, "id"))
        WEFT_TRY(
            field_str(r, field_under(r, param, "id"), field_get(v, "id"), SERVE_WORD_MAX, &id));
    const value *f = field_get(v, "function");
    str f_param = field_under(r, param, "function");
    if (!f)
        return field_fail(r, W1824, f_param, "is missing");
    WEFT_TRY(field_members(r, f_param, f, "name arguments"));
    if (!field_get(f, "name"))
        return field_fail(r, W1824, field_under(r, f_param, "name"), "is missing");
    WEFT_TRY(
        field_str(r, field_under(r, f_param, "name"), field_get(f, "name"), SERVE_WORD_MAX, &name));
    if (field_get(f, "arguments"))
        WEFT_TRY(field_str(r, field_under(r, f_param, "arguments"), field_get(f, "arguments"),
                           SIZE_MAX, &arguments));
    value_member *fm = ARENA_ARRAY(r->a, value_member, 2);
    fm[0] = (value_member){STR("name"), value_of_str(name)};
    fm[1] = (value_member){STR("arguments"), field_arguments(r, arguments)};
    value_member *m = ARENA_ARRAY(r->a, value_member, 3);
    m[0] = (value_member){STR("id"), value_of_str(id)};
    m[1] = (value_member){STR("type"), value_of_str(STR("function"))};
    m[2] = (value_member){STR("function"), field_object(r, fm, 2)};
    *out = field_object(r, m, 3);
    return WEFT_OK;
}

static weft_status all_calls(field_reader *r, str param, const value *v, value *out)
{
    WEFT_TRY(field_want(r, param, v, VALUE_ARRAY));
    size_t n = value_count(v);
    if (n > SERVE_TOOLS_MAX)
        return field_fail(r, W1823, param, "has %zu calls, the limit is %d", n, SERVE_TOOLS_MAX);
    value *at = ARENA_ARRAY(r->a, value, n ? n : 1);
    for (size_t i = 0; i < n; i++) {
        value item = value_at(v, i);
        WEFT_TRY(one_call(r, field_at(r, param, i), &item, &at[i]));
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

static weft_status find_role(field_reader *r, str param, const value *v, const role_row **out)
{
    str role;
    str p = field_under(r, param, "role");
    WEFT_TRY(field_want(r, param, v, VALUE_OBJECT));
    if (!field_get(v, "role"))
        return field_fail(r, W1824, p, "is missing");
    WEFT_TRY(field_str(r, p, field_get(v, "role"), SERVE_WORD_MAX, &role));
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (str_eqz(role, roles[i].role)) {
            *out = &roles[i];
            return WEFT_OK;
        }
    if (str_eqz(role, "function"))
        return field_fail(r, W1825, p,
                          "\"function\" is not supported: it was replaced by \"tool\"");
    return field_fail(r, W1823, p,
                      "is \"" STR_FMT "\", expected one of: system developer user assistant tool",
                      STR_ARG(role));
}

/* A member that is a text, as it is. */
static weft_status add_text(field_reader *r, str param, const value *v, const char *name,
                            value_member *m, size_t *n)
{
    str s;
    if (!field_get(v, name))
        return WEFT_OK;
    WEFT_TRY(field_str(r, field_under(r, param, name), field_get(v, name), SIZE_MAX, &s));
    m[(*n)++] = (value_member){str_of(name), value_of_str(s)};
    return WEFT_OK;
}

static weft_status one_message(field_reader *r, str param, const value *v, value *out)
{
    const role_row *role = NULL;
    const value *content = field_get(v, "content"), *calls = field_get(v, "tool_calls");
    value_member *m = ARENA_ARRAY(r->a, value_member, 8);
    size_t n = 0;
    str text = STR("");
    WEFT_TRY(find_role(r, param, v, &role));
    WEFT_TRY(field_members(r, param, v, role->members));
    if (value_count(field_get(v, "annotations")))
        return field_fail(r, W1825, field_under(r, param, "annotations"), "is not supported");
    if (!content && role->content)
        return field_fail(r, W1824, field_under(r, param, "content"), "is missing");
    if (content)
        WEFT_TRY(field_content_text(r, field_under(r, param, "content"), content, &text));
    else if (field_get(v, "refusal"))
        WEFT_TRY(field_str(r, field_under(r, param, "refusal"), field_get(v, "refusal"), SIZE_MAX,
                           &text));
    else if (!calls)
        return field_fail(r, W1824, field_under(r, param, "content"),
                          "is missing, and there are no `tool_calls` either");
    m[n++] = (value_member){STR("role"), value_of_str(str_of(role->as))};
    m[n++] = (value_member){STR("content"), value_of_str(text)};
    WEFT_TRY(add_text(r, param, v, "name", m, &n));
    WEFT_TRY(add_text(r, param, v, "tool_call_id", m, &n));
    WEFT_TRY(add_text(
        r, param, v, field_get(v, "reasoning_content") ? "reasoning_content" : "reasoning", m, &n));
    if (calls) {
        value list;
        WEFT_TRY(all_calls(r, field_under(r, param, "tool_calls"), calls, &list));
        if (value_count(&list))
            m[n++] = (value_member){STR("tool_calls"), list};
    }
    *out = field_object(r, m, n);
    return WEFT_OK;
}

weft_status field_messages(field_reader *r, str param, const value *v)
{
    WEFT_TRY(field_want(r, param, v, VALUE_ARRAY));
    size_t n = value_count(v);
    if (n == 0)
        return field_fail(r, W1823, param, "is an empty list");
    if (n > SERVE_MESSAGES_MAX)
        return field_fail(r, W1823, param, "has %zu messages, the limit is %d", n,
                          SERVE_MESSAGES_MAX);
    value *at = ARENA_ARRAY(r->a, value, n);
    for (size_t i = 0; i < n; i++) {
        value item = value_at(v, i);
        WEFT_TRY(one_message(r, field_at(r, param, i), &item, &at[i]));
    }
    value *all = ARENA_NEW(r->a, value);
    *all = value_of_array(VT_NULL, at, n);
    r->rq->messages = all;
    return WEFT_OK;
}
