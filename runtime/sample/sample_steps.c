/* sample_steps.c - the steps of samplers.def. */
#include "runtime/sample/sample_impl.h"

#include <math.h>

/* A token this far below the best, in units of the temperature, has under e^-25 of its probability: all such
 * tokens of a large vocabulary together have less than 1e-5, which makes no difference to any step. */
static const float TAIL = 25.0f;

float sampler_reach(const sampler_options *o)
{
    return TAIL * (o->temp > 1 ? (float)o->temp : 1);
}

void sampler_need_list(sampler *s)
{
    if (s->n >= 0)
        return;
    float best = -INFINITY;
    for (int64_t i = 0; i < s->n_vocab; i++)
        best = s->dense[i] > best ? s->dense[i] : best;
    s->n = select_above(s->dense, s->n_vocab, s->list, best - sampler_reach(&s->o));
}

/* ---- on the dense logits ---- */

void step_penalties(sampler *s)
{
    const sampler_options *o = &s->o;
    int64_t n = o->last_n < 0 || o->last_n > s->n_past ? s->n_past : o->last_n;
    if (n == 0 || (o->repeat == 1 && o->presence == 0 && o->frequency == 0))
        return;
    float *logits = sampler_own(s);
    for (int64_t i = 0; i < n; i++)
        s->count[sampler_past(s, i)]++;
    for (int64_t i = 0; i < n; i++) {
        int32_t id = sampler_past(s, i);
        int32_t count = s->count[id];
        if (count == 0)
            continue; /* its turn was before */
        s->count[id] = 0;
        double x = logits[id];
        x = x > 0 ? x / o->repeat : x * o->repeat;
        logits[id] = (float)(x - o->presence - o->frequency * count);
    }
}

static bool is_breaker(const sampler *s, int32_t id)
{
    for (size_t i = 0; i < s->o.n_breaker; i++)
        if (s->o.dry_breakers[i] == id)
            return true;
    return false;
}

/* For every earlier place that ends like the text does, the token that followed there would repeat the run:
 * it pays multiplier * base ^ (length - allowed). */
void step_dry(sampler *s)
{
    const sampler_options *o = &s->o;
    enum { RUN_MAX = 50 }; /* a longer run costs no more, and the power stays finite */
    int64_t n = o->dry_last_n < 0 || o->dry_last_n > s->n_past ? s->n_past : o->dry_last_n;
    if (o->dry_multiplier == 0 || n < 2)
        return;
    for (int64_t at = 1; at < n; at++) {
        int64_t run = 0;
        while (run < RUN_MAX && at + run < n && sampler_past(s, at + run) == sampler_past(s, run) &&
               !is_breaker(s, sampler_past(s, run)))
            run++;
        int32_t next = sampler_past(s, at - 1);
        if (run >= o->dry_allowed && run > s->count[next])
            s->count[next] = (int32_t)run;
    }
    float *logits = sampler_own(s);
    for (int64_t at = 0; at < n; at++) {
        int32_t id = sampler_past(s, at);
        if (s->count[id] > 0)
            logits[id] -= (float)(o->dry_multiplier *
                                  pow(o->dry_base, (double)(s->count[id] - o->dry_allowed)));
        s->count[id] = 0;
    }
}

/* ---- on the candidates ---- */

void step_top_k(sampler *s)
{
    int64_t k = s->o.top_k;
    if (k <= 0 || k >= s->n_vocab)
        return;
    if (s->n < 0)
        s->n = select_top(s->dense, s->n_vocab, s->list, k);
    else if (s->n > k)
        s->n = k;
}

void step_top_p(sampler *s)
{
    if (s->o.top_p >= 1)
        return;
    sampler_need_list(s);
    uint64_t all = candidates_weigh(s->list, s->n, ksample_bits(s->n_vocab)), sum = 0;
    uint64_t need = ksample_share(s->o.top_p, all);
    int64_t kept = 0;
    while (kept < s->n && sum < need)
        sum += s->list[kept++].weight;
    s->n = kept > 0 ? kept : s->n > 0;
}

void step_min_p(sampler *s)
{
    if (s->o.min_p <= 0)
        return;
    sampler_need_list(s);
    double least = s->n > 0 ? s->list[0].logit + log(s->o.min_p) : 0;
    int64_t kept = 0;
    while (kept < s->n && (kept == 0 || s->list[kept].logit >= least))
        kept++;
    s->n = kept;
}

static bool less_odd(candidate a, candidate b)
{
    return a.p < b.p || (a.p == b.p && a.id < b.id);
}

void step_typical(sampler *s)
{
    if (s->o.typical >= 1)
        return;
    sampler_need_list(s);
    candidates_softmax(s->list, s->n);
    double entropy = 0, sum = 0, best = s->n > 0 ? s->list[0].logit : 0,
           top = s->n > 0 ? s->list[0].p : 1;
    for (int64_t i = 0; i < s->n; i++)
        entropy -= s->list[i].p > 0 ? s->list[i].p * log(s->list[i].p) : 0;
    for (int64_t i = 0; i < s->n; i++) /* how far the surprise is from the average one */
        s->list[i].p = fabs(best - s->list[i].logit - log(top) - entropy);
    candidates_sort_by(s->list, s->n, less_odd);
    int64_t kept = 0;
    while (kept < s->n && sum < s->o.typical)
        sum += top * exp(s->list[kept++].logit - best);
    s->n = kept > 0 ? kept : s->n > 0;
    candidates_sort(s->list, s->n);
}

void step_xtc(sampler *s)
{
    if (s->o.xtc_probability <= 0 || sampler_random(s) >= s->o.xtc_probability)
        return;
    sampler_need_list(s);
    candidates_softmax(s->list, s->n);
    int64_t above = 0;
    while (above < s->n && s->list[above].p >= s->o.xtc_threshold)
        above++;
    if (above < 2)
        return;
    for (int64_t i = above - 1; i < s->n; i++) /* the last of them stays */
        s->list[i - (above - 1)] = s->list[i];
    s->n -= above - 1;
}

void step_temperature(sampler *s)
{
    if (s->o.temp <= 0) {
        if (s->n < 0)
            s->n = select_top(s->dense, s->n_vocab, s->list, 1);
        s->n = s->n > 1 ? 1 : s->n;
        return;
    }
    sampler_need_list(s);
    for (int64_t i = 0; i < s->n; i++)
        s->list[i].logit = ksample_cool(s->list[i].logit, s->o.temp);
}

/* ---- mirostat 2 (Basu et al. 2020): keep the surprise of the chosen tokens near tau ---- */

int32_t mirostat_choose(sampler *s)
{
    step_temperature(s);
    sampler_need_list(s);
    if (s->n == 0)
        return -1;
    candidates_softmax(s->list, s->n);
    int64_t kept = 1;
    while (kept < s->n && -log2(s->list[kept].p) <= s->mu)
        kept++;
    s->n = kept;
    int64_t i = sampler_draw(s);
    s->mu -= s->o.mirostat_eta * (-log2(s->list[i].p) - s->o.mirostat_tau);
    return s->list[i].id;
}
