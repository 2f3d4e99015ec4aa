/* cache_check.c - one file of interleaved weights, all of it read and compared. */
#include "runtime/exec/weight_cache.h"

#include "runtime/base/checksum.h"
#include "runtime/exec/cache_file.h"
#include "runtime/exec/cache_sums.h"
#include "runtime/formats/map_guard.h"
#include <sys/mman.h>
#include <unistd.h>

static weft_status check_map(weft_diag *dg, const char *map, size_t bytes, interleave_work how,
                             const char **out_fault)
{
    cache_head h;
    uint64_t bad;
    memcpy(&h, map, sizeof h);
    *out_fault = cache_head_fault(&h, NULL, bytes);
    if (*out_fault)
        return WEFT_OK;
    const uint64_t *table =
        (const uint64_t *)(const void *)(map + cache_file_table(h.interleaved_bytes));
    if (checksum(table, cache_sums_count(h.interleaved_bytes) * sizeof *table) != h.table_sum) {
        *out_fault = "its checksums have changed";
        return WEFT_OK;
    }
    WEFT_TRY(cache_sums_check(dg, map + CACHE_HEAD_BYTES, h.interleaved_bytes, how, table, &bad));
    if (bad != CACHE_NOTHING_BAD)
        *out_fault = "its weights have changed";
    return WEFT_OK;
}

static weft_status check_guarded(weft_diag *dg, char *map, size_t bytes, int threads,
                                 const char **out_fault)
{
    size_t lost;
    int guard = map_guard_add(map, bytes);
    weft_status status =
        check_map(dg, map, bytes, (interleave_work){.threads = threads}, out_fault);
    if (map_guard_tripped(guard, &lost))
        *out_fault = "it became shorter while it was read";
    map_guard_remove(guard);
    munmap(map, bytes);
    return status;
}

weft_status cache_check(weft_diag *dg, const char *path, int threads, const char **out_fault)
{
    struct stat st;
    weft_status status = WEFT_OK;
    int fd = cache_file_open(path);
    *out_fault = "it cannot be read";
    if (fd >= 0 && fstat(fd, &st) == 0) {
        size_t bytes = (size_t)st.st_size;
        if (!cache_file_is_ours(&st)) {
            *out_fault = "others can write it";
        } else if (bytes < CACHE_HEAD_BYTES) {
            *out_fault = "it has no header";
        } else {
            void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
            if (map != MAP_FAILED)
                status = check_guarded(dg, map, bytes, threads, out_fault);
        }
    }
    if (fd >= 0)
        close(fd);
    return status;
}
