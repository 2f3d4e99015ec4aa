/* plan_cells.h - how the rows of a cell lie in memory; for the pass that decides it and for what lowers graphs. */
#ifndef WEFT_COMPILER_PLAN_CELLS_H
#define WEFT_COMPILER_PLAN_CELLS_H

#include "compiler/plan_make.h"

bool cell_grows(const gcell *c); /* with every token */
/* Its form, and what a ring keeps, in a session of t. */
void cell_decide(gcell *c, const target *t);
/* Insert the steps that make tiers, where there are several; true if any. */
bool cells_convert(graph *g, const target *t);
/* Without its name, which is the caller's to copy. c grows. */
plan_cell plan_cell_of(const gcell *c);

#endif
