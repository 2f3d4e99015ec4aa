/* phase.cu - runs phases of a plan (phase.h): what exec_run.c does with threads, with blocks.
 *
 * All of kernels/cuda is this one file and what it includes. */
#include "kernels/cuda/phase.h"

#include "kernels/cuda/attend_cuda.cuh"
#include "kernels/cuda/attend_few_cuda.cuh"
#include "kernels/cuda/attend_flash_cuda.cuh"
#include "kernels/cuda/experts_cuda.cuh"
#include "kernels/cuda/linear_cuda.cuh"
#include "kernels/cuda/linear_few_cuda.cuh"
#include "kernels/cuda/linear_mma_cuda.cuh"
#include "kernels/cuda/linear_stream_cuda.cuh"
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
    for (int i = (int)threadIdx.x; i < bytes / 8; i += block_threads())
        ((uint64_t *)to)[i] = ((const uint64_t *)from)[i];
}

/* A thread's part of a pack, on its way to shared memory while a phase runs. The block has at least 128 threads where it is a
 * card's; others copy at once. */
struct pack_part {
    enum { WORDS = 4, THREADS = (int)(sizeof(cuda_pack) / 8 + WORDS - 1) / WORDS };
    uint64_t w[WORDS];
};

static __device__ inline pack_part pack_load(const cuda_run &r, int32_t phase)
{
    pack_part p = {};
    if (phase >= r.end || block_threads() < pack_part::THREADS)
        return p;
    const uint64_t *from = (const uint64_t *)&r.pack[phase];
    UNROLL
    for (int i = 0; i < pack_part::WORDS; i++) {
        int at = i * block_threads() + (int)threadIdx.x;
        if (at < (int)(sizeof(cuda_pack) / 8))
            p.w[i] = from[at];
    }
    return p;
}

static __device__ inline void pack_store(const cuda_run &r, int32_t phase, const pack_part &p,
                                         cuda_pack *packs)
{
    if (phase >= r.end)
        return;
    cuda_pack *to = &packs[phase % PACKS];
    if (block_threads() < pack_part::THREADS)
        words_copy(to, &r.pack[phase], sizeof *to);
    UNROLL
    for (int i = 0; i < pack_part::WORDS && block_threads() >= pack_part::THREADS; i++) {
        int at = i * block_threads() + (int)threadIdx.x;
        if (at < (int)(sizeof(cuda_pack) / 8))
            ((uint64_t *)to)[at] = p.w[i];
    }
}

static __device__ tables tables_of(const cuda_run &r, const cuda_phase &p, const cuda_pack *pack)
{
    if (!pack || !is_packed(p))
        return tables{r.item, r.step};
    return tables{pack->item - p.first, pack->step - p.step};
}

/* ---- weights ahead ---- */

/* A block's share of a line. */
struct line_share {
    int64_t first, last;
};

static __device__ inline line_share share_of(const member &m, int64_t units)
{
    if (units < 1 << 20) { /* a division of 64 bits takes four times as long */
        const uint32_t n = (uint32_t)units, index = (uint32_t)m.t.index,
                       count = (uint32_t)m.t.count;
        return line_share{index * n / count, (index + 1) * n / count};
    }
    return line_share{m.t.index * units / m.t.count, (m.t.index + 1) * units / m.t.count};
}

/* The units of an item that a block has. */
static __device__ inline line_share share_in(const line_share &s, const cuda_item &it)
{
    int64_t begin = s.first > it.at ? s.first - it.at : 0;
    return line_share{begin, least(s.last - it.at, it.units)};
}

/* What a phase will multiply, by a warp: a lane for each step. Items that are computed in several goes are left out. */
static __device__ void segments_list(const member &m, const cuda_pack *pack, int32_t phase)
{
    ring_block *r = block_ring();
    const line_share all = share_of(m, pack->at.units);
    ring_segment to = {};
    if (is_packed(pack->at) && lane_index() < pack->at.n_step) {
        const cuda_step &s = pack->step[lane_index()];
        const cuda_item &it = pack->item[s.item - pack->at.first];
        const line_share u = share_in(all, it);
        const int64_t row = u.first * s.unit_rows, end = least(u.last * s.unit_rows, s.all_rows);
        if (s.cut.rows && !it.every && end > row && (it.grain == 0 || u.last - u.first <= it.grain))
            to = ring_segment{(const char *)s.in[1] + row * s.pitch, s.pitch, (int32_t)(end - row),
                              s.cut};
    }
    const uint32_t which = __ballot_sync(ALL_LANES, to.rows > 0);
    const int at = __popc(which & ((1u << lane_index()) - 1));
    if (to.rows > 0 && at < RING_SEGMENTS)
        r->list[phase & 1][at] = to;
    if (lane_index() == 0) {
        const int n = __popc(which);
        r->n[phase & 1] = n < RING_SEGMENTS ? n : RING_SEGMENTS;
        r->last = phase;
    }
}
static_assert((int)PACK_STEPS <= (int)WARP, "a lane for each step");

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

template <bool LIGHT>
static __device__ void step_run(const member &m, const cuda_step *s, int64_t begin, int64_t end)
{
    shape_run(m, s, begin, end);
}
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

/* The same for weft_light, which so needs few registers. */
static __device__ void row_run_light(int32_t row, const kargs *k, const kthread *t, int64_t begin,
                                     int64_t end)
{
    switch ((enum cuda_row)row) {
#define CUDA_LIGHT(symbol)                                                                         \
    case ROW_##symbol:                                                                             \
        symbol(k, t, begin, end);                                                                  \
        break;
#include "kernels/cuda/cuda_light.def"
#undef CUDA_LIGHT
    default:
        break;
    }
}

template <bool LIGHT>
static __device__ void step_run(const member &m, const cuda_step *s, int64_t begin, int64_t end)
{
    const cuda_shape *shape = &m.r->shape[s->shape];
    words_copy(m.own, &shape->k, (int)sizeof(kargs));
    __syncthreads();
    if (threadIdx.x == 0)
        own_addresses(m, s, begin);
    __syncthreads();
    if (LIGHT)
        row_run_light(shape->row, m.own, &m.t, begin, end);
    else
        row_run(shape->row, m.own, &m.t, begin, end);
}
#endif

/* ---- a range of units ---- */

template <bool LIGHT>
static __device__ void range_run(const member &m, const tables &t, const cuda_item &it,
                                 int64_t begin, int64_t end)
{
    for (int32_t i = 0; i < it.n_step; i++) {
        uint64_t start = m.ns ? clock_now() : 0;
        step_run<LIGHT>(m, &t.step[it.first + i], begin, end);
        __syncthreads();
        if (m.ns && threadIdx.x == 0)
            m.ns[it.first + i] += clock_now() - start;
    }
}

/* ---- phases ---- */

/* The units of all items that are shared out stand in one line; block b of g has [b * all / g, (b + 1) * all / g). One loop
 * over all ranges of the block, so that there is one copy of what runs them. */
template <bool LIGHT>
static __device__ void phase_run(const member &m, const tables &t, const cuda_phase &p)
{
    const line_share own = share_of(m, p.units);
    for (int32_t i = p.first; i < p.first + p.n_item; i++) {
        const cuda_item &it = t.item[i];
        line_share u = it.every ? line_share{0, it.units} : share_in(own, it);
        const int64_t most = it.every || it.grain == 0 ? u.last - u.first : it.grain;
        for (; u.first < u.last; u.first += most)
            range_run<LIGHT>(m, t, it, u.first, least(u.first + most, u.last));
    }
}

/* Where a block counts the time of its steps, or NULL: of `each` blocks on a multiprocessor the first do. */
static __device__ uint64_t *times_of(const cuda_run &r, unsigned each)
{
    return r.ns && blockIdx.x < gridDim.x / each ? r.ns + (int64_t)blockIdx.x * r.n_step : NULL;
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
    return blockIdx.x == 0 && (phase - r.first) % CANCEL_EVERY == 0;
}

static __device__ bool is_cancelled(const cuda_run &r)
{
    return r.cancel && block_word(threadIdx.x == 0 ? host_word(r.cancel) : 0) != 0;
}

/* Wait until all blocks have come here for the n-th time; what they wrote before can be read after. False: stop. Meanwhile
 * another warp lists the segments of the phase after the next one. */
static __device__ bool gate_pass(const member &m, uint32_t n, bool stop, const cuda_pack *packs)
{
    const cuda_run &r = *m.r;
    const int32_t list = r.first + (int32_t)n + 1;
    block_words *words = block_memory();
    __syncthreads();
    if (threadIdx.x == 0) {
        if (stop)
            atomicOr(r.gate, GATE_STOP);
        gate_add(r.gate);
    }
    if (warp_index() == warp_count() - 1 && list < r.end)
        segments_list(m, &packs[list % PACKS], list);
    if (threadIdx.x == 0) {
        uint32_t seen;
        do
            seen = gate_read(r.gate);
        while ((seen & ~GATE_STOP) < n * gridDim.x);
        words->word[0] = (int32_t)seen;
    }
    __syncthreads();
    return ((uint32_t)words->word[0] & GATE_STOP) == 0;
}

/* All phases of a launch, between which blocks wait for each other. While one is computed the tables of the phase after the next
 * one come, and the weights of the next one. */
static __device__ void phases_run(const member &m, cuda_pack *packs)
{
    const cuda_run &r = *m.r;
    ring_block *ring = block_ring();
    for (int32_t i = r.first; i < r.first + 2; i++)
        pack_store(r, i, pack_load(r, i), packs);
    __syncthreads();
    for (int32_t i = r.first; i < r.first + 2 && i < r.end; i++)
        if (warp_index() == 0)
            segments_list(m, &packs[i % PACKS], i);
    __syncthreads();
    for (int32_t i = r.first; i < r.end; i++) {
        const cuda_pack *pack = &packs[i % PACKS];
        const pack_part part = pack_load(r, i + 2);
        const bool stop = asks_host(r, i) && is_cancelled(r);
        ring_phase(ring, i);
        __syncthreads();
        ring_fill(ring);
        if (!stop)
            phase_run<false>(m, tables_of(r, pack->at, pack), pack->at);
        pack_store(r, i + 2, part, packs);
        if (i + 1 < r.end && !gate_pass(m, (uint32_t)(i + 1 - r.first), stop, packs))
            break;
    }
    copies_wait<0>();
}

/* ---- what a card is launched with (CUDA_GRIDS) ---- */

#ifdef __CUDACC__
#define DYNAMIC(name) extern __shared__ __align__(1024) char name[]
#else
#define DYNAMIC(name) char *name = simt_dynamic()
#endif

extern "C" __global__ void __launch_bounds__(CUDA_BLOCK, 1)
    weft_phases(const __grid_constant__ cuda_run r)
{
    DYNAMIC(dynamic);
    /* In shared memory: what is read of them after a call would come from the card's, where a function has their address. */
    __shared__ kargs own;
    __shared__ cuda_run run;
    __shared__ member m;
    char *ring = dynamic + PACKS_BYTES;
    char *after = r.ring ? ring + r.ring_x + cuda_ring_bytes(warp_count()) : ring;
    char *block = r.blocks ? r.blocks + blockIdx.x * r.block_bytes : after;
    if (threadIdx.x == 0) {
        run = r;
        m = member{&run,
                   {(int)blockIdx.x, (int)gridDim.x, block + r.local_bytes,
                    (size_t)(r.block_bytes - r.local_bytes)},
                   block,
                   times_of(r, 1),
                   &own};
    }
    ring_open(block_ring(), r.ring ? ring : NULL, r.ring_x, r.first);
    if (r.pack)
        phases_run(m, (cuda_pack *)dynamic);
    else if (!is_cancelled(run))
        phase_run<false>(m, tables_of(run, run.phase[run.first], NULL), run.phase[run.first]);
}

/* Images made for one plan have phases alone. */
#ifndef WEFT_SHAPES
#include "kernels/cuda/choose_cuda.cuh"
#include "kernels/cuda/squares_cuda.cuh"

/* A phase of steps that do little with much: more blocks, with fewer registers each. */
extern "C" __global__ void __launch_bounds__(CUDA_BLOCK, CUDA_LIGHT_BLOCKS)
    weft_light(const __grid_constant__ cuda_run r)
{
    DYNAMIC(dynamic);
    __shared__ kargs own;
    member m = {&r,
                {(int)blockIdx.x, (int)gridDim.x, dynamic, (size_t)r.block_bytes},
                dynamic,
                times_of(r, CUDA_LIGHT_BLOCKS),
                &own};
    if (!is_cancelled(r))
        phase_run<true>(m, tables_of(r, r.phase[r.first], NULL), r.phase[r.first]);
}

/* The weights of a phase of squares as bf16. */
extern "C" __global__ void __launch_bounds__(CUDA_BLOCK, CUDA_UNPACK_BLOCKS)
    weft_unpack(const __grid_constant__ cuda_run r)
{
    if (!is_cancelled(r))
        unpack_run(r);
}

/* A phase of squares alone. */
extern "C" __global__ void __launch_bounds__(CUDA_SQUARES_BLOCK, 1)
    weft_squares(const __grid_constant__ cuda_run r)
{
    DYNAMIC(dynamic);
    if (!is_cancelled(r))
        squares_run(r, dynamic);
}
#endif
