/* perplexity.h - cuts a text into chunks, has each evaluated, and hands out the rows that are scored.
 *
 * Without a stride the chunks follow each other and the second half of each is scored, so that every
 * scored token has at least half a context before it; with one, chunks begin `stride` tokens apart
 * and the last `stride` tokens of each are scored. That is what llama-perplexity does, and the
 * numbers can be compared. A chunk begins with BOS in place of its first token where the tokenizer
 * adds one, but not with a stride.
 *
 * It knows nothing of models: whoever calls says how rows are evaluated. */
#ifndef WEFT_RUNTIME_ENGINE_PERPLEXITY_H
#define WEFT_RUNTIME_ENGINE_PERPLEXITY_H

#include "runtime/base/diag.h"

typedef struct {
    int64_t context;    /* tokens of a chunk, at least 2 */
    int64_t stride;     /* 0: halves; else less than context */
    int64_t chunks_max; /* 0: all */
    int64_t batch;      /* rows in one call at most */
    int32_t bos;        /* -1: none */
} ppl_options;

int64_t ppl_chunks(const ppl_options *o, int64_t n_token); /* 0: the text is too short */
int64_t ppl_chunk_rows(const ppl_options *o);              /* scored, of each chunk */

typedef struct {
    /* Evaluate ids [n] at positions pos and on; pos 0 begins anew. The rows from `first` on ask for
     * logits, n - first of them, which the result holds until the next call; none if first == n. */
    weft_status (*eval)(void *ctx, weft_diag *dg, const int32_t *ids, int64_t n, int64_t pos,
                        int64_t first, const float **out_logits);
    /* One scored row: logits [vocab], and the token that came. */
    weft_status (*row)(void *ctx, weft_diag *dg, const float *logits, int32_t token);
    /* After each call of eval; false stops. */
    bool (*progress)(void *ctx, int64_t n_done, int64_t n_total);
    void *ctx;
    int64_t vocab;
} ppl_calls;

typedef struct {
    int64_t chunks, n_token; /* evaluated */
    bool stopped;
} ppl_result;

weft_status ppl_run(weft_diag *dg, const ppl_options *o, const int32_t *ids, int64_t n_token,
                    const ppl_calls *calls, ppl_result *out) WEFT_MUST_USE;

#endif
