/* map.c - mmap for both modes: of the file itself, or of anonymous memory that it is read into. */
#include "runtime/base/map.h"

#include "runtime/base/file.h"
#include "runtime/base/intmath.h"
#include "runtime/base/mem.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct fmap {
    unsigned char *data; /* NULL for an empty file */
    size_t bytes;
    fmap_mode mode;
};

static weft_status copy_file(weft_diag *dg, int fd, const char *name, size_t bytes,
                             unsigned char **out_data)
{
    void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return weft_fail(dg, W1003, WEFT_NOWHERE, "cannot read %s: no memory for its %zu bytes",
                         name, bytes);
    mem_want_large(data, bytes);
    size_t got = 0;
    weft_status status = file_read(dg, fd, name, data, bytes, &got);
    if (status == WEFT_OK && got < bytes)
        status = weft_fail(dg, W1003, WEFT_NOWHERE,
                           "cannot read %s: it ended after %zu of %zu bytes", name, got, bytes);
    if (status != WEFT_OK) {
        munmap(data, bytes);
        return status;
    }
    /* A write would be a bug; better it traps here as it does in a mapped file. */
    mprotect(data, bytes, PROT_READ);
    *out_data = data;
    return WEFT_OK;
}

weft_status fmap_open_fd(weft_diag *dg, int fd, const char *name, fmap_mode mode, fmap **out_map)
{
    uint64_t size;
    size_t bytes;
    unsigned char *data = NULL;
    WEFT_TRY(file_check(dg, fd, name, &size));
    if (!size_from_u64(size, &bytes))
        return weft_fail(dg, W1003, WEFT_NOWHERE,
                         "cannot map %s: its %" PRIu64 " bytes do not fit this machine's addresses",
                         name, size);
    if (bytes > 0 && mode == FMAP_COPIED) {
        if (lseek(fd, 0, SEEK_SET) < 0)
            return weft_fail(dg, W1003, WEFT_NOWHERE, "cannot read %s: %s", name,
                             file_reason_of(errno).text);
        WEFT_TRY(copy_file(dg, fd, name, bytes, &data));
    } else if (bytes > 0) {
        void *p = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
        if (p == MAP_FAILED)
            return weft_fail(dg, W1003, WEFT_NOWHERE, "cannot map %s: %s", name,
                             file_reason_of(errno).text);
        mem_want_large(p, bytes);
        data = p;
    }
    fmap *m = mem_alloc(sizeof *m);
    *m = (fmap){data, bytes, mode};
    *out_map = m;
    return WEFT_OK;
}

weft_status fmap_open(weft_diag *dg, const char *path, fmap_mode mode, fmap **out_map)
{
    int fd;
    uint64_t size;
    WEFT_TRY(file_open(dg, path, &fd, &size));
    weft_status status = fmap_open_fd(dg, fd, path, mode, out_map);
    close(fd); /* a mapping outlives its descriptor */
    return status;
}

void fmap_close(fmap *m)
{
    if (!m)
        return;
    if (m->data)
        munmap(m->data, m->bytes);
    mem_free(m);
}

const unsigned char *fmap_data(const fmap *m)
{
    return m->data ? m->data : (const unsigned char *)"";
}

size_t fmap_bytes(const fmap *m)
{
    return m->bytes;
}

void fmap_advise(const fmap *m, size_t at, size_t n, fmap_advice advice)
{
    static const int values[] = {
        [FMAP_NORMAL] = MADV_NORMAL, [FMAP_SEQUENTIAL] = MADV_SEQUENTIAL,
        [FMAP_RANDOM] = MADV_RANDOM, [FMAP_SOON] = MADV_WILLNEED,
        [FMAP_DONE] = MADV_DONTNEED,
    };
    /* In private memory MADV_DONTNEED would not drop a copy, it would erase the data. */
    if (!m->data || m->mode != FMAP_MAPPED || at >= m->bytes)
        return;
    size_t end = n < m->bytes - at ? at + n : m->bytes;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    at -= at % page;
    madvise(m->data + at, end - at, values[advice]);
}
