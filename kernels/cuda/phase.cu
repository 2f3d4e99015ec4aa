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
    uint64_t inverse; /* of the number of blocks, for share_of */
    char *block;      /* its memory */
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

static __device__ bool is_packed(const cuda_phase &p)
{
    return p.n_item <= PACK_ITEMS && p.n_step <= PACK_STEPS;
}

static __device__ void words_copy(void *to, const void *from, int bytes)
{
    for (int i = (int)threadIdx.x; i < bytes / 8; i += block_threads())
        ((uint64_t *)to)[i] = ((const uint64_t *)from)[i];
}

/* Of the launch's packs number n is copied by a warp, and there when waited for. They take turns. */
struct pack_ring {
    cuda_pack *at; /* [PACKS] */
    uint64_t *full;
};
static_assert(sizeof(cuda_pack) % 16 == 0, "pieces of 16 bytes");

static __device__ inline void pack_copy(const cuda_run &r, const pack_ring &p, int32_t n)
{
    uint64_t *full = &p.full[n % PACKS];
    copy_expect(full, (int)sizeof(cuda_pack));
    copy_bytes(full, shared_at(&p.at[n % PACKS]), (const char *)&r.pack[r.first + n],
               (int)sizeof(cuda_pack));
    copy_end(full);
}

static __device__ inline const cuda_pack *pack_wait(const pack_ring &p, int32_t n)
{
    barrier_wait(&p.full[n % PACKS], (uint32_t)(n / PACKS) & 1);
    return &p.at[n % PACKS];
}

/* ---- what a block has of a phase ---- */

/* A block's share of a line. */
struct line_share {
    int64_t first, last;
};

/* A division takes as long as many products: that by the number of blocks is a product with its inverse, right for numbers
 * below SHARES_MOST where there are at most SHARE_BLOCKS. */
enum { SHARE_BITS = 36, SHARE_BLOCKS = 4096 };
static const uint32_t SHARES_MOST = 1u << 24;
static_assert((uint64_t)SHARES_MOST * SHARE_BLOCKS <= 1ull << SHARE_BITS,
              "no result is one too many");

static __device__ inline uint64_t share_inverse(uint64_t blocks)
{
    return ((1ull << SHARE_BITS) + blocks - 1) / blocks;
}

static __device__ APART line_share share_of_many(int64_t index, int64_t count, int64_t units)
{
    return line_share{index * units / count, (index + 1) * units / count};
}

static __device__ inline line_share share_of(const member &m, int64_t units)
{
    const uint64_t at = (uint64_t)m.t.index * (uint64_t)units, end = at + (uint64_t)units;
    if (end >= SHARES_MOST || m.t.count > SHARE_BLOCKS)
        return share_of_many(m.t.index, m.t.count, units);
    return line_share{(int64_t)(at * m.inverse >> SHARE_BITS),
                      (int64_t)(end * m.inverse >> SHARE_BITS)};
}

/* The units of an item that a block has. */
static __device__ inline line_share share_in(const line_share &s, const cuda_item &it)
{
    int64_t begin = s.first > it.at ? s.first - it.at : 0;
    return line_share{begin, least(s.last - it.at, it.units)};
}

/* The ranges of a packed phase, listed before it begins. */
struct work {
    int32_t step, n_step;
    int64_t begin, end; /* units, */
    int64_t most;       /* so many at once */
};

struct work_list {
    work of[PACK_ITEMS];
    int32_t n;
    int32_t stop; /* nothing more is to be computed */
};

static __device__ inline work work_of(const cuda_item &it, const line_share &own)
{
    const line_share u = it.every ? line_share{0, it.units} : share_in(own, it);
    return work{it.first, it.n_step, u.first, u.last,
                it.every || it.grain == 0 ? u.last - u.first : it.grain};
}

/* By a warp: a lane for each item. */
static __device__ APART void work_make(const member &m, const cuda_pack *pack, work_list *to)
{
    work w = {};
    if (is_packed(pack->at) && lane_index() < pack->at.n_item) {
        w = work_of(pack->item[lane_index()], share_of(m, pack->at.units));
        w.step -= pack->at.step;
    }
    const uint32_t which = __ballot_sync(ALL_LANES, w.begin < w.end);
    if (w.begin < w.end)
        to->of[__popc(which & ((1u << lane_index()) - 1))] = w;
    if (lane_index() == 0)
        to->n = __popc(which);
}
static_assert((int)PACK_ITEMS <= (int)WARP, "a lane for each item");

/* What a phase will multiply, by a warp: a lane for each step. Items that are computed in several goes are left out. */
static __device__ APART void segments_list(const member &m, const cuda_pack *pack, int32_t n)
{
    ring_block *r = block_ring();
    const line_share all = share_of(m, pack->at.units);
    ring_segment to = {};
    if (is_packed(pack->at) && lane_index() < pack->at.n_step) {
        const cuda_step &s = pack->step[lane_index()];
        const cuda_item &it = pack->item[s.item - pack->at.first];
        const line_share u = share_in(all, it);
        const int64_t each = s.tile_cols ? s.tile_cols : s.linear_out;
        const int64_t row = u.first * each, end = least(u.last * each, s.linear_out);
        if (s.cut.rows && !it.every && end > row && (it.grain == 0 || u.last - u.first <= it.grain))
            to = ring_segment{(const char *)s.in[1] + row * s.pitch, s.pitch, (int32_t)(end - row),
                              s.cut};
    }
    const uint32_t which = __ballot_sync(ALL_LANES, to.rows > 0);
    const int at = __popc(which & ((1u << lane_index()) - 1));
    if (to.rows > 0 && at < RING_SEGMENTS)
        r->list[n & 1][at] = to;
    if (lane_index() == 0) {
        const int count = __popc(which);
        r->n[n & 1] = count < RING_SEGMENTS ? count : RING_SEGMENTS;
        r->last = n;
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
static __device__ void range_run(const member &m, const cuda_step *step, int32_t n_step,
                                 int64_t begin, int64_t end)
{
    UNROLLED(1)
    for (int32_t i = 0; i < n_step; i++) {
        uint64_t start = m.ns ? clock_now() : 0;
        step_run<LIGHT>(m, &step[i], begin, end);
        __syncthreads();
        if (m.ns && threadIdx.x == 0)
            m.ns[step[i].number] += clock_now() - start;
    }
}

/* ---- phases ---- */

/* The units of all items that are shared out stand in one line; block b of g has [b * all / g, (b + 1) * all / g). One loop
 * over all ranges of the block, so that there is one copy of what runs them. pack, list: of a phase that is packed, or NULL. */
template <bool LIGHT>
static __device__ void phase_run(const member &m, const cuda_phase &p, const cuda_pack *pack,
                                 const work_list *list)
{
    const bool packed = pack && is_packed(p);
    const cuda_step *steps = packed ? pack->step : m.r->step;
    UNROLLED(1)
    for (int32_t i = 0; i < (packed ? list->n : p.n_item); i++) {
        work w = packed ? list->of[i] : work_of(m.r->item[p.first + i], share_of(m, p.units));
        for (; w.begin < w.end; w.begin += w.most)
            range_run<LIGHT>(m, steps + w.step, w.n_step, w.begin,
                             w.begin + w.most < w.end ? w.begin + w.most : w.end);
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
enum { CANCEL_EVERY = 16 }; /* phases */

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

static __device__ bool is_cancelled(const cuda_run &r)
{
    return r.cancel && block_word(threadIdx.x == 0 ? host_word(r.cancel) : 0) != 0;
}

/* What blocks have at hand that run several phases. */
struct ahead {
    pack_ring packs;
    work_list *work;  /* of the phase at hand */
    uint64_t *listed; /* a barrier: passed when a phase is listed */
    ring_block *ring;
};

/* Before phase n of the launch, by a warp: what the block has of it, and of the one behind it what the ring brings. */
static __device__ void phase_list(const member &m, const ahead &a, int32_t n)
{
    const cuda_run &r = *m.r;
    work_make(m, &a.packs.at[n % PACKS], a.work);
    if (r.first + n + 1 < r.end)
        segments_list(m, pack_wait(a.packs, n + 1), n + 1);
}

/* A word of the host takes longer to come than a barrier: where blocks wait for each other, one of them looks now and then. */
static __device__ bool asks_host(const cuda_run &r, int32_t n)
{
    return r.cancel && blockIdx.x == 0 && n % CANCEL_EVERY == 0;
}

/* The block has come to gate n, and waits for all others; by one thread. */
static __device__ inline void gate_wait(const member &m, const ahead &a, int32_t n)
{
    const cuda_run &r = *m.r;
    uint32_t seen;
    if (a.work->stop)
        atomicOr(r.gate, GATE_STOP);
    gate_add(r.gate);
    const uint32_t word = asks_host(r, n) ? host_word(r.cancel) : 0;
    do
        seen = gate_read(r.gate);
    while ((seen & ~GATE_STOP) < (uint32_t)n * gridDim.x);
    block_memory()->word[0] = (int32_t)seen;
    a.work->stop |= word != 0;
}

/* What is done meanwhile by all warps but the first: the last one lists phase n, and all go on with their copies; the second
 * does with those of the first. */
static __device__ inline void gate_list(const member &m, const ahead &a, int32_t n)
{
    const int warp = warp_index();
    if (warp == warp_count() - 1) {
        ring_phase(a.ring, n);
        phase_list(m, a, n);
        __syncwarp();
        if (lane_index() == 0)
            barrier_arrive(a.listed);
    }
    barrier_wait(a.listed, (uint32_t)(n - 1) & 1);
    ring_fill(a.ring, warp);
    if (warp <= 1)
        ring_fill(a.ring, 0);
}

/* Wait until all blocks have come here for the n-th time, to run phase n; what they wrote before can be read after. False: stop. */
static __device__ bool gate_pass(const member &m, const ahead &a, int32_t n)
{
    __syncthreads();
    if (warp_index() > 0 || warp_count() == 1)
        gate_list(m, a, n);
    if (threadIdx.x == 0)
        gate_wait(m, a, n);
    __syncthreads();
    return ((uint32_t)block_memory()->word[0] & GATE_STOP) == 0;
}

/* All phases of a launch, between which blocks wait for each other. While one is computed the tables of the phase after the next
 * one come, and the weights of the next one. */
static __device__ void phases_run(const member &m, const ahead &a)
{
    const cuda_run &r = *m.r;
    const bool lists = warp_index() == warp_count() - 1;
    const int32_t n_phase = r.end - r.first;
    const bool stop = is_cancelled(r);
    if (lists) {
        for (int32_t n = 0; n < n_phase && n < PACKS - 1; n++)
            pack_copy(r, a.packs, n);
        segments_list(m, pack_wait(a.packs, 0), 0);
        phase_list(m, a, 0);
        a.work->stop = stop;
    }
    __syncthreads();
    ring_fill(a.ring, warp_index());
    for (int32_t n = 0; n < n_phase; n++) {
        const cuda_pack *pack = &a.packs.at[n % PACKS];
        if (lists && n + 2 < n_phase)
            pack_copy(r, a.packs, n + 2);
        if (!a.work->stop)
            phase_run<false>(m, pack->at, pack, a.work);
        if (n + 1 < n_phase && !gate_pass(m, a, n + 1))
            break;
    }
    ring_close(a.ring);
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
    __shared__ uint64_t full[PACKS], listed;
    __shared__ work_list work;
    char *ring = dynamic + PACKS_BYTES;
    char *after =
        r.ring ? ring + r.ring_x + cuda_ring_bytes(warp_count(), r.ring, r.ring_slot) : ring;
    char *block = r.blocks ? r.blocks + blockIdx.x * r.block_bytes : after;
    if (threadIdx.x == 0) {
        run = r;
        m = member{&run,
                   {(int)blockIdx.x, (int)gridDim.x, block + r.local_bytes,
                    (size_t)(r.block_bytes - r.local_bytes)},
                   share_inverse(gridDim.x),
                   block,
                   times_of(r, 1),
                   &own};
        UNROLLED(1)
        for (int i = 0; i < PACKS; i++)
            barrier_make(&full[i], COPY_ARRIVALS);
        barrier_make(&listed, 1);
    }
    ring_open(block_ring(), r.ring ? ring : NULL, r.ring_x, r.ring, (int)r.ring_slot);
    if (r.pack)
        phases_run(m, ahead{{(cuda_pack *)dynamic, full}, &work, &listed, block_ring()});
    else if (!is_cancelled(run))
        phase_run<false>(m, run.phase[run.first], NULL, NULL);
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
                share_inverse(gridDim.x),
                dynamic,
                times_of(r, CUDA_LIGHT_BLOCKS),
                &own};
    if (!is_cancelled(r))
        phase_run<true>(m, r.phase[r.first], NULL, NULL);
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
