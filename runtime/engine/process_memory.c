/* process_memory.c - RSS, by mapping, when all but the session is there. */
#include "runtime/engine/process_memory.h"

#include "runtime/base/mem.h"
#include "runtime/base/memory.h"
#include "runtime/base/prefault.h"
#include "runtime/sample/sample.h"

uint64_t process_memory(const plan *p, int64_t n_ctx, const void *weights, size_t n)
{
    prefault_code();
    mem_give_back();
    uint64_t all = memory_resident_in(NULL, SIZE_MAX);
    return all ? all - memory_resident_in(weights, n) + sampler_bytes(p->n_vocab, n_ctx) : 0;
}
