// metal_fake_memory.cpp - buffers, heaps and residency sets.
#include "tests/metal/metal_fake.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

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
const size_t ALIGN = 256; // of what the GPU addresses

std::set<buffer *> buffers;
std::string said; // what explain returned last

size_t page()
{
    static const size_t bytes = size_t(sysconf(_SC_PAGESIZE));
    return bytes;
}

size_t up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

std::string name_of(const buffer *b)
{
    return (b->label.empty() ? "a buffer" : "buffer " + b->label) + " of " +
           std::to_string(b->bytes) + " bytes";
}

// Of a bad address, in plain mode.
const char *explain(const void *p)
{
    const char *at = static_cast<const char *>(p);
    for (const buffer *b : buffers) {
        if (b->wrapped || b->in_heap)
            continue;
        if (at >= b->gpu && at < b->gpu + b->bytes)
            said = name_of(b) + ", which is not resident";
        else if (at >= b->gpu_map && at < b->gpu_map + b->map_bytes + page())
            said = "memory behind " + name_of(b);
        else
            continue;
        return said.c_str();
    }
    return nullptr;
}

bool map_twice(buffer *b)
{
    b->map_bytes = up(b->bytes, page());
    b->file = memfd_create("metal", MFD_CLOEXEC);
    if (b->file < 0 || ftruncate(b->file, off_t(b->map_bytes)) != 0)
        return false;
    void *host = mmap(nullptr, b->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, b->file, 0);
    // The page behind the GPU's is nobody's.
    void *gpu = mmap(nullptr, b->map_bytes + page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (host == MAP_FAILED || gpu == MAP_FAILED ||
        mmap(gpu, b->map_bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, b->file, 0) == MAP_FAILED)
        return false;
    size_t before = b->map_bytes - up(b->bytes, ALIGN);
    b->host_map = static_cast<char *>(host);
    b->gpu_map = static_cast<char *>(gpu);
    b->host = b->host_map + before;
    b->gpu = b->gpu_map + before;
    return true;
}

// Is this allocation refused?
bool refused()
{
    int64_t n = setting("refuse");
    if (n > 1)
        metal_fake_set("refuse", n - 1);
    return n == 1;
}

void known(buffer *b)
{
    buffers.insert(b);
    lanes_explain = explain;
    lanes_memory_add(b->gpu, b->bytes, name_of(b).c_str());
}

buffer *make_buffer(integer bytes, integer options)
{
    FAKE_HOLD;
    if (bytes == 0) {
        broken("newBuffer: the length is 0");
        return nullptr;
    }
    if (bytes > integer(setting("buffer_max")) || refused())
        return nullptr;
    buffer *b = new buffer(bytes, options);
    if (!map_twice(b)) {
        release(b);
        return nullptr;
    }
    count.buffers++;
    count.buffer_bytes += int64_t(bytes);
    if (count.buffer_bytes + count.heap_bytes > count.buffer_bytes_most)
        count.buffer_bytes_most = count.buffer_bytes + count.heap_bytes;
    known(b);
    return b;
}

buffer *wrap_buffer(char *p, integer bytes, integer options, void *deallocator)
{
    FAKE_HOLD;
    if (!p || reinterpret_cast<uintptr_t>(p) % page() || bytes % page() || bytes == 0) {
        broken("newBufferWithBytesNoCopy: %p and %lu bytes are not whole pages of %zu",
               static_cast<void *>(p), bytes, page());
        return nullptr;
    }
    if ((options >> 4 & 15) == MODE_PRIVATE) {
        broken("newBufferWithBytesNoCopy: memory of the host cannot be private");
        return nullptr;
    }
    if (bytes > integer(setting("buffer_max")) || refused())
        return nullptr;
    buffer *b = new buffer(bytes, options);
    b->wrapped = true;
    b->host = b->gpu = p;
    b->deallocator = deallocator ? _Block_copy(deallocator) : nullptr;
    count.wrapped++;
    count.wrapped_bytes += int64_t(bytes);
    known(b);
    return b;
}

buffer *heap_buffer(heap *h, integer bytes, integer options, size_t offset)
{
    FAKE_HOLD;
    if ((options & 0xf0) != (h->options & 0xf0)) {
        broken("newBuffer of a heap: the storage mode is not the heap's");
        return nullptr;
    }
    if (bytes == 0 || offset % ALIGN || offset > h->bytes || bytes > h->bytes - offset || refused())
        return nullptr;
    buffer *b = new buffer(bytes, options | h->options);
    b->in_heap = retain(h);
    b->heap_offset = offset;
    b->host = h->memory->host + offset;
    b->gpu = h->memory->gpu + offset;
    if (offset + bytes > h->used)
        h->used = up(offset + bytes, ALIGN);
    buffers.insert(b);
    return b;
}

heap *make_heap(const heap_descriptor *how)
{
    FAKE_HOLD;
    if (how->bytes == 0) {
        broken("newHeap: the size is 0");
        return nullptr;
    }
    heap *h = new heap;
    // Heaps are not tracked, where nothing else is said.
    h->options = how->options ? how->options : how->mode << 4 | UNTRACKED;
    h->memory = make_buffer(how->bytes, h->options);
    if (!h->memory) {
        release(h);
        return nullptr;
    }
    h->bytes = how->bytes;
    h->placed = how->type == 1;
    count.buffers--;
    count.buffer_bytes -= int64_t(h->bytes);
    count.heaps++;
    count.heap_bytes += int64_t(h->bytes);
    return h;
}

// The memory that a buffer or a heap is, for residency.
const buffer *memory_of(const object *o)
{
    if (const heap *h = dynamic_cast<const heap *>(o))
        return h->memory;
    const buffer *b = dynamic_cast<const buffer *>(o);
    return b && b->in_heap ? b->in_heap->memory : b;
}
} // namespace

buffer::buffer(size_t n, integer how) : object("MTLBuffer"), bytes(n), options(how)
{
}

buffer::~buffer()
{
    FAKE_HOLD;
    buffers.erase(this);
    if (in_heap) {
        release(in_heap);
        return;
    }
    if (gpu)
        lanes_memory_remove(gpu);
    if (wrapped) {
        count.wrapped--;
        count.wrapped_bytes -= int64_t(bytes);
        if (deallocator) {
            struct block {
                void *isa;
                int flags, reserved;
                void (*invoke)(void *, void *, integer);
            };
            static_cast<block *>(deallocator)->invoke(deallocator, host, bytes);
            _Block_release(deallocator);
        }
        return;
    }
    if (gpu) {
        count.buffers--;
        count.buffer_bytes -= int64_t(bytes);
    }
    if (host_map)
        munmap(host_map, map_bytes);
    if (gpu_map)
        munmap(gpu_map, map_bytes + page());
    if (file >= 0)
        close(file);
}

heap::heap() : object("MTLHeap")
{
}

heap::~heap()
{
    FAKE_HOLD;
    if (memory) {
        count.buffers++;
        count.buffer_bytes += int64_t(bytes);
        count.heaps--;
        count.heap_bytes -= int64_t(bytes);
    }
    release(memory);
}

residency_set::~residency_set()
{
    for (object *o : members)
        release(o);
    for (object *o : next)
        release(o);
}

void make_resident(const std::set<const object *> &some)
{
    std::set<const buffer *> yes;
    for (const object *o : some)
        yes.insert(memory_of(o));
    for (const buffer *b : buffers) {
        if (b->in_heap)
            continue;
        bool is = yes.count(b) != 0;
        lanes_memory_hide(b->gpu, !is);
        if (!b->wrapped)
            mprotect(b->gpu_map, b->map_bytes, is ? PROT_READ | PROT_WRITE : PROT_NONE);
    }
}

void order_tracked()
{
    for (const buffer *b : buffers)
        if (!b->untracked())
            lanes_order(b->gpu);
}

static void setup_buffers(kind *d)
{
    add_method(d,
               "newBufferWithLength:options:", [](device *, selector, integer n, integer options) {
                   return make_buffer(n, options);
               });
    add_method(d, "newBufferWithBytes:length:options:",
               [](device *, selector, const void *p, integer n, integer options) {
                   buffer *b = make_buffer(n, options);
                   if (b)
                       memcpy(b->host, p, n);
                   return b;
               });
    add_method(d, "newBufferWithBytesNoCopy:length:options:deallocator:",
               [](device *, selector, char *p, integer n, integer options, void *block) {
                   return wrap_buffer(p, n, options, block);
               });
    kind *b = new kind("MTLBuffer", objc::class_of("NSObject"), nullptr);
    add_method(b, "contents", [](buffer *self, selector) -> void * {
        if ((self->options >> 4 & 15) == MODE_PRIVATE) {
            broken("contents: the buffer is private");
            return nullptr;
        }
        return self->host;
    });
    add_method(b, "length", [](buffer *self, selector) { return integer(self->bytes); });
    add_method(b, "allocatedSize", [](buffer *self, selector) { return integer(self->bytes); });
    add_method(b, "gpuAddress",
               [](buffer *self, selector) { return reinterpret_cast<uint64_t>(self->gpu); });
    add_method(b, "resourceOptions", [](buffer *self, selector) { return self->options; });
    add_method(b, "storageMode", [](buffer *self, selector) { return self->options >> 4 & 15; });
    add_method(b, "heap", [](buffer *self, selector) { return self->in_heap; });
    add_method(b, "heapOffset", [](buffer *self, selector) { return integer(self->heap_offset); });
    add_method(b, "didModifyRange:", [](buffer *, selector, range) {});
    add_method(b, "setPurgeableState:", [](buffer *, selector, integer) { return integer(2); });
    add_method(b, "setLabel:", [](buffer *self, selector, object *text) {
        FAKE_HOLD;
        self->label = objc::text_of(text);
    });
}

static void setup_heaps(kind *d)
{
    add_method(d, "newHeapWithDescriptor:", [](device *, selector, heap_descriptor *how) {
        return make_heap(how);
    });
    add_method(
        d, "heapBufferSizeAndAlignWithLength:options:", [](device *, selector, integer n, integer) {
            return range{up(n, ALIGN), ALIGN};
        });
    kind *k = objc::add_class<heap_descriptor>("MTLHeapDescriptor");
    add_method(k, "setSize:", [](heap_descriptor *self, selector, integer n) { self->bytes = n; });
    add_method(k, "setStorageMode:", [](heap_descriptor *self, selector, integer mode) {
        self->mode = mode;
    });
    add_method(k, "setResourceOptions:", [](heap_descriptor *self, selector, integer o) {
        self->options = o;
    });
    add_method(k, "setHazardTrackingMode:", [](heap_descriptor *self, selector, integer mode) {
        self->options = self->mode << 4 | mode << 8;
    });
    add_method(k, "setType:", [](heap_descriptor *self, selector, integer t) { self->type = t; });
    kind *h = new kind("MTLHeap", objc::class_of("NSObject"), nullptr);
    add_method(h, "size", [](heap *self, selector) { return integer(self->bytes); });
    add_method(h, "usedSize", [](heap *self, selector) { return integer(self->used); });
    add_method(h, "currentAllocatedSize",
               [](heap *self, selector) { return integer(self->bytes); });
    add_method(h, "allocatedSize", [](heap *self, selector) { return integer(self->bytes); });
    add_method(h, "maxAvailableSizeWithAlignment:", [](heap *self, selector, integer) {
        return integer(self->bytes - self->used);
    });
    add_method(h, "newBufferWithLength:options:", [](heap *self, selector, integer n, integer o) {
        return heap_buffer(self, n, o, self->used);
    });
    add_method(h, "newBufferWithLength:options:offset:",
               [](heap *self, selector, integer n, integer o, integer at) -> buffer * {
                   if (!self->placed) {
                       broken("newBuffer at an offset: the heap is not of that type");
                       return nullptr;
                   }
                   return heap_buffer(self, n, o, at);
               });
}

static void setup_residency(kind *d)
{
    add_method(d, "newResidencySetWithDescriptor:error:",
               [](device *, selector, object *, objc::error **wrong) -> residency_set * {
                   if (setting("residency_sets"))
                       return new residency_set;
                   objc::say_error(wrong, "residency sets are not supported", 1);
                   return nullptr;
               });
    kind *k = objc::add_class<residency_descriptor>("MTLResidencySetDescriptor");
    add_method(k, "setInitialCapacity:", [](object *, selector, integer) {});
    kind *s = new kind("MTLResidencySet", objc::class_of("NSObject"), nullptr);
    add_method(s, "addAllocation:", [](residency_set *self, selector, object *o) {
        FAKE_HOLD;
        if (self->next.insert(o).second)
            retain(o);
    });
    add_method(
        s, "addAllocations:count:", [](residency_set *self, selector, object *const *o, integer n) {
            FAKE_HOLD;
            for (integer i = 0; i < n; i++)
                if (self->next.insert(o[i]).second)
                    retain(o[i]);
        });
    add_method(s, "removeAllocation:", [](residency_set *self, selector, object *o) {
        FAKE_HOLD;
        if (self->next.erase(o))
            release(o);
        else
            broken("removeAllocation: the set does not have it");
    });
    add_method(s, "removeAllAllocations", [](residency_set *self, selector) {
        FAKE_HOLD;
        for (object *o : self->next)
            release(o);
        self->next.clear();
    });
    add_method(s, "commit", [](residency_set *self, selector) {
        FAKE_HOLD;
        for (object *o : self->next)
            retain(o);
        for (object *o : self->members)
            release(o);
        self->members = self->next;
    });
    add_method(s, "containsAllocation:", [](residency_set *self, selector, object *o) {
        FAKE_HOLD;
        return self->next.count(o) != 0;
    });
    add_method(s, "allocationCount",
               [](residency_set *self, selector) { return integer(self->next.size()); });
    add_method(s, "allocatedSize", [](residency_set *self, selector) {
        FAKE_HOLD;
        uint64_t n = 0;
        for (object *o : self->members)
            n += memory_of(o)->bytes;
        return n;
    });
    add_method(s, "requestResidency",
               [](residency_set *self, selector) { self->requested = true; });
    add_method(s, "endResidency", [](residency_set *self, selector) { self->requested = false; });
}

void setup_memory(kind *d)
{
    setup_buffers(d);
    setup_heaps(d);
    setup_residency(d);
}
} // namespace fake
