/* test_bench_table.c - the suite of runtime/cli/bench_table.c: what is made of the rates measured. */
#include "runtime/cli/bench_table.h"
#include "tests/base/suite.h"
#include <math.h>

static bench_row row_of(const double *rates, size_t n)
{
    bench_row r = {.n_gen = 128, .n_seq = 1};
    for (size_t i = 0; i < n; i++)
        VEC_PUSH(&r.rates, rates[i]);
    return r;
}

static void near(double got, double want)
{
    ck_assert_msg(fabs(got - want) < 1e-9, "%g is not %g", got, want);
}

START_TEST(rates)
{
    bench_row r = row_of((double[]){4, 1, 3, 12}, 4);
    bench_rates s = bench_rates_of(&r);
    near(s.mean, 5);
    near(s.deviation, sqrt((1 + 16 + 4 + 49) / 3.0));
    near(s.median, 3.5);
    near(s.least, 1);
    near(r.rates.at[0], 4); /* their order is kept */
    VEC_FREE(&r.rates);

    r = row_of((double[]){7}, 1);
    s = bench_rates_of(&r);
    near(s.mean, 7);
    near(s.deviation, 0);
    near(s.median, 7);
    VEC_FREE(&r.rates);

    r = row_of(NULL, 0);
    near(bench_rates_of(&r).mean, 0);
}
END_TEST

START_TEST(share_of_bandwidth)
{
    bench_about a = {.bandwidth = 1000};
    bench_row r = row_of((double[]){8, 8, 2}, 3);
    r.call_bytes = 50;
    near(bench_share_of(&a, &r), 0.4); /* 8 calls of 50 bytes a second */
    r.n_seq = 4;
    near(bench_share_of(&a, &r), 0.1); /* 4 tokens come of each call */
    a.bandwidth = 0;
    near(bench_share_of(&a, &r), 0);
    VEC_FREE(&r.rates);
}
END_TEST

START_TEST(names)
{
    const struct {
        bench_row row;
        const char *name;
    } cases[] = {
        {{.n_prompt = 512, .n_seq = 1}, "pp512"},
        {{.n_gen = 128, .n_seq = 1}, "tg128"},
        {{.n_gen = 16, .n_seq = 8}, "tg16 x8"},
        {{.n_prompt = 4, .n_seq = 1, .depth = 4096}, "pp4 @ d4096"},
        {{.n_gen = 16, .n_seq = 8, .depth = 1}, "tg16 x8 @ d1"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        strbuf out = {0};
        bench_test_name(&cases[i].row, &out);
        ck_assert_str_eq(out.p, cases[i].name);
        strbuf_free(&out);
    }
}
END_TEST

START_TEST(long_names_fit)
{
    char name[200];
    strbuf out = {0};
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    bench_about a = {
        .model = name, .backend = "CPU", .exec = "plan", .threads = 1024, .n_param = INT64_MAX};
    bench_row r = {.n_gen = INT32_MAX, .n_seq = INT32_MAX, .depth = INT32_MAX};
    bench_text_head(&a, true, &out);
    bench_text_row(&a, &r, true, &out);
    bench_text_foot(&a, true, &out);
    bench_json(&a, &r, 1, &out);
    ck_assert_ptr_nonnull(strstr(out.p, "tg2147483647 x2147483647 @ d2147483647"));
    strbuf_free(&out);
}
END_TEST

SUITE_MAIN("bench_table", rates, share_of_bandwidth, names, long_names_fit)
