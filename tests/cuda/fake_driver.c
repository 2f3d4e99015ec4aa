/* fake_driver.c - see fake_driver.h. Results are those that the "CUDA Driver API" gives. */
#include "tests/cuda/fake_driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/cuda/fake_graph.h"
#include "tests/cuda/fake_memory.h"
#include "tests/cuda/fake_module.h"
#include "tests/cuda/fake_stream.h"

enum {
    CU_NOT_INITIALIZED = 3,
    CU_INVALID_DEVICE = 101,
    CU_INVALID_CONTEXT = 201,
    CU_NOT_FOUND = 500,
    CU_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    SHARED_USUAL = 48 << 10, /* of a block, without being asked for; */
    SHARED_OWN = 1024        /* what each function has by itself */
};

const weft_cuda_image fake_kernels = {.build = "tests",
                                      .phases = {fake_image, 1},
                                      .grids = {fake_image, 1},
                                      .made_for = "the tests' card",
                                      .texts = &cuda_texts_here};
const fake_card fake_card_usual = {.cards = 1,
                                   .version = CUDA_VERSION_LEAST,
                                   .multiprocessors = 3,
                                   .threads = 64,
                                   .card_bytes = (size_t)1 << 30,
                                   .shared_bytes = 227 << 10,
                                   .together = true};

static struct {
    fake_card card;
    fake_counts counts;
    int64_t calls[FAKE_COUNT + 1];
    fake_fn fail_fn;
    int64_t fail_after;
    cu_result fail_with;
    bool initialised, failed;
    char misuse[1000];
} fake;

static __thread int current; /* contexts of this thread */

/* ---- what tests ask for ---- */

static const char *const names[] = {
#define CUDA_FN(name, ...) #name,
#include "runtime/exec/cuda_driver.def"
#undef CUDA_FN
};

const char *fake_name(fake_fn f)
{
    return f < FAKE_COUNT ? names[f] : "any";
}

void fake_reset(const fake_card *c)
{
    fake_stream_reset(c->threads);
    fake_memory_drop();
    fake_module_drop();
    fake_graph_drop();
    memset(&fake, 0, sizeof fake);
    current = 0;
    fake.card = *c;
    fake.fail_after = -1;
}

void fake_fail_at(fake_fn f, int64_t n, cu_result r)
{
    fake.fail_fn = f;
    fake.fail_after = n;
    fake.fail_with = r;
    fake.failed = false;
}

bool fake_has_failed(void)
{
    return fake.failed;
}

void fake_lose_at(int64_t n)
{
    fake_stream_lose_at(n);
}

fake_counts fake_seen(void)
{
    fake_counts c = fake.counts;
    c.card_bytes = fake_memory_bytes(true);
    c.host_bytes = fake_memory_bytes(false);
    c.chosen = fake_stream_chosen();
    return c;
}

int64_t fake_calls(fake_fn f)
{
    return fake.calls[f];
}

const char *fake_misuse(void)
{
    return fake.misuse[0] ? fake.misuse : NULL;
}

bool fake_holds_nothing(void)
{
    fake_counts c = fake_seen();
    return c.card_bytes + c.host_bytes == 0 && c.contexts == 0 && c.streams == 0 &&
           c.modules == 0 && c.pushed == 0 && fake_graphs() == 0;
}

cu_result fake_misused(cu_result r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!fake.misuse[0])
        vsnprintf(fake.misuse, sizeof fake.misuse, format, args);
    va_end(args);
    return r;
}

void emulated_fail(const char *what)
{
    fake_misused(CU_LAUNCH_FAILED, "%s", what);
}

/* ---- every call ---- */

enum {
    ANY = 0,
    READY = 1,
    CONTEXT = 2,
    WHEN_LOST = 4
}; /* what a function needs; if it works for a lost card */

static cu_result begin(fake_fn f, int needs)
{
    fake.calls[f]++;
    fake.calls[FAKE_COUNT]++;
    if (fake.fail_after >= 0 && (fake.fail_fn == f || fake.fail_fn == FAKE_COUNT) &&
        fake.fail_after-- == 0) {
        fake.failed = true;
        return fake.fail_with;
    }
    if (needs & (READY | CONTEXT) && !fake.initialised)
        return fake_misused((cu_result)CU_NOT_INITIALIZED, "%s before cuInit", names[f]);
    if (needs & CONTEXT && current == 0)
        return fake_misused((cu_result)CU_INVALID_CONTEXT, "%s without a context", names[f]);
    return fake_stream_lost() && !(needs & WHEN_LOST) ? CU_LAUNCH_FAILED : CU_OK;
}

#define BEGIN(fn, needs)                                                                           \
    do {                                                                                           \
        cu_result begun = begin(FAKE_##fn, needs);                                                 \
        if (begun != CU_OK)                                                                        \
            return begun;                                                                          \
    } while (0)

/* ---- the functions, in the order of cuda_driver.def ---- */

static cu_result fake_cuInit(unsigned flags)
{
    (void)flags;
    BEGIN(cuInit, ANY);
    fake.initialised = true;
    return fake.card.cards > 0 ? CU_OK : CU_NO_DEVICE;
}

static cu_result fake_cuDriverGetVersion(int *out_version)
{
    BEGIN(cuDriverGetVersion, ANY);
    *out_version = fake.card.version;
    return CU_OK;
}

static cu_result fake_cuGetErrorName(cu_result r, const char **out_name)
{
    static const struct {
        int r;
        const char *name;
    } known[] = {{CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
                 {CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
                 {CU_NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
                 {CU_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
                 {CU_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"}};
    BEGIN(cuGetErrorName, WHEN_LOST);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].r == (int)r) {
            *out_name = known[i].name;
            return CU_OK;
        }
    *out_name = NULL;
    return CU_INVALID_VALUE;
}

static cu_result fake_cuGetErrorString(cu_result r, const char **out_text)
{
    BEGIN(cuGetErrorString, WHEN_LOST);
    *out_text = r == CU_LAUNCH_FAILED ? "unspecified launch failure" : "an error";
    return CU_OK;
}

static cu_result fake_cuDeviceGetCount(int *out_n)
{
    BEGIN(cuDeviceGetCount, READY);
    *out_n = fake.card.cards;
    return CU_OK;
}

static cu_result fake_cuDeviceGet(cu_device *out_d, int index)
{
    BEGIN(cuDeviceGet, READY);
    if (index < 0 || index >= fake.card.cards)
        return (cu_result)CU_INVALID_DEVICE;
    *out_d = index;
    return CU_OK;
}

static cu_result fake_cuDeviceGetName(char *to, int bytes, cu_device d)
{
    BEGIN(cuDeviceGetName, READY);
    snprintf(to, (size_t)bytes, "a card of the tests");
    return d < fake.card.cards ? CU_OK : (cu_result)CU_INVALID_DEVICE;
}

static cu_result fake_cuDeviceTotalMem(size_t *out_bytes, cu_device d)
{
    BEGIN(cuDeviceTotalMem, READY);
    *out_bytes = fake.card.card_bytes;
    return d < fake.card.cards ? CU_OK : (cu_result)CU_INVALID_DEVICE;
}

static cu_result fake_cuDeviceGetAttribute(int *out_value, cu_attribute which, cu_device d)
{
    BEGIN(cuDeviceGetAttribute, READY);
    if (d < 0 || d >= fake.card.cards)
        return (cu_result)CU_INVALID_DEVICE;
    switch (which) {
    case CU_SHARED_PER_BLOCK:
        *out_value = SHARED_USUAL;
        return CU_OK;
    case CU_MULTIPROCESSORS:
        *out_value = fake.card.multiprocessors;
        return CU_OK;
    case CU_MEMORY_CLOCK_KHZ:
        *out_value = 1000000;
        return CU_OK;
    case CU_MEMORY_BUS_BITS:
        *out_value = 64;
        return CU_OK;
    case CU_CAPABILITY_MAJOR:
        *out_value = fake.card.old ? 8 : 9;
        return CU_OK;
    case CU_CAPABILITY_MINOR:
        *out_value = 0;
        return CU_OK;
    case CU_COOPERATIVE_LAUNCH:
        *out_value = fake.card.together;
        return CU_OK;
    case CU_SHARED_PER_BLOCK_OPTIN:
        *out_value = (int)fake.card.shared_bytes;
        return CU_OK;
    default:
        return fake_misused(CU_INVALID_VALUE, "attribute %d is not known here", (int)which);
    }
}

static struct CUctx_st *const the_context = (void *)&fake;

static cu_result fake_cuDevicePrimaryCtxRetain(cu_context *out_c, cu_device d)
{
    BEGIN(cuDevicePrimaryCtxRetain, READY);
    if (d < 0 || d >= fake.card.cards)
        return (cu_result)CU_INVALID_DEVICE;
    fake.counts.contexts++;
    *out_c = the_context;
    return CU_OK;
}

static cu_result fake_cuDevicePrimaryCtxRelease(cu_device d)
{
    (void)d;
    BEGIN(cuDevicePrimaryCtxRelease, READY | WHEN_LOST);
    if (fake.counts.contexts == 0)
        return fake_misused((cu_result)CU_INVALID_CONTEXT, "a context released once too often");
    if (--fake.counts.contexts == 0 && fake_memory_bytes(true) + fake_memory_bytes(false) > 0)
        fake_misused(CU_OK, "the last context released with memory left");
    return CU_OK;
}

static cu_result fake_cuCtxPushCurrent(cu_context c)
{
    BEGIN(cuCtxPushCurrent, READY | WHEN_LOST);
    if (c != the_context || fake.counts.contexts == 0)
        return fake_misused((cu_result)CU_INVALID_CONTEXT, "a context pushed that is not there");
    current++;
    fake.counts.pushed++;
    return CU_OK;
}

static cu_result fake_cuCtxPopCurrent(cu_context *out_c)
{
    BEGIN(cuCtxPopCurrent, READY | CONTEXT | WHEN_LOST);
    current--;
    fake.counts.pushed--;
    if (out_c)
        *out_c = the_context;
    return CU_OK;
}

static cu_result fake_cuMemGetInfo(size_t *out_free, size_t *out_all)
{
    BEGIN(cuMemGetInfo, CONTEXT);
    *out_free = fake.card.card_bytes - fake_memory_bytes(true);
    *out_all = fake.card.card_bytes;
    return CU_OK;
}

static cu_result fake_cuMemAlloc(cu_ptr *out_p, size_t bytes)
{
    BEGIN(cuMemAlloc, CONTEXT);
    if (bytes == 0)
        return fake_misused(CU_INVALID_VALUE, "cuMemAlloc of nothing");
    if (bytes > fake.card.card_bytes - fake_memory_bytes(true))
        return CU_OUT_OF_MEMORY;
    void *p = fake_memory_take(bytes, true);
    if (!p)
        return CU_OUT_OF_MEMORY;
    if (fake_memory_bytes(true) > fake.counts.card_peak)
        fake.counts.card_peak = fake_memory_bytes(true);
    *out_p = (cu_ptr)(uintptr_t)p;
    return CU_OK;
}

static cu_result fake_cuMemFree(cu_ptr p)
{
    BEGIN(cuMemFree, CONTEXT | WHEN_LOST);
    fake_stream_drain_all();
    return p == 0 || fake_memory_give((void *)(uintptr_t)p, true)
               ? CU_OK
               : fake_misused(CU_INVALID_VALUE, "cuMemFree of what was not allocated");
}

static cu_result fake_cuMemHostAlloc(void **out_p, size_t bytes, unsigned flags)
{
    (void)flags;
    BEGIN(cuMemHostAlloc, CONTEXT);
    if (bytes == 0)
        return fake_misused(CU_INVALID_VALUE, "cuMemHostAlloc of nothing");
    *out_p = fake_memory_take(bytes, false);
    return *out_p ? CU_OK : CU_OUT_OF_MEMORY;
}

static cu_result fake_cuMemFreeHost(void *p)
{
    BEGIN(cuMemFreeHost, CONTEXT | WHEN_LOST);
    fake_stream_drain_all();
    return fake_memory_give(p, false)
               ? CU_OK
               : fake_misused(CU_INVALID_VALUE, "cuMemFreeHost of what was not allocated");
}

static cu_result fake_cuMemHostGetDevicePointer(cu_ptr *out_p, void *host, unsigned flags)
{
    BEGIN(cuMemHostGetDevicePointer, CONTEXT);
    if (flags != 0 || !fake_memory_is(host, 1, false))
        return fake_misused(CU_INVALID_VALUE, "no host memory that the card sees");
    *out_p = (cu_ptr)(uintptr_t)host;
    return CU_OK;
}

static bool on_card(cu_ptr p, size_t bytes)
{
    return fake_memory_is((const void *)(uintptr_t)p, bytes, true);
}

static cu_result fake_cuMemcpyHtoDAsync(cu_ptr to, const void *from, size_t bytes, cu_stream s)
{
    BEGIN(cuMemcpyHtoDAsync, CONTEXT);
    if (!on_card(to, bytes))
        return fake_misused(CU_INVALID_VALUE, "a copy of %zu bytes to where the card has none",
                            bytes);
    fake_op o = {.kind = FAKE_OP_IN, .to = (char *)(uintptr_t)to, .from = from, .bytes = bytes};
    fake.counts.copies_in++;
    fake.counts.bytes_in += (int64_t)bytes;
    if (!fake_memory_is(from, bytes, false)) { /* pageable: read before the call returns */
        o.snapshot = malloc(bytes);
        if (!o.snapshot)
            return CU_OUT_OF_MEMORY;
        memcpy(o.snapshot, from, bytes);
    }
    return fake_stream_add(s, o);
}

static cu_result fake_cuMemcpyDtoHAsync(void *to, cu_ptr from, size_t bytes, cu_stream s)
{
    BEGIN(cuMemcpyDtoHAsync, CONTEXT);
    if (!on_card(from, bytes))
        return fake_misused(CU_INVALID_VALUE, "a copy of %zu bytes from where the card has none",
                            bytes);
    fake.counts.copies_out++;
    fake.counts.bytes_out += (int64_t)bytes;
    cu_result r = fake_stream_add(s, (fake_op){.kind = FAKE_OP_OUT,
                                               .to = to,
                                               .from = (const char *)(uintptr_t)from,
                                               .bytes = bytes});
    /* into pageable memory: done before the call returns */
    return r == CU_OK && !fake_memory_is(to, bytes, false) ? fake_stream_drain(s, FAKE_OPS_MAX) : r;
}

static cu_result fake_cuMemcpyDtoDAsync(cu_ptr to, cu_ptr from, size_t bytes, cu_stream s)
{
    BEGIN(cuMemcpyDtoDAsync, CONTEXT);
    if (!on_card(from, bytes) || !on_card(to, bytes))
        return fake_misused(CU_INVALID_VALUE, "a copy of %zu bytes that are not on the card",
                            bytes);
    fake.counts.copies++;
    return fake_stream_add(s, (fake_op){.kind = FAKE_OP_WITHIN,
                                        .to = (char *)(uintptr_t)to,
                                        .from = (const char *)(uintptr_t)from,
                                        .bytes = bytes});
}

static cu_result fake_cuMemsetD8Async(cu_ptr to, unsigned char value, size_t n, cu_stream s)
{
    BEGIN(cuMemsetD8Async, CONTEXT);
    if (!on_card(to, n))
        return fake_misused(CU_INVALID_VALUE, "%zu bytes set that are not on the card", n);
    return fake_stream_add(
        s, (fake_op){.kind = FAKE_OP_SET, .to = (char *)(uintptr_t)to, .bytes = n, .value = value});
}

static cu_result fake_cuStreamCreate(cu_stream *out_s, unsigned flags)
{
    BEGIN(cuStreamCreate, CONTEXT);
    if (flags != CU_STREAM_NON_BLOCKING)
        return fake_misused(CU_INVALID_VALUE, "a stream that waits for stream 0");
    cu_stream s = fake_stream_create();
    if (!s)
        return CU_OUT_OF_MEMORY;
    fake.counts.streams++;
    *out_s = s;
    return CU_OK;
}

static cu_result fake_cuStreamDestroy(cu_stream s)
{
    BEGIN(cuStreamDestroy, CONTEXT | WHEN_LOST);
    if (!fake_stream_destroy(s))
        return fake_misused((cu_result)CU_INVALID_HANDLE, "a stream destroyed that is not there");
    fake.counts.streams--;
    return CU_OK;
}

static cu_result fake_cuStreamSynchronize(cu_stream s)
{
    BEGIN(cuStreamSynchronize, CONTEXT);
    fake.counts.waits++;
    return fake_stream_drain(s, FAKE_OPS_MAX);
}

/* Each look finds one operation done. */
static cu_result fake_cuStreamQuery(cu_stream s)
{
    BEGIN(cuStreamQuery, CONTEXT);
    cu_result r = fake_stream_drain(s, 1);
    return r != CU_OK ? r : fake_stream_left(s) > 0 ? CU_NOT_READY : CU_OK;
}

static cu_result fake_cuModuleLoadData(cu_module *out_m, const void *image)
{
    BEGIN(cuModuleLoadData, CONTEXT);
    cu_module m = fake_module_open(image);
    if (!m)
        return CU_INVALID_IMAGE;
    fake.counts.modules++;
    *out_m = m;
    return CU_OK;
}

static cu_result fake_cuModuleUnload(cu_module m)
{
    BEGIN(cuModuleUnload, CONTEXT | WHEN_LOST);
    if (!fake_module_close(m))
        return fake_misused((cu_result)CU_INVALID_HANDLE, "a module unloaded that is not there");
    fake.counts.modules--;
    return CU_OK;
}

static cu_result fake_cuModuleGetFunction(cu_function *out_f, cu_module m, const char *name)
{
    BEGIN(cuModuleGetFunction, CONTEXT);
    cu_function f = fake_module_function(m, name);
    if (!f)
        return (cu_result)CU_NOT_FOUND;
    *out_f = f;
    return CU_OK;
}

static cu_result fake_cuFuncSetAttribute(cu_function f, cu_function_attribute which, int value)
{
    BEGIN(cuFuncSetAttribute, CONTEXT);
    if (!fake_function_is(f) || which != CU_FUNC_SHARED_DYNAMIC_MAX || value < 0 ||
        (size_t)value + SHARED_OWN > fake.card.shared_bytes)
        return CU_INVALID_VALUE;
    f->shared_asked = value;
    return CU_OK;
}

static cu_result fake_cuFuncGetAttribute(int *out_value, cu_function_attribute which, cu_function f)
{
    BEGIN(cuFuncGetAttribute, CONTEXT);
    if (!fake_function_is(f))
        return (cu_result)CU_INVALID_HANDLE;
    *out_value = which == CU_FUNC_SHARED_BYTES ? SHARED_OWN : f->shared_asked;
    return CU_OK;
}

static cu_result fake_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out_n, cu_function f,
                                                                  int threads, size_t shared_bytes)
{
    BEGIN(cuOccupancyMaxActiveBlocksPerMultiprocessor, CONTEXT);
    if (!fake_function_is(f))
        return (cu_result)CU_INVALID_HANDLE;
    *out_n = threads <= 1024 && shared_bytes <= fake.card.shared_bytes;
    return CU_OK;
}

/* What a launch would run. */
static cu_result launch_of(cu_function f, const unsigned *grid, unsigned threads, unsigned shared,
                           void **args, bool together, fake_op *out)
{
    if (!fake_function_is(f))
        return fake_misused((cu_result)CU_INVALID_HANDLE,
                            "a launch of a function that is not there");
    size_t allowed = f->shared_asked > SHARED_USUAL ? (size_t)f->shared_asked : SHARED_USUAL;
    if (grid[0] == 0 || grid[1] != 1 || grid[2] != 1 || threads == 0 ||
        threads % FIBRE_WIDTH != 0 || threads > 1024)
        return fake_misused(CU_INVALID_VALUE, "a launch of %u x %u x %u blocks of %u threads",
                            grid[0], grid[1], grid[2], threads);
    if (shared > allowed)
        return fake_misused(CU_INVALID_VALUE,
                            "a launch with %u bytes of shared memory, %zu are allowed", shared,
                            allowed);
    static const struct {
        fake_op_kind kind;
        size_t bytes; /* of its argument */
    } kinds[] = {[FAKE_PHASES] = {FAKE_OP_LAUNCH, sizeof(cuda_launch)},
                 [FAKE_CHOOSE] = {FAKE_OP_CHOOSE, sizeof(cuda_choice)},
                 [FAKE_BEST] = {FAKE_OP_BEST, sizeof(cuda_choice)},
                 [FAKE_TOKENS] = {FAKE_OP_TOKENS, sizeof(cuda_tokens)}};
    fake_op o = {.kind = kinds[f->kind].kind,
                 .function = f,
                 .blocks = (int)grid[0],
                 .more = f->threads == 0 && threads > CUDA_BLOCK ? (int)threads - CUDA_BLOCK : 0,
                 .shared = shared};
    memcpy(&o.all, args[0], kinds[f->kind].bytes); /* kernels get a copy of their arguments */
    if (o.kind == FAKE_OP_LAUNCH && !together && o.run.end - o.run.first > 1)
        return fake_misused(CU_LAUNCH_FAILED,
                            "phases that wait for blocks which need not be there");
    *out = o;
    return CU_OK;
}

static cu_result launch(cu_function f, const unsigned *grid, unsigned threads, unsigned shared,
                        cu_stream s, void **args, bool together)
{
    fake_op o;
    cu_result r = launch_of(f, grid, threads, shared, args, together, &o);
    if (r != CU_OK || o.kind != FAKE_OP_LAUNCH)
        return r == CU_OK ? fake_stream_add(s, o) : r;
    fake.counts.launches++;
    fake.counts.squares += f->run == emulated_squares || f->run == emulated_experts;
    fake.counts.halves += f->run == emulated_bulk && o.run.halves;
    fake.counts.codes += f->run == emulated_codes;
    fake.counts.phases += o.run.end - o.run.first;
    return fake_stream_add(s, o);
}

static cu_result fake_cuLaunchKernel(cu_function f, unsigned grid_x, unsigned grid_y,
                                     unsigned grid_z, unsigned block_x, unsigned block_y,
                                     unsigned block_z, unsigned shared_bytes, cu_stream s,
                                     void **args, void **extra)
{
    BEGIN(cuLaunchKernel, CONTEXT);
    if (extra || block_y != 1 || block_z != 1)
        return fake_misused(CU_INVALID_VALUE, "cuLaunchKernel with extra arguments or axes");
    return launch(f, (unsigned[]){grid_x, grid_y, grid_z}, block_x, shared_bytes, s, args, false);
}

static cu_result fake_cuLaunchKernelEx(const cu_launch *how, cu_function f, void **args,
                                       void **extra)
{
    BEGIN(cuLaunchKernelEx, CONTEXT);
    if (extra || how->block_y != 1 || how->block_z != 1)
        return fake_misused(CU_INVALID_VALUE, "cuLaunchKernelEx with extra arguments or axes");
    for (unsigned i = 0; i < how->n_attribute; i++)
        if (how->attribute[i].id != CU_LAUNCH_DEPENDENT || fake.card.old)
            return fake_misused(CU_INVALID_VALUE, "a launch attribute that this card has not");
    return launch(f, (unsigned[]){how->grid_x, how->grid_y, how->grid_z}, how->block_x,
                  how->shared_bytes, how->s, args, false);
}

static cu_result fake_cuLaunchCooperativeKernel(cu_function f, unsigned grid_x, unsigned grid_y,
                                                unsigned grid_z, unsigned block_x, unsigned block_y,
                                                unsigned block_z, unsigned shared_bytes,
                                                cu_stream s, void **args)
{
    BEGIN(cuLaunchCooperativeKernel, CONTEXT);
    if (!fake.card.together || block_y != 1 || block_z != 1)
        return fake_misused(CU_INVALID_VALUE, "a cooperative launch that this card cannot do");
    if ((int)grid_x > fake.card.multiprocessors)
        return (cu_result)CU_COOPERATIVE_LAUNCH_TOO_LARGE;
    return launch(f, (unsigned[]){grid_x, grid_y, grid_z}, block_x, shared_bytes, s, args, true);
}

static cu_result fake_cuGraphCreate(cu_graph *out_g, unsigned flags)
{
    BEGIN(cuGraphCreate, CONTEXT);
    if (flags != 0)
        return fake_misused(CU_INVALID_VALUE, "a graph with flags %u", flags);
    *out_g = fake_graph_create();
    return *out_g ? CU_OK : CU_OUT_OF_MEMORY;
}

/* Of a launch, behind all of what was added before. */
static cu_result fake_cuGraphAddNode(cu_node *out_n, cu_graph g, const cu_node *behind,
                                     const cu_edge *edge, size_t n, cu_node_params *what)
{
    BEGIN(cuGraphAddNode, CONTEXT);
    const cu_kernel_node *k = &what->kernel;
    const cu_edge none = {0};
    cu_edge e = n ? *edge : none;
    const bool overlaps = e.from_port == CU_PORT_PROGRAMMATIC && e.type == CU_EDGE_PROGRAMMATIC;
    if (what->type != CU_NODE_KERNEL || what->fill[0] || what->fill[1] || what->fill[2] ||
        what->last || k->extra || k->kernel || k->block_y != 1 || k->block_z != 1)
        return fake_misused(CU_INVALID_VALUE, "a node that is no launch of ours");
    if (overlaps)
        e.from_port = e.type = 0;
    if (memcmp(&e, &none, sizeof e) != 0 || (overlaps && fake.card.old))
        return fake_misused(CU_INVALID_VALUE, "an edge that this card has not");
    fake_op o;
    cu_result r = launch_of(k->f, (unsigned[]){k->grid_x, k->grid_y, k->grid_z}, k->block_x,
                            k->shared_bytes, k->args, false, &o);
    if (r != CU_OK)
        return r;
    if (o.kind != FAKE_OP_LAUNCH || n > 1 || !fake_graph_is(g))
        return fake_misused(CU_INVALID_VALUE, "a node that is none of a chain of phases");
    *out_n = fake_graph_add(g, n ? *behind : NULL, overlaps, &o);
    return *out_n ? CU_OK : fake_misused(CU_INVALID_VALUE, "a node that is behind another");
}

static cu_result fake_cuGraphInstantiateWithFlags(cu_graph_exec *out_x, cu_graph g,
                                                  unsigned long long flags)
{
    BEGIN(cuGraphInstantiateWithFlags, CONTEXT);
    if (flags != 0 || !fake_graph_is(g))
        return fake_misused(CU_INVALID_VALUE, "no graph, or one with flags %llu", flags);
    *out_x = fake_graph_instantiate(g);
    return *out_x ? CU_OK : CU_OUT_OF_MEMORY;
}

static cu_result fake_cuGraphLaunch(cu_graph_exec x, cu_stream s)
{
    BEGIN(cuGraphLaunch, CONTEXT);
    fake_graph_size size;
    cu_result r = fake_graph_launch(x, s, &size);
    fake.counts.launches++;
    fake.counts.graphs++;
    fake.counts.nodes += size.nodes;
    fake.counts.overlaps += size.overlaps;
    fake.counts.phases += size.phases;
    return r == (cu_result)CU_INVALID_HANDLE ? fake_misused(r, "a graph that is not there") : r;
}

static cu_result fake_cuGraphExecDestroy(cu_graph_exec x)
{
    BEGIN(cuGraphExecDestroy, CONTEXT | WHEN_LOST);
    return fake_graph_exec_destroy(x)
               ? CU_OK
               : fake_misused((cu_result)CU_INVALID_HANDLE, "a graph destroyed that is not there");
}

static cu_result fake_cuGraphDestroy(cu_graph g)
{
    BEGIN(cuGraphDestroy, CONTEXT | WHEN_LOST);
    return fake_graph_destroy(g)
               ? CU_OK
               : fake_misused((cu_result)CU_INVALID_HANDLE, "a graph destroyed that is not there");
}

/* Kernels that are emulated need no tables: this looks at what is asked for. */
static cu_result fake_cuTensorMapEncodeTiled(cu_tile *out_t, int type, unsigned axes, void *at,
                                             const uint64_t *size, const uint64_t *pitch,
                                             const uint32_t *box, const uint32_t *step,
                                             int interleave, int swizzle, int promotion, int fill)
{
    BEGIN(cuTensorMapEncodeTiled, CONTEXT);
    if (fake.card.old)
        return fake_misused(CU_INVALID_VALUE, "a table of tiles for a card that has none");
    if (type != CU_TILE_BF16 || axes != 2 || interleave != 0 || fill != 0 || step[0] != 1 ||
        step[1] != 1 || swizzle != CU_TILE_SWIZZLE_128 || promotion != CU_TILE_L2_256)
        return fake_misused(CU_INVALID_VALUE, "a table of tiles that no kernel reads");
    if (size[0] == 0 || size[1] == 0 || box[0] * 2 != 128 || box[1] == 0 || box[1] > 256)
        return fake_misused(CU_INVALID_VALUE, "a table of tiles of %u by %u", box[0], box[1]);
    if ((uintptr_t)at % 16 != 0 || pitch[0] % 16 != 0 || pitch[0] < size[0] * 2 ||
        (uintptr_t)out_t % 64 != 0)
        return fake_misused(CU_INVALID_VALUE, "a matrix that tiles cannot be copied from");
    *out_t = (cu_tile){.word = {(uint64_t)(uintptr_t)at}};
    return CU_OK;
}

const cuda_driver *fake_driver(void)
{
    static const cuda_driver driver = {
#define CUDA_FN(name, ...) .name = fake_##name,
#include "runtime/exec/cuda_driver.def"
#undef CUDA_FN
    };
    return &driver;
}
