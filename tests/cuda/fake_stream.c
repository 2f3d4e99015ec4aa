/* fake_stream.c - see fake_stream.h. */
#include "tests/cuda/fake_stream.h"

#include <stdlib.h>
#include <string.h>
#include "tests/cuda/fake_driver.h"
#include "tests/cuda/fake_memory.h"

struct CUstream_st {
    struct CUstream_st *next;
    fake_op ops[FAKE_OPS_MAX];
    int first, n;
};

static struct {
    int threads; /* of a block */
    int64_t lose_after;
    bool lost;
    int64_t chosen;
    cu_stream streams;
} card;

/* ---- what runs ---- */

/* Addresses of a step that are neither the card's nor of host memory that it can see. */
static bool step_is_there(const cuda_run *r, int32_t i)
{
    const cuda_step *s = &r->step[i];
    struct {
        const char *what;
        const void *p;
    } at[K_IN_MAX + K_OUT_MAX + 2];
    int n = 0;
    for (int j = 0; j < K_IN_MAX; j++)
        if (!((s->local | s->tile) >> j & 1)) {
            at[n].what = "an operand";
            at[n++].p = s->in[j];
        }
    for (int j = 0; j < K_OUT_MAX; j++)
        if (!((s->local | s->tile) >> (K_IN_MAX + j) & 1)) {
            at[n].what = "a result";
            at[n++].p = s->out[j];
        }
    at[n].what = "code", at[n++].p = s->code;
    at[n].what = "a cell", at[n++].p = s->cell;
    for (int j = 0; j < n; j++)
        if (at[j].p && !fake_memory_has(at[j].p)) {
            fake_misused(CU_LAUNCH_FAILED, "step %d: %s is at %p, which is not the card's", i,
                         at[j].what, at[j].p);
            return false;
        }
    return true;
}

static bool run_is_there(const cuda_run *r)
{
    if (!fake_memory_has(r->batch) || (r->lora && !fake_memory_has(r->lora))) {
        fake_misused(CU_LAUNCH_FAILED, "batch or adapters are not the card's");
        return false;
    }
    for (int32_t p = r->first; p < r->end; p++)
        for (int32_t i = 0; i < r->phase[p].n_item; i++) {
            const cuda_item *it = &r->item[r->phase[p].first + i];
            for (int32_t s = 0; s < it->n_step; s++)
                if (!step_is_there(r, it->first + s))
                    return false;
        }
    return true;
}

static cu_result run_launch(const fake_op *o)
{
    char error[FIBRE_ERROR_MAX];
    if (!run_is_there(&o->run))
        return CU_LAUNCH_FAILED;
    if (o->run.end - o->run.first > 1 && *o->run.gate != 0)
        return fake_misused(CU_LAUNCH_FAILED, "the gate is %u before the launch", *o->run.gate);
    if (!fake_function_is(o->function))
        return fake_misused(CU_LAUNCH_FAILED, "a module was unloaded before it was run");
    const int threads = o->function->threads ? o->function->threads : card.threads;
    if (!o->function->run(&o->all, o->blocks, threads, o->more, o->shared, error))
        return fake_misused(CU_LAUNCH_FAILED, "%s", error);
    return CU_OK;
}

static bool is_there(const char *what, const void *p)
{
    if (fake_memory_has(p))
        return true;
    fake_misused(CU_LAUNCH_FAILED, "%s at %p, which is not the card's", what, p);
    return false;
}

static cu_result run_choice(const fake_op *o)
{
    char error[FIBRE_ERROR_MAX];
    const cuda_choice *a = &o->choice;
    const bool best = o->kind == FAKE_OP_BEST;
    const int parts = best ? BEST_PARTS : a->stripes ? CHOOSE_PARTS : 1, rows = o->blocks / parts;
    if (!is_there("logits", a->logits + rows * a->width - 1) ||
        !is_there("tokens", a->chosen + rows - 1) ||
        !is_there("tokens for the host", a->host + rows - 1) ||
        (a->how && !is_there("samplers", a->how + rows - 1)))
        return CU_LAUNCH_FAILED;
    if (parts > 1 && (!is_there("counts of parts", a->found + rows - 1) ||
                      !(best ? is_there("the best of parts", a->best + rows * BEST_PARTS - 1)
                             : is_there("stripes", a->stripes + rows * CHOOSE_STRIPES - 1))))
        return CU_LAUNCH_FAILED;
    if (!(best ? emulated_best : emulated_choose)(a, rows, card.threads, error))
        return fake_misused(CU_LAUNCH_FAILED, "%s", error);
    card.chosen += rows;
    return CU_OK;
}

static cu_result run_tokens(const fake_op *o)
{
    char error[FIBRE_ERROR_MAX];
    const cuda_tokens *a = &o->tokens;
    if (!is_there("tokens of a batch", a->token + a->n - 1) || !is_there("tokens", a->before))
        return CU_LAUNCH_FAILED;
    if (!emulated_tokens(a, card.threads, error))
        return fake_misused(CU_LAUNCH_FAILED, "%s", error);
    return CU_OK;
}

static cu_result run_op(const fake_op *o)
{
    switch (o->kind) {
    case FAKE_OP_IN:
    case FAKE_OP_OUT:
    case FAKE_OP_WITHIN:
        memmove(o->to, o->snapshot ? o->snapshot : o->from, o->bytes);
        return CU_OK;
    case FAKE_OP_SET:
        memset(o->to, o->value, o->bytes);
        return CU_OK;
    case FAKE_OP_LAUNCH:
        return run_launch(o);
    case FAKE_OP_CHOOSE:
    case FAKE_OP_BEST:
        return run_choice(o);
    case FAKE_OP_TOKENS:
        return run_tokens(o);
    }
    return CU_OK;
}

/* ---- streams ---- */

static void drop_op(fake_op *o)
{
    free(o->snapshot);
    o->snapshot = NULL;
}

static void free_stream(cu_stream s)
{
    for (; s->n > 0; s->n--, s->first++)
        drop_op(&s->ops[s->first]);
    free(s);
}

void fake_stream_reset(int threads)
{
    while (card.streams) {
        cu_stream s = card.streams;
        card.streams = s->next;
        free_stream(s);
    }
    memset(&card, 0, sizeof card);
    card.threads = threads;
    card.lose_after = -1;
}

void fake_stream_lose_at(int64_t n)
{
    card.lose_after = n;
    card.lost = false;
}

bool fake_stream_lost(void)
{
    return card.lost;
}

int64_t fake_stream_chosen(void)
{
    return card.chosen;
}

cu_stream fake_stream_create(void)
{
    cu_stream s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->next = card.streams;
    return card.streams = s;
}

bool fake_stream_destroy(cu_stream s)
{
    for (cu_stream *at = &card.streams; *at; at = &(*at)->next)
        if (*at == s) {
            fake_stream_drain(s, FAKE_OPS_MAX);
            *at = s->next;
            free_stream(s);
            return true;
        }
    return false;
}

int fake_stream_left(cu_stream s)
{
    return s->n;
}

cu_result fake_stream_drain(cu_stream s, int n)
{
    cu_result r = CU_OK;
    fake_memory_open(true);
    for (; n > 0 && s->n > 0; n--) {
        fake_op *o = &s->ops[s->first++];
        s->n--;
        if (card.lose_after >= 0 && card.lose_after-- == 0)
            r = CU_LAUNCH_FAILED;
        else if (!card.lost)
            r = run_op(o);
        card.lost = card.lost || r != CU_OK;
        drop_op(o);
    }
    fake_memory_open(false);
    if (s->n == 0)
        s->first = 0;
    return card.lost ? CU_LAUNCH_FAILED : CU_OK;
}

void fake_stream_drain_all(void)
{
    for (cu_stream s = card.streams; s; s = s->next)
        fake_stream_drain(s, FAKE_OPS_MAX);
}

cu_result fake_stream_add(cu_stream s, fake_op o)
{
    bool there = false;
    for (cu_stream i = card.streams; i; i = i->next)
        there = there || i == s;
    if (!there) {
        free(o.snapshot);
        return fake_misused((cu_result)CU_INVALID_HANDLE, "work for a stream that is not there");
    }
    if (s->first + s->n == FAKE_OPS_MAX) { /* a driver waits then */
        cu_result r = fake_stream_drain(s, FAKE_OPS_MAX);
        if (r != CU_OK) {
            free(o.snapshot);
            return r;
        }
    }
    s->ops[s->first + s->n++] = o;
    return CU_OK;
}
