/* few_amx.c - interleaved weights times few rows, in tiles of integers: the 32 columns at a time that share a scale.
 *
 * Sums leave their tile for memory and are scaled there, three instructions for sixteen of them: far from what tiles can
 * do, but up to sixteen rows cost little more than one, whose weights have to come from memory too. For fewer than 5 rows,
 * or 9, AVX-512 is faster, for more than sixteen panels of bf16 or sums_amx.c (kernels.def).
 *
 * Sixteen rows, 32 columns of 8 weight rows of Q4_0: 9 cycles to unpack, 12 to scale; their bytes take 29 at what two
 * cores of a Sapphire Rapids read. */
#include "kernels/x86/few_amx.h"

/* 32 columns as rows of a tile: four columns of sixteen weight rows each. Codes with an offset become signed. */
X86_INLINE void put_rows(const __m512i a[4], const __m512i b[4], int offset,
                         uint8_t (*to)[AMX_BYTES])
{
    for (int step = 0; step < 4; step++) {
        __m512i v[2] = {a[step], b[step]};
        for (int i = 0; i < 2 && offset; i++)
            v[i] = _mm512_sub_epi8(v[i], codes_set(offset));
        codes_pair(v[0], v[1], to[2 * step]);
    }
}

#define MULTIPLY(c, a, b, p)                                                                       \
    {                                                                                              \
        AMX_ZERO(c);                                                                               \
        AMX_LOAD(a, few_x(j, half, (p)*BLOCK), j->pitch);                                          \
        AMX_LOAD(b, j->tiles[0][(p)*BLOCK / 4], AMX_BYTES);                                        \
        if (is_signed)                                                                             \
            AMX_DOT_I8(c, a, b);                                                                   \
        else                                                                                       \
            AMX_DOT_U8(c, a, b);                                                                   \
    }

/* The chunk's columns, 32 at a time. Four sums take turns: a product takes three times as long as it keeps
 * others waiting. */
X86_INLINE void multiply(few_work *j, int half, bool is_signed)
{
    int64_t parts = j->cols / BLOCK, p = 0;
    for (; p + 4 <= parts; p += 4) {
        MULTIPLY(0, 4, 6, p)
        MULTIPLY(1, 5, 7, p + 1)
        MULTIPLY(2, 4, 6, p + 2)
        MULTIPLY(3, 5, 7, p + 3)
        FEW_STORE(0, p);
        FEW_STORE(1, p + 1);
        FEW_STORE(2, p + 2);
        FEW_STORE(3, p + 3);
    }
    for (; p < parts; p++) {
        MULTIPLY(0, 4, 6, p)
        FEW_STORE(0, p);
    }
}

/* scale(j, .., rows) with a constant number of rows: as many or more. */
#define SCALE(scale, ...)                                                                          \
    {                                                                                              \
        if (j->rows <= 4)                                                                          \
            scale(j, __VA_ARGS__, 4);                                                              \
        else if (j->rows <= 8)                                                                     \
            scale(j, __VA_ARGS__, 8);                                                              \
        else if (j->rows <= 12)                                                                    \
            scale(j, __VA_ARGS__, 12);                                                             \
        else                                                                                       \
            scale(j, __VA_ARGS__, 16);                                                             \
    }

/* ---- a scale for each 32 columns ---- */

X86_INLINE void scale32(few_work *j, const rows8_block32 *t, int half, int rows)
{
    __m512 acc[AMX_ROWS];
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
        acc[i] = _mm512_loadu_ps(j->acc[half][i]);
    for (int64_t b = 0; b < j->cols / BLOCK; b++) {
        const uint8_t *w[2] = {j->w[0] + b * t->bytes, j->w[1] + b * t->bytes};
        const int64_t at = j->first / BLOCK + b;
        __m512 d = both_ps(t->scales(w[0]), t->scales(w[1]));
        if (t->unit != 1)
            d = _mm512_mul_ps(d, _mm512_set1_ps(t->unit));
        const __m512 min = t->has_min ? both_ps(t->scales(w[0] + 16), t->scales(w[1] + 16)) : d;
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            float dx = act_d(j->x[half][i], j->n)[at];
            const int16_t *sum = act_sum(ACT_Q8, j->x[half][i], j->n) + 2 * at;
            acc[i] =
                _mm512_fmadd_ps(few_sums(j, b, i), _mm512_mul_ps(d, _mm512_set1_ps(dx)), acc[i]);
            if (t->has_min)
                acc[i] =
                    _mm512_fmadd_ps(min, _mm512_set1_ps(dx * (float)(sum[0] + sum[1])), acc[i]);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
        _mm512_storeu_ps(j->acc[half][i], acc[i]);
}

X86_INLINE void chunk32(few_work *j, const rows8_block32 *t)
{
    int64_t blocks = j->cols / BLOCK;
    for (int64_t b = 0; b < blocks; b++) {
        __m512i v[2][4];
        for (int i = 0; i < 2; i++) {
            x86_hint(j->w[i] + b * t->bytes, t->bytes);
            t->codes(j->w[i] + b * t->bytes + t->codes_at, v[i]);
        }
        put_rows(v[0], v[1], t->offset, j->tiles[0] + b * BLOCK / 4);
    }
    for (int half = 0; half < j->halves; half++) {
        multiply(j, half, t->offset != 0);
        SCALE(scale32, t, half)
    }
    for (int i = 0; i < 2; i++)
        j->w[i] += blocks * t->bytes;
}

/* ---- a scale for each 256 columns, eight integers that multiply it ---- */

enum { GROUPS = 8 };

/* Minima as pairs of words: activations have a sum for each 16 columns of 32. */
X86_INLINE void minima_of(const heads256 *h, __m512i m[GROUPS])
{
#pragma GCC unroll 8
    for (int g = 0; g < GROUPS; g++) {
        __m512i min = both_bytes(h->min[0] + g * 8, h->min[1] + g * 8);
        m[g] = _mm512_add_epi32(min, _mm512_slli_epi32(min, 16));
    }
}

X86_INLINE __m512 times_minima(const __m512i m[GROUPS], const int16_t *sum)
{
    __m512i all = _mm512_setzero_si512();
#pragma GCC unroll 8
    for (int g = 0; g < GROUPS; g++) {
        int32_t pair;
        memcpy(&pair, sum + 2 * g, sizeof pair);
        all = _mm512_dpwssd_epi32(all, m[g], _mm512_set1_epi32(pair));
    }
    return _mm512_cvtepi32_ps(all);
}

X86_INLINE void scale256(few_work *j, const heads256 *h, const rows8_block256 *t, int half,
                         int rows)
{
    const int64_t at = j->first / CHUNK;
    const __m512 d =
        _mm512_mul_ps(both_ps(codes_f16(j->w[0]), codes_f16(j->w[1])), _mm512_set1_ps(t->unit));
    __m512 u[AMX_ROWS];
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
        u[i] = _mm512_setzero_ps();
    for (int g = 0; g < GROUPS; g++) {
        const __m512 scale =
            _mm512_cvtepi32_ps(both_bytes(h->scale[0] + g * 8, h->scale[1] + g * 8));
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++)
            u[i] = _mm512_fmadd_ps(few_sums(j, g, i), scale, u[i]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
        const __m512 dx = _mm512_set1_ps(act_d(j->x[half][i], j->n)[at]);
        u[i] = _mm512_fmadd_ps(u[i], _mm512_mul_ps(d, dx), _mm512_loadu_ps(j->acc[half][i]));
        _mm512_storeu_ps(j->acc[half][i], u[i]);
    }
}

X86_INLINE void less_minima(few_work *j, const heads256 *h)
{
    const int64_t at = j->first / CHUNK;
    const __m512 d = both_ps(codes_f16(j->w[0] + 16), codes_f16(j->w[1] + 16));
    __m512i m[GROUPS];
    minima_of(h, m);
    for (int half = 0; half < j->halves; half++)
        for (int i = 0; i < j->rows; i++) {
            const void *x = j->x[half][i];
            float *acc = j->acc[half][i];
            const __m512 dx = _mm512_set1_ps(act_d(x, j->n)[at]);
            __m512 all = times_minima(m, act_sum(ACT_Q8K, x, j->n) + at * 16);
            all = _mm512_fnmadd_ps(all, _mm512_mul_ps(d, dx), _mm512_loadu_ps(acc));
            _mm512_storeu_ps(acc, all);
        }
}

X86_INLINE void chunk256(few_work *j, const rows8_block256 *t)
{
    heads256 h;
    few_heads(j, t, &h);
    for (int sub = 0; sub < CHUNK / BLOCK; sub++) {
        __m512i v[2][4];
        few_codes(j, t, sub, v);
        put_rows(v[0], v[1], t->offset, j->tiles[0] + sub * BLOCK / 4);
    }
    for (int half = 0; half < j->halves; half++) {
        multiply(j, half, t->offset != 0);
        SCALE(scale256, &h, t, half)
    }
    if (t->has_min)
        less_minima(j, &h);
    for (int i = 0; i < 2; i++)
        j->w[i] += t->bytes;
}

FEW_KERNEL(Q8_0, _FEW, chunk32, 32)
FEW_KERNEL(Q4_0, _FEW, chunk32, 32)
FEW_KERNEL(Q4_1, _FEW, chunk32, 32)
FEW_KERNEL(Q5_0, _FEW, chunk32, 32)
FEW_KERNEL(Q5_1, _FEW, chunk32, 32)
FEW_KERNEL(IQ4_NL, _FEW, chunk32, 32)
FEW_KERNEL(MXFP4, _FEW, chunk32, 32)
FEW_KERNEL(Q4_K, _FEW, chunk256, 32)
FEW_KERNEL(Q5_K, _FEW, chunk256, 32)
FEW_KERNEL(IQ4_XS, _FEW, chunk256, 32)
