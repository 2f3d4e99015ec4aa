/* linear_float_one_bf16.c - one row of activations times BF16 rows as stored, with bfdot: activations split into three
 * bf16 each (act.h), so that every bit of them counts, or rounded to one.
 *
 * Three weight rows at a time that are far apart (linear_float_stream.h). The exact kernel's inner loop is in assembly: 36
 * products and 24 loads, all of them pairs, for 32 columns. Of 71 GB/s (two Neoverse-V1 cores, two threads) rows of 2048
 * columns give 67, those of 8192, whose activations do not stay in the first cache, 57. The same loop
 * in C as GCC 12 orders it: 57 and 50. Lines of weights are asked for 24 KB ahead for the last cache, and 1 KB
 * ahead for the first one, to be dropped soon: that saves the activations there.
 *
 * Slower: bfmmla on two rows woven in registers (49), four to eight rows next to each other (48 to 53), columns in
 * blocks (43). Weights woven by eight on disk: 62 for all widths, which a copy of them is not worth. */
#include "kernels/kernel_decls.h"

#include <string.h>
#include "kernels/neon/linear_float_stream.h"
#include "kernels/neon/neon.h"

enum { STEP = 32 }; /* columns of a turn of the loop */

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

/* Sums of a row of weights: with the firsts of even and odd vectors, the seconds, the thirds. */
typedef float32x4_t sums[6];

static inline float sum_of(const float32x4_t *s)
{
    return vaddvq_f32(
        vaddq_f32(vaddq_f32(s[0], s[1]), vaddq_f32(vaddq_f32(s[2], s[3]), vaddq_f32(s[4], s[5]))));
}

/* Columns [i, n) of one row, `parts` bf16 to an activation. */
NEON_INLINE void dots_rest(const uint8_t *w, const uint8_t *x, int64_t i, int64_t n, int parts,
                           float32x4_t *s)
{
    for (; i < n; i += 8) {
        bfloat16x8_t v = load_some(w + i * 2, n - i);
        for (int p = 0; p < parts; p++)
            s[2 * p + i / 8 % 2] =
                vbfdotq_f32(s[2 * p + i / 8 % 2], v, load(x + i * 2 * parts + p * 16));
    }
}

/* ---- three parts ---- */

static void exact_one(const uint8_t *const *w, const uint8_t *const *ahead, const void *x,
                      int64_t n, float *out)
{
    sums s;
    for (int i = 0; i < 6; i++)
        s[i] = vdupq_n_f32(0);
    for (int64_t i = 0; i < n; i += STEP)
        neon_hint_here(ahead[0] + i * 2);
    dots_rest(w[0], x, 0, n, 3, s);
    *out = sum_of(s);
}

/* Sums are v0 to v5 of the first row, v6 to v11, v12 to v17; activations v18 to v23, weights v24 to v29. */
#define DOT(sum, weight, part) "bfdot v" #sum ".4s, v" #weight ".8h, v" #part ".8h\n"
#define PAIR(a, b, from, at) "ldp q" #a ", q" #b ", [%[" #from "], " #at "]\n"
#define HINTS(row)                                                                                 \
    "prfm pldl3keep, [%[a" #row "]]\n"                                                             \
    "prfm pldl1strm, [%[w" #row "], 1024]\n"                                                       \
    "add %[a" #row "], %[a" #row "], 64\n"
/* 16 columns: those of the activations begin x, x + 32 and x + 64 bytes in, those of the weights w. */
#define HALF(x0, x1, x2, w)                                                                        \
    PAIR(18, 19, x, x0)                                                                            \
    PAIR(24, 25, w0, w)                                                                            \
    DOT(0, 24, 18) DOT(2, 24, 19) PAIR(20, 21, x, x1) DOT(4, 24, 20) PAIR(26, 27, w1, w)           \
        DOT(1, 25, 21) DOT(6, 26, 18) DOT(8, 26, 19) DOT(10, 26, 20) PAIR(28, 29, w2, w)           \
            DOT(7, 27, 21) DOT(12, 28, 18) DOT(14, 28, 19) PAIR(22, 23, x, x2) DOT(13, 29, 21)     \
                DOT(16, 28, 20) DOT(3, 25, 22) DOT(9, 27, 22) DOT(5, 25, 23) DOT(15, 29, 22)       \
                    DOT(11, 27, 23) DOT(17, 29, 23)
#define CLEAR(sum) "movi v" #sum ".4s, 0\n"
#define KEEP(a, b, at) "stp q" #a ", q" #b ", [%[sums], " #at "]\n"

/* n columns, a multiple of 32 and more than none. */
static void exact_loop(const uint8_t *const *w, const uint8_t *const *ahead, const void *x,
                       int64_t n, sums *s)
{
    const uint8_t *w0 = w[0], *w1 = w[1], *w2 = w[2];
    const uint8_t *a0 = ahead[0], *a1 = ahead[1], *a2 = ahead[2];
    /* clang-format off */
    __asm__ volatile(
        CLEAR(0) CLEAR(1) CLEAR(2) CLEAR(3) CLEAR(4) CLEAR(5) CLEAR(6) CLEAR(7) CLEAR(8)
        CLEAR(9) CLEAR(10) CLEAR(11) CLEAR(12) CLEAR(13) CLEAR(14) CLEAR(15) CLEAR(16) CLEAR(17)
        "1:\n"
        HINTS(0) HINTS(1) HINTS(2)
        "subs %[n], %[n], 32\n"
        HALF(0, 32, 64, 0)
        HALF(96, 128, 160, 32)
        "add %[w0], %[w0], 64\n"
        "add %[w1], %[w1], 64\n"
        "add %[w2], %[w2], 64\n"
        "add %[x], %[x], 192\n"
        "b.gt 1b\n"
        KEEP(0, 1, 0) KEEP(2, 3, 32) KEEP(4, 5, 64)
        KEEP(6, 7, 96) KEEP(8, 9, 128) KEEP(10, 11, 160)
        KEEP(12, 13, 192) KEEP(14, 15, 224) KEEP(16, 17, 256)
        : [w0] "+r"(w0), [w1] "+r"(w1), [w2] "+r"(w2), [a0] "+r"(a0), [a1] "+r"(a1), [a2] "+r"(a2),
          [x] "+r"(x), [n] "+r"(n)
        : [sums] "r"(s)
        : "memory", "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11",
          "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24",
          "v25", "v26", "v27", "v28", "v29");
    /* clang-format on */
}

static void exact_streams(const uint8_t *const *w, const uint8_t *const *ahead, const void *x,
                          int64_t n, float *out)
{
    sums s[NEON_STREAMS];
    int64_t whole = n / STEP * STEP;
    if (whole > 0)
        exact_loop(w, ahead, x, whole, s);
    else
        memset(s, 0, sizeof s);
    for (int j = 0; j < NEON_STREAMS; j++) {
        dots_rest(w[j], x, whole, n, 3, s[j]);
        out[j] = sum_of(s[j]);
    }
}

void k_linear_BF16_ONE_bf16(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    (void)t;
    neon_linear_streams(k, begin, end, exact_one, exact_streams);
}

/* ---- one part ---- */

/* One row of weights after the other is bound by memory. */
static float rounded_row(const uint8_t *w, const uint8_t *x, int64_t n)
{
    float32x4_t s[8];
    int64_t i = 0;
    for (int u = 0; u < 8; u++)
        s[u] = vdupq_n_f32(0);
    for (; i + 64 <= n; i += 64) {
        neon_hint(w + i * 2, 128);
        for (int u = 0; u < 8; u++)
            s[u] = vbfdotq_f32(s[u], load(w + (i + u * 8) * 2), load(x + (i + u * 8) * 2));
    }
    dots_rest(w, x, i, n, 1, s);
    for (int u = 0; u < 4; u++)
        s[u] = vaddq_f32(s[u], s[u + 4]);
    return vaddvq_f32(vaddq_f32(vaddq_f32(s[0], s[1]), vaddq_f32(s[2], s[3])));
}

void k_linear_BF16_ONE_neon_bf16(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    kpart part = kpart_of(k, k->n[1], begin, end);
    (void)t;
    for (int64_t row = part.row; row < part.row_end; row++) {
        const uint8_t *x = (const uint8_t *)k->in[0] + row * k->pitch[0];
        for (int64_t col = part.col; col < part.col_end; col++)
            neon_linear_put(k, row, col,
                            rounded_row((const uint8_t *)k->in[1] + col * k->pitch[1], x, k->n[2]));
    }
}
