/* plan_access_impl.h - how the ops describe what they touch: plan_access.c has these, plan_access_op.c uses them.
 *
 * Each adds an access to l, or says in l->why what is wrong with it and returns false. */
#ifndef WEFT_COMPILER_PLAN_ACCESS_IMPL_H
#define WEFT_COMPILER_PLAN_ACCESS_IMPL_H

#include "compiler/plan_access.h"

bool acc_refuse(plan_accesses *l, const char *fmt, ...) WEFT_PRINTF(2, 3); /* false */
/* The product and the sum; l->overflow where they do not fit. */
int64_t acc_times(plan_accesses *l, int64_t a, int64_t b);
int64_t acc_plus(plan_accesses *l, int64_t a, int64_t b);
/* Sizes n[1] to n[last] are there. */
bool acc_sizes(plan_accesses *l, int last);

/* How the units of a step share an operand: `rows` of it for each row, or columns in step with the
 * result's when it is cut into tiles. */
typedef struct {
    plan_share share;
    int64_t unit;
} acc_sharing;
extern const acc_sharing acc_shared_by_all;
acc_sharing acc_by_row(const plan_accesses *l, int64_t rows);  /* by tiles: all of it */
acc_sharing acc_by_unit(const plan_accesses *l, int64_t rows); /* by tiles: its columns */

bool acc_given(const plan_accesses *l, int i); /* is there an operand i? */
/* Any access to an operand that has been looked at. */
bool acc_put(plan_accesses *l, const plan_operand *o, plan_access a, int64_t align);
/* False, and it is said, where operand i is a weight that cannot be read as rows of f32. */
bool acc_weight_aligned(plan_accesses *l, int i);
/* Operand i, result 0, result i: rows of `elems` f32 (results: of a type). */
bool acc_rows_in(plan_accesses *l, int i, int64_t rows, int64_t elems, acc_sharing how);
bool acc_rows_out(plan_accesses *l, int64_t rows, int64_t elems, acc_sharing how);
bool acc_rows_out_of(plan_accesses *l, int i, dtype type, int64_t rows, int64_t elems,
                     acc_sharing how);
/* Operand 0 of a contraction, in the form that the kernel wants. */
bool acc_multiplied_in(plan_accesses *l, int64_t rows, int64_t n, acc_sharing how);
/* n ids, one after the other, all of them below limit (0: positions, which are only numbers). */
bool acc_ids_in(plan_accesses *l, int i, int64_t n, int64_t limit, acc_sharing how);
/* Rows of `elems` numbers in their stored type; chosen: that of the kernel's row; part: a part of a block is
 * read as a whole one. */
bool acc_weight_in(plan_accesses *l, int i, int64_t rows, int64_t elems, bool chosen, bool part);
/* What may be absent: vectors in their stored type to ref, else f32; and f32 to every variant. */
bool acc_vectors_in(plan_accesses *l, int i, int64_t rows, int64_t elems);
bool acc_f32_in(plan_accesses *l, int i, int64_t elems);
/* Operand 1: a table of `count` addresses of [rows, elems]. */
bool acc_table_in(plan_accesses *l, int64_t count, int64_t rows, int64_t elems);
/* Tiles are some of `cols` columns, cut only between parts of `whole`. */
bool acc_tiles(plan_accesses *l, int64_t cols, int64_t whole);
/* Rows of a weight that a kernel reads together: columns of its result. */
int64_t acc_whole_rows(const plan_accesses *l);

#endif
