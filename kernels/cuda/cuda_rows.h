/* cuda_rows.h - cuda_kernels.def as data: what a plan for a card is made of. The functions are on the card (phase.h); here
 * they are NULL. */
#ifndef WEFT_KERNELS_CUDA_CUDA_ROWS_H
#define WEFT_KERNELS_CUDA_CUDA_ROWS_H

#include "kernels/kernels.h"

extern const kernel_row cuda_row_table[];
extern const int32_t cuda_row_count;

/* How much activations may be rounded: not at all, by no more than act_rounds_near, or by whatever a row does. */
typedef enum { CUDA_ROUNDS_NOTHING, CUDA_ROUNDS_NEAR, CUDA_ROUNDS_ANY } cuda_rounding;

/* The last row of an op for weights of this type, as stored, and n_row rows, that rounds activations by no more than `most`. NULL:
 * there is none. */
const kernel_row *cuda_row_select(kop op, dtype type, int64_t n_row, cuda_rounding most,
                                  bool any_rows);
const kernel_row *cuda_row_find(const char *symbol); /* or NULL */
bool cuda_row_is_light(const kernel_row *r);         /* of cuda_light.def */

#endif
