/* fake_memory.c - see fake_memory.h. */
#include "tests/cuda/fake_memory.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BLOCKS_MAX = 4096, ALIGN = 256, UNWRITTEN = 0xff };

typedef struct {
    char *map; /* [map_bytes], the last page of which is shut */
    size_t map_bytes, bytes;
    char *p;
    bool card;
} block;

static block blocks[BLOCKS_MAX];
static int n_block;
static size_t taken[2]; /* of the host's, of the card's */

static size_t page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void protect(const block *b, int how)
{
    mprotect(b->map, b->map_bytes - page(), how);
}

void *fake_memory_take(size_t bytes, bool card)
{
    if (n_block == BLOCKS_MAX || bytes > SIZE_MAX / 2)
        return NULL;
    size_t used = (bytes + ALIGN - 1) / ALIGN * ALIGN,
           whole = (used + page() - 1) / page() * page();
    block b = {.map_bytes = whole + page(), .bytes = bytes, .card = card};
    b.map = mmap(NULL, b.map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b.map == MAP_FAILED)
        return NULL;
    b.p = b.map + whole - used;
    memset(b.map, UNWRITTEN, whole);
    mprotect(b.map + whole, page(), PROT_NONE);
    if (card)
        protect(&b, PROT_NONE);
    blocks[n_block++] = b;
    taken[card] += bytes;
    return b.p;
}

static void drop(int i)
{
    munmap(blocks[i].map, blocks[i].map_bytes);
    taken[blocks[i].card] -= blocks[i].bytes;
    blocks[i] = blocks[--n_block];
}

bool fake_memory_give(void *p, bool card)
{
    for (int i = 0; i < n_block; i++)
        if (blocks[i].p == p && blocks[i].card == card) {
            drop(i);
            return true;
        }
    return false;
}

void fake_memory_drop(void)
{
    while (n_block > 0)
        drop(n_block - 1);
}

void fake_memory_open(bool open)
{
    for (int i = 0; i < n_block; i++)
        if (blocks[i].card)
            protect(&blocks[i], open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

size_t fake_memory_bytes(bool card)
{
    return taken[card];
}

static bool within(const block *b, const void *p, size_t bytes)
{
    uintptr_t at = (uintptr_t)p, from = (uintptr_t)b->p;
    return at >= from && at - from <= b->bytes && bytes <= b->bytes - (at - from);
}

bool fake_memory_is(const void *p, size_t bytes, bool card)
{
    for (int i = 0; i < n_block; i++)
        if (blocks[i].card == card && within(&blocks[i], p, bytes))
            return true;
    return false;
}

bool fake_memory_has(const void *p)
{
    return fake_memory_is(p, 1, true) || fake_memory_is(p, 1, false);
}
