/* choose.h - calls of a session after which each row that asked has a token, chosen by its sampler: on the device where that
 * can, and then the next call may be queued before anybody sees them.
 *
 *     chooser_run(dg, c, rows, n, pick, more, ids);     rows of any kind; `more`: these tokens will be the next rows
 *     chooser_run(dg, c, next, m, pick, more, ids);     if they are, this call has begun long ago
 *
 * What was queued is used if the next rows are those that were said, with samplers that stand where the tokens left them;
 * otherwise it is dropped, and nothing but time was lost. So callers need not know of it. */
#ifndef WEFT_RUNTIME_ENGINE_CHOOSE_H
#define WEFT_RUNTIME_ENGINE_CHOOSE_H

#include "runtime/exec/session.h"
#include "runtime/sample/sample.h"

typedef struct {
    session *run;
    int64_t most;      /* rows that may ask */
    ksample *how;      /* [most]: of the call being made */
    ksampled *got;     /* [most]: its tokens */
    uint64_t ahead;    /* the call that was queued behind the last one; 0: none */
    int64_t n_next;    /* its rows */
    batch_row *next;   /* [most] */
    ksample *next_how; /* [most]: with the numbers that follow */
} chooser;

/* The session must outlive it; its device chooses (session_chooses). */
void chooser_init(chooser *c, session *run);
void chooser_deinit(chooser *c); /* one that is all zero is fine */

/* Evaluate the rows, and for each that asks, one at least, the token that pick[i], a sampler which sampler_for_device takes, chooses; -1
 * where there is none. more[i]: that token is going to be the next row of its sequence, and asks too. The samplers have chosen,
 * and not accepted. Fails as session_eval does. */
weft_status chooser_run(weft_diag *dg, chooser *c, const batch_row *rows, int64_t n,
                        sampler *const *pick, const bool *more, int32_t *out_ids) WEFT_MUST_USE;

#endif
