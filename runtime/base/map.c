/* map.c - mmap for both modes: of the file itself, or of anonymous memory that it is read into. */
#include "runtime/base/map.h"

#include "runtime/base/file.h"
#include "runtime/base/intmath.h"
#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"
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

static void close_undone(void *m)
{
    fmap_close(m);
}

static weft_status copy_file(weft_diag *dg, int fd, const char *name, fmap *m)
{
    if (lseek(fd, 0, SEEK_SET) < 0)
        return weft_fail(dg, W1003, WEFT_NOWHERE, "cannot read %s: %s", name,
                         file_reason_of(errno).text);
    void *data = mmap(NULL, m->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return weft_fail(dg, W1003, WEFT_NOWHERE, "cannot read %s: no memory for its %zu bytes",
                         name, m->bytes);
    m->data = data;
    mem_want_large(data, m->bytes);
    size_t got = 0;
    WEFT_TRY(file_read(dg, fd, name, data, m->bytes, &got));
    if (got < m->bytes)
        return weft_fail(dg, W1003, WEFT_NOWHERE, "cannot read %s: it ended after %zu of %zu bytes",
                         name, got, m->bytes);
    /* A write would be a bug; better it traps here as it does in a mapped file. */
    mprotect(data, m->bytes, PROT_READ);
    return WEFT_OK;
}

static weft_status map_file(weft_diag *dg, int fd, const char *name, fmap *m)
{
    void *p = mmap(NULL, m->bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return weft_fail(dg, W1003, WEFT_NOWHERE, "cannot map %s: %s", name,
                         file_reason_of(errno).text);
    m->data = p;
    mem_want_large(p, m->bytes);
    return WEFT_OK;
}

weft_status fmap_open_fd(weft_diag *dg, int fd, const char *name, fmap_mode mode, fmap **out_map)
{
    uint64_t size;
    size_t bytes;
    WEFT_TRY(file_check(dg, fd, name, &size));
    if (!size_from_u64(size, &bytes))
        return weft_fail(dg, W1003, WEFT_NOWHERE,
                         "cannot map %s: its %" PRIu64 " bytes do not fit this machine's addresses",
                         name, size);
    fmap *m = mem_alloc(sizeof *m);
    *m = (fmap){.bytes = bytes, .mode = mode};
    mem_scope_on_fail(close_undone, m);
    weft_status status = WEFT_OK;
    if (bytes > 0)
        status = (mode == FMAP_COPIED ? copy_file : map_file)(dg, fd, name, m);
    if (status == WEFT_OK)
        *out_map = m;
    else
        fmap_close(m);
    return status;
}

weft_status fmap_open(weft_diag *dg, const char *path, fmap_mode mode, fmap **out_map)
{
    int fd;
    uint64_t size;
    WEFT_TRY(file_open(dg, path, &fd, &size));
    weft_status status = fmap_open_fd(dg, fd, path, mode, out_map);
    file_close(fd); /* a mapping outlives its descriptor */
    return status;
}

void fmap_close(fmap *m)
{
    if (!m)
        return;
    mem_scope_forget(close_undone, m);
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
