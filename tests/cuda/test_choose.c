/* test_choose.c - tokens chosen by the card's code are those that the host's sampler chooses, for any logits and chain. */
#include "runtime/sample/sample.h"
#include "tests/base/suite.h"
#include "tests/cuda/emulated.h"

#include <math.h>

void emulated_fail(const char *what)
{
    ck_abort_msg("%s", what);
}

static uint64_t seed_now;

static uint64_t random_word(void)
{
    seed_now = seed_now * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return seed_now >> 33;
}

static double random_share(void)
{
    return (double)random_word() / (double)(UINT64_C(1) << 31);
}

#define ONE_OF(list) (list)[random_word() % (sizeof(list) / sizeof *(list))]

/* ---- logits ---- */

typedef enum { BELL, TIES, FLAT, STEEP, ZEROS, HOLES, ENDLESS, NONE, LOGITS } logits_kind;

static float logit(logits_kind kind)
{
    double bell = random_share() + random_share() + random_share() + random_share() - 2;
    switch (kind) {
    case BELL:
        return (float)(12 * bell);
    case TIES:
        return (float)(random_word() % 5);
    case FLAT:
        return -1.25f;
    case STEEP:
        return (float)(200 * bell);
    case ZEROS:
        return random_word() % 2 ? 0.0f : -0.0f;
    case HOLES:
        return random_word() % 3 == 0 ? NAN : random_word() % 3 == 0 ? -INFINITY : (float)bell;
    case ENDLESS:
        return random_word() % 7 == 0 ? INFINITY : (float)(1e38 * bell);
    default:
        return random_word() % 2 ? NAN : -INFINITY;
    }
}

/* ---- options ---- */

/* Some of the steps that devices do, in any order. */
static const char *random_chain(char *text, size_t bytes)
{
    static const char *const names[] = {"top_k", "top_p", "min_p", "temperature"};
    int order[] = {0, 1, 2, 3};
    if (random_word() % 3 == 0)
        return NULL;
    text[0] = '\0';
    for (int i = 3; i > 0; i--) {
        int k = (int)(random_word() % (uint64_t)(i + 1)), t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
    for (int i = 0; i < 4; i++)
        if (random_word() % 4 != 0) {
            size_t n = strlen(text);
            snprintf(text + n, bytes - n, "%s%s", n ? ";" : "", names[order[i]]);
        }
    return text;
}

static sampler_options random_options(char *text, size_t bytes, int64_t vocab)
{
    static const double temps[] = {0, 0.01, 0.3, 0.8, 1, 1.7, 40, 1e4, 1e-30};
    static const double shares[] = {0, 0.01, 0.3, 0.5, 0.9, 0.95, 0.9999, 1, 1};
    static const double least[] = {0, 0, 1e-6, 0.01, 0.05, 0.5, 1};
    const int64_t ks[] = {0,    0,    1,    2,    7,         40,    64,       100,
                          1023, 1024, 1025, 2000, vocab - 1, vocab, vocab + 3};
    sampler_options o = sampler_defaults();
    o.seed = random_word();
    o.temp = ONE_OF(temps);
    o.top_p = ONE_OF(shares);
    o.min_p = ONE_OF(least);
    o.top_k = ONE_OF(ks);
    o.top_k = o.top_k < 0 ? 0 : o.top_k;
    o.samplers = random_chain(text, bytes);
    return o;
}

/* ---- both ---- */

enum { DRAWS = 3, ROWS = 3 };

static void compare(int64_t vocab, int threads, logits_kind kind)
{
    char text[100], error[FIBRE_ERROR_MAX];
    weft_diag *dg = diag_create();
    sampler *host[ROWS];
    ksampled got[2][ROWS], seen[ROWS];
    float *logits = malloc((size_t)(vocab * ROWS) * sizeof *logits);
    static float stripes[ROWS * CHOOSE_STRIPES];
    uint32_t found[ROWS] = {0};
    cuda_choice a = {.logits = logits, .width = vocab, .found = found};
    sampler_options o[ROWS];
    for (int i = 0; i < ROWS; i++) {
        o[i] = random_options(text, sizeof text, vocab);
        ck_assert_int_eq(sampler_create(dg, &o[i], vocab, 1, &host[i]), WEFT_OK);
        ck_assert_ptr_null(sampler_for_device(host[i], &a.how_few[i]));
    }
    for (int d = 0; d < DRAWS; d++) {
        for (int64_t i = 0; i < vocab * ROWS; i++)
            logits[i] = logit(kind);
        a.chosen = got[d % 2];
        a.before = got[1 - d % 2];
        a.host = seen;
        a.turn = (uint32_t)d + 1;
        for (size_t i = 0; i < COUNT_OF(stripes); i++)
            stripes[i] = INFINITY; /* of before */
        a.stripes = d % 2 ? stripes : NULL;
        ck_assert_msg(emulated_choose(&a, ROWS, threads, error), "%s", error);
        for (int i = 0; i < ROWS; i++)
            ck_assert_uint_eq(found[i], 0);
        for (int i = 0; i < ROWS; i++) {
            int32_t want = sampler_choose(host[i], logits + i * vocab);
            ck_assert_msg(seen[i].id == want && got[d % 2][i].id == want && seen[i].turn == a.turn,
                          "%d instead of %d: vocab %lld, logits %d, draw %d, temp %g, top_k %lld, "
                          "top_p %g, min_p %g",
                          seen[i].id, want, (long long)vocab, (int)kind, d, o[i].temp,
                          (long long)o[i].top_k, o[i].top_p, o[i].min_p);
            /* The row before goes on with its random numbers. */
            a.how_few[i].from = i;
            a.how_few[i].rng[0] = a.how_few[i].rng[1] = 0;
        }
    }
    for (int i = 0; i < ROWS; i++) {
        ksample next;
        ck_assert_ptr_null(sampler_for_device(host[i], &next));
        ck_assert_mem_eq(next.rng, seen[i].rng, sizeof next.rng);
        sampler_destroy(host[i]);
    }
    free(logits);
    diag_destroy(dg);
}

START_TEST(small_vocabularies_agree)
{
    static const int64_t sizes[] = {1, 2, 3, 5, 31, 64, 65, 100};
    seed_now = 1;
    for (int i = 0; i < 1500; i++)
        compare(ONE_OF(sizes), 32 << random_word() % 3, (logits_kind)(i % LOGITS));
}
END_TEST

START_TEST(large_vocabularies_agree)
{
    static const int64_t sizes[] = {1023, 1024, 1025, 2500, 4099, 7000};
    seed_now = 2;
    for (int i = 0; i < 400; i++)
        compare(ONE_OF(sizes), 64, (logits_kind)(i % LOGITS));
}
END_TEST

START_TEST(the_largest_agree)
{
    seed_now = 3;
    for (int i = 0; i < LOGITS; i++)
        compare(i % 2 ? 262144 : 151936, 256, (logits_kind)i);
}
END_TEST

/* A draw that points at where one token's share ends and the next one's begins is the next one's; one less, and it is the
 * first's. All tokens weigh the same, so that random numbers which point there are known. On the card by a list of candidates, and
 * by the search of vocabularies that no list holds. */
START_TEST(a_draw_on_a_boundary_is_the_next_token)
{
    enum { SHARE = 8 }; /* tokens to a share of all that has such a random number */
    static const int64_t sizes[] = {SHARE, 16 * SHARE, 1024 * SHARE};
    const uint64_t unit = UINT64_C(1) << 61, step = UINT64_C(1) << 11; /* 53 bits count */
    char error[FIBRE_ERROR_MAX];
    weft_diag *dg = diag_create();
    for (size_t v = 0; v < COUNT_OF(sizes); v++) {
        const int64_t vocab = sizes[v];
        float *logits = calloc((size_t)vocab, sizeof *logits);
        sampler_options o = sampler_defaults();
        sampler *host;
        ksampled got, seen;
        cuda_choice a = {.logits = logits, .width = vocab, .chosen = &got, .host = &seen};
        o.samplers = "temperature";
        o.temp = 1;
        ck_assert_int_eq(sampler_create(dg, &o, vocab, 1, &host), WEFT_OK);
        ck_assert_ptr_null(sampler_for_device(host, &a.how_few[0]));
        for (uint64_t k = 1; k < SHARE; k++)
            for (int before = 0; before < 2; before++) {
                const int32_t want = (int32_t)((int64_t)k * vocab / SHARE) - before;
                const ksampled at = {.rng = {k * unit - (before ? step : 0), 0}};
                memcpy(a.how_few[0].rng, at.rng, sizeof at.rng);
                ck_assert_msg(emulated_choose(&a, 1, 64, error), "%s", error);
                ck_assert_int_eq(seen.id, want);
                sampler_chose(host, &at);
                ck_assert_int_eq(sampler_choose(host, logits), want);
            }
        sampler_destroy(host);
        free(logits);
    }
    diag_destroy(dg);
}
END_TEST

/* What a card does not do says so. */
START_TEST(other_chains_stay_on_the_host)
{
    static const logit_bias forbid = {3, -INFINITY};
    const struct {
        const char *why;
        sampler_options o;
    } cases[] = {
        {"penalties", {.repeat = 1.1, .last_n = 64}},
        {"dry", {.dry_multiplier = 1}},
        {"typical", {.typical = 0.5}},
        {"xtc", {.xtc_probability = 0.5}},
        {"mirostat", {.mirostat = 2}},
        {"logit bias", {.bias = &forbid, .n_bias = 1}},
    };
    weft_diag *dg = diag_create();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const sampler_options *set = &cases[i].o;
        sampler_options o = sampler_defaults();
        ksample k;
        sampler *s;
        o.repeat = set->repeat > 0 ? set->repeat : 1;
        o.dry_multiplier = set->dry_multiplier;
        o.typical = set->typical > 0 ? set->typical : 1;
        o.xtc_probability = set->xtc_probability;
        o.mirostat = set->mirostat;
        o.bias = set->bias;
        o.n_bias = set->n_bias;
        ck_assert_int_eq(sampler_create(dg, &o, 10, 4, &s), WEFT_OK);
        const char *why = sampler_for_device(s, &k);
        ck_assert_msg(why && strcmp(why, cases[i].why) == 0, "%s: %s", cases[i].why, why);
        sampler_destroy(s);
        /* One that the chain leaves out does nothing. */
        if (i < 4) {
            o.samplers = "top_k;temperature";
            ck_assert_int_eq(sampler_create(dg, &o, 10, 4, &s), WEFT_OK);
            ck_assert_ptr_null(sampler_for_device(s, &k));
            sampler_destroy(s);
        }
    }
    diag_destroy(dg);
}
END_TEST

/* The likeliest of several rows, each by several blocks: the host's, whatever threads they have and however few logits. */
START_TEST(the_likeliest_is_found_in_parts)
{
    static const int64_t sizes[] = {1, 2, 31, 32, 33, 100, 1000, 5003};
    char error[FIBRE_ERROR_MAX];
    weft_diag *dg = diag_create();
    uint64_t best[ROWS * BEST_PARTS];
    uint32_t found[ROWS] = {0};
    seed_now = 7;
    for (int n = 0; n < 120; n++) {
        const int64_t vocab = sizes[n % (int)COUNT_OF(sizes)];
        float *logits = malloc((size_t)(vocab * ROWS) * sizeof *logits);
        ksampled got[ROWS], seen[ROWS];
        cuda_choice a = {.logits = logits,
                         .width = vocab,
                         .chosen = got,
                         .host = seen,
                         .turn = (uint32_t)n + 1,
                         .best = best,
                         .found = found};
        sampler_options o = sampler_defaults();
        sampler *host;
        o.temp = 0;
        ck_assert_int_eq(sampler_create(dg, &o, vocab, 1, &host), WEFT_OK);
        for (int64_t i = 0; i < vocab * ROWS; i++)
            logits[i] = logit((logits_kind)(n % LOGITS));
        for (int i = 0; i < ROWS; i++) {
            ck_assert_ptr_null(sampler_for_device(host, &a.how_few[i]));
            ck_assert(a.how_few[i].greedy);
        }
        ck_assert_msg(emulated_best(&a, ROWS, 32 << n % 3, error), "%s", error);
        for (int i = 0; i < ROWS; i++) {
            const int32_t want = sampler_choose(host, logits + i * vocab);
            ck_assert_int_eq(seen[i].id, want);
            ck_assert_int_eq(got[i].id, want);
            ck_assert_uint_eq(seen[i].turn, a.turn);
            ck_assert_uint_eq(found[i], 0);
            ck_assert_mem_eq(seen[i].rng, a.how_few[i].rng, sizeof seen[i].rng);
        }
        sampler_destroy(host);
        free(logits);
    }
    diag_destroy(dg);
}
END_TEST

START_TEST(tokens_come_into_the_next_batch)
{
    char error[FIBRE_ERROR_MAX];
    const ksampled before[] = {{.id = 7}, {.id = -1}, {.id = 9}};
    int32_t token[] = {1, 2, 3, 4};
    cuda_tokens a = {.token = token, .before = before, .n = 4, .from_few = {2, -1, 1, 0}};
    ck_assert_msg(emulated_tokens(&a, 32, error), "%s", error);
    ck_assert_int_eq(token[0], 9);
    ck_assert_int_eq(token[1], 2);
    ck_assert_int_eq(token[2], 0); /* none could be chosen */
    ck_assert_int_eq(token[3], 7);
}
END_TEST

/* Weights are close to the exponential, never above what the best has, and never grow on the way down. */
START_TEST(weights_are_exponentials)
{
    for (int bits = 32; bits <= 43; bits += 11) {
        uint64_t last = UINT64_MAX;
        for (double x = 0; x > -40; x -= 0.00093) {
            uint64_t w = ksample_weight(x, bits);
            ck_assert_double_le(fabs((double)w - ldexp(exp(x), bits)),
                                1 + ldexp(exp(x), bits - 50));
            ck_assert_uint_le(w, last);
            last = w;
        }
        ck_assert_uint_eq(ksample_weight(-INFINITY, bits), 0);
        ck_assert_uint_eq(ksample_weight(NAN, bits), 0);
        ck_assert_uint_eq(ksample_weight(INFINITY, bits), UINT64_C(1) << bits);
    }
    ck_assert_uint_eq(ksample_point(UINT64_MAX, UINT64_C(1) << 62), (UINT64_C(1) << 62) - 512);
    ck_assert_uint_eq(ksample_point(UINT64_C(1) << 63, 12345), 6172);
}
END_TEST

SUITE_MAIN("choose", small_vocabularies_agree, large_vocabularies_agree, the_largest_agree,
           a_draw_on_a_boundary_is_the_next_token, other_chains_stay_on_the_host,
           the_likeliest_is_found_in_parts, tokens_come_into_the_next_batch,
           weights_are_exponentials)
