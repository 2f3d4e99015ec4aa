/* amx.h - the tiles of kernels/x86/amx.h in C and AVX2 (Intel SDM: TILELOADD, TDPBF16PS, TDPBSSD), with a stop
 * where a processor would fault. In place of that header in the emulated check. */
#ifndef WEFT_KERNELS_X86_AMX_H
#define WEFT_KERNELS_X86_AMX_H

#include <math.h>
#include <stdlib.h>
#include "kernels/x86/unpack.h"

enum { AMX_ROWS = 16, AMX_BYTES = 64, AMX_TILE = AMX_ROWS * AMX_BYTES };

static struct {
    int rows, bytes; /* 0 rows: not to be used */
    uint8_t at[AMX_ROWS][AMX_BYTES];
} tiles[8];

static void tile_need(bool holds)
{
    if (!holds)
        abort();
}

static inline void amx_shape(int first, int second)
{
    memset(tiles, 0, sizeof tiles);
    for (int i = 0; i < 8; i++) {
        tiles[i].rows = i >= 6 ? AMX_ROWS : i == 2 || i == 3 || i == 5 ? second : first;
        tiles[i].bytes = AMX_BYTES;
        tile_need(tiles[i].rows >= 0 && tiles[i].rows <= AMX_ROWS);
    }
}
static inline void amx_shape_bytes(int rows, int bytes)
{
    memset(tiles, 0, sizeof tiles);
    tile_need(rows > 0 && rows <= AMX_ROWS && bytes >= 4 && bytes <= AMX_BYTES && bytes % 4 == 0);
    for (int i = 0; i < 8; i++) {
        tiles[i].rows = i >= 6 ? bytes / 4 : rows;
        tiles[i].bytes = i == 4 || i == 5 ? bytes : AMX_BYTES;
    }
}
static inline void amx_end(void)
{
    memset(tiles, 0, sizeof tiles);
}

static inline void tile_load(int t, const void *p, int64_t stride)
{
    tile_need(tiles[t].rows > 0);
    memset(tiles[t].at, 0, sizeof tiles[t].at);
    for (int i = 0; i < tiles[t].rows; i++)
        memcpy(tiles[t].at[i], (const char *)p + i * stride, (size_t)tiles[t].bytes);
}
static inline void tile_store(int t, void *p, int64_t stride)
{
    tile_need(tiles[t].rows > 0);
    for (int i = 0; i < tiles[t].rows; i++)
        memcpy((char *)p + i * stride, tiles[t].at[i], (size_t)tiles[t].bytes);
}
static inline void tile_shapes(int c, int a, int b)
{
    tile_need(tiles[c].rows > 0 && tiles[c].rows == tiles[a].rows);
    tile_need(tiles[c].bytes == tiles[b].bytes && tiles[a].bytes / 4 == tiles[b].rows);
}

/* Four bytes of a row of a, for all eight columns of half a row of b. */
static inline __m256i tile_four(int a, int row, int four)
{
    int32_t bytes;
    memcpy(&bytes, tiles[a].at[row] + 4 * four, sizeof bytes);
    return _mm256_set1_epi32(bytes);
}
static inline __m256i tile_half(int t, int row, int half)
{
    return _mm256_loadu_si256((const void *)(tiles[t].at[row] + half * (AMX_BYTES / 2)));
}

/* The first and the second of two bf16, as f32. */
static inline __m256 tile_first(__m256i pairs)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16));
}
static inline __m256 tile_second(__m256i pairs)
{
    return _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32((int)0xffff0000u)));
}
static inline void tile_dot_bf16(int c, int a, int b)
{
    tile_shapes(c, a, b);
    for (int m = 0; m < tiles[c].rows; m++)
        for (int half = 0; half < 2; half++) {
            __m256 first = _mm256_setzero_ps(), second = _mm256_setzero_ps();
            for (int k = 0; k < tiles[a].bytes / 4; k++) {
                __m256i x = tile_four(a, m, k), w = tile_half(b, k, half);
                first = _mm256_fmadd_ps(tile_first(x), tile_first(w), first);
                second = _mm256_fmadd_ps(tile_second(x), tile_second(w), second);
            }
            float *sum = (float *)(void *)(tiles[c].at[m] + half * (AMX_BYTES / 2));
            _mm256_storeu_ps(sum,
                             _mm256_add_ps(_mm256_loadu_ps(sum), _mm256_add_ps(first, second)));
        }
}

static inline __attribute__((unused)) void tile_zero(int t)
{
    tile_need(tiles[t].rows > 0);
    memset(tiles[t].at, 0, sizeof tiles[t].at);
}
/* As emulated_dpbusd256, both signed. */
static inline __m256i tile_dpbssd(__m256i z, __m256i a, __m256i b)
{
    __m256i even = _mm256_madd_epi16(_mm256_srai_epi16(_mm256_slli_epi16(a, 8), 8),
                                     _mm256_srai_epi16(_mm256_slli_epi16(b, 8), 8));
    __m256i odd = _mm256_madd_epi16(_mm256_srai_epi16(a, 8), _mm256_srai_epi16(b, 8));
    return _mm256_add_epi32(z, _mm256_add_epi32(even, odd));
}
static inline void tile_dot_bytes(int c, int a, int b, bool is_signed)
{
    tile_shapes(c, a, b);
    for (int m = 0; m < tiles[c].rows; m++)
        for (int half = 0; half < 2; half++) {
            __m256i sum = tile_half(c, m, half);
            for (int k = 0; k < tiles[a].bytes / 4; k++) {
                __m256i x = tile_four(a, m, k), w = tile_half(b, k, half);
                sum = is_signed ? tile_dpbssd(sum, x, w) : emulated_dpbusd256(sum, w, x);
            }
            _mm256_storeu_si256((void *)(tiles[c].at[m] + half * (AMX_BYTES / 2)), sum);
        }
}

#define AMX_ZERO tile_zero
#define AMX_DOT_I8(c, a, b) tile_dot_bytes(c, a, b, true)
#define AMX_DOT_U8(c, a, b) tile_dot_bytes(c, a, b, false)
#define AMX_LOAD tile_load
#define AMX_STORE tile_store
#define AMX_DOT_BF16 tile_dot_bf16

#endif
