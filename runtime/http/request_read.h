/* request_read.h - what the readers of request fields share. Private to this folder. */
#ifndef WEFT_RUNTIME_HTTP_REQUEST_READ_H
#define WEFT_RUNTIME_HTTP_REQUEST_READ_H

#include "runtime/http/serve_request.h"
#include "runtime/formats/json_read.h"

typedef struct {
    weft_diag *dg;
    arena *a;
    const serve_rules *rules;
    const value *body;
    serve_request *rq;
} body_reader;

/* A failure at a field, whose name goes before the message and into fault_param. */
weft_status body_fail(body_reader *r, weft_code code, str param, const char *fmt, ...)
    WEFT_PRINTF(4, 5);

const char *body_kind_name(const value *v); /* "a string", "null", ... */
bool body_absent(const value *v);           /* NULL or null */
/* W1823 unless v is of that kind. */
weft_status body_want(body_reader *r, str param, const value *v, value_kind kind) WEFT_MUST_USE;
weft_status body_str(body_reader *r, str param, const value *v, size_t bytes_max,
                     str *out) WEFT_MUST_USE;
weft_status body_bool(body_reader *r, str param, const value *v, bool *out) WEFT_MUST_USE;
weft_status body_int(body_reader *r, str param, const value *v, int64_t lo, int64_t hi,
                     int64_t *out) WEFT_MUST_USE;
weft_status body_num(body_reader *r, str param, const value *v, double lo, double hi,
                     double *out) WEFT_MUST_USE;
/* W1823 unless the text is one of these words, with blanks between them. */
weft_status body_word(body_reader *r, str param, const value *v, const char *words,
                      int *out_i) WEFT_MUST_USE;
/* Ids that the vocabulary has. */
weft_status body_ids(body_reader *r, str param, const value *v, const int32_t **out_ids,
                     size_t *out_n) WEFT_MUST_USE;

/* v must be an object that has no members but these words; null ones do not count. */
weft_status body_members(body_reader *r, str param, const value *v,
                         const char *words) WEFT_MUST_USE;
/* Member of an object; NULL where it is absent or null. */
const value *body_get(const value *v, const char *name);
str body_under(body_reader *r, str param, const char *name);  /* "param.name" */
str body_at(body_reader *r, str param, size_t i);             /* "param[i]" */
value body_object(body_reader *r, value_member *m, size_t n); /* names differ */

/* One for each compound field, named after it; param is the field's name. */
typedef weft_status body_fn(body_reader *r, str param, const value *v);
body_fn body_messages, body_input, body_instructions; /* request_messages.c, request_input.c */
body_fn body_tools, body_tool_choice, body_response_format, body_text, body_grammar, body_regex,
    body_json_schema; /* request_tools.c */
body_fn body_prompt, body_stop, body_logit_bias, body_logprobs, body_seed, body_model,
    body_stream_options, body_encoding_format, body_reasoning, body_reasoning_effort, body_kwargs,
    body_documents, body_modalities, body_service_tier, body_truncation, body_include,
    body_metadata, body_tokens, body_content, body_label, body_verbosity,
    body_priority; /* request_fields.c */

/* The text of a message's content: a string, or parts of text joined by line breaks. Images and the like are W1825. */
weft_status body_content_text(body_reader *r, str param, const value *v, str *out) WEFT_MUST_USE;
/* Arguments of an earlier call, for templates: an object where the text is one, else the text. */
value body_arguments(body_reader *r, str text);

#endif
