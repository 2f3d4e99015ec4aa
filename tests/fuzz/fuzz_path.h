/* fuzz_path.h - bytes as a file, for readers that take a path. */
#ifndef WEFT_TESTS_FUZZ_FUZZ_PATH_H
#define WEFT_TESTS_FUZZ_FUZZ_PATH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char fuzz_file[] = "/tmp/weft-fuzz-XXXXXX";

static inline void fuzz_unlink(void)
{
    unlink(fuzz_file);
}

/* One file for all inputs of a process, gone when it ends. */
static inline const char *fuzz_path(const uint8_t *data, size_t size)
{
    static int fd = -1;
    if (fd < 0) {
        fd = mkstemp(fuzz_file);
        atexit(fuzz_unlink);
    }
    if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size) {
        perror(fuzz_file);
        exit(1);
    }
    return fuzz_file;
}

#endif
