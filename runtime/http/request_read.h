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
} request_reader;

/* A failure at a field, whose name goes before the message and into fault_param. */
weft_status request_fail(request_reader *r, weft_code code, str param, const char *fmt, ...)
    WEFT_PRINTF(4, 5);

const char *request_kind_name(const value *v); /* "a string", "null", ... */
bool request_absent(const value *v);           /* NULL or null */
/* W1803 unless v is of that kind. */
weft_status request_want(request_reader *r, str param, const value *v,
                         value_kind kind) WEFT_MUST_USE;
weft_status request_str(request_reader *r, str param, const value *v, size_t bytes_max,
                        str *out) WEFT_MUST_USE;
weft_status request_bool(request_reader *r, str param, const value *v, bool *out) WEFT_MUST_USE;
weft_status request_int(request_reader *r, str param, const value *v, int64_t lo, int64_t hi,
                        int64_t *out) WEFT_MUST_USE;
weft_status request_num(request_reader *r, str param, const value *v, double lo, double hi,
                        double *out) WEFT_MUST_USE;
/* W1803 unless the text is one of these words, with blanks between them. */
weft_status request_word(request_reader *r, str param, const value *v, const char *words,
                         int *out_i) WEFT_MUST_USE;
/* Ids that the vocabulary has. */
weft_status request_ids(request_reader *r, str param, const value *v, const int32_t **out_ids,
                        size_t *out_n) WEFT_MUST_USE;

/* v must be an object that has no members but these words; null ones do not count. */
weft_status request_members(request_reader *r, str param, const value *v,
                            const char *words) WEFT_MUST_USE;
/* Member of an object; NULL where it is absent or null. */
const value *request_get(const value *v, const char *name);
str request_under(request_reader *r, str param, const char *name);  /* "param.name" */
str request_at(request_reader *r, str param, size_t i);             /* "param[i]" */
value request_object(request_reader *r, value_member *m, size_t n); /* names differ */

/* One for each compound field, named after it; param is the field's name. */
typedef weft_status request_field_fn(request_reader *r, str param, const value *v);
request_field_fn request_messages, request_input,
    request_instructions; /* request_messages.c, request_input.c */
request_field_fn request_tools, request_tool_choice, request_response_format, request_text,
    request_grammar, request_regex, request_json_schema; /* request_tools.c */
request_field_fn request_prompt, request_stop, request_logit_bias, request_logprobs, request_seed,
    request_model, request_stream_options, request_encoding_format, request_reasoning,
    request_reasoning_effort, request_kwargs, request_documents, request_modalities,
    request_service_tier, request_truncation, request_include, request_metadata, request_tokens,
    request_content, request_label, request_verbosity, request_priority; /* request_fields.c */

/* The text of a message's content: a string, or parts of text joined by line breaks. Images and the like are W1805. */
weft_status request_content_text(request_reader *r, str param, const value *v,
                                 str *out) WEFT_MUST_USE;
/* Arguments of an earlier call, for templates: an object where the text is one, else the text. */
value request_arguments(request_reader *r, str text);

#endif
