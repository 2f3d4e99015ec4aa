/* plan_parts.h - a graph cut between two of its layers, as plans for two devices; a public header of compiler/.
 *
 * The first part has what stands before the layers and the first of these, the second part the last layers, and a third what
 * stands behind them, where that is to be on the first device again. What a later part reads of an earlier one are outputs of
 * the one and inputs of the other (plan_part). A cell of the state belongs to the part whose nodes use it. */
#ifndef WEFT_COMPILER_PLAN_PARTS_H
#define WEFT_COMPILER_PLAN_PARTS_H

#include "compiler/graph.h"
#include "compiler/plan.h"
#include "compiler/target.h"

/* Layers of a graph are numbered from 0; how many there are. */
int64_t graph_layers(const graph *g);

/* A graph as parts, those of a plan: NULL where there is nothing in one. */
typedef struct {
    graph *part[PLAN_PARTS_MAX];
} graph_parts;

enum { GRAPH_PART_CARD = 1 }; /* the one with the last layers */

/* Cut g before its last n layers, from 1 to all of them; t says which outputs are wanted. W1611 if it cannot be cut there, with the
 * nearest number that is possible. */
weft_status graph_cut(weft_diag *dg, const graph *g, const target *t, int64_t n,
                      graph_parts *out) WEFT_MUST_USE;
void graph_parts_destroy(graph_parts *parts);

/* The last n layers for `card`, the rest for `cpu`; both targets want the same outputs, rows and state. Fails as graph_cut does. */
weft_status plan_make_parts(weft_diag *dg, const graph *g, const target *cpu, const target *card,
                            int64_t n, arena *a, plan_parts *out) WEFT_MUST_USE;
/* The same parts for the target `as`, all on the CPU, of the graphs that the passes leave for `cpu` and `card`: values have the numbers
 * that they have in those plans. For the reference. */
weft_status plan_make_parts_as(weft_diag *dg, const graph *g, const target *cpu, const target *card,
                               int64_t n, const target *as, arena *a,
                               plan_parts *out) WEFT_MUST_USE;

#endif
