#include "runtime/cli/replace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/cli/interrupt.h"

static bool write_all(int fd, str text)
{
    while (text.n) {
        ssize_t n = write(fd, text.p, text.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        text = (str){text.p + n, text.n - (size_t)n};
    }
    return true;
}

/* Owner first: changing it clears the set-user-ID bits that the mode may then bring back. Only root
 * can give a file away, so another owner is kept where possible and the mode in any case. */
static bool copy_access(int fd, const struct stat *st)
{
    if (fchown(fd, st->st_uid, st->st_gid) != 0 && errno != EPERM)
        return false;
    return fchmod(fd, st->st_mode & 07777) == 0;
}

/* The rename itself survives a power cut once the folder is synced; not every system can. */
static void sync_folder(const char *path, size_t n)
{
    strbuf folder = {0};
    strbuf_put(&folder, (str){path, n});
    int fd = open(folder.p, O_RDONLY);
    if (fd >= 0) {
        (void)!fsync(fd);
        close(fd);
    }
    strbuf_free(&folder);
}

/* target is an absolute path without links; temp is a template for mkstemp in the same folder. */
static bool replace_target(const char *target, char *temp, str text)
{
    struct stat st;
    if (access(target, W_OK) != 0 || stat(target, &st) != 0)
        return false;
    interrupt_waits();
    int fd = mkstemp(temp);
    interrupt_removes(fd < 0 ? NULL : temp);
    if (fd < 0)
        return false;
    bool good = write_all(fd, text) && copy_access(fd, &st) && fsync(fd) == 0;
    int error = errno;
    if (close(fd) != 0 && good) {
        good = false;
        error = errno;
    }
    if (good && rename(temp, target) != 0) {
        good = false;
        error = errno;
    }
    if (!good)
        unlink(temp);
    interrupt_removes(NULL);
    errno = error;
    return good;
}

weft_status replace_file(weft_diag *dg, const char *path, str text)
{
    weft_status st = WEFT_OK;
    strbuf temp = {0};
    char *target = realpath(path, NULL);
    bool good = target != NULL;
    if (good) {
        size_t folder_n = (size_t)(strrchr(target, '/') - target) + 1;
        strbuf_put(&temp, (str){target, folder_n});
        strbuf_add(&temp, ".weft-XXXXXX");
        good = replace_target(target, temp.p, text);
        if (good)
            sync_folder(target, folder_n);
    }
    if (!good)
        st = weft_fail(dg, W1004, WEFT_NOWHERE, "%s cannot be written: %s", path,
                       file_reason_of(errno).text);
    strbuf_free(&temp);
    free(target);
    return st;
}
