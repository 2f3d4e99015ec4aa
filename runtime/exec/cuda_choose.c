/* cuda_choose.c - calls whose tokens the card chooses.
 *
 * Behind the phases of a call its logits become tokens (kernels/cuda/choose_cuda.cuh), which go to memory of the host by
 * themselves, a word of each saying of which call it is; so the host sees them without waiting for what was queued behind, and
 * nothing is copied. The next call takes them from the card's memory. */
#include "runtime/exec/cuda_impl.h"

#include "runtime/base/clock.h"
#include <inttypes.h>

/* Tokens of a call, by its turn, in tables at `base`. */
static ksampled *chosen_at(const exec *e, uintptr_t base, uint32_t turn)
{
    ksampled *all = (ksampled *)(base + e->at.chosen);
    return all + (int64_t)(turn % DEVICE_CALLS) * e->p->n_out_max;
}

/* Where the tokens of a batch come from that are not in it. */
static cu_result tokens_from(const exec *e, const device_choice *c, cuda_tokens *out)
{
    const size_t bytes = (size_t)c->b->n_tok * sizeof *c->from;
    kbatch *batch = (kbatch *)(void *)(e->card + e->at.batch);
    *out = (cuda_tokens){.token = batch->data,
                         .before = chosen_at(e, (uintptr_t)e->card, e->turn - 1),
                         .n = (int32_t)c->b->n_tok};
    if (c->b->n_tok <= CHOOSE_INLINE) {
        memcpy(out->from_few, c->from, bytes);
        return CU_OK;
    }
    out->from = (const int32_t *)(void *)(e->card + e->at.from);
    memcpy(e->host + e->at.from, c->from, bytes);
    return cuda_push(e, e->host + e->at.from, bytes);
}

static bool all_greedy(const device_choice *c)
{
    for (int64_t i = 0; i < c->b->n_out; i++)
        if (!c->how[i].greedy)
            return false;
    return true;
}

/* Behind the phases of the call that was queued last. */
static cu_result launch_choice(const exec *e, const device_choice *c)
{
    const size_t bytes = (size_t)c->b->n_out * sizeof *c->how;
    cuda_choice a = {
        .logits = (const float *)(void *)(e->arena + c->logits),
        .width = c->width,
        .before = chosen_at(e, (uintptr_t)e->card, e->turn - 1),
        .chosen = chosen_at(e, (uintptr_t)e->card, e->turn),
        .host = chosen_at(e, (uintptr_t)e->host_seen, e->turn),
        .turn = e->turn,
        .stripes = c->b->n_out <= CHOOSE_INLINE ? (float *)(void *)(e->card + e->at.stripes) : NULL,
        .best = (uint64_t *)(void *)(e->card + e->at.best),
        .found = (uint32_t *)(void *)(e->card + e->at.found)};
    const unsigned rows = (unsigned)c->b->n_out;
    void *args[] = {&a};
    cu_result r = CU_OK;
    if (c->b->n_out <= CHOOSE_INLINE) {
        memcpy(a.how_few, c->how, bytes);
    } else {
        a.how = (const ksample *)(void *)(e->card + e->at.how);
        memcpy(e->host + e->at.how, c->how, bytes);
        r = cuda_push(e, e->host + e->at.how, bytes);
    }
    if (r != CU_OK)
        return r;
    if (all_greedy(c))
        return cuda_launch_after(e, e->d->best, rows * BEST_PARTS, BEST_BLOCK, 0, args);
    return cuda_launch_after(e, e->d->choose, a.stripes ? rows * CHOOSE_PARTS : rows, CHOOSE_BLOCK,
                             CHOOSE_BYTES, args);
}

/* None is under way any more, whatever became of them. */
static void forget_calls(exec *e)
{
    if (e->calls > 0 && cuda_wait_stream(e) != CU_OK)
        e->in_doubt = true;
    e->calls = 0;
}

void cuda_drop(exec *e)
{
    const cuda_driver *c = e->d->driver;
    cu_context was;
    if (e->calls == 0)
        return;
    if (c->cuCtxPushCurrent(e->d->context) == CU_OK) {
        forget_calls(e);
        c->cuCtxPopCurrent(&was);
    }
    e->calls = 0;
}

weft_status cuda_choose(weft_diag *dg, exec *e, const device_choice *c)
{
    cuda_tokens next;
    WEFT_ASSERT(!e->now && e->calls < DEVICE_CALLS && !e->watch && !e->measure);
    WEFT_ASSERT(kbatch_bytes(c->b) <= e->at.gate - e->at.batch && c->b->n_out <= e->p->n_out_max);
    WEFT_TRY(cuda_enter(dg, e->d));
    cuda_cancel_begin(e);
    e->turn++;
    cu_result r = c->from ? tokens_from(e, c, &next) : CU_OK;
    if (r == CU_OK)
        r = cuda_begin(e, c->b, c->from ? &next : NULL);
    if (r == CU_OK)
        r = launch_choice(e, c);
    if (r != CU_OK) {
        e->in_doubt = true;
        forget_calls(e);
    }
    WEFT_TRY(cuda_leave(dg, e->d, r, "beginning a call"));
    e->rows[e->turn % DEVICE_CALLS] = c->b->n_out;
    e->calls++;
    return WEFT_OK;
}

static bool are_there(const ksampled *at, int64_t n, uint32_t turn)
{
    for (int64_t i = 0; i < n; i++)
        if (__atomic_load_n(&at[i].turn, __ATOMIC_ACQUIRE) != turn)
            return false;
    return true;
}

/* Until the words are there; now and then the driver is asked, which knows if the card is lost. */
static cu_result wait_words(const exec *e, const ksampled *at, int64_t n, uint32_t turn)
{
    enum { LOOKS = 256 };
    const uint64_t began = clock_ns();
    for (;;) {
        for (int i = 0; i < LOOKS; i++)
            if (are_there(at, n, turn))
                return CU_OK;
        cu_result r = e->d->driver->cuStreamQuery(e->stream);
        if (r != CU_NOT_READY) /* all is done: then they are there */
            return r != CU_OK || are_there(at, n, turn) ? r : CU_LAUNCH_FAILED;
        cuda_look(e, began);
    }
}

weft_status cuda_chosen(weft_diag *dg, exec *e, ksampled *out)
{
    WEFT_ASSERT(e->calls > 0);
    const uint32_t turn = e->turn - (uint32_t)(e->calls - 1);
    const int64_t n = e->rows[turn % DEVICE_CALLS];
    const ksampled *at = chosen_at(e, (uintptr_t)e->host, turn);
    WEFT_TRY(cuda_enter(dg, e->d));
    cu_result r = wait_words(e, at, n, turn);
    const bool cancelled = cuda_is_cancelled(e);
    e->in_doubt = e->in_doubt || r != CU_OK;
    if (r == CU_OK && !cancelled) {
        memcpy(out, at, (size_t)n * sizeof *out);
        e->calls--;
    } else {
        forget_calls(e);
    }
    WEFT_TRY(cuda_leave(dg, e->d, r, "running the plan"));
    if (cancelled)
        return weft_fail(dg, W1412, WEFT_NOWHERE, "evaluating %" PRId64 " rows was cancelled",
                         e->n_tok);
    return WEFT_OK;
}
