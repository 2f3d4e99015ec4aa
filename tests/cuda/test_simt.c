/* test_simt.c - CUDA's words on fibres: what kernels compute in every order of threads, and which are refused. */
#include "tests/cuda/simt_run.h"
#include "tests/cuda/simt_samples.h"
#include "tests/base/suite.h"

#include "kernels/ref/dequant.h"
#include <math.h>
#include <string.h>

enum { BLOCKS = 3, THREADS = 96, N = 1000 };

static bool launch(sample *kernel, sample_args *a, int blocks, int threads, char *error)
{
    simt_grid g = {.blocks = blocks,
                   .threads = threads,
                   .dynamic_bytes = 32 * sizeof(float),
                   .kernel = kernel,
                   .args = a};
    return simt_launch(&g, error);
}

/* Every launch is of another order. */
static void runs(sample *kernel, sample_args *a, int blocks, int threads)
{
    char error[FIBRE_ERROR_MAX] = "";
    ck_assert_msg(launch(kernel, a, blocks, threads, error), "%s", error);
}

/* In every order, with an error that has both texts, the second behind the first. */
static void fails(sample *kernel, sample_args *a, int blocks, const char *first, const char *second)
{
    for (int order = 0; order < FIBRES_ORDERS; order++) {
        char error[FIBRE_ERROR_MAX] = "";
        *a->gate = 0;
        ck_assert(!launch(kernel, a, blocks, 64, error));
        const char *at = strstr(error, first);
        ck_assert_msg(at && strstr(at + 1, second), "%s", error);
    }
}

static float x[BLOCKS * N], y[2 * BLOCKS * N];
static int32_t ints[16 * THREADS];
static uint32_t gate;

static sample_args args(void)
{
    for (int i = 0; i < BLOCKS * N; i++)
        x[i] = (float)(i % 31 - 7);
    memset(ints, 0x5a, sizeof ints);
    gate = 0;
    return (sample_args){x, y, ints, &gate, N};
}

START_TEST(sums_are_the_same_in_every_order)
{
    sample_args a = args();
    for (int order = 0; order < FIBRES_ORDERS; order++) {
        runs(sample_sum, &a, BLOCKS, THREADS);
        for (int b = 0; b < BLOCKS; b++) {
            float sum = 0;
            for (int i = 0; i < N; i++)
                sum += x[b * N + i];
            ck_assert(y[2 * b] == sum && y[2 * b + 1] == sum);
        }
    }
}
END_TEST

/* In some order a thread reads what another has not written yet: memory is NaN then. */
START_TEST(a_missing_barrier_shows)
{
    sample_args a = args();
    bool right = true;
    for (int order = 0; order < FIBRES_ORDERS; order++) {
        runs(sample_sum_racy, &a, 1, THREADS);
        right = right && isfinite(y[0]) && isfinite(y[1]);
    }
    ck_assert(!right);
}
END_TEST

static int lanes_want(int op, int me)
{
    int lane = me % 32, warp = me - lane, sum = 0;
    switch (op) {
    case 0:
        return warp + 3;
    case 1:
        return warp + lane / 8 * 8 + 3;
    case 2:
        return lane < 5 ? me : me - 5;
    case 3:
        return lane % 16 + 5 >= 16 ? me : me + 5;
    case 4:
        return me ^ 7;
    case 5:
        return (int)0x49249249;
    case 6:
        return (warp == 32) * 2 + (me < 64);
    case 7:
        for (int i = 0; i < 32; i++)
            sum += warp + i;
        return sum;
    case 8:
        return -warp;
    case 9:
        return 0xffff;
    case 10:
        return 2;
    case 11:
        return (THREADS + 4) / 5;
    default:
        return lane < 16 ? warp + 15 : -1;
    }
}

START_TEST(lanes_of_a_warp_exchange)
{
    sample_args a = args();
    for (int order = 0; order < FIBRES_ORDERS; order++) {
        runs(sample_lanes, &a, 1, THREADS);
        for (int op = 0; op < 13; op++)
            for (int me = 0; me < THREADS; me++)
                ck_assert_msg(ints[op * THREADS + me] == lanes_want(op, me), "op %d thread %d: %d",
                              op, me, ints[op * THREADS + me]);
    }
}
END_TEST

START_TEST(resident_blocks_wait_for_each_other)
{
    for (int order = 0; order < FIBRES_ORDERS; order++) {
        sample_args a = args();
        runs(sample_gate, &a, BLOCKS, 64);
        for (int i = 0; i < BLOCKS * 64; i++)
            ck_assert_int_eq(ints[i], (i + 64) % (BLOCKS * 64) * 3);
    }
}
END_TEST

START_TEST(what_cannot_go_on_is_told)
{
    sample_args a = args();
    fails(sample_barrier_ended, &a, 1, "at __syncthreads (", "lane 5 has ended");
    fails(sample_barrier_two, &a, 2, "is at __syncthreads (", "is at __syncthreads (");
    fails(sample_shuffle_lost, &a, 1, "at __shfl_sync (", "lane 9 is at __syncthreads (");
    fails(sample_shuffle_masks, &a, 1, "at __shfl_sync (", "simt_samples.cpp:");
    fails(sample_gate_shut, &a, 2, "at __nanosleep (", "waits for what does not come");
    char error[FIBRE_ERROR_MAX];
    ck_assert(!launch(sample_sum, &a, 1, 33, error));
    ck_assert_ptr_nonnull(strstr(error, "33 lanes cannot be run"));
    runs(sample_sum, &a, 1, 64); /* nothing stays behind */
}
END_TEST

/* Against the conversions that kernels are defined by. */
START_TEST(halves_are_rounded_as_everywhere)
{
    sample_args a = args();
    static const uint32_t bits[] = {0,          0x80000000, 0x7f800000, 0xff800000, 0x477fefff,
                                    0x477ff000, 0x38800000, 0x387fffff, 0x33000000, 0x33000001,
                                    0x33800000, 0x7f7fffff, 0x3f801000, 0x3f803000, 0x3f808000,
                                    0x3f818000, 0x387fe000, 0x387ff000, 0x00000001, 0x38801000};
    for (int i = 0; i < N; i++) {
        uint32_t u = i < (int)COUNT_OF(bits) ? bits[i] : (uint32_t)i * 2654435761u;
        if ((u & 0x7fffffff) > 0x7f800000)
            u &= 0xbfffffff;
        memcpy(&x[i], &u, sizeof u);
    }
    int32_t got[N];
    a.i = got;
    runs(sample_halves, &a, 1, 64);
    for (int i = 0; i < N; i++) {
        uint16_t half[2] = {f32_to_f16(x[i]), f32_to_bf16(x[i])};
        float back[2] = {f16_to_f32(half[0]), bf16_to_f32(half[1])};
        ck_assert_msg(((uint32_t)got[i] & 0xffff) == half[0] && (uint32_t)got[i] >> 16 == half[1],
                      "%a: %x, not %x %x", (double)x[i], (unsigned)got[i], half[1], half[0]);
        ck_assert_mem_eq(&y[2 * i], back, sizeof back);
    }
}
END_TEST

START_TEST(bytes_are_multiplied_and_moved)
{
    sample_args a = args();
    runs(sample_bytes, &a, 1, 32);
    ck_assert_int_eq(ints[0], -1 * 3 + 2 * -3 + -2 * -128 + -128 * 127 + 10);
    ck_assert_int_eq(ints[1], 255 * 3 + 2 * 253 + 254 * 128 + 128 * 127 + 10);
    ck_assert_int_eq(ints[2], (int)0xff000480);
    ck_assert_int_eq(ints[3], 0x0f212eff);
    ck_assert_int_eq(ints[4], 200 - 4);
}
END_TEST

/* The product of a row of a and a column of b, each sum in the order of its numbers. */
static float half_product(const uint16_t *a, const uint16_t *b, float (*number)(uint16_t))
{
    float sum = 0;
    for (int k = 0; k < 16; k++) {
        const float product = number(a[k]) * number(b[k]);
        sum += product;
    }
    return sum;
}

static int byte_product(const uint16_t *a, const uint16_t *b, int n)
{
    int8_t p[32], q[32];
    int sum = 0;
    memcpy(p, a, sizeof p);
    memcpy(q, b, sizeof q);
    for (int k = 0; k < n; k++)
        sum += p[k] * q[k];
    return sum;
}

/* Every number of 16 bits, in rows of a. */
START_TEST(matrices_are_multiplied)
{
    enum { ROWS = 16, COLS = 8, DEEP = 16 };
    float (*const number[])(uint16_t) = {f16_to_f32, bf16_to_f32};
    uint16_t words[ROWS + COLS][DEEP];
    sample_args a = args();
    uint32_t random = 1;
    for (int from = 0; from <= UINT16_MAX; from += ROWS * DEEP) {
        for (int i = 0; i < (ROWS + COLS) * DEEP; i++) {
            random = random * 1664525u + 1013904223u;
            words[i / DEEP][i % DEEP] =
                (uint16_t)(i < ROWS * DEEP ? (uint32_t)(from + i)
                                           : (random >> 16 & 0x87ff) + 0x3000);
        }
        a.gate = (uint32_t *)(void *)words;
        runs(sample_products, &a, 1, 32);
        int wrong = 0;
        for (int i = 0; i < ROWS * COLS; i++) {
            const uint16_t *p = words[i / COLS], *q = words[ROWS + i % COLS];
            for (int k = 0; k < 2; k++) {
                const float want = half_product(p, q, number[k]), got = y[k * ROWS * COLS + i];
                wrong += !(isnan(want) && isnan(got)) && memcmp(&want, &got, sizeof got) != 0;
            }
            wrong += ints[i] != byte_product(p, q, 32);
            wrong += ints[ROWS * COLS + i] != byte_product(p, q, 16);
        }
        ck_assert_msg(wrong == 0, "from %04x: %d products", (unsigned)from, wrong);
    }
}
END_TEST

/* What is copied is unwritten until it was waited for. */
START_TEST(copies_come_when_they_are_waited_for)
{
    static const int32_t want[3][8] = {
        {-1, -1, -1, -1, -1, -1, -1, -1}, {1, 2, 3, 4, -1, -1, -1, -1}, {1, 2, 3, 4, 5, 6, 0, 0}};
    sample_args a = args();
    runs(sample_copies, &a, 1, 32);
    ck_assert_mem_eq(ints, want, sizeof want);
}
END_TEST

SUITE_MAIN("simt", sums_are_the_same_in_every_order, a_missing_barrier_shows,
           lanes_of_a_warp_exchange, resident_blocks_wait_for_each_other, what_cannot_go_on_is_told,
           halves_are_rounded_as_everywhere, bytes_are_multiplied_and_moved,
           matrices_are_multiplied, copies_come_when_they_are_waited_for)
