/* phase.cu - runs phases of a plan (phase.h): what exec_run.c does with threads, with blocks.
 *
 * All of kernels/cuda is this one file and what it includes. */
#include "kernels/cuda/phase.h"

#include "kernels/cuda/attend_ahead_cuda.cuh"
#include "kernels/cuda/attend_cuda.cuh"
#include "kernels/cuda/attend_flash_cuda.cuh"
#include "kernels/cuda/experts_bf16_cuda.cuh"
#include "kernels/cuda/experts_cuda.cuh"
#include "kernels/cuda/experts_few_cuda.cuh"
#include "kernels/cuda/experts_mma_cuda.cuh"
#include "kernels/cuda/experts_runs_cuda.cuh"
#include "kernels/cuda/few_sheets_cuda.cuh"
#include "kernels/cuda/gate_cuda.cuh"
#include "kernels/cuda/heads_cuda.cuh"
#include "kernels/cuda/launch_cuda.cuh"
#include "kernels/cuda/linear_cuda.cuh"
#include "kernels/cuda/linear_few_cuda.cuh"
#include "kernels/cuda/linear_mma_cuda.cuh"
#include "kernels/cuda/linear_stream_cuda.cuh"
#include "kernels/cuda/lists_cuda.cuh"
#include "kernels/cuda/lora_cuda.cuh"
#include "kernels/cuda/map_cuda.cuh"
#include "kernels/cuda/move_cuda.cuh"
#include "kernels/cuda/norm_cuda.cuh"
#include "kernels/cuda/quantize_cuda.cuh"
#include "kernels/cuda/roles_cuda.cuh"
#include "kernels/cuda/rope_cuda.cuh"
#include "kernels/cuda/route_cuda.cuh"

/* ---- what only a card has ---- */

#ifdef __CUDACC__
static __device__ uint64_t clock_now(void)
{
    uint64_t ns;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
    return ns;
}
#else
static uint64_t clock_now(void)
{
    return simt_ns();
}
#endif

/* ---- a step ---- */

/* Which a function has that a card is launched with: registers are for what it may have to do. */
enum kernels_of { ALL_KERNELS, LIGHT_KERNELS, FLASH_KERNELS, DOT_KERNELS };

#ifdef WEFT_SHAPES
#include WEFT_SHAPES /* shape_run, for the steps of one bucket alone (runtime/exec/cuda_text.c) */

template <kernels_of SOME>
static __device__ inline void step_run(const member &m, const cuda_step *s, int32_t shape,
                                       int64_t begin, int64_t end)
{
    shape_run(m, s, shape, begin, end);
}
#else
#include "kernels/cuda/rows_cuda.cuh"

enum { SHAPES_THREADS = CUDA_PHASES_BLOCK };
static const bool SHAPES_SKEWS = true;
static const int SHAPES_SHEETS = 0;
static const uint64_t SHAPES_LATE = 0;

/* The step's arguments for all threads of the block, by one of them. */
static __device__ void own_arguments(const member &m, const cuda_step *s)
{
    for (int i = 0; i < K_IN_MAX; i++)
        m.own->in[i] = s->in[i];
    for (int i = 0; i < K_OUT_MAX; i++)
        m.own->out[i] = s->out[i];
    m.own->n[0] = s->rows;
    m.own->code = s->code;
    m.own->cell = s->cell;
    m.own->batch = m.r->batch;
    m.own->lora = m.r->lora;
}

static __device__ inline void step_arguments(const member &m, const cuda_step *s)
{
    words_copy(m.own, &m.r->shape[s->shape].k, (int)sizeof(kargs));
    block_sync();
    if (threadIdx.x == 0)
        own_arguments(m, s);
    block_sync();
}

template <kernels_of SOME>
static __device__ void step_run(const member &m, const cuda_step *s, int32_t number, int64_t begin,
                                int64_t end)
{
    const cuda_shape *shape = &m.r->shape[number];
    step_arguments(m, s);
    if (SOME == LIGHT_KERNELS)
        row_run_light(shape->row, m.own, &m.t, begin, end);
    else if (SOME == FLASH_KERNELS)
        k_attend_flash_cuda(m.own, &m.t, begin, end);
    else if (SOME == DOT_KERNELS)
        row_run_dots(shape->row, m.own, &m.t, begin, end);
    else
        row_run(shape->row, m.own, &m.t, begin, end);
}
#endif

/* ---- phases ---- */

static __device__ inline bool has_copier(void)
{
#if defined(__CUDACC__) && defined(WEFT_SHAPES)
    return SHAPES_THREADS > CUDA_BLOCK;
#else
    return (int)blockDim.x > block_threads();
#endif
}

/* A step, and a barrier behind it. */
template <kernels_of SOME>
static __device__ inline void step_done(const member &m, const cuda_step *s, int32_t shape,
                                        int64_t begin, int64_t end)
{
    step_run<SOME>(m, s, shape, begin, end);
    block_sync();
}

/* The same, with its time counted. */
template <kernels_of SOME>
static __device__ inline void step_timed(const member &m, const cuda_step *s, int32_t shape,
                                         int64_t begin, int64_t end)
{
    const uint64_t start = m.ns ? clock_now() : 0;
    const int32_t number = m.ns ? s->number : 0; /* after the step other tables may come there */
    step_run<SOME>(m, s, shape, begin, end);
    block_sync();
    if (m.ns && threadIdx.x == 0)
        m.ns[number] += clock_now() - start;
}

/* A step of the bucket, with operands for units from `begin` on: a copy of the block's own. */
static __device__ const cuda_step *step_own(const member &m, int32_t step, int64_t begin)
{
    __shared__ cuda_step own;
    words_copy(&own, &m.r->step[step], (int)sizeof own);
    block_sync();
    if (threadIdx.x == 0)
        operands_find(m, own, begin);
    block_sync();
    return &own;
}

/* The units of all items that are shared out stand in one line; block b of g has [b * all / g, (b + 1) * all / g). */
template <kernels_of SOME> static __device__ APART void phase_run(const member &m, cuda_phase p)
{
    const line_share own = share_of(m, p.units);
    for (int32_t i = 0; i < p.n_item; i++) {
        const cuda_item &it = m.r->item[p.first + i];
        const line_share u = units_of(it, own);
        const int64_t most = is_at_once(it, u) ? u.last - u.first : it.grain;
        for (int64_t at = u.first; at < u.last; at += most)
            for (int32_t k = 0; k < it.n_step; k++) {
                const cuda_step *s = step_own(m, it.first + k, at);
                if (s->shape == STEP_NONE)
                    continue;
                step_timed<SOME>(m, s, s->shape, at, least(at + most, u.last));
            }
    }
}

/* Where a block counts the time of its steps, or NULL: of `each` blocks on a multiprocessor the first do. */
static __device__ uint64_t *times_of(const cuda_run &r, unsigned each)
{
    return r.ns && blockIdx.x < gridDim.x / each ? r.ns + (int64_t)blockIdx.x * r.n_step : NULL;
}

/* ---- between phases ---- */

/* A word of one thread for all of the block. */
static __device__ uint32_t block_word(uint32_t of_first)
{
    block_words *words = block_memory();
    block_sync();
    if (threadIdx.x == 0)
        words->word[0] = (int32_t)of_first;
    block_sync();
    return (uint32_t)words->word[0];
}

/* Each block asks before its launch lets the next one begin: so all that begin later see what any of this one has seen, and none meets values
 * that were left out. */
static __device__ bool is_cancelled(const cuda_run &r)
{
    return r.cancel && block_word(threadIdx.x == 0 ? host_word(r.cancel) : 0) != 0;
}

static __device__ inline void phase_listed(const member &m, ahead &a, int32_t n)
{
    cuda_pack *pack = pack_wait(a.packs, n);
    phase_list(m, pack, work_place(a.packs.at, pack->step), SHAPES_SHEETS, &a.work[n % PACKS],
               &a.ring->list[n % PACKS]);
    if (has_copier())
        barrier_arrive_warp(&a.listed[n % PACKS]);
}

static __device__ inline bool lists_itself(void)
{
    return !has_copier() && warp_index() == warp_count() - 1;
}

/* Where no warp copies, a warp does what comes before phase n + 1 while the block waits at gate n, so that who comes last has nobody
 * wait for it: it lists that phase, whose tables came meanwhile, and asks for those of the next one. These come in the place of a
 * phase of which the block has done all. */
static __device__ inline void gate_list(const member &m, ahead &a, int32_t n)
{
    const int32_t all = a.n_phase;
    if (n + 1 < all)
        phase_listed(m, a, n + 1);
    if (n + PACKS - 1 < all)
        pack_copy(*m.r, a.packs, n + PACKS - 1);
}

/* Does a step meet the gate of its phase by itself? */
static __device__ inline bool is_late(int32_t shape)
{
    return SHAPES_LATE != 0 && shape < 64 && (SHAPES_LATE >> shape & 1);
}

/* What the block has of phase n: each step ends with a barrier that all warps meet. All that stands here is passed between two
 * steps, by a block that others wait for as a rule. */
template <bool TIMED> static __device__ inline void list_run(const member &m, ahead &a, int32_t n)
{
    shared_place next = shared_at(&a.work[n % PACKS]);
    bool first = true;
    UNROLLED(1)
    for (;;) {
        const cuda_work w = {(int32_t)shared_4(next), (int32_t)shared_4(next + 4),
                             (int32_t)shared_4(next + 8)};
        if (first && (w.what < 0 || TIMED || !is_late(w.what >> WORK_BITS)) && !gate_meet())
            return;
        if (w.what < 0) {
            if (w.what == WORKS_MANY) {
                const cuda_phase p = a.packs.at[(int32_t)progress_read(PROGRESS_PHASE) % PACKS].at;
                block_sync(); /* other tables may come there when a warp is done */
                phase_run<ALL_KERNELS>(m, p);
            }
            return;
        }
        progress_write(PROGRESS_NEXT, next + (uint32_t)sizeof w);
        const cuda_step *s = work_step(a.packs.at, w);
        if (TIMED)
            step_timed<ALL_KERNELS>(m, s, w.what >> WORK_BITS, w.begin, w.end);
        else
            step_done<ALL_KERNELS>(m, s, w.what >> WORK_BITS, w.begin, w.end);
        next = progress_read(PROGRESS_NEXT);
        first = false;
    }
}

/* The batch comes into shared memory, if it is small: positions and pages are asked for in every layer. Where it will be; by one
 * thread, before others look. */
static __device__ inline void batch_place(member *m, cuda_run *run, const cuda_call &call, char *to)
{
    const kbatch *from = run->batch; /* where operands say that it is */
    const size_t bytes = call.bytes > 0 ? (size_t)call.bytes : kbatch_bytes(from);
    if (bytes > run->batch_bytes)
        return;
    m->batch = batch_copy{(uintptr_t)from, bytes};
    run->batch = (const kbatch *)to;
}

/* And the copy; by all threads that compute, when it has its tokens. */
static __device__ inline void batch_take(const member &m, const cuda_call &call)
{
    const uint32_t *from = (const uint32_t *)m.batch.from;
    uint32_t *to = (uint32_t *)m.r->batch;
    for (size_t i = threadIdx.x; i < m.batch.bytes / 4; i += (unsigned)block_threads())
        to[i] = call.bytes > 0 ? call.word[i] : from[i];
    const int row = (int)threadIdx.x < call.n_from ? call.from[threadIdx.x] : -1;
    const int32_t id = row >= 0 ? chosen_before(call.before, row) : 0;
    block_sync();
    if (row >= 0 && m.batch.bytes > 0)
        ((kbatch *)to)->data[threadIdx.x] = id;
}

/* All phases of a launch, between which blocks wait for each other. Tables and weights are asked for before the launch before has
 * ended. */
static __device__ void phases_run(const member &m, ahead &a, const cuda_call &call, bool stop)
{
    if (threadIdx.x == 0) {
        a.skip = stop;
        a.seen[0] = stop ? GATE_SKIP : 0;
    }
    block_sync();
    if (lists_itself()) {
        for (int32_t n = 0; n < a.n_phase && n < PACKS; n++)
            pack_copy(*m.r, a.packs, n);
        phase_listed(m, a, 0);
        if (a.n_phase > 1)
            phase_listed(m, a, 1);
    }
    int32_t n = 0;
    launch_wait();
    batch_take(m, call);
    if (blockIdx.x == 0 && threadIdx.x == 0)
        *m.r->gate_next = 0; /* the launch before, whose it was, is over */
    block_sync();
    UNROLLED(1)
    for (;;) {
        progress_write(PROGRESS_PHASE, (shared_place)n);
        progress_write(PROGRESS_GATE, (shared_place)n);
        __syncwarp();
        /* Nothing is listed any more where weights of what was left out fill the ring. Later the word is another gate's, and not
         * looked at. */
        const bool runs = n > 0 || *(volatile const uint32_t *)a.seen < GATE_SKIP;
        if (has_copier() && runs)
            barrier_wait(&a.listed[n % PACKS], pack_parity(n));
        if (runs && m.ns)
            list_run<true>(m, a, n);
        else if (runs)
            list_run<false>(m, a, n);
        n = (int32_t)progress_read(PROGRESS_PHASE);
        const uint32_t seen = a.seen[n & 1]; /* the same for all warps: others may be ahead */
        if (n + 1 == a.n_phase || (seen & GATE_STOP))
            break;
        n++;
        if (lists_itself())
            gate_list(m, a, n);
        if (threadIdx.x == 0)
            gate_come(a, n);
        if (seen & GATE_SKIP)
            break;
    }
    for (int32_t i = n + 2; lists_itself() && i < n + PACKS && i < a.n_phase; i++)
        pack_wait(a.packs, i); /* which is on its way */
    if (threadIdx.x == 0)
        word_put(&a.ring->stop, 1);
}

/* ---- ahead of the phases: by warps that compute nothing ---- */

/* A warp that asks without rest keeps others from running. */
enum { COPIER_REST = 100 }; /* ns */

static __device__ inline bool copier_stops(ahead &a)
{
    return __any_sync(ALL_LANES, word_now(&a.ring->stop) != 0);
}

/* Asks for packs in whose place nobody is any more; `asked` were, and so many are after. */
static __device__ inline int32_t packs_ask(const cuda_run &r, ahead &a, int32_t asked)
{
    while (
        asked < r.end - r.first &&
        __all_sync(ALL_LANES, barrier_passed(&a.packs.used[asked % PACKS], pack_parity(asked) ^ 1)))
        pack_copy(r, a.packs, asked++);
    return asked;
}

/* Phase n has been listed: by the first of the warps that copy, when all weights that it has to copy of the phase before are on their
 * way. It also asks for tables of phases as soon as there is room. False: nothing more is to be copied. */
static __device__ inline bool copier_listed(const member &m, ahead &a, int32_t n, int32_t *asked)
{
    const bool lists = warp_index() == warp_count();
    for (;;) {
        if (lists)
            *asked = packs_ask(*m.r, a, *asked);
        if (lists ? *asked > n
                  : __all_sync(ALL_LANES, barrier_passed(&a.listed[n % PACKS], pack_parity(n))))
            break;
        __nanosleep(COPIER_REST);
        if (copier_stops(a))
            return false;
    }
    if (lists)
        phase_listed(m, a, n);
    return true;
}

/* Tables, lists of what the block has of each phase, and its weights, each as soon as there is room. */
static __device__ APART void copier_run(const member &m, ahead &a)
{
    const cuda_run &r = *m.r;
    const int32_t n_phase = r.end - r.first;
    const bool lists = warp_index() == warp_count();
    ring_copier c = ring_copier_of(a.ring, (int)threadIdx.x - block_threads());
    int32_t asked = 0, n = 0;
    bool stop = false;
    for (; n < n_phase && !stop && copier_listed(m, a, n, &asked); n++) {
        ring_list *segments = &a.ring->list[n % PACKS];
        c.segment = 0;
        while (a.ring->memory && !stop) {
            const ring_copied how = ring_copy<SHAPES_SKEWS>(c, *segments, n);
            if (__all_sync(ALL_LANES, how == RING_NONE))
                break;
            if (__any_sync(ALL_LANES, how == RING_COPIED))
                continue;
            if (lists)
                asked = packs_ask(r, a, asked);
            __nanosleep(COPIER_REST);
            stop = copier_stops(a);
        }
        if (!lists)
            barrier_arrive_warp(&a.packs.used[n % PACKS]);
    }
    for (; n < asked; n++)
        pack_wait(a.packs, n);
    ring_close(a.ring, c);
}

/* Has the block done all of a phase? */
static __device__ inline bool phase_over(const ahead &a, int32_t n)
{
    return __all_sync(ALL_LANES, word_now(&a.ring->phase) > n);
}

/* The same with sheets (few_sheets_cuda.cuh). */
static __device__ APART void sheets_run(const member &m, ahead &a)
{
    const cuda_run &r = *m.r;
    const bool lists = warp_index() == warp_count();
    sheet_copier c = {};
    int32_t asked = 0, n = 0, alone = -1; /* the last phase that scratch was needed for */
    bool stop = false;
    c.turn = warp_index() - warp_count();
    c.last = -1;
    for (; n < r.end - r.first && !stop && copier_listed(m, a, n, &asked); n++) {
        const ring_list *l = &a.ring->list[n % PACKS];
        for (int i = 0; i < l->n && !stop; i++) {
            sheet_segment(c, l->of[i]);
            while (c.left > 0 && !stop) {
                if (alone >= 0 && phase_over(a, alone)) {
                    copies_after_stores(); /* of that phase */
                    alone = -1;
                }
                if (alone < 0 && sheet_copy(a.ring, c))
                    continue;
                if (lists)
                    asked = packs_ask(r, a, asked);
                __nanosleep(COPIER_REST);
                stop = copier_stops(a);
            }
        }
        if (l->alone)
            alone = n;
        if (!lists)
            barrier_arrive_warp(&a.packs.used[n % PACKS]);
    }
    for (; n < asked; n++)
        pack_wait(a.packs, n);
    sheets_close(a.ring, c);
}

/* A word from the card's memory for the cache: who reads near it later does not wait. */
static __device__ inline void word_near(const void *at)
{
#ifdef __CUDACC__
    asm volatile("{\n.reg .b32 x;\nld.global.u32 x, [%0];\n}" : : "l"(at));
#else
    (void)at;
#endif
}

/* The tables of a phase, while the kernel before is at work. */
static __device__ inline void tables_near(const cuda_run &r, const cuda_phase &p)
{
    enum { LINE = 128 };
    const int step = (int)threadIdx.x / WARP, line = lane_index() * LINE;
    if ((int)threadIdx.x < p.n_item)
        word_near(&r.item[p.first + threadIdx.x]);
    if (step >= p.n_step)
        return;
    const cuda_step *s = &r.step[p.step + step];
    if (line < (int)sizeof *s)
        word_near((const char *)s + line);
    if (line < (int)sizeof(cuda_shape) && s->shape != STEP_NONE)
        word_near((const char *)&r.shape[s->shape] + line);
}

/* Four warps that copy leave registers to those that compute (CUDA_WIDE_BLOCK). No function that is not inlined may be called by both, or
 * the compiler gives none. True: this warp has nothing else to do. */
static __device__ inline bool copier_begins(void)
{
    if ((int)SHAPES_THREADS == (int)CUDA_WIDE_BLOCK)
        REGISTERS_GIVE(40);
    return warp_index() >= warp_count() + RING_COPIERS;
}

static __device__ inline void computer_begins(void)
{
    REGISTERS_FIT(40, 232);
    if ((int)SHAPES_THREADS == (int)CUDA_WIDE_BLOCK)
        REGISTERS_TAKE(232);
}

/* ---- what a card is launched with (CUDA_GRIDS) ---- */

#ifdef __CUDACC__
#define DYNAMIC(name) extern __shared__ __align__(1024) char name[]
#else
#define DYNAMIC(name) char *name = simt_dynamic()
#endif

/* What it has of shared memory by itself is no more than the host leaves it beside tables and what calls of up to 64 rows take. */
#ifdef __CUDACC__
static_assert(sizeof(kargs) + sizeof(cuda_run) + sizeof(member) + 2 * PACKS * sizeof(uint64_t) +
                      sizeof(ahead) + sizeof(ring_block) + sizeof(block_words) +
                      PROGRESS_WARPS * PROGRESS_WORDS * sizeof(shared_place) + sizeof(cuda_step) <=
                  CUDA_OWN_BYTES,
              "they have to fit");
#endif

extern "C" __global__ void __launch_bounds__(SHAPES_THREADS, 1)
    weft_phases(const __grid_constant__ cuda_launch of)
{
    DYNAMIC(dynamic);
    const cuda_run &r = of.run;
    /* In shared memory: what is read of them after a call would come from the card's, where a function has their address. */
    __shared__ kargs own;
    __shared__ cuda_run run;
    __shared__ member m;
    __shared__ uint64_t full[PACKS], used[PACKS];
    ahead &a = block_ahead();
    cuda_pack *packs = (cuda_pack *)dynamic;
    char *batch = dynamic + PACKS_BYTES, *ring = batch + r.batch_bytes;
    char *after = r.ring && !SHAPES_SHEETS
                      ? ring + r.ring_x + cuda_ring_bytes(warp_count(), r.ring, r.ring_slot)
                      : ring;
    char *block = r.blocks ? r.blocks + blockIdx.x * r.block_bytes : after;
    if (threadIdx.x == 0) {
        run = r;
        m = member{&run,
                   {(int)blockIdx.x, (int)gridDim.x, block + r.local_bytes,
                    (size_t)(r.block_bytes - r.local_bytes)},
                   share_inverse(gridDim.x),
                   r.values ? r.values + blockIdx.x * r.values_bytes : block,
                   times_of(r, 1),
                   &own,
                   {0, 0}};
        if (r.batch_bytes)
            batch_place(&m, &run, of.call, batch);
        UNROLLED(1)
        for (int i = 0; i < PACKS; i++) {
            barrier_make(&full[i], copy_arrivals(WARP));
            /* By those that compute, and by each warp that copies but does not list. */
            barrier_make(&used[i], block_arrivals() + (RING_COPIERS - 1) * WARP_ARRIVALS);
            barrier_make(&a.listed[i], WARP_ARRIVALS);
        }
        if (SHAPES_SHEETS)
            sheets_open(block_ring(), block + r.local_bytes + sheet_own(SHAPES_SHEETS * FEW_N),
                        r.ring, (int)r.ring_slot);
        else
            ring_open(block_ring(), r.ring ? ring : NULL, r.ring_x, r.ring, (int)r.ring_slot);
        copies_after_stores();
        a.packs = pack_ring{packs, full, used};
        a.work = (cuda_works *)(packs + PACKS);
        a.ring = block_ring();
        a.gate = r.gate;
        a.cancel = r.cancel;
        a.n_phase = r.end - r.first;
        a.none = cuda_work{WORKS_END, 0, 0};
    }
    __syncthreads(); /* all warps */
    if (!r.pack)
        tables_near(r, r.phase[r.first]);
    if ((int)threadIdx.x >= block_threads()) { /* what they copy no kernel writes */
        if (copier_begins())
            return;
        if (r.pack && SHAPES_SHEETS)
            sheets_run(m, a);
        else if (r.pack)
            copier_run(m, a);
        return;
    }
    computer_begins();
    const bool stop = is_cancelled(run);
    launch_next();
    if (r.pack) {
        phases_run(m, a, of.call, stop);
        return;
    }
    launch_wait();
    if (!stop)
        phase_run<ALL_KERNELS>(m, run.phase[run.first]);
}

/* Images made for one plan have phases alone. */
#ifndef WEFT_SHAPES
#include "kernels/cuda/choose_cuda.cuh"
#include "kernels/cuda/grids_cuda.cuh"
#endif
