/* cuda_launch.c - phases of a call as launches: all of them in one, whose blocks wait for each other, or each by itself, alone or in a
 * graph (cuda_graph.c). Each is by itself where it is watched or steps are measured. */
#include "runtime/exec/cuda_impl.h"

#include "kernels/cuda/flash_size.h"
#include "kernels/cuda/mma_size.h"

/* ---- values that outlast a phase ---- */

static void phase_lasts(cuda_bucket *c, int32_t phase)
{
    for (int32_t i = 0; i < c->plan->n_item; i++)
        c->lasts[i] = c->lasts[i] || c->plan->item[i].phase == phase;
}

static int32_t phase_of(const cuda_bucket *c, int32_t step)
{
    return c->plan->item[c->steps[step].item].phase;
}

/* The step before number i that made a value of the block's own at this offset; -1: none. */
static int32_t local_maker(const cuda_bucket *c, int32_t i, int64_t offset)
{
    while (--i >= 0)
        for (int out = 0; out < K_OUT_MAX; out++) {
            const plan_operand *o = &c->plan->step[i].out[out];
            if (o->space == SPACE_LOCAL && o->offset == offset)
                return i;
        }
    return -1;
}

/* Phases of which it is not known what they make for step i. */
static void all_last(cuda_bucket *c, int32_t i)
{
    while (--i >= 0)
        for (int out = 0; out < K_OUT_MAX; out++)
            if (c->plan->step[i].out[out].space == SPACE_LOCAL)
                phase_lasts(c, phase_of(c, i));
}

/* Where phases are launches of their own, those that share values of a block have them in the card's memory. A value is whole, and is
 * read where it was made. */
void cuda_lasting_find(cuda_bucket *c)
{
    for (int32_t i = 0; i < c->plan->n_step; i++)
        for (int in = 0; in < K_IN_MAX; in++) {
            const plan_operand *x = &c->plan->step[i].in[in];
            if (x->space != SPACE_LOCAL)
                continue;
            const int32_t from = local_maker(c, i, x->offset);
            if (from >= 0 && phase_of(c, from) == phase_of(c, i))
                continue;
            phase_lasts(c, phase_of(c, i));
            if (from >= 0)
                phase_lasts(c, phase_of(c, from));
            else /* a part of a value: plans from files may have such */
                all_last(c, i);
        }
}

bool cuda_outlasts(const cuda_bucket *c, const cuda_phase *p)
{
    bool does = false;
    for (int32_t i = p->first; i < p->first + p->n_item; i++)
        does = does || c->lasts[i];
    return does;
}

/* ---- launches ---- */

size_t cuda_squares_shared(const exec *e)
{
    return (size_t)cuda_squares_bytes((int64_t)e->d->shared_bytes[CUDA_GRID_squares], 0);
}

size_t cuda_experts_shared(const exec *e, const kargs *k)
{
    return (size_t)cuda_squares_bytes((int64_t)e->d->shared_bytes[CUDA_GRID_experts],
                                      cuda_expert_lists_bytes(k->size.experts.experts));
}

static bool grid_is_flash(cuda_grid which)
{
    return which == CUDA_GRID_flash || which == CUDA_GRID_codes;
}

static void *card_of(const exec *e, const void *part)
{
    return e->card + ((const char *)part - e->host);
}

/* Blocks of a launch that is phase p alone: no more than there are units, if others would have nothing to do, but where all count
 * time. */
static unsigned blocks_for(const exec *e, const cuda_phase *p, cuda_grid which, unsigned most)
{
    const bool by_unit = which == CUDA_GRID_light || grid_is_flash(which);
    return by_unit && !e->measure && p->units < most ? (unsigned)p->units : most;
}

cu_result cuda_launch_after(const exec *e, cu_function f, unsigned blocks, unsigned threads,
                            unsigned bytes, void **args)
{
    cu_launch_attribute dependent = {.id = CU_LAUNCH_DEPENDENT, .value.allowed = 1};
    cu_launch how = {.grid_x = blocks,
                     .grid_y = 1,
                     .grid_z = 1,
                     .block_x = threads,
                     .block_y = 1,
                     .block_z = 1,
                     .shared_bytes = bytes,
                     .s = e->stream,
                     .attribute = &dependent,
                     .n_attribute = e->d->dependent};
    return e->d->driver->cuLaunchKernelEx(&how, f, args, NULL);
}

/* A gate that nobody has come to: the launch before has made it so (phase.h). */
static uint32_t *gate_at(const exec *e, uint32_t number)
{
    return (uint32_t *)(void *)(e->card + e->at.gate) + number % CUDA_GATES;
}

/* How phases [first, end) of a call are launched. shared: bytes of a block that are in shared memory; 0: all are in the card's.
 * packed: blocks have tables there too, with a ring and the batch where the bucket has them. */
static cuda_dispatch dispatch_of(const exec *e, const cuda_bucket *c, int32_t first, int32_t end,
                                 cuda_grid which, size_t shared, bool packed)
{
    static const struct {
        unsigned threads, blocks;
    } grids[] = {
#define CUDA_GRID(name, threads, blocks) {threads, blocks},
        CUDA_GRIDS(CUDA_GRID)
#undef CUDA_GRID
    };
    const cuda_device *d = e->d;
    const bool phases = which == CUDA_GRID_phases, one = end - first == 1;
    const unsigned most = (unsigned)d->blocks * grids[which].blocks;
    const cuda_run run = {
        .shape = card_of(e, c->shapes),
        .step = card_of(e, c->steps),
        .item = card_of(e, c->items),
        .phase = card_of(e, c->phases),
        .pack = packed ? card_of(e, c->packs) : NULL,
        .first = first,
        .end = end,
        .batch = (const kbatch *)(void *)(e->card + e->at.batch),
        .lora = e->lora ? (const klora *)(void *)(e->card + e->at.lora) : NULL,
        .unpacked = !phases && c->unpacks[first] ? e->unpacked : NULL,
        .blocks = shared ? NULL : e->blocks,
        .block_bytes = shared ? shared : e->block_bytes,
        .local_bytes = c->local_bytes,
        .values = packed && shared && one && cuda_outlasts(c, &c->phases[first]) ? e->blocks : NULL,
        .values_bytes = e->block_bytes,
        .ring = packed ? c->ring_slots : 0,
        .ring_x = packed ? (uint32_t)c->ring_x : 0,
        .ring_slot = (uint32_t)c->ring_slot,
        .gate = gate_at(e, e->gates),
        .gate_next = gate_at(e, e->gates + 1),
        .cancel = e->cancel ? (const uint32_t *)(uintptr_t)(e->host_seen + e->at.cancel) : NULL,
        .ns = e->measure ? (uint64_t *)(void *)(e->card + e->at.ns) : NULL,
        .n_step = c->plan->n_step,
        .batch_bytes = packed ? (uint32_t)c->batch_bytes : 0,
        .halves = !phases && c->unpacks[first] == UNPACK_HALVES};
    return (cuda_dispatch){.f = phases ? c->kernel->phases : d->grid[which],
                           .blocks = one ? blocks_for(e, &c->phases[first], which, most) : most,
                           .threads =
                               phases ? (unsigned)cuda_phases_threads(c) : grids[which].threads,
                           .bytes = (unsigned)((phases ? PACKS_BYTES : 0) + shared +
                                               (packed ? c->ring_bytes + c->batch_bytes : 0)),
                           .with = {run, e->call}};
}

cuda_dispatch cuda_dispatch_packed(const exec *e, const cuda_bucket *c, int32_t i)
{
    return dispatch_of(e, c, i, i + 1, CUDA_GRID_phases, c->shared, true);
}

/* All phases at once: their blocks wait for each other. */
static cu_result launch_together(exec *e, const cuda_bucket *c)
{
    cuda_dispatch o = dispatch_of(e, c, 0, c->n_phase, CUDA_GRID_phases, c->shared, true);
    void *args[] = {&o.with};
    e->gates++;
    return e->d->driver->cuLaunchCooperativeKernel(o.f, o.blocks, 1, 1, o.threads, 1, 1, o.bytes,
                                                   e->stream, args);
}

static cu_result launch(const exec *e, const cuda_bucket *c, int32_t i, cuda_dispatch o)
{
    cuda_tiles tiles;
    void *args[] = {&o.with, &tiles}; /* weft_bulk alone takes the second */
    if (o.f == e->d->grid[CUDA_GRID_bulk]) {
        cu_result r = cuda_tiles_of(e, c, &c->phases[i], (cuda_unpacking)c->unpacks[i],
                                    o.with.run.unpacked, &tiles);
        if (r != CU_OK)
            return r;
    }
    return cuda_launch_after(e, o.f, o.blocks, o.threads, o.bytes, args);
}

/* Is anything to be made of its weights? */
static bool is_unpacked(const cuda_bucket *c, int32_t i)
{
    const cuda_phase *p = &c->phases[i];
    bool is = c->unpacks[i] == UNPACK_BF16;
    for (int32_t s = p->step; s < p->step + p->n_step && c->unpacks[i] == UNPACK_HALVES; s++)
        is = is || c->args[s].type[1] == DT_BF16;
    return is;
}

/* Phase i by itself, from tables in the card's memory. What lasts from one launch to the next cannot be in shared memory. */
static cu_result launch_plain(const exec *e, const cuda_bucket *c, int32_t i)
{
    const cuda_phase *p = &c->phases[i];
    const cuda_grid which = (cuda_grid)c->grid[i];
    size_t shared = c->local_bytes > 0 ? 0 : c->shared, scratch = sizeof(kargs);
    for (int32_t s = p->step; s < p->step + p->n_step; s++)
        scratch = c->scratch[s] > scratch ? c->scratch[s] : scratch;
    if (which == CUDA_GRID_light || which == CUDA_GRID_dots || grid_is_flash(which))
        shared = scratch; /* not 0, whatever its steps need */
    if (grid_is_flash(which) && shared < FLASH_TILES_BYTES &&
        e->d->shared_bytes[which] >= FLASH_TILES_BYTES)
        shared = FLASH_TILES_BYTES;
    if (which == CUDA_GRID_experts)
        shared = cuda_experts_shared(e, &c->args[p->step]);
    if (which == CUDA_GRID_squares)
        shared = cuda_squares_shared(e);
    if (which == CUDA_GRID_bulk)
        shared = CUDA_BULK_BYTES;
    cu_result r = CU_OK;
    if (is_unpacked(c, i))
        r = launch(e, c, i, dispatch_of(e, c, i, i + 1, CUDA_GRID_unpack, 0, false));
    return r == CU_OK ? launch(e, c, i, dispatch_of(e, c, i, i + 1, which, shared, false)) : r;
}

cu_result cuda_launch_one(const exec *e, const cuda_bucket *c, int32_t i)
{
    return c->packed && !c->apart ? launch(e, c, i, cuda_dispatch_packed(e, c, i))
                                  : launch_plain(e, c, i);
}

cu_result cuda_launch_all(exec *e, cuda_bucket *c)
{
    cu_result r = CU_OK;
    if (c->at_once && c->n_phase > 0)
        return launch_together(e, c);
    if (c->packed && c->n_phase > 0 && e->d->calls == CUDA_CALLS_GRAPH && !e->measure)
        return cuda_graph_launch(e, c);
    for (int32_t i = 0; i < c->n_phase && r == CU_OK; i++)
        r = cuda_launch_one(e, c, i);
    return r;
}
