/* copy_cuda.cuh - copies from the card's memory to shared memory that go on while a thread does. Each thread waits for its own; what
 * others copied is there after they have waited and met it. */
#ifndef WEFT_KERNELS_CUDA_COPY_CUDA_CUH
#define WEFT_KERNELS_CUDA_COPY_CUDA_CUH

#include "kernels/cuda/numbers_cuda.cuh"

#ifdef __CUDACC__
static __device__ inline uint32_t shared_at(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* Can copies come from there? */
static __device__ inline bool copies_from(const void *p)
{
    return __isGlobal(p);
}

/* 16 bytes to shared memory, or zeros; done when the group is. */
static __device__ inline void copy_piece(char *to, const char *from, bool there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_at(to)),
                 "l"(global_at(from)), "r"(there ? 16 : 0)
                 : "memory");
}

static __device__ inline void copies_group(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Until all groups but the last `left` are done. */
template <int left> static __device__ inline void copies_wait(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
}

/* A place in shared memory, which is told from others once, not by each load. */
typedef uint32_t shared_place;

static __device__ inline void copy_16(shared_place to, const char *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global_at(from))
                 : "memory");
}

static __device__ inline bytes16 shared_16(shared_place p)
{
    bytes16 x;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.w[0]), "=r"(x.w[1]), "=r"(x.w[2]), "=r"(x.w[3])
                 : "r"(p));
    return x;
}

static __device__ inline bytes8 shared_8(shared_place p)
{
    bytes8 x;
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(x.w[0]), "=r"(x.w[1]) : "r"(p));
    return x;
}

static __device__ inline uint32_t shared_4(shared_place p)
{
    uint32_t x;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(p));
    return x;
}

/* A place that is kept there. */
static __device__ inline shared_place shared_word(shared_place p)
{
    return shared_4(p);
}
#else
typedef uintptr_t shared_place;

static inline bool copies_from(const void *)
{
    return true;
}

static inline shared_place shared_at(const void *p)
{
    return (uintptr_t)p;
}

static inline void copy_16(shared_place to, const char *from)
{
    simt_copy((void *)to, from, 16, 16);
}

static inline bytes16 shared_16(shared_place p)
{
    return *(const bytes16 *)p;
}

static inline bytes8 shared_8(shared_place p)
{
    return *(const bytes8 *)p;
}

static inline uint32_t shared_4(shared_place p)
{
    return *(const uint32_t *)p;
}

static inline shared_place shared_word(shared_place p)
{
    return *(const shared_place *)p;
}

static inline void copy_piece(char *to, const char *from, bool there)
{
    simt_copy(to, from, there ? 16 : 0, 16);
}

static inline void copies_group(void)
{
    simt_copies_group();
}

template <int left> static inline void copies_wait(void)
{
    simt_copies_wait(left);
}
#endif

#endif
