/* amx.h - the tiles of kernels/x86/amx.h in plain C (Intel SDM: TILELOADD, TDPBF16PS, TDPBSSD), with a stop
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

static inline float tile_bf16(const uint8_t *p)
{
    uint32_t bits = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 24;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static inline void tile_dot_bf16(int c, int a, int b)
{
    tile_shapes(c, a, b);
    for (int m = 0; m < tiles[c].rows; m++)
        for (int n = 0; n < AMX_BYTES / 4; n++) {
            float sum, part[2] = {0, 0};
            memcpy(&sum, tiles[c].at[m] + 4 * n, sizeof sum);
            for (int k = 0; k < tiles[a].bytes / 2; k++)
                part[k % 2] = fmaf(tile_bf16(tiles[a].at[m] + 2 * k),
                                   tile_bf16(tiles[b].at[k / 2] + 4 * n + k % 2 * 2), part[k % 2]);
            sum += part[0] + part[1];
            memcpy(tiles[c].at[m] + 4 * n, &sum, sizeof sum);
        }
}

static inline __attribute__((unused)) void tile_zero(int t)
{
    tile_need(tiles[t].rows > 0);
    memset(tiles[t].at, 0, sizeof tiles[t].at);
}
static inline void tile_dot_bytes(int c, int a, int b, bool is_signed)
{
    tile_shapes(c, a, b);
    for (int m = 0; m < tiles[c].rows; m++)
        for (int n = 0; n < AMX_BYTES / 4; n++) {
            int32_t sum;
            memcpy(&sum, tiles[c].at[m] + 4 * n, sizeof sum);
            for (int k = 0; k < tiles[a].bytes; k++) {
                int w = tiles[b].at[k / 4][4 * n + k % 4];
                sum += (int8_t)tiles[a].at[m][k] * (is_signed ? (int8_t)w : w);
            }
            memcpy(tiles[c].at[m] + 4 * n, &sum, sizeof sum);
        }
}

#define AMX_ZERO tile_zero
#define AMX_DOT_I8(c, a, b) tile_dot_bytes(c, a, b, true)
#define AMX_DOT_U8(c, a, b) tile_dot_bytes(c, a, b, false)
#define AMX_LOAD tile_load
#define AMX_STORE tile_store
#define AMX_DOT_BF16 tile_dot_bf16

#endif
