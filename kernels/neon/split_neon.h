/* split_neon.h - activations as bf16, for pack and pack4 (pack_neon.c). */
#ifndef WEFT_KERNELS_NEON_SPLIT_NEON_H
#define WEFT_KERNELS_NEON_SPLIT_NEON_H

#include "kernels/kernels.h"

/* Units of pack; false, and nothing done, for forms that only kernels of other processors take. */
bool split_rows_neon(const kargs *k, int64_t begin, int64_t end);
/* Units of pack4. */
void split_quads_neon(const kargs *k, int64_t begin, int64_t end);

#endif
