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

/* A step, with its time counted, and a barrier behind it. */
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

/* ---- what launches have in common ---- */

static __device__ inline bool has_copier(void)
{
#if defined(__CUDACC__) && defined(WEFT_SHAPES)
    return SHAPES_THREADS > CUDA_BLOCK;
#else
    return (int)blockDim.x > block_threads();
#endif
}

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

#ifdef __CUDACC__
#define DYNAMIC(name) extern __shared__ __align__(1024) char name[]
#else
#define DYNAMIC(name) char *name = simt_dynamic()
#endif

/* libweft_cuda is two images: of weft_phases, and of all else (image.h). Images made for one plan have phases alone. */
#ifndef WEFT_GRIDS_ALONE
#include "kernels/cuda/phases_cuda.cuh"
#endif
#if !defined(WEFT_SHAPES) && !defined(WEFT_PHASES_ALONE)
#include "kernels/cuda/choose_cuda.cuh"
#include "kernels/cuda/grids_cuda.cuh"
#endif
