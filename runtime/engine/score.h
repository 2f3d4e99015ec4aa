/* score.h - how well logits foretold a token, and how far two distributions are apart.
 *
 * Plain arithmetic over rows of logits; sums are kept in double. */
#ifndef WEFT_RUNTIME_ENGINE_SCORE_H
#define WEFT_RUNTIME_ENGINE_SCORE_H

#include "runtime/base/vec.h"

/* What of a row of logits everything else needs. */
typedef struct {
    float largest;
    int64_t top;    /* where it stands first */
    double log_sum; /* of exp(logit - largest) */
} row_sum;

/* False if one of the n logits is not finite. */
bool row_sum_of(const float *logits, int64_t n, row_sum *out);

static inline double row_logprob(const float *logits, const row_sum *s, int64_t token)
{
    return (double)logits[token] - (double)s->largest - s->log_sum;
}

/* How many of n results are NaN or plus infinity, and where the first is; minus infinity is how a logit says never. */
int64_t count_not_numbers(const float *x, int64_t n, int64_t *out_first);

/* Mean and its standard error, of numbers that are added one by one. */
typedef struct {
    int64_t n;
    double sum, sum2;
} mean_of;

void mean_add(mean_of *m, double x);
double mean_value(const mean_of *m); /* NaN of nothing */
double mean_error(const mean_of *m); /* 0 of fewer than two */

/* KL(p || q) in nats, for p given as weights[below[i]] / their sum, where weights are those of
 * kl_weights, and q as logits. Rounding that would make it negative is taken off. */
double kl_of_row(const uint16_t *below, const float *weights, double steps, const float *logits,
                 int64_t n, const row_sum *q);

/* Of the two models over all rows. */
typedef struct {
    mean_of kl, nll, nll_base, nll_change; /* nll: minus the log-probability of what came */
    mean_of p_change, p_change2;           /* of its probability */
    mean_of same_top;
    VEC(float) all; /* each row's divergence */
} kl_stats;

void kl_stats_add(kl_stats *s, double kl, double logprob, double logprob_base, bool same_top);
void kl_stats_sort(kl_stats *s); /* before kl_stats_percentile */
/* share is 0 to 1; between two rows it is interpolated. */
double kl_stats_percentile(const kl_stats *s, double share);
void kl_stats_free(kl_stats *s);

#endif
