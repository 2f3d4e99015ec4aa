/* test_sample.c - the sampling chain on logits small enough to work out by hand, and its promises. */
#include "runtime/sample/sample.h"
#include "runtime/sample/stop.h"
#include "tests/base/suite.h"

#include <math.h>
#include <stdlib.h>

/* Everything off: draws from the plain softmax. */
static sampler_options bare(void)
{
    sampler_options o = sampler_defaults();
    o.temp = 1;
    o.top_k = 0;
    o.top_p = 1;
    o.min_p = 0;
    o.seed = 7;
    return o;
}

static sampler *make(const sampler_options *o, int64_t n)
{
    sampler *s = NULL;
    weft_diag *dg = diag_create();
    ck_assert_int_eq(sampler_create(dg, o, n, 32, &s), WEFT_OK);
    diag_destroy(dg);
    return s;
}

/* Which tokens come out of many draws, as a bit mask; bit 31: none can. */
enum { NONE = 31 };
static unsigned drawn(const sampler_options *o, const float *logits, int n, int times)
{
    sampler *s = make(o, n);
    unsigned mask = 0;
    for (int i = 0; i < times; i++) {
        int32_t id = sampler_choose(s, logits);
        mask |= 1u << (id < 0 ? NONE : id);
    }
    sampler_destroy(s);
    return mask;
}

static const float ladder[5] = {0.0f, 2.0f, 1.0f, 3.0f, -1.0f}; /* p: .032 .234 .086 .636 .012 */

START_TEST(greedy_takes_the_likeliest)
{
    sampler_options o = sampler_defaults();
    const float tie[4] = {1, 5, 5, 2};
    o.temp = 0;
    ck_assert_uint_eq(drawn(&o, ladder, 5, 3), 1u << 3);
    ck_assert_uint_eq(drawn(&o, tie, 4, 3), 1u << 1); /* the lower id */
    o.samplers = "top_k"; /* a chain without temperature is greedy all the same */
    o.top_k = 0;
    ck_assert_uint_eq(drawn(&o, ladder, 5, 3), 1u << 3);
}
END_TEST

START_TEST(each_step_keeps_what_it_says)
{
    sampler_options o = bare();
    ck_assert_uint_eq(drawn(&o, ladder, 5, 2000), 0x1f);
    o.top_k = 2;
    ck_assert_uint_eq(drawn(&o, ladder, 5, 500), 1u << 3 | 1u << 1);
    o = bare();
    o.top_p = 0.65; /* .636 does not reach it, so the next comes along */
    ck_assert_uint_eq(drawn(&o, ladder, 5, 500), 1u << 3 | 1u << 1);
    o.top_p = 0.6;
    ck_assert_uint_eq(drawn(&o, ladder, 5, 500), 1u << 3);
    o = bare();
    o.min_p = 0.2; /* e^-1 = .37 of the best passes, e^-2 = .14 does not */
    ck_assert_uint_eq(drawn(&o, ladder, 5, 500), 1u << 3 | 1u << 1);
    o = bare();
    o.typical =
        0.2; /* entropy 1.0 nats: the surprise of 1 (1.45) is nearer to it than that of 3 (.45) */
    ck_assert_uint_eq(drawn(&o, ladder, 5, 500), 1u << 1);
    o = bare();
    o.xtc_probability = 1;
    o.xtc_threshold = 0.2; /* 3 and 1 are above: 3 goes, 1 stays */
    ck_assert_uint_eq(drawn(&o, ladder, 5, 3000), 0x1f & ~(1u << 3));
}
END_TEST

START_TEST(frequencies_follow_the_softmax)
{
    sampler_options o = bare();
    sampler *s = make(&o, 5);
    enum { DRAWS = 100000 };
    int n[5] = {0};
    double sum = 0;
    for (int i = 0; i < 5; i++)
        sum += exp(ladder[i]);
    for (int i = 0; i < DRAWS; i++)
        n[sampler_choose(s, ladder)]++;
    for (int i = 0; i < 5; i++) { /* four standard deviations */
        double p = exp(ladder[i]) / sum, off = fabs(n[i] / (double)DRAWS - p);
        ck_assert_double_lt(off, 4 * sqrt(p * (1 - p) / DRAWS));
    }
    sampler_destroy(s);
}
END_TEST

START_TEST(penalties_reach_back_as_far_as_told)
{
    sampler_options o = bare();
    const float even[3] = {1.0f, 1.1f, 1.05f};
    o.temp = 0;
    o.repeat = 2;
    o.last_n = 2;
    sampler *s = make(&o, 3);
    ck_assert_int_eq(sampler_choose(s, even), 1);
    sampler_accept(s, 1);
    ck_assert_int_eq(sampler_choose(s, even), 2);
    sampler_accept(s, 2);
    ck_assert_int_eq(sampler_choose(s, even), 0);
    sampler_accept(s, 0);
    ck_assert_int_eq(sampler_choose(s, even), 1); /* two tokens ago is forgotten */
    sampler_destroy(s);
    o.repeat = 1;
    o.frequency = 0.02;
    s = make(&o, 3);
    for (int i = 0; i < 2; i++)
        sampler_accept(s, 1);
    ck_assert_int_eq(sampler_choose(s, even), 1); /* 1.1 - .04 is still best */
    sampler_destroy(s);
    o.last_n = 3;
    s = make(&o, 3);
    for (int i = 0; i < 3; i++)
        sampler_accept(s, 1);
    ck_assert_int_eq(sampler_choose(s, even), 2); /* 1.1 - .06 is not */
    sampler_destroy(s);
}
END_TEST

START_TEST(dry_breaks_a_repeated_run)
{
    sampler_options o = bare();
    const float flat[6] = {1.0f, 1.0f, 1.0f, 1.5f, 1.0f, 1.0f};
    o.temp = 0;
    o.dry_multiplier = 1;
    sampler *s = make(&o, 6);
    const int32_t text[] = {1, 2, 3, 4, 1, 2}; /* 3 followed "1 2" before */
    for (int i = 0; i < 6; i++)
        sampler_accept(s, text[i]);
    ck_assert_int_ne(sampler_choose(s, flat), 3);
    sampler_destroy(s);
    const int32_t breaker[] = {2};
    o.dry_breakers = breaker;
    o.n_breaker = 1;
    s = make(&o, 6);
    for (int i = 0; i < 6; i++)
        sampler_accept(s, text[i]);
    ck_assert_int_eq(sampler_choose(s, flat), 3);
    sampler_destroy(s);
}
END_TEST

START_TEST(bias_and_impossible_logits)
{
    sampler_options o = bare();
    const logit_bias ban[] = {{3, -INFINITY}, {4, 10.0f}};
    o.temp = 0;
    o.bias = ban;
    o.n_bias = 2;
    ck_assert_uint_eq(drawn(&o, ladder, 5, 2), 1u << 4);
    const float none[3] = {NAN, -INFINITY, NAN}, some[3] = {NAN, 1, INFINITY};
    o = sampler_defaults();
    ck_assert_uint_eq(drawn(&o, none, 3, 3), 1u << NONE);
    o.temp = 0;
    ck_assert_uint_eq(drawn(&o, none, 3, 3), 1u << NONE);
    ck_assert_uint_eq(drawn(&o, some, 3, 3), 1u << 2);
}
END_TEST

START_TEST(same_seed_same_tokens)
{
    enum { N = 1000, DRAWS = 50 };
    static float logits[N];
    int32_t first[DRAWS];
    sampler_options o = sampler_defaults();
    o.seed = 42;
    srand(1);
    for (int i = 0; i < N; i++)
        logits[i] = (float)(rand() % 1000) / 100;
    for (int mirostat = 0; mirostat <= 2; mirostat += 2) {
        o.mirostat = mirostat;
        sampler *s = make(&o, N);
        for (int i = 0; i < DRAWS; i++)
            first[i] = sampler_choose(s, logits);
        sampler_reset(s);
        for (int i = 0; i < DRAWS; i++)
            ck_assert_int_eq(sampler_choose(s, logits), first[i]);
        sampler_destroy(s);
    }
}
END_TEST

START_TEST(wrong_options_are_named)
{
    sampler *s = NULL;
    weft_diag *dg = diag_create();
    sampler_options o = sampler_defaults();
    o.top_p = 1.5;
    ck_assert_int_eq(sampler_create(dg, &o, 5, 5, &s), WEFT_ERR_USAGE);
    o = sampler_defaults();
    o.samplers = "top_k;tempreature";
    ck_assert_int_eq(sampler_create(dg, &o, 5, 5, &s), WEFT_ERR_USAGE);
    o.samplers = "top_k;top_k";
    ck_assert_int_eq(sampler_create(dg, &o, 5, 5, &s), WEFT_ERR_USAGE);
    const logit_bias far[] = {{5, 1}};
    o = sampler_defaults();
    o.bias = far;
    o.n_bias = 1;
    ck_assert_int_eq(sampler_create(dg, &o, 5, 5, &s), WEFT_ERR_USAGE);
    ck_assert_ptr_null(s);
    diag_destroy(dg);
}
END_TEST

/* select_top against a full sort, with many ties. */
START_TEST(the_best_of_many)
{
    enum { N = 5000 };
    static float logits[N];
    token_logprob top[300];
    srand(3);
    for (int i = 0; i < N; i++)
        logits[i] = (float)(rand() % 400);
    for (int64_t k = 1; k <= 300; k += 23) {
        ck_assert_int_eq(logprobs_top(logits, N, top, k), k);
        for (int64_t i = 0; i < k; i++) {
            int64_t ahead = 0; /* how many are better: its rank must be i */
            for (int m = 0; m < N; m++)
                ahead += logits[m] > logits[top[i].id] ||
                         (logits[m] == logits[top[i].id] && m < top[i].id);
            ck_assert_int_eq(ahead, i);
        }
    }
    const float two[2] = {0, (float)log(3)};
    ck_assert_int_eq(logprobs_top(two, 2, top, 9), 2);
    ck_assert_float_eq_tol(top[0].logprob, (float)log(0.75), 1e-6f);
    ck_assert_float_eq_tol(logprob_of(two, 2, 0), (float)log(0.25), 1e-6f);
}
END_TEST

static void feed(const char *const *stops, size_t n, const char *const *parts, const char *shown,
                 int found)
{
    stop_watch w;
    strbuf out = {0};
    stop_init(&w, stops, n);
    for (; *parts; parts++)
        stop_put(&w, str_of(*parts), &out);
    stop_flush(&w, &out);
    ck_assert_str_eq(out.n ? out.p : "", shown);
    ck_assert_int_eq(w.found, found);
    strbuf_free(&out);
    stop_deinit(&w);
}

START_TEST(stop_strings_straddle_tokens)
{
    const char *const stops[] = {"<end>", "\n\n", ""};
    feed(stops, 3, (const char *const[]){"one <", "en", "d> two", NULL}, "one ", 0);
    feed(stops, 3, (const char *const[]){"one <", "en", "ds two", NULL}, "one <ends two", -1);
    feed(stops, 3, (const char *const[]){"a\n", "b\n", "\nc", NULL}, "a\nb", 1);
    feed(stops, 3, (const char *const[]){"x<<end>y", NULL}, "x<", 0);
    feed(stops, 3, (const char *const[]){"tail <e", NULL}, "tail <e", -1);
    feed(stops, 0, (const char *const[]){"plain", NULL}, "plain", -1);
}
END_TEST

/* What has to come out of text, fed in parts of at most three bytes. */
START_TEST(stop_strings_that_repeat_themselves)
{
    static const char *const stops[] = {"aabaa", "abab", "bbb"};
    uint64_t state = 1;
    for (int round = 0; round < 3000; round++) {
        char text[41] = {0};
        size_t n = 1 + (size_t)round % (sizeof text - 1);
        for (size_t i = 0; i < n; i++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            text[i] = (char)('a' + (state >> 40 & 1));
        }
        stop_watch w;
        strbuf out = {0};
        stop_init(&w, stops, 3);
        size_t fed = 0;
        bool met = false;
        while (fed < n && !met) {
            size_t part = 1 + (fed + (size_t)round) % 3;
            part = part < n - fed ? part : n - fed;
            met = stop_put(&w, (str){text + fed, part}, &out);
            fed += part;
        }
        stop_flush(&w, &out);
        str all = {text, fed};
        size_t first = fed;
        for (int i = 0; i < 3; i++) {
            const char *hit = memmem(all.p, all.n, stops[i], strlen(stops[i]));
            if (hit && (size_t)(hit - text) < first)
                first = (size_t)(hit - text);
        }
        ck_assert_int_eq(met, first < fed);
        ck_assert_uint_eq(out.n, first);
        ck_assert(memcmp(out.n ? out.p : "", text, first) == 0);
        strbuf_free(&out);
        stop_deinit(&w);
    }
}
END_TEST

START_TEST(a_long_stop_string_costs_no_more_than_a_short_one)
{
    enum { N = 1 << 20 };
    strbuf stop = {0}, out = {0};
    strbuf_fill(&stop, 'a', N);
    strbuf_putc(&stop, 'b');
    stop_watch w;
    stop_init(&w, (const char *const[]){stop.p}, 1);
    for (size_t i = 0; i < 3 * N; i++) /* hours, where each byte looks at all that is held */
        ck_assert(!stop_put(&w, STR("a"), &out));
    ck_assert_uint_eq(out.n, 2 * N);
    ck_assert(stop_put(&w, STR("b"), &out));
    ck_assert_uint_eq(out.n, 2 * N);
    stop_deinit(&w);
    strbuf_free(&stop);
    strbuf_free(&out);
}
END_TEST

SUITE_MAIN("sample", greedy_takes_the_likeliest, each_step_keeps_what_it_says,
           frequencies_follow_the_softmax, penalties_reach_back_as_far_as_told,
           dry_breaks_a_repeated_run, bias_and_impossible_logits, same_seed_same_tokens,
           wrong_options_are_named, the_best_of_many, stop_strings_straddle_tokens,
           stop_strings_that_repeat_themselves, a_long_stop_string_costs_no_more_than_a_short_one)
