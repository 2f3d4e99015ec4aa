/* few_job_cuda.cuh - what linears of 2 to FEW_ROWS_MAX rows have in common (linear_few_cuda.cuh, few_bf16_cuda.cuh): copies of a warp,
 * matrix instructions, and the sums of all warps. */
#ifndef WEFT_KERNELS_CUDA_FEW_JOB_CUDA_CUH
#define WEFT_KERNELS_CUDA_FEW_JOB_CUDA_CUH

#include "kernels/cuda/copy_cuda.cuh"
#include "kernels/cuda/few_size.h"
#include "kernels/cuda/linear_mma_cuda.cuh"

/* In images for a plan too: not a copy for each call. */
#ifdef __CUDACC__
#define FEW_COPY __noinline__
#else
#define FEW_COPY
#endif

/* Some rows of x times some rows of weights; given in registers. */
struct few_job {
    const char *x, *w; /* the first rows */
    const float *bias; /* of these weights, or NULL */
    float *out;        /* of that row, for these weights */
    char *scratch;
    int x_pitch, w_pitch, out_pitch; /* bytes */
    int rows, w_rows;
    int n; /* columns */
};

/* The warp, as a number that all lanes have: so branches and addresses are those of a warp. */
static __device__ inline int few_warp(void)
{
#ifdef __CUDACC__
    return __shfl_sync(ALL_LANES, warp_index(), 0);
#else
    return warp_index();
#endif
}

/* ---- copies ---- */

#ifdef __CUDACC__
/* 16 bytes, or 4, or as many zeros. */
static __device__ inline void few_copy(shared_place to, const char *from, bool there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global_at(from)),
                 "r"(there ? 16 : 0)
                 : "memory");
}

/* The same, of rows that are read on from there: a whole line comes to L2. */
static __device__ inline void few_copy_line(shared_place to, const char *from, bool there)
{
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to),
                 "l"(global_at(from)), "r"(there ? 16 : 0)
                 : "memory");
}

/* The same, or nothing. */
static __device__ inline void few_copy_if(shared_place to, const char *from, bool there)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %2, 0;\n"
                 "@p cp.async.cg.shared.global.L2::128B [%0], [%1], 16;\n}" ::"r"(to),
                 "l"(global_at(from)), "r"((int)there)
                 : "memory");
}

static __device__ inline void few_copy_4(shared_place to, const char *from, bool there)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(global_at(from)),
                 "r"(there ? 4 : 0)
                 : "memory");
}
#else
static inline void few_copy(shared_place to, const char *from, bool there)
{
    copy_piece((char *)to, from, there);
}

static inline void few_copy_if(shared_place to, const char *from, bool there)
{
    if (there)
        copy_16(to, from);
}

static inline void few_copy_line(shared_place to, const char *from, bool there)
{
    copy_piece((char *)to, from, there);
}

static inline void few_copy_4(shared_place to, const char *from, bool there)
{
    simt_copy((void *)to, from, there ? 4 : 0, 4);
}
#endif

/* Until all groups of copies but the last `left` are done, or more are. */
static __device__ inline void few_wait(int left)
{
    if (left < 2) {
        if (left < 1)
            copies_wait<0>();
        else
            copies_wait<1>();
    } else if (left < 4) {
        if (left < 3)
            copies_wait<2>();
        else
            copies_wait<3>();
    } else if (left < 5) {
        copies_wait<4>();
    } else {
        copies_wait<5>();
    }
}
static_assert(FEW_AHEAD_MAX <= 6, "no more are under way");

/* ---- matrix instructions ---- */

/* 16 by 8, 32 and 16 deep, added to one number; of bf16, added to sums or to nothing. few_frags: what of 16 rows a lane has to give
 * the latter, from the lines that lanes point to. */
#ifdef __CUDACC__
static __device__ inline void few_frags(uint32_t *a, shared_place line)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(line));
}

static __device__ inline void few_mma_bf16(float *to, const uint32_t *a, const uint32_t *b)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(to[0]), "+f"(to[1]), "+f"(to[2]), "+f"(to[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

static __device__ inline void few_mma_32(int *to, const uint32_t *a, const uint32_t *b, int from)
{
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
        : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(from));
}

/* Weights without a sign. */
static __device__ inline void few_mma_32u(int *to, const uint32_t *a, const uint32_t *b)
{
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
        : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(0));
}

static __device__ inline void few_mma_16(int *to, uint32_t a0, uint32_t a1, uint32_t b,
                                         int from = 0)
{
    asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 "
        "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %7, %7, %7};"
        : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
        : "r"(a0), "r"(a1), "r"(b), "r"(from));
}

static __device__ inline void few_put(shared_place p, float x)
{
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(p), "f"(x) : "memory");
}

static __device__ inline uint16_t shared_2(shared_place p)
{
    uint16_t x;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(x) : "r"(p));
    return x;
}
#else
static inline void few_mma_32(int *to, const uint32_t *a, const uint32_t *b, int from)
{
    to[0] = to[1] = to[2] = to[3] = from;
    simt_mma_s8(to, a, b, 32);
}

static inline void few_mma_32u(int *to, const uint32_t *a, const uint32_t *b)
{
    uint32_t half[4], rest[4]; /* a is 2 half + rest, which have a sign */
    int one[4] = {0, 0, 0, 0};
    for (int i = 0; i < 4; i++) {
        half[i] = a[i] >> 1 & 0x7f7f7f7fu;
        rest[i] = a[i] & 0x01010101u;
        to[i] = 0;
    }
    simt_mma_s8(to, half, b, 32);
    simt_mma_s8(one, rest, b, 32);
    for (int i = 0; i < 4; i++)
        to[i] = 2 * to[i] + one[i];
}

static inline void few_mma_16(int *to, uint32_t a0, uint32_t a1, uint32_t b, int from = 0)
{
    const uint32_t a[2] = {a0, a1};
    to[0] = to[1] = to[2] = to[3] = from;
    simt_mma_s8(to, a, &b, 16);
}

static inline void few_put(shared_place p, float x)
{
    *(float *)p = x;
}

static inline uint16_t shared_2(shared_place p)
{
    return *(const uint16_t *)p;
}

static inline void few_frags(uint32_t *a, shared_place line)
{
    simt_ldmatrix(a, (const char *)line, false);
}

static inline void few_mma_bf16(float *to, const uint32_t *a, const uint32_t *b)
{
    simt_mma(to, a, b, from_bf16);
}
#endif

/* ---- sums ---- */

/* A lane's sums of a tile for all: [tile][warp][x row][weight row]. */
template <int NT>
static __device__ inline void few_sums_put(shared_place sums, int tile, const float (*sum)[4])
{
    const int at = (tile * FEW_WARPS + warp_index()) * NT * FEW_N + lane_index() % 4 * 2;
    const shared_place to = sums + (unsigned)(at * FEW_SUM_PITCH + lane_index() / 4) * 4;
    UNROLL
    for (int t = 0; t < NT; t++)
        UNROLL
    for (int e = 0; e < 4; e++)
        few_put(to + (unsigned)((t * FEW_N + e % 2) * FEW_SUM_PITCH + e / 2 * 8) * 4, sum[t][e]);
}

/* Results of n tiles from the sums of all warps. */
template <int NT>
static __device__ inline void few_sums_out(const few_job &j, shared_place sums, int first, int n)
{
    enum { ROWS = NT * FEW_N };
    const int warps = warp_count() < FEW_WARPS ? warp_count() : (int)FEW_WARPS;
    UNROLLED(1)
    for (int i = (int)threadIdx.x; i < n * ROWS * FEW_TILE; i += block_threads()) {
        const int row = i % FEW_TILE, x = i / FEW_TILE % ROWS, tile = i / (FEW_TILE * ROWS);
        const int at = (first + tile) * FEW_TILE + row;
        if (at >= j.w_rows || x >= j.rows)
            continue;
        const shared_place from =
            sums + (unsigned)((tile * FEW_WARPS * ROWS + x) * FEW_SUM_PITCH + row) * 4;
        float all = 0;
        UNROLLED(8)
        for (int w = 0; w < warps; w++)
            all += float_of(shared_4(from + (unsigned)(w * ROWS * FEW_SUM_PITCH) * 4));
        *(float *)((char *)(j.out + at) + (int64_t)x * j.out_pitch) =
            j.bias ? all + j.bias[at] : all;
    }
}

/* Sums of the tiles of a group, of all warps. */
template <int NT, int TILES>
static __device__ inline void few_meet(const few_job &j, shared_place sums, int group, int here,
                                       const float (*sum)[NT][4])
{
    enum { MEET = FEW_N_MAX / NT }; /* tiles whose sums there is room for */
    UNROLL
    for (int first = 0; first < TILES; first += MEET) {
        if (first >= here)
            continue;
        UNROLL
        for (int i = 0; i < MEET && first + i < TILES; i++)
            if (first + i < here && warp_index() < FEW_WARPS)
                few_sums_put<NT>(sums, i, sum[first + i]);
        block_sync();
        few_sums_out<NT>(j, sums, group + first, here - first < MEET ? here - first : (int)MEET);
        block_sync(); /* sums have been read */
    }
}

#endif
