/* mem.c - malloc and realloc that stop the process instead of returning NULL. */
#include "runtime/base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

void mem_exhausted(size_t bytes)
{
    fprintf(stderr, "weft: out of memory: cannot get %zu bytes\n", bytes);
    _Exit(1);
}

void *mem_alloc(size_t bytes)
{
    return mem_realloc(NULL, bytes);
}

void *mem_realloc(void *old, size_t bytes)
{
    /* A size of 0 would make the result of realloc implementation-defined. */
    void *p = realloc(old, bytes ? bytes : 1);
    if (!p)
        mem_exhausted(bytes);
    return p;
}

void mem_free(void *p)
{
    free(p);
}

size_t mem_product(size_t n, size_t item_bytes)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, item_bytes, &bytes))
        mem_exhausted(SIZE_MAX);
    return bytes;
}

void mem_keep_freed(void)
{
#if defined(__GLIBC__)
    enum { KEPT = 32 << 20, TAKEN = 4 << 20 };
    mallopt(M_MMAP_THRESHOLD, KEPT);
    mallopt(M_TRIM_THRESHOLD, KEPT);
    mallopt(M_TOP_PAD, TAKEN);
#endif
}

void mem_want_large(void *p, size_t bytes)
{
#if defined(MADV_HUGEPAGE)
    if (bytes >= MEM_PAGE_LARGE)
        (void)madvise(p, bytes, MADV_HUGEPAGE);
#else
    (void)p, (void)bytes;
#endif
}
