/* serve_app.h - the backend of the server: the scheduler, the tokenizer, the chat template and grammars behind serve_backend.h.
 *
 * A thread of its own steps the scheduler from serve_app_start on. */
#ifndef WEFT_RUNTIME_HTTP_SERVE_APP_H
#define WEFT_RUNTIME_HTTP_SERVE_APP_H

#include "runtime/http/live_profile.h"
#include "runtime/http/serve_backend.h"
#include "runtime/serve/scheduler.h"
#include "runtime/text/chat.h"

typedef struct {
    serve_rules rules; /* vocab: of the tokenizer */
    scheduler *steps;
    tok *text;
    const chat_template *chat; /* NULL: the model does not chat */
    const char *tool_format;   /* of tool_formats.def; NULL: what the template shows */
    int64_t context;
    int64_t n_logit;     /* width of the model's logits */
    bool embeds;         /* the session has the output hidden */
    const float *scales; /* [rules.n_adapter] of the adapters */
    const char *fingerprint, *family;
    /* Called by the stepping thread where the session itself failed; the server should end. May be NULL. */
    void (*on_broken)(void *ctx, const weft_diag *dg);
    void *ctx;
    int64_t queue; /* of the scheduler, to be shown */
    /* Borrowed: /weft/model (JSON) and /weft/graph.svg; empty: not served. */
    str model_json, graph_svg;
    /* For /weft/profile: the scheduler's session, its plan, and threads; plan NULL: steps are not timed, and no_profile says why. */
    session *run;
    const plan *plan;
    int threads;
    const char *no_profile;
} serve_app_options;

typedef struct serve_app serve_app;

weft_status serve_app_create(weft_diag *dg, const serve_app_options *o,
                             serve_app **out_app) WEFT_MUST_USE;
weft_status serve_app_start(weft_diag *dg, serve_app *a) WEFT_MUST_USE;
serve_backend serve_app_backend(serve_app *a);
/* No more jobs; those that are there have so long. Then the stepping thread ends, and is waited for. */
void serve_app_drain(serve_app *a, int64_t timeout_ms);
void serve_app_destroy(serve_app *a); /* drained; NULL is fine */

#endif
