/* test_memory.c - the suite of runtime/base/memory.c. */
#include "runtime/base/memory.h"
#include "tests/base/planted.h"
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void expect_bytes(uint64_t want)
{
    uint64_t got = memory_available(root.path).bytes;
    plant_remove();
    ck_assert_uint_eq(got, want);
}

static void plant_machine(void)
{
    root = temp_dir_create();
    plant("proc/meminfo", "MemTotal:  8000 kB\nMemFree:  10 kB\nMemAvailable:   5000 kB\n");
}

START_TEST(the_system_says)
{
    plant_machine();
    expect_bytes(5000 * 1024);
    root = temp_dir_create(); /* nothing to read: all there is */
    expect_bytes((uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
}
END_TEST

START_TEST(v2_limit)
{
    plant_machine();
    plant("proc/self/cgroup", "0::/a/b\n");
    plant("sys/fs/cgroup/a/b/memory.max", "max\n");
    plant("sys/fs/cgroup/a/memory.max", "3000000\n");
    plant("sys/fs/cgroup/a/memory.current", "1000000\n");
    plant("sys/fs/cgroup/a/memory.stat", "anon 500\nactive_file 300000\ninactive_file 100000\n");
    expect_bytes(3000000 - 600000);

    plant_machine(); /* nothing left */
    plant("proc/self/cgroup", "0::/\n");
    plant("sys/fs/cgroup/memory.max", "1000\n");
    plant("sys/fs/cgroup/memory.current", "2000\n");
    expect_bytes(0);
}
END_TEST

START_TEST(v1_limit)
{
    plant_machine();
    plant("proc/self/cgroup", "5:memory:/box\n4:cpu:/other\n");
    plant("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "2000000\n");
    plant("sys/fs/cgroup/memory/box/memory.usage_in_bytes", "500000\n");
    plant("sys/fs/cgroup/memory/box/memory.stat", "total_inactive_file 100000\n");
    plant("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    expect_bytes(2000000 - 400000);
}
END_TEST

START_TEST(rubbish_sets_no_limit)
{
    plant_machine();
    plant("proc/self/cgroup", "0::/\nxyz\n::\n");
    plant("sys/fs/cgroup/memory.max", "many\n");
    expect_bytes(5000 * 1024);
}
END_TEST

/* In a process of its own, which has the limit; what it has used stands in proc/self/status. */
static void expect_limited(int which, uint64_t limit, uint64_t want, const char *within)
{
    int status;
    plant_machine();
    plant("proc/self/status", "Name: x\nVmPeak: 9 kB\nVmSize:\t  1000 kB\nVmData:\t 400 kB\n");
    fflush(NULL);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        setrlimit(which, &(struct rlimit){limit, limit});
        memory_room room = memory_available(root.path);
        _exit(room.bytes == want && strstr(room.within, within) ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    plant_remove();
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

START_TEST(limits_of_the_process)
{
    enum { KB = 1024 };
#if !defined(__SANITIZE_ADDRESS__) &&                                                              \
    !defined(__SANITIZE_THREAD__) /* whose shadow is above any limit */
    expect_limited(RLIMIT_AS, 4000 * KB, 3000 * KB, "ulimit -v");
    expect_limited(RLIMIT_AS, 900 * KB, 0, "ulimit -v");
#endif
    expect_limited(RLIMIT_DATA, 4000 * KB, 3600 * KB, "ulimit -d");
    expect_limited(RLIMIT_DATA, 8000 * KB, 5000 * KB, "this machine");
}
END_TEST

START_TEST(what_is_touched_is_resident)
{
    uint64_t before = memory_resident();
    if (before == 0)
        return; /* not known here */
    size_t bytes = 64 << 20;
    char *p = malloc(bytes);
    ck_assert_ptr_nonnull(p);
    for (size_t i = 0; i < bytes; i += 1024)
        ((volatile char *)p)[i] = 1;
    uint64_t grown = memory_resident() - before;
    free(p);
    ck_assert_uint_ge(grown, bytes - (4 << 20));
}
END_TEST

START_TEST(pages_of_a_mapping)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = 64;
    char *p = mmap(NULL, n * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(p, MAP_FAILED);
    /* So that what is between is a mapping of its own, whatever lies beside it. */
    ck_assert_int_eq(mprotect(p, page, PROT_NONE), 0);
    ck_assert_int_eq(mprotect(p + (n - 1) * page, page, PROT_NONE), 0);
    for (size_t i = 1; i <= 10; i++)
        ((volatile char *)p)[3 * i * page] = 1;
    uint64_t in = memory_resident_in(p, n * page), all = memory_resident_in(NULL, SIZE_MAX);
    munmap(p, n * page);
    if (all > 0) { /* else it is not known here */
        ck_assert_uint_eq(in, 10 * page);
        ck_assert_uint_gt(all, in);
    }
}
END_TEST

SUITE_MAIN("memory", the_system_says, v2_limit, v1_limit, rubbish_sets_no_limit,
           limits_of_the_process, what_is_touched_is_resident, pages_of_a_mapping)
