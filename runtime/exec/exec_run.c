/* exec_run.c - a call: phases one after the other, the items of a phase shared out among threads.
 *
 * Each thread has a share of every item, next to the others' shares, and takes it range by range from
 * the front; one that is through with its own takes ranges of the others. So a thread reads weights in
 * order while nobody is late, and nobody waits while there is something to do. Kernels give the same
 * bits for any split, so the results do not depend on who did what.
 *
 * A call is cancelled between two ranges. Who leaves units out says so before the barrier, so that all
 * threads find it behind and none begins the next phase: its steps would read what is not there.
 *
 * Cursors of a phase are set while the phase before runs, each thread's by itself: whoever used that set
 * had ended when that phase began. */
#include "runtime/exec/exec_impl.h"

#include "runtime/base/mem_scope.h"

#include "runtime/base/clock.h"
#include "runtime/base/cpu.h"
#include "runtime/exec/pool.h"
#include <inttypes.h>

/* A range is the RANGE_PART-th part of what is left of a share: large ones cost less claiming, small ones at the end
 * let threads of uneven speed end together. On many rows every range reads all activations again, from a cache that
 * threads share, so ranges are larger. Shares that a thread looks at for something left, its own included:
 * each look at another's cursor may cost a cache miss, and a thread that is late has as many helpers. */
enum { RANGE_PART = 4, RANGE_PART_MANY = 2, SHARES_SEEN_MAX = 9, TILE_ELEM_BYTES = 4 };

/* A call that was cancelled ends when each thread has ended its range, so on many rows a range has no more work than
 * this: 5 ms at 100 GFLOP/s, 50 ms at 10; with tiles 5 ms at 1 TFLOP/s. */
static double range_flops_max(const cpu_step *s)
{
    return kvariant_needs(s->row->variant) & CPU_AMX_TILE ? 5e9 : 5e8;
}

/* One thread of a run. */
typedef struct {
    exec *e;
    const cpu_bucket *b;
    kthread t;
    char *block;  /* local memory */
    kargs *own;   /* [chain_max] */
    uint64_t *ns; /* [n_step] where time is measured, else NULL */
} member;

/* Items [first, end) of one phase. */
typedef struct {
    int32_t first, end;
} span;

typedef struct {
    exec *e;
    const cpu_bucket *b;
    weft_diag *dg; /* for the caller's thread */
} work;

/* ---- before the threads start ---- */

static void prepare_step(cpu_step *s, const kbatch *b, const int64_t *rows)
{
    static const kbatch_part parts[] = {
        [IO_TOKENS] = KBATCH_TOKEN, [IO_POS] = KBATCH_POS, [IO_ROWS] = KBATCH_OUT};
    s->args.batch = b;
    if (s->plan->rows != ROWS_FIXED)
        s->args.n[0] = rows[s->plan->rows] * s->plan->per_row;
    for (int i = 0; i < K_IN_MAX; i++)
        if (s->io[i] >= 0)
            s->args.in[i] = kbatch_at(b, parts[s->io[i]]);
}

/* What a row sees at most in this call. */
static double keys_seen(const plan_step *s, const kbatch *b)
{
    const int32_t *pos = kbatch_at(b, KBATCH_POS), *last = kbatch_at(b, KBATCH_LAST);
    int64_t keys = 0, window = s->size.attend.window, chunk = s->size.attend.chunk;
    for (int64_t i = 0; i < b->n_seq; i++)
        if (pos[last[i]] >= keys)
            keys = pos[last[i]] + 1;
    if (chunk > 0 && keys > chunk)
        keys = chunk;
    return (double)(window > 0 && keys > window ? window : keys);
}

/* On few rows ranges are short enough as they are. */
static void bound_ranges(const cpu_bucket *c, const kbatch *b)
{
    const double rows[] = {(double)b->n_tok, (double)b->n_out, (double)b->n_seq, 1};
    for (int32_t i = 0; i < c->plan->n_item; i++) {
        const plan_item *it = &c->plan->item[i];
        double ranges = 0; /* that a whole item is at least */
        for (int32_t k = 0; k < it->n_step && b->n_tok > K_ROWS_FEW; k++) {
            const plan_step *s = &c->plan->step[it->first + k];
            double flops = rows[s->rows] * (double)s->cost.row_flops;
            if (s->cost.key_flops)
                flops += rows[s->rows] * (double)s->cost.key_flops * keys_seen(s, b);
            ranges += flops / range_flops_max(&c->steps[it->first + k]);
        }
        c->most[i] = it->grain > 0 ? it->grain : c->units[i];
        if (ranges * (double)c->most[i] > (double)c->units[i])
            c->most[i] = (int64_t)((double)c->units[i] / ranges);
        c->most[i] = c->most[i] < 1 ? 1 : c->most[i];
    }
}

static void prepare_all(cpu_bucket *c, const kbatch *b)
{
    for (int32_t i = 0; i < c->plan->n_step; i++)
        prepare_step(&c->steps[i], b, c->rows);
    for (int32_t i = 0; i < c->plan->n_item; i++) {
        const plan_item *it = &c->plan->item[i];
        const cpu_step *s = &c->steps[it->first];
        c->units[i] = kernel_units(s->row, &s->args);
        for (int32_t k = 1; k < it->n_step; k++)
            WEFT_ASSERT(kernel_units(s[k].row, &s[k].args) == c->units[i]);
    }
}

/* Steps depend on how many rows there are, which says where the arrays of a batch are too, and on few rows nothing
 * else changes either but the adapters in use: decoding prepares once. */
static void prepare(cpu_bucket *c, const kbatch *b, const klora *lora)
{
    const int64_t rows[] = {[ROWS_T] = b->n_tok, [ROWS_R] = b->n_out, [ROWS_S] = b->n_seq};
    const uint64_t version = lora ? lora->version : 0;
    bool same = c->batch == b && memcmp(c->rows, rows, sizeof rows) == 0 && c->lora == version;
    if (!same) {
        c->batch = b;
        c->lora = version;
        memcpy(c->rows, rows, sizeof rows);
        prepare_all(c, b);
    }
    if (!same || b->n_tok > K_ROWS_FEW)
        bound_ranges(c, b);
    for (int32_t i = 0; i < c->plan->n_item; i++) {
        const cpu_step *s = &c->steps[c->plan->item[i].first];
        if (kunit_varies(s->row->unit))
            c->most[i] = c->units[i] = kernel_units(s->row, &s->args);
    }
}

/* ---- stopping ---- */

/* Whether to leave out what is left of this phase. */
static bool leave_out(const member *m, unsigned set)
{
    if (!cancel_asked(m->e->cancel))
        return false;
    atomic_store_explicit(&m->e->stopped[set], true, memory_order_relaxed);
    return true;
}

/* Behind the phase's barrier all threads read the same: the set's next phase begins behind another one. */
static bool has_stopped(const exec *e, unsigned set)
{
    return atomic_load_explicit(&e->stopped[set], memory_order_relaxed);
}

/* ---- phases ---- */

/* The end of the phase that item `from` is in. */
static int32_t phase_end(const cpu_bucket *b, int32_t from)
{
    int32_t end = from;
    while (end < b->plan->n_item && b->plan->item[end].phase == b->plan->item[from].phase)
        end++;
    return end;
}

/* Has it nothing to share out but products of adapters, and nobody uses one? Then it needs no barrier
 * (plan_phase_may_idle). */
static bool is_idle(const cpu_bucket *b, span s)
{
    bool down = false;
    for (int32_t i = s.first; i < s.end; i++) {
        if (b->plan->item[i].per_thread)
            continue;
        if (b->units[i] > 0 || b->steps[b->plan->item[i].first].row->op != KOP_lora_down)
            return false;
        down = true;
    }
    return down;
}

/* The first phase from item `from` on that has anything to do; empty if none has. One that is idle goes with the next, unless
 * somebody looks at each of them. */
static span live_phase(const exec *e, const cpu_bucket *b, int32_t from)
{
    int32_t n = b->plan->n_item;
    while (from < n && b->units[from] == 0)
        from++;
    span s = {from, from < n ? phase_end(b, from) : from}, last = s;
    while (s.end < n && !e->watch && is_idle(b, last)) {
        last = (span){s.end, phase_end(b, s.end)};
        s.end = last.end;
    }
    return s;
}

static cursor *cursor_at(const exec *e, unsigned set, int32_t slot, int index)
{
    return &e->cursors[((int64_t)set * e->items_max + slot) * e->threads + index];
}

/* Where the share of thread `index` begins. */
static int64_t share(int64_t units, int index, int count)
{
    return units / count * index + units % count * index / count;
}

static void set_cursors(const exec *e, const cpu_bucket *b, span s, unsigned set, int index,
                        int count)
{
    for (int32_t i = s.first; i < s.end; i++)
        atomic_store_explicit(&cursor_at(e, set, i - s.first, index)->next,
                              share(b->units[i], index, count), memory_order_relaxed);
}

/* ---- items ---- */

/* Put the addresses of these operands into k, which are at their offsets from base. */
static void place_own(const cpu_step *s, kargs *k, uint32_t operands, uintptr_t base)
{
    for (; operands; operands &= operands - 1) {
        int i = __builtin_ctz(operands), o = i - K_IN_MAX;
        if (o < 0)
            k->in[i] = (const void *)(base + (uintptr_t)s->args.in[i]);
        else
            k->out[o] = (void *)(base + (uintptr_t)s->args.out[o]);
    }
}

/* So that the column which units from `begin` on start with is the first of a tile's in memory. */
static uintptr_t tile_base(const member *m, const cpu_step *s, int64_t begin)
{
    return (uintptr_t)m->block - (uintptr_t)(begin * s->args.tile * TILE_ELEM_BYTES);
}

/* Make this thread's arguments for the steps that need some, once for all ranges of an item. */
static void take_item(const member *m, const plan_item *it)
{
    for (int32_t i = 0; i < it->n_step; i++) {
        const cpu_step *s = &m->b->steps[it->first + i];
        if (!s->local && !s->tile)
            continue;
        m->own[i] = s->args;
        place_own(s, &m->own[i], s->local, (uintptr_t)m->block);
    }
}

static void run_range(const member *m, const plan_item *it, int64_t begin, int64_t end)
{
    for (int32_t i = 0; i < it->n_step; i++) {
        const cpu_step *s = &m->b->steps[it->first + i];
        const kargs *k = s->local || s->tile ? &m->own[i] : &s->args;
        if (s->tile)
            place_own(s, &m->own[i], s->tile, tile_base(m, s, begin));
        uint64_t start = m->ns ? clock_ns() : 0;
        s->row->fn(k, &m->t, begin, end);
        if (m->ns)
            m->ns[it->first + i] += clock_ns() - start;
    }
}

/* Take what is left of a share of item i, up to `end`. */
static void run_share(const member *m, int32_t i, cursor *c, int64_t end, unsigned set)
{
    const plan_item *it = &m->b->plan->item[i];
    const int64_t part = m->b->rows[ROWS_T] > K_ROWS_FEW ? RANGE_PART_MANY : RANGE_PART;
    for (;;) {
        int64_t left = end - atomic_load_explicit(&c->next, memory_order_relaxed);
        if (left <= 0 || leave_out(m, set))
            return;
        int64_t range = left < part ? 1 : left / part;
        if (range > m->b->most[i])
            range = m->b->most[i];
        int64_t begin = atomic_fetch_add_explicit(&c->next, range, memory_order_relaxed);
        if (begin < end)
            run_range(m, it, begin, end - begin < range ? end : begin + range);
    }
}

static void run_item(const member *m, int32_t i, int32_t slot, unsigned set)
{
    const plan_item *it = &m->b->plan->item[i];
    int64_t units = m->b->units[i];
    int count = m->t.count;
    if (units == 0 || leave_out(m, set))
        return;
    take_item(m, it);
    if (it->per_thread) {
        run_range(m, it, 0, units);
        return;
    }
    for (int k = 0; k < count && k < SHARES_SEEN_MAX; k++) {
        int from = (m->t.index + k) % count;
        run_share(m, i, cursor_at(m->e, set, slot, from), share(units, from + 1, count), set);
    }
}

/* ---- the whole ---- */

static void pass_gate(const member *m)
{
    uint64_t start = m->ns ? clock_ns() : 0;
    barrier_wait(&m->e->gate);
    if (m->ns)
        m->e->prof->wait_ns[m->t.index] += clock_ns() - start;
}

/* In a scope of its own: other threads wait for the end of the call, whatever becomes of the watch. */
static weft_status call_watch(weft_diag *dg, const exec *e, int32_t bucket, int32_t phase)
{
    MEM_SCOPE(scope);
    if (sigsetjmp(scope.env, 0) != 0)
        return diag_fail_memory(dg, scope.bytes);
    return e->watch(e->watch_ctx, dg, bucket, phase);
}

/* Let the caller look at what a phase left, before anyone goes on. */
static void show_phase(const member *m, weft_diag *dg, int32_t item, unsigned set)
{
    exec *e = m->e;
    pass_gate(m);
    if (m->t.index == 0 && !has_stopped(e, set)) {
        e->watch_status =
            call_watch(dg, e, (int32_t)(m->b->plan - e->p->bucket), m->b->plan->item[item].phase);
        if (e->watch_status != WEFT_OK)
            atomic_store_explicit(&e->stopped[set], true, memory_order_relaxed);
    }
    pass_gate(m);
}

static void run_phases(void *ctx, int index, int count)
{
    const work *w = ctx;
    exec *e = w->e;
    char *block = e->blocks + (size_t)index * e->block_bytes;
    member m = {.e = e,
                .b = w->b,
                .t = {.index = index,
                      .count = count,
                      .scratch = block + e->local_bytes,
                      .scratch_bytes = e->block_bytes - e->local_bytes},
                .block = block,
                .own = e->own + (int64_t)index * e->chain_max,
                .ns = e->prof && e->prof->on ? e->prof->ns[index] : NULL};
    uint64_t n = 0;
    span now = live_phase(e, m.b, 0), next;
    for (unsigned set = 0; now.first < now.end; set ^= 1, now = next) {
        next = live_phase(e, m.b, now.end);
        set_cursors(e, m.b, next, set ^ 1, index, count);
        for (int32_t i = now.first; i < now.end; i++)
            run_item(&m, i, i - now.first, set);
        if (e->watch)
            show_phase(&m, w->dg, now.first, set);
        else if (next.first < next.end) /* the pool sees to the last */
            pass_gate(&m);
        n++;
        if (has_stopped(e, set))
            break;
    }
    if (index == 0)
        e->barriers = n;
}

weft_status exec_submit(weft_diag *dg, exec *e, const kbatch *b)
{
    if (e->forks != pool_forks())
        return weft_fail(dg, W1604, WEFT_NOWHERE,
                         "the session was created before fork(2), in another process");
    cpu_bucket *c = &e->buckets[plan_bucket_for(e->p, b->n_tok) - e->p->bucket];
    work w = {e, c, dg};
    pool_gang g;
    prepare(c, b, e->lora);
    uint64_t began = clock_ns(), cpu = clock_cpu_ns();
    gang_choice size = gang_size_next(&c->size, e->threads);
    pool_gather(&g, size.threads);
    if (!size.awake)
        g.spin_ns = 0;
    barrier_set(&e->gate, g.count, g.spin_ns);
    span first = live_phase(e, c, 0);
    for (int i = 0; i < g.count; i++)
        set_cursors(e, c, first, 0, i, g.count);
    if (e->prof && e->prof->on)
        exec_profile_start(e);
    atomic_store_explicit(&e->stopped[0], false, memory_order_relaxed);
    atomic_store_explicit(&e->stopped[1], false, memory_order_relaxed);
    e->watch_status = WEFT_OK;
    pool_go(&g, run_phases, &w);
    if (e->watch_status != WEFT_OK)
        return e->watch_status;
    if (has_stopped(e, 0) || has_stopped(e, 1))
        return weft_fail(dg, W1412, WEFT_NOWHERE, "evaluating %" PRId64 " rows was cancelled",
                         b->n_tok);
    if (g.count == size.threads) /* else another session has some of them */
        gang_size_learn(&c->size, e->threads, b->n_tok, began, clock_ns(), clock_cpu_ns() - cpu);
    if (e->prof && e->prof->on)
        exec_profile_add(e, c);
    return WEFT_OK;
}
