/* test_halves.c - linears of operands that quantize and weft_unpack make f16 and weft_bulk multiplies (kernels/cuda/halves_cuda.cuh), against sums in
 * double precision: rows of all sizes of numbers, steps that share x, and numbers that are none. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include "kernels/act.h"
#include "kernels/cuda/mma_size.h"
#include "tests/base/suite.h"
#include "tests/cuda/emulated.h"

enum { ROWS = 131, STEPS = 3 };

/* The rows of cuda_kernels.def, by which a card knows of how many parts x is. */
enum {
#define CUDA_KERNEL(op, type, act, least, most, symbol, ...) ROW_##symbol,
#include "kernels/cuda/cuda_kernels.def"
#undef CUDA_KERNEL
};

static int32_t row_of(dtype type, kact act)
{
    if (act == ACT_BF2T)
        return type == DT_BF16 ? ROW_k_linear_BF16_near_cuda : ROW_k_linear_F16_near_cuda;
    return type == DT_BF16 ? ROW_k_linear_BF16_exact_cuda : ROW_k_linear_F16_exact_cuda;
}

void emulated_fail(const char *what)
{
    ck_abort_msg("%s", what);
}

typedef struct {
    int64_t in, out;
    dtype type;
    int x;    /* which */
    float *w; /* [out][in], as they are stored */
    void *stored;
    float *bias, *result;
} linear;

static uint32_t seed = 1;

static float number(void)
{
    seed = seed * 1664525u + 1013904223u;
    return (float)(int32_t)seed * 0x1p-31f;
}

/* A row of zeros, rows of tiny and of huge numbers, rows of numbers far apart, and usual ones. */
static float row_scale(int64_t row)
{
    static const float scales[] = {1, 0, 0x1p-140f, 0x1p-110f, 0x1p100f, 0x1p-3f, 0x1p9f};
    return scales[row % 7];
}

static float strange(int64_t row, int64_t c)
{
    return number() * row_scale(row) * (row % 7 == 5 && c % 3 ? 0x1p-20f : 1);
}

static uint16_t bf16_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)(bits >> 16);
}

/* Weights are cut to what their type has; those of F16 are within its range. */
static void weights_fill(linear *l, bool plain)
{
    uint16_t *to = l->stored = malloc((size_t)(l->in * l->out) * 2);
    l->w = malloc((size_t)(l->in * l->out) * sizeof *l->w);
    for (int64_t i = 0; i < l->in * l->out; i++) {
        const int64_t row = i / l->in;
        if (l->type == DT_BF16) {
            to[i] = bf16_of(plain ? number() : strange(row, i % l->in));
            const uint32_t bits = (uint32_t)to[i] << 16;
            memcpy(&l->w[i], &bits, sizeof bits);
        } else {
            const _Float16 h = (_Float16)(number() * (row % 3 ? 1 : 0x1p-14f));
            memcpy(&to[i], &h, sizeof h);
            l->w[i] = (float)h;
        }
    }
    l->bias = malloc((size_t)l->out * sizeof *l->bias);
    for (int64_t i = 0; i < l->out; i++)
        l->bias[i] = plain ? number() : 0;
    l->result = malloc((size_t)(ROWS * l->out) * sizeof *l->result);
}

/* x as f16, by the kernel that does that: one of a number where the plan has two bf16 (ACT_BF2T), else two. */
static void *x_halve(const float *x, int64_t n, kact act)
{
    const int64_t pitch = act_row_bytes(act, n);
    void *to = aligned_alloc(64, (size_t)(pitch * ROWS));
    kargs k = {.size = {.quantize = {ROWS, n}}, .in = {x}, .out = {to}};
    k.pitch[0] = n * 4;
    k.out_pitch[0] = pitch;
    k.choice.quantize.act = (int32_t)act;
    k.code = &(const kinstr){0};
    emulated_k_quantize_cuda(&k, &(kthread){.count = 1}, 0, ROWS);
    return to;
}

/* One phase of all of them. */
static void multiply(linear *l, int n, void *const *x, kact act, int threads)
{
    cuda_shape shape[STEPS] = {0};
    cuda_step step[STEPS] = {0};
    cuda_item item[STEPS] = {0};
    cuda_phase phase = {.n_item = n, .n_step = n};
    char error[FIBRE_ERROR_MAX];
    int64_t bytes = 0;
    for (int i = 0; i < n; i++) {
        kargs *k = &shape[i].k;
        k->size.linear.rows = ROWS;
        k->size.linear.out = l[i].out;
        k->size.linear.in = l[i].in;
        shape[i].row = row_of(l[i].type, act);
        k->pitch[0] = act_row_bytes(act, l[i].in);
        k->pitch[1] = l[i].in * 2;
        k->out_pitch[0] = l[i].out * 4;
        k->type[1] = l[i].type;
        step[i] = (cuda_step){.in = {x[l[i].x], l[i].stored, l[i].bias},
                              .out = {l[i].result},
                              .rows = ROWS,
                              .shape = i};
        const int64_t units =
            (ROWS + MMA_ROWS - 1) / MMA_ROWS * ((l[i].out + MMA_COLS - 1) / MMA_COLS);
        item[i] = (cuda_item){.first = i, .n_step = 1, .units = units, .at = phase.units};
        phase.units += units;
        bytes += l[i].type == DT_BF16 ? cuda_halves_bytes(l[i].out, l[i].in) : 0;
    }
    char *unpacked = aligned_alloc(256, (size_t)((bytes + 255) / 256 * 256));
    memset(unpacked, 0xff, (size_t)bytes);
    const cuda_launch all = {.run = {.shape = shape,
                                     .step = step,
                                     .item = item,
                                     .phase = &phase,
                                     .end = 1,
                                     .unpacked = unpacked,
                                     .block_bytes = CUDA_BULK_BYTES,
                                     .n_step = n,
                                     .halves = 1}};
    ck_assert_msg(emulated_unpack(&all, 3, threads, 0, 0, error), "%s", error);
    ck_assert_msg(emulated_bulk(&all, 2, CUDA_SQUARES_BLOCK, 0, CUDA_BULK_BYTES, error), "%s",
                  error);
    free(unpacked);
}

/* What f32's own sums are off by, and what lies below 2^-39 of a row's largest. One f16 is off by up to 2^-11 of a number, less than
 * 2^-12 as a rule, in any direction: so products are off by as much of the root of the sum of their squares, and hardly one by four times
 * that. */
static double bound(const float *x, const float *w, int64_t n, kact act, double *out_sum)
{
    double sum = 0, size = 0, squares = 0, x_most = 0, w_most = 0;
    for (int64_t c = 0; c < n; c++) {
        sum += (double)x[c] * (double)w[c];
        size += fabs((double)x[c] * (double)w[c]);
        squares += (double)x[c] * (double)w[c] * (double)x[c] * (double)w[c];
        x_most = fmax(x_most, fabs((double)x[c]));
        w_most = fmax(w_most, fabs((double)w[c]));
    }
    *out_sum = sum;
    const double rounded = act == ACT_BF2T ? 4 * 0x1p-12 * sqrt(squares) : 0;
    return rounded + size * 0x1p-22 * sqrt((double)n) + 0x1p-39 * (double)n * x_most * w_most +
           0x1p-149;
}

static void check(const linear *l, const float *x, kact act)
{
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t c = 0; c < l->out; c++) {
            double want;
            const double off = bound(x + r * l->in, l->w + c * l->in, l->in, act, &want);
            const double got = (double)l->result[r * l->out + c];
            want += (double)l->bias[c];
            if (fabs(want) < FLT_MAX)
                ck_assert_msg(fabs(got - want) <= off + fabs(want) * 0x1p-22,
                              "%d %d: %g for %g, off by %g of %g", (int)r, (int)c, got, want,
                              fabs(got - want), off);
            else
                ck_assert(!isfinite(got));
        }
}

static void linear_free(linear *l)
{
    free(l->w);
    free(l->stored);
    free(l->bias);
    free(l->result);
}

static float *x_fill(int64_t n, bool plain)
{
    float *x = malloc((size_t)(ROWS * n) * sizeof *x);
    for (int64_t i = 0; i < ROWS * n; i++)
        x[i] = plain ? number() * 3 : strange(i / n + 3, i % n);
    return x;
}

/* Two that share x and one that does not; widths that some warps have in registers and wider ones. */
static void check_products(kact act)
{
    static const int threads[] = {64, 256, 96};
    for (int i = 0; i < 6; i++) {
        const bool plain = i % 2;
        const int64_t wide = i < 2 ? 4096 : i < 4 ? 192 : 1024;
        linear l[STEPS] = {{.in = 64, .out = 70, .type = DT_BF16},
                           {.in = 64, .out = 260, .type = DT_F16},
                           {.in = wide, .out = 36, .type = i < 2 ? DT_BF16 : DT_F16, .x = 1}};
        float *x[] = {x_fill(64, plain), x_fill(wide, plain)};
        void *split[] = {x_halve(x[0], 64, act), x_halve(x[1], wide, act)};
        for (int s = 0; s < STEPS; s++)
            weights_fill(&l[s], plain);
        multiply(l, STEPS, split, act, threads[i / 2]);
        for (int s = 0; s < STEPS; s++) {
            check(&l[s], x[l[s].x], act);
            linear_free(&l[s]);
        }
        for (int s = 0; s < 2; s++) {
            free(x[s]);
            free(split[s]);
        }
    }
}

START_TEST(products_are_as_exact_as_floats)
{
    check_products(ACT_BF3T);
}
END_TEST

START_TEST(products_of_one_f16_have_its_bits)
{
    check_products(ACT_BF2T);
}
END_TEST

/* Such x is one f16 with all of its bits, though not one bf16: sums are as exact as with two. */
START_TEST(numbers_of_eleven_bits_lose_nothing)
{
    const int64_t n = 256, out = 40;
    linear l = {.in = n, .out = out, .type = DT_BF16};
    float *x = x_fill(n, true);
    for (int64_t i = 0; i < ROWS * n; i++)
        x[i] = (float)(int32_t)(x[i] * 680); /* at most 2040 */
    weights_fill(&l, true);
    void *one = x_halve(x, n, ACT_BF2T);
    multiply(&l, 1, &one, ACT_BF2T, 64);
    check(&l, x, ACT_BF3T);
    linear_free(&l);
    free(x);
    free(one);
}
END_TEST

static void check_strange(kact act)
{
    const int64_t n = 128, out = 33;
    linear l = {.in = n, .out = out, .type = DT_BF16};
    float *x = x_fill(n, true);
    weights_fill(&l, true);
    x[5 * n + 7] = INFINITY;
    x[9 * n + 127] = NAN;
    ((uint16_t *)l.stored)[11 * n + 3] = 0xff80; /* -infinity */
    void *split = x_halve(x, n, act);
    multiply(&l, 1, &split, act, 64);
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t c = 0; c < out; c++)
            ck_assert(isfinite(l.result[r * out + c]) == (r != 5 && r != 9 && c != 11));
    linear_free(&l);
    free(x);
    free(split);
}

START_TEST(numbers_that_are_none_stay_so)
{
    check_strange(ACT_BF3T);
    check_strange(ACT_BF2T);
}
END_TEST

SUITE_MAIN("halves", products_are_as_exact_as_floats, products_of_one_f16_have_its_bits,
           numbers_of_eleven_bits_lose_nothing, numbers_that_are_none_stay_so)
