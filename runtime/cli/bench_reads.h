/* bench_reads.h - how many bytes a model has to read for one call, by any program. */
#ifndef WEFT_RUNTIME_CLI_BENCH_READS_H
#define WEFT_RUNTIME_CLI_BENCH_READS_H

#include "compiler/compiler.h"

/* A call with one row of each of n_seq sequences, each of which then holds `length` tokens: every weight
 * once, of embeddings and experts the rows and matrices that are chosen (each row other ones, as far as
 * there are), and keys and values of `kv_bytes` bytes a number, as far back as they are looked at.
 * Activations are not counted: they stay in caches. */
double bench_reads(const bound_model *bm, int64_t n_seq, int64_t length, double kv_bytes);

#endif
