/* sample_device.c - what a sampler does as devices are told it. */
#include "runtime/sample/sample_impl.h"

#include <math.h>

/* What devices do not do, and is not off. */
static const char *host_only(const sampler *s)
{
    const sampler_options *o = &s->o;
    const bool active[SAMPLER_COUNT] = {
        [SAMPLER_penalties] =
            o->last_n != 0 && !(o->repeat == 1 && o->presence == 0 && o->frequency == 0),
        [SAMPLER_dry] = o->dry_multiplier != 0,
        [SAMPLER_typical] = o->typical<1, [SAMPLER_xtc] = o->xtc_probability> 0,
    };
    static const char *const names[] = {
#define SAMPLER(name, off, meaning) #name,
#include "runtime/sample/samplers.def"
#undef SAMPLER
    };
    if (o->n_bias > 0)
        return "logit bias";
    if (o->mirostat == 2 && o->temp > 0)
        return "mirostat";
    if (s->n_vocab > KSAMPLE_VOCAB_MAX)
        return "such a vocabulary";
    for (int i = 0; i < s->n_chain; i++)
        if (active[s->chain[i]])
            return names[s->chain[i]];
    return NULL;
}

const char *sampler_for_device(const sampler *s, ksample *out)
{
    const sampler_options *o = &s->o;
    const char *why = host_only(s);
    bool cools = false;
    if (why)
        return why;
    ksample k = {.rng = {s->rng[0], s->rng[1]},
                 .top_p = o->top_p,
                 .log_min_p = o->min_p > 0 ? log(o->min_p) : 0,
                 .temp = o->temp,
                 .reach = sampler_reach(o),
                 .from = -1};
    for (int i = 0; i < s->n_chain; i++) {
        sampler_step step = s->chain[i];
        cools = cools || step == SAMPLER_temperature;
        if (step == SAMPLER_top_k && o->top_k > 0 && o->top_k < s->n_vocab) {
            k.top_k = (int32_t)o->top_k;
            k.step[k.n_step++] = KSAMPLE_TOP_K;
        } else if (step == SAMPLER_top_p && o->top_p < 1) {
            k.step[k.n_step++] = KSAMPLE_TOP_P;
        } else if (step == SAMPLER_min_p && o->min_p > 0) {
            k.step[k.n_step++] = KSAMPLE_MIN_P;
        } else if (step == SAMPLER_temperature && o->temp > 0) {
            k.step[k.n_step++] = KSAMPLE_TEMPERATURE;
        }
    }
    /* Each step leaves the likeliest; a chain without a temperature draws from what its steps have left. */
    k.greedy = o->temp <= 0 && (cools || k.n_step == 0);
    *out = k;
    return NULL;
}

void sampler_chose(sampler *s, const ksampled *chosen)
{
    s->rng[0] = chosen->rng[0];
    s->rng[1] = chosen->rng[1];
}
