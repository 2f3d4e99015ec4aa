/* engine.c - feeding a prompt and generating from it. */
#include "runtime/engine/engine.h"

#include "runtime/base/clock.h"
#include "runtime/base/mem.h"
#include "runtime/sample/stop.h"
#include <math.h>
#include <stdlib.h>

const char *gen_reason_name(gen_reason r)
{
    static const char *const name[] = {
        [GEN_END] = "end",         [GEN_STOP_STRING] = "stop",        [GEN_LENGTH] = "length",
        [GEN_CONTEXT] = "context", [GEN_INTERRUPTED] = "interrupted",
    };
    return name[r];
}

void engine_init(engine *e, session *run, tok *text, sampler *pick, int64_t context,
                 int64_t n_batch, int64_t vocab)
{
    *e = (engine){.run = run,
                  .text = text,
                  .pick = pick,
                  .context = context,
                  .batch = n_batch,
                  .vocab = vocab};
    e->rows = mem_alloc(mem_product((size_t)n_batch, sizeof *e->rows));
}

void engine_deinit(engine *e)
{
    VEC_FREE(&e->held);
    mem_free(e->rows);
}

/* Evaluate n <= batch ids behind what is held; `want` asks for the logits of the last. */
static weft_status extend(weft_diag *dg, engine *e, const int32_t *ids, size_t n, bool want)
{
    for (size_t i = 0; i < n; i++)
        e->rows[i] =
            (batch_row){.id = ids[i], .pos = (int32_t)(e->held.n + i), .out = want && i + 1 == n};
    e->ready = false;
    WEFT_TRY(session_eval(dg, e->run, e->rows, (int64_t)n));
    for (size_t i = 0; i < n; i++)
        VEC_PUSH(&e->held, ids[i]);
    e->ready = want;
    return WEFT_OK;
}

weft_status engine_feed(weft_diag *dg, engine *e, const int32_t *ids, size_t n,
                        engine_progress *progress, void *ctx)
{
    size_t same = 0;
    if (n == 0)
        return weft_fail(dg, W1406, WEFT_NOWHERE,
                         "there is nothing to continue: the text has no tokens");
    if ((int64_t)n >= e->context)
        return weft_fail(dg, W1404, WEFT_NOWHERE,
                         "the text has %zu tokens, the context holds %lld and one more is to come",
                         n, (long long)e->context);
    while (same < e->held.n && same + 1 < n && e->held.at[same] == ids[same])
        same++; /* the last token is always evaluated: its logits are wanted */
    if (same < e->held.n) {
        /* A window that the next token would see may be gone; then all is evaluated again. */
        same = (size_t)session_keepable(e->run, 0, (int64_t)same);
        WEFT_TRY(session_truncate(dg, e->run, 0, (int64_t)same));
    }
    e->held.n = same;
    e->ready = false;
    sampler_reset(e->pick);
    for (size_t i = 0; i < same; i++)
        sampler_accept(e->pick, ids[i]);
    for (size_t i = same; i < n;) {
        size_t part = n - i < (size_t)e->batch ? n - i : (size_t)e->batch;
        WEFT_TRY(extend(dg, e, ids + i, part, i + part == n));
        for (size_t k = 0; k < part; k++)
            sampler_accept(e->pick, ids[i + k]);
        i += part;
        if (progress)
            progress(ctx, (int64_t)(i - same), (int64_t)(n - same));
    }
    return WEFT_OK;
}

typedef struct {
    const gen_options *o;
    tok_stream *stream;
    stop_watch stops;
    strbuf piece, shown;
} speaker;

/* Show what a token adds, or what is left when id is TOK_NONE; false: enough. */
static bool speak(speaker *sp, int32_t id, gen_reason *reason)
{
    strbuf_reset(&sp->piece);
    strbuf_reset(&sp->shown);
    if (id == TOK_NONE)
        tok_stream_flush(sp->stream, &sp->piece);
    else
        tok_stream_put(sp->stream, id, &sp->piece);
    bool stopped = stop_put(&sp->stops, strbuf_view(&sp->piece), &sp->shown);
    if (id == TOK_NONE && !stopped)
        stop_flush(&sp->stops, &sp->shown);
    if (sp->shown.n && sp->o->on_text && !sp->o->on_text(sp->o->ctx, strbuf_view(&sp->shown)))
        *reason = GEN_INTERRUPTED;
    else if (stopped)
        *reason = GEN_STOP_STRING;
    else
        return true;
    return false;
}

/* Is there a number among them? As a rule the first is one. */
static bool any_possible(const float *logits, int64_t n)
{
    int64_t i = 0;
    while (i < n && !(logits[i] > -INFINITY))
        i++;
    return i < n;
}

weft_status engine_generate(weft_diag *dg, engine *e, const gen_options *o, gen_result *out)
{
    weft_status st = WEFT_OK;
    gen_result r = {.reason = GEN_LENGTH};
    speaker sp = {.o = o, .stream = tok_stream_create(e->text, true)};
    uint64_t start = clock_ns();
    bool speaking = true;
    WEFT_ASSERT(e->ready);
    stop_init(&sp.stops, o->stops, o->n_stop);
    while (speaking && (o->n_max < 0 || (int64_t)r.ids.n < o->n_max)) {
        const float *logits;
        int64_t n_row, width;
        if (o->interrupted && *o->interrupted) {
            r.reason = GEN_INTERRUPTED;
            break;
        }
        if (!e->ready) {
            if ((int64_t)e->held.n >= e->context) {
                r.reason = GEN_CONTEXT;
                break;
            }
            st = extend(dg, e, &r.ids.at[r.ids.n - 1], 1, true);
            if (st != WEFT_OK)
                break;
        }
        if (!session_output(e->run, "logits", -1, &logits, &n_row, &width) || n_row < 1) {
            st = weft_fail(dg, W1406, WEFT_NOWHERE, "the session gives no logits");
            break;
        }
        logits += (n_row - 1) * width;
        if (!any_possible(logits, width)) {
            st = weft_fail(dg, W1410, WEFT_NOWHERE,
                           "no logit behind token %zu is a number that can be chosen", e->held.n);
            break;
        }
        int32_t id = sampler_choose(e->pick, logits);
        if (o->on_token)
            o->on_token(o->ctx, id, logits, width);
        sampler_accept(e->pick, id);
        VEC_PUSH(&r.ids, id);
        e->ready = false;
        if (tok_is_end(e->text, id) && !o->ignore_end) {
            r.reason = GEN_END;
            break;
        }
        speaking = speak(&sp, id, &r.reason);
    }
    if (st == WEFT_OK && speaking) {
        gen_reason late = r.reason;
        if (!speak(&sp, TOK_NONE, &late))
            r.reason = late;
    }
    r.ns = clock_ns() - start;
    tok_stream_destroy(sp.stream);
    stop_deinit(&sp.stops);
    strbuf_free(&sp.piece);
    strbuf_free(&sp.shown);
    if (st == WEFT_OK)
        *out = r;
    else
        VEC_FREE(&r.ids);
    return st;
}
