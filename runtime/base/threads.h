/* threads.h - how many threads this process may usefully run, and where. */
#ifndef WEFT_RUNTIME_BASE_THREADS_H
#define WEFT_RUNTIME_BASE_THREADS_H

#include "runtime/base/status.h"
#include <pthread.h>

/* The CPUs this process may run on, less what a cgroup's CPU quota takes away; at least 1. */
int threads_default(void);

/* The CPUs in this process's affinity mask (on macOS: the performance cores); at least 1. */
int threads_affinity(void);

/* n, or less where a cgroup above this process has a CPU quota; at least 1. Files are looked for
 * below root, which is "" but in tests: proc/self/cgroup, and from there, up to the mount point,
 * cpu.max (cgroup v2) and cpu.cfs_quota_us with cpu.cfs_period_us (v1). */
int threads_quota(const char *root, int n);

/* Let thread t run only on the nth CPU of the caller's affinity mask, counted from 0 and round again past
 * the last. False if that did not work: other systems than Linux have no such thing. */
bool threads_pin(pthread_t t, int nth);

#endif
