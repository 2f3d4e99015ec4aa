/* linear_amx.h - linear for many rows: sixteen rows of weights become a panel of tiles, with which all rows of
 * activations are multiplied while it is in the cache.
 *
 * Long rows are taken some columns at a time, and the sums so far wait in the result. The last tile of rows begins
 * early enough to be a whole one; what it computes for rows that have their sums is not used. */
#ifndef WEFT_KERNELS_X86_LINEAR_AMX_H
#define WEFT_KERNELS_X86_LINEAR_AMX_H

#include "kernels/kernels.h"
#include "kernels/x86/amx.h"
#include "kernels/x86/panel_size.h"

/* One panel times all rows. */
typedef struct {
    const kargs *k;
    int rows;                   /* of a tile of activations */
    int64_t n;                  /* columns of a row */
    int64_t first, end;         /* those of this panel */
    int64_t col;                /* the weights' first row */
    __mmask16 there;            /* which of the sixteen are there */
    const uint8_t *w[AMX_ROWS]; /* each at column `first`; those not there are the first again */
    uint8_t *panel;
    char *stored; /* where tiles are stored to */
} amx_work;

/* A tile of activations: j->rows of them from `row` on, of which the first `from` have their sums already. */
typedef struct {
    int64_t row;
    int from;
} amx_rows;

/* How weights of a type become a panel, and two tiles of rows are multiplied with it. */
typedef struct {
    int tile_bytes;             /* of a row of activations */
    int64_t block, block_bytes; /* of the weights */
    void (*unpack)(const amx_work *j);
    void (*multiply)(const amx_work *j, amx_rows a, amx_rows b);
} amx_kind;

/* from [16][16] words of 32 bits to the same, rows for columns. */
X86_INLINE void amx_transpose(const uint8_t *from, uint8_t *to)
{
    __m512i a[16], b[16];
    for (int i = 0; i < 16; i++)
        a[i] = _mm512_loadu_si512(from + i * AMX_BYTES);
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
        _mm512_storeu_si512(to + i * AMX_BYTES, b[i]);
}

X86_INLINE const char *amx_row(const amx_work *j, int64_t row)
{
    return (const char *)j->k->in[0] + row * j->k->pitch[0];
}

/* Sums of a row with the sixteen rows of weights: so far, and back with their bias once all columns are in. */
X86_INLINE float *amx_out(const amx_work *j, int64_t row)
{
    return (float *)(void *)((char *)j->k->out[0] + row * j->k->out_pitch[0]) + j->col;
}
X86_INLINE __m512 amx_sum(const amx_work *j, int64_t row)
{
    return j->first == 0 ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(j->there, amx_out(j, row));
}
X86_INLINE void amx_put(const amx_work *j, int64_t row, __m512 sum)
{
    const float *bias = j->k->in[2]; /* [m] or NULL */
    if (bias && j->end == j->n)
        sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(j->there, bias + j->col));
    _mm512_mask_storeu_ps(amx_out(j, row), j->there, sum);
}

/* The next tile of rows; *done counts those that have had theirs. */
X86_INLINE amx_rows amx_next(int64_t *done, int64_t row_end, int rows)
{
    int64_t row = *done + rows <= row_end ? *done : row_end - rows;
    amx_rows tile = {row, (int)(*done - row)};
    *done = row + rows;
    return tile;
}

X86_INLINE void amx_linear(const kargs *k, const kthread *t, int64_t begin, int64_t end,
                           const amx_kind *kind)
{
    kpart part = kpart_of(k, k->n[1], begin, end);
    amx_work j = {.k = k, .n = k->n[2], .panel = t->scratch};
    int64_t count = part.row_end - part.row;
    if (count == 0)
        return;
    j.rows = count < AMX_ROWS ? (int)count : AMX_ROWS;
    j.stored = (char *)t->scratch + TILES_PANEL_BYTES;
    amx_begin(j.rows, kind->tile_bytes);
    for (j.col = part.col; j.col < part.col_end; j.col += AMX_ROWS) {
        int64_t left = part.col_end - j.col;
        j.there = left < AMX_ROWS ? (__mmask16)((1u << left) - 1) : 0xffff;
        for (j.first = 0; j.first < j.n; j.first = j.end) {
            j.end = j.n - j.first < TILES_COLS ? j.n : j.first + TILES_COLS;
            for (int64_t i = 0; i < AMX_ROWS; i++)
                j.w[i] = (const uint8_t *)k->in[1] + (j.col + (i < left ? i : 0)) * k->pitch[1] +
                         j.first / kind->block * kind->block_bytes;
            kind->unpack(&j);
            for (int64_t done = part.row; done < part.row_end;) {
                amx_rows a = amx_next(&done, part.row_end, j.rows), b = {a.row, j.rows};
                if (done < part.row_end)
                    b = amx_next(&done, part.row_end, j.rows);
                kind->multiply(&j, a, b);
            }
        }
    }
    amx_end();
}

#endif
