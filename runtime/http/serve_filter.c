/* serve_filter.c - the form that a request asks of its answer. A grammar is compiled by the thread that read the request, and used by the one
 * that steps. */
#include "runtime/http/serve_filter.h"

#include "runtime/base/json_write.h"

weft_status serve_form_get(weft_diag *dg, form_cache *kept, const grammar_vocab *v,
                           const serve_request *rq, grammar **out_g)
{
    strbuf text = {0};
    weft_status st;
    serve_form form = serve_form_of(rq);
    if (form == SERVE_FORM_NONE) {
        *out_g = NULL;
        return WEFT_OK;
    }
    if (form != SERVE_FORM_TEXT) {
        serve_form_schema(rq, &text);
        st = form_cache_get(dg, kept, v, GRAMMAR_JSON_SCHEMA, "tools", strbuf_view(&text), out_g);
    } else if (rq->format.kind == SERVE_FORMAT_JSON) {
        st = form_cache_get(dg, kept, v, FORM_JSON_OBJECT, "json_object", STR(""), out_g);
    } else if (rq->format.kind == SERVE_FORMAT_SCHEMA) {
        json_writer w = {.out = &text};
        value_json(&w, rq->format.schema, SIZE_MAX);
        st = form_cache_get(dg, kept, v, GRAMMAR_JSON_SCHEMA, "schema", strbuf_view(&text), out_g);
    } else {
        bool regex = rq->format.kind == SERVE_FORMAT_REGEX;
        st = form_cache_get(dg, kept, v, regex ? GRAMMAR_REGEX : GRAMMAR_GBNF,
                            regex ? "regex" : "grammar", rq->format.text, out_g);
    }
    strbuf_free(&text);
    return st;
}
