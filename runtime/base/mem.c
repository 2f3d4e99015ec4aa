/* mem.c - malloc and realloc that fail in one place. */
#include "runtime/base/mem.h"

#include "runtime/base/mem_scope.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

static mem_handler *handler;

void mem_on_exhausted(mem_handler *fn)
{
    handler = fn;
}

void mem_exhausted(size_t bytes)
{
    if (mem_scope_now)
        mem_scope_fail(bytes);
    if (handler)
        handler(bytes);
    abort();
}

/* ---- failures on demand ---- */

static atomic_llong fail_in; /* allocations up to the one that fails, that one included; 0: none */
static atomic_bool fail_all, fail_came;

void mem_fail_after(int64_t n, bool all)
{
    atomic_store(&fail_all, all);
    atomic_store(&fail_came, false);
    atomic_store(&fail_in, n);
}

bool mem_fail_came(void)
{
    return atomic_load(&fail_came);
}

bool mem_must_fail(size_t bytes)
{
    if (bytes > PTRDIFF_MAX) /* no system has it, and sanitizers abort when they are asked */
        return true;
    if (atomic_load_explicit(&fail_in, memory_order_relaxed) <= 0)
        return false;
    if (atomic_fetch_sub(&fail_in, 1) != 1)
        return false;
    atomic_store(&fail_came, true);
    if (atomic_load(&fail_all))
        atomic_store(&fail_in, 1);
    return true;
}

/* ---- blocks ---- */

/* A size of 0 would make the result of malloc and realloc implementation-defined. */
static size_t at_least_one(size_t bytes)
{
    return bytes ? bytes : 1;
}

void *mem_try_kept(size_t bytes)
{
    return mem_must_fail(bytes) ? NULL : malloc(at_least_one(bytes));
}

/* Gives a block that may be NULL to the newest scope, if there is one. */
static void *owned(void *p)
{
    if (p && mem_scope_now && !mem_scope_add(mem_scope_now, p)) {
        free(p);
        return NULL;
    }
    return p;
}

void *mem_try_alloc(size_t bytes)
{
    return owned(mem_try_kept(bytes));
}

void *mem_try_aligned(size_t align, size_t bytes)
{
    void *p = NULL;
    if (mem_must_fail(bytes) || posix_memalign(&p, align, at_least_one(bytes)) != 0)
        return NULL;
    return owned(p);
}

void *mem_alloc(size_t bytes)
{
    void *p = mem_try_alloc(bytes);
    if (!p)
        mem_exhausted(bytes);
    return p;
}

void *mem_alloc_for(mem_life life, size_t bytes)
{
    mem_scope *s = mem_scope_of(life);
    void *p = mem_try_kept(bytes);
    if (p && s && !mem_scope_add(s, p)) {
        free(p);
        p = NULL;
    }
    if (!p)
        mem_exhausted(bytes);
    return p;
}

void *mem_adopt(void *p)
{
    if (p && !owned(p))
        mem_exhausted(1);
    return p;
}

void *mem_realloc(void *old, size_t bytes)
{
    if (!old)
        return mem_alloc(bytes);
    mem_scope *s = mem_scope_now ? mem_scope_take(old) : NULL;
    void *p = mem_must_fail(bytes) ? NULL : realloc(old, at_least_one(bytes));
    if (s)
        mem_scope_put_back(s, p ? p : old);
    if (!p)
        mem_exhausted(bytes);
    return p;
}

void mem_free(void *p)
{
    if (mem_scope_now && p)
        (void)mem_scope_take(p);
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

void mem_give_back(void)
{
#if defined(__GLIBC__)
    malloc_trim(0);
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
