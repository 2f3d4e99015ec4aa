/* panel_avx2.c - linear and experts for many rows with AVX2: panels of panel_stored.h, tiles of four rows of activations.
 *
 * vpmaddubsw multiplies codes with activations and joins two products in 16 bits. Codes of 4 bits leave room for 8 such
 * pairs (2 * 15 * 127 * 8 = 30480), those of 5 bits for 4, of 6 for 2, so that most additions are of words, two to a lane
 * less than of dwords, and none saturates. vpmaddwd joins the words, and multiplies them with integer scales where the type
 * has some. Bytes are split in two planes of 4 bits, which takes twice as long.
 *
 * Instructions for 32 columns of 8 rows and one row of activations, of which three ports of a core take three a cycle (p5
 * additions of integers only):
 *
 *     Q4_0, Q4_1     8 vpmaddubsw, 7 vpaddw, vpmaddwd, vpaddd, cvt, mul, fma (two with minima): 20, 7 cycles
 *     Q4_K           8 vpmaddubsw, 7 vpaddw, vpmaddwd, vpaddd: 17, 6 cycles; floats and minima once in 256 columns
 *     Q5_*, Q6_K     20, 7 cycles
 *     Q8_0, IQ4      35, 12 cycles */
#include "kernels/kernel_decls.h"

#include "kernels/x86/panel_stored.h"

enum { TILE = 4, COLS = 1024 };

/* Products of codes with activations, at most +-127, that a word has room for; a power of two. */
X86_INLINE int steps_of(int largest, int groups)
{
    int steps = largest <= 15 || largest > 63 ? 8 : largest <= 31 ? 4 : 2;
    return groups == 16 && steps > 4 ? 4 : steps;
}
X86_INLINE int planes_of(int largest)
{
    return largest > 63 ? 2 : 1;
}

/* Rows of activations of a tile, from the first column of a run. */
typedef struct {
    const int8_t *q[TILE];
    const float *d[TILE];
    const int16_t *sum[TILE];
} tile_acts;

X86_INLINE tile_acts tile_of(kact act, const panel_acts *x, int count)
{
    tile_acts a;
    for (int i = 0; i < count; i++) {
        a.q[i] = act_q(x->rows[i]) + x->first;
        a.d[i] = act_d(x->rows[i], x->n) + x->first / act_block(act);
        a.sum[i] = act_sum(act, x->rows[i], x->n) + x->first / 16;
    }
    return a;
}

X86_INLINE __m256i repeat(const void *four)
{
    int32_t v;
    memcpy(&v, four, sizeof v);
    return _mm256_set1_epi32(v);
}

/* sum + v, there and then: GCC would change the order of such sums, and keep all products until the end. */
X86_INLINE __m256i add_now(__m256i sum, __m256i v)
{
    sum = _mm256_add_epi16(sum, v);
    __asm__("" : "+x"(sum));
    return sum;
}

/* Sums of `steps` pairs of products for two registers of weights and each row. */
X86_INLINE void multiply_steps(const uint8_t *w, const tile_acts *x, int64_t col, int steps,
                               int count, __m256i a[TILE][2])
{
#pragma GCC unroll 8
    for (int s = 0; s < steps; s++) {
        const __m256i w0 = x86_load(w + s * STORED_STEP), w1 = x86_load(w + s * STORED_STEP + 32);
#pragma GCC unroll 4
        for (int i = 0; i < count; i++) {
            const __m256i v = repeat(x->q[i] + col + s * 4);
            const __m256i p0 = _mm256_maddubs_epi16(w0, v), p1 = _mm256_maddubs_epi16(w1, v);
            a[i][0] = s == 0 ? p0 : add_now(a[i][0], p0);
            a[i][1] = s == 0 ? p1 : add_now(a[i][1], p1);
        }
    }
}

/* 32 columns, added to z. Of two planes both go to z[i][0]. scale: words by which registers of sums are multiplied, for
 * each half of the columns. */
X86_INLINE void multiply_sub(const uint8_t *w, const tile_acts *x, int64_t col, int largest,
                             int groups, const __m256i scale[2][2], int count, __m256i z[TILE][2])
{
    const int steps = steps_of(largest, groups);
#pragma GCC unroll 4
    for (int s = 0; s < 8; s += steps) {
        __m256i a[TILE][2];
        multiply_steps(w + s * STORED_STEP, x, col + s * 4, steps, count, a);
#pragma GCC unroll 4
        for (int i = 0; i < count; i++)
            for (int p = 0; p < 2; p++) {
                int to = planes_of(largest) == 2 ? 0 : p;
                z[i][to] = _mm256_add_epi32(z[i][to], _mm256_madd_epi16(a[i][p], scale[s / 4][p]));
            }
    }
}

/* t += z * d */
X86_INLINE void add_scaled(float *t, __m256i z, __m256 d)
{
    _mm256_store_ps(t, _mm256_fmadd_ps(_mm256_cvtepi32_ps(z), d, _mm256_load_ps(t)));
}

/* ---- blocks of 32 ---- */

/* What sums of each block begin with, and scales times sums of activations, which minima multiply. */
typedef struct {
    int32_t start[TILE][COLS / 32];
    float sum[TILE][COLS / 32];
} begin32;

/* Reads and writes whole registers: past the last block are the padding of a row and room for it. */
X86_INLINE void begin_tile(begin32 *b, const tile_acts *x, int64_t cols, const stored32 *t,
                           int count)
{
    const __m256i less = _mm256_set1_epi16((short)-t->offset), ones = _mm256_set1_epi16(1);
    for (int i = 0; i < count; i++)
        for (int64_t k = 0; k < cols / 32; k += 8) {
            __m256i sum = x86_load(x->sum[i] + 2 * k);
            if (t->offset)
                _mm256_storeu_si256((void *)&b->start[i][k], _mm256_madd_epi16(sum, less));
            if (t->has_min)
                _mm256_storeu_ps(&b->sum[i][k],
                                 _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_madd_epi16(sum, ones)),
                                               _mm256_loadu_ps(x->d[i] + k)));
        }
}

/* The sums z of block k times its scales d, and its minima, which lie behind them, added to t. */
X86_INLINE void end_block(float *t, const __m256i z[TILE][2], const tile_acts *x,
                          const begin32 *begin, int64_t k, const float *d, bool has_min, int halves,
                          int count)
{
    for (int h = 0; h < halves; h++) {
        const __m256 scale = _mm256_loadu_ps(d + h * 8);
#pragma GCC unroll 4
        for (int i = 0; i < count; i++) {
            float *at = t + i * STORED_ROWS + h * 8;
            __m256 sum = _mm256_load_ps(at);
            if (has_min)
                sum = _mm256_fmadd_ps(_mm256_loadu_ps(d + STORED_ROWS + h * 8),
                                      _mm256_set1_ps(begin->sum[i][k]), sum);
            sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(z[i][h]),
                                  _mm256_mul_ps(scale, _mm256_set1_ps(x->d[i][k])), sum);
            _mm256_store_ps(at, sum);
        }
    }
}

X86_INLINE void multiply32(const uint8_t *panel, const panel_acts *acts, float *t,
                           const stored32 *type, int count)
{
    const int planes = planes_of(type->largest);
    const __m256i one = _mm256_set1_epi16(1), first = planes == 2 ? _mm256_set1_epi16(16) : one;
    const __m256i scale[2][2] = {{first, one}, {first, one}};
    const tile_acts x = tile_of(ACT_Q8, acts, count);
    begin32 begin;
    begin_tile(&begin, &x, acts->cols, type, count);
    memset(t, 0, (size_t)count * STORED_ROWS * sizeof *t);
    for (int strip = 0; strip < planes; strip++) {
        const uint8_t *w = panel;
        for (int64_t k = 0; k < acts->cols / 32; k++, w += stored32_bytes(type, planes)) {
            const float *d = (const float *)(const void *)(w + stored32_codes(planes));
            __m256i z[TILE][2];
            for (int i = 0; i < count; i++)
                z[i][0] = z[i][1] =
                    type->offset ? _mm256_set1_epi32(begin.start[i][k]) : _mm256_setzero_si256();
            multiply_sub(w + strip * STORED_SUB, &x, k * 32, type->largest, 8, scale, count, z);
            end_block(t + strip * 8, z, &x, &begin, k, d + strip * 8, type->has_min, 3 - planes,
                      count);
        }
    }
}

/* ---- blocks of 256 ---- */

/* Sums of activations of 32 columns, as words. */
X86_INLINE void sums_of_32(const int16_t *sum16, int16_t sum[8])
{
    __m256i s = _mm256_madd_epi16(x86_load(sum16), _mm256_set1_epi16(1));
    __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
    _mm_storeu_si128((void *)sum, words);
}

/* Words of eight rows times sums of activations, pair by pair. */
X86_INLINE __m256i less_of(const uint8_t *less, const int16_t *sum, int pairs)
{
    __m256i z = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int p = 0; p < pairs; p++)
        z = _mm256_add_epi32(
            z, _mm256_madd_epi16(x86_load(less + p * STORED_STEP), repeat(sum + 2 * p)));
    return z;
}

X86_INLINE void end_block256(float *t, const __m256i z[TILE][2], const tile_acts *x, int64_t k,
                             const uint8_t *less, const float *d, const stored256 *type, int halves,
                             int count)
{
    int16_t sum32[TILE][8];
    for (int i = 0; i < count && type->groups == 8; i++)
        sums_of_32(x->sum[i] + k * 16, sum32[i]);
    for (int h = 0; h < halves; h++)
        for (int i = 0; i < count; i++) {
            const int16_t *sum = type->groups == 8 ? sum32[i] : x->sum[i] + k * 16;
            const __m256 dx = _mm256_set1_ps(x->d[i][k]);
            __m256i taken = less_of(less + h * 32, sum, type->groups / 2);
            float *at = t + i * STORED_ROWS + h * 8;
            if (type->has_min)
                add_scaled(at, z[i][h], _mm256_mul_ps(_mm256_loadu_ps(d + h * 8), dx)),
                    _mm256_store_ps(at,
                                    _mm256_fnmadd_ps(
                                        _mm256_cvtepi32_ps(taken),
                                        _mm256_mul_ps(_mm256_loadu_ps(d + STORED_ROWS + h * 8), dx),
                                        _mm256_load_ps(at)));
            else
                add_scaled(at, _mm256_sub_epi32(z[i][h], taken),
                           _mm256_mul_ps(_mm256_loadu_ps(d + h * 8), dx));
        }
}

/* The words that multiply the sums of 32 columns (multiply_sub). */
X86_INLINE void scales_of(const uint8_t *at, int groups, int strip, int planes, __m256i to[2][2])
{
    for (int g = 0; g < 2; g++) {
        const uint8_t *group = at + (groups == 16 ? g * STORED_STEP : 0);
        to[g][1] = x86_load(group + (planes == 2 ? strip * 32 : 32));
        to[g][0] = planes == 2 ? _mm256_slli_epi16(to[g][1], 4) : x86_load(group);
    }
}

X86_INLINE void multiply256(const uint8_t *panel, const panel_acts *acts, float *t,
                            const stored256 *type, int count)
{
    const int planes = planes_of(type->largest);
    const tile_acts x = tile_of(ACT_Q8K, acts, count);
    memset(t, 0, (size_t)count * STORED_ROWS * sizeof *t);
    for (int strip = 0; strip < planes; strip++) {
        const uint8_t *w = panel;
        for (int64_t k = 0; k < acts->cols / 256; k++, w += stored256_bytes(type, planes)) {
            const uint8_t *at = w + stored256_scales(planes);
            __m256i z[TILE][2];
            for (int i = 0; i < count; i++)
                z[i][0] = z[i][1] = _mm256_setzero_si256();
            for (int sub = 0; sub < 8; sub++) {
                __m256i scale[2][2];
                scales_of(at + sub * type->groups / 8 * STORED_STEP, type->groups, strip, planes,
                          scale);
                multiply_sub(w + (sub * planes + strip) * STORED_SUB, &x, k * 256 + sub * 32,
                             type->largest, type->groups, scale, count, z);
            }
            const float *d = (const float *)(const void *)(w + stored256_d(type, planes));
            end_block256(t + strip * 8, z, &x, k, w + stored256_less(type, planes) + strip * 32,
                         d + strip * 8, type, 3 - planes, count);
        }
    }
}

/* ---- kernels ---- */

/* For each number of rows of a tile its own code, so that the last tile of a call takes no longer than it has to. */
#define COUNTS(multiply, ...)                                                                      \
    switch (x->count) {                                                                            \
    case 1:                                                                                        \
        multiply(panel, x, t, __VA_ARGS__, 1);                                                     \
        break;                                                                                     \
    case 2:                                                                                        \
        multiply(panel, x, t, __VA_ARGS__, 2);                                                     \
        break;                                                                                     \
    case 3:                                                                                        \
        multiply(panel, x, t, __VA_ARGS__, 3);                                                     \
        break;                                                                                     \
    default:                                                                                       \
        multiply(panel, x, t, __VA_ARGS__, 4);                                                     \
    }

#define CORE(type, act, largest, unpack_of, multiply_of)                                           \
    static void unpack_##type(const uint8_t *w, int64_t pitch, int64_t rows, int64_t first,        \
                              int64_t cols, void *panel)                                           \
    {                                                                                              \
        unpack_of;                                                                                 \
    }                                                                                              \
    static void multiply_##type(const void *panel, const panel_acts *x, float *t)                  \
    {                                                                                              \
        COUNTS(multiply_of, &type_##type)                                                          \
    }                                                                                              \
    static const panel_core core_##type = {                                                        \
        act,           STORED_ROWS,     TILE, 1, (largest) > 63 ? COLS / 2 : COLS,                 \
        unpack_##type, multiply_##type, NULL};                                                     \
    PANEL_KERNELS(type, avx2, &core_##type)

#define CORE_32(type, bytes, unpack, has_min, offset, largest)                                     \
    static const stored32 type_##type = {bytes, unpack, has_min, offset, largest};                 \
    CORE(type, ACT_Q8, largest,                                                                    \
         stored32_unpack(w, pitch, rows, first, cols, panel, &type_##type, planes_of(largest)),    \
         multiply32)
STORED_32(CORE_32)

#define CORE_256(type, bytes, head, codes, has_min, offset, groups, largest)                       \
    static const stored256 type_##type = {bytes, head, codes, has_min, offset, groups, largest};   \
    CORE(type, ACT_Q8K, largest,                                                                   \
         stored256_unpack(w, pitch, rows, first, cols, panel, &type_##type, planes_of(largest),    \
                          false),                                                                  \
         multiply256)
STORED_256(CORE_256)
