/* norm_cuda.cuh - rms_norm, layer_norm and softmax over vectors: sums in double, one rounding less than in float for each
 * element. out may be x. */
#ifndef WEFT_KERNELS_CUDA_NORM_CUDA_CUH
#define WEFT_KERNELS_CUDA_NORM_CUDA_CUH

#include <math.h>
#include "kernels/cuda/block_cuda.cuh"

/* Vectors of `width` columns that part p of a step has; vector i of them: its row and its first column. */
static __device__ inline int64_t vectors_of(const kpart &p, int64_t width)
{
    return (p.row_end - p.row) * ((p.col_end - p.col) / width);
}

struct vector_place {
    int64_t row, col;
};

static __device__ inline vector_place vector_at(const kpart &p, int64_t width, int64_t i)
{
    int64_t per_row = (p.col_end - p.col) / width;
    return vector_place{p.row + i / per_row, p.col + i % per_row * width};
}

static __device__ double sum_of(const team &t, const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = t.thread; i < n; i += t.threads)
        sum += (double)x[i];
    return team_sum(t, sum);
}

/* Numbers that a thread loads before it looks at the first of them: loads one after the other take as long each. */
enum { NORM_BATCH = 8 };

static __device__ double squares_of(const team &t, const float *x, double mean, int64_t n)
{
    double sum = 0;
    for (int64_t first = t.thread; first < n; first += NORM_BATCH * t.threads) {
        float v[NORM_BATCH];
        UNROLL
        for (int e = 0; e < NORM_BATCH; e++)
            v[e] = first + e * t.threads < n ? x[first + e * t.threads] : 0;
        UNROLL
        for (int e = 0; e < NORM_BATCH; e++) {
            double d = first + e * t.threads < n ? (double)v[e] - mean : 0;
            sum = fma(d, d, sum);
        }
    }
    return team_sum(t, sum);
}

/* The mean comes in two floats, since what is left where it is large may be small. w, bias: [n] or NULL. */
static __device__ void norm_apply(const team &t, const float *x, double mean, float inverse,
                                  const float *w, const float *bias, int64_t n, float *out)
{
    float high = (float)mean, low = (float)(mean - (double)high);
    for (int64_t first = t.thread; first < n; first += NORM_BATCH * t.threads) {
        float v[NORM_BATCH], by[NORM_BATCH];
        UNROLL
        for (int e = 0; e < NORM_BATCH; e++) {
            int64_t i = first + e * t.threads;
            v[e] = i < n ? x[i] : 0;
            by[e] = w && i < n ? w[i] : 1;
        }
        UNROLL
        for (int e = 0; e < NORM_BATCH; e++) {
            int64_t i = first + e * t.threads;
            float y = (v[e] - high - low) * inverse;
            y = w ? y * by[e] : y;
            if (i < n)
                out[i] = bias ? y + bias[i] : y;
        }
    }
}

/* centred: less their mean first, as layer_norm does. */
static __device__ void norm_part(const kargs *k, int64_t begin, int64_t end, bool centred)
{
    int64_t width = k->size.norm.width, w_rows = k->size.norm.weight_rows;
    kpart p = kpart_of(k, k->size.norm.vectors * width, begin, end);
    team t = team_of(width);
    for (int64_t i = t.index; i < vectors_of(p, width); i += t.count) {
        vector_place at = vector_at(p, width, i);
        int64_t w_row = w_rows > 1 ? at.col / width % w_rows : 0;
        const float *x = row_in(k, 0, at.row) + at.col;
        double mean = centred ? sum_of(t, x, width) / (double)width : 0;
        double variance = squares_of(t, x, mean, width) / (double)width;
        float inverse = (float)(1 / sqrt(variance + k->scalar.norm.eps));
        team_wait(t); /* all have read x, in whose place the result may be */
        norm_apply(t, x, mean, inverse, k->in[1] ? row_in(k, 1, w_row) : NULL,
                   centred && k->in[2] ? row_in(k, 2, w_row) : NULL, width,
                   row_out(k, 0, at.row) + at.col);
    }
}

static __device__ ONE_COPY void k_rms_norm_cuda(const kargs *k, const kthread *, int64_t begin,
                                                int64_t end)
{
    norm_part(k, begin, end, false);
}

static __device__ ONE_COPY void k_layer_norm_cuda(const kargs *k, const kthread *, int64_t begin,
                                                  int64_t end)
{
    norm_part(k, begin, end, true);
}

/* A NaN makes a vector NaN. */
static __device__ ONE_COPY void k_softmax_cuda(const kargs *k, const kthread *, int64_t begin,
                                               int64_t end)
{
    int64_t width = k->size.softmax.width;
    kpart p = {begin, end, 0, k->size.softmax.vectors * width};
    team t = team_of(width);
    for (int64_t i = t.index; i < vectors_of(p, width); i += t.count) {
        vector_place at = vector_at(p, width, i);
        const float *x = row_in(k, 0, at.row) + at.col;
        float *out = row_out(k, 0, at.row) + at.col;
        float max = -INFINITY;
        for (int64_t c = t.thread; c < width; c += t.threads)
            max = x[c] > max ? x[c] : max;
        max = team_max(t, max);
        double sum = 0;
        for (int64_t c = t.thread; c < width; c += t.threads) {
            out[c] = expf(x[c] - max); /* a thread reads back what it wrote */
            sum += (double)out[c];
        }
        float all = (float)team_sum(t, sum);
        for (int64_t c = t.thread; c < width; c += t.threads)
            out[c] /= all;
    }
}

#endif
