/* memory.h - how much memory this process may still take. */
#ifndef WEFT_RUNTIME_BASE_MEMORY_H
#define WEFT_RUNTIME_BASE_MEMORY_H

#include <stdint.h>

/* Bytes that can be had without pushing anything but cached files out: what the system has available, or
 * less where a cgroup above this process has a limit; 0 where that is not to be known. Files are looked
 * for below root, which is "" but in tests: proc/meminfo, and of each group memory.max, memory.current
 * and memory.stat (v2) or memory.limit_in_bytes, memory.usage_in_bytes and memory.stat (v1). Where there
 * is no proc/meminfo, all the machine has counts as available. */
uint64_t memory_available(const char *root);

/* Bytes of this process that are in memory now; 0 where that is not to be known. */
uint64_t memory_resident(void);

#endif
