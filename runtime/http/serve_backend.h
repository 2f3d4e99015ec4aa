/* serve_backend.h - what the HTTP layer asks of the rest of Weft, as a table of functions.
 *
 * The HTTP layer queues work and writes events; it never touches a session. serve_app.c fills the table with the scheduler, the
 * tokenizer and the chat template; tests fill it with something small. All functions may be called by several threads at once. */
#ifndef WEFT_RUNTIME_HTTP_SERVE_BACKEND_H
#define WEFT_RUNTIME_HTTP_SERVE_BACKEND_H

#include "runtime/http/answer.h"
#include "runtime/http/keys.h"

/* Who asks, by the key. */
typedef struct {
    const char *name; /* of the key; "" without one */
    uint32_t share;   /* fair shares are by this; 0 without a key */
} serve_caller;

typedef struct serve_work serve_work; /* one request on its way: the backend's */

/* Comes from any thread, also before start returns. Must not wait. */
typedef void serve_on_event(void *user, const answer_event *e);

typedef struct {
    void *ctx;
    serve_rules rules;
    int64_t context; /* tokens, for /v1/models */
    const char *fingerprint;
    const tool_format_row *tools;
    str (*token_text)(void *ctx, int32_t id);

    /* Render, encode, compile: all that can be refused. The work borrows rq. It is called in a memory scope (mem_scope.h), with which the
     * work goes where memory is short later on: what it holds beside memory has to be registered. It may change in facts what the prompt decides: thinks,
     * tools. */
    weft_status (*prepare)(void *ctx, weft_diag *dg, const serve_request *rq,
                           const serve_caller *who, serve_work **out_w, answer_facts *facts);
    /* The text of a prompt, for echo. */
    str (*prompt_text)(void *ctx, serve_work *w, size_t prompt);
    /* Queue it. On success each choice gets exactly one event that ends it; on failure none gets any. */
    weft_status (*start)(void *ctx, weft_diag *dg, serve_work *w, serve_on_event *on, void *user);
    void (*cancel)(void *ctx, serve_work *w);  /* its choices end soon; harmless if they have */
    void (*release)(void *ctx, serve_work *w); /* never started, or all choices have ended */

    /* Answers that need no queue; the body, or a failure. NULL: not served. */
    weft_status (*tokenize)(void *ctx, weft_diag *dg, const serve_request *rq, strbuf *out);
    weft_status (*detokenize)(void *ctx, weft_diag *dg, const serve_request *rq, strbuf *out);
    weft_status (*render)(void *ctx, weft_diag *dg, const serve_request *rq, strbuf *out);

    /* For people and for Prometheus; NULL: not served. */
    void (*metrics)(void *ctx, strbuf *out);
    void (*state)(void *ctx, const api_keys *keys, strbuf *out); /* keys: of the server, or NULL */
    weft_status (*model)(void *ctx, weft_diag *dg, strbuf *out);
    weft_status (*graph)(void *ctx, weft_diag *dg, strbuf *out);
    weft_status (*profile)(void *ctx, weft_diag *dg, strbuf *out);
} serve_backend;

#endif
