/* metal_choose.c - calls whose tokens the GPU chooses.
 *
 * Behind the phases of a call its logits become tokens, in memory that the host sees too; the next call, which may be queued
 * before anybody has read them, takes them from there. Each of the two has tables of its own. */
#include "runtime/exec/metal_impl.h"

/* Where the tokens of the batch come from that are not in it. */
static void take_tokens(exec *e, const device_choice *c, metal_call *call)
{
    metal_tokens a = {.token = metal_part_at(e, e->turn, e->part.batch) + offsetof(kbatch, data),
                      .from = metal_part_at(e, e->turn, e->part.from),
                      .before = metal_part_at(e, e->turn - 1, e->part.chosen),
                      .n = (int32_t)c->b->n_tok};
    memcpy(metal_part(e, e->turn, e->part.from), c->from, (size_t)c->b->n_tok * sizeof *c->from);
    e->d->driver->dispatch(call, e->kernels->tokens, &a, sizeof a, 1, METAL_BLOCK, 0);
    e->d->driver->barrier(call);
}

static void choose_tokens(exec *e, const device_choice *c, metal_call *call)
{
    metal_choice a = {.logits = e->arena->at + c->logits,
                      .how = metal_part_at(e, e->turn, e->part.how),
                      .before = metal_part_at(e, e->turn - 1, e->part.chosen),
                      .chosen = metal_part_at(e, e->turn, e->part.chosen),
                      .width = (int32_t)c->width,
                      .turn = e->turn};
    memcpy(metal_part(e, e->turn, e->part.how), c->how, (size_t)c->b->n_out * sizeof *c->how);
    e->d->driver->dispatch(call, e->kernels->choose, &a, sizeof a, (int)c->b->n_out,
                           METAL_CHOOSE_BLOCK, METAL_SHARED_MAX);
}

/* None is under way any more, whatever became of them. */
static void forget_calls(exec *e)
{
    for (; e->calls > 0; e->calls--) {
        double s;
        metal_why why;
        const uint32_t turn = e->turn - (uint32_t)(e->calls - 1);
        (void)e->d->driver->wait(&e->call[metal_which(turn)], &s, &why);
    }
}

void metal_drop(exec *e)
{
    metal_call *call = &e->call[metal_which(e->turn)];
    forget_calls(e);
    if (e->now && call->commands) { /* begun, and nobody waited */
        double s;
        metal_why why;
        (void)e->d->driver->wait(call, &s, &why);
    }
    e->now = NULL;
}

static weft_status begin_call(weft_diag *dg, exec *e, const device_choice *c)
{
    metal_bucket *bucket;
    metal_why why;
    metal_call *call = &e->call[metal_which(e->turn)];
    WEFT_TRY(metal_choosers(dg, e->d, e->kernels));
    WEFT_TRY(metal_begin(dg, e, c->b, &bucket));
    if (!e->d->driver->begin(e->queue, call, &why))
        return metal_fail(dg, e->d, "beginning a call", &why);
    if (c->from)
        take_tokens(e, c, call);
    metal_dispatch(e, bucket, call, 0, bucket->of[metal_which(e->turn)].n_phase);
    choose_tokens(e, c, call);
    e->d->driver->commit(e->queue, call);
    return WEFT_OK;
}

weft_status metal_choose(weft_diag *dg, exec *e, const device_choice *c)
{
    WEFT_ASSERT(!e->now && e->calls < DEVICE_CALLS && !e->watch && !e->measure);
    WEFT_ASSERT(c->b->n_out <= e->p->n_out_max);
    metal_cancel_begin(e);
    e->turn++;
    weft_status st = begin_call(dg, e, c);
    if (st != WEFT_OK) {
        e->turn--; /* it never was */
        forget_calls(e);
        return st;
    }
    e->rows[metal_which(e->turn)] = c->b->n_out;
    e->calls++;
    return WEFT_OK;
}

weft_status metal_chosen(weft_diag *dg, exec *e, ksampled *out)
{
    double s;
    WEFT_ASSERT(e->calls > 0);
    const uint32_t turn = e->turn - (uint32_t)(e->calls - 1);
    weft_status st = metal_finish(dg, e, &e->call[metal_which(turn)], &s);
    e->calls--;
    if (st == WEFT_OK && metal_is_cancelled(e))
        st = metal_cancelled(dg, e);
    if (st != WEFT_OK) {
        forget_calls(e);
        return st;
    }
    memcpy(out, metal_part(e, turn, e->part.chosen),
           (size_t)e->rows[metal_which(turn)] * sizeof *out);
    return WEFT_OK;
}
