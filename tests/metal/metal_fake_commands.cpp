// metal_fake_commands.cpp - queues, command buffers and encoders; what they hold is run here.
#include "tests/metal/metal_fake.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sys/mman.h>

extern "C" void *_Block_copy(const void *);
extern "C" void _Block_release(const void *);

namespace fake
{
using objc::autorelease;
using objc::broken;
using objc::release;
using objc::retain;

namespace
{
enum {
    NOT_ENQUEUED,
    ENQUEUED,
    COMMITTED,
    SCHEDULED,
    COMPLETED,
    FAILED
}; // MTL::CommandBufferStatus
enum { BYTES_MAX = 4096, ARENA_BYTES = 16 << 20, POLLS = 2 };

bool gpu_lost;

double clock_now()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

// ---- setBytes ----

// Bytes go round in one piece of memory, which is large against what a command buffer has.
char *arena_take(const void *bytes, size_t n)
{
    static char *arena;
    static size_t at;
    if (!arena) {
        arena = static_cast<char *>(
            mmap(nullptr, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        lanes_memory_add(arena, ARENA_BYTES, "setBytes");
    }
    if (at + n > ARENA_BYTES)
        at = 0;
    char *p = arena + at;
    memcpy(p, bytes, n);
    at += (n + 63) / 64 * 64;
    return p;
}

// ---- running ----

void fail(command_buffer *c, const std::string &text, long code)
{
    if (!c->wrong)
        c->wrong = new objc::error(text, code);
    c->status = FAILED;
}

fibre_order next_order()
{
    static int turn;
    int64_t order = setting("order");
    return fibre_order(order >= 0 ? order : turn++ % FIBRES_ORDERS);
}

bool run_dispatch(command_buffer *c, command &one)
{
    char error[LANES_ERROR_MAX];
    std::vector<lanes_constant> constants;
    for (const auto &v : one.state->of->value)
        constants.push_back({v.first, v.second.size(), v.second.data()});
    // Those that this library does not have are not asked for.
    one.run.constant = constants.data();
    one.run.n_constant = int(constants.size());
    one.run.order = next_order();
    if (lanes_run(&one.run, error))
        return true;
    fail(c, error, 1);
    return false;
}

// Dispatches that nothing puts in order, in any order.
bool run_together(command_buffer *c, std::vector<command *> &some)
{
    static int turn;
    int64_t order = setting("order");
    if (order == FIBRES_BACKWARD || (order < 0 && turn++ % 2))
        std::reverse(some.begin(), some.end());
    for (command *one : some)
        if (!run_dispatch(c, *one))
            return false;
    some.clear();
    return true;
}

bool run_encoder(command_buffer *c, encoder *e)
{
    std::vector<command *> together;
    order_tracked();
    for (command &one : e->commands) {
        if (one.what == command::DISPATCH) {
            if (!e->concurrent)
                lanes_order_all();
            together.push_back(&one);
            if (e->concurrent)
                continue;
        }
        if (!run_together(c, together))
            return false;
        if (one.what == command::BARRIER && one.only.empty())
            lanes_order_all();
        for (buffer *b : one.only)
            lanes_order(b->in_heap ? b->in_heap->memory->gpu : b->gpu);
        if (one.what == command::FENCE_WAIT && one.of->updated)
            lanes_order_all();
        if (one.what == command::FENCE_UPDATE)
            one.of->updated = true;
    }
    return run_together(c, together);
}

void add_members(std::set<const object *> &all, const std::vector<residency_set *> &sets)
{
    for (const residency_set *s : sets)
        all.insert(s->members.begin(), s->members.end());
}

void run_commands(command_buffer *c)
{
    int64_t lost = setting("lost");
    c->begin = clock_now();
    if (lost > 0)
        metal_fake_set("lost", lost - 1);
    if (gpu_lost)
        fail(c, "Ignored (for causing prior/excessive GPU errors) (00000004)", 4);
    for (encoder *e : c->encoders) {
        std::set<const object *> resident = e->used;
        add_members(resident, c->on->sets);
        add_members(resident, c->sets);
        make_resident(resident);
        if (c->status == FAILED || !run_encoder(c, e))
            break;
        if (lost == 1) { // in the middle of it
            gpu_lost = true;
            fail(c, "Caused GPU Hang Error (00000003:kIOGPUCommandBufferCallbackErrorHang)", 3);
        }
    }
    make_resident({});
    c->end = clock_now();
    if (c->status != FAILED)
        c->status = COMPLETED;
    for (auto &s : c->signals)
        s.first->value = s.second;
    std::vector<void *> blocks;
    blocks.swap(c->completed);
    for (void *b : blocks) {
        struct block {
            void *isa;
            int flags, reserved;
            void (*invoke)(void *, command_buffer *);
        };
        static_cast<block *>(b)->invoke(b, c);
        _Block_release(b);
    }
}

// Runs what was committed, up to one command buffer or all of it.
void drain(queue *q, const command_buffer *until)
{
    while (!q->waiting.empty()) {
        command_buffer *c = q->waiting.front();
        q->waiting.erase(q->waiting.begin());
        run_commands(c);
        bool last = c == until;
        release(c);
        if (last)
            break;
    }
}

// ---- command buffers ----

encoder *make_encoder(command_buffer *c, bool concurrent)
{
    FAKE_HOLD;
    if (c->status != NOT_ENQUEUED)
        broken("computeCommandEncoder: the command buffer is committed");
    if (!c->encoders.empty() && !c->encoders.back()->ended)
        broken("computeCommandEncoder: another encoder has not ended");
    encoder *e = new encoder(c, concurrent);
    c->encoders.push_back(retain(e));
    count.encoders++;
    return autorelease(e);
}

void commit(command_buffer *c)
{
    FAKE_HOLD;
    if (c->status >= COMMITTED) {
        broken("commit: the command buffer is committed");
        return;
    }
    for (const encoder *e : c->encoders)
        if (!e->ended)
            broken("commit: an encoder has not ended");
    c->status = COMMITTED;
    c->on->waiting.push_back(retain(c));
    count.command_buffers++;
}

void wait(command_buffer *c)
{
    FAKE_HOLD;
    if (c->status < COMMITTED) {
        broken("waitUntilCompleted: the command buffer is not committed");
        return;
    }
    if (c->status < COMPLETED)
        drain(c->on, c);
    lanes_order_all(); // the host has seen the end of it
}

// ---- encoders ----

bool can_encode(const encoder *e, const char *what)
{
    if (e->ended)
        broken("%s: the encoder has ended", what);
    else if (e->in->status != NOT_ENQUEUED)
        broken("%s: the command buffer is committed", what);
    return !e->ended;
}

void keep(encoder *e, object *o)
{
    if (o && e->in->retains)
        e->in->kept.push_back(retain(o));
}

void bind_buffer(encoder *e, buffer *b, integer offset, integer index)
{
    FAKE_HOLD;
    if (!can_encode(e, "setBuffer"))
        return;
    if (index >= SHADER_BUFFERS)
        broken("setBuffer: index %lu is not below %d", index, SHADER_BUFFERS);
    else if (b && offset >= b->bytes)
        broken("setBuffer: offset %lu is not below the length %zu", offset, b->bytes);
    else if (offset % 4)
        broken("setBuffer: offset %lu is not a multiple of 4", offset);
    else {
        e->bound[index] = b ? lanes_binding{b->gpu + offset, b->bytes - offset} : lanes_binding{};
        e->bound_buffer[index] = b;
        if (b)
            e->used.insert(b);
        keep(e, b);
    }
}

void bind_bytes(encoder *e, const void *bytes, integer n, integer index)
{
    FAKE_HOLD;
    if (!can_encode(e, "setBytes"))
        return;
    if (index >= SHADER_BUFFERS)
        broken("setBytes: index %lu is not below %d", index, SHADER_BUFFERS);
    else if (n == 0 || n > BYTES_MAX)
        broken("setBytes: %lu bytes; 1 to %d are possible", n, BYTES_MAX);
    else {
        e->bound[index] = lanes_binding{arena_take(bytes, n), n};
        e->bound_buffer[index] = nullptr;
    }
}

void set_shared(encoder *e, integer n, integer index)
{
    FAKE_HOLD;
    if (!can_encode(e, "setThreadgroupMemoryLength"))
        return;
    if (index >= SHADER_BUFFERS)
        broken("setThreadgroupMemoryLength: index %lu is not below %d", index, SHADER_BUFFERS);
    else if (n % 16)
        broken("setThreadgroupMemoryLength: %lu is not a multiple of 16", n);
    else
        e->shared_bytes[index] = uint32_t(std::min<integer>(n, 1 << 30));
}

// What a kernel's parameters want is bound.
bool is_bound(const encoder *e)
{
    const shader_kernel *k = e->state->of->kernel;
    for (int i = 0; i < k->n_param; i++) {
        int index = k->param[i].index;
        if (k->param[i].kind == PARAM_BUFFER && !e->bound[index].base) {
            broken("dispatch: buffer(%d) of %s is not bound", index, k->name);
            return false;
        }
        if (k->param[i].kind == PARAM_SHARED && !e->shared_bytes[index]) {
            broken("dispatch: threadgroup(%d) of %s has no length", index, k->name);
            return false;
        }
    }
    return true;
}

void dispatch(encoder *e, size groups, size threads, size grid)
{
    FAKE_HOLD;
    if (!can_encode(e, "dispatch"))
        return;
    if (!e->state) {
        broken("dispatch: no pipeline is set");
        return;
    }
    if (!is_bound(e))
        return;
    integer n = threads.width * threads.height * threads.depth, shared = e->state->shared_bytes();
    for (uint32_t bytes : e->shared_bytes)
        shared += bytes;
    if (n == 0 || n > e->state->threads_max()) {
        broken("dispatch: %lu threads in a threadgroup; %s takes 1 to %lu", n,
               e->state->of->kernel->name, e->state->threads_max());
        return;
    }
    if (shared > LANES_SHARED_MAX) {
        broken("dispatch: %lu bytes of threadgroup memory; %d are possible", shared,
               LANES_SHARED_MAX);
        return;
    }
    if (groups.width == 0 || groups.height == 0 || groups.depth == 0) {
        broken("dispatch: the grid is empty");
        return;
    }
    command one;
    one.what = command::DISPATCH;
    one.state = e->state;
    one.run.library = e->state->of->in->shaders;
    one.run.kernel = e->state->of->kernel->name;
    memcpy(one.run.buffer, e->bound, sizeof e->bound);
    memcpy(one.run.shared_bytes, e->shared_bytes, sizeof e->shared_bytes);
    const integer from[3][3] = {{groups.width, groups.height, groups.depth},
                                {threads.width, threads.height, threads.depth},
                                {grid.width, grid.height, grid.depth}};
    for (int i = 0; i < 3; i++) {
        one.run.groups[i] = uint32_t(from[0][i]);
        one.run.threads[i] = uint32_t(from[1][i]);
        one.run.grid[i] = uint32_t(from[2][i]);
    }
    e->commands.push_back(one);
    count.dispatches++;
}

void barrier(encoder *e, buffer *const *only, integer n)
{
    FAKE_HOLD;
    if (!can_encode(e, "memoryBarrier"))
        return;
    command one;
    one.what = command::BARRIER;
    one.only.assign(only, only + n);
    for (buffer *b : one.only)
        keep(e, b);
    e->commands.push_back(one);
    count.barriers++;
}

void of_fence(encoder *e, fence *f, bool updates)
{
    FAKE_HOLD;
    if (!can_encode(e, updates ? "updateFence" : "waitForFence"))
        return;
    command one;
    one.what = updates ? command::FENCE_UPDATE : command::FENCE_WAIT;
    one.of = f;
    keep(e, f);
    e->commands.push_back(one);
}

void use(encoder *e, object *const *some, integer n)
{
    FAKE_HOLD;
    if (can_encode(e, "useResource"))
        for (integer i = 0; i < n; i++) {
            e->used.insert(some[i]);
            keep(e, some[i]);
        }
}

void forget(std::vector<residency_set *> &sets, residency_set *s)
{
    auto at = std::find(sets.begin(), sets.end(), s);
    if (at == sets.end()) {
        broken("removeResidencySet: the queue does not have it");
        return;
    }
    sets.erase(at);
    release(s);
}
} // namespace

encoder::encoder(command_buffer *c, bool at_once)
    : object("MTLComputeCommandEncoder"), in(c), concurrent(at_once)
{
}

command_buffer::command_buffer(queue *q, bool retain_bound)
    : object("MTLCommandBuffer"), on(retain(q)), retains(retain_bound)
{
}

command_buffer::~command_buffer()
{
    for (encoder *e : encoders) {
        if (!e->ended)
            broken("a command buffer is released whose encoder has not ended");
        release(e);
    }
    for (object *o : kept)
        release(o);
    for (residency_set *s : sets)
        release(s);
    for (auto &s : signals)
        release(s.first);
    release(wrong);
    release(on);
}

queue::~queue()
{
    for (residency_set *s : sets)
        release(s);
}

static void setup_queues(kind *d)
{
    add_method(d, "newCommandQueue", [](device *, selector) -> queue * {
        return setting("no_queue") ? nullptr : new queue;
    });
    add_method(d, "newFence", [](device *, selector) { return new fence; });
    add_method(d, "newSharedEvent", [](device *, selector) { return new shared_event; });
    new kind("MTLFence", objc::class_of("NSObject"), nullptr);
    kind *s = new kind("MTLSharedEvent", objc::class_of("NSObject"), nullptr);
    add_method(s, "signaledValue", [](shared_event *self, selector) { return self->value; });
    add_method(
        s, "setSignaledValue:", [](shared_event *self, selector, uint64_t v) { self->value = v; });
    kind *q = new kind("MTLCommandQueue", objc::class_of("NSObject"), nullptr);
    add_method(q, "commandBuffer",
               [](queue *self, selector) { return autorelease(new command_buffer(self, true)); });
    add_method(q, "commandBufferWithUnretainedReferences",
               [](queue *self, selector) { return autorelease(new command_buffer(self, false)); });
    add_method(q, "addResidencySet:", [](queue *self, selector, residency_set *one) {
        FAKE_HOLD;
        self->sets.push_back(retain(one));
    });
    add_method(q, "removeResidencySet:", [](queue *self, selector, residency_set *one) {
        FAKE_HOLD;
        forget(self->sets, one);
    });
}

static void setup_command_buffers()
{
    kind *c = new kind("MTLCommandBuffer", objc::class_of("NSObject"), nullptr);
    add_method(c, "computeCommandEncoder",
               [](command_buffer *self, selector) { return make_encoder(self, false); });
    add_method(
        c, "computeCommandEncoderWithDispatchType:",
        [](command_buffer *self, selector, integer type) { return make_encoder(self, type == 1); });
    add_method(c, "useResidencySet:", [](command_buffer *self, selector, residency_set *s) {
        FAKE_HOLD;
        self->sets.push_back(retain(s));
    });
    add_method(c, "encodeSignalEvent:value:",
               [](command_buffer *self, selector, shared_event *e, uint64_t value) {
                   FAKE_HOLD;
                   self->signals.emplace_back(retain(e), value);
               });
    add_method(c, "addCompletedHandler:", [](command_buffer *self, selector, void *block) {
        FAKE_HOLD;
        if (self->status >= COMMITTED)
            broken("addCompletedHandler: the command buffer is committed");
        else
            self->completed.push_back(_Block_copy(block));
    });
    add_method(c, "enqueue", [](command_buffer *, selector) {});
    add_method(c, "commit", [](command_buffer *self, selector) { commit(self); });
    add_method(c, "waitUntilCompleted", [](command_buffer *self, selector) { wait(self); });
    add_method(c, "status", [](command_buffer *self, selector) {
        FAKE_HOLD;
        if (self->status == COMMITTED && ++self->polled >= POLLS)
            drain(self->on, self);
        return self->status;
    });
    add_method(c, "error", [](command_buffer *self, selector) { return self->wrong; });
    add_method(c, "GPUStartTime", [](command_buffer *self, selector) { return self->begin; });
    add_method(c, "GPUEndTime", [](command_buffer *self, selector) { return self->end; });
}

static void setup_bindings(kind *e)
{
    add_method(e, "setComputePipelineState:", [](encoder *self, selector, pipeline *p) {
        FAKE_HOLD;
        if (!can_encode(self, "setComputePipelineState"))
            return;
        if (!p)
            broken("setComputePipelineState: there is none");
        self->state = p;
        keep(self, p);
    });
    add_method(e, "setBuffer:offset:atIndex:",
               [](encoder *self, selector, buffer *b, integer offset, integer index) {
                   bind_buffer(self, b, offset, index);
               });
    add_method(
        e, "setBufferOffset:atIndex:", [](encoder *self, selector, integer offset, integer index) {
            if (index >= SHADER_BUFFERS || !self->bound_buffer[index])
                broken("setBufferOffset: no buffer is bound at index %lu", index);
            else
                bind_buffer(self, self->bound_buffer[index], offset, index);
        });
    add_method(e, "setBuffers:offsets:withRange:",
               [](encoder *self, selector, buffer *const *b, const integer *offsets, range r) {
                   for (integer i = 0; i < r.length; i++)
                       bind_buffer(self, b[i], offsets[i], r.location + i);
               });
    add_method(e, "setBytes:length:atIndex:",
               [](encoder *self, selector, const void *bytes, integer n, integer index) {
                   bind_bytes(self, bytes, n, index);
               });
    add_method(
        e, "setThreadgroupMemoryLength:atIndex:",
        [](encoder *self, selector, integer n, integer index) { set_shared(self, n, index); });
    add_method(e, "useResource:usage:", [](encoder *self, selector, object *o, integer) {
        use(self, &o, 1);
    });
    add_method(
        e, "useResources:count:usage:",
        [](encoder *self, selector, object *const *o, integer n, integer) { use(self, o, n); });
    add_method(e, "useHeap:", [](encoder *self, selector, object *o) { use(self, &o, 1); });
    add_method(e, "useHeaps:count:", [](encoder *self, selector, object *const *o, integer n) {
        use(self, o, n);
    });
}

static void setup_encoders()
{
    kind *e = new kind("MTLComputeCommandEncoder", objc::class_of("NSObject"), nullptr);
    setup_bindings(e);
    add_method(
        e,
        "dispatchThreadgroups:threadsPerThreadgroup:", [](encoder *self, selector, size g, size t) {
            dispatch(self, g, t, size{g.width * t.width, g.height * t.height, g.depth * t.depth});
        });
    add_method(
        e, "dispatchThreads:threadsPerThreadgroup:", [](encoder *self, selector, size n, size t) {
            auto up = [](integer a, integer b) { return b ? (a + b - 1) / b : 0; };
            dispatch(self, size{up(n.width, t.width), up(n.height, t.height), up(n.depth, t.depth)},
                     t, n);
        });
    add_method(e, "memoryBarrierWithScope:", [](encoder *self, selector, integer scope) {
        if (scope & 1)
            barrier(self, nullptr, 0);
        else
            broken("memoryBarrier: scope %lu has no buffers", scope);
    });
    add_method(e, "memoryBarrierWithResources:count:",
               [](encoder *self, selector, buffer *const *b, integer n) {
                   if (n)
                       barrier(self, b, n);
                   else
                       broken("memoryBarrier: there are no resources");
               });
    add_method(e,
               "updateFence:", [](encoder *self, selector, fence *f) { of_fence(self, f, true); });
    add_method(
        e, "waitForFence:", [](encoder *self, selector, fence *f) { of_fence(self, f, false); });
    add_method(e, "dispatchType",
               [](encoder *self, selector) { return integer(self->concurrent); });
    add_method(e, "endEncoding", [](encoder *self, selector) {
        FAKE_HOLD;
        if (self->ended)
            broken("endEncoding: the encoder has ended");
        self->ended = true;
    });
    for (const char *name : {"insertDebugSignpost:", "pushDebugGroup:"})
        add_method(e, name, [](encoder *, selector, object *) {});
    add_method(e, "popDebugGroup", [](encoder *, selector) {});
}

void setup_commands(kind *d)
{
    setup_queues(d);
    setup_command_buffers();
    setup_encoders();
}
} // namespace fake
