/* weight_cache.c - finding the file of an earlier process, else making one, else memory. */
#include "runtime/exec/weight_cache.h"

#include "runtime/base/checksum.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"
#include "runtime/base/memory.h"
#include "runtime/base/prefault.h"
#include "runtime/exec/cache_file.h"
#include "runtime/exec/cache_key.h"
#include "runtime/exec/cache_seen.h"
#include "runtime/exec/cache_sums.h"
#include "runtime/exec/weight_rows.h"
#include "runtime/formats/map_guard.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct weight_cache {
    weight_source source;       /* first: cache_of goes from it to the rest */
    const plan_weight **weight; /* [n_weight]: of the plan, those that are interleaved */
    size_t *begin;              /* [n_weight]: where each begins */
    size_t n_weight;
    char *map; /* the file, or NULL: the data is memory */
    size_t map_bytes;
    char *data;
    cache_head head;
    char *folder, *path; /* of the file; NULL: there is none */
    char *temp;          /* what it is called until it is published; NULL: it is, or is not to be */
    bool nameless;       /* it has no name at all yet */
    int fd;              /* of the file that we make or have made; else -1 */
    uint64_t bytes_max;  /* of all files in the folder */
    bool guarded;        /* survive a file that becomes shorter: map_guard.h */
    int guard;           /* -1: none */
    interleave_work work;
};

static uint64_t or_default(uint64_t x, uint64_t standard)
{
    return x ? x : standard;
}

/* ---- names ---- */

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

/* Survive what happens to a file that nobody writes any more; false: too many are guarded. */
static bool guard_map(weight_cache *s)
{
    if (s->guarded)
        s->guard = map_guard_add(s->map, s->map_bytes);
    return !s->guarded || s->guard >= 0;
}

static void drop_map(weight_cache *s)
{
    map_guard_remove(s->guard);
    s->guard = -1;
    if (s->map)
        munmap(s->map, s->map_bytes);
    s->map = s->data = NULL;
}

static uint64_t *table_of(const weight_cache *s)
{
    return (uint64_t *)(void *)(s->map + cache_file_table(s->head.interleaved_bytes));
}

/* The offset of weights that are not those that were written, or CACHE_NOTHING_BAD. All of them are looked at once after
 * the file has changed or the system was started, unless that could take long: see all_at_once. Else a few of them. */
static weft_status check_data(weft_diag *dg, const weight_cache *s, const cache_head *h, bool all,
                              uint64_t *out_bad)
{
    const uint64_t *table = table_of(s);
    uint64_t bytes = s->head.interleaved_bytes;
    *out_bad = 0;
    if (checksum(table, cache_sums_count(bytes) * sizeof *table) != h->table_sum)
        return WEFT_OK;
    if (all)
        return cache_sums_check(dg, s->data, bytes, s->work, table, out_bad);
    *out_bad = cache_sums_sample(s->data, bytes, table, clock_ns() ^ (uint64_t)getpid());
    return WEFT_OK;
}

/* Reading all of a file at the start is time that a model with experts, of which a token reads few, would not spend; and
 * one that does not fit into memory would be read twice. */
static bool all_at_once(uint64_t bytes, uint64_t check_bytes_max)
{
    return bytes <= check_bytes_max && bytes <= memory_available("").bytes;
}

static void report_damage(weft_diag *dg, const weight_cache *s, const char *why)
{
    weft_fail(dg, W1508, WEFT_NOWHERE, "%s: interleaved weights on disk are damaged: %s", s->path,
              why);
    cache_remove(s->path);
}

/* Map the file and look at its weights. */
static weft_status use_file(weft_diag *dg, weight_cache *s, int fd, const struct stat *st,
                            const cache_head *h, const cache_options *opt, bool *out_found)
{
    char why[128] = "";
    bool settled;
    uint64_t bad;
    size_t lost;
    s->map_bytes = (size_t)st->st_size;
    void *map = map_file(fd, s->map_bytes, PROT_READ);
    if (map == MAP_FAILED)
        return WEFT_OK;
    s->map = map;
    s->data = s->map + CACHE_HEAD_BYTES;
    if (!guard_map(s)) {
        drop_map(s);
        return WEFT_OK;
    }
    prefault(s->map, s->map_bytes, s->work.threads);
    cache_stamp stamp = cache_stamp_of(st, h, s->head.boot, &settled);
    bool seen = cache_seen(s->path, &stamp);
    uint64_t most = or_default(opt->check_bytes_max, CACHE_CHECK_BYTES_MAX);
    bool all = opt->check_all || (!seen && all_at_once(s->map_bytes, most));
    weft_status status = check_data(dg, s, h, all, &bad);
    if (map_guard_tripped(s->guard, &lost))
        snprintf(why, sizeof why, "it became shorter while it was read");
    else if (status == WEFT_OK && bad != CACHE_NOTHING_BAD)
        snprintf(why, sizeof why,
                 "the checksum of the bytes from %" PRIu64 " on is not that of the weights",
                 bad + CACHE_HEAD_BYTES);
    if (status != WEFT_OK || why[0]) {
        drop_map(s);
        if (status == WEFT_OK)
            report_damage(dg, s, why);
        return status;
    }
    if (!seen && !(all && settled && cache_seen_note(s->path, &stamp)))
        futimens(fd, NULL); /* used now */
    *out_found = true;
    return WEFT_OK;
}

/* Look for what an earlier process left. A file that somebody else could have written is none, and neither is one that
 * may not have come to the disk whole. */
static weft_status find_file(weft_diag *dg, weight_cache *s, const cache_options *opt,
                             bool *out_found)
{
    struct stat st;
    cache_head head;
    weft_status status = WEFT_OK;
    int fd = cache_file_open(s->path);
    if (fd < 0)
        return WEFT_OK;
    file_hold(fd);
    if (fstat(fd, &st) == 0 && cache_file_is_ours(&st)) {
        memset(&head, 0, sizeof head);
        bool whole = pread(fd, &head, sizeof head, 0) == (ssize_t)sizeof head;
        const char *fault = cache_head_fault(&head, &s->head, (uint64_t)st.st_size);
        if (!whole || fault)
            report_damage(dg, s, whole ? fault : "it has no header");
        else if (cache_head_survived(&head, &s->head))
            status = use_file(dg, s, fd, &st, &head, opt, out_found);
    }
    file_close(fd);
    return status;
}

/* Where the system can, a file without a name: nothing is left of it if we are ended. */
static int open_nameless(const weight_cache *s)
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
static bool name_nameless(weight_cache *s)
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

/* A file of the whole size; its blocks are taken now, since a full disk cannot be reported later. */
static bool make_file(weight_cache *s)
{
    size_t bytes = (size_t)cache_file_bytes(s->head.interleaved_bytes);
    s->fd = open_nameless(s);
    s->nameless = s->fd >= 0;
    if (s->fd < 0)
        s->fd = mkstemp(s->temp);
    if (s->fd < 0)
        return false;
    void *map = MAP_FAILED;
    fcntl(s->fd, F_SETFD, FD_CLOEXEC);
    if (posix_fallocate(s->fd, 0, (off_t)bytes) == 0)
        map = map_file(s->fd, bytes, PROT_READ | PROT_WRITE);
    if (map == MAP_FAILED)
        return false;
    s->map = map;
    s->map_bytes = bytes;
    s->data = s->map + CACHE_HEAD_BYTES;
    return true;
}

/* The file is not to be kept. */
static void forget_file(weight_cache *s)
{
    if (s->fd >= 0 && s->temp && !s->nameless)
        unlink(s->temp);
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
    mem_free(s->temp);
    s->temp = NULL;
}

/* Names for the file, in its folder; false: there can be none. */
static bool name_file(weight_cache *s, const plan *p, const weight_source *src,
                      const cache_options *opt)
{
    strbuf path = {0};
    model_hash h;
    bool fine = cache_key(p, src, weight_make_sample, &h) && cache_folder(opt->dir, &path) &&
                cache_make_folders(path.p);
    if (fine) {
        s->head.lo = h.lo;
        s->head.hi = h.hi;
        s->folder = copy_text(path.p);
        size_t n = path.n;
        strbuf_add(&path, "/%016" PRIx64 "%016" PRIx64 CACHE_SUFFIX, h.hi, h.lo);
        s->path = copy_text(path.p);
        path.n = n;
        strbuf_add(&path, "/" CACHE_TEMP_NAME);
        s->temp = copy_text(path.p);
    }
    strbuf_free(&path);
    return fine;
}

/* A file that is there or that can be made; out_filled is left alone if there is none. */
static weft_status open_file(weft_diag *dg, weight_cache *s, const cache_options *opt,
                             bool *out_filled)
{
    WEFT_TRY(find_file(dg, s, opt, out_filled));
    uint64_t bytes = cache_file_bytes(s->head.interleaved_bytes);
    s->bytes_max = or_default(opt->bytes_max, CACHE_BYTES_MAX);
    if (*out_filled || !cache_make_room(s->folder, bytes, s->bytes_max) || !make_file(s))
        forget_file(s);
    return WEFT_OK;
}

static weft_status open_memory(weft_diag *dg, weight_cache *s, size_t bytes)
{
    size_t align = bytes >= MEM_PAGE_LARGE ? MEM_PAGE_LARGE : PLAN_ALIGN;
    void *data = mem_try_aligned(align, bytes);
    if (!data) {
        memory_room room = memory_available("");
        return weft_fail(dg, W0902, WEFT_NOWHERE,
                         "no memory for %zu bytes of interleaved weights: %" PRIu64
                         " are available %s",
                         bytes, room.bytes, room.within);
    }
    mem_want_large(data, bytes);
    s->data = data;
    return WEFT_OK;
}

bool weight_cache_is_file(const weight_cache *s)
{
    return s->map != NULL;
}

bool weight_cache_would_keep(const plan *p, const weight_source *src, const cache_options *opt)
{
    struct stat st;
    strbuf path = {0};
    model_hash h;
    uint64_t bytes = cache_file_bytes(p->interleaved_bytes);
    bool keeps = opt->keep && p->interleaved_bytes >= or_default(opt->bytes_min, CACHE_BYTES_MIN) &&
                 cache_key(p, src, weight_make_sample, &h) && cache_folder(opt->dir, &path);
    if (keeps && !cache_has_room(path.p, bytes, or_default(opt->bytes_max, CACHE_BYTES_MAX))) {
        strbuf_add(&path, "/%016" PRIx64 "%016" PRIx64 CACHE_SUFFIX, h.hi, h.lo);
        keeps = lstat(path.p, &st) == 0 && cache_file_is_ours(&st) && (uint64_t)st.st_size == bytes;
    }
    strbuf_free(&path);
    return keeps;
}

/* ---- a source of weights ---- */

static const weight_cache *cache_of(const weight_source *s)
{
    return (const weight_cache *)(const void *)s;
}

static size_t source_count(const weight_source *s)
{
    return cache_of(s)->n_weight;
}

static weight_tensor source_tensor(const weight_source *s, size_t i)
{
    const weight_cache *c = cache_of(s);
    const plan_weight *w = c->weight[i];
    WEFT_ASSERT(c->begin[i] + w->bytes <= c->head.interleaved_bytes); /* plan_check */
    return (weight_tensor){
        .name = str_of(w->name), .type = w->type, .bytes = w->bytes, .data = c->data + c->begin[i]};
}

static model_hash source_identity(const weight_source *s)
{
    const cache_head *h = &cache_of(s)->head; /* its name, which stands for the model's bytes too */
    return (model_hash){h->lo, h->hi};
}

static weft_status source_check(weft_diag *dg, const weight_source *s)
{
    return weight_cache_check(dg, cache_of(s));
}

static const weight_source_kind source_kind = {.count = source_count,
                                               .tensor = source_tensor,
                                               .identity = source_identity,
                                               .check = source_check};

static void list_weights(weight_cache *s, const plan *p)
{
    size_t n = (size_t)p->n_weight + 1, at = 0;
    s->weight = mem_alloc(mem_product(n, sizeof *s->weight));
    s->begin = mem_alloc(mem_product(n, sizeof *s->begin));
    for (int32_t i = 0; i < p->n_weight; i++) {
        const plan_weight *w = &p->weight[i];
        if (w->mode != WEIGHT_INTERLEAVED)
            continue;
        s->weight[s->n_weight] = w;
        s->begin[s->n_weight++] = at;
        at = weight_block_end(at, w->bytes);
    }
}

const weight_source *weight_cache_source(const weight_cache *s)
{
    return &s->source;
}

/* ---- opening and closing ---- */

static void close_undone(void *s)
{
    weight_cache_close(s);
}

weft_status weight_cache_open(weft_diag *dg, const plan *p, const weight_source *src,
                              const cache_options *opt, weight_cache **out_s, bool *out_filled)
{
    weight_cache *s = mem_alloc(sizeof *s);
    *s = (weight_cache){.fd = -1,
                        .guard = -1,
                        .guarded = src->guarded,
                        .work = {.threads = opt->threads, .cancel = opt->cancel}};
    mem_scope_on_fail(close_undone, s);
    cache_head_init(&s->head, p->interleaved_bytes, src);
    list_weights(s, p);
    bool filled = false;
    weft_status status = WEFT_OK;
    if (opt->keep && p->interleaved_bytes >= or_default(opt->bytes_min, CACHE_BYTES_MIN) &&
        name_file(s, p, src, opt))
        status = open_file(dg, s, opt, &filled);
    if (status == WEFT_OK && !s->data)
        status = open_memory(dg, s, p->interleaved_bytes);
    if (status != WEFT_OK) {
        weight_cache_close(s);
        return status;
    }
    s->source = (weight_source){
        .kind = &source_kind, .path = s->path ? s->path : "", .guarded = s->guarded};
    *out_s = s;
    *out_filled = filled;
    return WEFT_OK;
}

char *weight_cache_data(const weight_cache *s)
{
    return s->data;
}

/* Checksums and header: all that a reader needs. */
static weft_status seal(weft_diag *dg, weight_cache *s)
{
    uint64_t *table = table_of(s), bytes = s->head.interleaved_bytes;
    WEFT_TRY(cache_sums_make(dg, s->data, bytes, s->work, table));
    s->head.table_sum = checksum(table, cache_sums_count(bytes) * sizeof *table);
    s->head.head_sum = cache_head_sum(&s->head);
    memcpy(s->map, &s->head, sizeof s->head);
    return WEFT_OK;
}

weft_status weight_cache_publish(weft_diag *dg, weight_cache *s)
{
    if (!s->temp)
        return WEFT_OK;
    WEFT_TRY(seal(dg, s));
    if (s->nameless && name_nameless(s))
        s->nameless = false;
    if (s->nameless || mprotect(s->map, s->map_bytes, PROT_READ) != 0 ||
        rename(s->temp, s->path) != 0) {
        forget_file(s);
        return WEFT_OK;
    }
    mem_free(s->temp);
    s->temp = NULL;
    guard_map(s); /* it has a name, so others can get at it */
    msync(s->map, s->map_bytes, MS_ASYNC);
    cache_prune(s->folder, s->bytes_max); /* others may have made files at the same time */
    return WEFT_OK;
}

weft_status weight_cache_check(weft_diag *dg, const weight_cache *s)
{
    size_t at;
    if (!map_guard_tripped(s->guard, &at))
        return WEFT_OK;
    return weft_fail(dg, W1012, WEFT_NOWHERE,
                     "%s: byte %zu could not be read any more; the file had %zu bytes", s->path, at,
                     s->map_bytes);
}

/* Once the data is on the disk, say so. By now most of it is, so this takes little time. Written, not stored into the
 * map: the file may have become shorter. */
static void sync_file(weight_cache *s)
{
    if (msync(s->map, s->map_bytes, MS_SYNC) != 0)
        return;
    s->head.synced = 1;
    if (pwrite(s->fd, &s->head, sizeof s->head, 0) != (ssize_t)sizeof s->head)
        unlink(s->path);
}

void weight_cache_close(weight_cache *s)
{
    if (!s)
        return;
    mem_scope_forget(close_undone, s);
    if (s->fd >= 0 && !s->temp) /* published */
        sync_file(s);
    if (s->map)
        drop_map(s);
    else
        mem_free(s->data);
    forget_file(s);
    mem_free(s->folder);
    mem_free(s->path);
    mem_free(s->weight);
    mem_free(s->begin);
    mem_free(s);
}
