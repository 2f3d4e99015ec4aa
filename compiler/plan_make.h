/* plan_make.h - a graph into a plan, for one back end; a public header of compiler/.
 *
 * The passes run on a copy of the graph, then the back end's own stage selects kernels, orders them and lays memory out.
 * A back end that fuses nothing, such as the reference, gets the graph as it is: a step can be held against the node it
 * came from, and any value looked at after a run. */
#ifndef WEFT_COMPILER_PLAN_MAKE_H
#define WEFT_COMPILER_PLAN_MAKE_H

#include "compiler/graph.h"
#include "compiler/passes.h"
#include "compiler/plan.h"
#include "compiler/target.h"

/* Plan g, which graph_verify accepts, in a. Only what the wanted outputs and the state need is kept.
 * W0901 names an op or storage type without a kernel, W0201 an output that is not there, W0902 a size
 * that does not fit, W1406 numbers of rows that cannot be. watch may be NULL. */
weft_status plan_make(weft_diag *dg, const graph *g, const target *t, const pass_watch *watch,
                      arena *a, plan **out_plan) WEFT_MUST_USE;

/* The cells that a plan of g for t has, in a; returns how many. For what state takes, before there is a plan:
 * a session's are those of them that its outputs need. */
int32_t plan_cells(const graph *g, const target *t, arena *a, plan_cell **out_cells);

/* The graph as the passes leave it for t: a copy, to be destroyed. */
weft_status plan_graph(weft_diag *dg, const graph *g, const target *t, const pass_watch *watch,
                       graph **out_g) WEFT_MUST_USE;

#endif
