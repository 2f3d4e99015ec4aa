/* sample.h - which token comes next: a chain of steps over the logits, then one draw.
 *
 * The same options, seed and logits give the same tokens on every machine with IEEE arithmetic: sums run in
 * index order or in descending order of logits, ties go to the lower id, and tokens are drawn by weights that are whole
 * numbers. Memory is taken when a sampler is
 * created; choosing a token allocates nothing. One thread at a time. */
#ifndef WEFT_RUNTIME_SAMPLE_SAMPLE_H
#define WEFT_RUNTIME_SAMPLE_SAMPLE_H

#include "kernels/ksample.h"
#include "runtime/base/diag.h"

typedef enum {
#define SAMPLER(name, off, meaning) SAMPLER_##name,
#include "runtime/sample/samplers.def"
#undef SAMPLER
    SAMPLER_COUNT
} sampler_step;

typedef struct {
    int32_t id;
    float bias; /* added to the logit; -INFINITY forbids the token */
} logit_bias;

typedef struct {
    uint64_t seed;
    double temp;                  /* 0: the likeliest */
    int64_t top_k;                /* 0: all */
    double top_p, min_p, typical; /* 1, 0, 1: all */
    int64_t last_n; /* tokens the penalties look back over; -1: all that the sampler keeps */
    double repeat, presence, frequency; /* 1, 0, 0: none */
    double dry_multiplier, dry_base;    /* 0: no DRY */
    int64_t dry_allowed,
        dry_last_n;              /* a run up to this long is free; look back this far, -1: all */
    const int32_t *dry_breakers; /* tokens a run does not extend over */
    size_t n_breaker;
    double xtc_probability, xtc_threshold; /* 0: no XTC */
    int mirostat; /* 2: mirostat 2 takes the place of the chain's truncations; 0: off */
    double mirostat_tau, mirostat_eta;
    const logit_bias *bias;
    size_t n_bias;
    const char *samplers; /* the chain, names with ; between; NULL: samplers.def's order */
} sampler_options;

/* The numbers among them, which weft_sampler_options has under the same names. */
/* clang-format off */
#define SAMPLER_NUMBERS(F)                                                                         \
    F(seed) F(temp) F(top_k) F(top_p) F(min_p) F(typical) F(last_n) F(repeat) F(presence)          \
    F(frequency) F(dry_multiplier) F(dry_base) F(dry_allowed) F(dry_last_n) F(xtc_probability)     \
    F(xtc_threshold) F(mirostat) F(mirostat_tau) F(mirostat_eta)
/* clang-format on */

/* What people expect without flags: temp 0.8, top-k 40, top-p 0.95, min-p 0.05, no penalties. */
sampler_options sampler_defaults(void);

typedef struct sampler sampler;

/* For logits of n_vocab; keeps the last n_past tokens for the penalties. The lists of the options are copied. W1903 names a
 * wrong option. */
weft_status sampler_create(weft_diag *dg, const sampler_options *o, int64_t n_vocab, int64_t n_past,
                           sampler **out_s) WEFT_MUST_USE;
void sampler_destroy(sampler *s); /* NULL is fine */
/* What one takes, but for the lists of its options. */
size_t sampler_bytes(int64_t n_vocab, int64_t n_past);

/* Choose from logits[n_vocab], which are not changed. NaN counts as impossible; -1: nothing is possible. */
int32_t sampler_choose(sampler *s, const float *logits);
int64_t sampler_vocab(const sampler *s); /* n_vocab */
/* The token became part of the text (a prompt's tokens too). */
void sampler_accept(sampler *s, int32_t id);
void sampler_reset(sampler *s); /* as created: nothing accepted, the seed from its start */

/* For devices that choose by themselves (kernels/ksample.h): what sampler_choose would do next, as the device is told it. NULL: out is
 * filled. Else what it does not do, by the name of the option or step; that sampler chooses on the host. */
const char *sampler_for_device(const sampler *s, ksample *out);
/* The device chose so; what follows is as after sampler_choose. */
void sampler_chose(sampler *s, const ksampled *chosen);

typedef struct {
    int32_t id;
    float logprob;
} token_logprob;

/* The n likeliest tokens of the bare logits, best first, and the natural logarithm of their probability;
 * returns how many there are. */
int64_t logprobs_top(const float *logits, int64_t n_vocab, token_logprob *out, int64_t n);
float logprob_of(const float *logits, int64_t n_vocab, int32_t id);

#endif
