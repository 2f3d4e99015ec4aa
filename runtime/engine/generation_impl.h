/* generation_impl.h - the inside of a generation, for the two files that work with it. */
#ifndef WEFT_RUNTIME_ENGINE_GENERATION_IMPL_H
#define WEFT_RUNTIME_ENGINE_GENERATION_IMPL_H

#include "runtime/engine/generation.h"
#include "runtime/sample/stop.h"

struct generation {
    const engine *e;
    generation_options o;
    arena *a; /* stop texts */
    tok *text;
    sampler *pick;
    tok_stream *stream;
    stop_watch stops;
    /* The text: the prompt, then what was generated. The sequence holds the first n_held ids, of which n_kept were
     * there when the prompt came. */
    int32_t *ids; /* [context + 1] */
    size_t n_id, n_prompt, n_held, n_kept;
    strbuf decoded, shown;
    token_logprob *top; /* [o.n_top] */
    gen_piece piece;
    gen_end ended; /* GEN_NONE: it goes on */
    uint64_t turn; /* the step that last had rows of it */
    size_t n_row;  /* in the call being made */
};

/* Nothing new in this step, unless generation_take follows. */
void generation_wait(generation *g);
/* Choose the next token from logits [vocab], and make the piece of it. W1410 where none can be chosen, W1110 where memory is
 * short: it has ended. */
weft_status generation_take(weft_diag *dg, generation *g, const float *logits) WEFT_MUST_USE;

#endif
