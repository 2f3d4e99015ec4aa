/* threads.c - affinity and cgroup quotas.
 *
 * A quota of 2.5 CPUs gives 2 threads: ours wait for each other at barriers, and one thread that
 * the kernel stops for the rest of a period stops them all. Any file that is missing or not understood
 * sets no limit. */
#include "runtime/base/threads.h"

#include "runtime/base/cgroup.h"
#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#if defined(__linux__)
#include <sched.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

static int quota_limit(int n, long long quota, long long period)
{
    if (quota <= 0 || period <= 0 || quota / period >= n)
        return n;
    return quota < period ? 1 : (int)(quota / period);
}

/* v2: cpu.max holds "QUOTA PERIOD" in microseconds, or "max PERIOD"; v1: two files with one number
 * each, where a quota of -1 is none. */
static void apply_quota(void *ctx, const char *dir, bool v2)
{
    int *n = ctx;
    strbuf text = {0};
    long long quota, period;
    if (v2) {
        if (cgroup_read(dir, "cpu.max", &text) && sscanf(text.p, "%lld %lld", &quota, &period) == 2)
            *n = quota_limit(*n, quota, period);
    } else if (cgroup_read(dir, "cpu.cfs_quota_us", &text) && sscanf(text.p, "%lld", &quota) == 1 &&
               cgroup_read(dir, "cpu.cfs_period_us", &text) &&
               sscanf(text.p, "%lld", &period) == 1) {
        *n = quota_limit(*n, quota, period);
    }
    strbuf_free(&text);
}

int threads_quota(const char *root, int n)
{
    cgroup_walk(root, "cpu", apply_quota, &n);
    return n > 1 ? n : 1;
}

#if defined(__linux__)
/* The calling thread's mask and its bytes, for CPU_FREE; NULL if it cannot be read. */
static cpu_set_t *read_mask(size_t *out_bytes)
{
    /* The mask must be as wide as the kernel's, which cannot be asked for; EINVAL means wider. */
    for (int cpus = 1024; cpus <= 1 << 20; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        if (!set)
            break;
        *out_bytes = CPU_ALLOC_SIZE((size_t)cpus);
        if (sched_getaffinity(0, *out_bytes, set) == 0)
            return set;
        int error = errno;
        CPU_FREE(set);
        if (error != EINVAL)
            break;
    }
    return NULL;
}

int threads_affinity(void)
{
    size_t bytes;
    cpu_set_t *set = read_mask(&bytes);
    long n = set ? CPU_COUNT_S(bytes, set) : sysconf(_SC_NPROCESSORS_ONLN);
    if (set)
        CPU_FREE(set);
    return n > 1 ? (int)n : 1;
}

bool threads_pin(pthread_t t, int nth)
{
    size_t bytes;
    cpu_set_t *set = read_mask(&bytes);
    if (!set)
        return false;
    int n = CPU_COUNT_S(bytes, set), left = n > 0 ? nth % n : 0, cpu = 0;
    while (!CPU_ISSET_S((size_t)cpu, bytes, set) || left-- > 0)
        cpu++;
    CPU_ZERO_S(bytes, set);
    CPU_SET_S((size_t)cpu, bytes, set);
    bool done = pthread_setaffinity_np(t, bytes, set) == 0;
    CPU_FREE(set);
    return done;
}
#else
int threads_affinity(void)
{
#if defined(__APPLE__)
    /* Apple's efficiency cores would hold the others up at every barrier. */
    int fast = 0;
    size_t bytes = sizeof fast;
    if (sysctlbyname("hw.perflevel0.logicalcpu", &fast, &bytes, NULL, 0) == 0 && fast > 0)
        return fast;
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 1 ? (int)n : 1;
}

bool threads_pin(pthread_t t, int nth)
{
    (void)t, (void)nth; /* such systems take hints at most */
    return false;
}
#endif

int threads_default(void)
{
    return threads_quota("", threads_affinity());
}
