/* out_file.h - writes a file that is there whole or not at all.
 *
 * Bytes go to a file beside the target, which takes its name at the end; whatever fails before that
 * leaves the target as it was (W1004). */
#ifndef WEFT_RUNTIME_FORMATS_OUT_FILE_H
#define WEFT_RUNTIME_FORMATS_OUT_FILE_H

#include "runtime/base/diag.h"

typedef struct out_file out_file;

/* W1002 if something else than a regular file has that name. A link is followed. */
weft_status out_file_create(weft_diag *dg, const char *path, out_file **out_f) WEFT_MUST_USE;
/* Removes what was written unless it was finished; NULL is fine. */
void out_file_destroy(out_file *f);

weft_status out_file_put(weft_diag *dg, out_file *f, const void *data, size_t n) WEFT_MUST_USE;
/* Zeros up to the next multiple of align. */
weft_status out_file_pad(weft_diag *dg, out_file *f, uint64_t align) WEFT_MUST_USE;
weft_status out_file_flush(weft_diag *dg,
                           out_file *f) WEFT_MUST_USE; /* all of it is in the file below */
const char *out_file_part(const out_file *f);          /* where they are until it is finished */

/* Whether it could be created, as far as can be known before: W1002, W1004. Nothing is written. */
weft_status out_file_allowed(weft_diag *dg, const char *path) WEFT_MUST_USE;
/* A whole file at once. */
weft_status out_file_write(weft_diag *dg, const char *path, str text) WEFT_MUST_USE;

/* To disk, then under its name. Destroy it afterwards all the same. */
weft_status out_file_finish(weft_diag *dg, out_file *f) WEFT_MUST_USE;

#endif
