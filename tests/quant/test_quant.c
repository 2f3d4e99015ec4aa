/* test_quant.c - stored numbers are those of another program; the K types are as close as can be expected. */
#include "kernels/ref/dequant.h"
#include "runtime/quant/quant.h"
#include "tests/base/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROW = 96, LINE_MAX_BYTES = 1 << 13, BLOCK = 256, BLOCKS = 64 };

static size_t from_hex(const char *text, unsigned char *out, size_t most)
{
    size_t n = 0;
    unsigned byte;
    for (; n < most && sscanf(text + 2 * n, "%2x", &byte) == 1; n++)
        out[n] = (unsigned char)byte;
    return n;
}

START_TEST(recorded)
{
    FILE *f = fopen(WEFT_QUANT_CASES, "r");
    char line[LINE_MAX_BYTES], name[64] = "";
    float row[ROW];
    int compared = 0;
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f)) {
        char word[64];
        int at = 0;
        unsigned char want[sizeof row], got[sizeof row + 1];
        ck_assert_int_eq(sscanf(line, "%63s %n", word, &at), 1);
        if (strcmp(word, "row") == 0) {
            int skip = 0;
            ck_assert_int_eq(sscanf(line + at, "%63s %n", name, &skip), 1);
            ck_assert_uint_eq(from_hex(line + at + skip, (unsigned char *)row, sizeof row),
                              sizeof row);
            continue;
        }
        dtype t;
        size_t bytes;
        ck_assert(dtype_from_name(str_of(word), &t) && dtype_bytes(t, ROW, &bytes));
        ck_assert_uint_eq(from_hex(line + at, want, sizeof want), bytes);
        memset(got, 0xa5, sizeof got);
        quant_row(t, row, NULL, got, ROW);
        for (size_t i = 0; i < bytes; i++)
            ck_assert_msg(got[i] == want[i], "%s as %s: byte %zu is %02x, not %02x", name, word, i,
                          got[i], want[i]);
        ck_assert_uint_eq(got[bytes], 0xa5);
        compared++;
    }
    fclose(f);
    ck_assert_int_eq(compared, 14 * 7);
}
END_TEST

/* Irwin-Hall: the sum of twelve uniform numbers less six is normal enough. */
static float normal(uint64_t *state)
{
    float sum = -6;
    for (int i = 0; i < 12; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        sum += (float)(*state >> 40) / (float)(1 << 24);
    }
    return sum;
}

static void fill(float *x, int n, uint64_t seed)
{
    for (int i = 0; i < n; i++)
        x[i] = normal(&seed);
}

/* Root mean square error over that of the numbers; w NULL: all alike. */
static double error_of(dtype t, const float *x, const float *importance, const float *w, int n)
{
    size_t bytes;
    ck_assert(dtype_bytes(t, n, &bytes));
    unsigned char *q = malloc(bytes + 1);
    float *y = malloc((size_t)n * sizeof *y);
    double off = 0, all = 0;
    quant_row(t, x, importance, q + 1, n); /* at an odd address */
    dequant_row(t, q + 1, y, n);
    for (int i = 0; i < n; i++) {
        double d = (double)y[i] - (double)x[i], wi = w ? (double)w[i] : 1;
        off += wi * d * d;
        all += wi * (double)x[i] * (double)x[i];
    }
    free(q);
    free(y);
    return sqrt(off / all);
}

/* For normal numbers llama.cpp's quantisers leave 0.0714, 0.0362 and 0.0178; these leave 2 to 5 % less. */
START_TEST(close_enough)
{
    static const struct {
        dtype t;
        double least, most;
    } cases[] = {{DT_Q4_K, 0.065, 0.0714}, {DT_Q5_K, 0.030, 0.0355}, {DT_Q6_K, 0.015, 0.0173}};
    static float x[BLOCKS * BLOCK];
    fill(x, BLOCKS * BLOCK, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int scale = -20; scale <= 10; scale += 10) { /* the error follows the numbers */
            static float y[BLOCKS * BLOCK];
            for (int k = 0; k < BLOCKS * BLOCK; k++)
                y[k] = ldexpf(x[k], scale / 2);
            double e = error_of(cases[i].t, y, NULL, NULL, BLOCKS * BLOCK);
            ck_assert_msg(e > cases[i].least && e < cases[i].most, "%s at 2^%d: %g",
                          dtype_row_of(cases[i].t)->name, scale / 2, e);
        }
}
END_TEST

static const dtype k_types[] = {DT_Q4_K, DT_Q5_K, DT_Q6_K};
static const dtype all_types[] = {DT_F32,  DT_F16,  DT_BF16, DT_Q8_0, DT_Q4_0, DT_Q4_1,
                                  DT_Q5_0, DT_Q5_1, DT_Q4_K, DT_Q5_K, DT_Q6_K};

START_TEST(importance)
{
    static float x[BLOCKS * BLOCK], w[BLOCKS * BLOCK];
    fill(x, BLOCKS * BLOCK, 2);
    for (int i = 0; i < BLOCKS * BLOCK; i++)
        w[i] = i % 8 == 3 ? 100.0f : 0.1f;
    for (size_t i = 0; i < sizeof k_types / sizeof *k_types; i++) {
        double without = error_of(k_types[i], x, NULL, w, BLOCKS * BLOCK);
        double with = error_of(k_types[i], x, w, w, BLOCKS * BLOCK);
        ck_assert_msg(with < 0.8 * without, "%s: %g with, %g without",
                      dtype_row_of(k_types[i])->name, with, without);
    }
    /* weights that are no weights count as none */
    for (int i = 0; i < BLOCKS * BLOCK; i++)
        w[i] = i % BLOCK < 128 ? 0 : NAN;
    for (size_t i = 0; i < sizeof k_types / sizeof *k_types; i++)
        ck_assert_double_eq(error_of(k_types[i], x, w, NULL, BLOCKS * BLOCK),
                            error_of(k_types[i], x, NULL, NULL, BLOCKS * BLOCK));
}
END_TEST

/* Numbers that a block can hold exactly come back exactly. */
START_TEST(exact)
{
    float x[BLOCK], y[BLOCK];
    unsigned char q[BLOCK * 4];
    for (size_t i = 0; i < sizeof all_types / sizeof *all_types; i++) {
        memset(x, 0, sizeof x);
        quant_row(all_types[i], x, NULL, q, BLOCK);
        dequant_row(all_types[i], q, y, BLOCK);
        for (int k = 0; k < BLOCK; k++)
            ck_assert_float_eq(y[k], 0);
    }
    for (int k = 0; k < BLOCK; k++)
        x[k] = (float)(k * 7 % 16) * 0.25f - 1.75f; /* 16 levels around zero */
    for (size_t i = 0; i < sizeof k_types / sizeof *k_types; i++) {
        quant_row(k_types[i], x, NULL, q, BLOCK);
        dequant_row(k_types[i], q, y, BLOCK);
        for (int k = 0; k < BLOCK; k++)
            ck_assert_float_eq_tol(y[k], x[k], 0.004f);
    }
}
END_TEST

/* What is not a number does not become one; the blocks beside it are as they would be. */
START_TEST(not_finite)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    float x[2 * BLOCK], y[2 * BLOCK];
    unsigned char q[2 * BLOCK * 4];
    for (size_t b = 0; b < 3; b++)
        for (size_t i = 0; i < sizeof all_types / sizeof *all_types; i++) {
            fill(x, 2 * BLOCK, 3);
            x[40] = bad[b];
            quant_row(all_types[i], x, NULL, q, 2 * BLOCK);
            dequant_row(all_types[i], q, y, 2 * BLOCK);
            ck_assert_msg(!isfinite(y[40]), "%s makes %g of %g", dtype_row_of(all_types[i])->name,
                          (double)y[40], (double)bad[b]);
            for (int k = BLOCK; k < 2 * BLOCK; k++)
                ck_assert(isfinite(y[k]));
        }
}
END_TEST

/* Any bits at all: no crash, which sanitizers would see. */
START_TEST(any_bits)
{
    uint64_t state = 5;
    for (int round = 0; round < 200; round++) {
        float x[BLOCK], w[BLOCK];
        unsigned char q[BLOCK * 4];
        for (int k = 0; k < BLOCK; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            uint32_t a = (uint32_t)(state >> 32), b = (uint32_t)state;
            memcpy(&x[k], &a, sizeof a);
            memcpy(&w[k], &b, sizeof b);
        }
        if (round % 2)
            for (int k = 0; k < BLOCK; k++)
                x[k] = isfinite(x[k]) ? x[k] : 0;
        for (size_t i = 0; i < sizeof all_types / sizeof *all_types; i++)
            quant_row(all_types[i], x, round % 3 ? w : NULL, q, BLOCK);
    }
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("all");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, recorded);
    tcase_add_test(c, close_enough);
    tcase_add_test(c, importance);
    tcase_add_test(c, exact);
    tcase_add_test(c, not_finite);
    tcase_add_test(c, any_bits);
    return suite_run("quant", c, CK_FORK_GETENV);
}
