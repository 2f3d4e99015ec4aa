/* checkpoint.h - a model_file as the elaborator asks it; private to compiler/. */
#ifndef WEFT_COMPILER_CHECKPOINT_H
#define WEFT_COMPILER_CHECKPOINT_H

#include "compiler/graph.h"
#include "dsl/elaborate.h"
#include "runtime/base/vec.h"
#include "runtime/formats/model_file.h"

typedef struct {
    const model_file *file;
    weft_diag *dg;
    arena *a;
    dsl_host host;
    VEC(str) read; /* keys that the model file named and that are there, for W0410 */
} checkpoint;

void checkpoint_init(checkpoint *cp, weft_diag *dg, arena *a, const model_file *mf,
                     int64_t context);
void checkpoint_deinit(checkpoint *cp);
/* A value as the elaborator sees it; NULL: absent. */
key_value checkpoint_value(const value *v);
/* W0410 for every key that is known to change what a model computes and that nobody named; model is the
 * name of the model file, g what was made of it. unread.c */
void checkpoint_warn_unread(checkpoint *cp, const char *model, const graph *g);

#endif
