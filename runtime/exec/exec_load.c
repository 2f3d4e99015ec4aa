/* exec_load.c - operands to addresses, once; and how much memory that takes.
 *
 * One function lays the tables out. It is run without memory to learn the size and with it to fill the
 * pointers, so that what a session needs is known before it is taken, to the byte. */
#include "runtime/exec/exec_impl.h"

#include "runtime/base/intmath.h"
#include "runtime/base/mem.h"
#include "runtime/exec/pool.h"
#include "runtime/exec/weights_cpu.h"
#include <inttypes.h>
#include <stdlib.h>

/* On large pages: steps on many rows walk down columns, where each row is on another page. */
weft_status exec_alloc(weft_diag *dg, size_t bytes, void **out_p)
{
    size_t align = bytes >= MEM_PAGE_LARGE ? MEM_PAGE_LARGE : PLAN_ALIGN;
    void *p = bytes ? mem_try_aligned(align, bytes) : NULL;
    if (bytes && !p) {
        memory_room room = memory_available("");
        return weft_fail(dg, W0902, WEFT_NOWHERE,
                         "%zu bytes of memory cannot be allocated: %" PRIu64 " are available %s",
                         bytes, room.bytes, room.within);
    }
    mem_want_large(p, bytes);
    *out_p = p;
    return WEFT_OK;
}

/* ---- sizes ---- */

typedef struct {
    char *base; /* NULL: only count */
    size_t at;
} carving;

static void *carve(carving *c, size_t n, size_t item_bytes)
{
    void *p = c->base ? c->base + c->at : NULL;
    size_t bytes = mem_product(n, item_bytes);
    c->at += (bytes + PLAN_ALIGN - 1) / PLAN_ALIGN * PLAN_ALIGN;
    return p;
}

/* The most items that a phase of the bucket has, or phases that may run as one, and the most steps that an item has. */
static void count_items(const plan *p, const plan_bucket *b, int32_t *items_max, int32_t *chain_max)
{
    bool joins = false; /* the phase before may idle */
    for (int32_t i = 0, n = 0; i < b->n_item; i++) {
        bool begins = i == 0 || b->item[i].phase != b->item[i - 1].phase;
        n = begins && !joins ? 1 : n + 1;
        joins = begins ? plan_phase_may_idle(p, b, i) : joins;
        if (n > *items_max)
            *items_max = n;
        if (b->item[i].n_step > *chain_max)
            *chain_max = b->item[i].n_step;
    }
}

/* Steps that have operands of the thread. */
static int32_t count_own(const plan_bucket *b)
{
    int32_t n = 0;
    for (int32_t i = 0; i < b->n_step; i++) {
        const plan_step *s = &b->step[i];
        bool own = false;
        for (int k = 0; k < K_IN_MAX + s->n_out; k++) {
            plan_space space = k < K_IN_MAX ? s->in[k].space : s->out[k - K_IN_MAX].space;
            own |= space == SPACE_LOCAL || space == SPACE_TILE;
        }
        n += own;
    }
    return n;
}

/* What generated code is given: each thread has one set of arguments, for the bucket it ran last. */
static void carve_code(carving *c, exec *e, size_t step_max, size_t own_max)
{
    e->run.thread = carve(c, (size_t)e->threads, sizeof *e->run.thread);
    for (int i = 0; i < e->threads; i++) {
        code_place *place = carve(c, 1, sizeof *place);
        kargs **args = carve(c, step_max, sizeof *args);
        kargs *own = carve(c, own_max, sizeof *own);
        if (!c->base)
            continue;
        *place = (code_place){.e = e, .own = own};
        e->run.thread[i] = (code_thread){.args = args, .place = place};
    }
}

/* Everything but the exec itself, which is first. */
static void carve_tables(carving *c, exec *e)
{
    const plan *p = e->p;
    size_t threads = (size_t)e->threads;
    int32_t step_max = 0, own_max = 0;
    for (int32_t i = 0; i < p->n_bucket; i++)
        count_items(p, &p->bucket[i], &e->items_max, &e->chain_max);
    e->cursors = carve(c, 2 * threads * (size_t)e->items_max, sizeof *e->cursors);
    e->own = carve(c, threads * (size_t)e->chain_max, sizeof *e->own);
    e->buckets = carve(c, (size_t)p->n_bucket, sizeof *e->buckets);
    for (int32_t i = 0; i < p->n_bucket; i++) {
        const plan_bucket *pb = &p->bucket[i];
        cpu_bucket b = {.plan = pb};
        b.steps = carve(c, (size_t)pb->n_step, sizeof *b.steps);
        b.units = carve(c, (size_t)pb->n_item, sizeof *b.units);
        b.most = carve(c, (size_t)pb->n_item, sizeof *b.most);
        b.n_own = count_own(pb);
        if (b.n_own > own_max)
            own_max = b.n_own;
        if (pb->n_step > step_max)
            step_max = pb->n_step;
        if (c->base)
            e->buckets[i] = b;
    }
    if (e->for_code)
        carve_code(c, e, (size_t)step_max, (size_t)own_max);
}

/* What an exec of p will be; its tables are not there. */
static weft_status size_exec(weft_diag *dg, const device_load *what, exec *out_e)
{
    const plan *p = what->p;
    int threads = what->threads;
    if (threads < 1 || threads > POOL_THREADS_MAX)
        return weft_fail(dg, W1406, WEFT_NOWHERE, "%d threads were asked for; 1 to %d are possible",
                         threads, POOL_THREADS_MAX);
    exec e = {.p = p, .threads = threads, .for_code = what->for_code || what->code};
    carving c = {0};
    size_t scratch;
    if (!size_align_up(p->local_bytes, PLAN_ALIGN, &e.local_bytes) ||
        !size_align_up(p->scratch_bytes, PLAN_ALIGN, &scratch) ||
        !size_add(e.local_bytes, scratch, &e.block_bytes) ||
        !size_mul(e.block_bytes, (size_t)threads, &e.bytes.scratch))
        return weft_fail(dg, W0902, WEFT_NOWHERE, "memory for %d threads is too large", threads);
    carve(&c, 1, sizeof e);
    carve_tables(&c, &e);
    e.bytes.arena = p->arena_bytes;
    e.bytes.tables = c.at;
    *out_e = e;
    return WEFT_OK;
}

weft_status exec_need(weft_diag *dg, device *d, const device_load *what, device_memory *out_m)
{
    exec e;
    (void)d;
    WEFT_TRY(size_exec(dg, what, &e));
    *out_m = e.bytes;
    return WEFT_OK;
}

/* ---- steps ---- */

static void load_step(const exec_places *at, const exec *e, const plan_bucket *b,
                      const plan_step *s, const kernel_row *row, kernel_fn *fn, cpu_step *out)
{
    exec_spaces own = exec_step_spaces(s);
    *out = (cpu_step){.plan = s,
                      .row = row,
                      .fn = fn ? fn : row->fn,
                      .args = exec_step_args(e->p, b, s, at),
                      .local = own.local,
                      .tile = own.tile};
    memcpy(out->io, own.io, sizeof out->io);
}

/* The rows of kernels.def that the plan's kernels are. */
static weft_status find_kernels(weft_diag *dg, const plan *p, const kernel_row **rows)
{
    for (int32_t i = 0; i < p->n_kernel; i++) {
        rows[i] = kernel_by_symbol(p->kernel[i].name);
        if (!rows[i])
            return weft_fail(dg, W1501, WEFT_NOWHERE,
                             "the plan has a kernel %s, which the CPU has not", p->kernel[i].name);
        if (!kernel_runs(rows[i]))
            return weft_fail(dg, W1501, WEFT_NOWHERE,
                             "the plan has a kernel %s, which this processor cannot run",
                             p->kernel[i].name);
    }
    return WEFT_OK;
}

static weft_status load_steps_with(weft_diag *dg, const device_load *what,
                                   const kernel_row *const *rows, exec *e)
{
    size_t scratch = e->block_bytes - e->local_bytes;
    exec_places at = {.weight = cpu_weights_at,
                      .w = what->w,
                      .arena = e->arena,
                      .consts = what->p->consts,
                      .code = what->p->code,
                      .cells = what->cells,
                      .lora = what->lora,
                      .slots = what->slots};
    for (int32_t i = 0; i < what->p->n_bucket; i++) {
        const plan_bucket *b = &what->p->bucket[i];
        const code_bucket *code = what->code ? &what->code->bucket[i] : NULL;
        e->buckets[i].code = code ? code->run : NULL;
        for (int32_t k = 0; k < b->n_step; k++) {
            cpu_step *s = &e->buckets[i].steps[k];
            kernel_fn *fn = code && code->map ? code->map[k] : NULL;
            load_step(&at, e, b, &b->step[k], rows[b->step[k].kernel], fn, s);
            size_t need = kernel_scratch(s->row, &s->args);
            if (need > scratch)
                return weft_fail(dg, W1501, b->step[k].loc,
                                 "%s needs %zu bytes of scratch, the plan has %zu", s->row->symbol,
                                 need, scratch);
        }
    }
    return WEFT_OK;
}

static weft_status load_steps(weft_diag *dg, const device_load *what, exec *e)
{
    const kernel_row **rows = mem_alloc(mem_product((size_t)what->p->n_kernel + 1, sizeof *rows));
    weft_status st = find_kernels(dg, what->p, rows);
    if (st == WEFT_OK)
        st = load_steps_with(dg, what, rows, e);
    mem_free(rows);
    return st;
}

/* ---- the whole ---- */

void exec_unload(exec *e)
{
    if (!e)
        return;
    mem_free(e->prof);
    mem_free(e->arena);
    mem_free(e->blocks);
    barrier_deinit(&e->gate);
    bool ours = e->forks == pool_forks(); /* else the pool knows nothing of it */
    mem_free(e);                          /* its tables with it */
    if (ours)
        pool_release();
}

static weft_status alloc_parts(weft_diag *dg, exec *e)
{
    void *p;
    WEFT_TRY(exec_alloc(dg, e->bytes.arena, &p));
    e->arena = p;
    WEFT_TRY(exec_alloc(dg, e->bytes.scratch, &p));
    e->blocks = p;
    return WEFT_OK;
}

weft_status exec_load(weft_diag *dg, device *d, const device_load *what, exec **out_e)
{
    (void)d;
    exec sized;
    void *tables;
    WEFT_TRY(size_exec(dg, what, &sized));
    WEFT_TRY(exec_alloc(dg, sized.bytes.tables, &tables));
    weft_status status = pool_acquire(dg, what->threads, what->pin);
    if (status != WEFT_OK) {
        mem_free(tables);
        return status;
    }
    memset(tables, 0, sized.bytes.tables);
    exec *e = tables;
    carving c = {.base = tables};
    *e = sized;
    e->forks = pool_forks();
    e->cancel = what->cancel;
    e->lora = what->lora;
    WEFT_ASSERT(!what->code || what->code->n_bucket == what->p->n_bucket);
    carve(&c, 1, sizeof *e);
    carve_tables(&c, e);
    barrier_init(&e->gate);
    status = alloc_parts(dg, e);
    if (status == WEFT_OK) {
        e->run.arena = e->arena;
        e->run.consts = what->p->consts;
        status = load_steps(dg, what, e);
    }
    if (status == WEFT_OK)
        *out_e = e;
    else
        exec_unload(e);
    return status;
}
