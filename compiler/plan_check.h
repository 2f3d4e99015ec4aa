/* plan_check.h - a proof that a plan can be run: no step touches memory outside its space, none reads what
 * another thread may be writing, and the back end has its kernels.
 *
 * Plans come from the compiler and from files, which may be anybody's. Kernels trust their arguments, so
 * this is what stands between a plan and memory: what is accepted here cannot reach beyond the arena, the
 * threads' own memory, constants, weights and cells, whatever its numbers. */
#ifndef WEFT_COMPILER_PLAN_CHECK_H
#define WEFT_COMPILER_PLAN_CHECK_H

#include "compiler/backend.h"

/* W1503 names the bucket, the step and the first thing that is wrong. */
weft_status plan_check(weft_diag *dg, const backend *be, const plan *p) WEFT_MUST_USE;

/* Bytes of scratch that a step with this kernel, of a plan with these cells, needs in each thread. */
size_t plan_step_scratch(const backend *be, const plan_kernel *kernel, const plan_step *s,
                         const plan_cell *cells, const kpolicy *tiers);

#endif
