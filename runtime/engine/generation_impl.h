/* generation_impl.h - the inside of a generation, for the two files that work with it. */
#ifndef WEFT_RUNTIME_ENGINE_GENERATION_IMPL_H
#define WEFT_RUNTIME_ENGINE_GENERATION_IMPL_H

#include "runtime/engine/generation.h"
#include "runtime/engine/request_impl.h"

#define GENERATION_MIXED UINT64_MAX

struct generation {
    const engine *e;
    request *r; /* the text */
    int64_t seq;
    uint64_t key;
    /* The sequence holds the first n_held ids of the text, of which n_kept were there when the prompt came. */
    size_t n_held, n_kept;
    uint64_t turn; /* the step that last had rows of it */
    /* Looked for among the texts of the session when that had seen `looked` of them. Where another text shares more than
     * could be taken, its end is where the two part, `part`: state is put there, for the next one that comes by. */
    uint64_t looked;
    size_t part;
    /* The key of the adapters that all of its text was computed with (session_lora_key); GENERATION_MIXED: of several. */
    uint64_t lora;
    double
        *sum; /* [e->hidden]: of the output hidden over n_held tokens; NULL: it is not asked for */
    float *mean;  /* [e->hidden] */
    bool waits;   /* in this step, for another prompt to reach what the two have in common */
    size_t n_row; /* in the call being made */
};

/* Take what a text of the session has of the prompt, if there is a new one and nothing of the prompt was evaluated yet. */
void generation_look(generation *g);
/* The sequence has reached `part`, the end of the prompt or that of the answer: its text is there for others. */
void generation_keep(generation *g);

/* Before rows of it are evaluated: note the adapters they will be computed with. */
void generation_note_mix(generation *g);

/* Can the device choose its next token? */
bool generation_on_device(const generation *g);
/* A token more is going to be evaluated behind the next one, as far as can be said before that one is known. */
bool generation_goes_on(const generation *g);
#endif
