/* barrier_cuda.cuh - barriers in shared memory, and copies that they count.
 *
 * A barrier is passed when as many have arrived as it was made for; then it is one for the next time. It is waited for by the
 * parity of that time. */
#ifndef WEFT_KERNELS_CUDA_BARRIER_CUDA_CUH
#define WEFT_KERNELS_CUDA_BARRIER_CUDA_CUH

#include "kernels/cuda/block_cuda.cuh"
#include "kernels/cuda/copy_cuda.cuh"

#ifdef __CUDACC__
static __device__ inline void barrier_make(uint64_t *b, int n)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_at(b)), "r"(n) : "memory");
}

static __device__ inline void barrier_arrive(shared_place b)
{
    asm volatile("{\n.reg .b64 t;\nmbarrier.arrive.shared.b64 t, [%0];\n}" ::"r"(b) : "memory");
}

static __device__ inline void barrier_arrive(uint64_t *b)
{
    barrier_arrive(shared_at(b));
}

#if __CUDA_ARCH__ >= 900
/* The same; and so many bytes will come, too. */
static __device__ inline void barrier_expect(shared_place b, int bytes)
{
    asm volatile("{\n.reg .b64 t;\nmbarrier.arrive.expect_tx.shared.b64 t, [%0], %1;\n}" ::"r"(b),
                 "r"(bytes)
                 : "memory");
}
#endif

/* When this thread's copies so far are done. */
static __device__ inline void barrier_arrive_copied(shared_place b)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(b) : "memory");
}

#define BARRIER_ASK(word)                                                                          \
    asm volatile("{\n.reg .pred p;\nmbarrier." word ".parity.shared.b64 p, [%1], %2;\n"            \
                 "selp.u32 %0, 1, 0, p;\n}"                                                        \
                 : "=r"(passed)                                                                    \
                 : "r"(b), "r"(parity)                                                             \
                 : "memory")

static __device__ inline bool barrier_passed(shared_place b, uint32_t parity)
{
    uint32_t passed;
    BARRIER_ASK("test_wait");
    return passed != 0;
}

static __device__ inline bool barrier_passed(uint64_t *b, uint32_t parity)
{
    return barrier_passed(shared_at(b), parity);
}

static __device__ inline void barrier_wait(shared_place b, uint32_t parity)
{
    uint32_t passed;
    do {
#if __CUDA_ARCH__ >= 900
        BARRIER_ASK("try_wait");
#else
        BARRIER_ASK("test_wait");
#endif
    } while (!passed);
}

static __device__ inline void barrier_wait(uint64_t *b, uint32_t parity)
{
    barrier_wait(shared_at(b), parity);
}
#else
/* Whether nobody has seen yet that it was passed, how many it is for, how many are missing, and the parity of the time that it is
 * waiting in. Who arrives when nobody has seen the time before fails: such a barrier is for nobody. */
static const uint64_t BARRIER_UNSEEN = 1ull << 63;

static inline void barrier_make(uint64_t *b, int n)
{
    *b = (uint64_t)n << 32 | (uint64_t)n << 1;
}

static inline void barrier_arrive(uint64_t *b)
{
    const uint64_t n = *b >> 32 & 0x7fffffff, missing = (*b >> 1 & 0x7fffffff) - 1, parity = *b & 1;
    if (*b & BARRIER_UNSEEN)
        fibre_fail(SIMT_AT("barrier_arrive"), "comes again before anybody has waited");
    *b = missing ? n << 32 | missing << 1 | parity
                 : BARRIER_UNSEEN | n << 32 | n << 1 | (parity ^ 1);
}

static inline void barrier_arrive_copied(shared_place b)
{
    simt_copies_done();
    barrier_arrive((uint64_t *)b);
}

static inline bool barrier_passed(uint64_t *b, uint32_t parity)
{
    __nanosleep(0); /* others run */
    if ((*b & 1) == parity)
        return false;
    *b &= ~BARRIER_UNSEEN;
    return true;
}

static inline void barrier_wait(uint64_t *b, uint32_t parity)
{
    while (!barrier_passed(b, parity))
        ;
}

static inline bool barrier_passed(shared_place b, uint32_t parity)
{
    return barrier_passed((uint64_t *)b, parity);
}

static inline void barrier_arrive(shared_place b)
{
    barrier_arrive((uint64_t *)b);
}

static inline void barrier_wait(shared_place b, uint32_t parity)
{
    barrier_wait((uint64_t *)b, parity);
}
#endif

/* ---- one arrival for many ----
 *
 * For a warp, or for all threads of a block that compute, when they have met: what each of them did comes before it. Compiled
 * with WEFT_CHECK all of them arrive, at barriers that are made for so many, as compute-sanitizer's racecheck does not know
 * what one of them has done for the others (README.md, Sanitizers). */
#ifdef WEFT_CHECK
enum { CHECKS = 1 };
#else
enum { CHECKS = 0 };
#endif
enum { WARP_ARRIVALS = CHECKS ? WARP : 1 };

static __device__ inline int block_arrivals(void)
{
    return CHECKS ? block_threads() : 1;
}

/* B: a pointer, or a shared_place. */
template <class B> static __device__ inline void barrier_arrive_warp(B b)
{
    if (CHECKS || lane_index() == 0)
        barrier_arrive(b);
}

static __device__ inline void barrier_arrive_block(uint64_t *b)
{
    if (CHECKS || threadIdx.x == 0)
        barrier_arrive(b);
}

/* A word in shared memory that may change while others look at it, which nothing waits for. */
static __device__ inline void word_put(int32_t *word, int32_t x)
{
    if (CHECKS)
        atomicExch((uint32_t *)word, (uint32_t)x);
    else
        *(volatile int32_t *)word = x;
}

static __device__ inline int32_t word_now(int32_t *word)
{
    return CHECKS ? (int32_t)atomicOr((uint32_t *)word, 0u) : *(volatile int32_t *)word;
}

/* Copies from here on come after what was stored before, barriers too. */
static __device__ inline void copies_after_stores(void)
{
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 900
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

/* Nothing below comes before x is there. */
static __device__ inline void used_before(float x)
{
#ifdef __CUDACC__
    asm volatile("" ::"f"(x) : "memory");
#else
    (void)x;
#endif
}

/* ---- copies that a barrier counts ----
 *
 * To shared memory, by some lanes of a warp, all of which call. Cards from sm_90 on copy all bytes at one lane's word, which also
 * says how many the barrier has to wait for; on others, and with WEFT_CHECK, each lane copies 16 bytes at a time. The barrier is
 * made for copy_arrivals. */
struct copiers {
    int index, count;
};

#if defined(__CUDACC__) && __CUDA_ARCH__ >= 900 && !defined(WEFT_CHECK)
static __device__ inline int copy_arrivals(int)
{
    return 1;
}

/* So many bytes will come. */
static __device__ inline void copy_expect(shared_place b, int bytes, copiers by)
{
    if (by.index == 0)
        barrier_expect(b, bytes);
}

/* Some of them, a multiple of 16. */
static __device__ inline void copy_bytes(shared_place b, shared_place to, const char *from,
                                         int bytes, copiers by)
{
    if (by.index == 0)
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], "
            "%2, [%3];" ::"r"(to),
            "l"(global_at(from)), "r"(bytes), "r"(b)
            : "memory");
}

/* The same of what is read once: in L2 it makes room before anything else does. */
static __device__ inline void copy_once(shared_place b, shared_place to, const char *from,
                                        int bytes, copiers by)
{
    uint64_t first_out;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(first_out));
    if (by.index == 0)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes."
                     "L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(to),
                     "l"(global_at(from)), "r"(bytes), "r"(b), "l"(first_out)
                     : "memory");
}

/* All of them are on their way. */
static __device__ inline void copy_end(shared_place)
{
}
#else
static __device__ inline int copy_arrivals(int lanes)
{
    return lanes;
}

static __device__ inline void copy_expect(shared_place, int, copiers)
{
}

static __device__ inline void copy_bytes(shared_place, shared_place to, const char *from, int bytes,
                                         copiers by)
{
    for (int i = by.index * 16; i < bytes; i += by.count * 16)
        copy_16(to + i, from + i);
}

static __device__ inline void copy_once(shared_place b, shared_place to, const char *from,
                                        int bytes, copiers by)
{
    copy_bytes(b, to, from, bytes, by);
}

static __device__ inline void copy_end(shared_place b)
{
    barrier_arrive_copied(b);
}
#endif

#endif
