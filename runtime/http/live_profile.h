/* live_profile.h - where the time goes while a server runs: one in LIVE_EVERY steps is timed, and summed by line of the model file.
 *
 *     bool timed = live_profile_begin(f);     the thread that steps, before a step
 *     ...
 *     if (timed) live_profile_end(f, seconds, rows_prompt, rows_decode);
 *     live_profile_json(f, &out);             any thread
 *
 * A step with rows of prompts counts as prefill, one with rows of answers alone as decode. */
#ifndef WEFT_RUNTIME_HTTP_LIVE_PROFILE_H
#define WEFT_RUNTIME_HTTP_LIVE_PROFILE_H

#include "compiler/plan.h"
#include "runtime/exec/session.h"

enum { LIVE_EVERY = 16 };

typedef struct live_profile live_profile;

/* s is a session of one part, of p; both, and the texts of the model file, must outlive it. threads: of the session. */
live_profile *live_profile_create(session *s, const plan *p, int threads);
void live_profile_destroy(live_profile *f); /* NULL is fine */

bool live_profile_begin(live_profile *f); /* true: this step is timed */
/* seconds that calls of the session took; rows: that they evaluated, 0 and 0: nothing ran, and nothing is counted. */
void live_profile_end(live_profile *f, double seconds, uint64_t rows_prompt, uint64_t rows_decode);

/* As runtime/page/README.md has it. */
void live_profile_json(live_profile *f, strbuf *out);

#endif
