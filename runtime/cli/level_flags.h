/* level_flags.h - --target and --level: plans for another processor than this one. */
#ifndef WEFT_RUNTIME_CLI_LEVEL_FLAGS_H
#define WEFT_RUNTIME_CLI_LEVEL_FLAGS_H

#include "compiler/backend.h"
#include "runtime/cli/flags.h"

typedef struct {
    const char *target, *level; /* NULL: this processor's */
} level_flags;

/* Rows for a verb whose options struct T has a level_flags `at`. */
/* clang-format off */
#define LEVEL_FLAG_ROWS(T, at)                                                                                                \
    FLAG_ROW_STR   (T, at.target, "target", NULL, "NAME", NULL, "plan for a processor of this architecture: x86_64-linux-gnu or aarch64-linux-gnu"), \
    FLAG_ROW_STR   (T, at.level,  "level",  NULL, "NAME", NULL, "plan for one with these instructions, such as avx2, amx, dotprod or i8mm; none: the best there")
/* clang-format on */

/* The back end they ask for; NULL: this processor's. W1704, with the nearest name. */
weft_status level_flags_backend(weft_diag *dg, const level_flags *f,
                                const backend **out_be) WEFT_MUST_USE;

#endif
