/* exec_steps.c - operands to addresses, and the phases of a call. */
#include "runtime/exec/exec_steps.h"

/* NULL for what is absent and for the arrays of a batch, which are not there yet; the offset of what each thread has for
 * itself. */
static void *resolve(const plan *p, const exec_places *at, const plan_operand *o)
{
    switch (o->space) {
    case SPACE_WEIGHT:
        return (void *)(uintptr_t)at->weight(at->w, o->id);
    case SPACE_CONST:
        return (void *)((uintptr_t)at->consts + (uintptr_t)o->offset);
    case SPACE_ARENA:
        return (void *)((uintptr_t)at->arena + (uintptr_t)o->offset);
    case SPACE_LOCAL:
    case SPACE_TILE:
        return (void *)(uintptr_t)o->offset;
    case SPACE_ADAPTER:
        return (void *)((uintptr_t)at->slots + p->site[o->id].offset);
    case SPACE_NONE:
    case SPACE_IO:
        break;
    }
    return NULL;
}

static int64_t rows_max(const plan *p, const plan_bucket *b, const plan_step *s)
{
    int64_t most[] = {[ROWS_T] = b->n_tok_max, [ROWS_R] = p->n_out_max, [ROWS_S] = p->n_seq_max};
    if (s->rows == ROWS_FIXED)
        return s->n[0];
    return (most[s->rows] < b->n_tok_max ? most[s->rows] : b->n_tok_max) * s->per_row;
}

kargs exec_step_args(const plan *p, const plan_bucket *b, const plan_step *s, const exec_places *at)
{
    kargs k = {.cols = s->cols,
               .tile = s->tile,
               .code = s->n_code ? at->code + s->code : NULL,
               .n_code = s->n_code,
               .cell = s->cell >= 0 ? at->cells + s->cell : NULL,
               .lora = at->lora};
    for (int i = 0; i < K_IN_MAX; i++) {
        k.in[i] = resolve(p, at, &s->in[i]);
        k.type[i] = s->in[i].type;
    }
    for (int i = 0; i < s->n_out; i++)
        k.out[i] = resolve(p, at, &s->out[i]);
    memcpy(k.pitch, s->pitch, sizeof k.pitch);
    memcpy(k.out_pitch, s->out_pitch, sizeof k.out_pitch);
    memcpy(k.stride, s->stride, sizeof k.stride);
    memcpy(k.n, s->n, sizeof k.n);
    memcpy(k.f, s->f, sizeof k.f);
    memcpy(k.word, s->word, sizeof k.word);
    k.n[0] = rows_max(p, b, s); /* for kernel_scratch; each call sets its own */
    return k;
}

exec_spaces exec_step_spaces(const plan_step *s)
{
    exec_spaces to = {0};
    for (int i = 0; i < K_IN_MAX + s->n_out; i++) {
        plan_space space = i < K_IN_MAX ? s->in[i].space : s->out[i - K_IN_MAX].space;
        to.local |= (uint32_t)(space == SPACE_LOCAL) << i;
        to.tile |= (uint32_t)(space == SPACE_TILE) << i;
        if (i < K_IN_MAX)
            to.io[i] = space == SPACE_IO ? (int8_t)s->in[i].id : -1;
    }
    return to;
}

void exec_step_call(const plan_step *s, const int8_t *io, const kbatch *at, const int64_t *rows,
                    kargs *k)
{
    static const kbatch_part parts[] = {
        [IO_TOKENS] = KBATCH_TOKEN, [IO_POS] = KBATCH_POS, [IO_ROWS] = KBATCH_OUT};
    k->batch = at;
    if (s->rows != ROWS_FIXED)
        k->n[0] = rows[s->rows] * s->per_row;
    for (int i = 0; i < K_IN_MAX; i++)
        if (io[i] >= 0) /* kbatch_at, of a batch that may be elsewhere */
            k->in[i] = (const void *)((uintptr_t)at + offsetof(kbatch, data) +
                                      (uintptr_t)(parts[io[i]] * rows[ROWS_T]) * sizeof(int32_t));
}

/* ---- phases ---- */

/* The end of the phase that item `from` is in. */
static int32_t phase_end(const plan_bucket *b, int32_t from)
{
    int32_t end = from;
    while (end < b->n_item && b->item[end].phase == b->item[from].phase)
        end++;
    return end;
}

/* Has it nothing to share out but products of adapters, and nobody uses one? Then it needs no barrier
 * (plan_phase_may_idle). */
static bool is_idle(const plan *p, const plan_bucket *b, const int64_t *units, item_span s)
{
    bool down = false;
    for (int32_t i = s.first; i < s.end; i++) {
        if (b->item[i].per_thread)
            continue;
        if (units[i] > 0 || p->kernel[b->step[b->item[i].first].kernel].op != KOP_lora_down)
            return false;
        down = true;
    }
    return down;
}

item_span exec_span_from(const plan *p, const plan_bucket *b, const int64_t *units, int32_t from,
                         bool apart)
{
    int32_t n = b->n_item;
    while (from < n && units[from] == 0)
        from++;
    item_span s = {from, from < n ? phase_end(b, from) : from}, last = s;
    while (s.end < n && !apart && is_idle(p, b, units, last)) {
        last = (item_span){s.end, phase_end(b, s.end)};
        s.end = last.end;
    }
    return s;
}

void exec_times_add(step_time *times, const plan_bucket *b, const int64_t *rows, const uint64_t *ns,
                    size_t pitch, int n)
{
    for (int32_t i = 0; i < b->n_step; i++) {
        const plan_step *s = &b->step[i];
        const int64_t n_row = s->rows == ROWS_FIXED ? s->n[0] : rows[s->rows];
        uint64_t most = 0;
        if (n_row == 0) /* it had nothing to do */
            continue;
        for (int t = 0; t < n; t++) {
            const uint64_t one = ns[(size_t)t * pitch + (size_t)i];
            times[i].ns_busy += one;
            most = one > most ? one : most;
        }
        times[i].ns += most;
        times[i].calls++;
        times[i].rows += (uint64_t)n_row;
    }
}
