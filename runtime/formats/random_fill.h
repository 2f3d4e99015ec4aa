/* random_fill.h - random numbers in the form of every storage type. Private to this folder
 * and to benchmarks. */
#ifndef WEFT_RUNTIME_FORMATS_RANDOM_FILL_H
#define WEFT_RUNTIME_FORMATS_RANDOM_FILL_H

#include "runtime/formats/model_file.h"

/* Fill the tensors of mf, which was opened from the memory at data, with numbers of mean 0 and a spread of
 * 1 / sqrt(row), norms with numbers around 1. Uses at most `threads` threads, and fewer where the system
 * gives no more. The same numbers in every run. */
void random_fill(const model_file *mf, void *data, int threads);

/* n bytes, whole blocks of t, with this spread. */
void random_blocks(dtype t, double spread, uint64_t seed, unsigned char *to, size_t n);

#endif
