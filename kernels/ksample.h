/* ksample.h - how a token is drawn from logits, as far as a device does it; the host's sampler (runtime/sample) has the same
 * functions for the same things.
 *
 * A device gives the id that the host would give, for any logits. That holds because nothing is left to rounding: what is
 * added up are whole numbers, so that no order of summing matters, and a weight comes from additions, products and conversions
 * alone, which IEEE arithmetic defines to the bit. Files that use it are compiled without contraction. */
#ifndef WEFT_KERNELS_KSAMPLE_H
#define WEFT_KERNELS_KSAMPLE_H

#include "kernels/kfn.h"
#include <stdint.h>

/* What is kept of the candidates, which stand in descending order of logits, ties by ascending id. */
typedef enum {
    KSAMPLE_TOP_K,      /* the first top_k */
    KSAMPLE_TOP_P,      /* the first ones that have this share of all weight */
    KSAMPLE_MIN_P,      /* those with logits no less than the first's plus log_min_p */
    KSAMPLE_TEMPERATURE /* all, their logits divided by temp */
} ksample_step;

enum { KSAMPLE_STEPS = 4, KSAMPLE_VOCAB_MAX = 1 << 20 };

/* How the token of a row is chosen. */
typedef struct {
    uint64_t rng[2]; /* xoroshiro128+ */
    double top_p, log_min_p, temp;
    float reach; /* without a top_k before, candidates are no further behind the best than this */
    int32_t top_k;
    uint8_t step[KSAMPLE_STEPS]; /* ksample_step, in their order */
    int32_t n_step;
    int32_t greedy; /* not 0: the likeliest, and none of the above */
    int32_t from;   /* rng is what this row of the call before left; -1: as above */
} ksample;

/* What was chosen. */
typedef struct {
    uint64_t rng[2]; /* behind it: a number is drawn where there is more than one candidate */
    int32_t id;      /* -1: no logit is a number that can be chosen */
    uint32_t turn;   /* of the call that chose it; written last */
} ksampled;

/* The next 64 bits (Blackman and Vigna 2018). */
K_FN uint64_t ksample_random(uint64_t rng[2])
{
    uint64_t a = rng[0], b = rng[1], sum = a + b;
    b ^= a;
    rng[0] = ((a << 24) | (a >> 40)) ^ b ^ (b << 16);
    rng[1] = (b << 37) | (b >> 27);
    return sum;
}

/* ---- weights: probabilities as whole numbers, the likeliest has 2^bits ---- */

/* So many that the sum over a vocabulary fits 64 bits; 43 bits tell apart probabilities down to 1e-13 of the largest. */
K_FN int ksample_bits(int64_t n_vocab)
{
    return n_vocab <= KSAMPLE_VOCAB_MAX ? 43 : 32;
}

/* floor(e^x * 2^bits) for x <= 0, but for the last bits of e^x: 0 where x is far below, or no number. e^x = 2^k e^r with
 * |r| <= ln(2) / 2, and e^r by its Taylor series, whose rest is below 5e-18. */
K_FN uint64_t ksample_weight(double x, int bits)
{
    const double LOG2_E = 0x1.71547652b82fep0, ROUND = 0x1.8p52;
    const double LN2_HI = 0x1.62e42fee00000p-1, LN2_LO = 0x1.a39ef35793c76p-33;
    if (!(x > -36)) /* also NaN */
        return 0;
    if (x >= 0)
        return (uint64_t)1 << bits;
    double k = x * LOG2_E + ROUND - ROUND;
    int shift = bits + (int)k;
    if (shift < 0)
        return 0;
    double r = x - k * LN2_HI - k * LN2_LO, e = 1.0 / 6227020800;
    e = e * r + 1.0 / 479001600;
    e = e * r + 1.0 / 39916800;
    e = e * r + 1.0 / 3628800;
    e = e * r + 1.0 / 362880;
    e = e * r + 1.0 / 40320;
    e = e * r + 1.0 / 5040;
    e = e * r + 1.0 / 720;
    e = e * r + 1.0 / 120;
    e = e * r + 1.0 / 24;
    e = e * r + 1.0 / 6;
    e = e * r + 0.5;
    e = e * r + 1;
    e = e * r + 1;
    return (uint64_t)(e * (double)((uint64_t)1 << shift));
}

/* The weight of which the first candidates are to have no less, for a share of all. */
K_FN uint64_t ksample_share(double share, uint64_t all)
{
    return (uint64_t)(share * (double)all);
}

/* Where in the line of all weight 53 of these random bits point: the first candidate is drawn that ends behind it. */
K_FN uint64_t ksample_point(uint64_t random, uint64_t all)
{
    uint64_t a = random >> 32, b = (random & 0xfffff800u), c = all >> 32, d = all & 0xffffffffu;
    uint64_t low = (b * d) >> 32, mid = a * d + low, mid2 = b * c + (mid & 0xffffffffu);
    return a * c + (mid >> 32) + (mid2 >> 32);
}

/* The logit of a candidate behind the temperature. */
K_FN float ksample_cool(float logit, double temp)
{
    return (float)(logit / temp);
}

#endif
