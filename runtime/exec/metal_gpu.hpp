// metal_gpu.hpp - the inside of libweft_metal: what the functions of metal_driver.h have of Metal's objects.
//
// An object is released by who made it; what Metal hands out for a while is used inside a pool.
#ifndef WEFT_RUNTIME_EXEC_METAL_GPU_HPP
#define WEFT_RUNTIME_EXEC_METAL_GPU_HPP

#include <Foundation/Foundation.hpp>
#include <Metal/Metal.hpp>

#include "runtime/exec/metal_driver.h"

#include <mutex>
#include <vector>

struct metal_gpu {
    MTL::Device *device;
    MTL::ResidencySet *resident; // all buffers; null where the system has no such sets
    std::mutex lock;             // of what follows, and of the set
    bool changed;                // since the set was last committed
    std::vector<MTL::Buffer *> buffers;
};

struct metal_buffer {
    MTL::Buffer *buffer;
};

struct metal_shaders {
    MTL::Device *device; // the gpu's
    MTL::Library *library;
};

struct metal_pipeline {
    MTL::ComputePipelineState *state;
};

struct metal_queue {
    metal_gpu *gpu;
    MTL::CommandQueue *queue;
    MTL::Fence *fence; // behind each call, before the next
};

// A pool for a scope.
class metal_pool
{
    NS::AutoreleasePool *pool = NS::AutoreleasePool::alloc()->init();

  public:
    metal_pool() = default;
    metal_pool(const metal_pool &) = delete;
    metal_pool &operator=(const metal_pool &) = delete;
    ~metal_pool()
    {
        pool->release();
    }
};

void metal_say(metal_why *why, const char *text);
// What an error says; the other words where there is none.
void metal_say_error(metal_why *why, const NS::Error *error, const char *otherwise);
NS::String *metal_string(const char *text); // of the pool

// metal_driver.cpp: buffers that came or went since the last call are resident, or not any more. Of an encoder where that is said
// for each.
void metal_settle(metal_gpu *g);
void metal_use_all(metal_gpu *g, MTL::ComputeCommandEncoder *encoder);

// metal_shaders.cpp
metal_shaders *metal_compile(metal_gpu *g, const char *maps, metal_why *why);
void metal_shaders_free(metal_shaders *s);
metal_pipeline *metal_pipeline_make(metal_shaders *s, const char *name, const uint32_t *constants,
                                    int n, metal_why *why);
void metal_pipeline_free(metal_pipeline *p);
int metal_threads_max(const metal_pipeline *p);

// metal_calls.cpp
metal_queue *metal_queue_make(metal_gpu *g, metal_why *why);
void metal_queue_free(metal_queue *q);
bool metal_call_begin(metal_queue *q, metal_call *out, metal_why *why);
void metal_call_dispatch(metal_call *c, const metal_pipeline *p, const void *args,
                         size_t args_bytes, int groups, int threads, size_t shared);
void metal_call_barrier(metal_call *c);
void metal_call_commit(metal_queue *q, metal_call *c);
bool metal_call_is_over(const metal_call *c);
bool metal_call_wait(metal_call *c, double *out_s, metal_why *why);

#endif
