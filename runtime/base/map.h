/* map.h - a regular file as one read-only stretch of memory.
 *
 * FMAP_MAPPED shares the page cache: opening costs nothing and pages come in when touched, but a
 * file that someone truncates meanwhile raises SIGBUS. FMAP_COPIED reads it all into private memory
 * first. Either way the bytes start on a page boundary and are valid until fmap_close. Reading from
 * several threads is fine. */
#ifndef WEFT_RUNTIME_BASE_MAP_H
#define WEFT_RUNTIME_BASE_MAP_H

#include "runtime/base/diag.h"

typedef struct fmap fmap;

typedef enum { FMAP_MAPPED, FMAP_COPIED } fmap_mode;

/* Errors: W1001 cannot be opened, W1002 not a regular file, W1003 cannot be mapped or read. */
weft_status fmap_open(weft_diag *dg, const char *path, fmap_mode mode,
                      fmap **out_map) WEFT_MUST_USE;
/* The same for an open file, which stays the caller's; `name` is for messages. */
weft_status fmap_open_fd(weft_diag *dg, int fd, const char *name, fmap_mode mode,
                         fmap **out_map) WEFT_MUST_USE;
void fmap_close(fmap *m); /* NULL is fine */

const unsigned char *fmap_data(const fmap *m); /* never NULL, even for an empty file */
size_t fmap_bytes(const fmap *m);

#endif
