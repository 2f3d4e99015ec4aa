/* rows8_bf16.c - interleaved BF16 weights times rows of activations, with bfmmla: activations split into three bf16 each (act.h),
 * so that every bit of them counts, or rounded to one.
 *
 * One row: a vector of weights, four columns of two rows, times the firsts and seconds of four columns, and once more
 * times the thirds; rounded activations leave half of a product unused. That is bound by memory.
 *
 * More rows: four rows of activations are interleaved too, two of them a vector. A tile is 8 weight rows by up to 8 rows:
 * 16 accumulators, for four columns 4 loads of weights, and for each part of the activations 4 loads and 16 products.
 * Of many rows as many are taken at a time as the second cache holds; a group of weights is in the first one then.
 *
 * Two Neoverse-V1 cores, two threads (bench_kernels, Llama-1B): 256 rows 0.16 TFLOP/s exact, 0.43 rounded, of a peak of
 * 0.666; fused f32 products gave 0.094. 2, 4, 8 and 16 rows take 1.3, 1.6, 2.6 and 5.2 times as long as one. */
#include "kernels/kernel_decls.h"

#include <string.h>
#include "kernels/c/rows8.h"
#include "kernels/neon/rows8_bf16.h"

enum {
    GROUP = LAYOUT_GROUP,
    TILE_ROWS = 2 * BF16_PAIRS, /* of activations */
    BLOCK_BYTES = 768 * 1024,   /* of activations */
};

NEON_INLINE bfloat16x8_t load(const void *p)
{
    return vreinterpretq_bf16_u8(vld1q_u8(p));
}

/* Four numbers, then zeros. */
NEON_INLINE bfloat16x8_t load_half(const void *p)
{
    return vreinterpretq_bf16_u8(vcombine_u8(vld1_u8(p), vdup_n_u8(0)));
}

/* Columns [i, i + 4) of a group of n; those after its end are 0. */
static void load_four(const uint8_t *w, int64_t i, int64_t n, bfloat16x8_t v[GROUP / 2])
{
    uint16_t four[GROUP][4] = {{0}};
    int64_t cols = n - i < 4 ? n - i : 4;
    for (int r = 0; r < GROUP; r++)
        memcpy(four[r], w + (i * GROUP + r * cols) * 2, (size_t)cols * 2);
    for (int r = 0; r < GROUP / 2; r++)
        v[r] = load(four[2 * r]);
}

/* ---- one row ---- */

typedef float32x4_t row_sums[BF16_SETS][GROUP / 2];

/* Four columns of weights v with those of a row at x. */
static void one_step(const bfloat16x8_t *v, const uint8_t *x, int parts, row_sums s)
{
    for (int r = 0; r < GROUP / 2; r++) {
        if (parts == 1) {
            s[0][r] = vbfmmlaq_f32(s[0][r], v[r], load_half(x));
            continue;
        }
        s[0][r] = vbfmmlaq_f32(s[0][r], v[r], load(x));
        s[1][r] = vbfmmlaq_f32(s[1][r], v[r], load_half(x + 16));
    }
}

/* One row with a group. */
NEON_INLINE void one_row(const uint8_t *w, const uint8_t *x, int64_t n, int parts,
                         float sum[LAYOUT_GROUP])
{
    int64_t i = n / BF16_ONE_STEP * BF16_ONE_STEP;
    row_sums s;
    if (i > 0)
        (parts == 1 ? bf16_1_one : bf16_3_one)(w, &x, i, s[0]);
    else
        memset(s, 0, sizeof s);
    for (; i < n; i += 4) {
        bfloat16x8_t v[GROUP / 2];
        load_four(w, i, n, v);
        one_step(v, x + i * 2 * parts, parts, s);
    }
    for (int r = 0; r < GROUP / 2; r++)
        s[0][r] = vaddq_f32(vaddq_f32(s[0][r], s[1][r]), vaddq_f32(s[2][r], s[3][r]));
    vst1q_f32(sum, vpaddq_f32(s[0][0], s[0][1]));
    vst1q_f32(sum + 4, vpaddq_f32(s[0][2], s[0][3]));
}

/* Several rows go one by one: what they share, the group, is in a cache then. */
#define CORE(form, parts)                                                                          \
    static void form##_one(const uint8_t *w, const void *const *x, int64_t n,                      \
                           float(*sum)[LAYOUT_GROUP])                                              \
    {                                                                                              \
        one_row(w, x[0], n, parts, sum[0]);                                                        \
    }                                                                                              \
    static const rows8_core core_##form = {.of = {[1] = form##_one}};
CORE(exact, 3)
CORE(rounded, 1)

/* ---- tiles ---- */

typedef float32x4_t tile_sums[BF16_PAIRS][GROUP / 2];

/* What differs by the number of parts of an activation. */
typedef struct {
    int parts;
    bf16_loop *loop[BF16_PAIRS], *near;
} form;

static const form form_exact = {3, {bf16_3_1, bf16_3_2, bf16_3_3, bf16_3_4}, bf16_3_near};
static const form form_rounded = {1, {bf16_1_1, bf16_1_2, bf16_1_3, bf16_1_4}, bf16_1_near};

/* Four columns from `at` on. */
static void rest_step(const bfloat16x8_t *v, const uint8_t *const *x, int64_t at, int parts,
                      int pairs, tile_sums s)
{
    for (int p = 0; p < parts; p++)
        for (int q = 0; q < pairs; q++) {
            bfloat16x8_t a = load(x[q / 2] + (at / 4 * parts + p) * 32 + q % 2 * 16);
            for (int r = 0; r < GROUP / 2; r++)
                s[q][r] = vbfmmlaq_f32(s[q][r], v[r], a);
        }
}

/* A group with some pairs of rows; near: it is in a cache. */
static void tile_run(const uint8_t *w, const uint8_t *const *x, int64_t n, const form *f, int pairs,
                     bool near, tile_sums s)
{
    int64_t i = n / BF16_STEP * BF16_STEP;
    memset(s, 0, sizeof(tile_sums));
    if (i > 0)
        (near && pairs == BF16_PAIRS ? f->near : f->loop[pairs - 1])(w, x, i, s[0]);
    for (int copy = pairs; copy < BF16_PAIRS && pairs <= 2; copy++)
        for (int r = 0; r < GROUP / 2; r++)
            s[copy % pairs][r] = vaddq_f32(s[copy % pairs][r], s[copy][r]);
    for (; i < n; i += 4) {
        bfloat16x8_t v[GROUP / 2];
        load_four(w, i, n, v);
        rest_step(v, x, i, f->parts, pairs, s);
    }
}

static void put_row(const kargs *k, const kpart *part, int64_t row, int64_t col, float32x4_t low,
                    float32x4_t high)
{
    const float *bias = k->in[2]; /* [m] or NULL */
    if (row >= part->row && row < part->row_end)
        neon_store8((float *)((char *)k->out[0] + row * k->out_pitch[0]) + col,
                    bias ? bias + col : NULL, (float32x4_t[2]){low, high});
}

/* Rows [row, row + 8), as far as there are so many, with the group at `col`. */
static void tile(const kargs *k, const kpart *part, const form *f, int64_t row, int64_t col,
                 bool near)
{
    const uint8_t *x[TILE_ROWS / 4];
    int64_t rows = k->size.linear.rows - row < TILE_ROWS ? k->size.linear.rows - row : TILE_ROWS;
    int pairs = (int)(rows + 1) / 2; /* whatever the part, for the same bits */
    tile_sums s;
    for (int64_t i = 0; i < rows; i += 4)
        x[i / 4] = (const uint8_t *)k->in[0] + (row + i) * k->pitch[0];
    tile_run((const uint8_t *)k->in[1] + col / GROUP * k->pitch[1], x, k->size.linear.in, f, pairs,
             near, s);
    for (int q = 0; q < pairs; q++) {
        put_row(k, part, row + 2 * q, col, vuzp1q_f32(s[q][0], s[q][1]),
                vuzp1q_f32(s[q][2], s[q][3]));
        put_row(k, part, row + 2 * q + 1, col, vuzp2q_f32(s[q][0], s[q][1]),
                vuzp2q_f32(s[q][2], s[q][3]));
    }
}

/* As many rows of activations at a time as a second cache holds: a group of weights is in the first one for all but the
 * first eight of them. */
static void tiles(const kargs *k, int64_t begin, int64_t end, const form *f)
{
    kpart part = kpart_of(k, k->size.linear.out, begin, end);
    int64_t first = part.row / TILE_ROWS * TILE_ROWS;
    int64_t fit = BLOCK_BYTES / (k->size.linear.in * 2 * f->parts) / TILE_ROWS * TILE_ROWS;
    int64_t block = fit > 2 * TILE_ROWS ? fit : 2 * TILE_ROWS;
    for (int64_t row = first; row < part.row_end; row += block) {
        int64_t row_end = row + block < part.row_end ? row + block : part.row_end;
        for (int64_t col = part.col; col < part.col_end; col += GROUP)
            for (int64_t at = row; at < row_end; at += TILE_ROWS)
                tile(k, &part, f, at, col, at > row);
    }
}

/* ---- the kernels ---- */

#define KERNELS(form, variant)                                                                     \
    void k_linear_BF16_ONE_##variant(const kargs *k, const kthread *t, int64_t begin, int64_t end) \
    {                                                                                              \
        (void)t;                                                                                   \
        rows8_linear(k, begin, end, &core_##form);                                                 \
    }                                                                                              \
    void k_linear_BF16_FEW_##variant(const kargs *k, const kthread *t, int64_t begin, int64_t end) \
    {                                                                                              \
        (void)t;                                                                                   \
        tiles(k, begin, end, &form_##form);                                                        \
    }                                                                                              \
    void k_linear_BF16_MANY_##variant(const kargs *k, const kthread *t, int64_t begin,             \
                                      int64_t end)                                                 \
    {                                                                                              \
        (void)t;                                                                                   \
        tiles(k, begin, end, &form_##form);                                                        \
    }                                                                                              \
    void k_experts_BF16_ANY_##variant(const kargs *k, const kthread *t, int64_t begin,             \
                                      int64_t end)                                                 \
    {                                                                                              \
        (void)t;                                                                                   \
        rows8_experts(k, begin, end, &core_##form);                                                \
    }
KERNELS(exact, bf16)
KERNELS(rounded, neon_bf16)
