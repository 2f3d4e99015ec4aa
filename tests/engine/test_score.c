/* test_score.c - the suite of runtime/engine/score.c: log-probabilities, means, divergences. */
#include "runtime/engine/score.h"
#include "runtime/formats/kl_file.h"
#include "tests/base/suite.h"
#include <math.h>

enum { N = 1000 };

static void near(double got, double want, double bound)
{
    if (!(fabs(got - want) <= bound))
        ck_abort_msg("%.12g is not within %g of %.12g", got, bound, want);
}

/* Logits of some spread, the same in every run. */
static void fill(float *x, unsigned seed, float spread)
{
    uint64_t s = seed * 2654435761u + 1;
    for (int i = 0; i < N; i++) {
        s = s * 6364136223846793005u + 1442695040888963407u;
        x[i] = spread * (float)((double)(s >> 40) / (1 << 24) - 0.5);
    }
}

static void steps_of(const float *x, const row_sum *s, uint16_t *below)
{
    for (int i = 0; i < N; i++)
        below[i] = (uint16_t)fminf(roundf((s->largest - x[i]) * KL_STEPS), 65535);
}

/* The definition, in double. */
static double kl_plain(const float *p, const float *q)
{
    double zp = 0, zq = 0, kl = 0;
    for (int i = 0; i < N; i++) {
        zp += exp((double)p[i]);
        zq += exp((double)q[i]);
    }
    for (int i = 0; i < N; i++)
        kl += exp((double)p[i]) / zp * ((double)p[i] - log(zp) - (double)q[i] + log(zq));
    return kl;
}

START_TEST(log_probabilities)
{
    const float x[] = {0, logf(3), -1e30f, logf(4)};
    row_sum s;
    ck_assert(row_sum_of(x, 4, &s));
    ck_assert_int_eq(s.top, 3);
    near(row_logprob(x, &s, 0), log(1.0 / 8), 1e-6);
    near(row_logprob(x, &s, 1), log(3.0 / 8), 1e-6);
    near(row_logprob(x, &s, 3), log(4.0 / 8), 1e-6);

    const float large[] = {3e38f, 3e38f}; /* neither overflows nor cancels */
    ck_assert(row_sum_of(large, 2, &s));
    near(row_logprob(large, &s, 1), log(0.5), 1e-6);
    ck_assert_int_eq(s.top, 0); /* the first of equals */
}
END_TEST

START_TEST(what_is_not_finite_is_seen)
{
    const float bad[] = {NAN, INFINITY, -INFINITY};
    row_sum s;
    for (int i = 0; i < 3; i++)
        for (int at = 0; at < 3; at++) {
            float x[3] = {1, 2, 3};
            x[at] = bad[i];
            ck_assert(!row_sum_of(x, 3, &s));
        }
    ck_assert(!row_sum_of(bad, 0, &s));
}
END_TEST

START_TEST(what_is_not_a_number_is_counted)
{
    const float x[] = {1, -INFINITY, NAN, 0, INFINITY, -3e38f};
    int64_t first = -1;
    ck_assert_int_eq(count_not_numbers(x, 6, &first), 2);
    ck_assert_int_eq(first, 2);
    first = -1;
    ck_assert_int_eq(count_not_numbers(x, 2, &first), 0);
    ck_assert_int_eq(count_not_numbers(x, 0, &first), 0);
    ck_assert_int_eq(first, -1);
}
END_TEST

START_TEST(means)
{
    mean_of m = {0};
    ck_assert(isnan(mean_value(&m)));
    mean_add(&m, 4);
    near(mean_value(&m), 4, 0);
    near(mean_error(&m), 0, 0);
    mean_add(&m, 6);
    mean_add(&m, 11);
    near(mean_value(&m), 7, 1e-12);
    near(mean_error(&m), sqrt((9 + 1 + 16) / 3.0 / 2), 1e-12);
}
END_TEST

START_TEST(divergence)
{
    static float p[N], q[N], weights[65536];
    static uint16_t below[N];
    kl_weights(weights);
    for (unsigned seed = 1; seed < 20; seed++) {
        row_sum sp, sq;
        fill(p, seed, (float)seed); /* up to 19 apart: half of it nearly impossible */
        fill(q, seed + 100, (float)seed);
        ck_assert(row_sum_of(p, N, &sp) && row_sum_of(q, N, &sq));
        steps_of(p, &sp, below);
        double want = kl_plain(p, q);
        near(kl_of_row(below, weights, KL_STEPS, q, N, &sq), want, 1e-4 * want + 1e-5);
        /* From itself: only the rounding is left, and it is never negative. */
        double same = kl_of_row(below, weights, KL_STEPS, p, N, &sp);
        ck_assert(same >= 0);
        near(same, 0, 1e-6);
    }
}
END_TEST

START_TEST(divergence_of_the_improbable)
{
    static float p[N], q[N], weights[65536];
    static uint16_t below[N];
    row_sum sp, sq;
    kl_weights(weights);
    for (int i = 0; i < N; i++) {
        p[i] = i ? -1000.0f : 0; /* beyond what a step can tell */
        q[i] = i == 1 ? 10.0f : 0;
    }
    ck_assert(row_sum_of(p, N, &sp) && row_sum_of(q, N, &sq));
    steps_of(p, &sp, below);
    near(kl_of_row(below, weights, KL_STEPS, q, N, &sq), log(exp(10.0) + N - 1), 1e-5);
}
END_TEST

START_TEST(statistics)
{
    kl_stats s = {0};
    ck_assert(isnan(kl_stats_percentile(&s, 0.5)));
    for (int i = 100; i >= 0; i--)
        kl_stats_add(&s, i / 100.0, log(0.5), log(0.25), i < 75);
    kl_stats_sort(&s);
    near(mean_value(&s.kl), 0.5, 1e-9);
    near(kl_stats_percentile(&s, 0), 0, 0);
    near(kl_stats_percentile(&s, 0.5), 0.5, 1e-6);
    near(kl_stats_percentile(&s, 0.999), 0.999, 1e-6); /* between the last two */
    near(kl_stats_percentile(&s, 1), 1, 0);
    near(mean_value(&s.same_top), 75.0 / 101, 1e-12);
    near(mean_value(&s.nll_change), log(0.5), 1e-12);
    near(mean_error(&s.nll_change), 0, 1e-8);
    near(mean_value(&s.p_change), 0.25, 1e-12);
    kl_stats_free(&s);
}
END_TEST

SUITE_MAIN("score", log_probabilities, what_is_not_finite_is_seen, what_is_not_a_number_is_counted,
           means, divergence, divergence_of_the_improbable, statistics)
