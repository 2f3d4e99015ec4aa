/* route_ref.c - the K best experts of each row, best first, and their weights.
 *
 * An expert's score is the softmax of its logit over all experts, the sigmoid, the square root of
 * softplus, or the logit itself (softmax_topk, which takes the softmax over the chosen ones at the
 * end). Its merit is score plus select_bias, and serves for choosing only. With groups, the experts
 * outside the top_groups best groups cannot be chosen; a group is worth the sum of its two best
 * merits or its best one. Of equals the lower index goes first.
 *
 * The compiler has proven 1 <= K <= E. Whatever the logits hold, the ids are K different numbers in
 * [0, E): a NaN counts as the least merit, and where the groups leave fewer than K experts, the
 * others fill up. out overlaps no input. */
#include "kernels/kernel_decls.h"

#include <math.h>
#include "kernels/ref/scalar_math.h"

static void softmax_in_place(double *x, int64_t n)
{
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        max = larger(max, x[i]);
    for (int64_t i = 0; i < n; i++)
        sum += x[i] = exp(x[i] - max);
    for (int64_t i = 0; i < n; i++)
        x[i] /= sum;
}

static void score_all(const kargs *k, const float *logits, double *score)
{
    int64_t n_expert = k->size.route.experts;
    for (int64_t e = 0; e < n_expert; e++) {
        score[e] = logits[e];
        if (k->choice.route.score == ROUTE_SIGMOID)
            score[e] = sigmoid(score[e]);
        if (k->choice.route.score == ROUTE_SQRT_SOFTPLUS)
            score[e] = sqrt(softplus(score[e]));
    }
    if (k->choice.route.score == ROUTE_SOFTMAX)
        softmax_in_place(score, n_expert);
}

static double group_worth(const double *merit, int64_t n, int how)
{
    double best = -INFINITY, second = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        if (merit[i] > best) {
            second = best;
            best = merit[i];
        } else if (merit[i] > second) {
            second = merit[i];
        }
    }
    return how == ROUTE_MAX || n < 2 ? best : best + second;
}

/* Take all merit from the experts outside the best groups. */
static void keep_best_groups(const kargs *k, double *merit, double *worth)
{
    int64_t n_expert = k->size.route.experts, groups = k->size.route.groups,
            top_groups = k->size.route.top_groups;
    int64_t size = n_expert / groups;
    for (int64_t g = 0; g < groups; g++)
        worth[g] = group_worth(merit + g * size, size, k->choice.route.group_score);
    for (int64_t g = 0; g < groups; g++) {
        int64_t ahead = 0;
        for (int64_t other = 0; other < groups; other++)
            ahead += worth[other] > worth[g] || (worth[other] == worth[g] && other < g);
        for (int64_t i = 0; ahead >= top_groups && i < size; i++)
            merit[g * size + i] = -INFINITY;
    }
}

/* The expert of most merit that is not among ids[n]. */
static int32_t best_left(const double *merit, int64_t n_expert, const int32_t *ids, int64_t n)
{
    int32_t best = -1;
    for (int32_t e = 0; e < n_expert; e++) {
        bool taken = false;
        for (int64_t i = 0; i < n; i++)
            taken = taken || ids[i] == e;
        if (!taken && (best < 0 || merit[e] > merit[best]))
            best = e;
    }
    WEFT_ASSERT(best >= 0);
    return best;
}

static void route_row(const kargs *k, const float *logits, double *score, double *merit,
                      int32_t *ids, float *weights)
{
    const float *bias = k->in[1]; /* [E] or NULL */
    int64_t n_expert = k->size.route.experts, top = k->size.route.slots,
            groups = k->size.route.groups;
    double *worth = merit + n_expert; /* [groups] */
    score_all(k, logits, score);
    for (int64_t e = 0; e < n_expert; e++) {
        merit[e] = score[e] + (bias ? (double)bias[e] : 0);
        if (isnan(merit[e]))
            merit[e] = -INFINITY;
    }
    if (groups > 1)
        keep_best_groups(k, merit, worth);

    for (int64_t i = 0; i < top; i++)
        ids[i] = best_left(merit, n_expert, ids, i);
    double *chosen = merit; /* [K]: the merits have served */
    for (int64_t i = 0; i < top; i++)
        chosen[i] = score[ids[i]];
    if (k->choice.route.score == ROUTE_SOFTMAX_TOPK)
        softmax_in_place(chosen, top);
    double sum = 0;
    for (int64_t i = 0; i < top; i++)
        sum += chosen[i];
    bool renorm = k->choice.route.renorm != 0 && sum != 0; /* weights that are all 0 stay so */
    for (int64_t i = 0; i < top; i++)
        weights[i] = (float)((renorm ? chosen[i] / sum : chosen[i]) * k->scalar.route.scale);
}

void k_route_ref(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    const float *logits = k->in[0]; /* [rows, E] */
    int32_t *ids = k->out[0];       /* [rows, K] */
    float *weights = k->out[1];     /* [rows, K] */
    double *score = t->scratch;     /* [E] */
    int64_t n_expert = k->size.route.experts, top = k->size.route.slots;
    double *merit = score + n_expert; /* [E], with the groups' worth [groups] behind it */
    for (int64_t row = begin; row < end; row++)
        route_row(k, logits + row * n_expert, score, merit, ids + row * top, weights + row * top);
}
