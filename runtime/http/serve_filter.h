/* serve_filter.h - the form that a request asks of its answer, as a grammar. */
#ifndef WEFT_RUNTIME_HTTP_SERVE_FILTER_H
#define WEFT_RUNTIME_HTTP_SERVE_FILTER_H

#include "runtime/http/form_cache.h"
#include "runtime/http/serve_request.h"

/* Which objects an answer may be: a call that must come (tool_choice) is {"name": .., "arguments": ..} of one of the tools; where calls may
 * come beside a response_format, it is that or such a call. */
typedef enum {
    SERVE_FORM_NONE, /* anything */
    SERVE_FORM_TEXT, /* response_format, grammar, regex .. */
    SERVE_FORM_CALL,
    SERVE_FORM_EITHER,
} serve_form;
serve_form serve_form_of(const serve_request *rq);

/* The grammar, which the caller gives back with grammar_destroy; NULL with SERVE_FORM_NONE. Fails as grammar_compile does. */
weft_status serve_form_get(weft_diag *dg, form_cache *kept, const grammar_vocab *v,
                           const serve_request *rq, grammar **out_g) WEFT_MUST_USE;
/* The JSON schema of SERVE_FORM_CALL and SERVE_FORM_EITHER. */
void serve_form_schema(const serve_request *rq, strbuf *out);

#endif
