/* threads.h - how many threads this process may usefully run. */
#ifndef WEFT_RUNTIME_BASE_THREADS_H
#define WEFT_RUNTIME_BASE_THREADS_H

#include "runtime/base/status.h"

/* The CPUs this process may run on, less what a cgroup's CPU quota takes away; at least 1. */
int threads_default(void);

/* The CPUs in this process's affinity mask (on macOS: the performance cores); at least 1. */
int threads_affinity(void);

/* n, or less where a cgroup above this process has a CPU quota; at least 1. Files are looked for
 * below root, which is "" but in tests: proc/self/cgroup, and from there, up to the mount point,
 * cpu.max (cgroup v2) and cpu.cfs_quota_us with cpu.cfs_period_us (v1). */
int threads_quota(const char *root, int n);

#endif
