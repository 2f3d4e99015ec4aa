/* attend_avx512.c - softmax attention with AVX-512; the loops are those of c/attend_panels.h.
 *
 * A panel has 16 queries, and a vector their logits for one key; up to eight queries (decode) are panels of
 * four, whose vectors have four keys. Keys and values of 16 bits become floats in scratch, a block at a time. Sums over
 * positions run over those that are equal modulo 4 either way. Tiles have 16 sums or eight: a core starts two fused
 * products a cycle, and each takes four. */
#include "kernels/kernel_decls.h"

#include <immintrin.h>
#include "kernels/c/half.h"
#include "kernels/x86/unpack.h"

enum { PANEL_PAD = 16, SLIM_MAX = 8, WIDE = 16, SLIM = 4 };
enum { ATTEND_AHEAD = 1 }; /* bytes: the next block is asked for while one is computed */
#include "kernels/c/attend_panels.h"

static int64_t panel_lanes(int64_t queries)
{
    return queries <= SLIM_MAX ? SLIM : WIDE;
}

static bool panel_direct(int64_t queries)
{
    (void)queries;
    return false;
}

static void floats_read(const char *from, dtype type, int64_t n, float *to)
{
    int64_t i = 0;
    const uint16_t *half = (const uint16_t *)(const void *)from;
    for (; i + 16 <= n; i += 16) {
        __m256i h = _mm256_loadu_si256((const void *)(half + i));
        __m512 x = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
        _mm512_storeu_ps(to + i, type == DT_F16 ? _mm512_cvtph_ps(h) : x);
    }
    for (; i < n; i++)
        to[i] = type == DT_F16 ? half_from_f16(half[i]) : float_of((uint32_t)half[i] << 16);
}

/* ---- products ---- */

/* s[g][j] = q[g] . key[j] for n_panel panels of 16 and n_key keys, both constants. */
X86_INLINE void dot_wide(const float *q, int64_t q_pitch, const float *key, int64_t pitch,
                         int64_t width, float *s, int n_panel, int n_key)
{
    __m512 sum[4][8];
#pragma GCC unroll 4
    for (int g = 0; g < n_panel; g++)
#pragma GCC unroll 8
        for (int j = 0; j < n_key; j++)
            sum[g][j] = _mm512_setzero_ps();
    for (int64_t i = 0; i < width; i++) {
        __m512 x[4];
#pragma GCC unroll 4
        for (int g = 0; g < n_panel; g++)
            x[g] = _mm512_loadu_ps(q + g * q_pitch + i * WIDE);
#pragma GCC unroll 8
        for (int j = 0; j < n_key; j++) {
            __m512 y = _mm512_set1_ps(key[j * pitch + i]);
#pragma GCC unroll 4
            for (int g = 0; g < n_panel; g++)
                sum[g][j] = _mm512_fmadd_ps(x[g], y, sum[g][j]);
        }
    }
#pragma GCC unroll 4
    for (int g = 0; g < n_panel; g++)
#pragma GCC unroll 8
        for (int j = 0; j < n_key; j++)
            _mm512_storeu_ps(s + (g * KEYS + j) * WIDE, sum[g][j]);
}

/* Four columns of four keys, a key to each quarter. */
X86_INLINE __m512 keys4(const float *key, int64_t pitch)
{
    __m512 y = _mm512_castps128_ps512(_mm_loadu_ps(key));
    y = _mm512_insertf32x4(y, _mm_loadu_ps(key + pitch), 1);
    y = _mm512_insertf32x4(y, _mm_loadu_ps(key + 2 * pitch), 2);
    return _mm512_insertf32x4(y, _mm_loadu_ps(key + 3 * pitch), 3);
}

/* One of four columns: of four keys, times the four queries of each panel. */
#define DOT_COLUMN(l)                                                                              \
    {                                                                                              \
        __m512 z = _mm512_shuffle_ps(y, y, 0x55 * l);                                              \
        sum[0][j] = _mm512_fmadd_ps(x[0][l], z, sum[0][j]);                                        \
        if (n_panel > 1)                                                                           \
            sum[1][j] = _mm512_fmadd_ps(x[1][l], z, sum[1][j]);                                    \
    }

/* The same for one panel of four queries or two, and 16 keys. */
X86_INLINE void dot_slim(const float *q, int64_t q_pitch, const float *key, int64_t pitch,
                         int64_t width, float *s, int n_panel)
{
    __m512 sum[2][4];
#pragma GCC unroll 2
    for (int g = 0; g < n_panel; g++)
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++)
            sum[g][j] = _mm512_setzero_ps();
    for (int64_t i = 0; i < width; i += 4) {
        __m512 x[2][4];
#pragma GCC unroll 2
        for (int g = 0; g < n_panel; g++)
#pragma GCC unroll 4
            for (int l = 0; l < 4; l++)
                x[g][l] = _mm512_broadcast_f32x4(_mm_loadu_ps(q + g * q_pitch + (i + l) * SLIM));
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
            __m512 y = keys4(key + 4 * j * pitch + i, pitch);
            DOT_COLUMN(0)
            DOT_COLUMN(1)
            DOT_COLUMN(2)
            DOT_COLUMN(3)
        }
    }
#pragma GCC unroll 2
    for (int g = 0; g < n_panel; g++)
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++)
            _mm512_storeu_ps(s + g * KEYS * SLIM + j * 16, sum[g][j]);
}

/* Into the second cache: rows [j, j + n) of the next block. */
static void rows_fetch(const attend_work *w, int64_t j, int64_t n)
{
    enum { LINE = 64 };
    for (int64_t i = j * w->hint_key_pitch; w->hint_key && i < (j + n) * w->hint_key_pitch;
         i += LINE)
        _mm_prefetch(w->hint_key + i, _MM_HINT_T1);
    for (int64_t i = j * w->hint_value_pitch; w->hint_value && i < (j + n) * w->hint_value_pitch;
         i += LINE)
        _mm_prefetch(w->hint_value + i, _MM_HINT_T1);
}

static void panel_dots(const attend_work *w, int64_t begin, int64_t end, int64_t from, int64_t to)
{
    int64_t q_pitch = w->k_width * w->lanes, width = w->k_width, g = from;
    int64_t pitch = w->key_pitch / (int64_t)sizeof(float);
    const float *key = (const float *)(const void *)w->key;
#define DOTS(n_panel, n_key, tile, ...)                                                            \
    for (; g + n_panel <= to; g += n_panel)                                                        \
        for (int64_t j = begin / n_key * n_key; j < end; j += n_key) {                             \
            if (g == from)                                                                         \
                rows_fetch(w, j, n_key);                                                           \
            tile(w->q + g * q_pitch, q_pitch, key + j * pitch, pitch, width,                       \
                 w->p + (g * KEYS + j) * w->lanes, __VA_ARGS__);                                   \
        }
    if (w->lanes == SLIM) {
        DOTS(2, 16, dot_slim, 2)
        DOTS(1, 16, dot_slim, 1)
        return;
    }
    DOTS(4, 4, dot_wide, 4, 4)
    DOTS(2, 8, dot_wide, 2, 8)
    DOTS(1, 8, dot_wide, 1, 8)
#undef DOTS
}

/* sum[g][..] = keep[g] sum[g][..] + p[0][g] value[0][..] + p[1][g] value[1][..] + ... for n_q queries and 16 n_vector
 * columns, both constants; weights of a query are p_step apart. */
X86_INLINE void add_tile(const float *p, int64_t p_step, const float *keep, const float *value,
                         int64_t pitch, int64_t n, float *sum, int64_t sum_pitch, int n_q,
                         int n_vector)
{
    __m512 to[8][4];
#pragma GCC unroll 8
    for (int g = 0; g < n_q; g++)
#pragma GCC unroll 4
        for (int c = 0; c < n_vector; c++)
            to[g][c] = _mm512_mul_ps(_mm512_loadu_ps(sum + g * sum_pitch + 16 * c),
                                     _mm512_set1_ps(keep[g]));
    for (int64_t j = 0; j < n; j++) {
        __m512 x[4];
#pragma GCC unroll 4
        for (int c = 0; c < n_vector; c++)
            x[c] = _mm512_loadu_ps(value + j * pitch + 16 * c);
#pragma GCC unroll 8
        for (int g = 0; g < n_q; g++) {
            __m512 weight = _mm512_set1_ps(p[j * p_step + g]);
#pragma GCC unroll 4
            for (int c = 0; c < n_vector; c++)
                to[g][c] = _mm512_fmadd_ps(x[c], weight, to[g][c]);
        }
    }
#pragma GCC unroll 8
    for (int g = 0; g < n_q; g++)
#pragma GCC unroll 4
        for (int c = 0; c < n_vector; c++)
            _mm512_storeu_ps(sum + g * sum_pitch + 16 * c, to[g][c]);
}

/* For n_q queries from i on, of one panel. */
X86_INLINE void add_columns(const attend_work *w, int64_t begin, int64_t end, int64_t i, int n_q)
{
    int64_t pitch = w->value_pitch / (int64_t)sizeof(float), n = end - begin, col = 0;
    const float *p = w->p + (i / w->lanes * KEYS + begin) * w->lanes + i % w->lanes;
    const float *value = (const float *)(const void *)w->value + begin * pitch;
    float *sum = w->sum + i * w->size.v;
    for (; col + 64 <= w->v_width; col += 64)
        add_tile(p, w->lanes, w->keep + i, value + col, pitch, n, sum + col, w->size.v, n_q, 4);
    for (; col + 32 <= w->v_width; col += 32)
        add_tile(p, w->lanes, w->keep + i, value + col, pitch, n, sum + col, w->size.v, n_q, 2);
    for (; col < w->v_width; col += 16)
        add_tile(p, w->lanes, w->keep + i, value + col, pitch, n, sum + col, w->size.v, n_q, 1);
}

static void panel_adds(const attend_work *w, int64_t begin, int64_t end, int64_t panel)
{
    for (int64_t i = panel * w->lanes; i < (panel + 1) * w->lanes; i += 4)
        add_columns(w, begin, end, i, 4);
}

static void query_adds(const attend_work *w, int64_t begin, int64_t end, int64_t i)
{
    if (begin < end)
        add_columns(w, begin, end, i, 1);
}

/* ---- softmax ---- */

/* 2^x of x <= 0, within 3 units of 2^-24; below -126 it is 2^-126, and NaN of a NaN. The polynomial is that of
 * neon/vec_neon.h. */
X86_INLINE __m512 exp2_below(__m512 x)
{
    x = _mm512_max_ps(_mm512_set1_ps(-126), x); /* of a NaN and a number the second */
    __m512 n = _mm512_roundscale_ps(x, 8);
    __m512 r = _mm512_sub_ps(x, n), p = _mm512_set1_ps(0x1.5bba12p-10f);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.3cea88p-7f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.c6b752p-5f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.ebf9bcp-3f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.62e42ap-1f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1));
    return _mm512_scalef_ps(p, n);
}

/* What each query of a panel has, in every key's place. */
X86_INLINE __m512 lanes_of(const float *x, int lanes)
{
    return lanes == WIDE ? _mm512_loadu_ps(x) : _mm512_broadcast_f32x4(_mm_loadu_ps(x));
}

X86_INLINE __m512i spans_of(const int32_t *x, int lanes)
{
    return lanes == WIDE ? _mm512_loadu_si512(x)
                         : _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)x));
}

X86_INLINE void lanes_put(float *x, __m512 a, int lanes)
{
    if (lanes == WIDE)
        _mm512_storeu_ps(x, a);
    else
        _mm_storeu_ps(x, _mm512_castps512_ps128(a));
}

/* The upper half of a vector in place of its lower; the second quarter in place of the first. */
X86_INLINE __m512 upper_half(__m512 a)
{
    return _mm512_shuffle_f32x4(a, a, 0x4e);
}

X86_INLINE __m512 second_quarter(__m512 a)
{
    return _mm512_shuffle_f32x4(a, a, 0xb1);
}

/* Which of the 16 logits at `i` of a panel are seen: its keys and lanes run side by side. */
X86_INLINE __mmask16 seen16(int64_t i, int lanes, __m512i begin, __m512i end)
{
    const __m512i quarter = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    __m512i at = _mm512_set1_epi32((int32_t)(i / lanes));
    if (lanes == SLIM)
        at = _mm512_add_epi32(at, quarter);
    return _mm512_cmple_epi32_mask(begin, at) & _mm512_cmplt_epi32_mask(at, end);
}

X86_INLINE void weigh_of(attend_work *w, int64_t panel, bool some, int lanes)
{
    int64_t first = panel * lanes, n = KEYS * lanes;
    float *p = w->p + panel * n;
    __m512i begin = spans_of(w->begin + first, lanes), end = spans_of(w->end + first, lanes);
    __m512 old = lanes_of(w->max + first, lanes), most[4] = {old, old, old, old}, sum[4];
    for (int64_t i = 0; i < n; i += 64)
#pragma GCC unroll 4
        for (int l = 0; l < 4; l++) {
            __m512 s = _mm512_loadu_ps(p + i + 16 * l);
            if (some) {
                s = _mm512_mask_blend_ps(seen16(i + 16 * l, lanes, begin, end),
                                         _mm512_set1_ps(NOT_SEEN), s);
                _mm512_storeu_ps(p + i + 16 * l, s);
            }
            most[l] = _mm512_max_ps(most[l], s);
        }
    __m512 max = _mm512_max_ps(_mm512_max_ps(most[0], most[1]), _mm512_max_ps(most[2], most[3]));
    if (lanes == SLIM) {
        max = _mm512_max_ps(max, upper_half(max));
        max = _mm512_max_ps(max, second_quarter(max));
    }
    for (int l = 0; l < 4; l++)
        sum[l] = _mm512_setzero_ps();
    for (int64_t i = 0; i < n; i += 64)
#pragma GCC unroll 4
        for (int l = 0; l < 4; l++) {
            __m512 e = exp2_below(_mm512_sub_ps(_mm512_loadu_ps(p + i + 16 * l), max));
            if (some)
                e = _mm512_mask_blend_ps(seen16(i + 16 * l, lanes, begin, end), _mm512_setzero_ps(),
                                         e);
            _mm512_storeu_ps(p + i + 16 * l, e);
            int chain = lanes == SLIM ? 0 : l;
            sum[chain] = _mm512_add_ps(sum[chain], e);
        }
    __m512 all = _mm512_add_ps(_mm512_add_ps(sum[0], sum[2]), _mm512_add_ps(sum[1], sum[3]));
    if (lanes == SLIM) {
        all = _mm512_add_ps(sum[0], upper_half(sum[0]));
        all = _mm512_add_ps(all, second_quarter(all));
    }
    __m512 keep = exp2_below(_mm512_sub_ps(old, max));
    lanes_put(w->keep + first, keep, lanes);
    lanes_put(w->max + first, max, lanes);
    lanes_put(w->total + first, _mm512_fmadd_ps(keep, lanes_of(w->total + first, lanes), all),
              lanes);
}

static void panel_weigh(attend_work *w, int64_t panel, bool some)
{
    if (w->lanes == SLIM && some)
        weigh_of(w, panel, true, SLIM);
    else if (w->lanes == SLIM)
        weigh_of(w, panel, false, SLIM);
    else if (some)
        weigh_of(w, panel, true, WIDE);
    else
        weigh_of(w, panel, false, WIDE);
}

void k_attend_avx512(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    attend_units(k, t, begin, end);
}
