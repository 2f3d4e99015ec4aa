/* cache_list.c - the folder of interleaved weights: what is in it, and what has to go. */
#include "runtime/exec/weight_cache.h"

#include "runtime/base/file.h"
#include "runtime/base/vec.h"
#include "runtime/exec/cache_file.h"
#include "runtime/exec/cache_seen.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

/* A file that has no name of its own after so many seconds was left by a process that was ended. */
enum { LEFT_ALONE_SECONDS = 3600 };

/* What stays free of a disk: this much, or this part of it where that is more. */
static const uint64_t free_bytes_min = UINT64_C(1) << 30;
enum { FREE_PART = 20 };

bool cache_folder_named(const char *dir, const char *name, strbuf *out)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (dir && dir[0])
        strbuf_add(out, "%s", dir);
    else if (cache && cache[0] == '/')
        strbuf_add(out, "%s/weft/%s", cache, name);
    else if (home && home[0] == '/')
        strbuf_add(out, "%s/.cache/weft/%s", home, name);
    else
        return false;
    return true;
}

bool cache_folder(const char *dir, strbuf *out)
{
    return cache_folder_named(dir, "weights", out);
}

/* ---- listing ---- */

static bool read_file(arena *a, const char *folder, const char *name, cache_file *out)
{
    if (cache_name_of(name) != CACHE_NAME_FILE)
        return false;
    struct stat st;
    cache_head head;
    const char *path = arena_printf(a, "%s/%s", folder, name).p;
    int fd = cache_file_open(path);
    if (fd < 0)
        return false;
    bool fine = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    bool known =
        fine && pread(fd, &head, sizeof head, 0) == (ssize_t)sizeof head && cache_head_known(&head);
    bool other = known && head.version != CACHE_VERSION;
    close(fd);
    int64_t used = fine ? cache_seen_used(path) : 0;
    if (fine)
        *out = (cache_file){
            .name = arena_printf(a, "%s", name).p,
            .bytes = (uint64_t)st.st_size,
            .used = used > (int64_t)st.st_mtime ? used : (int64_t)st.st_mtime,
            .other_version = other,
            .model = !known  ? "damaged"
                     : other ? "of another version"
                             : arena_printf(a, "%.*s", CACHE_MODEL_MAX - 1, head.model).p};
    return fine;
}

static int by_use(const void *x, const void *y)
{
    const cache_file *a = x, *b = y;
    return a->used != b->used ? (a->used < b->used) - (a->used > b->used)
                              : strcmp(a->name, b->name);
}

size_t cache_list_by(arena *a, const char *folder, cache_read_fn *read_one, cache_file **out_files)
{
    VEC(cache_file) files = {0};
    DIR *dir = file_open_dir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        cache_file f;
        if (read_one(a, folder, e->d_name, &f))
            VEC_PUSH(&files, f);
    }
    file_close_dir(dir);
    if (files.n)
        qsort(files.at, files.n, sizeof *files.at, by_use);
    size_t n = files.n;
    *out_files = ARENA_ARRAY(a, cache_file, n + 1);
    if (n)
        memcpy(*out_files, files.at, n * sizeof *files.at);
    VEC_FREE(&files);
    return n;
}

size_t cache_list(arena *a, const char *folder, cache_file **out_files)
{
    return cache_list_by(a, folder, read_file, out_files);
}

/* ---- removing ---- */

/* Whoever still repacks into one of them keeps its memory, and the file is not kept: no harm is done. */
static uint64_t remove_leftovers(const char *folder)
{
    uint64_t gone = 0;
    struct stat st;
    time_t now = time(NULL);
    arena *a = arena_create();
    const char *of;
    DIR *dir = file_open_dir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (cache_seen_is(a, folder, e->d_name, &of)) {
            if (access(of, F_OK) != 0)
                unlinkat(dirfd(dir), e->d_name, 0);
        } else if (cache_name_of(e->d_name) == CACHE_NAME_TEMP &&
                   fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                   S_ISREG(st.st_mode) && now - st.st_mtime > LEFT_ALONE_SECONDS &&
                   unlinkat(dirfd(dir), e->d_name, 0) == 0) {
            gone += (uint64_t)st.st_size;
        }
    file_close_dir(dir);
    arena_destroy(a);
    return gone;
}

bool cache_remove(const char *path)
{
    if (unlink(path) != 0)
        return false;
    cache_seen_drop(path);
    return true;
}

uint64_t cache_prune_by(const char *folder, cache_read_fn *read_one, uint64_t bytes_max)
{
    arena *a = arena_create();
    cache_file *files;
    uint64_t kept = 0, gone = remove_leftovers(folder);
    size_t n = cache_list_by(a, folder, read_one, &files);
    for (size_t i = 0; i < n; i++) {
        if (files[i].bytes <= bytes_max && kept <= bytes_max - files[i].bytes) {
            kept += files[i].bytes;
            continue;
        }
        const char *path = arena_printf(a, "%s/%s", folder, files[i].name).p;
        if (cache_remove(path))
            gone += files[i].bytes;
    }
    arena_destroy(a);
    return gone;
}

uint64_t cache_prune(const char *folder, uint64_t bytes_max)
{
    return cache_prune_by(folder, read_file, bytes_max);
}

/* ---- room ---- */

static uint64_t free_floor(cache_disk disk)
{
    if (disk.all == 0)
        return 0;
    return disk.all / FREE_PART > free_bytes_min ? disk.all / FREE_PART : free_bytes_min;
}

bool cache_room(uint64_t need, uint64_t kept, uint64_t bytes_max, cache_disk disk,
                uint64_t *out_keep)
{
    if (need > bytes_max)
        return false;
    uint64_t keep = bytes_max - need, floor = free_floor(disk);
    if (disk.all > 0) {
        uint64_t room = disk.free + kept; /* if all of them went */
        if (room < floor || room - floor < need)
            return false;
        if (keep > room - floor - need)
            keep = room - floor - need;
    }
    *out_keep = keep;
    return true;
}

static cache_disk disk_of(const char *folder)
{
    struct statvfs v;
    if (statvfs(folder, &v) != 0)
        return (cache_disk){0};
    return (cache_disk){.free = (uint64_t)v.f_bavail * v.f_frsize,
                        .all = (uint64_t)v.f_blocks * v.f_frsize};
}

static uint64_t kept_bytes(const char *folder)
{
    arena *a = arena_create();
    cache_file *files;
    uint64_t kept = 0;
    size_t n = cache_list(a, folder, &files);
    for (size_t i = 0; i < n; i++)
        kept += files[i].bytes;
    arena_destroy(a);
    return kept;
}

bool cache_has_room(const char *folder, uint64_t need, uint64_t bytes_max)
{
    strbuf there = {0}; /* the folder, or the nearest above it that there is */
    uint64_t keep;
    strbuf_add(&there, "%s%s", folder[0] == '/' ? "" : "./", folder);
    while (access(there.p, F_OK) != 0 && there.p[1]) { /* "." and "/" are the last */
        char *end = strrchr(there.p, '/');
        end[end == there.p] = 0;
    }
    bool room = access(there.p, W_OK | X_OK) == 0 &&
                cache_room(need, kept_bytes(folder), bytes_max, disk_of(there.p), &keep);
    strbuf_free(&there);
    return room;
}

bool cache_make_room(const char *folder, uint64_t need, uint64_t bytes_max)
{
    uint64_t keep;
    if (!cache_room(need, kept_bytes(folder), bytes_max, disk_of(folder), &keep))
        return false;
    cache_prune(folder, keep);
    /* A file that somebody has mapped goes when they are done: its bytes may not be free yet. */
    return cache_room(need, 0, bytes_max, disk_of(folder), &keep);
}
