/* route_cuda.cuh - the K best experts of each row, best first, and their weights; ref/route_ref.c says what is best.
 *
 * In double, as the reference: a last bit decides between near equals. A row at a time: all threads work out scores, the first
 * warp chooses. */
#ifndef WEFT_KERNELS_CUDA_ROUTE_CUDA_CUH
#define WEFT_KERNELS_CUDA_ROUTE_CUDA_CUH

#include <math.h>
#include "kernels/cuda/block_cuda.cuh"

static __device__ double route_score(int score, double x)
{
    if (score == ROUTE_SIGMOID)
        return 1 / (1 + exp(-x));
    if (score == ROUTE_SQRT_SOFTPLUS)
        return sqrt(x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)));
    return x;
}

static __device__ double lanes_max(double x)
{
    for (int step = WARP / 2; step > 0; step /= 2) {
        double y = __shfl_xor_sync(ALL_LANES, x, step);
        x = y > x ? y : x;
    }
    return x;
}

/* By one warp: n numbers become their softmax. The sum's terms are added one after the other, as the reference does. */
static __device__ void lanes_softmax(double *x, int64_t n)
{
    double max = -INFINITY, sum = 0;
    for (int64_t i = lane_index(); i < n; i += WARP)
        max = x[i] > max ? x[i] : max;
    max = lanes_max(max);
    for (int64_t i = lane_index(); i < n; i += WARP)
        x[i] = exp(x[i] - max);
    __syncwarp();
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    __syncwarp();
    for (int64_t i = lane_index(); i < n; i += WARP)
        x[i] /= sum;
    __syncwarp();
}

static __device__ double group_worth(const double *merit, int64_t n, int how)
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

/* Take all merit from the experts outside the best groups. A lane has whole groups. */
static __device__ void keep_best_groups(const kargs *k, double *merit, double *worth)
{
    int64_t groups = k->size.route.groups, size = k->size.route.experts / groups;
    for (int64_t g = lane_index(); g < groups; g += WARP)
        worth[g] = group_worth(merit + g * size, size, k->choice.route.group_score);
    __syncwarp();
    for (int64_t g = lane_index(); g < groups; g += WARP) {
        int64_t ahead = 0;
        for (int64_t other = 0; other < groups; other++)
            ahead += worth[other] > worth[g] || (worth[other] == worth[g] && other < g);
        for (int64_t i = 0; ahead >= k->size.route.top_groups && i < size; i++)
            merit[g * size + i] = -INFINITY;
    }
    __syncwarp();
}

/* Is expert a, of merit x, before expert b, of merit y? One that is -1 is none. */
static __device__ inline bool goes_first(double x, int32_t a, double y, int32_t b)
{
    return a >= 0 && (b < 0 || x > y || (x == y && a < b));
}

/* The expert of most merit that is not among ids[n]; of equals the one with the lower number. */
static __device__ int32_t best_left(const double *merit, int32_t n_expert, const int32_t *ids,
                                    int64_t n)
{
    int32_t best = -1;
    double most = 0;
    for (int32_t e = lane_index(); e < n_expert; e += WARP) {
        bool taken = false;
        for (int64_t i = 0; i < n; i++)
            taken = taken || ids[i] == e;
        if (!taken && goes_first(merit[e], e, most, best)) {
            best = e;
            most = merit[e];
        }
    }
    for (int step = WARP / 2; step > 0; step /= 2) {
        int32_t other = __shfl_xor_sync(ALL_LANES, best, step);
        double its = __shfl_xor_sync(ALL_LANES, most, step);
        if (goes_first(its, other, most, best)) {
            best = other;
            most = its;
        }
    }
    return best;
}

/* By one warp. score [E]; merit [E], the groups' worth behind it. */
static __device__ void route_choose(const kargs *k, double *score, double *merit, int32_t *ids,
                                    float *weights)
{
    const float *bias = (const float *)k->in[1]; /* [E] or NULL */
    int64_t n_expert = k->size.route.experts, top = k->size.route.slots;
    if (k->choice.route.score == ROUTE_SOFTMAX)
        lanes_softmax(score, n_expert);
    for (int64_t e = lane_index(); e < n_expert; e += WARP) {
        double m = score[e] + (bias ? (double)bias[e] : 0);
        merit[e] = m != m ? -INFINITY : m;
    }
    __syncwarp();
    if (k->size.route.groups > 1)
        keep_best_groups(k, merit, merit + n_expert);
    for (int64_t i = 0; i < top; i++) {
        int32_t best = best_left(merit, (int32_t)n_expert, ids, i);
        if (lane_index() == 0)
            ids[i] = best;
        __syncwarp();
    }
    double *chosen = merit; /* [K]: the merits have served */
    for (int64_t i = lane_index(); i < top; i += WARP)
        chosen[i] = score[ids[i]];
    __syncwarp();
    if (k->choice.route.score == ROUTE_SOFTMAX_TOPK)
        lanes_softmax(chosen, top);
    double sum = 0;
    for (int64_t i = 0; i < top; i++)
        sum += chosen[i];
    bool renorm = k->choice.route.renorm != 0 && sum != 0; /* weights that are all 0 stay so */
    for (int64_t i = lane_index(); i < top; i += WARP)
        weights[i] = (float)((renorm ? chosen[i] / sum : chosen[i]) * k->scalar.route.scale);
}

static __device__ ONE_COPY void k_route_cuda(const kargs *k, const kthread *t, int64_t begin,
                                             int64_t end)
{
    int64_t n_expert = k->size.route.experts;
    double *score = (double *)t->scratch, *merit = score + n_expert;
    for (int64_t row = begin; row < end; row++) {
        const float *logits = row_in(k, 0, row);
        block_sync(); /* the row before has been chosen */
        for (int64_t e = threadIdx.x; e < n_expert; e += block_threads())
            score[e] = route_score(k->choice.route.score, (double)logits[e]);
        block_sync();
        if (warp_index() == 0)
            route_choose(k, score, merit, (int32_t *)row_out(k, 0, row), row_out(k, 1, row));
    }
}

#endif
