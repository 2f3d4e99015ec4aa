/* unread.h - keys that a model file should have read; private to compiler/. */
#ifndef WEFT_COMPILER_UNREAD_H
#define WEFT_COMPILER_UNREAD_H

#include "compiler/graph.h"
#include "dsl/checkpoint.h"

/* W0410 for every key that is known to change what a model computes and that nobody named; model is the
 * name of the model file, g what was made of it. */
void warn_unread(weft_diag *dg, const checkpoint *cp, const char *model, const graph *g);

#endif
