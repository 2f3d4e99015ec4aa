/* experts_mma_cuda.cuh - each row through the matrices of its chosen experts, for many rows: both as bf16, sums in f32.
 *
 * Where a phase has nothing else they are multiplied by square, by matrix instructions (expert_squares_cuda.cuh). Here is what does
 * it anywhere else, number by number: on cards whose blocks have not the shared memory for squares. It is slow, and right. */
#ifndef WEFT_KERNELS_CUDA_EXPERTS_MMA_CUDA_CUH
#define WEFT_KERNELS_CUDA_EXPERTS_MMA_CUDA_CUH

#include "kernels/cuda/experts_cuda.cuh"
#include "kernels/cuda/linear_mma_cuda.cuh"

/* A number of the result: column col of what row of x gives. */
static __device__ float expert_number(const kargs *k, const mma_job &j, int64_t row, int64_t col)
{
    float sum = 0;
    for (int64_t c = 0; c < j.n; c += EIGHT) {
        const eight_floats w =
            eight_of(k->type[1], j.w + col * j.w_pitch, (uint32_t)c, (uint32_t)j.n);
        for (int e = 0; e < EIGHT && c + e < j.n; e++)
            sum = fmaf(j.walks > 1 ? w.w[e] : from_bf16(to_bf16(w.w[e])), x_number(j, row, c + e),
                       sum);
    }
    return sum;
}

/* bf16 of each weight: F16 weights are two, which have all of their bits, but where x is rounded to one. */
static __device__ inline int expert_walks(dtype type, int parts)
{
    return type == DT_F16 && parts > 1 ? 2 : 1;
}

/* parts: of each number of x. Units are those of squares, of which each has as much as the others. */
static __device__ ONE_COPY void experts_by_number(const kargs *k, int64_t begin, int64_t end,
                                                  int parts)
{
    const int32_t *ids = (const int32_t *)k->in[2]; /* [rows, K] */
    const int64_t out = k->size.experts.out, units = cuda_expert_units(k);
    const int64_t all = k->size.experts.rows * k->size.experts.slots * out;
    mma_job j = {};
    j.x = (const char *)k->in[0];
    j.x_pitch = k->pitch[0];
    j.w_pitch = k->pitch[1];
    j.n = k->size.experts.in;
    j.parts = parts;
    j.walks = expert_walks(k->type[1], parts);
    for (int64_t i = all * begin / units + threadIdx.x; i < all * end / units;
         i += block_threads()) {
        const int64_t choice = i / out, col = i % out;
        const int32_t e = ids[choice];
        j.w = ((const uint8_t *const *)k->in[1])[e];
        const float sum = expert_number(k, j, choice / expert_share(k), col);
        row_out(k, 0, choice)[col] = k->in[3] ? sum + row_in(k, 3, e)[col] : sum;
    }
}

#define EXPERTS_MMA(type)                                                                          \
    static __device__ void k_experts_##type##_mma_cuda(const kargs *k, const kthread *,            \
                                                       int64_t begin, int64_t end)                 \
    {                                                                                              \
        experts_by_number(k, begin, end, 1);                                                       \
    }
WEIGHT_TYPES_MMA(EXPERTS_MMA)
EXPERTS_MMA(F16)
#undef EXPERTS_MMA

#define EXPERTS_PARTS(symbol, parts)                                                               \
    static __device__ void k_experts_##symbol##_cuda(const kargs *k, const kthread *,              \
                                                     int64_t begin, int64_t end)                   \
    {                                                                                              \
        experts_by_number(k, begin, end, parts);                                                   \
    }
EXPERTS_PARTS(BF16_exact, 3)
EXPERTS_PARTS(BF16_near, 2)
EXPERTS_PARTS(F16_exact, 3)
EXPERTS_PARTS(F16_near, 2)
#undef EXPERTS_PARTS

#endif
