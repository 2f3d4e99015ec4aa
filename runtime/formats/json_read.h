/* json_read.h - JSON text into values, within stated limits.
 *
 * The text may be a stranger's. Beyond what cJSON checks, a name that stands twice in one object is
 * refused, as are bytes that are not UTF-8 and a NUL in a string, which would hide the rest of it.
 * A whole number below 2^53 is VT_I64 however it is written (1e3 too), every other number VT_F64.
 * With `exact` numbers keep the type they are written with, and NUL is let through.
 * Infinity, which Python writes, is read; NaN is not. */
#ifndef WEFT_RUNTIME_FORMATS_JSON_READ_H
#define WEFT_RUNTIME_FORMATS_JSON_READ_H

#include "runtime/base/diag.h"
#include "runtime/formats/value.h"

/* A value costs up to 200 bytes while it is read, so values_max is what bounds the memory. */
typedef struct {
    size_t bytes_max;  /* W1101 */
    size_t values_max; /* W1105; commas and brackets are what is counted */
    int depth_max;     /* W1102; at most 1000, where cJSON stops */
    /* As Python reads it, for templates that print it again: a number is VT_F64 with a point or
     * exponent and VT_I64 without, while 64 bits hold it; a NUL may stand in a string. */
    bool exact;
} json_limits;

/* Enough for every file in a checkpoint's folder but tokenizers and tensor directories. */
#define JSON_LIMITS_CONFIG                                                                         \
    ((json_limits){.bytes_max = 4 << 20, .values_max = 1 << 18, .depth_max = 64})

/* The value lives in a and holds copies of all strings, so text may go. name is for messages, which
 * say W1014 with line and column where the text is not JSON, W1010 for a name that stands twice. */
weft_status json_read(weft_diag *dg, arena *a, const char *name, str text, json_limits limits,
                      value *out_v) WEFT_MUST_USE;
/* The same for a regular file. */
weft_status json_read_file(weft_diag *dg, arena *a, const char *path, json_limits limits,
                           value *out_v) WEFT_MUST_USE;

#endif
