/* cache_file.h - the form of a file of interleaved weights: a header of one page, the weights as they are in memory, and
 * the checksum of every 64 KiB of them (cache_sums.h).
 *
 * Integers are in the byte order of the machine that wrote them: the file is a cache of that machine's own. For the
 * files of this folder that write, find and list them. */
#ifndef WEFT_RUNTIME_EXEC_CACHE_FILE_H
#define WEFT_RUNTIME_EXEC_CACHE_FILE_H

#include "runtime/base/str.h"
#include "runtime/base/weight_source.h"
#include "runtime/exec/weight_cache.h"
#include <sys/stat.h>

enum { CACHE_HEAD_BYTES = 4096, CACHE_VERSION = 3, CACHE_BOOT_MAX = 40, CACHE_MODEL_MAX = 512 };

/* Names: DIGITS.weights, of 32 hexadecimal digits, holds weights, DIGITS.code generated code; .DIGITS.seen is what was noted of it (cache_seen.h); a file
 * that is not complete yet is called by mkstemp's template. */
#define CACHE_SUFFIX ".weights"
#define CACHE_CODE_SUFFIX ".code"
#define CACHE_SEEN_SUFFIX ".seen"
#define CACHE_TEMP_PREFIX "weft-new-"
#define CACHE_TEMP_NAME CACHE_TEMP_PREFIX "XXXXXX"
enum { CACHE_NAME_DIGITS = 32 };

typedef enum {
    CACHE_NAME_OTHER,
    CACHE_NAME_FILE,
    CACHE_NAME_CODE,
    CACHE_NAME_SEEN,
    CACHE_NAME_TEMP
} cache_name;

/* Which of these names is it? Files with any other are not ours: the folder may hold what others keep there. */
cache_name cache_name_of(const char *name);

typedef struct {
    char magic[8];
    uint32_t version;
    uint32_t head_bytes;
    uint64_t lo, hi; /* what the file is named by */
    uint64_t interleaved_bytes;
    uint64_t table_sum; /* of the table of checksums */
    /* The system's name for its present run; a file that was not synced is good for that run only. */
    char boot[CACHE_BOOT_MAX];
    char model[CACHE_MODEL_MAX];
    uint64_t synced;   /* 1: all of it is on the disk, not only in the system's memory */
    uint64_t head_sum; /* of all of the header before `synced`, which is written later */
} cache_head;

/* The header of a file of p's weights that is made now; its name (lo, hi) and sums are left 0. */
void cache_head_init(cache_head *h, uint64_t interleaved_bytes, const weight_source *src);
uint64_t cache_head_sum(const cache_head *h);
/* Is it a header of ours at all? */
bool cache_head_known(const cache_head *h);
/* What is wrong with a file of so many bytes that should have this name; NULL: nothing. `want`: what it should hold;
 * NULL: whatever its header says. */
const char *cache_head_fault(const cache_head *h, const cache_head *want, uint64_t file_bytes);
/* Is all of it there, though the system may have stopped before it was on the disk? */
bool cache_head_survived(const cache_head *h, const cache_head *want);

/* Bytes of the whole file, UINT64_MAX: more than can be; and where its table of checksums begins. */
uint64_t cache_file_bytes(uint64_t interleaved_bytes);
uint64_t cache_file_table(uint64_t interleaved_bytes);

/* Open whatever has this name, to read: a FIFO does not block, a link is not followed. -1: nothing can be. */
int cache_file_open(const char *path);
/* A regular file that nobody but us or root can write: the folder may be one that others share. */
bool cache_file_is_ours(const struct stat *st);

/* The folder and those above it, where they are not there; false, with errno, if that cannot be. path is as it was. */
bool cache_make_folders(char *path);

/* cache_list.c, for files of any kind: the folder of that name among the caches; what a file is, false if it is none of the
 * kind; and listing and removing those. */
bool cache_folder_named(const char *dir, const char *name, strbuf *out);
typedef bool cache_read_fn(arena *a, const char *folder, const char *name, cache_file *out);
size_t cache_list_by(arena *a, const char *folder, cache_read_fn *read_one, cache_file **out_files);
uint64_t cache_prune_by(const char *folder, cache_read_fn *read_one, uint64_t bytes_max);

#endif
