/* plan_check.h - a proof that a plan can be run: no step touches memory outside its space, none reads what
 * another thread may be writing, and this machine has its kernels.
 *
 * Plans come from the compiler and from files, which may be anybody's. Kernels trust their arguments, so
 * this is what stands between a plan and memory: what is accepted here cannot reach beyond the arena, the
 * threads' own memory, constants, weights and cells, whatever its numbers. */
#ifndef WEFT_COMPILER_PLAN_CHECK_H
#define WEFT_COMPILER_PLAN_CHECK_H

#include "compiler/plan.h"
#include "runtime/base/diag.h"

/* W1503 names the bucket, the step and the first thing that is wrong; W1602 a kernel for another machine. */
weft_status plan_check(weft_diag *dg, const plan *p) WEFT_MUST_USE;

/* Bytes of scratch that a step, of a plan with these cells, needs in each thread. */
size_t plan_step_scratch(const plan_step *s, const plan_cell *cells, dtype kv);

#endif
