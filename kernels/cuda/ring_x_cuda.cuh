/* ring_x_cuda.cuh - the ring's copy of x, written by the step that makes the row in place of the linear that reads it.
 *
 * In images made for a plan alone, whose blocks all have opened their ring. */
#ifndef WEFT_KERNELS_CUDA_RING_X_CUDA_CUH
#define WEFT_KERNELS_CUDA_RING_X_CUDA_CUH

#include "kernels/cuda/ring_cuda.cuh"

/* Is there room for a copy of `bytes` bytes? Nothing is read from there until the step is done. */
static __device__ inline bool ring_x_fits(int64_t bytes)
{
#ifdef WEFT_SHAPES
    const ring_block *r = block_ring();
    return r->memory && bytes <= r->x_bytes;
#else
    (void)bytes;
    return false;
#endif
}

/* Where it goes. */
static __device__ inline shared_place ring_x(void)
{
    return shared_at(block_ring()->x);
}

/* By one thread, before the step is done: what is copied there; NULL: nothing that linears know. */
static __device__ inline void ring_x_made(const void *row)
{
#ifdef WEFT_SHAPES
    block_ring()->x_of = row;
#else
    (void)row;
#endif
}

/* ---- stores to shared memory, which are not told from others each time ---- */

#ifdef __CUDACC__
static __device__ inline void shared_put(shared_place at, const bytes16 &x)
{
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(x.w[0]), "r"(x.w[1]),
                 "r"(x.w[2]), "r"(x.w[3])
                 : "memory");
}

static __device__ inline void shared_put(shared_place at, const bytes8 &x)
{
    asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(at), "r"(x.w[0]), "r"(x.w[1]) : "memory");
}

static __device__ inline void shared_put(shared_place at, float x)
{
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(at), "f"(x) : "memory");
}

static __device__ inline void shared_put(shared_place at, uint32_t x)
{
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(x) : "memory");
}

static __device__ inline void shared_put(shared_place at, int16_t x)
{
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(at), "h"(x) : "memory");
}
#else
template <class T> static inline void shared_put(shared_place at, const T &x)
{
    *(T *)at = x;
}
#endif

/* Four floats of a row of n, which are a half of eight (linear_stream_cuda.cuh). */
static __device__ inline void ring_x_put(int at, int n, const floats4 &x)
{
    *(floats4 *)(block_ring()->x + (at % 8 ? n / 8 * 16 : 0) + at / 8 * 16) = x;
}

#endif
