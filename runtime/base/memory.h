/* memory.h - how much memory this process may still take, and what limits it. */
#ifndef WEFT_RUNTIME_BASE_MEMORY_H
#define WEFT_RUNTIME_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t bytes;     /* UINT64_MAX: not known */
    const char *within; /* the tightest limit, for messages: "on this machine" */
} memory_room;

/* Bytes that can be taken without pushing anything but cached files out: what the system has available, or
 * less where a cgroup above this process has a limit, or where RLIMIT_AS or RLIMIT_DATA leave less. Files
 * are looked for below root, which is "" but in tests: proc/meminfo, proc/self/status, and of each group
 * memory.max, memory.current and memory.stat (v2) or memory.limit_in_bytes, memory.usage_in_bytes and
 * memory.stat (v1). Where there is no proc/meminfo, all the machine has counts as available. */
memory_room memory_available(const char *root);

/* The same for mapping a file: RLIMIT_AS alone counts. */
memory_room memory_mappable(const char *root);

/* Bytes of this process that are in memory now; 0 where that is not known. */
uint64_t memory_resident(void);
/* The same of mappings that begin at one of these bytes, counted page by page by the system: exact, but slow. */
uint64_t memory_resident_in(const void *at, size_t bytes);

#endif
