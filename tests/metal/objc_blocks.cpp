// objc_blocks.cpp - blocks, as clang calls them with -fblocks: copied from the stack when somebody keeps one.
#include <atomic>
#include <cstdlib>
#include <cstring>

namespace
{
enum {
    OWNERS_STEP = 2, // owners are counted in twos, in the low bits of the flags
    OWNERS_MASK = 0xfffe,
    ON_HEAP = 1 << 24,
    HAS_HELPERS = 1 << 25,
    IS_GLOBAL = 1 << 28,
    FIELD_IS_BLOCK = 7,
    FIELD_IS_BYREF = 8
};

struct descriptor {
    unsigned long reserved, bytes;
    void (*copy)(void *to, const void *from); // where the block HAS_HELPERS
    void (*dispose)(const void *);
};
struct block {
    const void *isa;
    std::atomic<int> flags;
    int reserved;
    void (*invoke)(void *, ...);
    descriptor *about;
};
// A variable that is declared __block.
struct byref {
    const void *isa;
    byref *now; // where it is: here, or on the heap
    std::atomic<int> flags;
    int bytes;
    void (*keep)(byref *to, byref *from); // where it HAS_HELPERS
    void (*destroy)(byref *);
};

byref *byref_copy(byref *from)
{
    if (from->now->flags & ON_HEAP) {
        from->now->flags += OWNERS_STEP;
        return from->now;
    }
    byref *to = static_cast<byref *>(malloc(size_t(from->bytes)));
    memcpy(static_cast<void *>(to), from, size_t(from->bytes));
    to->flags = from->flags | ON_HEAP | 2 * OWNERS_STEP; // the block's, and the frame's
    to->now = from->now = to;
    if (from->flags & HAS_HELPERS)
        from->keep(to, from);
    return to;
}

void byref_release(byref *b)
{
    b = b->now;
    if (!(b->flags & ON_HEAP) || ((b->flags -= OWNERS_STEP) & OWNERS_MASK) != 0)
        return;
    if (b->flags & HAS_HELPERS)
        b->destroy(b);
    free(b);
}
} // namespace

extern "C" {
void *_NSConcreteStackBlock[32], *_NSConcreteGlobalBlock[32];

void *_Block_copy(const void *from)
{
    block *b = static_cast<block *>(const_cast<void *>(from));
    if (!b || b->flags & IS_GLOBAL)
        return b;
    if (b->flags & ON_HEAP) {
        b->flags += OWNERS_STEP;
        return b;
    }
    block *to = static_cast<block *>(malloc(b->about->bytes));
    memcpy(static_cast<void *>(to), b, b->about->bytes);
    to->flags = (b->flags & ~OWNERS_MASK) | ON_HEAP | OWNERS_STEP;
    if (b->flags & HAS_HELPERS)
        b->about->copy(to, b);
    return to;
}

void _Block_release(const void *of)
{
    block *b = static_cast<block *>(const_cast<void *>(of));
    if (!b || !(b->flags & ON_HEAP) || ((b->flags -= OWNERS_STEP) & OWNERS_MASK) != 0)
        return;
    if (b->flags & HAS_HELPERS)
        b->about->dispose(b);
    free(b);
}

void _Block_object_assign(void *to, const void *from, int flags)
{
    void *kept = const_cast<void *>(from);
    if ((flags & FIELD_IS_BYREF) == FIELD_IS_BYREF)
        kept = byref_copy(static_cast<byref *>(kept));
    else if ((flags & FIELD_IS_BLOCK) == FIELD_IS_BLOCK)
        kept = _Block_copy(from);
    memcpy(to, &kept, sizeof kept);
}

void _Block_object_dispose(const void *of, int flags)
{
    if ((flags & FIELD_IS_BYREF) == FIELD_IS_BYREF)
        byref_release(static_cast<byref *>(const_cast<void *>(of)));
    else if ((flags & FIELD_IS_BLOCK) == FIELD_IS_BLOCK)
        _Block_release(of);
}
}
