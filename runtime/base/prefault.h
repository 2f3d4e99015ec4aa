/* prefault.h - map the pages of a file that the system holds already, before they are read.
 *
 * The first touch of a page costs a fault, and hints ahead of a reader are lost on pages that are not mapped yet; both
 * together cost the first pass through some GB a quarter of its time. Mapping them all at once takes a tenth of that
 * where pages are large. Files that are not in memory are left alone: their pages come as they are needed. */
#ifndef WEFT_RUNTIME_BASE_PREFAULT_H
#define WEFT_RUNTIME_BASE_PREFAULT_H

#include <stddef.h>

/* Of a mapped file, with up to `threads` threads; p begins a page. It is no error where it does not work. */
void prefault(void *p, size_t bytes, int threads);

/* The code of this program, so that no token waits for a page of it; and what the process has in memory is the same for every
 * run. */
void prefault_code(void);

#endif
