/* replace_file.h - a file changes from its old text to its new one, or not at all. */
#ifndef WEFT_RUNTIME_CLI_REPLACE_FILE_H
#define WEFT_RUNTIME_CLI_REPLACE_FILE_H

#include "runtime/base/diag.h"

/* Replace the contents of the file at path, which must exist and be writable. The new text is
 * written beside it, synced, given the old one's mode and owner, and renamed over it; a reader sees
 * one or the other. A symbolic link stays and its target is replaced; other hard links keep the old
 * text. Fails with W1004. */
weft_status replace_file(weft_diag *dg, const char *path, str text) WEFT_MUST_USE;

#endif
