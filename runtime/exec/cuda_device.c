/* cuda_device.c - a card opened, and the table of functions that a CUDA device is. */
#include "runtime/exec/cuda_impl.h"

#include "kernels/cuda/mma_size.h"
#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"
#include <inttypes.h>
#include <stdlib.h>

/* ---- opening ---- */

/* All that was opened of it, from the last to the first. */
static void close_all(void *ctx)
{
    cuda_device *d = ctx;
    cu_context was;
    WEFT_ASSERT(!d->held);
    if (d->context && d->driver->cuCtxPushCurrent(d->context) == CU_OK) {
        if (d->copies)
            d->driver->cuStreamDestroy(d->copies);
        cuda_kernel_free(d, &d->all);
        if (d->grids)
            d->driver->cuModuleUnload(d->grids);
        d->driver->cuCtxPopCurrent(&was);
    }
    if (d->context)
        d->driver->cuDevicePrimaryCtxRelease(d->card);
    pthread_mutex_destroy(&d->lock);
    mem_free(d);
}

static void device_closed(device *base)
{
    mem_scope_forget(close_all, cuda_of(base));
    close_all(cuda_of(base));
}

/* A number of the card's, 0 where the driver does not know it. */
static int attribute(const cuda_driver *driver, cu_device card, cu_attribute which)
{
    int value = 0;
    return driver->cuDeviceGetAttribute(&value, which, card) == CU_OK ? value : 0;
}

static weft_status find_card(weft_diag *dg, cuda_device *d)
{
    int n = 0;
    char name[96] = "a card";
    cu_result r = d->driver->cuDeviceGetCount(&n);
    if (r != CU_OK)
        return cuda_fail(dg, d->driver, "", r, "counting the cards");
    if (d->index >= n)
        return weft_fail(dg, W1605, WEFT_NOWHERE, "there is no cuda:%d: this machine has %d card%s",
                         d->index, n, n == 1 ? "" : "s");
    snprintf(d->place, sizeof d->place, "on cuda:%d", d->index);
    r = d->driver->cuDeviceGet(&d->card, d->index);
    if (r == CU_OK)
        r = d->driver->cuDeviceGetName(name, (int)sizeof name, d->card);
    if (r != CU_OK)
        return cuda_fail(dg, d->driver, d->place, r, "opening the card");
    snprintf(d->place, sizeof d->place, "on cuda:%d (%s)", d->index, name);
    d->blocks = attribute(d->driver, d->card, CU_MULTIPROCESSORS);
    d->together = attribute(d->driver, d->card, CU_COOPERATIVE_LAUNCH) != 0;
    d->dependent = attribute(d->driver, d->card, CU_CAPABILITY_MAJOR) == 9;
    WEFT_TRY(cuda_calls_find(dg, d));
    if (d->blocks < 1)
        return weft_fail(dg, W1610, WEFT_NOWHERE, "the card %s has no multiprocessors", d->place);
    r = d->driver->cuDevicePrimaryCtxRetain(&d->context, d->card);
    if (r == CU_OK)
        return WEFT_OK;
    d->context = NULL;
    return cuda_fail(dg, d->driver, d->place, r, "opening the card");
}

int cuda_attribute(const cuda_device *d, cu_attribute which)
{
    return attribute(d->driver, d->card, which);
}

static cu_result find_function(const cuda_device *d, cuda_kernel *k)
{
    const cuda_driver *c = d->driver;
    int own = 0;
    cu_result r = c->cuModuleGetFunction(&k->phases, k->module, CUDA_KERNEL_NAME);
    if (r == CU_OK)
        r = c->cuFuncGetAttribute(&own, CU_FUNC_SHARED_BYTES, k->phases);
    int most = cuda_attribute(d, CU_SHARED_PER_BLOCK_OPTIN);
    if (r != CU_OK || most <= own + (int)PACKS_BYTES)
        return r;
    k->shared_bytes = (size_t)(most - own) - PACKS_BYTES;
    return c->cuFuncSetAttribute(k->phases, CU_FUNC_SHARED_DYNAMIC_MAX, most - own);
}

cu_result cuda_kernel_load(const cuda_device *d, const void *image, cuda_kernel *out_k)
{
    cuda_kernel k = {0};
    cu_result r = d->driver->cuModuleLoadData(&k.module, image);
    if (r != CU_OK)
        return r;
    r = find_function(d, &k);
    if (r == CU_OK)
        *out_k = k;
    else
        cuda_kernel_free(d, &k);
    return r;
}

void cuda_kernel_free(const cuda_device *d, cuda_kernel *k)
{
    if (k && k->module)
        d->driver->cuModuleUnload(k->module);
    if (k)
        *k = (cuda_kernel){0};
}

/* A function may ask for all shared memory that a block can have beside what it has by itself. */
static cu_result allow_most(cuda_device *d, cuda_grid which)
{
    const cuda_driver *c = d->driver;
    int own = 0;
    cu_result r = c->cuFuncGetAttribute(&own, CU_FUNC_SHARED_BYTES, d->grid[which]);
    int most = cuda_attribute(d, CU_SHARED_PER_BLOCK_OPTIN) - own;
    if (r != CU_OK || most <= 0)
        return r;
    d->shared_bytes[which] = (size_t)most;
    return c->cuFuncSetAttribute(d->grid[which], CU_FUNC_SHARED_DYNAMIC_MAX, most);
}

/* The functions of both images. */
static cu_result find_grids(cuda_device *d)
{
    static const cuda_grid large[] = {CUDA_GRID_experts, CUDA_GRID_flash, CUDA_GRID_codes,
                                      CUDA_GRID_squares, CUDA_GRID_bulk};
    static const char *const names[] = {
#define CUDA_GRID(name, threads, blocks) "weft_" #name,
        CUDA_GRIDS(CUDA_GRID)
#undef CUDA_GRID
    };
    const cuda_driver *c = d->driver;
    cu_result r = CU_OK;
    for (int i = 0; i < CUDA_GRID_COUNT && r == CU_OK; i++)
        r = c->cuModuleGetFunction(&d->grid[i], i == CUDA_GRID_phases ? d->all.module : d->grids,
                                   names[i]);
    for (size_t i = 0; i < sizeof large / sizeof *large && r == CU_OK; i++)
        r = allow_most(d, large[i]);
    d->bulk = attribute(c, d->card, CU_CAPABILITY_MAJOR) == 9 &&
              d->shared_bytes[CUDA_GRID_bulk] >= CUDA_BULK_BYTES;
    return r;
}

static weft_status load_module(weft_diag *dg, cuda_device *d)
{
    WEFT_TRY(cuda_enter(dg, d));
    cu_result r = cuda_kernel_load(d, d->image->phases.at, &d->all);
    if (r == CU_OK)
        r = d->driver->cuModuleLoadData(&d->grids, d->image->grids.at);
    if (r == CU_OK)
        r = find_grids(d);
    if (r == CU_OK)
        r = d->driver->cuModuleGetFunction(&d->choose, d->grids, CUDA_KERNEL_CHOOSE);
    if (r == CU_OK)
        r = d->driver->cuModuleGetFunction(&d->best, d->grids, CUDA_KERNEL_BEST);
    if (r == CU_OK)
        r = d->driver->cuModuleGetFunction(&d->tokens, d->grids, CUDA_KERNEL_TOKENS);
    bool other =
        r == CU_NO_BINARY_FOR_GPU || r == CU_INVALID_IMAGE || r == CU_UNSUPPORTED_PTX_VERSION;
    int major = attribute(d->driver, d->card, CU_CAPABILITY_MAJOR);
    int minor = attribute(d->driver, d->card, CU_CAPABILITY_MINOR);
    WEFT_TRY(cuda_leave(dg, d, other ? CU_OK : r, "loading the kernels"));
    if (other)
        return weft_fail(dg, W0901, WEFT_NOWHERE,
                         "there are no kernels for the card %s: it is sm_%d%d, or its driver is "
                         "too old for them",
                         d->place, major, minor);
    return cuda_stream(dg, d, &d->copies);
}

weft_status cuda_device_open(weft_diag *dg, const cuda_driver *driver, const weft_cuda_image *image,
                             const cuda_maker *maker, int index, device **out_d)
{
    cuda_device *d = mem_try_kept(sizeof *d);
    if (!d)
        mem_exhausted(sizeof *d);
    *d = (cuda_device){.base.kind = &device_kind_cuda,
                       .driver = driver,
                       .image = image,
                       .maker = maker,
                       .index = index};
    pthread_mutex_init(&d->lock, NULL);
    mem_scope_on_fail(close_all, d);
    weft_status st = find_card(dg, d);
    if (st == WEFT_OK)
        st = load_module(dg, d);
    if (st == WEFT_OK)
        *out_d = &d->base;
    else
        device_closed(&d->base);
    return st;
}

static weft_status open_named(weft_diag *dg, const char *which, device **out_d)
{
    const cuda_driver *driver;
    const weft_cuda_image *image;
    char *end = NULL;
    long index = which ? strtol(which, &end, 10) : 0;
    if (which && (which[0] < '0' || which[0] > '9' || *end || index > 1024))
        return weft_fail(dg, W1605, WEFT_NOWHERE, "there is no cuda:%s: cards have numbers, from 0",
                         which);
    WEFT_TRY(cuda_driver_load(dg, &driver));
    WEFT_TRY(cuda_library(dg, &image));
    return cuda_device_open(dg, driver, image, cuda_nvrtc_is_off() ? NULL : &cuda_maker_usual,
                            (int)index, out_d);
}

device *cuda_device_absent(void)
{
    static cuda_device d = {.base.kind = &device_kind_cuda,
                            .blocks = CUDA_MULTIPROCESSORS_USUAL,
                            .place = "on a card that is not here"};
    return &d.base;
}

weft_status cuda_cards(weft_diag *dg, cuda_card *out, int n_max, int *out_n)
{
    const cuda_driver *c;
    int n = 0;
    WEFT_TRY(cuda_driver_load(dg, &c));
    cu_result r = c->cuDeviceGetCount(&n);
    for (int i = 0; i < n && i < n_max && r == CU_OK; i++) {
        cu_device card;
        size_t all = 0;
        out[i] = (cuda_card){0};
        r = c->cuDeviceGet(&card, i);
        if (r == CU_OK)
            r = c->cuDeviceGetName(out[i].name, (int)sizeof out[i].name, card);
        if (r == CU_OK)
            r = c->cuDeviceTotalMem(&all, card);
        if (r != CU_OK)
            break;
        out[i].bytes = all;
        out[i].major = attribute(c, card, CU_CAPABILITY_MAJOR);
        out[i].minor = attribute(c, card, CU_CAPABILITY_MINOR);
        out[i].multiprocessors = attribute(c, card, CU_MULTIPROCESSORS);
    }
    if (r != CU_OK)
        return cuda_fail(dg, c, "", r, "asking for the cards");
    *out_n = n;
    return WEFT_OK;
}

static device_rates card_rates(const device *base)
{
    const cuda_device *d = cuda_of(base);
    device_rates r = {.blocks = d->blocks};
    if (!d->driver)
        return r;
    double clock = 1e3 * attribute(d->driver, d->card, CU_MEMORY_CLOCK_KHZ);
    double bytes = attribute(d->driver, d->card, CU_MEMORY_BUS_BITS) / 8.0;
    r.bandwidth = 2 * clock * bytes; /* both edges of the clock count */
    return r;
}

/* ---- memory ---- */

static weft_status card_room(weft_diag *dg, device *base, memory_room *out_room)
{
    const cuda_device *d = cuda_of(base);
    size_t free_bytes = 0, all = 0;
    WEFT_TRY(cuda_enter(dg, d));
    cu_result r = d->driver->cuMemGetInfo(&free_bytes, &all);
    WEFT_TRY(cuda_leave(dg, d, r, "asking for free memory"));
    *out_room = (memory_room){free_bytes, d->place};
    return WEFT_OK;
}

static weft_status card_alloc(weft_diag *dg, device *d, size_t bytes, void **out_p)
{
    return cuda_take(dg, cuda_of(d), bytes, false, out_p);
}

static void card_free(device *d, void *p)
{
    cuda_give(cuda_of(d), p);
}

static weft_status card_host_alloc(weft_diag *dg, device *d, size_t bytes, void **out_p)
{
    return cuda_take(dg, cuda_of(d), bytes, true, out_p);
}

/* Until what was copied is there. */
static weft_status copied(weft_diag *dg, const cuda_device *d, cu_stream s, cu_result r,
                          const char *doing)
{
    if (r == CU_OK)
        r = d->driver->cuStreamSynchronize(s);
    return cuda_leave(dg, d, r, doing);
}

static weft_status copy_to(weft_diag *dg, const cuda_device *d, cu_stream s, void *to,
                           const void *from, size_t bytes)
{
    if (bytes == 0)
        return WEFT_OK;
    WEFT_TRY(cuda_enter(dg, d));
    cu_result r = d->driver->cuMemcpyHtoDAsync(cuda_at(to), from, bytes, s);
    return copied(dg, d, s, r, "copying to the card");
}

static weft_status copy_from(weft_diag *dg, const cuda_device *d, cu_stream s, void *to,
                             const void *from, size_t bytes)
{
    if (bytes == 0)
        return WEFT_OK;
    WEFT_TRY(cuda_enter(dg, d));
    cu_result r = d->driver->cuMemcpyDtoHAsync(to, cuda_at(from), bytes, s);
    return copied(dg, d, s, r, "copying from the card");
}

static weft_status card_copy_in(weft_diag *dg, device *d, void *to, const void *from, size_t bytes)
{
    return copy_to(dg, cuda_of(d), cuda_of(d)->copies, to, from, bytes);
}

static weft_status card_copy_out(weft_diag *dg, device *d, void *to, const void *from, size_t bytes)
{
    return copy_from(dg, cuda_of(d), cuda_of(d)->copies, to, from, bytes);
}

static weft_status card_copy(weft_diag *dg, device *base, void *to, const void *from, size_t bytes)
{
    const cuda_device *d = cuda_of(base);
    if (bytes == 0)
        return WEFT_OK;
    WEFT_TRY(cuda_enter(dg, d));
    cu_result r = d->driver->cuMemcpyDtoDAsync(cuda_at(to), cuda_at(from), bytes, d->copies);
    return copied(dg, d, d->copies, r, "copying on the card");
}

/* ---- execs ---- */

static char *arena_at(const exec *e, size_t offset, size_t bytes)
{
    WEFT_ASSERT(offset <= e->bytes.arena && bytes <= e->bytes.arena - offset);
    return e->arena + offset;
}

static weft_status exec_read(weft_diag *dg, const exec *e, size_t offset, void *to, size_t bytes)
{
    return copy_from(dg, e->d, e->stream, to, arena_at(e, offset, bytes), bytes);
}

static weft_status exec_write(weft_diag *dg, exec *e, size_t offset, const void *from, size_t bytes)
{
    return copy_to(dg, e->d, e->stream, arena_at(e, offset, bytes), from, bytes);
}

static void exec_watch(exec *e, device_watch *hook, void *ctx)
{
    e->watch = hook;
    e->watch_ctx = ctx;
}

static run_stats exec_stats(const exec *e)
{
    run_stats s = {.barriers = e->barriers};
    for (int32_t i = 0; i < e->p->n_bucket; i++)
        s.images += e->buckets[i].made.module != NULL;
    return s;
}

static void exec_bytes(const exec *e, device_memory *out_m)
{
    *out_m = e->bytes;
}

const device_kind device_kind_cuda = {
    .name = "cuda",
    .beside_cpu = "cpu+cuda",
    .absent = cuda_device_absent,
    .rates = card_rates,
    .open = open_named,
    .close = device_closed,
    .room = card_room,
    .alloc = card_alloc,
    .free = card_free,
    .host_alloc = card_host_alloc,
    .host_free = card_free,
    .copy_in = card_copy_in,
    .copy_out = card_copy_out,
    .copy = card_copy,
    .weights_load = cuda_weights_load,
    .weights_free = cuda_weights_free,
    .weights_need = cuda_weights_need,
    .weights_bytes = cuda_weights_bytes,
    .weights_check = cuda_weights_check,
    .need = cuda_need,
    .load = cuda_load,
    .unload = cuda_unload,
    .bytes = exec_bytes,
    .submit = cuda_submit,
    .wait = cuda_wait,
    .choose = cuda_choose,
    .chosen = cuda_chosen,
    .drop = cuda_drop,
    .read = exec_read,
    .write = exec_write,
    .stats = exec_stats,
    .profile = cuda_profile_set,
    .profile_steps = cuda_profile_steps,
    .watch = exec_watch,
};
