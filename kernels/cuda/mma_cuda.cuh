/* mma_cuda.cuh - the matrix instructions that a warp issues together (sm_80): 16 rows by 8 columns, 16 deep, f16 or bf16 to f32. Elsewhere tests/cuda
 * has stand-ins, lane for lane. */
#ifndef WEFT_KERNELS_CUDA_MMA_CUDA_CUH
#define WEFT_KERNELS_CUDA_MMA_CUDA_CUH

#include "kernels/cuda/block_cuda.cuh"
#include "kernels/cuda/copy_cuda.cuh"

#ifdef __CUDACC__
static __device__ inline bool is_shared(const void *p)
{
    return __isShared(p);
}

/* Four matrices of 8 by 8 numbers of 16 bits, the lines of which lanes 0-7, 8-15, .. point to. */
static __device__ inline void load_frags(uint32_t *r, const char *line)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_at(line))
                 : "memory");
}

/* The same, each matrix turned. */
static __device__ inline void load_frags_turned(uint32_t *r, const char *line)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_at(line))
                 : "memory");
}

static __device__ inline void multiply_bf16(float *sum, const uint32_t *a, const uint32_t *b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

static __device__ inline void multiply_f16(float *sum, const uint32_t *a, const uint32_t *b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Two numbers in a word, the first in its lower half. */
static __device__ inline uint32_t bf16_pair(float low, float high)
{
    uint32_t h;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(h) : "f"(high), "f"(low));
    return h;
}

static __device__ inline uint32_t f16_pair(float low, float high)
{
    uint32_t h;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(h) : "f"(high), "f"(low));
    return h;
}
#else
static inline bool is_shared(const void *)
{
    return true;
}

static inline void load_frags(uint32_t *r, const char *line)
{
    simt_ldmatrix(r, line, false);
}

static inline void load_frags_turned(uint32_t *r, const char *line)
{
    simt_ldmatrix(r, line, true);
}

static inline void multiply_bf16(float *sum, const uint32_t *a, const uint32_t *b)
{
    simt_mma(sum, a, b, from_bf16);
}

static inline void multiply_f16(float *sum, const uint32_t *a, const uint32_t *b)
{
    simt_mma(sum, a, b, from_f16);
}

static inline uint32_t bf16_pair(float low, float high)
{
    return (uint32_t)to_bf16(low) | (uint32_t)to_bf16(high) << 16;
}

static inline uint32_t f16_pair(float low, float high)
{
    return (uint32_t)to_f16(low) | (uint32_t)to_f16(high) << 16;
}
#endif

#endif
