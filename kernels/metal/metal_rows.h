/* metal_rows.h - metal_kernels.def as data: what a plan for a Metal GPU is made of. The functions are on the GPU (metal_phase.h);
 * here they are NULL. */
#ifndef WEFT_KERNELS_METAL_METAL_ROWS_H
#define WEFT_KERNELS_METAL_METAL_ROWS_H

#include "kernels/metal/metal_phase.h"

/* Rows of weights that are floats of 16 bits, of whole eights, are read by vectors of so many bytes (eight_halves of weights.msl). */
enum { METAL_VECTOR_BYTES = 16 };

extern const kernel_row metal_row_table[];
extern const int32_t metal_row_count;

/* The last row of an op for weights of this type, as stored, and n_row rows; exact: one that does not round activations; any_rows:
 * one for calls of any number of rows. NULL: there is none. */
const kernel_row *metal_row_select(kop op, dtype type, int64_t n_row, bool exact, bool any_rows);
const kernel_row *metal_row_find(const char *symbol); /* or NULL */
int32_t metal_row_index(const kernel_row *r);
/* Bytes of threadgroup memory that a kernel uses, a multiple of 16. */
uint32_t metal_row_shared(const kernel_row *r);

/* Which kernels a pipeline can run: the function constants METAL_CONSTANT_ROWS_LOW and _HIGH. */
typedef struct {
    uint32_t word[METAL_MASK_WORDS];
} metal_mask;

static inline metal_mask metal_mask_with(metal_mask m, int32_t row)
{
    m.word[row / 32] |= (uint32_t)1 << row % 32;
    return m;
}

#endif
