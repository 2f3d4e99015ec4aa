/* sample.c - a sampler: its options, its past, its random numbers, and the chain. */
#include "runtime/sample/sample_impl.h"

#include "runtime/base/mem.h"
#include <math.h>
#include <stdlib.h>

static const struct {
    const char *name;
    void (*run)(sampler *);
} steps[] = {
#define SAMPLER(name, off, meaning) {#name, step_##name},
#include "runtime/sample/samplers.def"
#undef SAMPLER
};

sampler_options sampler_defaults(void)
{
    return (sampler_options){.temp = 0.8,
                             .top_k = 40,
                             .top_p = 0.95,
                             .min_p = 0.05,
                             .typical = 1,
                             .last_n = 64,
                             .repeat = 1,
                             .dry_base = 1.75,
                             .dry_allowed = 2,
                             .dry_last_n = -1,
                             .xtc_threshold = 0.1,
                             .mirostat_tau = 5,
                             .mirostat_eta = 0.1};
}

/* ---- random numbers: xoroshiro128+, seeded by splitmix64 (Blackman and Vigna 2018) ---- */

static uint64_t split(uint64_t *x)
{
    uint64_t z = *x += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

double sampler_random(sampler *s)
{
    return (double)(ksample_random(s->rng) >> 11) * 0x1p-53;
}

int64_t sampler_draw(sampler *s)
{
    uint64_t all = candidates_weigh(s->list, s->n, ksample_bits(s->n_vocab));
    uint64_t point = ksample_point(ksample_random(s->rng), all), sum = s->list[0].weight;
    int64_t i = 0;
    while (i + 1 < s->n && point >= sum)
        sum += s->list[++i].weight;
    if (all == 0) /* infinite logits: the first of them */
        i = 0;
    s->list[i].p = all > 0 ? (double)s->list[i].weight / (double)all : 1;
    return i;
}

float *sampler_own(sampler *s)
{
    if (s->dense != s->own)
        memcpy(s->own, s->dense, (size_t)s->n_vocab * sizeof *s->own);
    s->dense = s->own;
    return s->own;
}

int32_t sampler_past(const sampler *s, int64_t i)
{
    return s->past[(s->past_at + s->past_cap - 1 - i) % s->past_cap];
}

/* ---- creating ---- */

static weft_status read_chain(weft_diag *dg, sampler *s)
{
    if (!s->o.samplers) {
        for (int i = 0; i < SAMPLER_COUNT; i++)
            s->chain[s->n_chain++] = (sampler_step)i;
        return WEFT_OK;
    }
    for (const char *p = s->o.samplers; *p;) {
        size_t n = strcspn(p, ";");
        int found = -1;
        for (int i = 0; i < SAMPLER_COUNT; i++)
            found = str_eqz((str){p, n}, steps[i].name) ? i : found;
        for (int i = 0; i < s->n_chain; i++)
            if (found == (int)s->chain[i])
                return weft_fail(dg, W1903, WEFT_NOWHERE, "samplers: %s stands twice",
                                 steps[found].name);
        if (found < 0) {
            weft_status st =
                weft_fail(dg, W1903, WEFT_NOWHERE, "samplers: there is no `%.*s`", (int)n, p);
            SUGGEST_ROW(dg, ((str){p, n}), steps, SAMPLER_COUNT);
            return st;
        }
        s->chain[s->n_chain++] = (sampler_step)found;
        p += n;
        p += *p == ';';
    }
    return WEFT_OK;
}

static weft_status check_options(weft_diag *dg, const sampler_options *o, int64_t n_vocab)
{
    const struct {
        const char *name;
        double value, lo, hi;
    } range[] = {
        {"temp", o->temp, 0, 1e4},
        {"top_p", o->top_p, 0, 1},
        {"min_p", o->min_p, 0, 1},
        {"typical", o->typical, 0, 1},
        {"repeat", o->repeat, 0.01, 100},
        {"presence", o->presence, -100, 100},
        {"frequency", o->frequency, -100, 100},
        {"dry_multiplier", o->dry_multiplier, 0, 100},
        {"dry_base", o->dry_base, 1, 10},
        {"xtc_probability", o->xtc_probability, 0, 1},
        {"xtc_threshold", o->xtc_threshold, 0, 1},
        {"mirostat_tau", o->mirostat_tau, 0, 100},
        {"mirostat_eta", o->mirostat_eta, 0, 10},
    };
    for (size_t i = 0; i < sizeof range / sizeof *range; i++)
        if (!(range[i].value >= range[i].lo && range[i].value <= range[i].hi))
            return weft_fail(dg, W1903, WEFT_NOWHERE, "%s must be from %g to %g, not %g",
                             range[i].name, range[i].lo, range[i].hi, range[i].value);
    const struct {
        const char *name;
        int64_t value, lo;
    } count[] = {{"top_k", o->top_k, 0},
                 {"last_n", o->last_n, -1},
                 {"dry_allowed", o->dry_allowed, 0},
                 {"dry_last_n", o->dry_last_n, -1}};
    for (size_t i = 0; i < sizeof count / sizeof *count; i++)
        if (count[i].value < count[i].lo || count[i].value > INT32_MAX)
            return weft_fail(dg, W1903, WEFT_NOWHERE, "%s must be from %lld to %d, not %lld",
                             count[i].name, (long long)count[i].lo, INT32_MAX,
                             (long long)count[i].value);
    if (o->mirostat != 0 && o->mirostat != 2)
        return weft_fail(dg, W1903, WEFT_NOWHERE, "mirostat is 0 or 2, not %d", o->mirostat);
    for (size_t i = 0; i < o->n_bias; i++)
        if (o->bias[i].id < 0 || o->bias[i].id >= n_vocab || !(o->bias[i].bias < INFINITY))
            return weft_fail(dg, W1903, WEFT_NOWHERE,
                             "logit bias: token %d of %lld by %g is out of range",
                             (int)o->bias[i].id, (long long)n_vocab, (double)o->bias[i].bias);
    return WEFT_OK;
}

static void *list_copy(const void *list, size_t n, size_t item_bytes)
{
    size_t bytes = mem_product(n, item_bytes);
    void *copy = mem_alloc(bytes);
    if (bytes)
        memcpy(copy, list, bytes);
    return copy;
}

weft_status sampler_create(weft_diag *dg, const sampler_options *o, int64_t n_vocab, int64_t n_past,
                           sampler **out_s)
{
    WEFT_ASSERT(n_vocab > 0 && n_past > 0);
    WEFT_TRY(check_options(dg, o, n_vocab));
    sampler *s = mem_alloc(sizeof *s);
    *s = (sampler){.o = *o, .n_vocab = n_vocab, .past_cap = n_past};
    s->own = mem_alloc(mem_product((size_t)n_vocab, sizeof *s->own));
    s->list = mem_alloc(mem_product((size_t)n_vocab, sizeof *s->list));
    s->past = mem_alloc(mem_product((size_t)n_past, sizeof *s->past));
    s->count = mem_alloc(mem_product((size_t)n_vocab, sizeof *s->count));
    s->o.bias = s->bias = list_copy(o->bias, o->n_bias, sizeof *o->bias);
    s->o.dry_breakers = s->breakers = list_copy(o->dry_breakers, o->n_breaker, sizeof(int32_t));
    weft_status st = read_chain(dg, s);
    sampler_reset(s);
    if (st == WEFT_OK)
        *out_s = s;
    else
        sampler_destroy(s);
    return st;
}

size_t sampler_bytes(int64_t n_vocab, int64_t n_past)
{
    const sampler *s = NULL; /* for sizes alone */
    size_t token = sizeof *s->own + sizeof *s->list + sizeof *s->count;
    return sizeof *s + (size_t)n_vocab * token + (size_t)n_past * sizeof *s->past;
}

void sampler_destroy(sampler *s)
{
    if (!s)
        return;
    mem_free(s->own);
    mem_free(s->list);
    mem_free(s->past);
    mem_free(s->count);
    mem_free(s->bias);
    mem_free(s->breakers);
    mem_free(s);
}

void sampler_reset(sampler *s)
{
    uint64_t seed = s->o.seed;
    s->rng[0] = split(&seed);
    s->rng[1] = split(&seed);
    s->n_past = s->past_at = 0;
    s->mu = 2 * s->o.mirostat_tau;
    memset(s->count, 0, (size_t)s->n_vocab * sizeof *s->count);
}

int64_t sampler_vocab(const sampler *s)
{
    return s->n_vocab;
}

void sampler_accept(sampler *s, int32_t id)
{
    if (id < 0 || id >= s->n_vocab)
        return;
    s->past[s->past_at] = id;
    s->past_at = (s->past_at + 1) % s->past_cap;
    s->n_past += s->n_past < s->past_cap;
}

/* ---- choosing ---- */

int32_t sampler_choose(sampler *s, const float *logits)
{
    s->dense = logits;
    s->n = -1;
    for (size_t i = 0; i < s->o.n_bias; i++)
        sampler_own(s)[s->o.bias[i].id] += s->o.bias[i].bias;
    if (s->o.mirostat == 2 && s->o.temp > 0) {
        step_penalties(s);
        return mirostat_choose(s);
    }
    for (int i = 0; i < s->n_chain; i++)
        steps[s->chain[i]].run(s);
    if (s->n < 0 && s->o.temp <= 0)
        s->n = select_top(s->dense, s->n_vocab, s->list, 1);
    sampler_need_list(s);
    if (s->n <= 1)
        return s->n == 1 ? s->list[0].id : -1;
    return s->list[sampler_draw(s)].id;
}

/* ---- log-probabilities ---- */

static double log_sum(const float *logits, int64_t n)
{
    double best = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        best = logits[i] > best ? logits[i] : best;
    for (int64_t i = 0; i < n; i++)
        sum += isnan(logits[i]) ? 0 : exp(logits[i] - best);
    return best + log(sum);
}

int64_t logprobs_top(const float *logits, int64_t n_vocab, token_logprob *out, int64_t n)
{
    n = n < n_vocab ? n : n_vocab;
    candidate *list = mem_alloc(mem_product((size_t)n_vocab, sizeof *list));
    int64_t got = n > 0 ? select_top(logits, n_vocab, list, n) : 0;
    double total = log_sum(logits, n_vocab);
    for (int64_t i = 0; i < got; i++)
        out[i] = (token_logprob){list[i].id, (float)(list[i].logit - total)};
    mem_free(list);
    return got;
}

float logprob_of(const float *logits, int64_t n_vocab, int32_t id)
{
    return (float)(logits[id] - log_sum(logits, n_vocab));
}
