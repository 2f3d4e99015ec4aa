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
} field_reader;

/* A failure at a field, whose name goes before the message and into fault_param. */
weft_status field_fail(field_reader *r, weft_code code, str param, const char *fmt, ...)
    WEFT_PRINTF(4, 5);

const char *field_kind_name(const value *v); /* "a string", "null", ... */
bool field_absent(const value *v);           /* NULL or null */
/* W1823 unless v is of that kind. */
weft_status field_want(field_reader *r, str param, const value *v, value_kind kind) WEFT_MUST_USE;
weft_status field_str(field_reader *r, str param, const value *v, size_t bytes_max,
                      str *out) WEFT_MUST_USE;
weft_status field_bool(field_reader *r, str param, const value *v, bool *out) WEFT_MUST_USE;
weft_status field_int(field_reader *r, str param, const value *v, int64_t lo, int64_t hi,
                      int64_t *out) WEFT_MUST_USE;
weft_status field_num(field_reader *r, str param, const value *v, double lo, double hi,
                      double *out) WEFT_MUST_USE;
/* W1823 unless the text is one of these words, with blanks between them. */
weft_status field_word(field_reader *r, str param, const value *v, const char *words,
                       int *out_i) WEFT_MUST_USE;
/* Ids that the vocabulary has. */
weft_status field_ids(field_reader *r, str param, const value *v, const int32_t **out_ids,
                      size_t *out_n) WEFT_MUST_USE;

/* v must be an object that has no members but these words; null ones do not count. */
weft_status field_members(field_reader *r, str param, const value *v,
                          const char *words) WEFT_MUST_USE;
/* Member of an object; NULL where it is absent or null. */
const value *field_get(const value *v, const char *name);
str field_under(field_reader *r, str param, const char *name);  /* "param.name" */
str field_at(field_reader *r, str param, size_t i);             /* "param[i]" */
value field_object(field_reader *r, value_member *m, size_t n); /* names differ */

/* One for each compound field, named after it; param is the field's name. */
typedef weft_status field_fn(field_reader *r, str param, const value *v);
field_fn field_messages, field_input, field_instructions; /* request_messages.c, request_input.c */
field_fn field_tools, field_tool_choice, field_response_format, field_text, field_grammar,
    field_regex, field_json_schema; /* request_tools.c */
field_fn field_prompt, field_stop, field_logit_bias, field_logprobs, field_seed, field_model,
    field_stream_options, field_encoding_format, field_reasoning, field_reasoning_effort,
    field_kwargs, field_documents, field_modalities, field_service_tier, field_truncation,
    field_include, field_metadata, field_tokens, field_content, field_label, field_verbosity,
    field_priority; /* request_fields.c */

/* The text of a message's content: a string, or parts of text joined by line breaks. Images and the like are W1825. */
weft_status field_content_text(field_reader *r, str param, const value *v, str *out) WEFT_MUST_USE;
/* Arguments of an earlier call, for templates: an object where the text is one, else the text. */
value field_arguments(field_reader *r, str text);

#endif
