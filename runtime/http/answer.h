/* answer.h - what the scheduler says of a request, as OpenAI's JSON: one body, or server-sent events as they come.
 *
 *     answer *a = answer_create(&rq, &facts);
 *     answer_put(a, &event, &out);         of a stream: events to send now; else nothing yet
 *     if (answer_complete(a))
 *         status = answer_end(a, &out);    of a stream: its last events; else the body
 *
 * Pure: no socket, scheduler or tokenizer is needed. Calls of tools and reasoning are taken apart on the way (tool_format.h). What an
 * answer holds is bounded by ANSWER_BYTES_MAX; one that passes it has failed. Not thread-safe. */
#ifndef WEFT_RUNTIME_HTTP_ANSWER_H
#define WEFT_RUNTIME_HTTP_ANSWER_H

#include "runtime/http/serve_request.h"
#include "runtime/http/tool_format.h"

enum { ANSWER_BYTES_MAX = 64 << 20 };

typedef struct {
    uint64_t id;                  /* unlike those of other answers */
    int64_t created;              /* seconds since 1970 */
    const char *model;            /* as /v1/models has it, with the adapter */
    const char *fingerprint;      /* of program and weights; NULL: none */
    const tool_format_row *tools; /* how the model writes calls; NULL: answers are text alone */
    bool thinks;                  /* the prompt ended inside of <think> */
    str (*token_text)(void *ctx,
                      int32_t id); /* the bytes of a token, for logprobs; NULL: none are shown */
    void *token_ctx;
    const char *refused; /* where preparing failed: the field that it is about; NULL: none */
} answer_facts;

typedef enum {
    ANSWER_GOES_ON,
    ANSWER_STOP,   /* the model ended it, or a stop text came */
    ANSWER_LENGTH, /* max_tokens, or the context is full */
    ANSWER_FAILED, /* code and why say how */
} answer_end_kind;

typedef struct {
    size_t choice; /* prompt * n + the choice of that prompt */
    int32_t token; /* -1: none */
    str text;      /* whole characters */
    float logprob;
    const token_logprob *top;
    int64_t n_top;
    const float *vector; /* SERVE_EMBEDDING, at the end: [n_vector] */
    int64_t n_vector;
    answer_end_kind end;
    weft_code code;
    str why;
    int64_t n_prompt, n_cached, n_generated; /* at the end: of this choice */
} answer_event;

typedef struct answer answer;

/* rq, the tool names in it, and what facts point to must outlive it. */
answer *answer_create(const serve_request *rq, const answer_facts *facts);
void answer_destroy(answer *a); /* NULL is fine */

/* The prompt in front of each of its answers, for echo; before anything is put. */
void answer_echo(answer *a, size_t prompt, str text, strbuf *out);
void answer_put(answer *a, const answer_event *e, strbuf *out);
bool answer_complete(const answer *a); /* every choice has ended */
/* A single call was asked for, and it is there: the rest of the choice is not wanted. */
bool answer_has_call(const answer *a, size_t choice);
/* The HTTP status: 200, or that of the first choice that failed, whose error is the body then. */
int answer_end(answer *a, strbuf *out);

/* One event that says a failure, for a stream that has begun. */
void answer_stream_error(const answer *a, weft_code code, str why, strbuf *out);

/* ---- answers that are not generated ---- */

void answer_tokens(const int32_t *ids, size_t n, const serve_request *rq,
                   str (*token_text)(void *, int32_t), void *ctx, strbuf *out);
void answer_text(const char *name, str text, strbuf *out); /* {"content": ..}, {"prompt": ..} */
void answer_models(const serve_rules *rules, int64_t created, int64_t context, strbuf *out);

#endif
