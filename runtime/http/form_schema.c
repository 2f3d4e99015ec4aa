/* form_schema.c - response_format and calls of tools in one JSON schema. */
#include "runtime/http/form_schema.h"

#include "runtime/base/json_write.h"

serve_form serve_form_of(const serve_request *rq)
{
    if (rq->tool_choice == SERVE_TOOLS_REQUIRED || rq->tool_choice == SERVE_TOOLS_ONE)
        return SERVE_FORM_CALL;
    if (rq->format.kind == SERVE_FORMAT_TEXT)
        return SERVE_FORM_NONE;
    return rq->tool_choice == SERVE_TOOLS_AUTO ? SERVE_FORM_EITHER : SERVE_FORM_TEXT;
}

/* ---- schemas inside of another ---- */

/* Members whose own members are names of something, not keywords; and those that hold data, in which nothing is a schema. */
static const char names_words[] = "properties patternProperties $defs definitions dependentSchemas";
static const char data_words[] = "const enum default examples";

static bool is_one(const char *words, str name)
{
    return name.n && !memchr(name.p, ' ', name.n) && word_find(words, name) >= 0;
}

/* A copy in which references, which are places in the whole schema, are below `prefix`. */
static value move_refs(arena *a, const value *v, const char *prefix, bool names)
{
    size_t n = value_count(v), twice;
    value out = *v;
    if (value_kind_of(v) == VALUE_ARRAY && n) {
        value *at = ARENA_ARRAY(a, value, n);
        for (size_t i = 0; i < n; i++) {
            value item = value_at(v, i);
            at[i] = move_refs(a, &item, prefix, false);
        }
        return value_of_array(VT_NULL, at, n);
    }
    if (value_kind_of(v) != VALUE_OBJECT || !n)
        return out;
    value_member *m = ARENA_ARRAY(a, value_member, n);
    for (size_t i = 0; i < n; i++) {
        str path;
        m[i] = v->as.object.members[i];
        if (!names && is_one(data_words, m[i].name))
            continue;
        if (!names && str_eqz(m[i].name, "$ref") && value_str(&m[i].v, &path) && path.n &&
            path.p[0] == '#')
            m[i].v = value_of_str(
                arena_printf(a, "%s" STR_FMT, prefix, STR_ARG(((str){path.p + 1, path.n - 1}))));
        else
            m[i].v = move_refs(a, &m[i].v, prefix, !names && is_one(names_words, m[i].name));
    }
    bool differ = value_of_members(a, m, n, &out, &twice);
    WEFT_ASSERT(differ); /* they did in the schema that came */
    return out;
}

static void one_call(arena *a, const serve_tool *t, size_t place, json_writer *w)
{
    json_open(w, '{');
    json_key_text(w, "type", "object");
    json_key_open(w, "properties", '{');
    json_key_open(w, "name", '{');
    json_key_str(w, "const", t->name);
    json_close(w, '}');
    json_key(w, "arguments");
    if (t->parameters) {
        str prefix = arena_printf(a, "#/anyOf/%zu/properties/arguments", place);
        value v = move_refs(a, t->parameters, prefix.p, false);
        value_json(w, &v, SIZE_MAX);
    } else {
        json_open(w, '{');
        json_key_text(w, "type", "object");
        json_close(w, '}');
    }
    json_close(w, '}');
    json_key_open(w, "required", '[');
    json_str(w, STR("name"));
    json_str(w, STR("arguments"));
    json_close(w, ']');
    json_key_bool(w, "additionalProperties", false);
    json_close(w, '}');
}

void serve_form_schema(const serve_request *rq, strbuf *out)
{
    arena *a = arena_create();
    json_writer w = {.out = out};
    bool one = rq->tool_choice == SERVE_TOOLS_ONE;
    size_t place = 0;
    json_open(&w, '{');
    json_key_open(&w, "anyOf", '[');
    if (rq->format.kind == SERVE_FORMAT_SCHEMA) {
        value v = move_refs(a, rq->format.schema, "#/anyOf/0", false);
        value_json(&w, &v, SIZE_MAX);
        place++;
    } else if (rq->format.kind == SERVE_FORMAT_JSON) {
        json_open(&w, '{');
        json_key_text(&w, "type", "object");
        json_close(&w, '}');
        place++;
    }
    for (size_t i = 0; i < rq->n_tool; i++)
        if (!one || (int)i == rq->tool_one)
            one_call(a, &rq->tool_at[i], place++, &w);
    json_close(&w, ']');
    json_close(&w, '}');
    arena_destroy(a);
}
