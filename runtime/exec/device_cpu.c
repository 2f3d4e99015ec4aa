/* device_cpu.c - the CPU as a device: memory is ordinary memory, plans are run by exec_*.c. */
#include "runtime/exec/exec_impl.h"
#include "runtime/base/mem.h"

#include <stdlib.h>

static weft_status cpu_probe(weft_diag *dg, memory_room *out_room)
{
    (void)dg;
    *out_room = memory_available("");
    return WEFT_OK;
}

static void cpu_free(void *p)
{
    mem_free(p);
}

static void cpu_copy(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

static const void *cpu_output(const exec *e, int32_t i)
{
    WEFT_ASSERT(e->last && i >= 0 && i < e->p->n_output);
    const plan_operand *o = &e->last->plan->output[i];
    WEFT_ASSERT(o->space == SPACE_ARENA);
    return e->arena + o->offset;
}

static void cpu_watch(exec *e, device_watch *hook, void *ctx)
{
    e->watch = hook;
    e->watch_ctx = ctx;
}

static void *cpu_activations(exec *e)
{
    return e->arena;
}

static run_stats cpu_stats(const exec *e)
{
    return (run_stats){.barriers = e->barriers, .wait_ns = e->prof ? e->prof->all_wait_ns : 0};
}

static void cpu_bytes(const exec *e, device_memory *out_m)
{
    *out_m = e->bytes;
}

const device device_cpu = {
    .name = "cpu",
    .probe = cpu_probe,
    .alloc = exec_alloc,
    .free = cpu_free,
    .copy_in = cpu_copy,
    .copy_out = cpu_copy,
    .copy = cpu_copy,
    .need = exec_need,
    .bytes = cpu_bytes,
    .load = exec_load,
    .unload = exec_unload,
    .run = exec_run,
    .output = cpu_output,
    .stats = cpu_stats,
    .profile = exec_profile_set,
    .profile_steps = exec_profile_steps,
    .watch = cpu_watch,
    .activations = cpu_activations,
};
