/* name_index.h - finds a name among many in constant time. Private to this folder.
 *
 * The names stay where they are: in an array of structs whose first field is a str. The table is
 * seeded differently each time, so that a file cannot be made whose names all collide. */
#ifndef WEFT_RUNTIME_FORMATS_NAME_INDEX_H
#define WEFT_RUNTIME_FORMATS_NAME_INDEX_H

#include "runtime/base/arena.h"

typedef struct name_index name_index;

enum { NAME_INDEX_MAX = 1 << 28 };

/* Index items[n] of item_bytes each, n <= NAME_INDEX_MAX; both must outlive the index. NULL, and
 * the later of the first two equal names, if a name stands twice. */
name_index *name_index_create(arena *a, const void *items, size_t n, size_t item_bytes,
                              size_t *out_twice);
/* Position of the name that is head and tail together; false if there is none. */
bool name_index_find(const name_index *ix, str head, str tail, size_t *out_i);

#endif
