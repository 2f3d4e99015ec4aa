/* cache_key.h - what a file of interleaved weights is named by: everything that decides its bytes. */
#ifndef WEFT_RUNTIME_EXEC_CACHE_KEY_H
#define WEFT_RUNTIME_EXEC_CACHE_KEY_H

#include "compiler/plan.h"
#include "runtime/base/weight_source.h"

/* A number that stands for how rows of `stored` become groups of `type` in layout l: another one if the code that interleaves
 * them gives other bytes. weight_make_sample, but in tests. */
typedef uint64_t cache_sample_fn(klayout l, dtype type, dtype stored);

/* The checkpoint as it is on this machine (its stamp), the order, place and layout of all weights of p that are
 * interleaved, and a sample of each kind of interleaving, so that a build with other layouts never reads the files of this one.
 * False for a model in memory, which has no name. */
bool cache_key(const plan *p, const weight_source *src, cache_sample_fn *sample,
               model_hash *out) WEFT_MUST_USE;

#endif
