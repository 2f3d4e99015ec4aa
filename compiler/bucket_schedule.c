/* bucket_schedule.c - items into phases, as early as their operands allow.
 *
 * A step that is small and feeds others may be computed by each thread for itself: it then costs no
 * barrier, since every thread has the result. All other items need a barrier between themselves and what
 * reads them. What is left are the true dependencies between threads. */
#include "compiler/bucket_impl.h"

static int64_t step_elems(const plan_step *s)
{
    int64_t most = 0;
    for (int i = 0; i < s->n_out; i++)
        most = s->out_pitch[i] > most ? s->out_pitch[i] : most;
    for (int i = 0; i < s->n_in; i++)
        if (s->in[i].space == SPACE_ARENA && s->pitch[i] > most)
            most = s->pitch[i];
    return most / 4 * s->n[0];
}

static bool may_be_per_thread(const bucket *b, const bstep *st)
{
    int64_t most = b->lo->t->be->recompute_elems[b->lo->n_tok > 1];
    if (!st->recompute ||
        (!bucket_merges(b, &st->s) && (st->s.cell >= 0 || step_elems(&st->s) > most)))
        return false;
    for (int i = 0; i < st->s.n_out; i++)
        if (b->values.at[st->s.out[i].id].output)
            return false;
    return true;
}

/* Items in an order that respects the edges; sets their phases. */
static void assign_phases(bucket *b)
{
    size_t n = b->items.n;
    int32_t *waits = ARENA_ARRAY(b->a, int32_t, n), *first = ARENA_ARRAY(b->a, int32_t, n + 1);
    int32_t *to = ARENA_ARRAY(b->a, int32_t, b->edges.n + 1);
    int32_t *ready = ARENA_ARRAY(b->a, int32_t, n);
    for (size_t i = 0; i < b->edges.n; i++) {
        first[b->edges.at[i].from + 1]++;
        waits[b->edges.at[i].to]++;
    }
    for (size_t i = 0; i < n; i++)
        first[i + 1] += first[i];
    int32_t *fill = ARENA_ARRAY(b->a, int32_t, n);
    for (size_t i = 0; i < b->edges.n; i++) {
        int32_t from = b->edges.at[i].from;
        to[first[from] + fill[from]++] = b->edges.at[i].to;
    }
    size_t head = 0, tail = 0;
    for (size_t i = 0; i < n; i++)
        if (waits[i] == 0)
            ready[tail++] = (int32_t)i;
    while (head < tail) {
        int32_t i = ready[head++];
        const bitem *it = &b->items.at[i];
        int32_t after = it->phase + !it->per_thread;
        if (it->phase >= b->n_phase)
            b->n_phase = it->phase + 1;
        for (int32_t k = first[i]; k < first[i + 1]; k++) {
            bitem *next = &b->items.at[to[k]];
            if (next->phase < after)
                next->phase = after;
            if (--waits[to[k]] == 0)
                ready[tail++] = to[k];
        }
    }
    WEFT_ASSERT(tail == n); /* passes let no chain wait for itself */
    b->order = ready;
}

static int64_t item_cost(const bucket *b, const bitem *it)
{
    int64_t cost = 0;
    for (int i = 0; i < it->n_step; i++) {
        const plan_step *s = &b->steps.at[it->step[i]].s;
        cost += s->cost.call_bytes + s->n[0] / s->per_row * (s->cost.row_bytes + s->cost.row_flops);
    }
    return cost;
}

/* Phases ascend; within one, per-thread items in the order they were found ready, then the shared
 * ones, the costly first, so that small ones fill the gaps. */
static void sort_items(bucket *b)
{
    size_t n = b->items.n, n_key = 2 * (size_t)b->n_phase;
    int32_t *sorted = ARENA_ARRAY(b->a, int32_t, n);
    int32_t *start = ARENA_ARRAY(b->a, int32_t, n_key + 1),
            *fill = ARENA_ARRAY(b->a, int32_t, n_key);
    for (size_t i = 0; i < n; i++)
        start[2 * b->items.at[i].phase + !b->items.at[i].per_thread + 1]++;
    for (size_t i = 0; i < n_key; i++)
        start[i + 1] += start[i];
    for (size_t k = 0; k < n; k++) {
        const bitem *it = &b->items.at[b->order[k]];
        int32_t key = 2 * it->phase + !it->per_thread, at = start[key] + fill[key]++;
        if (!it->per_thread)
            for (; at > start[key] && b->items.at[sorted[at - 1]].cost < it->cost; at--)
                sorted[at] = sorted[at - 1];
        sorted[at] = b->order[k];
    }
    b->order = sorted;
}

void bucket_schedule(bucket *b)
{
    for (size_t i = 0; i < b->items.n; i++) {
        bitem *it = &b->items.at[i];
        it->per_thread =
            !b->lo->t->open && it->cols == 0 && may_be_per_thread(b, &b->steps.at[it->step[0]]);
        it->cost = item_cost(b, it);
    }
    assign_phases(b);
    sort_items(b);
}
