/* transform.h - the transforms of kinds.def: what each does in the three places where it matters; private to dsl/.
 *
 *   trace   to the declared shape, for every size (sema_weight.c)
 *   view    to the stored tensor, as offsets and strides (bind_weight.c)
 *   other   to the name in the other format (bind_other.c) */
#ifndef WEFT_DSL_TRANSFORM_H
#define WEFT_DSL_TRANSFORM_H

#include "dsl/bind.h"

/* What is known of a stored shape on its way through the transforms: all of it after a reshape,
 * otherwise at most the last two axes. */
typedef struct {
    const poly *dim[TENSOR_RANK_MAX];
    int rank;             /* 0: not known */
    const poly *out, *in; /* the last two axes; NULL where not known */
} shape_trace;

/* False: the transform is wrong in itself, and was reported. */
bool transform_trace(sema *s, weight *w, const ast *n, origin o, shape_trace *t);

enum { MXFP4_HF_BYTES = 16 }; /* of a block; its scale lies in a tensor of its own */

/* One alternative of a weight line on its way through the transforms. No tensor data moves. */
typedef struct {
    binding *b;
    weight *w;
    const ast *key;
    gweight v;
    int64_t blocks; /* elements per block of the stored type */
    bool bias;      /* the bias follows, without the input axis */
    bool bad;       /* reported */
} view;

void transform_view(view *x, const ast *n);
void view_fail(view *x, weft_code code, const ast *at, const char *why);
void view_note_tensor(view *x);
const char *view_text(view *x);
/* Is the view still what the file holds, or did transforms and stacking make another shape of it? */
bool view_is_stored(const view *x, const model_tensor *t);
void view_strides(gweight *v); /* those of a dense tensor */
bool view_is_dense(const gweight *v);

/* One name of a weight in the other format, as a tensor there that is the weight as declared, but for its pair
 * order, or of which the weight is some rows. */
typedef struct {
    binding *b;
    const weight *w;
    bool rows_allowed; /* once, and before the pair order */
    bool raw;          /* the name is complete */
    other_weight out;
} other_view;

pair_order transform_order(sema *s, const ast *n); /* of a `pairs` */
bool transform_other(other_view *x, const ast *n); /* false: the tensor there is something else */

const ast *transform_in(const ast *key,
                        transform_code code); /* NULL: not among a name's transforms */

#endif
