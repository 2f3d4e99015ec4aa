/* memory.c - what /proc/meminfo, cgroup limits and limits of the process leave. A file that is missing or
 * not understood sets no limit. */
#include "runtime/base/memory.h"

#include "runtime/base/cgroup.h"
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* The number after a name at the beginning of a line; false if there is none. */
static bool number_after(const char *text, const char *name, uint64_t *out)
{
    size_t n = strlen(name);
    for (const char *p = text; p; p = strchr(p, '\n'), p = p ? p + 1 : NULL) {
        unsigned long long x;
        if (strncmp(p, name, n) == 0 && sscanf(p + n, " %llu", &x) == 1) {
            *out = x;
            return true;
        }
    }
    return false;
}

/* Pages of files that a group has in memory: they go when others want the room. */
static uint64_t cached_files(const char *dir, bool v2, strbuf *text)
{
    uint64_t active = 0, inactive = 0;
    if (!cgroup_read(dir, "memory.stat", text))
        return 0;
    number_after(text->p, v2 ? "active_file" : "total_active_file", &active);
    number_after(text->p, v2 ? "inactive_file" : "total_inactive_file", &inactive);
    return active + inactive;
}

static void tighten(memory_room *room, uint64_t limit, uint64_t used, const char *within)
{
    uint64_t left = limit > used ? limit - used : 0;
    if (left < room->bytes)
        *room = (memory_room){left, within};
}

/* "max" and the huge number that v1 has for no limit leave everything as it is. */
static void apply_limit(void *ctx, const char *dir, bool v2)
{
    memory_room *room = ctx;
    uint64_t limit, used = 0;
    strbuf text = {0};
    if (cgroup_read(dir, v2 ? "memory.max" : "memory.limit_in_bytes", &text) &&
        number_after(text.p, "", &limit)) {
        if (cgroup_read(dir, v2 ? "memory.current" : "memory.usage_in_bytes", &text))
            number_after(text.p, "", &used);
        uint64_t cached = cached_files(dir, v2, &text);
        used = used > cached ? used - cached : 0;
        tighten(room, limit, used, "within the memory limit of the control group (cgroup)");
    }
    strbuf_free(&text);
}

/* A limit of the process: how much of it is used stands in proc/self/status, in kB. Where it does not, all
 * of the limit counts as left. */
static void apply_rlimit(const char *root, int which, const char *used_name, const char *within,
                         memory_room *room)
{
    struct rlimit limit;
    uint64_t used = 0;
    strbuf text = {0}, self = {0};
    if (getrlimit(which, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        strbuf_add(&self, "%s/proc/self", root);
        if (cgroup_read(self.p, "status", &text))
            number_after(text.p, used_name, &used);
        tighten(room, (uint64_t)limit.rlim_cur, used * 1024, within);
    }
    strbuf_free(&text);
    strbuf_free(&self);
}

memory_room memory_mappable(const char *root)
{
    memory_room room = {UINT64_MAX, "on this machine"};
#ifdef RLIMIT_AS
    apply_rlimit(root, RLIMIT_AS, "VmSize:", "within the limit on address space (ulimit -v)",
                 &room);
#endif
    return room;
}

memory_room memory_available(const char *root)
{
    strbuf text = {0}, proc = {0};
    uint64_t available = 0;
    memory_room room = memory_mappable(root);
    strbuf_add(&proc, "%s/proc", root);
    if (cgroup_read(proc.p, "meminfo", &text) && number_after(text.p, "MemAvailable:", &available))
        available *= 1024;
    strbuf_free(&text);
    strbuf_free(&proc);
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (available == 0 && pages > 0 && page > 0)
        available = (uint64_t)pages * (uint64_t)page;
    if (available)
        tighten(&room, available, 0, "on this machine");
    cgroup_walk(root, "memory", apply_limit, &room);
    apply_rlimit(root, RLIMIT_DATA, "VmData:", "within the limit on data (ulimit -d)", &room);
    return room;
}

uint64_t memory_resident(void)
{
    strbuf text = {0};
    unsigned long long all, resident = 0;
    long page = sysconf(_SC_PAGESIZE);
    if (page <= 0 || !cgroup_read("/proc/self", "statm", &text) ||
        sscanf(text.p, "%llu %llu", &all, &resident) != 2)
        resident = 0;
    strbuf_free(&text);
    return (uint64_t)resident * (uint64_t)(page > 0 ? page : 0);
}

uint64_t memory_resident_in(const void *at, size_t bytes)
{
    FILE *f = fopen("/proc/self/smaps", "re");
    char line[512];
    uint64_t sum = 0;
    bool counts = false;
    while (f && fgets(line, sizeof line, f)) {
        unsigned long long begin, end, kib;
        if (sscanf(line, "%llx-%llx ", &begin, &end) == 2)
            counts = begin >= (uintptr_t)at && begin - (uintptr_t)at < bytes;
        else if (counts && sscanf(line, "Rss: %llu", &kib) == 1)
            sum += kib * 1024;
    }
    if (f)
        fclose(f);
    return sum;
}
