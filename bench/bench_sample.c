/* bench_sample.c - how long does choosing a token take, over the largest vocabularies in use?
 *
 * Logits are drawn once per token from a bell curve with a few likely ones on top, as models give them;
 * each repetition sees other logits than the one before, so no branch is learnt by heart. */
#include "bench/bench.h"
#include "runtime/base/clock.h"
#include "runtime/sample/sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { N_SET = 16, N_WARM = 8, N_RUN_MIN = 11, N_RUN = 1001, N_PAST = 1024 };
static const int64_t vocabs[] = {32000, 151936}; /* Llama 2, Qwen 2.5 */
static const double target_ns = 200e3;           /* for the usual chain over the larger one */

/* Numbers that are the same everywhere: PCG's multiplier, upper bits. */
static double uniform(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ((double)(*state >> 11) + 0.5) / 9007199254740992.0;
}

static float *draw_logits(int64_t n)
{
    uint64_t state = 42;
    float *logits = malloc((size_t)(n * N_SET) * sizeof *logits); /* [N_SET, n] */
    if (!logits)
        exit(1);
    for (int64_t i = 0; i < n * N_SET; i++)
        logits[i] = (float)(2.5 * sqrt(-2 * log(uniform(&state))) *
                            cos(6.283185307179586 * uniform(&state)));
    for (int64_t k = 0; k < N_SET; k++)
        for (int i = 0; i < 12; i++) /* what the text goes on with */
            logits[k * n + (int64_t)(uniform(&state) * (double)n)] +=
                (float)(10 + 6 * uniform(&state));
    return logits;
}

static void measure(const char *variant, const sampler_options *o, int64_t n, const float *logits,
                    double target)
{
    weft_diag *dg = diag_create();
    sampler *s;
    if (sampler_create(dg, o, n, N_PAST, &s) != WEFT_OK) {
        diag_print(dg, stderr, false);
        exit(1);
    }
    static uint64_t ns[N_RUN];
    const uint64_t end = clock_ns() + CLOCK_NS_PER_S;
    int n_run = 0;
    for (int i = -N_WARM; n_run < N_RUN && (n_run < N_RUN_MIN || clock_ns() < end); i++) {
        uint64_t begin = clock_ns();
        sampler_accept(s, sampler_choose(s, logits + (i + N_WARM) % N_SET * n));
        if (i >= 0)
            ns[n_run++] = clock_ns() - begin;
    }
    char shape[32];
    snprintf(shape, sizeof shape, "%lld", (long long)n);
    bench_print("sample", variant, shape, bench_sum_up(ns, n_run), target);
    sampler_destroy(s);
    diag_destroy(dg);
}

int main(void)
{
    bench_print_heading();
    for (size_t v = 0; v < sizeof vocabs / sizeof *vocabs; v++) {
        int64_t n = vocabs[v];
        float *logits = draw_logits(n);
        sampler_options o = sampler_defaults();
        o.seed = 1;
        measure("usual", &o, n, logits, n > 100000 ? target_ns : 0);

        sampler_options greedy = o;
        greedy.temp = 0;
        measure("greedy", &greedy, n, logits, 0);

        sampler_options penalties = o;
        penalties.repeat = 1.1;
        penalties.frequency = 0.1;
        measure("usual + penalties", &penalties, n, logits, 0);

        sampler_options no_k = o;
        no_k.top_k = 0;
        measure("usual, no top-k", &no_k, n, logits, 0);

        sampler_options all = penalties;
        all.typical = 0.9;
        all.dry_multiplier = 0.8;
        all.xtc_probability = 0.5;
        measure("every step", &all, n, logits, 0);

        sampler_options mirostat = o;
        mirostat.mirostat = 2;
        measure("mirostat 2", &mirostat, n, logits, 0);
        free(logits);
    }
    return 0;
}
