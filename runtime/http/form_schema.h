/* form_schema.h - which form a request asks of its answer, and the JSON schema of calls. Pure: no grammar is compiled here. */
#ifndef WEFT_RUNTIME_HTTP_FORM_SCHEMA_H
#define WEFT_RUNTIME_HTTP_FORM_SCHEMA_H

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

/* The JSON schema of SERVE_FORM_CALL and SERVE_FORM_EITHER. */
void serve_form_schema(const serve_request *rq, strbuf *out);

#endif
