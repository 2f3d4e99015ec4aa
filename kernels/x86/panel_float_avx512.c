/* panel_float_avx512.c - many rows with F32, F16 and BF16 weights: panels (kernels/c/panel.h) of floats.
 *
 * As panel_float_avx2.c, with panels of 32 rows and tiles of up to 8 rows of activations: 16 sums in registers. One column
 * of a full tile: 16 fused products for two ports, 2 loads of weights and 8 of activations: 8 cycles, of which it reaches 95 %
 * on a Sapphire Rapids (170 of 179 GFLOP/s), with unpacking and results 80 % for 256 rows of BF16 interleaved.
 *
 * Interleaved BF16, four columns of 16 rows: 2 loads, 8 shuffles for one port, 4 stores: 8 cycles; it takes 9 from the first
 * cache. As stored, panel_float.h: sixteen rows at a time, in wider registers, take longer, since their lines do not fit the
 * sets of the first cache. */
#include "kernels/kernel_decls.h"

#include "kernels/c/panel.h"
#include "kernels/x86/bf16_avx512.h"
#include "kernels/x86/panel_float.h"

enum { ROWS = 32, HALF = 16, TILE = 8, COLS = 256 };

/* Four columns of sixteen rows, each eight of them a line. */
X86_INLINE void put_lines(__m512i a, __m512i b, float *to)
{
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    for (int h = 0; h < 2; h++, to += 2 * ROWS) {
        const __m512 of_a = bf16_columns(a, h), of_b = bf16_columns(b, h);
        _mm512_storeu_ps(to, _mm512_permutex2var_ps(of_a, even, of_b));
        _mm512_storeu_ps(to + ROWS, _mm512_permutex2var_ps(of_a, odd, of_b));
    }
}

static void unpack_rows8(const uint8_t *w, int64_t pitch, int64_t rows, int64_t first, int64_t cols,
                         void *panel)
{
    const int64_t last = rows / LAYOUT_GROUP - 1;
    float *to = panel;
    w += first / BF16_STEP * BF16_STEP_BYTES;
    for (int g = 0; g < ROWS / LAYOUT_GROUP; g += 2, to += HALF) {
        const uint8_t *a = w + (g < last ? g : last) * pitch;
        const uint8_t *b = w + (g + 1 < last ? g + 1 : last) * pitch;
        int64_t c = 0;
        for (; c + BF16_STEP <= cols; c += BF16_STEP, a += BF16_STEP_BYTES, b += BF16_STEP_BYTES) {
            x86_hint(a, BF16_STEP_BYTES);
            x86_hint(b, BF16_STEP_BYTES);
            put_lines(_mm512_loadu_si512(a), _mm512_loadu_si512(b), to + c * ROWS);
        }
        if (c < cols)
            put_lines(bf16_rest(a, cols - c), bf16_rest(b, cols - c), to + c * ROWS);
    }
}

/* ---- multiplying ---- */

X86_INLINE void tile(const float *w, const panel_acts *x, int n_x, float *t)
{
    __m512 s[TILE][2];
    const float *at[TILE];
#pragma GCC unroll 8
    for (int i = 0; i < n_x; i++) {
        s[i][0] = s[i][1] = _mm512_setzero_ps();
        at[i] = (const float *)x->rows[i] + x->first;
    }
    for (int64_t c = 0; c < x->cols; c++, w += ROWS) {
        const __m512 low = _mm512_loadu_ps(w), high = _mm512_loadu_ps(w + HALF);
#pragma GCC unroll 8
        for (int i = 0; i < n_x; i++) {
            const __m512 a = _mm512_set1_ps(at[i][c]);
            s[i][0] = _mm512_fmadd_ps(low, a, s[i][0]);
            s[i][1] = _mm512_fmadd_ps(high, a, s[i][1]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < n_x; i++) {
        _mm512_storeu_ps(t + i * ROWS, s[i][0]);
        _mm512_storeu_ps(t + i * ROWS + HALF, s[i][1]);
    }
}

/* Constant numbers of rows, so that sums stay in registers. */
static void multiply(const void *panel, const panel_acts *x, float *t)
{
    switch (x->count) {
    case 8:
        tile(panel, x, 8, t);
        break;
    case 7:
        tile(panel, x, 7, t);
        break;
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

/* ---- the kernels ---- */

_Static_assert(COLS *ROWS * sizeof(float) <= PANEL_BYTES, "a panel fits its scratch");

#define STORED_PANEL(type, name, bytes)                                                            \
    static void unpack_##name(const uint8_t *w, int64_t pitch, int64_t rows, int64_t first,        \
                              int64_t cols, void *panel)                                           \
    {                                                                                              \
        turn_unpack(w, pitch, rows, first, cols, panel, ROWS, bytes, turn_##name);                 \
    }                                                                                              \
    static const panel_core core_##name = {ACT_F32, ROWS,          TILE,     1,                    \
                                           COLS,    unpack_##name, multiply, put};                 \
    PANEL_KERNELS(type, avx512, &core_##name)
STORED_PANEL(F32, f32, 4)
STORED_PANEL(F16, f16, 2)
STORED_PANEL(BF16_STORED, bf16, 2)

static const panel_core core_rows8 = {ACT_F32, ROWS,         TILE,     LAYOUT_GROUP,
                                      COLS,    unpack_rows8, multiply, put};
PANEL_KERNELS(BF16, avx512, &core_rows8)
