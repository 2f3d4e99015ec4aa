/* norm_cuda.cuh - rms_norm, layer_norm and softmax over vectors: sums in double, one rounding less than in float for each
 * element. out may be x. */
#ifndef WEFT_KERNELS_CUDA_NORM_CUDA_CUH
#define WEFT_KERNELS_CUDA_NORM_CUDA_CUH

#include <math.h>
#include "kernels/cuda/quantize_cuda.cuh"

/* Vectors of `width` columns that part p of a step has; vector i of them: its row and its first column. Both
 * are counted in 32 bits: to divide 64 takes a hundred instructions. */
static __device__ inline int64_t vectors_of(const kpart &p, int width)
{
    return (p.row_end - p.row) * ((uint32_t)(p.col_end - p.col) / (uint32_t)width);
}

struct vector_place {
    int64_t row, col;
};

static __device__ inline vector_place vector_at(const kpart &p, int width, int64_t i)
{
    if (p.row_end - p.row == 1)
        return vector_place{p.row, p.col + i * width};
    const uint32_t per_row = (uint32_t)(p.col_end - p.col) / (uint32_t)width;
    const uint32_t row = (uint32_t)i / per_row;
    return vector_place{p.row + row, p.col + (int64_t)((uint32_t)i - row * per_row) * width};
}

/* A vector of rms_norm or layer_norm: [width] each, w and bias may be NULL, out may be x.
 *
 * It is cut into runs of columns, of which thread t of n has number t, t + n and so on: one order of sums, whichever of the
 * functions below computes them. Runs are fours where a warp has the vector, and else eights, as quantize has them. */
struct norm_vector {
    const float *x, *w, *bias;
    float *out;
    int width;
    double eps;
    int set;     /* of words, for the sum of squares (block_sum); that of a mean is 0 */
    bool copied; /* to the ring too, as floats, where it is held */
    bool late;   /* the gate is met here, by all of the block (gate_cuda.cuh) */
};

static __device__ inline double inverse_root(double x)
{
#ifdef __CUDACC__
    return rsqrt(x); /* right to a unit of a double, without the code of a division */
#else
    return 1 / sqrt(x);
#endif
}

/* By what numbers are multiplied, given the sum of their squares. */
static __device__ inline float norm_scale(const norm_vector &v, double squares)
{
    return (float)inverse_root(squares * (1 / (double)v.width) + v.eps);
}

/* Fours that a thread has in registers, and whether weights are loaded before the sums are known: not in the image for any plan, which
 * has fewer registers, and other rows to compute meanwhile. */
#ifdef WEFT_SHAPES
enum { NORM_HELD = 8, NORM_AHEAD = 1 };
#else
enum { NORM_HELD = 4, NORM_AHEAD = 0 };
#endif

static __device__ inline bool norm_is_held(const team &t, const norm_vector &v)
{
    return v.width % 4 == 0 && v.width <= NORM_HELD * 4 * t.threads && is_aligned(v.x) &&
           is_aligned(v.out) && is_aligned(v.w) && is_aligned(v.bias);
}

/* Where four number e of a thread begins. */
static __device__ inline int norm_four(const team &t, int thread, int e)
{
    return t.block ? 8 * (thread + e / 2 * t.threads) + e % 2 * 4 : 4 * (thread + e * t.threads);
}

/* Has the thread it? Most of it is known where width and threads are. */
static __device__ inline bool norm_has(const team &t, const norm_vector &v, int e)
{
    return norm_four(t, 0, e) < v.width &&
           (norm_four(t, t.threads - 1, e) < v.width || norm_four(t, t.thread, e) < v.width);
}

static __device__ inline void norm_weights(const norm_vector &v, int at, floats4 *w, floats4 *bias)
{
    *w = v.w ? *(const floats4 *)(v.w + at) : floats4{{1, 1, 1, 1}};
    if (v.bias)
        *bias = *(const floats4 *)(v.bias + at);
}

/* x [NORM_HELD]: what a thread has of the result, and stores. Everything is loaded before the first sum waits for it, and once. The
 * mean is subtracted as two floats, since what is left where it is large may be small. */
static __device__ inline void norm_held(const team &t, const norm_vector &v, bool centred,
                                        floats4 *x)
{
    floats4 w[NORM_HELD] = {}, bias[NORM_HELD] = {};
    double sum = 0, mean = 0;
    UNROLL
    for (int e = 0; NORM_AHEAD && e < NORM_HELD; e++)
        if (norm_has(t, v, e))
            norm_weights(v, norm_four(t, t.thread, e), &w[e], &bias[e]);
    if (v.late && !gate_meet_late())
        return;
    UNROLL
    for (int e = 0; e < NORM_HELD; e++)
        if (norm_has(t, v, e))
            x[e] = *(const floats4 *)(v.x + norm_four(t, t.thread, e));
    if (centred) {
        UNROLL
        for (int e = 0; e < 4 * NORM_HELD; e++)
            if (norm_has(t, v, e / 4))
                sum += (double)x[e / 4].x[e % 4];
        mean = team_sum(t, sum, 0) * (1 / (double)v.width);
        sum = 0;
    }
    UNROLL
    for (int e = 0; e < 4 * NORM_HELD; e++)
        if (norm_has(t, v, e / 4)) {
            const double d = (double)x[e / 4].x[e % 4] - mean;
            sum = fma(d, d, sum);
        }
    const float scale = norm_scale(v, team_sum(t, sum, v.set));
    const float high = (float)mean, low = (float)(mean - (double)high);
    UNROLL
    for (int e = 0; e < NORM_HELD; e++) {
        const int at = norm_four(t, t.thread, e);
        if (!norm_has(t, v, e))
            continue;
        if (!NORM_AHEAD)
            norm_weights(v, at, &w[e], &bias[e]);
        UNROLL
        for (int c = 0; c < 4; c++) {
            const float y = (x[e].x[c] - high - low) * scale * w[e].x[c];
            x[e].x[c] = v.bias ? y + bias[e].x[c] : y;
        }
        *(floats4 *)(v.out + at) = x[e];
        if (v.copied)
            ring_x_put(at, v.width, x[e]);
    }
}

/* Column c of those that a thread has: where it is, if it is there. */
static __device__ inline int norm_column(const team &t, int c)
{
    return norm_four(t, t.thread, c / 4) + c % 4;
}

/* The same of any width, at any address. A thread reads what it alone writes. */
static __device__ APART void norm_any(norm_vector v, bool centred)
{
    const team t = team_of(v.width);
    const int each = (v.width + 8 * t.threads - 1) / (8 * t.threads) * 8;
    double sum = 0, mean = 0;
    for (int c = 0; centred && c < each; c++)
        sum += norm_column(t, c) < v.width ? (double)v.x[norm_column(t, c)] : 0;
    if (centred)
        mean = team_sum(t, sum, 0) * (1 / (double)v.width);
    sum = 0;
    for (int c = 0; c < each; c++) {
        const int at = norm_column(t, c);
        const double d = at < v.width ? (double)v.x[at] - mean : 0;
        sum = fma(d, d, sum);
    }
    const float scale = norm_scale(v, team_sum(t, sum, v.set));
    const float high = (float)mean, low = (float)(mean - (double)high);
    for (int c = 0; c < each; c++) {
        const int at = norm_column(t, c);
        if (at >= v.width)
            continue;
        const float y = (v.x[at] - high - low) * scale * (v.w ? v.w[at] : 1);
        v.out[at] = v.bias ? y + v.bias[at] : y;
    }
}

/* centred: less their mean first, as layer_norm does. copied: the call's row, to the ring too; such steps meet their gate late. */
static __device__ inline void norm_part(const kargs *k, int64_t begin, int64_t end, bool centred,
                                        bool copied)
{
    const int width = (int)k->size.norm.width;
    const int64_t w_rows = k->size.norm.weight_rows;
    const kpart p = part_of(k, k->size.norm.vectors * width, begin, end);
    const team t = team_of(width);
    UNROLLED(1)
    for (int64_t i = t.index; i < vectors_of(p, width); i += t.count) {
        const vector_place at = vector_at(p, width, i);
        const int64_t w_row =
            w_rows > 1 ? (uint32_t)at.col / (uint32_t)width % (uint32_t)w_rows : 0;
        const norm_vector v = {row_in(k, 0, at.row) + at.col,
                               k->in[1] ? row_in(k, 1, w_row) : NULL,
                               centred && k->in[2] ? row_in(k, 2, w_row) : NULL,
                               row_out(k, 0, at.row) + at.col,
                               width,
                               k->scalar.norm.eps,
                               centred ? 1 : (int)(i & 1),
                               copied,
                               copied};
        if (copied && threadIdx.x == 0)
            ring_x_made(norm_is_held(t, v) ? v.out : NULL);
        if (norm_is_held(t, v)) {
            floats4 x[NORM_HELD] = {};
            norm_held(t, v, centred, x);
        } else if (!copied || gate_meet_late()) {
            norm_any(v, centred);
        }
    }
}

static __device__ ONE_COPY void k_rms_norm_cuda(const kargs *k, const kthread *, int64_t begin,
                                                int64_t end)
{
    norm_part(k, begin, end, false, false);
}

/* The same of a row that linears multiply as floats. */
static __device__ inline void k_rms_norm_cuda_x(const kargs *k, const kthread *, int64_t begin,
                                                int64_t end)
{
    const int64_t width = k->size.norm.width;
    const bool one = k->n[0] == 1 && k->size.norm.vectors == 1 && width > TEAM_WIDTH_MAX;
    const bool copied = one && width % 8 == 0 && ring_x_fits(width * 4);
    if (copied || gate_meet_late())
        norm_part(k, begin, end, false, copied);
}

/* ---- and quantised: a step that follows on a norm of whole rows, in an image made for a plan ---- */

/* What a thread has of the row, in registers. */
static __device__ inline void norm_quantize_held(const quantize_to &to, const float *row,
                                                 const floats4 *x)
{
    const int step = block_threads() * 8, units = (to.n + step - 1) / step;
    const int at = (int)threadIdx.x * 8;
    if (act_is_split(to.act)) {
        UNROLL
        for (int e = 0; e < NORM_HELD / 2; e++)
            if (at + e * step < to.n)
                split_put(to.act, x + 2 * e, (uint16_t *)to.row, at + e * step);
    } else if (units == 1) {
        quantize_loaded<1>(to, row, 0, to.n, x);
    } else if (units == 2) {
        quantize_loaded<2>(to, row, 0, to.n, x);
    } else {
        quantize_loaded<NORM_HELD / 2>(to, row, 0, to.n, x);
    }
}

/* Rows of more than TEAM_WIDTH_MAX columns, whole 256; those that are quantised are out[1], choices are quantize's. The same bits as
 * both steps one after the other. */
static __device__ inline void k_rms_norm_cuda_quantize(const kargs *k, const kthread *,
                                                       int64_t begin, int64_t end)
{
    const kact act = (kact)k->choice.quantize.act;
    const int width = (int)k->size.norm.width;
    const kpart p = part_of(k, width, begin, end);
    const team t = team_of(width);
    const bool one = k->n[0] == 1, copied = one && quantize_copies(act, width);
    if (one && threadIdx.x == 0)
        ring_x_made(copied ? row_out(k, 1, 0) : NULL);
    UNROLLED(1)
    for (int64_t row = p.row; row < p.row_end; row++) {
        const norm_vector v = {row_in(k, 0, row),
                               k->in[1] ? row_in(k, 1, 0) : NULL,
                               NULL,
                               row_out(k, 0, row),
                               width,
                               k->scalar.norm.eps,
                               (int)(row & 1),
                               false,
                               true};
        const quantize_to to = {act, width, (char *)row_out(k, 1, row), copied};
        if (norm_is_held(t, v)) {
            floats4 x[NORM_HELD] = {};
            norm_held(t, v, false, x);
            norm_quantize_held(to, v.out, x);
        } else if (gate_meet_late()) {
            norm_any(v, false);
            block_sync();
            quantize_row(to, v.out, 0, width);
        }
    }
}

static __device__ ONE_COPY void k_layer_norm_cuda(const kargs *k, const kthread *, int64_t begin,
                                                  int64_t end)
{
    norm_part(k, begin, end, true, false);
}

/* A NaN makes a vector NaN. */
static __device__ ONE_COPY void k_softmax_cuda(const kargs *k, const kthread *, int64_t begin,
                                               int64_t end)
{
    const int width = (int)k->size.softmax.width;
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
        float all = (float)team_sum(t, sum, 1);
        for (int64_t c = t.thread; c < width; c += t.threads)
            out[c] /= all;
    }
}

#endif
