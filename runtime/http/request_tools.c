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

static weft_status read_function(field_reader *r, str param, const value *v, serve_tool *out)
{
    str p = field_under(r, param, "name");
    if (!field_get(v, "name"))
        return field_fail(r, W1824, p, "is missing");
    WEFT_TRY(field_str(r, p, field_get(v, "name"), SERVE_WORD_MAX, &out->name));
    if (!name_ok(out->name))
        return field_fail(r, W1823, p,
                          "is \"" STR_FMT "\", expected 1 to %d letters, digits, _ or -",
                          STR_ARG(out->name), SERVE_TOOL_NAME_MAX);
    if (field_get(v, "description"))
        WEFT_TRY(field_str(r, field_under(r, param, "description"), field_get(v, "description"),
                           SIZE_MAX, &out->description));
    if (field_get(v, "parameters")) {
        out->parameters = field_get(v, "parameters");
        WEFT_TRY(field_want(r, field_under(r, param, "parameters"), out->parameters, VALUE_OBJECT));
    }
    if (field_get(v, "strict"))
        WEFT_TRY(
            field_bool(r, field_under(r, param, "strict"), field_get(v, "strict"), &out->strict));
    return WEFT_OK;
}

/* {"type": "function", "function": {..}} of chats; /v1/responses has the members of the function beside the type. */
static weft_status one_tool(field_reader *r, str param, const value *v, serve_tool *out)
{
    str type;
    WEFT_TRY(field_want(r, param, v, VALUE_OBJECT));
    str p = field_under(r, param, "type");
    if (!field_get(v, "type"))
        return field_fail(r, W1824, p, "is missing");
    WEFT_TRY(field_str(r, p, field_get(v, "type"), SERVE_WORD_MAX, &type));
    if (!str_eqz(type, "function"))
        return field_fail(r, W1825, p, "\"" STR_FMT "\" is not supported; \"function\" is",
                          STR_ARG(type));
    if (r->rq->kind == SERVE_RESPONSE) {
        WEFT_TRY(field_members(r, param, v, "type name description parameters strict"));
        return read_function(r, param, v, out);
    }
    WEFT_TRY(field_members(r, param, v, "type function"));
    str f_param = field_under(r, param, "function");
    const value *f = field_get(v, "function");
    if (!f)
        return field_fail(r, W1824, f_param, "is missing");
    WEFT_TRY(field_members(r, f_param, f, "name description parameters strict"));
    return read_function(r, f_param, f, out);
}

/* As templates expect a tool, whichever way the client wrote it. */
static value tool_value(field_reader *r, const serve_tool *t)
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
    m[1] = (value_member){STR("function"), field_object(r, f, n)};
    return field_object(r, m, 2);
}

weft_status field_tools(field_reader *r, str param, const value *v)
{
    WEFT_TRY(field_want(r, param, v, VALUE_ARRAY));
    size_t n = value_count(v);
    if (n > SERVE_TOOLS_MAX)
        return field_fail(r, W1823, param, "has %zu tools, the limit is %d", n, SERVE_TOOLS_MAX);
    if (n == 0)
        return WEFT_OK;
    serve_tool *at = ARENA_ARRAY(r->a, serve_tool, n);
    value *list = ARENA_ARRAY(r->a, value, n), *all = ARENA_NEW(r->a, value);
    for (size_t i = 0; i < n; i++) {
        value item = value_at(v, i);
        WEFT_TRY(one_tool(r, field_at(r, param, i), &item, &at[i]));
        for (size_t k = 0; k < i; k++)
            if (str_eq(at[k].name, at[i].name))
                return field_fail(r, W1823, field_at(r, param, i),
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

weft_status field_tool_choice(field_reader *r, str param, const value *v)
{
    serve_request *q = r->rq;
    int i;
    str type, name;
    if (value_kind_of(v) == VALUE_STR) {
        static const serve_tool_choice of[] = {SERVE_TOOLS_NONE, SERVE_TOOLS_AUTO,
                                               SERVE_TOOLS_REQUIRED};
        WEFT_TRY(field_word(r, param, v, "none auto required", &i));
        q->tool_choice = i == 1 && !q->n_tool ? SERVE_TOOLS_NONE : of[i];
        if (q->tool_choice == SERVE_TOOLS_NONE)
            q->tools = NULL; /* what must not be called is not shown to the model */
        return WEFT_OK;
    }
    WEFT_TRY(field_want(r, param, v, VALUE_OBJECT));
    str p = field_under(r, param, "type");
    if (!field_get(v, "type"))
        return field_fail(r, W1824, p, "is missing");
    WEFT_TRY(field_str(r, p, field_get(v, "type"), SERVE_WORD_MAX, &type));
    if (!str_eqz(type, "function"))
        return field_fail(r, W1825, p, "\"" STR_FMT "\" is not supported; \"function\" is",
                          STR_ARG(type));
    bool flat = q->kind == SERVE_RESPONSE;
    WEFT_TRY(field_members(r, param, v, flat ? "type name" : "type function"));
    const value *f = flat ? v : field_get(v, "function");
    str f_param = flat ? param : field_under(r, param, "function");
    if (!f)
        return field_fail(r, W1824, f_param, "is missing");
    if (!flat)
        WEFT_TRY(field_members(r, f_param, f, "name"));
    p = field_under(r, f_param, "name");
    if (!field_get(f, "name"))
        return field_fail(r, W1824, p, "is missing");
    WEFT_TRY(field_str(r, p, field_get(f, "name"), SERVE_WORD_MAX, &name));
    for (size_t k = 0; k < q->n_tool; k++)
        if (str_eq(q->tool_at[k].name, name)) {
            q->tool_choice = SERVE_TOOLS_ONE;
            q->tool_one = (int)k;
            return WEFT_OK;
        }
    return field_fail(r, W1823, p, "there is no tool \"" STR_FMT "\"", STR_ARG(name));
}

/* ---- the form of an answer ---- */

static weft_status read_schema(field_reader *r, str param, const value *v)
{
    if (value_kind_of(v) != VALUE_OBJECT && value_kind_of(v) != VALUE_BOOL)
        return field_fail(r, W1823, param, "is %s, expected a JSON schema: an object, or a boolean",
                          field_kind_name(v));
    r->rq->format.kind = SERVE_FORMAT_SCHEMA;
    r->rq->format.schema = v;
    return WEFT_OK;
}

/* name, description, schema and strict, wherever they stand. */
static weft_status named_schema(field_reader *r, str param, const value *v)
{
    str unused, p = field_under(r, param, "schema");
    if (field_get(v, "name"))
        WEFT_TRY(field_str(r, field_under(r, param, "name"), field_get(v, "name"), SERVE_WORD_MAX,
                           &r->rq->format.name));
    if (field_get(v, "description"))
        WEFT_TRY(field_str(r, field_under(r, param, "description"), field_get(v, "description"),
                           SIZE_MAX, &unused));
    if (field_get(v, "strict"))
        WEFT_TRY(field_bool(r, field_under(r, param, "strict"), field_get(v, "strict"),
                            &r->rq->format.strict));
    if (!field_get(v, "schema"))
        return field_fail(r, W1824, p, "is missing");
    return read_schema(r, p, field_get(v, "schema"));
}

static weft_status read_text_form(field_reader *r, str param, const value *v,
                                  serve_format_kind kind)
{
    WEFT_TRY(field_str(r, param, v, SERVE_GRAMMAR_BYTES_MAX, &r->rq->format.text));
    r->rq->format.kind = kind;
    return WEFT_OK;
}

weft_status field_grammar(field_reader *r, str param, const value *v)
{
    return read_text_form(r, param, v, SERVE_FORMAT_GRAMMAR);
}

weft_status field_regex(field_reader *r, str param, const value *v)
{
    return read_text_form(r, param, v, SERVE_FORMAT_REGEX);
}

weft_status field_json_schema(field_reader *r, str param, const value *v)
{
    return read_schema(r, param, v);
}

weft_status field_response_format(field_reader *r, str param, const value *v)
{
    int type;
    WEFT_TRY(field_want(r, param, v, VALUE_OBJECT));
    if (!field_get(v, "type"))
        return field_fail(r, W1824, field_under(r, param, "type"), "is missing");
    WEFT_TRY(field_word(r, field_under(r, param, "type"), field_get(v, "type"),
                        "text json_object json_schema regex grammar", &type));
    bool flat = r->rq->kind == SERVE_RESPONSE; /* there the schema stands beside the type */
    static const char *const members[] = {"type", "type", "type json_schema", "type regex",
                                          "type grammar"};
    WEFT_TRY(field_members(
        r, param, v, flat && type == 2 ? "type name description schema strict" : members[type]));
    if (type == 1)
        r->rq->format.kind = SERVE_FORMAT_JSON;
    if (type < 2)
        return WEFT_OK;
    if (type == 2 && flat)
        return named_schema(r, param, v);
    const char *name = type == 2 ? "json_schema" : type == 3 ? "regex" : "grammar";
    str p = field_under(r, param, name);
    const value *inner = field_get(v, name);
    if (!inner)
        return field_fail(r, W1824, p, "is missing");
    if (type > 2)
        return read_text_form(r, p, inner, type == 3 ? SERVE_FORMAT_REGEX : SERVE_FORMAT_GRAMMAR);
    WEFT_TRY(field_members(r, p, inner, "name description schema strict"));
    return named_schema(r, p, inner);
}

/* {"format": {..}, "verbosity": ..} of /v1/responses. */
weft_status field_text(field_reader *r, str param, const value *v)
{
    WEFT_TRY(field_members(r, param, v, "format verbosity"));
    if (field_get(v, "verbosity"))
        WEFT_TRY(field_verbosity(r, field_under(r, param, "verbosity"), field_get(v, "verbosity")));
    if (field_get(v, "format"))
        WEFT_TRY(field_response_format(r, field_under(r, param, "format"), field_get(v, "format")));
    return WEFT_OK;
}
