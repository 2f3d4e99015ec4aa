/* builtin_library.h - the model library as it was when this program was built.
 *
 * models/CMakeLists.txt writes the table; the importer looks here when no file is found. Sorted by
 * name, bytewise. */
#ifndef WEFT_DSL_BUILTIN_LIBRARY_H
#define WEFT_DSL_BUILTIN_LIBRARY_H

#include <stddef.h>

typedef struct {
    const char *name; /* "llama.weft", "std/rope.weft" */
    const char *text; /* followed by one NUL that does not count */
    size_t size;
} builtin_file;

extern const builtin_file builtin_files[];
extern const size_t builtin_file_n;

#endif
