/* simt_copies.h - copies to shared memory that go on while a thread does (cp.async), at their slowest: what they write is unwritten from
 * when they are asked for until the thread has waited for them. */
#ifndef WEFT_TESTS_CUDA_SIMT_COPIES_H
#define WEFT_TESTS_CUDA_SIMT_COPIES_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* By the thread that runs: some bytes, and zeros up to `all`. */
void simt_copy(void *to, const void *from, size_t bytes, size_t all);
void simt_copies_group(void);    /* those since the last group are one */
void simt_copies_wait(int left); /* all groups but the last `left` are done */
void simt_copies_done(void);     /* all copies so far are, of a group or not */

/* For simt_run.c: a launch of so many threads begins, or ends. */
bool simt_copies_begin(size_t threads);
void simt_copies_end(void);

#ifdef __cplusplus
}
#endif

#endif
