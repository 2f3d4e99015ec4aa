/* generation.h - texts that go on: prompts are evaluated, tokens sampled and decoded, until something ends them.
 *
 *     engine_init(dg, &e, session);
 *     generation_create(dg, &e, text, &(generation_options){.max_tokens = 100, .pick = sampler_defaults()}, &g);
 *     generation_prompt(dg, g, ids, n);
 *     do {
 *         engine_step(dg, &e, &g, 1);
 *         ... generation_piece(g) ...
 *     } while (!generation_piece(g)->end);
 *
 * A generation is one request: its ids, its sampler, its stop texts, and the sequence of the session that it uses. It
 * never runs anything by itself. An engine owns no generation: a step puts rows of those it is given into one call of the
 * session, parts of prompts and next tokens mixed. One thread at a time uses an engine and its generations. */
#ifndef WEFT_RUNTIME_ENGINE_GENERATION_H
#define WEFT_RUNTIME_ENGINE_GENERATION_H

#include "runtime/engine/choose.h"
#include "runtime/text/tok.h"

typedef struct generation generation;

typedef struct {
    session *run;
    session_limits most;
    int64_t vocab;      /* width of the output logits */
    batch_row *rows;    /* [most.batch] */
    generation **order; /* [most.batch]: who has rows in the call being made */
    chooser pick;       /* of a device that chooses; pick.run NULL: the host does */
    sampler **samplers; /* [most.wants]: of the call being made */
    bool *more;         /* [most.wants] */
    int32_t *ids;       /* [most.wants] */
    uint64_t turn;      /* steps so far */
    size_t share; /* ids that texts have in common where it is worth it to wait; 0: none are kept */
} engine;

/* The session must outlive it. W1406 if it gives no logits. */
weft_status engine_init(weft_diag *dg, engine *e, session *run) WEFT_MUST_USE;
void engine_deinit(engine *e);

typedef enum {
#define GENEND(name, text, meaning) GEN_##name,
#include "runtime/engine/gen_end.def"
#undef GENEND
    GEN_END_COUNT
} gen_end;
const char *gen_end_name(gen_end end);

typedef struct {
    int64_t seq;              /* of the session */
    uint64_t key;             /* of its adapters: texts with different ones share no state */
    int64_t max_tokens;       /* -1: until something else ends it */
    const char *const *stops; /* texts that end it and are not shown; copied */
    size_t n_stop;
    bool ignore_end;   /* go on after an end token */
    bool show_special; /* special tokens appear in the text */
    int64_t
        n_top; /* log-probabilities of this many of the likeliest, and of the one chosen; -1: of none */
    sampler_options pick; /* its lists and strings are copied; no breakers: those of dry_breakers */
} generation_options;

/* The tokens that a run does not extend over for dry, as everybody has them: line break, colon, quote, star, where each is one
 * token. Returns how many. */
enum { DRY_BREAKERS = 4 };
size_t dry_breakers(tok *text, int32_t out[DRY_BREAKERS]);

/* What a step brought; valid until the generation is used again. */
typedef struct {
    int32_t id; /* TOK_NONE: no token yet, the prompt is still being evaluated */
    str text;   /* what can be shown now: whole characters, no part of a stop text */
    float logprob;
    const token_logprob *top; /* [n_top], best first */
    int64_t n_top;
    gen_end end; /* GEN_NONE: it goes on */
} gen_piece;

/* e and text must outlive it. W1403: no such sequence; W1903 names a wrong option. */
weft_status generation_create(weft_diag *dg, const engine *e, tok *text,
                              const generation_options *o, generation **out_g) WEFT_MUST_USE;
void generation_destroy(generation *g); /* NULL is fine; its sequence keeps what it holds */

/* Begin with this prompt. What the sequence holds of it already, from a prompt or an answer before, is not evaluated again, nor
 * what another text of the session had of it (session_prefix_take): the ends of prompts and of answers are kept for that.
 * W1404 if the prompt and one more token do not fit the context, W1406 if there is none; then nothing has changed. */
weft_status generation_prompt(weft_diag *dg, generation *g, const int32_t *ids,
                              size_t n) WEFT_MUST_USE;
/* Other options from the next prompt on, but for the sequence; an answer that was going on has ended. What the sequence holds
 * is kept. On failure nothing has changed. */
weft_status generation_change(weft_diag *dg, generation *g,
                              const generation_options *o) WEFT_MUST_USE;
/* Let `to` have the text of `from`, with its own options: all of it, or the prompt alone, to which it then gives an answer of
 * its own. They share memory until they differ. Fails as session_fork does, with nothing changed; W1110: `to` has ended. */
weft_status generation_fork(weft_diag *dg, const generation *from, generation *to,
                            bool prompt_only) WEFT_MUST_USE;

/* Write its text, but for a token that ended the answer, with its state to a file; and have the text of a file, as if a prompt and an answer of it
 * had ended: the next prompt goes on from what it shares with it. They fail as session_save and session_load do, W1402 if somebody
 * else has changed the sequence; W1406 if there is nothing to save. */
weft_status generation_save(weft_diag *dg, const generation *g, const char *path) WEFT_MUST_USE;
weft_status generation_load(weft_diag *dg, generation *g, const char *path) WEFT_MUST_USE;

/* End it from outside; what was held back of its text is the last piece. */
void generation_stop(generation *g, gen_end end);

/* Why its tokens are chosen on the host; NULL: the device chooses them. */
const char *generation_host_why(const generation *g);

const gen_piece *generation_piece(const generation *g);
/* The tokens generated since the prompt, an end token included. */
const int32_t *generation_ids(const generation *g, size_t *out_n);
const int32_t *generation_text(const generation *g, size_t *out_n); /* with the prompt */
/* Tokens of the prompt that were evaluated, and all that had to be. */
void generation_progress(const generation *g, int64_t *out_done, int64_t *out_total);

/* One call of the session for those of the list that have not ended, or nothing if there are none: first a token for each
 * that is past its prompt, then parts of prompts, as far as the call has room. Who got none comes first among its like the next
 * time, and a prompt that has waited longer than all others has a place. W1410 if logits of some are no numbers, or W1110 if
 * memory for their text was short: those have ended, the others went on. Any other failure is session_eval's, and nothing
 * has changed. */
weft_status engine_step(weft_diag *dg, engine *e, generation *const *list, size_t n) WEFT_MUST_USE;

#endif
