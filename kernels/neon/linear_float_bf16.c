/* linear_float_bf16.c - BF16 rows as stored times activations that are split into three bf16 each (act.h), so
 * that instructions for bf16 give sums of f32's kind: every bit of an activation counts.
 *
 * One row: bfdot, three times a vector of weights, on three weight rows at a time that are far apart
 * (linear_float_stream.h): 59 GB/s of 78 (with two parts 75, bound by memory). With one row of weights at a time loads bound it, of which a core does
 * 2.4 a cycle (Neoverse-V1).
 *
 * A few rows: bfmmla multiplies four columns of two weight rows with the firsts and seconds of four columns of
 * one row, and once more with the thirds. A tile is 8 weight rows by 4 rows: 16 accumulators, 12 loads and 32 bfmmla
 * for four columns. Up to four rows the weights are woven in registers on their way, else into a panel of
 * 16 rows by 1024 columns that stays in the first cache while all activations pass. Many rows are left to
 * linear_float_neon.c: 46 GFLOP/s of a core against 41 here, with two parts 107, with activations rounded to one bf16
 * (wrong by 1e-3) some 200. */
#include "kernels/kernel_decls.h"

#include <string.h>
#include "kernels/neon/linear_float_panel.h"
#include "kernels/neon/linear_float_stream.h"
#include "kernels/neon/neon.h"

enum {
    QUAD = 4,                           /* rows of activations in a tile */
    GROUP = 8,                          /* rows of weights in a tile */
    STEP_ELEMS = GROUP * 4,             /* of a panel: four columns of each row */
    COLS = PANEL_BYTES / 2 / 2 / GROUP, /* of a panel with two groups */
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

/* ---- one row ---- */

/* n_w rows of weights times one row; ahead[j] is what will be read some rows later. */
static inline __attribute__((always_inline)) void dots(const uint8_t *const *w,
                                                       const uint8_t *const *ahead,
                                                       const uint8_t *x, int64_t n, float *out,
                                                       int n_w)
{
    float32x4_t s[NEON_STREAMS][6];
    for (int j = 0; j < n_w; j++)
        for (int i = 0; i < 6; i++)
            s[j][i] = vdupq_n_f32(0);
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) {
        for (int j = 0; j < n_w; j++)
            neon_hint_here(ahead[j] + i * 2);
        for (int u = 0; u < 4; u++) {
            const uint8_t *at = x + i * 6 + u * 48;
            bfloat16x8_t first = load(at), second = load(at + 16), third = load(at + 32);
            for (int j = 0; j < n_w; j++) {
                bfloat16x8_t v = load(w[j] + i * 2 + u * 16);
                s[j][u % 2] = vbfdotq_f32(s[j][u % 2], v, first);
                s[j][2 + u % 2] = vbfdotq_f32(s[j][2 + u % 2], v, second);
                s[j][4 + u % 2] = vbfdotq_f32(s[j][4 + u % 2], v, third);
            }
        }
    }
    for (; i < n; i += 8)
        for (int j = 0; j < n_w; j++) {
            bfloat16x8_t v = load_some(w[j] + i * 2, n - i);
            s[j][0] = vbfdotq_f32(s[j][0], v, load(x + i * 6));
            s[j][2] = vbfdotq_f32(s[j][2], v, load(x + i * 6 + 16));
            s[j][4] = vbfdotq_f32(s[j][4], v, load(x + i * 6 + 32));
        }
    for (int j = 0; j < n_w; j++)
        out[j] = vaddvq_f32(
            vaddq_f32(vaddq_f32(s[j][0], s[j][1]),
                      vaddq_f32(vaddq_f32(s[j][2], s[j][3]), vaddq_f32(s[j][4], s[j][5]))));
}

static void dots_one(const uint8_t *const *w, const uint8_t *const *ahead, const void *x, int64_t n,
                     float *out)
{
    dots(w, ahead, x, n, out, 1);
}

static void dots_streams(const uint8_t *const *w, const uint8_t *const *ahead, const void *x,
                         int64_t n, float *out)
{
    dots(w, ahead, x, n, out, NEON_STREAMS);
}

void k_linear_BF16_ONE_bf16(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    (void)t;
    neon_linear_streams(k, begin, end, dots_one, dots_streams);
}

/* ---- more rows ---- */

/* Columns of two weight rows, four of each: [a 0-3, b 0-3] and [a 4-7, b 4-7]. */
static inline bfloat16x8_t weave_low(bfloat16x8_t a, bfloat16x8_t b)
{
    return vreinterpretq_bf16_u64(vzip1q_u64(vreinterpretq_u64_bf16(a), vreinterpretq_u64_bf16(b)));
}
static inline bfloat16x8_t weave_high(bfloat16x8_t a, bfloat16x8_t b)
{
    return vreinterpretq_bf16_u64(vzip2q_u64(vreinterpretq_u64_bf16(a), vreinterpretq_u64_bf16(b)));
}

/* A tile's sums: those of rows 2p, 2p + 1 of the weights, each with the firsts and the rests of row r. */
typedef float32x4_t tile_sums[QUAD][GROUP / 2];

static inline void step(tile_sums s, const bfloat16x8_t *w, const uint8_t *const *x, int64_t at,
                        int n_x)
{
    for (int r = 0; r < n_x; r++) {
        bfloat16x8_t a = load(x[r] + at);
        for (int p = 0; p < GROUP / 2; p++)
            s[r][p] = vbfmmlaq_f32(s[r][p], w[p], a);
    }
    for (int r = 0; r < n_x; r++) {
        bfloat16x8_t a = load(x[r] + at + 16);
        for (int p = 0; p < GROUP / 2; p++)
            s[r][p] = vbfmmlaq_f32(s[r][p], w[p], a);
    }
}

static inline void clear(tile_sums s)
{
    for (int r = 0; r < QUAD; r++)
        for (int p = 0; p < GROUP / 2; p++)
            s[r][p] = vdupq_n_f32(0);
}

/* Where the results of a tile go: `cols` columns from `col` on. */
typedef struct {
    const kargs *k;
    int64_t row, col, cols;
    bool first, last; /* of the panels that a row of weights is cut into */
} place;

static inline void tile_store(tile_sums s, const place *to, int n_x)
{
    const float *bias = to->last ? to->k->in[2] : NULL; /* [m] or NULL */
    for (int r = 0; r < n_x; r++) {
        float sum[GROUP];
        float *out =
            (float *)((char *)to->k->out[0] + (to->row + r) * to->k->out_pitch[0]) + to->col;
        vst1q_f32(sum, vpaddq_f32(s[r][0], s[r][1]));
        vst1q_f32(sum + 4, vpaddq_f32(s[r][2], s[r][3]));
        for (int64_t i = 0; i < to->cols; i++) {
            float all = to->first ? sum[i] : out[i] + sum[i];
            out[i] = bias ? all + bias[to->col + i] : all;
        }
    }
}

/* Eight columns of eight rows of weights times those of up to four rows. */
static inline __attribute__((always_inline)) void
direct_step(tile_sums s, const bfloat16x8_t *v, const uint8_t *const *x, int64_t i, int n_x)
{
    bfloat16x8_t even[GROUP / 2], odd[GROUP / 2];
    for (int p = 0; p < GROUP / 2; p++) {
        even[p] = weave_low(v[2 * p], v[2 * p + 1]);
        odd[p] = weave_high(v[2 * p], v[2 * p + 1]);
    }
    step(s, even, x, i * 8, n_x);
    step(s, odd, x, i * 8 + 32, n_x);
}

/* All columns of them, as stored. */
static inline __attribute__((always_inline)) void
direct(const uint8_t *const *w, const uint8_t *const *x, int64_t n, const place *to, int n_x)
{
    tile_sums s;
    bfloat16x8_t v[GROUP];
    int64_t i = 0;
    clear(s);
    for (; i + 8 <= n; i += 8) {
        for (int r = 0; r < GROUP; r++)
            v[r] = load(w[r] + i * 2);
        neon_hint_here(w[i / 8 % 8] + i * 2 + NEON_AHEAD);
        direct_step(s, v, x, i, n_x);
    }
    if (i < n) {
        for (int r = 0; r < GROUP; r++)
            v[r] = load_some(w[r] + i * 2, n - i);
        direct_step(s, v, x, i, n_x);
    }
    tile_store(s, to, n_x);
}

/* A panel of eight rows times four. */
static inline __attribute__((always_inline)) void
panel_tile(const uint16_t *w, const uint8_t *const *x, int64_t n, const place *to, int n_x)
{
    tile_sums s;
    clear(s);
    for (int64_t i = 0; i < (n + 7) / 8 * 2; i++) {
        const bfloat16x8_t v[GROUP / 2] = {load(w), load(w + 8), load(w + 16), load(w + 24)};
        step(s, v, x, i * 32, n_x);
        w += STEP_ELEMS;
    }
    tile_store(s, to, n_x);
}

/* Constant numbers of rows, so that sums stay in registers. */
#define TILES(n_x)                                                                                 \
    static void direct_##n_x(const uint8_t *const *w, const uint8_t *const *x, int64_t n,          \
                             const place *to)                                                      \
    {                                                                                              \
        direct(w, x, n, to, n_x);                                                                  \
    }                                                                                              \
    static void panel_##n_x(const uint16_t *w, const uint8_t *const *x, int64_t n,                 \
                            const place *to)                                                       \
    {                                                                                              \
        panel_tile(w, x, n, to, n_x);                                                              \
    }
TILES(1)
TILES(2)
TILES(3)
TILES(4)

typedef void direct_fn(const uint8_t *const *w, const uint8_t *const *x, int64_t n,
                       const place *to);
typedef void panel_fn(const uint16_t *w, const uint8_t *const *x, int64_t n, const place *to);
static direct_fn *const directs[] = {direct_1, direct_2, direct_3, direct_4};
static panel_fn *const panels[] = {panel_1, panel_2, panel_3, panel_4};

static inline void panel_put(bfloat16x8_t a, bfloat16x8_t b, uint16_t *to)
{
    vst1q_u16(to, vreinterpretq_u16_bf16(weave_low(a, b)));
    vst1q_u16(to + STEP_ELEMS, vreinterpretq_u16_bf16(weave_high(a, b)));
}

/* Columns [at, at + n) of eight rows, filled up with zeros to a multiple of 8. */
static void panel_fill(const uint8_t *const *w, int64_t at, int64_t n, uint16_t *to)
{
    for (int p = 0; p < GROUP / 2; p++, to += 8) {
        const uint8_t *a = w[2 * p] + at * 2, *b = w[2 * p + 1] + at * 2;
        uint16_t *put = to;
        int64_t i = 0;
        for (; i + 32 <= n; i += 32, a += 64, b += 64, put += 8 * STEP_ELEMS) {
            neon_hint_here(a + NEON_AHEAD);
            neon_hint_here(b + NEON_AHEAD);
            for (int u = 0; u < 4; u++)
                panel_put(load(a + u * 16), load(b + u * 16), put + u * 2 * STEP_ELEMS);
        }
        for (; i < n; i += 8, a += 16, b += 16, put += 2 * STEP_ELEMS)
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

static int quad_rows(const kargs *k, int64_t row, int64_t row_end, int64_t at, const uint8_t **x)
{
    int n_x = row_end - row < QUAD ? (int)(row_end - row) : QUAD;
    for (int i = 0; i < n_x; i++)
        x[i] = (const uint8_t *)k->in[0] + (row + i) * k->pitch[0] + at * 8;
    return n_x;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void by_register(const kargs *k, const kpart *part)
{
    const uint8_t *w[GROUP], *x[QUAD];
    int n_x = quad_rows(k, part->row, part->row_end, 0, x);
    for (int64_t col = part->col; col < part->col_end; col += GROUP) {
        place to = {k, part->row, col, smaller(part->col_end - col, GROUP), true, true};
        group_rows(k, col, part->col_end, w);
        directs[n_x - 1](w, x, k->n[2], &to);
    }
}

/* One panel: columns [at, at + n) of two groups of rows, or of one. */
static void panel_run(const kargs *k, const kpart *part, int64_t col, int64_t at, int64_t n,
                      uint16_t *mem)
{
    int64_t groups = part->col_end - col > GROUP ? 2 : 1;
    for (int64_t g = 0; g < groups; g++) {
        const uint8_t *w[GROUP];
        group_rows(k, col + g * GROUP, part->col_end, w);
        panel_fill(w, at, n, mem + g * GROUP * COLS);
    }
    for (int64_t row = part->row; row < part->row_end; row += QUAD) {
        const uint8_t *x[QUAD];
        int n_x = quad_rows(k, row, part->row_end, at, x);
        for (int64_t g = 0; g < groups; g++) {
            int64_t from = col + g * GROUP;
            place to = {
                k, row, from, smaller(part->col_end - from, GROUP), at == 0, at + n == k->n[2]};
            panels[n_x - 1](mem + g * GROUP * COLS, x, n, &to);
        }
    }
}

static void by_panel(const kargs *k, const kpart *part, uint16_t *mem)
{
    for (int64_t col = part->col; col < part->col_end; col += 2 * GROUP)
        for (int64_t at = 0; at < k->n[2]; at += COLS)
            panel_run(k, part, col, at, smaller(k->n[2] - at, COLS), mem);
}

void k_linear_BF16_FEW_bf16(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    kpart part = kpart_of(k, k->n[1], begin, end);
    if (k->n[0] <= QUAD) /* whatever the part, so that its bits are those of the whole */
        by_register(k, &part);
    else
        by_panel(k, &part, t->scratch);
}
