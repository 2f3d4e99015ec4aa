/* map_guard.h - lets a process live on when a file it has mapped becomes shorter.
 *
 * Touching a page that is no longer in the file raises SIGBUS, in whatever thread and deep inside
 * whatever kernel. For a guarded range the handler puts zeros in place of that page and all after
 * it, notes where, and lets the thread go on; the work runs to its end on zeros, and then
 * map_guard_tripped (through model_file_check) turns it into an error. Nothing has to unwind.
 *
 * It is for whoever owns the process: the first map_guard_add sets the SIGBUS handler for good. A
 * fault outside every guarded range goes to the handler that was there before. Thread-safe. */
#ifndef WEFT_RUNTIME_FORMATS_MAP_GUARD_H
#define WEFT_RUNTIME_FORMATS_MAP_GUARD_H

#include "runtime/base/status.h"

enum { MAP_GUARD_MAX = 4096 }; /* ranges at once */

/* Guard [data, data + bytes), which begins on a page, until map_guard_remove. -1: no room left. */
int map_guard_add(const void *data, size_t bytes);
void map_guard_remove(int slot); /* -1 is fine; call it before unmapping */

/* Whether a page of the range was lost, and the offset of the first access to one. */
bool map_guard_tripped(int slot, size_t *out_offset);

#endif
