/* linear_few_cuda.cuh - 2 to FEW_ROWS_MAX rows of x times w transposed: weights stream through shared memory once, and matrix
 * instructions multiply them with all rows.
 *
 * A tile is FEW_TILE rows of weights, a group some tiles. Warps share out the columns of a group, a chunk of them at a time. A
 * warp copies what it multiplies into memory of its own, ahead of use and as stored: chunks of x, and with each the chunks of
 * the group's tiles. It waits for nobody but itself until its columns are done; then sums of the warps meet in scratch, in
 * the order of the warps, while the chunks of the next group are on their way. x is so read once for each group, by one warp.
 *
 * Products of a tile take x from registers, in 8 bits: blocks of 32, 16 or 256 columns are whole numbers until a scale comes. What x
 * costs, from L2 and in instructions, is shared by the tiles of a group: so groups are as large as registers allow. With 32 rows
 * there are two passes over a group, each with half of the columns of x: what a function cannot have in registers, in the middle of
 * others that called it, comes from the card's memory each time. BF16 weights have a walk of their own (few_bf16_cuda.cuh).
 *
 * There is one copy of all this for a type and a number of instructions, whatever the sizes: linears of a layer are over in
 * microseconds, and code that is not at hand takes longer than their weights. What these cannot be given is few_plain's. */
#ifndef WEFT_KERNELS_CUDA_LINEAR_FEW_CUDA_CUH
#define WEFT_KERNELS_CUDA_LINEAR_FEW_CUDA_CUH

#include "kernels/cuda/few_bf16_cuda.cuh"
#include "kernels/cuda/few_types_cuda.cuh"
#include "kernels/cuda/linear_cuda.cuh"

/* ---- copies of a warp ---- */

/* Chunks that a warp has room for. */
struct few_room {
    int x, w;
};

/* Each step ends a group of copies, into the slot of the weights that it multiplied. Its next weights are there when all but the
 * last w - 1 groups of weights are done. A chunk of x is copied x chunks ahead: where it is kept in registers when the chunk
 * before is in them, as a group of its own, and elsewhere by the last step of a chunk, in the group of that step. So many
 * groups of weights may be under way when it is needed. */
template <class R> static __device__ inline int few_x_ahead(int x, int tiles)
{
    return R::KEEPS ? x * tiles : (x - 1) * tiles;
}

/* Tiles of a group, and passes over them, with so many instructions; and whether there is a copy of the code for each tile. */
template <class R, int NT> struct few_group {
    enum {
        TILES = NT == FEW_N_MAX ? (int)R::TILES : 4,
        PASSES = NT == FEW_N_MAX ? (int)R::PASSES : 1,
        EACH = PASSES > 1
    };
};

/* Chunks of weights that have to be there at once: with several passes those of all tiles. */
template <class R, int NT> static __device__ inline int few_at_once(int tiles)
{
    return few_group<R, NT>::PASSES > 1 ? tiles : 1;
}

/* As many groups under way as can be, where x is waited for. `visits`: chunks of x of the whole walk, which may all fit. */
template <class R, int NT> static __device__ inline few_room few_room_of(int tiles, int visits)
{
    typedef few_group<R, NT> group;
    enum { X = few_x_size<R, NT>::BYTES, W = FEW_TILE * R::PITCH, X_MAX = 5 };
    static_assert(X + ((int)group::PASSES > 1 ? (int)group::TILES + 1 : 2) * W <= FEW_RING_BYTES,
                  "a chunk is copied while others are used");
    const int at_once = few_at_once<R, NT>(tiles);
    few_room best = {1, 0};
    int most = -1;
    UNROLL
    for (int x = 1; x <= X_MAX; x++) {
        const int fit = (FEW_RING_BYTES - x * X) / W;
        const int w = fit < FEW_AHEAD_MAX ? fit : (int)FEW_AHEAD_MAX;
        const int ahead = x >= visits ? (int)FEW_AHEAD_MAX : few_x_ahead<R>(x, tiles);
        const int under_way = ahead < w - at_once ? ahead : w - at_once;
        if (w > at_once && under_way > most) {
            most = under_way;
            best = few_room{x, w};
        }
    }
    return best;
}

/* What a warp copies next. */
struct few_walk {
    int chunks, tiles; /* of the warp in a row; of all weights */
    int group_max;     /* tiles of a group */
    int chunk_0, step; /* its first chunk, and from one to the next */
    /* Weights: chunks left, the group's first tile and how many it has, which of them, and of which columns; then its place. */
    int left, group, group_n, tile, chunk, put;
    /* x: chunks left, of which columns, its place. */
    int x_left, x_chunk, x_put;
};

template <class R> static __device__ inline few_walk few_walk_of(const few_job &j, int group_max)
{
    const int warps = warp_count() < FEW_WARPS ? warp_count() : (int)FEW_WARPS;
    const int all = (j.n + R::COLS - 1) / R::COLS - warp_index();
    few_walk s = {};
    s.tiles = (j.w_rows + FEW_TILE - 1) / FEW_TILE;
    s.chunks = warp_index() < warps && all > 0 ? (all + warps - 1) / warps : 0;
    s.group_max = s.group_n = s.tiles < group_max ? s.tiles : group_max;
    s.chunk = s.x_chunk = s.chunk_0 = warp_index();
    s.step = warps;
    s.left = s.chunks * s.tiles;
    s.x_left = s.chunks * ((s.tiles + group_max - 1) / group_max);
    return s;
}

/* The next chunk of columns; after the last one the first. */
static __device__ inline int few_chunk_after(const few_walk &s, int chunk)
{
    chunk += s.step;
    return chunk < s.chunk_0 + s.chunks * s.step ? chunk : s.chunk_0;
}

/* The next chunk of weights, if there is one; either way a group of copies ends. A lane has pieces of two rows, lanes of four one
 * after the other; rows that are not there are zeros. */
template <class R>
static __device__ inline void few_copy_w(const few_job &j, few_walk &s, shared_place slots, int n)
{
    enum { WHOLE = R::BYTES % 16 == 0 }; /* chunks are, of any row */
    if (s.left > 0) {
        const int row = lane_index() / 4, p = lane_index() % 4;
        const int at = (s.group + s.tile) * FEW_TILE, rows = j.w_rows - at;
        const int begin = s.chunk * R::BYTES & ~15;
        const int bytes = (int)((unsigned)j.n / R::COLS * R::BYTES) - begin - p * 16;
        const char *up = j.w + (int64_t)(at + row) * j.w_pitch + (begin + p * 16);
        const char *low = up + 8 * j.w_pitch;
        const shared_place to = slots + (unsigned)(s.put * FEW_TILE * R::PITCH);
        UNROLL
        for (int piece = 0; piece < R::PIECES; piece += 4) {
            const bool there = WHOLE || piece * 16 < bytes;
            if (piece + 4 <= R::PIECES || piece + p < R::PIECES) {
                few_copy(to + (unsigned)(row * R::PITCH + (piece + p) * 16), up + piece * 16,
                         there && row < rows);
                few_copy(to + (unsigned)((row + 8) * R::PITCH + (piece + p) * 16), low + piece * 16,
                         there && row + 8 < rows);
            }
        }
        s.left--;
        s.put = s.put + 1 == n ? 0 : s.put + 1;
        if (++s.tile == s.group_n) {
            s.tile = 0;
            s.chunk = few_chunk_after(s, s.chunk);
            if (s.chunk == s.chunk_0) {
                s.group += s.group_n;
                s.group_n = s.tiles - s.group < s.group_max ? s.tiles - s.group : s.group_max;
            }
        }
    }
    copies_group();
}

/* The next chunk of x, if there is one: rows of FEW_X_BYTES, zeros where there are none, and what types have beside them. */
template <class R, int NT>
static __device__ inline void few_copy_x(const few_job &j, few_walk &s, shared_place slots, int n)
{
    typedef few_x_size<R, NT> size;
    if (s.x_left <= 0)
        return;
    const int row = lane_index() / 16, piece = lane_index() % 16;
    const int begin = s.x_chunk * FEW_X_BYTES + piece * 16;
    const shared_place to = slots + (unsigned)(s.x_put * size::BYTES);
    const char *from = j.x + (int64_t)row * j.x_pitch + begin;
    UNROLLED(4)
    for (int r = row; r < NT * FEW_N; r += 2, from += 2 * (int64_t)j.x_pitch)
        few_copy(to + (unsigned)(r * size::PITCH + piece * 16), from, r < j.rows);
    /* X_SIDE bytes of each row: scales of 32 columns, or sums of 16; then scales of 256. */
    const int d = (int)((unsigned)(j.n + ACT_ALIGN - 1) & ~(ACT_ALIGN - 1u));
    const int sums = (j.n / 256 * 4 + ACT_ALIGN - 1) & ~(ACT_ALIGN - 1);
    const int side = (R::X_BLOCK == 256 ? d + sums : d) + s.x_chunk * 32;
    UNROLLED(1)
    for (int i = lane_index(); i < NT * FEW_N * R::X_SIDE / 16; i += WARP)
        few_copy(to + (unsigned)(size::SIDE + i * 16),
                 j.x + (int64_t)(i / 2) * j.x_pitch + side + i % 2 * 16, i / 2 < j.rows);
    if (R::X_BLOCK == 256 && lane_index() < NT * FEW_N)
        few_copy_4(to + (unsigned)(size::D + lane_index() * 4),
                   j.x + (int64_t)lane_index() * j.x_pitch + d + s.x_chunk * 4,
                   lane_index() < j.rows);
    s.x_left--;
    s.x_put = s.x_put + 1 == n ? 0 : s.x_put + 1;
    s.x_chunk = few_chunk_after(s, s.x_chunk);
}

/* ---- tiles ---- */

/* The first tile's sums to the end, so that those of the next are the first: sums are in registers, which have no index. */
template <int TILES, int NT> static __device__ inline void few_turn(float (*sum)[NT][4])
{
    UNROLL
    for (int i = 0; i < NT * 4; i++) {
        const float first = sum[0][i / 4][i % 4];
        UNROLL
        for (int t = 1; t < TILES; t++)
            sum[t - 1][i / 4][i % 4] = sum[t][i / 4][i % 4];
        sum[TILES - 1][i / 4][i % 4] = first;
    }
}

/* Products of a chunk, for tile t of a group; its sums are the first ones if there is not a copy for each. */
template <class R, int NT, int P>
static __device__ inline void few_multiply(shared_place slot, const few_x<R, NT, P> &x,
                                           uint32_t skew, int pass, int t, float (*sum)[NT][4])
{
    typedef few_group<R, NT> group;
    UNROLL
    for (int i = 0; i < (group::EACH ? (int)group::TILES : 1); i++)
        if (!group::EACH || t == i)
            R::template products<NT, P>(slot, x, skew, (uint32_t)pass, sum[i]);
    if (!group::EACH)
        few_turn<group::TILES, NT>(sum);
}

template <class R, int NT> static __device__ FEW_COPY void few_stream(const few_job j)
{
    enum {
        TILES = few_group<R, NT>::TILES,
        PASSES = few_group<R, NT>::PASSES,
        MEET = FEW_N_MAX / NT, /* tiles whose sums there is room for */
        X = few_x_size<R, NT>::BYTES,
        W = FEW_TILE * R::PITCH
    };
    few_walk s = few_walk_of<R>(j, TILES);
    const few_room room = few_room_of<R, NT>(s.group_max, s.x_left);
    const bool all_x = s.x_left <= room.x;
    const shared_place sums = shared_at(j.scratch);
    const shared_place x_slots =
        sums + FEW_SUM_BYTES + (unsigned)(warp_index() % FEW_WARPS) * FEW_RING_BYTES;
    const shared_place w_slots = x_slots + (unsigned)(room.x * X);
    int get = 0, x_get = 0;
    UNROLLED(1)
    for (int i = 0; i < room.x; i++)
        few_copy_x<R, NT>(j, s, x_slots, room.x);
    UNROLLED(1)
    for (int i = 0, t = 0; i < room.w; i++, t = t + 1 == s.group_max ? 0 : t + 1) {
        if (R::KEEPS && t == 0)
            copies_group(); /* as if it were a chunk's first step: of so many groups there is one more */
        few_copy_w<R>(j, s, w_slots, room.w);
    }
    const int more = room.w - few_at_once<R, NT>(s.group_max);
    const int w_ahead = more + (R::KEEPS ? more / s.group_max : 0);
    few_wait(w_ahead);
    __syncwarp();
    UNROLLED(1)
    for (int group = 0; group < s.tiles; group += TILES) {
        const int here = s.tiles - group < TILES ? s.tiles - group : (int)TILES;
        const int x_ahead = few_x_ahead<R>(room.x, here) + (R::KEEPS ? room.x - 1 : 0);
        const int last = all_x || w_ahead < x_ahead ? w_ahead : x_ahead;
        float sum[TILES][NT][4] = {};
        UNROLLED(1)
        for (int i = 0; i < s.chunks * PASSES; i++) {
            const int c = i / PASSES, pass = i % PASSES;
            const bool ends = pass + 1 == PASSES; /* and nobody needs the chunk any more */
            const uint32_t skew = (uint32_t)((s.chunk_0 + c * s.step) * R::BYTES & 15);
            few_x<R, NT, PASSES> x;
            x.load(x_slots + (unsigned)(x_get * X), (uint32_t)pass);
            if (R::KEEPS && ends) {
                __syncwarp(); /* all have it */
                few_copy_x<R, NT>(j, s, x_slots, room.x);
                copies_group();
            }
            if (ends)
                x_get = x_get + 1 == room.x ? 0 : x_get + 1;
            int at = get;
            UNROLLED(1)
            for (int t = 0; t < here; t++) {
                few_multiply<R, NT, PASSES>(w_slots + (unsigned)(at * W), x, skew, pass, t, sum);
                at = at + 1 == room.w ? 0 : at + 1;
                if (!ends)
                    continue;
                __syncwarp();
                if (!R::KEEPS && t + 1 == here)
                    few_copy_x<R, NT>(j, s, x_slots, room.x);
                few_copy_w<R>(j, s, w_slots, room.w);
                few_wait(t + 1 == here ? last : w_ahead);
                __syncwarp();
            }
            if (ends)
                get = at;
            UNROLLED(1)
            for (int t = few_group<R, NT>::EACH ? (int)TILES : here; t < TILES; t++)
                few_turn<TILES, NT>(sum);
        }
        few_meet<NT, TILES>(j, sums, group, here, sum);
    }
    copies_wait<0>();
}

/* A number of a row of x. */
template <class R> static __device__ inline float few_x_at(const char *row, int64_t n, int64_t i)
{
    const kact act = (kact)R::ACT;
    if (act == ACT_F32)
        return ((const float *)row)[i];
    if (!act_is_split(act))
        return act_d_of(act, row, n)[i / act_block(act)] * (float)act_q(row)[i];
    float x = 0; /* of the smallest part on: exact */
    for (int64_t p = act_parts(act) - 1; p >= 0; p--)
        x += from_bf16(((const uint16_t *)row)[act_split_at(act, i, p, 0)]);
    return x;
}

/* Whatever cannot be streamed: as floats, row by row. */
template <class R> static __device__ FEW_COPY void few_plain(const few_job j)
{
    const dot_weights w = {(const uint8_t *)j.w, j.w_pitch, j.bias, 0, j.w_rows, j.n,
                           (dtype)R::TYPE};
    float *x = (float *)j.scratch;
    for (int row = 0; row < j.rows; row++) {
        const char *from = j.x + (int64_t)row * j.x_pitch;
        few_rows r = {};
        r.n = 1;
        r.x[0] = x;
        r.out[0] = (float *)((char *)j.out + (int64_t)row * j.out_pitch);
        block_sync(); /* the row before has been used */
        for (int64_t i = threadIdx.x; i < j.n; i += block_threads())
            x[i] = few_x_at<R>(from, j.n, i);
        block_sync();
        few_dots<typename R::weight, 1, (dtype)R::TYPE != DT_BF16>(
            w, r); /* whose rows may end anywhere */
    }
}

/* ---- the kernels ---- */

/* Are rows whole pieces of 16 bytes, in order? */
template <class R> static __device__ inline bool few_streams(const few_job &j)
{
    return is_shared(j.scratch) && few_copies_from(j.x) && at_16(j.x) && j.x_pitch % 16 == 0 &&
           at_16(j.w) && j.w_pitch % 16 == 0 && j.n % R::COLS == 0;
}

/* BF16 has a walk of its own, and of floats one for eight rows alone. */
template <class R, int NT> static __device__ inline void few_run(const few_job &j)
{
    if constexpr (R::TYPE != (int)DT_BF16)
        few_stream<R, NT>(j);
    else if constexpr (NT * FEW_N <= R::ROWS_MAX)
        few_stream_bf16<R, NT>(j);
}

template <class R>
static __device__ inline void linear_few(const kargs *k, const kthread *t, int64_t begin,
                                         int64_t end)
{
    const kpart part = kpart_of(k, k->size.linear.out, begin, end);
    const int instructions = (int)few_instructions(least(k->size.linear.rows, R::ROWS_MAX));
    few_job j;
    j.w = (const char *)k->in[1] + part.col * k->pitch[1];
    j.bias = k->in[2] ? (const float *)k->in[2] + part.col : NULL;
    j.scratch = (char *)t->scratch;
    j.x_pitch = (int)k->pitch[0];
    j.w_pitch = (int)k->pitch[1];
    j.out_pitch = (int)k->out_pitch[0];
    j.w_rows = (int)(part.col_end - part.col);
    j.n = (int)k->size.linear.in;
    UNROLLED(1)
    for (int row = (int)part.row; row < (int)part.row_end; row += R::ROWS_MAX) {
        j.x = (const char *)row_in(k, 0, row);
        j.out = row_out(k, 0, row) + part.col;
        j.rows = (int)least(part.row_end - row, R::ROWS_MAX);
        if (!few_streams<R>(j))
            few_plain<R>(j);
        else if (instructions == 1)
            few_run<R, 1>(j);
        else if (instructions == 2)
            few_run<R, 2>(j);
        else
            few_run<R, FEW_N_MAX>(j);
    }
}

#define LINEAR_FEW(type)                                                                           \
    static __device__ void k_linear_##type##_few_cuda(const kargs *k, const kthread *t,            \
                                                      int64_t begin, int64_t end)                  \
    {                                                                                              \
        linear_few<few_##type>(k, t, begin, end);                                                  \
    }
LINEAR_FEW(BF16)
LINEAR_FEW(BF16_floats)
LINEAR_FEW(Q8_0)
LINEAR_FEW(Q4_0)
LINEAR_FEW(Q4_K)
LINEAR_FEW(Q5_K)
LINEAR_FEW(Q6_K)
#undef LINEAR_FEW

#endif
