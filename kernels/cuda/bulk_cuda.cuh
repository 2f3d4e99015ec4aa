/* bulk_cuda.cuh - weft_bulk: a phase of squares (squares_cuda.cuh) whose weights are bf16, on cards of sm_90a. What they have
 * and weft_squares does not use: one thread asks for whole tiles by the tables that the launch brings (cuda_tiles), and they come
 * in the order of lines that the matrix instructions read.
 *
 * A stage is a tile of x, 128 rows of MMA_DEPTH numbers. Where numbers of x are sums of three bf16 (ACT_BF3T) it has those as
 * they lie in memory, 32 of one part and 32 of the next, and a tile of w is for three stages, in which the halves of x are
 * multiplied with the half of w that they belong to: parts 0 1, 2 0 and 1 2. So w comes once, not three times. Of sums of two
 * (ACT_BF2T) a tile of w is for two stages: parts 0 1 and 0 1. Where numbers of w are sums of two, all first ones of a row stand before
 * the others, and x is walked along once with each.
 *
 * With many rows, with F16 weights always, such x and weights are f16 as a rule (halves_cuda.cuh): numbers of ACT_BF3T are two then,
 * a stage has 64 first or second ones, and a tile of w is for two stages; numbers of ACT_BF2T are one, and each stage has a tile of w.
 *
 * When its sums are done a warp writes them through memory of its own, by whole lines, while others multiply and the next
 * tiles come.
 *
 * On an H200, 2048 rows, TFLOP/s of all products, of this and of cuBLAS with one bf16:
 *     4096 x 4096   757 and 770, three parts 841        4096 x 14336   812 and 821, three parts 864
 *    28672 x 4096   762 and 779, three parts 820         2048 x 2048   642 and 650
 * Sums written as they lie in registers: 738, 805, 752 and 621. Two blocks that share tiles of w (a cluster, multicast): 505. */
#ifndef WEFT_KERNELS_CUDA_BULK_CUDA_CUH
#define WEFT_KERNELS_CUDA_BULK_CUDA_CUH

#include "kernels/cuda/squares_cuda.cuh"

#if !defined(__CUDACC__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)

enum {
    BULK_X = MMA_ROWS * MMA_LINE, /* bytes of a tile */
    BULK_W = MMA_COLS * MMA_LINE,
};

/* Stages of x and tiles of w: the place of the latter is free whenever that of the stage is which it comes with. */
struct bulk_ring {
    char *x, *w;
    uint64_t *full, *empty; /* [MMA_STAGES] */
    int slot, w_slot;       /* at hand */
    int part;               /* which of the stages of its tile of w this is */
    uint32_t parity;
};

static __device__ inline void bulk_next(bulk_ring &r, int parts)
{
    r.part = r.part + 1 < parts ? r.part + 1 : 0;
    if (r.part == 0)
        r.w_slot = r.w_slot + 1 < MMA_STAGES ? r.w_slot + 1 : 0;
    r.slot = r.slot + 1 < MMA_STAGES ? r.slot + 1 : 0;
    r.parity ^= r.slot == 0;
}

/* ---- filling: by the first warp ---- */

/* stage_copy: stage i of all walks, which has number x_i of x. */
#ifdef __CUDACC__
/* A tile from column `col` and row `row` on, zeros where there is nothing; the barrier counts its bytes. */
static __device__ inline void tile_copy(const cuda_tile &t, char *to, uint64_t *full, int col,
                                        int row)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4}], [%2];" ::"r"(shared_at(to)),
                 "l"(&t), "r"(shared_at(full)), "r"(col), "r"(row)
                 : "memory");
}

static __device__ inline void stage_copy(const mma_job &j, const cuda_tile *t, bulk_ring &r, int i,
                                         int x_i)
{
    if (lane_index() != 0)
        return;
    uint64_t *full = &r.full[r.slot];
    barrier_expect(shared_at(full), r.part == 0 ? BULK_X + BULK_W : BULK_X);
    tile_copy(t[0], r.x + r.slot * BULK_X, full, x_i * MMA_DEPTH, (int)j.row);
    if (r.part == 0)
        tile_copy(t[1], r.w + r.w_slot * BULK_W, full, i / j.parts * MMA_DEPTH, (int)j.col);
}
#else
static inline void stage_copy(const mma_job &j, const cuda_tile *, bulk_ring &r, int i, int x_i)
{
    const int64_t at = x_i * MMA_DEPTH, at_w = i / j.parts * MMA_DEPTH;
    const copier x = copier_of(j.x, j.x_pitch, j.row, j.row_end, 1, lane_index(), WARP);
    const copier w = copier_of(j.w, j.w_pitch, j.col, j.col_end, 1, lane_index(), WARP);
    copy_lines<MMA_ROWS>(x, j.x, r.x + r.slot * BULK_X, at * 2, at, j.n * j.parts);
    if (r.part == 0)
        copy_lines<MMA_COLS>(w, j.x, r.w + r.w_slot * BULK_W, at_w * 2, at_w, j.n * j.walks);
    simt_copies_done();
    __syncwarp();
    if (lane_index() == 0)
        barrier_arrive(&r.full[r.slot]);
}
#endif

/* A phase has as many tables as steps, in their order. */
template <bool HALVES>
static __device__ void bulk_fill(const cuda_run &run, const cuda_tiles &tiles, bulk_ring r)
{
    const int32_t first = run.phase[run.first].step;
    square_unit q;
    for (int u = (int)blockIdx.x; square_find<HALVES>(run, u, &q); u += (int)gridDim.x) {
        const int stages = (int)stages_of(q.j);
        for (int i = 0; i < stages * q.j.walks; i++, bulk_next(r, q.j.parts)) {
            barrier_wait(&r.empty[r.slot], r.parity ^ 1);
            stage_copy(q.j, tiles.of[q.step - first], r, i, i < stages ? i : i - stages);
        }
    }
}

/* ---- multiplying ---- */

/* What a stage adds: its first 32 columns of x times half `one` of w, the other 32 times half `two`. add_half: one half of x times one
 * of w. */
#ifdef __CUDACC__
static __device__ inline void add_halves(float (*sum)[4], char *x, char *w, int strip, int one,
                                         int two, int, int)
{
    const uint64_t a = lines_at(x + strip / 4 * 64 * MMA_LINE), b = lines_at(w);
    const uint64_t b_one = b + 4 * one, b_two = b + 4 * two; /* 64 bytes on */
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    wgmma_64x256x16(sum, a, b_one);
    wgmma_64x256x16(sum, a + 2, b_one + 2);
    wgmma_64x256x16(sum, a + 4, b_two);
    wgmma_64x256x16(sum, a + 6, b_two + 2);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Of f16, all of x times all of w. */
static __device__ inline void add_f16(float (*sum)[4], char *x, char *w, int strip, int, int)
{
    const uint64_t a = lines_at(x + strip / 4 * 64 * MMA_LINE), b = lines_at(w);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    UNROLL
    for (int i = 0; i < MMA_DEPTH / 16; i++)
        wgmma_64x256x16_f16(sum, a + 2 * i, b + 2 * i);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

static __device__ inline void add_half(float (*sum)[4], char *x, char *w, int strip, int x_half,
                                       int w_half, int, int)
{
    const uint64_t a = lines_at(x + strip / 4 * 64 * MMA_LINE) + 4 * x_half;
    const uint64_t b = lines_at(w) + 4 * w_half;
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    wgmma_64x256x16(sum, a, b);
    wgmma_64x256x16(sum, a + 2, b + 2);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
#else
/* -1: not this half. */
template <bool F16 = false>
static inline void add_halves(float (*sum)[4], char *x, char *w, int strip, int one, int two,
                              int rows, int cols)
{
    const int row = strip * STRIP_ROWS + lane_index() / 4, col = lane_index() % 4 * 2;
    float a[2][MMA_DEPTH], b[MMA_DEPTH], of[MMA_DEPTH];
    for (int e = 0; e < 2 && row + e * 8 < rows; e++)
        line_floats<F16>(x, row + e * 8, a[e]);
    for (int i = 0; i < FRAGS; i++)
        for (int e = 0; e < 2 && row < rows && i * FRAG_COLS + col + e < cols; e++) {
            line_floats<F16>(w, i * FRAG_COLS + col + e, b);
            for (int c = 0; c < MMA_DEPTH; c++) {
                const int half = c < 32 ? one : two;
                of[c] = half < 0 ? 0 : b[c % 32 + half * 32];
            }
            sum[i][e] += line_dot(a[0], of);
            if (row + 8 < rows)
                sum[i][2 + e] += line_dot(a[1], of);
        }
}

static inline void add_f16(float (*sum)[4], char *x, char *w, int strip, int rows, int cols)
{
    add_halves<true>(sum, x, w, strip, 0, 1, rows, cols);
}

static inline void add_half(float (*sum)[4], char *x, char *w, int strip, int x_half, int w_half,
                            int rows, int cols)
{
    add_halves(sum, x, w, strip, x_half ? -1 : w_half, x_half ? w_half : -1, rows, cols);
}
#endif

/* The walk with second parts of w, where x has three parts, of which the last is left out. It is below 2^-17 of a number, as such a part of
 * w is below 2^-8. */
static __device__ inline void rest_multiply(int stages, bulk_ring &r, int strip, int rows, int cols,
                                            int &before, float (*sum)[4])
{
    for (int i = 0; i < stages; i += 3)
        UNROLL
    for (int part = 0; part < 3; part++, bulk_next(r, 3)) {
        char *x = r.x + r.slot * BULK_X, *w = r.w + r.w_slot * BULK_W;
        barrier_wait(&r.full[r.slot], r.parity);
        if (part == 0)
            add_halves(sum, x, w, strip, 0, 0, rows, cols);
        else
            add_half(sum, x, w, strip, part == 1, 1, rows, cols);
        products_wait<1>();
        warp_done(&r.empty[before]);
        before = r.slot;
    }
}

template <bool HALVES>
static __device__ inline void bulk_multiply(int stages, int parts, int walks, bulk_ring &r,
                                            int strip, int rows, int cols, float (*sum)[4])
{
    int before = -1;
    const int first = parts == 3 ? stages : stages * walks; /* stages of this loop */
    for (int i = 0; i < first; i++, bulk_next(r, parts)) {
        char *x = r.x + r.slot * BULK_X, *w = r.w + r.w_slot * BULK_W;
        barrier_wait(&r.full[r.slot], r.parity);
        if (HALVES)
            add_f16(sum, x, w, strip, rows, cols);
        else
            add_halves(sum, x, w, strip, r.part > 0 && r.part == parts - 1,
                       parts == 1 || r.part > 0, rows, cols);
        products_wait<1>();
        if (before >= 0)
            warp_done(&r.empty[before]);
        before = r.slot;
    }
    products_wait<0>(); /* or ptxas serialises those of both loops (C7511) */
    sums_done(sum);
    if (!HALVES) {
        if (walks > 1 && parts == 3)
            rest_multiply(stages, r, strip, rows, cols, before, sum);
        products_wait<0>();
        sums_done(sum);
    }
    warp_done(&r.empty[before]);
}

/* ---- results ---- */

/* Can rows of the result be written by 16 bytes? */
static __device__ inline bool has_sixteens(const square_unit &q)
{
    return q.out_pitch % 16 == 0 && (uintptr_t)q.out % 16 == 0 && q.j.col_end % 4 == 0;
}

/* Both powers out of sums of halves: that of the weights first, as theirs are seldom extreme. */
static __device__ inline void powers_out(const square_unit &q, int strip, float (*sum)[4])
{
    const int lane = lane_index();
    const int64_t row = q.j.row + strip * STRIP_ROWS + lane / 4, col = q.j.col + lane % 4 * 2;
    float x[2];
    UNROLL
    for (int e = 0; e < 2; e++) {
        const int64_t at = row + e * 8;
        x[e] = at < q.j.row_end ? *(const float *)(q.x_down + at * q.j.x_pitch) : 0;
    }
    UNROLL
    for (int i = 0; i < FRAGS; i++) {
        const int64_t c = col + i * FRAG_COLS;
        bytes8 w = {{bits_of(1), bits_of(1)}};
        if (q.w_down && c < q.j.col_end) /* there is room behind the last one */
            w = *(const bytes8 *)(q.w_down + c);
        UNROLL
        for (int e = 0; e < 4; e++)
            sum[i][e] = sum[i][e] * float_of(w.w[e % 2]) * x[e / 2];
    }
}

/* 16 rows of a warp, BULK_TURN columns at a time, by way of `own`: lines of BULK_PITCH bytes, so that pairs of eight rows are
 * in different banks. */
static __device__ inline void rows_put(const square_unit &q, int strip, char *own, float (*sum)[4])
{
    const int lane = lane_index(), first = lane / 8, col = lane % 8 * 4;
    char *put = own + lane / 4 * BULK_PITCH + lane % 4 * 8;
    const char *get = own + first * BULK_PITCH + col * 4;
    const int rows = (int)(q.j.row_end - q.j.row) - strip * STRIP_ROWS - first;
    const int cols = (int)(q.j.col_end - q.j.col) - col;
    char *to = q.out + (q.j.row + strip * STRIP_ROWS + first) * q.out_pitch + (q.j.col + col) * 4;
    UNROLL
    for (int c = 0; c < MMA_COLS; c += BULK_TURN) {
        UNROLL
        for (int f = 0; f < BULK_TURN / FRAG_COLS; f++) {
            const float *s = sum[c / FRAG_COLS + f];
            *(bytes8 *)(put + f * 32) = bytes8{{bits_of(s[0]), bits_of(s[1])}};
            *(bytes8 *)(put + f * 32 + 8 * BULK_PITCH) = bytes8{{bits_of(s[2]), bits_of(s[3])}};
        }
        __syncwarp();
        UNROLL
        for (int r = 0; r < STRIP_ROWS; r += 4) {
            const bytes16 four = *(const bytes16 *)(get + r * BULK_PITCH);
            if (r < rows && c < cols)
                *(bytes16 *)(to + r * q.out_pitch + c * 4) = four;
        }
        __syncwarp();
    }
}

template <bool HALVES>
static __device__ __forceinline__ void bulk_results(const cuda_run &run, bulk_ring r, int strip,
                                                    char *own)
{
    uint64_t *ns = strip == 0 && lane_index() == 0 ? times_of(run, 1) : NULL;
    square_unit q;
    for (int u = (int)blockIdx.x; square_find<HALVES>(run, u, &q); u += (int)gridDim.x) {
        const uint64_t start = ns ? clock_now() : 0;
        const int rows = (int)(q.j.row_end - q.j.row), cols = (int)(q.j.col_end - q.j.col);
        float sum[FRAGS][4] = {};
        bulk_multiply<HALVES>((int)stages_of(q.j), q.j.parts, q.j.walks, r, strip, rows, cols, sum);
        square_find<HALVES>(run, u, &q); /* once more: registers are for the sums */
        if (HALVES)
            powers_out(q, strip, sum);
        if (q.bias)
            add_bias(q, sum);
        if (has_sixteens(q))
            rows_put(q, strip, own, sum);
        else
            unit_put(q, strip, sum);
        if (ns)
            ns[q.step] += clock_now() - start;
    }
}

/* ---- a block ---- */

/* Never a function by itself, nor is bulk_results: the products of one that is called are serialised (C7510). */
static __device__ __forceinline__ void bulk_run(const cuda_run &run, const cuda_tiles &tiles,
                                                char *dynamic)
{
    __shared__ uint64_t barriers[2 * MMA_STAGES];
    char *x = aligned(dynamic), *w = x + MMA_STAGES * BULK_X, *own = w + MMA_STAGES * BULK_W;
    const bulk_ring r = {x, w, barriers, barriers + MMA_STAGES, 0, 0, 0, 0};
    if (threadIdx.x == 0) {
        for (int i = 0; i < MMA_STAGES; i++) {
            barrier_make(&r.full[i], 1);
            barrier_make(&r.empty[i], MULTIPLIERS * WARP_ARRIVALS);
        }
        copies_after_stores();
    }
    block_sync();
    REGISTERS_FIT(40, 232);
    if (threadIdx.x < FILLERS) {
        REGISTERS_GIVE(40);
        if (threadIdx.x < WARP && run.halves)
            bulk_fill<true>(run, tiles, r);
        else if (threadIdx.x < WARP)
            bulk_fill<false>(run, tiles, r);
    } else {
        REGISTERS_TAKE(232);
        const int strip = warp_index() - FILLERS / WARP;
        if (run.halves)
            bulk_results<true>(run, r, strip, own + strip * BULK_OWN);
        else
            bulk_results<false>(run, r, strip, own + strip * BULK_OWN);
    }
}

#else

/* An image for other cards: as weft_squares. */
static __device__ void bulk_run(const cuda_run &run, const cuda_tiles &, char *dynamic)
{
    squares_run(run, dynamic);
}
#endif

#endif
