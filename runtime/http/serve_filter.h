/* serve_filter.h - the form that a request asks of its answer, as a grammar. */
#ifndef WEFT_RUNTIME_HTTP_SERVE_FILTER_H
#define WEFT_RUNTIME_HTTP_SERVE_FILTER_H

#include "runtime/http/form_cache.h"
#include "runtime/http/form_schema.h"

/* The grammar, which the caller gives back with grammar_destroy; NULL with SERVE_FORM_NONE. Fails as grammar_compile does. */
weft_status serve_form_get(weft_diag *dg, form_cache *kept, const grammar_vocab *v,
                           const serve_request *rq, grammar **out_g) WEFT_MUST_USE;

#endif
