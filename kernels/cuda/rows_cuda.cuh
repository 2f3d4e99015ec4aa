/* rows_cuda.cuh - the function of each row of cuda_kernels.def; of all, and of those that a function which a card is launched with may
 * have to run. */
#ifndef WEFT_KERNELS_CUDA_ROWS_CUDA_CUH
#define WEFT_KERNELS_CUDA_ROWS_CUDA_CUH

/* The rows of cuda_kernels.def in their order. */
enum cuda_row {
#define CUDA_KERNEL(op, type, act, least, most, symbol, ...) ROW_##symbol,
#include "kernels/cuda/cuda_kernels.def"
#undef CUDA_KERNEL
};

static __device__ void row_run(int32_t row, const kargs *k, const kthread *t, int64_t begin,
                               int64_t end)
{
    switch ((enum cuda_row)row) {
#define CUDA_KERNEL(op, type, act, least, most, symbol, ...)                                       \
    case ROW_##symbol:                                                                             \
        symbol(k, t, begin, end);                                                                  \
        break;
#include "kernels/cuda/cuda_kernels.def"
#undef CUDA_KERNEL
    }
}

/* The same for weft_light, which so needs few registers. */
static __device__ void row_run_light(int32_t row, const kargs *k, const kthread *t, int64_t begin,
                                     int64_t end)
{
    switch ((enum cuda_row)row) {
#define CUDA_LIGHT(symbol)                                                                         \
    case ROW_##symbol:                                                                             \
        symbol(k, t, begin, end);                                                                  \
        break;
#include "kernels/cuda/cuda_light.def"
#undef CUDA_LIGHT
    default:
        break;
    }
}

/* The same for weft_dots. */
static __device__ void row_run_dots(int32_t row, const kargs *k, const kthread *t, int64_t begin,
                                    int64_t end)
{
    switch (row) {
#define DOTS(type)                                                                                 \
    case ROW_k_linear_##type##_stream_cuda:                                                        \
        k_linear_##type##_stream_cuda(k, t, begin, end);                                           \
        break;
        DOTS(BF16)
        DOTS(F16)
        DOTS(Q8_0)
        DOTS(Q4_0)
        DOTS(MXFP4)
        DOTS(Q4_K)
        DOTS(Q5_K)
        DOTS(Q6_K)
#undef DOTS
    }
}

#endif
