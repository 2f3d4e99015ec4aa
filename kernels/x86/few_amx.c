/* few_amx.c - interleaved weights times up to 16 rows of 8-bit activations, in tiles of integers.
 *
 * The rows of activations, where they lie, are one tile; two groups of eight weight rows are unpacked to the other,
 * as many columns at a time as share a scale. Sums leave their tile for memory and are scaled there, three
 * instructions for sixteen of them: far from what tiles can do, but up to sixteen rows cost little more than one, whose
 * weights have to come from memory too. For fewer than 5 rows, or 9, AVX-512 is faster (kernels.def). 256 columns are
 * unpacked, multiplied and scaled in turn, so that neither waits for the other. The two groups come from the two halves of a range: two long streams.
 *
 * Q4_K has another kernel for more than eight rows, which scales before it multiplies: one that computes 16 rows in 0.8 of the
 * time, but 5 in 1.05.
 *
 * Sixteen rows, 32 columns of 8 weight rows of Q4_0: 9 cycles to unpack, 12 to scale; their bytes take 29 at what two
 * cores of a Sapphire Rapids read. */
#include "kernels/kernel_decls.h"

#include "kernels/act.h"
#include "kernels/x86/amx.h"
#include "kernels/x86/codes_avx512.h"

enum { BLOCK = 32, CHUNK = 256, PARTS_MAX = 16 };

/* What two blocks have besides their codes. */
typedef struct {
    uint8_t own[2][GROUPS_BYTES], min[2][GROUPS_BYTES];
    const uint8_t *scale[2]; /* [groups][8 rows] */
} heads256;

typedef struct {
    const uint8_t *w[2];                        /* the two groups, at the chunk at hand */
    const void *x[AMX_ROWS];                    /* the last one again where there are fewer */
    int64_t pitch, n;                           /* of x */
    int64_t first, cols;                        /* columns of the chunk */
    int rows;                                   /* of x */
    _Alignas(64) float acc[AMX_ROWS][AMX_ROWS]; /* row of x, weight row */
    _Alignas(64) int32_t sums[PARTS_MAX][AMX_ROWS][AMX_ROWS];
    _Alignas(64) uint8_t tiles[CHUNK / 4][AMX_BYTES];
    _Alignas(64) uint8_t more[2][CHUNK / 4][AMX_BYTES]; /* of Q4_K */
} few_work;

/* Of two groups. */
X86_INLINE __m512 both_ps(__m256 a, __m256 b)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(a), b, 1);
}

X86_INLINE __m512i both_bytes(const uint8_t *a, const uint8_t *b)
{
    __m256i low = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)a));
    __m256i high = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)b));
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

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
        AMX_LOAD(a, act_q(j->x[0]) + j->first + (p)*bytes, j->pitch);                              \
        AMX_LOAD(b, j->tiles[(p)*bytes / 4], AMX_BYTES);                                           \
        if (is_signed)                                                                             \
            AMX_DOT_I8(c, a, b);                                                                   \
        else                                                                                       \
            AMX_DOT_U8(c, a, b);                                                                   \
    }
#define STORE(c, p) AMX_STORE(c, j->sums[p], AMX_BYTES)

/* The chunk's columns, `bytes` at a time. Four sums take turns: a product takes three times as long as it keeps
 * others waiting. */
X86_INLINE void multiply(few_work *j, int bytes, bool is_signed)
{
    int64_t parts = j->cols / bytes, p = 0;
    for (; p + 4 <= parts; p += 4) {
        MULTIPLY(0, 4, 6, p)
        MULTIPLY(1, 5, 7, p + 1)
        MULTIPLY(2, 4, 6, p + 2)
        MULTIPLY(3, 5, 7, p + 3)
        STORE(0, p);
        STORE(1, p + 1);
        STORE(2, p + 2);
        STORE(3, p + 3);
    }
    for (; p < parts; p++) {
        MULTIPLY(0, 4, 6, p)
        STORE(0, p);
    }
}

X86_INLINE __m512 sums_of(const few_work *j, int64_t part, int row)
{
    return _mm512_cvtepi32_ps(_mm512_loadu_si512(j->sums[part][row]));
}

/* ---- a scale for each 32 columns ---- */

X86_INLINE void scale32(few_work *j, const rows8_block32 *t, int rows)
{
    __m512 acc[AMX_ROWS];
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
        acc[i] = _mm512_loadu_ps(j->acc[i]);
    for (int64_t b = 0; b < j->cols / BLOCK; b++) {
        const uint8_t *w[2] = {j->w[0] + b * t->bytes, j->w[1] + b * t->bytes};
        const int64_t at = j->first / BLOCK + b;
        __m512 d = both_ps(t->scales(w[0]), t->scales(w[1]));
        if (t->unit != 1)
            d = _mm512_mul_ps(d, _mm512_set1_ps(t->unit));
        const __m512 min = t->has_min ? both_ps(t->scales(w[0] + 16), t->scales(w[1] + 16)) : d;
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            float dx = act_d(j->x[i], j->n)[at];
            const int16_t *sum = act_sum(ACT_Q8, j->x[i], j->n) + 2 * at;
            acc[i] =
                _mm512_fmadd_ps(sums_of(j, b, i), _mm512_mul_ps(d, _mm512_set1_ps(dx)), acc[i]);
            if (t->has_min)
                acc[i] =
                    _mm512_fmadd_ps(min, _mm512_set1_ps(dx * (float)(sum[0] + sum[1])), acc[i]);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
        _mm512_storeu_ps(j->acc[i], acc[i]);
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
        put_rows(v[0], v[1], t->offset, j->tiles + b * BLOCK / 4);
    }
    multiply(j, BLOCK, t->offset != 0);
    if (j->rows <= 4)
        scale32(j, t, 4);
    else if (j->rows <= 8)
        scale32(j, t, 8);
    else
        scale32(j, t, 16);
    for (int i = 0; i < 2; i++)
        j->w[i] += blocks * t->bytes;
}

/* ---- a scale for each 256 columns ---- */

/* Minima as pairs of words: of each 16 columns of 32. */
X86_INLINE void minima_of(const heads256 *h, int groups, __m512i m[8])
{
#pragma GCC unroll 8
    for (int g = 0; g < 8; g++) {
        const uint8_t *a = h->min[0] + g * groups, *b = h->min[1] + g * groups;
        __m512i first = both_bytes(a, b), second = first;
        if (groups == 16)
            second = both_bytes(a + 8, b + 8);
        m[g] = _mm512_add_epi32(first, _mm512_slli_epi32(second, 16));
    }
}

X86_INLINE __m512 times_minima(const __m512i m[8], const int16_t *sum)
{
    __m512i all = _mm512_setzero_si512();
#pragma GCC unroll 8
    for (int g = 0; g < 8; g++) {
        int32_t pair;
        memcpy(&pair, sum + 2 * g, sizeof pair);
        all = _mm512_dpwssd_epi32(all, m[g], _mm512_set1_epi32(pair));
    }
    return _mm512_cvtepi32_ps(all);
}

X86_INLINE void scale256(few_work *j, const heads256 *h, const rows8_block256 *t, int rows)
{
    const int64_t at = j->first / CHUNK;
    const __m512 d =
        _mm512_mul_ps(both_ps(codes_f16(j->w[0]), codes_f16(j->w[1])), _mm512_set1_ps(t->unit));
    __m512 u[AMX_ROWS];
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
        u[i] = _mm512_setzero_ps();
    for (int g = 0; g < t->groups; g++) {
        const __m512 scale =
            _mm512_cvtepi32_ps(both_bytes(h->scale[0] + g * 8, h->scale[1] + g * 8));
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++)
            u[i] = _mm512_fmadd_ps(sums_of(j, g, i), scale, u[i]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
        const __m512 dx = _mm512_set1_ps(act_d(j->x[i], j->n)[at]);
        u[i] = _mm512_fmadd_ps(u[i], _mm512_mul_ps(d, dx), _mm512_loadu_ps(j->acc[i]));
        _mm512_storeu_ps(j->acc[i], u[i]);
    }
}

X86_INLINE void less_minima(few_work *j, const heads256 *h, const rows8_block256 *t)
{
    const int64_t at = j->first / CHUNK;
    const __m512 d = both_ps(codes_f16(j->w[0] + 16), codes_f16(j->w[1] + 16));
    __m512i m[8];
    minima_of(h, t->groups, m);
    for (int i = 0; i < j->rows; i++) {
        const __m512 dx = _mm512_set1_ps(act_d(j->x[i], j->n)[at]);
        __m512 all = times_minima(m, act_sum(ACT_Q8K, j->x[i], j->n) + at * 16);
        _mm512_storeu_ps(j->acc[i],
                         _mm512_fnmadd_ps(all, _mm512_mul_ps(d, dx), _mm512_loadu_ps(j->acc[i])));
    }
}

X86_INLINE void chunk256(few_work *j, const rows8_block256 *t)
{
    heads256 h;
    for (int i = 0; i < 2; i++) {
        x86_hint(j->w[i], t->codes_at);
        h.scale[i] = t->scales(j->w[i], h.own[i], h.min[i]);
    }
    for (int sub = 0; sub < CHUNK / BLOCK; sub++) {
        __m512i v[2][4];
        for (int i = 0; i < 2; i++) {
            const uint8_t *codes = j->w[i] + t->codes_at + sub * t->sub_bytes;
            x86_hint(codes, t->sub_bytes);
            t->codes(codes, v[i]);
        }
        put_rows(v[0], v[1], t->offset, j->tiles + sub * BLOCK / 4);
    }
    multiply(j, t->groups == 16 ? 16 : BLOCK, t->offset != 0);
    if (j->rows <= 4)
        scale256(j, &h, t, 4);
    else if (j->rows <= 8)
        scale256(j, &h, t, 8);
    else
        scale256(j, &h, t, 16);
    if (t->has_min)
        less_minima(j, &h, t);
    for (int i = 0; i < 2; i++)
        j->w[i] += t->bytes;
}

/* ---- Q4_K: codes times scales fit bytes ----
 *
 * A scale is 8 * high + low, of three bits each, so code * low and code * high are at most 105; minima, the same for 32
 * columns, are bytes anyway. So sums of all 256 columns stay in the tiles: twelve products of 64 columns instead of
 * eight of 32, but three sums for each number of the result instead of eight and the minima. */
enum { LOW, HIGH, MIN };

/* Bytes of sixteen rows, each four times. */
X86_INLINE __m512i four_times(const uint8_t *a, const uint8_t *b)
{
    __m128i bytes =
        _mm_unpacklo_epi64(_mm_loadl_epi64((const void *)a), _mm_loadl_epi64((const void *)b));
    __m512i wide = _mm512_cvtepi8_epi32(bytes);
    wide = _mm512_add_epi32(wide, _mm512_slli_epi32(wide, 16));
    return _mm512_add_epi32(wide, _mm512_slli_epi32(wide, 8));
}

/* Four columns. A product of words makes those of two codes, which have no carry. */
X86_INLINE void put_scaled(few_work *j, int row, __m512i v, __m512i low, __m512i high, __m512i min)
{
    _mm512_storeu_si512(j->tiles[row], _mm512_mullo_epi16(v, low));
    _mm512_storeu_si512(j->more[0][row], _mm512_mullo_epi16(v, high));
    _mm512_storeu_si512(j->more[1][row], min);
}

X86_INLINE void unpack_scaled(few_work *j, const heads256 *h, const rows8_block256 *t)
{
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    const __m512i three_bits = _mm512_set1_epi32(0x00070007); /* of each word */
    for (int sub = 0; sub < CHUNK / BLOCK; sub++) {
        __m512i v[2][4], scale = four_times(h->scale[0] + sub * 8, h->scale[1] + sub * 8);
        const __m512i low = _mm512_and_si512(scale, three_bits);
        const __m512i high = _mm512_and_si512(_mm512_srli_epi16(scale, 3), three_bits);
        const __m512i min = four_times(h->min[0] + sub * 8, h->min[1] + sub * 8);
        for (int i = 0; i < 2; i++) {
            const uint8_t *codes = j->w[i] + t->codes_at + sub * t->sub_bytes;
            x86_hint(codes, t->sub_bytes);
            t->codes(codes, v[i]);
        }
        for (int step = 0; step < 4; step++) {
            int row = (sub * 4 + step) * 2;
            put_scaled(j, row, _mm512_permutex2var_epi32(v[0][step], even, v[1][step]), low, high,
                       min);
            put_scaled(j, row + 1, _mm512_permutex2var_epi32(v[0][step], odd, v[1][step]), low,
                       high, min);
        }
    }
}

#define MULTIPLY_SCALED(a, part)                                                                   \
    {                                                                                              \
        AMX_LOAD(a, act_q(j->x[0]) + j->first + (part)*AMX_BYTES, j->pitch);                       \
        AMX_LOAD(6, j->tiles[(part)*AMX_ROWS], AMX_BYTES);                                         \
        AMX_DOT_U8(0, a, 6);                                                                       \
        AMX_LOAD(7, j->more[0][(part)*AMX_ROWS], AMX_BYTES);                                       \
        AMX_DOT_U8(1, a, 7);                                                                       \
        AMX_LOAD(6, j->more[1][(part)*AMX_ROWS], AMX_BYTES);                                       \
        AMX_DOT_U8(2, a, 6);                                                                       \
    }

X86_INLINE void multiply_scaled(few_work *j)
{
    AMX_ZERO(0);
    AMX_ZERO(1);
    AMX_ZERO(2);
    MULTIPLY_SCALED(4, 0)
    MULTIPLY_SCALED(5, 1)
    MULTIPLY_SCALED(4, 2)
    MULTIPLY_SCALED(5, 3)
    STORE(0, LOW);
    STORE(1, HIGH);
    STORE(2, MIN);
}

X86_INLINE void chunk_sums(few_work *j, const rows8_block256 *t)
{
    heads256 h;
    for (int i = 0; i < 2; i++) {
        x86_hint(j->w[i], t->codes_at);
        h.scale[i] = t->scales(j->w[i], h.own[i], h.min[i]);
    }
    unpack_scaled(j, &h, t);
    multiply_scaled(j);
    const int64_t at = j->first / CHUNK;
    const __m512 d = both_ps(codes_f16(j->w[0]), codes_f16(j->w[1]));
    const __m512 less = both_ps(codes_f16(j->w[0] + 16), codes_f16(j->w[1] + 16));
    for (int i = 0; i < j->rows; i++) {
        const __m512 dx = _mm512_set1_ps(act_d(j->x[i], j->n)[at]);
        __m512i high = _mm512_slli_epi32(_mm512_loadu_si512(j->sums[HIGH][i]), 3);
        __m512i all = _mm512_add_epi32(_mm512_loadu_si512(j->sums[LOW][i]), high);
        __m512 u = _mm512_mul_ps(_mm512_cvtepi32_ps(all), d);
        u = _mm512_fnmadd_ps(sums_of(j, MIN, i), less, u);
        _mm512_storeu_ps(j->acc[i], _mm512_fmadd_ps(u, dx, _mm512_loadu_ps(j->acc[i])));
    }
    for (int i = 0; i < 2; i++)
        j->w[i] += t->bytes;
}

/* ---- the loops around them ---- */

typedef void chunk_fn(few_work *j);

/* Up to sixteen rows from `row` on. */
static void few_rows(const kargs *k, const kpart *part, int64_t row, int bytes, chunk_fn *chunk)
{
    few_work j; /* what tiles leave of it unset is multiplied, but not used */
    const uint8_t *w = k->in[1];
    const float *bias = k->in[2];
    int64_t groups = (part->col_end - part->col) / LAYOUT_GROUP, half = (groups + 1) / 2;
    j.pitch = k->pitch[0];
    j.n = k->size.linear.in;
    j.rows = (int)(part->row_end - row < AMX_ROWS ? part->row_end - row : AMX_ROWS);
    for (int i = 0; i < AMX_ROWS; i++)
        j.x[i] = (const char *)k->in[0] + (row + (i < j.rows ? i : j.rows - 1)) * k->pitch[0];
    amx_shape_bytes(j.rows, bytes);
    for (int64_t g = 0; g < half; g++) {
        bool two = g + half < groups; /* else the first stands for both */
        int64_t col[2] = {part->col + g * LAYOUT_GROUP,
                          part->col + (two ? g + half : g) * LAYOUT_GROUP};
        for (int i = 0; i < 2; i++)
            j.w[i] = w + col[i] / LAYOUT_GROUP * k->pitch[1];
        memset(j.acc, 0, sizeof j.acc);
        for (j.first = 0; j.first < j.n; j.first += CHUNK) {
            j.cols = j.n - j.first < CHUNK ? j.n - j.first : CHUNK;
            chunk(&j);
        }
        for (int i = 0; i < j.rows; i++) {
            float *out = (float *)((char *)k->out[0] + (row + i) * k->out_pitch[0]);
            for (int side = 0; side < 1 + two; side++)
                for (int r = 0; r < LAYOUT_GROUP; r++)
                    out[col[side] + r] =
                        j.acc[i][side * LAYOUT_GROUP + r] + (bias ? bias[col[side] + r] : 0);
        }
    }
    amx_end();
}

static void few_linear(const kargs *k, int64_t begin, int64_t end, int bytes, chunk_fn *chunk)
{
    kpart part = kpart_of(k, k->size.linear.out, begin, end);
    for (int64_t row = part.row; row < part.row_end; row += AMX_ROWS)
        few_rows(k, &part, row, bytes, chunk);
}

#define FEW_KERNEL(type, word, chunk, bytes)                                                       \
    static void chunk_##type##word(few_work *j)                                                    \
    {                                                                                              \
        chunk(j, &rows8_##type);                                                                   \
    }                                                                                              \
    void k_linear_##type##word##_amx(const kargs *k, const kthread *t, int64_t begin, int64_t end) \
    {                                                                                              \
        (void)t;                                                                                   \
        few_linear(k, begin, end, bytes, chunk_##type##word);                                      \
    }
FEW_KERNEL(Q8_0, _FEW, chunk32, 32)
FEW_KERNEL(Q4_0, _FEW, chunk32, 32)
FEW_KERNEL(Q4_1, _FEW, chunk32, 32)
FEW_KERNEL(Q5_0, _FEW, chunk32, 32)
FEW_KERNEL(Q5_1, _FEW, chunk32, 32)
FEW_KERNEL(IQ4_NL, _FEW, chunk32, 32)
FEW_KERNEL(MXFP4, _FEW, chunk32, 32)
FEW_KERNEL(Q2_K, _FEW, chunk256, 16)
FEW_KERNEL(Q3_K, _FEW, chunk256, 16)
FEW_KERNEL(Q4_K, _FEW, chunk256, 32)
FEW_KERNEL(Q4_K, _SUMS, chunk_sums, 64)
FEW_KERNEL(Q5_K, _FEW, chunk256, 32)
FEW_KERNEL(Q6_K, _FEW, chunk256, 16)
FEW_KERNEL(IQ4_XS, _FEW, chunk256, 32)
