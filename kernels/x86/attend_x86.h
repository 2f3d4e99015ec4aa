/* attend_x86.h - attention by panels of queries (c/attend_panels.h) with vectors of eight or 16 floats.
 *
 * A panel has as many queries as a vector has lanes, and a vector their logits for one key; up to eight queries (decode)
 * are panels of four, whose vectors have two keys or four. Keys and values of 16 bits become floats in scratch, a block
 * at a time. Sums over positions run over those that are equal modulo 4 either way. Tiles have eight sums or more: a
 * core starts two fused products a cycle, and each takes four.
 *
 * Vectors and what fits into registers are those of attend_vec.h: AVX-512's, or AVX2's if ATTEND_AVX2 is defined. */
#ifndef WEFT_KERNELS_X86_ATTEND_X86_H
#define WEFT_KERNELS_X86_ATTEND_X86_H

#include "kernels/c/attend_panels.h"
#include "kernels/c/half.h"
#include "kernels/x86/attend_vec.h"

enum { SLIM = 4, SLIM_MAX = 8, SLIM_KEYS = WIDE / SLIM };
/* The next block is asked for while one is computed. */
static const attend_traits x86_wants = {.pad = WIDE, .ahead = 1};

static int64_t panel_lanes(const attend_work *w)
{
    return w->queries <= SLIM_MAX ? SLIM : WIDE;
}

static bool panel_direct(const attend_work *w)
{
    (void)w;
    return false;
}

static void floats_read(const char *from, dtype type, int64_t n, float *to)
{
    int64_t i = 0;
    const uint16_t *half = (const uint16_t *)(const void *)from;
    for (; i + WIDE <= n; i += WIDE)
        vf_store(to + i, type == DT_F16 ? vf_from_f16(half + i) : vf_from_bf16(half + i));
    for (; i < n; i++)
        to[i] = type == DT_F16 ? half_from_f16(half[i]) : float_of((uint32_t)half[i] << 16);
}

/* ---- products ---- */

/* s[g][j] = q[g] . key[j] for n_panel panels of WIDE and n_key keys, both constants. */
X86_INLINE void dot_wide(const float *q, int64_t q_pitch, const float *key, int64_t pitch,
                         int64_t width, float *s, int n_panel, int n_key)
{
    vf sum[4][8];
#pragma GCC unroll 4
    for (int g = 0; g < n_panel; g++)
#pragma GCC unroll 8
        for (int j = 0; j < n_key; j++)
            sum[g][j] = vf_all(0);
    for (int64_t i = 0; i < width; i++) {
        vf x[4];
#pragma GCC unroll 4
        for (int g = 0; g < n_panel; g++)
            x[g] = vf_load(q + g * q_pitch + i * WIDE);
#pragma GCC unroll 8
        for (int j = 0; j < n_key; j++) {
            vf y = vf_all(key[j * pitch + i]);
#pragma GCC unroll 4
            for (int g = 0; g < n_panel; g++)
                sum[g][j] = vf_fma(x[g], y, sum[g][j]);
        }
    }
#pragma GCC unroll 4
    for (int g = 0; g < n_panel; g++)
#pragma GCC unroll 8
        for (int j = 0; j < n_key; j++)
            vf_store(s + (g * KEYS + j) * WIDE, sum[g][j]);
}

/* One of four columns: of SLIM_KEYS keys, times the four queries of each panel. */
#define DOT_COLUMN(l)                                                                              \
    {                                                                                              \
        vf z = vf_column(y, l);                                                                    \
        sum[0][j] = vf_fma(vf_four(q + (i + l) * SLIM), z, sum[0][j]);                             \
        if (n_panel > 1)                                                                           \
            sum[1][j] = vf_fma(vf_four(q + q_pitch + (i + l) * SLIM), z, sum[1][j]);               \
    }

/* The same for one panel of four queries or two, and four vectors of keys. */
X86_INLINE void dot_slim(const float *q, int64_t q_pitch, const float *key, int64_t pitch,
                         int64_t width, float *s, int n_panel)
{
    vf sum[2][4];
#pragma GCC unroll 2
    for (int g = 0; g < n_panel; g++)
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++)
            sum[g][j] = vf_all(0);
    for (int64_t i = 0; i < width; i += 4) {
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
            vf y = vf_keys(key + SLIM_KEYS * j * pitch + i, pitch);
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
            vf_store(s + g * KEYS * SLIM + j * WIDE, sum[g][j]);
}

/* Into the second cache: rows [j, j + n) of the next block. */
static void rows_fetch(const attend_work *w, int64_t j, int64_t n)
{
    enum { LINE = 64 };
    int64_t key_end = w->hint_key ? (j + n) * w->hint_key_pitch : 0;
    int64_t value_end = w->hint_value ? (j + n) * w->hint_value_pitch : 0;
    for (int64_t i = j * w->hint_key_pitch; i < key_end; i += LINE)
        _mm_prefetch(w->hint_key + i, _MM_HINT_T1);
    for (int64_t i = j * w->hint_value_pitch; i < value_end; i += LINE)
        _mm_prefetch(w->hint_value + i, _MM_HINT_T1);
}

static void panel_dots(const attend_work *w, int64_t begin, int64_t end, int64_t from, int64_t to)
{
    int64_t q_pitch = w->k_width * w->lanes, width = w->k_width, g = from;
    int64_t pitch = w->key_pitch / (int64_t)sizeof(float);
    const float *key = (const float *)(const void *)w->key;
#define DOTS(n_panel, n_key, tile, ...)                                                            \
    for (; g + (n_panel) <= to; g += (n_panel))                                                    \
        for (int64_t j = begin / (n_key) * (n_key); j < end; j += (n_key)) {                       \
            if (g == from)                                                                         \
                rows_fetch(w, j, n_key);                                                           \
            tile(w->q + g * q_pitch, q_pitch, key + j * pitch, pitch, width,                       \
                 w->p + (g * KEYS + j) * w->lanes, __VA_ARGS__);                                   \
        }
    if (w->lanes == SLIM) {
        DOTS(2, 4 * SLIM_KEYS, dot_slim, 2)
        DOTS(1, 4 * SLIM_KEYS, dot_slim, 1)
        return;
    }
    DOTS(DOT_PANELS, DOT_KEYS, dot_wide, DOT_PANELS, DOT_KEYS)
    DOTS(1, 8, dot_wide, 1, 8)
#undef DOTS
}

/* sum[g][..] = keep[g] sum[g][..] + p[0][g] value[0][..] + p[1][g] value[1][..] + ... for n_q queries and WIDE n_vector
 * columns, both constants; weights of a query are p_step apart. */
X86_INLINE void add_tile(const float *p, int64_t p_step, const float *keep, const float *value,
                         int64_t pitch, int64_t n, float *sum, int64_t sum_pitch, int n_q,
                         int n_vector)
{
    vf to[4][4];
#pragma GCC unroll 4
    for (int g = 0; g < n_q; g++)
#pragma GCC unroll 4
        for (int c = 0; c < n_vector; c++)
            to[g][c] = vf_mul(vf_load(sum + g * sum_pitch + WIDE * c), vf_all(keep[g]));
    for (int64_t j = 0; j < n; j++) {
        vf x[4];
#pragma GCC unroll 4
        for (int c = 0; c < n_vector; c++)
            x[c] = vf_load(value + j * pitch + WIDE * c);
#pragma GCC unroll 4
        for (int g = 0; g < n_q; g++) {
            vf weight = vf_all(p[j * p_step + g]);
#pragma GCC unroll 4
            for (int c = 0; c < n_vector; c++)
                to[g][c] = vf_fma(x[c], weight, to[g][c]);
        }
    }
#pragma GCC unroll 4
    for (int g = 0; g < n_q; g++)
#pragma GCC unroll 4
        for (int c = 0; c < n_vector; c++)
            vf_store(sum + g * sum_pitch + WIDE * c, to[g][c]);
}

/* For n_q queries from i on, of one panel. */
X86_INLINE void add_columns(const attend_work *w, int64_t begin, int64_t end, int64_t i, int n_q)
{
    int64_t pitch = w->value_pitch / (int64_t)sizeof(float), n = end - begin, col = 0;
    const float *p = w->p + (i / w->lanes * KEYS + begin) * w->lanes + i % w->lanes;
    const float *value = (const float *)(const void *)w->value + begin * pitch;
    float *sum = w->sum + i * w->size.v;
#define ADDS(n_vector)                                                                             \
    for (; col + n_vector * WIDE <= w->v_width; col += n_vector * WIDE)                            \
        add_tile(p, w->lanes, w->keep + i, value + col, pitch, n, sum + col, w->size.v, n_q,       \
                 n_vector);
    ADDS(ADD_VECTORS)
    ADDS(2)
    ADDS(1)
#undef ADDS
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
X86_INLINE vf exp2_below(vf x)
{
    x = vf_max(vf_all(-126), x); /* of a NaN and a number the second */
    vf n = vf_round(x), r = vf_sub(x, n), p = vf_all(0x1.5bba12p-10f);
    p = vf_fma(p, r, vf_all(0x1.3cea88p-7f));
    p = vf_fma(p, r, vf_all(0x1.c6b752p-5f));
    p = vf_fma(p, r, vf_all(0x1.ebf9bcp-3f));
    p = vf_fma(p, r, vf_all(0x1.62e42ap-1f));
    p = vf_fma(p, r, vf_all(1));
    return vf_scale(p, n);
}

/* What each query of a panel has, in every key's place. */
X86_INLINE vf lanes_of(const float *x, int lanes)
{
    return lanes == WIDE ? vf_load(x) : vf_four(x);
}

X86_INLINE vi spans_of(const int32_t *x, int lanes)
{
    return lanes == WIDE ? vi_load(x) : vi_four(x);
}

X86_INLINE void lanes_put(float *x, vf a, int lanes)
{
    if (lanes == WIDE)
        vf_store(x, a);
    else
        vf_put_four(x, a);
}

/* Which of the logits at `i` of a panel are seen: its keys and lanes run side by side. */
X86_INLINE vm seen_at(int64_t i, int lanes, vi begin, vi end)
{
    vi at = vi_all((int32_t)(i / lanes));
    if (lanes == SLIM)
        at = vi_add(at, vi_quarters());
    return vm_within(begin, at, end);
}

X86_INLINE void weigh_of(attend_work *w, int64_t panel, bool some, int lanes)
{
    int64_t first = panel * lanes, n = KEYS * lanes;
    const int chains = lanes == SLIM ? 4 / SLIM_KEYS : 4; /* keys equal modulo 4 are of one sum */
    float *p = w->p + panel * n;
    vi begin = spans_of(w->begin + first, lanes), end = spans_of(w->end + first, lanes);
    vf old = lanes_of(w->max + first, lanes), most[4] = {old, old, old, old}, sum[4];
    for (int64_t i = 0; i < n; i += 4 * WIDE)
#pragma GCC unroll 4
        for (int l = 0; l < 4; l++) {
            vf s = vf_load(p + i + WIDE * l);
            if (some) {
                s = vf_choose(seen_at(i + WIDE * l, lanes, begin, end), s, vf_all(NOT_SEEN));
                vf_store(p + i + WIDE * l, s);
            }
            most[l] = vf_max(most[l], s);
        }
    vf max = vf_max(vf_max(most[0], most[1]), vf_max(most[2], most[3]));
    if (lanes == SLIM) {
        max = vf_max(max, vf_upper_half(max));
        if (SLIM_KEYS == 4)
            max = vf_max(max, vf_second_quarter(max));
    }
    for (int l = 0; l < 4; l++)
        sum[l] = vf_all(0);
    for (int64_t i = 0; i < n; i += 4 * WIDE)
#pragma GCC unroll 4
        for (int l = 0; l < 4; l++) {
            vf e = exp2_below(vf_sub(vf_load(p + i + WIDE * l), max));
            if (some)
                e = vf_choose(seen_at(i + WIDE * l, lanes, begin, end), e, vf_all(0));
            vf_store(p + i + WIDE * l, e);
            sum[l % chains] = vf_add(sum[l % chains], e);
        }
    vf all; /* (0 + 2) + (1 + 3), whichever way they lie */
    if (lanes == WIDE) {
        all = vf_add(vf_add(sum[0], sum[2]), vf_add(sum[1], sum[3]));
    } else if (SLIM_KEYS == 2) {
        all = vf_add(sum[0], sum[1]);
        all = vf_add(all, vf_upper_half(all));
    } else {
        all = vf_add(sum[0], vf_upper_half(sum[0]));
        all = vf_add(all, vf_second_quarter(all));
    }
    vf keep = exp2_below(vf_sub(old, max));
    lanes_put(w->keep + first, keep, lanes);
    lanes_put(w->max + first, max, lanes);
    lanes_put(w->total + first, vf_fma(keep, lanes_of(w->total + first, lanes), all), lanes);
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

#endif
