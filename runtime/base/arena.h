/* arena.h - memory that is released all at once.
 *
 * Allocation never returns NULL: running out of memory does not return (mem.h). What an arena may
 * hold is bounded by limits on the input, not by the arena. Not thread-safe. */
#ifndef WEFT_RUNTIME_BASE_ARENA_H
#define WEFT_RUNTIME_BASE_ARENA_H

#include "runtime/base/str.h"

typedef struct arena arena;

arena *arena_create(void);
void arena_destroy(arena *a); /* NULL is fine */
void arena_reset(arena *a);   /* forgets everything, keeps the first block */

/* Zeroed, aligned for any type. */
void *arena_alloc(arena *a, size_t bytes);
size_t arena_bytes(const arena *a); /* handed out so far, for limits and reports */
size_t arena_held(const arena *a); /* taken from the system for it: blocks as a whole, and itself */

#define ARENA_NEW(a, T) ((T *)arena_alloc((a), sizeof(T)))
#define ARENA_ARRAY(a, T, n) ((T *)arena_alloc_array((a), (n), sizeof(T)))
void *arena_alloc_array(arena *a, size_t n, size_t item_bytes); /* fails as mem_product */

str arena_str(arena *a, str s); /* a copy, NUL-terminated after n */
str arena_printf(arena *a, const char *fmt, ...) WEFT_PRINTF(2, 3);

#endif
