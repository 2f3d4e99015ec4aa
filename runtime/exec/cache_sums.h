/* cache_sums.h - checksums of the chunks of a block of memory, made and compared by several threads.
 *
 * Each thread goes through its chunks about as fast as it could read them: one core of a Sapphire Rapids 11 GB/s,
 * other processes beside it. */
#ifndef WEFT_RUNTIME_EXEC_CACHE_SUMS_H
#define WEFT_RUNTIME_EXEC_CACHE_SUMS_H

#include "runtime/base/cancel.h"
#include "runtime/base/diag.h"

enum { CACHE_CHUNK_BYTES = 64 << 10, CACHE_SAMPLE_CHUNKS = 64 };

#define CACHE_NOTHING_BAD UINT64_MAX

typedef struct {
    int threads;               /* 0: one */
    const cancel_flag *cancel; /* NULL: nothing stops it */
} interleave_work;

/* Chunks of so many bytes; the last may be shorter. */
size_t cache_sums_count(uint64_t bytes);
/* The sum of every chunk. W1412; W1601 without threads. */
weft_status cache_sums_make(weft_diag *dg, const char *data, uint64_t bytes, interleave_work how,
                            uint64_t *sums) WEFT_MUST_USE;
/* Compare them all: the offset of a chunk that differs, or CACHE_NOTHING_BAD. Fails as cache_sums_make does. */
weft_status cache_sums_check(weft_diag *dg, const char *data, uint64_t bytes, interleave_work how,
                             const uint64_t *sums, uint64_t *out_bad) WEFT_MUST_USE;
/* Compare CACHE_SAMPLE_CHUNKS of them, which `seed` chooses: less than a millisecond if they are in memory. */
uint64_t cache_sums_sample(const char *data, uint64_t bytes, const uint64_t *sums, uint64_t seed);

#endif
