/* phase.cu - runs phases of a plan (phase.h): what exec_run.c does with threads, with blocks.
 *
 * All of kernels/cuda is this one file and what it includes. */
#include "kernels/cuda/phase.h"

#include "kernels/cuda/attend_cuda.cuh"
#include "kernels/cuda/experts_cuda.cuh"
#include "kernels/cuda/linear_cuda.cuh"
#include "kernels/cuda/lora_cuda.cuh"
#include "kernels/cuda/map_cuda.cuh"
#include "kernels/cuda/move_cuda.cuh"
#include "kernels/cuda/norm_cuda.cuh"
#include "kernels/cuda/rope_cuda.cuh"
#include "kernels/cuda/route_cuda.cuh"

enum { TILE_ELEM_BYTES = 4 };

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

/* A block of a launch. */
struct member {
    const cuda_run *r;
    kthread t;
    char *block; /* its memory */
    uint64_t *ns;
    kargs *own; /* of the step at hand, for all threads of the block */
};

/* ---- what only a card has ---- */

#ifdef __CUDACC__
static __device__ uint64_t clock_now(void)
{
    uint64_t ns;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
    return ns;
}

static __device__ void gate_add(uint32_t *gate)
{
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(gate) : "memory");
}

static __device__ uint32_t gate_read(const uint32_t *gate)
{
    uint32_t n;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(n) : "l"(gate) : "memory");
    return n;
}

/* A word that the host may write at any time. */
static __device__ uint32_t host_word(const uint32_t *p)
{
    uint32_t x;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(x) : "l"(p) : "memory");
    return x;
}
#else
static uint64_t clock_now(void)
{
    return simt_ns();
}

static void gate_add(uint32_t *gate)
{
    atomicAdd(gate, 1u);
}

static uint32_t gate_read(const uint32_t *gate)
{
    __nanosleep(0); /* others run */
    return *gate;
}

static uint32_t host_word(const uint32_t *p)
{
    return *p;
}
#endif

/* ---- a range of units ---- */

/* Put the addresses of these operands into `own`, which are at their offsets from base. By one thread. */
static __device__ void place(const cuda_step *s, kargs *own, uint32_t operands, uintptr_t base)
{
    for (int i = 0; i < K_IN_MAX; i++)
        if (operands >> i & 1)
            own->in[i] = (const void *)(base + (uintptr_t)s->k.in[i]);
    for (int i = 0; i < K_OUT_MAX; i++)
        if (operands >> (K_IN_MAX + i) & 1)
            own->out[i] = (void *)(base + (uintptr_t)s->k.out[i]);
}

/* The step's arguments, those that depend on the block filled in, by all threads: the column with which units from `begin` on
 * start is the first of a tile's in memory. */
static __device__ void own_fill(const member &m, const cuda_step *s, int64_t begin)
{
    enum { WORDS = sizeof(kargs) / sizeof(uint32_t) };
    const uint32_t *from = (const uint32_t *)&s->k;
    uint32_t *to = (uint32_t *)m.own;
    for (int i = (int)threadIdx.x; i < WORDS; i += (int)blockDim.x)
        to[i] = from[i];
    __syncthreads();
    if (threadIdx.x == 0) {
        place(s, m.own, s->local, (uintptr_t)m.block);
        place(s, m.own, s->tile,
              (uintptr_t)m.block - (uintptr_t)(begin * s->k.tile * TILE_ELEM_BYTES));
    }
    __syncthreads();
}

static __device__ ONE_COPY void range_run(const member &m, const cuda_item &it, int64_t begin,
                                          int64_t end)
{
    for (int32_t i = 0; i < it.n_step; i++) {
        const cuda_step *s = &m.r->step[it.first + i];
        uint64_t start = m.ns ? clock_now() : 0;
        own_fill(m, s, begin);
        row_run(s->row, m.own, &m.t, begin, end);
        __syncthreads();
        if (m.ns && threadIdx.x == 0)
            m.ns[it.first + i] += clock_now() - start;
    }
}

/* ---- phases ---- */

/* The units of all items that are shared out stand in one line; block b of g has [b * all / g, (b + 1) * all / g). */
static __device__ void phase_run(const member &m, const cuda_phase &p)
{
    const cuda_item *item = m.r->item + p.first;
    int64_t all = 0, at = 0; /* `at`: where an item begins in the line */
    for (int32_t i = 0; i < p.n_item; i++) {
        if (item[i].every && item[i].units > 0)
            range_run(m, item[i], 0, item[i].units);
        all += item[i].every ? 0 : item[i].units;
    }
    int64_t first = m.t.index * all / m.t.count, last = (m.t.index + 1) * all / m.t.count;
    for (int32_t i = 0; i < p.n_item && at < last; i++) {
        if (item[i].every)
            continue;
        int64_t begin = first > at ? first - at : 0;
        int64_t end = least(last - at, item[i].units);
        int64_t most = item[i].grain > 0 ? item[i].grain : end - begin;
        for (; begin < end; begin += most)
            range_run(m, item[i], begin, least(begin + most, end));
        at += item[i].units;
    }
}

/* ---- between phases ----
 *
 * `gate` counts blocks that came to it; its highest bit says that one of them has left out a phase. All see that when they
 * have passed the gate behind that phase, and leave out what follows: no kernel meets values that were not made. */

static const uint32_t GATE_STOP = 1u << 31;
enum { CANCEL_EVERY = 8 }; /* phases */

/* A word of one thread for all of the block. */
static __device__ uint32_t block_word(uint32_t of_first)
{
    block_words *words = block_memory();
    __syncthreads();
    if (threadIdx.x == 0)
        words->word[0] = (int32_t)of_first;
    __syncthreads();
    return (uint32_t)words->word[0];
}

/* A word of the host takes longer to come than a barrier: where blocks wait for each other, one of them looks now and then. */
static __device__ bool asks_host(const cuda_run &r, int32_t phase)
{
    return r.end - r.first == 1 || (blockIdx.x == 0 && (phase - r.first) % CANCEL_EVERY == 0);
}

static __device__ bool is_cancelled(const cuda_run &r)
{
    return r.cancel && block_word(threadIdx.x == 0 ? host_word(r.cancel) : 0) != 0;
}

/* Wait until all blocks have come here for the n-th time; what they wrote before can be read after. False: stop. */
static __device__ bool gate_pass(const cuda_run &r, uint32_t n, bool stop)
{
    uint32_t seen = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        if (stop)
            atomicOr(r.gate, GATE_STOP);
        gate_add(r.gate);
        do
            seen = gate_read(r.gate);
        while ((seen & ~GATE_STOP) < n * gridDim.x);
    }
    return (block_word(seen) & GATE_STOP) == 0;
}

extern "C" __global__ void __launch_bounds__(CUDA_BLOCK, 1)
    weft_phases(const __grid_constant__ cuda_run r)
{
#ifdef __CUDACC__
    extern __shared__ char dynamic[];
#else
    char *dynamic = simt_dynamic();
#endif
    __shared__ kargs own;
    char *block = r.blocks ? r.blocks + blockIdx.x * r.block_bytes : dynamic;
    member m = {&r,
                {(int)blockIdx.x, (int)gridDim.x, block + r.local_bytes,
                 (size_t)(r.block_bytes - r.local_bytes)},
                block,
                r.ns ? r.ns + (int64_t)blockIdx.x * r.n_step : NULL,
                &own};
    for (int32_t i = r.first; i < r.end; i++) {
        bool stop = asks_host(r, i) && is_cancelled(r);
        if (!stop)
            phase_run(m, r.phase[i]);
        if (i + 1 < r.end && !gate_pass(r, (uint32_t)(i + 1 - r.first), stop))
            break;
    }
}
