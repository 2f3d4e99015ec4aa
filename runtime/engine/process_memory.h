/* process_memory.h - what a process that runs a plan has in memory besides its session and mapped weights: code, the plan, the tokenizer,
 * the sampler. Measured in this process, which has opened all of that but the sampler. */
#ifndef WEFT_RUNTIME_ENGINE_PROCESS_MEMORY_H
#define WEFT_RUNTIME_ENGINE_PROCESS_MEMORY_H

#include "compiler/plan.h"

/* In bytes, for a sequence of n_ctx tokens; 0 where the system does not say. Mappings that begin among the n bytes at
 * `weights` do not count. To be called before a session is there: its own bytes are known to the byte (session_need). Freed
 * memory goes back to the system first, for a session would take it. Slow. */
uint64_t process_memory(const plan *p, int64_t n_ctx, const void *weights, size_t n);

#endif
