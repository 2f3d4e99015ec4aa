/* answer_impl.h - the inside of an answer. Private to this folder. */
#ifndef WEFT_RUNTIME_HTTP_ANSWER_IMPL_H
#define WEFT_RUNTIME_HTTP_ANSWER_IMPL_H

#include "runtime/base/json_write.h"
#include "runtime/base/vec.h"
#include "runtime/http/answer.h"

/* Text, reasoning or a call, in the order in which they came. */
typedef struct {
    tool_event kind; /* TOOL_TEXT, TOOL_REASONING, TOOL_CALL */
    strbuf text;     /* of a call: its arguments */
    strbuf name;
    size_t number; /* among the calls of the choice */
    bool ended;
} answer_item;

typedef struct {
    int32_t token;
    float logprob;
    size_t top_begin, top_end; /* in answer_choice.top */
    size_t offset;             /* of its text, in characters */
} answer_logprob;

typedef struct {
    answer *home;
    size_t index;
    tool_parser *parser; /* NULL: what comes is text */
    VEC(answer_item) item;
    VEC(answer_logprob) lp; /* not written yet */
    VEC(token_logprob) top;
    size_t n_told; /* of lp, by answer_logprob_new */
    size_t n_call, n_char;
    bool spoke; /* the first event of a stream went out */
    answer_end_kind end;
    weft_code code;
    strbuf why;
    int64_t n_prompt, n_cached, n_generated;
    int64_t n_reasoning; /* tokens of reasoning, of those that came */
    float *vector;       /* [n_vector] */
    int64_t n_vector;
} answer_choice;

/* What a route makes of it; out is that of the call at hand. */
typedef struct {
    const char *id_prefix;
    void (*delta)(answer_choice *c, tool_event kind, answer_item *item, str text); /* stream */
    void (*close)(answer_choice *c); /* stream: the choice ended */
    void (*finish)(answer *a);       /* stream: all have */
    void (*body)(answer *a);
} answer_route;
extern const answer_route answer_route_chat, answer_route_completion, answer_route_response,
    answer_route_embedding;

struct answer {
    const serve_request *rq;
    answer_facts facts;
    const answer_route *route;
    answer_choice *choice; /* [n_choice] */
    size_t n_choice, n_ended;
    str *names; /* of the tools */
    char id[48];
    strbuf *out;
    size_t bytes;        /* held, in all choices */
    int64_t sequence;    /* /v1/responses: numbers of events */
    size_t items_closed; /* there: of those that were announced */
};

void answer_json_raw(json_writer *w, str json); /* where a value stands, or items of a list */
const char *answer_finish_reason(const answer_choice *c);
void answer_usage_counts(const answer *a, int64_t *prompt, int64_t *cached, int64_t *generated);
int64_t answer_reasoning_count(const answer *a);
void answer_call_id(const answer_choice *c, const answer_item *item, char *out, size_t bytes);
void answer_sse(answer *a, const char *event, str json); /* event may be NULL */
/* Those that were not written yet, as a list of objects: token, logprob, bytes, top_logprobs. They count as written. */
void answer_logprob_list(answer_choice *c, json_writer *w);
/* Those that answer_logprob_new did not write yet; and all, which stay. */
void answer_logprob_new(answer_choice *c, json_writer *w);
void answer_logprob_all(answer_choice *c, json_writer *w);
str answer_view(const strbuf *b);
/* All text of one kind. */
void answer_joined(const answer_choice *c, tool_event kind, strbuf *out);

#endif
