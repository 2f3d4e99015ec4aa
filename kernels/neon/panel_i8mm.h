/* panel_i8mm.h - eight rows of weights unpacked to bytes, and their products with four interleaved rows of activations.
 *
 * A tile is 8 weight rows by 4 rows of activations; its 32 sums are t[pair * 2 + half][4]: of rows 2 pair and
 * 2 pair + 1 of the weights, each with rows 2 half and 2 half + 1 of the activations. Scales of the weights are
 * spread to match: [w0, w0, w1, w1] for each pair. */
#ifndef WEFT_KERNELS_NEON_PANEL_I8MM_H
#define WEFT_KERNELS_NEON_PANEL_I8MM_H

#include "kernels/c/panel.h"
#include "kernels/neon/codes.h"
#include "kernels/neon/rows8_size.h"

enum { TILE = 32, TILE_X = 4 };

/* Types with a scale for each 32 columns. */
typedef struct {
    int8_t q[8 * ROWS8_COLS];          /* [columns / 8][8 rows][8] */
    float scale[ROWS8_COLS / 32 * 16]; /* [blocks][4 pairs][4] */
    float min[ROWS8_COLS / 32 * 8];    /* [blocks][8 rows], where the type has some */
} panel32;

/* Types with one for each 256; panel_tile_i8mm.c knows where the fields lie. */
typedef struct {
    float d[16], dmin[16];  /* [4 pairs][4] */
    int8_t min[8 * 8];      /* [8 rows][8 groups] */
    int32_t scale[16 * 16]; /* [groups][4 pairs][4] */
} panel256_block;

typedef struct {
    int8_t q[8 * ROWS8_COLS];
    panel256_block block[ROWS8_COLS / 256];
} panel256;

_Static_assert(sizeof(panel32) <= PANEL_BYTES && sizeof(panel256) <= PANEL_BYTES,
               "panels fit their scratch");

/* A core for panels, and what it does for few rows. */
typedef struct {
    panel_core many;
    int block, bytes; /* columns, and bytes of eight rows of them */
    /* Eight rows from w on with a tile, unpacked on the way; t is added to, unless the columns are the first. `pairs` of the
     * four rows are asked for, 1 or 2; cold: the weights come from memory, not for the second time. */
    void (*few)(const uint8_t *w, const panel_acts *x, int pairs, bool cold, float t[TILE]);
    int few_max; /* up to so many rows, four at least, that is faster than a panel */
    /* The same for `rows` of eight, four and those `group` bytes on: a tile of each. NULL: four by four. */
    void (*eight)(const uint8_t *w, const panel_acts *x, int64_t group, int64_t rows, bool cold,
                  float *t);
} few_core;

/* linear on few rows quantised by four. */
void few_linear(const kargs *k, const kthread *t, int64_t begin, int64_t end, const few_core *core);

/* panel_core.put of these tiles. */
void panel_put(const float *t, float *const *out, const float *bias, bool add);

/* The core and the kernels of a type, from unpack_TYPE, few_TYPE and what is named. */
#define FEW_KERNELS(type, act, block, bytes, multiply, few_max, eight)                             \
    static const few_core core_##type = {                                                          \
        {act, LAYOUT_GROUP, TILE_X, LAYOUT_GROUP, ROWS8_COLS, unpack_##type, multiply, panel_put}, \
        block,                                                                                     \
        bytes,                                                                                     \
        few_##type,                                                                                \
        few_max,                                                                                   \
        eight};                                                                                    \
    void k_linear_##type##_FEW_i8mm(const kargs *k, const kthread *t, int64_t begin, int64_t end)  \
    {                                                                                              \
        few_linear(k, t, begin, end, &core_##type);                                                \
    }                                                                                              \
    PANEL_KERNELS(type, i8mm, &core_##type.many)

/* What few rows' sums begin with: t; or NULL, zeros, which stored first would be waited for. */
NEON_INLINE const float *panel_before(const panel_acts *x, const float *t)
{
    return x->first ? t : NULL;
}

/* The same for sums in vectors. */
NEON_INLINE void panel_begin(const float *from, float32x4_t acc[8])
{
    for (int i = 0; i < 8; i++)
        acc[i] = from ? vld1q_f32(from + i * 4) : vdupq_n_f32(0);
}

/* [w0, w0, w1, w1] for each pair of eight. */
NEON_INLINE void panel_spread(const float32x4_t w[2], float32x4_t to[4])
{
    for (int i = 0; i < 4; i++)
        to[i] = i % 2 ? vzip2q_f32(w[i / 2], w[i / 2]) : vzip1q_f32(w[i / 2], w[i / 2]);
}

/* The same of integers of 8 bits, or of 6. */
NEON_INLINE void panel_spread_scales(const uint8_t *scale, bool is_signed, int32x4_t to[4])
{
    int16x8_t s = is_signed ? vmovl_s8(vld1_s8((const int8_t *)scale))
                            : vreinterpretq_s16_u16(vmovl_u8(vld1_u8(scale)));
    int32x4_t w[2] = {vmovl_s16(vget_low_s16(s)), vmovl_high_s16(s)};
    for (int i = 0; i < 4; i++)
        to[i] = i % 2 ? vzip2q_s32(w[i / 2], w[i / 2]) : vzip1q_s32(w[i / 2], w[i / 2]);
}

/* n_block blocks of 32 columns: t = sums of w times q, times scale of both. q and d as ACT_Q8X4 has them. */
void panel_tile32(const int8_t *w, const float *scale, const int8_t *q, const float *d,
                  int64_t n_block, int64_t next, float t[TILE]);

/* n_block blocks of 256 columns, whose scales are integers for each 32 or 16 columns. q, d and sums as ACT_Q8KX4 has
 * them. */
void panel_tile256_min(const int8_t *w, const panel256_block *block, const int8_t *q,
                       const float *d, const int8_t *sums, int64_t n_block, int64_t next,
                       float t[TILE]);
void panel_tile256_groups8(const int8_t *w, const panel256_block *block, const int8_t *q,
                           const float *d, int64_t n_block, int64_t next, float t[TILE]);
void panel_tile256_groups16(const int8_t *w, const panel256_block *block, const int8_t *q,
                            const float *d, int64_t n_block, int64_t next, float t[TILE]);

#endif
