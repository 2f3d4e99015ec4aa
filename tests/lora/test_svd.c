/* test_svd.c - the nearest matrix of a rank, where it is known. */
#include "runtime/lora/svd.h"
#include "runtime/exec/pool.h"
#include "tests/base/suite.h"

#include <math.h>

/* Columns of a cosine table: at right angles to each other, of length 1. */
static double cosine(int n, int k, int i)
{
    return (k == 0 ? sqrt(1.0 / n) : sqrt(2.0 / n)) * cos(acos(-1) * (i + 0.5) * k / n);
}

/* A matrix with these singular values. */
static float *make(arena *a, int rows, int columns, const double *value, int n)
{
    float *x = ARENA_ARRAY(a, float, (size_t)(rows * columns));
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) {
            double sum = 0;
            for (int k = 0; k < n; k++)
                sum += value[k] * cosine(rows, k, r) * cosine(columns, n - 1 - k, c);
            x[r * columns + c] = (float)sum;
        }
    return x;
}

static double distance(const float *x, const svd_factors *f, int rows, int columns)
{
    double sum = 0;
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) {
            double y = x[r * columns + c];
            for (int64_t k = 0; k < f->rank; k++)
                y -= (double)f->b[r * f->rank + k] * f->a[k * columns + c];
            sum += y * y;
        }
    return sqrt(sum);
}

START_TEST(the_error_is_that_of_the_values_left_out)
{
    static const double value[] = {9, 7, 5, 4, 3, 2.5, 2, 1.5, 1, 0.9, 0.8, 0.7, 0.6, 0.5};
    static const int shapes[][2] = {{40, 60}, {60, 40}, {14, 200}, {33, 33}};
    for (size_t s = 0; s < COUNT_OF(shapes); s++)
        for (int rank = 1; rank <= 14; rank++) {
            arena *a = arena_create();
            int rows = shapes[s][0], columns = shapes[s][1];
            const float *x = make(a, rows, columns, value, COUNT_OF(value));
            svd_factors f = svd_truncated(x, rows, columns, rank, 1, a);
            double left = 0, all = 0;
            for (int k = 0; k < (int)COUNT_OF(value); k++) {
                all += value[k] * value[k];
                left += k >= rank ? value[k] * value[k] : 0;
            }
            ck_assert_int_eq(f.rank, rank);
            ck_assert_double_eq_tol(f.norm, sqrt(all), 1e-5);
            ck_assert_double_eq_tol(f.error, sqrt(left), 2e-3);
            ck_assert_double_eq_tol(distance(x, &f, rows, columns), sqrt(left), 2e-3);
            arena_destroy(a);
        }
}
END_TEST

START_TEST(a_rank_that_is_not_there_is_not_made_up)
{
    static const double value[] = {3, 2, 1};
    arena *a = arena_create();
    const float *x = make(a, 30, 20, value, 3);
    svd_factors f = svd_truncated(x, 30, 20, 10, 1, a);
    ck_assert_int_eq(f.rank, 3);
    ck_assert_double_lt(distance(x, &f, 30, 20), 1e-5);
    float *zero = ARENA_ARRAY(a, float, 30 * 20);
    f = svd_truncated(zero, 30, 20, 4, 1, a);
    ck_assert_int_eq(f.rank, 0);
    ck_assert_double_eq(f.error, 0);
    float one = -2.5f;
    f = svd_truncated(&one, 1, 1, 4, 1, a);
    ck_assert_int_eq(f.rank, 1);
    ck_assert_double_eq_tol((double)f.a[0] * f.b[0], -2.5, 1e-6);
    arena_destroy(a);
}
END_TEST

START_TEST(threads_change_nothing)
{
    static const double value[] = {9, 7, 5, 4, 3, 2.5, 2, 1.5, 1};
    weft_diag *dg = diag_create();
    arena *a = arena_create();
    const float *x = make(a, 150, 333, value, COUNT_OF(value));
    svd_factors f = svd_truncated(x, 150, 333, 5, 1, a);
    ck_assert_int_eq(pool_acquire(dg, 3, false), WEFT_OK);
    svd_factors g = svd_truncated(x, 150, 333, 5, 3, a);
    pool_release();
    ck_assert(memcmp(f.a, g.a, 5 * 333 * sizeof *f.a) == 0);
    ck_assert(memcmp(f.b, g.b, 150 * 5 * sizeof *f.b) == 0);
    arena_destroy(a);
    diag_destroy(dg);
}
END_TEST

SUITE_MAIN("svd", threads_change_nothing, the_error_is_that_of_the_values_left_out,
           a_rank_that_is_not_there_is_not_made_up)
