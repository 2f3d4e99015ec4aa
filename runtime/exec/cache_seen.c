/* cache_seen.c - stamps, each written beside its file in one piece. */
#include "runtime/exec/cache_seen.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Systems count the times of files in steps of up to 10 ms. */
enum { SETTLED_MS = 100, PATH_BYTES = 4096 };

cache_stamp cache_stamp_of(const struct stat *st, const cache_head *h, const char *boot,
                           bool *out_settled)
{
    cache_stamp s;
    struct timespec now;
    memset(&s, 0, sizeof s);
    memcpy(s.magic, "WEFTSEEN", sizeof s.magic);
    s.device = (uint64_t)st->st_dev;
    s.inode = (uint64_t)st->st_ino;
    s.bytes = (uint64_t)st->st_size;
    s.changed_s = (int64_t)st->st_ctim.tv_sec;
    s.changed_ns = (int64_t)st->st_ctim.tv_nsec;
    s.head_sum = h->head_sum;
    memcpy(s.boot, boot, sizeof s.boot);
    clock_gettime(CLOCK_REALTIME, &now);
    double age_ms = (double)(now.tv_sec - st->st_ctim.tv_sec) * 1e3 +
                    (double)(now.tv_nsec - st->st_ctim.tv_nsec) / 1e6;
    *out_settled = age_ms >= SETTLED_MS;
    return s;
}

/* FOLDER/NAME.weights to FOLDER/.NAME.seen; false if it is too long. */
static bool stamp_path(const char *path, char *to)
{
    const char *slash = strrchr(path, '/');
    if (!slash || !str_ends(str_of(path), STR(CACHE_SUFFIX)))
        return false;
    size_t name = strlen(slash + 1) - strlen(CACHE_SUFFIX);
    int n = snprintf(to, PATH_BYTES, "%.*s/.%.*s" CACHE_SEEN_SUFFIX, (int)(slash - path), path,
                     (int)name, slash + 1);
    return n > 0 && n < PATH_BYTES;
}

bool cache_seen(const char *path, const cache_stamp *now)
{
    char at[PATH_BYTES];
    struct stat st;
    cache_stamp was;
    int fd = stamp_path(path, at) ? cache_file_open(at) : -1;
    if (fd < 0)
        return false;
    bool same = fstat(fd, &st) == 0 && cache_file_is_ours(&st) && st.st_size == (off_t)sizeof was &&
                pread(fd, &was, sizeof was, 0) == (ssize_t)sizeof was &&
                memcmp(&was, now, sizeof was) == 0;
    if (same)
        futimens(fd, NULL);
    close(fd);
    return same;
}

bool cache_seen_note(const char *path, const cache_stamp *now)
{
    char at[PATH_BYTES], temp[PATH_BYTES];
    const char *slash = strrchr(path, '/');
    if (!stamp_path(path, at))
        return false;
    int n = snprintf(temp, sizeof temp, "%.*s/" CACHE_TEMP_NAME, (int)(slash - path), path);
    int fd = n > 0 && n < PATH_BYTES ? mkstemp(temp) : -1;
    if (fd < 0)
        return false;
    bool fine = write(fd, now, sizeof *now) == (ssize_t)sizeof *now;
    fine = close(fd) == 0 && fine && rename(temp, at) == 0;
    if (!fine)
        unlink(temp);
    return fine;
}

int64_t cache_seen_used(const char *path)
{
    char at[PATH_BYTES];
    struct stat st;
    return stamp_path(path, at) && lstat(at, &st) == 0 && cache_file_is_ours(&st)
               ? (int64_t)st.st_mtime
               : 0;
}

void cache_seen_drop(const char *path)
{
    char at[PATH_BYTES];
    if (stamp_path(path, at))
        unlink(at);
}

bool cache_seen_is(arena *a, const char *folder, const char *name, const char **out_path)
{
    if (cache_name_of(name) != CACHE_NAME_SEEN)
        return false;
    *out_path = arena_printf(a, "%s/%.*s" CACHE_SUFFIX, folder, CACHE_NAME_DIGITS, name + 1).p;
    return true;
}
