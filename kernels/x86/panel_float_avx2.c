/* panel_float_avx2.c - many rows with F32, F16 and BF16 weights as stored, and with BF16 interleaved: panels (kernels/c/panel.h) of floats.
 *
 * A panel is [columns][16 rows] of f32, turned as it is unpacked, so that a load has one column of eight rows and no sum
 * crosses a register. A tile is 16 rows of weights by up to 6 of activations: 12 sums in registers.
 *
 * Multiplying, one column of a full tile: 12 fused products for two ports, 2 loads of weights and 6 of activations,
 * repeated as they are loaded: 6 cycles, of which it reaches 93 % on a Sapphire Rapids (88 of 95 GFLOP/s), with unpacking and
 * results 82 to 84 % for 256 rows. */
#include "kernels/kernel_decls.h"

#include "kernels/c/panel.h"
#include "kernels/x86/bf16_avx2.h"
#include "kernels/x86/panel_float.h"

enum { ROWS = 16, TILE = 6, COLS = 512 };

X86_INLINE void tile(const float *w, const panel_acts *x, int n_x, float *t)
{
    __m256 s[TILE][2];
    const float *at[TILE];
#pragma GCC unroll 6
    for (int i = 0; i < n_x; i++) {
        s[i][0] = s[i][1] = _mm256_setzero_ps();
        at[i] = (const float *)x->rows[i] + x->first;
    }
    for (int64_t c = 0; c < x->cols; c++, w += ROWS) {
        const __m256 low = _mm256_load_ps(w), high = _mm256_load_ps(w + 8);
#pragma GCC unroll 6
        for (int i = 0; i < n_x; i++) {
            const __m256 a = _mm256_broadcast_ss(at[i] + c);
            s[i][0] = _mm256_fmadd_ps(low, a, s[i][0]);
            s[i][1] = _mm256_fmadd_ps(high, a, s[i][1]);
        }
    }
#pragma GCC unroll 6
    for (int i = 0; i < n_x; i++) {
        _mm256_store_ps(t + i * ROWS, s[i][0]);
        _mm256_store_ps(t + i * ROWS + 8, s[i][1]);
    }
}

/* Constant numbers of rows, so that sums stay in registers. */
static void multiply(const void *panel, const panel_acts *x, float *t)
{
    switch (x->count) {
    case 6:
        tile(panel, x, 6, t);
        break;
    case 5:
        tile(panel, x, 5, t);
        break;
    case 4:
        tile(panel, x, 4, t);
        break;
    case 3:
        tile(panel, x, 3, t);
        break;
    case 2:
        tile(panel, x, 2, t);
        break;
    default:
        tile(panel, x, 1, t);
        break;
    }
}

static void put(const float *t, float *const *out, const float *bias, bool add)
{
    float_put(t, out, bias, add, ROWS, TILE);
}

_Static_assert(COLS *ROWS * sizeof(float) <= PANEL_BYTES, "a panel fits its scratch");

#define FLOAT_PANEL(type, name, bytes)                                                             \
    static void unpack_##name(const uint8_t *w, int64_t pitch, int64_t rows, int64_t first,        \
                              int64_t cols, void *panel)                                           \
    {                                                                                              \
        turn_unpack(w, pitch, rows, first, cols, panel, ROWS, bytes, turn_##name);                 \
    }                                                                                              \
    static const panel_core core_##name = {ACT_F32, ROWS,          TILE,     1,                    \
                                           COLS,    unpack_##name, multiply, put};                 \
    PANEL_KERNELS(type, avx2, &core_##name)
FLOAT_PANEL(F32, f32, 4)
FLOAT_PANEL(F16, f16, 2)
FLOAT_PANEL(BF16_STORED, bf16, 2)

/* ---- interleaved ---- */

/* Four columns of eight rows. */
X86_INLINE void put_step(const uint8_t *step, float *to)
{
    __m256 two[4];
    for (int p = 0; p < 4; p++)
        two[p] = bf16_two_rows(step, p);
    const __m256 a = _mm256_permute2f128_ps(two[0], two[2], 0x20); /* rows 0, 4 */
    const __m256 b = _mm256_permute2f128_ps(two[0], two[2], 0x31); /* rows 1, 5 */
    const __m256 c = _mm256_permute2f128_ps(two[1], two[3], 0x20);
    const __m256 d = _mm256_permute2f128_ps(two[1], two[3], 0x31);
    const __m256 ab = _mm256_unpacklo_ps(a, b), cd = _mm256_unpacklo_ps(c, d);
    const __m256 ab_high = _mm256_unpackhi_ps(a, b), cd_high = _mm256_unpackhi_ps(c, d);
    _mm256_store_ps(to, _mm256_shuffle_ps(ab, cd, 0x44));
    _mm256_store_ps(to + ROWS, _mm256_shuffle_ps(ab, cd, 0xee));
    _mm256_store_ps(to + 2 * ROWS, _mm256_shuffle_ps(ab_high, cd_high, 0x44));
    _mm256_store_ps(to + 3 * ROWS, _mm256_shuffle_ps(ab_high, cd_high, 0xee));
}

static void unpack_rows8(const uint8_t *w, int64_t pitch, int64_t rows, int64_t first, int64_t cols,
                         void *panel)
{
    const int64_t last = rows / LAYOUT_GROUP - 1;
    float *to = panel;
    w += first / BF16_STEP * BF16_STEP_BYTES;
    for (int g = 0; g < ROWS / LAYOUT_GROUP; g++, to += LAYOUT_GROUP) {
        const uint8_t *at = w + (g < last ? g : last) * pitch;
        int64_t c = 0;
        for (; c + BF16_STEP <= cols; c += BF16_STEP, at += BF16_STEP_BYTES)
            put_step(at, to + c * ROWS);
        if (c < cols) {
            uint8_t line[BF16_STEP_BYTES];
            bf16_rest(at, cols - c, line);
            put_step(line, to + c * ROWS);
        }
    }
}

static const panel_core core_rows8 = {ACT_F32, ROWS,         TILE,     LAYOUT_GROUP,
                                      COLS,    unpack_rows8, multiply, put};
PANEL_KERNELS(BF16, avx2, &core_rows8)
