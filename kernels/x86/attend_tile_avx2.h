/* attend_tile_avx2.h - the two products of attention (kernels/c/attend_tile.h) with AVX2 and FMA.
 *
 * A product of a query and a key runs in eight lanes and a rest, a sum of values in the order of positions,
 * whatever the tile. Keys are taken four at a time: their lanes are then summed together. Where fewer are left, the
 * last stands in for those that are not there. */
#ifndef WEFT_KERNELS_X86_ATTEND_TILE_AVX2_H
#define WEFT_KERNELS_X86_ATTEND_TILE_AVX2_H

#include "kernels/c/attend_size.h"
#include "kernels/x86/unpack.h"

enum { TILE = 4 };

/* The sums of four registers. */
X86_INLINE __m128 lanes_sum4(const __m256 *a)
{
    __m256 four = _mm256_hadd_ps(_mm256_hadd_ps(a[0], a[1]), _mm256_hadd_ps(a[2], a[3]));
    return _mm_add_ps(_mm256_castps256_ps128(four), _mm256_extractf128_ps(four, 1));
}

/* s[g][j] = scale * (q[g] . key[j]) for `heads` rows q [.., width] and the first n of four keys; s rows are a
 * block apart. */
X86_INLINE void tile_dot(const float *q, const float *const *key, int64_t n, int64_t width,
                         float scale, float *s, int heads)
{
    __m256 lanes[2][TILE];
    int64_t whole = width / 8 * 8;
    for (int g = 0; g < heads; g++)
        for (int j = 0; j < TILE; j++)
            lanes[g][j] = _mm256_setzero_ps();
    for (int64_t i = 0; i < whole; i += 8) {
        __m256 y[2];
        for (int g = 0; g < heads; g++)
            y[g] = _mm256_loadu_ps(q + g * width + i);
        for (int j = 0; j < TILE; j++) {
            __m256 x = _mm256_loadu_ps(key[j] + i);
            for (int g = 0; g < heads; g++)
                lanes[g][j] = _mm256_fmadd_ps(x, y[g], lanes[g][j]);
        }
    }
    for (int g = 0; g < heads; g++) {
        float sum[TILE];
        _mm_storeu_ps(sum, lanes_sum4(lanes[g]));
        for (int64_t j = 0; j < n; j++) {
            for (int64_t i = whole; i < width; i++)
                sum[j] += q[g * width + i] * key[j][i];
            s[g * ATTEND_BLOCK + j] = scale * sum[j];
        }
    }
}

X86_INLINE void dot_heads(const float *q, const float *const *key, int64_t n, int64_t width,
                          float scale, float *s, int heads)
{
    int64_t j = 0;
    for (; j + TILE <= n; j += TILE)
        tile_dot(q, key + j, TILE, width, scale, s + j, heads);
    if (j < n) {
        const float *last[TILE];
        for (int64_t i = 0; i < TILE; i++)
            last[i] = key[j + i < n ? j + i : n - 1];
        tile_dot(q, last, n - j, width, scale, s + j, heads);
    }
}

/* s [group, block] of n keys. */
static inline void attend_dot(const float *q, int64_t group, const float *const *key, int64_t n,
                              int64_t width, float scale, float *s)
{
    int64_t g = 0;
    for (; g + 2 <= group; g += 2)
        dot_heads(q + g * width, key, n, width, scale, s + g * ATTEND_BLOCK, 2);
    for (; g < group; g++)
        dot_heads(q + g * width, key, n, width, scale, s + g * ATTEND_BLOCK, 1);
}

/* sum[g][..] += p[g][0] value[0][..] + p[g][1] value[1][..] + ... for `vectors` times 8 columns from `col`
 * on; p rows are a block apart, sum rows `width`. */
X86_INLINE void tile_add(const float *p, const float *const *value, int64_t n, int64_t col,
                         int64_t width, float *sum, int heads, int vectors)
{
    __m256 lanes[2][TILE];
    for (int g = 0; g < heads; g++)
        for (int c = 0; c < vectors; c++)
            lanes[g][c] = _mm256_loadu_ps(sum + g * width + col + 8 * c);
    for (int64_t j = 0; j < n; j++) {
        __m256 weight[2];
        for (int g = 0; g < heads; g++)
            weight[g] = _mm256_broadcast_ss(p + g * ATTEND_BLOCK + j);
        for (int c = 0; c < vectors; c++) {
            __m256 x = _mm256_loadu_ps(value[j] + col + 8 * c);
            for (int g = 0; g < heads; g++)
                lanes[g][c] = _mm256_fmadd_ps(x, weight[g], lanes[g][c]);
        }
    }
    for (int g = 0; g < heads; g++)
        for (int c = 0; c < vectors; c++)
            _mm256_storeu_ps(sum + g * width + col + 8 * c, lanes[g][c]);
}

X86_INLINE void add_heads(const float *p, const float *const *value, int64_t n, int64_t width,
                          float *sum, int heads)
{
    int64_t col = 0;
    for (; col + 8 * TILE <= width; col += 8 * TILE)
        tile_add(p, value, n, col, width, sum, heads, TILE);
    for (; col + 8 <= width; col += 8)
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
    for (; g + 2 <= group; g += 2)
        add_heads(p + g * ATTEND_BLOCK, value, n, width, sum + g * width, 2);
    for (; g < group; g++)
        add_heads(p + g * ATTEND_BLOCK, value, n, width, sum + g * width, 1);
}

#endif
