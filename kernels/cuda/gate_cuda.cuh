/* gate_cuda.cuh - gates between the phases of a launch, at which blocks wait for each other.
 *
 * A block comes to a gate when it has done its part of a phase, and meets the others there before it reads anything that these
 * made. Between the two lies all that needs nothing of theirs: a warp finds the step that it begins the next phase with, and a step
 * that says so (SHAPES_LATE) is called before its gate is met, finds its operands, asks for weights, and calls gate_meet_late.
 *
 * A gate counts blocks that came to it; its highest bit says that one of them has left out a phase. All see that when they
 * have passed the gate behind that phase, and leave out what follows: no kernel meets values that were not made. */
#ifndef WEFT_KERNELS_CUDA_GATE_CUDA_CUH
#define WEFT_KERNELS_CUDA_GATE_CUDA_CUH

#include "kernels/cuda/lists_cuda.cuh"
#include "kernels/cuda/ring_x_cuda.cuh"

#ifdef __CUDACC__
static __device__ inline void gate_add(uint32_t *gate)
{
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(gate) : "memory");
}

static __device__ inline uint32_t gate_read(const uint32_t *gate)
{
    uint32_t n;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(n) : "l"(gate) : "memory");
    return n;
}

/* A word that the host may write at any time. */
static __device__ inline uint32_t host_word(const uint32_t *p)
{
    uint32_t x;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(x) : "l"(p) : "memory");
    return x;
}
#else
static inline void gate_add(uint32_t *gate)
{
    atomicAdd(gate, 1u);
}

static inline uint32_t gate_read(const uint32_t *gate)
{
    __nanosleep(0); /* others run */
    return *gate;
}

static inline uint32_t host_word(const uint32_t *p)
{
    return simt_host_word(p);
}
#endif

/* Are there warps that copy? */
static __device__ inline bool has_copier(void);

/* ---- what a block has at hand ---- */

/* Of blocks that run several phases; in shared memory, without ways through addresses to what is asked for at every gate. */
struct ahead {
    pack_ring packs;
    cuda_works *work; /* [PACKS], and */
    ring_block *ring;
    uint64_t
        listed[PACKS]; /* a barrier for each: passed when a warp that copies has listed a phase */
    uint32_t *gate;    /* of the launch, */
    const uint32_t *cancel; /* and what stops it (cuda_run) */
    uint32_t seen
        [2]; /* the count of a gate as it was passed, by number; of two gates, as warps are not at the same one */
    int32_t skip;    /* not 0: nothing more is to be computed, as the first thread knows */
    int32_t n_phase; /* of the launch */
    cuda_work none;  /* that ends a list */
};

static __device__ inline ahead &block_ahead(void)
{
    __shared__ ahead a;
    return a;
}

/* Where a warp is: in which phase, how far in the lists the next of its works is, and which gate it has not met yet. What a thread has in
 * registers while a step runs is lost to that, or kept in the card's memory, which may be far: so this is in shared memory, at an
 * address that is computed each time. */
enum progress_word { PROGRESS_PHASE, PROGRESS_NEXT, PROGRESS_GATE, PROGRESS_WORDS };

/* Of blocks of weft_phases alone, which on a card are not the largest. */
#ifdef __CUDACC__
enum { PROGRESS_WARPS = CUDA_WIDE_BLOCK / WARP };
#else
enum { PROGRESS_WARPS = WARPS_MAX };
#endif

/* A word of the warp's progress: its lanes have read it before they write it, all the same, and meet before they read what they
 * wrote. */
static __device__ inline shared_place progress_at(progress_word word)
{
    __shared__ shared_place of[PROGRESS_WARPS * PROGRESS_WORDS];
    uint32_t thread = threadIdx.x;
#ifdef __CUDACC__
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread)); /* here, and not once for all times */
#endif
    return shared_at(of) + (thread / WARP * PROGRESS_WORDS + word) * (uint32_t)sizeof *of;
}

static __device__ inline void progress_write(progress_word word, shared_place x)
{
    shared_put(progress_at(word), x);
}

static __device__ inline shared_place progress_read(progress_word word)
{
    const shared_place x = shared_word(progress_at(word));
    __syncwarp();
    return x;
}

/* ---- gates ---- */

static const uint32_t GATE_STOP = 1u << 31; /* one has left out a phase; */
static const uint32_t GATE_SKIP = 1u << 30; /* the block is to, which others do not know yet */
enum { CANCEL_EVERY = 16 };                 /* phases */

/* A word of the host takes longer to come than a barrier: where blocks wait for each other, one of them looks now and then. */
static __device__ inline bool asks_host(const ahead &a, int32_t n)
{
    return a.cancel && blockIdx.x == 0 && n % CANCEL_EVERY == 0;
}

/* The block comes to gate n; by one thread, after a barrier that all others have met: what they wrote can be read behind the gate. */
static __device__ inline void gate_come(ahead &a, int32_t n)
{
    if (a.skip)
        atomicOr(a.gate, GATE_STOP);
    gate_add(a.gate);
    ring_phase(a.ring, n);
}

/* All others have come too; by the same thread. */
static __device__ inline void gate_wait(ahead &a, int32_t n)
{
    const uint32_t *const gate = a.gate;
    const uint32_t all = (uint32_t)n * gridDim.x;
    const uint32_t word = asks_host(a, n) ? host_word(a.cancel) : 0;
    uint32_t seen;
    do
        seen = gate_read(gate);
    while (!(seen & GATE_STOP) && seen < all);
    a.seen[n & 1] = word ? seen | GATE_SKIP : seen;
    word_put(&a.ring->open, n);
    if (word)
        a.skip = 1;
}

/* The block meets all others at gate n. False: nothing more of the phase is to be done. */
static __device__ APART bool gate_pass(int32_t n)
{
    ahead &a = block_ahead();
    if (threadIdx.x == 0)
        gate_wait(a, n);
    block_sync();
    progress_write(PROGRESS_GATE, 0);
    if (has_copier())
        barrier_arrive_block(&a.packs.used[(n - 1) % PACKS]);
    if (a.seen[n & 1] < GATE_SKIP)
        return true;
    progress_write(PROGRESS_NEXT, shared_at(&a.none));
    return false;
}

/* All that was made in the phases before can be read from here on; if not for the first time in a phase, nothing is done. By all
 * threads that compute, each time. */
static __device__ inline bool gate_meet(void)
{
    const int32_t n = (int32_t)progress_read(PROGRESS_GATE);
    return n == 0 || gate_pass(n);
}

/* The same by a step that may be late. In the image for any plan none is. */
static __device__ inline bool gate_meet_late(void)
{
#ifdef WEFT_SHAPES
    return gate_meet();
#else
    return true;
#endif
}

#endif
