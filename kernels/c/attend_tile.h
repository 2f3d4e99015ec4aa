/* attend_tile.h - the two products of attention on a block of positions: queries with keys, and weights with
 * values, a few query heads and a few rows at a time, so that what is read is used several times.
 *
 * A product of a query and a key runs in four lanes and a rest, a sum of values in the order of positions,
 * whatever the tile: heads and rows that do not fill one get smaller ones and the same bits. */
#ifndef WEFT_KERNELS_C_ATTEND_TILE_H
#define WEFT_KERNELS_C_ATTEND_TILE_H

#include "kernels/c/attend_size.h"
#include "kernels/c/lanes.h"

enum { TILE = 4 };

LANES_INLINE f32x4 floats_all(float x)
{
    const f32x4 all = {x, x, x, x};
    return all;
}

/* Columns that fill no vector, added to sum [heads, TILE]. */
static inline void dot_rest(const float *q, const float *const *key, int64_t from, int64_t width,
                            float *sum, int heads, int keys)
{
    for (int g = 0; g < heads; g++)
        for (int j = 0; j < keys; j++)
            for (int64_t i = from; i < width; i++)
                sum[g * TILE + j] += q[g * width + i] * key[j][i];
}

/* s[g][j] = scale * (q[g] . key[j]) for `heads` rows q [.., width] and `keys` keys; s rows are a block
 * apart. Both counts are constants where it is called. */
LANES_INLINE void tile_dot(const float *q, const float *const *key, int64_t width, float scale,
                           float *s, int heads, int keys)
{
    f32x4 lanes[TILE][TILE];
    int64_t whole = width / 4 * 4;
    for (int g = 0; g < heads; g++)
        for (int j = 0; j < keys; j++)
            lanes[g][j] = floats_all(0);
    for (int64_t i = 0; i < whole; i += 4) {
        f32x4 x[TILE];
        for (int j = 0; j < keys; j++)
            x[j] = floats_at(key[j] + i);
        for (int g = 0; g < heads; g++) {
            f32x4 y = floats_at(q + g * width + i);
            for (int j = 0; j < keys; j++)
                lanes[g][j] = floats_add_product(lanes[g][j], x[j], y);
        }
    }
    float sum[TILE][TILE];
    for (int g = 0; g < heads; g++)
        for (int j = 0; j < keys; j++)
            sum[g][j] = floats_sum(lanes[g][j]);
    if (whole < width)
        dot_rest(q, key, whole, width, &sum[0][0], heads, keys);
    for (int g = 0; g < heads; g++)
        for (int j = 0; j < keys; j++)
            s[g * ATTEND_BLOCK + j] = scale * sum[g][j];
}

LANES_INLINE void dot_heads(const float *q, const float *const *key, int64_t n, int64_t width,
                            float scale, float *s, int heads)
{
    int64_t j = 0;
    for (; j + TILE <= n; j += TILE)
        tile_dot(q, key + j, width, scale, s + j, heads, TILE);
    for (; j < n; j++)
        tile_dot(q, key + j, width, scale, s + j, heads, 1);
}

/* s [group, block] of n keys. */
static inline void attend_dot(const float *q, int64_t group, const float *const *key, int64_t n,
                              int64_t width, float scale, float *s)
{
    int64_t g = 0;
    for (; g + TILE <= group; g += TILE)
        dot_heads(q + g * width, key, n, width, scale, s + g * ATTEND_BLOCK, TILE);
    for (; g + 2 <= group; g += 2)
        dot_heads(q + g * width, key, n, width, scale, s + g * ATTEND_BLOCK, 2);
    for (; g < group; g++)
        dot_heads(q + g * width, key, n, width, scale, s + g * ATTEND_BLOCK, 1);
}

/* sum[g][..] += p[g][0] value[0][..] + p[g][1] value[1][..] + ... for `vectors` times 4 columns from `col`
 * on; p rows are a block apart, sum rows `width`. */
LANES_INLINE void tile_add(const float *p, const float *const *value, int64_t n, int64_t col,
                           int64_t width, float *sum, int heads, int vectors)
{
    f32x4 lanes[TILE][TILE];
    for (int g = 0; g < heads; g++)
        for (int c = 0; c < vectors; c++)
            lanes[g][c] = floats_at(sum + g * width + col + 4 * c);
    for (int64_t j = 0; j < n; j++) {
        f32x4 x[TILE];
        for (int c = 0; c < vectors; c++)
            x[c] = floats_at(value[j] + col + 4 * c);
        for (int g = 0; g < heads; g++) {
            f32x4 weight = floats_all(p[g * ATTEND_BLOCK + j]);
            for (int c = 0; c < vectors; c++)
                lanes[g][c] = floats_add_product(lanes[g][c], x[c], weight);
        }
    }
    for (int g = 0; g < heads; g++)
        for (int c = 0; c < vectors; c++)
            memcpy(sum + g * width + col + 4 * c, &lanes[g][c], sizeof lanes[g][c]);
}

LANES_INLINE void add_heads(const float *p, const float *const *value, int64_t n, int64_t width,
                            float *sum, int heads)
{
    int64_t col = 0;
    for (; col + 4 * TILE <= width; col += 4 * TILE)
        tile_add(p, value, n, col, width, sum, heads, TILE);
    for (; col + 4 <= width; col += 4)
        tile_add(p, value, n, col, width, sum, heads, 1);
    for (int g = 0; g < heads; g++)
        for (int64_t i = col; i < width; i++)
            for (int64_t j = 0; j < n; j++)
                sum[g * width + i] += p[g * ATTEND_BLOCK + j] * value[j][i];
}

/* sum [group, width] of n values with weights p [group, block]. */
static inline void attend_add(const float *p, int64_t group, const float *const *value, int64_t n,
                              int64_t width, float *sum)
{
    int64_t g = 0;
    for (; g + TILE <= group; g += TILE)
        add_heads(p + g * ATTEND_BLOCK, value, n, width, sum + g * width, TILE);
    for (; g + 2 <= group; g += 2)
        add_heads(p + g * ATTEND_BLOCK, value, n, width, sum + g * width, 2);
    for (; g < group; g++)
        add_heads(p + g * ATTEND_BLOCK, value, n, width, sum + g * width, 1);
}

#endif
