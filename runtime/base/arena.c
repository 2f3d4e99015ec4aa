/* arena.c - a list of blocks, the newest first; each twice the one before it, up to 1 MiB.
 *
 * A request that would fill more than a quarter of the next block gets a block of its own, which
 * goes second in the list, so that the space left in the current block is not lost. Under
 * AddressSanitizer what was not handed out is poisoned, and a gap follows each allocation. */
#include "runtime/base/arena.h"

#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"
#include <stdio.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#define ARENA_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ASAN 1
#endif
#endif

#if defined(ARENA_ASAN)
#include <sanitizer/asan_interface.h>
#define ARENA_POISON(p, n) ASAN_POISON_MEMORY_REGION((p), (n))
#define ARENA_UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION((p), (n))
enum { ARENA_GAP = 16 };
#else
#define ARENA_POISON(p, n) ((void)(p))
#define ARENA_UNPOISON(p, n) ((void)(p))
enum { ARENA_GAP = 0 };
#endif

enum {
    ARENA_ALIGN = _Alignof(max_align_t),
    ARENA_BLOCK_MIN = 4096,
    ARENA_BLOCK_MAX = 1 << 20,
};

typedef struct block block;
struct block {
    block *next;
    size_t cap, used; /* of data */
    _Alignas(max_align_t) char data[];
};

struct arena {
    block *top;        /* the one that small requests come from, and the head of the list */
    block *first;      /* what arena_reset keeps */
    size_t bytes_next; /* size of the next block */
    size_t bytes_out;  /* handed out so far */
    mem_life life;     /* the scope that it was created in, which its blocks belong to */
};

static block *block_create(mem_life life, size_t cap)
{
    if (cap > SIZE_MAX - sizeof(block))
        mem_exhausted(cap);
    block *b = mem_alloc_for(life, sizeof *b + cap);
    *b = (block){.cap = cap};
    ARENA_POISON(b->data, cap);
    return b;
}

static void block_destroy(block *b)
{
    ARENA_UNPOISON(b->data, b->cap);
    mem_free(b);
}

arena *arena_create(void)
{
    arena *a = mem_alloc(sizeof *a);
    *a = (arena){.bytes_next = ARENA_BLOCK_MIN * 2, .life = mem_life_now()};
    a->top = a->first = block_create(a->life, ARENA_BLOCK_MIN - sizeof(block));
    return a;
}

void arena_destroy(arena *a)
{
    if (!a)
        return;
    for (block *b = a->top, *next; b; b = next) {
        next = b->next;
        block_destroy(b);
    }
    mem_free(a);
}

void arena_reset(arena *a)
{
    for (block *b = a->top, *next; b; b = next) {
        next = b->next;
        if (b != a->first)
            block_destroy(b);
    }
    block *first = a->first;
    first->next = NULL;
    first->used = 0;
    ARENA_POISON(first->data, first->cap);
    *a = (arena){.top = first, .first = first, .bytes_next = ARENA_BLOCK_MIN * 2, .life = a->life};
}

/* A block with room for need bytes. */
static block *arena_add_block(arena *a, size_t need)
{
    if (need > a->bytes_next / 4) {
        block *own = block_create(a->life, need);
        own->next = a->top->next;
        a->top->next = own;
        return own;
    }
    block *b = block_create(a->life, a->bytes_next - sizeof(block));
    b->next = a->top;
    a->top = b;
    if (a->bytes_next < ARENA_BLOCK_MAX)
        a->bytes_next *= 2;
    return b;
}

void *arena_alloc(arena *a, size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        mem_exhausted(bytes);
    size_t size = (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    if (size == 0)
        size = ARENA_ALIGN; /* every allocation has an address of its own */
    size_t need = size + ARENA_GAP;
    block *b = a->top;
    if (need > b->cap - b->used)
        b = arena_add_block(a, need);
    char *p = b->data + b->used;
    b->used += need;
    a->bytes_out += size;
    ARENA_UNPOISON(p, bytes);
    memset(p, 0, bytes);
    return p;
}

size_t arena_bytes(const arena *a)
{
    return a->bytes_out;
}

size_t arena_held(const arena *a)
{
    size_t bytes = sizeof *a;
    for (const block *b = a->top; b; b = b->next)
        bytes += sizeof *b + b->cap;
    return bytes;
}

void *arena_alloc_array(arena *a, size_t n, size_t item_bytes)
{
    return arena_alloc(a, mem_product(n, item_bytes));
}

str arena_str(arena *a, str s)
{
    char *p = arena_alloc(a, s.n + 1);
    if (s.n)
        memcpy(p, s.p, s.n);
    return (str){p, s.n};
}

str arena_printf(arena *a, const char *fmt, ...)
{
    char most[128]; /* fit, and are formatted once */
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(most, sizeof most, fmt, ap);
    va_end(ap);
    WEFT_ASSERT(n >= 0);
    char *p = arena_alloc(a, (size_t)n + 1);
    if ((size_t)n < sizeof most)
        memcpy(p, most, (size_t)n);
    else
        vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return (str){p, (size_t)n};
}
