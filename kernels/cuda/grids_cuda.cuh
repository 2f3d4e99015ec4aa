/* grids_cuda.cuh - what a card is launched with for a phase by itself (CUDA_GRIDS), beside weft_phases. */
#ifndef WEFT_KERNELS_CUDA_GRIDS_CUDA_CUH
#define WEFT_KERNELS_CUDA_GRIDS_CUDA_CUH

#include "kernels/cuda/attend_tiles_cuda.cuh"
#include "kernels/cuda/bulk_cuda.cuh"
#include "kernels/cuda/expert_squares_cuda.cuh"
#include "kernels/cuda/launch_cuda.cuh"
#include "kernels/cuda/squares_cuda.cuh"

/* A block of a phase of some kernels alone, with `each` blocks to a multiprocessor. */
static __device__ inline member member_of(const cuda_run &r, char *memory, kargs *own,
                                          unsigned each)
{
    return member{&r,
                  {(int)blockIdx.x, (int)gridDim.x, memory, (size_t)r.block_bytes},
                  share_inverse(gridDim.x),
                  memory,
                  times_of(r, each),
                  own,
                  {0, 0}};
}

/* Begins a launch that is one phase; false: it was cancelled. */
static __device__ inline bool phase_begin(const cuda_run &r)
{
    const bool stop = is_cancelled(r);
    launch_next();
    launch_wait();
    return !stop;
}

/* The same, with its tables on their way before. */
static __device__ inline bool phase_begin(const cuda_run &r, const cuda_phase &p)
{
    const bool stop = is_cancelled(r);
    launch_next();
    tables_near(r, p);
    launch_wait();
    return !stop;
}

/* A phase of some kernels alone. */
template <kernels_of SOME>
static __device__ inline void some_run(const cuda_run &r, char *memory, kargs *own, unsigned each)
{
    const member m = member_of(r, memory, own, each);
    const cuda_phase p = r.phase[r.first];
    if (phase_begin(r, p))
        phase_run<SOME>(m, p);
}

/* A phase of steps that do little with much: more blocks, with fewer registers each. */
extern "C" __global__ void __launch_bounds__(CUDA_BLOCK, CUDA_LIGHT_BLOCKS)
    weft_light(const __grid_constant__ cuda_run r)
{
    DYNAMIC(dynamic);
    __shared__ kargs own;
    some_run<LIGHT_KERNELS>(r, dynamic, &own, CUDA_LIGHT_BLOCKS);
}

/* A phase of linears of one row: what warps wait for others hide. */
extern "C" __global__ void __launch_bounds__(CUDA_BLOCK, CUDA_DOTS_BLOCKS)
    weft_dots(const __grid_constant__ cuda_run r)
{
    DYNAMIC(dynamic);
    __shared__ kargs own;
    if (threadIdx.x == 0)
        ring_open(block_ring(), NULL, 0, 0, 0); /* none: weights are read as they go */
    block_sync();
    some_run<DOT_KERNELS>(r, dynamic, &own, CUDA_DOTS_BLOCKS);
}

/* A phase of experts by square. */
extern "C" __global__ void __launch_bounds__(CUDA_SQUARES_BLOCK, 1)
    weft_experts(const __grid_constant__ cuda_run r)
{
    DYNAMIC(dynamic);
    if (phase_begin(r))
        expert_squares_run(r, dynamic);
}

/* A phase of attention by tiles: one step as a rule, by warps with parts to play. CODES: of cells with pages of codes. */
template <bool CODES>
static __device__ SHAPE_FN void attend_run(const cuda_run &r, char *memory, kargs *own)
{
    const member m = member_of(r, memory, own, 1);
    const cuda_phase p = r.phase[r.first];
    if (!phase_begin(r, p))
        return;
#if !defined(__CUDACC__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
    const cuda_item &it = r.item[p.first];
    const line_share u = share_of(m, p.units);
    const uint64_t start = m.ns ? clock_now() : 0;
    const cuda_step *s = step_own(m, it.first, u.first);
    if (p.n_item == 1 && it.n_step == 1 && is_at_once(it, u) &&
        (CODES ? flash_codes(s->cell) : flash_has(s->cell)) && r.block_bytes >= FLASH_TILES_BYTES) {
        step_arguments(m, s);
        const tiles_step step = {own,  memory, u.first, u.last, m.ns ? m.ns + s->number : NULL,
                                 start};
        const bool round = r.shape[s->shape].row == ROW_k_attend_round_cuda;
        if (CODES)
            codes_run(step, round);
        else
            tiles_run(step, round);
        return;
    }
    block_sync(); /* all have looked at the step, in whose place others come */
#endif
    phase_run<FLASH_KERNELS>(m, p);
}

extern "C" __global__ void __launch_bounds__(CUDA_FLASH_BLOCK, 1)
    weft_flash(const __grid_constant__ cuda_run r)
{
    DYNAMIC(dynamic);
    __shared__ kargs own;
    attend_run<false>(r, dynamic, &own);
}

extern "C" __global__ void __launch_bounds__(CUDA_FLASH_BLOCK, 1)
    weft_codes(const __grid_constant__ cuda_run r)
{
    DYNAMIC(dynamic);
    __shared__ kargs own;
    attend_run<true>(r, dynamic, &own);
}

/* The weights of a phase of squares as bf16 or f16. */
extern "C" __global__ void __launch_bounds__(CUDA_BLOCK, CUDA_UNPACK_BLOCKS)
    weft_unpack(const __grid_constant__ cuda_run r)
{
    if (!phase_begin(r))
        return;
    if (r.halves)
        unpack_run<true>(r);
    else
        unpack_run<false>(r);
}

/* A phase of squares alone. */
extern "C" __global__ void __launch_bounds__(CUDA_SQUARES_BLOCK, 1)
    weft_squares(const __grid_constant__ cuda_run r)
{
    DYNAMIC(dynamic);
    if (phase_begin(r))
        squares_run(r, dynamic);
}

/* The same of weights that are bf16, or have become so. Emulated it needs no tables. */
#ifdef __CUDACC__
extern "C" __global__ void __launch_bounds__(CUDA_SQUARES_BLOCK, 1)
    weft_bulk(const __grid_constant__ cuda_run r, const __grid_constant__ cuda_tiles tiles)
#else
extern "C" void weft_bulk(cuda_run r)
#endif
{
    DYNAMIC(dynamic);
#ifndef __CUDACC__
    const cuda_tiles tiles = {};
#endif
    if (phase_begin(r))
        bulk_run(r, tiles, dynamic);
}

#endif
