/* phase.cu - runs phases of a plan (phase.h): what exec_run.c does with threads, with blocks.
 *
 * All of kernels/cuda is this one file and what it includes. */
#include "kernels/cuda/phase.h"

#include "kernels/cuda/attend_cuda.cuh"
#include "kernels/cuda/experts_cuda.cuh"
#include "kernels/cuda/linear_cuda.cuh"
#include "kernels/cuda/linear_mma_cuda.cuh"
#include "kernels/cuda/lora_cuda.cuh"
#include "kernels/cuda/map_cuda.cuh"
#include "kernels/cuda/move_cuda.cuh"
#include "kernels/cuda/norm_cuda.cuh"
#include "kernels/cuda/quantize_cuda.cuh"
#include "kernels/cuda/rope_cuda.cuh"
#include "kernels/cuda/route_cuda.cuh"

enum { TILE_ELEM_BYTES = 4 };

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

/* ---- tables ---- */

/* Items and steps by their numbers in the bucket, wherever those of the phase at hand are. */
struct tables {
    const cuda_item *item;
    const cuda_step *step;
};

static __device__ bool is_packed(const cuda_phase &p)
{
    return p.n_item <= PACK_ITEMS && p.n_step <= PACK_STEPS;
}

static __device__ void words_copy(void *to, const void *from, int bytes)
{
    for (int i = (int)threadIdx.x; i < bytes / 8; i += (int)blockDim.x)
        ((uint64_t *)to)[i] = ((const uint64_t *)from)[i];
}

static __device__ void pack_copy(const cuda_run &r, int32_t phase, cuda_pack *packs)
{
    if (phase >= r.end)
        return;
    cuda_pack *to = &packs[phase % PACKS];
    const cuda_phase p = r.phase[phase];
    if (threadIdx.x == 0)
        to->at = p;
    if (is_packed(p)) {
        words_copy(to->item, r.item + p.first, p.n_item * (int)sizeof(cuda_item));
        words_copy(to->step, r.step + p.step, p.n_step * (int)sizeof(cuda_step));
    }
}

static __device__ tables tables_of(const cuda_run &r, const cuda_pack *pack)
{
    const cuda_phase &p = pack->at;
    if (!is_packed(p))
        return tables{r.item, r.step};
    return tables{pack->item - p.first, pack->step - p.step};
}

/* ---- a step ---- */

/* The addresses of an operand: the card's, or that of a block's own value; of a tile, where its first column would be if those
 * from unit `begin` on are the first in memory. */
static __device__ inline uintptr_t operand_at(const member &m, const cuda_step *s, int bit,
                                              uintptr_t at, int64_t tile_begin)
{
    if (s->tile >> bit & 1)
        at -= (uintptr_t)(tile_begin * TILE_ELEM_BYTES);
    return (s->local | s->tile) >> bit & 1 ? at + (uintptr_t)m.block : at;
}

#ifdef WEFT_SHAPES
#include WEFT_SHAPES /* shape_run, for the steps of one bucket alone (runtime/exec/cuda_text.c) */
#else
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

/* The step's arguments for all threads of the block, by one of them. */
static __device__ void own_addresses(const member &m, const cuda_step *s, int64_t begin)
{
    const int64_t first = begin * m.own->tile;
    for (int i = 0; i < K_IN_MAX; i++)
        m.own->in[i] = (const void *)operand_at(m, s, i, (uintptr_t)s->in[i], first);
    for (int i = 0; i < K_OUT_MAX; i++)
        m.own->out[i] = (void *)operand_at(m, s, K_IN_MAX + i, (uintptr_t)s->out[i], first);
    m.own->n[0] = s->rows;
    m.own->code = s->code;
    m.own->cell = s->cell;
    m.own->batch = m.r->batch;
    m.own->lora = m.r->lora;
}

static __device__ void shape_run(const member &m, const cuda_step *s, int64_t begin, int64_t end)
{
    const cuda_shape *shape = &m.r->shape[s->shape];
    words_copy(m.own, &shape->k, (int)sizeof(kargs));
    __syncthreads();
    if (threadIdx.x == 0)
        own_addresses(m, s, begin);
    __syncthreads();
    row_run(shape->row, m.own, &m.t, begin, end);
}
#endif

/* ---- a range of units ---- */

static __device__ void range_run(const member &m, const tables &t, const cuda_item &it,
                                 int64_t begin, int64_t end)
{
    for (int32_t i = 0; i < it.n_step; i++) {
        uint64_t start = m.ns ? clock_now() : 0;
        shape_run(m, &t.step[it.first + i], begin, end);
        __syncthreads();
        if (m.ns && threadIdx.x == 0)
            m.ns[it.first + i] += clock_now() - start;
    }
}

/* ---- phases ---- */

/* The units of all items that are shared out stand in one line; block b of g has [b * all / g, (b + 1) * all / g). One loop
 * over all ranges of the block, so that there is one copy of what runs them. */
static __device__ void phase_run(const member &m, const tables &t, const cuda_phase &p)
{
    const cuda_item *item = t.item + p.first;
    int64_t all = 0, at = 0; /* `at`: where an item begins in the line */
    for (int32_t i = 0; i < p.n_item; i++)
        all += item[i].every ? 0 : item[i].units;
    const int64_t first = m.t.index * all / m.t.count, last = (m.t.index + 1) * all / m.t.count;
    for (int32_t i = 0; i < p.n_item; i++) {
        const bool every = item[i].every != 0;
        int64_t begin = every || first < at ? 0 : first - at;
        const int64_t end = every ? item[i].units : least(last - at, item[i].units);
        const int64_t most = every || item[i].grain == 0 ? end - begin : item[i].grain;
        for (; begin < end; begin += most)
            range_run(m, t, item[i], begin, least(begin + most, end));
        at += every ? 0 : item[i].units;
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

/* Wait until all blocks have come here for the n-th time; what they wrote before can be read after. False: stop. Meanwhile the
 * tables of the phase after the next one come. */
static __device__ bool gate_pass(const cuda_run &r, uint32_t n, bool stop, cuda_pack *packs)
{
    uint32_t seen = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        if (stop)
            atomicOr(r.gate, GATE_STOP);
        gate_add(r.gate);
    }
    pack_copy(r, r.first + (int32_t)n + 1, packs);
    if (threadIdx.x == 0) {
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
    extern __shared__ __align__(1024) char dynamic[];
#else
    char *dynamic = simt_dynamic();
#endif
    __shared__ kargs own;
    cuda_pack *packs = (cuda_pack *)dynamic;
    char *block = r.blocks ? r.blocks + blockIdx.x * r.block_bytes : dynamic + PACKS_BYTES;
    member m = {&r,
                {(int)blockIdx.x, (int)gridDim.x, block + r.local_bytes,
                 (size_t)(r.block_bytes - r.local_bytes)},
                block,
                r.ns ? r.ns + (int64_t)blockIdx.x * r.n_step : NULL,
                &own};
    pack_copy(r, r.first, packs);
    pack_copy(r, r.first + 1, packs);
    __syncthreads();
    for (int32_t i = r.first; i < r.end; i++) {
        const cuda_pack *pack = &packs[i % PACKS];
        bool stop = asks_host(r, i) && is_cancelled(r);
        if (!stop)
            phase_run(m, tables_of(r, pack), pack->at);
        if (i + 1 < r.end && !gate_pass(r, (uint32_t)(i + 1 - r.first), stop, packs))
            break;
    }
}
