#include "runtime/engine/perplexity.h"

#include "runtime/base/intmath.h"
#include "runtime/base/mem.h"

#include <stdlib.h>
#include <string.h>

int64_t ppl_chunks(const ppl_options *o, int64_t n_token)
{
    int64_t n = o->stride > 0 ? n_token - o->context : n_token / o->context;
    if (o->stride > 0)
        n = n > 0 ? i64_ceil_div(n, o->stride) : 0;
    return o->chunks_max > 0 && o->chunks_max < n ? o->chunks_max : n;
}

/* The first row that is scored: its logits predict the token after it. */
static int64_t first_row(const ppl_options *o)
{
    return o->stride > 0 ? o->context - o->stride - 1 : o->context / 2;
}

int64_t ppl_chunk_rows(const ppl_options *o)
{
    return o->context - 1 - first_row(o);
}

/* One chunk, ids [context]. The last row predicts what is no longer in it, so it asks for nothing. */
static weft_status run_chunk(weft_diag *dg, const ppl_options *o, const int32_t *ids,
                             const ppl_calls *c, ppl_result *r, int64_t n_total)
{
    int64_t scored = first_row(o), last = o->context - 1;
    for (int64_t pos = 0; pos < last; pos += o->batch) {
        int64_t n = last - pos < o->batch ? last - pos : o->batch;
        int64_t first = scored <= pos ? 0 : scored - pos < n ? scored - pos : n;
        const float *logits = NULL;
        WEFT_TRY(c->eval(c->ctx, dg, ids + pos, n, pos, first, &logits));
        for (int64_t i = first; i < n; i++)
            WEFT_TRY(c->row(c->ctx, dg, logits + (i - first) * c->vocab, ids[pos + i + 1]));
        r->n_token += n;
        if (!c->progress(c->ctx, r->n_token, n_total)) {
            r->stopped = true;
            return WEFT_OK;
        }
    }
    r->chunks++;
    return WEFT_OK;
}

weft_status ppl_run(weft_diag *dg, const ppl_options *o, const int32_t *ids, int64_t n_token,
                    const ppl_calls *calls, ppl_result *out)
{
    int64_t n = ppl_chunks(o, n_token), step = o->stride > 0 ? o->stride : o->context;
    WEFT_ASSERT(o->context >= 2 && o->stride < o->context && o->batch > 0);
    int32_t *chunk = mem_alloc((size_t)o->context * sizeof *chunk);
    weft_status st = WEFT_OK;
    ppl_result r = {0};
    for (int64_t i = 0; st == WEFT_OK && !r.stopped && i < n; i++) {
        memcpy(chunk, ids + i * step, (size_t)o->context * sizeof *chunk);
        if (o->bos >= 0 && o->stride == 0)
            chunk[0] = o->bos;
        st = run_chunk(dg, o, chunk, calls, &r, n * (o->context - 1));
    }
    mem_free(chunk);
    if (st == WEFT_OK)
        *out = r;
    return st;
}
