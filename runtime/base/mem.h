/* mem.h - heap memory for arenas, strings and arrays: mem_alloc and mem_realloc never return NULL.
 *
 * Where memory is short they do not return: inside a memory scope (mem_scope.h) the call of the library
 * that began it fails with a status; without one the program's handler ends the process. The library
 * itself never does.
 *
 * Only for memory whose size the limits on the input bound. Big blocks (weights, KV pages) are
 * taken with mem_try_aligned where they are owned, and fail with a status there. */
#ifndef WEFT_RUNTIME_BASE_MEM_H
#define WEFT_RUNTIME_BASE_MEM_H

#include "runtime/base/status.h"

void *mem_alloc(size_t bytes);              /* not zeroed; release with mem_free */
void *mem_realloc(void *old, size_t bytes); /* old may be NULL */
void mem_free(void *p);                     /* NULL is fine, and so is what malloc gave */
size_t mem_product(size_t n,
                   size_t item_bytes); /* n * item_bytes; fails as mem_alloc on overflow */

void *mem_adopt(
    void *p); /* p, which malloc gave to another library, as if mem_alloc had; NULL stays NULL */

/* The same, but NULL where memory is short. align is a power of two of at least sizeof(void *). */
void *mem_try_alloc(size_t bytes);
void *mem_try_aligned(size_t align, size_t bytes);

/* Memory is short by that many bytes: go back to the newest scope. Without a scope, call the handler, which does
 * not return; without either, abort. */
WEFT_NORETURN void mem_exhausted(size_t bytes);
typedef void mem_handler(size_t bytes);
void mem_on_exhausted(mem_handler *fn); /* for `main`, before the first thread; NULL: none */

/* Have the heap keep up to 32 MB that was freed for whoever asks next, not hand it back to the system: what binds, plans
 * and opens a session takes and leaves the same few megabytes many times over. For `main`, before the first thread. */
void mem_keep_freed(void);

/* Hand all of that back now, so that what the process has in memory is what it uses. Slow. */
void mem_give_back(void);

/* Ask for large pages under a block that is worth it; p begins a page. In a shared mapping of a file the system's
 * own copy comes in large pages too, as far as it is not there yet. Weights on them are read up to a seventh
 * faster, and mapped in a hundredth of the time. Only advice: it is no error where the system ignores it. */
enum { MEM_PAGE_LARGE = 2 << 20 };
void mem_want_large(void *p, size_t bytes);

/* For tests: let the n-th allocation from now on, by whatever thread, fail as if memory were short; with `all`, every one
 * after it too. 0: none. */
void mem_fail_after(int64_t n, bool all);
bool mem_fail_came(void); /* whether one has failed since then */

#endif
