/* linear_float_bf16.c - BF16 rows as stored times several rows of activations, with bfmmla: activations split into three
 * bf16 each, so that every bit of them counts, or rounded to one. Four rows of them are woven (act.h), so that a vector
 * holds four columns of two rows; weights are woven alike, on their way.
 *
 * A tile is 8 weight rows by up to 8 rows: 16 accumulators, for four columns 4 loads of weights, and for each part of the
 * activations 4 loads and 16 products. Up to eight rows weights are woven in registers; more rows take them
 * from a panel of 16 weight rows that stays in the first cache with 8 rows of activations, while the panel's
 * columns of all activations stay in the second. On two Neoverse-V1 cores, 256 rows, of a peak of 0.666 TFLOP/s:
 * PLACEHOLDER */
#include "kernels/kernel_decls.h"

#include <string.h>
#include "kernels/neon/linear_float_panel.h"
#include "kernels/neon/linear_float_stream.h"
#include "kernels/neon/neon.h"

enum {
    GROUP = 8,                                /* rows of weights in a tile */
    TILE_PAIRS = 4,                           /* of rows of activations */
    TILE_ROWS = 8,                            /* those rows */
    STEP_BYTES = GROUP * 4 * 2,               /* of a panel: four columns of each row */
    PANEL_COLS = PANEL_BYTES / 2 / GROUP / 2, /* at most: of two groups */
};

static inline bfloat16x8_t load(const void *p)
{
    return vreinterpretq_bf16_u8(vld1q_u8(p));
}

/* The first n of a vector where it has fewer than 8, then zeros. */
static inline bfloat16x8_t load_some(const void *p, int64_t n)
{
    uint16_t some[8] = {0};
    if (n >= 8)
        return load(p);
    memcpy(some, p, (size_t)n * sizeof *some);
    return load(some);
}

/* Columns of two weight rows, four of each: [a 0-3, b 0-3] and [a 4-7, b 4-7]. */
static inline bfloat16x8_t weave_low(bfloat16x8_t a, bfloat16x8_t b)
{
    return vreinterpretq_bf16_u64(vzip1q_u64(vreinterpretq_u64_bf16(a), vreinterpretq_u64_bf16(b)));
}
static inline bfloat16x8_t weave_high(bfloat16x8_t a, bfloat16x8_t b)
{
    return vreinterpretq_bf16_u64(vzip2q_u64(vreinterpretq_u64_bf16(a), vreinterpretq_u64_bf16(b)));
}

/* ---- tiles ---- */

/* Sums of two weight rows with two rows of activations: w0 x0, w0 x1, w1 x0, w1 x1. */
typedef float32x4_t tile_sums[TILE_PAIRS][GROUP / 2];

NEON_INLINE void clear(tile_sums s, int pairs)
{
    for (int q = 0; q < pairs; q++)
        for (int p = 0; p < GROUP / 2; p++)
            s[q][p] = vdupq_n_f32(0);
}

/* Four columns of one part, which x[i] has at `at` for rows 4 i and up. All sums have their turn before one has its
 * next. */
NEON_INLINE void step(tile_sums s, const bfloat16x8_t *w, const uint8_t *const *x, int64_t at,
                      int pairs)
{
    for (int q = 0; q < pairs; q++) {
        bfloat16x8_t a = load(x[q / 2] + at + q % 2 * 16);
        for (int r = 0; r < GROUP / 2; r++)
            s[q][r] = vbfmmlaq_f32(s[q][r], w[r], a);
    }
}

/* Where the results of a tile go: its rows are `row` and up, of which those of the part are asked for; `cols` columns
 * from `col` on. */
typedef struct {
    const kargs *k;
    const kpart *part;
    int64_t row, col, cols;
    bool first, last; /* of the panels that a row of weights is cut into */
} place;

static inline void put_row(const place *to, int64_t row, float32x4_t low, float32x4_t high)
{
    const float *bias = to->last ? to->k->in[2] : NULL; /* [m] or NULL */
    if (row < to->part->row || row >= to->part->row_end)
        return;
    float *out = (float *)((char *)to->k->out[0] + row * to->k->out_pitch[0]) + to->col;
    if (to->cols == GROUP) {
        if (!to->first) {
            low = vaddq_f32(vld1q_f32(out), low);
            high = vaddq_f32(vld1q_f32(out + 4), high);
        }
        neon_store8(out, bias ? bias + to->col : NULL, (float32x4_t[2]){low, high});
        return;
    }
    float sum[GROUP];
    vst1q_f32(sum, low);
    vst1q_f32(sum + 4, high);
    for (int64_t i = 0; i < to->cols; i++) {
        float all = to->first ? sum[i] : out[i] + sum[i];
        out[i] = bias ? all + bias[to->col + i] : all;
    }
}

NEON_INLINE void tile_store(tile_sums s, const place *to, int pairs)
{
    for (int q = 0; q < pairs; q++) {
        int64_t row = to->row + 2 * q;
        put_row(to, row, vuzp1q_f32(s[q][0], s[q][1]), vuzp1q_f32(s[q][2], s[q][3]));
        put_row(to, row + 1, vuzp2q_f32(s[q][0], s[q][1]), vuzp2q_f32(s[q][2], s[q][3]));
    }
}

/* n columns, a multiple of 8, of a panel of eight rows. */
NEON_INLINE void panel_tile(const uint8_t *w, const uint8_t *const *x, int64_t n, const place *to,
                            int parts, int pairs)
{
    tile_sums s;
    clear(s, pairs);
    for (int64_t i = 0; i < n / 4; i++, w += STEP_BYTES)
        for (int p = 0; p < parts; p++) {
            __asm__("" : "+r"(w)); /* so that they are loaded anew for each part */
            const bfloat16x8_t v[GROUP / 2] = {load(w), load(w + 16), load(w + 32), load(w + 48)};
            step(s, v, x, (i * parts + p) * 32, pairs);
        }
    tile_store(s, to, pairs);
}

/* Eight columns of eight weight rows, woven here. Few sums are not kept waiting: odd steps have their own. */
NEON_INLINE void direct_step(tile_sums even, tile_sums odd, const bfloat16x8_t *v,
                             const uint8_t *const *x, int64_t i, int parts, int pairs)
{
    bfloat16x8_t low[GROUP / 2], high[GROUP / 2];
    for (int p = 0; p < GROUP / 2; p++) {
        low[p] = weave_low(v[2 * p], v[2 * p + 1]);
        high[p] = weave_high(v[2 * p], v[2 * p + 1]);
    }
    for (int p = 0; p < parts; p++)
        step(even, low, x, (i / 4 * parts + p) * 32, pairs);
    for (int p = 0; p < parts; p++)
        step(odd, high, x, (i / 4 * parts + parts + p) * 32, pairs);
}

/* All columns of eight rows as stored, which lie one after the other: hints follow them in a line. */
NEON_INLINE void direct(const uint8_t *const *w, const uint8_t *const *x, int64_t n,
                        const place *to, int parts, int pairs)
{
    tile_sums even, odd;
    float32x4_t(*second)[GROUP / 2] = pairs > 2 ? even : odd;
    const uint8_t *ahead = w[0] + NEON_AHEAD;
    bfloat16x8_t v[GROUP];
    int64_t i = 0;
    clear(even, pairs);
    clear(odd, pairs);
    for (; i + 8 <= n; i += 8, ahead += 2 * NEON_LINE) {
        neon_hint_here(ahead);
        neon_hint_here(ahead + NEON_LINE);
        for (int r = 0; r < GROUP; r++)
            v[r] = load(w[r] + i * 2);
        direct_step(even, second, v, x, i, parts, pairs);
    }
    if (i < n) {
        for (int r = 0; r < GROUP; r++)
            v[r] = load_some(w[r] + i * 2, n - i);
        direct_step(even, second, v, x, i, parts, pairs);
    }
    for (int q = 0; q < pairs && second == odd; q++)
        for (int p = 0; p < GROUP / 2; p++)
            even[q][p] = vaddq_f32(even[q][p], odd[q][p]);
    tile_store(even, to, pairs);
}

/* Constant numbers of rows and parts, so that sums stay in registers. */
#define TILES(parts, pairs)                                                                        \
    static void direct_##parts##_##pairs(const uint8_t *const *w, const uint8_t *const *x,         \
                                         int64_t n, const place *to)                               \
    {                                                                                              \
        direct(w, x, n, to, parts, pairs);                                                         \
    }                                                                                              \
    static void panel_##parts##_##pairs(const uint8_t *w, const uint8_t *const *x, int64_t n,      \
                                        const place *to)                                           \
    {                                                                                              \
        panel_tile(w, x, n, to, parts, pairs);                                                     \
    }
TILES(1, 1)
TILES(1, 2)
TILES(1, 3)
TILES(1, 4)
TILES(3, 1)
TILES(3, 2)
TILES(3, 3)
TILES(3, 4)

typedef void direct_fn(const uint8_t *const *w, const uint8_t *const *x, int64_t n,
                       const place *to);
typedef void panel_fn(const uint8_t *w, const uint8_t *const *x, int64_t n, const place *to);

/* What differs by the number of parts. A panel's columns leave half of the first cache to eight rows of activations. */
typedef struct {
    int parts;
    int64_t cols; /* of a panel */
    direct_fn *direct[TILE_PAIRS];
    panel_fn *panel[TILE_PAIRS];
} form;

static const form rounded = {1,
                             PANEL_COLS,
                             {direct_1_1, direct_1_2, direct_1_3, direct_1_4},
                             {panel_1_1, panel_1_2, panel_1_3, panel_1_4}};
static const form exact = {3,
                           PANEL_COLS / 2,
                           {direct_3_1, direct_3_2, direct_3_3, direct_3_4},
                           {panel_3_1, panel_3_2, panel_3_3, panel_3_4}};

/* ---- panels ---- */

static inline void panel_put(bfloat16x8_t a, bfloat16x8_t b, uint8_t *to)
{
    vst1q_u8(to, vreinterpretq_u8_bf16(weave_low(a, b)));
    vst1q_u8(to + STEP_BYTES, vreinterpretq_u8_bf16(weave_high(a, b)));
}

/* n columns of eight rows, filled up with zeros to a multiple of 8. What comes next lies `far` bytes further on. */
static void panel_fill(const uint8_t *const *w, int64_t at, int64_t n, int64_t far, uint8_t *to)
{
    for (int p = 0; p < GROUP / 2; p++, to += 16) {
        const uint8_t *a = w[2 * p] + at * 2, *b = w[2 * p + 1] + at * 2;
        uint8_t *put = to;
        int64_t i = 0;
        for (; i + 32 <= n; i += 32, a += 64, b += 64, put += 8 * STEP_BYTES) {
            neon_hint_here(a + far);
            neon_hint_here(b + far);
            for (int u = 0; u < 4; u++)
                panel_put(load(a + u * 16), load(b + u * 16), put + u * 2 * STEP_BYTES);
        }
        for (; i < n; i += 8, a += 16, b += 16, put += 2 * STEP_BYTES)
            panel_put(load_some(a, n - i), load_some(b, n - i), put);
    }
}

/* The rows of a group; what a last one lacks is its last row again, whose results are not stored. */
static void group_rows(const kargs *k, int64_t col, int64_t col_end, const uint8_t **w)
{
    for (int64_t i = 0; i < GROUP; i++) {
        int64_t row = col + i < col_end ? col + i : col_end - 1;
        w[i] = (const uint8_t *)k->in[1] + row * k->pitch[1];
    }
}

/* Column `at` of up to eight rows; returns how many pairs. */
static int tile_rows(const kargs *k, const form *f, int64_t row, int64_t row_end, int64_t at,
                     const uint8_t **x)
{
    int64_t n = row_end - row < TILE_ROWS ? row_end - row : TILE_ROWS;
    for (int64_t i = 0; i < n; i += 4)
        x[i / 4] = (const uint8_t *)k->in[0] + (row + i) * k->pitch[0] + at * 8 * f->parts;
    return (int)(n + 1) / 2;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void by_register(const kargs *k, const kpart *part, const form *f)
{
    const uint8_t *w[GROUP], *x[TILE_ROWS / 4];
    int pairs = tile_rows(k, f, 0, k->n[0], 0, x); /* whatever the part, for the same bits */
    for (int64_t col = part->col; col < part->col_end; col += GROUP) {
        place to = {k, part, 0, col, smaller(part->col_end - col, GROUP), true, true};
        group_rows(k, col, part->col_end, w);
        f->direct[pairs - 1](w, x, k->n[2], &to);
    }
}

/* One panel: columns [at, at + n) of two groups of rows, or of one. */
static void panel_run(const kargs *k, const kpart *part, const form *f, int64_t col, int64_t at,
                      int64_t n, uint8_t *mem)
{
    int64_t groups = part->col_end - col > GROUP ? 2 : 1, whole = (n + 7) / 8 * 8;
    for (int64_t g = 0; g < groups; g++) {
        const uint8_t *w[GROUP];
        group_rows(k, col + g * GROUP, part->col_end, w);
        panel_fill(w, at, n, 2 * GROUP * k->pitch[1], mem + g * GROUP * PANEL_COLS * 2);
    }
    for (int64_t row = part->row / 4 * 4; row < part->row_end; row += TILE_ROWS) {
        const uint8_t *x[TILE_ROWS / 4];
        int pairs = tile_rows(k, f, row, part->row_end, at, x);
        for (int64_t g = 0; g < groups; g++) {
            int64_t from = col + g * GROUP;
            int64_t cols = smaller(part->col_end - from, GROUP);
            place to = {k, part, row, from, cols, at == 0, at + n == k->n[2]};
            f->panel[pairs - 1](mem + g * GROUP * PANEL_COLS * 2, x, whole, &to);
        }
    }
}

static void by_panel(const kargs *k, const kpart *part, const form *f, uint8_t *mem)
{
    for (int64_t at = 0; at < k->n[2]; at += f->cols)
        for (int64_t col = part->col; col < part->col_end; col += 2 * GROUP)
            panel_run(k, part, f, col, at, smaller(k->n[2] - at, f->cols), mem);
}

/* ---- the kernels ---- */

static void linear(const kargs *k, const kthread *t, int64_t begin, int64_t end, const form *f)
{
    kpart part = kpart_of(k, k->n[1], begin, end);
    if (k->n[0] <= TILE_ROWS)
        by_register(k, &part, f);
    else
        by_panel(k, &part, f, t->scratch);
}

void k_linear_BF16_FEW_bf16(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    linear(k, t, begin, end, &exact);
}

void k_linear_BF16_MANY_bf16(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    linear(k, t, begin, end, &exact);
}

void k_linear_BF16_FEW_neon_bf16(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    linear(k, t, begin, end, &rounded);
}

void k_linear_BF16_MANY_neon_bf16(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    linear(k, t, begin, end, &rounded);
}
