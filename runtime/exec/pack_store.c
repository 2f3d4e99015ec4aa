/* pack_store.c - finding the file of an earlier process, else making one, else memory. */
#include "runtime/exec/pack_store.h"

#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"
#include "runtime/base/memory.h"
#include "runtime/base/prefault.h"
#include "runtime/exec/pack_file.h"
#include "runtime/exec/pack_key.h"
#include "runtime/exec/weights_impl.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct pack_store {
    char *map; /* the header and the data, or the data alone */
    size_t map_bytes;
    char *data;
    pack_head head;
    char *temp, *path, *folder; /* NULL: nothing is to be kept */
    uint64_t bytes_max;         /* of all files in the folder */
    int fd;                     /* of a file that has no name yet, or -1: it is called temp */
    bool fresh;                 /* made and published by us, so that it is for us to sync */
};

/* ---- names ---- */

/* The folder and those above it. */
static bool make_folders(char *path)
{
    for (char *at = path + 1;; at++) {
        char was = *at;
        if (was != '/' && was != 0)
            continue;
        *at = 0;
        bool fine = mkdir(path, 0700) == 0 || errno == EEXIST;
        *at = was;
        if (!fine || was == 0)
            return fine;
    }
}

static char *copy_text(const char *text)
{
    size_t n = strlen(text) + 1;
    return memcpy(mem_alloc(n), text, n);
}

/* ---- finding and making ---- */

/* On large pages from the moment it is made, so that whoever maps it later has them too. */
static void *map_file(int fd, size_t bytes, int access)
{
    void *map = mmap(NULL, bytes, access, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED)
        mem_want_large(map, bytes);
    return map;
}

/* Map what an earlier process left. */
static bool find_file(pack_store *s)
{
    struct stat st;
    pack_head head;
    int fd = pack_file_open(s->path);
    if (fd < 0)
        return false;
    size_t bytes = (size_t)pack_file_bytes(s->head.packed_bytes);
    void *map = MAP_FAILED;
    if (fstat(fd, &st) == 0 && pack_file_is_ours(&st) && (uint64_t)st.st_size == bytes &&
        pread(fd, &head, sizeof head, 0) == (ssize_t)sizeof head && pack_head_fits(&head, &s->head))
        map = map_file(fd, bytes, PROT_READ);
    if (map != MAP_FAILED)
        futimens(fd, NULL); /* used now */
    close(fd);
    if (map == MAP_FAILED)
        return false;
    s->map = map;
    s->map_bytes = bytes;
    s->data = s->map + PACK_HEAD_BYTES;
    return true;
}

/* Where the system can, a file without a name: nothing is left of it if we are ended. */
static int open_nameless(const pack_store *s)
{
#ifdef O_TMPFILE
    char folder[4096];
    size_t n = (size_t)(strrchr(s->temp, '/') - s->temp);
    if (n >= sizeof folder || access("/proc/self/fd", X_OK) != 0)
        return -1;
    memcpy(folder, s->temp, n);
    folder[n] = 0;
    return open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
#else
    (void)s;
    return -1;
#endif
}

/* Call it temp. */
static bool name_nameless(pack_store *s)
{
    char fd_path[64];
    snprintf(fd_path, sizeof fd_path, "/proc/self/fd/%d", s->fd);
    int taken = mkstemp(s->temp); /* a name that no one has */
    if (taken < 0)
        return false;
    close(taken);
    unlink(s->temp);
    return linkat(AT_FDCWD, fd_path, AT_FDCWD, s->temp, AT_SYMLINK_FOLLOW) == 0;
}

/* A file of the whole size; its blocks are taken now, since a full disk cannot be told of later. */
static bool make_file(pack_store *s)
{
    size_t bytes = (size_t)pack_file_bytes(s->head.packed_bytes);
    s->fd = open_nameless(s);
    int fd = s->fd >= 0 ? s->fd : mkstemp(s->temp);
    if (fd < 0)
        return false;
    void *map = MAP_FAILED;
    if (posix_fallocate(fd, 0, (off_t)bytes) == 0)
        map = map_file(fd, bytes, PROT_READ | PROT_WRITE);
    if (fd != s->fd)
        close(fd);
    if (map == MAP_FAILED) {
        if (fd != s->fd)
            unlink(s->temp);
        return false;
    }
    s->map = map;
    s->map_bytes = bytes;
    s->data = s->map + PACK_HEAD_BYTES;
    return true;
}

static void forget_file(pack_store *s)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
    mem_free(s->temp);
    mem_free(s->path);
    mem_free(s->folder);
    s->temp = s->path = s->folder = NULL;
}

/* Names for the file, in its folder; false: there can be none. */
static bool name_file(pack_store *s, const plan *p, const model_file *mf, const pack_options *opt)
{
    strbuf path = {0};
    model_hash h;
    bool fine = pack_key(p, mf, weights_pack_sample, &h) && pack_folder(opt->dir, &path) &&
                make_folders(path.p);
    if (fine) {
        s->head.lo = h.lo;
        s->head.hi = h.hi;
        s->folder = copy_text(path.p);
        size_t n = path.n;
        strbuf_add(&path, "/%016" PRIx64 "%016" PRIx64 PACK_SUFFIX, h.hi, h.lo);
        s->path = copy_text(path.p);
        path.n = n;
        strbuf_add(&path, "/" PACK_TEMP_PREFIX "XXXXXX");
        s->temp = copy_text(path.p);
    }
    strbuf_free(&path);
    return fine;
}

static uint64_t or_default(uint64_t x, uint64_t standard)
{
    return x ? x : standard;
}

static void close_undone(void *s)
{
    pack_store_close(s);
}

weft_status pack_store_open(weft_diag *dg, const plan *p, const model_file *mf,
                            const pack_options *opt, pack_store **out_s, bool *out_filled)
{
    pack_store *s = mem_alloc(sizeof *s);
    *s = (pack_store){.fd = -1};
    mem_scope_on_fail(close_undone, s);
    pack_head_init(&s->head, p->packed_bytes, mf);
    *out_s = s;
    *out_filled = false;
    if (opt->keep && p->packed_bytes >= or_default(opt->bytes_min, PACK_BYTES_MIN) &&
        name_file(s, p, mf, opt)) {
        if (find_file(s)) {
            *out_filled = true;
            forget_file(s);
            return WEFT_OK;
        }
        s->bytes_max = or_default(opt->bytes_max, PACK_BYTES_MAX);
        if (pack_make_room(s->folder, pack_file_bytes(p->packed_bytes), s->bytes_max) &&
            make_file(s))
            return WEFT_OK;
        forget_file(s);
    }
    size_t align = p->packed_bytes >= MEM_PAGE_LARGE ? MEM_PAGE_LARGE : PLAN_ALIGN;
    void *data = mem_try_aligned(align, p->packed_bytes);
    if (!data) {
        memory_room room = memory_available("");
        pack_store_close(s);
        *out_s = NULL;
        return weft_fail(dg, W0902, WEFT_NOWHERE,
                         "no memory for %zu bytes of interleaved weights: %" PRIu64
                         " are available %s",
                         p->packed_bytes, room.bytes, room.within);
    }
    mem_want_large(data, p->packed_bytes);
    s->data = data;
    return WEFT_OK;
}

bool pack_store_is_file(const pack_store *s)
{
    return s->map != NULL;
}

bool pack_store_would_keep(const plan *p, const model_file *mf, const pack_options *opt)
{
    struct stat st;
    strbuf path = {0};
    model_hash h;
    uint64_t bytes = pack_file_bytes(p->packed_bytes);
    bool keeps = opt->keep && p->packed_bytes >= or_default(opt->bytes_min, PACK_BYTES_MIN) &&
                 pack_key(p, mf, weights_pack_sample, &h) && pack_folder(opt->dir, &path);
    if (keeps && !pack_has_room(path.p, bytes, or_default(opt->bytes_max, PACK_BYTES_MAX))) {
        strbuf_add(&path, "/%016" PRIx64 "%016" PRIx64 PACK_SUFFIX, h.hi, h.lo);
        keeps = lstat(path.p, &st) == 0 && pack_file_is_ours(&st) && (uint64_t)st.st_size == bytes;
    }
    strbuf_free(&path);
    return keeps;
}

void pack_store_prefault(const pack_store *s, int threads)
{
    if (s->map)
        prefault(s->map, s->map_bytes, threads);
}

char *pack_store_data(const pack_store *s)
{
    return s->data;
}

void pack_store_publish(pack_store *s)
{
    if (!s->temp)
        return;
    memcpy(s->map, &s->head, sizeof s->head);
    bool named = s->fd < 0 || name_nameless(s);
    s->fresh =
        named && mprotect(s->map, s->map_bytes, PROT_READ) == 0 && rename(s->temp, s->path) == 0;
    if (s->fresh) {
        msync(s->map, s->map_bytes, MS_ASYNC);
        pack_prune(s->folder, s->bytes_max); /* others may have made files at the same time */
    } else if (named) {
        unlink(s->temp);
    }
    forget_file(s);
}

/* Once the data is on the disk, say so. By now most of it is, so this takes little time. */
static void sync_file(pack_store *s)
{
    pack_head *head = (pack_head *)(void *)s->map;
    if (msync(s->map, s->map_bytes, MS_SYNC) != 0 ||
        mprotect(s->map, s->map_bytes, PROT_READ | PROT_WRITE) != 0)
        return;
    head->synced = 1;
    msync(s->map, PACK_HEAD_BYTES, MS_ASYNC);
}

void pack_store_close(pack_store *s)
{
    if (!s)
        return;
    mem_scope_forget(close_undone, s);
    if (s->temp && s->fd < 0)
        unlink(s->temp);
    if (s->fresh)
        sync_file(s);
    if (s->map)
        munmap(s->map, s->map_bytes);
    else
        mem_free(s->data);
    forget_file(s);
    mem_free(s);
}
