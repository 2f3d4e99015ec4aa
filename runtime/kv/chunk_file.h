/* chunk_file.h - a file of bytes in chunks, each with a checksum: it is read as it was written, or refused.
 *
 * All numbers are little endian:
 *
 *     byte 0   char[8] what kind of file it is
 *          8   u32 version; u32 bytes of a chunk, 65536
 *         16   u64 bytes in all chunks, without their checksums; u64 checksum of the 24 bytes before
 *         32   chunks, the last may be shorter; behind each a u64: its checksum, mixed with its number
 *
 * The file appears under its name when it is whole and on disk, and takes the place of what had that name. A reader has at
 * most one chunk in memory. W1005: the file is cut short; W1006: it is longer than it says, its bytes are not those that were
 * written, or it is no such file; W1007: a version that is not known. One thread uses one at a time. */
#ifndef WEFT_RUNTIME_KV_CHUNK_FILE_H
#define WEFT_RUNTIME_KV_CHUNK_FILE_H

#include "runtime/base/diag.h"

enum { CHUNK_BYTES = 1 << 16, CHUNK_HEAD_BYTES = 32 };

typedef struct {
    char magic[9]; /* 8 of it count */
    uint32_t version;
    const char *what; /* "a file of state", for messages */
} chunk_kind;

typedef struct chunk_writer chunk_writer;
/* Begin a file that will hold `bytes` bytes. */
weft_status chunk_writer_create(weft_diag *dg, const char *path, const chunk_kind *kind,
                                uint64_t bytes, chunk_writer **out_w) WEFT_MUST_USE;
void chunk_writer_destroy(chunk_writer *w); /* NULL is fine; removes what is not finished */
weft_status chunk_writer_put(weft_diag *dg, chunk_writer *w, const void *data,
                             size_t n) WEFT_MUST_USE;
/* After all its bytes. Destroy it afterwards all the same. */
weft_status chunk_writer_finish(weft_diag *dg, chunk_writer *w) WEFT_MUST_USE;

typedef struct chunk_reader chunk_reader;
/* Open a file and read all of it once: whatever is wrong with it is found here. */
weft_status chunk_reader_open(weft_diag *dg, const char *path, const chunk_kind *kind,
                              chunk_reader **out_r) WEFT_MUST_USE;
void chunk_reader_close(chunk_reader *r);          /* NULL is fine */
uint64_t chunk_reader_left(const chunk_reader *r); /* bytes that were not read yet */
/* The next n bytes. W1006 if there are not so many, or the file was changed since it was opened. */
weft_status chunk_reader_get(weft_diag *dg, chunk_reader *r, void *to, size_t n) WEFT_MUST_USE;
/* Begin again with the first byte. */
weft_status chunk_reader_rewind(weft_diag *dg, chunk_reader *r) WEFT_MUST_USE;
const char *chunk_reader_path(const chunk_reader *r);

#endif
