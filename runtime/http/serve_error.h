/* serve_error.h - failures as HTTP answers: a status, and OpenAI's error object.
 *
 *     {"error": {"message": "top_k: is -3, expected 0 to 1000000", "type": "invalid_request_error",
 *                "param": "top_k", "code": "W1823"}}
 *
 * Which failure is which status stands in serve_errors.def. `code` is OpenAI's word where it has one that clients look for,
 * else Weft's. What is a fault of the server says no more than that: paths and places stay in its log. */
#ifndef WEFT_RUNTIME_HTTP_SERVE_ERROR_H
#define WEFT_RUNTIME_HTTP_SERVE_ERROR_H

#include "runtime/base/diag.h"

typedef struct {
    int http;         /* 400 */
    const char *type; /* "invalid_request_error" */
    const char *code; /* "context_length_exceeded"; or the diagnostic's own */
    bool ours;        /* a fault of the server, not of the request */
} serve_error;

serve_error serve_error_of(weft_code code);

/* The first error in dg as a body; returns its HTTP status. param may be empty: null then. Without an error it is 500. */
int serve_error_write(const weft_diag *dg, str param, strbuf *out);
/* The same of a code and a message, for who has no diag. */
int serve_error_say(weft_code code, str message, str param, strbuf *out);

#endif
