/* cache_seen.h - which files of interleaved weights were checked all through since they last changed.
 *
 * Beside NAME.weights a small file .NAME.seen says what the system knew of it when it was checked: device, inode, size, time
 * of its last change, and the run of the system. While all of that is the same, nobody has written to the file. The
 * time of the small file is when the weights were last used. Losing it costs a check. */
#ifndef WEFT_RUNTIME_EXEC_CACHE_SEEN_H
#define WEFT_RUNTIME_EXEC_CACHE_SEEN_H

#include "runtime/exec/cache_file.h"

typedef struct {
    char magic[8];
    uint64_t device, inode, bytes;
    int64_t changed_s, changed_ns;
    uint64_t head_sum;
    char boot[CACHE_BOOT_MAX];
} cache_stamp;

/* Of an open file and its header; boot is that of now. out_settled: the file last changed long enough ago that another
 * change would show in its time. */
cache_stamp cache_stamp_of(const struct stat *st, const cache_head *h, const char *boot,
                           bool *out_settled);
/* Was the file at this path checked as it is now? Then it counts as used. */
bool cache_seen(const char *path, const cache_stamp *now);
/* It is checked; false if that cannot be written down. */
bool cache_seen_note(const char *path, const cache_stamp *now);
/* When it was last used, in seconds since 1970; 0: nobody wrote that down. */
int64_t cache_seen_used(const char *path);
/* Remove what is written of a file that is gone. */
void cache_seen_drop(const char *path);
/* If `name`, of a file in the folder, is one of these small files: the path of the other file, in a. */
bool cache_seen_is(arena *a, const char *folder, const char *name, const char **out_path);

#endif
