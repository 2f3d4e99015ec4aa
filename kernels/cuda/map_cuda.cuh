/* map_cuda.cuh - an element-wise expression: a thread runs all instructions for one element after the other. The threads of
 * a warp are at the same instruction; the registers of an element lie in the thread's own memory.
 *
 * A result may be an input whose elements are in the same places. */
#ifndef WEFT_KERNELS_CUDA_MAP_CUDA_CUH
#define WEFT_KERNELS_CUDA_MAP_CUDA_CUH

#include <math.h>
#include "kernels/cuda/block_cuda.cuh"

static __device__ inline float sigmoid(float x)
{
    float e = expf(-fabsf(x)); /* no overflow, and no loss where the result is near 0 */
    return (x < 0 ? e : 1.0f) / (1.0f + e);
}

static __device__ inline float softplus(float x)
{
    return (x > 0 ? x : 0) + log1pf(expf(-fabsf(x)));
}

static __device__ inline float gelu_erf(float x)
{
    return 0.5f * x * erfcf(-0.70710678f * x);
}

/* (1 + tanh u) / 2 is the sigmoid of 2u. */
static __device__ inline float gelu_tanh(float x)
{
    return x * sigmoid(1.5957691216f * (x + 0.044715f * x * x * x)); /* 2 sqrt(2 / pi) (..) */
}

static __device__ ONE_COPY float map_compute(const kinstr *c, float x, float y, float z)
{
    switch ((kmap_op)c->op) {
    case MAP_add:
        return x + y;
    case MAP_sub:
        return x - y;
    case MAP_mul:
        return x * y;
    case MAP_div:
        return x / y;
    case MAP_max:
        return x > y || x != x ? x : y;
    case MAP_min:
        return x < y || x != x ? x : y;
    case MAP_select:
        return x > 0 ? y : z;
    case MAP_neg:
        return -x;
    case MAP_silu:
        return x * sigmoid(x);
    case MAP_gelu_erf:
        return gelu_erf(x);
    case MAP_gelu_tanh:
        return gelu_tanh(x);
    case MAP_gelu_quick:
        return x * sigmoid(1.702f * x);
    case MAP_tanh:
        return tanhf(x);
    case MAP_sigmoid:
        return sigmoid(x);
    case MAP_relu:
        return x <= 0 ? 0 : x;
    case MAP_softplus:
        return softplus(x);
    case MAP_exp:
        return expf(x);
    case MAP_sqrt:
        return sqrtf(x);
    case MAP_clamp:
        x = x < c->f[0] ? c->f[0] : x;
        return x > c->f[1] ? c->f[1] : x;
    case MAP_number:
        return c->f[0];
    case MAP_load:
    case MAP_store:
    case MAP_COUNT:
        break;
    }
    return 0;
}

/* How far from each other the elements of a row are in an input, where that is one number for all of them; -1: it is not. */
static __device__ int64_t map_step(const kargs *k, int input)
{
    int64_t step = 0, n = 1; /* of the axes seen so far, from the last one on; elements of them */
    for (int axis = k->choice.map.axes; axis > 0; axis--) {
        int64_t dim = k->size.map.dim[axis - 1], stride = k->stride[input][axis];
        if (dim == 1)
            continue;
        if (n > 1 && stride != step * n)
            return -1;
        step = n > 1 ? step : stride;
        n *= dim;
    }
    return step;
}

/* Where element e of a row is in an input. */
static __device__ int64_t map_place(const kargs *k, int input, int64_t e)
{
    int64_t at = 0;
    for (int axis = k->choice.map.axes; axis > 0; axis--) {
        int64_t dim = k->size.map.dim[axis - 1];
        at += e % dim * k->stride[input][axis];
        e /= dim;
    }
    return at;
}

static __device__ void map_element(const kargs *k, const int64_t *step, int64_t row, int64_t col)
{
    float reg[MAP_REGS_MAX];
    for (const kinstr *c = k->code, *end = c + k->n_code; c < end; c++) {
        int input = c->at[0];
        if (c->op == MAP_load) {
            int64_t at = step[input] >= 0 ? col * step[input] : map_place(k, input, col);
            reg[c->to] = ((const float *)k->in[input])[row * k->stride[input][0] + at];
        } else if (c->op == MAP_store) {
            row_out(k, c->to, row)[col] = reg[c->at[0]];
        } else {
            reg[c->to] = map_compute(c, reg[c->at[0]], reg[c->at[1]], reg[c->at[2]]);
        }
    }
}

static __device__ ONE_COPY void k_map_cuda(const kargs *k, const kthread *, int64_t begin,
                                           int64_t end)
{
    kpart p = kpart_of(k, k->size.map.elems, begin, end);
    int64_t width = p.col_end - p.col, step[K_IN_MAX];
    for (int i = 0; i < K_IN_MAX; i++)
        step[i] = k->in[i] ? map_step(k, i) : 0;
    for (int64_t at = threadIdx.x; at < (p.row_end - p.row) * width; at += blockDim.x)
        map_element(k, step, p.row + at / width, p.col + at % width);
}

#endif
