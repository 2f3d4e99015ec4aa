/* serve_filter.c - the form that a request asks of its answer. A grammar is compiled by the thread that read the request, and used by the one
 * that steps. */
#include "runtime/http/serve_filter.h"

#include "runtime/base/json_write.h"
#include "runtime/grammar/grammar_filter.h"

static void one_call(const serve_tool *t, json_writer *w)
{
    json_open(w, '{');
    json_key_text(w, "type", "object");
    json_key_open(w, "properties", '{');
    json_key_open(w, "name", '{');
    json_key_str(w, "const", t->name);
    json_close(w, '}');
    json_key(w, "arguments");
    if (t->parameters) {
        value_json(w, t->parameters, SIZE_MAX);
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

void serve_call_schema(const serve_request *rq, strbuf *out)
{
    json_writer w = {.out = out};
    bool one = rq->tool_choice == SERVE_TOOLS_ONE;
    json_open(&w, '{');
    json_key_open(&w, "anyOf", '[');
    for (size_t i = 0; i < rq->n_tool; i++)
        if (!one || (int)i == rq->tool_one)
            one_call(&rq->tool_at[i], &w);
    json_close(&w, ']');
    json_close(&w, '}');
}

static weft_status compile(weft_diag *dg, const grammar_vocab *v, const serve_request *rq,
                           grammar **out_g)
{
    strbuf text = {0};
    weft_status st;
    bool must_call = rq->tool_choice == SERVE_TOOLS_REQUIRED || rq->tool_choice == SERVE_TOOLS_ONE;
    if (must_call) {
        serve_call_schema(rq, &text);
        st = grammar_compile(dg, v, GRAMMAR_JSON_SCHEMA, "tools", strbuf_view(&text),
                             GRAMMAR_LIMITS_DEFAULT, out_g);
    } else if (rq->format.kind == SERVE_FORMAT_JSON) {
        st = grammar_compile_json_object(dg, v, GRAMMAR_LIMITS_DEFAULT, out_g);
    } else if (rq->format.kind == SERVE_FORMAT_SCHEMA) {
        json_writer w = {.out = &text};
        value_json(&w, rq->format.schema, SIZE_MAX);
        st = grammar_compile(dg, v, GRAMMAR_JSON_SCHEMA, "schema", strbuf_view(&text),
                             GRAMMAR_LIMITS_DEFAULT, out_g);
    } else {
        bool regex = rq->format.kind == SERVE_FORMAT_REGEX;
        st = grammar_compile(dg, v, regex ? GRAMMAR_REGEX : GRAMMAR_GBNF,
                             regex ? "regex" : "grammar", rq->format.text, GRAMMAR_LIMITS_DEFAULT,
                             out_g);
    }
    strbuf_free(&text);
    return st;
}

weft_status serve_filter_create(weft_diag *dg, const grammar_vocab *v, const serve_request *rq,
                                token_filter **out_f)
{
    grammar *g = NULL;
    bool must_call = rq->tool_choice == SERVE_TOOLS_REQUIRED || rq->tool_choice == SERVE_TOOLS_ONE;
    if (rq->format.kind == SERVE_FORMAT_TEXT && !must_call) {
        *out_f = NULL;
        return WEFT_OK;
    }
    WEFT_TRY(compile(dg, v, rq, &g));
    *out_f = grammar_filter_create(g);
    grammar_destroy(g); /* the filter holds it */
    return WEFT_OK;
}
