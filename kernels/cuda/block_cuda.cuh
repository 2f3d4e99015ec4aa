/* block_cuda.cuh - what the kernels of CUDA share: the threads of a block, sums over them, rows of operands.
 *
 * A kernel is called by all threads of a block with the same arguments. Blocks have whole warps, any number of them up to
 * WARPS_MAX. Everything here compiles as C++ too, for machines without a card (tests/cuda): what only a card has stands in
 * `#ifdef __CUDACC__` with a plain alternative.
 *
 * Files are compiled without contraction of products and sums, so that decoding gives the bits of the reference; sums of
 * products ask for `mad`, a fused one on cards. */
#ifndef WEFT_KERNELS_CUDA_BLOCK_CUDA_CUH
#define WEFT_KERNELS_CUDA_BLOCK_CUDA_CUH

#include "kernels/cuda/phase.h"

enum { WARP = 32, WARPS_MAX = 32 };
/* One copy of a function, in place of one wherever it is called; but in an image that is made for a plan each call has a copy,
 * with that call's sizes in it. */
#ifdef __CUDACC__
#ifdef WEFT_SHAPES
#define ONE_COPY __forceinline__
#else
#define ONE_COPY __noinline__
#endif
#define SHAPE_FN __forceinline__
/* A function for what few steps need, out of the way of what all of them run: one copy, in any image. */
#define APART __noinline__
#define PRAGMA(words) _Pragma(#words)
#define UNROLLED(n) PRAGMA(unroll(n))
#define UNROLL PRAGMA(unroll)
#define mad fmaf
#define ASSUME(what) __builtin_assume(what)
/* It points to shared memory: loads from what may be anywhere take three instructions each. */
#define IN_SHARED(p) ASSUME(__isShared(p))
#else
#define ONE_COPY
#define SHAPE_FN
#define APART
#define UNROLLED(n)
#define UNROLL
#define ASSUME(what) ((void)0)
#define IN_SHARED(p) ((void)0)
#define mad(a, b, c)                                                                               \
    ((a) * (b) + (c)) /* a call of a function, where processors have no instruction */
#endif

#define ALL_LANES 0xffffffffu

/* The kernels' own static shared memory, all of it: what lives from one block-wide sum or list to the next. Sums are written without a
 * barrier before: nothing else is where they are. */
struct alignas(16) block_words {
    double sum[2][WARPS_MAX];
    union {
        float max[WARPS_MAX];
        int32_t found[WARPS_MAX];
        int32_t word[4];
    };
};

static __device__ inline block_words *block_memory(void)
{
    __shared__ block_words words;
    return &words;
}

static __device__ inline int lane_index(void)
{
    return (int)(threadIdx.x % WARP);
}

static __device__ inline int warp_index(void)
{
    return (int)(threadIdx.x / WARP);
}

/* Threads of the block that compute: all but the last warps of weft_phases, which copy (phase.cu). A number that the compiler
 * knows in images made for a plan, whose loops so have known ends. */
static __device__ inline int block_threads(void)
{
#ifndef __CUDACC__
    return simt_computing();
#elif defined(WEFT_SHAPES)
    return CUDA_BLOCK;
#else
    return blockDim.x == CUDA_PHASES_BLOCK ? CUDA_BLOCK : (int)blockDim.x;
#endif
}

/* All threads that compute have come here. */
#define block_sync() __barrier_sync_count(0, (unsigned)block_threads())

static __device__ inline int warp_count(void)
{
    return block_threads() / WARP;
}

static __device__ inline int64_t least(int64_t a, int64_t b)
{
    return b < a ? b : a;
}

/* ---- sums: every thread gets the same one, and its order is fixed ---- */

template <class T> static __device__ inline T warp_sum(T x)
{
    for (int step = WARP / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(ALL_LANES, x, step);
    return x;
}

/* The largest; a NaN does not count. */
static __device__ inline float warp_max(float x)
{
    for (int step = WARP / 2; step > 0; step /= 2) {
        float y = __shfl_xor_sync(ALL_LANES, x, step);
        x = y > x ? y : x;
    }
    return x;
}

/* The sum of the warps' words: four sums of every fourth, since each that waits for the one before takes long. */
static __device__ inline double words_sum(const double *word)
{
    double part[4] = {0, 0, 0, 0};
    UNROLL
    for (int i = 0; i < warp_count(); i += 4) {
        UNROLL
        for (int e = 0; e < 4; e++)
            if (i + e < warp_count())
                part[e] = i == 0 ? word[e] : part[e] + word[i + e];
    }
    return (part[0] + part[1]) + (part[2] + part[3]);
}

/* `set` is 0 and 1 in turns from one sum of a step to the next, and between steps all threads meet: so a word is written only when
 * all have read it. */
static __device__ inline double block_sum(double x, int set)
{
    block_words *m = block_memory();
    x = warp_sum(x);
    if (lane_index() == 0)
        m->sum[set][warp_index()] = x;
    block_sync();
    return words_sum(m->sum[set]);
}

static __device__ inline float block_max(float x)
{
    block_words *m = block_memory();
    x = warp_max(x);
    block_sync();
    if (lane_index() == 0)
        m->max[warp_index()] = x;
    block_sync();
    x = m->max[0];
    for (int i = 1; i < warp_count(); i++)
        x = m->max[i] > x ? m->max[i] : x;
    return x;
}

/* Threads that work on one vector: a warp, or where vectors are long the block. Which of them depends on the vector's
 * width alone, so that its bits do not depend on how many there are. */
struct team {
    bool block;
    int index, count; /* of the teams */
    int thread, threads;
};

static __device__ inline team team_of(int64_t width)
{
    if (width > TEAM_WIDTH_MAX)
        return team{true, 0, 1, (int)threadIdx.x, block_threads()};
    return team{false, warp_index(), warp_count(), lane_index(), WARP};
}

static __device__ inline double team_sum(const team &t, double x, int set)
{
    return t.block ? block_sum(x, set) : warp_sum(x);
}

static __device__ inline float team_max(const team &t, float x)
{
    return t.block ? block_max(x) : warp_max(x);
}

/* All of a team have done what they did so far. */
static __device__ inline void team_wait(const team &t)
{
    if (t.block)
        block_sync();
    else
        __syncwarp();
}

/* ---- operands ---- */

/* Row `row` of an input of f32, of a result. */
static __device__ inline const float *row_in(const kargs *k, int i, int64_t row)
{
    return (const float *)((const char *)k->in[i] + row * k->pitch[i]);
}

static __device__ inline float *row_out(const kargs *k, int i, int64_t row)
{
    return (float *)((char *)k->out[i] + row * k->out_pitch[i]);
}

/* kpart_of, of a range that is not empty. Where a call has one row, which images made for a plan know, so does the part, and its
 * columns are counted in 32 bits. */
static __device__ inline kpart part_of(const kargs *k, int64_t width, int64_t begin, int64_t end)
{
    if (k->n[0] != 1)
        return kpart_of(k, width, begin, end);
    if (k->tile == 0)
        return kpart{0, 1, 0, width};
    const int tile = (int)k->tile, last = (int)end * tile;
    return kpart{0, 1, (int)begin * tile, last < (int)width ? last : (int)width};
}

/* Rows that a block does at once, where each of them has so little to do that a few threads have all of it: the first row of a
 * thread, from one to the next, and which of the row's threads it is. */
struct row_share {
    int first, step;
    int thread, threads;
};

static __device__ inline row_share rows_shared(const kargs *k, int each)
{
    const uint32_t all = (uint32_t)block_threads(), some = (uint32_t)each;
    if (k->n[0] == 1 || some == 0 || all % some != 0)
        return row_share{0, 1, (int)threadIdx.x, (int)all};
    return row_share{(int)(threadIdx.x / some), (int)(all / some), (int)(threadIdx.x % some), each};
}

/* Four floats that are loaded and stored at once, from and to multiples of 16 bytes. */
struct alignas(16) floats4 {
    float x[4];
};

/* A number that is loaded here: compilers move other loads behind the branch that leads to their use. */
#ifdef __CUDACC__
static __device__ inline int32_t load_now(const int32_t *p)
{
    int32_t x;
    asm volatile("ld.s32 %0, [%1];" : "=r"(x) : "l"(p));
    return x;
}

static __device__ inline float load_now(const float *p)
{
    float x;
    asm volatile("ld.f32 %0, [%1];" : "=f"(x) : "l"(p));
    return x;
}
#else
template <class T> static inline T load_now(const T *p)
{
    return *p;
}
#endif

static __device__ inline bool is_aligned(const void *p)
{
    return ((uintptr_t)p & 15) == 0;
}

#endif
