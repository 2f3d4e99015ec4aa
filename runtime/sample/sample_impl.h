/* sample_impl.h - the inside of a sampler, shared by runtime/sample/ only. */
#ifndef WEFT_RUNTIME_SAMPLE_SAMPLE_IMPL_H
#define WEFT_RUNTIME_SAMPLE_SAMPLE_IMPL_H

#include "runtime/sample/sample.h"

typedef struct {
    float logit;
    int32_t id;
    union {       /* scratch */
        double p; /* probability, or surprise */
        uint64_t weight;
    };
} candidate;

/* Logits are first kept dense, as they came; the first step that needs to choose among them makes the list
 * of candidates, best first. */
struct sampler {
    sampler_options o; /* its lists are the two below */
    logit_bias *bias;
    int32_t *breakers;
    sampler_step chain[SAMPLER_COUNT];
    int n_chain;
    int64_t n_vocab;
    const float *dense; /* [n_vocab]: the caller's logits, or own once a step has changed some */
    float *own;         /* [n_vocab] */
    candidate *list;    /* [n_vocab] room */
    int64_t n;          /* candidates; -1 while dense */
    int32_t *past;      /* ring of accepted tokens */
    int64_t past_cap, n_past, past_at;
    int32_t *count; /* [n_vocab]: scratch of the penalties, zero between calls */
    uint64_t rng[2];
    double mu; /* mirostat's running surprise */
};

/* A number in [0, 1), the next of the seed's. */
double sampler_random(sampler *s);
/* How far behind the best a candidate may be. */
float sampler_reach(const sampler_options *o);
/* One of the candidates, of which there is at least one, by their probabilities; p is set of that one. */
int64_t sampler_draw(sampler *s);
/* The dense logits, to be changed. */
float *sampler_own(sampler *s);
/* Token i before the newest (0 is the newest). */
int32_t sampler_past(const sampler *s, int64_t i);

/* The k best of dense logits into list, best first, ties to the lower id; NaN and -inf never. Returns how many. */
int64_t select_top(const float *dense, int64_t n, candidate *list, int64_t k);
/* All that are no less than `least`, best first. */
int64_t select_above(const float *dense, int64_t n, candidate *list, float least);
typedef bool candidate_order(candidate a, candidate b); /* a stands before b */
void candidates_sort_by(candidate *list, int64_t n, candidate_order *before);
void candidates_sort(candidate *list, int64_t n); /* best first */
/* p of each candidate from its logit; list is best first. */
void candidates_softmax(candidate *list, int64_t n);

/* The same as weights (kernels/ksample.h); returns their sum. */
uint64_t candidates_weigh(candidate *list, int64_t n, int bits);

/* The steps; each leaves at least one candidate. */
#define SAMPLER(name, off, meaning) void step_##name(sampler *s);
#include "runtime/sample/samplers.def"
#undef SAMPLER
int32_t mirostat_choose(sampler *s);
void sampler_need_list(sampler *s); /* from dense to list */

#endif
