/* fake_memory.h - memory of the tests' card, and of the host where that sees it.
 *
 * The host can read and write the card's only while it is open. Each allocation ends where a page begins that nobody may
 * touch. */
#ifndef WEFT_TESTS_CUDA_FAKE_MEMORY_H
#define WEFT_TESTS_CUDA_FAKE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

void *fake_memory_take(size_t bytes, bool card);             /* NULL: there is none */
bool fake_memory_give(void *p, bool card);                   /* false: was not taken */
void fake_memory_drop(void);                                 /* all of it */
void fake_memory_open(bool open);                            /* the card's */
size_t fake_memory_bytes(bool card);                         /* that are taken */
bool fake_memory_is(const void *p, size_t bytes, bool card); /* all within one allocation? */
bool fake_memory_has(const void *p);                         /* in one of either? */

#endif
