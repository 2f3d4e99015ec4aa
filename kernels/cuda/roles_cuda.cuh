/* roles_cuda.cuh - warps of one block with different parts to play: some fill shared memory, the others multiply what is there. */
#ifndef WEFT_KERNELS_CUDA_ROLES_CUDA_CUH
#define WEFT_KERNELS_CUDA_ROLES_CUDA_CUH

#include "kernels/cuda/barrier_cuda.cuh"

/* Of a block of 384 threads: four warps fill, eight multiply. Who takes more than the others gave waits for ever. */
enum { ROLES_REGISTERS = 3 * (65536 / 384 / 8 * 8) };
#define REGISTERS_FIT(fills, multiplies)                                                           \
    static_assert((fills) + 2 * (multiplies) <= ROLES_REGISTERS, "more than a block has")

/* Registers of a thread, from those who fill to those who multiply; by four warps together. */
#if defined(__CUDACC__) && defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define REGISTERS_GIVE(n) asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(n))
#define REGISTERS_TAKE(n) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(n))
#else
#define REGISTERS_GIVE(n)
#define REGISTERS_TAKE(n)
#endif

/* A warp has done with what the barrier is for: WARP_ARRIVALS. */
static __device__ inline void warp_done(uint64_t *empty)
{
    __syncwarp();
    barrier_arrive_warp(empty);
}

#endif
