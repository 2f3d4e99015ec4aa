/* device_cpu.c - the CPU: steps in order, each split over the threads of the pool.
 *
 * Loading turns every operand into an address once. What is left for a call is the number of rows, the
 * batch, and the arrays of the batch that are operands themselves. */
#include "runtime/exec/device.h"

#include "runtime/base/clock.h"
#include "runtime/base/cpu.h"
#include "runtime/base/intmath.h"
#include "runtime/base/threads.h"
#include "runtime/exec/pool.h"
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct {
    kernel_fn *fn;
    const kernel_row *row;
    kargs args;
    plan_rows rows;
    int64_t per_row;
    int8_t io[K_IN_MAX]; /* a plan_io where an operand is one, else -1 */
} cpu_step;

struct exec {
    const plan *p;
    int threads;
    char *arena;          /* p->arena_bytes */
    char *scratch;        /* threads * scratch_bytes */
    size_t scratch_bytes; /* of one thread, a multiple of PLAN_ALIGN */
    cpu_step *steps;      /* [n_step] */
    device_profile *hook;
    void *hook_ctx;
    arena *home;
};

static weft_status cpu_probe(weft_diag *dg, device_info *out_info, strbuf *out_name)
{
    (void)dg;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    cpu_name(out_name);
    *out_info =
        (device_info){.threads = threads_default(),
                      .bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0};
    return WEFT_OK;
}

static weft_status cpu_alloc(weft_diag *dg, size_t bytes, void **out_p)
{
    void *p = NULL;
    if (posix_memalign(&p, PLAN_ALIGN, bytes ? bytes : 1) != 0)
        return weft_fail(dg, W0902, WEFT_NOWHERE, "%zu bytes of memory are not to be had", bytes);
    *out_p = p;
    return WEFT_OK;
}

static void cpu_free(void *p)
{
    free(p);
}

static void cpu_copy(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

/* ---- loading ---- */

/* NULL for what is absent, and for the arrays of a batch, which are not there yet. */
static const void *resolve(const device_load *what, const exec *e, const plan_operand *o)
{
    switch (o->space) {
    case SPACE_WEIGHT:
        return weights_at(what->w, o->id);
    case SPACE_CONST:
        return (const char *)what->p->consts + o->offset;
    case SPACE_ARENA:
        return e->arena + o->offset;
    case SPACE_NONE:
    case SPACE_LOCAL:
    case SPACE_TILE:
    case SPACE_IO:
        break;
    }
    return NULL;
}

static void load_step(const device_load *what, exec *e, const plan_step *s, cpu_step *out)
{
    int n_row;
    const kernel_row *rows = kernel_rows(&n_row);
    WEFT_ASSERT(s->kernel >= 0 && s->kernel < n_row);
    *out = (cpu_step){
        .fn = rows[s->kernel].fn, .row = &rows[s->kernel], .rows = s->rows, .per_row = s->per_row};
    kargs *k = &out->args;
    for (int i = 0; i < K_IN_MAX; i++) {
        k->in[i] = resolve(what, e, &s->in[i]);
        k->type[i] = s->in[i].type;
        out->io[i] = s->in[i].space == SPACE_IO ? (int8_t)s->in[i].id : -1;
    }
    for (int i = 0; i < s->n_out; i++)
        k->out[i] = e->arena + s->out[i].offset;
    memcpy(k->pitch, s->pitch, sizeof k->pitch);
    memcpy(k->out_pitch, s->out_pitch, sizeof k->out_pitch);
    memcpy(k->stride, s->stride, sizeof k->stride);
    memcpy(k->n, s->n, sizeof k->n);
    memcpy(k->f, s->f, sizeof k->f);
    memcpy(k->word, s->word, sizeof k->word);
    k->cell = s->cell >= 0 ? &what->cells[s->cell] : NULL;
    size_t scratch = kernel_scratch(out->row, k);
    if (scratch > e->scratch_bytes)
        e->scratch_bytes = scratch;
}

static void cpu_unload(exec *e)
{
    if (!e)
        return;
    free(e->arena);
    free(e->scratch);
    arena_destroy(e->home); /* e itself with it */
    pool_release();
}

static weft_status cpu_load(weft_diag *dg, const device_load *what, exec **out_e)
{
    if (what->threads < 1 || what->threads > POOL_THREADS_MAX)
        return weft_fail(dg, W1406, WEFT_NOWHERE, "%d threads were asked for; 1 to %d are possible",
                         what->threads, POOL_THREADS_MAX);
    WEFT_TRY(pool_acquire(dg, what->threads));
    arena *home = arena_create();
    exec *e = ARENA_NEW(home, exec);
    e->p = what->p;
    e->threads = what->threads;
    e->home = home;
    e->steps = ARENA_ARRAY(home, cpu_step, (size_t)what->p->bucket->n_step);
    void *block;
    size_t all;
    weft_status status = cpu_alloc(dg, what->p->arena_bytes, &block);
    if (status != WEFT_OK)
        goto done;
    e->arena = block;
    for (int32_t i = 0; i < what->p->bucket->n_step; i++)
        load_step(what, e, &what->p->bucket->step[i], &e->steps[i]);
    if (!size_align_up(e->scratch_bytes, PLAN_ALIGN, &e->scratch_bytes) ||
        !size_mul(e->scratch_bytes, (size_t)e->threads, &all)) {
        status =
            weft_fail(dg, W0902, WEFT_NOWHERE, "scratch for %d threads is too large", e->threads);
        goto done;
    }
    status = cpu_alloc(dg, all, &block);
    if (status == WEFT_OK)
        e->scratch = block;
done:
    if (status == WEFT_OK)
        *out_e = e;
    else
        cpu_unload(e);
    return status;
}

/* ---- running ---- */

typedef struct {
    const exec *e;
    const cpu_step *step;
} step_work;

static void work_on_step(void *ctx, int index, int64_t begin, int64_t end)
{
    const step_work *w = ctx;
    kthread t = {.index = index,
                 .count = w->e->threads,
                 .scratch = w->e->scratch + (size_t)index * w->e->scratch_bytes,
                 .scratch_bytes = w->e->scratch_bytes};
    w->step->fn(&w->step->args, &t, begin, end);
}

static const void *io_at(const kbatch *b, plan_io io)
{
    return io == IO_TOKENS ? b->token : io == IO_POS ? b->pos : b->out;
}

static weft_status cpu_run(weft_diag *dg, exec *e, const kbatch *b)
{
    const int64_t rows[] = {[ROWS_T] = b->n_tok, [ROWS_R] = b->n_out, [ROWS_S] = b->n_seq};
    (void)dg; /* kernels cannot fail */
    for (int32_t i = 0; i < e->p->bucket->n_step; i++) {
        cpu_step *s = &e->steps[i];
        uint64_t start = e->hook ? clock_ns() : 0;
        s->args.batch = b;
        if (s->rows != ROWS_FIXED)
            s->args.n[0] = rows[s->rows] * s->per_row;
        for (int k = 0; k < K_IN_MAX; k++)
            if (s->io[k] >= 0)
                s->args.in[k] = io_at(b, (plan_io)s->io[k]);
        step_work w = {e, s};
        pool_run(e->threads, kernel_units(s->row, &s->args), work_on_step, &w);
        if (e->hook)
            e->hook(e->hook_ctx, i, s->args.n[0], clock_ns() - start);
    }
    return WEFT_OK;
}

static const void *cpu_output(const exec *e, int32_t i)
{
    WEFT_ASSERT(i >= 0 && i < e->p->n_output && e->p->bucket->output[i].space == SPACE_ARENA);
    return e->arena + e->p->bucket->output[i].offset;
}

static void cpu_profile(exec *e, device_profile *hook, void *ctx)
{
    e->hook = hook;
    e->hook_ctx = ctx;
}

static void cpu_bytes(const exec *e, size_t *out_arena, size_t *out_scratch, size_t *out_steps)
{
    *out_arena = e->p->arena_bytes;
    *out_scratch = e->scratch_bytes * (size_t)e->threads;
    *out_steps = arena_bytes(e->home);
}

const device device_cpu = {
    .name = "cpu",
    .probe = cpu_probe,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .copy_in = cpu_copy,
    .copy_out = cpu_copy,
    .copy = cpu_copy,
    .load = cpu_load,
    .unload = cpu_unload,
    .run = cpu_run,
    .output = cpu_output,
    .profile = cpu_profile,
    .bytes = cpu_bytes,
};
