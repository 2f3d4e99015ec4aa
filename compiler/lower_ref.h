/* lower_ref.h - a graph into the plan of the reference executor: one step for each node.
 *
 * Nothing is fused or reordered and every value has memory of its own, so that a step can be held
 * against the node it came from, and any value can be looked at after a run. */
#ifndef WEFT_COMPILER_LOWER_REF_H
#define WEFT_COMPILER_LOWER_REF_H

#include "compiler/graph.h"
#include "compiler/plan.h"

typedef struct {
    int64_t n_tok_max; /* rows in one call; at least 1 */
    int64_t n_out_max; /* rows of one call that outputs [R] may be asked for; 0: n_tok_max */
    int64_t n_seq_max; /* sequences in one call; 0: n_tok_max */
    const char *const *outputs; /* "logits", "resid" (all of them), "resid.3"; NULL: every output */
    int n_output;
} plan_limits;

/* Plan g, which graph_verify accepts, in a. Only what the wanted outputs and the state need is kept.
 * W0901 names an op or storage type without a reference kernel, W0201 an output that is not there,
 * W0902 a size that does not fit. */
weft_status plan_make_ref(weft_diag *dg, const graph *g, const plan_limits *limits, arena *a,
                          plan **out_plan) WEFT_MUST_USE;

#endif
