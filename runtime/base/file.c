/* file.c - regular files only, opened so that nothing can block. */
#include "runtime/base/file.h"

#include "runtime/base/mem_scope.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

file_reason file_reason_of(int error)
{
    file_reason r;
    snprintf(r.text, sizeof r.text, "%s", strerror(error));
    /* "No such file" becomes "no such file"; an abbreviation keeps its capitals. */
    if (isupper((unsigned char)r.text[0]) && islower((unsigned char)r.text[1]))
        r.text[0] = (char)tolower((unsigned char)r.text[0]);
    return r;
}

static const char *mode_text(mode_t mode)
{
    if (S_ISDIR(mode))
        return "a directory";
    if (S_ISFIFO(mode))
        return "a FIFO";
    if (S_ISSOCK(mode))
        return "a socket";
    if (S_ISBLK(mode) || S_ISCHR(mode))
        return "a device";
    return "something else";
}

static weft_status refuse_mode(weft_diag *dg, const char *name, mode_t mode)
{
    return weft_fail(dg, W1002, WEFT_NOWHERE, "%s is %s, not a regular file", name,
                     mode_text(mode));
}

weft_status file_check(weft_diag *dg, int fd, const char *name, uint64_t *out_bytes)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return weft_fail(dg, W1003, WEFT_NOWHERE, "cannot read %s: %s", name,
                         file_reason_of(errno).text);
    if (!S_ISREG(st.st_mode))
        return refuse_mode(dg, name, st.st_mode);
    *out_bytes = (uint64_t)st.st_size;
    return WEFT_OK;
}

static void close_undone(void *fd)
{
    close((int)(intptr_t)fd);
}

void file_hold(int fd)
{
    if (fd >= 0)
        mem_scope_on_fail(close_undone, (void *)(intptr_t)fd);
}

void file_close(int fd)
{
    if (fd < 0)
        return;
    mem_scope_forget(close_undone, (void *)(intptr_t)fd);
    close(fd);
}

static void close_dir_undone(void *dir)
{
    closedir(dir);
}

DIR *file_open_dir(const char *path)
{
    DIR *dir = opendir(path);
    if (dir)
        mem_scope_on_fail(close_dir_undone, dir);
    return dir;
}

void file_close_dir(DIR *dir)
{
    if (!dir)
        return;
    mem_scope_forget(close_dir_undone, dir);
    closedir(dir);
}

weft_status file_open(weft_diag *dg, const char *path, int *out_fd, uint64_t *out_bytes)
{
    int fd;
    do
        fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        int error = errno;
        /* A socket cannot be opened at all; say what it is rather than ENXIO. */
        struct stat st;
        if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && error != EACCES)
            return refuse_mode(dg, path, st.st_mode);
        return weft_fail(dg, W1001, WEFT_NOWHERE, "cannot open %s: %s", path,
                         file_reason_of(error).text);
    }
    file_hold(fd);
    weft_status status = file_check(dg, fd, path, out_bytes);
    if (status == WEFT_OK)
        *out_fd = fd;
    else
        file_close(fd);
    return status;
}

weft_status file_read(weft_diag *dg, int fd, const char *name, void *to, size_t n, size_t *out_n)
{
    size_t got = 0;
    while (got < n) {
        size_t ask = n - got;
        if (ask > 1u << 30) /* some systems refuse a single read of 2 GiB and more */
            ask = 1u << 30;
        ssize_t k = read(fd, (char *)to + got, ask);
        if (k == 0)
            break;
        if (k > 0)
            got += (size_t)k;
        else if (errno != EINTR)
            return weft_fail(dg, W1003, WEFT_NOWHERE, "cannot read %s: %s", name,
                             file_reason_of(errno).text);
    }
    *out_n = got;
    return WEFT_OK;
}
