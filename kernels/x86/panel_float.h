/* panel_float.h - what panels (kernels/c/panel.h) of floats share: rows of F32, F16 or BF16 become columns of f32, so that
 * a load has one column of some rows; and results are put away.
 *
 * Unpacking, 8 columns of 8 rows: 8 loads (F32 16), 4 of them (8) joined in registers, 16 shuffles (F16 24), 8 stores: 8 to 16 cycles,
 * by whether two ports shuffle or one; a Sapphire Rapids takes 14 (BF16), 17 (F16) and 19 (F32). */
#ifndef WEFT_KERNELS_X86_PANEL_FLOAT_H
#define WEFT_KERNELS_X86_PANEL_FLOAT_H

#include "kernels/x86/unpack.h"

enum { TURN_STEP = 8, TURN_ROWS_MAX = 32, TURN_LINE = 64 };

/* Eight columns of eight rows, each at its own place: as registers of one column. */
typedef void turn_fn(const uint8_t *const *row, int64_t at, __m256 column[TURN_STEP]);

X86_INLINE __m256 pair_f32(const uint8_t *a, const uint8_t *b) /* four numbers of each */
{
    return _mm256_castsi256_ps(x86_join(x86_load16(a), x86_load16(b)));
}

X86_INLINE void turn_f32(const uint8_t *const *row, int64_t at, __m256 column[TURN_STEP])
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

X86_INLINE void turn_bf16(const uint8_t *const *row, int64_t at, __m256 column[TURN_STEP])
{
    const __m256i zero = _mm256_setzero_si256();
    __m256i two[4];
    turn_16(row, at, two);
    for (int i = 0; i < 4; i++) {
        column[2 * i] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, two[i]));
        column[2 * i + 1] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, two[i]));
    }
}

X86_INLINE void turn_f16(const uint8_t *const *row, int64_t at, __m256 column[TURN_STEP])
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
X86_INLINE void turn_step(const uint8_t *const *row, int64_t at, float *to, int panel_rows,
                          turn_fn *turn)
{
    __m256 column[TURN_STEP];
    turn(row, at, column);
    for (int i = 0; i < TURN_STEP; i++)
        _mm256_store_ps(to + i * panel_rows, column[i]);
}

/* The last n < 8, then zeros. */
X86_INLINE void turn_rest(const uint8_t *const *row, int64_t at, int64_t bytes, float *to,
                          int panel_rows, turn_fn *turn)
{
    uint8_t some[8][TURN_STEP * sizeof(float)] = {0};
    const uint8_t *row_some[8];
    for (int r = 0; r < 8; r++) {
        memcpy(some[r], row[r] + at, (size_t)bytes);
        row_some[r] = some[r];
    }
    turn_step(row_some, 0, to, panel_rows, turn);
}

/* Columns [first, first + cols) of `rows` rows as [cols][panel_rows], filled up with zeros to a multiple of eight columns.
 * A line of each of eight rows at a time: of rows a power of two apart more would not fit the sets of the first cache. The
 * same columns of the next panel are asked for. Rows that are missing are the last one again. */
X86_INLINE void turn_unpack(const uint8_t *w, int64_t pitch, int64_t rows, int64_t first,
                            int64_t cols, float *to, int panel_rows, int bytes, turn_fn *turn)
{
    const uint8_t *row[TURN_ROWS_MAX];
    const int64_t line = TURN_LINE / bytes, whole = cols / TURN_STEP * TURN_STEP;
    const uintptr_t next = (uintptr_t)(panel_rows * pitch);
    for (int r = 0; r < panel_rows; r++)
        row[r] = w + (r < rows ? r : rows - 1) * pitch + first * bytes;
    for (int64_t i = 0; i < whole; i += line)
        for (int r = 0; r < panel_rows; r += 8) {
            for (int k = 0; k < 8; k++)
                x86_hint_at((const uint8_t *)((uintptr_t)(row[r + k] + i * bytes) + next), 1);
            for (int64_t c = i; c < whole && c < i + line; c += TURN_STEP)
                turn_step(row + r, c * bytes, to + c * panel_rows + r, panel_rows, turn);
        }
    for (int r = 0; r < panel_rows && whole < cols; r += 8)
        turn_rest(row + r, whole * bytes, (cols - whole) * bytes, to + whole * panel_rows + r,
                  panel_rows, turn);
}

/* panel_core.put: the sums t[tile][panel_rows]. */
X86_INLINE void float_put(const float *t, float *const *out, const float *bias, bool add,
                          int panel_rows, int tile)
{
    for (int i = 0; i < tile; i++, t += panel_rows) {
        const float *before = add ? out[i] : bias;
        for (int r = 0; r < panel_rows && out[i]; r += 8) {
            __m256 sum = _mm256_load_ps(t + r);
            _mm256_storeu_ps(out[i] + r,
                             before ? _mm256_add_ps(sum, _mm256_loadu_ps(before + r)) : sum);
        }
    }
}

#endif
