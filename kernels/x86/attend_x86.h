/* attend_x86.h - attention by panels of queries (c/attend_panels.h) with vectors of eight or 16 floats.
 *
 * Many queries (a prompt) are panels of as many as a vector has lanes, and a vector their logits for one key. Keys and
 * values of 16 bits become floats in scratch, a block at a time. Few queries (decode) are panels of four, and keys and
 * values are converted where they are read: a vector has eight columns of a key, or of two, and its products are
 * summed across it for all queries at once.
 *
 * Either way a product of a query and a key is eight sums over the columns that are equal modulo 8, and then
 * ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)); sums over positions run over those that are equal modulo 4. Tiles have
 * eight sums or more: a core starts two fused products a cycle, and each takes four.
 *
 * Vectors and what fits into registers are those of attend_vec.h: AVX-512's, or AVX2's if ATTEND_AVX2 is defined. */
#ifndef WEFT_KERNELS_X86_ATTEND_X86_H
#define WEFT_KERNELS_X86_ATTEND_X86_H

#include "kernels/c/attend_panels.h"
#include "kernels/c/half.h"
#include "kernels/x86/attend_vec.h"

enum { CHAINS = 8, SLIM = 4, FEW = 8 };
/* While a block is computed another is asked for: the next one of 16 bits, of codes one a bit later. */
static const attend_traits x86_wants = {
    .pad = WIDE, .ahead = 18 * 1024, .many = ATTEND_MANY_COPIED, .codes = true};

static bool panel_direct(const attend_work *w)
{
    return w->queries <= FEW_MAX;
}

static int64_t panel_lanes(const attend_work *w)
{
    return !panel_direct(w) ? WIDE : w->queries <= SLIM ? SLIM : FEW;
}

/* Few queries lie one after the other, many as [column modulo 8][column / 8][lane], where columns modulo 8 stand as
 * their sums are made: 0 4 2 6 1 5 3 7. */
static void query_put(const attend_work *w, int64_t i, const float *q, float scale)
{
    static const int64_t places[CHAINS] = {0, 4, 2, 6, 1, 5, 3, 7};
    int64_t width = w->k->cell->k, steps = w->k_width / CHAINS;
    float *few = w->q + i * w->k_width, *many = w->q + i / WIDE * w->k_width * WIDE + i % WIDE;
    for (int64_t j = 0; panel_direct(w) && j < width; j++)
        few[j] = q[j] * scale;
    for (int64_t j = 0; !panel_direct(w) && j < width; j++)
        many[(places[j % CHAINS] * steps + j / CHAINS) * WIDE] = q[j] * scale;
}

/* ---- stored numbers ---- */

/* WIDE numbers from the i-th on; eight, of as many keys as fit. */
X86_INLINE vf stored_wide(dtype type, const char *from, int64_t i)
{
    const uint16_t *half = (const uint16_t *)(const void *)from + i;
    return type == DT_F32   ? vf_load((const float *)(const void *)from + i)
           : type == DT_F16 ? vf_from_f16(half)
                            : vf_from_bf16(half);
}

X86_INLINE vf stored_eights(dtype type, const char *key, int64_t pitch, int64_t i)
{
    key += i * (type == DT_F32 ? 4 : 2);
    return type == DT_F32   ? vf_eights_f32(key, pitch)
           : type == DT_F16 ? vf_eights_f16(key, pitch)
                            : vf_eights_bf16(key, pitch);
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

/* ---- what will be read ---- */

enum { LINE = 64 };

/* Bytes [begin, end) from p on, unless that is NULL. */
X86_INLINE void bytes_fetch(const char *p, int64_t begin, int64_t end)
{
    for (int64_t i = begin; p && i < end; i += LINE)
        _mm_prefetch(p + i, _MM_HINT_T1);
}

/* ---- products of many queries ---- */

/* sum[g][j] += q[g] * key[j] for one column, n_panel panels and n_key keys; the first time there is nothing to add to. */
X86_INLINE void dot_column(const float *q, int64_t q_pitch, const float *key, int64_t pitch,
                           vf sum[4][8], bool first, int n_panel, int n_key)
{
    vf x[4];
#pragma GCC unroll 4
    for (int g = 0; g < n_panel; g++)
        x[g] = vf_load(q + g * q_pitch);
#pragma GCC unroll 8
    for (int j = 0; j < n_key; j++) {
        vf y = vf_all(key[j * pitch]);
#pragma GCC unroll 4
        for (int g = 0; g < n_panel; g++)
            sum[g][j] = first ? vf_mul(x[g], y) : vf_fma(x[g], y, sum[g][j]);
    }
}

/* One of the eight sums, over `steps` columns. */
X86_INLINE void dot_chain(const float *q, int64_t q_pitch, const float *key, int64_t pitch,
                          int64_t steps, vf sum[4][8], int n_panel, int n_key)
{
    dot_column(q, q_pitch, key, pitch, sum, true, n_panel, n_key);
    for (int64_t i = 1; i < steps; i++)
        dot_column(q + i * WIDE, q_pitch, key + i * CHAINS, pitch, sum, false, n_panel, n_key);
}

/* The sums of a tile, kept; and what was kept added to them. Panels are `pitch` vectors apart. */
X86_INLINE void tile_keep(float *to, int pitch, vf sum[4][8], int n_panel, int n_key)
{
#pragma GCC unroll 4
    for (int g = 0; g < n_panel; g++)
#pragma GCC unroll 8
        for (int j = 0; j < n_key; j++)
            vf_store(to + (g * pitch + j) * WIDE, sum[g][j]);
}

X86_INLINE void tile_add(const float *from, int pitch, vf sum[4][8], int n_panel, int n_key)
{
#pragma GCC unroll 4
    for (int g = 0; g < n_panel; g++)
#pragma GCC unroll 8
        for (int j = 0; j < n_key; j++)
            sum[g][j] = vf_add(vf_load(from + (g * pitch + j) * WIDE), sum[g][j]);
}

#define DOT_CHAIN(n, c)                                                                            \
    dot_chain(q + (n)*steps * WIDE, q_pitch, key + (c), pitch, steps, sum, n_panel, n_key)

/* s[g][j] = q[g] . key[j] for n_panel panels of WIDE and n_key keys, both constants. Of width 64 seven sums are added to
 * 64 fused products: 90 % of the rate of those at most, 97 % of width 256. */
X86_INLINE void dot_wide(const float *q, int64_t q_pitch, const float *key, int64_t pitch,
                         int64_t width, float *s, int n_panel, int n_key)
{
    int64_t steps = width / CHAINS;
    float two[4 * 8 * WIDE], four[4 * 8 * WIDE]; /* what waits for another sum, or for two */
    vf sum[4][8];
    for (int64_t c = 0; c < 2; c++, q += 4 * steps * WIDE) {
        DOT_CHAIN(0, c);
        tile_keep(two, 8, sum, n_panel, n_key);
        DOT_CHAIN(1, c + 4);
        tile_add(two, 8, sum, n_panel, n_key);
        tile_keep(four, 8, sum, n_panel, n_key);
        DOT_CHAIN(2, c + 2);
        tile_keep(two, 8, sum, n_panel, n_key);
        DOT_CHAIN(3, c + 6);
        tile_add(two, 8, sum, n_panel, n_key);
        tile_add(four, 8, sum, n_panel, n_key);
        if (c == 1)
            tile_add(s, KEYS, sum, n_panel, n_key);
        tile_keep(s, KEYS, sum, n_panel, n_key);
    }
}
#undef DOT_CHAIN

/* ---- products of few ---- */

/* The sums across eight vectors: 0, 2, 4, 6 and then 1, 3, 5, 7; with AVX-512 so of the first key of each vector and then
 * of the second. */
X86_INLINE vf sums_of(const vf a[8])
{
    vf b[4], c[2];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        b[i] = vf_fold_4(a[2 * i], a[2 * i + 1]);
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++)
        c[i] = vf_fold_2(b[2 * i], b[2 * i + 1]);
    return vf_fold_1(c[0], c[1]);
}

/* Eight columns, from the i-th on, of dot_few: of n_y vectors of keys, which are `next` bytes apart. */
X86_INLINE void dot_eight(const float *q, int64_t width, int64_t i, const char *key, int64_t next,
                          int64_t apart, dtype type, vf sum[2][8], bool first, int n_q, int n_y)
{
    vf y[2];
#pragma GCC unroll 2
    for (int j = 0; j < n_y; j++)
        y[j] = stored_eights(type, key + j * next, apart, i);
#pragma GCC unroll 8
    for (int g = 0; g < n_q; g++) {
        vf x = vf_eight(q + g * width + i);
        if (n_y == 2)
            VF_IN_REGISTER(x);
#pragma GCC unroll 2
        for (int j = 0; j < n_y; j++) {
            vf *to = n_q <= SLIM ? &sum[0][2 * g + j] : &sum[j][2 * (g % 4) + g / 4];
            *to = first ? vf_mul(x, y[j]) : vf_fma(x, y[j], *to);
        }
    }
}

/* Bounds and what was reached, cycles of a Sapphire Rapids core of 3 GHz for one position of four queries, width 64, all
 * in the second cache; memory needs 43 at 17.6 GB/s:
 *   AVX2     keys: 32 fused products, 8 conversions (ports 0, 1): 20; sums across 11 (port 5, beside)   reached 26
 *            values: 32 and 8: 20                                                                       reached 20
 *            weights 4, the rest 2                                                                      together 53
 *   AVX-512  keys: 16 fused products, 12 to load and convert, 5 sums (ports 0, 5): 17                   reached 20
 *            values: 16, 8: 12                                                                          reached 14
 *            weights 3, the rest 2                                                                      together 40
 * Of seven queries 112 products of AVX2 alone are 56 cycles: it is bound by them and not by memory.
 *
 * s[key][g] = q[g] . key for n_q queries, a constant, and two vectors of keys, or FEW_VECTORS. Of up to four queries both
 * vectors are summed at once, and the keys of a vector are two apart; of more each by itself. */
X86_INLINE void dot_few(const float *q, int64_t width, const char *key, int64_t pitch, dtype type,
                        float *s, int n_q)
{
    const bool slim = n_q <= SLIM;
    const int n_y = slim ? 2 : FEW_VECTORS;
    const int64_t apart = slim ? 2 * pitch : pitch, next = slim ? pitch : WIDE / CHAINS * pitch;
    vf sum[2][8];
#pragma GCC unroll 2
    for (int j = 0; j < 2; j++)
#pragma GCC unroll 8
        for (int g = 0; g < 8; g++)
            sum[j][g] = vf_all(0); /* what queries that are missing have */
    dot_eight(q, width, 0, key, next, apart, type, sum, true, n_q, n_y);
#pragma GCC unroll FEW_UNROLL
    for (int64_t i = CHAINS; i < width; i += CHAINS)
        dot_eight(q, width, i, key, next, apart, type, sum, false, n_q, n_y);
    vf_store(s, sums_of(sum[0]));
    if (!slim && n_y == 2)
        vf_store(s + WIDE, sums_of(sum[1]));
}

X86_INLINE void dots_few(const attend_work *w, int64_t begin, int64_t end, int64_t panel,
                         dtype type, int n_q)
{
    const int lanes = n_q <= SLIM ? SLIM : FEW;
    const int keys = n_q <= SLIM ? WIDE / SLIM : FEW_VECTORS * WIDE / FEW;
    const float *q = w->q + panel * lanes * w->k_width;
    float *s = w->p + panel * KEYS * lanes;
    for (int64_t j = begin / keys * keys; j < end; j += keys) {
        if (panel == 0)
            bytes_fetch(w->hint_key, j * w->hint_key_pitch, (j + keys) * w->hint_key_pitch);
        dot_few(q, w->k_width, w->key + j * w->key_pitch, w->key_pitch, type, s + j * lanes, n_q);
    }
}

/* ---- products with values ---- */

/* sum[g][..] = keep[g] sum[g][..] + p[0][g] value[0][..] + p[1][g] value[1][..] + ... for n_q queries and WIDE n_vector
 * columns from `col` on, both constants; weights of a query are p_step apart. */
X86_INLINE void add_tile(const float *p, int64_t p_step, const float *keep, const char *value,
                         int64_t pitch, dtype type, int64_t n, int64_t col, float *sum,
                         int64_t sum_pitch, const char *hint, int n_q, int n_vector)
{
    enum { PAIR = 2 };
    const int64_t bytes = PAIR * n_vector * WIDE * (type == DT_F32 ? 4 : 2);
    vf to[8][8];
    if (hint)
        hint += col * (bytes / n_vector / WIDE) * n / PAIR;
#pragma GCC unroll 8
    for (int g = 0; g < n_q; g++)
#pragma GCC unroll 8
        for (int c = 0; c < n_vector; c++)
            to[g][c] = vf_mul(vf_load(sum + g * sum_pitch + col + WIDE * c), vf_all(keep[g]));
    for (int64_t j = 0; j < n; j++) {
        vf x[8];
        if (hint && j % PAIR == 0)
            bytes_fetch(hint, j / PAIR * bytes, j / PAIR * bytes + bytes);
#pragma GCC unroll 8
        for (int c = 0; c < n_vector; c++)
            x[c] = stored_wide(type, value + j * pitch, col + WIDE * c);
#pragma GCC unroll 8
        for (int g = 0; g < n_q; g++) {
            vf weight = vf_all(p[j * p_step + g]);
#pragma GCC unroll 8
            for (int c = 0; c < n_vector; c++)
                to[g][c] = vf_fma(x[c], weight, to[g][c]);
        }
    }
#pragma GCC unroll 8
    for (int g = 0; g < n_q; g++)
#pragma GCC unroll 8
        for (int c = 0; c < n_vector; c++)
            vf_store(sum + g * sum_pitch + col + WIDE * c, to[g][c]);
}

/* For n_q queries from i on, of one panel. */
X86_INLINE void add_columns(const attend_work *w, int64_t begin, int64_t end, int64_t i, dtype type,
                            int n_q)
{
    int64_t n = end - begin, col = 0;
    const float *p = w->p + (i / w->lanes * KEYS + begin) * w->lanes + i % w->lanes;
    const char *value = w->value + begin * w->value_pitch;
    float *sum = w->sum + i * w->size.v;
    const char *hint = panel_direct(w) && i == 0 ? w->hint_value : NULL;
#define ADDS(n_vector)                                                                             \
    for (; col + (n_vector)*WIDE <= w->v_width; col += (n_vector)*WIDE)                            \
        add_tile(p, w->lanes, w->keep + i, value, w->value_pitch, type, n, col, sum, w->size.v,    \
                 hint, n_q, n_vector);
    ADDS(add_vectors(n_q))
    ADDS(2)
    ADDS(1)
#undef ADDS
}

/* ---- the loops by type and number of queries ---- */

typedef void block_fn(const attend_work *w, int64_t begin, int64_t end, int64_t at);

#define BLOCK_FN(T, n)                                                                             \
    static void dots_##T##_##n(const attend_work *w, int64_t begin, int64_t end, int64_t panel)    \
    {                                                                                              \
        dots_few(w, begin, end, panel, DT_##T, n);                                                 \
    }                                                                                              \
    static void adds_##T##_##n(const attend_work *w, int64_t begin, int64_t end, int64_t i)        \
    {                                                                                              \
        add_columns(w, begin, end, i, DT_##T, n);                                                  \
    }
#define BY_COUNT(F, T) F(T, 1) F(T, 2) F(T, 3) F(T, 4) F(T, 5) F(T, 6) F(T, 7) F(T, 8)
#define DOTS_OF(T, n) [DT_##T][n] = dots_##T##_##n,
#define ADDS_OF(T, n) [DT_##T][n] = adds_##T##_##n,
#define BY_TYPE(F) BY_COUNT(F, F32) BY_COUNT(F, F16) BY_COUNT(F, BF16)

BY_TYPE(BLOCK_FN)
static block_fn *const dots_by[DT_COUNT][FEW + 1] = {BY_TYPE(DOTS_OF)};
static block_fn *const adds_by[DT_COUNT][FEW + 1] = {BY_TYPE(ADDS_OF)};

/* Queries from i on, `most` at most. */
static int64_t queries_at(const attend_work *w, int64_t i, int64_t most)
{
    return w->queries - i < most ? w->queries - i : most;
}

static void panel_dots(const attend_work *w, int64_t begin, int64_t end, int64_t from, int64_t to)
{
    int64_t q_pitch = w->k_width * WIDE, width = w->k_width, g = from;
    int64_t pitch = w->key_pitch / (int64_t)sizeof(float);
    const float *key = (const float *)(const void *)w->key;
    for (; panel_direct(w) && g < to; g++)
        dots_by[w->type][queries_at(w, g * w->lanes, w->lanes)](w, begin, end, g);
#define DOTS(n_panel, n_key)                                                                       \
    for (; g + (n_panel) <= to; g += (n_panel))                                                    \
        for (int64_t j = begin / (n_key) * (n_key); j < end; j += (n_key)) {                       \
            if (g == from) {                                                                       \
                bytes_fetch(w->hint_key, j * w->hint_key_pitch,                                    \
                            (j + (n_key)) * w->hint_key_pitch);                                    \
                bytes_fetch(w->hint_value, j * w->hint_value_pitch,                                \
                            (j + (n_key)) * w->hint_value_pitch);                                  \
            }                                                                                      \
            dot_wide(w->q + g * q_pitch, q_pitch, key + j * pitch, pitch, width,                   \
                     w->p + (g * KEYS + j) * WIDE, n_panel, n_key);                                \
        }
    DOTS(DOT_PANELS, DOT_KEYS)
    DOTS(DOT_PANELS_LESS, DOT_KEYS)
    DOTS(1, 8)
#undef DOTS
}

static void panel_adds(const attend_work *w, int64_t begin, int64_t end, int64_t panel)
{
    int64_t i = panel * w->lanes, last = i + queries_at(w, i, w->lanes);
    int64_t most = panel_direct(w) ? FEW : SLIM;
    for (; i < last; i += most)
        adds_by[w->type][queries_at(w, i, most)](w, begin, end, i);
}

static void query_adds(const attend_work *w, int64_t begin, int64_t end, int64_t i)
{
    if (begin < end && i < w->queries)
        adds_by[w->type][1](w, begin, end, i);
}

/* ---- softmax ---- */

/* 2^x of x <= 0, within 3 units of 2^-24; below -100 it is 2^-100, and NaN of a NaN. Beside the largest weight, which is 1,
 * neither is anything; but products of values with weights near 2^-126 are subnormal, which costs these processors a
 * hundred cycles each. The polynomial is that of neon/vec_neon.h. */
X86_INLINE vf exp2_below(vf x)
{
    x = vf_max(vf_all(-100), x); /* of a NaN and a number the second */
    vf n = vf_round(x), r = vf_sub(x, n), p = vf_all(0x1.5bba12p-10f);
    p = vf_fma(p, r, vf_all(0x1.3cea88p-7f));
    p = vf_fma(p, r, vf_all(0x1.c6b752p-5f));
    p = vf_fma(p, r, vf_all(0x1.ebf9bcp-3f));
    p = vf_fma(p, r, vf_all(0x1.62e42ap-1f));
    p = vf_fma(p, r, vf_all(1));
    return vf_scale(p, n);
}

/* Which of the logits at `i` of a panel are seen: its keys and lanes run side by side. */
X86_INLINE vm seen_at(int64_t i, int lanes, vi begin, vi end)
{
    return vm_within(begin, vi_add(vi_all((int32_t)(i / lanes)), vi_keys(lanes)), end);
}

X86_INLINE void weigh_of(attend_work *w, int64_t panel, bool some, int lanes)
{
    int64_t first = panel * lanes, n = KEYS * lanes;
    const int keys = WIDE / lanes, chains = 4 / keys; /* keys equal modulo 4 are of one sum */
    float *p = w->p + panel * n;
    vi begin = vi_lanes(w->begin + first, lanes), end = vi_lanes(w->end + first, lanes);
    vf old = vf_lanes(w->max + first, lanes), most[4] = {old, old, old, old}, sum[4];
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
    if (keys > 1)
        max = vf_max(max, vf_upper_half(max));
    if (keys == 4)
        max = vf_max(max, vf_second_quarter(max));
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
    if (keys == 1) {
        all = vf_add(vf_add(sum[0], sum[2]), vf_add(sum[1], sum[3]));
    } else if (keys == 2) {
        all = vf_add(sum[0], sum[1]);
        all = vf_add(all, vf_upper_half(all));
    } else {
        all = vf_add(sum[0], vf_upper_half(sum[0]));
        all = vf_add(all, vf_second_quarter(all));
    }
    vf keep = exp2_below(vf_sub(old, max));
    vf_put_lanes(w->keep + first, keep, lanes);
    vf_put_lanes(w->max + first, max, lanes);
    vf_put_lanes(w->total + first, vf_fma(keep, vf_lanes(w->total + first, lanes), all), lanes);
}

static void panel_weigh(attend_work *w, int64_t panel, bool some)
{
#define WEIGH(n)                                                                                   \
    if (w->lanes == (n)) {                                                                         \
        if (some)                                                                                  \
            weigh_of(w, panel, true, n);                                                           \
        else                                                                                       \
            weigh_of(w, panel, false, n);                                                          \
        return;                                                                                    \
    }
    WEIGH(SLIM)
    WEIGH(FEW)
    WEIGH(WIDE)
#undef WEIGH
}

#endif
