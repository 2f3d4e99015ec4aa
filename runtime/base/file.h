/* file.h - opening and reading regular files, with the diagnostics everyone shares.
 *
 * A directory, a FIFO, a socket or a device is refused by name (W1002) and never blocks; what is
 * missing or may not be read is W1001, with the system's reason. */
#ifndef WEFT_RUNTIME_BASE_FILE_H
#define WEFT_RUNTIME_BASE_FILE_H

#include "runtime/base/diag.h"
#include <dirent.h>

/* The caller closes *out_fd with file_close. */
weft_status file_open(weft_diag *dg, const char *path, int *out_fd,
                      uint64_t *out_bytes) WEFT_MUST_USE;
/* A descriptor that was opened otherwise: closed if memory runs short (mem_scope.h) before file_close. -1 is fine. */
void file_hold(int fd);
void file_close(int fd); /* -1 is fine */
/* The same for a folder: NULL if it cannot be opened. */
DIR *file_open_dir(const char *path);
void file_close_dir(DIR *dir); /* NULL is fine */
/* Checks that fd is a regular file and gives its size; `name` is for messages. */
weft_status file_check(weft_diag *dg, int fd, const char *name, uint64_t *out_bytes) WEFT_MUST_USE;
/* Reads on from fd, n bytes or up to the end of the file, through interruptions and short reads. */
weft_status file_read(weft_diag *dg, int fd, const char *name, void *to, size_t n,
                      size_t *out_n) WEFT_MUST_USE;

/* The system's text for an errno value, in the lower case of our messages. */
typedef struct {
    char text[96];
} file_reason;
file_reason file_reason_of(int error);

#endif
