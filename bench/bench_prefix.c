/* bench_prefix.c - how much sooner does a prompt start that begins as another one did?
 *
 *     bench_prefix [-t THREADS] [-n TOKENS] [-q TOKENS] [-r ROUNDS] [MODEL]
 *
 * Every prompt has the same -n tokens (4096) and then -q of its own (32). The time from weft_generation_prompt to the first
 * token is taken, in turns: with nothing kept, and with a text kept that begins the same, evaluated by another
 * sequence. Without a model there is nothing to measure: the demo model's context is short. */
#include "bench/bench.h"
#include "runtime/base/clock.h"
#include "runtime/weft.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROUNDS_MAX = 100 };

typedef struct {
    weft_diag *dg;
    weft_model *m;
    weft_tokenizer *t;
    weft_session *s;
    int64_t vocab;
    long common, own;
} kit;

static void need(const kit *k, weft_status st)
{
    if (st == WEFT_OK)
        return;
    fputs(weft_diag_text(k->dg), stderr);
    exit(1);
}

/* Nanoseconds to the first token of a prompt; `turn` makes its own part another one each time. */
static uint64_t first_token(const kit *k, int64_t seq, uint32_t turn)
{
    long n = k->common + k->own;
    int32_t *ids = malloc((size_t)n * sizeof *ids);
    for (long i = 0; i < n; i++) {
        uint32_t h = (uint32_t)i * 2654435761u ^ (i < k->common ? 0 : turn * 2246822519u + 1);
        ids[i] = (int32_t)((h >> 4) % (uint32_t)k->vocab);
    }
    weft_generation *g;
    weft_generation_options how = {
        .size = sizeof how, .seq = seq, .max_tokens = 1, .ignore_end = true};
    weft_end end;
    need(k, weft_generation_create(k->dg, k->s, k->t, &how, &g));
    uint64_t start = clock_ns();
    need(k, weft_generation_prompt(k->dg, g, ids, (size_t)n));
    need(k, weft_generate(k->dg, g, NULL, NULL, &end));
    uint64_t took = clock_ns() - start;
    weft_generation_destroy(g);
    free(ids);
    return took;
}

int main(int argc, char **argv)
{
    kit k = {.dg = weft_diag_create(), .common = 4096, .own = 32};
    long threads = 1, rounds = 3;
    for (int c; (c = getopt(argc, argv, "t:n:q:r:")) != -1;) {
        long x = c == '?' ? 0 : strtol(optarg, NULL, 10);
        *(c == 't' ? &threads : c == 'n' ? &k.common : c == 'q' ? &k.own : &rounds) = x;
        if (x < 1 || rounds > ROUNDS_MAX)
            return 2;
    }
    if (optind == argc) {
        puts("bench_prefix: no model was named");
        return 0;
    }
    weft_session_options how = {.size = sizeof how,
                                .context = k.common + k.own + 8,
                                .sequences = 2,
                                .threads = threads,
                                .wants = 2};
    weft_session_info info = {.size = sizeof info};
    need(&k, weft_model_open(k.dg, argv[optind], NULL, &k.m));
    need(&k, weft_tokenizer_of_model(k.dg, k.m, &k.t));
    need(&k, weft_session_create(k.dg, k.m, &how, &k.s));
    need(&k, weft_session_about(k.dg, k.s, &info));
    k.vocab = info.vocab;
    uint64_t cold[ROUNDS_MAX], warm[ROUNDS_MAX];
    for (long i = 0; i < rounds; i++) {
        weft_prefixes_drop(k.s);
        cold[i] = first_token(&k, 0, (uint32_t)(2 * i));
        warm[i] = first_token(&k, 1, (uint32_t)(2 * i + 1));
    }
    char shape[64];
    snprintf(shape, sizeof shape, "%ld+%ld", k.common, k.own);
    bench_times none = bench_sum_up(cold, (int)rounds), kept = bench_sum_up(warm, (int)rounds);
    bench_print_heading();
    bench_print("first_token", "nothing kept", shape, none, 0);
    bench_print("first_token", "prefix kept", shape, kept, 0);
    need(&k, weft_session_about(k.dg, k.s, &info));
    printf("%.1f times as soon; %llu of %llu prompts found a beginning, %.1f%% of their tokens "
           "were not "
           "evaluated again\n",
           none.min_ns / kept.min_ns, (unsigned long long)info.prefix_hits,
           (unsigned long long)info.prefix_lookups,
           100.0 * (double)info.prefix_tokens_saved / (double)info.prefix_tokens);
    weft_session_destroy(k.s);
    weft_tokenizer_close(k.t);
    weft_model_close(k.m);
    weft_diag_destroy(k.dg);
    return 0;
}
