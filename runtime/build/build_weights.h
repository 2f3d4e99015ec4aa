/* build_weights.h - the weights of a program: those of all its plans in their final bytes, each once.
 *
 * A weight that a plan reads in place is taken as it lies in the checkpoint; one that is copied, converted or interleaved when loaded is made
 * now. Plans for other levels of a processor share what is the same. */
#ifndef WEFT_RUNTIME_BUILD_BUILD_WEIGHTS_H
#define WEFT_RUNTIME_BUILD_BUILD_WEIGHTS_H

#include "compiler/plan.h"
#include "runtime/base/vec.h"
#include "runtime/program/tensors.h"

typedef struct {
    const plan_weight *w; /* of a plan that was added */
    int piece;            /* of it, as it is stored; -1: all of it, made */
    image_tensor row;     /* sum: once it was made */
} build_tensor;

typedef struct {
    const weight_source *src;
    arena *a; /* of what it makes; plans that were added must live as long */
    VEC(build_tensor) list;
    uint64_t bytes; /* of all, as they lie in the image */
} build_weights;

/* Add the weights of p; *out_p is p with all of them in place in the image, in b->a. W1501. */
weft_status build_weights_add(weft_diag *dg, build_weights *b, const plan *p,
                              const plan **out_p) WEFT_MUST_USE;
/* Leave out all tensors from n on, as it was when there were so many bytes. */
void build_weights_cut(build_weights *b, size_t n, uint64_t bytes);
/* The bytes of tensor i, row.bytes of them. */
weft_status build_weights_make(weft_diag *dg, const build_weights *b, size_t i,
                               char *to) WEFT_MUST_USE;
void build_weights_free(build_weights *b);

#endif
