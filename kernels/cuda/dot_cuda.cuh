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
    dtype type;
};

/* Eight columns from c on of a row of activations that begins at a multiple of 16 bytes. */
static __device__ inline eight_floats x_eight_even(const float *x, uint32_t c)
{
    const bytes16 *p = (const bytes16 *)(x + c);
    bytes16 low = p[0], high = p[1];
    eight_floats e;
    for (int i = 0; i < 4; i++) {
        e.w[i] = float_of(low.w[i]);
        e.w[i + 4] = float_of(high.w[i]);
    }
    return e;
}

/* The same of any row of n; columns from n on are 0. */
static __device__ inline eight_floats x_eight(const float *x, uint32_t c, uint32_t n)
{
    if (c + EIGHT <= n && at_16(x + c))
        return x_eight_even(x, c);
    eight_floats e;
    for (int i = 0; i < EIGHT; i++)
        e.w[i] = c + (uint32_t)i < n ? x[c + (uint32_t)i] : 0;
    return e;
}

/* ---- few ---- */

enum { FEW_W = 2, FEW_X = 4 }; /* rows of weights, and of activations at most, of a warp */

/* Some rows of activations, and where their results begin. */
struct few_rows {
    const float *x[FEW_X];
    float *out[FEW_X];
    int n;
};

/* One step: eight columns of all rows at hand. EVEN: rows of activations begin at multiples of 16 bytes, with whole eights. */
template <class W, int X, bool EVEN>
static __device__ inline void few_step(const dot_weights &j, const few_rows &r, const uint8_t *w0,
                                       const uint8_t *w1, uint32_t c, float (*sum)[X])
{
    uint32_t n = (uint32_t)j.n;
    eight_floats a0 = eight_as<W>(j.type, w0, c, n), a1 = eight_as<W>(j.type, w1, c, n);
    for (int x = 0; x < X; x++) {
        eight_floats b = EVEN ? x_eight_even(r.x[x], c) : x_eight(r.x[x], c, n);
        for (int i = 0; i < EIGHT; i++) {
            sum[0][x] = mad(a0.w[i], b.w[i], sum[0][x]);
            sum[1][x] = mad(a1.w[i], b.w[i], sum[1][x]);
        }
    }
}

template <class W, int X, bool EVEN>
static __device__ ONE_COPY void few_dots(const dot_weights &j, const few_rows &r)
{
    for (int64_t row = j.row + FEW_W * warp_index(); row < j.row_end; row += FEW_W * warp_count()) {
        const uint8_t *w0 = j.w + row * j.pitch;
        const uint8_t *w1 = row + 1 < j.row_end ? w0 + j.pitch : w0;
        float sum[FEW_W][X] = {};
        UNROLLED(X == 1 && EVEN ? 4 : 1)
        for (uint32_t c = (uint32_t)lane_index() * EIGHT; c < (uint32_t)j.n; c += EIGHT * WARP)
            few_step<W, X, EVEN>(j, r, w0, w1, c, sum);
        for (int i = 0; i < FEW_W; i++)
            for (int x = 0; x < X; x++) {
                float all = warp_sum(sum[i][x]);
                if (lane_index() == 0 && x < r.n && row + i < j.row_end)
                    r.out[x][row + i] = j.bias ? all + j.bias[row + i] : all;
            }
    }
}

template <class W, bool EVEN>
static __device__ inline void few_dots_of(const dot_weights &j, const few_rows &r)
{
    if (r.n == 1)
        few_dots<W, 1, EVEN>(j, r);
    else
        few_dots<W, FEW_X, EVEN>(j, r);
}

static __device__ inline bool is_even(const dot_weights &j, const few_rows &r)
{
    bool floats = j.type == DT_F32 || j.type == DT_F16 || j.type == DT_BF16;
    bool even = j.n % EIGHT == 0 && (!floats || (at_16(j.w) && j.pitch % 16 == 0));
    for (int i = 0; i < r.n; i++)
        even = even && at_16(r.x[i]);
    return even;
}

static __device__ ONE_COPY void few_dots_any(const dot_weights &j, few_rows r)
{
    for (int i = r.n; i < FEW_X; i++)
        r.x[i] = r.x[0];
    switch (is_even(j, r) ? j.type : DT_COUNT) {
#define CASE(t, struct_t)                                                                          \
    case DT_##t:                                                                                   \
        few_dots_of<struct_t, true>(j, r);                                                         \
        break;
#define CASE_BLOCKS(t) CASE(t, weight_##t)
        CASE(F32, weight_F32_EVEN)
        CASE(F16, weight_F16_EVEN)
        CASE(BF16, weight_BF16_EVEN)
        WEIGHT_BLOCKS_OFTEN(CASE_BLOCKS)
#undef CASE_BLOCKS
#undef CASE
    default:
        few_dots_of<weight_any, false>(j, r);
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
    return block_threads() / (TILE_W / TILE_EACH) * TILE_EACH;
}

/* TILE_K columns from c on of rows of weights and of activations into scratch, [column][row]; 0 where there are none. */
static __device__ void tile_load(const dot_weights &j, const many_rows &r, int64_t row,
                                 int64_t first, int64_t c, float *ws, float *xs)
{
    const int n_x = tile_x();
    UNROLLED(1)
    for (int at = (int)threadIdx.x; at < TILE_W * (TILE_K / EIGHT); at += block_threads()) {
        int i = at % TILE_W, col = at / TILE_W * EIGHT;
        eight_floats w = {};
        if (row + i < j.row_end && c + col < j.n)
            w = eight_of(j.type, j.w + (row + i) * j.pitch, (uint32_t)(c + col), (uint32_t)j.n);
        for (int e = 0; e < EIGHT; e++)
            ws[(col + e) * TILE_PITCH + i] = w.w[e];
    }
    UNROLLED(1)
    for (int at = (int)threadIdx.x; at < n_x * (TILE_K / EIGHT); at += block_threads()) {
        int i = at % n_x, col = at / n_x * EIGHT;
        eight_floats x = {};
        if (first + i < r.n && c + col < j.n)
            x = x_eight(many_x(r, first + i), (uint32_t)(c + col), (uint32_t)j.n);
        for (int e = 0; e < EIGHT; e++)
            xs[(col + e) * TILE_PITCH + i] = x.w[e];
    }
}

/* Results of rows [row, row + TILE_W) of weights and rows [first, first + tile_x) of activations. */
static __device__ void tile_dots(const dot_weights &j, const many_rows &r, int64_t row,
                                 int64_t first, float *ws)
{
    float *xs = ws + TILE_K * TILE_PITCH;
    const int at_w = (int)threadIdx.x % (TILE_W / TILE_EACH) * TILE_EACH;
    const int at_x = (int)threadIdx.x / (TILE_W / TILE_EACH) * TILE_EACH;
    float sum[TILE_EACH][TILE_EACH] = {};
    for (int64_t c = 0; c < j.n; c += TILE_K) {
        block_sync(); /* what was there has been read */
        tile_load(j, r, row, first, c, ws, xs);
        block_sync();
        for (int k = 0; k < TILE_K; k++) {
            bytes16 w = *(const bytes16 *)(ws + k * TILE_PITCH + at_w);
            bytes16 x = *(const bytes16 *)(xs + k * TILE_PITCH + at_x);
            for (int i = 0; i < TILE_EACH; i++)
                for (int e = 0; e < TILE_EACH; e++)
                    sum[i][e] = mad(float_of(w.w[e]), float_of(x.w[i]), sum[i][e]);
        }
    }
    for (int i = 0; i < TILE_EACH && first + at_x + i < r.n; i++) {
        float *out = (float *)(r.out + many_index(r, first + at_x + i) * r.out_pitch);
        for (int e = 0; e < TILE_EACH; e++)
            if (row + at_w + e < j.row_end)
                out[row + at_w + e] = j.bias ? sum[i][e] + j.bias[row + at_w + e] : sum[i][e];
    }
}

static __device__ ONE_COPY void many_dots(const dot_weights &j, const many_rows &r, float *scratch)
{
    for (int64_t row = j.row; row < j.row_end; row += TILE_W)
        for (int64_t first = 0; first < r.n; first += tile_x())
            tile_dots(j, r, row, first, scratch);
}

#endif
