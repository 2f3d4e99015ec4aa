/* expert_squares_cuda.cuh - weft_experts: a phase whose steps are all experts of many rows (experts_mma_cuda.cuh), with the same ids.
 *
 * Choices are grouped by expert: a tile is up to MMA_ROWS of those who chose one expert, in their order, and a unit is a square of it,
 * whose rows of x are gathered and whose results are scattered. How many tiles there are only the ids tell: each block counts them,
 * and finds by itself who is in its tile.
 *
 * As in squares_cuda.cuh some warps fill stages and the others multiply them. Those who fill also list who is in a tile: in turns for
 * two units, so that one list may be read while the next is made. */
#ifndef WEFT_KERNELS_CUDA_EXPERT_SQUARES_CUDA_CUH
#define WEFT_KERNELS_CUDA_EXPERT_SQUARES_CUDA_CUH

#include "kernels/cuda/experts_mma_cuda.cuh"
#include "kernels/cuda/squares_cuda.cuh"

/* ---- tiles ---- */

/* What a block knows of the choices, behind the stages: how they are grouped, and who is in the tile at hand and in the next one. */
struct expert_tiles {
    int32_t *choice; /* [2][MMA_ROWS] of a tile, */
    int32_t *row;    /* [2][MMA_ROWS] and their rows of x */
    int32_t *first;  /* [experts + 1]: the first tile of each, and all */
    int32_t *count;  /* [experts] */
};

static __device__ inline expert_tiles expert_tiles_at(const stage_ring &r, int64_t experts)
{
    int32_t *at = (int32_t *)(r.stages + ring_count(r) * MMA_STAGE_BYTES);
    return expert_tiles{at, at + 2 * MMA_ROWS, at + 4 * MMA_ROWS, at + 4 * MMA_ROWS + experts + 1};
}

/* How often each expert is chosen, and where its tiles begin; by all threads. */
static __device__ void expert_tiles_count(const expert_tiles &t, const int32_t *ids, int n,
                                          int experts)
{
    block_sync(); /* what was there has been read */
    for (int e = (int)threadIdx.x; e < experts; e += block_threads())
        t.count[e] = 0;
    block_sync();
    for (int i = (int)threadIdx.x; i < n; i += block_threads())
        atomicAdd(&t.count[ids[i]], 1);
    block_sync();
    if (warp_index() == 0) {
        int all = 0;
        for (int first = 0; first < experts; first += WARP) {
            const int e = first + lane_index();
            const int own = e < experts ? (t.count[e] + MMA_ROWS - 1) / MMA_ROWS : 0;
            int sum = own;
            for (int by = 1; by < WARP; by *= 2) {
                const int other = __shfl_up_sync(ALL_LANES, sum, by);
                sum += lane_index() >= by ? other : 0;
            }
            if (e < experts)
                t.first[e] = all + sum - own;
            all += __shfl_sync(ALL_LANES, sum, WARP - 1);
        }
        if (lane_index() == 0)
            t.first[experts] = all;
    }
    block_sync();
}

/* The expert of a tile: the last one whose tiles begin there or before. */
static __device__ inline int expert_of_tile(const expert_tiles &t, int experts, int tile)
{
    int low = 0, high = experts; /* it is in [low, high) */
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (t.first[middle] <= tile)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Some who chose expert e: from number `from` on of them, as many as fit into a tile. */
struct expert_tile {
    const int32_t *ids;
    int n; /* of all choices */
    int e, from;
    int share;             /* choices that have one row of x */
    int32_t *choice, *row; /* where they go */
};

/* Those who fill stages list a tile together, and meet twice for each at a barrier of their own. */
enum { LISTERS = FILLERS / WARP };

static __device__ inline void listers_meet(uint64_t *met, uint32_t parity)
{
    barrier_arrive(met);
    barrier_wait(met, parity);
}

/* Each warp looks at one stretch of all choices: first how many there are, then which. */
static __device__ inline void expert_tile_list(const expert_tile &t, int32_t *found, uint64_t *met)
{
    const int each = ((t.n + LISTERS - 1) / LISTERS + WARP - 1) / WARP * WARP;
    const int begin = warp_index() * each, end = (int)least(begin + each, t.n);
    const uint32_t earlier = (1u << lane_index()) - 1;
    int here = 0, rank = -t.from;
    UNROLLED(4)
    for (int i = begin; i < end; i += WARP) {
        const int at = i + lane_index();
        here += __popc((int)__ballot_sync(ALL_LANES, at < end && t.ids[at] == t.e));
    }
    if (lane_index() == 0)
        found[warp_index()] = here;
    listers_meet(met, 0);
    for (int w = 0; w < warp_index(); w++)
        rank += found[w];
    UNROLLED(1)
    for (int i = begin; i < end && rank < MMA_ROWS; i += WARP) {
        const int at = i + lane_index();
        const bool is = at < end && t.ids[at] == t.e;
        const uint32_t those = __ballot_sync(ALL_LANES, is);
        const int place = rank + __popc((int)(those & earlier));
        if (is && place >= 0 && place < MMA_ROWS) {
            t.choice[place] = at;
            t.row[place] = at / t.share;
        }
        rank += __popc((int)those);
    }
    listers_meet(met, 1);
}

/* ---- units ---- */

/* What both parts of a block know. */
struct expert_block {
    expert_tiles tiles;
    uint64_t *listed, *written; /* [2]: barriers of the lists, */
    uint64_t *met;              /* and of those who make them */
    int32_t *found;             /* [LISTERS] */
};

/* A square of a step. */
struct expert_unit {
    mma_job j;
    int32_t step;
    int type; /* of the weights */
    int e, from;
};

/* bf16 of each number of x, by the row of a step. */
static __device__ inline int expert_parts_of(int32_t row)
{
    const bool exact = row == ROW_k_experts_BF16_exact_cuda || row == ROW_k_experts_F16_exact_cuda;
    const bool near = row == ROW_k_experts_BF16_near_cuda || row == ROW_k_experts_F16_near_cuda;
    return exact ? 3 : near ? 2 : 1;
}

/* Unit u of the phase; false: there are no so many. */
static __device__ inline bool expert_find(const cuda_run &r, const expert_block &b, int u,
                                          expert_unit *out_q)
{
    const cuda_phase p = r.phase[r.first];
    for (int32_t i = p.first; i < p.first + p.n_item; i++) {
        const int32_t step = r.item[i].first;
        const cuda_step &s = r.step[step];
        const cuda_shape &shape = r.shape[s.shape];
        const int experts = (int)shape.k.size.experts.experts;
        const int out = (int)shape.k.size.experts.out, tiles = b.tiles.first[experts];
        const int squares = tiles * ((out + MMA_COLS - 1) / MMA_COLS);
        if (u >= squares) {
            u -= squares;
            continue;
        }
        const int tile = u % tiles, e = expert_of_tile(b.tiles, experts, tile);
        expert_unit &q = *out_q;
        q.step = step;
        q.type = (int)shape.k.type[1];
        q.e = e;
        q.from = (tile - b.tiles.first[e]) * MMA_ROWS;
        q.j.x = (const char *)s.in[0];
        q.j.w = ((const uint8_t *const *)s.in[1])[e];
        q.j.x_pitch = shape.k.pitch[0];
        q.j.w_pitch = shape.k.pitch[1];
        q.j.n = shape.k.size.experts.in;
        q.j.parts = expert_parts_of(shape.row);
        q.j.walks = expert_walks(shape.k.type[1], q.j.parts);
        q.j.copies =
            q.type == DT_BF16 && q.j.n % EIGHT == 0 && q.j.w_pitch % 16 == 0 && at_16(q.j.w);
        q.j.row = 0;
        q.j.row_end = least(b.tiles.count[e] - q.from, MMA_ROWS);
        q.j.col = u / tiles * MMA_COLS;
        q.j.col_end = least(q.j.col + MMA_COLS, out);
        return true;
    }
    return false;
}

/* How often a list has been made before number n. */
static __device__ inline uint32_t list_parity(int n)
{
    return (uint32_t)(n / 2) & 1;
}

static __device__ inline void experts_fill(const cuda_run &run, const expert_block &b, stage_ring r)
{
    expert_unit q;
    int n = 0;
    for (int u = (int)blockIdx.x; expert_find(run, b, u, &q); u += (int)gridDim.x, n++) {
        const cuda_step &s = run.step[q.step];
        const ksizes &size = run.shape[s.shape].k.size;
        const int which = n % 2, share = size.experts.x_vectors > 1 ? 1 : (int)size.experts.slots;
        const expert_tile tile = {
            (const int32_t *)s.in[2],          s.rows * (int)size.experts.slots, q.e, q.from, share,
            b.tiles.choice + which * MMA_ROWS, b.tiles.row + which * MMA_ROWS};
        barrier_wait(&b.written[which], list_parity(n) ^ 1);
        expert_tile_list(tile, b.found, b.met);
        barrier_arrive(&b.listed[which]);
        q.j.list = tile.row;
        switch (q.type) {
#define UNIT_FILL(type)                                                                            \
    case DT_##type:                                                                                \
        unit_fill<weight_##type, true>(q.j, r);                                                    \
        break;
            WEIGHT_TYPES_MMA(UNIT_FILL)
            UNIT_FILL(F16)
#undef UNIT_FILL
        }
        if (q.j.walks > 1)
            unit_fill<weight_F16_rest, true>(q.j, r);
    }
}

/* The results of a strip to the rows that they belong to. */
static __device__ inline void expert_unit_put(const cuda_run &run, const expert_unit &q,
                                              const int32_t *choice, int strip, float (*sum)[4])
{
    const cuda_step &s = run.step[q.step];
    const kargs &k = run.shape[s.shape].k;
    const float *bias =
        s.in[3] ? (const float *)((const char *)s.in[3] + q.e * k.pitch[3]) + q.j.col : NULL;
    const int col = lane_index() % 4 * 2, cols = (int)(q.j.col_end - q.j.col);
    UNROLL
    for (int half = 0; half < 2; half++) {
        const int line = strip * STRIP_ROWS + lane_index() / 4 + half * 8;
        if (line >= q.j.row_end)
            continue;
        float *to = (float *)((char *)s.out[0] + choice[line] * k.out_pitch[0]) + q.j.col;
        const bool pairs = (uintptr_t)(to + col) % 8 == 0;
        UNROLL
        for (int i = 0; i < FRAGS; i++) {
            const int c = i * FRAG_COLS + col;
            float one = sum[i][half * 2], two = sum[i][half * 2 + 1];
            if (c >= cols)
                continue;
            one += bias ? bias[c] : 0;
            two += bias && c + 1 < cols ? bias[c + 1] : 0;
            if (pairs && c + 1 < cols) {
                *(bytes8 *)(to + c) = bytes8{{bits_of(one), bits_of(two)}};
                continue;
            }
            to[c] = one;
            if (c + 1 < cols)
                to[c + 1] = two;
        }
    }
}

static __device__ inline void experts_multiply(const cuda_run &run, const expert_block &b,
                                               stage_ring r, int strip)
{
    uint64_t *ns = strip == 0 && lane_index() == 0 ? times_of(run, 1) : NULL;
    expert_unit q;
    int n = 0;
    for (int u = (int)blockIdx.x; expert_find(run, b, u, &q); u += (int)gridDim.x, n++) {
        const uint64_t start = ns ? clock_now() : 0;
        float sum[FRAGS][4] = {};
        unit_multiply((int)stages_of(q.j) * q.j.walks, r, strip, (int)q.j.row_end,
                      (int)(q.j.col_end - q.j.col), sum);
        expert_find(run, b, u, &q); /* once more: registers are for the sums */
        barrier_wait(&b.listed[n % 2], list_parity(n));
        expert_unit_put(run, q, b.tiles.choice + n % 2 * MMA_ROWS, strip, sum);
        warp_done(&b.written[n % 2]);
        if (ns)
            ns[q.step] += clock_now() - start;
    }
}

static __device__ inline void expert_squares_run(const cuda_run &run, char *dynamic)
{
    __shared__ uint64_t barriers[2 * MMA_STAGES], lists[5];
    const cuda_step &s = run.step[run.item[run.phase[run.first].first].first];
    const ksizes &size = run.shape[s.shape].k.size;
    const int experts = (int)size.experts.experts;
    const stage_ring r =
        ring_of(dynamic, barriers, (int64_t)run.block_bytes - cuda_expert_lists_bytes(experts));
    __shared__ expert_block b; /* registers are for other things */
    if (threadIdx.x == 0) {
        b = expert_block{expert_tiles_at(r, experts), lists, lists + 2, lists + 4,
                         block_memory()->found};
        for (int i = 0; i < 2; i++) {
            barrier_make(&b.listed[i], FILLERS);
            barrier_make(&b.written[i], MULTIPLIERS * WARP_ARRIVALS);
        }
        barrier_make(b.met, FILLERS);
    }
    block_sync();
    expert_tiles_count(b.tiles, (const int32_t *)s.in[2], s.rows * (int)size.experts.slots,
                       experts);
    REGISTERS_FIT(120, 192);
    if (threadIdx.x < FILLERS) {
        REGISTERS_GIVE(120);
        experts_fill(run, b, r);
    } else {
        REGISTERS_TAKE(192);
        experts_multiply(run, b, r, warp_index() - FILLERS / WARP);
    }
}

#endif
