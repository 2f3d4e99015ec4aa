// metal_driver.cpp - devices and buffers of Metal, and the table that libweft_metal exports.
#define NS_PRIVATE_IMPLEMENTATION
#define MTL_PRIVATE_IMPLEMENTATION
#include "runtime/exec/metal_gpu.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <unistd.h>
#ifdef __APPLE__
#include <IOKit/IOKitLib.h>
#endif

void metal_say(metal_why *why, const char *text)
{
    std::snprintf(why->text, sizeof why->text, "%s", text);
}

void metal_say_error(metal_why *why, const NS::Error *error, const char *otherwise)
{
    const NS::String *text = error ? error->localizedDescription() : nullptr;
    metal_say(why, text && text->utf8String() ? text->utf8String() : otherwise);
}

NS::String *metal_string(const char *text)
{
    return NS::String::string(text, NS::UTF8StringEncoding);
}

namespace
{

// ---- devices ----

int gpu_count(void)
{
    metal_pool pool;
    NS::Array *all = MTL::CopyAllDevices();
    const int n = all ? int(all->count()) : 0;
    if (all)
        all->release();
    return n;
}

// All buffers of a device are in one set, which its queues have: shaders find them by their addresses. macOS has had such sets
// since 15; before, the class is not there.
MTL::ResidencySet *make_set(MTL::Device *device)
{
    NS::Error *error = nullptr;
    MTL::ResidencySetDescriptor *how = MTL::ResidencySetDescriptor::alloc();
    if (!how)
        return nullptr;
    how = how->init();
    MTL::ResidencySet *set = device->newResidencySet(how, &error);
    how->release();
    return set;
}

metal_gpu *gpu_open(int index, metal_why *why)
{
    metal_pool pool;
    NS::Array *all = MTL::CopyAllDevices();
    MTL::Device *device = all && NS::UInteger(index) < all->count()
                              ? all->object<MTL::Device>(NS::UInteger(index))->retain()
                              : nullptr;
    if (all)
        all->release();
    if (!device) {
        metal_say(why, "it is not there any more");
        return nullptr;
    }
    metal_gpu *g = new metal_gpu;
    g->device = device;
    g->resident = make_set(device);
    g->changed = false;
    return g;
}

void gpu_close(metal_gpu *g)
{
    metal_pool pool;
    if (g->resident)
        g->resident->release();
    g->device->release();
    delete g;
}

// How many cores it has only the system's registry tells; 0: nobody does.
int gpu_cores(void)
{
    int n = 0;
#ifdef __APPLE__
    io_service_t service =
        IOServiceGetMatchingService(kIOMainPortDefault, IOServiceMatching("AGXAccelerator"));
    if (!service)
        return 0;
    CFTypeRef value = IORegistryEntrySearchCFProperty(service, kIOServicePlane,
                                                      CFSTR("gpu-core-count"), nullptr, 0);
    if (value && CFGetTypeID(value) == CFNumberGetTypeID())
        CFNumberGetValue(CFNumberRef(value), kCFNumberIntType, &n);
    if (value)
        CFRelease(value);
    IOObjectRelease(service);
#else
    n = 1; // on no Mac GPUs are emulated
#endif
    return n;
}

void gpu_facts(metal_gpu *g, metal_facts *out)
{
    metal_pool pool;
    *out = metal_facts{};
    std::snprintf(out->name, sizeof out->name, "%s", g->device->name()->utf8String());
    for (int i = 1; i <= 9; i++)
        if (g->device->supportsFamily(MTL::GPUFamily(MTL::GPUFamilyApple1 + (i - 1))))
            out->family = i;
    out->cores = gpu_cores();
    out->working_set = g->device->recommendedMaxWorkingSetSize();
    out->buffer_max = g->device->maxBufferLength();
    out->page_bytes = size_t(sysconf(_SC_PAGESIZE));
}

uint64_t gpu_allocated(metal_gpu *g)
{
    return g->device->currentAllocatedSize();
}

// ---- buffers ----

// What orders accesses are the barriers between dispatches and the fence between calls.
const MTL::ResourceOptions OPTIONS =
    MTL::ResourceStorageModeShared | MTL::ResourceHazardTrackingModeUntracked;

metal_buffer *add(metal_gpu *g, MTL::Buffer *made)
{
    if (!made)
        return nullptr;
    std::lock_guard<std::mutex> hold(g->lock);
    if (g->resident)
        g->resident->addAllocation(made);
    g->buffers.push_back(made);
    g->changed = true;
    return new metal_buffer{made};
}

metal_buffer *buffer_take(metal_gpu *g, size_t bytes)
{
    metal_pool pool;
    return add(g, g->device->newBuffer(bytes, OPTIONS));
}

metal_buffer *buffer_wrap(metal_gpu *g, const void *p, size_t bytes)
{
    metal_pool pool;
    return add(g, g->device->newBuffer(p, bytes, OPTIONS, nullptr));
}

void buffer_give(metal_gpu *g, metal_buffer *b)
{
    metal_pool pool;
    {
        std::lock_guard<std::mutex> hold(g->lock);
        if (g->resident)
            g->resident->removeAllocation(b->buffer);
        g->buffers.erase(std::find(g->buffers.begin(), g->buffers.end(), b->buffer));
        g->changed = true;
    }
    metal_settle(g);
    b->buffer->release();
    delete b;
}

void *buffer_contents(const metal_buffer *b)
{
    return b->buffer->contents();
}

uint64_t buffer_address(const metal_buffer *b)
{
    return b->buffer->gpuAddress();
}

metal_driver make_driver()
{
    metal_driver d = {};
    d.build = metal_build_id();
    d.count = gpu_count;
    d.open = gpu_open;
    d.close = gpu_close;
    d.facts = gpu_facts;
    d.allocated = gpu_allocated;
    d.compile = metal_compile;
    d.shaders_free = metal_shaders_free;
    d.pipeline = metal_pipeline_make;
    d.pipeline_free = metal_pipeline_free;
    d.threads_max = metal_threads_max;
    d.take = buffer_take;
    d.wrap = buffer_wrap;
    d.give = buffer_give;
    d.contents = buffer_contents;
    d.address = buffer_address;
    d.queue = metal_queue_make;
    d.queue_free = metal_queue_free;
    d.begin = metal_call_begin;
    d.dispatch = metal_call_dispatch;
    d.barrier = metal_call_barrier;
    d.commit = metal_call_commit;
    d.is_over = metal_call_is_over;
    d.wait = metal_call_wait;
    return d;
}

} // namespace

void metal_settle(metal_gpu *g)
{
    std::lock_guard<std::mutex> hold(g->lock);
    if (!g->changed || !g->resident)
        return;
    g->resident->commit();
    g->resident->requestResidency();
    g->changed = false;
}

void metal_use_all(metal_gpu *g, MTL::ComputeCommandEncoder *encoder)
{
    std::lock_guard<std::mutex> hold(g->lock);
    for (const MTL::Buffer *b : g->buffers)
        encoder->useResource(b, MTL::ResourceUsageRead | MTL::ResourceUsageWrite);
}

extern "C" __attribute__((visibility("default"))) const metal_driver *weft_metal(void)
{
    static const metal_driver driver = make_driver();
    return &driver;
}
