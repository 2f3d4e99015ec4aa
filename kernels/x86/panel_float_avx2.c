/* panel_float_avx2.c - many rows with F32, F16 and BF16 weights as stored: panels (kernels/c/panel.h) of floats.
 *
 * A panel is [columns][16 rows] of f32, turned as it is unpacked, so that a load has one column of eight rows and no sum
 * crosses a register. A tile is 16 rows of weights by up to 6 of activations: 12 sums in registers.
 *
 * Multiplying, one column of a full tile: 12 fused products for two ports, 2 loads of weights and 6 of activations,
 * repeated as they are loaded: 6 cycles, of which it reaches 93 % on a Sapphire Rapids (88 of 95 GFLOP/s), with unpacking and
 * results 82 to 84 % for 256 rows. Unpacking, 8 columns of 8 rows: 8 loads (F32 16), 4 joined in registers, 16 shuffles (F16
 * 24), 8 stores: 8 to 16 cycles, by whether one port shuffles or two; it takes 14 to 19. */
#include "kernels/kernel_decls.h"

#include "kernels/c/panel.h"
#include "kernels/x86/unpack.h"

enum { ROWS = 16, TILE = 6, COLS = 512, STEP = 8, X86_LINE = 64 };

/* Eight columns of eight rows, each at its own place: as registers of one column. */
typedef void turn_fn(const uint8_t *const *row, int64_t at, __m256 column[8]);

X86_INLINE __m256 pair_f32(const uint8_t *a, const uint8_t *b) /* four numbers of each */
{
    return _mm256_castsi256_ps(x86_join(x86_load16(a), x86_load16(b)));
}

X86_INLINE void turn_f32(const uint8_t *const *row, int64_t at, __m256 column[8])
{
    for (int h = 0; h < 2; h++, at += 16, column += 4) {
        __m256 v[4];
        for (int r = 0; r < 4; r++)
            v[r] = pair_f32(row[r] + at, row[r + 4] + at);
        const __m256 a = _mm256_unpacklo_ps(v[0], v[1]), b = _mm256_unpacklo_ps(v[2], v[3]);
        const __m256 c = _mm256_unpackhi_ps(v[0], v[1]), d = _mm256_unpackhi_ps(v[2], v[3]);
        column[0] = _mm256_shuffle_ps(a, b, 0x44);
        column[1] = _mm256_shuffle_ps(a, b, 0xee);
        column[2] = _mm256_shuffle_ps(c, d, 0x44);
        column[3] = _mm256_shuffle_ps(c, d, 0xee);
    }
}

/* Numbers of 16 bits: two columns to a register, [rows 0 to 3 of each | rows 4 to 7 of each]. */
X86_INLINE void turn_16(const uint8_t *const *row, int64_t at, __m256i two[4])
{
    __m256i v[4];
    for (int r = 0; r < 4; r++)
        v[r] = x86_join(x86_load16(row[r] + at), x86_load16(row[r + 4] + at));
    const __m256i a = _mm256_unpacklo_epi16(v[0], v[1]), b = _mm256_unpacklo_epi16(v[2], v[3]);
    const __m256i c = _mm256_unpackhi_epi16(v[0], v[1]), d = _mm256_unpackhi_epi16(v[2], v[3]);
    two[0] = _mm256_unpacklo_epi32(a, b);
    two[1] = _mm256_unpackhi_epi32(a, b);
    two[2] = _mm256_unpacklo_epi32(c, d);
    two[3] = _mm256_unpackhi_epi32(c, d);
}

X86_INLINE void turn_bf16(const uint8_t *const *row, int64_t at, __m256 column[8])
{
    const __m256i zero = _mm256_setzero_si256();
    __m256i two[4];
    turn_16(row, at, two);
    for (int i = 0; i < 4; i++) {
        column[2 * i] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, two[i]));
        column[2 * i + 1] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, two[i]));
    }
}

X86_INLINE void turn_f16(const uint8_t *const *row, int64_t at, __m256 column[8])
{
    __m256i two[4];
    turn_16(row, at, two);
    for (int i = 0; i < 4; i++) {
        __m256i each = _mm256_permute4x64_epi64(two[i], 0xd8);
        column[2 * i] = _mm256_cvtph_ps(_mm256_castsi256_si128(each));
        column[2 * i + 1] = _mm256_cvtph_ps(_mm256_extracti128_si256(each, 1));
    }
}

/* Columns [at, at + 8) of eight rows to a panel. */
X86_INLINE void put_step(const uint8_t *const *row, int64_t at, float *to, turn_fn *turn)
{
    __m256 column[STEP];
    turn(row, at, column);
    for (int i = 0; i < STEP; i++)
        _mm256_store_ps(to + i * ROWS, column[i]);
}

/* The last n < 8, then zeros. */
X86_INLINE void put_rest(const uint8_t *const *row, int64_t at, int64_t bytes, float *to,
                         turn_fn *turn)
{
    uint8_t some[8][STEP * sizeof(float)] = {0};
    const uint8_t *row_some[8];
    for (int r = 0; r < 8; r++) {
        memcpy(some[r], row[r] + at, (size_t)bytes);
        row_some[r] = some[r];
    }
    put_step(row_some, 0, to, turn);
}

/* A line of each of eight rows at a time: of rows a power of two apart more would not fit the sets of the first cache. The
 * same columns of the next panel are asked for. Rows that are missing are the last one again. */
X86_INLINE void unpack(const uint8_t *w, int64_t pitch, int64_t rows, int64_t first, int64_t cols,
                       float *to, int bytes, turn_fn *turn)
{
    const uint8_t *row[ROWS];
    const int64_t line = X86_LINE / bytes, whole = cols / STEP * STEP;
    const uintptr_t next = (uintptr_t)(ROWS * pitch);
    for (int r = 0; r < ROWS; r++)
        row[r] = w + (r < rows ? r : rows - 1) * pitch + first * bytes;
    for (int64_t i = 0; i < cols; i += line)
        for (int r = 0; r < ROWS; r += 8) {
            for (int k = 0; k < 8; k++)
                x86_hint_at(
                    (const uint8_t *)((uintptr_t)row[r + k] + next + (uintptr_t)(i * bytes)), 1);
            for (int64_t c = i; c < whole && c < i + line; c += STEP)
                put_step(row + r, c * bytes, to + c * ROWS + r, turn);
        }
    if (whole < cols)
        for (int r = 0; r < ROWS; r += 8)
            put_rest(row + r, whole * bytes, (cols - whole) * bytes, to + whole * ROWS + r, turn);
}

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

#define FLOAT_PANEL(type, name, bytes)                                                             \
    static void unpack_##name(const uint8_t *w, int64_t pitch, int64_t rows, int64_t first,        \
                              int64_t cols, void *panel)                                           \
    {                                                                                              \
        unpack(w, pitch, rows, first, cols, panel, bytes, turn_##name);                            \
    }                                                                                              \
    static const panel_core core_##name = {ACT_F32, ROWS,          TILE,     1,                    \
                                           COLS,    unpack_##name, multiply, NULL};                \
    PANEL_KERNELS(type, avx2, &core_##name)
FLOAT_PANEL(F32, f32, 4)
FLOAT_PANEL(F16, f16, 2)
FLOAT_PANEL(BF16, bf16, 2)
