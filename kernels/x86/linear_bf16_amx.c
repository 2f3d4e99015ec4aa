/* linear_bf16_amx.c - BF16 weights as tiles, and their kernels for many rows: with activations rounded to bf16
 * (ACT_BF1, amx_bf16), or in three parts, which is exact (ACT_BF3T, amx). */
#include "kernels/kernel_decls.h"

#include "kernels/x86/panel_amx.h"
#include "kernels/x86/unpack.h"

/* from [16][16] words of 32 bits to the same, rows for columns. */
X86_INLINE void transpose(const char *from, char *to)
{
    __m512i a[16], b[16];
    for (int i = 0; i < 16; i++)
        a[i] = _mm512_loadu_si512(from + i * 64);
    for (int i = 0; i < 16;
         i += 2) { /* pairs of rows: words 4l, 4l + 1 of lane l, then 4l + 2, 4l + 3 */
        b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) { /* fours of rows: a[i + c] has word 4l + c of lane l */
        a[i] = _mm512_unpacklo_epi64(b[i], b[i + 2]);
        a[i + 1] = _mm512_unpackhi_epi64(b[i], b[i + 2]);
        a[i + 2] = _mm512_unpacklo_epi64(b[i + 1], b[i + 3]);
        a[i + 3] = _mm512_unpackhi_epi64(b[i + 1], b[i + 3]);
    }
    for (int c = 0; c < 4; c++) { /* lanes of all four fours */
        __m512i low = _mm512_shuffle_i32x4(a[c], a[c + 4], 0x44);
        __m512i high = _mm512_shuffle_i32x4(a[c], a[c + 4], 0xee);
        __m512i low2 = _mm512_shuffle_i32x4(a[c + 8], a[c + 12], 0x44);
        __m512i high2 = _mm512_shuffle_i32x4(a[c + 8], a[c + 12], 0xee);
        b[c] = _mm512_shuffle_i32x4(low, low2, 0x88);
        b[c + 4] = _mm512_shuffle_i32x4(low, low2, 0xdd);
        b[c + 8] = _mm512_shuffle_i32x4(high, high2, 0x88);
        b[c + 12] = _mm512_shuffle_i32x4(high, high2, 0xdd);
    }
    for (int i = 0; i < 16; i++)
        _mm512_storeu_si512(to + i * 64, b[i]);
}

/* Rows that are not there are the last one again. */
static void unpack(const uint8_t *w, int64_t pitch, int64_t rows, int64_t first, int64_t cols,
                   char *to)
{
    char turned[TILE_BYTES];
    for (int64_t c = 0; c < cols; c += TILE_COLS, to += TILE_BYTES) {
        int64_t here = cols - c < TILE_COLS ? cols - c : TILE_COLS;
        if (here < TILE_COLS)
            memset(turned, 0, sizeof turned);
        for (int64_t i = 0; i < TILE_ROWS; i++)
            memcpy(turned + i * 64, w + (i < rows ? i : rows - 1) * pitch + (first + c) * 2,
                   (size_t)here * 2);
        transpose(turned, to);
    }
}

#define TILES_KERNELS(variant, parts)                                                              \
    void k_linear_BF16_##variant(const kargs *k, const kthread *t, int64_t begin, int64_t end)     \
    {                                                                                              \
        static const tiles_core core = {unpack, 1, parts};                                         \
        tiles_linear(k, t, begin, end, &core);                                                     \
    }                                                                                              \
    void k_experts_BF16_##variant(const kargs *k, const kthread *t, int64_t begin, int64_t end)    \
    {                                                                                              \
        static const tiles_core core = {unpack, 1, parts};                                         \
        tiles_experts(k, t, begin, end, &core);                                                    \
    }
TILES_KERNELS(amx, 3)
TILES_KERNELS(amx_bf16, 1)
