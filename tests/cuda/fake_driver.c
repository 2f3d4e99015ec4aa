/* fake_driver.c - see fake_driver.h. Results are those that the "CUDA Driver API" gives. */
#include "tests/cuda/fake_driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/cuda/fake_memory.h"
#include "tests/cuda/fake_module.h"

enum {
    CU_NOT_INITIALIZED = 3,
    CU_INVALID_DEVICE = 101,
    CU_INVALID_CONTEXT = 201,
    CU_INVALID_HANDLE = 400,
    CU_NOT_FOUND = 500,
    CU_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    SHARED_USUAL = 48 << 10, /* of a block, without being asked for */
    OPS_MAX = 4096
};

typedef enum { OP_IN, OP_OUT, OP_WITHIN, OP_SET, OP_LAUNCH, OP_CHOOSE, OP_TOKENS } op_kind;

typedef struct {
    op_kind kind;
    char *to;
    const char *from;
    void *snapshot; /* from, where that was memory that may change; freed with the op */
    size_t bytes;
    unsigned char value;
    union { /* the argument of a kernel */
        cuda_run run;
        cuda_choice choice;
        cuda_tokens tokens;
    };
    cu_function function;
    int blocks;
    size_t shared;
} op;

struct CUstream_st {
    struct CUstream_st *next;
    op ops[OPS_MAX];
    int first, n;
};

const weft_cuda_image fake_kernels = {.build = "tests",
                                      .image = fake_image,
                                      .image_bytes = 1,
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
    int64_t fail_after, lose_after;
    cu_result fail_with;
    bool initialised, lost, failed;
    cu_stream streams;
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

static void drop_op(op *o)
{
    free(o->snapshot);
    o->snapshot = NULL;
}

static void free_stream(cu_stream s)
{
    for (; s->n > 0; s->n--, s->first++)
        drop_op(&s->ops[s->first]);
    free(s);
}

void fake_reset(const fake_card *c)
{
    while (fake.streams) {
        cu_stream s = fake.streams;
        fake.streams = s->next;
        free_stream(s);
    }
    fake_memory_drop();
    fake_module_drop();
    memset(&fake, 0, sizeof fake);
    current = 0;
    fake.card = *c;
    fake.fail_after = fake.lose_after = -1;
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
    fake.lose_after = n;
    fake.lost = false;
}

fake_counts fake_seen(void)
{
    fake_counts c = fake.counts;
    c.card_bytes = fake_memory_bytes(true);
    c.host_bytes = fake_memory_bytes(false);
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
           c.modules == 0 && c.pushed == 0;
}

__attribute__((format(printf, 2, 3))) static cu_result misuse(cu_result r, const char *format, ...)
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
    misuse(CU_LAUNCH_FAILED, "%s", what);
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
        return misuse((cu_result)CU_NOT_INITIALIZED, "%s before cuInit", names[f]);
    if (needs & CONTEXT && current == 0)
        return misuse((cu_result)CU_INVALID_CONTEXT, "%s without a context", names[f]);
    return fake.lost && !(needs & WHEN_LOST) ? CU_LAUNCH_FAILED : CU_OK;
}

#define BEGIN(fn, needs)                                                                           \
    do {                                                                                           \
        cu_result begun = begin(FAKE_##fn, needs);                                                 \
        if (begun != CU_OK)                                                                        \
            return begun;                                                                          \
    } while (0)

/* ---- what runs on the card ---- */

/* Addresses of a step that are neither the card's nor of host memory that it can see. */
static bool step_is_there(const cuda_run *r, int32_t i)
{
    const cuda_step *s = &r->step[i];
    struct {
        const char *what;
        const void *p;
    } at[K_IN_MAX + K_OUT_MAX + 2];
    int n = 0;
    for (int j = 0; j < K_IN_MAX; j++)
        if (!((s->local | s->tile) >> j & 1)) {
            at[n].what = "an operand";
            at[n++].p = s->in[j];
        }
    for (int j = 0; j < K_OUT_MAX; j++)
        if (!((s->local | s->tile) >> (K_IN_MAX + j) & 1)) {
            at[n].what = "a result";
            at[n++].p = s->out[j];
        }
    at[n].what = "code", at[n++].p = s->code;
    at[n].what = "a cell", at[n++].p = s->cell;
    for (int j = 0; j < n; j++)
        if (at[j].p && !fake_memory_has(at[j].p)) {
            misuse(CU_LAUNCH_FAILED, "step %d: %s is at %p, which is not the card's", i, at[j].what,
                   at[j].p);
            return false;
        }
    return true;
}

static bool run_is_there(const cuda_run *r)
{
    if (!fake_memory_has(r->batch) || (r->lora && !fake_memory_has(r->lora))) {
        misuse(CU_LAUNCH_FAILED, "batch or adapters are not the card's");
        return false;
    }
    for (int32_t p = r->first; p < r->end; p++)
        for (int32_t i = 0; i < r->phase[p].n_item; i++) {
            const cuda_item *it = &r->item[r->phase[p].first + i];
            for (int32_t s = 0; s < it->n_step; s++)
                if (!step_is_there(r, it->first + s))
                    return false;
        }
    return true;
}

static cu_result run_launch(const op *o)
{
    char error[FIBRE_ERROR_MAX];
    if (!run_is_there(&o->run))
        return CU_LAUNCH_FAILED;
    if (o->run.end - o->run.first > 1 && *o->run.gate != 0)
        return misuse(CU_LAUNCH_FAILED, "the gate is %u before the launch", *o->run.gate);
    if (!fake_function_is(o->function))
        return misuse(CU_LAUNCH_FAILED, "a module was unloaded before it was run");
    const int threads = o->function->threads ? o->function->threads : fake.card.threads;
    if (!o->function->run(&o->run, o->blocks, threads, o->shared, error))
        return misuse(CU_LAUNCH_FAILED, "%s", error);
    return CU_OK;
}

static bool is_there(const char *what, const void *p)
{
    if (fake_memory_has(p))
        return true;
    misuse(CU_LAUNCH_FAILED, "%s at %p, which is not the card's", what, p);
    return false;
}

static cu_result run_choice(const op *o)
{
    char error[FIBRE_ERROR_MAX];
    const cuda_choice *a = &o->choice;
    if (!is_there("logits", a->logits + o->blocks * a->width - 1) ||
        !is_there("tokens", a->chosen + o->blocks - 1) ||
        !is_there("tokens for the host", a->host + o->blocks - 1) ||
        (a->how && !is_there("samplers", a->how + o->blocks - 1)))
        return CU_LAUNCH_FAILED;
    if (!emulated_choose(a, o->blocks, fake.card.threads, error))
        return misuse(CU_LAUNCH_FAILED, "%s", error);
    fake.counts.chosen += o->blocks;
    return CU_OK;
}

static cu_result run_tokens(const op *o)
{
    char error[FIBRE_ERROR_MAX];
    const cuda_tokens *a = &o->tokens;
    if (!is_there("tokens of a batch", a->token + a->n - 1) || !is_there("tokens", a->before))
        return CU_LAUNCH_FAILED;
    if (!emulated_tokens(a, fake.card.threads, error))
        return misuse(CU_LAUNCH_FAILED, "%s", error);
    return CU_OK;
}

static cu_result run_op(const op *o)
{
    switch (o->kind) {
    case OP_IN:
    case OP_OUT:
    case OP_WITHIN:
        memmove(o->to, o->snapshot ? o->snapshot : o->from, o->bytes);
        return CU_OK;
    case OP_SET:
        memset(o->to, o->value, o->bytes);
        return CU_OK;
    case OP_LAUNCH:
        return run_launch(o);
    case OP_CHOOSE:
        return run_choice(o);
    case OP_TOKENS:
        return run_tokens(o);
    }
    return CU_OK;
}

/* The next n operations of a stream. */
static cu_result drain(cu_stream s, int n)
{
    cu_result r = CU_OK;
    fake_memory_open(true);
    for (; n > 0 && s->n > 0; n--) {
        op *o = &s->ops[s->first++];
        s->n--;
        if (fake.lose_after >= 0 && fake.lose_after-- == 0)
            r = CU_LAUNCH_FAILED;
        else if (!fake.lost)
            r = run_op(o);
        fake.lost = fake.lost || r != CU_OK;
        drop_op(o);
    }
    fake_memory_open(false);
    if (s->n == 0)
        s->first = 0;
    return fake.lost ? CU_LAUNCH_FAILED : CU_OK;
}

/* What frees memory waits for everything first. */
static void drain_all(void)
{
    for (cu_stream s = fake.streams; s; s = s->next)
        drain(s, OPS_MAX);
}

static cu_result enqueue(cu_stream s, op o)
{
    bool there = false;
    for (cu_stream i = fake.streams; i; i = i->next)
        there = there || i == s;
    if (!there) {
        free(o.snapshot);
        return misuse((cu_result)CU_INVALID_HANDLE, "work for a stream that is not there");
    }
    if (s->first + s->n == OPS_MAX) { /* a driver waits then */
        cu_result r = drain(s, OPS_MAX);
        if (r != CU_OK) {
            free(o.snapshot);
            return r;
        }
    }
    s->ops[s->first + s->n++] = o;
    return CU_OK;
}

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
        *out_value = 9;
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
        return misuse(CU_INVALID_VALUE, "attribute %d is not known here", (int)which);
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
        return misuse((cu_result)CU_INVALID_CONTEXT, "a context released once too often");
    if (--fake.counts.contexts == 0 && fake_memory_bytes(true) + fake_memory_bytes(false) > 0)
        misuse(CU_OK, "the last context released with memory left");
    return CU_OK;
}

static cu_result fake_cuCtxPushCurrent(cu_context c)
{
    BEGIN(cuCtxPushCurrent, READY | WHEN_LOST);
    if (c != the_context || fake.counts.contexts == 0)
        return misuse((cu_result)CU_INVALID_CONTEXT, "a context pushed that is not there");
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
        return misuse(CU_INVALID_VALUE, "cuMemAlloc of nothing");
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
    drain_all();
    return p == 0 || fake_memory_give((void *)(uintptr_t)p, true)
               ? CU_OK
               : misuse(CU_INVALID_VALUE, "cuMemFree of what was not allocated");
}

static cu_result fake_cuMemHostAlloc(void **out_p, size_t bytes, unsigned flags)
{
    (void)flags;
    BEGIN(cuMemHostAlloc, CONTEXT);
    if (bytes == 0)
        return misuse(CU_INVALID_VALUE, "cuMemHostAlloc of nothing");
    *out_p = fake_memory_take(bytes, false);
    return *out_p ? CU_OK : CU_OUT_OF_MEMORY;
}

static cu_result fake_cuMemFreeHost(void *p)
{
    BEGIN(cuMemFreeHost, CONTEXT | WHEN_LOST);
    drain_all();
    return fake_memory_give(p, false)
               ? CU_OK
               : misuse(CU_INVALID_VALUE, "cuMemFreeHost of what was not allocated");
}

static cu_result fake_cuMemHostGetDevicePointer(cu_ptr *out_p, void *host, unsigned flags)
{
    BEGIN(cuMemHostGetDevicePointer, CONTEXT);
    if (flags != 0 || !fake_memory_is(host, 1, false))
        return misuse(CU_INVALID_VALUE, "no host memory that the card sees");
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
        return misuse(CU_INVALID_VALUE, "a copy of %zu bytes to where the card has none", bytes);
    op o = {.kind = OP_IN, .to = (char *)(uintptr_t)to, .from = from, .bytes = bytes};
    fake.counts.copies_in++;
    fake.counts.bytes_in += (int64_t)bytes;
    if (!fake_memory_is(from, bytes, false)) { /* pageable: read before the call returns */
        o.snapshot = malloc(bytes);
        if (!o.snapshot)
            return CU_OUT_OF_MEMORY;
        memcpy(o.snapshot, from, bytes);
    }
    return enqueue(s, o);
}

static cu_result fake_cuMemcpyDtoHAsync(void *to, cu_ptr from, size_t bytes, cu_stream s)
{
    BEGIN(cuMemcpyDtoHAsync, CONTEXT);
    if (!on_card(from, bytes))
        return misuse(CU_INVALID_VALUE, "a copy of %zu bytes from where the card has none", bytes);
    fake.counts.copies_out++;
    fake.counts.bytes_out += (int64_t)bytes;
    cu_result r = enqueue(
        s, (op){.kind = OP_OUT, .to = to, .from = (const char *)(uintptr_t)from, .bytes = bytes});
    /* into pageable memory: done before the call returns */
    return r == CU_OK && !fake_memory_is(to, bytes, false) ? drain(s, OPS_MAX) : r;
}

static cu_result fake_cuMemcpyDtoDAsync(cu_ptr to, cu_ptr from, size_t bytes, cu_stream s)
{
    BEGIN(cuMemcpyDtoDAsync, CONTEXT);
    if (!on_card(from, bytes) || !on_card(to, bytes))
        return misuse(CU_INVALID_VALUE, "a copy of %zu bytes that are not on the card", bytes);
    fake.counts.copies++;
    return enqueue(s, (op){.kind = OP_WITHIN,
                           .to = (char *)(uintptr_t)to,
                           .from = (const char *)(uintptr_t)from,
                           .bytes = bytes});
}

static cu_result fake_cuMemsetD8Async(cu_ptr to, unsigned char value, size_t n, cu_stream s)
{
    BEGIN(cuMemsetD8Async, CONTEXT);
    if (!on_card(to, n))
        return misuse(CU_INVALID_VALUE, "%zu bytes set that are not on the card", n);
    return enqueue(s,
                   (op){.kind = OP_SET, .to = (char *)(uintptr_t)to, .bytes = n, .value = value});
}

static cu_result fake_cuStreamCreate(cu_stream *out_s, unsigned flags)
{
    BEGIN(cuStreamCreate, CONTEXT);
    if (flags != CU_STREAM_NON_BLOCKING)
        return misuse(CU_INVALID_VALUE, "a stream that waits for stream 0");
    cu_stream s = calloc(1, sizeof *s);
    if (!s)
        return CU_OUT_OF_MEMORY;
    s->next = fake.streams;
    fake.streams = s;
    fake.counts.streams++;
    *out_s = s;
    return CU_OK;
}

static cu_result fake_cuStreamDestroy(cu_stream s)
{
    BEGIN(cuStreamDestroy, CONTEXT | WHEN_LOST);
    for (cu_stream *at = &fake.streams; *at; at = &(*at)->next)
        if (*at == s) {
            drain(s, OPS_MAX);
            *at = s->next;
            fake.counts.streams--;
            free_stream(s);
            return CU_OK;
        }
    return misuse((cu_result)CU_INVALID_HANDLE, "a stream destroyed that is not there");
}

static cu_result fake_cuStreamSynchronize(cu_stream s)
{
    BEGIN(cuStreamSynchronize, CONTEXT);
    fake.counts.waits++;
    return drain(s, OPS_MAX);
}

/* Each look finds one operation done. */
static cu_result fake_cuStreamQuery(cu_stream s)
{
    BEGIN(cuStreamQuery, CONTEXT);
    cu_result r = drain(s, 1);
    return r != CU_OK ? r : s->n > 0 ? CU_NOT_READY : CU_OK;
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
        return misuse((cu_result)CU_INVALID_HANDLE, "a module unloaded that is not there");
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
        (size_t)value > fake.card.shared_bytes)
        return CU_INVALID_VALUE;
    f->shared_asked = value;
    return CU_OK;
}

static cu_result fake_cuFuncGetAttribute(int *out_value, cu_function_attribute which, cu_function f)
{
    BEGIN(cuFuncGetAttribute, CONTEXT);
    if (!fake_function_is(f))
        return (cu_result)CU_INVALID_HANDLE;
    *out_value = which == CU_FUNC_SHARED_BYTES ? 1024 : f->shared_asked;
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

static cu_result launch(cu_function f, const unsigned *grid, unsigned threads, unsigned shared,
                        cu_stream s, void **args, bool together)
{
    if (!fake_function_is(f))
        return misuse((cu_result)CU_INVALID_HANDLE, "a launch of a function that is not there");
    size_t allowed = f->shared_asked > SHARED_USUAL ? (size_t)f->shared_asked : SHARED_USUAL;
    if (grid[0] == 0 || grid[1] != 1 || grid[2] != 1 || threads == 0 ||
        threads % FIBRE_WIDTH != 0 || threads > 1024)
        return misuse(CU_INVALID_VALUE, "a launch of %u x %u x %u blocks of %u threads", grid[0],
                      grid[1], grid[2], threads);
    if (shared > allowed)
        return misuse(CU_INVALID_VALUE, "a launch with %u bytes of shared memory, %zu are allowed",
                      shared, allowed);
    static const struct {
        op_kind kind;
        size_t bytes; /* of its argument */
    } kinds[] = {[FAKE_PHASES] = {OP_LAUNCH, sizeof(cuda_run)},
                 [FAKE_CHOOSE] = {OP_CHOOSE, sizeof(cuda_choice)},
                 [FAKE_TOKENS] = {OP_TOKENS, sizeof(cuda_tokens)}};
    op o = {.kind = kinds[f->kind].kind, .function = f, .blocks = (int)grid[0], .shared = shared};
    memcpy(&o.run, args[0], kinds[f->kind].bytes); /* kernels get a copy of their arguments */
    if (o.kind != OP_LAUNCH)
        return enqueue(s, o);
    fake.counts.launches++;
    fake.counts.phases += o.run.end - o.run.first;
    if (!together && o.run.end - o.run.first > 1)
        return misuse(CU_LAUNCH_FAILED, "phases that wait for blocks which need not be there");
    return enqueue(s, o);
}

static cu_result fake_cuLaunchKernel(cu_function f, unsigned grid_x, unsigned grid_y,
                                     unsigned grid_z, unsigned block_x, unsigned block_y,
                                     unsigned block_z, unsigned shared_bytes, cu_stream s,
                                     void **args, void **extra)
{
    BEGIN(cuLaunchKernel, CONTEXT);
    if (extra || block_y != 1 || block_z != 1)
        return misuse(CU_INVALID_VALUE, "cuLaunchKernel with extra arguments or axes");
    return launch(f, (unsigned[]){grid_x, grid_y, grid_z}, block_x, shared_bytes, s, args, false);
}

static cu_result fake_cuLaunchCooperativeKernel(cu_function f, unsigned grid_x, unsigned grid_y,
                                                unsigned grid_z, unsigned block_x, unsigned block_y,
                                                unsigned block_z, unsigned shared_bytes,
                                                cu_stream s, void **args)
{
    BEGIN(cuLaunchCooperativeKernel, CONTEXT);
    if (!fake.card.together || block_y != 1 || block_z != 1)
        return misuse(CU_INVALID_VALUE, "a cooperative launch that this card cannot do");
    if ((int)grid_x > fake.card.multiprocessors)
        return (cu_result)CU_COOPERATIVE_LAUNCH_TOO_LARGE;
    return launch(f, (unsigned[]){grid_x, grid_y, grid_z}, block_x, shared_bytes, s, args, true);
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
