/* attend_neon.c - softmax attention for aarch64; the loops are those of c/attend_panels.h.
 *
 * A panel has four queries; where there are one or two (decode with at most two query heads to a head of the cell),
 * each is a panel of its own and the lanes of a vector are columns. Built once more as attend_fhm, with faster
 * conversion of f16. What bounds it, and how near it gets, is in README.md. */
#include "kernels/kernel_decls.h"

#include "kernels/c/attend_panels.h"
#include "kernels/neon/attend_codes_neon.h"
#include "kernels/neon/attend_neon_tile.h"
#include "kernels/neon/vec_neon.h"

enum { DIRECT_MAX = 8 }; /* queries that read keys and values as stored */
static const attend_traits neon_wants = {
    .pad = 8, .ahead = 64 * 1024, .many = ATTEND_MANY_READ, .codes = true};

#ifndef ATTEND_NAME
#define ATTEND_NAME k_attend_neon
#endif

/* At most two query heads to a head of the cell: there are tiles for one query or two, and for four panels. */
static bool few_heads(const attend_work *w)
{
    return w->size.group <= 2;
}

static int64_t panel_lanes(const attend_work *w)
{
    return few_heads(w) && w->queries < 4 * 4 ? 1 : 4;
}

/* Panels are [column][lane]. */
static void query_put(const attend_work *w, int64_t i, const float *q, float scale)
{
    float *to = w->q + i / w->lanes * w->lanes * w->k_width + i % w->lanes;
    for (int64_t j = 0; j < w->k->cell->k; j++)
        to[j * w->lanes] = q[j] * scale;
}

static bool panel_direct(const attend_work *w)
{
    return w->queries <= (few_heads(w) ? 2 : DIRECT_MAX);
}

static void floats_read(const char *from, dtype type, int64_t n, float *to)
{
    int64_t i = 0;
    float32x4_t x[2];
    for (; i + 8 <= n; i += 8) {
        load8(from + i * 2, type, x);
        vst1q_f32(to + i, x[0]);
        vst1q_f32(to + i + 4, x[1]);
    }
    if (i < n) {
        char some[32] = {0};
        float floats[8];
        memcpy(some, from + i * 2, (size_t)(n - i) * 2);
        load8(some, type, x);
        vst1q_f32(floats, x[0]);
        vst1q_f32(floats + 4, x[1]);
        memcpy(to + i, floats, (size_t)(n - i) * sizeof *to);
    }
}

NEON_INLINE void fetch_near(const char *from, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i += NEON_LINE)
        __builtin_prefetch(from + i);
}

/* ---- products, for each stored type ---- */

typedef void dot8_fn(const float *q, const char *key, int64_t pitch, int64_t width, float *s,
                     const char *later);
typedef void add16_fn(const float *p, const float *keep, const char *value, int64_t pitch,
                      int64_t n, float *sum, int64_t sum_pitch, const char *later);

NEON_INLINE void dots_of(const attend_work *w, int64_t begin, int64_t end, int64_t from, int64_t to,
                         dtype type, dot8_fn *dot8)
{
    int64_t pitch = w->k_width * w->lanes, g = from;
    if (w->lanes == 1) {
        for (; g < to; g += 2)
            for (int64_t j = begin / TILE_KEYS * TILE_KEYS; j < end; j += TILE_KEYS) {
                const char *key = w->key + j * w->key_pitch;
                const char *later = w->hint_key ? w->hint_key + j * w->hint_key_pitch : key;
                const float *q = w->q + g * pitch;
                float *s = w->p + g * KEYS + j;
                if (g + 1 < to)
                    dot_tile_slim(q, pitch, key, w->key_pitch, type, w->k_width, s, later, 2);
                else
                    dot_tile_slim(q, pitch, key, w->key_pitch, type, w->k_width, s, later, 1);
            }
        return;
    }
    bool alone = few_heads(w); /* then panels that are nobody's fill the last tile */
    for (g = alone ? g / 4 * 4 : g; type == DT_F32 && g + (alone ? 1 : 4) <= to; g += 4)
        for (int64_t j = begin / 4 * 4; j < end; j += 4) {
            const float *q = w->q + g * pitch;
            const char *key = w->key + j * w->key_pitch;
            float *s = w->p + (g * KEYS + j) * 4;
            int64_t q_pitch = pitch * (int64_t)sizeof(float);
            int64_t s_pitch = KEYS * 4 * (int64_t)sizeof(float);
            if (alone)
                dot_chains4(q, q_pitch, key, w->key_pitch, w->k_width, s, s_pitch);
            else
                dot_panels4(q, q_pitch, key, w->key_pitch, w->k_width, s, s_pitch);
        }
    for (int64_t j = begin / 8 * 8; g < to && j < end; j += 8) {
        const char *key = w->key + j * w->key_pitch;
        const char *later = w->hint_key ? w->hint_key + j * w->hint_key_pitch : key;
        if (!w->copied && w->value_pitch <= 2 * NEON_LINE) /* each column tile is read by itself */
            fetch_near(w->value + j * w->value_pitch, 8 * w->value_pitch);
        for (int64_t i = g; i < to; i++, later = key)
            dot8(w->q + i * pitch, key, w->key_pitch, w->k_width, w->p + (i * KEYS + j) * 4, later);
    }
}

/* For n_q queries from i on, where they are panels of their own. */
NEON_INLINE void query_adds_of(const attend_work *w, int64_t begin, int64_t end, int64_t i,
                               dtype type, int n_q)
{
    const float *p = w->p + i / w->lanes * KEYS * w->lanes + i % w->lanes + begin * w->lanes;
    const char *value = w->value + begin * w->value_pitch;
    float *sum = w->sum + i * w->size.v;
    int64_t col = 0, each = type == DT_F32 ? 4 : 2;
    int64_t stored = w->hint_value_pitch / w->k->cell->v;
#define ADDS(n)                                                                                    \
    for (; col + (n) <= w->v_width; col += (n)) {                                                  \
        const char *at = value + col * each;                                                       \
        const char *later = w->hint_value ? w->hint_value + col * KEYS * stored : at;              \
        add_tile_slim(p, w->lanes, w->keep + i, at, w->value_pitch, type, end - begin, sum + col,  \
                      w->size.v, later, n_q, (n) / 4);                                             \
    }
    if (n_q == 1)
        ADDS(64)
    ADDS(32)
    ADDS(8)
#undef ADDS
}

NEON_INLINE void adds_of(const attend_work *w, int64_t begin, int64_t end, int64_t panel,
                         dtype type, add16_fn *add16)
{
    if (w->lanes == 1) {
        if (w->rows > 1 || w->queries == 1)
            query_adds_of(w, begin, end, panel, type, 1);
        else if (panel == 0) /* and the other, which sees the same */
            query_adds_of(w, begin, end, 0, type, 2);
        return;
    }
    static const float whole[4] = {1, 1, 1, 1};
    int64_t i = panel * 4, n = end - begin, col = 0, each = type == DT_F32 ? 4 : 2;
    int64_t stored = w->hint_value_pitch / w->k->cell->v;
    int64_t even = type == DT_F32 ? n : n / 2 * 2; /* what add16 takes */
    const float *p = w->p + (panel * KEYS + begin) * 4, *keep = w->keep + i;
    const char *value = w->value + begin * w->value_pitch;
    float *sum = w->sum + i * w->size.v;
    for (; even > 0 && col + 16 <= w->v_width; col += 16) {
        const char *at = value + col * each;
        const char *later = w->hint_value && panel == 0 ? w->hint_value + col * KEYS * stored : at;
        add16(p, keep, at, w->value_pitch, even, sum + col, w->size.v, later);
    }
    for (int64_t c = 0; even < n && c < col; c += 8) /* the last position of an odd number */
        add_tile8(p + even * 4, whole, value + even * w->value_pitch + c * each, w->value_pitch,
                  type, 1, sum + c, w->size.v);
    for (; col < w->v_width; col += 8)
        add_tile8(p, keep, value + col * each, w->value_pitch, type, n, sum + col, w->size.v);
}

#define PRODUCTS(type)                                                                             \
    static void dots_##type(const attend_work *w, int64_t begin, int64_t end, int64_t from,        \
                            int64_t to)                                                            \
    {                                                                                              \
        dots_of(w, begin, end, from, to, DT_##type, dot8_##type);                                  \
    }                                                                                              \
    static void adds_##type(const attend_work *w, int64_t begin, int64_t end, int64_t panel)       \
    {                                                                                              \
        adds_of(w, begin, end, panel, DT_##type, add16_##type);                                    \
    }                                                                                              \
    static void query_adds_##type(const attend_work *w, int64_t begin, int64_t end, int64_t i)     \
    {                                                                                              \
        query_adds_of(w, begin, end, i, DT_##type, 1);                                             \
    }
PRODUCTS(F32)
PRODUCTS(F16)
PRODUCTS(BF16)

typedef void adds_fn(const attend_work *w, int64_t begin, int64_t end, int64_t panel);
typedef void dots_fn(const attend_work *w, int64_t begin, int64_t end, int64_t from, int64_t to);
#define BY_TYPE(name)                                                                              \
    {                                                                                              \
        [DT_F32] = name##_F32, [DT_F16] = name##_F16, [DT_BF16] = name##_BF16                      \
    }
static dots_fn *const dots[DT_COUNT] = BY_TYPE(dots);
static adds_fn *const adds[DT_COUNT] = BY_TYPE(adds);
static adds_fn *const query_adds_by_type[DT_COUNT] = BY_TYPE(query_adds);

static void panel_dots(const attend_work *w, int64_t begin, int64_t end, int64_t from, int64_t to)
{
    dots[w->type](w, begin, end, from, to);
}

static void panel_adds(const attend_work *w, int64_t begin, int64_t end, int64_t panel)
{
    adds[w->type](w, begin, end, panel);
}

static void query_adds(const attend_work *w, int64_t begin, int64_t end, int64_t i)
{
    if (begin < end)
        query_adds_by_type[w->type](w, begin, end, i);
}

/* ---- softmax ---- */

/* Which of the four logits at `i` of a panel are seen: its keys and lanes run side by side. */
NEON_INLINE uint32x4_t seen4(int64_t i, int lanes, int32x4_t begin, int32x4_t end)
{
    static const int32_t steps[4] = {0, 1, 2, 3};
    int32x4_t at = lanes == 1 ? vaddq_s32(vdupq_n_s32((int32_t)i), vld1q_s32(steps))
                              : vdupq_n_s32((int32_t)(i / 4));
    return vandq_u32(vcgeq_s32(at, begin), vcltq_s32(at, end));
}

/* Logits that are not seen become NOT_SEEN. What no lane sees was computed from keys that nobody wrote, or not at all: it is
 * stored over without being read. */
NEON_INLINE void unseen_put(const attend_work *w, float *p, int64_t at, int lanes)
{
    const float32x4_t none = vdupq_n_f32(NOT_SEEN);
    const int32_t *begin = w->begin + at, *end = w->end + at;
    if (lanes == 1) {
        for (int64_t i = 0; i < begin[0]; i++)
            p[i] = NOT_SEEN;
        for (int64_t i = end[0]; i < KEYS; i++)
            p[i] = NOT_SEEN;
        return;
    }
    int32x4_t begins = vld1q_s32(begin), ends = vld1q_s32(end);
    uint32x4_t any = vcltq_s32(begins, ends); /* lanes that see something */
    int64_t from = vminvq_s32(vbslq_s32(any, begins, vdupq_n_s32(KEYS)));
    int64_t to = vmaxvq_s32(vbslq_s32(any, ends, vdupq_n_s32(0))), i = 0;
    for (; i < from; i++)
        vst1q_f32(p + 4 * i, none);
    for (; i < to; i++)
        vst1q_f32(p + 4 * i, vbslq_f32(seen4(4 * i, 4, begins, ends), vld1q_f32(p + 4 * i), none));
    for (; i < KEYS; i++)
        vst1q_f32(p + 4 * i, none);
}

/* Four chains of vectors, whose lanes are four keys or four queries: sums run over positions that are equal modulo 4
 * either way, and end in the same order. */
NEON_INLINE void weigh_of(attend_work *w, int64_t panel, bool some, int lanes)
{
    int64_t at = panel * lanes, n = KEYS * lanes;
    float *p = w->p + panel * n;
    int32x4_t begin = lanes == 1 ? vld1q_dup_s32(w->begin + at) : vld1q_s32(w->begin + at);
    int32x4_t end = lanes == 1 ? vld1q_dup_s32(w->end + at) : vld1q_s32(w->end + at);
    if (some)
        unseen_put(w, p, at, lanes);
    float32x4_t old = lanes == 1 ? vld1q_dup_f32(w->max + at) : vld1q_f32(w->max + at);
    float32x4_t most[4] = {old, old, old, old}; /* a NaN is the largest */
    for (int64_t i = 0; i < n; i += 16)
        for (int l = 0; l < 4; l++)
            most[l] = vmaxq_f32(most[l], vld1q_f32(p + i + 4 * l));
    float32x4_t max = vmaxq_f32(vmaxq_f32(most[0], most[1]), vmaxq_f32(most[2], most[3]));
    if (lanes == 1)
        max = vdupq_n_f32(vmaxvq_f32(max));
    float32x4_t sum[4] = {vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0)};
    for (int64_t i = 0; i < n; i += 16)
        for (int l = 0; l < 4; l++) {
            float32x4_t e = neon_exp2_below(vsubq_f32(vld1q_f32(p + i + 4 * l), max));
            if (some)
                e = vreinterpretq_f32_u32(
                    vandq_u32(vreinterpretq_u32_f32(e), seen4(i + 4 * l, lanes, begin, end)));
            vst1q_f32(p + i + 4 * l, e);
            int chain = lanes == 1 ? 0 : l;
            sum[chain] = vaddq_f32(sum[chain], e);
        }
    float32x4_t keep = neon_exp2_below(vsubq_f32(old, max)), all;
    if (lanes == 1) {
        float32x4_t half = vaddq_f32(sum[0], vextq_f32(sum[0], sum[0], 2));
        all = vaddq_f32(half, vextq_f32(half, half, 1));
        w->keep[at] = vgetq_lane_f32(keep, 0);
        w->max[at] = vgetq_lane_f32(max, 0);
        w->total[at] = vgetq_lane_f32(vfmaq_n_f32(all, keep, w->total[at]), 0);
    } else {
        all = vaddq_f32(vaddq_f32(sum[0], sum[2]), vaddq_f32(sum[1], sum[3]));
        vst1q_f32(w->keep + at, keep);
        vst1q_f32(w->max + at, max);
        vst1q_f32(w->total + at, vfmaq_f32(all, keep, vld1q_f32(w->total + at)));
    }
}

static void panel_weigh(attend_work *w, int64_t panel, bool some)
{
    if (w->lanes == 1 && some)
        weigh_of(w, panel, true, 1);
    else if (w->lanes == 1)
        weigh_of(w, panel, false, 1);
    else if (some)
        weigh_of(w, panel, true, 4);
    else
        weigh_of(w, panel, false, 4);
}

void ATTEND_NAME(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    attend_units(neon_wants, k, t, begin, end);
}
