/* test_row_bits.c - kernels of rows have a short way for rows at multiples of 16 bytes and a long one for others: both give the
 * same bits. */
#include <math.h>
#include "kernels/act.h"
#include "tests/base/suite.h"
#include "tests/cuda/emulated.h"

enum { WIDTH_MAX = 4096, ROOM = WIDTH_MAX + 4 };

static _Alignas(64) float x[ROOM], weight[ROOM], bias[ROOM];
static _Alignas(64) char result[2][8 * WIDTH_MAX];

void emulated_fail(const char *what)
{
    ck_abort_msg("%s", what);
}

/* Numbers of the same values from `skew` on. */
static void numbers_fill(float *to, int skew, uint32_t seed)
{
    for (int i = 0; i < WIDTH_MAX; i++) {
        seed = seed * 1664525u + 1013904223u;
        to[skew + i] = (float)(int32_t)seed * 0x1p-31f;
    }
}

/* Blocks of numbers that few rows have: each eighth one is `what` times as large. */
static void numbers_strange(float *to, int skew, float what)
{
    for (int i = 0; i < WIDTH_MAX; i++)
        to[skew + i] *= i / 256 % 8 == 3 ? what : 1;
}

static float strange = 1;

static void run(kernel_fn *fn, kargs k, int skew, bool norm)
{
    numbers_fill(x, skew, 1);
    numbers_strange(x, skew, strange);
    numbers_fill(weight, skew, 2);
    numbers_fill(bias, skew, 3);
    k.in[0] = x + skew;
    if (norm) {
        k.in[1] = weight + skew;
        k.in[2] = bias + skew;
    }
    k.out[0] = result[skew != 0];
    fn(&k, &(kthread){.count = 1}, 0, 1);
}

static const int64_t widths[] = {32, 64, 128, 256, 512, 544, 640, 768, 1024, 1280, 4096};
enum { N_WIDTH = sizeof widths / sizeof *widths };

static void check_same(kernel_fn *fn, const kargs *k, bool norm)
{
    memset(result, 0, sizeof result);
    run(fn, *k, 0, norm);
    run(fn, *k, 1, norm);
    ck_assert_mem_eq(result[0], result[1], sizeof result[0]);
}

START_TEST(norms_have_the_same_bits_at_any_address)
{
    for (int i = 0; i < N_WIDTH; i++) {
        kargs k = {.size = {.norm = {1, 1, widths[i], 1}}, .scalar = {.norm = {1e-5}}};
        check_same(emulated_k_rms_norm_cuda, &k, true);
        check_same(emulated_k_layer_norm_cuda, &k, true);
    }
}
END_TEST

START_TEST(rows_are_quantised_alike_at_any_address)
{
    static const kact acts[] = {ACT_Q8, ACT_Q8D, ACT_Q8K, ACT_Q8KD, ACT_BF1, ACT_BF2T, ACT_BF3T};
    for (int i = 0; i < N_WIDTH; i++)
        for (size_t a = 0; a < sizeof acts / sizeof *acts; a++) {
            if (widths[i] % act_block(acts[a]) != 0)
                continue;
            kargs k = {.size = {.quantize = {1, widths[i]}}};
            k.choice.quantize.act = (int32_t)acts[a];
            check_same(emulated_k_quantize_cuda, &k, false);
        }
}
END_TEST

START_TEST(blocks_of_strange_numbers_are_quantised_alike)
{
    static const float times[] = {0, 0x1p-99f, 0x1p-110f, 0x1p-140f, 0x1p99f, 0x1p110f, INFINITY};
    static const kact acts[] = {ACT_Q8, ACT_Q8K};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        for (size_t a = 0; a < sizeof acts / sizeof *acts; a++) {
            kargs k = {.size = {.quantize = {1, WIDTH_MAX}}};
            k.choice.quantize.act = (int32_t)acts[a];
            strange = times[i];
            check_same(emulated_k_quantize_cuda, &k, false);
            strange = 1;
        }
}
END_TEST

/* Rows that are normed and quantised in one step, and in two. */
START_TEST(norms_quantise_as_two_steps_do)
{
    enum { ROWS = 2, WIDTH = 2048 };
    static const int64_t wide[] = {768, 1024, 1280, 2048};
    static const float times[] = {1, 0, 0x1p-60f, 0x1p-140f, INFINITY};
    static const kact acts[] = {ACT_Q8, ACT_Q8D, ACT_Q8K, ACT_Q8KD, ACT_BF1, ACT_BF2T, ACT_BF3T};
    static _Alignas(64) float normed[ROOM];
    for (size_t i = 0; i < 4 * 5 * 2 * sizeof acts / sizeof *acts; i++) {
        const kact act = acts[i / 40];
        const int64_t n = wide[i / 10 % 4], bytes = n * (int64_t)sizeof(float);
        const int skew = i % 2; /* rows that are not at multiples of 16 bytes */
        kargs k = {.size = {.norm = {ROWS, 1, n, 1}}, .scalar = {.norm = {1e-5}}};
        kargs q = {.size = {.quantize = {ROWS, n}}, .in = {normed}, .pitch = {bytes}};
        numbers_fill(x, skew, 1);
        numbers_strange(x, skew, times[i / 2 % 5]);
        numbers_fill(weight, 0, 2);
        memset(result, 0, sizeof result);
        k.in[0] = x + skew;
        k.in[1] = weight;
        k.pitch[0] = k.out_pitch[0] = bytes;
        k.out[0] = normed;
        q.out[0] = result[0];
        k.out[1] = result[1];
        q.out_pitch[0] = k.out_pitch[1] = act_row_bytes(act, n);
        q.choice.quantize.act = (int32_t)act;
        emulated_k_rms_norm_cuda(&k, &(kthread){.count = 1}, 0, ROWS);
        emulated_k_quantize_cuda(&q, &(kthread){.count = 1}, 0, ROWS);
        k.choice.quantize.act = (int32_t)act;
        emulated_k_rms_norm_cuda_quantize(&k, &(kthread){.count = 1}, 0, ROWS);
        ck_assert_mem_eq(result[0], result[1], sizeof result[0]);
    }
}
END_TEST

/* Several rows of 768 columns, whole and as columns of all of them. */
START_TEST(columns_of_rows_are_quantised_as_rows_are)
{
    enum { COLS = 768, WIDE = 256 };
    static const int64_t tiles[] = {WIDE, 2 * WIDE, COLS}, rows[] = {2, 3, 5};
    static const float times[] = {1, 0x1p-140f, INFINITY};
    static const kact acts[] = {ACT_Q8, ACT_Q8D, ACT_Q8K, ACT_Q8KD};
    for (int i = 0; i < 3 * 3 * 3 * 4; i++) {
        const kact act = acts[i / 27];
        const int64_t tile = tiles[i / 9 % 3], n = rows[i / 3 % 3];
        kargs k = {.size = {.quantize = {n, COLS}}, .in = {x}};
        k.choice.quantize.act = (int32_t)act;
        k.pitch[0] = COLS * (int64_t)sizeof(float);
        k.out_pitch[0] = act_row_bytes(act, COLS);
        ck_assert_int_le(n * k.out_pitch[0], (int64_t)sizeof result[0]);
        numbers_fill(x, 0, 1);
        numbers_strange(x, 0, times[i % 3]);
        memset(result, 0, sizeof result);
        k.out[0] = result[0];
        emulated_k_quantize_cuda(&k, &(kthread){.count = 1}, 0, n);
        k.out[0] = result[1];
        k.cols = COLS;
        k.tile = tile;
        for (int64_t u = 0; u < (COLS + tile - 1) / tile; u++)
            emulated_k_quantize_cuda(&k, &(kthread){.count = 1}, u, u + 1);
        ck_assert_mem_eq(result[0], result[1], sizeof result[0]);
    }
}
END_TEST

SUITE_MAIN("row_bits", norms_have_the_same_bits_at_any_address,
           rows_are_quantised_alike_at_any_address, blocks_of_strange_numbers_are_quantised_alike,
           norms_quantise_as_two_steps_do, columns_of_rows_are_quantised_as_rows_are)
