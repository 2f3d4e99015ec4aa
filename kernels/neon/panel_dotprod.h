/* panel_dotprod.h - eight rows of weights unpacked to bytes, and their products with four interleaved rows of activations,
 * for sdot.
 *
 * sdot takes four columns of four weight rows and the same columns of one row of activations, which a lane holds: every sum
 * has a lane of its own from the first product on. Weights that share a scale are a *group* of 16, 32 or 256 columns. */
#ifndef WEFT_KERNELS_NEON_PANEL_DOTPROD_H
#define WEFT_KERNELS_NEON_PANEL_DOTPROD_H

#include "kernels/c/panel.h"
#include "kernels/neon/codes.h"
#include "kernels/neon/rows8_size.h"

enum { DOT_X = 4, DOT_TILE = DOT_X * LAYOUT_GROUP }; /* t[4 rows of activations][8 of weights] */

/* Sums begin at these bits, those of 1.5 * 2^23, and are then, read as a float, 1.5 * 2^23 more than they are: a
 * conversion that costs nothing. They stay below 2^22: 256 products of bytes are at most 256 * 128 * 127. */
#define DOT_BIAS 12582912.0f
enum { DOT_BIAS_BITS = 0x4b400000 };

typedef struct {
    float w[LAYOUT_GROUP];      /* for each weight row */
    float unbias[LAYOUT_GROUP]; /* -DOT_BIAS * w, exact where w has 22 bits or less */
} dot_scale;

NEON_INLINE void dot_scale_put(dot_scale *s, const float32x4_t w[2])
{
    for (int i = 0; i < 2; i++) {
        vst1q_f32(s->w + i * 4, w[i]);
        vst1q_f32(s->unbias + i * 4, vmulq_n_f32(w[i], -DOT_BIAS));
    }
}

/* The same with minima, which multiply sums of activations. */
typedef struct {
    dot_scale scale;
    float min[LAYOUT_GROUP];
} dot_scale_min;

/* Two loops each, for the first two of four rows of activations and for all of them.
 *
 * t += sums of w times q, times the scales of both. w is [columns / 4][8 rows][4], scale a dot_scale for each group
 * (dot_tile32_min: a dot_scale_min). q, d and sums are as ACT_Q8X4 has them, of d one for each 1 << d_shift groups, and
 * sums are for dot_tile32_min alone; next as panel_acts has it. */
typedef void dot_tile_fn(const int8_t *w, const void *scale, const int8_t *q, const float *d,
                         int64_t d_shift, const float *sums, int64_t n_group, int64_t next,
                         float t[DOT_TILE]);
extern dot_tile_fn *const dot_tile16[2], *const dot_tile32[2], *const dot_tile32_min[2],
                                                                   *const dot_tile256[2];

/* Minima of eight groups of 32 columns as integers. */
typedef struct {
    uint8_t q[8 * LAYOUT_GROUP]; /* [2][8 rows][4 groups] */
    dot_scale scale;
} dot_minima;

/* t += minima times sums of the activations as ACT_Q8KX4 has them, times the scales of both; w and scale are in the first of
 * n_group dot_minima. High bits of the sums come first: those times 128 and the low bits make up a sum of at most
 * 8 * 63 * 32 * 127 < 2^22, which begins with DOT_BIAS_BITS / 128. */
extern dot_tile_fn *const dot_tile_minima[2];

#endif
