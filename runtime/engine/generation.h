/* generation.h - texts that go on in a session: prompts are evaluated, tokens sampled and decoded, until something ends them.
 *
 *     engine_init(dg, &e, session);
 *     generation_create(dg, &e, text, &(generation_options){.how = {.max_tokens = 100, .pick = sampler_defaults()}}, &g);
 *     generation_prompt(dg, g, ids, n);
 *     do {
 *         engine_step(dg, &e, &g, 1);
 *         ... generation_piece(g) ...
 *     } while (!generation_piece(g)->end);
 *
 * A generation is a request (request.h: ids, sampler, stop texts) and the sequence of the session that holds state of it. It
 * never runs anything by itself. An engine owns no generation: a step puts rows of those it is given into one call of the
 * session, parts of prompts and next tokens mixed. engine_step decides by itself whose; engine_run is told (runtime/serve).
 * One thread at a time uses an engine and its generations. */
#ifndef WEFT_RUNTIME_ENGINE_GENERATION_H
#define WEFT_RUNTIME_ENGINE_GENERATION_H

#include "runtime/engine/choose.h"
#include "runtime/engine/request.h"

typedef struct generation generation;

typedef struct {
    session *run;
    session_limits most;
    int64_t vocab;      /* width of the output logits */
    int64_t hidden;     /* of the output hidden; 0: the session has none */
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
request_limits engine_limits(const engine *e); /* of its requests */

typedef struct {
    int64_t seq;  /* of the session; GENERATION_NOWHERE: it has none yet */
    uint64_t key; /* of its adapters: texts with different ones share no state */
    request_options how;
} generation_options;

#define GENERATION_NOWHERE (-1)

/* e and text must outlive it. W1403: no such sequence; W1903 names a wrong option. */
weft_status generation_create(weft_diag *dg, const engine *e, tok *text,
                              const generation_options *o, generation **out_g) WEFT_MUST_USE;
void generation_destroy(generation *g); /* NULL is fine; its sequence keeps what it holds */

const request *generation_request(const generation *g);

/* Let it have this sequence, which nobody uses, after it was without one: all of its text is to be evaluated, but for what another text
 * of the session had of it. W1403. And let it go: the beginning of its text is kept for others, and for itself, as long as there is
 * room; the sequence holds nothing. */
weft_status generation_place(weft_diag *dg, generation *g, int64_t seq) WEFT_MUST_USE;
void generation_leave(generation *g);
/* Let it have the sequence, and what `from` holds of the text that both have, at most `length` of it; 0 if a window keeps it from
 * that, as generation_place does. W1403. */
weft_status generation_place_by(weft_diag *dg, generation *g, int64_t seq, const generation *from,
                                size_t length) WEFT_MUST_USE;
/* Write its state to a file and let its sequence go; and have it back, in a sequence that nobody uses. They fail as session_save and
 * session_load do, with nothing changed. */
weft_status generation_swap_out(weft_diag *dg, generation *g, const char *path) WEFT_MUST_USE;
weft_status generation_swap_in(weft_diag *dg, generation *g, int64_t seq,
                               const char *path) WEFT_MUST_USE;
int64_t generation_seq(const generation *g);
size_t generation_held(const generation *g); /* ids that its sequence has state of */
size_t generation_kept(const generation *g); /* of which were there when it began */
/* The text of another is going to part from its own there: state of that beginning is kept, and rows beyond it come in another call. */
void generation_part(generation *g, size_t at);

/* Begin with this prompt. What the sequence holds of it already, from a prompt or an answer before, is not evaluated again, nor
 * what another text of the session had of it (session_prefix_take): the ends of prompts and of answers are kept for that.
 * W1404 if the prompt and one more token do not fit the context, W1406 if there is none; then nothing has changed. */
weft_status generation_prompt(weft_diag *dg, generation *g, const int32_t *ids,
                              size_t n) WEFT_MUST_USE;
/* The same for one that has no sequence yet: generation_place gives it one. */
weft_status generation_begin(weft_diag *dg, generation *g, const int32_t *ids,
                             size_t n) WEFT_MUST_USE;
/* Other options from the next prompt on, but for the sequence; an answer that was going on has ended. What the sequence holds
 * is kept. On failure nothing has changed. */
weft_status generation_change(weft_diag *dg, generation *g,
                              const generation_options *o) WEFT_MUST_USE;
/* Let `to` have the text of `from`, with its own options: all of it, or the prompt alone, to which it then gives an answer of
 * its own. They share memory until they differ. Fails as session_fork does, with nothing changed; W1110: `to` has ended. */
weft_status generation_fork(weft_diag *dg, const generation *from, generation *to,
                            bool prompt_only) WEFT_MUST_USE;

/* Let it read its prompt and end, GEN_LENGTH, without a token: what comes of it is the mean of the output hidden over all tokens, [width], for
 * embeddings. Nothing is taken from other texts then: all rows are evaluated. Before it has a sequence. W1406 if the session has no such
 * output. generation_pooled is NULL before the end. */
weft_status generation_pool(weft_diag *dg, generation *g) WEFT_MUST_USE;
const float *generation_pooled(generation *g, int64_t *out_width);

/* Write its text, but for a token that ended the answer, with its state to a file; and have the text of a file, as if a prompt and an answer of it
 * had ended: the next prompt goes on from what it shares with it. They fail as session_save and session_load do, W1402 if somebody
 * else has changed the sequence; W1406 if there is nothing to save. */
weft_status generation_save(weft_diag *dg, const generation *g, const char *path) WEFT_MUST_USE;
weft_status generation_load(weft_diag *dg, generation *g, const char *path) WEFT_MUST_USE;

/* End it from outside; what was held back of its text is the last piece. Its state is kept for others. */
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

/* The same, with exactly these rows: rows[i] of list[i], from 1 to what it has left, and together no more than the session's batch; logits for as
 * many as the session gives. Fewer are evaluated of one whose text parts from another's there. */
typedef struct {
    generation *g;
    size_t rows;
} engine_part;
weft_status engine_run(weft_diag *dg, engine *e, const engine_part *parts, size_t n) WEFT_MUST_USE;

#endif
