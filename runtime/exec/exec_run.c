/* exec_run.c - a call: phases one after the other, the items of a phase shared out among threads.
 *
 * exec_claim.c says which phases there are and who takes which units. A bucket that has code (plan_code.h) is run by that
 * instead of by run_phases, unless somebody watches or measures the call. */
#include "runtime/exec/exec_impl.h"

#include "runtime/base/mem_scope.h"

#include "runtime/base/clock.h"
#include "runtime/base/cpu.h"
#include "runtime/exec/pool.h"
#include <inttypes.h>

enum { TILE_ELEM_BYTES = 4 };

/* A call that was cancelled ends when each thread has ended its range, so on many rows a range has no more work than
 * this: 5 ms at 100 GFLOP/s, 50 ms at 10; with tiles 5 ms at 1 TFLOP/s. On few rows it reads no more than this: 6 ms at
 * 10 GB/s. */
static const double range_bytes_max = 64e6;

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

typedef struct {
    exec *e;
    const cpu_bucket *b;
    weft_diag *dg; /* for the caller's thread */
} work;

/* ---- before the threads start ---- */

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

/* How many ranges a step has to be cut into at least; a fraction: it is a part of one. */
static double ranges_least(const cpu_step *c, const kbatch *b)
{
    const plan_step *s = c->plan;
    const double all[] = {(double)b->n_tok, (double)b->n_out, (double)b->n_seq, 1};
    const double rows = all[s->rows], keys = s->cost.key_flops ? keys_seen(s, b) : 0;
    if (b->n_tok <= K_ROWS_FEW)
        return (double)s->cost.call_bytes / range_bytes_max;
    return rows * ((double)s->cost.row_flops + (double)s->cost.key_flops * keys) /
           range_flops_max(c);
}

static void bound_ranges(const cpu_bucket *c, const kbatch *b)
{
    for (int32_t i = 0; i < c->plan->n_item; i++) {
        const plan_item *it = &c->plan->item[i];
        double ranges = 0; /* that a whole item is at least */
        for (int32_t k = 0; k < it->n_step; k++)
            ranges += ranges_least(&c->steps[it->first + k], b);
        c->most[i] = it->grain > 0 ? it->grain : c->units[i];
        if (ranges * (double)c->most[i] > (double)c->units[i])
            c->most[i] = (int64_t)((double)c->units[i] / ranges);
        c->most[i] = c->most[i] < 1 ? 1 : c->most[i];
    }
}

static void prepare_all(cpu_bucket *c, const kbatch *b)
{
    for (int32_t i = 0; i < c->plan->n_step; i++)
        exec_step_call(c->steps[i].plan, c->steps[i].io, b, c->rows, &c->steps[i].args);
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
        c->made++;
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

/* ---- items ---- */

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
        exec_place(s, &m->own[i], s->local, (uintptr_t)m->block);
    }
}

static void run_range(const member *m, const plan_item *it, int64_t begin, int64_t end)
{
    for (int32_t i = 0; i < it->n_step; i++) {
        const cpu_step *s = &m->b->steps[it->first + i];
        const kargs *k = s->local || s->tile ? &m->own[i] : &s->args;
        if (s->tile)
            exec_place(s, &m->own[i], s->tile, tile_base(m, s, begin));
        uint64_t start = m->ns ? clock_ns() : 0;
        s->fn(k, &m->t, begin, end);
        if (m->ns)
            m->ns[it->first + i] += clock_ns() - start;
    }
}

static void run_item(const member *m, int32_t i, int32_t slot, unsigned set)
{
    const plan_item *it = &m->b->plan->item[i];
    code_range r = {0};
    if (m->b->units[i] == 0 || exec_leaves(m->e, set))
        return;
    take_item(m, it);
    if (it->per_thread)
        run_range(m, it, 0, m->b->units[i]);
    else
        while (exec_claim(m->e, m->b, (claim_at){i, slot, set}, &m->t, &r))
            run_range(m, it, r.begin, r.end);
}

/* ---- phases ---- */

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
    if (m->t.index == 0 && !exec_stopped(e, set)) {
        e->watch_status =
            call_watch(dg, e, (int32_t)(m->b->plan - e->p->bucket), m->b->plan->item[item].phase);
        if (e->watch_status != WEFT_OK)
            atomic_store_explicit(&e->stopped[set], true, memory_order_relaxed);
    }
    pass_gate(m);
}

/* ---- the whole ---- */

kthread exec_thread(const exec *e, int index, int count)
{
    return (kthread){.index = index,
                     .count = count,
                     .scratch = exec_block(e, index) + e->local_bytes,
                     .scratch_bytes = e->block_bytes - e->local_bytes};
}

static void run_phases(void *ctx, int index, int count)
{
    const work *w = ctx;
    exec *e = w->e;
    member m = {.e = e,
                .b = w->b,
                .t = exec_thread(e, index, count),
                .block = exec_block(e, index),
                .own = e->own + (int64_t)index * e->chain_max,
                .ns = e->prof && e->prof->on ? e->prof->ns[index] : NULL};
    uint64_t n = 0;
    item_span now = exec_phase_from(e, m.b, 0), next;
    for (unsigned set = 0; now.first < now.end; set ^= 1, now = next) {
        next = exec_phase_from(e, m.b, now.end);
        exec_cursors_set(e, m.b, next, set ^ 1, index, count);
        for (int32_t i = now.first; i < now.end; i++)
            run_item(&m, i, i - now.first, set);
        if (e->watch)
            show_phase(&m, w->dg, now.first, set);
        else if (next.first < next.end) /* the pool sees to the last */
            pass_gate(&m);
        n++;
        if (exec_stopped(e, set))
            break;
    }
    if (index == 0)
        e->barriers = n;
}

static void run_code(void *ctx, int index, int count)
{
    const work *w = ctx;
    exec_code_run(w->e, w->b, index, count);
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
    item_span first = exec_phase_from(e, c, 0);
    for (int i = 0; i < g.count; i++)
        exec_cursors_set(e, c, first, 0, i, g.count);
    if (e->prof && e->prof->on)
        exec_profile_start(e);
    atomic_store_explicit(&e->stopped[0], false, memory_order_relaxed);
    atomic_store_explicit(&e->stopped[1], false, memory_order_relaxed);
    e->watch_status = WEFT_OK;
    bool coded = c->code && !e->watch && !(e->prof && e->prof->on);
    if (coded) {
        e->run.units = c->units;
        e->run.most = c->most;
        e->barriers = exec_code_barriers(e, c);
    }
    pool_go(&g, coded ? run_code : run_phases, &w);
    if (e->watch_status != WEFT_OK)
        return e->watch_status;
    if (exec_stopped(e, 0) || exec_stopped(e, 1))
        return weft_fail(dg, W1412, WEFT_NOWHERE, "evaluating %" PRId64 " rows was cancelled",
                         b->n_tok);
    if (g.count == size.threads) /* else another session has some of them */
        gang_size_learn(&c->size, e->threads, b->n_tok, began, clock_ns(), clock_cpu_ns() - cpu);
    if (e->prof && e->prof->on)
        exec_profile_add(e, c);
    return WEFT_OK;
}
