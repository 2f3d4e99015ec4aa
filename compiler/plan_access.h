/* plan_access.h - which bytes a step of a plan reads and writes, found from its op and sizes.
 *
 * An access is `rows` runs of `width` bytes, `pitch` apart. Private to what checks plans. */
#ifndef WEFT_COMPILER_PLAN_ACCESS_H
#define WEFT_COMPILER_PLAN_ACCESS_H

#include "compiler/plan.h"

/* No size is larger, so that the product of any two fits. */
#define PLAN_SIZE_MAX ((int64_t)INT32_MAX)

/* What one unit has of an access. */
typedef enum {
    SHARE_ALL, /* every unit touches all of it */
    SHARE_ROW, /* `unit` rows */
    SHARE_COL, /* `unit` bytes of each row */
} plan_share;

enum { ACCESS_MAX = K_IN_MAX + K_OUT_MAX + 2, ACCESS_CELL = -1 };

typedef struct {
    int space; /* plan_space, or ACCESS_CELL: keys or values of a cell */
    int32_t id;
    bool write;
    int8_t operand; /* number among the inputs or the outputs */
    plan_share share;
    int64_t offset, rows, pitch, width, unit;
    bool quantized;   /* activations of 8 bits, in the form of the kernel's row */
    int64_t id_limit; /* of ids that look something up: they must be below; 0: no ids */
} plan_access;

typedef struct {
    const plan *p;
    const plan_bucket *b;
    const plan_step *s;
    const plan_kernel *k;
    const plan_item *item;
    int64_t n_row; /* n[0] at most */
    plan_access at[ACCESS_MAX];
    int n;
    bool overflow; /* a size did not fit */
    char why[200]; /* what is wrong; "": nothing */
} plan_accesses;

/* What step s of bucket b, which is part of item, touches; false and `why` where its sizes cannot be,
 * an operand is missing, of the wrong type, or outside its space. The plan's own tables (weights, cells,
 * code) have been checked. */
bool plan_access_step(const plan *p, const plan_bucket *b, const plan_item *item,
                      const plan_step *s, plan_accesses *out);

/* The most rows that a call of this bucket can have. */
int64_t plan_rows_max(const plan *p, const plan_bucket *b, plan_rows rows);
/* Bytes from the first to the last that it touches. */
int64_t plan_access_span(const plan_access *a);
/* Do two touch a byte in common? */
bool plan_access_meet(const plan_access *a, const plan_access *b);
/* Does every unit touch the same bytes in both? */
bool plan_access_align(const plan_access *a, const plan_access *b);

#endif
