/* cell_rope.h - how the keys of a cell were turned by their positions, read off a plan's steps.
 *
 * The step that makes what append stores of keys is a rope, in every model that turns keys at all; where it is another, or
 * positions go into a model in another way too, keys cannot be moved to other positions. */
#ifndef WEFT_RUNTIME_EXEC_CELL_ROPE_H
#define WEFT_RUNTIME_EXEC_CELL_ROPE_H

#include "compiler/plan.h"
#include "runtime/kv/state_shift.h"

/* How cell `cell` of p has its keys turned, or why that cannot be known. It lives as long as the plan. */
key_turn cell_rope_of(const plan *p, int32_t cell);

#endif
