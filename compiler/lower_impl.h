/* lower_impl.h - what the files that lower a graph share. */
#ifndef WEFT_COMPILER_LOWER_IMPL_H
#define WEFT_COMPILER_LOWER_IMPL_H

#include "compiler/lower_ref.h"

/* No axis is longer, so that the product of any two lengths fits. */
#define DIM_MAX ((int64_t)INT32_MAX)

/* How an operator reads a weight. */
typedef enum {
    FORM_ROWS,  /* rows in their stored type, `pitch` bytes apart */
    FORM_TABLE, /* the address of such rows for each index of axis 0 */
    FORM_F32,   /* f32 without gaps */
    FORM_COUNT
} weight_form;

typedef struct {
    weft_diag *dg;
    const graph *g;
    const plan_limits *limits;
    arena *a;
    plan *p;
    int part;            /* split: which of its results the step at hand makes; 0 elsewhere */
    bool *live;          /* [values]: something reads it */
    plan_operand *value; /* [values]: where each is; SPACE_NONE: nothing made it yet */
    int64_t *const_at;   /* [consts]: offset in the plan's constants, or -1 */
    int32_t *cell_of;    /* [cells]: number in the plan, or -1 */
    int32_t *weight_of;  /* [weights][FORM_COUNT]: number in the plan, or -1 */
    VEC(plan_step) steps;
    VEC(plan_weight) weights;
    VEC(plan_cell) cells;
    VEC(plan_output) outputs;
    VEC(float) consts;
} lower;

/* The weight in this form, added to the plan when it is not there yet. */
weft_status lower_weight(lower *lo, const gnode *n, int id, weight_form form,
                         int32_t *out_weight) WEFT_MUST_USE;

/* Fill in step s for its node: kernel arguments, operands, cost. Its results have their places. */
weft_status lower_step(lower *lo, const gnode *n, plan_step *s) WEFT_MUST_USE;

/* What lower_step and the rest of the driver ask of a type. */
plan_rows lower_rows_of(const gtype *t);
int64_t lower_rows_max(const lower *lo, const gtype *t);
int64_t lower_span(const gtype *t, int from, int to); /* product of dims [from, to) */

#endif
