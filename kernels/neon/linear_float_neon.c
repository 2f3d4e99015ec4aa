/* linear_float_neon.c - rows of F32, F16 and BF16 as stored times f32, with fused products alone.
 *
 * One row: three streams of weights (linear_float_stream.h), eight columns of each at a time. F32 is bound by memory.
 * F16 is bound by its conversion, of which a core does four numbers a cycle: half of the bandwidth (linear_float_fhm.c
 * does better).
 *
 * More rows: eight weight rows by 1024 columns become a panel of floats, four columns of it a transposed block, that
 * stays in the first cache while all activations pass. A tile is 8 weight rows by 8 rows: 16 accumulators, and 16
 * loads and 64 products for four columns. */
#include "kernels/kernel_decls.h"

#include <string.h>
#include "kernels/neon/rows8_size.h"
#include "kernels/neon/linear_float_stream.h"
#include "kernels/neon/neon.h"

enum {
    GROUP = 8,                            /* rows of weights in a panel */
    COLS = FLOAT_PANEL_BYTES / 4 / GROUP, /* columns */
    TILE_ROWS = 8,                        /* rows of activations in a tile */
};

NEON_INLINE int64_t bytes_of(dtype t)
{
    return t == DT_F32 ? 4 : 2;
}

/* Eight stored numbers at any byte. */
NEON_INLINE void load8(const uint8_t *p, dtype type, float32x4_t to[2])
{
    if (type == DT_F32) {
        to[0] = vreinterpretq_f32_u8(vld1q_u8(p));
        to[1] = vreinterpretq_f32_u8(vld1q_u8(p + 16));
    } else if (type == DT_F16) {
        float16x8_t h = vreinterpretq_f16_u8(vld1q_u8(p));
        to[0] = vcvt_f32_f16(vget_low_f16(h));
        to[1] = vcvt_high_f32_f16(h);
    } else {
        uint16x8_t h = vreinterpretq_u16_u8(vld1q_u8(p)), zero = vdupq_n_u16(0);
        to[0] = vreinterpretq_f32_u16(vzip1q_u16(zero, h));
        to[1] = vreinterpretq_f32_u16(vzip2q_u16(zero, h));
    }
}

/* n < 8 of them, then zeros. */
NEON_INLINE void load_some(const void *p, dtype type, int64_t n, float32x4_t to[2])
{
    uint8_t some[32] = {0};
    memcpy(some, p, (size_t)(n * bytes_of(type)));
    load8(some, type, to);
}

/* ---- one row ---- */

NEON_INLINE void dots(const uint8_t *const *w, const uint8_t *const *ahead, const float *x,
                      int64_t n, float *out, dtype type, int n_w)
{
    float32x4_t s[NEON_STREAMS][4];
    int64_t each = bytes_of(type), i = 0;
    for (int j = 0; j < n_w; j++)
        for (int u = 0; u < 4; u++)
            s[j][u] = vdupq_n_f32(0);
    for (; i + 32 <= n; i += 32) {
        for (int j = 0; j < n_w; j++) {
            neon_hint_here(ahead[j] + i * each);
            if (type == DT_F32)
                neon_hint_here(ahead[j] + i * each + NEON_LINE);
        }
        for (int u = 0; u < 4; u++) {
            float32x4_t y[2] = {vld1q_f32(x + i + u * 8), vld1q_f32(x + i + u * 8 + 4)};
            for (int j = 0; j < n_w; j++) {
                float32x4_t v[2];
                load8(w[j] + (i + u * 8) * each, type, v);
                s[j][u % 2 * 2] = vfmaq_f32(s[j][u % 2 * 2], v[0], y[0]);
                s[j][u % 2 * 2 + 1] = vfmaq_f32(s[j][u % 2 * 2 + 1], v[1], y[1]);
            }
        }
    }
    for (; i < n; i += 8)
        for (int j = 0; j < n_w; j++) {
            float32x4_t v[2], y[2];
            int64_t left = n - i < 8 ? n - i : 8;
            load_some(w[j] + i * each, type, left, v);
            load_some(x + i, DT_F32, left, y);
            s[j][0] = vfmaq_f32(s[j][0], v[0], y[0]);
            s[j][1] = vfmaq_f32(s[j][1], v[1], y[1]);
        }
    for (int j = 0; j < n_w; j++)
        out[j] = vaddvq_f32(vaddq_f32(vaddq_f32(s[j][0], s[j][2]), vaddq_f32(s[j][1], s[j][3])));
}

/* ---- more rows ---- */

/* Columns [at, at + n) of eight rows as floats, [n, 8], filled up with zeros to a multiple of 4 columns. */
NEON_INLINE void panel_fill(const uint8_t *const *w, int64_t at, int64_t n, float *to, dtype type)
{
    int64_t each = bytes_of(type);
    for (int64_t i = 0; i < n; i += 8, to += 8 * GROUP)
        for (int half = 0; half < GROUP; half += 4) {
            float32x4_t v[4][2];
            for (int r = 0; r < 4; r++) {
                const uint8_t *p = w[half + r] + (at + i) * each;
                if (i % 16 == 0)
                    neon_hint_here(p + NEON_AHEAD);
                if (n - i < 8)
                    load_some(p, type, n - i, v[r]);
                else
                    load8(p, type, v[r]);
            }
            for (int c = 0; c < 2; c++) { /* four columns of four rows, turned */
                float32x4_t a = vzip1q_f32(v[0][c], v[2][c]), b = vzip2q_f32(v[0][c], v[2][c]);
                float32x4_t d = vzip1q_f32(v[1][c], v[3][c]), e = vzip2q_f32(v[1][c], v[3][c]);
                float *put = to + c * 4 * GROUP + half;
                vst1q_f32(put, vzip1q_f32(a, d));
                vst1q_f32(put + GROUP, vzip2q_f32(a, d));
                vst1q_f32(put + 2 * GROUP, vzip1q_f32(b, e));
                vst1q_f32(put + 3 * GROUP, vzip2q_f32(b, e));
            }
        }
}

/* One of four columns. */
#define COLUMN(lane)                                                                               \
    {                                                                                              \
        float32x4_t low = vld1q_f32(w + lane * GROUP), high = vld1q_f32(w + lane * GROUP + 4);     \
        for (int r = 0; r < n_x; r++) {                                                            \
            s[r][0] = vfmaq_laneq_f32(s[r][0], low, y[r], lane);                                   \
            s[r][1] = vfmaq_laneq_f32(s[r][1], high, y[r], lane);                                  \
        }                                                                                          \
    }

/* n columns of a panel times n_x rows, x[r][at..]: sums of [n_x, 8]. */
NEON_INLINE void tile(const float *w, const float *const *x, int64_t n, float (*sum)[GROUP],
                      int n_x)
{
    float32x4_t s[TILE_ROWS][2], y[TILE_ROWS];
    for (int r = 0; r < n_x; r++)
        s[r][0] = s[r][1] = vdupq_n_f32(0);
    int64_t i = 0;
    for (; i + 4 <= n; i += 4, w += 4 * GROUP) {
        for (int r = 0; r < n_x; r++)
            y[r] = vld1q_f32(x[r] + i);
        COLUMN(0)
        COLUMN(1)
        COLUMN(2)
        COLUMN(3)
    }
    for (; i < n; i++, w += GROUP)
        for (int r = 0; r < n_x; r++) {
            s[r][0] = vfmaq_n_f32(s[r][0], vld1q_f32(w), x[r][i]);
            s[r][1] = vfmaq_n_f32(s[r][1], vld1q_f32(w + 4), x[r][i]);
        }
    for (int r = 0; r < n_x; r++) {
        vst1q_f32(sum[r], s[r][0]);
        vst1q_f32(sum[r] + 4, s[r][1]);
    }
}

/* Constant numbers of rows, so that sums stay in registers. */
#define TILE(n_x)                                                                                  \
    static void tile_##n_x(const float *w, const float *const *x, int64_t n, float(*sum)[GROUP])   \
    {                                                                                              \
        tile(w, x, n, sum, n_x);                                                                   \
    }
TILE(1)
TILE(2)
TILE(4)
TILE(8)

/* Rows [row, row + n_x) times columns [at, at + n) of weight rows [col, col + cols). */
static void tile_run(const kargs *k, const float *panel, int64_t row, int n_x, int64_t col,
                     int64_t cols, int64_t at, int64_t n)
{
    const float *x[TILE_ROWS],
        *bias = at + n == k->size.linear.in ? k->in[2] : NULL; /* [m] or NULL */
    float sum[TILE_ROWS][GROUP];
    for (int r = 0; r < n_x; r++)
        x[r] = (const float *)((const char *)k->in[0] + (row + r) * k->pitch[0]) + at;
    (n_x == 8 ? tile_8 : n_x == 4 ? tile_4 : n_x == 2 ? tile_2 : tile_1)(panel, x, n, sum);
    for (int r = 0; r < n_x; r++) {
        float *out = (float *)((char *)k->out[0] + (row + r) * k->out_pitch[0]) + col;
        for (int64_t i = 0; i < cols; i++) {
            float all = at == 0 ? sum[r][i] : out[i] + sum[r][i];
            out[i] = bias ? all + bias[col + i] : all;
        }
    }
}

NEON_INLINE void by_panel(const kargs *k, int64_t begin, int64_t end, float *mem, dtype type)
{
    kpart part = kpart_of(k, k->size.linear.out, begin, end);
    for (int64_t col = part.col; col < part.col_end; col += GROUP) {
        int64_t cols = part.col_end - col < GROUP ? part.col_end - col : GROUP;
        const uint8_t *w[GROUP]; /* what a last group lacks is its last row again */
        for (int64_t i = 0; i < GROUP; i++)
            w[i] = (const uint8_t *)k->in[1] + (col + (i < cols ? i : cols - 1)) * k->pitch[1];
        for (int64_t at = 0; at < k->size.linear.in; at += COLS) {
            int64_t n = k->size.linear.in - at < COLS ? k->size.linear.in - at : COLS;
            panel_fill(w, at, n, mem, type);
            for (int64_t row = part.row; row < part.row_end;) {
                int64_t left = part.row_end - row;
                int n_x = left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
                tile_run(k, mem, row, n_x, col, cols, at, n);
                row += n_x;
            }
        }
    }
}

/* ---- the kernels ---- */

static void tell_rows(const kargs *k, int64_t begin, int64_t end)
{
    kpart part = kpart_of(k, k->size.linear.out, begin, end);
    for (int64_t row = part.row; row < part.row_end; row++)
        NEON_TELL((const char *)k->in[0] + row * k->pitch[0], k->size.linear.in * 4);
}

#define LINEAR(type)                                                                               \
    NEON_UNTOLD static void one_##type(const uint8_t *const *w, const uint8_t *const *ahead,       \
                                       const void *x, int64_t n, float *out)                       \
    {                                                                                              \
        dots(w, ahead, x, n, out, DT_##type, 1);                                                   \
    }                                                                                              \
    NEON_UNTOLD static void streams_##type(const uint8_t *const *w, const uint8_t *const *ahead,   \
                                           const void *x, int64_t n, float *out)                   \
    {                                                                                              \
        dots(w, ahead, x, n, out, DT_##type, NEON_STREAMS);                                        \
    }                                                                                              \
    void k_linear_##type##_ONE_neon(const kargs *k, const kthread *t, int64_t begin, int64_t end)  \
    {                                                                                              \
        (void)t;                                                                                   \
        tell_rows(k, begin, end);                                                                  \
        neon_linear_streams(k, begin, end, one_##type, streams_##type);                            \
    }                                                                                              \
    void k_linear_##type##_ANY_neon(const kargs *k, const kthread *t, int64_t begin, int64_t end)  \
    {                                                                                              \
        by_panel(k, begin, end, t->scratch, DT_##type);                                            \
    }
LINEAR(F32)
LINEAR(F16)
LINEAR(BF16)
