/* test_prefault.c - the suite of runtime/base/prefault.c, and of asking for large pages. */
#include "runtime/base/prefault.h"

#include "runtime/base/mem.h"
#include "tests/base/suite.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { BYTES = 65 << 20, BLOCK = 1 << 20, PAGE = 4096 };

static char *map_temp(temp_dir *d, bool filled, int *fd)
{
    static char block[BLOCK];
    temp_path p = temp_file(d, "pages", STR(""));
    *fd = open(p.path, O_RDWR);
    ck_assert_int_ge(*fd, 0);
    memset(block, 7, sizeof block);
    for (off_t at = 0; filled && at < BYTES; at += BLOCK)
        ck_assert_int_eq(pwrite(*fd, block, BLOCK, at), BLOCK);
    ck_assert_int_eq(ftruncate(*fd, BYTES), 0);
    char *map = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, *fd, 0);
    ck_assert(map != MAP_FAILED);
    unlink(p.path);
    rmdir(d->path);
    return map;
}

static long faults(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return use.ru_minflt;
}

static long faults_of_touching(const char *map, char expected)
{
    long before = faults();
    for (size_t i = 0; i < BYTES; i += PAGE)
        ck_assert_int_eq(((const volatile char *)map)[i], expected);
    return faults() - before;
}

START_TEST(pages_in_memory_are_mapped)
{
    for (int threads = 0; threads < 40; threads += 13) {
        temp_dir d = temp_dir_create();
        int fd;
        char *map = map_temp(&d, true, &fd);
        prefault(map, BYTES, threads);
        long n = faults_of_touching(map, 7);
#if defined(__linux__) && defined(MADV_POPULATE_READ) && !defined(SUITE_ASAN)
        /* Else one for each page of the cache: 65 and more. ASan's own pages would come on top. */
        ck_assert_int_lt(n, 16);
#else
        (void)n;
#endif
        munmap(map, BYTES);
        close(fd);
    }
}
END_TEST

START_TEST(files_that_are_not_in_memory_are_left_alone)
{
    temp_dir d = temp_dir_create();
    int fd;
    char *map = map_temp(&d, false, &fd);
    long before = faults();
    prefault(map, BYTES, 2);
    ck_assert_int_lt(faults() - before, 64);
    faults_of_touching(map, 0);
    munmap(map, BYTES);
    close(fd);
}
END_TEST

START_TEST(small_blocks_are_left_alone)
{
    char *p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(p != MAP_FAILED);
    mem_want_large(p, PAGE);
    prefault(p, PAGE, 2);
    ck_assert_int_eq(p[0], 0);
    munmap(p, PAGE);
}
END_TEST

SUITE_MAIN("prefault", pages_in_memory_are_mapped, files_that_are_not_in_memory_are_left_alone,
           small_blocks_are_left_alone)
