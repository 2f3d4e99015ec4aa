/* out_file.c - a buffer in front of write(2); fsync and rename at the end.
 *
 * Large files are written in pieces that begin and end where large pages do: some systems then keep the file in such pages, and whoever
 * maps it (mem_want_large) reads it faster. */
#include "runtime/formats/out_file.h"

#include "runtime/base/file.h"
#include "runtime/base/mem.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_BYTES = MEM_PAGE_LARGE, TRIES_MAX = 100 };

struct out_file {
    arena *home;
    const char *path, *part; /* the target, and where the bytes go until then */
    int fd;                  /* -1: finished */
    uint64_t at;
    size_t n; /* in buffer */
    unsigned char buffer[BUFFER_BYTES];
};

static weft_status fail(weft_diag *dg, const char *path)
{
    return weft_fail(dg, W1004, WEFT_NOWHERE, "cannot write %s: %s", path,
                     file_reason_of(errno).text);
}

/* The file that path stands for: itself, or what it links to. */
static weft_status find_target(weft_diag *dg, arena *a, const char *path, const char **out_target)
{
    struct stat st;
    *out_target = arena_str(a, str_of(path)).p;
    if (stat(path, &st) != 0)
        return WEFT_OK;
    if (!S_ISREG(st.st_mode))
        return weft_fail(dg, W1002, WEFT_NOWHERE, "cannot write %s: it is not a regular file",
                         path);
    char *real = mem_adopt(realpath(path, NULL));
    if (!real)
        return fail(dg, path);
    *out_target = arena_str(a, str_of(real)).p;
    mem_free(real);
    return WEFT_OK;
}

/* The folder of the file; "./" where its path names none. */
static const char *folder_of(arena *a, const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? arena_str(a, (str){path, (size_t)(slash - path) + 1}).p : "./";
}

weft_status out_file_allowed(weft_diag *dg, const char *path)
{
    const char *target;
    arena *a = arena_create();
    weft_status st = find_target(dg, a, path, &target);
    if (st == WEFT_OK && access(folder_of(a, target), W_OK | X_OK) != 0)
        st = fail(dg, path);
    arena_destroy(a);
    return st;
}

/* Not mkstemp, which would take the group's and others' rights away. */
static weft_status open_part(weft_diag *dg, out_file *f)
{
    f->fd = -1;
    for (int i = 0; i < TRIES_MAX && f->fd < 0; i++) {
        f->part = arena_printf(f->home, "%s.%ld-%d.part", f->path, (long)getpid(), i).p;
        f->fd = open(f->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (f->fd < 0 && errno != EEXIST)
            break;
    }
    return f->fd < 0 ? fail(dg, f->path) : WEFT_OK;
}

weft_status out_file_create(weft_diag *dg, const char *path, out_file **out_f)
{
    out_file *f = mem_alloc(sizeof *f);
    f->home = arena_create();
    f->fd = -1;
    f->at = f->n = 0;
    weft_status status = find_target(dg, f->home, path, &f->path);
    if (status == WEFT_OK)
        status = open_part(dg, f);
    if (status == WEFT_OK)
        *out_f = f;
    else
        out_file_destroy(f);
    return status;
}

void out_file_destroy(out_file *f)
{
    if (!f)
        return;
    if (f->fd >= 0) {
        close(f->fd);
        unlink(f->part);
    }
    arena_destroy(f->home);
    mem_free(f);
}

static weft_status write_all(weft_diag *dg, out_file *f, const unsigned char *p, size_t n)
{
    while (n > 0) {
        ssize_t k = write(f->fd, p, n < 1u << 30 ? n : 1u << 30);
        if (k < 0 && errno != EINTR)
            return fail(dg, f->path);
        if (k > 0) {
            p += k;
            n -= (size_t)k;
        }
    }
    return WEFT_OK;
}

weft_status out_file_flush(weft_diag *dg, out_file *f)
{
    size_t n = f->n;
    f->n = 0;
    return write_all(dg, f, f->buffer, n);
}

weft_status out_file_put(weft_diag *dg, out_file *f, const void *data, size_t n)
{
    const unsigned char *from = data;
    while (n > 0) {
        size_t room = BUFFER_BYTES - (size_t)(f->at % BUFFER_BYTES), k = n < room ? n : room;
        if (f->n == 0 && n >= room) {
            k = room + (n - room) / BUFFER_BYTES * BUFFER_BYTES;
            WEFT_TRY(write_all(dg, f, from, k));
        } else {
            memcpy(f->buffer + f->n, from, k);
            f->n += k;
        }
        f->at += k;
        from += k;
        n -= k;
        if (f->at % BUFFER_BYTES == 0)
            WEFT_TRY(out_file_flush(dg, f));
    }
    return WEFT_OK;
}

weft_status out_file_pad(weft_diag *dg, out_file *f, uint64_t align)
{
    static const unsigned char zeros[256];
    while (f->at % align != 0) {
        uint64_t n = align - f->at % align;
        WEFT_TRY(out_file_put(dg, f, zeros, n < sizeof zeros ? (size_t)n : sizeof zeros));
    }
    return WEFT_OK;
}

const char *out_file_part(const out_file *f)
{
    return f->part;
}

/* So that the new name survives a crash too. The file is whole either way, and some systems have no such thing. */
static void sync_folder(out_file *f)
{
    int fd = open(folder_of(f->home, f->path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

weft_status out_file_finish(weft_diag *dg, out_file *f)
{
    WEFT_TRY(out_file_flush(dg, f));
    if (fsync(f->fd) != 0 || rename(f->part, f->path) != 0)
        return fail(dg, f->path);
    sync_folder(f);
    close(f->fd); /* after fsync there is nothing left to fail */
    f->fd = -1;
    return WEFT_OK;
}

weft_status out_file_write(weft_diag *dg, const char *path, str text)
{
    out_file *f;
    WEFT_TRY(out_file_create(dg, path, &f));
    weft_status st = out_file_put(dg, f, text.p, text.n);
    if (st == WEFT_OK)
        st = out_file_finish(dg, f);
    out_file_destroy(f);
    return st;
}
