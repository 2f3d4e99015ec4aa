// test_metal_fake.cpp - the Metal of the tests, through Apple's own Metal-cpp: what works, every rule broken once, what can be planted.
#define NS_PRIVATE_IMPLEMENTATION
#define MTL_PRIVATE_IMPLEMENTATION
#include <Foundation/Foundation.hpp>
#include <Metal/Metal.hpp>

#include "tests/metal/metal_fake.h"

#include <check.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <unistd.h>
#include <vector>

// ---- what all tests have ----

static const char SOURCE[] = R"(#include <metal_stdlib>
using namespace metal;
#line 1 "add.metal"
constant uint more [[function_constant(0)]];
kernel void add(device const float *x [[buffer(0)]], device float *y [[buffer(1)]], constant float &c [[buffer(2)]],
                uint i [[thread_position_in_grid]])
{
    y[i] = x[i] + c + more;
}
kernel void far(device float *const device *p [[buffer(0)]], uint i [[thread_position_in_grid]])
{
    p[0][i] = i;
}
kernel void past(device float *y [[buffer(0)]], uint i [[thread_position_in_grid]])
{
    y[i + 64] = i;
}
[[max_total_threads_per_threadgroup(64)]] kernel void small(device float *y [[buffer(0)]],
                                                             threadgroup float *t [[threadgroup(0)]],
                                                             uint i [[thread_position_in_grid]])
{
    t[i] = i;
    y[i] = t[i];
}
kernel void wide(device float *y [[buffer(0)]], uint i [[thread_position_in_threadgroup]])
{
    threadgroup float t[8192];
    t[i] = i;
    y[i] = t[i];
}
)";

enum { N = 64 };

// A device with what most tests need. Everything is released with it.
struct bench {
    NS::AutoreleasePool *pool = NS::AutoreleasePool::alloc()->init();
    MTL::Device *device = MTL::CreateSystemDefaultDevice();
    MTL::CommandQueue *queue = device->newCommandQueue();
    MTL::Library *library = nullptr;
    std::vector<NS::Object *> owned;
    bench()
    {
        metal_fake_collect();
        NS::Error *error = nullptr;
        library = device->newLibrary(text(SOURCE), nullptr, &error);
        ck_assert_msg(library != nullptr, "%s", error ? words(error) : "no error");
    }
    ~bench()
    {
        for (NS::Object *o : owned)
            reinterpret_cast<MTL::Buffer *>(o)->release();
        library->release();
        queue->release();
        pool->release();
        device->release();
    }
    static NS::String *text(const char *t)
    {
        return NS::String::string(t, NS::UTF8StringEncoding);
    }
    static const char *words(NS::Error *e)
    {
        return e->localizedDescription()->utf8String();
    }
    template <class T> T *own(T *o)
    {
        owned.push_back(reinterpret_cast<NS::Object *>(o));
        return o;
    }
    MTL::Buffer *buffer(size_t bytes = N * sizeof(float),
                        MTL::ResourceOptions o = MTL::ResourceStorageModeShared)
    {
        MTL::Buffer *b = own(device->newBuffer(bytes, o));
        memset(b->contents(), 0, bytes);
        return b;
    }
    MTL::ComputePipelineState *pipeline(const char *name, uint32_t more = 0)
    {
        NS::Error *error = nullptr;
        MTL::FunctionConstantValues *v = MTL::FunctionConstantValues::alloc()->init();
        v->setConstantValue(&more, MTL::DataTypeUInt, NS::UInteger(0));
        MTL::Function *f = library->newFunction(text(name), v, &error);
        ck_assert_msg(f != nullptr, "%s", error ? words(error) : name);
        MTL::ComputePipelineState *p = device->newComputePipelineState(f, &error);
        ck_assert_msg(p != nullptr, "%s", error ? words(error) : name);
        f->release();
        v->release();
        return own(p);
    }
    typedef std::function<void(MTL::ComputeCommandEncoder *)> encoding;
    // One command buffer; "" when it is completed, else its error.
    std::string run(const encoding &f, bool concurrent = true)
    {
        MTL::CommandBuffer *c = queue->commandBuffer();
        MTL::ComputeCommandEncoder *e = c->computeCommandEncoder(
            concurrent ? MTL::DispatchTypeConcurrent : MTL::DispatchTypeSerial);
        f(e);
        e->endEncoding();
        c->commit();
        c->waitUntilCompleted();
        if (c->status() == MTL::CommandBufferStatusCompleted)
            return "";
        return c->error() ? words(c->error()) : "no error";
    }
};

static MTL::Size size(NS::UInteger n)
{
    return MTL::Size(n, 1, 1);
}

static void add(MTL::ComputeCommandEncoder *e, MTL::ComputePipelineState *p, MTL::Buffer *x,
                MTL::Buffer *y, float c)
{
    e->setComputePipelineState(p);
    e->setBuffer(x, 0, 0);
    e->setBuffer(y, 0, 1);
    e->setBytes(&c, sizeof c, 2);
    e->dispatchThreadgroups(size(2), size(N / 2));
}

static void has(const std::string &text, const char *words)
{
    ck_assert_msg(text.find(words) != std::string::npos, "'%s' lacks: %s", text.c_str(), words);
}

static void good(const std::string &wrong)
{
    ck_assert_msg(wrong.empty(), "%s", wrong.c_str());
}

static float first(MTL::Buffer *b)
{
    return *static_cast<float *>(b->contents());
}

// ---- what works ----

START_TEST(facts)
{
    bench b;
    NS::Array *all = MTL::CopyAllDevices();
    ck_assert_uint_eq(all->count(), 1);
    ck_assert_ptr_eq(all->object(0), b.device);
    all->release();
    ck_assert_str_eq(b.device->name()->utf8String(), "Apple GPU of the tests");
    ck_assert(b.device->hasUnifiedMemory());
    ck_assert(b.device->supportsFamily(MTL::GPUFamilyApple9));
    metal_fake_set("family", 6);
    ck_assert(b.device->supportsFamily(MTL::GPUFamilyApple6));
    ck_assert(!b.device->supportsFamily(MTL::GPUFamilyApple7));
    metal_fake_set("working_set", 1 << 20);
    ck_assert_uint_eq(b.device->recommendedMaxWorkingSetSize(), 1 << 20);
    ck_assert_uint_eq(b.device->maxThreadsPerThreadgroup().height, 1024); // a structure is returned
    ck_assert_uint_eq(b.library->functionNames()->count(), 5);
    metal_fake_set("devices", 0);
    ck_assert_ptr_null(MTL::CreateSystemDefaultDevice());
    ck_assert_str_eq(metal_fake_told(), "");
}
END_TEST

START_TEST(runs)
{
    bench b;
    metal_fake_set("race", 0);
    MTL::Buffer *x = b.buffer(), *y = b.buffer(), *z = b.buffer();
    MTL::ComputePipelineState *p = b.pipeline("add", 3);
    good(b.run([&](MTL::ComputeCommandEncoder *e) {
        add(e, p, x, y, 1);
        e->memoryBarrier(MTL::BarrierScopeBuffers);
        add(e, p, y, z, 2);
    }));
    ck_assert_float_eq(first(z), 9);
    // A grid that is no multiple of a threadgroup.
    good(b.run([&](MTL::ComputeCommandEncoder *e) {
        float c = 1;
        e->setComputePipelineState(p);
        e->setBuffer(x, 0, 0);
        e->setBuffer(y, 4 * 8, 1);
        e->setBytes(&c, sizeof c, 2);
        e->dispatchThreads(size(N - 8), size(48));
    }));
    ck_assert_float_eq(static_cast<float *>(y->contents())[N - 1], 4);
    ck_assert_str_eq(metal_fake_told(), "");
}
END_TEST

START_TEST(waits)
{
    bench b;
    MTL::Buffer *x = b.buffer(), *y = b.buffer();
    MTL::ComputePipelineState *p = b.pipeline("add");
    MTL::CommandBuffer *c = b.queue->commandBuffer();
    MTL::ComputeCommandEncoder *e = c->computeCommandEncoder();
    static int over;
    over = 0;
    c->addCompletedHandler(std::function<void(MTL::CommandBuffer *)>(
        [](MTL::CommandBuffer *done) { over = int(done->status()); }));
    add(e, p, x, y, 1);
    e->endEncoding();
    c->commit();
    ck_assert_float_eq(first(y), 0); // nothing is there before somebody waits
    ck_assert_int_eq(over, 0);
    ck_assert_uint_ne(c->status(), MTL::CommandBufferStatusCompleted);
    ck_assert_uint_eq(c->status(), MTL::CommandBufferStatusCompleted); // the second question
    ck_assert_int_eq(over, int(MTL::CommandBufferStatusCompleted));
    ck_assert(c->GPUEndTime() > c->GPUStartTime());
    ck_assert_float_eq(first(y), 1);
    ck_assert_str_eq(metal_fake_told(), "");
}
END_TEST

START_TEST(memory)
{
    bench b;
    metal_fake_count before, now;
    metal_fake_counts(&before);
    const size_t page = size_t(sysconf(_SC_PAGESIZE));
    void *own = aligned_alloc(page, 2 * page);
    static bool freed;
    freed = false;
    MTL::Buffer *w = b.device->newBuffer(own, 2 * page, MTL::ResourceStorageModeShared,
                                         ^(void *p, NS::UInteger n) {
                                           freed = n > 0;
                                           free(p);
                                         });
    ck_assert_ptr_eq(w->contents(), own);
    metal_fake_counts(&now);
    ck_assert_int_eq(now.wrapped_bytes, int64_t(2 * page));
    w->release();
    ck_assert(freed);

    MTL::Buffer *x = b.device->newBuffer("weft", 4, MTL::ResourceStorageModeShared);
    ck_assert_int_eq(memcmp(x->contents(), "weft", 4), 0);
    ck_assert_uint_ne(x->gpuAddress(), reinterpret_cast<uint64_t>(x->contents()));
    x->release();

    MTL::HeapDescriptor *how = MTL::HeapDescriptor::alloc()->init();
    how->setSize(1 << 16);
    how->setStorageMode(MTL::StorageModeShared);
    MTL::Heap *h = b.device->newHeap(how);
    how->release();
    MTL::Buffer *in = h->newBuffer(1000, MTL::ResourceStorageModeShared),
                *next = h->newBuffer(1000, MTL::ResourceStorageModeShared);
    ck_assert_uint_eq(next->gpuAddress() - in->gpuAddress(), 1024);
    ck_assert_ptr_null(h->newBuffer(1 << 16, MTL::ResourceStorageModeShared));
    metal_fake_counts(&now);
    ck_assert_int_eq(now.heap_bytes, 1 << 16);
    in->release();
    next->release();
    h->release();
    metal_fake_counts(&now);
    ck_assert_int_eq(now.buffers, before.buffers);
    ck_assert_int_eq(now.buffer_bytes + now.wrapped_bytes + now.heap_bytes, before.buffer_bytes);
    ck_assert_str_eq(metal_fake_told(), "");
}
END_TEST

// All objects of a bench go with it; the device stays.
START_TEST(balance)
{
    metal_fake_count before, after;
    {
        bench b;
    }
    metal_fake_counts(&before);
    {
        bench b;
        MTL::Buffer *x = b.buffer(), *y = b.buffer();
        MTL::ComputePipelineState *p = b.pipeline("add");
        b.run([&](MTL::ComputeCommandEncoder *e) { add(e, p, x, y, 1); });
    }
    metal_fake_counts(&after);
    ck_assert_int_eq(after.objects, before.objects);
    ck_assert_int_eq(after.without_pool, 0);
    ck_assert_int_eq(after.dispatches, before.dispatches + 1);
}
END_TEST

// ---- rules ----

typedef void rule(bench &b, MTL::ComputeCommandEncoder *e);
struct rule_row {
    const char *told;
    rule *breaks;
};

static const rule_row RULES[] = {
    {"dispatch: no pipeline is set",
     [](bench &, MTL::ComputeCommandEncoder *e) { e->dispatchThreadgroups(size(1), size(32)); }},
    {"dispatch: buffer(0) of past is not bound",
     [](bench &b, MTL::ComputeCommandEncoder *e) {
         e->setComputePipelineState(b.pipeline("past"));
         e->dispatchThreadgroups(size(1), size(32));
     }},
    {"dispatch: threadgroup(0) of small has no length",
     [](bench &b, MTL::ComputeCommandEncoder *e) {
         e->setComputePipelineState(b.pipeline("small"));
         e->setBuffer(b.buffer(), 0, 0);
         e->dispatchThreadgroups(size(1), size(32));
     }},
    {"dispatch: 65 threads in a threadgroup; small takes 1 to 64",
     [](bench &b, MTL::ComputeCommandEncoder *e) {
         e->setComputePipelineState(b.pipeline("small"));
         e->setBuffer(b.buffer(), 0, 0);
         e->setThreadgroupMemoryLength(512, 0);
         e->dispatchThreadgroups(size(1), size(65));
     }},
    {"dispatch: 32784 bytes of threadgroup memory; 32768 are possible",
     [](bench &b, MTL::ComputeCommandEncoder *e) {
         e->setComputePipelineState(b.pipeline("wide"));
         e->setBuffer(b.buffer(), 0, 0);
         e->setThreadgroupMemoryLength(16, 0);
         e->dispatchThreadgroups(size(1), size(32));
     }},
    {"dispatch: the grid is empty",
     [](bench &b, MTL::ComputeCommandEncoder *e) {
         e->setComputePipelineState(b.pipeline("wide"));
         e->setBuffer(b.buffer(), 0, 0);
         e->dispatchThreadgroups(size(0), size(32));
     }},
    {"setThreadgroupMemoryLength: 8 is not a multiple of 16",
     [](bench &, MTL::ComputeCommandEncoder *e) { e->setThreadgroupMemoryLength(8, 0); }},
    {"setBuffer: offset 256 is not below the length 256",
     [](bench &b, MTL::ComputeCommandEncoder *e) { e->setBuffer(b.buffer(), 256, 0); }},
    {"setBuffer: offset 2 is not a multiple of 4",
     [](bench &b, MTL::ComputeCommandEncoder *e) { e->setBuffer(b.buffer(), 2, 0); }},
    {"setBuffer: index 31 is not below 31",
     [](bench &b, MTL::ComputeCommandEncoder *e) { e->setBuffer(b.buffer(), 0, 31); }},
    {"setBytes: 5000 bytes; 1 to 4096 are possible",
     [](bench &, MTL::ComputeCommandEncoder *e) {
         static char bytes[5000];
         e->setBytes(bytes, sizeof bytes, 0);
     }},
    {"setBytes: the encoder has ended",
     [](bench &, MTL::ComputeCommandEncoder *e) {
         e->endEncoding();
         e->setBytes("", 1, 0);
     }},
    {"dispatch: the encoder has ended",
     [](bench &, MTL::ComputeCommandEncoder *e) {
         e->endEncoding();
         e->dispatchThreadgroups(size(1), size(32));
     }},
    {"endEncoding: the encoder has ended",
     [](bench &, MTL::ComputeCommandEncoder *e) { e->endEncoding(); }},
    {"computeCommandEncoder: another encoder has not ended",
     [](bench &b, MTL::ComputeCommandEncoder *) {
         MTL::CommandBuffer *c = b.queue->commandBuffer();
         MTL::ComputeCommandEncoder *first = c->computeCommandEncoder();
         c->computeCommandEncoder()->endEncoding();
         first->endEncoding();
     }},
    {"computeCommandEncoder: the command buffer is committed",
     [](bench &b, MTL::ComputeCommandEncoder *) {
         MTL::CommandBuffer *c = b.queue->commandBuffer();
         c->commit();
         c->computeCommandEncoder()->endEncoding();
         c->waitUntilCompleted();
     }},
    {"commit: an encoder has not ended",
     [](bench &b, MTL::ComputeCommandEncoder *) {
         MTL::CommandBuffer *c = b.queue->commandBuffer();
         MTL::ComputeCommandEncoder *e = c->computeCommandEncoder();
         c->commit();
         e->endEncoding();
         c->waitUntilCompleted();
     }},
    {"commit: the command buffer is committed",
     [](bench &b, MTL::ComputeCommandEncoder *) {
         MTL::CommandBuffer *c = b.queue->commandBuffer();
         c->commit();
         c->commit();
         c->waitUntilCompleted();
     }},
    {"waitUntilCompleted: the command buffer is not committed",
     [](bench &b, MTL::ComputeCommandEncoder *) {
         b.queue->commandBuffer()->waitUntilCompleted();
     }},
    {"newBufferWithBytesNoCopy: ",
     [](bench &b, MTL::ComputeCommandEncoder *) {
         static char bytes[64];
         b.device->newBuffer(bytes + 1, 32, MTL::ResourceStorageModeShared, nullptr);
     }},
    {"newBuffer: the length is 0",
     [](bench &b, MTL::ComputeCommandEncoder *) {
         b.device->newBuffer(0, MTL::ResourceStorageModeShared);
     }},
    {"contents: the buffer is private",
     [](bench &b, MTL::ComputeCommandEncoder *) {
         b.own(b.device->newBuffer(16, MTL::ResourceStorageModePrivate))->contents();
     }},
    {"memoryBarrier: scope 2 has no buffers",
     [](bench &, MTL::ComputeCommandEncoder *e) { e->memoryBarrier(MTL::BarrierScopeTextures); }},
    {"removeResidencySet: the queue does not have it",
     [](bench &b, MTL::ComputeCommandEncoder *) {
         MTL::ResidencySetDescriptor *how = MTL::ResidencySetDescriptor::alloc()->init();
         MTL::ResidencySet *s = b.device->newResidencySet(how, nullptr);
         b.queue->removeResidencySet(s);
         s->release();
         how->release();
     }},
};
enum { RULES_COUNT = sizeof RULES / sizeof *RULES };

START_TEST(rules)
{
    bench b;
    MTL::CommandBuffer *c = b.queue->commandBuffer();
    MTL::ComputeCommandEncoder *e = c->computeCommandEncoder();
    RULES[_i].breaks(b, e);
    std::string told = metal_fake_told();
    e->endEncoding();
    if (strncmp(RULES[_i].told, "endEncoding", 11) == 0)
        told = metal_fake_told();
    has(told, RULES[_i].told);
    ck_assert_msg(told.find('\n') == std::string::npos, "%s", told.c_str());
    metal_fake_told();
}
END_TEST

// ---- what shaders do wrong ----

static std::string far_run(bench &b, MTL::Buffer *to,
                           const std::function<void(MTL::ComputeCommandEncoder *)> &use)
{
    MTL::Buffer *table = b.buffer(8);
    uint64_t address = to->gpuAddress();
    memcpy(table->contents(), &address, sizeof address);
    MTL::ComputePipelineState *p = b.pipeline("far");
    return b.run([&](MTL::ComputeCommandEncoder *e) {
        e->setComputePipelineState(p);
        e->setBuffer(table, 0, 0);
        use(e);
        e->dispatchThreadgroups(size(1), size(N));
    });
}

// In both modes.
START_TEST(residency)
{
    metal_fake_set("race", _i);
    bench b;
    MTL::Buffer *y = b.buffer();
    std::string wrong = far_run(b, y, [](MTL::ComputeCommandEncoder *) {});
    has(wrong, "of 256 bytes, which is not resident");
    has(wrong, "add.metal:9");
    good(far_run(
        b, y, [&](MTL::ComputeCommandEncoder *e) { e->useResource(y, MTL::ResourceUsageWrite); }));
    ck_assert_float_eq(static_cast<float *>(y->contents())[5], 5);
    // A set of the queue: what was added counts when it was committed.
    MTL::ResidencySetDescriptor *how = MTL::ResidencySetDescriptor::alloc()->init();
    MTL::ResidencySet *s = b.device->newResidencySet(how, nullptr);
    how->release();
    b.queue->addResidencySet(s);
    s->addAllocation(y);
    has(far_run(b, y, [](MTL::ComputeCommandEncoder *) {}), "which is not resident");
    s->commit();
    good(far_run(b, y, [](MTL::ComputeCommandEncoder *) {}));
    b.queue->removeResidencySet(s);
    s->release();
    ck_assert_str_eq(metal_fake_told(), "");
}
END_TEST

START_TEST(out_of_range)
{
    metal_fake_set("race", _i);
    bench b;
    MTL::Buffer *y = b.buffer();
    MTL::ComputePipelineState *p = b.pipeline("past");
    std::string wrong = b.run([&](MTL::ComputeCommandEncoder *e) {
        e->setComputePipelineState(p);
        e->setBuffer(y, 0, 0);
        e->dispatchThreadgroups(size(1), size(32));
    });
    has(wrong, _i ? "in no buffer" : "memory behind a buffer of 256 bytes");
    has(wrong, "add.metal:13");
}
END_TEST

// Two dispatches without a barrier between, or with one for something else.
START_TEST(hazards)
{
    metal_fake_set("race", 1);
    bench b;
    MTL::Buffer *x = b.buffer(), *y = b.buffer(), *z = b.buffer();
    MTL::ComputePipelineState *p = b.pipeline("add");
    auto two = [&](int barrier) {
        return b.run([&](MTL::ComputeCommandEncoder *e) {
            add(e, p, x, y, 1);
            const MTL::Resource *of[] = {barrier == 2 ? x : y};
            if (barrier == 1)
                e->memoryBarrier(MTL::BarrierScopeBuffers);
            else if (barrier)
                e->memoryBarrier(of, 1);
            add(e, p, y, z, 1);
        });
    };
    for (int order = 0; order < 3; order++) {
        metal_fake_set("order", order);
        has(two(0), "between dispatches");
        has(two(0), "add.metal:5");
        good(two(1));
        has(two(2), "between dispatches");
        good(two(3));
    }
    // In order without barriers: dispatches of a serial encoder.
    good(b.run(
        [&](MTL::ComputeCommandEncoder *e) {
            add(e, p, x, y, 1);
            add(e, p, y, z, 1);
        },
        false));
}
END_TEST

// The order of dispatches that nothing puts in order shows in plain mode too.
START_TEST(hazards_plain)
{
    bench b;
    MTL::Buffer *x = b.buffer(), *y = b.buffer(), *z = b.buffer();
    MTL::ComputePipelineState *p = b.pipeline("add");
    metal_fake_set("order", 1);
    b.run([&](MTL::ComputeCommandEncoder *e) {
        add(e, p, x, y, 1);
        add(e, p, y, z, 1);
    });
    ck_assert_float_eq(first(z), 1);
}
END_TEST

// Buffers that Metal does not track need a fence between encoders.
START_TEST(fences)
{
    metal_fake_set("race", 1);
    bench b;
    const MTL::ResourceOptions how =
        MTL::ResourceStorageModeShared | MTL::ResourceHazardTrackingModeUntracked;
    MTL::Buffer *x = b.buffer(), *y = b.buffer(256, _i & 1 ? how : 0), *z = b.buffer();
    MTL::ComputePipelineState *p = b.pipeline("add");
    MTL::Fence *f = b.own(b.device->newFence());
    MTL::CommandBuffer *c = b.queue->commandBuffer();
    MTL::ComputeCommandEncoder *e = c->computeCommandEncoder(MTL::DispatchTypeConcurrent);
    add(e, p, x, y, 1);
    if (_i & 2)
        e->updateFence(f);
    e->endEncoding();
    e = c->computeCommandEncoder(MTL::DispatchTypeConcurrent);
    if (_i & 2)
        e->waitForFence(f);
    add(e, p, y, z, 1);
    e->endEncoding();
    c->commit();
    c->waitUntilCompleted();
    if (_i == 1)
        has(bench::words(c->error()), "between dispatches");
    else
        ck_assert_uint_eq(c->status(), MTL::CommandBufferStatusCompleted);
}
END_TEST

// ---- what can be planted ----

START_TEST(bad_shaders)
{
    bench b;
    NS::Error *error = nullptr;
    ck_assert_ptr_null(b.device->newLibrary(
        MTLSTR("#line 7 \"x.metal\"\nkernel void f() { double d; }\n"), nullptr, &error));
    has(bench::words(error), "x.metal:7: error: double does not exist in Metal");
    metal_fake_set("broken_shader", 1);
    ck_assert_ptr_null(b.device->newLibrary(bench::text(SOURCE), nullptr, &error));
    has(bench::words(error), "error: double does not exist in Metal");
    metal_fake_set("broken_shader", 0);

    ck_assert_ptr_null(b.library->newFunction(bench::text("nobody")));
    ck_assert_ptr_null(b.library->newFunction(bench::text("add"))); // its constant is not set
    MTL::FunctionConstantValues *v = MTL::FunctionConstantValues::alloc()->init();
    ck_assert_ptr_null(b.library->newFunction(bench::text("add"), v, &error));
    has(bench::words(error), "function constant more (0) is not set");
    bool wrong = true;
    v->setConstantValue(&wrong, MTL::DataTypeBool, NS::UInteger(0));
    ck_assert_ptr_null(b.library->newFunction(bench::text("add"), v, &error));
    has(bench::words(error), "function constant more (0) is of another type");
    uint32_t more = 0;
    v->setConstantValue(&more, MTL::DataTypeUInt, NS::UInteger(0));
    MTL::Function *f = b.own(b.library->newFunction(bench::text("add"), v, &error));
    v->release();
    metal_fake_set("broken_shader", 2);
    ck_assert_ptr_null(b.device->newComputePipelineState(f, &error));
    has(bench::words(error), "Compiler encountered an internal error");
}
END_TEST

START_TEST(planted)
{
    bench b;
    MTL::Buffer *x = b.buffer(), *y = b.buffer();
    MTL::ComputePipelineState *p = b.pipeline("add");
    metal_fake_set("refuse", 2);
    ck_assert_ptr_nonnull(b.own(b.device->newBuffer(16, MTL::ResourceStorageModeShared)));
    ck_assert_ptr_null(b.device->newBuffer(16, MTL::ResourceStorageModeShared));
    metal_fake_set("refuse", 0);
    metal_fake_set("buffer_max", 100);
    ck_assert_ptr_null(b.device->newBuffer(101, MTL::ResourceStorageModeShared));
    metal_fake_set("residency_sets", 0);
    NS::Error *error = nullptr;
    ck_assert_ptr_null(b.device->newResidencySet(nullptr, &error));
    metal_fake_set("no_queue", 1);
    ck_assert_ptr_null(b.device->newCommandQueue());
    metal_fake_set("lost", 2);
    auto one = [&](MTL::ComputeCommandEncoder *e) { add(e, p, x, y, 1); };
    good(b.run(one));
    has(b.run(one), "GPU Hang");
    has(b.run(one), "Ignored");
}
END_TEST

int main()
{
    Suite *s = suite_create("metal_fake");
    TCase *t = tcase_create("metal_fake");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, facts);
    tcase_add_test(t, runs);
    tcase_add_test(t, waits);
    tcase_add_test(t, memory);
    tcase_add_test(t, balance);
    tcase_add_loop_test(t, rules, 0, RULES_COUNT);
    tcase_add_loop_test(t, residency, 0, 2);
    tcase_add_loop_test(t, out_of_range, 0, 2);
    tcase_add_test(t, hazards);
    tcase_add_test(t, hazards_plain);
    tcase_add_loop_test(t, fences, 0, 4);
    tcase_add_test(t, bad_shaders);
    tcase_add_test(t, planted);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
