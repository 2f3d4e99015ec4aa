/* pack_store.c - a header of one page, then the weights as they are in memory. */
#include "runtime/exec/pack_store.h"

#include "runtime/base/mem.h"
#include "runtime/base/prefault.h"
#include "runtime/base/vec.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { HEAD_BYTES = 4096, VERSION = 2, BOOT_MAX = 40, NAME_MAX_BYTES = 512 };

/* All that is kept may not take more than this; what was used longest ago goes first. */
static const uint64_t kept_bytes_max = UINT64_C(64) << 30;

/* Less than this is woven faster than a file is made. */
static const size_t worth_keeping = (size_t)16 << 20;

/* A file that has no name yet after so many seconds was left by a process that was ended while it wove. */
enum { LEFT_ALONE_SECONDS = 3600 };

static const char temp_prefix[] = "new-";
static const char magic[8] = "WEFTPACK";

typedef struct {
    char magic[8];
    uint32_t version;
    uint32_t head_bytes;
    uint64_t lo, hi; /* what the file is named by */
    uint64_t packed_bytes;
    uint32_t synced; /* all of it is on the disk, not only in the system's memory */
    char boot
        [BOOT_MAX]; /* the system's name for its present run: else it may be believed in this one only */
    char model[NAME_MAX_BYTES];
} pack_head;

struct pack_store {
    char *map; /* the header and the data, or the data alone */
    size_t map_bytes;
    char *data;
    pack_head head;
    char *temp, *path; /* NULL: nothing is to be kept */
    int fd;            /* of a file that has no name yet, or -1: it is called temp */
    bool fresh;        /* made and published by us, so that it is for us to sync */
};

/* ---- names ---- */

bool pack_folder(strbuf *out)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && cache[0] == '/')
        strbuf_add(out, "%s/weft/packed", cache);
    else if (home && home[0] == '/')
        strbuf_add(out, "%s/.cache/weft/packed", home);
    else
        return false;
    return true;
}

static void mix(model_hash *h, uint64_t x)
{
    h->lo = (h->lo ^ x) * 0x9e3779b97f4a7c15u;
    h->lo ^= h->lo >> 29;
    h->hi = (h->hi + h->lo) * 0xbf58476d1ce4e5b9u;
    h->hi ^= h->hi >> 32;
}

/* The checkpoint as it is on this machine, and the order, place and layout of everything woven. */
static bool name_plan(const plan *p, const model_file *mf, model_hash *out)
{
    model_hash h;
    if (!model_file_stamp(mf, &h))
        return false;
    mix(&h, VERSION);
    for (int32_t i = 0; i < p->n_weight; i++) {
        const plan_weight *w = &p->weight[i];
        if (w->mode != WEIGHT_PACKED)
            continue;
        const uint64_t facts[] = {(uint64_t)w->layout, (uint64_t)w->type, (uint64_t)w->stored,
                                  (uint64_t)w->bytes,  (uint64_t)w->rank, (uint64_t)w->n_piece};
        for (size_t k = 0; k < sizeof facts / sizeof facts[0]; k++)
            mix(&h, facts[k]);
        for (int k = 0; k < w->rank; k++) {
            mix(&h, (uint64_t)w->dim[k]);
            mix(&h, (uint64_t)w->stride[k]);
        }
        for (int k = 0; k < w->n_piece; k++) {
            mix(&h, (uint64_t)w->piece[k].tensor);
            mix(&h, (uint64_t)w->piece[k].offset);
            mix(&h, (uint64_t)w->piece[k].rows);
            mix(&h, w->scales ? (uint64_t)w->scales[k].tensor : 0);
            mix(&h, w->scales ? (uint64_t)w->scales[k].offset : 0);
        }
    }
    *out = h;
    return true;
}

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

/* Where the system has no such name, it is empty and only what was synced is believed. */
static void name_boot(char *to)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, to, BOOT_MAX - 1) : 0;
    to[n > 0 ? n : 0] = 0;
    if (fd >= 0)
        close(fd);
}

static bool survived(const pack_head *h, const pack_head *want)
{
    return h->synced == 1 || (want->boot[0] && memcmp(h->boot, want->boot, BOOT_MAX) == 0);
}

static bool head_fits(const pack_head *h, const pack_head *want)
{
    return memcmp(h->magic, magic, sizeof magic) == 0 && h->version == VERSION &&
           h->head_bytes == HEAD_BYTES && h->lo == want->lo && h->hi == want->hi &&
           h->packed_bytes == want->packed_bytes && survived(h, want);
}

/* Whatever lies under the name: a FIFO must not hold us, a link lead nowhere else. */
static int open_kept(const char *path)
{
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY);
}

/* Numbers that someone else can write are not believed: the folder may be one that others share. */
static bool is_ours(const struct stat *st)
{
    return S_ISREG(st->st_mode) && (st->st_uid == geteuid() || st->st_uid == 0) &&
           !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* Map what an earlier process left. */
static bool find_file(pack_store *s)
{
    struct stat st;
    pack_head head;
    int fd = open_kept(s->path);
    if (fd < 0)
        return false;
    size_t bytes = HEAD_BYTES + (size_t)s->head.packed_bytes;
    void *map = MAP_FAILED;
    if (fstat(fd, &st) == 0 && is_ours(&st) && (uint64_t)st.st_size == bytes &&
        pread(fd, &head, sizeof head, 0) == (ssize_t)sizeof head && head_fits(&head, &s->head))
        map = map_file(fd, bytes, PROT_READ);
    if (map != MAP_FAILED)
        futimens(fd, NULL); /* used now */
    close(fd);
    if (map == MAP_FAILED)
        return false;
    s->map = map;
    s->map_bytes = bytes;
    s->data = s->map + HEAD_BYTES;
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
    size_t bytes = HEAD_BYTES + (size_t)s->head.packed_bytes;
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
    s->data = s->map + HEAD_BYTES;
    return true;
}

static void forget_file(pack_store *s)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
    mem_free(s->temp);
    mem_free(s->path);
    s->temp = s->path = NULL;
}

/* Names for the file, in its folder; false: there can be none. */
static bool name_file(pack_store *s, const plan *p, const model_file *mf)
{
    strbuf path = {0};
    model_hash h;
    bool fine = name_plan(p, mf, &h) && pack_folder(&path) && make_folders(path.p);
    if (fine) {
        s->head.lo = h.lo;
        s->head.hi = h.hi;
        size_t n = path.n;
        strbuf_add(&path, "/%016" PRIx64 "%016" PRIx64 ".pack", h.hi, h.lo);
        s->path = copy_text(path.p);
        path.n = n;
        strbuf_add(&path, "/%sXXXXXX", temp_prefix);
        s->temp = copy_text(path.p);
    }
    strbuf_free(&path);
    return fine;
}

weft_status pack_store_open(weft_diag *dg, const plan *p, const model_file *mf, bool keep,
                            pack_store **out_s, bool *out_filled)
{
    pack_store *s = mem_alloc(sizeof *s);
    *s = (pack_store){
        .head = {.version = VERSION, .head_bytes = HEAD_BYTES, .packed_bytes = p->packed_bytes},
        .fd = -1};
    memcpy(s->head.magic, magic, sizeof magic);
    name_boot(s->head.boot);
    snprintf(s->head.model, sizeof s->head.model, "%s",
             model_file_part_count(mf) ? model_file_part(mf, 0).path : "");
    *out_s = s;
    *out_filled = false;
    if (keep && p->packed_bytes >= worth_keeping && name_file(s, p, mf)) {
        if (find_file(s)) {
            *out_filled = true;
            forget_file(s);
            return WEFT_OK;
        }
        pack_prune(kept_bytes_max > p->packed_bytes ? kept_bytes_max - p->packed_bytes : 0);
        if (make_file(s))
            return WEFT_OK;
        forget_file(s);
    }
    void *data = NULL;
    size_t align = p->packed_bytes >= MEM_PAGE_LARGE ? MEM_PAGE_LARGE : PLAN_ALIGN;
    if (posix_memalign(&data, align, p->packed_bytes ? p->packed_bytes : 1) != 0) {
        mem_free(s);
        *out_s = NULL;
        return weft_fail(dg, W0902, WEFT_NOWHERE, "%zu bytes for woven weights are not to be had",
                         p->packed_bytes);
    }
    mem_want_large(data, p->packed_bytes);
    s->data = data;
    return WEFT_OK;
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
    if (s->fresh)
        msync(s->map, s->map_bytes, MS_ASYNC);
    else if (named)
        unlink(s->temp);
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
    msync(s->map, HEAD_BYTES, MS_ASYNC);
}

void pack_store_close(pack_store *s)
{
    if (!s)
        return;
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

/* ---- what is kept ---- */

static bool read_file(arena *a, const char *folder, const char *name, pack_file *out)
{
    size_t n = strlen(name);
    if (n < 5 || strcmp(name + n - 5, ".pack") != 0)
        return false;
    struct stat st;
    pack_head head;
    int fd = open_kept(arena_printf(a, "%s/%s", folder, name).p);
    if (fd < 0)
        return false;
    bool fine = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    bool known = fine && pread(fd, &head, sizeof head, 0) == (ssize_t)sizeof head &&
                 memcmp(head.magic, magic, sizeof magic) == 0;
    close(fd);
    if (fine)
        *out = (pack_file){
            .name = arena_printf(a, "%s", name).p,
            .bytes = (uint64_t)st.st_size,
            .used = (int64_t)st.st_mtime,
            .model = known ? arena_printf(a, "%.*s", NAME_MAX_BYTES - 1, head.model).p : "damaged"};
    return fine;
}

static int by_use(const void *x, const void *y)
{
    const pack_file *a = x, *b = y;
    return a->used != b->used ? (a->used < b->used) - (a->used > b->used)
                              : strcmp(a->name, b->name);
}

size_t pack_list(arena *a, pack_file **out_files)
{
    strbuf folder = {0};
    VEC(pack_file) files = {0};
    DIR *dir = pack_folder(&folder) ? opendir(folder.p) : NULL;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        pack_file f;
        if (read_file(a, folder.p, e->d_name, &f))
            VEC_PUSH(&files, f);
    }
    if (dir)
        closedir(dir);
    if (files.n)
        qsort(files.at, files.n, sizeof *files.at, by_use);
    size_t n = files.n;
    *out_files = ARENA_ARRAY(a, pack_file, n + 1);
    if (n)
        memcpy(*out_files, files.at, n * sizeof *files.at);
    VEC_FREE(&files);
    strbuf_free(&folder);
    return n;
}

/* Whoever still weaves into one of them keeps its memory, and the file is not kept: no harm is done. */
static uint64_t remove_leftovers(const char *folder)
{
    uint64_t gone = 0;
    struct stat st;
    time_t now = time(NULL);
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (strncmp(e->d_name, temp_prefix, sizeof temp_prefix - 1) == 0 &&
            fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
            now - st.st_mtime > LEFT_ALONE_SECONDS && unlinkat(dirfd(dir), e->d_name, 0) == 0)
            gone += (uint64_t)st.st_size;
    if (dir)
        closedir(dir);
    return gone;
}

uint64_t pack_prune(uint64_t bytes_max)
{
    arena *a = arena_create();
    strbuf folder = {0};
    pack_file *files;
    uint64_t kept = 0, gone = 0;
    size_t n = pack_list(a, &files);
    if (pack_folder(&folder))
        gone = remove_leftovers(folder.p);
    for (size_t i = 0; i < n; i++) {
        if (files[i].bytes <= bytes_max && kept <= bytes_max - files[i].bytes) {
            kept += files[i].bytes;
            continue;
        }
        if (unlink(arena_printf(a, "%s/%s", folder.p, files[i].name).p) == 0)
            gone += files[i].bytes;
    }
    strbuf_free(&folder);
    arena_destroy(a);
    return gone;
}
