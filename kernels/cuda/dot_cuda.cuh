/* dot_cuda.cuh - rows of activations times rows of weights: the work of linear, head_linear and experts.
 *
 * Two ways, for calls of few rows and of many; which of them is the kernel's choice, never the range's, so that the bits of
 * a result do not depend on how units were shared out.
 *
 * few    A warp has two rows of weights at a time and up to four of activations; a lane has eight columns of every 256. Weights
 *        are read once for four rows, next to each other by the lanes of a warp; activations come from the first-level cache
 *        or shared memory.
 * many   The block has a tile of results, TILE_W rows of weights by as many rows of activations as it has threads for; both
 *        are brought to scratch as floats, TILE_K columns at a time, and a thread has four by four sums. */
#ifndef WEFT_KERNELS_CUDA_DOT_CUDA_CUH
#define WEFT_KERNELS_CUDA_DOT_CUDA_CUH

#include "kernels/cuda/block_cuda.cuh"
#include "kernels/cuda/dot_size.h"
#include "kernels/cuda/weights_cuda.cuh"

/* The weights: rows [row, row_end) of a matrix. */
struct dot_weights {
    const uint8_t *w;
    int64_t pitch;
    const float *bias; /* [row_end] or NULL */
    int64_t row, row_end;
    int64_t n; /* columns */
};

/* Column c and on of a row of activations; those from n on are 0. */
static __device__ inline void x_eight(const float *x, int64_t c, int64_t n, float *to)
{
    const float *p = x + c;
    if (c + EIGHT <= n && at_16(p)) {
        const bytes16 *q = (const bytes16 *)p;
        bytes16 low = q[0], high = q[1];
        for (int i = 0; i < 4; i++) {
            to[i] = float_of(low.w[i]);
            to[i + 4] = float_of(high.w[i]);
        }
        return;
    }
    for (int i = 0; i < EIGHT; i++)
        to[i] = c + i < n ? p[i] : 0;
}

/* ---- few ---- */

enum { FEW_W = 2, FEW_X = 4 }; /* rows of weights, and of activations at most, of a warp */

/* Some rows of activations, and where their results begin. */
struct few_rows {
    const float *x[FEW_X];
    float *out[FEW_X];
    int n;
};

template <class W, int X>
static __device__ ONE_COPY void few_dots(const dot_weights &j, const few_rows &r)
{
    for (int64_t row = j.row + FEW_W * warp_index(); row < j.row_end; row += FEW_W * warp_count()) {
        const uint8_t *w0 = j.w + row * j.pitch;
        const uint8_t *w1 = row + 1 < j.row_end ? w0 + j.pitch : w0;
        float sum[FEW_W][X] = {};
        for (int64_t c = EIGHT * lane_index(); c < j.n; c += EIGHT * WARP) {
            float a0[EIGHT], a1[EIGHT];
            W::eight(w0, c, j.n, a0);
            W::eight(w1, c, j.n, a1);
            for (int x = 0; x < X; x++) {
                float b[EIGHT];
                x_eight(r.x[x], c, j.n, b);
                for (int i = 0; i < EIGHT; i++) {
                    sum[0][x] = fmaf(a0[i], b[i], sum[0][x]);
                    sum[1][x] = fmaf(a1[i], b[i], sum[1][x]);
                }
            }
        }
        for (int i = 0; i < FEW_W; i++)
            for (int x = 0; x < X; x++) {
                float all = warp_sum(sum[i][x]);
                if (lane_index() == 0 && x < r.n && row + i < j.row_end)
                    r.out[x][row + i] = j.bias ? all + j.bias[row + i] : all;
            }
    }
}

static __device__ ONE_COPY void few_dots_any(dtype type, const dot_weights &j, few_rows r)
{
    for (int i = r.n; i < FEW_X; i++)
        r.x[i] = r.x[0];
    switch (type) {
#define CASE(t)                                                                                    \
    case DT_##t:                                                                                   \
        if (r.n == 1)                                                                              \
            few_dots<weight_##t, 1>(j, r);                                                         \
        else                                                                                       \
            few_dots<weight_##t, FEW_X>(j, r);                                                     \
        break;
        WEIGHT_TYPES(CASE)
#undef CASE
    default:
        break;
    }
}

/* ---- many ---- */

/* Rows of activations: those of a list, or n from the beginning on. `share` of them in turn have one row of x. */
struct many_rows {
    const char *x;
    char *out;
    int64_t x_pitch, out_pitch;
    const int32_t *list; /* NULL: none */
    int64_t n, share;
};

static __device__ inline int64_t many_index(const many_rows &r, int64_t i)
{
    return r.list ? r.list[i] : i;
}

static __device__ inline const float *many_x(const many_rows &r, int64_t i)
{
    return (const float *)(r.x + many_index(r, i) / r.share * r.x_pitch);
}

/* Rows of activations of a tile. */
static __device__ inline int tile_x(void)
{
    return (int)blockDim.x / (TILE_W / TILE_EACH) * TILE_EACH;
}

/* TILE_K columns from c on of rows of weights and of activations into scratch, [column][row]; 0 where there are none. */
template <class W>
static __device__ void tile_load(const dot_weights &j, const many_rows &r, int64_t row,
                                 int64_t first, int64_t c, float *ws, float *xs)
{
    const int n_x = tile_x();
    for (int at = (int)threadIdx.x; at < TILE_W * (TILE_K / EIGHT); at += (int)blockDim.x) {
        int i = at % TILE_W, col = at / TILE_W * EIGHT;
        float w[EIGHT] = {};
        if (row + i < j.row_end && c + col < j.n)
            W::eight(j.w + (row + i) * j.pitch, c + col, j.n, w);
        for (int e = 0; e < EIGHT; e++)
            ws[(col + e) * TILE_PITCH + i] = w[e];
    }
    for (int at = (int)threadIdx.x; at < n_x * (TILE_K / EIGHT); at += (int)blockDim.x) {
        int i = at % n_x, col = at / n_x * EIGHT;
        float x[EIGHT] = {};
        if (first + i < r.n && c + col < j.n)
            x_eight(many_x(r, first + i), c + col, j.n, x);
        for (int e = 0; e < EIGHT; e++)
            xs[(col + e) * TILE_PITCH + i] = x[e];
    }
}

/* Results of rows [row, row + TILE_W) of weights and rows [first, first + tile_x) of activations. */
template <class W>
static __device__ void tile_dots(const dot_weights &j, const many_rows &r, int64_t row,
                                 int64_t first, float *ws)
{
    float *xs = ws + TILE_K * TILE_PITCH;
    const int at_w = (int)threadIdx.x % (TILE_W / TILE_EACH) * TILE_EACH;
    const int at_x = (int)threadIdx.x / (TILE_W / TILE_EACH) * TILE_EACH;
    float sum[TILE_EACH][TILE_EACH] = {};
    for (int64_t c = 0; c < j.n; c += TILE_K) {
        __syncthreads(); /* what was there has been read */
        tile_load<W>(j, r, row, first, c, ws, xs);
        __syncthreads();
        for (int k = 0; k < TILE_K; k++) {
            bytes16 w = *(const bytes16 *)(ws + k * TILE_PITCH + at_w);
            bytes16 x = *(const bytes16 *)(xs + k * TILE_PITCH + at_x);
            for (int i = 0; i < TILE_EACH; i++)
                for (int e = 0; e < TILE_EACH; e++)
                    sum[i][e] = fmaf(float_of(w.w[e]), float_of(x.w[i]), sum[i][e]);
        }
    }
    for (int i = 0; i < TILE_EACH && first + at_x + i < r.n; i++) {
        float *out = (float *)(r.out + many_index(r, first + at_x + i) * r.out_pitch);
        for (int e = 0; e < TILE_EACH; e++)
            if (row + at_w + e < j.row_end)
                out[row + at_w + e] = j.bias ? sum[i][e] + j.bias[row + at_w + e] : sum[i][e];
    }
}

template <class W>
static __device__ ONE_COPY void many_dots(const dot_weights &j, const many_rows &r, float *scratch)
{
    for (int64_t row = j.row; row < j.row_end; row += TILE_W)
        for (int64_t first = 0; first < r.n; first += tile_x())
            tile_dots<W>(j, r, row, first, scratch);
}

static __device__ ONE_COPY void many_dots_any(dtype type, const dot_weights &j, const many_rows &r,
                                              float *scratch)
{
    switch (type) {
#define CASE(t)                                                                                    \
    case DT_##t:                                                                                   \
        many_dots<weight_##t>(j, r, scratch);                                                      \
        break;
        WEIGHT_TYPES(CASE)
#undef CASE
    default:
        break;
    }
}

#endif
