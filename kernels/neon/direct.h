/* direct.h - woven weights times four rows of activations, unpacked on the way: the loops in assembly.
 *
 * t as a tile of panel.h; w at any byte. Weights are asked for `ahead` bytes before their use; 0: they are in a cache. */
#ifndef WEFT_KERNELS_NEON_DIRECT_H
#define WEFT_KERNELS_NEON_DIRECT_H

#include <stdint.h>

typedef void direct_fn(const uint8_t *w, const int8_t *q, const float *d, int64_t n_block,
                       int64_t ahead, float t[32]);

direct_fn direct_Q8_0, direct_Q4_0;

#endif
