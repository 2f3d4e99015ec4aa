/* engine.h - text goes on: a session, a tokenizer and a sampler, put together.
 *
 * An engine remembers which tokens its session holds (sequence 0), so feeding a text that begins like the
 * last one evaluates only what is new. It borrows everything it is made of. One thread at a time. */
#ifndef WEFT_RUNTIME_ENGINE_ENGINE_H
#define WEFT_RUNTIME_ENGINE_ENGINE_H

#include "runtime/exec/session.h"
#include "runtime/sample/sample.h"
#include "runtime/text/tok.h"

typedef struct {
    session *run;
    tok *text;
    sampler *pick;
    int64_t context; /* of the session */
    int64_t batch;   /* rows it takes in one call */
    int64_t vocab;   /* rows of the model's embedding: may be more than the tokenizer has tokens */
    batch_row *rows; /* [batch] */
    tok_ids held;    /* what sequence 0 holds */
    bool ready;      /* the logits of its last token are there */
} engine;

void engine_init(engine *e, session *run, tok *text, sampler *pick, int64_t context,
                 int64_t n_batch, int64_t vocab);
void engine_deinit(engine *e);

/* How far a long prompt is; NULL where nobody wants to know. */
typedef void engine_progress(void *ctx, int64_t done, int64_t total);

/* Let the session hold exactly these ids, keeping what it has of them already. W1404 if they and one more
 * do not fit the context; then it holds what it held. */
weft_status engine_feed(weft_diag *dg, engine *e, const int32_t *ids, size_t n,
                        engine_progress *progress, void *ctx) WEFT_MUST_USE;

typedef enum {
    GEN_END,         /* the model ended it */
    GEN_STOP_STRING, /* a stop string was met */
    GEN_LENGTH,      /* as many tokens as were asked for */
    GEN_CONTEXT,     /* the context is full */
    GEN_INTERRUPTED, /* on_text or the caller's flag said so */
} gen_reason;
const char *gen_reason_name(gen_reason r);

typedef struct {
    int64_t n_max;            /* tokens; -1: until something else ends it */
    const char *const *stops; /* texts that end it and are not shown */
    size_t n_stop;
    bool ignore_end; /* go on after an end token */
    /* Text as it comes; false ends it. */
    bool (*on_text)(void *ctx, str text);
    /* Each token with the logits it was chosen from; NULL: nobody wants them. */
    void (*on_token)(void *ctx, int32_t id, const float *logits, int64_t vocab);
    void *ctx;
    const volatile int *interrupted; /* looked at before each token; NULL: never */
} gen_options;

typedef struct {
    gen_reason reason;
    tok_ids ids; /* what was generated, the end token included */
    uint64_t ns; /* time from the first choice to the last */
} gen_result;

/* Continue what was fed. The result's ids are the caller's to free. */
weft_status engine_generate(weft_diag *dg, engine *e, const gen_options *o,
                            gen_result *out) WEFT_MUST_USE;

#endif
