/* serve_filter.h - the form that a request asks of its answer, as the tokens that may come next. */
#ifndef WEFT_RUNTIME_HTTP_SERVE_FILTER_H
#define WEFT_RUNTIME_HTTP_SERVE_FILTER_H

#include "runtime/engine/request.h"
#include "runtime/grammar/grammar.h"
#include "runtime/http/serve_request.h"

/* Of response_format, grammar and the like, or of a call that must come (tool_choice): then the answer is {"name": .., "arguments": ..} of one
 * of the tools. NULL without either. v must outlive the filter. Fails as grammar_compile does. */
weft_status serve_filter_create(weft_diag *dg, const grammar_vocab *v, const serve_request *rq,
                                token_filter **out_f) WEFT_MUST_USE;
/* The JSON schema of such a call, for tests. */
void serve_call_schema(const serve_request *rq, strbuf *out);

#endif
