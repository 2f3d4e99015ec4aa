/* plan_check_tables.h - what plan_check.c asks of its neighbours. */
#ifndef WEFT_COMPILER_PLAN_CHECK_TABLES_H
#define WEFT_COMPILER_PLAN_CHECK_TABLES_H

#include "compiler/plan_access.h"
#include "compiler/plan_check.h"

/* Kernels, weights, cells, outputs and totals: all but the steps. */
weft_status plan_check_tables(weft_diag *dg, const backend *be, const plan *p) WEFT_MUST_USE;

/* What every step of a bucket touches, in order. */
typedef struct {
    const plan *p;
    const plan_bucket *b;
    int32_t index; /* of the bucket */
    const plan_access *at;
    const size_t *first; /* [n_step + 1]: into at */
    const int32_t *item; /* [n_step]: the item it is in */
} plan_trace;

/* That no step reads what another thread may be writing, and each reads what an earlier step made. */
weft_status plan_check_order(weft_diag *dg, const plan_trace *t) WEFT_MUST_USE;

#endif
