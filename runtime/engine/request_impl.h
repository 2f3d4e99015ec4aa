/* request_impl.h - the inside of a request, for the files of this folder. */
#ifndef WEFT_RUNTIME_ENGINE_REQUEST_IMPL_H
#define WEFT_RUNTIME_ENGINE_REQUEST_IMPL_H

#include "runtime/engine/request.h"
#include "runtime/sample/stop.h"

struct request {
    request_limits most;
    request_options o;
    arena *a; /* stop texts */
    tok *text;
    sampler *pick;
    tok_stream *stream;
    stop_watch stops;
    token_filter *filter; /* NULL: any token may come */
    float *allowed;       /* [vocab]: logits of those that may; NULL before they are needed */
    int32_t *ids;         /* [cap]: the prompt, then what was generated */
    size_t cap, n_id, n_prompt;
    strbuf decoded, shown;
    token_logprob *top; /* [o.n_top] */
    gen_piece piece;
    gen_end ended; /* GEN_NONE: it goes on */
};

/* Nothing new in this step, unless request_take follows. */
void request_wait(request *r);

/* A whole text that was read from a file, as if a prompt and an answer of it had ended. */
void request_set(request *r, const int32_t *ids, size_t n);

#endif
