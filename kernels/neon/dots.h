/* dots.h - eight columns of two weight rows a vector, times those of one row of activations: what sdot does, and the same
 * without it. */
#ifndef WEFT_KERNELS_NEON_DOTS_H
#define WEFT_KERNELS_NEON_DOTS_H

#include "kernels/neon/neon.h"

#if defined(__ARM_FEATURE_DOTPROD)
/* Two half sums of each row of a pair, over `steps` vectors of weights; q has every 8 columns twice. No code is larger than
 * `most`. */
NEON_INLINE int32x4_t dots2(const int8x16_t *v, const int8_t *q, int steps, int most)
{
    int32x4_t s = vdupq_n_s32(0);
    (void)most;
    for (int i = 0; i < steps; i++)
        s = vdotq_s32(s, v[i], neon_load(q + i * 16));
    return s;
}
#else
/* Products of eight columns of either row of a pair, those of several steps added up. */
typedef struct {
    int16x8_t row[2];
} products;

NEON_INLINE products products_of(const int8x16_t *v, const int8_t *q, int steps)
{
    int8x16_t x = neon_load(q);
    products p = {{vmull_s8(vget_low_s8(v[0]), vget_low_s8(x)), vmull_high_s8(v[0], x)}};
    for (int i = 1; i < steps; i++) {
        x = neon_load(q + i * 16);
        p.row[0] = vmlal_s8(p.row[0], vget_low_s8(v[i]), vget_low_s8(x));
        p.row[1] = vmlal_high_s8(p.row[1], v[i], x);
    }
    return p;
}

/* 16 bits hold 8 products of codes up to 32, and two of any: 2 * 128 * 127. */
NEON_INLINE int32x4_t dots2(const int8x16_t *v, const int8_t *q, int steps, int most)
{
    if (most <= 32) {
        products p = products_of(v, q, steps);
        return vpaddlq_s16(vpaddq_s16(p.row[0], p.row[1]));
    }
    products p = products_of(v, q, 2);
    int32x4_t a = vpaddlq_s16(p.row[0]), b = vpaddlq_s16(p.row[1]);
    if (steps == 4) {
        p = products_of(v + 2, q + 32, 2);
        a = vpadalq_s16(a, p.row[0]);
        b = vpadalq_s16(b, p.row[1]);
    }
    return vpaddq_s32(a, b);
}
#endif

/* The sums of four rows: v[4] and on are the other pair's. */
NEON_INLINE int32x4_t dots4(const int8x16_t *v, const int8_t *q, int steps, int most)
{
    return vpaddq_s32(dots2(v, q, steps, most), dots2(v + 4, q, steps, most));
}

#endif
