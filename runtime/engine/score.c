#include "runtime/engine/score.h"

#include <math.h>
#include <stdlib.h>

bool row_sum_of(const float *logits, int64_t n, row_sum *out)
{
    row_sum s = {.largest = -INFINITY};
    bool finite = true;
    for (int64_t i = 0; i < n; i++) {
        finite = finite && isfinite(logits[i]);
        if (logits[i] > s.largest) {
            s.largest = logits[i];
            s.top = i;
        }
    }
    if (!finite || n < 1)
        return false;
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)expf(logits[i] - s.largest);
    s.log_sum = log(sum);
    *out = s;
    return true;
}

int64_t count_not_numbers(const float *x, int64_t n, int64_t *out_first)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        if (!(x[i] < INFINITY) && count++ == 0)
            *out_first = i;
    return count;
}

void mean_add(mean_of *m, double x)
{
    m->n++;
    m->sum += x;
    m->sum2 += x * x;
}

double mean_value(const mean_of *m)
{
    return m->n ? m->sum / (double)m->n : (double)NAN;
}

double mean_error(const mean_of *m)
{
    if (m->n < 2)
        return 0;
    double mean = mean_value(m), variance = m->sum2 / (double)m->n - mean * mean;
    return variance > 0 ? sqrt(variance / (double)(m->n - 1)) : 0;
}

/* With w_i the weights, Z their sum, and q_i = logit_i - largest - log_sum:
 *     sum (w_i / Z) (log w_i - log Z - q_i)  =  sum w_i (log w_i - logit_i + largest) / Z - log Z + log_sum */
double kl_of_row(const uint16_t *below, const float *weights, double steps, const float *logits,
                 int64_t n, const row_sum *q)
{
    double total = 0, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double w = (double)weights[below[i]];
        total += w;
        sum += w * ((double)q->largest - (double)logits[i] - below[i] / steps);
    }
    return fmax(sum / total - log(total) + q->log_sum, 0);
}

void kl_stats_add(kl_stats *s, double kl, double logprob, double logprob_base, bool same_top)
{
    double change = exp(logprob) - exp(logprob_base);
    mean_add(&s->kl, kl);
    mean_add(&s->nll, -logprob);
    mean_add(&s->nll_base, -logprob_base);
    mean_add(&s->nll_change, logprob_base - logprob);
    mean_add(&s->p_change, change);
    mean_add(&s->p_change2, change * change);
    mean_add(&s->same_top, same_top ? 1 : 0);
    VEC_PUSH(&s->all, (float)kl);
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

void kl_stats_sort(kl_stats *s)
{
    if (s->all.n)
        qsort(s->all.at, s->all.n, sizeof *s->all.at, by_value);
}

double kl_stats_percentile(const kl_stats *s, double share)
{
    if (s->all.n == 0)
        return (double)NAN;
    double at = share * (double)(s->all.n - 1);
    size_t i = (size_t)at;
    double part = at - (double)i, low = (double)s->all.at[i];
    return i + 1 < s->all.n ? low + part * ((double)s->all.at[i + 1] - low) : low;
}

void kl_stats_free(kl_stats *s)
{
    VEC_FREE(&s->all);
}
