/* cuda_launch.c - phases of a call as launches: all of them in one, whose blocks wait for each other, or each by itself. */
#include "runtime/exec/cuda_impl.h"

#include "kernels/cuda/flash_size.h"
#include "kernels/cuda/mma_size.h"

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

/* Phases [first, end) of a call in one launch. shared: bytes of a block that are in shared memory; 0: all are in the card's. */
static cu_result launch(exec *e, const cuda_bucket *c, int32_t first, int32_t end, cuda_grid which,
                        size_t shared)
{
    static const struct {
        unsigned threads, blocks;
    } grids[] = {
#define CUDA_GRID(name, threads, blocks) {threads, blocks},
        CUDA_GRIDS(CUDA_GRID)
#undef CUDA_GRID
    };
    const cuda_device *d = e->d;
    const cu_function f = which == CUDA_GRID_phases ? c->kernel->phases : d->grid[which];
    unsigned blocks = (unsigned)d->blocks * grids[which].blocks, threads = grids[which].threads;
    if (which == CUDA_GRID_phases)
        threads = (unsigned)cuda_phases_threads(c);
    bool together = which == CUDA_GRID_phases && c->at_once && end - first == c->n_phase;
    unsigned bytes = (unsigned)((which == CUDA_GRID_phases ? PACKS_BYTES : 0) + shared +
                                (together ? c->ring_bytes + c->batch_bytes : 0));
    cuda_run run = {.shape = card_of(e, c->shapes),
                    .step = card_of(e, c->steps),
                    .item = card_of(e, c->items),
                    .phase = card_of(e, c->phases),
                    .pack = together ? card_of(e, c->packs) : NULL,
                    .first = first,
                    .end = end,
                    .batch = (const kbatch *)(void *)(e->card + e->at.batch),
                    .lora = e->lora ? (const klora *)(void *)(e->card + e->at.lora) : NULL,
                    .unpacked = which != CUDA_GRID_phases && c->unpacks[first] ? e->unpacked : NULL,
                    .blocks = shared ? NULL : e->blocks,
                    .block_bytes = shared ? shared : e->block_bytes,
                    .local_bytes = c->local_bytes,
                    .ring = together ? c->ring_slots : 0,
                    .ring_x = together ? (uint32_t)c->ring_x : 0,
                    .ring_slot = (uint32_t)c->ring_slot,
                    .gate = gate_at(e, e->gates),
                    .gate_next = gate_at(e, e->gates + 1),
                    .ns = e->measure ? (uint64_t *)(void *)(e->card + e->at.ns) : NULL,
                    .n_step = c->plan->n_step,
                    .batch_bytes = together ? (uint32_t)c->batch_bytes : 0,
                    .halves = which != CUDA_GRID_phases && c->unpacks[first] == UNPACK_HALVES};
    if (e->cancel)
        run.cancel = (const uint32_t *)(uintptr_t)(e->host_seen + e->at.cancel);
    cuda_launch all = {run, e->call};
    cuda_tiles tiles;
    void *args[] = {&all, &tiles}; /* weft_bulk alone takes the second */
    if (which == CUDA_GRID_bulk) {
        cu_result r = cuda_tiles_of(e, c, &c->phases[first], (cuda_unpacking)c->unpacks[first],
                                    run.unpacked, &tiles);
        if (r != CU_OK)
            return r;
    }
    if (!together)
        return cuda_launch_after(e, f, blocks_for(e, &c->phases[first], which, blocks), threads,
                                 bytes, args);
    e->gates++;
    return d->driver->cuLaunchCooperativeKernel(f, blocks, 1, 1, threads, 1, 1, bytes, e->stream,
                                                args);
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

/* Phase i by itself. What lasts from one launch to the next cannot be in shared memory. */
cu_result cuda_launch_one(exec *e, const cuda_bucket *c, int32_t i)
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
    cu_result r = is_unpacked(c, i) ? launch(e, c, i, i + 1, CUDA_GRID_unpack, 0) : CU_OK;
    return r == CU_OK ? launch(e, c, i, i + 1, which, shared) : r;
}

cu_result cuda_launch_all(exec *e, const cuda_bucket *c)
{
    cu_result r = CU_OK;
    if (c->at_once && c->n_phase > 0)
        return launch(e, c, 0, c->n_phase, CUDA_GRID_phases, c->shared);
    for (int32_t i = 0; i < c->n_phase && r == CU_OK; i++)
        r = cuda_launch_one(e, c, i);
    return r;
}
