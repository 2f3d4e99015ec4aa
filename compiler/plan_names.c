/* plan_names.c - the words of plan files, in the order of the enums. */
#include "compiler/plan_file_impl.h"

const char *const plan_space_names[] = {"none",  "weight", "const", "arena",
                                        "local", "tile",   "io",    NULL};
const char *const plan_io_names[] = {"tokens", "pos", "rows", NULL};
const char *const plan_rows_names[] = {"T", "R", "S", "fixed", NULL};
const char *const plan_layout_names[] = {"paged", "contiguous", "ring", NULL};
const char *const plan_mode_names[] = {"mapped", "copied", "interleaved", NULL};

_Static_assert(sizeof plan_space_names / sizeof *plan_space_names == SPACE_IO + 2, "a name each");
_Static_assert(sizeof plan_io_names / sizeof *plan_io_names == IO_COUNT + 1, "a name each");
_Static_assert(sizeof plan_rows_names / sizeof *plan_rows_names == ROWS_FIXED + 2, "a name each");
_Static_assert(sizeof plan_mode_names / sizeof *plan_mode_names == WEIGHT_INTERLEAVED + 2,
               "a name each");
_Static_assert(sizeof plan_layout_names / sizeof *plan_layout_names == PLAN_RING + 2,
               "a name each");

const char *plan_arch(void)
{
#if defined(__x86_64__)
    return "x86_64";
#elif defined(__aarch64__)
    return "aarch64";
#else
    return sizeof(void *) == 8 ? "other64" : "other32";
#endif
}
