/* test_threads.c - the suite of runtime/base/threads.c. */
#include "runtime/base/threads.h"
#include "tests/base/planted.h"
#if defined(__linux__)
#include <sched.h>
#endif

/* Checks the answer for 16 CPUs and removes the tree. */
static void expect_threads(int want)
{
    int got = threads_quota(root.path, 16);
    plant_remove();
    ck_assert_int_eq(got, want);
}

START_TEST(no_cgroup_no_limit)
{
    root = temp_dir_create();
    expect_threads(16);
    root = temp_dir_create();
    plant("proc/self/cgroup", "");
    expect_threads(16);
}
END_TEST

START_TEST(v2_quota)
{
    root = temp_dir_create();
    plant("proc/self/cgroup", "0::/app.slice/run.scope\n");
    plant("sys/fs/cgroup/app.slice/run.scope/cpu.max", "400000 100000\n");
    expect_threads(4);

    root = temp_dir_create(); /* no limit here, one further up */
    plant("proc/self/cgroup", "0::/a/b/c\n");
    plant("sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n");
    plant("sys/fs/cgroup/a/cpu.max", "250000 100000\n"); /* two and a half */
    expect_threads(2);

    root = temp_dir_create(); /* the smallest on the way counts */
    plant("proc/self/cgroup", "0::/a/b\n");
    plant("sys/fs/cgroup/a/b/cpu.max", "800000 100000\n");
    plant("sys/fs/cgroup/a/cpu.max", "300000 100000\n");
    plant("sys/fs/cgroup/cpu.max", "500000 100000\n");
    expect_threads(3);

    root = temp_dir_create(); /* a container sees its own group as the root */
    plant("proc/self/cgroup", "0::/\n");
    plant("sys/fs/cgroup/cpu.max", "50000 100000\n"); /* half a CPU */
    expect_threads(1);

    root = temp_dir_create(); /* or a path that is not mounted here */
    plant("proc/self/cgroup", "0::/../../docker/abc\n");
    plant("sys/fs/cgroup/cpu.max", "200000 100000\n");
    expect_threads(2);
}
END_TEST

START_TEST(v1_quota)
{
    root = temp_dir_create();
    plant("proc/self/cgroup", "7:memory:/x\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/x\n");
    plant("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "300000\n");
    plant("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n");
    expect_threads(3);

    root = temp_dir_create(); /* the host's path, but only the container's part is mounted */
    plant("proc/self/cgroup", "4:cpuacct,cpu:/docker/abc\n");
    plant("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n");
    plant("sys/fs/cgroup/cpu/cpu.cfs_period_us", "50000\n");
    expect_threads(3);

    root = temp_dir_create();
    plant("proc/self/cgroup", "1:cpu:/\n");
    plant("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"); /* none */
    plant("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    expect_threads(16);

    root = temp_dir_create(); /* cpuset and cpuacct alone have no quota */
    plant("proc/self/cgroup", "3:cpuset:/\n2:cpuacct:/\n");
    plant("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");
    plant("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    expect_threads(16);
}
END_TEST

START_TEST(hybrid_takes_the_smaller)
{
    root = temp_dir_create();
    plant("proc/self/cgroup", "1:cpu:/g\n0::/u\n");
    plant("sys/fs/cgroup/cpu/g/cpu.cfs_quota_us", "600000\n");
    plant("sys/fs/cgroup/cpu/g/cpu.cfs_period_us", "100000\n");
    plant("sys/fs/cgroup/unified/u/cpu.max", "500000 100000\n");
    expect_threads(5);
}
END_TEST

START_TEST(nonsense_sets_no_limit)
{
    static const char *const texts[] = {
        "", "banana", "0 100000", "-5 100000", "100000 0", "max", "999999999999 100000", "100000"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        root = temp_dir_create();
        plant("proc/self/cgroup", "0::/\n");
        plant("sys/fs/cgroup/cpu.max", texts[i]);
        expect_threads(16);
    }
    static const char *const lines[] = {":", "::", "0:", "x\n\n\n", "0::no/slash", "0::/\0/"};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        root = temp_dir_create();
        plant("proc/self/cgroup", lines[i]);
        expect_threads(16);
    }
}
END_TEST

START_TEST(affinity_is_honoured)
{
    int n = threads_affinity();
    ck_assert_int_ge(n, 1);
    ck_assert_int_ge(threads_default(), 1);
    ck_assert_int_le(threads_default(), n);
#if defined(__linux__)
    cpu_set_t all, one;
    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    ck_assert_int_eq(threads_affinity(), 1);
    ck_assert_int_eq(threads_default(), 1);
    sched_setaffinity(0, sizeof all, &all);
#endif
}
END_TEST

SUITE_MAIN("threads", no_cgroup_no_limit, v2_quota, v1_quota, hybrid_takes_the_smaller,
           nonsense_sets_no_limit, affinity_is_honoured)
