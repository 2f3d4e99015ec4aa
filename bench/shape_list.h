/* shape_list.h - the operators of real models with their sizes, from shapes/(name).txt.
 *
 * A line is an operator, its sizes and how often a token goes through it: `linear 8192 2048 x32`. # begins a
 * comment. Lines that several models have are one entry, with all their names. */
#ifndef WEFT_BENCH_SHAPE_LIST_H
#define WEFT_BENCH_SHAPE_LIST_H

#include "runtime/base/diag.h"
#include "runtime/base/vec.h"

enum { SHAPE_SIZES_MAX = 6, SHAPE_TEXT_MAX = 64 };

typedef struct {
    char op[16];
    int n_size;
    int64_t size[SHAPE_SIZES_MAX];
    int64_t count; /* of the first model that has it */
    char models[SHAPE_TEXT_MAX];
} shape_entry;

typedef VEC(shape_entry) shape_list;

/* Add all of folder/NAME.txt whose NAME contains `pattern`, in the order of their names. W1001 if there is none
 * such, W1002 for a line that cannot be read. */
weft_status shape_list_read(weft_diag *dg, const char *folder, const char *pattern,
                            shape_list *out) WEFT_MUST_USE;

#endif
