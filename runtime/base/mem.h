/* mem.h - heap memory for arenas, strings and arrays: never NULL, running out stops the process.
 *
 * Only for memory whose size the limits on the input bound. Big blocks (weights, KV pages) are
 * allocated where they are owned and fail with a status. */
#ifndef WEFT_RUNTIME_BASE_MEM_H
#define WEFT_RUNTIME_BASE_MEM_H

#include "runtime/base/status.h"

void *mem_alloc(size_t bytes);                   /* not zeroed; release with mem_free */
void *mem_realloc(void *old, size_t bytes);      /* old may be NULL */
void mem_free(void *p);                          /* NULL is fine, and so is what malloc gave */
size_t mem_product(size_t n, size_t item_bytes); /* n * item_bytes; stops on overflow */

/* Have the heap keep up to 32 MB that was freed for whoever asks next, not hand it back to the system: what binds, plans
 * and opens a session takes and leaves the same few megabytes many times over. For `main`, before the first thread. */
void mem_keep_freed(void);

/* Ask for large pages under a block that is worth it; p begins a page. In a shared mapping of a file the system's
 * own copy comes in large pages too, as far as it is not there yet. Weights on them are read up to a seventh
 * faster, and mapped in a hundredth of the time. Only advice: nothing is told where it is not followed. */
enum { MEM_PAGE_LARGE = 2 << 20 };
void mem_want_large(void *p, size_t bytes);

/* Say so on stderr and leave with exit status 1, without running exit handlers. */
WEFT_NORETURN void mem_exhausted(size_t bytes);

#endif
