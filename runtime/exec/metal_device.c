/* metal_device.c - a GPU opened, and the table of functions that a Metal device is. */
#include "runtime/exec/metal_impl.h"

#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"
#include <inttypes.h>
#include <stdlib.h>

/* The first GPUs that have all that shaders use: simdgroup_matrix, and addresses of buffers in memory. */
enum { FAMILY_LEAST = 7 };

/* ---- opening ---- */

/* All that was opened of it, from the last to the first. */
static void close_all(void *ctx)
{
    metal_device *d = ctx;
    WEFT_ASSERT(!d->held);
    metal_kernels_free(d);
    if (d->gpu)
        d->driver->close(d->gpu);
    pthread_mutex_destroy(&d->lock);
    mem_free(d);
}

static void device_closed(device *base)
{
    mem_scope_forget(close_all, metal_of(base));
    close_all(metal_of(base));
}

static weft_status find_gpu(weft_diag *dg, metal_device *d, int index)
{
    metal_why why;
    int n = d->driver->count();
    if (n == 0)
        return weft_fail(dg, W1614, WEFT_NOWHERE, "Metal finds no GPU");
    if (index >= n)
        return weft_fail(dg, W1605, WEFT_NOWHERE, "there is no metal:%d: this machine has %d GPU%s",
                         index, n, n == 1 ? "" : "s");
    snprintf(d->place, sizeof d->place, "on metal:%d", index);
    d->gpu = d->driver->open(index, &why);
    if (!d->gpu)
        return metal_fail(dg, d, "opening the GPU", &why);
    d->driver->facts(d->gpu, &d->facts);
    snprintf(d->place, sizeof d->place, "on metal:%d (%s)", index, d->facts.name);
    int cores = d->facts.cores > 0 ? d->facts.cores : METAL_CORES_USUAL;
    d->groups = cores * METAL_GROUPS_A_CORE;
    if (d->groups > METAL_GROUPS_MAX)
        d->groups = METAL_GROUPS_MAX;
    if (d->facts.family < FAMILY_LEAST)
        return weft_fail(dg, W0901, WEFT_NOWHERE,
                         "there are no kernels for the GPU %s: it is of family apple%d, apple%d is "
                         "needed, as M1's",
                         d->place, d->facts.family, FAMILY_LEAST);
    return WEFT_OK;
}

weft_status metal_device_open(weft_diag *dg, const metal_driver *driver, int index, device **out_d)
{
    metal_device *d = mem_try_kept(sizeof *d);
    if (!d)
        mem_exhausted(sizeof *d);
    *d = (metal_device){.base.kind = &device_kind_metal, .driver = driver};
    pthread_mutex_init(&d->lock, NULL);
    mem_scope_on_fail(close_all, d);
    weft_status st = find_gpu(dg, d, index);
    if (st == WEFT_OK)
        *out_d = &d->base;
    else
        device_closed(&d->base);
    return st;
}

static weft_status open_named(weft_diag *dg, const char *which, device **out_d)
{
    const metal_driver *driver;
    char *end = NULL;
    long index = which ? strtol(which, &end, 10) : 0;
    if (which && (which[0] < '0' || which[0] > '9' || *end || index > 1024))
        return weft_fail(dg, W1605, WEFT_NOWHERE, "there is no metal:%s: GPUs have numbers, from 0",
                         which);
    WEFT_TRY(metal_library(dg, &driver));
    return metal_device_open(dg, driver, (int)index, out_d);
}

device *metal_device_absent(void)
{
    static metal_device d = {.base.kind = &device_kind_metal,
                             .groups = METAL_CORES_USUAL * METAL_GROUPS_A_CORE,
                             .place = "on a GPU that is not here"};
    return &d.base;
}

weft_status metal_gpus(weft_diag *dg, metal_facts *out, int n_max, int *out_n)
{
    const metal_driver *driver;
    WEFT_TRY(metal_library(dg, &driver));
    int n = driver->count();
    for (int i = 0; i < n && i < n_max; i++) {
        metal_why why;
        metal_gpu *g = driver->open(i, &why);
        if (!g)
            return weft_fail(dg, W1614, WEFT_NOWHERE, "metal:%d cannot be opened: %s", i, why.text);
        driver->facts(g, &out[i]);
        driver->close(g);
    }
    *out_n = n;
    return WEFT_OK;
}

/* How fast its memory is Metal does not say. */
static device_rates gpu_rates(const device *base)
{
    return (device_rates){.blocks = metal_of(base)->groups};
}

/* ---- memory ---- */

static weft_status gpu_room(weft_diag *dg, device *base, memory_room *out_room)
{
    const metal_device *d = metal_of(base);
    uint64_t used = d->driver->allocated(d->gpu), all = d->facts.working_set;
    (void)dg;
    *out_room = (memory_room){used < all ? all - used : 0, d->place};
    return WEFT_OK;
}

static weft_status gpu_alloc(weft_diag *dg, device *d, size_t bytes, void **out_p)
{
    metal_block *b;
    WEFT_TRY(metal_take(dg, metal_of(d), bytes, &b));
    *out_p = b ? b->p : NULL;
    return WEFT_OK;
}

static void gpu_free(device *d, void *p)
{
    metal_give(metal_block_of(metal_of(d), p));
}

/* Between calls, when the GPU has nothing to do with it. */
static weft_status gpu_copy(weft_diag *dg, device *d, void *to, const void *from, size_t bytes)
{
    (void)dg, (void)d;
    if (bytes)
        memcpy(to, from, bytes);
    return WEFT_OK;
}

/* ---- execs ---- */

static char *arena_at(const exec *e, size_t offset, size_t bytes)
{
    WEFT_ASSERT(offset <= e->bytes.arena && bytes <= e->bytes.arena - offset);
    return e->arena->p + offset;
}

static weft_status exec_read(weft_diag *dg, const exec *e, size_t offset, void *to, size_t bytes)
{
    return gpu_copy(dg, &e->d->base, to, bytes ? arena_at(e, offset, bytes) : NULL, bytes);
}

static weft_status exec_write(weft_diag *dg, exec *e, size_t offset, const void *from, size_t bytes)
{
    return gpu_copy(dg, &e->d->base, bytes ? arena_at(e, offset, bytes) : NULL, from, bytes);
}

static const void *exec_host(const exec *e, size_t offset)
{
    return arena_at(e, offset, 0);
}

static void exec_watch(exec *e, device_watch *hook, void *ctx)
{
    e->watch = hook;
    e->watch_ctx = ctx;
}

static run_stats exec_stats(const exec *e)
{
    return (run_stats){.barriers = e->barriers};
}

static void exec_bytes(const exec *e, device_memory *out_m)
{
    *out_m = e->bytes;
}

const device_kind device_kind_metal = {
    .name = "metal",
    .host_memory = true,
    .holds_mapped = true,
    .beside_cpu = "cpu+metal",
    .absent = metal_device_absent,
    .rates = gpu_rates,
    .open = open_named,
    .close = device_closed,
    .room = gpu_room,
    .alloc = gpu_alloc,
    .free = gpu_free,
    .copy_in = gpu_copy,
    .copy_out = gpu_copy,
    .copy = gpu_copy,
    .weights_load = metal_weights_load,
    .weights_free = metal_weights_free,
    .weights_need = metal_weights_need,
    .weights_bytes = metal_weights_bytes,
    .weights_check = metal_weights_check,
    .need = metal_need,
    .load = metal_load,
    .unload = metal_unload,
    .bytes = exec_bytes,
    .submit = metal_submit,
    .wait = metal_wait,
    .choose = metal_choose,
    .chosen = metal_chosen,
    .drop = metal_drop,
    .read = exec_read,
    .write = exec_write,
    .host = exec_host,
    .stats = exec_stats,
    .profile = metal_profile_set,
    .profile_steps = metal_profile_steps,
    .watch = exec_watch,
};
