/* device_cpu.c - the CPU as a device: memory is ordinary memory, plans are run by exec_*.c. */
#include "runtime/exec/exec_impl.h"

#include "runtime/base/mem.h"
#include "runtime/exec/weights_cpu.h"

static device the_cpu = {&device_kind_cpu};

device *device_cpu(void)
{
    return &the_cpu;
}

static weft_status cpu_open(weft_diag *dg, const char *which, device **out_d)
{
    if (which)
        return weft_fail(dg, W1605, WEFT_NOWHERE, "there is one cpu: no cpu:%s", which);
    *out_d = &the_cpu;
    return WEFT_OK;
}

static void cpu_close(device *d)
{
    (void)d;
}

static weft_status cpu_room(weft_diag *dg, device *d, memory_room *out_room)
{
    (void)dg, (void)d;
    *out_room = memory_available("");
    return WEFT_OK;
}

static weft_status cpu_alloc(weft_diag *dg, device *d, size_t bytes, void **out_p)
{
    (void)d;
    return exec_alloc(dg, bytes, out_p);
}

static void cpu_free(device *d, void *p)
{
    (void)d;
    mem_free(p);
}

static weft_status cpu_copy(weft_diag *dg, device *d, void *to, const void *from, size_t bytes)
{
    (void)dg, (void)d;
    memcpy(to, from, bytes);
    return WEFT_OK;
}

/* exec_submit has done it all. */
static weft_status cpu_wait(weft_diag *dg, exec *e)
{
    (void)dg, (void)e;
    return WEFT_OK;
}

static char *arena_at(const exec *e, size_t offset, size_t bytes)
{
    WEFT_ASSERT(offset <= e->bytes.arena && bytes <= e->bytes.arena - offset);
    return e->arena + offset;
}

static weft_status cpu_read(weft_diag *dg, const exec *e, size_t offset, void *to, size_t bytes)
{
    (void)dg;
    memcpy(to, arena_at(e, offset, bytes), bytes);
    return WEFT_OK;
}

static weft_status cpu_write(weft_diag *dg, exec *e, size_t offset, const void *from, size_t bytes)
{
    (void)dg;
    memcpy(arena_at(e, offset, bytes), from, bytes);
    return WEFT_OK;
}

static const void *cpu_host(const exec *e, size_t offset)
{
    return arena_at(e, offset, 0);
}

static void cpu_watch(exec *e, device_watch *hook, void *ctx)
{
    e->watch = hook;
    e->watch_ctx = ctx;
}

static run_stats cpu_stats(const exec *e)
{
    return (run_stats){.barriers = e->barriers, .wait_ns = e->prof ? e->prof->all_wait_ns : 0};
}

static void cpu_bytes(const exec *e, device_memory *out_m)
{
    *out_m = e->bytes;
}

const device_kind device_kind_cpu = {
    .name = "cpu",
    .host_memory = true,
    .open = cpu_open,
    .close = cpu_close,
    .room = cpu_room,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .copy_in = cpu_copy,
    .copy_out = cpu_copy,
    .copy = cpu_copy,
    .weights_load = cpu_weights_load,
    .weights_free = cpu_weights_free,
    .weights_need = cpu_weights_need,
    .weights_bytes = cpu_weights_bytes,
    .weights_check = cpu_weights_check,
    .need = exec_need,
    .load = exec_load,
    .unload = exec_unload,
    .bytes = cpu_bytes,
    .submit = exec_submit,
    .wait = cpu_wait,
    .read = cpu_read,
    .write = cpu_write,
    .host = cpu_host,
    .stats = cpu_stats,
    .profile = exec_profile_set,
    .profile_steps = exec_profile_steps,
    .watch = cpu_watch,
};
