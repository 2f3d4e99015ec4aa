// metal_calls.cpp - calls: one command buffer each, with one encoder whose dispatches may overlap.
#include "runtime/exec/metal_gpu.hpp"

#include "kernels/metal/metal_phase.h"

namespace
{

MTL::CommandBuffer *commands_of(const metal_call *c)
{
    return static_cast<MTL::CommandBuffer *>(c->commands);
}

MTL::ComputeCommandEncoder *encoder_of(const metal_call *c)
{
    return static_cast<MTL::ComputeCommandEncoder *>(c->encoder);
}

} // namespace

metal_queue *metal_queue_make(metal_gpu *g, metal_why *why)
{
    metal_pool pool;
    MTL::CommandQueue *queue = g->device->newCommandQueue();
    MTL::Fence *fence = queue ? g->device->newFence() : nullptr;
    if (!fence) {
        if (queue)
            queue->release();
        metal_say(why, "Metal gives none");
        return nullptr;
    }
    if (g->resident)
        queue->addResidencySet(g->resident);
    return new metal_queue{g, queue, fence};
}

void metal_queue_free(metal_queue *q)
{
    metal_pool pool;
    if (q->gpu->resident)
        q->queue->removeResidencySet(q->gpu->resident);
    q->fence->release();
    q->queue->release();
    delete q;
}

bool metal_call_begin(metal_queue *q, metal_call *out, metal_why *why)
{
    metal_pool pool;
    metal_settle(q->gpu);
    // What it uses outlives it: nothing is given back while a call is under way.
    MTL::CommandBuffer *commands = q->queue->commandBufferWithUnretainedReferences();
    MTL::ComputeCommandEncoder *encoder =
        commands ? commands->computeCommandEncoder(MTL::DispatchTypeConcurrent) : nullptr;
    if (!encoder) {
        metal_say(why, "Metal gives no command buffer");
        return false;
    }
    if (!q->gpu->resident)
        metal_use_all(q->gpu, encoder);
    encoder->waitForFence(q->fence); // buffers are not tracked: calls are in order by this
    *out = metal_call{commands->retain(), encoder->retain()};
    return true;
}

void metal_call_dispatch(metal_call *c, const metal_pipeline *p, const void *args,
                         size_t args_bytes, int groups, int threads, size_t shared)
{
    MTL::ComputeCommandEncoder *encoder = encoder_of(c);
    encoder->setComputePipelineState(p->state);
    encoder->setBytes(args, args_bytes, METAL_BUFFER_RUN);
    if (shared)
        encoder->setThreadgroupMemoryLength(shared, METAL_THREADGROUP_SHARED);
    encoder->dispatchThreadgroups(MTL::Size(NS::UInteger(groups), 1, 1),
                                  MTL::Size(NS::UInteger(threads), 1, 1));
}

void metal_call_barrier(metal_call *c)
{
    encoder_of(c)->memoryBarrier(MTL::BarrierScopeBuffers);
}

void metal_call_commit(metal_queue *q, metal_call *c)
{
    metal_pool pool;
    MTL::ComputeCommandEncoder *encoder = encoder_of(c);
    encoder->updateFence(q->fence);
    encoder->endEncoding();
    encoder->release();
    c->encoder = nullptr;
    commands_of(c)->commit();
}

bool metal_call_is_over(const metal_call *c)
{
    const MTL::CommandBufferStatus s = commands_of(c)->status();
    return s == MTL::CommandBufferStatusCompleted || s == MTL::CommandBufferStatusError;
}

bool metal_call_wait(metal_call *c, double *out_s, metal_why *why)
{
    metal_pool pool;
    MTL::CommandBuffer *commands = commands_of(c);
    commands->waitUntilCompleted();
    const bool done = commands->status() == MTL::CommandBufferStatusCompleted;
    *out_s = commands->GPUEndTime() - commands->GPUStartTime();
    if (!done)
        metal_say_error(why, commands->error(), "the GPU does not say why");
    commands->release();
    *c = metal_call{};
    return done;
}
