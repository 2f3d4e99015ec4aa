/* pack_file.h - the form of a file of interleaved weights: a header of one page, the weights as they are in memory, and
 * the checksum of every 64 KiB of them (pack_sums.h).
 *
 * Integers are in the byte order of the machine that wrote them: the file is a cache of that machine's own. For the
 * files of this folder that write, find and list them. */
#ifndef WEFT_RUNTIME_EXEC_PACK_FILE_H
#define WEFT_RUNTIME_EXEC_PACK_FILE_H

#include "runtime/base/str.h"
#include "runtime/formats/model_file.h"
#include <sys/stat.h>

enum { PACK_HEAD_BYTES = 4096, PACK_VERSION = 3, PACK_BOOT_MAX = 40, PACK_MODEL_MAX = 512 };

/* Names: DIGITS.pack, of 32 hexadecimal digits, holds weights; .DIGITS.seen is what was noted of it (pack_seen.h); a file
 * that is not complete yet is called by mkstemp's template. */
#define PACK_SUFFIX ".pack"
#define PACK_SEEN_SUFFIX ".seen"
#define PACK_TEMP_PREFIX "weft-new-"
#define PACK_TEMP_NAME PACK_TEMP_PREFIX "XXXXXX"
enum { PACK_NAME_DIGITS = 32 };

typedef enum { PACK_NAME_OTHER, PACK_NAME_FILE, PACK_NAME_SEEN, PACK_NAME_TEMP } pack_name;

/* Which of these names is it? Files with any other are not ours: the folder may hold what others keep there. */
pack_name pack_name_of(const char *name);

typedef struct {
    char magic[8];
    uint32_t version;
    uint32_t head_bytes;
    uint64_t lo, hi; /* what the file is named by */
    uint64_t packed_bytes;
    uint64_t table_sum; /* of the table of checksums */
    /* The system's name for its present run; a file that was not synced is good for that run only. */
    char boot[PACK_BOOT_MAX];
    char model[PACK_MODEL_MAX];
    uint64_t synced;   /* 1: all of it is on the disk, not only in the system's memory */
    uint64_t head_sum; /* of all of the header before `synced`, which is written later */
} pack_head;

/* The header of a file of p's weights that is made now; its name (lo, hi) and sums are left 0. */
void pack_head_init(pack_head *h, uint64_t packed_bytes, const model_file *mf);
uint64_t pack_head_sum(const pack_head *h);
/* Is it a header of ours at all? */
bool pack_head_known(const pack_head *h);
/* What is wrong with a file of so many bytes that should have this name; NULL: nothing. `want`: what it should hold;
 * NULL: whatever its header says. */
const char *pack_head_fault(const pack_head *h, const pack_head *want, uint64_t file_bytes);
/* Is all of it there, though the system may have stopped before it was on the disk? */
bool pack_head_survived(const pack_head *h, const pack_head *want);

/* Bytes of the whole file, UINT64_MAX: more than can be; and where its table of checksums begins. */
uint64_t pack_file_bytes(uint64_t packed_bytes);
uint64_t pack_file_table(uint64_t packed_bytes);

/* Open whatever has this name, to read: a FIFO does not block, a link is not followed. -1: nothing can be. */
int pack_file_open(const char *path);
/* A regular file that nobody but us or root can write: the folder may be one that others share. */
bool pack_file_is_ours(const struct stat *st);

#endif
