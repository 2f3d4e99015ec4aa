/* request_tools.c - functions that the model may call, which of them it must, and what else an answer has to look like. */
#include "runtime/http/request_read.h"

/* ---- tools ---- */

static bool name_ok(str name)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_' || c == '-'))
            return false;
    }
    return name.n > 0 && name.n <= SERVE_TOOL_NAME_MAX;
}

static weft_status read_function(body_reader *r, str param, const value *v, serve_tool *out)
{
    str p = body_under(r, param, "name");
    if (!body_get(v, "name"))
        return body_fail(r, W1824, p, "is missing");
    WEFT_TRY(body_str(r, p, body_get(v, "name"), SERVE_WORD_MAX, &out->name));
    if (!name_ok(out->name))
        return body_fail(r, W1823, p,
                         "is \"" STR_FMT "\", expected 1 to %d letters, digits, _ or -",
                         STR_ARG(out->name), SERVE_TOOL_NAME_MAX);
    if (body_get(v, "description"))
        WEFT_TRY(body_str(r, body_under(r, param, "description"), body_get(v, "description"),
                          SIZE_MAX, &out->description));
    if (body_get(v, "parameters")) {
        out->parameters = body_get(v, "parameters");
        WEFT_TRY(body_want(r, body_under(r, param, "parameters"), out->parameters, VALUE_OBJECT));
    }
    if (body_get(v, "strict"))
        WEFT_TRY(body_bool(r, body_under(r, param, "strict"), body_get(v, "strict"), &out->strict));
    return WEFT_OK;
}

/* {"type": "function", "function": {..}} of chats; /v1/responses has the members of the function beside the type. */
static weft_status one_tool(body_reader *r, str param, const value *v, serve_tool *out)
{
    str type;
    WEFT_TRY(body_want(r, param, v, VALUE_OBJECT));
    str p = body_under(r, param, "type");
    if (!body_get(v, "type"))
        return body_fail(r, W1824, p, "is missing");
    WEFT_TRY(body_str(r, p, body_get(v, "type"), SERVE_WORD_MAX, &type));
    if (!str_eqz(type, "function"))
        return body_fail(r, W1825, p, "\"" STR_FMT "\" is not supported; \"function\" is",
                         STR_ARG(type));
    if (r->rq->kind == SERVE_RESPONSE) {
        WEFT_TRY(body_members(r, param, v, "type name description parameters strict"));
        return read_function(r, param, v, out);
    }
    WEFT_TRY(body_members(r, param, v, "type function"));
    str f_param = body_under(r, param, "function");
    const value *f = body_get(v, "function");
    if (!f)
        return body_fail(r, W1824, f_param, "is missing");
    WEFT_TRY(body_members(r, f_param, f, "name description parameters strict"));
    return read_function(r, f_param, f, out);
}

/* As templates expect a tool, whichever way the client wrote it. */
static value tool_value(body_reader *r, const serve_tool *t)
{
    value_member *f = ARENA_ARRAY(r->a, value_member, 3);
    size_t n = 0;
    f[n++] = (value_member){STR("name"), value_of_str(t->name)};
    if (t->description.n)
        f[n++] = (value_member){STR("description"), value_of_str(t->description)};
    if (t->parameters)
        f[n++] = (value_member){STR("parameters"), *t->parameters};
    value_member *m = ARENA_ARRAY(r->a, value_member, 2);
    m[0] = (value_member){STR("type"), value_of_str(STR("function"))};
    m[1] = (value_member){STR("function"), body_object(r, f, n)};
    return body_object(r, m, 2);
}

weft_status body_tools(body_reader *r, str param, const value *v)
{
    WEFT_TRY(body_want(r, param, v, VALUE_ARRAY));
    size_t n = value_count(v);
    if (n > SERVE_TOOLS_MAX)
        return body_fail(r, W1823, param, "has %zu tools, the limit is %d", n, SERVE_TOOLS_MAX);
    if (n == 0)
        return WEFT_OK;
    serve_tool *at = ARENA_ARRAY(r->a, serve_tool, n);
    value *list = ARENA_ARRAY(r->a, value, n), *all = ARENA_NEW(r->a, value);
    for (size_t i = 0; i < n; i++) {
        value item = value_at(v, i);
        WEFT_TRY(one_tool(r, body_at(r, param, i), &item, &at[i]));
        for (size_t k = 0; k < i; k++)
            if (str_eq(at[k].name, at[i].name))
                return body_fail(r, W1823, body_at(r, param, i),
                                 "two tools are called \"" STR_FMT "\"", STR_ARG(at[i].name));
        list[i] = tool_value(r, &at[i]);
    }
    *all = value_of_array(VT_NULL, list, n);
    r->rq->tools = all;
    r->rq->tool_at = at;
    r->rq->n_tool = n;
    r->rq->tool_choice = SERVE_TOOLS_AUTO;
    return WEFT_OK;
}

weft_status body_tool_choice(body_reader *r, str param, const value *v)
{
    serve_request *q = r->rq;
    int i;
    str type, name;
    if (value_kind_of(v) == VALUE_STR) {
        static const serve_tool_choice of[] = {SERVE_TOOLS_NONE, SERVE_TOOLS_AUTO,
                                               SERVE_TOOLS_REQUIRED};
        WEFT_TRY(body_word(r, param, v, "none auto required", &i));
        q->tool_choice = i == 1 && !q->n_tool ? SERVE_TOOLS_NONE : of[i];
        if (q->tool_choice == SERVE_TOOLS_NONE)
            q->tools = NULL; /* what must not be called is not shown to the model */
        return WEFT_OK;
    }
    WEFT_TRY(body_want(r, param, v, VALUE_OBJECT));
    str p = body_under(r, param, "type");
    if (!body_get(v, "type"))
        return body_fail(r, W1824, p, "is missing");
    WEFT_TRY(body_str(r, p, body_get(v, "type"), SERVE_WORD_MAX, &type));
    if (!str_eqz(type, "function"))
        return body_fail(r, W1825, p, "\"" STR_FMT "\" is not supported; \"function\" is",
                         STR_ARG(type));
    bool flat = q->kind == SERVE_RESPONSE;
    WEFT_TRY(body_members(r, param, v, flat ? "type name" : "type function"));
    const value *f = flat ? v : body_get(v, "function");
    str f_param = flat ? param : body_under(r, param, "function");
    if (!f)
        return body_fail(r, W1824, f_param, "is missing");
    if (!flat)
        WEFT_TRY(body_members(r, f_param, f, "name"));
    p = body_under(r, f_param, "name");
    if (!body_get(f, "name"))
        return body_fail(r, W1824, p, "is missing");
    WEFT_TRY(body_str(r, p, body_get(f, "name"), SERVE_WORD_MAX, &name));
    for (size_t k = 0; k < q->n_tool; k++)
        if (str_eq(q->tool_at[k].name, name)) {
            q->tool_choice = SERVE_TOOLS_ONE;
            q->tool_one = (int)k;
            return WEFT_OK;
        }
    return body_fail(r, W1823, p, "there is no tool \"" STR_FMT "\"", STR_ARG(name));
}

/* ---- the form of an answer ---- */

static weft_status read_schema(body_reader *r, str param, const value *v)
{
    if (value_kind_of(v) != VALUE_OBJECT && value_kind_of(v) != VALUE_BOOL)
        return body_fail(r, W1823, param, "is %s, expected a JSON schema: an object, or a boolean",
                         body_kind_name(v));
    r->rq->format.kind = SERVE_FORMAT_SCHEMA;
    r->rq->format.schema = v;
    return WEFT_OK;
}

/* name, description, schema and strict, wherever they stand. */
static weft_status named_schema(body_reader *r, str param, const value *v)
{
    str unused, p = body_under(r, param, "schema");
    if (body_get(v, "name"))
        WEFT_TRY(body_str(r, body_under(r, param, "name"), body_get(v, "name"), SERVE_WORD_MAX,
                          &r->rq->format.name));
    if (body_get(v, "description"))
        WEFT_TRY(body_str(r, body_under(r, param, "description"), body_get(v, "description"),
                          SIZE_MAX, &unused));
    if (body_get(v, "strict"))
        WEFT_TRY(body_bool(r, body_under(r, param, "strict"), body_get(v, "strict"),
                           &r->rq->format.strict));
    if (!body_get(v, "schema"))
        return body_fail(r, W1824, p, "is missing");
    return read_schema(r, p, body_get(v, "schema"));
}

static weft_status read_text_form(body_reader *r, str param, const value *v, serve_format_kind kind)
{
    WEFT_TRY(body_str(r, param, v, SERVE_GRAMMAR_BYTES_MAX, &r->rq->format.text));
    r->rq->format.kind = kind;
    return WEFT_OK;
}

weft_status body_grammar(body_reader *r, str param, const value *v)
{
    return read_text_form(r, param, v, SERVE_FORMAT_GRAMMAR);
}

weft_status body_regex(body_reader *r, str param, const value *v)
{
    return read_text_form(r, param, v, SERVE_FORMAT_REGEX);
}

weft_status body_json_schema(body_reader *r, str param, const value *v)
{
    return read_schema(r, param, v);
}

weft_status body_response_format(body_reader *r, str param, const value *v)
{
    int type;
    WEFT_TRY(body_want(r, param, v, VALUE_OBJECT));
    if (!body_get(v, "type"))
        return body_fail(r, W1824, body_under(r, param, "type"), "is missing");
    WEFT_TRY(body_word(r, body_under(r, param, "type"), body_get(v, "type"),
                       "text json_object json_schema regex grammar", &type));
    bool flat = r->rq->kind == SERVE_RESPONSE; /* there the schema stands beside the type */
    static const char *const members[] = {"type", "type", "type json_schema", "type regex",
                                          "type grammar"};
    WEFT_TRY(body_members(
        r, param, v, flat && type == 2 ? "type name description schema strict" : members[type]));
    if (type == 1)
        r->rq->format.kind = SERVE_FORMAT_JSON;
    if (type < 2)
        return WEFT_OK;
    if (type == 2 && flat)
        return named_schema(r, param, v);
    const char *name = type == 2 ? "json_schema" : type == 3 ? "regex" : "grammar";
    str p = body_under(r, param, name);
    const value *inner = body_get(v, name);
    if (!inner)
        return body_fail(r, W1824, p, "is missing");
    if (type > 2)
        return read_text_form(r, p, inner, type == 3 ? SERVE_FORMAT_REGEX : SERVE_FORMAT_GRAMMAR);
    WEFT_TRY(body_members(r, p, inner, "name description schema strict"));
    return named_schema(r, p, inner);
}

/* {"format": {..}, "verbosity": ..} of /v1/responses. */
weft_status body_text(body_reader *r, str param, const value *v)
{
    WEFT_TRY(body_members(r, param, v, "format verbosity"));
    if (body_get(v, "verbosity"))
        WEFT_TRY(body_verbosity(r, body_under(r, param, "verbosity"), body_get(v, "verbosity")));
    if (body_get(v, "format"))
        WEFT_TRY(body_response_format(r, body_under(r, param, "format"), body_get(v, "format")));
    return WEFT_OK;
}
