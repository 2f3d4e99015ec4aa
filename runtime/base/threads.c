/* threads.c - affinity and cgroup quotas.
 *
 * A quota of 2.5 CPUs gives 2 threads: ours wait for each other at barriers, and one thread that
 * the kernel stops for the rest of a period stops them all. The format of the files is described in
 * https://docs.kernel.org/admin-guide/cgroup-v2.html and .../scheduler/sched-bwc.html. Any file
 * that is missing or not understood sets no limit. */
#include "runtime/base/threads.h"

#include "runtime/base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#if defined(__linux__)
#include <sched.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

enum { TEXT_MAX = 65536, DEPTH_MAX = 64 };

/* The whole of a small file; false if it cannot be read. */
static bool slurp(const char *path, strbuf *out)
{
    char chunk[1024];
    ssize_t k = -1;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    strbuf_reset(out);
    while (out->n < TEXT_MAX) {
        k = read(fd, chunk, sizeof chunk);
        if (k > 0)
            strbuf_put(out, (str){chunk, (size_t)k});
        else if (k == 0 || errno != EINTR)
            break;
    }
    close(fd);
    strbuf_put(out, STR("")); /* ends in NUL even when empty */
    return k >= 0;
}

static int lower_limit(int n, long long quota, long long period)
{
    if (quota <= 0 || period <= 0 || quota / period >= n)
        return n;
    return quota < period ? 1 : (int)(quota / period);
}

/* cpu.max: "QUOTA PERIOD" in microseconds, or "max PERIOD". */
static int limit_v2(const char *dir, strbuf *text, int n)
{
    strbuf path = {0};
    long long quota, period;
    strbuf_add(&path, "%s/cpu.max", dir);
    if (slurp(path.p, text) && sscanf(text->p, "%lld %lld", &quota, &period) == 2)
        n = lower_limit(n, quota, period);
    strbuf_free(&path);
    return n;
}

/* Two files with one number each; a quota of -1 is none. */
static int limit_v1(const char *dir, strbuf *text, int n)
{
    strbuf path = {0};
    long long quota, period;
    strbuf_add(&path, "%s/cpu.cfs_quota_us", dir);
    if (slurp(path.p, text) && sscanf(text->p, "%lld", &quota) == 1) {
        strbuf_reset(&path);
        strbuf_add(&path, "%s/cpu.cfs_period_us", dir);
        if (slurp(path.p, text) && sscanf(text->p, "%lld", &period) == 1)
            n = lower_limit(n, quota, period);
    }
    strbuf_free(&path);
    return n;
}

/* The limits from mount/group up to mount itself. In a container the group's path may be the host's
 * and not exist here; then only what the mount point itself says counts. */
static int limit_walk(const char *root, const char *mount, str group,
                      int (*limit)(const char *dir, strbuf *text, int n), int n)
{
    strbuf dir = {0}, text = {0};
    strbuf_add(&dir, "%s%s", root, mount);
    size_t top = dir.n;
    strbuf_put(&dir, group);
    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        while (dir.n > top && dir.p[dir.n - 1] == '/')
            dir.p[--dir.n] = 0;
        n = limit(dir.p, &text, n);
        if (dir.n == top)
            break;
        while (dir.n > top && dir.p[dir.n - 1] != '/')
            dir.p[--dir.n] = 0;
    }
    strbuf_free(&dir);
    strbuf_free(&text);
    return n;
}

static str split_at(str *rest, char end)
{
    const char *e = rest->n ? memchr(rest->p, end, rest->n) : NULL;
    size_t n = e ? (size_t)(e - rest->p) : rest->n, skip = e ? n + 1 : n;
    str head = {rest->p, n};
    *rest = (str){rest->p + skip, rest->n - skip};
    return head;
}

static bool has_controller(str list, const char *name)
{
    while (list.n)
        if (str_eqz(split_at(&list, ','), name))
            return true;
    return false;
}

/* One line of /proc/self/cgroup: "0::/path" (v2), or "4:cpu,cpuacct:/path" (v1). */
static int limit_line(const char *root, str line, int n)
{
    str id = split_at(&line, ':'), controllers = split_at(&line, ':'), group = line;
    if (group.n == 0 || group.p[0] != '/' || str_starts(group, STR("/..")))
        group = STR("/"); /* outside this process's view of the tree */
    if (str_eqz(id, "0") && controllers.n == 0) {
        n = limit_walk(root, "/sys/fs/cgroup", group, limit_v2, n);
        n = limit_walk(root, "/sys/fs/cgroup/unified", group, limit_v2, n);
    } else if (has_controller(controllers, "cpu")) {
        strbuf mount = {0};
        strbuf_add(&mount, "/sys/fs/cgroup/" STR_FMT, STR_ARG(controllers));
        n = limit_walk(root, "/sys/fs/cgroup/cpu", group, limit_v1, n);
        n = limit_walk(root, mount.p, group, limit_v1, n);
        strbuf_free(&mount);
    }
    return n;
}

int threads_quota(const char *root, int n)
{
    strbuf path = {0}, text = {0};
    strbuf_add(&path, "%s/proc/self/cgroup", root);
    if (slurp(path.p, &text)) {
        str rest = strbuf_view(&text);
        while (rest.n)
            n = limit_line(root, split_at(&rest, '\n'), n);
    }
    strbuf_free(&path);
    strbuf_free(&text);
    return n > 1 ? n : 1;
}

#if defined(__linux__)
int threads_affinity(void)
{
    /* The mask must be as wide as the kernel's, which is not told; EINVAL means wider. */
    for (int cpus = 1024; cpus <= 1 << 20; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        if (!set)
            break;
        size_t bytes = CPU_ALLOC_SIZE((size_t)cpus);
        int failed = sched_getaffinity(0, bytes, set), error = errno;
        int n = failed ? 0 : CPU_COUNT_S(bytes, set);
        CPU_FREE(set);
        if (!failed)
            return n > 1 ? n : 1;
        if (error != EINVAL)
            break;
    }
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 1 ? (int)n : 1;
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
#endif

int threads_default(void)
{
    return threads_quota("", threads_affinity());
}
