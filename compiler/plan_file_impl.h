/* plan_file_impl.h - what the writer and the reader of plan files share. */
#ifndef WEFT_COMPILER_PLAN_FILE_IMPL_H
#define WEFT_COMPILER_PLAN_FILE_IMPL_H

#include "compiler/backend.h"
#include "compiler/plan_file.h"
#include "runtime/formats/value.h"

/* ---- plan_names.c ---- */

/* The words of an enum in a file; NULL ends the list. */
extern const char *const plan_space_names[],
    *const plan_io_names[], *const plan_rows_names[], *const plan_layout_names[],
                                                          *const plan_mode_names[];
const char *plan_arch(void); /* "x86_64" */

/* The head of a file: up to the checksum, which covers all that follows it. */
#define PLAN_FILE_MAGIC "{\"weft_plan\":"
#define PLAN_FILE_CHECKSUM ",\"checksum\":\""
enum { PLAN_FILE_DIGITS = 16 };

/* ---- reading ---- */

typedef struct {
    weft_diag *dg;
    const char *name; /* of the file */
    arena *a;         /* the plan's */
    plan *p;
    const char *part; /* of the file that is being read, for messages: "weight" */
    int64_t index;    /* of it; -1: none */
    int64_t outer;    /* the bucket it is in; -1: none */
    const weft_loc *place;
    int64_t n_place;
    const backend *be; /* that it was made for */
} plan_reader;

/* W1507 at the part being read. */
weft_status plan_damaged(plan_reader *r, const char *fmt, ...) WEFT_PRINTF(2, 3);

/* Member `key` of an object. Absent ones have a default where the call has one; a wrong type or range fails. */
weft_status plan_get_int(plan_reader *r, const value *v, const char *key, int64_t min, int64_t max,
                         int64_t *out) WEFT_MUST_USE; /* must be there */
weft_status plan_get_int_or(plan_reader *r, const value *v, const char *key, int64_t min,
                            int64_t max, int64_t otherwise, int64_t *out) WEFT_MUST_USE;
weft_status plan_get_size(plan_reader *r, const value *v, const char *key,
                          size_t *out) WEFT_MUST_USE; /* 0 */
weft_status plan_get_bool(plan_reader *r, const value *v, const char *key,
                          bool *out) WEFT_MUST_USE; /* false */
weft_status plan_get_str(plan_reader *r, const value *v, const char *key,
                         const char **out) WEFT_MUST_USE;
weft_status plan_get_type(plan_reader *r, const value *v, const char *key,
                          dtype *out) WEFT_MUST_USE;
weft_status plan_get_word(plan_reader *r, const value *v, const char *key, const char *const *words,
                          int *out) WEFT_MUST_USE;
/* An array; NULL: absent. */
weft_status plan_get_array(plan_reader *r, const value *v, const char *key,
                           const value **out) WEFT_MUST_USE;
/* At most n integers; the rest stays as it is. */
weft_status plan_get_ints(plan_reader *r, const value *v, const char *key, int64_t *to,
                          size_t n) WEFT_MUST_USE;
/* Item i of an array as an object or array; and as an integer, a word, a type, a number. */
weft_status plan_item_of(plan_reader *r, const value *list, size_t i, value_kind kind,
                         value *out) WEFT_MUST_USE;
weft_status plan_item_int(plan_reader *r, const value *list, size_t i, int64_t min, int64_t max,
                          int64_t *out) WEFT_MUST_USE;
weft_status plan_item_word(plan_reader *r, const value *list, size_t i, const char *const *words,
                           int *out) WEFT_MUST_USE;
weft_status plan_item_type(plan_reader *r, const value *list, size_t i, dtype *out) WEFT_MUST_USE;
weft_status plan_item_float(plan_reader *r, const value *list, size_t i, double *out) WEFT_MUST_USE;
/* Bytes written as hexadecimal digits, in r->a; NULL: absent. */
weft_status plan_get_hex(plan_reader *r, const value *v, const char *key, const void **out,
                         size_t *out_bytes) WEFT_MUST_USE;

/* plan_read_step.c: the buckets, with their steps. */
weft_status plan_read_buckets(plan_reader *r, const value *v) WEFT_MUST_USE;
/* plan_read_place.c: the files and places of steps. */
weft_status plan_read_places(plan_reader *r, const value *v) WEFT_MUST_USE;

#endif
