/* exec_claim.c - which phases of a call there are, and who computes which units.
 *
 * Each thread has a share of every item, next to the others' shares, and takes it range by range from
 * the front; one that is through with its own takes ranges of the others. So a thread reads weights in
 * order while nobody is late, and nobody waits while there is something to do. Kernels give the same
 * bits for any split, so the results do not depend on who did what. A thread that is alone takes ranges as large as they
 * may be, without cursors.
 *
 * A call is cancelled between two ranges. Who leaves units out says so before the barrier, so that all
 * threads find it behind and none begins the next phase: its steps would read what is not there.
 *
 * Cursors of a phase are set while the phase before runs, each thread's by itself: whoever used that set
 * had ended when that phase began. */
#include "runtime/exec/exec_impl.h"

/* A range is the RANGE_PART-th part of what is left of a share: large ones cost less claiming, small ones at the end
 * let threads of uneven speed end together. On many rows every range reads all activations again, from a cache that
 * threads share, so ranges are larger. Shares that a thread looks at for something left, its own included:
 * each look at another's cursor may cost a cache miss, and a thread that is late has as many helpers. */
enum { RANGE_PART = 4, RANGE_PART_MANY = 2, SHARES_SEEN_MAX = 9 };

/* ---- stopping ---- */

bool exec_leaves(exec *e, unsigned set)
{
    if (!cancel_asked(e->cancel))
        return false;
    atomic_store_explicit(&e->stopped[set], true, memory_order_relaxed);
    return true;
}

bool exec_stopped(const exec *e, unsigned set)
{
    return atomic_load_explicit(&e->stopped[set], memory_order_relaxed);
}

/* ---- phases ---- */

item_span exec_phase_from(const exec *e, const cpu_bucket *b, int32_t from)
{
    return exec_span_from(e->p, b->plan, b->units, from, e->watch != NULL);
}

/* ---- shares ---- */

static cursor *cursor_at(const exec *e, unsigned set, int32_t slot, int index)
{
    return &e->cursors[((int64_t)set * e->items_max + slot) * e->threads + index];
}

/* Where the share of thread `index` begins. */
static int64_t share(int64_t units, int index, int count)
{
    return units / count * index + units % count * index / count;
}

void exec_cursors_set(const exec *e, const cpu_bucket *b, item_span s, unsigned set, int index,
                      int count)
{
    for (int32_t i = s.first; i < s.end; i++)
        atomic_store_explicit(&cursor_at(e, set, i - s.first, index)->next,
                              share(b->units[i], index, count), memory_order_relaxed);
}

static int64_t range_of(const cpu_bucket *b, int32_t i, int64_t left, int64_t part)
{
    int64_t range = left < part ? 1 : left / part;
    return range > b->most[i] ? b->most[i] : range;
}

static int64_t part_of(const cpu_bucket *b)
{
    return b->rows[ROWS_T] > K_ROWS_FEW ? RANGE_PART_MANY : RANGE_PART;
}

/* Take from a share that ends at `end`. */
static bool claim_of(exec *e, const cpu_bucket *b, int32_t i, cursor *c, int64_t end, unsigned set,
                     code_range *r)
{
    for (;;) {
        int64_t left = end - atomic_load_explicit(&c->next, memory_order_relaxed);
        if (left <= 0 || exec_leaves(e, set))
            return false;
        int64_t range = range_of(b, i, left, part_of(b));
        r->begin = atomic_fetch_add_explicit(&c->next, range, memory_order_relaxed);
        r->end = end - r->begin < range ? end : r->begin + range;
        if (r->begin < end)
            return true;
    }
}

/* Nobody else: on few rows there is no reason for ranges but to be cancelled. */
static bool claim_alone(exec *e, const cpu_bucket *b, int32_t i, unsigned set, code_range *r)
{
    int64_t left = b->units[i] - r->end;
    if (left <= 0 || exec_leaves(e, set))
        return false;
    bool few = b->rows[ROWS_T] <= K_ROWS_FEW;
    r->begin = r->end;
    r->end += range_of(b, i, left, few ? 1 : RANGE_PART_MANY);
    return true;
}

bool exec_claim(exec *e, const cpu_bucket *b, claim_at at, const kthread *t, code_range *r)
{
    if (t->count == 1)
        return claim_alone(e, b, at.item, at.set, r);
    for (; r->shares < t->count && r->shares < SHARES_SEEN_MAX; r->shares++) {
        int from = (int)((t->index + r->shares) % t->count);
        int64_t end = share(b->units[at.item], from + 1, t->count);
        if (claim_of(e, b, at.item, cursor_at(e, at.set, at.slot, from), end, at.set, r))
            return true;
    }
    return false;
}
