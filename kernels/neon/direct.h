/* direct.h - interleaved weights times four rows of activations, unpacked on the way: the loops in assembly.
 *
 * t as a tile of panel.h; sums begin with those at `from`, which may be t, or NULL: zeros. w at any byte. Weights are asked
 * for `ahead` bytes before their use; 0: they are in a cache. */
#ifndef WEFT_KERNELS_NEON_DIRECT_H
#define WEFT_KERNELS_NEON_DIRECT_H

#include "kernels/neon/panel_i8mm.h"

typedef void direct_fn(const uint8_t *w, const int8_t *q, const float *d, int64_t n_block,
                       int64_t ahead, const float *from, float *t);

direct_fn direct_Q8_0, direct_Q4_0;

/* Half of the eight rows times six or eight rows of activations, whose second four lie `group` bytes on: t has a tile for each
 * four, of which this is one half. Every second line is asked for. */
typedef void direct8_fn(const uint8_t *w, int half, const int8_t *q, const float *d, int64_t group,
                        int64_t n_block, int64_t ahead, const float *from, float *t);

direct8_fn direct6_Q8_0, direct8_Q8_0, direct6_Q4_0, direct8_Q4_0;

/* So far ahead they bring a line into the first cache: the pass after the next takes it. */
enum { NEAR_AHEAD = 4096 };

/* Rows of activations as ACT_Q8KX4 has them. */
typedef struct {
    const char *q, *d, *sums;
    int64_t group;
} direct256_acts;

/* The same for n_block blocks of 256 columns, with scales of groups as bytes, [groups][8 rows]; t is added
 * to. */
typedef void direct256_fn(const uint8_t *w, const panel256_block *block, int half,
                          const direct256_acts *x, int64_t n_block, int64_t ahead, float *t);

direct256_fn direct6_Q4_K, direct8_Q4_K, direct6_Q6_K, direct8_Q6_K;

#endif
