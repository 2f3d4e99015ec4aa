/* launch_cuda.cuh - launches that overlap: a kernel may begin while the one before it ends.
 *
 * Whoever is launched so (CU_LAUNCH_DEPENDENT) waits for all before it by itself; until then it may read what no kernel writes:
 * weights, and tables. Each kernel waits, whatever it has to do: the next one knows of those before only by it. Of weft_phases the warps
 * that compute wait; those that copy read nothing else. */
#ifndef WEFT_KERNELS_CUDA_LAUNCH_CUDA_CUH
#define WEFT_KERNELS_CUDA_LAUNCH_CUDA_CUH

#include "kernels/cuda/block_cuda.cuh"

#if defined(__CUDACC__) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
/* The next kernel may begin where there is room. */
static __device__ inline void launch_next(void)
{
    asm volatile("griddepcontrol.launch_dependents;");
}

/* What kernels before have written can be read. */
static __device__ inline void launch_wait(void)
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
}
#else
static __device__ inline void launch_next(void)
{
}

static __device__ inline void launch_wait(void)
{
}
#endif

#endif
