/* cache_file.c - names, and headers: made, and compared. */
#include "runtime/exec/cache_file.h"

#include "runtime/base/checksum.h"
#include "runtime/base/intmath.h"
#include "runtime/exec/cache_sums.h"
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

_Static_assert(sizeof(cache_head) == offsetof(cache_head, head_sum) + sizeof(uint64_t) &&
                   sizeof(cache_head) <= CACHE_HEAD_BYTES,
               "a header has no gaps");

static const char magic[8] = "WEFTPACK";

static bool all_of(const char *text, size_t n, const char *allowed)
{
    return strnlen(text, n) == n && strspn(text, allowed) >= n;
}

cache_name cache_name_of(const char *name)
{
    static const char digits[] = "0123456789abcdef",
                      letters[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const size_t prefix = strlen(CACHE_TEMP_PREFIX), tail = strlen(CACHE_TEMP_NAME) - prefix;
    bool hidden = name[0] == '.';
    if (all_of(name, CACHE_NAME_DIGITS, digits) &&
        strcmp(name + CACHE_NAME_DIGITS, CACHE_CODE_SUFFIX) == 0)
        return CACHE_NAME_CODE;
    if (all_of(name + hidden, CACHE_NAME_DIGITS, digits) &&
        strcmp(name + hidden + CACHE_NAME_DIGITS, hidden ? CACHE_SEEN_SUFFIX : CACHE_SUFFIX) == 0)
        return hidden ? CACHE_NAME_SEEN : CACHE_NAME_FILE;
    if (str_starts(str_of(name), STR(CACHE_TEMP_PREFIX)) && all_of(name + prefix, tail, letters) &&
        name[prefix + tail] == 0)
        return CACHE_NAME_TEMP;
    return CACHE_NAME_OTHER;
}

/* Where the system has no such name, it is empty and only what was synced is used. */
static void name_boot(char *to)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, to, CACHE_BOOT_MAX - 1) : 0;
    to[n > 0 ? n : 0] = 0;
    if (fd >= 0)
        close(fd);
}

void cache_head_init(cache_head *h, uint64_t interleaved_bytes, const weight_source *src)
{
    memset(h, 0, sizeof *h);
    memcpy(h->magic, magic, sizeof magic);
    h->version = CACHE_VERSION;
    h->head_bytes = CACHE_HEAD_BYTES;
    h->interleaved_bytes = interleaved_bytes;
    name_boot(h->boot);
    snprintf(h->model, sizeof h->model, "%s", src->path);
}

bool cache_head_known(const cache_head *h)
{
    return memcmp(h->magic, magic, sizeof magic) == 0;
}

uint64_t cache_head_sum(const cache_head *h)
{
    return checksum(h, offsetof(cache_head, synced));
}

const char *cache_head_fault(const cache_head *h, const cache_head *want, uint64_t file_bytes)
{
    if (!cache_head_known(h))
        return "it has no header";
    if (h->version != CACHE_VERSION)
        return "it is of another version";
    if (h->head_bytes != CACHE_HEAD_BYTES || h->head_sum != cache_head_sum(h) || h->synced > 1)
        return "its header has changed";
    if (want &&
        (h->lo != want->lo || h->hi != want->hi || h->interleaved_bytes != want->interleaved_bytes))
        return "it holds other weights";
    if (file_bytes == UINT64_MAX || file_bytes != cache_file_bytes(h->interleaved_bytes))
        return "its length is wrong";
    return NULL;
}

bool cache_head_survived(const cache_head *h, const cache_head *want)
{
    return h->synced == 1 || (want->boot[0] && memcmp(h->boot, want->boot, sizeof h->boot) == 0);
}

uint64_t cache_file_table(uint64_t interleaved_bytes)
{
    uint64_t at;
    if (!u64_add(interleaved_bytes, CACHE_HEAD_BYTES, &at) ||
        !u64_align_up(at, sizeof(uint64_t), &at))
        return UINT64_MAX;
    return at;
}

uint64_t cache_file_bytes(uint64_t interleaved_bytes)
{
    uint64_t all, table = cache_sums_count(interleaved_bytes) * sizeof(uint64_t);
    return u64_add(cache_file_table(interleaved_bytes), table, &all) ? all : UINT64_MAX;
}

int cache_file_open(const char *path)
{
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY);
}

bool cache_file_is_ours(const struct stat *st)
{
    return S_ISREG(st->st_mode) && (st->st_uid == geteuid() || st->st_uid == 0) &&
           !(st->st_mode & (S_IWGRP | S_IWOTH));
}

bool cache_make_folders(char *path)
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
