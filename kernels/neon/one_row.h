/* one_row.h - eight interleaved weight rows times one row of activations, in assembly: what decoding spends its time on. */
#ifndef WEFT_KERNELS_NEON_ONE_ROW_H
#define WEFT_KERNELS_NEON_ONE_ROW_H

#include "kernels/neon/neon.h"

/* n_block blocks of Q4_0 with q and d of the activations, q twice each: 8 sums, each in the order of the blocks. */
void one_row_Q4_0(const uint8_t *w, const int8_t *q, const float *d, int64_t n_block, float sum[8]);

#endif
