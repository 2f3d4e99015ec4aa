// metal_fake.hpp - the objects of the Metal of the tests. One lock guards all of them.
#ifndef WEFT_TESTS_METAL_METAL_FAKE_HPP
#define WEFT_TESTS_METAL_METAL_FAKE_HPP

#include "tests/metal/lanes.h"
#include "tests/metal/metal_fake.h"
#include "tests/metal/objc.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace fake
{
using objc::integer;
using objc::kind;
using objc::object;
using objc::selector;

extern std::recursive_mutex lock;
#define FAKE_HOLD std::lock_guard<std::recursive_mutex> hold(fake::lock)

extern metal_fake_count count;
int64_t setting(const char *name);

struct size {
    integer width, height, depth;
};
struct range {
    integer location, length;
};

struct device : object {
    device();
};

// ---- metal_fake_memory.cpp ----

enum { MODE_SHARED = 0, MODE_PRIVATE = 2, UNTRACKED = 1 << 8 };

struct heap;
// Memory of its own has two addresses: the host's and the GPU's, so that one in place of the other is seen. It ends where a
// page ends that nobody may touch.
struct buffer : object {
    size_t bytes;
    integer options;
    char *host = nullptr, *gpu = nullptr;
    int file = -1; // of its own memory
    char *host_map = nullptr, *gpu_map = nullptr;
    size_t map_bytes = 0;
    heap *in_heap = nullptr;
    size_t heap_offset = 0;
    void *deallocator = nullptr; // a block, of wrapped memory
    bool wrapped = false;
    std::string label;
    buffer(size_t n, integer how);
    ~buffer() override;
    bool untracked() const
    {
        return options & UNTRACKED;
    }
};
struct heap : object {
    buffer *memory = nullptr;
    size_t bytes = 0, used = 0;
    integer options = 0;
    bool placed = false; // buffers are made at offsets
    heap();
    ~heap() override;
};
struct heap_descriptor : object {
    size_t bytes = 0;
    integer mode = MODE_PRIVATE, options = 0, type = 0;
    heap_descriptor() : object("MTLHeapDescriptor")
    {
    }
};
struct residency_set : object {
    std::set<object *> members, next; // next: what commit makes of it; both are owned
    bool requested = false;
    residency_set() : object("MTLResidencySet")
    {
    }
    ~residency_set() override;
};
struct residency_descriptor : object {
    residency_descriptor() : object("MTLResidencySetDescriptor")
    {
    }
};
// Kernels may use these buffers from now on, and no others.
void make_resident(const std::set<const object *> &some);
void order_tracked(); // buffers that Metal tracks come in order

// ---- metal_fake_shaders.cpp ----

struct library : object {
    const shader_library *shaders = nullptr;
    library() : object("MTLLibrary")
    {
    }
};
struct constant_values : object {
    std::map<int, std::string> value;
    constant_values() : object("MTLFunctionConstantValues")
    {
    }
};
struct function : object {
    library *in;
    const shader_kernel *kernel;
    std::map<int, std::string> value;
    function(library *l, const shader_kernel *k);
    ~function() override;
};
struct pipeline : object {
    function *of;
    explicit pipeline(function *f);
    ~pipeline() override;
    integer threads_max() const;
    integer shared_bytes() const;
};

// ---- metal_fake_commands.cpp ----

struct queue;
struct command_buffer;
struct fence : object {
    bool updated = false;
    fence() : object("MTLFence")
    {
    }
};
struct shared_event : object {
    uint64_t value = 0;
    shared_event() : object("MTLSharedEvent")
    {
    }
};

// One thing that an encoder does, in order.
struct command {
    enum { DISPATCH, BARRIER, FENCE_UPDATE, FENCE_WAIT } what;
    lanes_dispatch run = {};
    pipeline *state = nullptr;
    std::vector<buffer *> only; // of a barrier; empty: all
    fence *of = nullptr;
};
struct encoder : object {
    command_buffer *in;
    bool concurrent, ended = false;
    pipeline *state = nullptr;
    lanes_binding bound[SHADER_BUFFERS] = {};
    buffer *bound_buffer[SHADER_BUFFERS] = {};
    uint32_t shared_bytes[SHADER_BUFFERS] = {};
    std::vector<command> commands;
    std::set<const object *> used; // buffers and heaps that are resident for it
    encoder(command_buffer *c, bool at_once);
};
struct command_buffer : object {
    queue *on;
    integer status = 0;
    bool retains; // what is bound
    std::vector<encoder *> encoders;
    std::vector<object *> kept;
    std::vector<residency_set *> sets;
    std::vector<void *> completed; // blocks
    std::vector<std::pair<shared_event *, uint64_t>> signals;
    objc::error *wrong = nullptr;
    double begin = 0, end = 0;
    int polled = 0;
    command_buffer(queue *q, bool retain_bound);
    ~command_buffer() override;
};
struct queue : object {
    std::vector<command_buffer *> waiting; // committed, owned
    std::vector<residency_set *> sets;
    queue() : object("MTLCommandQueue")
    {
    }
    ~queue() override;
};

void setup_memory(kind *device);
void setup_shaders(kind *device);
void setup_commands(kind *device);
} // namespace fake

#endif
