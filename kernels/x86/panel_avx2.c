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

enum { TILE = 4 };

#define PLANES_OF(largest) ((largest) > 63 ? 2 : 1)

/* Steps of 4 columns that words have room for, within a group. */
X86_INLINE int steps_of(const panel_type *t)
{
    int steps = t->largest <= 15 || t->largest > 63 ? 8 : t->largest <= 31 ? 4 : 2;
    return t->groups == 16 && steps > 4 ? 4 : steps;
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
X86_INLINE void multiply_steps(const uint8_t *w, const panel_tile *x, int64_t col, int steps,
                               int count, __m256i a[TILE][2])
{
#pragma GCC unroll 8
    for (int s = 0; s < steps; s++) {
        const __m256i w0 = x86_load(w + s * PANEL_STEP);
        const __m256i w1 = x86_load(w + s * PANEL_STEP + PANEL_REG);
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
X86_INLINE void multiply_sub(const uint8_t *w, const panel_tile *x, int64_t col,
                             const panel_type *type, const __m256i scale[2][2], int count,
                             __m256i z[TILE][2])
{
    const int steps = steps_of(type);
#pragma GCC unroll 4
    for (int s = 0; s < 8; s += steps) {
        __m256i a[TILE][2];
        multiply_steps(w + s * PANEL_STEP, x, col + s * 4, steps, count, a);
#pragma GCC unroll 4
        for (int i = 0; i < count; i++)
            for (int p = 0; p < 2; p++) {
                int to = PLANES_OF(type->largest) == 2 ? 0 : p;
                z[i][to] = _mm256_add_epi32(z[i][to], _mm256_madd_epi16(a[i][p], scale[s / 4][p]));
            }
    }
}

/* sum + z * d * dx */
X86_INLINE __m256 add_scaled(__m256 sum, __m256i z, const float *d, float dx)
{
    const __m256 both = _mm256_mul_ps(_mm256_loadu_ps(d), _mm256_set1_ps(dx));
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(z), both, sum);
}

/* ---- blocks of 32 ---- */

/* Of each block what its sums begin with, and what minima multiply. */
typedef struct {
    int32_t start[TILE][PANEL_COLS / 32];
    float sum[TILE][PANEL_COLS / 32];
} begin32;

/* The sums z of block k times its scales d, and its minima, which lie behind them, added to t: 8 rows or 16. */
X86_INLINE void end_block32(float *t, const __m256i z[TILE][2], const panel_tile *x,
                            const begin32 *begin, int64_t k, const float *d, bool has_min,
                            int halves, int count)
{
    for (int h = 0; h < halves; h++, d += 8, t += 8)
#pragma GCC unroll 4
        for (int i = 0; i < count; i++) {
            __m256 sum = _mm256_load_ps(t + i * PANEL_ROWS);
            if (has_min)
                sum = _mm256_fmadd_ps(_mm256_loadu_ps(d + PANEL_ROWS),
                                      _mm256_set1_ps(begin->sum[i][k]), sum);
            _mm256_store_ps(t + i * PANEL_ROWS, add_scaled(sum, z[i][h], d, x->d[i][k]));
        }
}

X86_INLINE void multiply32(const uint8_t *panel, const panel_acts *acts, float *t,
                           const panel_type *type, int count)
{
    const int planes = PLANES_OF(type->largest);
    const panel_layout l = panel_layout32(type->has_min, planes);
    const __m256i one = _mm256_set1_epi16(1), first = planes == 2 ? _mm256_set1_epi16(16) : one;
    const __m256i scale[2][2] = {{first, one}, {first, one}};
    const panel_tile x = panel_tile_of(ACT_Q8, acts, count);
    begin32 begin;
    for (int i = 0; i < count; i++)
        panel_begin32(&x, i, acts->cols, type->offset, begin.start[i], type->has_min, begin.sum[i]);
    memset(t, 0, (size_t)count * PANEL_ROWS * sizeof *t);
    for (int strip = 0; strip < planes; strip++) {
        const uint8_t *w = panel;
        for (int64_t k = 0; k < acts->cols / 32; k++, w += l.bytes) {
            __m256i z[TILE][2];
            for (int i = 0; i < count; i++)
                z[i][0] = z[i][1] =
                    type->offset ? _mm256_set1_epi32(begin.start[i][k]) : _mm256_setzero_si256();
            multiply_sub(w + strip * PANEL_SUB, &x, k * 32, type, scale, count, z);
            end_block32(t + strip * 8, z, &x, &begin, k,
                        (const float *)(const void *)(w + l.d) + strip * 8, type->has_min,
                        3 - planes, count);
        }
    }
}

/* ---- blocks of 256 ---- */

/* Words of eight rows times sums of activations, pair by pair. */
X86_INLINE __m256i less_of(const uint8_t *less, const int16_t *sum, int pairs)
{
    __m256i z = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int p = 0; p < pairs; p++)
        z = _mm256_add_epi32(
            z, _mm256_madd_epi16(x86_load(less + p * PANEL_LINE), repeat(sum + 2 * p)));
    return z;
}

X86_INLINE void end_block256(float *t, const __m256i z[TILE][2], const panel_tile *x, int64_t k,
                             const uint8_t *less, const float *d, const panel_type *type,
                             int halves, int count)
{
    int16_t sum32[TILE][8];
    for (int i = 0; i < count && type->groups == 8; i++)
        panel_sums32(x->sum[i] + k * 16, sum32[i]);
    for (int h = 0; h < halves; h++, d += 8, t += 8, less += PANEL_STEP)
        for (int i = 0; i < count; i++) {
            const int16_t *sums = type->groups == 8 ? sum32[i] : x->sum[i] + k * 16;
            const float dx = x->d[i][k];
            __m256i taken = less_of(less, sums, type->groups / 2);
            __m256 sum = _mm256_load_ps(t + i * PANEL_ROWS);
            if (type->has_min)
                sum = add_scaled(add_scaled(sum, z[i][h], d, dx), taken, d + PANEL_ROWS, -dx);
            else
                sum = add_scaled(sum, _mm256_sub_epi32(z[i][h], taken), d, dx);
            _mm256_store_ps(t + i * PANEL_ROWS, sum);
        }
}

/* The words that multiply the sums of 32 columns (multiply_sub). */
X86_INLINE void scales_of(const uint8_t *at, int groups, int strip, int planes, __m256i to[2][2])
{
    for (int g = 0; g < 2; g++) {
        const uint8_t *group = at + (groups == 16 ? g * PANEL_LINE : 0);
        to[g][1] = x86_load(group + (planes == 2 ? strip : 1) * PANEL_STEP);
        to[g][0] = planes == 2 ? _mm256_slli_epi16(to[g][1], 4) : x86_load(group);
    }
}

X86_INLINE void multiply256(const uint8_t *panel, const panel_acts *acts, float *t,
                            const panel_type *type, int count)
{
    const int planes = PLANES_OF(type->largest);
    const panel_layout l = panel_layout256(type->groups, planes);
    const panel_tile x = panel_tile_of(ACT_Q8K, acts, count);
    memset(t, 0, (size_t)count * PANEL_ROWS * sizeof *t);
    for (int strip = 0; strip < planes; strip++) {
        const uint8_t *w = panel;
        for (int64_t k = 0; k < acts->cols / 256; k++, w += l.bytes) {
            const uint8_t *scales = w + l.scales;
            __m256i z[TILE][2];
            for (int i = 0; i < count; i++)
                z[i][0] = z[i][1] = _mm256_setzero_si256();
            for (int sub = 0; sub < 8; sub++, scales += type->groups / 8 * PANEL_LINE) {
                __m256i scale[2][2];
                scales_of(scales, type->groups, strip, planes, scale);
                multiply_sub(w + (sub * planes + strip) * PANEL_SUB, &x, k * 256 + sub * 32, type,
                             scale, count, z);
            }
            end_block256(t + strip * 8, z, &x, k, w + l.less + strip * PANEL_STEP,
                         (const float *)(const void *)(w + l.d) + strip * 8, type, 3 - planes,
                         count);
        }
    }
}

#define KERNELS_32(type, size, unpack, has_min, offset, largest)                                   \
    STORED_KERNELS_32(type, size, unpack, has_min, offset, largest, PLANES_OF(largest), avx2)
STORED_32(KERNELS_32)

#define KERNELS_256(type, size, head, codes, add, has_min, offset, largest, groups)                \
    STORED_KERNELS_256(type, size, head, codes, add, has_min, offset, largest, groups, false,      \
                       PLANES_OF(largest), avx2)
STORED_256(KERNELS_256)
