/* linear_block32_amx.c - linear for many rows with AMX, for the types with 32 numbers to a block (ACT_Q8).
 *
 * Both operands have a scale for each 32 columns, so a tile of integers holds the products of one block only.
 * It is stored, and scaled into sixteen registers, a row of activations in each, which hold the sums from the
 * first column to the last; tiles of later blocks are multiplied meanwhile. */
#include "kernels/kernel_decls.h"

#include "kernels/x86/linear_amx.h"

enum { BLOCK = 32, BLOCK_TILE = BLOCK * AMX_ROWS };

/* Of a panel: tiles of all blocks, then for each block the scales of the sixteen rows, then their minima. */
X86_INLINE float *scales_of(const amx_work *j)
{
    return (float *)(void *)(j->panel + TILES_COLS * AMX_ROWS);
}
X86_INLINE float *mins_of(const amx_work *j)
{
    return scales_of(j) + TILES_COLS / BLOCK * AMX_ROWS;
}
_Static_assert(TILES_COLS *AMX_ROWS *(1 + 8 / BLOCK + 1) <= TILES_PANEL_BYTES, "a panel fits");

/* Two blocks at a time fill the sixteen columns that are turned; the last may be alone. */
X86_INLINE void unpack(const amx_work *j, int64_t bytes, x86_unpack32 *block, bool has_min)
{
    float *d = scales_of(j), *m = mins_of(j);
    int64_t blocks = (j->end - j->first) / BLOCK;
    uint8_t codes[AMX_TILE];
    for (int64_t b = 0; b < blocks; b += 2) {
        for (int i = 0; i < AMX_ROWS; i++)
            for (int h = 0; h < 2; h++) {
                if (b + h == blocks) {
                    memset(codes + i * AMX_BYTES + BLOCK, 0, BLOCK);
                    continue;
                }
                const x86_block32 one = block(j->w[i] + (b + h) * bytes);
                _mm256_storeu_si256((void *)(codes + i * AMX_BYTES + h * BLOCK), one.q);
                d[(b + h) * AMX_ROWS + i] = one.d;
                if (has_min)
                    m[(b + h) * AMX_ROWS + i] = one.m;
            }
        amx_transpose(codes, j->panel + b * BLOCK_TILE);
    }
}

/* Block b of the panel: its products, stored, times the scales of both sides. at[i]: the row's scales and sums. */
X86_INLINE void add_block(const amx_work *j, int64_t b, const char *stored, const float *const *at,
                          const int16_t *const *sums, bool has_min, __m512 *sum)
{
    __m512 d = _mm512_loadu_ps(scales_of(j) + b * AMX_ROWS), m = _mm512_setzero_ps();
    if (has_min)
        m = _mm512_loadu_ps(mins_of(j) + b * AMX_ROWS);
#pragma GCC unroll 16
    for (int i = 0; i < AMX_ROWS; i++) {
        float dx = at[i][b];
        __m512 products = _mm512_cvtepi32_ps(_mm512_loadu_si512(stored + i * AMX_BYTES));
        sum[i] = _mm512_fmadd_ps(_mm512_mul_ps(products, d), _mm512_set1_ps(dx), sum[i]);
        if (has_min) {
            float of_min = dx * (float)(sums[i][2 * b] + sums[i][2 * b + 1]);
            sum[i] = _mm512_fmadd_ps(m, _mm512_set1_ps(of_min), sum[i]);
        }
    }
}

X86_INLINE void multiply_one(const amx_work *j, amx_rows tile, bool has_min)
{
    const char *x = amx_row(j, tile.row) + j->first;
    int64_t pitch = j->k->pitch[0], blocks = (j->end - j->first) / BLOCK;
    const float *d[AMX_ROWS];
    const int16_t *sums[AMX_ROWS];
    __m512 sum[AMX_ROWS];
#pragma GCC unroll 16
    for (int i = 0; i < AMX_ROWS; i++) {
        /* Registers of rows that are not there compute with the last that is. */
        int64_t row = tile.row + (i < j->rows ? i : j->rows - 1);
        d[i] = act_d(amx_row(j, row), j->n) + j->first / BLOCK;
        sums[i] = act_sum(ACT_Q8, amx_row(j, row), j->n) + j->first / 16;
        sum[i] = amx_sum(j, row);
    }
    for (int64_t b = 0; b < blocks; b++) {
        char *stored = j->stored + b % 2 * AMX_TILE;
        AMX_ZERO(0);
        AMX_LOAD(4, x + b * BLOCK, pitch);
        AMX_LOAD(6, j->panel + b * BLOCK_TILE, AMX_BYTES);
        AMX_DOT_BYTES(0, 4, 6);
        AMX_STORE(0, stored, AMX_BYTES);
        add_block(j, b, stored, d, sums, has_min, sum);
    }
#pragma GCC unroll 16
    for (int i = 0; i < AMX_ROWS; i++)
        if (i >= tile.from && i < j->rows)
            amx_put(j, tile.row + i, sum[i]);
}

#define LINEAR(type, name, bytes, has_min)                                                         \
    static void unpack_##name(const amx_work *j)                                                   \
    {                                                                                              \
        unpack(j, bytes, x86_##name, has_min);                                                     \
    }                                                                                              \
    static void multiply_##name(const amx_work *j, amx_rows a, amx_rows b)                         \
    {                                                                                              \
        multiply_one(j, a, has_min);                                                               \
        if (b.from < j->rows)                                                                      \
            multiply_one(j, b, has_min);                                                           \
    }                                                                                              \
    void k_linear_##type##_amx(const kargs *k, const kthread *t, int64_t begin, int64_t end)       \
    {                                                                                              \
        static const amx_kind kind = {BLOCK, BLOCK, bytes, unpack_##name, multiply_##name};        \
        amx_linear(k, t, begin, end, &kind);                                                       \
    }
LINEAR(Q8_0, q8_0, 34, false)
LINEAR(Q4_0, q4_0, 18, false)
LINEAR(Q4_1, q4_1, 20, true)
LINEAR(Q5_0, q5_0, 22, false)
LINEAR(Q5_1, q5_1, 24, true)
LINEAR(IQ4_NL, iq4_nl, 18, false)
LINEAR(MXFP4, mxfp4, 17, false)
